"""The tasks of the RB-Y1: what a reward means is shown by policies that know the way."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import envs, planning
from tests.helpers import assert_close

NOMINAL = (envs.Parameters(), envs.Parameters())


@pytest.mark.slow
def test_the_arm_is_that_of_the_whole_robot():
    robot, arm = rb.robots.rby1a(), envs.right_arm()
    q = jnp.array([0.3, -0.5, 0.2, -1.4, 0.1, 0.4, -0.2])
    moved = [robot.joint_index(name) for name in arm.joint_names]
    whole = rb.neutral(robot).at[np.array([robot.tree.q_slices[i].start for i in moved])].set(q)
    assert_close(rb.link_pose(arm, q, "ee_right"), rb.link_pose(robot, whole, "ee_right"))
    rows = np.array([robot.tree.v_slices[i].start for i in moved])
    assert_close(rb.gravity_forces(arm, q), rb.gravity_forces(robot, whole)[rows])
    assert envs.right_arm(jnp.float32).inertias.dtype == jnp.float32


@pytest.mark.slow
@pytest.mark.parametrize("task", [envs.reach, envs.lift])
def test_a_policy_that_solves_inverse_kinematics_comes_to_the_goal(task):
    """The solution by `solve_ik` of the nominal robot, corrected by what the servos yield: nearly all of the reward."""
    env = task()
    states = jax.vmap(envs.reset, (None, 0))(env, jax.random.split(jax.random.key(3), 16))

    goals = [planning.PositionGoal(env.hand, states.goal)]
    solved = planning.solve_ik(env.model, goals=goals, q0=states.q).q
    step = jax.jit(jax.vmap(envs.step, (None, 0, 0)))
    scripted = still = states
    for _ in range(50):
        found = step(env, scripted, 0.3 * (solved - scripted.q) / (env.period * env.speed)[None])
        idle = step(env, still, jnp.zeros((16, 7)))
        scripted, still = found.state, idle.state
    assert (np.asarray(found.distance) < 0.02).all() and found.done.all()
    assert (np.asarray(found.reward) > 0.8).all() and (np.asarray(found.reward) > np.asarray(idle.reward)).all()
    assert float(jnp.median(idle.distance)) > 0.15


@pytest.mark.slow
def test_random_actions_leave_the_arm_within_its_limits():
    """Of position, of effort by the servos, and at rates near those that actions ask for."""
    env = envs.lift()
    states = jax.vmap(envs.reset, (None, 0))(env, jax.random.split(jax.random.key(0), 100))
    step = jax.jit(jax.vmap(envs.step, (None, 0, 0)))
    for k in range(50):
        states = step(env, states, jax.random.normal(jax.random.key(k), (100, 7))).state
        gains = np.asarray(states.parameters.gains)[:, None]
        error, v, q = (np.asarray(x) for x in (states.targets - states.q, states.v, states.q))
        torque = gains * (np.asarray(env.stiffness) * error - np.asarray(env.damping) * v)
        assert (np.abs(torque) <= np.asarray(env.model.effort_limit)).all()
        assert (np.abs(v) < 2.0).all()
        assert (q > np.asarray(env.model.position_lower) - 0.01).all()
        assert (q < np.asarray(env.model.position_upper) + 0.01).all()


@pytest.mark.ci
def test_dtype_and_options_of_a_task():
    env = envs.reach(jnp.float32, parameters=NOMINAL, period=0.05, width=0.2)
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(env))
    assert env.period == 0.05 and env.dry is False and envs.reach().dry is True
    with pytest.raises(rb.DtypeError, match="dtype must be a floating-point type"):
        envs.lift(dtype=int)
