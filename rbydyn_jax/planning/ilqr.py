"""Trajectory optimisation by the dynamics' derivatives: `ilqr` and its result."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._check import check_integer, check_not_negative, jit_public
from .._result import Result
from ..model.configuration import difference
from ._riccati import Policy, backward, expanded, linearised
from .control_problem import ControlProblem, checked_problem

_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.01, 0.001)  # of the change of the torques, tried at once
_ENOUGH = 1e-4  # of the predicted decrease
_LESS, _MORE = 0.125, 16.0  # of the damping, after a full step and after none
_LEAST, _MOST = 1e-4, 1e14  # the smallest damping relative to its start, and the largest relative to the smallest
_SHORT = 0.25  # the shortest share after which it does not grow
_SETTLED = 1e7  # damping over its smallest up to which a small predicted decrease says something


class IlqrStatus(IntEnum):
    """Outcome of `ilqr`."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NO_DECREASE = 2
    NOT_FINITE = 3


class IlqrResult(Result):
    """Result of `ilqr`.

    Args:
        ts: Times [s].
        qs: Configurations [rad, m].
        vs: Velocities [rad/s, m/s].
        taus: Torques and forces over each time step [N m, N].
        gains: Changes of the torques by those of the state [dq; dv], dq in tangent coordinates, from the last backward
            sweep: at convergence that along this motion. Zero for torques at their limits.
            `taus[k] + gains[k] @ [difference(q_k, q); v - v_k]` is a controller.
        cost: Its cost.
        costs: Cost at the start and after each iteration; the rest is NaN.
        predicted: The decrease of the cost that the last backward sweep predicted.
        status: An `IlqrStatus`.
        iterations: Number of iterations.
    """

    ts: Float[Array, "N+1"]
    qs: Float[Array, "N+1 nq"]
    vs: Float[Array, "N+1 nv"]
    taus: Float[Array, "N nv"]
    gains: Float[Array, "N nv 2nv"]
    cost: Float[Array, ""]
    costs: Float[Array, "i+1"]
    predicted: Float[Array, ""]
    status: Int[Array, ""]
    iterations: Int[Array, ""]


class _Motion(NamedTuple):
    qs: Array
    vs: Array
    taus: Array
    cost: Array


class _State(NamedTuple):
    motion: _Motion
    policy: Policy
    least: Array
    damping: Array
    costs: Array
    status: Array
    count: Array


@jit_public("iterations", damping=check_not_negative, tolerance=check_not_negative)
def ilqr(
    problem: ControlProblem,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    *,
    tau: Float[Array, "N nv"] | None = None,
    t: Float[Array, ""] | float = 0.0,
    iterations: int = 100,
    tolerance: float | None = None,
    damping: float = 1e-4,
) -> IlqrResult:
    r"""Finds torques within their limits that minimise the cost of a motion: iterative LQR.

    Differential dynamic programming [Mayne 1966] with limits of the torques [Tassa 2014], Gauss-Newton Hessians and the
    exact derivatives of the dynamics, `aba_derivatives`, on the configuration manifold: floating bases and quaternion
    joints, too. The backward sweep solves a quadratic program within the limits for each time step. Levenberg damping
    penalises changes of the velocities; it grows until one of eight step sizes, tried at the same time, decreases the
    cost by at least 1e-4 of what is predicted.

    Pure: works under `jit` and `vmap`. A batch runs until its last problem is done.

    Args:
        problem: The problem.
        q: Configuration at the start [rad, m].
        v: Velocity at the start [rad/s, m/s].
        tau: Torques to start from, such as those of a similar problem; default is gravity's at the start.
        t: Time of the start, which the costs are given [s].
        iterations: Maximum number of iterations. Static.
        tolerance: Predicted decrease of the cost, relative to the cost, at which the iteration ends; default is 1e-9,
            in float32 1e-5.
        damping: Levenberg damping at the start, relative to the cost at the start; default is 1e-4.

    Raises:
        ArgumentError: A number is negative, or `iterations` is less than 1.
        DtypeError: An argument is of another type.
        ShapeError: An argument has another shape.

    Example:
        A pendulum is swung up by a torque that could not hold it horizontally:

        >>> from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, ilqr
        >>> from rbydyn_jax.planning import JointEffort, JointVelocity, SoftGoal
        >>> up = [SoftGoal(ConfigurationGoal(jnp.array([jnp.pi])), 100.0), JointVelocity(10.0)]
        >>> weak = {"tau_lower": jnp.array([-4.0]), "tau_upper": jnp.array([4.0])}
        >>> problem = ControlProblem(robots.pendulum(), [JointEffort(0.01)], up, dt=0.05, steps=80, **weak)
        >>> result = ilqr(problem, jnp.zeros(1), jnp.zeros(1))
        >>> int(result.status), bool(abs(result.qs[-1, 0] - jnp.pi) < 0.01), bool((abs(result.taus) <= 4.0).all())
        (0, True, True)
    """
    problem, q, v, t, tau = checked_problem(problem, q, v, t, tau)
    iterations = check_integer(iterations, "iterations", 1)
    single = problem.dt.dtype == jnp.float32
    tolerance = (1e-5 if single else 1e-9) if tolerance is None else tolerance
    n, N, dtype = problem.model.nv, problem.steps, tau.dtype
    none = Policy(jnp.zeros((N, n), dtype), jnp.zeros((N, n, 2 * n), dtype), jnp.zeros((), dtype), jnp.zeros((), dtype))
    qs, vs = (jnp.broadcast_to(x[None], (N + 1, *x.shape)) for x in (q, v))
    start = _State(
        motion=_Motion(qs, vs, tau, jnp.full((), jnp.inf, dtype)),
        policy=none,
        least=jnp.zeros((), dtype),
        damping=jnp.zeros((), dtype),
        costs=jnp.full(iterations + 1, jnp.nan, dtype),
        status=jnp.full((), IlqrStatus.MAX_ITERATIONS),
        count=jnp.zeros((), jnp.int32),
    )

    def unfinished(state: _State) -> Array:
        return (state.status == IlqrStatus.MAX_ITERATIONS) & (state.count <= iterations)

    def iterate(state: _State) -> _State:
        first = state.count == 0  # which only follows the given torques
        motion, share = _searched(problem, state.motion, state.policy, t)
        begun = damping * motion.cost + jnp.finfo(dtype).tiny
        least = jnp.where(first, _LEAST * begun, state.least)
        factor = jnp.where(share == 1.0, _LESS, jnp.where(share >= _SHORT, 1.0, jnp.where(share > 0.0, 4.0, _MORE)))
        damped = jnp.where(first, begun, jnp.maximum(state.damping * factor, least))
        lost = (share == 0.0) & (first | (damped > _MOST * least))

        def swept() -> Policy:
            along = motion.qs, motion.vs, motion.taus
            steps, costs = linearised(problem, *along), expanded(problem, *along, t)
            return backward(problem, steps, *costs, motion.taus, damped)

        last = lost | (state.count >= iterations)
        policy = jax.lax.cond(last, lambda: state.policy, swept)
        predicted = policy.predicted(1.0)
        settled = ~last & (predicted <= tolerance * jnp.abs(motion.cost)) & (damped <= _SETTLED * least)
        known = jnp.isfinite(motion.cost) & jnp.isfinite(predicted)
        failed = jnp.where(known, IlqrStatus.NO_DECREASE, IlqrStatus.NOT_FINITE)
        status = jnp.where(settled, IlqrStatus.CONVERGED, IlqrStatus.MAX_ITERATIONS)
        return _State(
            motion=motion,
            policy=policy,
            least=least,
            damping=damped,
            costs=state.costs.at[state.count].set(motion.cost),
            status=jnp.where(lost, failed, status),
            count=state.count + 1,
        )

    end = jax.lax.while_loop(unfinished, iterate, start)
    return IlqrResult(
        ts=problem.times(t),
        qs=end.motion.qs,
        vs=end.motion.vs,
        taus=end.motion.taus,
        gains=end.policy.gains,
        cost=end.motion.cost,
        costs=end.costs,
        predicted=end.policy.predicted(1.0),
        status=end.status,
        iterations=end.count - 1,
    )


def _searched(problem: ControlProblem, motion: _Motion, policy: Policy, t: Array) -> tuple[_Motion, Array]:
    """The best motion with one of some shares of the change, and the share; the old one and 0 if none is better."""
    shares = jnp.asarray(np.array(_SHARES), motion.taus.dtype)
    tried = jax.vmap(lambda share: _followed(problem, motion, policy, share, t))(shares)
    enough = motion.cost - tried.cost >= _ENOUGH * policy.predicted(shares)
    costs = jnp.where(enough & (tried.cost <= motion.cost), tried.cost, jnp.inf)
    best = jnp.argmin(costs)
    better = jnp.isfinite(costs[best])
    found = jax.tree.map(lambda new, old: jnp.where(better, new[best], old), tried, motion)
    return found, jnp.where(better, shares[best], 0.0)


def _followed(problem: ControlProblem, motion: _Motion, policy: Policy, share: Array, t: Array) -> _Motion:
    """The motion with a share of the change, and the gains' answer to what follows from it."""

    def advance(state: tuple[Array, Array], at: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        q_old, v_old, tau_old, change, gains = at
        q, v = state
        moved = jnp.concatenate([difference(problem.model, q_old, q), v - v_old])
        tau = tau_old + share * change + jnp.sum(gains * moved[None], axis=1)
        tau = jnp.clip(tau, problem.tau_lower, problem.tau_upper)
        after = problem.step(q, v, tau)
        return after, (*after, tau)

    start = motion.qs[0], motion.vs[0]
    given = motion.qs[:-1], motion.vs[:-1], motion.taus, policy.change, policy.gains
    _, (qs, vs, taus) = jax.lax.scan(advance, start, given)
    qs, vs = (jnp.concatenate([first[None], rest]) for first, rest in zip(start, (qs, vs), strict=True))
    return _Motion(qs, vs, taus, problem.cost(qs, vs, taus, t))
