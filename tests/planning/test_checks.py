"""The measurements of a trajectory, against pinocchio and against motions with known answers."""

from __future__ import annotations

import math
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    ModelError,
    NameNotFoundError,
    ShapeError,
    collision,
    link_pose,
    robots,
    with_limits,
)
from rbydyn_jax.planning import Trajectory, TrajectoryResult, check_trajectory, sample_trajectory
from tests.helpers import X64, assert_close, normal

from .arms import NO_POSES, pole_arm, pole_pairs

ANGLE, DURATION = 1.2, 0.8


def least_jerk(model, dtype, start=(0.3, 0.5)) -> Trajectory:
    """The elbow turns by ANGLE the smoothest way."""
    return Trajectory(
        jnp.asarray(np.array(start), dtype), jnp.full((1, 1), ANGLE, dtype), jnp.asarray(DURATION, dtype), (1,), (1,), 2
    )


@pytest.mark.ci
def test_samples_are_derivatives_of_each_other_and_only_the_chosen_joints_move(dtype):
    z = 0.1 * normal(0, 6, 2)
    duration = jnp.asarray(0.5, dtype)
    motion = Trajectory(normal(1, 4), z, duration, (1, 3), (0, 2), nv=3)  # q has one coordinate more than v
    at = sample_trajectory(motion, 2001)
    assert at.q.shape == (2001, 4) and at.v.shape == at.a.shape == (2001, 3)
    assert all(x.dtype == dtype for x in jax.tree.leaves(at))
    assert_close(at.times, np.linspace(0.0, 0.5, 2001))
    assert (at.q[:, [0, 2]] == motion.q_start[jnp.array([0, 2])][None]).all()
    assert not at.v[:, 1].any() and not at.a[:, 1].any()
    assert (at.q[0] == motion.q_start).all()
    assert float(jnp.abs(at.v[:, [0, 2]]).max()) > 0.1
    for end in (0, -1):
        assert_close(at.v[end], np.zeros(3), scale=float(jnp.abs(at.v).max()))
        assert_close(at.a[end], np.zeros(3), scale=float(jnp.abs(at.a).max()))
    if X64:  # differences of float32 positions hold no digits of an acceleration
        h = 0.5 / 2000
        q, v = np.asarray(at.q)[:, [1, 3]], np.asarray(at.v)[:, [0, 2]]
        # The error of the central difference is h^2 / 6 times the third derivative, here 2e-5 of the largest value.
        assert_close(v[1:-1], (q[2:] - q[:-2]) / (2 * h), 2e-5)
        assert_close(np.asarray(at.a)[1:-1, [0, 2]], (v[2:] - v[:-2]) / (2 * h), 2e-4)


@pytest.mark.slow
def test_report_of_the_motion_of_least_jerk_is_the_known_one(dtype):
    model = pole_arm(velocity=4.0, acceleration=20.0)
    target = link_pose(model, jnp.asarray([0.3, 0.5 + ANGLE - 0.1], dtype), "tool")
    report = check_trajectory(
        model, least_jerk(model, dtype), "tool", target, points=1001, collision_pairs=pole_pairs(model)
    )
    # Peaks of 10 s^3 - 15 s^4 + 6 s^5: slope 15/8, curvature 10/sqrt(3); integral of the squared jerk 720.
    assert_close(report.velocity_ratio, 15 / 8 * ANGLE / DURATION / 4.0)
    # The grid misses the peak of the acceleration, at s = 0.2113, by up to 5e-4.
    assert_close(report.acceleration_ratio, 10 / math.sqrt(3) * ANGLE / DURATION**2 / 20.0, 5e-6 if X64 else None)
    assert_close(report.smoothness, 720 * ANGLE**2 / DURATION**5)
    assert_close(report.position_ratio, (0.5 + ANGLE) / 2.8)
    assert_close(report.orientation_error, 0.1, 1e-11 if X64 else 1e-5)
    assert_close(report.position_error, 2 * 0.4 * math.sin(0.05), 1e-11 if X64 else 1e-5)
    assert all(x.dtype == dtype for x in jax.tree.leaves(report))
    assert not report.feasible() and report.feasible(position=0.05, orientation=0.11)


@pytest.mark.slow
def test_distances_are_least_over_the_pairs_at_each_time(dtype):
    model = pole_arm()
    motion = least_jerk(model, dtype, start=(0.3, -1.0))
    report = check_trajectory(model, motion, "tool", jnp.eye(4, dtype=dtype), points=101)
    everything = jax.vmap(collision.signed_distances, (None, 0))(model, report.samples.q)
    assert_close(report.distances, np.asarray(everything).min(axis=1), scale=0.5)
    assert report.distances is not None and report.distance == report.distances.min()
    # The pole has radius 0.03 m, as has the forearm, whose axis runs from 0.1 m to 0.4 m behind the elbow.
    q = np.asarray(report.samples.q, float)
    along = np.linspace(0.1, 0.4, 30001)[None]
    heading = q.sum(axis=1)[:, None]
    x = 0.5 * np.cos(q[:, :1]) + along * np.cos(heading) - 0.9
    y = 0.5 * np.sin(q[:, :1]) + along * np.sin(heading)
    pole = check_trajectory(
        model, motion, "tool", jnp.eye(4, dtype=dtype), points=101, collision_pairs=pole_pairs(model)
    )
    # The brute force misses the nearest point of the axis by at most 5e-6 m.
    assert_close(pole.distances, np.hypot(x, y).min(axis=1) - 0.06, 1e-5)


@pytest.mark.slow
def test_torques_are_pinocchios_with_damping_and_friction(dtype):
    from rbydyn_jax.engines.conventions import batch
    from rbydyn_jax.engines.pinocchio import pin_model

    model = robots.panda_like(dtype=dtype)
    middle = 0.5 * (model.position_lower + model.position_upper)
    indices = tuple(range(7))
    motion = Trajectory(middle, 0.3 * normal(2, 4, 7), jnp.asarray(0.9, dtype), indices, indices, 7)
    report = check_trajectory(model, motion, "tool", jnp.eye(4, dtype=dtype), points=120)
    at = report.samples
    v = np.asarray(at.v, float)
    expected = batch(pin_model(model).rnea, at.q, at.v, at.a) + 0.5 * v + 0.2 * np.sign(v)
    # At the very ends a velocity of rounding size would have a sign.
    assert_close(report.torques[1:-1], expected[1:-1])
    limits = np.array([90.0, 90.0, 80.0, 80.0, 15.0, 15.0, 12.0])
    assert_close(report.torque_ratio, (np.abs(np.asarray(report.torques, float)) / limits[None]).max())


@pytest.mark.ci
def test_limits_of_zero_and_on_one_side(dtype):
    model, target = pole_arm(), jnp.eye(4, dtype=dtype)
    motion = least_jerk(model, dtype)

    def measure(**limits):
        limited = with_limits(model, **{name: jnp.asarray(np.array(x)) for name, x in limits.items()})
        return check_trajectory(limited, motion, "tool", target, points=21, collision_pairs=pole_pairs(model))

    assert measure(velocity_limit=[0.0, 9.0]).velocity_ratio < 1.0  # the shoulder stands still
    assert measure(velocity_limit=[9.0, 0.0]).velocity_ratio == np.inf
    assert measure(effort_limit=[0.0, 99.0]).torque_ratio == np.inf  # it takes a torque to keep the shoulder still
    assert measure(acceleration_limit=[np.inf, np.inf]).acceleration_ratio == 0.0
    assert measure(position_upper=[np.inf, np.inf]).position_ratio == 0.0
    reached = 0.5 + ANGLE
    assert measure(position_lower=[-np.inf] * 2, position_upper=[1.0, reached + 0.01]).position_ratio == 0.0
    assert measure(position_lower=[-np.inf] * 2, position_upper=[1.0, reached - 0.01]).position_ratio == np.inf


@pytest.mark.ci
def test_of_a_robot_without_shapes_no_distance_is_reported(dtype):
    model = robots.double_pendulum(dtype=dtype)
    arguments = (model, least_jerk(model, dtype), "lower", jnp.eye(4, dtype=dtype))
    with pytest.warns(UserWarning, match="'double_pendulum' has no collision shapes"):
        report = check_trajectory(*arguments, points=5)
    assert report.distances is None and report.distance is None
    assert check_trajectory(*arguments, points=5, clearance=None).distance is None  # and no warning


@pytest.mark.ci
def test_smoothness_is_the_integral_of_the_squared_jerk_also_with_end_velocities(dtype):
    z, ends = 0.3 * normal(3, 5, 1), normal(4, 2, 1)
    motion = Trajectory(jnp.zeros(2, dtype), z, jnp.asarray(DURATION, dtype), (1,), (1,), 2, ends)
    at = sample_trajectory(motion, 4001)
    jerk = np.diff(np.asarray(at.a, float)[:, 1]) / (DURATION / 4000)
    assert_close(motion.squared_jerk, (jerk**2).sum() * DURATION / 4000, 1e-5 if X64 else 1e-2)
    assert_close(at.v[jnp.array([0, -1]), 1], ends[:, 0])
    assert_close(at.a[jnp.array([0, -1])], np.zeros((2, 2)), scale=float(jnp.abs(at.a).max()))


@pytest.mark.parametrize("ends", [None, (2, 3, 2, 2)])
def test_smoothness_of_a_batch_is_that_of_each(ends, dtype):
    velocities = None if ends is None else normal(1, *ends)
    motions = Trajectory(
        normal(0, 2, 3, 2), normal(2, 2, 3, 4, 2), 1.0 + normal(3, 2, 3) ** 2, (0, 1), (0, 1), 2, velocities
    )
    each = [[jax.tree.map(operator.itemgetter((i, k)), motions).squared_jerk for k in range(3)] for i in range(2)]
    assert motions.squared_jerk.shape == (2, 3)
    assert_close(motions.squared_jerk, jnp.array(each), 1e-6)


@pytest.mark.ci
def test_jerks_and_their_ratio_to_given_limits(dtype):
    """The motion of least jerk begins and ends with 60 rad over the cube of the duration."""
    model, motion = pole_arm(), least_jerk(pole_arm(), dtype)
    largest = 60 * ANGLE / DURATION**3
    target = link_pose(model, jnp.asarray([0.3, 0.5 + ANGLE], dtype), "tool")

    def measure(elbow, shoulder=1.0):
        limit = jnp.asarray([shoulder, elbow], dtype)
        return check_trajectory(model, motion, "tool", target, points=11, clearance=None, jerk_limit=limit)

    assert_close(measure(200.0).jerk_ratio, largest / 200.0)
    assert measure(largest * 1.001).feasible() and not measure(largest * 0.999).feasible()
    assert measure(np.inf, np.inf).jerk_ratio == 0.0
    assert check_trajectory(model, motion, "tool", target, clearance=None).jerk_ratio is None
    z, ends = 0.3 * normal(3, 5, 1), normal(4, 2, 1)
    motion = Trajectory(jnp.zeros(2, dtype), z, jnp.asarray(DURATION, dtype), (1,), (1,), 2, ends)
    at = sample_trajectory(motion, 4001)
    slopes = np.diff(np.asarray(at.a, float), axis=0) / (DURATION / 4000)
    middles = np.asarray(motion.jerks(8001), float)[1::2]
    assert_close(middles, slopes, 1e-4 if X64 else 3e-2, scale=np.abs(slopes).max())
    with pytest.raises(ArgumentError, match=r"jerk_limit\[1\]"):
        measure(0.0)
    with pytest.raises(ShapeError, match=r"jerk_limit must have shape \(2,\)"):
        check_trajectory(model, motion, "tool", target, jerk_limit=jnp.ones(3))


@pytest.mark.ci
def test_what_is_not_finite_keeps_no_limit(dtype):
    report = check_trajectory(pole_arm(), least_jerk(pole_arm(), dtype, (0.3, np.nan)), "tool", jnp.eye(4))
    assert np.isnan([report.position_ratio, report.torque_ratio]).all() and report.velocity_ratio > 0.0
    still = least_jerk(pole_arm(), dtype)
    moved = Trajectory(still.q_start, np.nan * still.coefficients, still.duration, (1,), (1,), 2)
    report = check_trajectory(pole_arm(), moved, "tool", jnp.eye(4), clearance=None)
    ratios = report.position_ratio, report.velocity_ratio, report.acceleration_ratio, report.torque_ratio
    assert np.isnan(ratios).all() and not report.feasible(np.inf, np.inf)


@pytest.mark.ci
def test_wrong_arguments(dtype):
    model = pole_arm()
    motion = least_jerk(model, dtype)
    with pytest.raises(NameNotFoundError, match="did you mean 'tool'"):
        check_trajectory(model, motion, "toll", jnp.eye(4))
    with pytest.raises(ShapeError, match=r"target must have shape \(4, 4\)"):
        check_trajectory(model, motion, "tool", jnp.eye(3))
    for message, matrix in NO_POSES:
        with pytest.raises(ArgumentError, match=message):
            check_trajectory(model, motion, "tool", jnp.asarray(matrix))
    goal = jnp.eye(4)
    found = TrajectoryResult(motion, motion, *[jnp.zeros(1)] * 7)  # type: ignore[arg-type]
    with pytest.raises(
        DtypeError, match=r"trajectory must be a Trajectory, got TrajectoryResult; pass its \.trajectory"
    ):
        check_trajectory(model, found, "tool", goal)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match=r"trajectory must be a Trajectory, got str$"):
        sample_trajectory("reach")  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="model must be a Model"):
        check_trajectory("arm", motion, "tool", goal)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match=r"points must be an integer, got 2\.5"):
        check_trajectory(model, motion, "tool", goal, points=2.5)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="collision_pairs must be what"):
        check_trajectory(model, motion, "tool", goal, collision_pairs=[])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"trajectory.q_start must have shape \(7,\)"):
        check_trajectory(robots.panda_like(), motion, "tool", goal)
    other = Trajectory(motion.q_start, motion.coefficients, motion.duration, (1,), (1,), nv=3)
    with pytest.raises(ModelError, match="trajectory is of a robot with 3 velocities, the model has 2"):
        check_trajectory(model, other, "tool", goal)


def test_a_batch_of_motions_is_refused(dtype):
    model, motion = pole_arm(), least_jerk(pole_arm(), dtype)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), motion)
    refusal = r"must be a single one, got a batch of \(2,\); use jax.vmap"
    with pytest.raises(ShapeError, match=f"trajectory {refusal}"):
        check_trajectory(model, batch, "tool", jnp.eye(4))
    with pytest.raises(ShapeError, match=f"trajectory {refusal}"):
        sample_trajectory(batch, 5)
    for method in (batch.samples, batch.jerks):
        with pytest.raises(ShapeError, match=f"motion {refusal}"):
            method(5)
    want = sample_trajectory(motion, 5).q
    assert_close(jax.vmap(lambda motion: sample_trajectory(motion, 5).q)(batch), jnp.stack([want, want]))


def test_tracing_is_refused(dtype):
    model = pole_arm()
    motion, goal = least_jerk(model, dtype), jnp.eye(4, dtype=dtype)

    def error(motion, goal):
        return check_trajectory(model, motion, "tool", goal).position_error

    for traced in (
        lambda: jax.jit(error)(motion, goal),
        lambda: jax.jit(lambda: error(motion, goal))(),
        lambda: jax.grad(error, argnums=1)(motion, goal),
        lambda: jax.vmap(error, in_axes=(None, 0))(motion, goal[None]),
    ):
        with pytest.raises(DtypeError, match=r"check_trajectory .* call it outside of jit"):
            traced()
    with pytest.raises(ArgumentError, match="points must be at least 2, got 1"):
        sample_trajectory(motion, 1)


@pytest.mark.ci
def test_several_links_and_targets(dtype):
    """The largest error counts: that of the link whose target is elsewhere."""
    arm = robots.two_link_arm()
    path = least_jerk(arm, dtype)
    q = sample_trajectory(path, 2).q[-1]
    links = ("tool", "lower")
    ends = jnp.stack([link_pose(arm, q, link) for link in links])
    met = check_trajectory(arm, path, links, ends, clearance=None)
    assert float(met.position_error) < 1e-6 and float(met.orientation_error) < 1e-3
    moved = check_trajectory(arm, path, links, ends.at[1, 0, 3].add(0.25), clearance=None)
    assert_close(moved.position_error, 0.25, 1e-5)
    alone = check_trajectory(arm, path, "lower", ends[1], clearance=None)
    assert_close(alone.position_error, met.position_error, 1e-6)
    with pytest.raises(ShapeError, match=r"target must have shape \(2, 4, 4\)"):
        check_trajectory(arm, path, links, ends[0], clearance=None)
    with pytest.raises(ArgumentError, match=r"target\[1\] must be a rigid transform"):
        check_trajectory(arm, path, links, ends.at[1, 3, 3].set(2.0), clearance=None)
    with pytest.raises(ArgumentError, match="at least one link"):
        check_trajectory(arm, path, (), jnp.zeros((0, 4, 4)), clearance=None)
