"""What inverse kinematics minimizes beside its goals: weighted errors, lost manipulability, and unwanted velocities."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_not_negative
from .._errors import DtypeError, ShapeError
from ..algorithms.jacobians import jacobian
from ..model.configuration import integrate
from ..model.model import Model
from ._arguments import related
from ._ik_problem import product
from .goals import LENGTH, Goal, Moving, check_static_links


class Expansion(NamedTuple):
    """A cost near a configuration, by the motion of the moving joints: value, gradient and an approximate Hessian.

    The Hessian is positive semidefinite.
    """

    value: Float[Array, ""]
    gradient: Float[Array, "m"]
    hessian: Float[Array, "m m"]


class Cost(eqx.Module):
    """A function of the configuration that is to be small."""

    def __check_init__(self) -> None:
        check_static_links(self)

    @abc.abstractmethod
    def expand(self, model: Model, q: Float[Array, "nq"], moving: Moving) -> Expansion:
        """The cost near a configuration."""

    @abc.abstractmethod
    def checked(self, model: Model, dtype: Any, name: str) -> Cost:
        """The cost with links as indices, and with arrays of one dtype whose shapes and values were checked."""

    @property
    @abc.abstractmethod
    def links(self) -> tuple[str | int, ...]:
        """The links that it concerns."""


class SoftGoal(Cost):
    r"""A goal that is approached as far as the others allow: the cost $\frac12 \sum_i w_i e_i^2$ of its error.

    With a `ConfigurationGoal` this is a posture.

    Args:
        goal: The goal, such as `PoseGoal`; its error counts in rad and in 0.1 m.
        weight: The weight of the error, or one for each of its entries.
    """

    goal: Goal
    weight: Float[Array, "*n"] | float = 1.0

    @property
    def links(self) -> tuple[str | int, ...]:
        return self.goal.links

    def expand(self, model: Model, q: Array, moving: Moving) -> Expansion:
        e, J = self.goal.evaluate(model, q, moving)
        if np.shape(self.weight) not in ((), e.shape):
            names = " and ".join(repr(model.link_names[model.link_index(link)]) for link in self.goal.links)
            kind = type(self.goal).__name__ + (f" of {names}" if names else "")
            got = np.shape(self.weight)
            raise ShapeError(f"SoftGoal({kind}).weight must be a number or have shape {e.shape}, got {got}")
        return _squares(e, J, self.weight)

    def checked(self, model: Model, dtype: Any, name: str) -> SoftGoal:
        if not isinstance(self.goal, Goal):
            raise DtypeError(f"{name}.goal must be a goal such as PoseGoal, got {type(self.goal).__name__}")
        goal = self.goal.checked(model, dtype, f"{name}.goal")
        return SoftGoal(goal, _weight(self.weight, dtype, f"{name}.weight"))


class Manipulability(Cost):
    r"""The cost $-\frac{w}{2} \log\det(J J^T + \epsilon I)$: minus the logarithm of a link's manipulability.

    [Yoshikawa 1985]; J is the Jacobian of the link with respect to the joints that may move, lengths in 0.1 m. With
    $\epsilon = 10^{-6}$ (float32: $10^{-3}$) the directions in which the link never moves do not matter, and the cost
    of singular configurations is finite.

    Args:
        link: The link, by name or index; static.
        weight: The weight.
        ref: The link relative to which it moves; None is the world; static.
    """

    link: str | int = eqx.field(static=True)
    weight: Float[Array, ""] | float = 1.0
    ref: str | int | None = eqx.field(static=True, default=None)

    @property
    def links(self) -> tuple[str | int, ...]:
        return (self.link,) if self.ref is None else (self.link, self.ref)

    def expand(self, model: Model, q: Array, moving: Moving) -> Expansion:
        at, least = np.array(moving.v), 1e-6 if q.dtype == jnp.float64 else 1e-3

        def lost(step: Array) -> Array:
            there = integrate(model, q, jnp.zeros(model.nv, q.dtype).at[at].set(step, unique_indices=True))
            J = jacobian(model, there, self.link, ref=self.ref)[:, at]
            J = jnp.concatenate([J[:3], J[3:] / LENGTH])
            return -0.5 * self.weight * _log_det(product(J, J.T) + least * jnp.eye(6, dtype=q.dtype))

        value, gradient = jax.value_and_grad(lost)(jnp.zeros(len(at), q.dtype))
        return Expansion(value, gradient, self.weight * jnp.eye(len(at), dtype=q.dtype))

    def checked(self, model: Model, dtype: Any, name: str) -> Manipulability:
        link, ref = related(model, self.link, self.ref, f"{name}.")
        weight = _weight(self.weight, dtype, f"{name}.weight", ())
        return Manipulability(link, weight, ref)


class LinkVelocity(Cost):
    r"""A velocity that a link is to have: the cost $\frac12 \sum_i w_i (J v - v^*)_i^2$, for `differential_ik`.

    Args:
        link: The link, by name or index; static.
        velocity: Angular and linear velocity of its origin in the axes of `ref` [rad/s, m/s], as `jacobian` has them.
        weight: The weight, or one for each of its six entries.
        ref: The link relative to which it moves; None is the world; static.
    """

    link: str | int = eqx.field(static=True)
    velocity: Float[Array, "6"]
    weight: Float[Array, "*n"] | float = 1.0
    ref: str | int | None = eqx.field(static=True, default=None)

    @property
    def links(self) -> tuple[str | int, ...]:
        return (self.link,) if self.ref is None else (self.link, self.ref)

    def expand(self, model: Model, q: Array, moving: Moving) -> Expansion:
        """The cost by the velocities of the moving joints, at rest."""
        J = jacobian(model, q, self.link, ref=self.ref)[:, np.array(moving.v)]
        return _squares(-self.velocity, J, self.weight)

    def checked(self, model: Model, dtype: Any, name: str) -> LinkVelocity:
        velocity = check_array(self.velocity, f"{name}.velocity", (6,)).astype(dtype)
        check_finite(velocity, f"{name}.velocity")
        link, ref = related(model, self.link, self.ref, f"{name}.")
        weight = _weight(self.weight, dtype, f"{name}.weight")
        if weight.shape not in ((), (6,)):
            raise ShapeError(f"{name}.weight must be a number or have shape (6,), got {weight.shape}")
        return LinkVelocity(link, velocity, weight, ref)


def _squares(e: Array, J: Array, weight: Any) -> Expansion:
    """Half the weighted sum of the squares of e + J s."""
    weighted = weight * e
    scaled = jnp.broadcast_to(weight, e.shape)[:, None] * J
    value, gradient = 0.5 * jnp.sum(weighted * e), jnp.sum(J * weighted[:, None], axis=0)
    return Expansion(value, gradient, product(J.T, scaled))


def _weight(weight: Any, dtype: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    array = check_array(weight, name, shape)
    check_not_negative(array, name)
    return array.astype(dtype)


def _log_det(A: Float[Array, "n n"]) -> Array:
    """Of a positive definite matrix, by elimination."""
    total = jnp.zeros((), A.dtype)
    for k in range(len(A)):
        total += jnp.log(A[k, k])
        A = A - A[:, k, None] * (A[k] / A[k, k])[None]
    return total
