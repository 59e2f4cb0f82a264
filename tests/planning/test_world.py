"""Trajectories among obstacles."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, RobotBuilder, build_model, link_pose, robots
from rbydyn_jax.collision import ShapePairs, World, half_space, sphere, world_distances
from rbydyn_jax.planning import (
    ConfigurationGoal,
    PoseGoal,
    TrajectoryProblem,
    check_trajectory,
    optimize_trajectory,
    sample_trajectory,
    solve_trajectory,
)
from tests.helpers import untyped

START, END = jnp.array([0.2, 0.3]), jnp.array([1.4, 0.3])
NO_PAIRS = ShapePairs((), ())  # the links of the arm are always near each other


def between(arm) -> World:
    """A ball that the tip of the arm meets by 1 cm in the middle of the straight motion, and a floor far below."""
    lower = link_pose(arm, 0.5 * (START + END), "lower")
    floor = half_space(jnp.array([0.0, 0.0, -5.0]), jnp.array([0.0, 0.0, 1.0]))
    return World(sphere(lower[:3, 3] + 0.41 * lower[:3, 0], 0.03), floor)


@pytest.mark.slow
def test_the_motion_avoids_an_obstacle_that_it_would_meet():
    arm = robots.two_link_arm()
    world, clearance = between(arm), 0.02
    target = link_pose(arm, END, "tool")
    plain = optimize_trajectory(arm, START, "tool", target, duration=2.0, clearance=None)
    assert bool(plain.solved)
    straight = check_trajectory(arm, plain.trajectory, "tool", target, world=world, collision_pairs=NO_PAIRS)
    assert straight.distance is not None and straight.distance < 0.0 and not straight.feasible()
    options = {"clearance": clearance, "world": world, "collision_pairs": NO_PAIRS}
    found = optimize_trajectory(arm, START, "tool", target, duration=2.0, **options)
    assert bool(found.solved)
    report = check_trajectory(arm, found.trajectory, "tool", target, world=world, points=1001, collision_pairs=NO_PAIRS)
    assert report.feasible() and report.distance is not None and report.distance > clearance - 1e-4
    q = sample_trajectory(found.trajectory, 1001).q
    assert np.abs(jax.vmap(lambda q: world_distances(arm, q, world))(q).min() - report.distance) < 1e-9


@pytest.mark.slow
def test_a_joint_turns_the_other_way_round_where_the_short_way_is_blocked():
    b = RobotBuilder("boom").link("base").link("boom", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    b.revolute("turn", "base", "boom", axis=(0, 0, 1), lower=-6.2, upper=6.2, velocity=6.0, acceleration=20.0)
    b.capsule("boom", 0.8, 0.03, xyz=(0.5, 0, 0), rpy=(0, math.pi / 2, 0))
    boom = build_model(b.build_description())
    angle, way = 2.5, 1.2
    world = World(sphere(0.5 * jnp.array([math.cos(way), math.sin(way), 0.0]), 0.05))
    goal = PoseGoal("boom", link_pose(boom, jnp.array([angle]), "boom"))
    result = solve_trajectory(TrajectoryProblem(boom, jnp.zeros(1), [goal], duration=3.0, world=world))
    assert bool(result.solved)
    at = sample_trajectory(result.trajectory, 1001)
    assert np.abs(at.q[-1] - (angle - 2.0 * math.pi)).max() < 1e-6
    assert jax.vmap(lambda q: world_distances(boom, q, world))(at.q).min() > 0.01 - 1e-5
    # From 6.1 the nearest turn, to 2.5 + 2 pi, is beyond the limit; two turns down, -3.8, is far.
    near = solve_trajectory(TrajectoryProblem(boom, jnp.array([6.1]), [goal], duration=3.0, world=world))
    assert near.solved and np.abs(sample_trajectory(near.trajectory, 3).q[-1] - angle).max() < 1e-6


@pytest.mark.slow
def test_a_motion_starts_aside_where_an_obstacle_is_straight_ahead():
    """By symmetry no gradient leads a straight motion past the ball, and there is one configuration at the end."""
    b = RobotBuilder("gantry").link("base").link("x").link("ball", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    limits = {"lower": -1.0, "upper": 1.0, "velocity": 3.0, "acceleration": 20.0}
    b.prismatic("along", "base", "x", axis=(1, 0, 0), **limits)
    b.prismatic("across", "x", "ball", axis=(0, 1, 0), **limits)
    b.capsule("ball", 0.02, 0.05)
    gantry = build_model(b.build_description())
    world = World(sphere(jnp.zeros(3), 0.1))
    start, end = jnp.array([-0.5, 0.0]), jnp.array([0.5, 0.0])
    goal = PoseGoal("ball", link_pose(gantry, end, "ball"))

    def solved(attempts):
        problem = TrajectoryProblem(gantry, start, [goal], duration=2.0, world=world, attempts=attempts)
        return solve_trajectory(problem)

    assert not solved(1).solved
    result = solved(6)
    assert bool(result.solved) and result.attempts > 1
    at = sample_trajectory(result.trajectory, 1001).q
    assert np.abs(at[-1] - end).max() < 1e-6
    assert np.linalg.norm(at, axis=1).min() > 0.05 + 0.1 + 0.01 - 1e-5


@pytest.mark.slow
def test_worlds_go_through_vmap():
    arm = robots.two_link_arm()
    center = between(arm).shapes["capsule"].segment[0, 0]

    def problem(height):
        world = World(sphere(center + height * jnp.array([0.0, 0.0, 1.0]), 0.03))
        goals = [ConfigurationGoal(END)]
        return TrajectoryProblem(arm, START, goals, duration=2.0, world=world, clearance=0.02, collision_pairs=NO_PAIRS)

    problems = jax.vmap(problem)(jnp.array([0.0, 0.05]))
    found = jax.jit(jax.vmap(solve_trajectory))(problems)
    assert found.solved.all()
    for k in range(2):
        trajectory, world = jax.tree.map(lambda x, k=k: x[k], (found.trajectory, problems.world))
        q = sample_trajectory(trajectory, 401).q
        assert jax.vmap(lambda q, world=world: world_distances(arm, q, world))(q).min() > 0.02 - 1e-4


@pytest.mark.ci
def test_wrong_arguments_and_robots_without_shapes():
    arm, goal = robots.two_link_arm(), [ConfigurationGoal(END)]
    world = between(arm)
    with pytest.raises(DtypeError, match=r"world must be a collision\.World, got int"):
        TrajectoryProblem(arm, START, goal, duration=1.0, world=untyped(3))
    with pytest.raises(ArgumentError, match="world needs a clearance"):
        TrajectoryProblem(arm, START, goal, duration=1.0, world=world, clearance=None)
    pendulum = robots.pendulum()
    with pytest.warns(UserWarning, match="no collision shapes that move: nothing keeps it from the world"):
        problem = TrajectoryProblem(pendulum, jnp.zeros(1), [ConfigurationGoal(jnp.ones(1))], duration=1.0, world=world)
    assert problem.world is None
