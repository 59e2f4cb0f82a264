"""The discretized problem: samples of a motion with their derivatives, the augmented Lagrangian, and its Newton step.

The unknowns x are the spline coefficients, time-major, and, where the duration is free, the logarithm of its ratio to
that of the first motion.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..xla.control_flow import fori_loop
from ._extremes import larger, smaller
from ._rows import Rows, path_rows, relative
from ._seeds import damped_solution, end_limits, gap, goal_rows, instants_between, position_limits, product
from .problem import TrajectoryProblem
from .trajectory import Basis, Trajectory, basis, basis_at, on_grid

CHECK = 401  # times at which a solution has to keep its limits
_BOUNDS = 97  # times of the limits of position, velocity, acceleration and jerk while optimizing
_ON_GOALS = 1e3  # weight of what is left of the goals' errors
_NEWTON = 3  # steps back to the goals
_OF_GOALS = {"float64": 250.0, "float32": 10.0}  # weight of their errors as violations
_ROUNDING = {"float64": 1e-13, "float32": 5e-6}  # of their errors
_MARGIN = 5e-4  # of limits, relative
_FARTHEST = 1.0  # [rad, m] that a step back to the goals moves a joint, or by the logarithm of the duration
_SHORT = 1e3  # weight of the squared duration against the squared jerk, both relative to those of the first motion


class Samples(NamedTuple):
    """What is known of a motion at the times of the optimization.

    Attributes:
        bounds: Position, velocity and acceleration, and jerk where it is limited, scaled by their limits.
        bounds_rate: Their derivatives by the logarithm of the duration; None if that is given.
        path: Rows of each kind.
        error: Errors of the goals at an instant.
        turned: Their derivatives by x.
        rates: Derivatives of positions, velocities and accelerations at the times of the rows by the logarithm of the
            duration; None if that is given.
    """

    bounds: Float[Array, "d n m"]
    bounds_rate: Float[Array, "d n m"] | None
    path: dict[str, Rows]
    error: Float[Array, "g"]
    turned: Float[Array, "g x"]
    rates: Float[Array, "t 3 m"] | None


class Multipliers(NamedTuple):
    """A number for each bound of a joint's position, velocity, acceleration and jerk, and for each row."""

    bounds: Array
    path: dict[str, Array]


class Transcription:
    """A problem on its grids of times."""

    def __init__(self, problem: TrajectoryProblem, ways: Float[Array, "w m"]) -> None:
        self.problem, self.dtype = problem, problem.q_start.dtype
        self.at_q, self.at_v = np.array(problem.moving.q), np.array(problem.moving.v)
        self.shape = (problem.coefficients, len(self.at_q))
        self.size = self.shape[0] * self.shape[1]
        self.free = problem.duration is None
        gaps = np.full(problem.points - 1, 1.0 / (problem.points - 1))
        self.shares = 0.5 * (np.append(gaps, 0.0) + np.append(0.0, gaps))  # of the times in a mean, by trapezoids
        self.instants = sorted({goal.when for goal in problem.goals if not isinstance(goal.when, str)})
        low, high = position_limits(problem)
        self.ends = end_limits(problem)
        limits = [problem.model.velocity_limit[self.at_v], problem.model.acceleration_limit[self.at_v]]
        if problem.jerk_limit is not None:
            limits.append(problem.jerk_limit[self.at_v])
        scales, bounds = zip(*map(relative, limits), strict=True)
        self.scales = jnp.stack([jnp.ones_like(low), *scales])
        self.upper = jnp.stack([high, *bounds])
        self.lower = jnp.stack([low, *(-b for b in bounds)])
        if self.free:
            met = ways if instants_between(problem) else ways[-1:]
            legs = jnp.diff(met, axis=0, prepend=problem.q_start[self.at_q][None])
            self.guess, self.short = self._short(jnp.abs(legs).sum(axis=0), *limits)

    def _basis_at(self, phase: float) -> Basis:
        return basis_at(self.problem.coefficients, (phase,))

    # Motions.

    def given(self, coefficients: Array) -> Array:
        """The unknowns of a motion with these coefficients."""
        x = coefficients.reshape(-1)
        return jnp.append(x, 0.0) if self.free else x

    def smoothest(self, ways: Float[Array, "w m"]) -> Array:
        """The smoothest motion through waypoints, as in `waypoints`, as far as it can be."""
        instants = instants_between(self.problem)
        moved = ways - self.problem.q_start[self.at_q][None]
        bases = [self._basis_at(when) for when in [*instants, 1.0]]
        if self.problem.end_velocities is not None:  # which move it
            duration = self.guess if self.problem.duration is None else self.problem.duration
            carried = np.stack([basis.ends[0, 0] for basis in bases])
            moved = moved.at[-len(bases) :].add(
                -duration * product(jnp.asarray(carried, self.dtype), self.problem.end_velocities)
            )
        if not instants:
            bases.insert(0, self._basis_at(0.5))
            moved = jnp.stack([0.5 * moved[1] + ways[0], moved[1]])
        at = np.stack([basis.rest[0, 0] for basis in bases])
        return self.given(product(jnp.asarray(np.linalg.pinv(at), self.dtype), moved))

    def duration(self, x: Array) -> Array:
        """The duration of a motion."""
        given = self.problem.duration
        return self.guess * jnp.exp(x[-1]) if given is None else given

    def coefficients(self, x: Array) -> Float[Array, "k m"]:
        """The coefficients of a motion."""
        return x[: self.size].reshape(self.shape)

    def motion(self, x: Array) -> Trajectory:
        """The trajectory."""
        return self.problem.trajectory(self.coefficients(x), self.duration(x))

    def _short(self, moved: Array, *limits: Array) -> tuple[Array, Array]:
        """A duration in which limits of velocity, acceleration and jerk can be kept, and the weight of its square."""
        least = (lambda v: 2.0 * moved / v, lambda a: jnp.sqrt(6.0 * moved / a), lambda j: jnp.cbrt(60.0 * moved / j))
        times = jnp.concatenate([f(limit) for f, limit in zip(least, limits, strict=False)])
        guess = jnp.max(jnp.where(jnp.isfinite(times), times, 0.0))
        guess = jnp.where(jnp.isfinite(jnp.concatenate(limits)).any(), jnp.maximum(guess, 0.1), 1.0)
        return guess, _SHORT * jnp.maximum(jnp.sum(moved**2), 1e-2)

    def _units(self, T: Array, orders: int) -> Float[Array, "d"]:
        """Those of the derivatives by the phase."""
        return jnp.stack([T**-d if d else jnp.ones_like(T) for d in range(orders)])

    def _sampled(self, x: Array, grid: Basis, orders: int = 3) -> tuple[Array, Array | None]:
        """Positions, velocities and accelerations, and with four orders jerks (d, n, m), and their derivatives by the
        logarithm of the duration."""
        z, T = self.coefficients(x), self.duration(x)
        units = self._units(T, orders)[:, None, None]
        rest = product(jnp.asarray(grid.rest[:orders], self.dtype), z)
        carried = jnp.zeros_like(rest)
        if self.problem.end_velocities is not None:
            carried = T * product(jnp.asarray(grid.ends[:orders], self.dtype), self.problem.end_velocities)
        start = jnp.zeros_like(rest).at[0].set(self.problem.q_start[self.at_q][None])
        order = jnp.arange(orders, dtype=self.dtype)[:, None, None]
        rate = units * ((1.0 - order) * carried - order * rest) if self.free else None
        return start + units * (rest + carried), rate

    def _bounded(self, x: Array, grid: Basis) -> tuple[Array, Array | None]:
        """What has a limit for each joint, in units of that, and the derivatives by the logarithm of the duration."""
        found, rate = self._sampled(x, grid, len(self.scales))
        scales = self.scales[:, None]
        return found * scales, None if rate is None else rate * scales

    def _rows(self, x: Array, grid: Basis, slopes: bool) -> tuple[dict[str, Rows], Array | None]:
        at, (_, rate) = on_grid(self.motion(x), grid), self._sampled(x, grid)
        rows = jax.vmap(lambda *row: path_rows(self.problem, *row, slopes=slopes))(at.q, at.v, at.a, at.times)
        return rows, None if rate is None else rate.swapaxes(0, 1)

    def _goals(self, x: Array) -> tuple[Array, Array]:
        """Errors of the goals at an instant, and their derivatives by x."""
        errors, derivatives = [], []
        for phase in self.instants:
            grid = self._basis_at(phase)
            moved, rate = self._sampled(x, grid)
            goals = [goal for goal in self.problem.goals if goal.when == phase]
            e, J = goal_rows(self.problem, goals, self.problem.q_start.at[self.at_q].set(moved[0, 0]))
            by = (J[:, None, :] * jnp.asarray(grid.rest[0], self.dtype)[:, :, None]).reshape(len(e), -1)
            if rate is not None:
                by = jnp.concatenate([by, product(J, rate[0, 0])[:, None]], axis=1)
            errors.append(e)
            derivatives.append(by)
        return jnp.concatenate(errors), jnp.concatenate(derivatives)

    def sampled(self, x: Array) -> tuple[Array, Samples]:
        """The motion brought back to the goals, and its samples."""
        e, A = jax.eval_shape(self._goals, x)

        def again(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            x, e, A = state
            step = product(A.T, damped_solution(product(A, A.T), e, self._small(A)))
            x = x - step / jnp.maximum(1.0, self._farthest(step) / _FARTHEST)
            return x, *self._goals(x)

        none = jnp.zeros(e.shape, self.dtype), jnp.zeros(A.shape, self.dtype)
        x, e, A = fori_loop(0, _NEWTON, again, (x, *none))
        bounds, rate = self._bounded(x, basis(self.problem.coefficients, _BOUNDS))
        rows, rates = self._rows(x, basis(self.problem.coefficients, self.problem.points), slopes=True)
        return x, Samples(bounds, rate, rows, e, A, rates)

    def plain(self, x: Array) -> Samples:
        """The samples of a motion as it is, to be differentiated by JAX."""
        bounds, _ = self._bounded(x, basis(self.problem.coefficients, _BOUNDS))
        rows, _ = self._rows(x, basis(self.problem.coefficients, self.problem.points), slopes=False)
        return Samples(bounds, None, rows, *self._goals(x), None)

    def _farthest(self, step: Array) -> Array:
        """How far a step moves a joint at a goal, or the logarithm of the duration."""
        z = self.coefficients(step)
        moved = [product(jnp.asarray(self._basis_at(s).rest[0], self.dtype), z).reshape(-1) for s in self.instants]
        return jnp.max(jnp.abs(jnp.concatenate([*moved, step[self.size :]])))

    def _small(self, A: Array) -> Array:
        eps = jnp.finfo(self.dtype).eps
        return 10.0 * eps * jnp.sum(A * A) + jnp.finfo(self.dtype).tiny

    # The augmented Lagrangian.

    def _bounds(self, count: int) -> tuple[Float[Array, "d n m"], Float[Array, "d n m"]]:
        """Lower and upper bounds of what has a limit for each joint, at so many times."""
        is_end = np.zeros((len(self.scales), count, 1), bool)
        is_end[0, -1] = True
        low, high = self.ends
        return jnp.where(is_end, low, self.lower[:, None]), jnp.where(is_end, high, self.upper[:, None])

    def no_multipliers(self, at: Samples) -> Multipliers:
        """Zero for each constraint."""
        return Multipliers(jnp.zeros_like(at.bounds), {k: jnp.zeros_like(r.value) for k, r in self._limits(at.path)})

    def gap(self, x: Array) -> Float[Array, "m"]:
        """To the limits of position, of a motion."""
        return gap(self.problem, self._sampled(x, self._basis_at(1.0))[0][0, 0])

    def margins(self, at: Samples, gap: Float[Array, "m"]) -> Multipliers:
        """Those from which the limits start, for each time, joint and row."""
        none = self.no_multipliers(at)
        path = {k: x + (_MARGIN if k == "torque" else 0.0) for k, x in none.path.items()}
        return Multipliers(none.bounds.at[1:].set(_MARGIN).at[0].set(gap[None]), path)

    @staticmethod
    def _limits(path: dict[str, Rows]) -> list[tuple[str, Rows]]:
        return [(kind, rows) for kind, rows in path.items() if kind != "costs"]

    def _beyond(self, at: Samples, dual: Multipliers | None, tight: Multipliers, penalty: Array | float) -> Multipliers:
        """How far each quantity, shifted by its multiplier, is beyond its bounds."""

        def beyond(y: Array, low: Array, high: Array, margin: Array, shift: Array | float) -> Array:
            y = y + shift
            return y - jnp.clip(y, *_narrowed(low, high, margin))

        shifts = None if dual is None else jax.tree.map(lambda d: d / penalty, dual)
        return Multipliers(
            beyond(
                at.bounds,
                *self._bounds(at.bounds.shape[1]),
                tight.bounds,
                0.0 if shifts is None else shifts.bounds,
            ),
            {
                k: beyond(r.value, r.lower, r.upper, tight.path[k], 0.0 if shifts is None else shifts.path[k])
                for k, r in self._limits(at.path)
            },
        )

    def room(self, at: Samples, tight: Multipliers) -> Array:
        """How far each quantity is above its lower bound, and then how far it is below its upper one."""
        own = [(at.bounds, *self._bounds(at.bounds.shape[1]), tight.bounds)]
        own += [(r.value, r.lower, r.upper, tight.path[k]) for k, r in sorted(self._limits(at.path))]
        rows = [(y, *_narrowed(low, high, margin)) for y, low, high, margin in own]
        room = [y - low for y, low, _ in rows] + [high - y for y, _, high in rows]
        return jnp.concatenate([x.reshape(-1) for x in room])

    def updated(self, at: Samples, dual: Multipliers, tight: Multipliers, penalty: Array) -> Multipliers:
        """The new multipliers."""
        return jax.tree.map(lambda y: penalty * y, self._beyond(at, dual, tight, penalty))

    def violation(self, at: Samples, tight: Multipliers) -> Array:
        """The largest one at the times of the optimization."""
        beyond = [jnp.max(jnp.abs(y), initial=0.0) for y in jax.tree.leaves(self._beyond(at, None, tight, 1.0))]
        return jnp.max(jnp.stack([*beyond, self.of_goals(jnp.max(jnp.abs(at.error)))]))

    def of_goals(self, error: Array) -> Array:
        """Errors of the goals at an instant as violations."""
        return _OF_GOALS[self.dtype.name] * error

    def cost(self, x: Array, at: Samples) -> Array:
        """Half the squared jerk, the mean of the given costs over time, and that of a free duration."""
        total = 0.5 * jnp.sum(x[: self.size] ** 2)
        if "costs" in at.path:
            squares = jnp.sum(at.path["costs"].value ** 2, axis=1)
            total += 0.5 * jnp.sum(jnp.asarray(self.shares, self.dtype) * squares)
        return total + 0.5 * self.short * jnp.exp(2.0 * x[-1]) if self.free else total

    def merit(self, x: Array, at: Samples, dual: Multipliers, tight: Multipliers, penalty: Array) -> Array:
        """The augmented Lagrangian, and what is left of the goals' errors."""
        squares = sum(jnp.sum(y * y) for y in jax.tree.leaves(self._beyond(at, dual, tight, penalty)))
        missed = jnp.maximum(jnp.abs(at.error) - _ROUNDING[self.dtype.name], 0.0)
        return self.cost(x, at) + 0.5 * penalty * squares + _ON_GOALS * jnp.sum(missed)

    def step(
        self,
        x: Array,
        at: Samples,
        dual: Multipliers,
        tight: Multipliers,
        penalty: Array,
        damping: Array,
    ) -> tuple[Array, Array, Array]:
        """The damped Gauss-Newton step along the goals, the decrease that it predicts, and the gradient."""
        (K, m), T = self.shape, self.duration(x)
        beyond = self._beyond(at, dual, tight, penalty)
        orders = len(self.scales)
        units = self._units(T, orders)
        # Bounds: a block for each joint.
        P = basis(K, _BOUNDS).rest[:orders]
        squares = jnp.asarray((P[:, :, :, None] * P[:, :, None, :]).reshape(-1, K * K), self.dtype)
        weights = self.scales * units[:, None]
        pull = beyond.bounds * weights[:, None]
        active = jnp.where(beyond.bounds != 0, (weights**2)[:, None], 0.0)
        gradient = jnp.sum(product(jnp.asarray(P.swapaxes(1, 2), self.dtype), pull), axis=0).reshape(-1)
        blocks = product(active.reshape(-1, m).T, squares).reshape(m, K, K)
        H = (blocks.transpose(1, 0, 2)[..., None] * jnp.eye(m, dtype=self.dtype)[None, :, None, :]).reshape(
            K * m, K * m
        )
        # Rows: those that are not active are zero.
        P = jnp.asarray(basis(K, self.problem.points).rest[:3], self.dtype) * units[:3, None, None]
        slope, pull, later = [], [], []
        for kind, rows in at.path.items():
            assert rows.slope is not None
            by_time = jnp.zeros_like(rows.value) if rows.later is None else rows.later
            if kind == "costs":
                weight = jnp.sqrt(jnp.asarray(self.shares, self.dtype) / penalty)[:, None]
                slope.append(rows.slope * weight[..., None, None])
                pull.append(rows.value * weight)
                later.append(by_time * weight)
            else:
                y = beyond.path[kind]
                slope.append(jnp.where((y != 0)[..., None, None], rows.slope, 0.0))
                pull.append(y)
                later.append(jnp.where(y != 0, by_time, 0.0))
        slope, pull = jnp.concatenate(slope, axis=1), jnp.concatenate(pull, axis=1).reshape(-1)
        slopes = slope.transpose(2, 3, 0, 1)  # rows last: what XLA multiplies fastest
        position, velocity, acceleration = (P[d].T[:, None, :, None] * slopes[d][None] for d in range(3))
        J = (position + velocity + acceleration).reshape(K * m, -1)
        if at.rates is not None and at.bounds_rate is not None:  # the duration is free
            by_duration = jnp.sum(slope * at.rates[:, None], axis=(2, 3)) + jnp.concatenate(later, axis=1)
            J = jnp.concatenate([J, by_duration.reshape(1, -1)])
            H = jnp.pad(H, ((0, 1), (0, 1)))
            chosen = jnp.where(beyond.bounds != 0, at.bounds_rate, 0.0)
            side = jnp.asarray(basis(K, _BOUNDS).rest[:orders].swapaxes(1, 2), self.dtype)
            mixed = jnp.sum(product(side, chosen * weights[:, None]), axis=0).reshape(-1)
            H = H.at[-1].add(jnp.append(mixed, jnp.sum(chosen**2))).at[:-1, -1].add(mixed)
            gradient = jnp.append(gradient, jnp.sum(beyond.bounds * at.bounds_rate))
        gradient = penalty * (gradient + product(J, pull))
        own = jnp.ones(self.size, self.dtype)
        if self.free:
            time = self.short * jnp.exp(2.0 * x[-1])
            gradient = gradient + jnp.append(x[:-1], time)
            own = jnp.append(own, 2.0 * time)
        else:
            gradient = gradient + x
        H = penalty * (H + product(J, J.T)) + jnp.diag(own + damping)
        factor = jax.scipy.linalg.cho_factor(H, lower=True)
        A = at.turned
        solved = jax.scipy.linalg.cho_solve(factor, jnp.concatenate([gradient[:, None], A.T], axis=1))
        free, along = solved[:, 0], solved[:, 1:]
        S = product(A, along)
        along = product(along, damped_solution(S, at.error - product(A, free), 1e-12 * jnp.trace(S)))
        step = -free - along
        predicted = 0.5 * damping * jnp.sum(step * step) - 0.5 * jnp.sum(gradient * step)
        return step, predicted, gradient

    # The check between the times of the optimization.

    def excess(self, x: Array, gap: Float[Array, "m"]) -> Multipliers:
        """By how much each limit is exceeded at `CHECK` times (time-last but one), of positions that less the gap."""
        grid = basis(self.problem.coefficients, CHECK)
        bounds, _ = self._bounded(x, grid)
        rows, _ = self._rows(x, grid, slopes=False)

        def over(y: Array, low: Array, high: Array) -> Array:
            return jnp.maximum(jnp.maximum(low - y, y - high), 0.0)

        path = {k: over(r.value, r.lower, r.upper) for k, r in self._limits(rows)}
        low, high = self._bounds(CHECK)
        inner = jnp.zeros_like(self.lower).at[0].set(gap)[:, None]
        return Multipliers(over(bounds, low + inner, high - inner), path)

    def tightened(self, tight: Multipliers, excess: Multipliers) -> Multipliers:
        """Narrower limits at the times of the optimization that are next to where they are exceeded."""

        def near(old: Array, e: Array) -> Array:
            window = jnp.asarray(_windows(old.shape[-2]))
            return old + 1.2 * jnp.max(e[..., window, :], axis=-2)

        return jax.tree.map(near, tight, excess)

    def report(self, excess: Multipliers, missed: Array) -> dict[str, Array]:
        """The largest violation of each kind, given the `excess` of a motion and the largest error of its goals."""
        zero = jnp.zeros((), self.dtype)
        kinds = ("position", "velocity", "acceleration", "jerk")
        bounds = {"jerk": zero} | dict(zip(kinds, excess.bounds.max(axis=(1, 2)), strict=False))
        path = {
            k: jnp.max(excess.path[k]) if k in excess.path else zero
            for k in ("torque", "clearance", "path", "constraints")
        }
        return bounds | path | {"goals": missed}


def _narrowed(low: Array, high: Array, margin: Array) -> tuple[Array, Array]:
    """Bounds narrowed by a margin, at most to their middle."""
    middle = jnp.where(jnp.isfinite(low) & jnp.isfinite(high), 0.5 * (low + high), 0.0)
    inner = smaller(low + margin, jnp.where(jnp.isfinite(high), middle, jnp.inf))
    return inner, larger(high - margin, jnp.where(jnp.isfinite(low), middle, -jnp.inf))


@lru_cache(maxsize=16)
def _windows(points: int) -> np.ndarray:
    """For each of `points` times, the indices of the checked ones up to its neighbours, some twice."""
    middle = np.linspace(0.0, CHECK - 1, points)
    reach = -(-(CHECK - 1) // (points - 1))
    window = np.rint(middle)[:, None].astype(int) + np.arange(-reach, reach + 1)[None]
    return np.clip(window, 0, CHECK - 1)
