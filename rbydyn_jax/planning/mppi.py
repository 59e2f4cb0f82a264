"""Sampling-based predictive control: `mppi` and its result."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._check import check_array, check_each, check_integer, check_key, check_not_negative, check_positive, known
from .._errors import ArgumentError
from .._jit import jit_public
from .._result import Result, outcomes
from ..spatial.safe import safe_divide
from ..xla.control_flow import scan
from .control_problem import ControlProblem, checked_problem

_SHARE = 0.1  # of half the range of torques: the noise by default


class MppiStatus(IntEnum):
    """Outcome of `mppi`."""

    IMPROVED = 0
    NOT_IMPROVED = 1
    NOT_FINITE = 2


class MppiResult(Result):
    """Result of `mppi`.

    Attributes:
        ts: Times [s].
        qs: Configurations [rad, m].
        vs: Velocities [rad/s, m/s].
        taus: Torques and forces over each time step [N m, N].
        cost: Its cost.
        costs: The cost before, and after each iteration.
        samples: Effective number of samples in the last mean: 1 / sum(weight^2); 0 if no cost of a sample is finite.
        status: An `MppiStatus`: whether the cost is lower than that before.
    """

    ts: Float[Array, "N+1"]
    qs: Float[Array, "N+1 nq"]
    vs: Float[Array, "N+1 nv"]
    taus: Float[Array, "N nv"]
    cost: Float[Array, ""]
    costs: Float[Array, "i+1"]
    samples: Float[Array, ""]
    status: Int[Array, ""]

    _enums: ClassVar = {"status": MppiStatus}

    def _headline(self) -> str:
        return outcomes(self.status, MppiStatus)


def _check_correlation(x: Any, name: str) -> None:
    number = known(x)
    if number is not None and not ((number >= 0.0) & (number < 1.0)).all():
        raise ArgumentError(f"{name} must be at least 0 and less than 1, got {number.tolist()}")


@jit_public(
    "samples", "iterations", noise=check_not_negative, correlation=_check_correlation, temperature=check_positive
)
def mppi(
    problem: ControlProblem,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    key: PRNGKeyArray,
    *,
    tau: Float[Array, "N nv"] | None = None,
    t: Float[Array, ""] | float = 0.0,
    samples: int = 256,
    iterations: int = 1,
    noise: Float[Array, "nv"] | float | None = None,
    correlation: Float[Array, ""] | float = 0.8,
    temperature: Float[Array, ""] | float = 0.1,
) -> MppiResult:
    r"""Improves torques by random samples: model predictive path integral control.

    [Williams et al. 2017] Torques with normal noise, correlated in time and cut off at the limits, are followed by
    `aba` and semi-implicit Euler; their mean with weights $e^{-(J - J_{min}) / (\lambda \sigma_J)}$ is the new plan,
    unless the old one is better. Costs need no derivatives. Relative to the standard deviation $\sigma_J$ of the finite
    costs, the temperature $\lambda$ has no unit. The dtype is that of the model, `problem.model`.

    Pure and deterministic for a key: works under `jit` and `vmap`.

    Args:
        problem: The problem.
        q: Configuration at the start [rad, m].
        v: Velocity at the start [rad/s, m/s].
        key: A key of `jax.random`.
        tau: Torques to start from, such as those of the tick before; default is gravity's at the start.
        t: Time of the start, which the costs are given [s].
        samples: Number of samples, at least 2. Static.
        iterations: How often the torques are improved. Static.
        noise: Standard deviation of the torques, or one for each velocity [N m, N]; default is a tenth of half their
            range, and none for a torque without limits. With light joints and strong motors that is too much, and
            `status` is often NOT_IMPROVED.
        correlation: Correlation in [0, 1) of the noise in one time step with that in the next.
        temperature: The temperature $\lambda$.

    Raises:
        ArgumentError: A number is out of its range.
        DtypeError: An argument is of another type, or a cost returns no array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointVelocity, SoftGoal, mppi
        >>> costs = [SoftGoal(ConfigurationGoal(jnp.ones(1)), 10.0), JointVelocity(1.0)]
        >>> problem = ControlProblem(robots.pendulum(), costs, dt=0.05, steps=20)
        >>> found = mppi(problem, jnp.zeros(1), jnp.zeros(1), jax.random.key(0), noise=2.0, iterations=3)
        >>> bool(found.cost < 0.8 * found.costs[0])
        True
    """
    problem, q, v, t, tau = checked_problem(problem, q, v, t, tau)
    key, dtype = check_key(key), tau.dtype
    samples, iterations = check_integer(samples, "samples", 2), check_integer(iterations, "iterations", 1)
    deviation = _deviation(problem, noise).astype(dtype)
    smooth = _correlated(problem.steps, check_array(correlation, "correlation", ()).astype(dtype))
    low, high = problem.tau_lower[None], problem.tau_upper[None]

    def cost(taus: Array) -> Array:
        return problem.cost(*problem.rollout(q, v, taus), taus, t)

    def improve(state: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        taus, old = state
        white = jax.random.normal(key, (samples, *taus.shape), dtype)
        tried = jnp.clip(
            taus[None] + deviation[None, None] * jnp.einsum("ij,sjk->sik", smooth, white), low[None], high[None]
        )
        costs = jax.vmap(cost)(tried)
        finite = jnp.isfinite(costs)
        spread = _deviation_of(costs, finite)
        lowest = jnp.min(jnp.where(finite, costs, jnp.inf))
        differ = spread > 0.0  # or all samples are alike, and count alike
        behind = jnp.where(finite & differ, lowest - costs, 0.0) / jnp.where(differ, temperature * spread, 1.0)
        weights = jnp.where(finite, jnp.exp(behind), 0.0)
        weights = weights / jnp.maximum(jnp.sum(weights), jnp.finfo(dtype).tiny)
        mean = jnp.clip(jnp.einsum("s,sik->ik", weights, tried), low, high)
        new = cost(mean)
        better = ~(new >= old) & jnp.isfinite(new)
        taus, new = jnp.where(better, mean, taus), jnp.where(better, new, old)
        return (taus, new), (new, safe_divide(jnp.ones_like(new), jnp.sum(weights**2)))

    before = cost(tau)
    (taus, after), (costs, effective) = scan(improve, (tau, before), jax.random.split(key, iterations))
    qs, vs = problem.rollout(q, v, taus)
    status = jnp.where(after >= before, MppiStatus.NOT_IMPROVED, MppiStatus.IMPROVED)
    return MppiResult(
        ts=problem.times(t),
        qs=qs,
        vs=vs,
        taus=taus,
        cost=after,
        costs=jnp.concatenate([before[None], costs]),
        samples=effective[-1],
        status=jnp.where(jnp.isfinite(after), status, MppiStatus.NOT_FINITE),
    )


def _deviation_of(costs: Array, chosen: Array) -> Array:
    """The standard deviation of the costs that are chosen, with a derivative of zero where they are equal."""
    count = jnp.maximum(jnp.sum(chosen, dtype=costs.dtype), 1.0)
    mean = jnp.sum(jnp.where(chosen, costs, 0.0)) / count
    variance = jnp.sum(jnp.where(chosen, costs - mean, 0.0) ** 2) / count
    return jnp.where(variance > 0.0, jnp.sqrt(jnp.where(variance > 0.0, variance, 1.0)), 0.0)


def _deviation(problem: ControlProblem, noise: Array | float | None) -> Array:
    if noise is None:
        half = 0.5 * (problem.tau_upper - problem.tau_lower)
        return jnp.where(jnp.isfinite(half), _SHARE * half, 0.0)
    return check_each(noise, "noise", problem.model.nv, "model.nv")


def _correlated(steps: int, share: Array) -> Array:
    """What makes of white noise, a column for each time step, noise that forgets by a share per step."""
    lag = jnp.asarray(np.subtract.outer(np.arange(steps), np.arange(steps)), share.dtype)
    decayed = jnp.where(lag > 0.0, share ** jnp.maximum(lag, 1.0), jnp.where(lag == 0.0, 1.0, 0.0))
    return decayed / jnp.sqrt(jnp.sum(decayed**2, axis=1))[:, None]
