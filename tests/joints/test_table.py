"""The table of joint types is open: a type that is declared here is known everywhere, by what it declares."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import RobotBuilder, build_model
from rbydyn_jax.compat import mujoco as mj
from rbydyn_jax.constraints import LoopJoint
from rbydyn_jax.io import Mimic, describe
from rbydyn_jax.joints import JOINT_TYPES, JointType, register, rotation_about
from rbydyn_jax.spatial.algebra import O3, Motion, Transform
from rbydyn_jax.testing import random_tree
from tests.helpers import assert_close


class Cylindrical(JointType):
    """Rotation about an axis, and translation along it; q = [angle, distance]."""

    name, summary = "cylindrical", "a hinge that slides"
    nq = nv = 2
    turns, slides = "axis", "axis"
    angles, translations = (0,), (1,)
    urdf_instead = "a revolute joint and a prismatic one"

    def transform(self, axis, x):
        return Transform(rotation_about(axis, *x[0]), axis.scale(x[1]))

    def subspace(self, axis, x):
        return Motion(axis, O3), Motion(O3, axis)


@pytest.fixture
def cylindrical():
    register(Cylindrical())
    yield
    del JOINT_TYPES["cylindrical"]


def _robot(join):
    b = RobotBuilder().link("a").link("b", 2.0, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    return build_model(join(b))


@pytest.mark.slow
def test_a_new_type_moves_as_the_types_that_it_is_made_of(cylindrical):
    axis = (0.0, 0.6, 0.8)
    one = _robot(lambda b: b.cylindrical("j", "a", "b", axis=axis, xyz=(0, 0, 1), damping=0.5))
    two = _robot(
        lambda b: b.link("c").revolute("t", "a", "c", axis=axis, xyz=(0, 0, 1)).prismatic("s", "c", "b", axis=axis)
    )
    q, v, a = jnp.array([0.7, 0.2]), jnp.array([1.0, -0.5]), jnp.array([0.3, 0.4])
    assert_close(rb.link_pose(one, q, "b"), rb.link_pose(two, q, "b"))
    assert_close(rb.rnea(one, q, v, a), rb.rnea(two, q, v, a))
    assert_close(rb.aba(one, q, v, a), rb.aba(two, q, v, a), kind="solve")
    assert one.position_upper.tolist() == [np.inf, np.inf] and one.damping.tolist() == [0.5, 0.5]
    assert random_tree(0, ("cylindrical",), 3).nv == 6


def test_a_new_type_is_known_to_readers_writers_loops_and_layouts(cylindrical):
    model = _robot(lambda b: b.joint("cylindrical", "j", "a", "b", axis=(0, 0, 1)))
    again = build_model(describe(model))
    q = jnp.array([0.7, 0.2])
    assert again.tree.joint_types == ("cylindrical",)
    assert_close(rb.link_pose(rb.lock_joints(model, {"j": q}), jnp.zeros(0), "b"), rb.link_pose(model, q, "b"))
    with pytest.raises(rb.ModelError, match="URDF has no cylindrical joints, and this robot has 'j'; use a revolute"):
        rb.to_urdf(model)
    loop = LoopJoint("cylindrical", None, "b", axis=(0, 0, 1))
    assert (loop.bearing_rank, loop.angular_rank) == (4, 2)
    with pytest.raises(rb.ModelError, match="joint 'j' is cylindrical, for which MuJoCo has no counterpart"):
        mj.q_to_mujoco(model, q)
    with pytest.raises(rb.ModelError, match="a cylindrical joint cannot mimic"):
        _robot(lambda b: b.cylindrical("j", "a", "b", mimic=Mimic("j", 1.0)))


def test_builder_has_a_method_for_each_type():
    b = RobotBuilder().link("a")
    assert set(JOINT_TYPES) <= set(dir(b))
    assert str(b.revolute.__doc__).startswith("Adds a hinge") and b.revolute.__name__ == "revolute"
    with pytest.raises(AttributeError, match="RobotBuilder has no 'revolut'; did you mean 'revolute'"):
        _ = b.revolut
    with pytest.raises(rb.ModelError, match="joint 'j': unknown type 'revolut'; did you mean 'revolute'"):
        b.joint("revolut", "j", "a", "b")


@pytest.mark.ci
def test_what_every_type_declares_is_consistent():
    """S has the rank nv, the motion that it allows is its own, and the neutral position is the identity."""
    rng = np.random.default_rng(0)
    for name, joint in JOINT_TYPES.items():
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        own = rng.uniform(0.1, 0.2, len(joint.parameters)).tolist()
        assert joint.name == name and joint.summary
        S = joint.columns(axis, own)
        assert S.shape == (6, joint.nv) and np.linalg.matrix_rank(S) == joint.nv
        assert_close(joint.matrix(axis, own, joint.neutral()), np.eye(4))
        # T' dT/dt = S v at the neutral position, in the direction of each velocity.
        step, neutral = 1e-6, jnp.asarray(joint.neutral())
        for k, e in enumerate(step * np.eye(joint.nv)):
            ahead, behind = (
                joint.matrix(axis, own, np.asarray(joint.integrate(neutral, jnp.asarray(x)))) for x in (e, -e)
            )
            rate = (ahead - behind) / (2 * step)
            got = [rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]]
            assert_close(np.array(got), S[:, k], kind="difference", scale=1.0)


@pytest.mark.ci
def test_every_type_glides_at_a_velocity_that_is_constant_outside():
    """In the frame before the joint both velocities are the same after 0.3 s, and the origin moved along a line."""
    rng = np.random.default_rng(1)
    for joint in JOINT_TYPES.values():
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        own = rng.uniform(0.1, 0.2, len(joint.parameters)).tolist()
        S, v = joint.columns(axis, own), jnp.asarray(rng.normal(size=joint.nv))
        q = joint.integrate(jnp.asarray(joint.neutral()), jnp.asarray(rng.normal(size=joint.nv)))
        (q_then, v_then), rates = jax.jvp(lambda t, joint=joint, q=q, v=v: joint.glide(q, v, t), (0.3,), (1.0,))
        now, then = (joint.matrix(axis, own, np.asarray(x)) for x in (q, q_then))
        before, after = ((T[:3, :3] @ (S @ np.asarray(u)).reshape(2, 3).T).T for T, u in ((now, v), (then, v_then)))
        assert_close(after, before)
        assert_close(then[:3, 3], now[:3, 3] + 0.3 * before[1], scale=1.0)
        assert_close(joint.qdot_from_v(q_then, v_then), rates[0], scale=1.0)
        assert_close(joint.drift(v_then), -rates[1], scale=1.0)


@pytest.mark.parametrize(("name", "problem"), [("revolute", "is taken"), ("two words", "is no Python identifier")])
def test_names_that_cannot_be_registered(name, problem):
    joint = Cylindrical()
    joint.name = name
    with pytest.raises(rb.ModelError, match=problem):
        register(joint)


def test_positions_that_are_none():
    model = random_tree(0, ("spherical", "sin_cos_revolute"), 2)
    for kind, match in (("spherical", "quaternion zero"), ("sin_cos_revolute", "sine and cosine of no angle")):
        joint = model.joint_names[model.tree.joint_types.index(kind)]
        with pytest.raises(rb.ArgumentError, match=match):
            rb.lock_joints(model, {joint: jnp.zeros(JOINT_TYPES[kind].nq)})
