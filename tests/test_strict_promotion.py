"""With `jax_numpy_dtype_promotion="strict"` functions work, since they mix no dtypes of their own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, envs, robots
from rbydyn_jax.constraints import ContactPatch, distribute_wrench
from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointEffort, SoftGoal, differential_ik, mppi
from rbydyn_jax.planning.mpc import shifted
from rbydyn_jax.whole_body import Com, PatchContact, inverse_dynamics


@pytest.fixture(autouse=True)
def strict():
    with jax.numpy_dtype_promotion("strict"):
        yield


def dtypes(f, *args):
    return {x.dtype.type for x in jax.tree.leaves(jax.eval_shape(f, *args)) if jnp.issubdtype(x.dtype, jnp.floating)}


def test_a_plan_is_moved_on():
    taus = jnp.array([[0.0], [2.0], [4.0]])
    assert np.asarray(shifted(taus, jnp.asarray(0.75))).tolist() == [[1.5], [3.5], [4.0]]


def test_control():
    goal, zero = SoftGoal(ConfigurationGoal(jnp.zeros(1)), 10.0), jnp.zeros(1)
    problem = ControlProblem(robots.pendulum(), [goal, JointEffort(0.01)], dt=0.05, steps=4)
    assert dtypes(lambda q: mppi(problem, q, q, jax.random.key(0), samples=8, noise=1.0), zero) == {zero.dtype.type}


def test_forces_of_contact_in_float32():
    wrench = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 400.0], jnp.float32)
    foot = ContactPatch(jnp.eye(4), (0.1, 0.05), 0.5)
    assert dtypes(lambda w: distribute_wrench((foot,), w), wrench) == {np.float32}


def test_whole_body():
    block = rb.RobotBuilder().link("w").link("block", 2.0, inertia=0.1).floating("f", "w", "block")
    block = rb.build_model(block)
    q = rb.neutral(block)
    tasks, contacts = [Com((0.0, 0.0, 1.0))], [PatchContact("block")]
    assert dtypes(lambda v: inverse_dynamics(block, q, v, tasks, contacts), jnp.zeros(6)) == {q.dtype.type}


def test_clearance():
    arm, wall = robots.panda_like(), collision.World(collision.sphere(jnp.ones(3), 0.1))
    costs = [SoftGoal(ConfigurationGoal(jnp.zeros(7)))]
    found = dtypes(lambda q: differential_ik(arm, q, costs, dt=0.01, clearance=0.01, world=wall), jnp.zeros(7))
    assert found == {jnp.zeros(()).dtype.type}


def test_a_task_in_float32():
    assert envs.reach(jnp.float32).model.inertias.dtype == np.float32
