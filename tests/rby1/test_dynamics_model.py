"""From rby1.dynamics to the pure functions and back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rd
import rbydyn_jax.rby1.dynamics as rby_dyn
from rbydyn_jax import collision
from tests.helpers import X64, assert_close, untyped

from .sdk import CHAIN, make_robots, urdf

pytestmark = pytest.mark.float32
DTYPE = jnp.float64 if X64 else jnp.float32


def shift(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def crane():
    """A hinge whose axis misses its child, a slide, a weld, capsules that lie askew."""
    inertia = np.diag([0.2, 0.3, 0.4, 2.0, 2.0, 2.0])
    a, b, c, d = (rby_dyn.Link(name, inertia) for name in "abcd")
    rby_dyn.Joint.make_revolute("far", shift(0.3, -0.2, 0.5), [0, 1, 0]).connect_links(a, b, shift(0.1, 0, 0.2))
    rby_dyn.Joint.make_prismatic("slide", axis=[1, 0, 0]).connect_links(b, c, shift(0, 0.3, 0))
    rby_dyn.Joint.make_fixed("weld").connect_links(c, d, shift(0, 0, 1), shift(1, 0, 0))
    for link, ends in ((a, ([0, 0, -1], [0, 0.5, -2])), (d, ([0, 0, 1], [0.3, 0.2, 1.5]))):
        shell = rby_dyn.Collision(f"shell_{link.name}")
        shell.set_origin(shift(0, 0.2, 0))
        shell.add_geom(rby_dyn.GeomCapsule(*ends, 0.1, 1, 1))
        link.add_collision(shell)
    return rby_dyn.Robot(rby_dyn.RobotConfiguration("crane", a))


def test_pure_functions_agree():
    robot = crane()
    state = robot.make_state(["a", "d"], ["slide"])
    state.set_q([0.4, 0.7])
    state.set_qdot([-0.3, 0.5])
    state.set_qddot([1.0, 2.0])
    state.set_gravity([0, 0, 0, 1.0, 2.0, -9.81])
    for step in CHAIN:
        getattr(robot, f"compute_{step}")(state)
    robot.compute_inverse_dynamics(state)
    model, values = robot.model, state.to_jax()
    model = rd.with_gravity(model, -values.Vdot0[3:])
    assert model.joint_names == tuple(robot.joint_names) == ("far", "slide")
    assert model.link_names == ("a", "far_axis", "b", "c", "d")
    assert values.q.dtype == DTYPE and values.q.tolist() == pytest.approx([0.7, 0.4])
    assert_close(rd.link_pose(model, values.q, "d"), robot.compute_transformation(state, 0, 1))
    order = state._order
    tau = rd.rnea(model, values.q, values.v, values.a)
    assert_close(tau[order], state.tau)
    assert values.tau is not None
    assert_close(values.tau[order], state.tau)
    distance = collision.min_distance(model, values.q)
    nearest = robot.detect_collisions_or_nearest_links(state, 1)[0].distance
    assert_close(distance, np.array(nearest), scale=1.0)


def test_rby1_agrees_in_its_own_order():
    """The vendor's axes are off unit length by 1e-9, which the model puts right; those of to_urdf are not."""
    robot = make_robots(urdf("rby1a"), dof=24)[1]
    model = robot.model
    assert model.joint_names == tuple(robot.joint_names)
    assert model.tree.mobile_base.joints == ("right_wheel", "left_wheel")
    state = robot.make_state(["base", "ee_left"], [])
    state.set_q(np.linspace(-1.0, 1.0, 24))
    robot.compute_forward_kinematics(state)
    q = state.to_jax().q
    poses = jax.vmap(lambda q: rd.link_pose(model, q, "ee_left"))(jnp.stack([q, 0 * q]))
    assert_close(poses[0], robot.compute_transformation(state, 0, 1))
    lower = np.asarray(model.position_lower)
    np.testing.assert_allclose(lower[2:], robot.get_limit_q_lower(state)[2:], rtol=1e-6)
    assert np.isneginf(lower[:2]).all()  # of the wheels, where theirs says the largest double


def test_back_from_jax():
    robot = crane()
    state = robot.make_state(["d"], ["slide"])
    state.set_q([0.25, 0.5])
    state.set_V0(np.arange(6.0))
    values = jax.tree.map(lambda x: 2 * x, state.to_jax())
    assert values.tau is None
    again = rby_dyn.State.from_jax(robot, values, ["d"], ["slide"])
    np.testing.assert_array_equal(again.q, [0.5, 1.0])
    np.testing.assert_array_equal(again.V0, 2 * np.arange(6.0))
    assert again.joint_names == state.joint_names and again.link_names == state.link_names
    with pytest.raises(rd.StaleStateError):
        again.get_tau()
    with pytest.raises(rd.DtypeError, match="must have shape"):
        rby_dyn.State.from_jax(make_robots(urdf("rby1a"))[1], values)
    with pytest.raises(rd.DtypeError, match="values must be a JaxState"):
        untyped(rby_dyn.State.from_jax)(robot, [0.5, 1.0])


def one_joint(joint, child=None):
    a, b = rby_dyn.Link("a"), child or rby_dyn.Link("b")
    joint.connect_links(a, b)
    return rby_dyn.Robot(rby_dyn.RobotConfiguration("r", a))


def limited(*bounds):
    joint = rby_dyn.Joint.make_revolute("j")
    joint.set_limit_qdot(*bounds)
    return joint


def test_a_helical_joint_is_a_screw_about_its_own_axis():
    """Its axis, along z through (0, -0.3, 0), misses the origin of the link that it moves."""
    robot = one_joint(rby_dyn.Joint.make("j", [0, 0, 1, -0.3, 0, 0.1]))
    state = robot.make_state(["a", "b"], ["j"])
    state.set_q([0.7])
    robot.compute_forward_kinematics(state)
    model = robot.model
    assert model.tree.joint_types == ("screw",) and model.joint_parameters.tolist() == pytest.approx([0.1])
    assert_close(rd.link_pose(model, state.to_jax().q, "b"), robot.compute_transformation(state, 0, 1))


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (one_joint(rby_dyn.Joint.make("j", np.zeros(6))), "joint 'j' has no axis"),
        (one_joint(rby_dyn.Joint.make_revolute("j", axis=[0, 0, 2])), "has an axis of length 2; a pure model"),
        (one_joint(limited(-1, 2)), "has velocity limits -1 and 2; a pure model has one bound"),
        (one_joint(rby_dyn.Joint.make_fixed("j"), rby_dyn.Link("b", np.diag(np.arange(1.0, 7.0)))), "no rigid body"),
        (one_joint(rby_dyn.Joint.make_fixed("j"), rby_dyn.Link("b", -np.eye(6))), "link 'b'"),
        (
            one_joint(rby_dyn.Joint.make_revolute("j", shift(1, 0, 0)), rby_dyn.Link("j_axis")),
            "needs a link 'j_axis' on its axis, a name that is taken",
        ),
    ],
)
def test_what_a_pure_model_cannot_say(robot, message):
    with pytest.raises(rd.ModelError, match=message) as caught:
        _ = robot.model
    assert isinstance(caught.value, RuntimeError)


def test_the_model_is_a_snapshot():
    robot = crane()
    joint = untyped(robot.get_link("b")).get_parent_joint()
    before = robot.model
    joint.set_limit_q(-0.5, 0.5)
    joint.disconnect()
    after = robot.model
    assert np.isneginf(before.position_lower[0]) and after.position_lower[0] == -0.5
    assert after.tree.link_names == before.tree.link_names
