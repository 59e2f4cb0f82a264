"""Trajectory optimisation: past a pole at the limits of the actuators, and what wrong arguments are told."""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    DtypeError,
    MissingExtraError,
    ModelError,
    NameNotFoundError,
    RbydynError,
    ShapeError,
    robots,
    with_limits,
)
from rbydyn_jax.planning import TrajectoryCost, check_trajectory, optimize_trajectory
from tests.helpers import X64, assert_close

from .arms import pole_arm, pole_pairs, q_start, target

DURATION = 0.48
OPTIONS = {"duration": DURATION, "steps": 400, "learning_rate": 0.1}


def reach(model, dtype, **options):
    given = (model, q_start(dtype), "tool", target(model, dtype))
    return optimize_trajectory(*given, **(OPTIONS | {"collision_pairs": pole_pairs(model)} | options))


def measure(model, result, dtype):
    return check_trajectory(
        model, result.trajectory, "tool", target(model, dtype), collision_pairs=pole_pairs(model), points=401
    )


@pytest.fixture(scope="module")
def past_the_pole():
    """The motion without regard to limits, the good one that starts from it, and what `progress` was told of that."""
    model, dtype = pole_arm(), jnp.float64 if X64 else jnp.float32
    heedless = reach(model, dtype, cost=TrajectoryCost(limits=0.0, collision=0.0))
    told = []
    good = reach(model, dtype, initial=heedless.trajectory, progress=lambda step, cost: told.append((step, cost)))
    return model, heedless, good, told


@pytest.mark.float32
def test_motion_keeps_its_limits_where_the_heedless_one_does_not(past_the_pole, dtype):
    model, heedless, good, _ = past_the_pole
    before, after = measure(model, heedless, dtype), measure(model, good, dtype)
    assert before.distance < -0.01 and before.acceleration_ratio > 1.05 and before.torque_ratio > 1.05
    assert after.distance > 0.01 and after.position_error < 1e-3 and after.orientation_error < 2e-3
    for ratio in (after.position_ratio, after.velocity_ratio, after.acceleration_ratio, after.torque_ratio):
        assert 0.2 < ratio <= 1.0
    assert after.feasible() and not before.feasible()
    assert after.smoothness > before.smoothness  # what it costs
    assert good.trajectory.coefficients.dtype == dtype and good.costs.dtype == dtype


def test_motion_starts_and_ends_at_rest(past_the_pole, dtype):
    model, _, good, _ = past_the_pole
    at = measure(model, good, dtype).samples
    assert (at.q[0] == q_start(dtype)).all()
    for x in (at.v, at.a):
        assert_close(x[jnp.array([0, -1])], np.zeros((2, 2)), scale=float(jnp.abs(x).max()))


def test_progress_and_costs(past_the_pole):
    _, heedless, good, told = past_the_pole
    assert [step for step, _ in told] == list(range(OPTIONS["steps"]))
    assert_close(good.costs, np.array([cost for _, cost in told]))
    assert good.costs[-1] < 0.2 * good.costs[0]
    assert (good.initial.coefficients == heedless.trajectory.coefficients).all()


def test_result_is_the_best_motion_met(past_the_pole, dtype):
    model, _, good, _ = past_the_pole
    # Steps so large that each makes it worse: the result is the motion from which they started, and its cost is the
    # least that was met on the way there.
    result = reach(model, dtype, steps=5, learning_rate=1.0, initial=good.trajectory)
    assert (result.costs[1:] > 10.0 * result.costs[0]).all()
    assert (result.trajectory.coefficients == good.trajectory.coefficients).all()
    assert_close(result.costs[0], good.costs.min())


def test_limits_of_zero_leave_the_cost_finite(dtype):
    model = with_limits(pole_arm(), velocity_limit=jnp.zeros(2), effort_limit=jnp.zeros(2))
    result = reach(model, dtype, steps=2)
    assert np.isfinite(result.costs).all() and np.isfinite(result.trajectory.coefficients).all()


def test_a_robot_without_capsules(dtype):
    model = robots.double_pendulum(dtype=dtype)
    goal = jnp.eye(4, dtype=dtype)
    result = optimize_trajectory(model, jnp.ones(2, dtype), "lower", goal, duration=1.0, steps=2)
    assert np.isfinite(result.costs).all()
    assert result.trajectory.q_indices == (0, 1)  # by default all joints on the way to the link


def test_wrong_arguments(monkeypatch):
    model = pole_arm()
    q, goal = q_start(), target(model)

    def call(q=q, link="tool", goal=goal, **options):
        return optimize_trajectory(model, q, link, goal, **({"duration": 1.0, "steps": 1} | options))

    for error, message, wrong in [
        (ShapeError, r"q_start must have shape \(2,\)", {"q": jnp.zeros(3)}),
        (DtypeError, "q_start must be an array of floats, got list", {"q": [0.0, 0.0]}),
        (ShapeError, r"target must have shape \(4, 4\)", {"goal": jnp.eye(3)}),
        (NameNotFoundError, "did you mean 'tool'", {"link": "tol"}),
        (NameNotFoundError, "did you mean 'elbow'", {"joints": ["elbw"]}),
        (ModelError, "joint 'elbow' is listed twice", {"joints": ["elbow", 1]}),
        (ModelError, "no joint moves link 'base'", {"link": "base"}),
        (ShapeError, "steps must be at least 1", {"steps": 0}),
        (ShapeError, "points at least 2", {"points": 1}),
        (ShapeError, "coefficients and steps must be at least 1", {"coefficients": 0}),
        (RbydynError, "duration must be positive and finite, got 0.0", {"duration": 0.0}),
        (RbydynError, "duration must be positive and finite, got nan", {"duration": float("nan")}),
    ]:
        with pytest.raises(error, match=message):
            call(**wrong)

    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rbydyn_jax\[opt\]'"):
        call()


def test_joints_must_have_one_coordinate_and_initial_must_fit(past_the_pole, dtype):
    model, heedless, _, _ = past_the_pole
    with pytest.raises(ModelError, match="initial moves other joints"):
        reach(model, dtype, initial=heedless.trajectory, joints=["elbow"])
    with pytest.raises(ShapeError, match=r"initial.coefficients must have shape \(5, 2\)"):
        reach(model, dtype, initial=heedless.trajectory, coefficients=5)
    flying = robots.two_link_arm(floating_base=True, dtype=dtype)
    root = flying.joint_names[0]
    q = jnp.zeros(flying.nq, dtype).at[0].set(1.0)
    with pytest.raises(ModelError, match=f"joint '{root}' has no single coordinate of its own \\(floating\\)"):
        optimize_trajectory(flying, q, "tool", jnp.eye(4, dtype=dtype), duration=1.0, joints=[root])
