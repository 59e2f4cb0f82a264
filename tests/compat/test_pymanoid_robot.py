"""Robots and humanoids in pymanoid's terms against pinocchio, whose 6-vectors are linear first, too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.compat.pymanoid import Contact, Humanoid, Manipulator, Robot, with_rpy_base
from rbydyn_jax.engines.conventions import swap_rows
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle, untyped

pytestmark = pytest.mark.skipif(not X64, reason="the oracle works in float64")
P, NORMAL = (0.2, -0.3, 0.5), (0.1, -0.2, 1.0)


@pytest.fixture(scope="module")
def humanoid():
    model = with_rpy_base(random_tree(5, ("revolute", "prismatic"), n=2, armature=False))
    return Humanoid(model, q=normal(1, model.nv), qd=normal(2, model.nv))


@pytest.fixture(scope="module")
def twin(humanoid):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    return pin_model(humanoid.model)


@pytest.fixture(scope="module")
def tip(humanoid):
    return humanoid.model.link_names[-1]


@pytest.fixture(scope="module")
def qdd(humanoid):
    return normal(3, humanoid.nb_dofs)


def at_point(twin, robot, link, point, qdd=None):
    """pinocchio's Jacobian [linear; angular] at a point of the world, and the acceleration of the link there."""
    pin = oracle("pinocchio")
    k = robot.model.link_index(link)
    local = np.linalg.inv(twin.fk(robot.q)[k]) @ [*point, 1.0]
    frame = twin._frame(link)
    placement = twin.model.frames[frame].placement * pin.SE3(np.eye(3), local[:3])
    moved = twin.model.copy()
    at = moved.addFrame(pin.Frame("point", twin.model.frames[frame].parentJoint, 0, placement, pin.FrameType.OP_FRAME))
    data, axes = moved.createData(), pin.LOCAL_WORLD_ALIGNED
    J = pin.computeFrameJacobian(moved, data, twin.q(robot.q), at, axes) @ twin.G
    if qdd is None:
        return J
    pin.forwardKinematics(moved, data, twin.q(robot.q), twin.v(robot.qd), twin.v(qdd))
    pin.updateFramePlacements(moved, data)
    return J, pin.getFrameClassicalAcceleration(moved, data, at, axes).vector


@pytest.mark.slow
def test_jacobian_at_a_point(humanoid, twin, tip):
    """The point is not ignored."""
    p = jnp.array(P)
    want = at_point(twin, humanoid, tip, P)
    assert_close(humanoid.compute_link_jacobian(tip, p), want)
    assert_close(humanoid.compute_link_pos_jacobian(tip, p), want[:3])
    assert_close(humanoid.compute_link_jacobian(tip), swap_rows(twin.jacobian(humanoid.q, tip)))
    other = humanoid.model.link_names[-2]
    contacts = [Contact(jnp.ones(2), p, link=tip), Contact(jnp.ones(2), 2 * p, link=other)]
    both = np.concatenate([want, at_point(twin, humanoid, other, 2 * np.array(P))])
    assert_close(humanoid.compute_contact_jacobian(contacts), both)
    with pytest.raises(rb.ArgumentError, match="link"):
        humanoid.compute_contact_jacobian([Contact(jnp.ones(2))])


@pytest.mark.slow
def test_hessian_gives_accelerations(humanoid, twin, tip, qdd):
    """a = J qdd + qd H qd: linear and angular, which is not doubled; rotations beyond joint j do not turn its axis."""
    p, qd = jnp.array(P), humanoid.qd
    H = humanoid.compute_link_hessian(tip, p)
    assert H.shape == (humanoid.nb_dofs, 6, humanoid.nb_dofs)
    J, want = at_point(twin, humanoid, tip, P, qdd)
    assert_close(J @ np.asarray(qdd) + np.einsum("i,iaj,j->a", qd, H, qd), want)
    assert_close(humanoid.compute_contact_hessian([Contact(jnp.ones(2), p, link=tip)]), H)


def test_pose_jacobian(humanoid, twin, tip):
    """The quaternion's rate, by a difference of scipy's quaternions along the velocity."""
    J, h = humanoid.compute_link_pose_jacobian(tip), 1e-6
    k = humanoid.model.link_index(tip)

    def pose(t):
        T = twin.fk(humanoid.q + t * humanoid.qd)[k]
        return np.concatenate([Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True)[[3, 0, 1, 2]], T[:3, 3]])

    assert_close(J @ humanoid.qd, (pose(h) - pose(-h)) / (2 * h), kind="difference")


@pytest.mark.slow
def test_inverse_dynamics(humanoid, twin, qdd):
    q, qd = humanoid.q, humanoid.qd
    tm, tc, tg = humanoid.compute_inverse_dynamics(qdd)
    assert_close(tm + tc + tg, twin.rnea(q, qd, qdd))
    assert_close(tg, twin.gravity(q))
    M = humanoid.compute_inertia_matrix()
    assert_close(M, twin.crba(q))
    assert_close(M[:3, :3], humanoid.mass * np.eye(3))  # sliders weigh what they carry
    gravity = np.asarray(humanoid.model.gravity)
    assert_close(humanoid.compute_static_gravity_torques(), -twin.com_jacobian(q).T @ gravity * humanoid.mass)


@pytest.mark.ci
def test_external_torques_help_the_actuators(humanoid):
    others = normal(4, humanoid.nb_dofs)
    tm, tc, tg = humanoid.compute_inverse_dynamics(external_torque=others)
    assert tm is None
    assert_close(tg, humanoid.compute_static_gravity_torques() - others)
    assert_close(humanoid.compute_static_gravity_torques(others), tg)
    assert np.isfinite(tc).all()


@pytest.fixture(scope="module")
def found(humanoid, qdd):
    """What a humanoid tells of its mass, compiled as one program: the facade is one of pure functions."""
    p, normal = jnp.array(P), jnp.array(NORMAL)

    @jax.jit
    def compute(model, q, qd):
        robot = Humanoid(model, q=q, qd=qd)
        return {
            "com": (robot.com, robot.comd, robot.compute_com_acceleration(qdd), robot.compute_com_jacobian()),
            "cam": (robot.cam, robot.compute_cam_jacobian(), robot.compute_cam_hessian(), robot.compute_cam_rate(qdd)),
            "angular": (robot.compute_angular_momentum(p), robot.compute_angular_momentum_jacobian(p)),
            "wrench": (robot.compute_gravito_inertial_wrench(qdd, p), robot.compute_net_contact_wrench(qdd, p)),
            "zmp": robot.compute_zmp(qdd, p, normal),
        }

    return compute(humanoid.model, humanoid.q, humanoid.qd)


@pytest.mark.slow
def test_centre_of_mass_and_momentum(humanoid, twin, qdd, found):
    pin = oracle("pinocchio")
    q, qd, p = humanoid.q, humanoid.qd, jnp.array(P)
    velocity, acceleration = twin.com_motion(q, qd, qdd)
    com = twin.center_of_mass(q)
    for got, want in zip(found["com"], (com, velocity, acceleration, twin.com_jacobian(q)), strict=True):
        assert_close(got, want)
    pin.computeCentroidalMomentumTimeVariation(twin.model, twin.data, twin.q(q), twin.v(qd), twin.v(qdd))
    h, rate = twin.data.hg, twin.data.dhg
    cam, J, H, cam_rate = found["cam"]
    assert_close(cam, h.angular)
    assert_close(J @ qd, h.angular)
    assert_close(cam_rate, rate.angular)
    assert_close(J @ qdd + jnp.einsum("i,iaj,j->a", qd, H, qd), rate.angular)  # not doubled
    momentum, jacobian = found["angular"]
    want = h.angular + np.cross(com - p, h.linear)
    assert_close(momentum, want)
    assert_close(jacobian @ qd, want)
    for hessian in (humanoid.compute_com_hessian, lambda: humanoid.compute_angular_momentum_hessian(p)):
        assert jax.eval_shape(hessian).shape == (humanoid.nb_dofs, 3, humanoid.nb_dofs)


@pytest.mark.slow
def test_wrench_and_zmp(humanoid, twin, qdd, found):
    """The base's six joint forces are the wrench of the ground: linear ones at once, the ZMP from its moments."""
    gravito_inertial, wrench = (np.asarray(x) for x in found["wrench"])
    tau = twin.rnea(humanoid.q, humanoid.qd, qdd)
    assert_close(wrench[:3], tau[[humanoid.TRANS_X, humanoid.TRANS_Y, humanoid.TRANS_Z]])
    assert_close(gravito_inertial, -wrench)
    arm = np.asarray(found["zmp"]) - np.array(P)
    assert abs(float(arm @ NORMAL)) < 1e-9
    moment = wrench[3:] - np.cross(arm, wrench[:3])
    assert_close(np.cross(NORMAL, moment), np.zeros(3), 1e-9, scale=float(np.abs(wrench).max()))


def test_every_way_to_place_the_base_gives_one_pose(humanoid):
    robot, angles = Humanoid(humanoid.model), jnp.array([0.3, -0.5, 1.2])
    robot.set_pos(list(P))
    robot.set_rpy(rpy=angles.tolist())
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", angles).as_matrix(), P
    assert_close(robot.T, T)
    for axis, k in ((robot.t, 0), (robot.b, 1), (robot.n, 2)):
        assert_close(axis, T[:3, k])
    assert_close(robot.get_link_transform("floating_base_ROT_R"), T)
    pose = robot.pose
    for change, value in ((robot.set_quat, robot.quat), (robot.set_pose, pose), (robot.set_transform, robot.T)):
        robot.set_rpy(jnp.zeros(3))
        change(value)
        assert_close(robot.T, T)
    with pytest.raises(rb.ModelError, match="TRANS_X"):
        Humanoid(robots.two_link_arm())


def test_state_and_limits():
    robot = Robot(robots.two_link_arm())
    robot.set_dof_values([5], [1], clamp=True)
    assert robot.q.tolist() == [0.0, float(robot.q_max[1])]
    robot.set_dof_limits([-1], [0.5], [1])
    assert [x.tolist() for x in robot.get_dof_limits([1])] == [[-1.0], [0.5]]
    robot.set_dof_velocities([0.1, 0.2])
    assert robot.get_dof_velocities([1]).tolist() == [0.2] and robot.get_dof_values([0]).tolist() == [0.0]
    with pytest.raises(rb.ShapeError, match="q must"):
        robot.set_dof_values(jnp.zeros(3), [0, 1])
    with pytest.raises(rb.ArgumentError, match="dof_indices"):
        robot.get_dof_values([2])
    for change in (robot.set_dof_values, robot.set_dof_velocities, lambda x, at: robot.set_dof_limits(x, x, at)):
        with pytest.raises(rb.ArgumentError, match=r"dof_indices must name each joint once, got \[0, 0\]"):
            change([1.0, 2.0], [0, 0])
    with pytest.raises(rb.DtypeError, match="integers"):
        robot.get_dof_values(untyped([0.5]))
    with pytest.raises(rb.DtypeError, match="q must hold real numbers"):
        robot.set_dof_values(["a"], [0])
    with pytest.raises(rb.ModelError, match="several coordinates"):
        Robot(random_tree(1, n=8))


def test_states_that_are_not_finite_are_refused(humanoid):
    before, nothing = (humanoid.q, humanoid.qd), [np.nan] * humanoid.nb_dofs
    for call, name in (
        (lambda: humanoid.set_pos([np.nan, 0, 0]), "pos"),
        (lambda: humanoid.set_rpy([0, np.inf, 0]), "rpy"),
        (lambda: humanoid.set_quat([np.nan, 0, 0, 0]), "quat"),
        (lambda: humanoid.set_pose([1, 0, 0, 0, np.nan, 0, 0]), "pose"),
        (lambda: humanoid.set_pose([0] * 7), r"pose\[:4\]"),
        (lambda: humanoid.set_dof_values(nothing), "q"),
        (lambda: humanoid.set_dof_values([np.nan], [0], clamp=True), "q"),
        (lambda: humanoid.set_dof_velocities(nothing), "qd"),
        (lambda: type(humanoid)(humanoid.model, q=nothing), "q"),
        (lambda: type(humanoid)(humanoid.model, qd=nothing), "qd"),
    ):
        with pytest.raises(rb.ArgumentError, match=f"^{name} must be finite"):
            call()
    assert (humanoid.q == before[0]).all() and (humanoid.qd == before[1]).all()
    with pytest.raises(rb.ShapeError, match=r"^pos must have shape \(3,\)"):
        humanoid.set_pos([0, 0])


@pytest.mark.slow
def test_a_link_moves_with_its_robot(humanoid, tip):
    robot = Humanoid(humanoid.model)
    link, hand = robot.get_link(tip), Manipulator(link=robot.get_link(tip))
    assert link.index == hand.index == robot.model.link_index(tip) and link.name == tip
    robot.set_dof_values(humanoid.q)
    assert_close(link.T, rb.link_pose(robot.model, robot.q, tip))
    assert_close(robot.compute_link_jacobian(link), humanoid.compute_link_jacobian(tip))
    contact = Contact([1, 1], P, link=link)
    assert_close(robot.compute_contact_jacobian([contact]), humanoid.compute_link_jacobian(tip, P))
    with pytest.raises(rb.ArgumentError, match="moves with its robot"):
        link.set_x(1.0)
    with pytest.raises(rb.NameNotFoundError):
        robot.get_link("no such link")


@pytest.mark.slow
def test_names_and_mass_of_a_humanoid(humanoid):
    assert [humanoid.get_dof_name_from_index(k) for k in (0, 5)] == ["TRANS_X", "ROT_R"]
    with pytest.raises(rb.ArgumentError, match="dof_indices"):
        humanoid.get_dof_name_from_index(99)
    assert [float(x) for x in humanoid.compute_cam()] == [float(x) for x in humanoid.cam]
    point = humanoid.get_com_point_mass()
    assert_close(point.momentum, humanoid.mass * np.asarray(humanoid.comd))
    assert_close(point.p, humanoid.com)


@pytest.mark.slow
def test_the_hessian_of_the_angular_momentum_at_another_configuration(humanoid):
    q = 0.5 * humanoid.q
    there = Humanoid(humanoid.model, q=q)
    shapes = jax.eval_shape(humanoid.compute_cam_hessian, q)
    assert shapes.shape == (humanoid.nb_dofs, 3, humanoid.nb_dofs)
    assert_close(humanoid.compute_cam_hessian(q), there.compute_cam_hessian())


def test_a_robot_of_a_file(tmp_path):
    path = tmp_path / "pendulum.urdf"
    rb.save_urdf(robots.pendulum(), path)
    root = robots.pendulum().link_names[0]
    assert Robot(path).nb_dofs == 1
    robot = Humanoid(str(path), root)
    assert robot.nb_dofs == 7 and robot.q.shape == (7,)
    assert Humanoid(path).nb_dofs == 7
    with pytest.raises(rb.ModelError, match="root_body must be"):
        Humanoid(path, robots.pendulum().link_names[-1])
    with pytest.raises(rb.ArgumentError, match="root_body"):
        Humanoid(robot.model, root)


@pytest.mark.ci
def test_integers_are_numbers_everywhere(humanoid, twin, tip):
    robot = Humanoid(humanoid.model, q=[0] * humanoid.nb_dofs, qd=np.ones(humanoid.nb_dofs, int))
    robot.set_pos([0, 0, 1])
    ones = [1] * robot.nb_dofs
    assert_close(robot.compute_link_pos_jacobian(tip, [1, 0, 0]), at_point(twin, robot, tip, (1.0, 0.0, 0.0))[:3])
    tm, tc, tg = robot.compute_inverse_dynamics(ones, ones)
    M = robot.compute_inertia_matrix()
    assert tm is not None and np.isfinite(tc).all()
    assert_close(tm, M @ np.ones(robot.nb_dofs))
    assert_close(tg, robot.compute_static_gravity_torques() - 1)


def test_names_by_index_pass_over_joints_that_mimic_others():
    b = rb.RobotBuilder("r").link("a", 1.0, inertia=0.1).link("b").link("c").link("d")
    b = b.revolute("j1", "a", "b").revolute("j2", "b", "c", mimic=rb.Mimic("j1")).prismatic("j3", "c", "d")
    robot = Humanoid(with_rpy_base(rb.build_model(b)))
    assert [robot.get_dof_name_from_index(k) for k in range(6, robot.nb_dofs)] == ["j1", "j3"]
