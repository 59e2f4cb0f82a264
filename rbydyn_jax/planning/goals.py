"""What a motion is to reach: poses and positions of links, configurations, and places of the centre of mass."""

from __future__ import annotations

import abc
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_integer, check_sequence, kind_of
from .._errors import ArgumentError, DtypeError
from ..algorithms.centroidal import center_of_mass, com_jacobian
from ..algorithms.jacobians import pose_and_jacobian
from ..algorithms.kinematics import link_pose
from ..model.configuration import difference, integrate, is_vector_space
from ..model.model import Model
from ..spatial import so3
from ..spatial._small import matmul
from ._arguments import pose, related

ALONG = "path"
LENGTH = 0.1  # [m] that count as much as 1 rad


class Moving(NamedTuple):
    """The moving joints: their indices in q and in v."""

    q: tuple[int, ...]
    v: tuple[int, ...]


class Goal(eqx.Module):
    """A condition on the configuration, at one instant of the motion or all along it.

    Args:
        varies: The array that has a leading axis for a batch of inverse kinematics, and its number of axes without.
        lengths: Which entries of the error are lengths; the others are angles.
    """

    varies: ClassVar[tuple[str, int]]
    lengths: ClassVar[slice] = slice(0, 0)

    def __check_init__(self) -> None:
        check_static_links(self)

    @property
    @abc.abstractmethod
    def when(self) -> float | str:
        """A share of the duration in [0, 1], or ``"path"``."""

    @abc.abstractmethod
    def evaluate(self, model: Model, q: Float[Array, "nq"], moving: Moving) -> tuple[Array, Array]:
        """The error (n,), scaled so that 1 is one radian or 0.1 m, and its derivatives (n, m) by the moving joints."""

    @abc.abstractmethod
    def band(self) -> Array:
        """Along the path: how much of the error counts as none, by entry and scaled as the error is."""

    @abc.abstractmethod
    def checked(self, model: Model, dtype: Any, name: str) -> Goal:
        """The goal with links as indices, and with arrays of one dtype whose shapes and values were checked."""

    @property
    def links(self) -> tuple[str | int, ...]:
        """The links that it concerns."""
        return ()

    def place(self, model: Model, q: Float[Array, "nq"]) -> tuple[Array, Array]:
        """What tells how near a configuration is to the goal: numbers like angles (a,) [rad] and lengths (l,) [m]."""
        return jnp.zeros(0, q.dtype), jnp.zeros(0, q.dtype)

    def wanted(self) -> tuple[Array, Array]:
        """The place at which the goal is reached."""
        nothing = getattr(self, self.varies[0]).reshape(-1)[:0]
        return nothing, nothing


class PoseGoal(Goal):
    """A link is to have a pose, of the world or of another link: two hands that hold one object.

    Args:
        link: The link, by name or index; static.
        target: Its pose T_ref_link.
        ref: The link relative to which the target is given; None is the world; static.
        at: When: a share of the duration in [0, 1], or ``"path"`` for the whole motion; static.
        position_band: Along the path: the largest deviation of each coordinate that counts as none [m].
        orientation_band: The same for the entries of the rotation vector, in the axes of `ref` or of the world [rad].
    """

    link: str | int = eqx.field(static=True)
    target: Float[Array, "4 4"]
    ref: str | int | None = eqx.field(static=True, default=None)
    at: float | str = eqx.field(static=True, default=1.0)
    position_band: Float[Array, ""] | float = 1e-3
    orientation_band: Float[Array, ""] | float = 1e-2
    varies = ("target", 2)
    lengths = slice(3, 6)

    @property
    def when(self) -> float | str:
        return self.at

    @property
    def links(self) -> tuple[str | int, ...]:
        return (self.link,) if self.ref is None else (self.link, self.ref)

    def evaluate(self, model: Model, q: Array, moving: Moving) -> tuple[Array, Array]:
        T, J = pose_and_jacobian(model, q, *map(model.link_index, self.links))
        J = J[:, np.array(moving.v)]
        turn = so3.log(matmul(self.target[:3, :3], T[:3, :3].T))
        turned = -so3.right_jacobian_inverse(turn) @ J[:3]
        e = jnp.concatenate([turn, (self.target[:3, 3] - T[:3, 3]) / LENGTH])
        return e, jnp.concatenate([turned, -J[3:] / LENGTH])

    def place(self, model: Model, q: Array) -> tuple[Array, Array]:
        return _place(link_pose(model, q, self.link, self.ref))

    def wanted(self) -> tuple[Array, Array]:
        return _place(self.target)

    def band(self) -> Array:
        return jnp.repeat(jnp.stack([jnp.asarray(self.orientation_band), jnp.asarray(self.position_band) / LENGTH]), 3)

    def checked(self, model: Model, dtype: Any, name: str) -> PoseGoal:
        target = pose(self.target, f"{name}.target", "T_ref_link")
        link, ref = related(model, self.link, self.ref, f"{name}.")
        given = bands(name, dtype, position_band=self.position_band, orientation_band=self.orientation_band)
        return PoseGoal(link, target.astype(dtype), ref, time(self.at, name), *given)


class PositionGoal(Goal):
    """The origin of a link is to be somewhere, with any orientation.

    Args:
        link: The link, by name or index; static.
        position: Its position in the axes of `ref` [m].
        ref: The link relative to which the position is given; None is the world; static.
        at: When: a share of the duration in [0, 1], or ``"path"`` for the whole motion; static.
        position_band: Along the path: the largest deviation of each coordinate that counts as none [m].
    """

    link: str | int = eqx.field(static=True)
    position: Float[Array, "3"]
    ref: str | int | None = eqx.field(static=True, default=None)
    at: float | str = eqx.field(static=True, default=1.0)
    position_band: Float[Array, ""] | float = 1e-3
    varies = ("position", 1)
    lengths = slice(0, 3)

    @property
    def when(self) -> float | str:
        return self.at

    @property
    def links(self) -> tuple[str | int, ...]:
        return (self.link,) if self.ref is None else (self.link, self.ref)

    def evaluate(self, model: Model, q: Array, moving: Moving) -> tuple[Array, Array]:
        T, J = pose_and_jacobian(model, q, *map(model.link_index, self.links))
        return (self.position - T[:3, 3]) / LENGTH, -J[3:, np.array(moving.v)] / LENGTH

    def place(self, model: Model, q: Array) -> tuple[Array, Array]:
        return jnp.zeros(0, q.dtype), link_pose(model, q, self.link, self.ref)[:3, 3]

    def wanted(self) -> tuple[Array, Array]:
        return self.position[:0], self.position

    def band(self) -> Array:
        return jnp.repeat(jnp.asarray(self.position_band) / LENGTH, 3)

    def checked(self, model: Model, dtype: Any, name: str) -> PositionGoal:
        position = check_array(self.position, f"{name}.position", (3,)).astype(dtype)
        check_finite(position, f"{name}.position")
        link, ref = related(model, self.link, self.ref, f"{name}.")
        given = bands(name, dtype, position_band=self.position_band)
        return PositionGoal(link, position, ref, time(self.at, name), *given)


class ComGoal(Goal):
    """The centre of mass of the whole robot is to be somewhere.

    Args:
        position: Its position in the world [m].
        at: When: a share of the duration in [0, 1], or ``"path"`` for the whole motion; static.
        axes: Which coordinates count; static. (0, 1) leaves the height free.
        position_band: Along the path: the largest deviation of each coordinate that counts as none [m].
    """

    position: Float[Array, "3"]
    at: float | str = eqx.field(static=True, default=1.0)
    axes: tuple[int, ...] = eqx.field(static=True, default=(0, 1, 2))
    position_band: Float[Array, ""] | float = 1e-3
    varies = ("position", 1)
    lengths = slice(0, 3)

    @property
    def when(self) -> float | str:
        return self.at

    def evaluate(self, model: Model, q: Array, moving: Moving) -> tuple[Array, Array]:
        axes = np.array(self.axes)
        c, J = center_of_mass(model, q), com_jacobian(model, q)[:, np.array(moving.v)]
        return (self.position - c)[axes] / LENGTH, -J[axes] / LENGTH

    def place(self, model: Model, q: Array) -> tuple[Array, Array]:
        return jnp.zeros(0, q.dtype), center_of_mass(model, q)[np.array(self.axes)]

    def wanted(self) -> tuple[Array, Array]:
        return self.position[:0], self.position[np.array(self.axes)]

    def band(self) -> Array:
        return jnp.repeat(jnp.asarray(self.position_band) / LENGTH, len(self.axes))

    def checked(self, model: Model, dtype: Any, name: str) -> ComGoal:
        all_three = "all three coordinates, of which axes chooses"
        position = check_array(self.position, f"{name}.position", (3,), all_three).astype(dtype)
        check_finite(position, f"{name}.position")
        given = check_sequence(self.axes, f"{name}.axes", "coordinates such as 0")
        axes = tuple(check_integer(axis, f"{name}.axes[{i}]") for i, axis in enumerate(given))
        if not axes or not set(axes) <= {0, 1, 2}:
            raise ArgumentError(f"{name}.axes must be some of 0, 1 and 2, got {axes}")
        return ComGoal(position, time(self.at, name), axes, *bands(name, dtype, position_band=self.position_band))


class ConfigurationGoal(Goal):
    """The moving joints are to have given positions.

    Args:
        q: The configuration; what it has for joints that do not move is not used [rad, m].
        at: When: a share of the duration in [0, 1]; static.
    """

    q: Float[Array, "nq"]
    at: float = eqx.field(static=True, default=1.0)
    varies = ("q", 1)

    @property
    def when(self) -> float | str:
        return self.at

    def evaluate(self, model: Model, q: Array, moving: Moving) -> tuple[Array, Array]:
        at = np.array(moving.v)

        def error(step: Array) -> Array:
            dv = jnp.zeros(model.nv, q.dtype).at[at].set(step, unique_indices=True)
            return difference(model, integrate(model, q, dv), self.q)[at]

        still = jnp.zeros(len(at), q.dtype)
        slope = -jnp.eye(len(at), dtype=q.dtype) if is_vector_space(model) else jax.jacfwd(error)(still)
        return difference(model, q, self.q)[at], slope

    def band(self) -> Array:
        return jnp.zeros(1)

    def checked(self, model: Model, dtype: Any, name: str) -> ConfigurationGoal:
        q = check_array(self.q, f"{name}.q", (model.nq,), "model.nq").astype(dtype)
        check_finite(q, f"{name}.q")
        if isinstance(self.at, str):
            raise ArgumentError(f"{name}.at must be a share of the duration, got {self.at!r}")
        return ConfigurationGoal(q, float(time(self.at, name)))


def _place(T: Float[Array, "4 4"]) -> tuple[Array, Array]:
    return T[:3, :3].reshape(-1) / np.sqrt(2.0), T[:3, 3]


def time(at: Any, name: str) -> float | str:
    """When a goal is to be reached, checked."""
    if isinstance(at, str) and at == ALONG:
        return ALONG
    if isinstance(at, bool) or not isinstance(at, Real) or not 0.0 <= float(at) <= 1.0:
        raise ArgumentError(f"{name}.at must be a number between 0 and 1, or 'path', got {at!r}")
    return float(at)


def check_static_links(given: Any) -> None:
    """Raises if a link of a goal or a cost is an array: compiled programs are told apart by links.

    Raises:
        DtypeError: One is.
    """
    for name in ("link", "ref"):
        if isinstance(x := getattr(given, name, None), jax.Array | np.ndarray | list):
            raise DtypeError(f"{type(given).__name__}.{name} must be a link, by name or index, got {kind_of(x)}")


def bands(name: str, dtype: Any, **given: Any) -> list[Array]:
    """Bands along the path, checked."""
    found = [check_array(x, f"{name}.{key}", ()).astype(dtype) for key, x in given.items()]
    for key, x in zip(given, found, strict=True):
        if not isinstance(x, Tracer) and not x >= 0:
            raise ArgumentError(f"{name}.{key} must not be negative, got {float(x)}")
    return found
