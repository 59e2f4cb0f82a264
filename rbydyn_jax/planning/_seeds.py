"""Configurations at the end that reach the goals: damped least squares from random starts, the most promising first."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..joints.revolute import Revolute
from ..model.configuration import random_configuration
from ..spatial._small import eliminate
from ..xla.control_flow import while_loop
from ._ik_problem import damping, product
from ._rows import path_rows, relative
from .goals import ALONG, ComGoal, Goal, PoseGoal, PositionGoal
from .look_at import LookAtGoal
from .problem import TrajectoryProblem

_CHOICE = 16  # random configurations, of which the one nearest to the goals is a start
_STEPS = 48
_PATIENCE = 8  # steps after which a search whose squared error did not halve starts anew
_GAP = 1e-4  # [rad, m] to the limits of position
_AMONG = 3  # times as many where some collide, or are behind an obstacle
_FAST = 0.8  # the mean velocity of a motion that keeps its limit of velocity, relative to that


def goal_rows(problem: TrajectoryProblem, goals: list[Goal], q: Float[Array, "nq"]) -> tuple[Array, Array]:
    """The errors (g,) of goals and their derivatives (g, m)."""
    found = [goal.evaluate(problem.model, q, problem.moving) for goal in goals]
    return jnp.concatenate([e for e, _ in found]), jnp.concatenate([J for _, J in found])


def damped_solution(S: Float[Array, "g g"], b: Float[Array, "g"], damping: Array) -> Float[Array, "g"]:
    """The solution of a small symmetric positive semidefinite system with `damping` on the diagonal.

    By Gauss-Jordan elimination, each step of which is one kernel for a whole batch.
    """
    n = len(b)
    A = jnp.concatenate([S + damping * jnp.eye(n, dtype=b.dtype), b[:, None]], axis=1)
    for k in range(n):
        A = eliminate(k, A)
    return A[:, n]


def position_limits(problem: TrajectoryProblem) -> tuple[Array, Array]:
    """The limits of the moving joints, a little narrower, and so wide that the start is within."""
    at = np.array(problem.moving.q)
    start = problem.q_start[at]
    low, high = problem.model.position_lower[at] + _GAP, problem.model.position_upper[at] - _GAP
    return jnp.minimum(low, start), jnp.maximum(high, start)


def end_limits(problem: TrajectoryProblem) -> tuple[Array, Array]:
    """Those of the end: where the start is beyond a limit, the motion has to come back."""
    at, (low, high) = np.array(problem.moving.q), position_limits(problem)
    return jnp.maximum(low, problem.model.position_lower[at]), jnp.minimum(high, problem.model.position_upper[at])


def end_configurations(problem: TrajectoryProblem) -> Float[Array, "s m"]:
    """The end positions of the moving joints, ranked."""
    at = np.array(problem.moving.q)
    start = problem.q_start[at]
    goals = [goal for goal in problem.goals if goal.when in (1.0, ALONG)]
    if all(goal.when == ALONG for goal in goals):  # nothing is asked of the end
        return start[None]
    enough = problem.attempts * (1 if problem.clearance is None else _AMONG)
    count, (low, high) = 2 * enough, end_limits(problem)
    keys = jax.random.split(problem.key, _CHOICE * count)
    starts = jax.vmap(random_configuration, in_axes=(None, 0))(problem.model, keys)[:, at].astype(start.dtype)
    starts = starts.reshape(_CHOICE, count, -1)

    def improved(x: Array) -> tuple[Array, Array]:
        e, J = goal_rows(problem, goals, problem.q_start.at[at].set(x))
        push = -product(J.T, e)
        J = jnp.where((((x >= high) & (push > 0)) | ((x <= low) & (push < 0)))[None], 0.0, J)
        size = jnp.sum(e * e)
        step = -product(J.T, damped_solution(product(J, J.T), e, damping(size)))
        return jnp.clip(x + step / jnp.maximum(1.0, jnp.abs(step).max()), low, high), size

    def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
        i, x, best, least, mark = state
        moved, size = jax.vmap(improved)(x)
        better = size < least
        best, least = jnp.where(better[:, None], x, best), jnp.where(better, size, least)
        chosen = best.at[0].set(start)  # the first is searched from the start of the motion
        check = (i > _CHOICE) & (i % _PATIENCE == 0)
        hopeless = check & ~reached(size) & (size > 0.5 * mark)
        fresh = starts[(i + 1) % _CHOICE]
        moved = jnp.where(hopeless[:, None], fresh, moved)
        x = jnp.where(i + 1 < _CHOICE, fresh, jnp.where(i + 1 == _CHOICE, chosen, moved))
        mark = jnp.where(check, jnp.where(hopeless, jnp.inf, size), mark)
        return i + 1, x, best, jnp.where(i + 1 == _CHOICE, jnp.inf, least), mark

    def unfinished(state: tuple[Array, ...]) -> Array:
        i, least = state[0], state[3]
        return (i <= _CHOICE) | ((i < _CHOICE + _STEPS) & (jnp.sum(reached(least)) < enough))

    infinite = jnp.full(count, jnp.inf, start.dtype)
    first = jnp.zeros((), int), starts[0], starts[0], infinite, infinite
    found, error = while_loop(unfinished, advance, first)[2:4]
    found = _without_whole_turns(problem, found, low, high)
    order = jnp.argsort(jax.vmap(partial(_rank, problem))(found, error))
    return found[order]


def _without_whole_turns(problem: TrajectoryProblem, x: Array, low: Array, high: Array) -> Array:
    """Revolute joints come as near to their start as whole turns and their limits allow."""
    if not all(isinstance(goal, PoseGoal | PositionGoal | ComGoal | LookAtGoal) for goal in problem.goals):
        return x
    tree = problem.model.tree
    joints = {tree.q_slices[i].start: joint for i, joint in enumerate(tree.joints) if tree.mimics[i] is None}
    turning = {k for k, joint in joints.items() if isinstance(joint, Revolute)}
    turning -= {tree.q_slices[m.source].start for m in tree.mimics if m is not None}  # others turn by a part of it
    turn = np.array([2.0 * np.pi if k in turning else 0.0 for k in problem.moving.q])
    turn = jnp.asarray(turn, x.dtype)[None]
    start = problem.q_start[np.array(problem.moving.q)][None]
    nearer = x - turn * jnp.round((x - start) / (2.0 * np.pi))
    return jnp.where((nearer >= low[None]) & (nearer <= high[None]), nearer, x)


def reached(error: Array) -> Array:
    """Whether a squared error is as small as the dtype allows."""
    return error < (1e-12 if error.dtype == jnp.float64 else 1e-7)


def _rank(problem: TrajectoryProblem, x: Array, error: Array) -> Array:
    """First what reaches the goals, then what can be held and reached in time, then what is near."""
    at_q, at_v = np.array(problem.moving.q), np.array(problem.moving.v)
    q, still = problem.q_start.at[at_q].set(x), jnp.zeros(problem.model.nv, x.dtype)
    rows = path_rows(problem, q, still, still, jnp.zeros((), x.dtype), slopes=False)
    rows.pop("costs", None)
    excess = sum(jnp.sum(jnp.maximum(jnp.maximum(r.lower - r.value, r.value - r.upper), 0.0)) for r in rows.values())
    moved = jnp.abs(x - problem.q_start[at_q])
    if problem.duration is not None:
        scale, bound = relative(problem.model.velocity_limit[at_v])
        excess += jnp.sum(jnp.maximum(moved * scale / problem.duration - _FAST * bound, 0.0))
    return jnp.where(reached(error), 0.0, 1e6 * (1.0 + jnp.minimum(error, 1.0))) + 1e2 * excess + jnp.sum(moved**2)
