"""Trajectory problems, against pinocchio, scipy, and motions with known answers."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    ModelError,
    RobotBuilder,
    ShapeError,
    build_model,
    center_of_mass,
    link_pose,
    lock_joints,
    no_recompile,
    random_configuration,
    robots,
    with_limits,
)
from rbydyn_jax.io.description import Mimic
from rbydyn_jax.planning import (
    ComGoal,
    ConfigurationGoal,
    PoseGoal,
    PositionGoal,
    TrajectoryProblem,
    TrajectoryStatus,
    TrajectoryViolations,
    check_trajectory,
    sample_trajectory,
    solve_trajectory,
)
from rbydyn_jax.planning._lanes import LANES
from tests.helpers import X64, assert_close, oracle

Q_START = np.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
Q_GOAL = np.array([-0.5, 0.3, 0.4, -1.2, 0.4, 1.9, -0.3])


QUICK: dict[str, Any] = {"duration": 2.0, "clearance": None, "attempts": 2, "iterations": 20}


def panda_problem(q_start, target, duration=2.5, **options):
    goals = [PoseGoal("tool", target), *options.pop("more", ())]
    return TrajectoryProblem(robots.panda_like(), q_start, goals, **{"duration": duration, "clearance": None} | options)


def reach(**options):
    arm = robots.panda_like()
    return panda_problem(jnp.asarray(Q_START), link_pose(arm, jnp.asarray(Q_GOAL), "tool"), **options)


def random_problems(seed: int, count: int) -> list[TrajectoryProblem]:
    """Reachable poses; the middle half of the ranges of position, so that gravity can be borne."""
    arm = robots.panda_like()
    q = jax.vmap(random_configuration, (None, 0))(arm, jax.random.split(jax.random.key(seed), 2 * count))
    targets = jax.vmap(lambda x: link_pose(arm, x, "tool"))(q[count:])
    return [panda_problem(a, b) for a, b in zip(q[:count], targets, strict=True)]


def slider(**limits):
    """One joint without gravity, 2 m of travel."""
    from rbydyn_jax import RobotBuilder, build_model

    b = RobotBuilder("slider").link("base").link("cart", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.prismatic("rail", "base", "cart", axis=(1, 0, 0), **{"lower": -5.0, "upper": 5.0} | limits)
    return build_model(b.build_description())


def slide(duration: float | None = 1.0, jerk_limit: Any = None, **limits):
    q = jnp.zeros(1)
    goals, jerk = [ConfigurationGoal(q + 1.0)], None if jerk_limit is None else q + jerk_limit
    return TrajectoryProblem(slider(**limits), q, goals, duration=duration, jerk_limit=jerk, clearance=None)


@pytest.mark.slow
def test_random_problems_are_solved_as_pinocchio_measures_them():
    oracle("pinocchio")
    import pinocchio as pin

    from rbydyn_jax.engines.conventions import batch
    from rbydyn_jax.engines.pinocchio import pin_model

    arm = robots.panda_like()
    reference = pin_model(arm)
    frame = reference.model.getFrameId("tool")
    for problem in random_problems(11, 20):
        result = solve_trajectory(problem)
        assert result.solved, vars(result.violations)
        at = sample_trajectory(result.trajectory, 401)
        q, v = np.asarray(at.q), np.asarray(at.v)
        assert (q[0] == np.asarray(problem.q_start)).all() and np.abs(v[[0, -1]]).max() < 1e-9
        pin.framesForwardKinematics(reference.model, reference.data, q[-1])
        (goal,) = problem.goals
        assert_close(reference.data.oMf[frame].homogeneous, goal.target, 1e-8)  # type: ignore[attr-defined]
        tau = batch(reference.rnea, at.q, at.v, at.a) + 0.5 * v + 0.2 * np.sign(v)
        for x, limit in ((v, arm.velocity_limit), (at.a, arm.acceleration_limit), (tau, arm.effort_limit)):
            assert (np.abs(x) <= (1.0 + 1e-4) * np.asarray(limit)[None]).all()
        assert (q >= np.asarray(arm.position_lower)[None]).all() and (q <= np.asarray(arm.position_upper)[None]).all()


@pytest.mark.slow
def test_short_motions_need_no_second_attempt():
    """A first motion that happens to meet its goal to the last bit is no better than the others."""
    arm, rng = robots.panda_like(), np.random.default_rng(5)
    middle = 0.5 * (np.asarray(arm.position_lower) + np.asarray(arm.position_upper))
    for _ in range(60):
        q = middle + rng.uniform(-0.4, 0.4, 7)
        target = link_pose(arm, jnp.asarray(q + rng.uniform(-0.3, 0.3, 7)), "tool")
        result = solve_trajectory(panda_problem(jnp.asarray(q), target, 5.0))
        assert result.solved and result.attempts == 1 and result.iterations < 20


@pytest.mark.slow
def test_without_active_limits_it_is_the_motion_of_minimum_jerk():
    result = solve_trajectory(slide())
    assert result.solved
    # The cost of 10 s^3 - 15 s^4 + 6 s^5 over one metre, and its peak velocity 15/8.
    assert_close(0.5 * jnp.sum(result.trajectory.coefficients**2), 0.5, 1e-9)
    assert_close(sample_trajectory(result.trajectory, 3).v[1, 0], 15 / 8, 1e-9)


@pytest.mark.slow
def test_a_limit_of_velocity_costs_what_scipy_finds():
    """Minimum jerk in the same splines, the limit a constraint at 97 times, by SLSQP."""
    from scipy.optimize import minimize

    from rbydyn_jax.planning import rest_to_rest_basis

    limit = 1.4  # the free motion has 15/8
    result = solve_trajectory(slide(velocity=limit))
    assert result.solved
    slope, end = rest_to_rest_basis(8, np.linspace(0, 1, 97), 1), rest_to_rest_basis(8, np.ones(1))[0]
    constraints = [
        {"type": "eq", "fun": lambda z: end @ z - 1.0},
        {"type": "ineq", "fun": lambda z: limit - slope @ z},
    ]
    best = minimize(lambda z: 0.5 * z @ z, end, constraints=constraints, method="SLSQP", options={"ftol": 1e-12})
    assert best.success
    cost = 0.5 * float(jnp.sum(result.trajectory.coefficients**2))
    assert best.fun > 0.55 and abs(cost / best.fun - 1.0) < 0.01
    # Stationarity: the cost's gradient is a combination of that of the goal and of the limit, pushing down only.
    dual = np.asarray(result.multipliers.bounds)[1, :, 0] / limit
    z = np.asarray(result.trajectory.coefficients)[:, 0]
    pushed = z + slope.T @ dual
    left = pushed - end * (end @ pushed) / (end @ end)
    assert (dual >= 0).all() and dual.max() > 0 and np.abs(left).max() < 0.05 * np.abs(z).max()


@pytest.mark.skipif(not X64, reason="the bound is that of float64")
@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 19, 31, 43])
def test_motions_to_a_position_end_at_the_configuration_that_scipy_finds(seed):
    """In enough time the smoothest one is that to the nearest configuration: what it costs is half its squared way."""
    from scipy.optimize import minimize

    from rbydyn_jax.planning import rest_to_rest_basis

    arm = robots.panda_like()
    start, other = (np.asarray(random_configuration(arm, key)) for key in jax.random.split(jax.random.key(seed)))
    position = jax.jit(lambda q: link_pose(arm, q, "tool")[:3, 3])
    target, slope = position(other), jax.jit(jax.jacfwd(position))
    goals = [PositionGoal("tool", target)]
    result = solve_trajectory(TrajectoryProblem(arm, jnp.asarray(start), goals, duration=20.0, clearance=None))
    assert result.solved
    end = rest_to_rest_basis(8, np.ones(1))[0]
    way = end @ np.asarray(result.trajectory.coefficients)
    best = minimize(
        lambda q: (0.5 * np.sum((q - start) ** 2), q - start),
        start + way,
        jac=True,
        bounds=list(zip(arm.position_lower, arm.position_upper, strict=True)),
        constraints=[{"type": "eq", "fun": lambda q: position(q) - target, "jac": slope}],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.success
    assert 0.5 * np.sum(np.asarray(result.trajectory.coefficients) ** 2) < 1.01 * best.fun / (end @ end)


@pytest.mark.slow
def test_a_limit_of_jerk_costs_what_scipy_finds_and_so_does_its_change():
    from scipy.optimize import minimize

    from rbydyn_jax.planning import rest_to_rest_basis

    jerk, end = rest_to_rest_basis(8, np.linspace(0, 1, 97), 3), rest_to_rest_basis(8, np.ones(1))[0]

    def best(limit):
        constraints = [
            {"type": "eq", "fun": lambda z: end @ z - 1.0},
            {"type": "ineq", "fun": lambda z: np.concatenate([limit - jerk @ z, limit + jerk @ z]) / limit},
        ]
        found = minimize(lambda z: 0.5 * z @ z, end, constraints=constraints, method="SLSQP", options={"ftol": 1e-14})
        assert found.success
        return found.x

    limit = 45.0  # the free motion has 60
    result = solve_trajectory(slide(jerk_limit=limit))
    assert result.solved and result.violations.jerk <= 1e-4
    assert solve_trajectory(slide()).violations.jerk == 0.0
    z, want = np.asarray(result.trajectory.coefficients)[:, 0], best(limit)
    assert want @ want > 1.01 and abs(z @ z / (want @ want) - 1.0) < 0.01
    assert np.abs(rest_to_rest_basis(8, np.linspace(0, 1, 4001), 3) @ z).max() <= limit * (1.0 + 2e-4)
    if X64:
        by_limit = jax.jacfwd(lambda x: solve_trajectory(slide(jerk_limit=x)).trajectory.coefficients[:, 0])(limit)
        assert_close(by_limit, (best(limit + 0.1) - best(limit - 0.1)) / 0.2, 0.05)


@pytest.mark.slow
def test_the_shortest_time_under_a_limit_of_jerk():
    """No shorter than the profile of constant jerks, which takes (32 d / j)^(1/3); from a moving start too."""
    result = solve_trajectory(slide(duration=None, jerk_limit=40.0))
    least = (32.0 / 40.0) ** (1.0 / 3.0)
    assert result.solved and least < float(result.trajectory.duration) < 1.05 * least
    goals = [ConfigurationGoal(jnp.ones(1))]
    options = {"start_velocity": jnp.array([0.3]), "jerk_limit": jnp.array([30.0]), "clearance": None}
    moving = TrajectoryProblem(slider(), jnp.zeros(1), goals, **options)
    found = solve_trajectory(moving)
    at = sample_trajectory(found.trajectory, 4001)
    jerk = jnp.abs(jnp.diff(at.a, axis=0)).max() / at.times[1]
    assert found.solved and 29.0 < float(jerk) < 30.0 * (1 + 1e-3)


@pytest.mark.slow
def test_limits_of_jerk_are_inputs_and_their_arrays_are_checked():
    batch = jax.tree.map(lambda *x: jnp.stack(x), *(slide(jerk_limit=x) for x in (45.0, 50.0, 55.0)))
    results = jax.jit(jax.vmap(solve_trajectory))(batch)
    costs = np.sum(np.asarray(results.trajectory.coefficients) ** 2, axis=(1, 2))
    assert bool(results.solved.all()) and (np.diff(costs) < -1e-4).all()
    with pytest.raises(ArgumentError, match=r"jerk_limit.* must be positive"):
        slide(jerk_limit=-1.0)
    with pytest.raises(ShapeError, match="jerk_limit must have shape"):
        TrajectoryProblem(slider(), jnp.zeros(1), [ConfigurationGoal(jnp.ones(1))], jerk_limit=jnp.ones(2))


@pytest.mark.slow
def test_the_shortest_time_is_that_of_the_limit():
    problem = TrajectoryProblem(
        slider(velocity=1.0, acceleration=4.0), jnp.zeros(1), [ConfigurationGoal(jnp.ones(1))], clearance=None
    )
    result = solve_trajectory(problem)
    assert result.solved
    # Bang-bang acceleration takes 1.25 s; with continuous acceleration in 8 splines a third more at most.
    assert 1.25 < float(result.trajectory.duration) < 1.25 * 4 / 3


@pytest.mark.slow
def test_a_free_duration_waits_for_what_depends_on_time():
    def behind(model, q, v, a, tau, t):
        return q[:1] - 0.5 * t  # a door that opens at 0.5 rad/s

    def late(model, q, v, a, tau, t):
        return 300.0 * (t - 4.0)[None]

    def solved(**functions):
        goal = [ConfigurationGoal(jnp.array([1.0, 0.2]))]
        problem = TrajectoryProblem(robots.two_link_arm(), jnp.zeros(2), goal, clearance=None, **functions)
        return solve_trajectory(problem)

    door = solved(constraints=[behind])
    assert door.solved and 2.0 <= float(door.trajectory.duration) < 2.5  # it is open by 1 rad after 2 s
    motion = sample_trajectory(door.trajectory, 401)
    assert float(jnp.max(motion.q[:, 0] - 0.5 * motion.times)) < 1e-4
    costly = solved(costs=[late])
    # Half the mean of (300 (s T - 4))^2 over s in [0, 1] is 45000 (T^2 / 3 - 4 T + 16), least at T = 6; the weight of
    # the duration shortens that.
    assert costly.solved and 5.0 < float(costly.trajectory.duration) < 6.0


def test_the_largest_violation_of_a_batch_is_that_of_each():
    values = np.random.default_rng(0).uniform(size=(9, 2, 3))
    assert (TrajectoryViolations(*map(jnp.asarray, values)).largest() == jnp.asarray(values).max(axis=0)).all()


@pytest.mark.ci
def test_a_start_beyond_a_limit_comes_back():
    arm = with_limits(robots.two_link_arm(), position_lower=-jnp.ones(2), position_upper=jnp.ones(2))
    stays, comes = (
        solve_trajectory(
            TrajectoryProblem(arm, jnp.array([0.0, 1.6]), [ConfigurationGoal(jnp.array([0.5, x]))], **QUICK)
        )
        for x in (1.5, 0.9)
    )
    assert stays.status == TrajectoryStatus.NOT_FEASIBLE
    assert_close(stays.violations.position, 0.5, 1e-6)
    assert comes.solved and float(sample_trajectory(comes.trajectory, 101).q[:, 1].max()) < 1.6 + 1e-4


@pytest.mark.ci
def test_a_goal_at_a_limit_is_within_it():
    arm = with_limits(robots.two_link_arm(), position_lower=-jnp.ones(2), position_upper=jnp.ones(2))
    problem = TrajectoryProblem(arm, jnp.array([-0.5, 0.6]), [ConfigurationGoal(jnp.ones(2))], **QUICK)
    for target, beyond in (
        (jnp.array([1.0, -1.0]), 0.0),
        (jnp.array([1.0 - 5e-5, 0.2]), 0.0),
        (jnp.ones(2) + 3e-5, 3e-5),
    ):
        result = solve_trajectory(eqx.tree_at(lambda p: p.goals[0].q, problem, target))
        assert result.solved and int(result.attempts) == 1
        q = sample_trajectory(result.trajectory, 1001).q
        assert_close(q[-1], target, 1e-9)
        for found in (result.violations.position, jnp.max(jnp.abs(q)) - 1.0):
            assert beyond - 1e-9 <= max(float(found), 0.0) <= beyond + 1e-9


@pytest.mark.slow
def test_whole_turns_of_a_joint_that_another_follows_are_kept():
    builder = RobotBuilder("gear").link("world").link("a", 1.0, (0.2, 0, 0), 0.02)
    wide = {"axis": (0, 0, 1), "lower": -6.2, "upper": 6.2, "velocity": 20.0}
    builder.revolute("j1", "world", "a", **wide).link("b", 1.0, (0.2, 0, 0), 0.02)
    builder.revolute("j2", "a", "b", xyz=(0.5, 0, 0), mimic=Mimic("j1", 0.5, 0.0), **wide)
    model = build_model(builder.link("tip").fixed("mount", "b", "tip", xyz=(0.4, 0, 0)))
    goal = PoseGoal("tip", link_pose(model, jnp.array([5.0]), "tip"))
    options: dict[str, Any] = QUICK | {"duration": 5.0}
    result = solve_trajectory(TrajectoryProblem(model, jnp.zeros(1), [goal], **options))
    assert result.solved
    assert_close(sample_trajectory(result.trajectory, 3).q[-1], jnp.array([5.0]), 1e-6)


@pytest.mark.slow
def test_the_joint_that_one_on_the_way_mimics_moves():
    """Two fingers, of which one slides as the other does: the joint of the other is beside the way to the first."""
    builder = RobotBuilder("gripper").link("hand")
    builder.link("left", 0.1, (0, 0, 0), 1e-4).link("right", 0.1, (0, 0, 0), 1e-4)
    slide: dict[str, Any] = {"lower": 0.0, "upper": 0.05, "velocity": 0.2}
    builder.prismatic("left", "hand", "left", axis=(0, 1, 0), **slide)
    builder.prismatic("right", "hand", "right", axis=(0, -1, 0), mimic=Mimic("left", 1.0, 0.0), **slide)
    goal = PositionGoal("right", jnp.array([0.0, -0.03, 0.0]))
    model = build_model(builder)
    with pytest.raises(ModelError, match="'right' mimics another: name that one"):
        TrajectoryProblem(model, jnp.zeros(1), [goal], joints=["right"], **QUICK)
    result = solve_trajectory(TrajectoryProblem(model, jnp.zeros(1), [goal], **QUICK))
    assert result.solved
    assert_close(sample_trajectory(result.trajectory, 3).q[-1], jnp.array([0.03]), 1e-6)


@pytest.mark.slow
def test_what_cannot_be_reached_is_not_solved():
    arm = robots.two_link_arm()
    goal = PositionGoal("tool", jnp.array([2.0, 0.0, 0.0]))
    far = TrajectoryProblem(arm, jnp.zeros(2), [goal], **QUICK)
    result = solve_trajectory(far)
    assert result.status == TrajectoryStatus.NOT_FEASIBLE and not result.solved
    assert_close(result.violations.goals, 11.0, 0.3)  # 1.1 m beyond its 0.9 m, in 0.1 m
    assert (
        float(result.violations.largest()) < 12.0 and float(jnp.abs(sample_trajectory(result.trajectory).q).max()) < 4.0
    )
    nowhere = eqx.tree_at(lambda p: p.goals[0].position, far, jnp.full(3, jnp.nan))
    assert solve_trajectory(nowhere).status == TrajectoryStatus.NOT_FINITE


@pytest.mark.ci
def test_history_and_initial_motion():
    result = solve_trajectory(slide(velocity=1.4))
    steps = int(result.iterations)
    for history in (result.costs, result.infeasibilities):  # not NaN, which jax_debug_nans refuses
        assert np.isfinite(history[:steps]).all() and np.isposinf(history[steps:]).all()
    assert_close(result.costs[0], 0.5, 1e-6)
    assert result.infeasibilities[0] > 0.3 and result.infeasibilities[steps - 1] < 1e-4
    assert_close(jnp.sum(result.initial.coefficients**2), 1.0, 1e-6)


@pytest.mark.slow
def test_a_batch_is_each_of_its_problems():
    """More of them than are searched at a time, with one that has no solution among the first."""
    arm = robots.two_link_arm()
    places = jnp.array([[0.3, 0.6], [2.0, 0.0], [0.6, -0.4], [0.5, 0.5], [-0.3, 0.6], [0.1, -0.7], [0.7, 0.3]])
    assert len(places) > LANES
    places = jnp.pad(places, ((0, 0), (0, 1)))
    problems = [TrajectoryProblem(arm, jnp.array([0.2, 0.3]), [PositionGoal("tool", p)], **QUICK) for p in places]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *problems)
    together = jax.jit(jax.vmap(solve_trajectory))(stacked)
    for i, problem in enumerate(problems):
        alone = solve_trajectory(problem)
        assert_close(together.trajectory.coefficients[i], alone.trajectory.coefficients, 1e-5)
        assert together.status[i] == alone.status  # steps at the minimum depend on rounding, and so does their number
    assert together.solved.tolist() == [True, False, True, True, True, True, True]
    none = jax.vmap(solve_trajectory)(jax.tree.map(lambda x: x[:0], stacked))
    assert none.trajectory.coefficients.shape == (0, *together.trajectory.coefficients.shape[1:])


@pytest.mark.ci
def test_traced_durations_that_are_none_are_said():
    problem = TrajectoryProblem(slider(), jnp.zeros(1), [ConfigurationGoal(jnp.ones(1))], **QUICK)
    of = jax.vmap(lambda duration: solve_trajectory(eqx.tree_at(lambda p: p.duration, problem, duration)))
    none = [TrajectoryStatus.NOT_FINITE] * 4
    assert of(jnp.array([2.0, -1.0, 0.0, jnp.inf, jnp.nan])).status.tolist() == [TrajectoryStatus.SOLVED, *none]


@pytest.mark.slow
def test_what_cannot_be_minimised_is_not_solved():
    """The norm of the velocity has no derivative at rest, where a motion begins; its problem changes no other one."""

    def solve(name, low, more):
        def function(model, q, v, a, tau, t):
            return jnp.sqrt(v @ v + low) + more

        given: dict[str, Any] = QUICK | {name: [function]}
        goal = ConfigurationGoal(jnp.ones(1))
        return solve_trajectory(TrajectoryProblem(slider(), jnp.zeros(1), [goal], **given))

    ok, wrong = TrajectoryStatus.SOLVED, TrajectoryStatus.NOT_FINITE
    low, more = jnp.array([1e-12, 0.0, 1e-12, 1e-12]), jnp.array([0.0, 0.0, jnp.nan, jnp.inf])
    found = jax.vmap(lambda *x: solve("costs", *x))(low, more)
    assert found.status.tolist() == [ok, wrong, wrong, wrong]
    assert_close(found.trajectory.coefficients[0], solve("costs", 1e-12, 0.0).trajectory.coefficients, 1e-5)
    limited = jax.vmap(lambda *x: solve("constraints", *x))(low, more - 5.0)
    assert limited.status.tolist() == [ok, ok, wrong, wrong]  # limits that are far have no part in the minimum
    impossible = jax.vmap(lambda *x: solve("constraints", *x))(low, more + 1.0)
    assert impossible.status.tolist() == [TrajectoryStatus.NOT_FEASIBLE, wrong, wrong, wrong]


@pytest.mark.slow
def test_functions_of_the_user_take_batched_values_from_around_them():
    arm, end = robots.two_link_arm(), jnp.array([0.5, 0.9])

    def moved(weight):
        costs = [lambda model, q, v, a, tau, t: weight * (q - 0.2)]
        problem = TrajectoryProblem(arm, jnp.array([0.2, 0.3]), [ConfigurationGoal(end)], **QUICK, costs=costs)
        return solve_trajectory(problem).trajectory.coefficients

    weights = jnp.array([0.0, 30.0])
    together = jax.jit(jax.vmap(moved))(weights)
    assert jnp.abs(together[1] - together[0]).max() > 1e-2
    for i, weight in enumerate(weights):
        assert_close(together[i], moved(weight), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("moved", [0.0, 0.8])
def test_a_motion_that_cannot_be_improved_is_solved_at_once(moved):
    """To a configuration, without active limits: the motion of minimum jerk, or rest."""
    q, s = jnp.array([0.2, 0.3]), np.linspace(0.0, 1.0, 5)[:, None]
    result = solve_trajectory(TrajectoryProblem(robots.two_link_arm(), q, [ConfigurationGoal(q + moved)], **QUICK))
    assert result.solved and result.attempts == 1
    assert_close(sample_trajectory(result.trajectory, 5).q, q[None] + moved * (10 * s**3 - 15 * s**4 + 6 * s**5))


@pytest.mark.slow
def test_end_velocities_and_a_configuration():
    q_goal = np.array([0.8, -0.4])
    start, end = jnp.array([0.3, 0.4]), jnp.array([-0.2, 0.1])
    goals = [ConfigurationGoal(jnp.asarray(q_goal))]
    problem = TrajectoryProblem(
        robots.two_link_arm(), jnp.array([0.2, 0.3]), goals, start_velocity=start, end_velocity=end, **QUICK
    )
    result = solve_trajectory(problem)
    at = sample_trajectory(result.trajectory, 11)
    assert result.solved
    assert_close(at.q[-1], q_goal, 1e-9)
    assert_close(at.v[0], start, 1e-9)
    assert_close(at.v[-1], end, 1e-9)
    assert_close(sample_trajectory(result.initial, 3).q[-1], q_goal, 1e-6)  # what its search asks for


@pytest.mark.slow
def test_a_point_on_the_way_and_functions_of_the_user():
    arm, via = robots.panda_like(), jnp.array([0.5, 0.1, 0.61])

    def below(height, model, q, v, a, tau, t):
        return link_pose(model, q, "tool")[2, 3] - height

    def effort(model, q, v, a, tau, t):
        return tau / 20.0

    free = solve_trajectory(reach())
    heights = jax.vmap(lambda q: link_pose(arm, q, "tool")[2, 3])(sample_trajectory(free.trajectory, 201).q)
    height = 0.5 * (heights[0] + heights.max())  # above the start, below the highest point
    assert via[2] < height < heights.max() - 4e-3
    kept = solve_trajectory(
        reach(
            constraints=[jax.tree_util.Partial(below, height)], costs=[effort], more=[PositionGoal("tool", via, at=0.5)]
        )
    )
    assert free.solved and kept.solved
    q = sample_trajectory(kept.trajectory, 201).q
    places = jax.vmap(lambda q: link_pose(arm, q, "tool")[:3, 3])(q)
    assert_close(places[100], via, 1e-8)
    assert float(places[:, 2].max()) <= float(height) + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"duration": 8.0}, {"duration": None}, {"duration": 8.0, "end": 0.2}])
def test_first_motions_lead_through_the_goals_in_between(options):
    """By way of two poses to one or back to the start: of a motion straight to the end, half of such searches fail."""
    arm, end = robots.panda_like(), options.get("end", 0.0)
    rest = 0.5 * (arm.position_lower + arm.position_upper)[None]
    q = rest + 0.5 * (jax.vmap(random_configuration, (None, 0))(arm, jax.random.split(jax.random.key(8), 12)) - rest)
    poses = jax.vmap(lambda x: link_pose(arm, x, "tool"))(q)

    def solved(q_start, first, then, last):
        goals = [PoseGoal("tool", then, at=0.7), PoseGoal("tool", first, at=0.3), last]
        speeds = {"end_velocity": jnp.full(7, end)} if end else {}
        given = {"duration": options["duration"], "clearance": None, **speeds}
        result = solve_trajectory(TrajectoryProblem(arm, q_start, goals, **given))
        ways = [sample_trajectory(motion, 11).q for motion in (result.initial, result.trajectory)]
        return result.solved, jnp.stack([link_pose(arm, way[k], "tool") for way in ways for k in (3, 7)])

    for last in (PoseGoal("tool", poses[0]), ConfigurationGoal(q[0])):
        axes = jax.tree.map(lambda _: None, last)
        found, met = jax.vmap(solved, (0, 0, 0, axes))(q[:4], poses[4:8], poses[8:], last)
        want = jnp.stack([poses[4:8], poses[8:]], axis=1)
        assert found.all()
        assert_close(met[:, :2], want, 1e-5 if X64 else 3e-3)
        assert_close(met[:, 2:], want, 1e-6 if X64 else 1e-3)


@pytest.mark.slow
def test_a_cost_of_effort_lessens_it():
    arm, q = robots.two_link_arm(), jnp.array([0.2, 0.3])

    def effort(model, q, v, a, tau, t):
        return 5.0 * tau

    def mean_effort(**options):
        result = solve_trajectory(TrajectoryProblem(arm, q, [ConfigurationGoal(q + 0.8)], **QUICK, **options))
        assert result.solved
        report = check_trajectory(arm, result.trajectory, "tool", jnp.eye(4), clearance=None)
        squares = jnp.sum(report.torques**2, axis=1)
        over_time = jnp.mean(0.5 * (squares[1:] + squares[:-1]))
        if options:
            cost = result.costs[jnp.isfinite(result.costs)][-1]
            jerk = jnp.sum(result.trajectory.coefficients**2)
            assert_close(cost, 0.5 * (jerk + 25.0 * over_time), 1e-3, scale=float(25.0 * over_time))
        return float(over_time)

    assert mean_effort(costs=[effort]) < 0.99 * mean_effort()


@pytest.mark.slow
def test_two_hands_keep_their_grasp_along_the_path():
    robot = robots.rby1a()
    # The two arms and one joint that is not to move; the others would only make the program longer.
    locked = [name for name in robot.joint_names if "arm" not in name and name != "torso_5"]
    model = lock_joints(robot, dict.fromkeys(locked, 0.0))
    q = np.zeros(model.nq)
    for side, sign in (("right", -1.0), ("left", 1.0)):
        for number, angle in ((0, -0.6), (1, 0.2 * sign), (3, -1.6)):
            q[model.tree.q_slices[model.joint_index(f"{side}_arm_{number}")].start] = angle
    q_start = jnp.asarray(q)
    grasp, hand = link_pose(model, q_start, "ee_left", "ee_right"), link_pose(model, q_start, "ee_right")
    goals = [
        PoseGoal("ee_right", hand.at[:3, 3].add(jnp.array([0.05, 0.0, 0.15]))),
        PoseGoal("ee_left", grasp, ref="ee_right", at="path", position_band=1e-3, orientation_band=5e-3),
    ]
    joints = [f"{side}_arm_{i}" for side in ("right", "left") for i in range(7)]
    result = solve_trajectory(TrajectoryProblem(model, q_start, goals, duration=2.0, joints=joints, clearance=None))
    assert result.solved
    at = sample_trajectory(result.trajectory, 201)
    held = jax.vmap(lambda x: link_pose(model, x, "ee_left", "ee_right"))(at.q)
    assert float(jnp.abs(held[:, :3, 3] - grasp[None, :3, 3]).max()) < 1.1e-3
    assert float(jnp.abs(held[:, :3, :3] - grasp[None, :3, :3]).max()) < 1.2e-2
    assert float(jnp.linalg.norm(link_pose(model, at.q[-1], "ee_right")[:3, 3] - hand[:3, 3])) > 0.15


@pytest.mark.slow
def test_the_centre_of_mass_moves_without_collision():
    model, q = robots.panda_like(), jnp.asarray(Q_START)
    place = center_of_mass(model, q) + jnp.array([0.03, 0.0, -0.02])
    result = solve_trajectory(TrajectoryProblem(model, q, [ComGoal(place)], duration=2.0, joints=model.joint_names[:5]))
    assert result.solved and result.violations.clearance == 0.0
    assert (sample_trajectory(result.trajectory, 2).q[-1] == q)[5:].all()
    assert_close(center_of_mass(model, sample_trajectory(result.trajectory, 2).q[-1]), place, 1e-8)


@pytest.mark.slow
def test_limits_are_inputs():
    problem = reach(duration=1.2)
    first = solve_trajectory(problem)
    slower = eqx.tree_at(lambda p: p.model, problem, with_limits(problem.model, velocity_limit=jnp.full(7, 1.1)))
    with no_recompile():
        second = solve_trajectory(slower)
    assert first.solved and second.solved
    at = sample_trajectory(second.trajectory, 401)
    assert (
        float(jnp.abs(at.v).max())
        <= 1.1 * (1 + 1e-4)
        < float(jnp.abs(sample_trajectory(first.trajectory, 401).v).max())
    )


@pytest.mark.slow
@pytest.mark.float32
def test_in_the_precision_of_the_start(dtype):
    arm = robots.two_link_arm(dtype=dtype)
    goal = PositionGoal("tool", jnp.asarray(np.array([0.3, 0.6, 0.0]), dtype))
    start = jnp.asarray(np.array([0.2, 0.3]), dtype)
    result = solve_trajectory(TrajectoryProblem(arm, start, [goal], **QUICK))
    assert result.solved and result.trajectory.coefficients.dtype == dtype
    place = link_pose(arm, sample_trajectory(result.trajectory, 2).q[-1], "tool")[:3, 3]
    assert_close(place, np.array([0.3, 0.6, 0.0]), 1e-8 if X64 else 1e-4)
