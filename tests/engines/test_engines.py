"""The conversions are right if engines that know nothing of each other agree through them."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax import crba, integrate, random_configuration, rnea, to_urdf, with_inertias
from rbydyn_jax.engines import conventions
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.skipif(not X64, reason="the oracles themselves are in float64")

from rbydyn_jax.engines.conventions import batch  # noqa: E402
from rbydyn_jax.engines.mujoco import mujoco_model  # noqa: E402
from rbydyn_jax.engines.pinocchio import pin_from_urdf, pin_model, pin_twin  # noqa: E402

COUNT = 100
EVERY_TYPE = ("revolute", "continuous", "prismatic", "fixed", "planar", "spherical", "floating")
EVERY_TYPE += ("sin_cos_revolute", "mrp_floating")
SCALARS = ("revolute", "continuous", "prismatic", "fixed")


def _states(model, count=COUNT, seed=3):
    q = jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(jax.random.key(seed), count))
    v, a = jax.random.normal(jax.random.key(seed + 1), (2, count, model.nv))
    return np.asarray(q), np.asarray(v), np.asarray(a)


def test_swapping_twice_changes_nothing():
    assert (conventions.swap_rows(conventions.swap_rows(np.arange(6))) == np.arange(6)).all()
    assert conventions.swap_rows(np.arange(6)).tolist() == [3, 4, 5, 0, 1, 2]


def test_quaternions_are_those_of_scipy():
    for turn in Rotation.random(COUNT, rng=np.random.default_rng(0)):
        wxyz = turn.as_quat()[[3, 0, 1, 2]]
        assert_close(conventions.quat_xyzw(3.0 * wxyz), turn.as_quat(), 1e-15)
        assert_close(conventions.quaternion_matrix(0.3 * wxyz), turn.as_matrix(), 1e-15)


def test_modified_rodrigues_parameters_are_those_of_scipy():
    for turn in Rotation.random(COUNT, rng=np.random.default_rng(4)):
        wxyz = conventions.quaternion_of_mrp(turn.as_mrp())
        assert_close(conventions.quaternion_matrix(wxyz), turn.as_matrix(), 1e-14)


def test_plane_alignment_is_the_smallest_rotation():
    rng = np.random.default_rng(1)
    for normal in [*rng.normal(size=(COUNT, 3)), np.array([0.0, 0, 1]), np.array([0.0, 0, -1])]:
        normal = normal / np.linalg.norm(normal)
        turn = conventions.plane_alignment(normal)
        assert_close(turn @ [0, 0, 1], normal, 1e-12)  # 1 + z cancels near -z
        assert_close(turn @ turn.T, np.eye(3), 1e-12)
        smallest = np.arccos(np.clip(normal[2], -1, 1))
        assert Rotation.from_matrix(turn).magnitude() == pytest.approx(smallest, abs=1e-7)


def test_inertia_about_the_centre_is_that_of_pinocchio():
    for _ in range(COUNT):
        body = pin.Inertia.Random()
        mass, com, inertia = conventions.com_inertia(np.array(body.toDynamicParameters()))
        assert mass == pytest.approx(body.mass, rel=1e-15)
        assert_close(com, body.lever, 1e-14)
        assert_close(inertia, body.inertia, 1e-14)


def test_velocity_of_another_point():
    spin, speed, p = np.random.default_rng(2).normal(size=(3, 3))
    moved = conventions.change_velocity_origin(p) @ np.concatenate([spin, speed])
    assert_close(moved, np.concatenate([spin, speed + np.cross(spin, p)]), 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pinocchio", "mujoco"])
def test_velocity_is_the_rate_of_the_configuration(engine):
    """Integrating with our velocity is integrating with theirs: this ties q and v of every joint type together."""
    if engine == "pinocchio":
        model = random_tree(11, EVERY_TYPE, 14)
        twin = pin_model(model)
        rate = lambda q0, q1: pin.difference(twin.model, q0, q1)  # noqa: E731
        expected = lambda q, v: twin.v(v)  # noqa: E731
    else:
        model = _tree_for_mujoco()
        twin = mujoco_model(model)

        def rate(q0, q1):
            out = np.zeros(twin.model.nv)
            mujoco.mj_differentiatePos(twin.model, out, 1.0, q0, q1)
            return out

        expected = lambda q, v: twin.velocity_map(q) @ v  # noqa: E731
    q, v, _ = _states(model, 20)
    step = 1e-6
    for one, speed in zip(q, v, strict=True):
        after = np.asarray(integrate(model, one, step * speed))
        before = np.asarray(integrate(model, one, -step * speed))
        got = rate(twin.q(before), twin.q(after)) / (2 * step)
        assert_close(got, expected(one, speed), 1e-8)


def _tree_for_mujoco():
    """A floating base with 1-dof and ball joints above it: MuJoCo allows free joints at the top only."""
    from rbydyn_jax.io import JointDescription, LinkDescription, RobotDescription, build_model
    from rbydyn_jax.testing import random_description, random_inertial, random_transform

    rest = random_description(5, ("revolute", "prismatic", "spherical", "continuous", "fixed"), 12)
    base = JointDescription("base", "floating", "world_root", "link_0", origin=random_transform(4))
    links = (LinkDescription("world_root"), LinkDescription("link_0", random_inertial(6)), *rest.links[1:])
    return build_model(RobotDescription("floating", links, (base, *rest.joints)))


@pytest.mark.slow
def test_pinocchio_and_mujoco_agree_through_the_conversions():
    model = _tree_for_mujoco()
    one, two = pin_model(model), mujoco_model(model)
    q, v, a = _states(model)
    assert_close(batch(one.crba, q), batch(two.crba, q), 1e-12)
    assert_close(batch(one.rnea, q, v, a), batch(two.rnea, q, v, a), 1e-12)
    bodies = [model.link_names.index(f"link_{name.split('_')[1]}") for name in model.joint_names if name != "base"]
    order = [i for i, name in enumerate(model.joint_names) if name != "base"]
    assert_close(batch(one.fk, q)[:, bodies], batch(two.body_poses, q)[:, order], 1e-12)
    body = order[-1]
    name = model.link_names[bodies[-1]]
    got = batch(lambda q: one.jacobian(q, name), q)
    assert_close(got, batch(lambda q: two.jacobian(q, body), q), 1e-12)


@pytest.mark.ci
def test_our_numbers_and_our_file_make_the_same_robot_in_pinocchio():
    model = random_tree(21, SCALARS, 14, armature=False)
    written, read = pin_model(model), pin_from_urdf(to_urdf(model), model)
    q, v, a = _states(model)
    assert_close(batch(read.fk, q), batch(written.fk, q), 1e-12)
    assert_close(batch(read.crba, q), batch(written.crba, q), 1e-12)
    assert_close(batch(read.rnea, q, v, a), batch(written.rnea, q, v, a), 1e-12)


@pytest.mark.slow
def test_tied_joints_move_as_pinocchio_moves_them():
    """pinocchio has mimic joints of its own for forward kinematics."""
    model = random_tree(8, ("revolute", "prismatic"), 9, mimics=3)
    ours = pin_model(model)
    tied = pin.buildModelFromXML(to_urdf(model), mimic=True)
    data = tied.createData()
    independent = [name for name, m in zip(model.joint_names, model.tree.mimics, strict=True) if m is None]
    q, _, _ = _states(model)
    for one in q:
        theirs = np.zeros(tied.nq)
        for name, value in zip(independent, one, strict=True):
            theirs[tied.joints[tied.getJointId(name)].idx_q] = value
        pin.framesForwardKinematics(tied, data, theirs)
        poses = np.stack([data.oMf[tied.getFrameId(n, pin.FrameType.BODY)].homogeneous for n in model.link_names])
        assert_close(ours.fk(one), poses, 1e-12)


def test_pinocchio_and_the_sdk_agree_through_the_conversions():
    pytest.importorskip("rby1_sdk")
    from rbydyn_jax import robots
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    model = robots.rby1a()
    text = to_urdf(model)
    one, two = pin_from_urdf(text, model), Rby1Robot(text, model.joint_names, model.link_names, model.link_names[0])
    q, v, a = _states(model)
    links, base = model.link_names, model.link_names[0]
    assert_close(batch(one.fk, q), batch(lambda q: two.fk(q, base, links), q), 1e-12)
    assert_close(batch(one.crba, q), batch(two.crba, q), 1e-12)
    assert_close(batch(one.rnea, q, v, a), batch(two.rnea, q, v, a), 1e-12)
    assert_close(batch(one.gravity, q), batch(two.gravity, q), 1e-12)
    for frame, sdk in (("local", two.body_jacobian), ("world", two.space_jacobian)):
        got = batch(lambda q, f=frame: one.jacobian(q, "ee_right", f), q)
        assert_close(got, batch(lambda q, f=sdk: f(q, base, "ee_right"), q), 1e-12)


def test_refused_joints_are_named():
    with pytest.raises(ValueError, match="planar"):
        mujoco_model(random_tree(1, ("planar", "revolute"), 2))


@pytest.mark.ci
@pytest.mark.parametrize("mass", [0.0, 1.5])
def test_mujoco_takes_a_body_between_joints_without_inertia(mass):
    """MuJoCo itself refuses it, though the robot's mass matrix is regular."""
    model = random_tree(1, ("revolute", "prismatic"), 5)
    body = next(parent for parent in model.tree.parents if parent >= 0)
    link = model.tree.link_bodies.index(body)
    model = with_inertias(model, {link: jnp.zeros(10).at[0].set(mass)})
    q, v, a = map(jnp.asarray, _states(model, 5))
    twin = mujoco_model(model)
    assert_close(jax.vmap(crba, (None, 0))(model, q), batch(twin.crba, q))
    assert_close(jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a), batch(twin.rnea, q, v, a))


@pytest.mark.ci
def test_pinocchio_keeps_an_inertia_with_a_blank_in_a_number():
    """Its reader would drop the whole inertia with no error: of the vendor's leader arm, that of one link."""
    model = random_tree(0, ("revolute",), 3)
    text = to_urdf(model)
    blank = re.sub(r'ixy="([^"]*)"', r'ixy="\1 "', text)
    assert blank != text
    twin, note = pin_twin(model, blank.encode())
    assert "blanks" in note and pin_twin(model, text.encode())[1] == ""
    q = np.asarray(random_configuration(model, jax.random.key(0)))
    assert_close(np.asarray(crba(model, jnp.asarray(q))), twin.crba(q))
