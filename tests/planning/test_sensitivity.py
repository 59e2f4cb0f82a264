"""Derivatives of solutions of trajectory problems, against scipy's solutions of the same problems, changed a little."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import RbydynError, damping_forces, link_pose, rnea, robots, with_limits
from rbydyn_jax.collision import World, signed_distances, sphere, world_distances
from rbydyn_jax.planning import (
    ConfigurationGoal,
    PoseGoal,
    PositionGoal,
    TrajectoryProblem,
    sample_trajectory,
    solve_trajectory,
)
from rbydyn_jax.planning._sensitivity import solution
from tests.helpers import X64, assert_close
from tests.planning.arms import Q_GOAL, Q_START, pole_arm, pole_pairs
from tests.planning.sliders import slider

SETUP: dict[str, Any] = {"attempts": 2, "iterations": 40}


def flat(motion):
    """The coefficients and the duration."""
    return jnp.append(motion.coefficients.reshape(-1), motion.duration)


def motion(x, problem):
    """Of the solution, through the public function."""
    return flat(solve_trajectory(problem(x)).trajectory)


def solved(problem):
    """The end of the search and the derivatives of the coefficients and the duration, as a function of an array.

    One program for both: the search is what takes long to compile.
    """

    def ended(x):
        found = solution(problem(x))
        return flat(found), found

    def both(x):
        _, derivative, found = jax.linearize(ended, x, has_aux=True)
        return found, jax.vmap(derivative, out_axes=-1)(jnp.eye(len(x)))

    return jax.jit(both)


def changes(conditions, x, end, h=1e-4):
    """Central differences of what scipy finds.

    Args:
        conditions: A function of (z, x, end): the cost, what is zero, and what must not be negative.
        x: The data.
        end: The end of the search, near which scipy starts.
        h: The step.
    """
    from scipy.optimize import minimize

    # Of a thousand limits scipy takes minutes; those that are far away do not come into play.
    near = np.flatnonzero(conditions(end.x, x, end)[2] < 0.3)

    def nearby(z, x, end):
        cost, zero, room = conditions(z, x, end)
        return cost, zero, room[near]

    values, slopes = jax.jit(nearby), jax.jit(jax.jacfwd(nearby))

    def best(x):
        def part(f, i):
            return lambda z: np.asarray(f(z, x, end)[i])

        rows = [{"type": kind, "fun": part(values, i), "jac": part(slopes, i)} for i, kind in ((1, "eq"), (2, "ineq"))]
        options = {"ftol": 1e-14, "maxiter": 200}
        return minimize(part(values, 0), end.x, jac=part(slopes, 0), constraints=rows, options=options).x

    assert_close(best(x), end.x, 2e-2)
    return np.stack([best(x + h * e) - best(x - h * e) for e in np.eye(len(x))], axis=1) / (2.0 * h)


def within(share, margin):
    """What is left of limits."""
    return jnp.concatenate([(1.0 - margin - sign * share).reshape(-1) for sign in (1.0, -1.0)])


# Goal [m], mass of the forearm, limits of torque and velocity, duration, start.
FREE = np.array([0.3, 0.6, 1.0, 40.0, 3.0, 2.0, 0.2, 0.3])
CASES = {
    "no limit is active": FREE,
    "torque": np.array([0.3, 0.6, 1.0, 0.4, 3.0, 2.0, 0.2, 0.3]),
    "velocity": np.array([0.3, 0.6, 1.0, 40.0, 0.8, 2.0, 0.2, 0.3]),
}


def effort(model, q, v, a, tau, t):
    return tau / 3.0


def reach(x):
    model = with_limits(robots.two_link_arm(), effort_limit=jnp.ones(2) * x[3], velocity_limit=jnp.ones(2) * x[4])
    model = eqx.tree_at(lambda m: m.inertias, model, model.inertias.at[-1].multiply(x[2]))
    goal = PositionGoal("tool", jnp.append(x[:2], 0.0))
    return TrajectoryProblem(model, x[6:], [goal], duration=x[5], clearance=None, costs=[effort], **SETUP)


def reach_conditions(z, x, end):
    todo = reach(x)
    motion = todo.trajectory(z.reshape(8, 2), x[5])
    v, at = sample_trajectory(motion, 97).v, sample_trajectory(motion, 33)
    tau = jax.vmap(partial(rnea, todo.model))(at.q, at.v, at.a)
    tau -= jax.vmap(partial(damping_forces, todo.model))(at.v)
    effort = jnp.sum((tau / 3.0) ** 2, axis=1)  # its mean over time is that of trapezoids
    cost = 0.5 * jnp.sum(z**2) + 0.5 * jnp.mean(0.5 * (effort[1:] + effort[:-1]))
    place = link_pose(todo.model, sample_trajectory(motion, 2).q[1], "tool")[:2, 3]
    room = within(v / x[4], end.tight.bounds[1]), within(tau / x[3], end.tight.path["torque"])
    return cost, place - x[:2], jnp.concatenate(room)


reached = solved(reach)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_along_active_limits_they_are_those_of_scipys_solution(case):
    x = CASES[case]
    end, J = reached(x)
    active = {"torque": end.dual.path["torque"], "velocity": end.dual.bounds[1]}
    assert end.converged
    assert {kind for kind, dual in active.items() if (dual != 0).sum() >= 2} == {case} & set(active)
    assert_close(J[:-1], changes(reach_conditions, x, end), 1e-3)
    assert_close(J[-1], np.eye(8)[5])


@pytest.mark.slow
def test_reverse_derivatives_of_a_batch_are_the_forward_ones_of_each():
    """And NaN where a problem is not solved."""
    slow = FREE.copy()
    slow[4] = 0.5
    batch = jnp.asarray(np.stack([*CASES.values(), slow]))
    together = jax.jit(jax.vmap(jax.jacrev(partial(motion, problem=reach))))(batch)
    for got, x in zip(together, CASES.values(), strict=False):
        assert_close(got, reached(x)[1], 1e-7)
    end, J = reached(slow)
    assert not end.converged
    assert np.isnan(together[-1, :-1]).all() and np.isnan(J[:-1]).all()


OPEN = pole_arm(velocity=50.0, acceleration=500.0, effort=500.0)


def ball(x):
    return World(sphere(jnp.append(x[1:3], 0.0), 0.03))


def pass_by(x):
    """A pole and a ball, both in the way: clearance, centre of the ball [m], start, goal."""
    options = {"clearance": x[0], "world": ball(x), "collision_pairs": pole_pairs(OPEN)} | SETUP
    return TrajectoryProblem(OPEN, x[3:5], [ConfigurationGoal(x[5:])], duration=2.0, **options)


def pass_by_conditions(z, x, end):
    todo = pass_by(x)
    motion = todo.trajectory(z.reshape(8, 2), jnp.asarray(2.0))

    def smallest(d):
        return -0.002 * jax.nn.logsumexp(-d / 0.002)

    def distances(q):
        return jnp.stack([smallest(signed_distances(OPEN, q, todo.pairs)), smallest(world_distances(OPEN, q, ball(x)))])

    d = jax.vmap(distances)(sample_trajectory(motion, 33).q)
    room = (d - x[0]) / 0.1 - end.tight.path["clearance"]
    return 0.5 * jnp.sum(z**2), sample_trajectory(motion, 2).q[1] - x[5:], room.reshape(-1)


@pytest.mark.slow
def test_beside_obstacles_they_are_those_of_scipys_solution():
    x = np.array([0.02, 0.825, -0.402, *Q_START, *Q_GOAL])
    end, J = solved(pass_by)(x)
    assert end.converged and ((end.dual.path["clearance"] != 0).any(axis=0)).all()
    assert_close(J[:-1], changes(pass_by_conditions, x, end, h=1e-5), 1e-3)


def hurry(x):
    """The shortest time: goal [m], limits of velocity and acceleration, velocity at the start."""
    model = with_limits(slider(), velocity_limit=x[1:2], acceleration_limit=x[2:3])
    return TrajectoryProblem(
        model, jnp.zeros(1), [ConfigurationGoal(x[:1])], start_velocity=x[3:], clearance=None, **SETUP
    )


def hurry_conditions(z, x, end):
    guess, weight = end.scale
    motion = hurry(x).trajectory(z[:-1].reshape(8, 1), guess * jnp.exp(z[-1]))
    at = sample_trajectory(motion, 97)
    cost = 0.5 * jnp.sum(z[:-1] ** 2) + 0.5 * weight * (motion.duration / guess) ** 2
    room = within(at.v / x[1], end.tight.bounds[1]), within(at.a / x[2], end.tight.bounds[2])
    return cost, at.q[-1] - x[:1], jnp.concatenate(room)


@pytest.mark.slow
def test_of_the_shortest_time_they_are_those_of_scipys_solution():
    x = np.array([1.0, 0.9, 4.0, 0.1])
    end, J = solved(hurry)(x)
    assert end.converged and ((end.dual.bounds[1:, :, 0] != 0).sum(axis=1) >= 2).all()
    want = changes(hurry_conditions, x, end, h=3e-4)
    want[-1] *= end.duration
    assert_close(J, want, 2e-4)


def obey(x):
    """A constraint that the user gives closes over its bound: goal [m], largest velocity there and at the start."""

    def slower(model, q, v, a, tau, t):
        return v - (x[1] * q / x[0] + x[2] * (1.0 - q / x[0]))

    model = with_limits(slider(), velocity_limit=jnp.full(1, 50.0), acceleration_limit=jnp.full(1, 500.0))
    goals = [ConfigurationGoal(x[:1])]
    return TrajectoryProblem(model, jnp.zeros(1), goals, duration=2.0, clearance=None, constraints=[slower], **SETUP)


def obey_conditions(z, x, end):
    motion = obey(x).trajectory(z.reshape(8, 1), jnp.asarray(2.0))
    at = sample_trajectory(motion, 33)
    bound = x[1] * at.q / x[0] + x[2] * (1.0 - at.q / x[0])
    room = bound - at.v - end.tight.path["constraints"]
    return 0.5 * jnp.sum(z**2), sample_trajectory(motion, 2).q[1] - x[:1], room.reshape(-1)


@pytest.mark.slow
def test_within_a_constraint_of_the_user_they_are_those_of_scipys_solution():
    x = np.array([1.0, 0.7, 0.9])
    end, J = solved(obey)(x)
    assert end.converged and (end.dual.path["constraints"] != 0).sum() >= 2
    assert_close(J[:-1], changes(obey_conditions, x, end), 1e-3)


def stay(x):
    """The tool stays in a square along the whole motion: its centre [m], half of its side [m], the goal."""
    model = with_limits(robots.two_link_arm(), velocity_limit=jnp.full(2, 50.0), effort_limit=jnp.full(2, 500.0))
    goals = [PositionGoal("tool", jnp.append(x[:2], 0.0), at="path", position_band=x[2]), ConfigurationGoal(x[3:])]
    return TrajectoryProblem(model, jnp.array([-0.75, 0.3]), goals, duration=2.0, clearance=None, **SETUP)


def stay_conditions(z, x, end):
    todo = stay(x)
    motion = todo.trajectory(z.reshape(8, 2), jnp.asarray(2.0))
    at = sample_trajectory(motion, 33)
    place = jax.vmap(lambda q: link_pose(todo.model, q, "tool")[:2, 3])(at.q)
    # In units of 0.1 m, less the margins of the search.
    room = x[2] - jnp.abs(place - x[None, :2]), end.tight.path["path"][:, :2]
    return 0.5 * jnp.sum(z**2), at.q[-1] - x[3:], (room[0] / 0.1 - room[1]).reshape(-1)


@pytest.mark.slow
def test_on_a_path_goal_they_are_those_of_scipys_solution():
    reach = float(link_pose(robots.two_link_arm(), jnp.zeros(2), "tool")[0, 3])
    x = np.array([0.3 * reach, 0.0, 0.6 * reach, 0.45, 0.3])
    end, J = solved(stay)(x)
    assert end.converged and (end.dual.path["path"] != 0).any()
    assert_close(J[:-1], changes(stay_conditions, x, end), 1e-3)


@pytest.mark.slow
@pytest.mark.float32
def test_without_active_limits_a_motion_is_proportional_to_its_length():
    """In float32, too: what has the least jerk and ends at rest depends linearly on where it ends."""

    def walk(x):
        model = with_limits(slider(), velocity_limit=jnp.full(1, 50.0), acceleration_limit=jnp.full(1, 500.0))
        goals = [ConfigurationGoal(x)]
        return TrajectoryProblem(model, jnp.zeros(1), goals, duration=2.0, clearance=None, **SETUP)

    x = jnp.array([0.8])
    end, J = solved(walk)(x)
    assert end.converged and J.dtype == x.dtype
    assert_close(J[:-1, 0], np.asarray(end.coefficients).reshape(-1) / 0.8, 1e-10 if X64 else 1e-5)


def test_second_derivatives_are_refused():
    with pytest.raises(RbydynError, match="first derivatives only"):
        jax.eval_shape(jax.hessian(partial(motion, problem=hurry)), jnp.array([1.0, 1.0, 4.0, 0.1]))


def smooth_effort(model, q, v, a, tau, t):
    """Without Coulomb friction, which jumps where a joint turns back."""
    return rnea(model, q, v, a) / 3.0


def lift(x):
    """An arm of seven joints: height of the goal, mass of the hand, limit of velocity."""
    arm = robots.panda_like()
    target = link_pose(arm, jnp.array([-0.5, 0.3, 0.4, -1.2, 0.4, 1.9, -0.3]), "tool").at[2, 3].add(x[0])
    model = with_limits(arm, velocity_limit=jnp.ones(7) * x[2])
    model = eqx.tree_at(lambda m: m.inertias, model, model.inertias.at[-1].multiply(x[1]))
    start = jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
    goals = [PoseGoal("tool", target)]
    return TrajectoryProblem(model, start, goals, duration=1.2, clearance=None, costs=[smooth_effort], **SETUP)


def lift_conditions(z, x, end):
    todo = lift(x)
    (goal,) = todo.goals
    assert isinstance(goal, PoseGoal)
    motion = todo.trajectory(z.reshape(8, 7), jnp.asarray(1.2))
    at = sample_trajectory(motion, 33)
    tau = jax.vmap(partial(rnea, todo.model))(at.q, at.v, at.a)
    effort = jnp.sum((tau / 3.0) ** 2, axis=1)  # its mean over time is that of trapezoids
    cost = 0.5 * jnp.sum(z**2) + 0.5 * jnp.mean(0.5 * (effort[1:] + effort[:-1]))
    T = link_pose(todo.model, sample_trajectory(motion, 2).q[1], "tool")
    turn = T[:3, :3] @ goal.target[:3, :3].T
    lacking = jnp.stack([turn[1, 0], turn[2, 0], turn[2, 1], *(T[:3, 3] - goal.target[:3, 3])])
    return cost, lacking, within(sample_trajectory(motion, 97).v / x[2], end.tight.bounds[1])


@pytest.mark.slow
def test_of_seven_joints_they_are_those_of_scipys_solution():
    x = np.array([0.0, 1.0, 1.2])
    end, J = solved(lift)(x)
    assert end.converged and (end.dual.bounds[1] != 0).sum() >= 2 and not end.dual.path["torque"].any()
    assert_close(J[:-1], changes(lift_conditions, x, end), 1e-3)
