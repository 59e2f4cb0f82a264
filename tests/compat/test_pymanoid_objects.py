"""Bodies, points, contacts and end effectors, against golden cases and scipy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from rbydyn_jax import ArgumentError
from rbydyn_jax.compat.pymanoid import Body, Contact, Manipulator, Point, PointMass, transformations
from tests.helpers import X64, assert_close

RPY, POS = jnp.array([0.3, -0.5, 1.2]), jnp.array([0.4, -0.2, 0.7])
pytestmark = pytest.mark.skipif(not X64, reason="ten decimals need float64")


@pytest.fixture(scope="module")
def body():
    return Body(POS, RPY)


def test_axes_and_pose_of_a_body_are_those_of_its_rotation(body):
    R = Rotation.from_euler("xyz", RPY).as_matrix()
    assert_close(body.R, R)
    for got, want in ((body.t, R[:, 0]), (body.b, R[:, 1]), (body.n, R[:, 2]), (body.p, POS), (body.rpy, RPY)):
        assert_close(got, want)
    wxyz = [0.7698226807, 0.257628538, -0.1201424763, 0.5714598517]
    assert_close(body.pose, [*wxyz, *POS], 1e-9)
    assert_close(Body(pose=-body.pose.at[4:].multiply(-1.0)).T, body.T)  # q and -q are one rotation
    assert float(body.dist(POS + jnp.array([3.0, 4.0, 0.0]))) == pytest.approx(5.0)
    assert np.isfinite(jax.grad(lambda p: body.dist(p))(POS)).all()


def test_other_poses_of_a_body(body):
    R = np.asarray(body.R)
    assert_close(body.with_pos(jnp.ones(3)).T[:3, 3], np.ones(3))
    assert_close(body.with_x(5.0).with_y(6.0).with_z(7.0).p, [5.0, 6.0, 7.0])
    assert_close(body.translate(jnp.ones(3)).p, POS + 1)
    for k, change in enumerate((body.with_roll, body.with_pitch, body.with_yaw)):
        assert_close(change(0.1).rpy, np.where(np.arange(3) == k, 0.1, RPY))
    for other in (Body().with_quat(body.quat), Body().with_rpy(RPY), Body().with_rotation_matrix(body.R)):
        assert_close(other.R, R)
    assert_close(Body().with_pose(body.pose).T, body.T)
    assert_close(body.p, POS)  # nothing was changed in place


def test_adjoint_matrix(body):
    """Golden case; the upper right block is zero."""
    want = [-1.2370849178, -0.3557234147, 3.5132722295, -0.5773565474, -2.3068406757, -0.0383791265]
    assert_close(body.adjoint_matrix @ jnp.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3]), want, 1e-9)
    assert not body.adjoint_matrix[:3, 3:].any()


def test_twists_keep_a_rotation_and_the_frame_they_name(body):
    v, w = jnp.array([0.2, 0.1, -0.3]), jnp.array([0.3, -0.4, 0.5])
    xi = np.zeros((4, 4))
    xi[:3, :3], xi[:3, 3] = transformations.crossmat(w), v
    assert_close(body.apply_twist(v, w, 0.7).T, np.asarray(body.T) @ expm(0.7 * xi))
    moved = body.apply_twist(v, w, 0.7, frame="world")
    assert_close(moved.R, Rotation.from_rotvec(0.7 * np.asarray(w)).as_matrix() @ np.asarray(body.R))
    assert_close(moved.p, POS + 0.7 * v)
    with pytest.raises(ArgumentError, match="frame must be"):
        body.apply_twist(v, w, 0.7, frame="base")


def test_small_turns_are_not_lost():
    """An angle below 1e-5 turns the present rotation, and has a derivative."""
    R, w = Body(POS, RPY).R, jnp.array([0.0, 0.0, 1e-7])
    assert_close(transformations.integrate_angular_acceleration(R, w, jnp.zeros(3), 1.0), R, 1e-6)
    slope = jax.jacfwd(lambda t: transformations.integrate_angular_acceleration(R, t * w, jnp.zeros(3), 1.0))(0.0)
    assert_close(slope, np.asarray(transformations.crossmat(w)) @ np.asarray(R))


def test_points_move_by_the_laws_of_constant_jerk_and_acceleration():
    p = Point(jnp.array([0.0, 0.0, 1.0]), jnp.array([1.0, 0.0, 0.5]), jnp.array([0.0, 0.2, -0.1]))
    later = p.integrate_constant_jerk(jnp.array([0.3, -0.6, 0.9]), 0.2)
    for got, want in zip(
        (later.pos, later.vel, later.accel),
        ([0.2004, 0.0032, 1.0992], [1.006, 0.028, 0.498], [0.06, 0.08, 0.08]),
        strict=True,
    ):
        assert_close(got, want, 1e-9)
    thrown = p.integrate_constant_accel(jnp.array([0.0, 0.0, -10.0]), 0.1)
    assert_close(thrown.pos, [0.1, 0.0, 1.0])
    assert_close(thrown.vel, [1.0, 0.0, -0.5])
    assert_close(PointMass(jnp.zeros(3), 2.0, jnp.array([1.0, 2.0, 3.0])).momentum, [2.0, 4.0, 6.0])
    assert float(Body().dist(PointMass(jnp.array([0.0, 2.0, 0.0]), 1.0))) == 2.0


def test_contact_cones_turn_with_the_contact():
    """Every wrench of forces within friction at the corners keeps the inequalities, in world axes."""
    sole = Contact(jnp.array([0.11, 0.07]), POS, RPY, static_friction=0.7)
    corners = np.asarray(sole.vertices)
    assert_close(np.linalg.norm(corners - np.asarray(POS), axis=1), np.full(4, np.hypot(0.11, 0.07)))
    assert_close((corners - np.asarray(POS)) @ np.asarray(sole.n), np.zeros(4), 1e-12, scale=1.0)
    span = np.asarray(sole.force_span)
    assert_close(np.asarray(sole.n) @ span, np.ones(4))
    assert (np.asarray(sole.force_inequalities) @ span).max() < 1e-12
    wrenches = [np.concatenate([f, np.cross(c - np.asarray(POS), f)]) for c in corners for f in span.T]
    assert_close(np.sort(np.asarray(sole.wrench_span).T, axis=0), np.sort(wrenches, axis=0))
    products = np.asarray(sole.wrench_inequalities) @ np.asarray(wrenches).T
    assert products.max() < 1e-12 and (np.abs(products) < 1e-12).any(axis=1).all()
    with pytest.raises(ArgumentError, match="static_friction"):
        _ = Contact(jnp.ones(2)).force_span


def test_wrenches_at_other_points():
    """The same wrench seen from another point has the moment of its force about that point, with the arm to it."""
    sole, p = Contact(jnp.array([0.1, 0.1]), POS, RPY), jnp.array([0.5, 0.6, -0.7])
    f, n = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
    want = np.concatenate([f, n + np.cross(np.asarray(POS - p), f)])
    assert_close(sole.compute_grasp_matrix(p) @ jnp.concatenate([f, n]), want)
    R = np.asarray(sole.R)
    local = jnp.concatenate([R.T @ f, R.T @ n])
    assert_close(sole.wrench_at(local, p), want)
    assert_close(sole.wrench_at(local, jnp.zeros(3)), sole.adjoint_matrix @ local)


def test_manipulator():
    hand = Manipulator(POS, RPY, shape=jnp.array([0.05, 0.02]), friction=0.5, wrench=jnp.arange(6.0), link="hand")
    assert hand.force is not None and hand.moment is not None
    assert hand.force.tolist() == [0.0, 1.0, 2.0] and hand.moment.tolist() == [3.0, 4.0, 5.0]
    contact = hand.get_contact(pos=jnp.ones(3))
    assert_close(contact.R, hand.R)
    assert contact.p.tolist() == [1.0, 1.0, 1.0] and contact.link == "hand"
    assert Manipulator().force is None and Manipulator().moment is None
    with pytest.raises(ArgumentError, match="shape"):
        Manipulator().get_contact()
