"""Bodies, points, contacts and end effectors, against golden cases and scipy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from rbydyn_jax import ArgumentError, DtypeError, ShapeError
from rbydyn_jax.compat.pymanoid import (
    Body,
    Box,
    Contact,
    ContactSet,
    Cube,
    Manipulator,
    Point,
    PointMass,
    transformations,
)
from tests.helpers import X64, assert_close, untyped

RPY, POS = jnp.array([0.3, -0.5, 1.2]), jnp.array([0.4, -0.2, 0.7])
pytestmark = pytest.mark.skipif(not X64, reason="ten decimals need float64")


@pytest.fixture(scope="module")
def body():
    return Body(POS, RPY)


@pytest.mark.ci
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


def test_setters_move_a_body_in_place(body):
    R, other = np.asarray(body.R), Body(name="box")
    other.set_pos([1, 1, 1])
    assert_close(other.T[:3, 3], np.ones(3))
    for change, value in ((other.set_x, 5), (other.set_y, 6.0), (other.set_z, np.int64(7))):
        change(value)
    assert_close(other.p, [5.0, 6.0, 7.0])
    other.translate([1, 1, 1])
    assert_close(other.p, [6.0, 7.0, 8.0])
    for k, name in enumerate(("set_roll", "set_pitch", "set_yaw")):
        other.set_rpy(RPY)
        getattr(other, name)(0.1)
        assert_close(other.rpy, np.where(np.arange(3) == k, 0.1, RPY))
    for change, value in (
        (other.set_quat, body.quat),
        (other.set_rpy, RPY),
        (other.set_rotation_matrix, body.R.tolist()),
    ):
        other.set_rpy([0, 0, 0])
        change(value)
        assert_close(other.R, R)
    before = other.copy()
    other.set_pose(body.pose.tolist())
    assert_close(other.T, body.T)
    before.set_transform(other.T.tolist())
    assert_close(before.T, body.T)
    assert before.name == other.name == "box"
    before.set_name("copy")
    before.set_x(0.0)
    assert other.name == "box" and float(other.x) == pytest.approx(0.4)  # a copy of its own


def test_what_is_no_pose_is_refused(body):
    other = body.copy()
    for call, name in (
        (lambda: other.set_rotation_matrix(2 * np.eye(3)), "R must be a rotation"),
        (lambda: other.set_rotation_matrix(np.diag([1.0, 1.0, -1.0])), "R must be a rotation"),
        (lambda: other.set_transform(np.zeros((4, 4))), "rotation matrix"),
        (lambda: other.set_transform(np.diag([1.0, 1, 1, 2])), "last row"),
        (lambda: other.set_quat([0, 0, 0, 0]), "quat must be finite and not zero"),
        (lambda: other.set_pos([np.nan, 0, 0]), "pos must be finite"),
        (lambda: other.set_x(np.inf), "x must be finite"),
        (lambda: other.set_y(np.nan), "y must be finite"),
        (lambda: other.set_z(np.nan), "z must be finite"),
        (lambda: other.set_pose([1, 0, 0, 0, np.nan, 0, 0]), "pose must be finite"),
        (lambda: other.translate([0, np.nan, 0]), "translation must be finite"),
        (lambda: other.apply_twist([0, 0, np.nan], np.zeros(3), 1.0), "v must be finite"),
        (lambda: other.apply_twist(np.zeros(3), np.zeros(3), np.nan), "dt must be finite"),
        (lambda: type(other)(pos=[np.nan, 0, 0]), "pos must be finite"),
        (lambda: type(other)(rpy=[0, np.nan, 0]), "rpy must be finite"),
        (lambda: other.set_rpy([np.nan, 0, 0]), "rpy must be finite"),
        (lambda: other.set_roll(np.nan), "roll must be finite"),
        (lambda: other.set_pitch(np.inf), "pitch must be finite"),
        (lambda: other.set_yaw(np.nan), "yaw must be finite"),
        (lambda: Box(-1, 1, 1), "X must be finite and not negative, got -1"),
        (lambda: Box(1, np.nan, 1), "Y must be finite and not negative"),
        (lambda: Box(1, 1, 1, dZ=np.inf), "dZ must be finite"),
        (lambda: Cube(-1), "size must be finite and not negative"),
        (lambda: Contact([0.1, -0.1]), "shape must be finite and not negative"),
        (lambda: Contact([0.1, 0.1], static_friction=np.nan), "static_friction must be finite and not negative"),
        (lambda: Manipulator(shape=[np.nan, 0.1]), "shape must be finite and not negative"),
        (lambda: Manipulator(friction=-1), "friction must be finite and not negative"),
        (lambda: Manipulator(wrench=[np.nan] * 6), "wrench must be finite"),
        (lambda: other.set_pose([0] * 7), r"pose\[:4\] must be"),
        (lambda: transformations.quat_from_rotation_matrix(np.ones((3, 3))), "R must be a rotation"),
        (lambda: transformations.rpy_from_quat([0, 0, 0, 0]), "quat must"),
        (lambda: transformations.transform_inverse(np.full((4, 4), np.nan)), "rotation matrix"),
        (lambda: body.index, "not a link of a robot"),
        (lambda: Manipulator(link="hand").index, "get_link"),
    ):
        with pytest.raises(ArgumentError, match=name):
            call()
    for call in (
        lambda: other.set_pos("abc"),
        lambda: other.set_pos(None),
        lambda: other.set_pos(["a", 1, 2]),
        lambda: other.set_pos([[1, 2], [3]]),
        lambda: other.set_pos([1j, 0, 0]),
        lambda: other.set_x(True),
        lambda: other.set_name(3),
        lambda: Contact(None),
    ):
        with pytest.raises(DtypeError):
            untyped(call)()
    for call in (lambda: other.set_pos([1, 2]), lambda: other.set_x([1]), lambda: Point([[0, 0, 0]])):
        with pytest.raises(ShapeError):
            call()
    assert_close(other.T, body.T)  # as it was


def test_twists_of_the_transformations_are_linear_first():
    """Golden case of pymanoid's documentation: v = [v_B; omega], a = [a_B; omegad], semi-implicit as there."""
    T = Body(POS, RPY).T
    v, a = [0.1, 0.2, 0.3, 0.3, -0.2, 0.5], [1, -1, 0.5, 1, 2, -1]
    got = transformations.integrate_body_acceleration(T.tolist(), v, a, 0.1)
    assert_close(got[:3, 3], [0.42, -0.19, 0.735], 1e-9)
    assert_close(got[0, :3], [0.276339329, -0.9528102641, 0.1256549871], 1e-9)
    exact = transformations.integrate_body_acceleration(T, v, a, 0.1, method="exact")
    assert_close(exact[:3, 3], [0.415, -0.185, 0.7325], 1e-9)


def test_boxes():
    box, cube = Box(1, 2, 3, [0, 0, 1], dZ=0.5), Cube(0.5, pose=[1, 0, 0, 0, 1, 2, 3])
    assert [float(x) for x in (box.X, box.Y, box.Z, box.dZ, box.z)] == [1.0, 2.0, 3.0, 0.5, 1.0]
    assert [float(x) for x in (cube.X, cube.Y, cube.Z)] == [0.5] * 3 and cube.p.tolist() == [1.0, 2.0, 3.0]


def test_adjoint_matrix(body):
    """Golden case; the upper right block is zero."""
    want = [-1.2370849178, -0.3557234147, 3.5132722295, -0.5773565474, -2.3068406757, -0.0383791265]
    assert_close(body.adjoint_matrix @ jnp.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3]), want, 1e-9)
    assert not body.adjoint_matrix[:3, 3:].any()


def test_twists_keep_a_rotation_and_the_frame_they_name(body):
    v, w = [0.2, 0.1, -0.3], np.array([0.3, -0.4, 0.5])
    xi = np.zeros((4, 4))
    xi[:3, :3], xi[:3, 3] = transformations.crossmat(w), v
    moved = body.copy()
    moved.apply_twist(v, w, 0.7)
    assert_close(moved.T, np.asarray(body.T) @ expm(0.7 * xi))
    moved = body.copy()
    moved.apply_twist(v, w, 0.7, frame="world")
    assert_close(moved.R, Rotation.from_rotvec(0.7 * w).as_matrix() @ np.asarray(body.R))
    assert_close(moved.p, POS + 0.7 * np.array(v))
    with pytest.raises(ArgumentError, match="frame must be"):
        untyped(body.apply_twist)(v, w, 0.7, frame="base")


def test_small_turns_are_not_lost():
    """An angle below 1e-5 turns the present rotation, and has a derivative."""
    R, w = Body(POS, RPY).R, jnp.array([0.0, 0.0, 1e-7])
    assert_close(transformations.integrate_angular_acceleration(R, w, jnp.zeros(3), 1.0), R, 1e-6)
    slope = jax.jacfwd(lambda t: transformations.integrate_angular_acceleration(R, t * w, jnp.zeros(3), 1.0))(0.0)
    assert_close(slope, np.asarray(transformations.crossmat(w)) @ np.asarray(R))


def test_points_move_by_the_laws_of_constant_jerk_and_acceleration():
    start = Point([0, 0, 1], [1.0, 0.0, 0.5], [0.0, 0.2, -0.1])
    later = start.copy()
    later.integrate_constant_jerk([0.3, -0.6, 0.9], 0.2)
    for got, want in (
        (later.p, [0.2004, 0.0032, 1.0992]),
        (later.pd, [1.006, 0.028, 0.498]),
        (later.pdd, [0.06, 0.08, 0.08]),
    ):
        assert_close(got, want, 1e-9)
    assert_close(jnp.stack([later.xd, later.yd, later.zd, later.xdd, later.ydd, later.zdd]), [*later.pd, *later.pdd])
    thrown = start.copy()
    thrown.integrate_constant_accel([0, 0, -10], 0.1)
    assert_close(thrown.p, [0.1, 0.0, 1.0])
    assert_close(thrown.pd, [1.0, 0.0, -0.5])
    assert_close(thrown.pdd, [0.0, 0.0, -10.0])
    assert start.p.tolist() == [0.0, 0.0, 1.0]  # the copies moved
    assert_close(PointMass([0, 0, 0], 2, [1, 2, 3]).momentum, [2.0, 4.0, 6.0])
    with pytest.raises(ArgumentError, match="mass must be finite and not negative"):
        PointMass([0, 0, 0], -1)
    for call, name in (
        (lambda: Point([0, 0, 0], [np.nan, 0, 0]), "vel"),
        (lambda: Point([0, 0, 0], accel=[np.inf, 0, 0]), "accel"),
        (lambda: PointMass([0, 0, np.nan], 1.0), "pos"),
        (lambda: PointMass([0, 0, 0], 1.0, [0, np.nan, 0]), "vel"),
        (lambda: PointMass([0, 0, 0], np.nan), "mass"),
        (lambda: thrown.set_vel([np.nan, 0, 0]), "pd"),
        (lambda: thrown.set_accel([np.nan, 0, 0]), "pdd"),
        (lambda: thrown.integrate_constant_jerk([0, np.nan, 0], 0.1), "pddd"),
        (lambda: thrown.integrate_constant_jerk([0, 1, 0], np.nan), "dt"),
        (lambda: thrown.integrate_constant_accel([0, np.nan, 0], 0.1), "pdd"),
        (lambda: thrown.integrate_constant_accel([1, 1, 1], np.inf), "dt"),
    ):
        with pytest.raises(ArgumentError, match=f"{name} must be finite"):
            call()
    assert_close(thrown.p, [0.1, 0.0, 1.0])  # nothing of it was done
    assert_close(jnp.stack([thrown.pd, thrown.pdd]), [[1.0, 0.0, -0.5], [0.0, 0.0, -10.0]])
    assert float(Body().dist(PointMass([0, 2, 0], 1.0))) == 2.0 and float(start.dist([3, 4, 1])) == 5.0


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
        _ = Contact([1, 1]).force_span


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


@pytest.mark.slow
def test_contact_sets():
    """A weight between two feet, force first, and the areas in which they hold it; linear first, about any point."""
    feet = ContactSet([Contact([0.1, 0.05], [0, y, 0], static_friction=0.5) for y in (0.1, -0.1)])
    support = feet.find_supporting_wrenches([0, 0, 400, 0, 0, 0], [0.02, 0, 0])
    assert support is not None and len(feet) == len(support) == 2
    together = jnp.concatenate([w for _, w in support])
    assert_close(feet.compute_grasp_matrix([0.02, 0, 0]) @ together, [0, 0, 400, 0, 0, 0], 1e-6, scale=400.0)
    for contact, w in support:
        assert float((contact.wrench_inequalities @ w).max()) < 1e-6 and float(w[2]) == pytest.approx(200.0)
    assert feet.find_supporting_wrenches([0, 0, -400, 0, 0, 0], [0, 0, 0]) is None
    for points in (feet.compute_static_equilibrium_polygon(), feet.compute_zmp_support_area([0, 0, 0.8])):
        assert points is not None
        assert_close(points.max(axis=0), [0.1, 0.15], 1e-6)
        assert_close(points.min(axis=0), [-0.1, -0.15], 1e-6)
    assert feet.compute_zmp_support_area([9, 0, 0.8]) is None
    with pytest.raises(ArgumentError, match="static_friction"):
        ContactSet([Contact([1, 1])]).compute_static_equilibrium_polygon()
    with pytest.raises(ArgumentError, match=r"contacts\[1\].static_friction must be finite and positive, got 0.0"):
        ContactSet([feet.contacts[0], Contact([1, 1], static_friction=0.0)]).compute_static_equilibrium_polygon()
    nothing = ContactSet([])
    assert nothing.compute_grasp_matrix([0, 0, 1]).shape == (6, 0)
    with pytest.raises(ShapeError, match="at least one Contact"):
        nothing.compute_static_equilibrium_polygon()
    with pytest.raises(ArgumentError, match="wrench must be finite"):
        feet.find_supporting_wrenches([0, 0, np.nan, 0, 0, 0], [0, 0, 0])
    with pytest.raises(DtypeError, match="hold Contact"):
        ContactSet(untyped([Body()]))


def test_manipulator():
    hand = Manipulator(POS, RPY, shape=[0.05, 0.02], friction=0.5, wrench=list(range(6)), link="hand")
    assert hand.force is not None and hand.moment is not None
    assert hand.force.tolist() == [0.0, 1.0, 2.0] and hand.moment.tolist() == [3.0, 4.0, 5.0]
    contact = hand.get_contact(pos=jnp.ones(3))
    assert_close(contact.R, hand.R)
    assert contact.p.tolist() == [1.0, 1.0, 1.0] and contact.link == "hand"
    assert Manipulator().force is None and Manipulator().moment is None
    with pytest.raises(ArgumentError, match="shape"):
        Manipulator().get_contact()
