"""Robots with other joints: locked, cut off, attached."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.testing import random_transform, random_tree
from tests.helpers import assert_close, normal

pytestmark = pytest.mark.float32


@pytest.fixture(scope="module")
def model():
    return random_tree(31, ("revolute", "prismatic", "continuous", "spherical"), 9)


@pytest.fixture(scope="module")
def q(model):
    return rb.random_configuration(model, jax.random.key(3))


def test_locked_joints_stand_still(model, q):
    """What is left moves as before: its poses, and its rows and columns of the mass matrix."""
    locked = [0, 4, model.nb - 1]
    slices = model.tree.q_slices
    rest = rb.lock_joints(model, {model.joint_names[i]: q[slices[i]] for i in locked})
    left = [i for i in range(model.nb) if i not in locked]
    assert rest.joint_names == tuple(model.joint_names[i] for i in left)
    coordinates = np.concatenate([np.arange(model.nq)[slices[i]] for i in left])
    velocities = np.concatenate([np.arange(model.nv)[model.tree.v_slices[i]] for i in left])
    v = jnp.zeros(model.nv).at[velocities].set(normal(1, len(velocities)))
    order = np.array([rest.link_index(name) for name in model.link_names])
    assert_close(rb.fk(rest, q[coordinates])[order], rb.fk(model, q))
    assert_close(rb.crba(rest, q[coordinates]), rb.crba(model, q)[np.ix_(velocities, velocities)])
    want = rb.bias_forces(model, q, v)[velocities]
    assert_close(rb.bias_forces(rest, q[coordinates], v[velocities]), want)
    assert_close(rb.total_mass(rest), rb.total_mass(model))


def test_joints_that_mimic_a_locked_one_are_locked_with_it():
    model = random_tree(2, ("revolute", "prismatic"), 7, mimics=2)
    follower = next(i for i, m in enumerate(model.tree.mimics) if m is not None)
    leader = model.joint_names[model.tree.mimics[follower].source]
    q = rb.random_configuration(model, jax.random.key(0))
    at = model.tree.q_slices[model.joint_index(leader)]
    rest = rb.lock_joints(model, {leader: q[at]})
    assert leader not in rest.joint_names and model.joint_names[follower] not in rest.joint_names
    others = np.delete(np.arange(model.nq), at)
    order = np.array([rest.link_index(name) for name in model.link_names])
    assert_close(rb.fk(rest, q[others])[order], rb.fk(model, q))
    with pytest.raises(rb.ModelError, match="mimics"):
        rb.lock_joints(model, {model.joint_names[follower]: 0.0})


def test_submodel_is_what_the_link_carries(model, q):
    base = next(model.link_names[i] for i, b in enumerate(model.tree.link_bodies) if b >= 0 and b in model.tree.parents)
    part = rb.submodel(model, base)
    moved = [model.joint_index(name) for name in part.joint_names]
    coordinates = np.concatenate([np.arange(model.nq)[model.tree.q_slices[i]] for i in moved])
    assert part.link_names[0] == base and part.nb < model.nb
    poses = rb.fk(model, q)
    inside = np.array([model.link_index(name) for name in part.link_names])
    want = jnp.linalg.inv(poses[model.link_index(base)]) @ poses[inside]
    assert_close(rb.fk(part, q[coordinates]), want)
    assert_close(rb.total_mass(part), rb.subtree_mass(model, base))


def test_attached_robot_goes_where_the_link_goes(model, q):
    arm, pose = robots.two_link_arm(), jnp.asarray(random_transform(4), q.dtype)
    tip = model.link_names[-1]
    both = rb.attach(model, tip, arm, pose, prefix="tool_")
    p = jnp.array([0.3, -0.4], q.dtype)
    ours = [i for i, name in enumerate(both.joint_names) if not name.startswith("tool_")]
    full = jnp.zeros(both.nq, q.dtype)
    for i, name in enumerate(both.joint_names):
        source, twin = (q, model) if i in ours else (p, arm)
        own = twin.tree.q_slices[twin.joint_index(name.removeprefix("tool_") if twin is arm else name)]
        full = full.at[both.tree.q_slices[i]].set(source[own])
    want = rb.link_pose(model, q, tip) @ pose @ rb.link_pose(arm, p, "tool")
    assert_close(rb.link_pose(both, full, "tool_tool"), want)
    assert_close(rb.total_mass(both), rb.total_mass(model) + rb.total_mass(arm))


def test_wrong_use_is_refused(model):
    arm = robots.two_link_arm()
    with pytest.raises(rb.NameNotFoundError, match="elbow"):
        rb.lock_joints(arm, {"elbw": 0.0})
    with pytest.raises(rb.NameNotFoundError, match="did you mean 'lower'"):
        rb.submodel(arm, "lowr")
    with pytest.raises(rb.RbydynError, match="base"):
        rb.attach(arm, "tool", arm)  # names twice
    with pytest.raises(rb.ModelError, match="outside of jit"):
        jax.jit(lambda m: rb.submodel(m, "lower").inertias)(arm)
