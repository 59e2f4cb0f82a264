"""Costs of a controlled motion: of its torques, velocities and joint positions, of goals, and of functions."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative
from .._errors import DtypeError, ShapeError
from .._jit import full_precision
from ..algorithms.jacobians import jacobian
from ..model.configuration import integrate
from ..model.model import Model
from ._functions import checked_function, returned
from .costs import Cost, LinkVelocity
from .goals import Moving

MotionFunction = Callable[[Model, Array, Array, Array, Array], Array]
"""A function of (model, q, v, tau, t) at one time that returns residuals (n,)."""


class Quadratic(NamedTuple):
    """A cost near a state and torque, by position (in tangent coordinates), velocity and torque.

    None is zero; `qq`, `vv` and `tau_tau` may be vectors, which are diagonals.
    """

    q: Array | None = None
    v: Array | None = None
    tau: Array | None = None
    qq: Array | None = None
    vq: Array | None = None
    vv: Array | None = None
    tau_q: Array | None = None
    tau_v: Array | None = None
    tau_tau: Array | None = None


class MotionCost(eqx.Module):
    """A function of the state, the torque and the time that is to be small."""

    @abc.abstractmethod
    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Float[Array, ""]:
        """The cost at one time."""

    @abc.abstractmethod
    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        """Its gradient and an approximate Hessian, positive semidefinite."""

    @abc.abstractmethod
    def checked(self, model: Model, dtype: Any, name: str) -> MotionCost:
        """The cost with arrays of one dtype whose shapes and values were checked."""


class JointEffort(MotionCost):
    r"""The cost $\frac12 \sum_i w_i \tau_i^2$ of the joint torques and forces.

    Args:
        weight: The weight, or one for each velocity [1/(N m)^2, 1/N^2].
    """

    weight: Float[Array, "*nv"] | float = 1.0

    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return 0.5 * jnp.sum(self.weight * tau * tau)

    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        return Quadratic(tau=self.weight * tau, tau_tau=_diagonal(self.weight, tau))

    def checked(self, model: Model, dtype: Any, name: str) -> JointEffort:
        return JointEffort(_weight(model, self.weight, dtype, name))


class JointVelocity(MotionCost):
    r"""The cost $\frac12 \sum_i w_i v_i^2$ of the joint velocities.

    Args:
        weight: The weight, or one for each velocity [1/(rad/s)^2, 1/(m/s)^2].
    """

    weight: Float[Array, "*nv"] | float = 1.0

    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return 0.5 * jnp.sum(self.weight * v * v)

    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        return Quadratic(v=self.weight * v, vv=_diagonal(self.weight, v))

    def checked(self, model: Model, dtype: Any, name: str) -> JointVelocity:
        return JointVelocity(_weight(model, self.weight, dtype, name))


class JointLimits(MotionCost):
    r"""The cost $\frac12 \sum_i w_i d_i^2$ of what joint positions are beyond their limits, narrowed by a margin.

    A penalty, no bound. Of joints with one coordinate; without limits there is no cost.

    Args:
        weight: The weight, or one for each velocity [1/rad^2, 1/m^2].
        margin: Distance from the limit at which the cost begins [rad, m].
    """

    weight: Float[Array, "*nv"] | float = 1.0
    margin: Float[Array, ""] | float = 0.0

    def _beyond(self, model: Model, q: Array) -> Array:
        tree = model.tree
        single = [i for i, j in enumerate(tree.joints) if tree.mimics[i] is None and j.nq == j.nv == 1]
        at_q, at_v = (np.array([x[i].start for i in single], int) for x in (tree.q_slices, tree.v_slices))
        low, high = model.position_lower[at_q] + self.margin, model.position_upper[at_q] - self.margin
        return jnp.zeros(model.nv, q.dtype).at[at_v].set(q[at_q] - jnp.clip(q[at_q], low, high), unique_indices=True)

    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return 0.5 * jnp.sum(self.weight * self._beyond(model, q) ** 2)

    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        beyond = self._beyond(model, q)
        return Quadratic(q=self.weight * beyond, qq=_diagonal(jnp.where(beyond != 0.0, self.weight, 0.0), v))

    def checked(self, model: Model, dtype: Any, name: str) -> JointLimits:
        margin = check_array(self.margin, f"{name}.margin", ())
        check_not_negative(margin, f"{name}.margin")
        return JointLimits(_weight(model, self.weight, dtype, name), margin.astype(dtype))


class Residuals(MotionCost):
    """Half the sum of the squares of what a function returns; derivatives by Gauss and Newton.

    Args:
        function: A pytree that is called with (model, q, v, tau, t).
        name: What the user gave it as, for messages; static.
    """

    function: Any
    name: str = eqx.field(static=True)

    def _residuals(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return returned(self.function(model, q, v, tau, t), self.name, (1,)).astype(q.dtype)

    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return 0.5 * jnp.sum(self._residuals(model, q, v, tau, t) ** 2)

    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        n = model.nv

        def moved(step: Array) -> Array:
            return self._residuals(model, integrate(model, q, step[:n]), v + step[n : 2 * n], tau + step[2 * n :], t)

        none = jnp.zeros(3 * n, q.dtype)
        e = moved(none)
        J = (jax.jacrev if len(e) <= 3 * n else jax.jacfwd)(moved)(none)
        g, H = full_precision(jnp.matmul)(e, J), full_precision(jnp.matmul)(J.T, J)
        q_, v_, u_ = slice(n), slice(n, 2 * n), slice(2 * n, None)
        return Quadratic(g[q_], g[v_], g[u_], H[q_, q_], H[v_, q_], H[v_, v_], H[u_, q_], H[u_, v_], H[u_, u_])

    def checked(self, model: Model, dtype: Any, name: str) -> Residuals:
        return self


class OfConfiguration(MotionCost):
    """A cost of the configuration alone, such as `SoftGoal`.

    Args:
        cost: The cost.
    """

    cost: Cost

    def value(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        return self.cost.expand(model, q, _all(model)).value

    def expand(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
        found = self.cost.expand(model, q, _all(model))
        return Quadratic(q=found.gradient, qq=found.hessian)

    def checked(self, model: Model, dtype: Any, name: str) -> OfConfiguration:
        return OfConfiguration(self.cost.checked(model, dtype, name))


def motion_costs(model: Model, costs: Any, dtype: Any, name: str) -> tuple[MotionCost, ...]:
    """What the user gave as costs, each checked."""
    if not isinstance(costs, Sequence) or isinstance(costs, str):
        raise DtypeError(f"{name} must be a list of costs such as SoftGoal, got {type(costs).__name__}")
    return tuple(_one(cost, f"{name}[{i}]").checked(model, dtype, f"{name}[{i}]") for i, cost in enumerate(costs))


def _one(cost: Any, name: str) -> MotionCost:
    if isinstance(cost, MotionCost):
        return cost
    if isinstance(cost, LinkVelocity):
        return _LinkVelocityCost(cost, name)
    if isinstance(cost, Cost):
        return OfConfiguration(cost)
    return Residuals(
        checked_function(cost, name, "(model, q, v, tau, t)", "a cost such as SoftGoal or a function"), name
    )


class _LinkVelocityCost(Residuals):
    """`LinkVelocity` of a robot that moves."""

    function: LinkVelocity

    def _residuals(self, model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
        cost = self.function
        moving = jnp.sum(jacobian(model, q, cost.link, ref=cost.ref) * v[None], axis=1)
        return jnp.sqrt(jnp.asarray(cost.weight)) * (moving - cost.velocity)

    def checked(self, model: Model, dtype: Any, name: str) -> _LinkVelocityCost:
        return _LinkVelocityCost(self.function.checked(model, dtype, name), name)


def total(costs: Sequence[MotionCost], model: Model, q: Array, v: Array, tau: Array, t: Array) -> Array:
    """The sum of the costs at one time."""
    return sum((cost.value(model, q, v, tau, t) for cost in costs), jnp.zeros((), q.dtype))


def expansion(costs: Sequence[MotionCost], model: Model, q: Array, v: Array, tau: Array, t: Array) -> Quadratic:
    """The sum of their expansions."""
    parts = [cost.expand(model, q, v, tau, t) for cost in costs]
    return Quadratic(*(_sum(entries) for entries in zip(*parts, strict=True))) if parts else Quadratic()


def _sum(entries: Sequence[Array | None]) -> Array | None:
    known = [x for x in entries if x is not None]
    if len({x.ndim for x in known}) == 2:
        known = [jnp.diag(x) if x.ndim == 1 else x for x in known]
    return sum(known[1:], known[0]) if known else None


def _diagonal(weight: Any, like: Array) -> Array:
    return jnp.broadcast_to(jnp.asarray(weight, like.dtype), like.shape)


def _all(model: Model) -> Moving:
    return Moving(tuple(range(model.nq)), tuple(range(model.nv)))


def _weight(model: Model, weight: Any, dtype: Any, name: str) -> Array:
    found = check_array(weight, f"{name}.weight")
    if found.shape not in ((), (model.nv,)):
        expected = f"a number or have shape ({model.nv},) (model.nv)"
        raise ShapeError(f"{name}.weight must be {expected}, got {found.shape}")
    check_not_negative(found, f"{name}.weight")
    return found.astype(dtype)
