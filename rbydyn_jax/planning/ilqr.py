"""Trajectory optimization by the dynamics' derivatives: `ilqr` and its result."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._check import check_flag, check_integer, check_not_negative
from .._jit import jit_public
from .._result import Result
from ..algorithms.inverse_dynamics import rnea
from ..model.configuration import difference
from ..sweeps.plan import is_on_cpu, scan_in_one_kernel
from ..xla.control_flow import cond, while_loop
from ._no_derivatives import without_derivatives
from ._riccati import Policy, backward, expanded, linearized, unchanged
from .control_problem import ControlProblem, checked_problem, implicit, reached

_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.01, 0.001)  # of the change of the torques, tried in turn
_ENOUGH = 1e-4  # of the predicted decrease
_LESS, _MORE = 0.125, 16.0  # of the damping, after a full step and after none
_LEAST, _MOST = 1e-4, 1e14  # the smallest damping relative to its start, and the largest relative to the smallest
_SHORT = 0.25  # the shortest share after which it does not grow
_SETTLED = 1e7  # damping over its smallest up to which a small predicted decrease says something
_NO_DERIVATIVES = (
    "ilqr has no derivatives: its gains are those of the torques by the state, and solve_trajectory has derivatives"
)


class IlqrStatus(IntEnum):
    """Outcome of `ilqr`."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NO_DECREASE = 2
    NOT_FINITE = 3


class IlqrResult(Result):
    """Result of `ilqr`.

    Attributes:
        ts: Times [s].
        qs: Configurations [rad, m].
        vs: Velocities [rad/s, m/s].
        taus: Torques and forces over each time step [N m, N].
        gains: Changes of the torques by those of the state [dq; dv], dq in tangent coordinates, from the last backward
            sweep: at convergence that along this motion. Zero for torques at their limits.
            `taus[k] + gains[k] @ [difference(q_k, q); v - v_k]` is a controller.
        cost: Its cost.
        costs: Cost at the start and after each iteration; the rest is infinite.
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


@jit_public("iterations", "parallel", damping=check_not_negative, tolerance=check_not_negative)
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
    parallel: bool = False,
) -> IlqrResult:
    r"""Finds torques within their limits that minimize the cost of a motion: iterative LQR.

    Differential dynamic programming [Mayne 1966] with limits of the torques [Tassa 2014], Gauss-Newton Hessians and the
    exact derivatives of the dynamics, `rnea_derivatives`, on the configuration manifold: floating bases and quaternion
    joints, too. The backward sweep chooses the velocities after each step, from which torques follow [Katayama, Ohtsuka
    2021], and solves a quadratic program where these are beyond their limits. Without torques at limits the motion that
    is tried follows the velocities, at the cost of integrating them; with some it is simulated. Levenberg damping
    penalizes changes of the velocities; it grows until one of eight step sizes, tried in turn, decreases the cost by at
    least 1e-4 of what is predicted.

    Pure: works under `jit` and `vmap`; it has no derivatives. On a CPU the problems of a batch are solved one after
    another, each with the steps that it needs; elsewhere together, until the last one is done.

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
        parallel: Whether the backward sweep takes all steps at once, by an associative scan [Sarkka, Garcia-Fernandez
            2023]: more work in fewer turns, for accelerators, and slower on a CPU. A sweep in which a torque comes to a
            limit is done again one step after another, as the set of these torques follows from step to step; where a
            batch is solved together, every sweep is. Static.

    Raises:
        ArgumentError: A number is negative, or `iterations` is less than 1.
        DtypeError: An argument is of another type, or a cost returns no array of floats.
        RbydynError: It is differentiated.
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
    parallel = check_flag(parallel, "parallel")
    data = without_derivatives((problem, q, v, t, tau), _NO_DERIVATIVES)
    solved = partial(_solved, iterations, parallel)
    # One after another the matrices of a horizon stay in cache, where those of a batch would not.
    solved = jax.custom_batching.sequential_vmap(solved) if is_on_cpu() else solved
    return solved(*data, *(jnp.asarray(x, tau.dtype) for x in (tolerance, damping)))


def _solved(
    iterations: int,
    parallel: bool,
    problem: ControlProblem,
    q: Array,
    v: Array,
    t: Array,
    tau: Array,
    tolerance: Array,
    damping: Array,
) -> IlqrResult:
    N, dtype = problem.steps, tau.dtype
    qs, vs = (jnp.broadcast_to(x[None], (N + 1, *x.shape)) for x in (q, v))
    start = _State(
        motion=_Motion(qs, vs, tau, jnp.full((), jnp.inf, dtype)),
        policy=unchanged(tau),
        least=jnp.zeros((), dtype),
        damping=jnp.zeros((), dtype),
        costs=jnp.full(iterations + 1, jnp.inf, dtype),
        status=jnp.full((), IlqrStatus.MAX_ITERATIONS),
        count=jnp.zeros((), jnp.int32),
    )

    def unfinished(state: _State) -> Array:
        return (state.status == IlqrStatus.MAX_ITERATIONS) & (state.count <= iterations)

    def iterate(state: _State) -> _State:
        first = state.count == 0  # which only follows the given torques
        motion, share = _searched(problem, state.motion, state.policy, t)
        begun = damping * motion.cost + jnp.finfo(dtype).tiny / _LEAST  # or none is the smallest of a cost of zero
        least = jnp.where(first, _LEAST * begun, state.least)
        factor = jnp.where(share == 1.0, _LESS, jnp.where(share >= _SHORT, 1.0, jnp.where(share > 0.0, 4.0, _MORE)))
        damped = jnp.where(first, begun, jnp.maximum(state.damping * factor, least))
        lost = (share == 0.0) & (first | (damped > _MOST * least))

        last = lost | (state.count >= iterations)
        policy = cond(last, lambda: state.policy, lambda: _best(problem, motion, t, damped, parallel))
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

    end = while_loop(unfinished, iterate, start)
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


def _best(problem: ControlProblem, motion: _Motion, t: Array, damping: Array, parallel: bool) -> Policy:
    steps = linearized(problem, motion.qs, motion.vs)
    costs = expanded(problem, motion.qs, motion.vs, motion.taus, t)
    return backward(problem, steps, *costs, motion.taus, damping, parallel)


def _searched(problem: ControlProblem, motion: _Motion, policy: Policy, t: Array) -> tuple[_Motion, Array]:
    """The motion with the first share of the change that is enough of a decrease, and the share; 0 if none is.

    On a CPU they are tried in turn, elsewhere all at once.
    """
    shares = jnp.asarray(np.array(_SHARES), motion.taus.dtype)

    def attempt(share: Array) -> tuple[_Motion, Array]:
        tried = _followed(problem, motion, policy, share, t)
        enough = motion.cost - tried.cost >= _ENOUGH * policy.predicted(share)
        return tried, enough & (tried.cost <= motion.cost) & (tried.cost < jnp.inf)

    def unfound(carry: tuple[Array, _Motion, Array]) -> Array:
        return (carry[0] < len(_SHARES)) & (carry[2] == 0.0)

    def again(carry: tuple[Array, _Motion, Array]) -> tuple[Array, _Motion, Array]:
        index, _, _ = carry
        tried, better = attempt(shares[index])
        return index + 1, tried, jnp.where(better, shares[index], 0.0)

    if not is_on_cpu():
        every, better = jax.vmap(attempt)(shares)
        first = jnp.argmax(better)
        share = jnp.where(better[first], shares[first], 0.0)
        return jax.tree.map(lambda new, old: jnp.where(better[first], new[first], old), every, motion), share
    _, tried, share = while_loop(unfound, again, (jnp.zeros((), jnp.int32), motion, jnp.zeros_like(motion.cost)))
    return jax.tree.map(lambda new, old: jnp.where(share > 0.0, new, old), tried, motion), share


def _followed(problem: ControlProblem, motion: _Motion, policy: Policy, share: Array, t: Array) -> _Motion:
    """The motion with a share of the change, and the gains' answer to what follows from it."""
    unknown = motion.qs, motion.vs, jnp.full_like(motion.taus, jnp.nan)
    free = cond(policy.bounded, lambda: unknown, lambda: _by_speeds(problem, motion, policy, share))
    within = ((problem.tau_lower[None] <= free[2]) & (free[2] <= problem.tau_upper[None])).all()
    qs, vs, taus = cond(within, lambda: free, lambda: _by_torques(problem, motion, policy, share))
    return _Motion(qs, vs, taus, problem.cost(qs, vs, taus, t))


def _by_speeds(problem: ControlProblem, motion: _Motion, policy: Policy, share: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and torques with the velocities of the policy: by inverse dynamics of all steps at once."""
    model = problem.model

    def advance(state: tuple[Array, Array], at: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        q_old, v_old, after_old, change, gains = at
        q, v = state
        moved = jnp.concatenate([difference(model, q_old, q), v - v_old])
        v_next = after_old + share * change + jnp.sum(gains * moved[None], axis=1)
        q_next, a = reached(problem, q, v, v_next)
        return (q_next, v_next), (q_next, v_next, a)

    given = motion.qs[:-1], motion.vs[:-1], motion.vs[1:], policy.speeds, policy.speed_gains
    start = motion.qs[0], motion.vs[0]
    _, (qs, vs, a) = scan_in_one_kernel(advance, start, given)
    qs, vs = _begun(start, (qs, vs))
    forces = jax.vmap(rnea, (None, 0, 0, 0))(implicit(model, problem.dt), qs[:-1], vs[:-1], a)
    return qs, vs, forces + model.damping[None] * vs[:-1]


def _by_torques(problem: ControlProblem, motion: _Motion, policy: Policy, share: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and torques with the torques of the policy, within their limits."""

    def advance(state: tuple[Array, Array], at: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        q_old, v_old, tau_old, change, gains = at
        q, v = state
        moved = jnp.concatenate([difference(problem.model, q_old, q), v - v_old])
        tau = tau_old + share * change + jnp.sum(gains * moved[None], axis=1)
        tau = jnp.clip(tau, problem.tau_lower, problem.tau_upper)
        after = problem.step(q, v, tau)
        return after, (*after, tau)

    given = motion.qs[:-1], motion.vs[:-1], motion.taus, policy.change, policy.gains
    start = motion.qs[0], motion.vs[0]
    _, (qs, vs, taus) = scan_in_one_kernel(advance, start, given)
    return *_begun(start, (qs, vs)), taus


def _begun(start: tuple[Array, Array], rest: tuple[Array, Array]) -> tuple[Array, Array]:
    qs, vs = (jnp.concatenate([first[None], x]) for first, x in zip(start, rest, strict=True))
    return qs, vs
