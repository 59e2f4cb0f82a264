r"""One joint from any state to rest at a target in minimum time, under limits of velocity, acceleration and jerk.

The time-optimal jerk is at its limit, or zero where the acceleration or the velocity is at its own, and the
acceleration rises, falls and rises, or the other way round [Kroeger 2010; Berscheid, Kroeger 2021, Ruckig]. Rising at
first as far as to the acceleration $\theta$ makes the displacement $P(\theta)$, if the rest of the motion is the
quickest one to rest. P is monotone, so that the motion to a target is the root of one equation. Seen from the position
at which the quickest stop comes to rest, the target is ahead: everything below is mirrored so that this is upwards.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial.safe import safe_divide, safe_sqrt
from ._extremes import clipped, larger, smaller
from ._roots import monotone_root


class State(NamedTuple):
    """Distance that remains to the target, velocity and acceleration."""

    ahead: Float[Array, "n"]
    v: Float[Array, "n"]
    a: Float[Array, "n"]


class Limits(NamedTuple):
    """Limits of velocity, acceleration and jerk."""

    v: Float[Array, "n"]
    a: Float[Array, "n"]
    j: Float[Array, "n"]


class Segments(NamedTuple):
    """Durations and jerks of the segments of a motion, along the first axis."""

    durations: Float[Array, "k n"]
    jerks: Float[Array, "k n"]


def total(segments: Segments) -> Array:
    """Duration of each joint's motion."""
    return jnp.sum(segments.durations, axis=0)


def quickest(state: State, limits: Limits) -> Segments:
    """The minimum-time motion of each joint."""
    return _motion(state, limits, limits.v)


def lasting(state: State, limits: Limits, duration: Array, alone: Array) -> Segments:
    """The motions of the given duration: with a lower speed ahead than the limit, where they are quicker.

    Args:
        state: The initial states.
        limits: The limits.
        duration: Common duration, at least the longest of `alone`.
        alone: Durations of the minimum-time motions.
    """

    def excess(speed: Array) -> Array:
        return total(_motion(state, limits, speed)) - duration

    braked, _ = brake_into_limits(state, limits)
    beyond = jnp.abs(braked.ahead - _stop(braked, limits))  # it is not passed faster than at that speed
    slowest = smaller(0.5 * safe_divide(beyond, duration), limits.v)
    waits = (alone < duration) & (slowest > 0.0)
    early = jnp.where(waits, alone - duration, 0.0)
    speed = monotone_root(excess, (slowest, jnp.zeros_like(alone) + duration), (limits.v, early))
    return _motion(state, limits, jnp.where(waits, speed, limits.v))


def _motion(state: State, limits: Limits, speed: Array) -> Segments:
    """The quickest motion whose speed towards the target, seen from where it would stop, is at most `speed`."""
    state, into = brake_into_limits(state, limits)
    sign = jnp.where(state.ahead < _stop(state, limits), -1.0, 1.0).astype(state.v.dtype)
    state = State(*(sign * x for x in state))
    state, below = _brake(state, limits, speed, jnp.where(speed < limits.v, 0.0, -limits.v))
    onwards = joined(below, _ahead(state, limits, speed))
    return joined(into, Segments(onwards.durations, sign[None] * onwards.jerks))


def joined(first: Segments, second: Segments) -> Segments:
    """One after the other."""
    return Segments(*(jnp.concatenate(pair) for pair in zip(first, second, strict=True)))


def advance(state: State, t: Array, jerk: Array) -> State:
    """The state after the time t."""
    ahead = state.ahead - t * (state.v + t * (0.5 * state.a + t * jerk / 6.0))
    return State(ahead, state.v + t * (state.a + 0.5 * t * jerk), state.a + t * jerk)


def run(state: State, segments: Segments) -> State:
    """The state after the segments."""
    for t, jerk in zip(segments.durations, segments.jerks, strict=True):
        state = advance(state, t, jerk)
    return state


def _fall(v: Array, a: Array, limits: Limits) -> tuple[Array, Array, Array]:
    """Valley of the acceleration, time there, and time of the rise, of the quickest motion from v down to rest."""
    A, J = limits.a, limits.j
    valley = safe_sqrt(larger(0.5 * a * a + J * v, 0.0))
    flat = larger((v + 0.5 * a * a / J) / A - A / J, 0.0)
    valley = smaller(valley, A)
    return -valley, flat, valley / J


def _stop(state: State, limits: Limits) -> Array:
    """Displacement of the quickest stop."""
    sign = jnp.where(state.v + state.a * jnp.abs(state.a) / (2.0 * limits.j) < 0.0, -1.0, 1.0).astype(state.v.dtype)
    v, a = sign * state.v, sign * state.a
    valley, flat, rise = _fall(v, a, limits)
    durations = jnp.stack([(a - valley) / limits.j, flat, rise])
    jerks = jnp.stack([-limits.j, jnp.zeros_like(flat), limits.j])
    return -sign * run(State(jnp.zeros_like(v), v, a), Segments(durations, jerks)).ahead


def brake_into_limits(state: State, limits: Limits) -> tuple[State, Segments]:
    """Brings the acceleration into its limit, then the velocity."""
    V, A, J = limits
    excess, sign = larger(jnp.abs(state.a) - A, 0.0), jnp.sign(state.a)
    first = Segments((excess / J)[None], (-sign * J)[None])
    state = run(state, first)
    state = state._replace(a=clipped(state.a, -A, A))
    falling = _too_fast(State(*(-x for x in state)), limits, V) & ~_too_fast(state, limits, V)
    sign = jnp.where(falling, -1.0, 1.0).astype(A.dtype)
    mirrored, then = _brake(State(*(sign * x for x in state)), limits, V, -V)
    segments = joined(first, Segments(then.durations, sign[None] * then.jerks))
    return State(*(sign * x for x in mirrored)), segments


def _too_fast(state: State, limits: Limits, speed: Array) -> Array:
    """Whether the velocity is above `speed`, or will be."""
    _, v, a = state
    return (v > speed) | ((a > 0.0) & (v + 0.5 * a * a / limits.j > speed))


def _brake(state: State, limits: Limits, speed: Array, floor: Array) -> tuple[State, Segments]:
    """Brings the velocity down to `speed`, but not below `floor`."""
    A, J = limits.a, limits.j
    _, v, a = state
    to_speed = (a + safe_sqrt(larger(a * a + 2.0 * J * (v - speed), 0.0))) / J
    to_floor = (a + safe_sqrt(larger(0.5 * a * a + J * (v - floor), 0.0))) / J
    first, to_valley = smaller(to_speed, to_floor), (a + A) / J
    at_valley = v + to_valley * (a - 0.5 * J * to_valley)
    held = smaller((at_valley - speed) / A, (at_valley - floor) / A - 0.5 * A / J)
    durations = jnp.stack([smaller(first, to_valley), jnp.where(to_valley < first, held, 0.0)])
    needed = _too_fast(state, limits, speed)
    durations = jnp.where(needed[None], larger(durations, 0.0), 0.0)
    segments = Segments(durations, jnp.stack([-J, jnp.zeros_like(J)]))
    return run(state, segments), segments


def level(state: State, limits: Limits, reached: Array) -> Array:
    """The acceleration after which falling to zero leads to a velocity, continued beyond its limit."""
    A, J = limits.a, limits.j
    square = larger(0.5 * state.a * state.a + J * (reached - state.v), 0.0)
    return jnp.where(square <= A * A, safe_sqrt(square), A + larger(square / A - A, 0.0))


def least_level(state: State, limits: Limits, final: Array) -> Array:
    """The acceleration to which the quickest motion to the velocity `final` rises; that at first, if it falls."""
    falls = state.v + state.a * jnp.abs(state.a) / (2.0 * limits.j) >= final
    return jnp.where(falls, state.a, level(state, limits, final))


def rising(state: State, limits: Limits, theta: Array, cruise: Array, final: Array | float = 0.0) -> Segments:
    """Up to the acceleration `theta`, then as quickly as possible to the velocity `final`, with a cruise at the top."""
    J = limits.j
    peak, flat, top = summit(state, limits, theta)
    rise = larger(peak - state.a, 0.0) / J
    valley, low, end = _fall(top - final, peak, limits)
    to_zero = larger(peak, 0.0) / J
    durations = [rise, flat, to_zero, cruise, (smaller(peak, 0.0) - valley) / J, low, end]
    lasts = jnp.stack(jnp.broadcast_arrays(*(larger(t, 0.0) for t in durations)))
    no = jnp.zeros_like(J)
    jerks = (jnp.broadcast_to(x, theta.shape) for x in (J, no, -J, no, -J, no, J))
    return Segments(lasts, jnp.stack(list(jerks)))


def summit(state: State, limits: Limits, theta: Array) -> tuple[Array, Array, Array]:
    """Peak of the acceleration, how long it is held, and the velocity then."""
    A, J = limits.a, limits.j
    peak, flat = smaller(theta, A), larger(theta - A, 0.0) / J
    rise = larger(peak - state.a, 0.0) / J
    return peak, flat, state.v + rise * (state.a + 0.5 * J * rise) + peak * flat


def _ahead(state: State, limits: Limits, speed: Array) -> Segments:
    """The quickest motion to a target that is not before the stop, at most at `speed`."""
    no = jnp.zeros_like(state.v)

    def short(theta: Array) -> Array:
        return run(state, rising(state, limits, theta, no)).ahead

    least, most = least_level(state, limits, no), level(state, limits, speed)
    most = larger(least, most)
    left = short(most)
    cruises = left >= 0.0
    theta = monotone_root(short, (least, short(least)), (most, left))
    theta = jnp.where(cruises, most, theta)
    return rising(state, limits, theta, jnp.where(cruises, safe_divide(left, speed), 0.0))
