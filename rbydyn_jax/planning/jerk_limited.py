"""Time-optimal synchronized point-to-point motions under limits of velocity, acceleration and jerk."""

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
from ..spatial.safe import safe_divide
from ._moving_target import meeting
from ._third_order import Limits, State, advance, lasting, quickest, total
from .profiles import ProfileSamples, at_known_times, check_numbers


class JerkLimitedProfile(Result):
    """A motion in segments of constant jerk for each joint, to its target.

    Attributes:
        start: Position at time 0 [rad, m].
        start_velocity: Velocity at time 0 [rad/s, m/s].
        start_acceleration: Acceleration at time 0 [rad/s^2, m/s^2].
        target: Position at the end [rad, m].
        target_velocity: Velocity at the end [rad/s, m/s].
        segments: Durations of the segments, some of them zero [s].
        jerks: Jerk of each segment [rad/s^3, m/s^3].
        duration: Duration, the same for all joints [s].
    """

    start: Float[Array, "n"]
    start_velocity: Float[Array, "n"]
    start_acceleration: Float[Array, "n"]
    target: Float[Array, "n"]
    target_velocity: Float[Array, "n"]
    segments: Float[Array, "k n"]
    jerks: Float[Array, "k n"]
    duration: Float[Array, ""]

    def evaluate(self, t: Float[Array, "..."]) -> ProfileSamples:
        """Position, velocity and acceleration at the times `t` [s], of any shape.

        Before 0 the state is that at 0; after the end the joints go on at the velocity of the target, or rest on it.

        Raises:
            DtypeError: `t` is not an array of floats.
        """
        return _evaluate(self, check_array(t, "t"))


def jerk_limited_profile(
    start: Float[Array, "n"],
    target: Float[Array, "n"],
    velocity_limit: Float[Array, "n"],
    acceleration_limit: Float[Array, "n"],
    jerk_limit: Float[Array, "n"],
    *,
    start_velocity: Float[Array, "n"] | None = None,
    start_acceleration: Float[Array, "n"] | None = None,
    target_velocity: Float[Array, "n"] | None = None,
    minimum_time: Float[Array, ""] | float = 0.0,
) -> JerkLimitedProfile:
    r"""The minimum-time synchronized motion to `target` under limits of velocity, acceleration and jerk.

    It starts from any position, velocity and acceleration; what exceeds a limit is brought back first, as quickly as
    the jerk allows. The jerk of a time-optimal motion is at its limit, or zero on a plateau of acceleration or
    velocity, and its sign changes at most twice but for a cruise. Of all motions that first raise the acceleration to
    $\theta$ and then come to rest as quickly as possible, the displacement grows with $\theta$: a root of one
    monotone function, found to rounding error. The durations are those of Ruckig [Berscheid, Kroeger 2021]. The slowest
    joint sets the common duration, unless `minimum_time` does; the others move with a lower speed limit. A joint that
    is at rest on its target, or whose quickest stop ends there, waits.

    With `target_velocity` the joints pass their targets together, at these velocities and without acceleration. A joint
    may then be too late for a duration that is longer than its quickest: of the durations that all joints can keep,
    the smallest is found, as in Ruckig. Those that could be quicker follow the mean of the motions that lead farthest
    ahead and farthest back in this duration, weighted so that it ends on the target.

    A start beyond a limit of velocity from which its acceleration leads beyond the opposite limit may stay there longer
    than it has to.

    It works under `jit`, `vmap` and `grad`. The duration is not smooth where another joint becomes the slowest or a
    plateau appears; at rest on the target, where a root has an infinite slope, its derivative is defined as zero.

    Args:
        start: Positions at time 0 [rad, m].
        target: Positions at the end [rad, m].
        velocity_limit: Maximum speeds [rad/s, m/s].
        acceleration_limit: Maximum accelerations [rad/s^2, m/s^2].
        jerk_limit: Maximum jerks [rad/s^3, m/s^3].
        start_velocity: Velocities at time 0 [rad/s, m/s]; default is rest.
        start_acceleration: Accelerations at time 0 [rad/s^2, m/s^2]; default is zero.
        target_velocity: Velocities at the end [rad/s, m/s]; default is rest.
        minimum_time: Minimum duration [s].

    Returns:
        The profile. If a traced limit or target velocity is invalid, the duration is NaN.

    Raises:
        ArgumentError: A limit is not positive and finite, another value is not finite, a target velocity exceeds its
            limit, or `minimum_time` is negative.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape than `start`.

    Example:
        One radian at 1 rad/s, 2 rad/s^2 and 8 rad/s^3: acceleration takes 0.75 s, the cruise a quarter of a second.

        >>> one = jnp.ones(1)
        >>> profile = jerk_limited_profile(0.0 * one, one, one, 2.0 * one, 8.0 * one)
        >>> float(profile.duration), float(profile.evaluate(jnp.array(0.875)).position[0])
        (1.75, 0.5)

        At half of that speed on the target, braking is shorter:

        >>> passing = jerk_limited_profile(0.0 * one, one, one, 2.0 * one, 8.0 * one, target_velocity=0.5 * one)
        >>> round(float(passing.duration), 4), round(float(passing.evaluate(passing.duration).velocity[0]), 4)
        (1.5, 0.5)
    """
    start = check_array(start, "start", (None,))
    still = jnp.zeros_like(start)
    vectors = {
        "start": start,
        "start_velocity": still if start_velocity is None else start_velocity,
        "start_acceleration": still if start_acceleration is None else start_acceleration,
        "target": target,
        "target_velocity": still if target_velocity is None else target_velocity,
        "velocity_limit": velocity_limit,
        "acceleration_limit": acceleration_limit,
        "jerk_limit": jerk_limit,
    }
    arrays = {name: check_array(x, name, start.shape, "that of start") for name, x in vectors.items()}
    dtype = jnp.result_type(*arrays.values())
    for name, x in arrays.items():
        check_numbers(x, name, positive=name.endswith("_limit"), bounded=True)
    arrays["minimum_time"] = check_size(minimum_time, "minimum_time")
    _check_target_velocity(arrays["target_velocity"], arrays["velocity_limit"])
    return _profile(*(x.astype(dtype) for x in arrays.values()), moving=target_velocity is not None)


def _check_target_velocity(velocity: Array, limit: Array) -> None:
    """Raises if a known velocity of the target is beyond its limit."""
    if isinstance(velocity, Tracer) or isinstance(limit, Tracer):
        return
    beyond = np.abs(np.asarray(velocity)) > np.asarray(limit)
    if beyond.any():
        k = int(np.argmax(beyond))
        raise ArgumentError(f"target_velocity[{k}] must be within its limit {limit[k]}, got {velocity[k]}")


@jit_public("moving")
def _profile(
    start: Array,
    velocity: Array,
    acceleration: Array,
    target: Array,
    target_velocity: Array,
    V: Array,
    A: Array,
    J: Array,
    least: Array,
    *,
    moving: bool,
) -> JerkLimitedProfile:
    known = jnp.stack([V, A, J])
    valid = jnp.all((known > 0.0) & (known < jnp.inf)) & jnp.all(jnp.abs(target_velocity) <= V)
    state, limits = State(target - start, velocity, acceleration), Limits(*jnp.where(valid, known, 1.0))
    if moving:
        segments, duration = meeting(state, limits, jnp.where(valid, target_velocity, 0.0), least)
    else:
        alone = total(quickest(state, limits))
        duration = jnp.maximum(least, jnp.max(alone, initial=0.0))
        segments = lasting(state, limits, duration, alone)
    return JerkLimitedProfile(
        start=start,
        start_velocity=velocity,
        start_acceleration=acceleration,
        target=target,
        target_velocity=target_velocity,
        segments=segments.durations,
        jerks=segments.jerks,
        duration=jnp.where(valid, duration, jnp.nan),
    )


@jit_public()
def _evaluate(profile: JerkLimitedProfile, t: Array) -> ProfileSamples:
    times = t.astype(profile.start.dtype)[..., None, None]
    states = _nodes(profile)
    ends = jnp.cumsum(profile.segments, axis=0)
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends])  # without gaps from rounding; the last segment goes on
    shape = (1,) * t.ndim + begins.shape
    inside = jnp.maximum(times, 0.0)
    until = jnp.concatenate([ends, jnp.full_like(ends[:1], jnp.inf)])
    here = (inside >= begins.reshape(shape)) & (inside < until.reshape(shape))

    def at(x: Array) -> Array:
        """What holds in the segment of each time."""
        return jnp.sum(jnp.where(here, x, 0.0), axis=-2)

    jerks = jnp.concatenate([profile.jerks, jnp.zeros_like(profile.jerks[:1])])
    nodes = State(*(jnp.stack(x) for x in zip(*states, strict=True)))
    since, jerk = at(inside - begins.reshape(shape)), at(jerks.reshape(shape))
    moved = advance(State(*(at(x.reshape(shape)) for x in nodes)), since, jerk)
    after = times[..., 0] - profile.duration  # (..., 1)
    over = after >= 0.0
    target, velocity = (
        jnp.broadcast_to(x.reshape(shape[:-2] + shape[-1:]), moved.v.shape)
        for x in (profile.target, profile.target_velocity)
    )
    rest = profile.duration - ends[-1]
    missed, rate, curve = _correction(profile, advance(states[-1], rest, jnp.zeros_like(rest)).ahead, inside)
    samples = ProfileSamples(
        position=jnp.where(over, target + jnp.maximum(after, 0.0) * velocity, target - moved.ahead + missed),
        velocity=jnp.where(over, velocity, moved.v + rate),
        acceleration=jnp.where(over | (times[..., 0] < 0.0), 0.0, moved.a + curve),
    )
    return at_known_times(samples, times[..., 0])


def _nodes(profile: JerkLimitedProfile) -> list[State]:
    """The states at the beginning of each segment and at the end.

    An acceleration that is zero but for rounding is zero: on a long plateau of velocity it would lead astray.
    """
    states = [State(profile.target - profile.start, profile.start_velocity, profile.start_acceleration)]
    turned = jnp.abs(profile.start_acceleration)
    for length, jerk in zip(profile.segments, profile.jerks, strict=True):
        state = advance(states[-1], length, jerk)
        turned = turned + jnp.abs(jerk) * length
        noise = jnp.where(jnp.abs(state.a) <= 4.0 * jnp.finfo(turned.dtype).eps * turned, state.a, 0.0)
        states.append(state._replace(a=state.a - jax.lax.stop_gradient(noise)))
    return states


def _correction(profile: JerkLimitedProfile, left: Array, t: Array) -> tuple[Array, Array, Array]:
    """What rounding leaves to the target at the end, spread smoothly over the motion; its first two derivatives."""
    left, duration = (x.reshape((1,) * (t.ndim - 2) + (-1,)) for x in (left, profile.duration))
    share = jnp.minimum(safe_divide(t[..., 0], duration), 1.0)
    rate = safe_divide(left, duration)
    return (
        left * share * share * (3.0 - 2.0 * share),
        6.0 * rate * share * (1.0 - share),
        safe_divide(rate * (6.0 - 12.0 * share), duration),
    )
