"""The search of `solve_trajectory`: steps, multipliers, penalties, narrower limits and new attempts."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..xla.fusion import barrier
from ._newton import Multipliers, Samples, Transcription
from .problem import TrajectoryProblem

_PENALTY, _LARGEST_PENALTY = 1e2, {"float64": 1e7, "float32": 1e4}
_STIFFER = 5.0  # the penalty, where the violation did not fall to `_SLOW` of what it was
_SLOW = 0.25
_DAMPING = 1e-3  # beside the one of the squared jerk
_CALM = 1e-2  # predicted change of the cost, relative to it, at which multipliers are updated
_FLATTEST = 1e-3  # the least second derivative along a step, relative to that of the model, that is told from zero
_ROUNDS = 6  # of narrower limits
_ROUNDING = {"float64": 1e-12, "float32": 1e-4}  # of the merit, relative; much is that of the goals
# Largest violation of a solution: relative to a limit, in rad, or in 0.1 m.
_TOLERANCE = {"float64": 1e-4, "float32": 1e-3}


class Found(NamedTuple):
    """The end of the search.

    Attributes:
        coefficients: Of the motion.
        duration: Of the motion.
        first: The coefficients from which the search started.
        first_duration: The duration from which it started.
        x: The unknowns.
        scale: The guess of the duration and the weight of its square; None if the duration is given.
        dual: Multipliers of the limits.
        tight: Margins of the limits.
        converged: Whether the limits are kept.
        known: Whether its cost and the derivatives there are finite.
        report: The largest violation of each kind.
        costs: History.
        infeasibilities: History.
        attempts: Their number.
        steps: Of all attempts.
    """

    coefficients: Float[Array, "k m"]
    duration: Float[Array, ""]
    first: Float[Array, "k m"]
    first_duration: Float[Array, ""]
    x: Float[Array, "x"]
    scale: tuple[Array, Array] | None
    dual: Multipliers
    tight: Multipliers
    converged: Bool[Array, ""]
    known: Bool[Array, ""]
    report: dict[str, Array]
    costs: Float[Array, "i"]
    infeasibilities: Float[Array, "i"]
    attempts: Int[Array, ""]
    steps: Int[Array, ""]


class State(NamedTuple):
    """Where the search is.

    Attributes:
        x: The current motion.
        at: Its samples.
        dual: Multipliers of the limits.
        tight: Margins of the limits.
        gap: To the limits of position.
        penalty: Of violations of the limits.
        damping: Of the step.
        merit: The augmented Lagrangian of the current motion.
        candidate: The motion to be tried.
        predicted: By how much it should lower the merit.
        last: The violation when the multipliers were last updated.
        step: Steps of this attempt.
        left: How many are left to it.
        attempt: Counted from 0.
        total: Steps of all attempts.
        round: How often the limits were narrowed.
        converged: Whether the limits are kept at the times of the optimization.
        paused: Whether they are, or all attempts failed.
        done: Whether they are also kept between these, or all attempts failed.
        best: The motion with the smallest violation.
        least: That.
        missed: The largest error of its goals at an instant.
        known: Whether its cost and the derivatives there are finite.
        costs: History.
        infeasibilities: History.
        report: The largest violation of each kind by the best motion, at `CHECK` times.
    """

    x: Array
    at: Samples
    dual: Multipliers
    tight: Multipliers
    gap: Array
    penalty: Array
    damping: Array
    merit: Array
    candidate: Array
    predicted: Array
    last: Array
    step: Array
    left: Array
    attempt: Array
    total: Array
    round: Array
    converged: Array
    paused: Array
    done: Array
    best: Array
    least: Array
    missed: Array
    known: Array
    costs: Array
    infeasibilities: Array
    report: dict[str, Array]


class Search:
    """The steps of the search for a motion, from the first motion to what was found."""

    def __init__(self, problem: TrajectoryProblem, ways: Float[Array, "s w m"]) -> None:
        self.problem, self.ways = problem, ways
        self.todo = Transcription(problem, ways[0])
        # In one search each is traced once, for its shapes and for the loop; a batch makes several.
        self.sampled, self.excess = jax.jit(self.todo.sampled), jax.jit(self.todo.excess)
        self.dtype = problem.q_start.dtype
        self.tolerance, self.stiffest = _TOLERANCE[self.dtype.name], _LARGEST_PENALTY[self.dtype.name]

    def first(self, attempt: Array) -> Array:
        """The motion from which an attempt starts."""
        x = self.todo.smoothest(self.ways[jnp.minimum(attempt, len(self.ways) - 1)])
        given = self.problem.initial
        return x if given is None else jnp.where(attempt == 0, self.todo.given(given), x)

    def start(self) -> State:
        """Before the first step."""
        x = self.first(jnp.zeros((), int))
        at = jax.eval_shape(self.sampled, x)[1]
        report = jax.eval_shape(lambda x: self.todo.report(self.excess(x, self.todo.gap(x)), x[0]), x)
        return self._start(x, at, report)

    def advance(self, s: State) -> State:
        """One step, and what follows from it."""
        todo, dtype = self.todo, self.dtype
        candidate, at = self.sampled(s.candidate)
        merit = todo.merit(candidate, at, s.dual, s.tight, s.penalty)
        fresh = s.step == 0
        # A motion that cannot be improved is accepted again: its merit is the same but for rounding.
        accepted = fresh | (merit <= s.merit + _ROUNDING[dtype.name] * jnp.abs(s.merit))
        x, at = choose(accepted, (candidate, at), (s.x, s.at))
        gain = (s.merit - merit) / jnp.maximum(s.predicted, jnp.finfo(dtype).tiny)
        damping = jnp.where(gain > 0.5, 0.2 * s.damping, jnp.where(gain < 0.1, 4.0 * s.damping, s.damping))
        damping = jnp.where(accepted, damping, jnp.maximum(8.0 * s.damping, 1.0))
        damping = jnp.where(fresh, _DAMPING, damping)
        cost, violation = todo.cost(x, at), todo.violation(at, s.tight)
        calm = accepted & ~fresh & (s.predicted <= _CALM * (cost + 1e-3))
        dual = choose(calm, todo.updated(at, s.dual, s.tight, s.penalty), s.dual)
        slow = calm & (violation > _SLOW * s.last) & (violation > 0.5 * self.tolerance)
        penalty = jnp.where(slow, jnp.minimum(_STIFFER * s.penalty, self.stiffest), s.penalty)
        step, predicted, gradient = todo.step(x, at, dual, s.tight, penalty, damping)
        # With the second derivatives h of the model and t of the merit along the step, the gain is 2 - t / h, and what
        # another step can gain is h / t of what is predicted without damping. It is waited for in the first half only.
        expected = (1.0 + s.damping) * s.predicted / jnp.clip(2.0 - gain, _FLATTEST, 1.0)
        settled = (jnp.maximum(expected, predicted) <= _CALM * (cost + 1e-3)) | (2 * s.left < self.problem.iterations)
        converged = calm & settled & (violation <= 0.5 * self.tolerance)
        better = converged | (violation < s.least)
        known = jnp.isfinite(cost) & jnp.isfinite(gradient).all()
        new, old = (x, violation, jnp.max(jnp.abs(at.error)), known), (s.best, s.least, s.missed, s.known)
        best, least, missed, known = choose(better, new, old)
        index = jnp.minimum(s.step, len(s.costs) - 1)
        ended = ~converged & (s.left <= 0)
        again = ended & (s.attempt + 1 < self.problem.attempts)
        following = s._replace(
            x=x,
            at=at,
            dual=dual,
            penalty=penalty,
            damping=damping,
            merit=todo.merit(x, at, dual, s.tight, penalty),
            candidate=x + step,
            predicted=predicted,
            last=jnp.where(calm, violation, s.last),
            step=s.step + 1,
            left=s.left - 1,
            total=s.total + 1,
            converged=converged,
            paused=converged | (ended & ~again),
            best=best,
            least=least,
            missed=missed,
            known=known,
            costs=s.costs.at[index].set(cost),
            infeasibilities=s.infeasibilities.at[index].set(violation),
        )
        attempt = s.attempt + 1
        anew = self._start(self.first(attempt), s.at, s.report)._replace(
            attempt=attempt,
            total=following.total,
            round=s.round,
            best=best,
            least=least,
            missed=missed,
            known=known,
        )
        return choose(again, anew, following)

    def checked(self, s: State) -> State:
        """A look between the times of the optimization, after the limits are kept at these."""
        todo = self.todo
        excess = self.excess(s.best, s.gap)
        report = todo.report(excess, s.missed)
        violations = report | {"goals": todo.of_goals(report["goals"])}
        report |= {"position": jnp.max(jnp.maximum(excess.bounds[0] - s.gap[None], 0.0))}
        kept = jnp.max(jnp.stack(list(violations.values()))) <= self.tolerance
        done = ~s.converged | kept | (s.round >= _ROUNDS)
        tight = choose(done, s.tight, todo.tightened(s.tight, excess))
        penalty = jnp.where(done, s.penalty, jnp.maximum(_PENALTY, s.penalty / _STIFFER**2))
        return s._replace(
            tight=tight,
            penalty=penalty,
            merit=todo.merit(s.x, s.at, s.dual, tight, penalty),
            last=jnp.full_like(s.last, jnp.inf),
            left=jnp.maximum(s.left, self.problem.iterations // 2),
            round=s.round + 1,
            converged=kept,
            paused=done,
            done=done,
            report=report,
        )

    def _start(self, x: Array, at: Any, report: Any) -> State:
        """Before the first step from `x`; of the samples and the report only the shapes are used."""
        at, report = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), (at, report))
        gap = self.todo.gap(x)
        zero, count, no = jnp.zeros((), x.dtype), jnp.zeros((), int), jnp.zeros((), bool)
        history = jnp.full(2 * self.problem.iterations, jnp.inf, x.dtype)
        return State(
            x=x,
            at=at,
            dual=self.todo.no_multipliers(at),
            tight=self.todo.margins(at, gap),
            gap=gap,
            penalty=zero + _PENALTY,
            damping=zero,
            merit=zero + jnp.inf,
            candidate=x,
            predicted=zero,
            last=zero + jnp.inf,
            step=count,
            left=count + self.problem.iterations,
            attempt=count,
            total=count,
            round=count,
            converged=no,
            paused=no,
            done=no,
            best=x,
            least=zero + jnp.inf,
            missed=zero + jnp.inf,
            known=no,
            costs=history,
            infeasibilities=history,
            report=report,
        )

    def found(self, s: State) -> Found:
        """What is kept of the end of the search."""
        todo, first = self.todo, self.first(s.attempt)
        return Found(
            coefficients=todo.coefficients(s.best),
            duration=todo.duration(s.best),
            first=todo.coefficients(first),
            first_duration=todo.duration(first),
            x=s.best,
            scale=(todo.guess, todo.short) if todo.free else None,
            dual=s.dual,
            tight=s.tight,
            converged=s.converged & s.known,
            known=s.known,
            report=s.report,
            costs=s.costs,
            infeasibilities=s.infeasibilities,
            attempts=s.attempt + 1,
            steps=s.total,
        )


def choose(condition: Array, new: Any, old: Any) -> Any:
    """Each array of one or the other."""
    condition = barrier(condition)  # or XLA computes it once more in the loop of each array
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
