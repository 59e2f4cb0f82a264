"""Trajectories among obstacles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, link_pose, robots
from rbydyn_jax.collision import World, box, sphere, world_distances
from rbydyn_jax.planning import (
    ConfigurationGoal,
    TrajectoryProblem,
    check_trajectory,
    optimize_trajectory,
    sample_trajectory,
    solve_trajectory,
)
from tests.helpers import untyped

START, END = jnp.array([0.2, 0.3]), jnp.array([1.4, 0.3])


def between(arm) -> World:
    """A ball where the tool is in the middle of the straight motion, a little farther out."""
    tool = link_pose(arm, 0.5 * (START + END), "tool")
    return World(sphere(tool[:3, 3] + 0.09 * tool[:3, 0], 0.03), box(jnp.eye(4).at[2, 3].set(5.0), jnp.ones(3)))


@pytest.mark.slow
def test_the_motion_avoids_an_obstacle_that_it_would_meet():
    arm = robots.two_link_arm()
    world, clearance = between(arm), 0.02
    target = link_pose(arm, END, "tool")
    plain = optimize_trajectory(arm, START, "tool", target, duration=2.0)
    assert bool(plain.solved)
    straight = check_trajectory(arm, plain.trajectory, "tool", target, world=world)
    assert straight.distance is not None and straight.distance < 0.0 and not straight.feasible()
    found = optimize_trajectory(arm, START, "tool", target, duration=2.0, clearance=clearance, world=world)
    assert bool(found.solved)
    report = check_trajectory(arm, found.trajectory, "tool", target, world=world, points=1001)
    assert report.feasible() and report.distance is not None and report.distance > clearance - 1e-4
    q = sample_trajectory(found.trajectory, 1001).q
    assert np.abs(jax.vmap(lambda q: world_distances(arm, q, world))(q).min() - report.distance) < 1e-9


@pytest.mark.slow
def test_worlds_go_through_vmap():
    arm = robots.two_link_arm()

    def closest(height):
        world = World(sphere(between(arm).shapes["capsule"].segment[0, 0] + jnp.array([0.0, 0.0, 1.0]) * height, 0.03))
        problem = TrajectoryProblem(arm, START, [ConfigurationGoal(END)], duration=2.0, world=world)
        result = solve_trajectory(problem)
        q = (
            jax.vmap(result.trajectory.position)(jnp.linspace(0.0, 2.0, 101))
            if False
            else result.trajectory.q_start[None]
        )
        return result.solved, world_distances(arm, q[0], world).min()

    solved, _ = jax.jit(jax.vmap(closest))(jnp.array([0.0, 0.5]))
    assert solved.all()


def test_wrong_arguments_and_robots_without_shapes():
    arm, goal = robots.two_link_arm(), [ConfigurationGoal(END)]
    world = between(arm)
    with pytest.raises(DtypeError, match="world must be a collision.World, got int"):
        TrajectoryProblem(arm, START, goal, duration=1.0, world=untyped(3))
    with pytest.raises(ArgumentError, match="world needs a clearance"):
        TrajectoryProblem(arm, START, goal, duration=1.0, world=world, clearance=None)
    pendulum = robots.pendulum()
    with pytest.warns(UserWarning, match="no collision shapes that move: nothing keeps it from the world"):
        problem = TrajectoryProblem(pendulum, jnp.zeros(1), [ConfigurationGoal(jnp.ones(1))], duration=1.0, world=world)
    assert problem.world is None
