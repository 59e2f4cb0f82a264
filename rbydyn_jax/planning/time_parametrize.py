"""The fastest timing of a geometric path under the limits of a robot."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._check import check_array, check_finite, check_flag, check_integer, check_not_negative
from .._errors import ArgumentError, ModelError
from .._jit import jit_public
from ..model.model import Model, check_model
from ..spatial.safe import safe_sqrt
from ..xla.batch_last import in_lanes
from ..xla.control_flow import fori_loop, while_loop
from ..xla.tiling import tiled
from ._jerk_timing import jerk_limited, stretched
from ._path import chord_lengths, spline
from ._path_limits import (
    Forces,
    Grid,
    Limits,
    admissible_states,
    grid,
    intervals_of,
    joint_limits,
    largest_states,
    limits_of,
    rows,
)
from ._reachability import Profile, Reachable, Stages, States, controllable, forward, interval_times, rounding
from ._roots import monotone_root
from .problem import positive
from .profiles import check_numbers
from .timed_path import TimedPath, TimingStatus

_VISCOUS_PASSES = 7
_SLOWINGS = 4  # of a whole motion, until all forces are within their limits
_NARROWINGS = 12  # of the limits of force, from or to a speed, until all forces are within the real ones
_TILE = 64  # paths that are passed together
_INTERVALS, _FEWEST = 160, 8  # by default, on the whole path, and between two waypoints at least
_SPANS = 32  # those under a limit of jerk


def time_parametrize(
    model: Model,
    path: Float[Array, "k nq"],
    *,
    knots: Float[Array, "k"] | None = None,
    duration: Float[Array, ""] | float | None = None,
    jerk_limit: Float[Array, "nv"] | None = None,
    start_speed: Float[Array, ""] | float | None = None,
    end_speed: Float[Array, ""] | float | None = None,
    torques: bool = True,
    intervals: int | None = None,
) -> TimedPath:
    r"""The fastest timing of the path through some waypoints that keeps the limits of the robot.

    The path is the natural cubic spline through the waypoints. Its timing, with constant $\ddot s$ on each interval of
    a grid, is found by reachability analysis [Pham, Pham 2018]. Limits of velocity, acceleration and force are those of
    the model, kept on each interval and not only at its ends, to the fourth order of its length. Coulomb and viscous
    friction count in full against the limit of force, whatever their direction; where viscous friction takes much of
    the effort and the path turns back, a motion from rest to rest is slowed down as a whole until the limits are
    kept, one from or to a speed is timed within narrower limits of force, or no timing is found although there is one.
    The duration is above the shortest one by the first order: about 0.15 % on random paths of an arm through five
    waypoints. With `jerk_limit` a barrier method finds a local minimum among timings of limited resolution, which is
    stretched until it is within the limits between its nodes: 0.4 to 3 % above the shortest on straight paths, more
    on winding ones. Limits of position are not looked at: between the waypoints a spline may swing out;
    `check_trajectory` tells.

    Pure: works under `jit`, `vmap` and `grad`. The duration is differentiable where the set of active limits does not
    change. With `jerk_limit` it is not continuous in the waypoints, since the search may end in another minimum: it
    jumps by some milliseconds. Its gradient is that of the timing that was found, with its active limits held. Where
    two traced waypoints in a row are equal and no knots are given, and where strong viscous friction narrows the limits
    of force, it is NaN.

    Args:
        model: The robot; each joint has one coordinate.
        path: Waypoints [rad, m]; those of a `Trajectory` are `sample_trajectory(trajectory, 17).q`.
        knots: Path parameters of the waypoints, increasing from 0 to 1; default is in proportion to the distances.
        duration: Time for the motion [s]: the fastest timing is slowed down within the limits, to a combination with
            the slowest one. Default is the shortest.
        jerk_limit: Maximum joint jerks [rad/s^3, m/s^3]; default is none.
        start_speed: Path velocity $\dot s$ at the start [1/s]; default is at rest. Not with `jerk_limit`.
        end_speed: Path velocity at the end [1/s].
        torques: Whether joint forces are limited. Static.
        intervals: Number of intervals between two waypoints; default is such that there are about 160 on the path,
            and at least 8; with a limit of jerk some 32 on the path. Static.

    Returns:
        The timed path. `status` is a `TimingStatus`: NOT_FEASIBLE if no timing is found that keeps the limits, as where
        gravity alone exceeds them or a joint that has to move has one of zero, or from or to these speeds; TOO_SHORT
        if `duration` is less than the shortest, which is returned; NOT_FINITE if traced waypoints or a traced duration
        are not finite, traced knots do not increase from 0 to 1, or a traced limit or speed is NaN or negative.

    Raises:
        ArgumentError: A value is wrong: a waypoint is not finite, two in a row are equal, `knots` do not increase from
            0 to 1, `duration` is not positive, a speed is negative, or there are less than two waypoints.
        DtypeError: An argument is of another type.
        ModelError: A joint has more than one coordinate.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.planning import time_parametrize
        >>> arm = robots.two_link_arm()
        >>> timed = time_parametrize(arm, jnp.array([[0.0, 0.0], [0.4, -0.3], [0.8, 0.6]]))
        >>> at = timed.evaluate(jnp.linspace(0.0, timed.duration, 401))
        >>> bool(timed.solved), bool((jnp.abs(at.v) <= (1 + 1e-6) * arm.velocity_limit[None]).all())
        (True, True)
    """
    check_model(model)
    _check_joints(model)
    path = check_array(path, "path", (None, model.nq), "waypoints, model.nq")
    if path.shape[0] < 2:
        raise ArgumentError(f"path must have at least two waypoints, got {path.shape[0]}")
    check_finite(path, "path")
    if not isinstance(path, Tracer) and knots is None:
        _check_distances(np.asarray(path))
    if knots is not None:
        knots = _checked_knots(knots, len(path)).astype(path.dtype)
    ends = []
    for name, speed in (("start_speed", start_speed), ("end_speed", end_speed)):
        if speed is not None and jerk_limit is not None:
            raise ArgumentError(f"{name} must be None with a jerk_limit: such a timing is from rest to rest")
        check_not_negative(speed, name)
        ends.append(check_array(0.0 if speed is None else speed, name, ()).astype(path.dtype))
    if jerk_limit is not None:
        jerk_limit = check_array(jerk_limit, "jerk_limit", (model.nv,), "model.nv").astype(path.dtype)
        check_numbers(jerk_limit, "jerk_limit", positive=True, bounded=False)
    asked = None if duration is None else positive(duration, "duration").astype(path.dtype)
    wanted, fewest = (_INTERVALS, _FEWEST) if jerk_limit is None else (_SPANS, 1)
    default = max(fewest, -(-wanted // (len(path) - 1)))
    count = default if intervals is None else check_integer(intervals, "intervals", 1)
    model = jax.tree.map(lambda x: x.astype(path.dtype), model)
    torques = check_flag(torques, "torques")
    if jerk_limit is not None:
        return _time_smoothly(model, path, knots, asked, jerk_limit, torques, count)
    at_rest = start_speed is None and end_speed is None
    return _time(model, path, knots, asked, ends[0], ends[1], torques, count, at_rest)


def _check_joints(model: Model) -> None:
    for name, joint in zip(model.joint_names, model.tree.joints, strict=True):
        if joint.nq > 1 or joint.nq != joint.nv:
            raise ModelError(f"joint {name!r} has no single coordinate: a spline through waypoints does not move it")


def _check_distances(path: np.ndarray) -> None:
    still = np.flatnonzero((np.diff(path, axis=0) == 0.0).all(axis=1))
    if still.size:
        raise ArgumentError(f"path[{still[0] + 1}] must differ from path[{still[0]}], or knots must be given")


def _checked_knots(knots: Array, count: int) -> Array:
    array = check_array(knots, "knots", (count,), "number of waypoints")
    if not isinstance(array, Tracer):
        known = np.asarray(array)
        if not _increase(known):
            raise ArgumentError(f"knots must increase from 0 to 1, got {known.tolist()}")
    return array


def _increase(knots: Array | np.ndarray) -> Any:
    """Whether path parameters increase from 0 to 1."""
    return (knots[1:] > knots[:-1]).all() & (knots[0] == 0.0) & (abs(knots[-1] - 1.0) <= 1e-6)


def _is_meaningful(
    model: Model, path: Array, knots: Array | None, torques: bool, duration: Array | None, other: Array
) -> Bool[Array, ""]:
    """Whether path and duration are finite, knots increase, and no limit or other number is negative or NaN."""
    kinds = (model.velocity_limit, model.acceleration_limit, *((model.effort_limit,) if torques else ()))
    finite = jnp.isfinite(path).all() & (True if duration is None else jnp.isfinite(duration))
    usable = finite & (jnp.stack(kinds) >= 0.0).all() & (other >= 0.0).all()
    return usable if knots is None else usable & _increase(knots)


def _movable(model: Model, path: Array, *others: Array) -> tuple[Model, Bool[Array, ""]]:
    """Without limits of zero of joints that rest, and whether no other limit of motion is zero."""
    rests = (path == path[:1]).all(axis=0)

    def freed(limit: Array) -> Array:
        return jnp.where(rests & (limit == 0.0), jnp.inf, limit)

    kinds = [freed(model.velocity_limit), freed(model.acceleration_limit)]
    movable = jnp.stack([(x != 0.0) | rests for x in (*kinds, *others)]).all()
    return eqx.tree_at(lambda m: (m.velocity_limit, m.acceleration_limit), model, tuple(kinds)), movable


@jit_public("torques", "intervals", "at_rest")
def _time(
    model: Model,
    path: Array,
    knots: Array | None,
    duration: Array | None,
    start_speed: Array,
    end_speed: Array,
    torques: bool,
    intervals: int,
    at_rest: bool,
) -> TimedPath:
    geometry = spline(path, chord_lengths(path) if knots is None else knots)
    model, movable = _movable(model, path)
    points = grid(model, geometry, intervals, torques)
    start, end, steps, slack = start_speed**2, end_speed**2, jnp.diff(points.s), rounding(path)
    reach, profile, *slowest = _profiles(
        model, points, len(path) - 1, start, end, at_rest=at_rest, slow=duration is not None
    )
    feasible = movable & _leads(reach, start) & (end <= largest_states(model, points)[-1] * (1.0 + slack))
    profile = _within_viscous(model, points, profile)
    shortest = jnp.sum(interval_times(profile.x, steps))
    status = jnp.where(feasible & (shortest < jnp.inf), TimingStatus.SOLVED, TimingStatus.NOT_FEASIBLE)
    if duration is not None:
        too_short = (status == TimingStatus.SOLVED) & (duration < shortest * (1.0 - slack))
        status = jnp.where(too_short, TimingStatus.TOO_SHORT, status)
        profile, longest = _slowed(profile, slowest[0], steps, duration, shortest)
        too_long = (status == TimingStatus.SOLVED) & (duration > longest * (1.0 + slack))
        status = jnp.where(too_long, TimingStatus.NOT_FEASIBLE, status)
    beyond = (status == TimingStatus.SOLVED) & (_excess(model, points, profile) > _tolerance(path))
    status = jnp.where(beyond, TimingStatus.NOT_FEASIBLE, status)
    lasting = interval_times(profile.x, steps)
    times = jnp.append(jnp.zeros_like(lasting[:1]), jnp.cumsum(lasting))
    known = _is_meaningful(model, path, knots, torques, duration, jnp.stack([start_speed, end_speed]))
    times = jnp.where(known, times, jnp.nan)
    status = jnp.where(jnp.isnan(times[-1]), TimingStatus.NOT_FINITE, status)
    phase = jnp.stack([points.s[:-1], safe_sqrt(jnp.maximum(profile.x[:-1], 0.0)), 0.5 * profile.u], axis=1)
    return TimedPath(geometry, times, phase, status)


@jit_public("torques", "intervals")
def _time_smoothly(
    model: Model,
    path: Array,
    knots: Array | None,
    duration: Array | None,
    jerk_limit: Array,
    torques: bool,
    intervals: int,
) -> TimedPath:
    geometry = spline(path, chord_lengths(path) if knots is None else knots)
    model, movable = _movable(model, path, jerk_limit)
    phase = jerk_limited(model, geometry, jerk_limit, torques, intervals * (len(path) - 1))
    feasible, shortest = phase.feasible & movable, phase.times[-1]
    status = jnp.where(feasible, TimingStatus.SOLVED, TimingStatus.NOT_FEASIBLE)
    if duration is not None:
        too_short = feasible & (duration < shortest * (1.0 - rounding(path)))
        status = jnp.where(too_short, TimingStatus.TOO_SHORT, status)
        phase = stretched(phase, jnp.maximum(duration / shortest, 1.0))
    known = _is_meaningful(model, path, knots, torques, duration, jerk_limit)
    status = jnp.where((jnp.isfinite(phase.times[-1]) | ~feasible) & known, status, TimingStatus.NOT_FINITE)
    return TimedPath(geometry, jnp.where(known, phase.times, jnp.nan), phase.coefficients, status)


def _profiles(
    model: Model, points: Grid, segments: int, start: Array, end: Array, *, at_rest: bool, slow: bool
) -> tuple[Reachable, *tuple[Profile, ...]]:
    """The states that the limits leave, the fastest profile, and the slowest if wanted.

    Viscous forces are concave in the state: their tangents at states like those of the last pass are above them. Where
    the passes do not settle, forces exceed their limits. A motion from rest to rest can be slowed down later. For any
    other the limits are narrowed by the excess, until the real ones are kept or nothing is left.
    """

    def passes(model: Model, points: Grid, around: Array, end: Array, start: Array | None, slow: bool) -> tuple:
        states, least = admissible_states(model, points, segments, around)
        both = tiled(in_lanes(partial(_passes, segments, slow)), tile=_TILE)
        return both(limits_of(model), points, around, states, least, end, start)

    known = jax.lax.stop_gradient((model, points))

    def go_on(carry: tuple) -> Array:
        count, _, change = carry
        return (count < _VISCOUS_PASSES) & (change > 1e-9) & jnp.any(model.damping > 0.0)

    def again(carry: tuple) -> tuple:
        count, around, _ = carry
        first = count == 0  # without viscous forces: tangents at the largest states are far above them
        damping = jnp.where(first, 0.0, known[0].damping)
        robot = eqx.tree_at(lambda m: m.damping, known[0], damping)
        reach, profile = passes(robot, known[1], around, jax.lax.stop_gradient(end), None, False)
        # Half of the way, since whole steps can alternate; slower where nothing is left.
        x = jnp.where(first, profile.x, 0.5 * (around + profile.x))
        x = jnp.where(reach.exists, x, 0.25 * around)
        return count + 1, x, jnp.max(jnp.abs(x - around)) / jnp.max(around)

    around = largest_states(model, points)
    if points.forces is not None:
        begin = (jnp.asarray(0), around, jnp.asarray(jnp.inf, around.dtype))
        _, around, _ = while_loop(go_on, again, jax.lax.stop_gradient(begin))
        if not at_rest:
            ends = jax.lax.stop_gradient((end, start))

            def exceeds(carry: tuple) -> Array:
                count, _, _, excess = carry
                return (count < _NARROWINGS) & (excess > close) & jnp.any(model.damping > 0.0)

            def narrower(carry: tuple) -> tuple:
                count, around, share, _ = carry
                reach, profile = passes(_narrowed(known[0], share), known[1], around, *ends, False)
                excess = jnp.where(_leads(reach, ends[1]), _excess(*known, profile), 0.0)
                x = 0.5 * (around + profile.x)
                kept = excess <= close
                return count + 1, jnp.where(kept, around, x), jnp.where(kept, share, share / (1.0 + excess)), excess

            close, one = 0.5 * _tolerance(around), jnp.ones_like(end)
            begin = (jnp.asarray(0), around, one, jnp.inf * one)
            _, around, share, _ = while_loop(exceeds, narrower, jax.lax.stop_gradient(begin))
            reach, *profiles = passes(_narrowed(model, share), points, around, end, start, slow)
            return reach, *(Profile(_sloped(p.x, share == 1.0), _sloped(p.u, share == 1.0)) for p in profiles)
    return passes(model, points, around, end, start, slow)


@jax.custom_jvp
def _sloped(x: Array, known: Array) -> Array:
    """`x`, whose derivatives are NaN unless they are known."""
    return x


@_sloped.defjvp
def _(given: tuple[Array, Array], moved: tuple[Array, Any]) -> tuple[Array, Array]:
    x, known = given
    return x, jnp.where(known, 1.0, jnp.nan).astype(x.dtype) * moved[0]


def _leads(reach: Reachable, start: Array) -> Bool[Array, ""]:
    """Whether the end can be reached from the start."""
    slack = rounding(start)
    within = (start >= reach.low[0] * (1.0 - slack)) & (start <= reach.high[0] * (1.0 + slack))
    return reach.exists & within


def _passes(
    segments: int,
    slow: bool,
    limits: Limits,
    points: Grid,
    around: Array,
    states: States,
    least: Array,
    end: Array,
    start: Array | None,
) -> tuple[Reachable, *tuple[Profile, ...]]:
    """Backwards and forwards over the grid, from the largest state if no start is given; in lanes of paths."""
    at = intervals_of(points, segments, around)
    stages = Stages(limits, at, at.step, least)
    reach = controllable(rows, stages, states, end)
    begin = reach.high[0] if start is None else start
    return reach, *(forward(rows, stages, reach, begin, slow=x) for x in (False, True)[: 1 + slow])


def _within_viscous(model: Model, points: Grid, profile: Profile) -> Profile:
    r"""A profile from rest to rest, slowed down as a whole until the forces at nodes and middles are within the limits.

    Between nodes viscous forces are bounded from above by numbers that hold for states near those of the last pass
    alone. If all speeds are the w-th part, a force is $w^2 (M q' u + (M q'' + C q') x) + w d |q'| \sqrt x + g$: the w
    at which it first meets its limit is the largest part that this leaves.
    """
    if points.forces is None:
        return profile
    x, u = profile.x, profile.u
    still = (x[0] == 0.0) & (x[-1] == 0.0)
    moving, viscous, rest = _forces(model, points, points.forces, profile)
    left = jnp.maximum(model.effort_limit - model.friction, 0.0)[None]

    def slower(_: int, w: Array) -> Array:
        parts = []
        for sign in (1.0, -1.0):
            a, b, c = sign * moving, viscous, sign * rest - left
            beyond = w * (a * w + b) + c > rounding(w) * left
            beyond &= (b > 0.0) & (c < 0.0) & still
            inside = jnp.where(beyond, b * b - 4.0 * a * c, 1.0)
            root = -2.0 * c / jnp.where(beyond, b + safe_sqrt(jnp.maximum(inside, 0.0)), 1.0)
            parts.append(jnp.min(jnp.where(beyond, root, w)))
        return jnp.minimum(*parts)

    # A force that was within its limit may be so no longer, if what is slowed down has helped.
    w = fori_loop(0, _SLOWINGS, slower, jnp.ones((), x.dtype))
    return Profile(w * w * x, w * w * u)


def _forces(model: Model, points: Grid, forces: Forces, profile: Profile) -> tuple[Array, Array, Array]:
    """Forces that move, those of viscous friction and those at rest: of all intervals at start, middle and end."""
    count = len(points.s) - 1
    x = profile.x

    def samples(y: Array) -> Array:
        return jnp.concatenate([y[:count], y[count + 1 :], y[1 : count + 1]])

    states = jnp.concatenate([x[:-1], 0.5 * (x[:-1] + x[1:]), x[1:]])
    control, state, rest = (samples(y) for y in forces)
    moving = control * jnp.tile(profile.u, 3)[:, None] + state * states[:, None]
    viscous = model.damping[None] * jnp.abs(samples(points.at.first)) * safe_sqrt(jnp.maximum(states, 0.0))[:, None]
    return moving, viscous, rest


def _excess(model: Model, points: Grid, profile: Profile) -> Array:
    """By how much of its limit the largest force with viscous friction is above it."""
    if points.forces is None:
        return jnp.zeros_like(profile.x[0])
    moving, viscous, rest = jax.lax.stop_gradient(_forces(model, points, points.forces, profile))
    limit = joint_limits(model.effort_limit)
    left = limit.bound - jnp.minimum(model.friction * limit.scale, limit.bound)
    beyond = (jnp.abs(moving + rest) + viscous) * limit.scale[None] - left[None]
    return jnp.max(jnp.where(viscous > 0.0, beyond, 0.0), initial=0.0)


def _tolerance(x: Array) -> float:
    """Of the excess of a force, relative to its limit."""
    return float(jnp.finfo(x.dtype).eps) ** 0.5


def _narrowed(model: Model, share: Array) -> Model:
    """The robot with a share of what friction leaves of its limits of force."""
    left = jnp.maximum(model.effort_limit - model.friction, 0.0)
    limit = jnp.minimum(model.friction, model.effort_limit) + share * left
    return eqx.tree_at(lambda m: m.effort_limit, model, jnp.where(share < 1.0, limit, model.effort_limit))


def _slowed(fast: Profile, slow: Profile, steps: Array, duration: Array, shortest: Array) -> tuple[Profile, Array]:
    """The combination of two profiles that lasts as long as asked, and the duration of the slow one."""

    def mixed(part: Array) -> Array:
        return slow.x + part * (fast.x - slow.x)

    def excess(part: Array) -> Array:  # nearly linear
        return 1.0 / duration**2 - 1.0 / jnp.sum(interval_times(mixed(part), steps)) ** 2

    longest = jnp.sum(interval_times(slow.x, steps))
    one, wanted = jnp.ones_like(duration), (duration > shortest) & (duration <= longest)
    end = jnp.where(wanted, excess(one), 0.0)
    part = monotone_root(excess, (0.0 * one, excess(0.0 * one)), (one, end))
    x = mixed(jnp.where(wanted, part, 1.0))
    return Profile(x, jnp.diff(x) / (2.0 * steps)), longest
