"""The solver: an augmented Lagrangian, Gauss-Newton steps with Levenberg damping, several starts, in one loop."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._check import jit_public
from .._errors import DtypeError
from ._newton import Multipliers, Samples, Transcription
from ._seeds import end_configurations
from .problem import TrajectoryProblem
from .trajectory import Trajectory

_PENALTY, _LARGEST_PENALTY = 1e2, {"float64": 1e7, "float32": 1e4}
_STIFFER = 5.0  # the penalty, where the violation fell less than to `_SLOW` of what it was
_SLOW = 0.25
_DAMPING = 1e-3  # beside the one of the squared jerk
_ROUNDS = 6  # of narrower limits
_CALM = 1e-2  # predicted change of the cost, relative to it, at which multipliers are updated
# Largest violation of a solution: relative to a limit, in rad, or in 0.1 m.
_TOLERANCE = {"float64": 1e-4, "float32": 1e-3}


class TrajectoryStatus(IntEnum):
    """Outcome of the search for a motion."""

    SOLVED = 0
    NOT_FEASIBLE = 1
    NOT_FINITE = 2


class TrajectoryViolations(eqx.Module):
    """The largest violation of each kind at 401 times, 0 where there is none.

    Args:
        goals: Of the goals at an instant [rad, 0.1 m].
        position: Of limits of position [rad, m].
        velocity: Of limits of velocity, relative to the limit.
        acceleration: Of limits of acceleration, relative to the limit.
        torque: Of limits of torque, relative to the limit.
        clearance: Of the minimum distance [0.1 m].
        path: Of the bands of goals along the path [rad, 0.1 m].
        constraints: Of the given constraints.
    """

    goals: Float[Array, ""]
    position: Float[Array, ""]
    velocity: Float[Array, ""]
    acceleration: Float[Array, ""]
    torque: Float[Array, ""]
    clearance: Float[Array, ""]
    path: Float[Array, ""]
    constraints: Float[Array, ""]

    def largest(self) -> Float[Array, ""]:
        """The largest of them."""
        return jnp.max(jnp.stack(list(vars(self).values())))


class TrajectoryResult(eqx.Module):
    """Result of `solve_trajectory`.

    Args:
        trajectory: The motion.
        initial: The motion from which its search started.
        status: A `TrajectoryStatus`.
        violations: What is violated, and by how much.
        multipliers: Of the limits, one for each time at which they are evaluated.
        costs: Cost after each step of the last attempt; the rest is NaN.
        infeasibilities: The largest violation after each step, at the times of the optimisation.
        attempts: The attempt that led to it, counted from 1.
        iterations: Steps of all attempts.
    """

    trajectory: Trajectory
    initial: Trajectory
    status: Int[Array, ""]
    violations: TrajectoryViolations
    multipliers: Multipliers
    costs: Float[Array, "i"]
    infeasibilities: Float[Array, "i"]
    attempts: Int[Array, ""]
    iterations: Int[Array, ""]

    @property
    def solved(self) -> Bool[Array, ""]:
        """Whether the goals are met and all limits are kept."""
        return self.status == TrajectoryStatus.SOLVED


class _State(NamedTuple):
    x: Array
    at: Samples
    dual: Multipliers
    tight: Multipliers
    penalty: Array
    damping: Array
    merit: Array
    candidate: Array
    predicted: Array
    last: Array  # violation at the last update of the multipliers
    step: Array
    left: Array  # steps left to this attempt
    attempt: Array
    total: Array
    round: Array
    converged: Array
    paused: Array  # converged, or at the end of its attempts
    done: Array
    best: Array
    least: Array
    costs: Array
    infeasibilities: Array


@jit_public()
def solve_trajectory(problem: TrajectoryProblem) -> TrajectoryResult:
    r"""Finds a motion that reaches the goals and keeps the limits.

    An augmented Lagrangian with Gauss-Newton steps, over the coefficients z of splines whose squared jerk is $|z|^2$:
    the Hessian of the cost is one, and that of the limits a sum over times, from `rnea_derivatives`, Jacobians, and
    gradients of distances. Levenberg damping bounds the steps. Goals at an instant are no penalties: each step moves
    along them, and is brought back to them by Newton's method.

    The first motion is the smoothest one to a configuration that reaches the goals. Such configurations are searched
    from random starts; those nearest to the start whose gravity torques and clearance are within the limits come
    first. When `iterations` steps do not lead to a solution, the next one is tried. A motion counts as solved when all
    limits are kept at 401 times to 1e-4, in float32 1e-3; what is violated between the times of the optimisation is
    corrected by narrower limits.

    Pure: works under `jit` and `vmap`. A batch runs until its last problem is done.

    Args:
        problem: The problem.

    Returns:
        The motion with its status; where none was found, the one with the smallest violation.

    Raises:
        DtypeError: `problem` is not a `TrajectoryProblem`.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.planning import PositionGoal, TrajectoryProblem, solve_trajectory
        >>> arm = robots.two_link_arm()
        >>> goal = PositionGoal("tool", jnp.array([0.3, 0.6, 0.0]))
        >>> problem = TrajectoryProblem(arm, jnp.array([0.2, 0.3]), [goal], duration=2.0, clearance=None)
        >>> result = solve_trajectory(problem)
        >>> bool(result.solved), bool(result.violations.largest() < 1e-3)
        (True, True)
    """
    if not isinstance(problem, TrajectoryProblem):
        raise DtypeError(f"problem must be a TrajectoryProblem, got {type(problem).__name__}")
    todo = Transcription(problem)
    dtype, tolerance = problem.q_start.dtype, _TOLERANCE[problem.q_start.dtype.name]
    ends, _ = end_configurations(problem)

    def initial(attempt: Array) -> Array:
        x = todo.smoothest(ends[jnp.minimum(attempt, len(ends) - 1)])
        return x if problem.initial is None else jnp.where(attempt == 0, todo.given(problem.initial), x)

    scale = todo.scale(initial(jnp.zeros((), int)))

    def advance(s: _State) -> _State:
        candidate, at = todo.sampled(s.candidate)
        merit = todo.merit(scale, candidate, at, s.dual, s.tight, s.penalty)
        fresh = s.step == 0
        accepted = fresh | (merit < s.merit)
        x, at = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), (candidate, at), (s.x, s.at))
        gain = (s.merit - merit) / jnp.maximum(s.predicted, jnp.finfo(dtype).tiny)
        damping = jnp.where(gain > 0.5, 0.2 * s.damping, jnp.where(gain < 0.1, 4.0 * s.damping, s.damping))
        damping = jnp.where(accepted, damping, jnp.maximum(8.0 * s.damping, 1.0))
        damping = jnp.where(fresh, _DAMPING, damping)
        cost, violation = todo.cost(scale, x, at), todo.violation(at, s.tight)
        calm = accepted & ~fresh & (s.predicted <= _CALM * (cost + 1e-3))
        dual = jax.tree.map(
            lambda new, old: jnp.where(calm, new, old), todo.updated(at, s.dual, s.tight, s.penalty), s.dual
        )
        slow = calm & (violation > _SLOW * s.last) & (violation > 0.5 * tolerance)
        penalty = jnp.where(slow, jnp.minimum(_STIFFER * s.penalty, _LARGEST_PENALTY[dtype.name]), s.penalty)
        converged = calm & (violation <= 0.5 * tolerance)
        least = jnp.where(fresh | accepted, violation, jnp.inf)
        best, least = jax.tree.map(
            lambda new, old: jnp.where(converged | (least < s.least), new, old), (x, violation), (s.best, s.least)
        )
        ended = ~converged & (s.left <= 0)
        again = ended & (s.attempt + 1 < problem.attempts)
        attempt = s.attempt + again
        merit = todo.merit(scale, x, at, dual, s.tight, penalty)
        step, predicted = todo.step(scale, x, at, dual, s.tight, penalty, damping)
        renew = lambda new, old: jax.tree.map(lambda a, b: jnp.where(again, a, b), new, old)  # noqa: E731
        none = jax.tree.map(jnp.zeros_like, dual), tight
        index = jnp.minimum(s.step, len(s.costs) - 1)
        return _State(
            x,
            at,
            *renew(none, (dual, s.tight)),
            renew(_PENALTY, penalty),
            damping,
            merit,
            renew(initial(attempt), x + step),
            predicted,
            renew(jnp.inf, jnp.where(calm, violation, s.last)),
            renew(0, s.step + 1),
            renew(problem.iterations, s.left - 1),
            attempt,
            s.total + 1,
            s.round,
            converged,
            converged | (ended & ~again),
            s.done,
            best,
            least,
            renew(jnp.full_like(s.costs, jnp.nan), s.costs.at[index].set(cost)),
            renew(jnp.full_like(s.costs, jnp.nan), s.infeasibilities.at[index].set(violation)),
        )

    first = initial(jnp.zeros((), int))
    shapes = jax.eval_shape(todo.sampled, first)[1]
    at = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    dual, tight = todo.no_multipliers(at), todo.no_tightening(at)
    zero, infinite, count = jnp.zeros((), dtype), jnp.asarray(jnp.inf, dtype), jnp.zeros((), int)
    no = jnp.zeros((), bool)
    history = jnp.full(2 * problem.iterations, jnp.nan, dtype)
    state = _State(
        first, at, dual, tight, zero + _PENALTY, zero, infinite, first, zero, infinite, count, count + problem.iterations, count, count, count, no, no, no,
        first, infinite, history, history,
    )  # fmt: skip

    def checked(s: _State) -> _State:
        """Runs until the limits are kept at the times of the optimisation, and looks between these."""
        s = jax.lax.while_loop(lambda s: ~s.paused, advance, s)
        excess = todo.excess(s.best)
        kept = jnp.max(jnp.stack([jnp.max(e, initial=0.0) for e in jax.tree.leaves(excess)])) <= tolerance
        done = ~s.converged | kept | (s.round >= _ROUNDS)
        tight = jax.tree.map(lambda new, old: jnp.where(done, old, new), todo.tightened(s.tight, excess), s.tight)
        penalty = jnp.where(done, s.penalty, jnp.maximum(_PENALTY, s.penalty / _STIFFER**2))
        return s._replace(
            tight=tight,
            penalty=penalty,
            merit=todo.merit(scale, s.x, s.at, s.dual, tight, penalty),
            last=jnp.full_like(s.last, jnp.inf),
            left=jnp.maximum(s.left, problem.iterations // 2),
            round=s.round + 1,
            converged=s.converged & kept,
            paused=done,
            done=done,
        )

    end = jax.lax.while_loop(lambda s: ~s.done, checked, state)
    violations = TrajectoryViolations(**todo.report(end.best))
    known = jnp.isfinite(end.best).all() & jnp.isfinite(violations.largest())
    status = jnp.where(end.converged, TrajectoryStatus.SOLVED, TrajectoryStatus.NOT_FEASIBLE)
    status = jnp.where(known, status, TrajectoryStatus.NOT_FINITE)
    return TrajectoryResult(
        todo.motion(end.best),
        todo.motion(initial(end.attempt)),
        status,
        violations,
        end.dual,
        end.costs,
        end.infeasibilities,
        end.attempt + 1,
        end.total,
    )
