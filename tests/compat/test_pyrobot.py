"""pyrobot's kinematics of a real arm with a gripper, against pinocchio and scipy."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.compat.pyrobot import Kinematics, KinematicsError, _rotation
from rbydyn_jax.engines.conventions import swap_rows
from tests.helpers import X64, assert_close, example_robot, oracle, untyped

pytestmark = pytest.mark.skipif(not X64, reason="the oracle works in float64")
Q = [0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5]


@pytest.fixture(scope="module")
def arm():
    return Kinematics(example_robot("panda_description/urdf/panda.urdf"), "panda_link0", "panda_hand")


@pytest.fixture(scope="module")
def twin(arm):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    return pin_model(arm.model)


def full(arm):
    return np.array([*Q, 0.0, 0.0][: arm.model.nq])


def test_forward_kinematics(arm, twin):
    assert arm.arm_dof == 7 and arm.joint_names[0] == "panda_joint1"
    for frame in ("panda_hand", "panda_link4"):
        position, quaternion = arm.forward_kinematics(Q, frame)
        T = twin.fk(full(arm))[arm.model.link_index(frame)]
        assert_close(position, T[:3, 3])
        assert_close(quaternion, Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True))
    with pytest.raises(rb.NameNotFoundError):
        arm.forward_kinematics(Q, "hand")
    with pytest.raises(rb.ShapeError, match="joint_pos must have 7"):
        arm.forward_kinematics([0.0] * 6, "panda_hand")


def test_jacobian_and_velocity(arm, twin):
    want = swap_rows(twin.jacobian(full(arm), "panda_hand"))[:, :7]
    assert_close(arm.get_jacobian(Q), want)
    qd = np.linspace(-1.0, 1.0, 7)
    assert_close(arm.compute_fk_velocity(Q, qd), want @ qd)


@pytest.mark.slow
def test_inverse_kinematics_round_trip(arm):
    position, quaternion = arm.forward_kinematics(Q, "panda_hand")
    R = Rotation.from_quat(quaternion)
    for orientation in (quaternion, R.as_matrix(), R.as_euler("xyz")):
        q = arm.inverse_kinematics(position, np.asarray(orientation).tolist())
        assert json.loads(json.dumps(q)) == q and len(q + [0.0]) == 8  # a list
        p, back = arm.forward_kinematics(q, "panda_hand")
        assert np.abs(np.subtract(p, position)).max() < 1e-5 and np.abs(np.subtract(back, quaternion)).max() < 1e-5
    near = arm.inverse_kinematics(position, quaternion, np.array(Q) + 0.01)
    assert np.abs(near - np.array(Q)).max() < 0.1


@pytest.mark.slow
def test_poses_that_an_arm_reaches_within_the_tolerances_only():
    """Two joints cannot give a rounded pose exactly; pyrobot's configuration has 0.01 m and 0.1 rad."""
    flat = Kinematics(robots.two_link_arm(), "base", "tool")
    position, quaternion = flat.forward_kinematics([0.4, 0.7], "tool")
    R = Rotation.from_quat(quaternion) * Rotation.from_rotvec([0.05, 0.0, 0.0])  # out of the arm's plane
    q = flat.inverse_kinematics(position, R.as_matrix())
    assert np.linalg.norm(np.subtract(flat.forward_kinematics(q, "tool")[0], position)) <= 0.01
    with pytest.raises(KinematicsError, match="rad"):
        flat.inverse_kinematics(position, R.as_matrix(), orientation_tolerance=0.01)
    above = [*position[:2], 0.005]
    reached, _ = flat.forward_kinematics(flat.inverse_kinematics(above, quaternion), "tool")
    assert np.linalg.norm(np.subtract(reached, above)) <= 0.01
    with pytest.raises(KinematicsError, match="misses by"):
        flat.inverse_kinematics(above, quaternion, position_tolerance=0.001)


@pytest.mark.slow
def test_tolerances_are_of_each_axis_of_the_target():
    """A pose above the arm's plane, tilted so that the plane's normal is between two axes of the target."""
    flat = Kinematics(robots.two_link_arm(), "base", "tool")
    position, _ = flat.forward_kinematics([0.4, 0.7], "tool")
    tilted = Rotation.from_euler("z", 1.1) * Rotation.from_euler("x", np.pi / 4)  # needs pi / 4 rad
    q = flat.inverse_kinematics([*position[:2], 0.006], tilted.as_quat(), orientation_tolerance=0.8)
    p, xyzw = flat.forward_kinematics(q, "tool")
    away = tilted.inv().apply(np.subtract(p, [*position[:2], 0.006]))
    turn = (tilted.inv() * Rotation.from_quat(xyzw)).as_rotvec()
    needed = {"position_tolerance": np.abs(away).max() + 1e-6, "orientation_tolerance": np.abs(turn).max() + 1e-6}
    assert needed["position_tolerance"] < 0.8 * np.linalg.norm(away)  # a distance would not do
    flat.inverse_kinematics([*position[:2], 0.006], tilted.as_quat(), **needed)
    for name in needed:
        with pytest.raises(KinematicsError):
            flat.inverse_kinematics([*position[:2], 0.006], tilted.as_quat(), **needed | {name: needed[name] - 1e-4})


def test_the_order_of_euler_angles():
    """The golden case is of yaw, pitch and roll, as pyrobot's code has them."""
    xyzw = [0.5714598517, -0.1201424763, 0.257628538, 0.7698226807]
    got = _rotation([0.3, -0.5, 1.2], "ypr", jnp.dtype(float))
    assert_close(Rotation.from_matrix(got).as_quat(canonical=True), xyzw, 1e-9)
    assert_close(
        _rotation([0.3, -0.5, 1.2], "rpy", jnp.dtype(float)), Rotation.from_euler("xyz", [0.3, -0.5, 1.2]).as_matrix()
    )


def test_positions_that_are_not_finite_are_refused():
    flat = Kinematics(robots.two_link_arm(), "base", "tool")
    calls = (
        ("joint_pos", lambda: flat.forward_kinematics([np.nan, 0.0], "tool")),
        ("joint_pos", lambda: flat.get_jacobian([np.inf, 0.0])),
        ("joint_pos", lambda: flat.compute_fk_velocity([np.nan, 0.0], [0.0, 0.0])),
        ("joint_vel", lambda: flat.compute_fk_velocity([0.0, 0.0], [np.nan, 0.0])),
    )
    for name, call in calls:
        with pytest.raises(rb.ArgumentError, match=f"{name} must be finite"):
            call()
    with pytest.raises(rb.DtypeError, match="target_frame must be the name of a link, got NoneType"):
        flat.forward_kinematics([0.0, 0.0], untyped(None))


@pytest.mark.slow
def test_what_raises():
    flat = Kinematics(robots.two_link_arm(), "base", "tool")
    with pytest.raises(KinematicsError, match="no configuration"):
        flat.inverse_kinematics([3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    with pytest.raises(rb.ArgumentError, match="position must be finite"):
        flat.inverse_kinematics([np.nan, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    with pytest.raises(rb.ArgumentError, match="rotation matrix"):
        flat.inverse_kinematics([0.5, 0.0, 0.0], jnp.diag(jnp.array([1.0, 1.0, -1.0])))
    with pytest.raises(rb.ArgumentError, match="finite"):
        flat.inverse_kinematics([0.5, 0.0, 0.0], [0.0, np.nan, 0.0])
    with pytest.raises(rb.ArgumentError, match="init_joint_pos must be finite"):
        flat.inverse_kinematics([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, np.inf])
    with pytest.raises(rb.ArgumentError, match="not zero"):
        flat.inverse_kinematics([0.5, 0.0, 0.0], [0, 0, 0, 0])
    for tolerance in (0.0, -1.0, np.nan):
        with pytest.raises(rb.ArgumentError, match="position_tolerance must be positive"):
            flat.inverse_kinematics([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], position_tolerance=tolerance)
    with pytest.raises(rb.DtypeError, match="joint_pos"):
        untyped(flat.forward_kinematics)("ab", "tool")
    with pytest.raises(rb.ArgumentError, match="order"):
        untyped(flat.inverse_kinematics)([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], order="xyz")
    with pytest.raises(rb.ShapeError, match="orientation"):
        flat.inverse_kinematics([0.5, 0.0, 0.0], [0.0, 0.0])
    assert flat.forward_kinematics(jnp.zeros((2, 1)), "tool") == flat.forward_kinematics([0.0, 0.0], "tool")
    for orientation in (jnp.zeros((2, 2)), jnp.zeros((3, 1, 1))):
        with pytest.raises(rb.ShapeError, match="orientation must"):
            flat.inverse_kinematics([0.5, 0.0, 0.0], orientation)
    with pytest.raises(rb.ShapeError, match=r"position must have 3 entries, got shape \(3, 1, 1\)"):
        flat.inverse_kinematics(jnp.zeros((3, 1, 1)), [0.0, 0.0, 0.0])
    with pytest.raises(rb.ModelError, match="no joint lies between"):
        Kinematics(robots.two_link_arm(), "lower", "tool")
    with pytest.raises(rb.NameNotFoundError):
        Kinematics(robots.two_link_arm(), "base", "hand")


def test_frames_that_are_assigned_are_those_of_the_arm():
    model, q = robots.rby1a(), [0.2, -0.4, 0.1, -1.3, 0.3, 0.4, 0.2]
    moved = Kinematics(model, "link_torso_5", "ee_right")
    moved.ee_frame = "ee_left"
    left = Kinematics(model, "link_torso_5", "ee_left")
    assert moved.joint_names == left.joint_names == tuple(f"left_arm_{k}" for k in range(7))
    assert_close(moved.get_jacobian(q), left.get_jacobian(q))
    assert moved.forward_kinematics(q, "ee_left") == left.forward_kinematics(q, "ee_left")
    moved.base_frame = "base"
    assert moved.arm_dof == 13
    moved.ee_frame = "base"
    for call in (moved.check_cfg, lambda: moved.get_jacobian([])):
        with pytest.raises(rb.ModelError, match="no joint lies between 'base' and 'base'"):
            call()


def test_lists_of_floats_are_not_made_inside_of_jit():
    flat = Kinematics(robots.two_link_arm(), "base", "tool")
    with pytest.raises(rb.DtypeError, match=r"forward_kinematics needs the values.*or use link_pose"):
        jax.jit(lambda q: flat.forward_kinematics(q, "tool"))(jnp.zeros(2))
    with pytest.raises(rb.DtypeError, match=r"inverse_kinematics needs the values.*or use solve_ik"):
        jax.jit(lambda p: flat.inverse_kinematics(p, [0.0, 0.0, 0.0]))(jnp.ones(3))
    assert_close(jax.jit(flat.get_jacobian)(jnp.ones(2)), flat.get_jacobian([1.0, 1.0]))


def test_sliding_joints_are_joints():
    gantry = rb.RobotBuilder("gantry").link("base").link("slide", 1.0)
    gantry = gantry.prismatic("x", "base", "slide", axis=(1, 0, 0), lower=-1.0, upper=1.0)
    rail = Kinematics(rb.build_model(gantry.build_description()), "base", "slide")
    assert_close(rail.forward_kinematics([0.25], "slide")[0], [0.25, 0.0, 0.0])


def test_a_specialised_robot_is_taken_for_the_robot():
    arm = robots.two_link_arm()
    poses = [Kinematics(m, "base", "tool").forward_kinematics([0.3, 0.2], "tool") for m in (rb.specialize(arm), arm)]
    assert poses[0] == poses[1]
    with pytest.raises(rb.DtypeError, match="model must be a Model"):
        Kinematics(untyped(3), "base", "tool")
