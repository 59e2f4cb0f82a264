"""Motions from which attempts start: to configurations that reach the goals, by way of such configurations in between,
found by damped least squares from random starts, the most promising first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..joints.revolute import Revolute
from ..model.configuration import random_configuration
from ..spatial._small import eliminate
from ..xla.control_flow import while_loop
from ._ik_problem import damping, product
from ._rows import path_rows, relative
from .goals import ALONG, ComGoal, ConfigurationGoal, Goal, PoseGoal, PositionGoal
from .look_at import LookAtGoal
from .problem import TrajectoryProblem

_CHOICE = 16  # random configurations, of which the one nearest to the goals is a start
_GAP = 1e-4  # [rad, m] to the limits of position
_STEPS = 48
_PATIENCE = 8  # steps after which a search whose squared error did not halve starts anew
_AMONG = 3  # times as many where some collide, or are behind an obstacle
_SAME = 1e-2  # [rad, m] between configurations that count as one
_REPEATED = 1e5  # rank of an end that was there before: after what reaches the goals, before what does not
_EXCESS = 1e2  # rank of what exceeds a limit, relative to it
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
    """The limits of the moving joints, so wide that the start is within."""
    start, (low, high) = problem.q_start[np.array(problem.moving.q)], end_limits(problem)
    return jnp.minimum(low, start), jnp.maximum(high, start)


def end_limits(problem: TrajectoryProblem) -> tuple[Array, Array]:
    """Those of the end: where the start is beyond a limit, the motion has to come back."""
    at = np.array(problem.moving.q)
    return problem.model.position_lower[at], problem.model.position_upper[at]


def gap(problem: TrajectoryProblem, *ends: Float[Array, "m"]) -> Float[Array, "m"]:
    """To the limits of position, which motions keep: less where they begin, end, or have to be, nearer to a limit."""
    at, (low, high) = np.array(problem.moving.q), end_limits(problem)
    given = [goal.q[at] for goal in problem.goals if isinstance(goal, ConfigurationGoal)]
    room = [jnp.minimum(q - low, high - q) for q in (problem.q_start[at], *given, *ends)]
    return jnp.clip(jnp.min(jnp.stack(room), axis=0), 0.0, _GAP)


def instants_between(problem: TrajectoryProblem) -> list[float]:
    """The shares of the duration, within the motion, at which it has goals."""
    found = {goal.when for goal in problem.goals if not isinstance(goal.when, str)}
    return sorted(found - {0.0, 1.0})


def waypoints(problem: TrajectoryProblem) -> Float[Array, "s w m"]:
    """Where the motions from which attempts start are at instants with goals in between, and their ends, ranked.

    Without such instants, the first row is how far their middles are aside: where an end is there again, its motion
    leads halfway to a random configuration.
    """
    start, instants = problem.q_start[np.array(problem.moving.q)], instants_between(problem)
    if not instants:
        ends, rank, repeated = _layer(problem, 1.0)
        order = jnp.argsort(rank + _leg(problem, ends, start[None], 1.0))
        ends, repeated = ends[order], repeated[order]
        keys = jax.random.split(jax.random.fold_in(problem.key, 1), len(ends))
        aside = 0.5 * (_random(problem, keys) - 0.5 * (start[None] + ends))
        return jnp.stack([jnp.where(repeated[:, None], aside, 0.0), ends], axis=1)
    asked = any(goal.when == 1.0 for goal in problem.goals)
    *inner, last = [*instants, 1.0] if asked else instants
    ways, costs, before = start[None, None], jnp.zeros(1, start.dtype), 0.0
    for when in inner:  # the best way to each configuration
        there, legs = _legs(problem, ways, costs, before, when)
        nearest = jnp.argmin(legs, axis=1)
        ways = jnp.concatenate([ways[nearest], there[:, None]], axis=1)
        costs, before = legs.min(axis=1), when
    there, legs = _legs(problem, ways, costs, before, last)
    to, by = jnp.divmod(jnp.argsort(legs, axis=None)[: problem.attempts], len(ways))
    ways = jnp.concatenate([ways[by], there[to][:, None]], axis=1)
    return ways[:, 1:] if asked else jnp.concatenate([ways[:, 1:], ways[:, -1:]], axis=1)  # there it rests


def _legs(
    problem: TrajectoryProblem, ways: Float[Array, "p w m"], costs: Float[Array, "p"], before: float, when: float
) -> tuple[Float[Array, "c m"], Float[Array, "c p"]]:
    """Configurations that reach the goals at an instant, and the costs of ways to an earlier one that go on to them."""
    there, rank, _ = _layer(problem, when)
    return there, costs[None] + rank[:, None] + _leg(problem, there[:, None], ways[None, :, -1], when - before)


def _random(problem: TrajectoryProblem, keys: Any) -> Float[Array, "s m"]:
    """Random positions of the moving joints."""
    q = jax.vmap(random_configuration, in_axes=(None, 0))(problem.model, keys)
    return q[:, np.array(problem.moving.q)].astype(problem.q_start.dtype)


def _layer(problem: TrajectoryProblem, when: float) -> tuple[Float[Array, "c m"], Float[Array, "c"], Bool[Array, "c"]]:
    """Positions of the moving joints that reach the goals at an instant, ranks, and whether one before is the same."""
    at = np.array(problem.moving.q)
    start = problem.q_start[at]
    goals = [goal for goal in problem.goals if goal.when in (when, ALONG)]
    if all(goal.when == ALONG for goal in goals):  # nothing is asked of the end
        same = jnp.arange(problem.attempts) > 0
        return jnp.tile(start[None], (problem.attempts, 1)), _REPEATED * same, same
    enough = problem.attempts * (1 if problem.clearance is None else _AMONG)
    count, (low, high), inside = 2 * enough, end_limits(problem), gap(problem)
    low, high = low + inside, high - inside
    starts = _random(problem, jax.random.split(problem.key, _CHOICE * count)).reshape(_CHOICE, count, -1)

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
    found, repeated = _distinct(problem, found, reached(error), low, high)
    rank = jax.vmap(partial(_rank, problem))(found, error) + jnp.where(repeated, _REPEATED, 0.0)
    return found, rank, repeated


def _distinct(problem: TrajectoryProblem, x: Array, usable: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Configurations with whole turns chosen, and whether a usable one before is the same.

    Revolute joints come as near to their start as whole turns and their limits allow. Where a configuration was found
    before, one joint goes the other way round, each time another one.
    """
    turn = jnp.asarray(_whole_turns(problem), x.dtype)[None]
    start = problem.q_start[np.array(problem.moving.q)][None]

    def within(x: Array) -> Array:
        return (x >= low[None]) & (x <= high[None])

    def before(x: Array) -> Array:
        """How many usable ones before are the same."""
        same = jnp.abs(x[:, None] - x[None]).max(axis=2) < _SAME
        return jnp.sum(jnp.tril(same & usable[None], -1), axis=1)

    # As near to the start as whole turns can bring it within the limits.
    least, most = jnp.ceil((x - high[None]) / (2.0 * np.pi)), jnp.floor((x - low[None]) / (2.0 * np.pi))
    x = x - turn * jnp.clip(jnp.round((x - start) / (2.0 * np.pi)), least, most)
    other = x - turn * jnp.where(x > start, 1.0, -1.0)
    possible = (turn > 0.0) & within(other)
    chosen = possible & (jnp.cumsum(possible, axis=1) == before(x)[:, None])
    x = jnp.where(chosen, other, x)
    return x, before(x) > 0


def _whole_turns(problem: TrajectoryProblem) -> np.ndarray:
    """Of each moving joint, the turn that no goal tells from none [rad], or 0."""
    moving = problem.moving.q
    if not all(isinstance(goal, PoseGoal | PositionGoal | ComGoal | LookAtGoal) for goal in problem.goals):
        return np.zeros(len(moving))
    tree = problem.model.tree
    joints = {tree.q_slices[i].start: joint for i, joint in enumerate(tree.joints) if tree.mimics[i] is None}
    turning = {k for k, joint in joints.items() if isinstance(joint, Revolute)}
    turning -= {tree.q_slices[m.source].start for m in tree.mimics if m is not None}  # others turn by a part of it
    return np.array([2.0 * np.pi if k in turning else 0.0 for k in moving])


def reached(error: Array) -> Array:
    """Whether a squared error is as small as the dtype allows."""
    return error < (1e-12 if error.dtype == jnp.float64 else 1e-7)


def _rank(problem: TrajectoryProblem, x: Array, error: Array) -> Array:
    """First what reaches the goals, then what can be held."""
    q = problem.q_start.at[np.array(problem.moving.q)].set(x)
    rows = path_rows(problem, q, None, None, jnp.zeros((), x.dtype), slopes=False)
    rows.pop("costs", None)
    excess = sum(jnp.sum(jnp.maximum(jnp.maximum(r.lower - r.value, r.value - r.upper), 0.0)) for r in rows.values())
    return jnp.where(reached(error), 0.0, 1e6 * (1.0 + jnp.minimum(error, 1.0))) + _EXCESS * excess


def _leg(problem: TrajectoryProblem, x: Array, before: Array, share: float) -> Array:
    """First what can be reached in its share of the duration, then what is near."""
    moved, excess = jnp.abs(x - before), 0.0
    if problem.duration is not None:
        scale, bound = relative(problem.model.velocity_limit[np.array(problem.moving.v)])
        scale, bound = (x.reshape(*(1 for _ in moved.shape[1:]), -1) for x in (scale, bound))
        fast = moved * (scale / (share * problem.duration)) - _FAST * bound
        excess = jnp.sum(jnp.maximum(fast, 0.0), axis=-1)
    return _EXCESS * excess + jnp.sum(moved**2, axis=-1) / share
