"""Time-optimal synchronized trapezoidal velocity profiles for several joints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_size
from .._errors import ArgumentError
from .._jit import jit_public
from .._result import Result
from ..spatial.safe import safe_divide, safe_sqrt


class ProfileSamples(Result):
    """A profile at some times.

    Attributes:
        position: Positions [rad, m].
        velocity: Velocities [rad/s, m/s].
        acceleration: Accelerations [rad/s^2, m/s^2].
    """

    position: Float[Array, "... n"]
    velocity: Float[Array, "... n"]
    acceleration: Float[Array, "... n"]


def at_known_times(samples: ProfileSamples, times: Float[Array, "... 1"]) -> ProfileSamples:
    """The samples, NaN where the time is."""
    return jax.tree.map(lambda x: jnp.where(jnp.isnan(times), jnp.nan, x), samples)


class TrapezoidalProfile(Result):
    """A motion with three phases for each joint: acceleration to the cruise speed, cruise, and deceleration.

    Attributes:
        start: Position at time 0 [rad, m].
        start_velocity: Velocity at time 0 [rad/s, m/s].
        target: Position at the end [rad, m].
        cruise: Velocity of the second phase [rad/s, m/s].
        acceleration: Acceleration of the first phase [rad/s^2, m/s^2]; opposite to the velocity if the joint brakes.
        deceleration: Acceleration of the third phase [rad/s^2, m/s^2].
        duration: Duration, the same for all joints [s].
    """

    start: Float[Array, "n"]
    start_velocity: Float[Array, "n"]
    target: Float[Array, "n"]
    cruise: Float[Array, "n"]
    acceleration: Float[Array, "n"]
    deceleration: Float[Array, "n"]
    duration: Float[Array, ""]

    def evaluate(self, t: Float[Array, "..."]) -> ProfileSamples:
        """Position, velocity and acceleration at the times `t` [s], of any shape.

        Before 0 the state is that at 0, after the end the target at rest, both with zero acceleration. Where the
        acceleration jumps, it is that of the following phase.

        Raises:
            DtypeError: `t` is not an array of floats.
        """
        return _evaluate(self, check_array(t, "t"))


def trapezoidal_profile(
    start: Float[Array, "n"],
    target: Float[Array, "n"],
    velocity_limit: Float[Array, "n"],
    acceleration_limit: Float[Array, "n"],
    *,
    start_velocity: Float[Array, "n"] | None = None,
    minimum_time: Float[Array, ""] | float = 0.0,
) -> TrapezoidalProfile:
    r"""The minimum-time synchronized motion to rest at `target` under limits of velocity and acceleration.

    Each joint brakes or accelerates to a cruise speed w, cruises, and brakes. With full braking it would come to rest
    at $q_0 + v_0 |v_0| / 2a$; let E be the distance from there to the target, and u the initial velocity in that
    direction. The time-optimal w is $\min(v_{max}, \sqrt{a D})$ with $D = E + \max(u, 0)^2 / a$. The slowest joint sets
    the common duration T, unless `minimum_time` does. The others cruise at the w for which they take as long, which has
    a closed form: with $S = T + u / a$ it is $2D / (S + \sqrt{S^2 - 4D / a})$, or if that is less than u,
    $E / (T - u / a)$. A joint that is above its speed limit, or cannot stop before the target, brakes first.

    It is differentiable. The duration is not smooth where another joint becomes the slowest; at rest on the target,
    where a root has an infinite slope, its derivative is defined as zero.

    Args:
        start: Positions at time 0 [rad, m].
        target: Positions at the end [rad, m].
        velocity_limit: Maximum speeds [rad/s, m/s]; infinity is no limit.
        acceleration_limit: Maximum accelerations [rad/s^2, m/s^2].
        start_velocity: Velocities at time 0 [rad/s, m/s]; default is rest.
        minimum_time: Minimum duration [s].

    Returns:
        The profile. If a traced limit is invalid, the duration is NaN.

    Raises:
        ArgumentError: A limit is not positive, an acceleration limit or another value is not finite, or `minimum_time`
            is negative.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape than `start`.

    Example:
        One radian at 1 rad/s and 2 rad/s^2: half a second each to accelerate, to cruise and to brake.

        >>> profile = trapezoidal_profile(jnp.zeros(1), jnp.ones(1), jnp.ones(1), 2.0 * jnp.ones(1))
        >>> float(profile.duration), float(profile.evaluate(jnp.array(0.75)).position[0])
        (1.5, 0.5)
    """
    start = check_array(start, "start", (None,))
    n = start.shape
    still = jnp.zeros_like(start) if start_velocity is None else start_velocity
    vectors = {
        "start": start,
        "start_velocity": still,
        "target": target,
        "velocity_limit": velocity_limit,
        "acceleration_limit": acceleration_limit,
    }
    arrays = {name: check_array(x, name, n, "that of start") for name, x in vectors.items()}
    dtype = jnp.result_type(*arrays.values())
    for name, x in arrays.items():
        check_numbers(x, name, positive=name.endswith("_limit"), bounded=name != "velocity_limit")
    arrays["minimum_time"] = check_size(minimum_time, "minimum_time")
    return _profile(*(x.astype(dtype) for x in arrays.values()))


def check_numbers(x: Array, name: str, *, positive: bool, bounded: bool) -> None:
    """Raises if known values of an argument are not positive or not finite."""
    if isinstance(x, Tracer):
        return
    bad = np.isnan(x) | (bounded & np.isinf(x)) | (positive & ~(np.asarray(x) > 0))
    if bad.any():
        k = int(np.argmax(bad))
        need = " and ".join([*(["positive"] if positive else []), *(["finite"] if bounded else [])])
        raise ArgumentError(f"{name}{f'[{k}]' if x.ndim else ''} must be {need}, got {np.asarray(x).reshape(-1)[k]}")


@jit_public()
def _profile(
    start: Array, start_velocity: Array, target: Array, limit: Array, acceleration: Array, minimum_time: Array
) -> TrapezoidalProfile:
    v0, a = start_velocity, acceleration
    beyond = target - start - v0 * jnp.abs(v0) / (2.0 * a)
    direction = jnp.where(beyond < 0.0, -1.0, 1.0).astype(a.dtype)
    E, u = direction * beyond, direction * v0
    D = jnp.maximum(direction * (target - start) + u * u / (2.0 * a), 0.0)  # smooth at u = 0, where E is not

    quickest = jnp.minimum(limit, safe_sqrt(a * D))
    overspeed = u > quickest  # then the first part brakes to the limit
    alone = jnp.where(overspeed, u / a + safe_divide(E, quickest), (quickest - u) / a + safe_divide(D, quickest))
    alone = jnp.where((D == 0.0) & (u == 0.0), 0.0, alone)
    valid = jnp.all((limit > 0.0) & (a > 0.0) & (a < jnp.inf))
    duration = jnp.where(valid, jnp.maximum(minimum_time, jnp.max(alone, initial=0.0)), jnp.nan)

    S = duration + u / a
    above = safe_divide(2.0 * D, S + safe_sqrt(jnp.maximum(S * S - 4.0 * D / a, 0.0)))
    below = safe_divide(E, duration - u / a)
    slows = (u > 0.0) & (duration * u > E + u * u / a)  # cruising at u it would arrive early
    w = jnp.where(alone >= duration, quickest, jnp.where(slows, below, above))
    return TrapezoidalProfile(
        start=start,
        start_velocity=v0,
        target=target,
        cruise=direction * w,
        acceleration=direction * jnp.where(w < u, -a, a),
        deceleration=-direction * a,
        duration=duration,
    )


@jit_public()
def _evaluate(profile: TrapezoidalProfile, t: Array) -> ProfileSamples:
    times = t.astype(profile.start.dtype)[..., None]
    shape = (1,) * t.ndim + profile.start.shape
    q0, v0, q1, w, a, b = (
        x.reshape(shape)
        for x in (
            profile.start,
            profile.start_velocity,
            profile.target,
            profile.cruise,
            profile.acceleration,
            profile.deceleration,
        )
    )
    rise = (w - v0) / a
    inside = jnp.clip(times, 0.0, profile.duration)
    left = profile.duration - inside  # from the target backwards, so that it is met exactly
    first, last, over = inside < rise, left < -w / b, times >= profile.duration
    position = jnp.where(
        first,
        q0 + (v0 + 0.5 * a * inside) * inside,
        jnp.where(last, q1 + 0.5 * b * left * left, q0 + 0.5 * (v0 + w) * rise + w * (inside - rise)),
    )
    velocity = jnp.where(first, v0 + a * inside, jnp.where(last, -b * left, w))
    acceleration = jnp.where(first, a, jnp.where(last, b, 0.0))
    samples = ProfileSamples(
        position=jnp.where(over, q1, position),
        velocity=jnp.where(over, 0.0, velocity),
        acceleration=jnp.where(over | (times < 0.0), 0.0, acceleration),
    )
    return at_known_times(samples, times)
