"""The motion generator of the RB-Y1 SDK (`rby1_sdk.math`): the same classes, calls and results, in plain Python.

The SDK synchronizes the joints by bisection, and its results are reproduced. `rbydyn_jax.planning.trapezoidal_profile`
is the exact motion in closed form, batched and differentiable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._check import check_integer, check_number, real_numbers
from .._errors import ArgumentError, DtypeError, ShapeError, StaleStateError

_SAME_TIME = 1e-5  # [s]: arrival times that are equal for the bisection


def _empty() -> np.ndarray:
    return np.zeros(0)


class TrapezoidalMotionGenerator:
    """Synchronized trapezoidal velocity profiles, with the interface of the SDK's class.

    Each joint brakes where it has to, and then follows a trapezoidal or triangular velocity profile to the target. The
    slowest joint, or `minimum_time`, sets the duration. The speed of the others is bisected until they arrive within
    1e-5 s of it; the remaining difference is removed by stretching their time (which scales velocities, but not
    accelerations).

    Args:
        max_iter: Number of bisection steps, at least 1.

    Example:
        >>> from rbydyn_jax.rby1.math import TrapezoidalMotionGenerator
        >>> given = TrapezoidalMotionGenerator.Input()
        >>> given.current_position, given.current_velocity, given.target_position = [0.0], [0.0], [1.0]
        >>> given.velocity_limit, given.acceleration_limit = [1.0], [2.0]
        >>> generator = TrapezoidalMotionGenerator()
        >>> generator.update(given)
        >>> generator.get_total_time(), generator(0.75).position.tolist()
        (1.5, [0.5])
    """

    @dataclass(eq=False)
    class Input:
        """Start, target and limits of a motion.

        Args:
            current_position: Positions at time 0 (n,) [rad, m].
            current_velocity: Velocities at time 0 (n,) [rad/s, m/s].
            target_position: Positions at the end (n,) [rad, m].
            velocity_limit: Largest speeds (n,) [rad/s, m/s].
            acceleration_limit: Largest accelerations (n,) [rad/s^2, m/s^2].
            minimum_time: Minimum duration [s].
        """

        current_position: np.ndarray = field(default_factory=_empty)
        current_velocity: np.ndarray = field(default_factory=_empty)
        target_position: np.ndarray = field(default_factory=_empty)
        velocity_limit: np.ndarray = field(default_factory=_empty)
        acceleration_limit: np.ndarray = field(default_factory=_empty)
        minimum_time: float = 0.0

    @dataclass(frozen=True, eq=False)
    class Output:
        """Positions, velocities and accelerations (n,) at one time."""

        position: np.ndarray
        velocity: np.ndarray
        acceleration: np.ndarray

    @dataclass
    class Coeff:
        """A piece of one joint's motion at constant acceleration: times of its start and end, and its initial state."""

        start_t: float = 0.0
        end_t: float = 0.0
        init_p: float = 0.0
        init_v: float = 0.0
        a: float = 0.0

    def __init__(self, max_iter: int = 30) -> None:
        self._max_iter = check_integer(max_iter, "max_iter", 1)
        self._target = _empty()
        self._pieces: list[list[TrapezoidalMotionGenerator.Coeff]] = []
        self._total_time = 0.0

    def update(self, input: Input) -> None:
        """Generates the motion.

        Args:
            input: Start, target and limits.

        Raises:
            ArgumentError: A limit is not positive, or a value is not finite (a velocity limit may be infinite).
            DtypeError: A field of the input does not hold numbers.
            ShapeError: The fields are not of one size.
        """
        q0, v0, q1, limit, a, minimum_time = _checked(input)
        low, high, speed = [0.0] * len(q1), list(limit), list(limit)
        pieces = [_pieces(*joint) for joint in zip(q0, v0, q1, speed, a, strict=True)]
        total = max([minimum_time, *(p[-1].end_t for p in pieces)])
        kept = list(pieces)
        unmatched = set(range(len(q1)))
        for _ in range(self._max_iter):
            for i in sorted(unmatched):
                end = pieces[i][-1].end_t
                if abs(end - total) < _SAME_TIME:
                    kept[i] = pieces[i]
                    unmatched.remove(i)
                    continue
                if end > total:
                    low[i] = speed[i]
                else:
                    kept[i], high[i] = pieces[i], speed[i]
                speed[i] = (low[i] + high[i]) / 2.0
                pieces[i] = _pieces(q0[i], v0[i], q1[i], speed[i], a[i])
        self._target, self._pieces, self._total_time = np.array(q1), kept, total

    def get_total_time(self) -> float:
        """The duration [s]; 0 before the first `update`."""
        return self._total_time

    def at_time(self, t: float) -> Output:
        """The state at a time [s]: at rest on the target after the end, the first piece extrapolated before the start.

        Raises:
            ArgumentError: `t` is NaN, or minus infinity.
            DtypeError: `t` is not a number.
            StaleStateError: There was no `update`.
        """
        if not self._pieces:
            raise StaleStateError("no motion has been generated: call update first")
        t = t if isinstance(t, float) else check_number(t, "t")
        if not t > -math.inf:
            raise ArgumentError(f"t must be a time, got {t}")
        n = len(self._pieces)
        if t >= self._total_time:
            return self.Output(self._target.copy(), np.zeros(n), np.zeros(n))
        states = [_state(p, t, self._total_time, x) for p, x in zip(self._pieces, self._target.tolist(), strict=True)]
        return self.Output(*np.array(states).T.copy())

    def __call__(self, t: float) -> Output:
        """As `at_time`."""
        return self.at_time(t)


def _checked(
    given: TrapezoidalMotionGenerator.Input,
) -> tuple[list[float], list[float], list[float], list[float], list[float], float]:
    arrays: dict[str, np.ndarray] = {}
    for name in ("current_position", "current_velocity", "target_position", "velocity_limit", "acceleration_limit"):
        arrays[name] = x = _numbers(getattr(given, name, None), f"input.{name}")
        n = arrays.get("current_position", x).shape
        if x.ndim != 1 or x.shape != n:
            raise ShapeError(f"input.{name} must have shape {n if len(n) == 1 else '(n,)'}, got {x.shape}")
        positive = name.endswith("_limit")
        bad = ~np.isfinite(x) & ~((name == "velocity_limit") & (x == np.inf)) | (positive & ~(x > 0))
        if bad.any():
            i = int(np.argmax(bad))
            raise ArgumentError(f"input.{name}[{i}] must be {'positive' if positive else 'finite'}, got {x[i]}")
    time = _numbers(given.minimum_time, "input.minimum_time")
    if time.shape or not np.isfinite(time):
        raise ArgumentError(f"input.minimum_time must be a finite number, got {given.minimum_time!r}")
    return (*(x.tolist() for x in arrays.values()), float(time))  # type: ignore[return-value]


def _numbers(x: Any, name: str) -> np.ndarray:
    numbers = real_numbers(x)
    if numbers is None:
        raise DtypeError(f"{name} must be an array of floats, got {x!r}")
    return numbers


def _pieces(p: float, v: float, target: float, limit: float, a: float) -> list[TrapezoidalMotionGenerator.Coeff]:
    """Braking where necessary, and a trapezoid from a (virtual) rest to the target, in the order of the SDK."""
    Coeff = TrapezoidalMotionGenerator.Coeff
    ahead = target > p
    sign = 1.0 if ahead else -1.0
    u = sign * v  # the velocity towards the target
    away = u < 0.0 or (u == 0.0 and ahead)
    stops = sign * (p + sign * 0.5 * v * v / a) < sign * target
    if away:
        first = Coeff(0.0, -u / a, p, v, sign * a)
        t, p = -u / a, p - sign * 0.5 * v * v / a
    elif stops and u < limit:  # already on its way: it started from rest before time 0
        first = Coeff(0.0, 0.0, p, v, -sign * a)
        t, p = -u / a, p - sign * 0.5 * v * v / a
    elif stops:
        first = Coeff(0.0, (u - limit) / a, p, v, -sign * a)
        t = (u - limit) / a - limit / a
        p += sign * (0.5 * (u + limit) * (u - limit) / a - 0.5 * limit * limit / a)
    else:
        first = Coeff(0.0, u / a, p, v, -sign * a)
        t, p = u / a, p + sign * 0.5 * v * v / a
        sign = -sign
    distance = sign * (target - p)
    if distance > limit * limit / a:
        rise, cruise = limit / a, (distance - limit * limit / a) / limit
        peak, risen = limit, 0.5 * limit * limit / a
    else:
        rise, cruise = math.sqrt(max(distance, 0.0) / a), 0.0
        peak, risen = a * rise, 0.5 * a * rise * rise
    second = Coeff(t, t + rise, p, 0.0, sign * a)
    t, p = t + rise, p + sign * risen
    third = Coeff(t, t + cruise, p, sign * peak, 0.0)
    t, p = t + cruise, p + sign * peak * cruise
    return [first, second, third, Coeff(t, t + rise, p, sign * peak, -sign * a)]


def _state(
    pieces: list[TrapezoidalMotionGenerator.Coeff], t: float, total: float, target: float
) -> tuple[float, float, float]:
    stretch = pieces[-1].end_t / total if total > 0.0 else 1.0
    local = t * stretch
    for piece in pieces:
        if local < piece.end_t:
            dt = local - piece.start_t
            p = piece.init_p + piece.init_v * dt + 0.5 * piece.a * dt * dt
            return p, (piece.init_v + piece.a * dt) * stretch, piece.a
    return target, 0.0, 0.0
