"""Trajectory optimisation: past a pole at the limits of the actuators, and what wrong arguments are told."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    MissingExtraError,
    ModelError,
    NameNotFoundError,
    RbydynError,
    ShapeError,
    robots,
    with_limits,
)
from rbydyn_jax.planning import Trajectory, TrajectoryCost, check_trajectory, optimize_trajectory
from tests.helpers import X64, assert_close

from .arms import NO_POSES, pole_arm, pole_pairs, q_start, target

DURATION = 0.48
OPTIONS: dict[str, Any] = {"duration": DURATION, "steps": 400, "learning_rate": 0.1}


def reach(model, dtype, **options):
    given: dict[str, Any] = OPTIONS | {"collision_pairs": pole_pairs(model)} | options
    return optimize_trajectory(model, q_start(dtype), "tool", target(model, dtype), **given)


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


@pytest.mark.slow
def test_a_limit_of_zero_means_the_same_to_cost_and_report(dtype):
    """What the report calls infinitely beyond a limit costs something, and what stands still costs nothing."""
    model = with_limits(pole_arm(), velocity_limit=jnp.array([0.0, 9.0]))
    only_limits = TrajectoryCost(pose=0.0, smoothness=0.0, collision=0.0)
    for joint, kept in ((0, False), (1, True)):
        motion = Trajectory(
            q_start(dtype), jnp.full((8, 1), 0.01, dtype), jnp.asarray(2.0, dtype), (joint,), (joint,), 2
        )
        cost = reach(model, dtype, joints=[joint], initial=motion, steps=1, duration=2.0, cost=only_limits).costs[0]
        ratio = check_trajectory(model, motion, "tool", target(model, dtype)).velocity_ratio
        assert (cost == 0.0 and 0.0 < ratio < 1.0) if kept else (cost > 1e-6 and ratio == np.inf)


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
        (ArgumentError, "steps must be at least 1", {"steps": 0}),
        (ArgumentError, "points must be at least 2", {"points": 1}),
        (ArgumentError, "coefficients must be at least 1", {"coefficients": np.int64(0)}),
        (DtypeError, "steps must be an integer, got 2.5", {"steps": 2.5}),
        (DtypeError, "points must be an integer, got '48'", {"points": "48"}),
        (DtypeError, "coefficients must be an integer, got True", {"coefficients": True}),
        (DtypeError, "duration must be an array of floats, got str", {"duration": "1"}),
        (ShapeError, "duration must have shape", {"duration": jnp.ones(2)}),
        (ArgumentError, "learning_rate must be positive and finite", {"learning_rate": -1.0}),
        (DtypeError, "cost must be a TrajectoryCost, got float", {"cost": 3.0}),
        (DtypeError, "cost.pose must be an array of floats, got str", {"cost": TrajectoryCost(pose="much")}),  # type: ignore[arg-type]
        (DtypeError, "initial must be a Trajectory, got int", {"initial": 5}),
        (DtypeError, r"collision_pairs must be what .* got list", {"collision_pairs": [("base", "lower")]}),
        (ArgumentError, "q_start must be finite", {"q": jnp.array([0.0, jnp.nan])}),
        *((ArgumentError, message, {"goal": jnp.asarray(wrong)}) for message, wrong in NO_POSES),
        (ArgumentError, "duration must be positive and finite, got 0.0", {"duration": 0.0}),
        (ArgumentError, "duration must be positive and finite, got nan", {"duration": float("nan")}),
    ]:
        with pytest.raises(error, match=message):
            call(**wrong)
    with pytest.raises(DtypeError, match="model must be a Model"):
        optimize_trajectory("arm", q, "tool", goal, duration=1.0)  # type: ignore[arg-type]

    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rbydyn_jax\[opt\]'"):
        call()


def test_tracing_is_refused():
    model = pole_arm()

    def last_cost(q, goal, **options):
        return optimize_trajectory(model, q, "tool", goal, **({"duration": 1.0, "steps": 1} | options)).costs[-1]

    q, goal = q_start(), target(model)
    for traced in (
        lambda: jax.jit(last_cost)(q, goal),
        lambda: jax.jit(lambda: last_cost(q, goal))(),  # no argument is traced, but what is computed of them
        lambda: jax.grad(last_cost)(q, goal),
        lambda: jax.vmap(last_cost, in_axes=(0, None))(q[None], goal),
        lambda: jax.jit(lambda t: last_cost(q, goal, duration=t))(1.0),
    ):
        with pytest.raises(RbydynError, match=r"optimize_trajectory .* call it outside of jit"):
            traced()


def test_numbers_of_numpy_and_jax_are_numbers(dtype):
    plain = reach(pole_arm(), dtype, steps=3, duration=1.0, cost=TrajectoryCost(pose=1.0))
    other = {"steps": np.int64(3), "duration": np.int32(1), "cost": TrajectoryCost(pose=jnp.asarray(1.0))}
    assert (reach(pole_arm(), dtype, **other).costs == plain.costs).all()


def test_joints_must_have_one_coordinate_and_initial_must_fit(past_the_pole, dtype):
    model, heedless, _, _ = past_the_pole
    with pytest.raises(DtypeError, match=r"initial must be a Trajectory, got TrajectoryResult; pass its .trajectory"):
        reach(model, dtype, initial=heedless)
    with pytest.raises(ArgumentError, match="initial must move the joints named"):
        reach(model, dtype, initial=heedless.trajectory, joints=["elbow"])
    with pytest.raises(ShapeError, match=r"initial.coefficients must have shape \(5, 2\)"):
        reach(model, dtype, initial=heedless.trajectory, coefficients=5)
    flying = robots.two_link_arm(floating_base=True, dtype=dtype)
    root = flying.joint_names[0]
    q = jnp.zeros(flying.nq, dtype).at[0].set(1.0)
    with pytest.raises(ModelError, match=f"joint '{root}' has no single coordinate of its own \\(floating\\)"):
        optimize_trajectory(flying, q, "tool", jnp.eye(4, dtype=dtype), duration=1.0, joints=[root])
