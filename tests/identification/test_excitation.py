"""Exciting motions keep the limits, and show the parameters better than others do."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import TrajectoryData, base_parameters, exciting_trajectory, motor_torques
from rbydyn_jax.planning import sample_trajectory
from rbydyn_jax.testing import random_tree
from tests.algorithms.cases import run
from tests.helpers import X64


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="condition numbers")
def test_a_motion_within_the_limits_with_a_smaller_condition_number():
    model = random_tree(4, ("revolute", "prismatic"), 3, branching=0.0)
    model = rb.with_limits(model, effort_limit=jnp.full(3, 1e3))
    told = []
    found = exciting_trajectory(
        model, 4.0, population=16, iterations=8, points=40, progress=lambda *done: told.append(done)
    )
    assert told == [(k, 8) for k in range(1, 9)]
    history = np.asarray(found.history)
    assert bool(found.feasible) and np.exp(history[-1]) == pytest.approx(float(found.condition))
    assert (np.diff(history) <= 0.0).all() and history[-1] < history[0] - 0.1
    at = sample_trajectory(found.trajectory, 333)  # other times than those where the limits are kept
    q, v, a = (np.asarray(x) for x in (at.q, at.v, at.a))
    low, high, fastest, strongest = (
        np.asarray(x)
        for x in (model.position_lower, model.position_upper, model.velocity_limit, model.acceleration_limit)
    )
    assert (q >= low).all() and (q <= high).all()
    assert (np.abs(v) <= fastest).all() and (np.abs(a) <= strongest).all()
    assert np.abs(np.asarray(run(lambda *x: motor_torques(model, *x), at.q, at.v, at.a))).max() <= 1e3
    assert not v[[0, -1]].any() and np.abs(a[[0, -1]]).max() < 1e-9
    shown = base_parameters(model, TrajectoryData(at.q, at.v, at.a, at.v))
    assert shown.rank == base_parameters(model).rank


def test_wrong_arguments():
    arm = robots.two_link_arm()
    with pytest.raises(rb.ArgumentError, match="population must be at least 8"):
        exciting_trajectory(arm, 1.0, population=4)
    with pytest.raises(rb.ArgumentError, match="clearance must be finite and positive"):
        exciting_trajectory(arm, 1.0, clearance=-1.0)
    with pytest.raises(rb.ArgumentError, match="duration must be finite and positive"):
        exciting_trajectory(arm, 0.0)
    ball = rb.build_model(rb.RobotBuilder("r").link("a").link("b", 1.0, inertia=0.1).spherical("j", "a", "b"))
    with pytest.raises(rb.ModelError, match="no joint has a single coordinate"):
        exciting_trajectory(ball, 1.0)


@pytest.mark.ci
def test_a_start_beyond_the_limits_is_refused_and_the_default_is_within():
    arm = rb.with_limits(
        robots.two_link_arm(), position_lower=jnp.array([0.5, -1.0]), position_upper=jnp.array([2.0, 1.0])
    )
    for bad in ([0.2, 0.0], [np.nan, 0.0]):
        with pytest.raises(rb.ArgumentError, match=r"q_start\[0\] of joint .* must be within \[0.5, 2\]"):
            exciting_trajectory(arm, 3.0, q_start=jnp.array(bad))
    half = rb.with_limits(arm, position_upper=jnp.array([np.inf, 1.0]))
    found = exciting_trajectory(half, 3.0, iterations=2, population=8, points=20, waypoints=3)
    q = sample_trajectory(found.trajectory, 401).q
    assert float(q[:, 0].min()) >= 0.5 - 1e-6
    assert float(jnp.abs(q[:, 1]).max()) <= 1.0 + 1e-6


@pytest.mark.ci
def test_joints_that_start_at_the_end_of_their_range_move_inward():
    arm = rb.with_limits(
        robots.two_link_arm(), position_lower=jnp.array([-1.0, -2.0]), position_upper=jnp.array([1.0, np.inf])
    )
    found = exciting_trajectory(
        arm, 4.0, q_start=jnp.array([1.0, -2.0]), iterations=2, population=8, points=20, waypoints=4
    )
    q = np.asarray(sample_trajectory(found.trajectory, 401).q)
    assert bool(found.feasible)
    assert -1.0 <= q[:, 0].min() and q[:, 0].max() <= 1.0 + 1e-6 and q[:, 1].min() >= -2.0 - 1e-6
    assert np.ptp(q, axis=0).min() > 0.3
    assert np.abs(q[0] - [1.0, -2.0]).max() < 1e-6


@pytest.mark.ci
@pytest.mark.parametrize("limit", ["velocity_limit", "acceleration_limit", "effort_limit"])
def test_a_joint_that_cannot_move_is_refused(limit):
    arm = robots.two_link_arm()
    fixed = rb.with_limits(arm, **{limit: getattr(arm, limit).at[1].set(0.0)})
    with pytest.raises(rb.ModelError, match=f"joint '{arm.joint_names[1]}' cannot move: its {limit} is 0"):
        exciting_trajectory(fixed, 3.0)


@pytest.mark.ci
def test_fewer_rows_than_base_parameters_are_refused():
    """The torque of a pendulum tells three; of the points both ends are the same."""
    pendulum = robots.pendulum()
    with pytest.raises(rb.ArgumentError, match="points must be at least 4 for 3 base parameters, got 3"):
        exciting_trajectory(pendulum, 3.0, points=3)
    with pytest.raises(rb.ArgumentError, match="points must be at least 3"):
        exciting_trajectory(pendulum, 3.0, points=2)
