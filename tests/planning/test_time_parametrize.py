"""Timing of paths: durations of toppra, limits between the points of the grid, status, derivatives, limits of jerk."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    damping_forces,
    friction_forces,
    gravity_forces,
    link_pose,
    rnea,
    robots,
    with_damping,
    with_gravity,
    with_limits,
)
from rbydyn_jax.planning import (
    TimedPath,
    TimingStatus,
    check_trajectory,
    jerk_limited_profile,
    sample_trajectory,
    time_parametrize,
    trapezoidal_profile,
)
from rbydyn_jax.planning._path import spline
from rbydyn_jax.planning._reachability import Row, admissible
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle, untyped

# In a vertical plane, with torques that bind.
ARM = with_gravity(robots.two_link_arm(), jnp.array([0.0, -9.81, 0.0]))
HELD = np.abs(np.asarray(gravity_forces(ARM, jnp.zeros(2))))
ARM = with_limits(
    ARM,
    velocity_limit=jnp.array([2.0, 3.0]),
    acceleration_limit=jnp.array([6.0, 9.0]),
    effort_limit=jnp.asarray(1.2 * HELD),
)
TOLERANCE = 1e-6 if X64 else 1e-3
TYPE = float if X64 else np.float32


def paths(count):
    return jnp.asarray(np.random.default_rng(7).uniform(-1.5, 1.5, (count, 4, 2)), TYPE)


def used(model, timed, fine=10):
    """The largest shares of the limits of velocity, acceleration and force, between the nodes."""
    parts = jnp.linspace(1e-6, 1 - 1e-6, fine + 1, dtype=timed.times.dtype)
    t = (timed.times[:-1, None] + jnp.diff(timed.times)[:, None] * parts[None]).reshape(-1)
    at = timed.evaluate(t)
    tau = jax.vmap(rnea, (None, 0, 0, 0))(model, at.q, at.v, at.a)
    tau = tau - jax.vmap(lambda v: damping_forces(model, v) + friction_forces(model, v))(at.v)
    limits = (model.velocity_limit, model.acceleration_limit, model.effort_limit)
    return jnp.stack([jnp.max(jnp.abs(x) / y[None]) for x, y in zip((at.v, at.a, tau), limits, strict=True)])


@jax.jit
@jax.vmap
def timed_and_used(path):
    timed = time_parametrize(ARM, path, intervals=64)
    return timed, used(ARM, timed)


@pytest.mark.slow
def test_durations_of_toppra():
    if not X64:
        pytest.skip("toppra is in double precision")
    toppra = oracle("toppra")
    constraint, algorithm = pytest.importorskip("toppra.constraint"), pytest.importorskip("toppra.algorithm")
    waypoints = paths(12)
    timed, shares = timed_and_used(waypoints)
    assert (np.asarray(timed.status) == TimingStatus.SOLVED).all()
    assert (shares <= 1 + TOLERANCE).all() and (shares.max(axis=0) > 0.999).all()  # each kind of limit binds
    force = jax.jit(lambda q, v, a: rnea(ARM, q, v, a))
    between = constraint.DiscretizationType.Interpolation
    V, A, F = (np.stack([-x, x], axis=1) for x in (ARM.velocity_limit, ARM.acceleration_limit, ARM.effort_limit))
    limits = [
        constraint.JointVelocityConstraint(V),
        constraint.JointAccelerationConstraint(A, discretization_scheme=between),
        constraint.JointTorqueConstraint(
            lambda q, v, a: np.asarray(force(q, v, a)), F, np.zeros(2), discretization_scheme=between
        ),
    ]
    for i in range(4):
        path = toppra.SplineInterpolator(np.asarray(timed.path.knots[i]), np.asarray(waypoints[i]), bc_type="natural")
        found = algorithm.TOPPRA(
            limits, path, np.linspace(0, 1, 301), solver_wrapper="seidel", parametrizer="ParametrizeConstAccel"
        )
        assert_close(timed.duration[i], found.compute_trajectory().duration, 5e-3)


@pytest.mark.slow
@pytest.mark.float32
def test_random_paths_have_a_timing_within_the_limits():
    timed, shares = timed_and_used(paths(20))
    assert (np.asarray(timed.status) == TimingStatus.SOLVED).all()
    assert (shares <= 1 + TOLERANCE).all() and (shares.max(axis=0) > 0.99).all()


@pytest.mark.slow
@pytest.mark.float32
def test_a_straight_path_is_a_trapezoidal_profile():
    """Also with speeds at the ends: against the profile of one joint from that velocity."""
    model = with_limits(ARM, effort_limit=jnp.full(2, jnp.inf))
    one, limits = jnp.ones(1), (model.velocity_limit[:1], model.acceleration_limit[:1])
    path = jnp.array([[0.0, 0.0], [2.0, 0.0]], one.dtype)

    @jax.jit
    @jax.vmap
    def timed(start, end):
        return time_parametrize(model, path, start_speed=start, end_speed=end)

    speeds = np.array([0.0, 0.3, 0.8])
    forth, back = timed(jnp.asarray(speeds), jnp.zeros(3)), timed(jnp.zeros(3), jnp.asarray(speeds))
    for i, speed in enumerate(speeds):
        known = trapezoidal_profile(0 * one, 2 * one, *limits, start_velocity=2 * float(speed) * one)
        for found in (forth, back):
            assert int(found.status[i]) == TimingStatus.SOLVED
            assert_close(found.duration[i], known.duration, 1e-3)
    assert int(timed(jnp.full(3, 5.0), jnp.zeros(3)).status[0]) == TimingStatus.NOT_FEASIBLE


@pytest.mark.ci
def test_traced_knots_that_do_not_increase_are_said():
    path = paths(1)[0][:3]
    timed = jax.jit(lambda knots: time_parametrize(ARM, path, knots=knots, intervals=8))
    knots = [[0.0, 0.4, 1.0], [0.0, 0.9, 0.5], [0.0, 0.3, 0.5], [0.1, 0.3, 1.0], [0.0, jnp.nan, 1.0]]
    found = jax.vmap(timed)(jnp.array(knots, TYPE))
    assert found.status.tolist() == [TimingStatus.SOLVED] + 4 * [TimingStatus.NOT_FINITE]
    assert float(found.duration[0]) > 0.0 and jnp.isnan(found.duration[1:]).all()


@pytest.mark.slow
def test_given_durations_and_status():
    path = paths(1)[0]
    shortest = time_parametrize(ARM, path)
    slower = jax.jit(jax.vmap(lambda d: time_parametrize(ARM, path, duration=d, start_speed=0.05)))
    asked = jnp.asarray([1.0, 1.3, 8.0]) * shortest.duration
    timed = slower(asked)
    assert_close(timed.duration[1:], asked[1:], 1e-9 if X64 else 1e-4)
    assert (jax.vmap(lambda x: used(ARM, x))(timed) <= 1 + TOLERANCE).all()
    assert int(slower(0.5 * asked).status[0]) == TimingStatus.TOO_SHORT
    known = time_parametrize(ARM, path, duration=(1.0 - 5e-10) * shortest.duration)  # rounding of another program
    assert int(known.status) == TimingStatus.SOLVED
    weak = with_limits(ARM, effort_limit=0.8 * ARM.effort_limit)
    assert int(time_parametrize(weak, jnp.array([[-0.5, 0.0], [0.5, 0.0]])).status) == TimingStatus.NOT_FEASIBLE
    assert int(time_parametrize(weak, jnp.array([[-0.5, 0.0], [0.5, 0.0]]), torques=False).status) == 0


@pytest.mark.slow
def test_friction_counts_against_the_limit():
    model = robots.panda_like()
    rng = np.random.default_rng(1)
    low, high = np.asarray(model.position_lower), np.asarray(model.position_upper)
    path = jnp.asarray(0.5 * (low + high) + 0.3 * rng.uniform(-1, 1, (4, 7)) * (high - low))
    weak = with_limits(model, effort_limit=0.7 * model.effort_limit)
    timed = jax.jit(lambda path: time_parametrize(weak, path))(path)
    assert bool(timed.solved) and (used(weak, timed) <= 1 + TOLERANCE).all()


@pytest.mark.slow
def test_paths_that_turn_back_with_viscous_friction():
    """What is less than the limit at rest is feasible, since it can be passed slowly; friction makes it slower.

    Limits are kept, even where most of the effort is that of viscous friction.
    """
    path = np.random.default_rng(3).uniform(-1.0, 1.0, (16, 4, 2))
    path[:, 2] = path[:, 0] + 0.02  # back, nearly where it was
    path[0] = [[0.0, 0.0], [1.0, 0.5], [0.02, 0.0], [0.5, 1.0]]

    @jax.jit
    @jax.vmap
    def timed(path, damping):
        model = with_damping(with_limits(ARM, effort_limit=jnp.asarray(2.0 * HELD)), damping)
        found = time_parametrize(model, path)
        return found.status, found.duration, used(model, found)

    damping = np.repeat([0.0, 0.2, 1.0, 2.0], 16)[:, None] * np.ones(2)
    status, duration, shares = timed(*(jnp.asarray(x, TYPE) for x in (np.tile(path, (4, 1, 1)), damping)))
    assert (status == TimingStatus.SOLVED).all() and (shares <= 1 + TOLERANCE).all()
    assert (jnp.diff(duration.reshape(4, 16), axis=0) >= 0.0).all()
    assert duration[-16:].mean() > 1.1 * duration[:16].mean()


@pytest.mark.slow
def test_viscous_friction_from_and_to_speeds():
    """What is called solved keeps the limits, and most of what has a timing with less friction has one."""
    path = np.random.default_rng(3).uniform(-1.0, 1.0, (16, 4, 2))
    path[8:, 2] = path[8:, 0] + 0.02

    @jax.jit
    @jax.vmap
    def timed(path, damping, speed, duration):
        model = with_damping(with_limits(ARM, effort_limit=jnp.asarray(2.0 * HELD)), damping)
        found = time_parametrize(model, path, start_speed=speed, end_speed=speed)
        slower = time_parametrize(model, path, start_speed=speed, end_speed=speed, duration=duration)
        return found.status, slower.status, used(model, found), used(model, slower)

    damping, speed = (
        np.repeat([[0.2], [1.0], [2.0], [1.0]], 16, axis=0) * np.ones(2),
        np.repeat([0.05, 0.05, 0.05, 0.3], 16),
    )
    given = (np.tile(path, (4, 1, 1)), damping, speed, np.full(64, 4.0))
    *status, shares, slower = timed(*(jnp.asarray(x, TYPE) for x in given))
    for at, share in zip(status, (shares, slower), strict=True):
        assert (share[at == TimingStatus.SOLVED] <= 1 + TOLERANCE).all()
    assert (status[0] == TimingStatus.SOLVED).sum() >= 62

    def duration(damping):
        model = with_damping(with_limits(ARM, effort_limit=jnp.asarray(2.0 * HELD)), damping)
        return time_parametrize(model, jnp.asarray(path[8], TYPE), start_speed=0.05, end_speed=0.05).duration

    slopes = jax.jit(jax.vmap(jax.grad(duration)))(jnp.asarray([[0.01, 0.01], [2.0, 2.0]], TYPE))
    assert np.isfinite(slopes[0]).all() and np.isnan(slopes[1]).any()  # of narrower limits they are not known


@pytest.mark.slow
def test_derivatives_of_the_duration():
    if not X64:
        pytest.skip("finite differences")

    def duration(x):
        path, effort = x
        return time_parametrize(with_limits(ARM, effort_limit=effort), path, intervals=24).duration

    x = paths(12), jnp.repeat(ARM.effort_limit[None], 12, axis=0)
    d, h = tuple(normal(k, *y.shape) for k, y in enumerate(x)), 1e-6
    gradient = jax.jit(jax.vmap(jax.grad(duration)))(x)
    slope = sum(jnp.sum(g * e, axis=tuple(range(1, g.ndim))) for g, e in zip(gradient, d, strict=True))
    value = jax.jit(jax.vmap(duration))
    after, before = (value(tuple(y + s * h * e for y, e in zip(x, d, strict=True))) for s in (1.0, -1.0))
    error = np.abs((after - before) / (2 * h) - slope) / np.abs(slope).max()
    assert np.isfinite(error).all() and np.median(error) < 1e-6 and (error < 1e-3).mean() > 0.9


@pytest.mark.slow
def test_limits_of_jerk():
    """Little longer than Ruckig's motion on a straight path; jerks from differences between the nodes."""
    if not X64:
        pytest.skip("differences of accelerations")
    jerk = jnp.array([60.0, 90.0])

    def jerk_squared(timed):
        step = timed.duration / 20000
        t = (jnp.arange(20000) + 0.5) * step
        return jnp.sum(((timed.evaluate(t + h).a - timed.evaluate(t - h).a) / (2 * h)) ** 2) * step

    timed, h = jax.jit(jax.vmap(lambda path: time_parametrize(ARM, path, jerk_limit=jerk)))(paths(4)), 1e-5

    @jax.vmap
    def largest(timed):
        t = (timed.times[:-1, None] + jnp.diff(timed.times)[:, None] * jnp.linspace(0.01, 0.99, 11)[None]).reshape(-1)
        rate = (timed.evaluate(t + h).a - timed.evaluate(t - h).a) / (2 * h)
        return jnp.max(jnp.abs(rate) / jerk[None])

    assert timed.solved.all() and (largest(timed) <= 1 + 1e-5).all()
    first = jax.tree.map(lambda x: x[0], timed)
    report = check_trajectory(ARM, first, "tool", jnp.eye(4), points=2001, clearance=None, jerk_limit=jerk)
    assert report.jerk_ratio is not None and 0.9 < report.jerk_ratio <= 1 + 1e-5  # of means over 0.5 ms
    square = jax.vmap(jerk_squared)(timed)
    assert_close(jax.vmap(lambda timed: timed.squared_jerk)(timed), square, 1e-3)
    assert (jax.vmap(lambda x: used(ARM, x))(timed) <= 1 + TOLERANCE).all()
    free, plain = with_limits(ARM, effort_limit=jnp.full(2, jnp.inf)), timed_and_used(paths(4))[0]
    assert (timed.duration > plain.duration).all() and (timed.duration < 1.5 * plain.duration).all()
    for length in (0.3, 2.0):
        line = time_parametrize(free, jnp.array([[0.0, 0.0], [length, 0.0]]), jerk_limit=jerk, duration=None)
        limits = (x[:1] for x in (free.velocity_limit, free.acceleration_limit, jerk))
        known = jerk_limited_profile(jnp.zeros(1), jnp.full(1, length), *limits).duration
        assert known < line.duration < 1.03 * known
    # From limits that jerk has all along to those that it has at the ends alone.
    jerks = jnp.array([100.0, 500.0, 2e3, 1e4, 1e5])
    line = jnp.array([[0.0, 0.0], [1.0, 1.0]])
    found = jax.jit(jax.vmap(lambda j: time_parametrize(free, line, jerk_limit=jnp.full(2, j)).duration))(jerks)
    v, a = free.velocity_limit[0], free.acceleration_limit[0]
    known = 1.0 / v + v / a + a / jerks
    assert (known < found).all() and (found < 1.03 * known).all()


@pytest.mark.slow
def test_limits_of_jerk_near_the_static_limit():
    """Gravity takes 99 % of the effort at the end of the path, or more than all of it."""
    path, jerk = jnp.array([[0.0], [np.pi / 2]]), jnp.array([150.0])

    @jax.jit
    @jax.vmap
    def timed(effort):
        model = with_limits(robots.pendulum(), effort_limit=effort[None])
        found = time_parametrize(model, path, jerk_limit=jerk)
        return found.status, used(model, found)

    held = float(jnp.abs(gravity_forces(robots.pendulum(), path[-1]))[0])
    status, shares = timed(held * jnp.array([1.5, 1.01, 1.001, 0.999]))
    assert status.tolist() == [0, 0, 0, TimingStatus.NOT_FEASIBLE] and (shares[:3] <= 1 + TOLERANCE).all()


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [False, True])
def test_traced_values_that_no_timing_keeps(smooth):
    path, rests = jnp.array([[0.0, 0.0], [0.5, -0.3], [0.2, 0.4]]), jnp.array([[0.3, 0.0], [0.3, -0.3], [0.3, 0.4]])
    fine = {"path": path, "velocity_limit": [2.0, 3.0], "acceleration_limit": [6.0, 9.0], "duration": 6.0}
    fine["other"] = [60.0, 90.0] if smooth else [0.0, 0.0]

    @jax.jit
    def timed(path, duration, other, **limits):
        others = {"jerk_limit": other} if smooth else {"start_speed": other[0], "end_speed": other[1]}
        found = time_parametrize(with_limits(ARM, **limits), path, duration=duration, intervals=8, **others)
        return found.status, found.duration

    cases = [
        ({}, TimingStatus.SOLVED),
        ({"velocity_limit": [0.0, 3.0]}, TimingStatus.NOT_FEASIBLE),
        ({"acceleration_limit": [6.0, 0.0]}, TimingStatus.NOT_FEASIBLE),
        ({"path": rests, "velocity_limit": [0.0, 3.0], "acceleration_limit": [0.0, 9.0]}, TimingStatus.SOLVED),
        ({"duration": jnp.nan}, TimingStatus.NOT_FINITE),
        ({"duration": jnp.inf}, TimingStatus.NOT_FINITE),
        ({"other": [-0.5, fine["other"][1]]}, TimingStatus.NOT_FINITE),
        ({"other": [fine["other"][0], -0.5]}, TimingStatus.NOT_FINITE),
        ({"other": [fine["other"][0], jnp.nan]}, TimingStatus.NOT_FINITE),
    ]
    if smooth:
        cases.append(({"other": [0.0, 90.0]}, TimingStatus.NOT_FEASIBLE))
    for changed, expected in cases:
        status, duration = timed(**{k: jnp.asarray(v, path.dtype) for k, v in {**fine, **changed}.items()})
        assert int(status) == expected, changed
        assert expected != TimingStatus.SOLVED or abs(float(duration) - 6.0) < 1e-3


@pytest.mark.slow
def test_timed_paths_are_checked_like_trajectories():
    path = jnp.array([[0.0, 0.2], [0.3, -0.3], [0.8, 0.1]])
    timed = time_parametrize(ARM, path, intervals=16, torques=False)
    at = sample_trajectory(timed, 11)
    assert_close(at.q[::10], path[::2], 1e-6)
    assert at.times.shape == (11,)
    report = check_trajectory(ARM, timed, "tool", link_pose(ARM, path[-1], "tool"), clearance=None)
    assert report.position_error < 1e-6 and report.velocity_ratio <= 1 + TOLERANCE and jnp.isinf(report.smoothness)
    assert not timed.evaluate(jnp.array([-1.0, 99.0])).v.any()


@pytest.mark.ci
def test_admissible_states_where_bounds_are_equal():
    """Of lines through common points at both ends of the range, where Newton's method starts."""
    optimize = pytest.importorskip("scipy.optimize")
    rng, most, expected, kept = np.random.default_rng(0), 4.0, [], []
    while len(kept) < 40:
        above, below = rng.integers(-4, 5, (2, 6)).astype(float)
        at = np.array([most, most, most, 0.0, 0.0, 0.0])
        high, low = above * at + rng.integers(-1, 3), below * at + rng.integers(-2, 2)
        sides = np.concatenate([np.stack([np.ones(6), above], 1), -np.stack([np.ones(6), below], 1)])
        limits = {"A_ub": sides, "b_ub": np.append(high, -low), "bounds": [(None, None), (0.0, most)]}
        least, largest = (optimize.linprog([0.0, sign], **limits) for sign in (1.0, -1.0))
        if least.success:
            expected.append((least.x[1], largest.x[1]))
            kept.append((np.ones(6), above, below, high, low))
    dtype = jnp.zeros(()).dtype
    row = Row(*(jnp.asarray(np.stack(x, axis=1), dtype) for x in zip(*kept, strict=True)))
    found = jax.jit(admissible)([row, row], jnp.asarray(1e-12, dtype), jnp.full(40, most, dtype))
    expected = np.array(expected)
    assert bool(found.exists) and (expected[:, 1] < most).any() and (expected[:, 0] > 0.0).any()
    assert_close(jnp.stack([found.low, found.high], axis=1), expected, kind="solve")


def test_wrong_arguments():
    path = jnp.array([[0.0, 0.2], [0.3, -0.3], [0.8, 0.1]])
    wrong = [
        (ShapeError, r"path must have shape \(..., 2\)", path[:, :1], {}),
        (ArgumentError, "at least two waypoints", path[:1], {}),
        (ArgumentError, r"path\[1\] must differ from path\[0\]", path[jnp.array([0, 0, 1])], {}),
        (ArgumentError, "path must be finite", path * jnp.nan, {}),
        (ArgumentError, "knots must increase from 0 to 1", path, {"knots": jnp.array([0.0, 0.7, 0.6])}),
        (ShapeError, "knots must have shape", path, {"knots": jnp.array([0.0, 1.0])}),
        (ArgumentError, "duration must be finite and positive", path, {"duration": -1.0}),
        (ArgumentError, "start_speed must be finite and not negative", path, {"start_speed": -1.0}),
        (ArgumentError, "end_speed must be None with a jerk_limit", path, {"end_speed": 1.0, "jerk_limit": path[0]}),
        (ArgumentError, r"jerk_limit\[0\] must be positive", path, {"jerk_limit": jnp.zeros(2)}),
        (ArgumentError, "intervals must be at least 1", path, {"intervals": 0}),
        (DtypeError, "torques must be True or False", path, {"torques": 1}),
        (DtypeError, "path must be an array", [[0.0, 1.0]], {}),
    ]
    for error, message, waypoints, options in wrong:
        with pytest.raises(error, match=message):
            time_parametrize(ARM, untyped(waypoints), **options)
    tree = random_tree(1, n=9)
    with pytest.raises(ModelError, match="has no single coordinate"):
        time_parametrize(tree, jnp.zeros((2, tree.nq)))


@pytest.mark.ci
def test_squared_jerk_of_a_batch_is_that_of_each():
    knots, times = jnp.linspace(0.0, 1.0, 4), jnp.linspace(0.0, 2.0, 3)
    rest = jnp.asarray(np.array([[0, 0.5, 0, 0, 0, 0], [0.5, 0.5, 0, 0.1, -0.1, 0]]), TYPE)

    def timed(points):
        return TimedPath(spline(points, knots.astype(TYPE)), times.astype(TYPE), rest, jnp.asarray(0))

    points = paths(6).reshape(2, 3, 4, 2)
    each = [[timed(y).squared_jerk for y in x] for x in points]
    batch = jax.vmap(jax.vmap(timed))(points)
    assert batch.squared_jerk.shape == (2, 3)
    assert_close(batch.squared_jerk, jnp.array(each), 1e-5)
    for method in (batch.evaluate, batch.samples, batch.jerks):
        with pytest.raises(ShapeError, match=r"motion must be a single one, got a batch of \(2, 3\); use jax.vmap"):
            method(5)


@pytest.mark.ci
def test_times_of_any_shape():
    timed = time_parametrize(ARM, jnp.array([[0.0, 0.0], [0.5, 0.3], [1.0, 0.0]]), torques=False, intervals=4)
    times = jnp.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    grid, row, one = timed.evaluate(times), timed.evaluate(times.reshape(-1)), timed.evaluate(0.2)
    assert grid.q.shape == (2, 3, 2) and one.q.shape == (2,) and one.times.shape == ()
    for x, y in zip(jax.tree.leaves(grid), jax.tree.leaves(row), strict=True):
        np.testing.assert_array_equal(x.reshape(y.shape), y)
    np.testing.assert_array_equal(one.v, row.v[1])
