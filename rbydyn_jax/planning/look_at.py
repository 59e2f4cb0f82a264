"""The goal that an axis of a link points at something."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_real
from .._errors import ArgumentError, DtypeError
from .._lazy import is_traced
from ..algorithms.jacobians import pose_and_jacobian
from ..model.model import Model
from ..spatial._small import matmul, matvec
from ..spatial.safe import safe_norm
from ._arguments import related
from .goals import Goal, Moving, bands, time

_PARALLEL = 1e-4  # sine of the angle below which its ratio to the angle is a series


def _axis(axis: Any) -> tuple[float, float, float]:
    """Three known numbers as a tuple: static fields are compared, and arrays cannot be."""
    if is_traced(axis):
        raise DtypeError("axis must be known while tracing: it is static")
    x, y, z = check_real(axis, "axis", (3,)).tolist()
    return x, y, z


class LookAtGoal(Goal):
    """An axis of a link, from its origin, is to point at a point: a camera at an object, a hand at a hole.

    Args:
        link: The link, by name or index; static.
        point: The point in the axes of `ref` [m].
        axis: The axis in the axes of the link, of any length: three numbers that are known while tracing; static.
        ref: The link relative to which the point is given; None is the world; static.
        at: When: a share of the duration in [0, 1], or ``"path"`` for the whole motion; static.
        orientation_band: Along the path: the largest deviation about each of two axes that counts as none [rad].

    Raises:
        DtypeError: The axis does not consist of real numbers, or is traced.
        ShapeError: It does not consist of three.
    """

    link: str | int = eqx.field(static=True)
    point: Float[Array, "3"]
    axis: tuple[float, float, float] = eqx.field(converter=_axis, static=True, default=(0.0, 0.0, 1.0))
    ref: str | int | None = eqx.field(static=True, default=None)
    at: float | str = eqx.field(static=True, default=1.0)
    orientation_band: Float[Array, ""] | float = 1e-2
    varies = ("point", 1)

    @property
    def when(self) -> float | str:
        return self.at

    @property
    def links(self) -> tuple[str | int, ...]:
        return (self.link,) if self.ref is None else (self.link, self.ref)

    def evaluate(self, model: Model, q: Array, moving: Moving) -> tuple[Array, Array]:
        T, J = pose_and_jacobian(model, q, *map(model.link_index, self.links))
        J = J[:, np.array(moving.v)]
        into = matmul(jnp.asarray(_frame(self.axis), q.dtype), T[:3, :3].T)  # the axis becomes z
        x, y, z = w = self.point - T[:3, 3]
        zero = jnp.zeros_like(x)
        across = jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])
        local = matvec(into, w)
        slope = matmul(into, matmul(across, J[:3]) - J[3:])
        return _deviation(local), matmul(jax.jacfwd(_deviation)(local), slope)

    def band(self) -> Array:
        return jnp.repeat(jnp.asarray(self.orientation_band), 2)

    def checked(self, model: Model, dtype: Any, name: str) -> LookAtGoal:
        point = check_array(self.point, f"{name}.point", (3,)).astype(dtype)
        check_finite(point, f"{name}.point")
        link, ref = related(model, self.link, self.ref, f"{name}.")
        if not np.isfinite(self.axis).all() or not np.linalg.norm(self.axis) > 0:
            raise ArgumentError(f"{name}.axis must be finite and not zero, got {self.axis}")
        (band,) = bands(name, dtype, orientation_band=self.orientation_band)
        return LookAtGoal(link, point, self.axis, ref, time(self.at, name), band)


def _deviation(w: Float[Array, "3"]) -> Float[Array, "2"]:
    """The angle from z to w, times the direction of the x and y coordinates of w."""
    w = w / jnp.maximum(safe_norm(w), jnp.finfo(w.dtype).tiny)
    across, cosine = w[:2], w[2]
    sine = safe_norm(across)
    ahead = (sine < _PARALLEL) & (cosine > 0)
    s = jnp.where(ahead, 1.0, jnp.maximum(sine, jnp.finfo(w.dtype).eps))
    ratio = jnp.where(ahead, 1.0 + jnp.sum(across * across) / 6.0, jnp.arctan2(s, jnp.where(ahead, 1.0, cosine)) / s)
    behind = (sine < jnp.finfo(w.dtype).eps) & (cosine <= 0)  # any turn by pi will do
    return jnp.where(behind, jnp.array([np.pi, 0.0], w.dtype), ratio * across)


def _frame(axis: tuple[float, float, float]) -> np.ndarray:
    """A rotation matrix that takes the axis to z."""
    z = np.array(axis) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z])
