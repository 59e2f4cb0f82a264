"""The short form: past a pole at the limits of the actuators, and what wrong arguments are told."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, ModelError, NameNotFoundError, RbydynError, ShapeError, robots
from rbydyn_jax.planning import (
    ComGoal,
    ConfigurationGoal,
    PoseGoal,
    TrajectoryProblem,
    check_trajectory,
    optimize_trajectory,
    solve_trajectory,
)
from rbydyn_jax.planning.goals import time
from tests.helpers import X64, assert_close, untyped

from .arms import NO_POSES, pole_arm, pole_pairs, q_start, target

DURATION = 0.48
CLEARANCE = 0.01


def reach(model, dtype, **options):
    given: dict[str, Any] = {
        "duration": DURATION,
        "collision_pairs": pole_pairs(model),
        "clearance": CLEARANCE,
    } | options
    return optimize_trajectory(model, q_start(dtype), "tool", target(model, dtype), **given)


@pytest.fixture(scope="module")
def past_the_pole():
    model, dtype = pole_arm(), jnp.float64 if X64 else jnp.float32
    return model, reach(model, dtype)


def measure(model, trajectory, dtype):
    return check_trajectory(
        model, trajectory, "tool", target(model, dtype), collision_pairs=pole_pairs(model), points=1001
    )


@pytest.mark.slow
@pytest.mark.float32
def test_motion_keeps_its_limits_where_the_first_one_does_not(past_the_pole, dtype):
    model, good = past_the_pole
    before, after = measure(model, good.initial, dtype), measure(model, good.trajectory, dtype)
    assert good.solved
    assert before.distance is not None and after.distance is not None
    assert before.distance < -0.01 and before.acceleration_ratio > 1.05 and before.torque_ratio > 1.05
    tolerance = 1e-4 if X64 else 1e-3
    assert (
        after.distance > CLEARANCE - 0.1 * tolerance and after.position_error < 1e-5 and after.orientation_error < 1e-4
    )
    for ratio in (after.position_ratio, after.velocity_ratio, after.acceleration_ratio, after.torque_ratio):
        assert 0.2 < ratio <= 1.0 + tolerance
    assert after.smoothness > before.smoothness  # what it costs
    assert good.trajectory.coefficients.dtype == dtype and good.costs.dtype == dtype


@pytest.mark.slow
def test_motion_starts_and_ends_at_rest(past_the_pole, dtype):
    model, good = past_the_pole
    at = measure(model, good.trajectory, dtype).samples
    assert (at.q[0] == q_start(dtype)).all()
    for x in (at.v, at.a):
        assert_close(x[jnp.array([0, -1])], np.zeros((2, 2)), scale=float(jnp.abs(x).max()))


@pytest.mark.slow
def test_it_goes_on_from_a_given_motion(past_the_pole, dtype):
    model, good = past_the_pole
    again = reach(model, dtype, initial=good.trajectory)
    assert again.solved and (again.initial.coefficients == good.trajectory.coefficients).all()
    assert again.costs[0] < 1.01 * good.costs[int(good.iterations) - 1]


def test_wrong_arguments():
    model = pole_arm()
    q, goal = q_start(), target(model)

    def call(q=q, link="tool", goal=goal, **options):
        given: dict[str, Any] = {"duration": 1.0} | options
        return optimize_trajectory(model, q, link, goal, **given)

    def f(*x):
        return x[1]

    for error, message, wrong in [
        (ShapeError, r"q_start must have shape \(2,\)", {"q": jnp.zeros(3)}),
        (DtypeError, "q_start must be an array of floats, got list", {"q": [0.0, 0.0]}),
        (ShapeError, r"target must have shape \(4, 4\)", {"goal": jnp.eye(3)}),
        (ShapeError, r"target must have shape \(2, 4, 4\)", {"link": ("tool", "lower")}),
        (ArgumentError, "link must name at least one link", {"link": ()}),
        (NameNotFoundError, "did you mean 'tool'", {"link": "tol"}),
        (NameNotFoundError, "did you mean 'elbow'", {"joints": ["elbw"]}),
        (ModelError, "joint 'elbow' is listed twice", {"joints": ["elbow", 1]}),
        (ArgumentError, "joints must name at least one joint", {"joints": []}),
        (DtypeError, "joints must be a tuple of joints, by name or index, got int", {"joints": 0}),
        (DtypeError, "joints must be a tuple of joints, by name or index, got str", {"joints": "shoulder"}),
        (DtypeError, "optimize_trajectory has no argument 'foo'", {"foo": 3}),
        (DtypeError, "optimize_trajectory has no argument 'goals'; link and target are the goals", {"goals": []}),
        (ModelError, "no joint moves link 'base'", {"link": "base"}),
        (ArgumentError, "iterations must be at least 1", {"iterations": 0}),
        (ArgumentError, "attempts must be at least 1", {"attempts": 0}),
        (ArgumentError, "points must be at least 2", {"points": 1}),
        (ArgumentError, "coefficients must be at least 1", {"coefficients": np.int64(0)}),
        (DtypeError, "points must be an integer, got '48'", {"points": "48"}),
        (DtypeError, "coefficients must be an integer, got True", {"coefficients": True}),
        (DtypeError, "duration must be an array of floats, got str", {"duration": "1"}),
        (ShapeError, "duration must have shape", {"duration": jnp.ones(2)}),
        (DtypeError, "clearance must be an array of floats, got str", {"clearance": "much"}),
        (ShapeError, r"start_velocity must have shape \(2,\)", {"start_velocity": jnp.zeros(3)}),
        *(
            (ArgumentError, f"{k} must be finite", {k: jnp.array([jnp.nan, 0.0])})
            for k in ("start_velocity", "end_velocity")
        ),
        (DtypeError, r"costs\[0\] must be a function of \(model, q, v, a, tau, t\), got float", {"costs": [3.0]}),
        (DtypeError, "costs must be a list of functions, got str", {"costs": "effort"}),
        (
            DtypeError,
            r"constraints\[1\] must be a function of \(model, .*, got one of \(q\)",
            {"constraints": [f, lambda q: q]},
        ),
        (DtypeError, "constraints must be a list of functions, got function", {"constraints": lambda *_: 0.0}),
        (DtypeError, "initial must be a Trajectory, got int", {"initial": 5}),
        (DtypeError, r"collision_pairs must be what .* got list", {"collision_pairs": [("base", "lower")]}),
        (ArgumentError, "q_start must be finite", {"q": jnp.array([0.0, jnp.nan])}),
        *((ArgumentError, message, {"goal": jnp.asarray(wrong)}) for message, wrong in NO_POSES_OF_GOALS),
        (ArgumentError, "duration must be finite and positive, got 0.0", {"duration": 0.0}),
        (ArgumentError, "duration must be finite and positive, got nan", {"duration": float("nan")}),
    ]:
        with pytest.raises(error, match=message):
            call(**wrong)
    with pytest.raises(TypeError, match=r"optimize_trajectory\(\) got multiple values for argument 'q_start'"):
        call(q_start=q)
    with pytest.raises(DtypeError, match="model must be a Model"):
        optimize_trajectory(untyped("arm"), q, "tool", goal, duration=1.0)


NO_POSES_OF_GOALS = [(message.replace("target", r"goals\[0\].target", 1), wrong) for message, wrong in NO_POSES]


def test_instants_are_numbers_of_any_kind():
    assert time(np.float32(0.5), "goal") == 0.5 and time(np.int64(1), "goal") == 1.0
    for wrong in (np.array([0.5, 0.6]), np.float32(np.nan), True, None):
        with pytest.raises(ArgumentError, match=r"goal\.at must be a number between 0 and 1"):
            time(wrong, "goal")


def test_wrong_problems():
    model = pole_arm()
    q, pose = q_start(), target(model)
    for error, message, goals in [
        (DtypeError, "goals must be a list of goals such as PoseGoal, got PoseGoal", PoseGoal("tool", pose)),
        (DtypeError, r"goals\[1\] must be a goal such as PoseGoal, got str", [PoseGoal("tool", pose), "home"]),
        (ArgumentError, "goals must hold at least one at an instant", []),
        (ArgumentError, "goals must hold at least one at an instant", [PoseGoal("tool", pose, at="path")]),
        (
            ArgumentError,
            r"goals\[0\].at must be a number between 0 and 1, or 'path', got 2.0",
            [PoseGoal("tool", pose, at=2.0)],
        ),
        (ArgumentError, r"goals\[0\].at must be a share", [ConfigurationGoal(q, at=untyped("path"))]),
        (ArgumentError, r"goals\[0\].position_band must not be negative", [PoseGoal("tool", pose, position_band=-1.0)]),
        (ShapeError, r"goals\[0\].q must have shape \(2,\)", [ConfigurationGoal(jnp.zeros(3))]),
        (NameNotFoundError, "did you mean 'lower'", [PoseGoal("tool", pose, ref="lowr")]),
        (ArgumentError, r"goals\[0\].link and goals\[0\].ref must be two links", [PoseGoal("tool", pose, ref="tool")]),
        (
            DtypeError,
            r"goals\[0\].axes\[0\] must be an integer, got 0.0",
            [ComGoal(jnp.zeros(3), axes=untyped((0.0, 1)))],
        ),
        (DtypeError, r"goals\[0\].axes must be a tuple", [ComGoal(jnp.zeros(3), axes=untyped(0))]),
        (ArgumentError, r"goals\[0\].axes must be some of 0, 1 and 2", [ComGoal(jnp.zeros(3), axes=(0, 3))]),
    ]:
        with pytest.raises(error, match=message):
            TrajectoryProblem(model, q, untyped(goals), duration=1.0)
    reach = [PoseGoal("tool", pose)]
    for wrong in (42, "a", jnp.zeros(3), jax.random.split(jax.random.key(0))):
        with pytest.raises(DtypeError, match="key must be one key of"):
            TrajectoryProblem(model, q, reach, key=untyped(wrong))
    for wrong in (jnp.nan, jnp.asarray(jnp.inf)):
        with pytest.raises(ArgumentError, match="clearance must be finite"):
            TrajectoryProblem(model, q, reach, clearance=wrong)
    for wrong in (model, "x"):
        with pytest.raises(DtypeError, match=f"problem must be a TrajectoryProblem, got {type(wrong).__name__}"):
            solve_trajectory(untyped(wrong))


def test_tracing_is_refused():
    model = pole_arm()

    def cost(q, goal, **options):
        given: dict[str, Any] = {"duration": 1.0} | options
        return optimize_trajectory(model, q, "tool", goal, **given).costs[-1]

    q, goal = q_start(), target(model)
    for traced in (
        lambda: jax.jit(cost)(q, goal),
        lambda: jax.jit(lambda: cost(q, goal))(),  # no argument is traced, but what is computed of them
        lambda: jax.grad(cost)(q, goal),
        lambda: jax.vmap(cost, in_axes=(0, None))(q[None], goal),
        lambda: jax.jit(lambda t: cost(q, goal, duration=t))(1.0),
    ):
        with pytest.raises(RbydynError, match=r"optimize_trajectory .* outside of jit, vmap and grad, or use solve_tr"):
            traced()


def test_a_robot_without_shapes_is_warned_of(dtype):
    model = robots.double_pendulum(dtype=dtype)
    with pytest.warns(UserWarning, match="'double_pendulum' has no collision shapes"), pytest.raises(ArgumentError):
        optimize_trajectory(model, jnp.ones(2, dtype), "lower", jnp.eye(4, dtype=dtype), duration=-1.0)


@pytest.mark.slow
def test_joints_must_have_one_coordinate_and_initial_must_fit(past_the_pole, dtype):
    model, good = past_the_pole
    with pytest.raises(DtypeError, match=r"initial must be a Trajectory, got TrajectoryResult; pass its .trajectory"):
        reach(model, dtype, initial=good)
    with pytest.raises(ArgumentError, match="initial must move the joints named"):
        reach(model, dtype, initial=good.trajectory, joints=["elbow"])
    with pytest.raises(ShapeError, match=r"initial.coefficients must have shape \(5, 2\)"):
        reach(model, dtype, initial=good.trajectory, coefficients=5)
    flying = robots.two_link_arm(floating_base=True, dtype=dtype)
    root = flying.joint_names[0]
    q = jnp.zeros(flying.nq, dtype).at[0].set(1.0)
    with pytest.raises(ModelError, match=f"joint '{root}' has no single coordinate of its own \\(floating\\)"):
        optimize_trajectory(flying, q, "tool", jnp.eye(4, dtype=dtype), duration=1.0, joints=[root])
