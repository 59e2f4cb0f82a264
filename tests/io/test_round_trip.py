"""Model -> URDF -> Model: the same tree, the same numbers, the same dynamics; and pinocchio reads what is written."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax import ArgumentError, ModelError, fk, random_configuration, rnea, robots, with_limits
from rbydyn_jax.io import RobotBuilder, build_model, load_urdf, load_urdf_string, save_urdf, to_urdf
from rbydyn_jax.io.description import Mimic
from rbydyn_jax.io.save import describe
from tests.helpers import RBY1_DIRECTORY, X64, assert_close, example_robot_directory, oracle

from .test_weld import AWRY, tree

_LEAVES = (
    "joint_placements", "joint_axes", "link_placements", "inertias", "link_inertias",
    "position_lower", "position_upper", "velocity_limit", "acceleration_limit", "effort_limit",
    "damping", "friction", "armature", "mimic_multipliers", "mimic_offsets", "capsule_segments", "capsule_radii",
)  # fmt: skip
_FOLDER = example_robot_directory()
_SOME = ("talos_full_v2", "tiago", "alex_psyonic_hands", "go1")
EXAMPLES = [p for p in sorted(_FOLDER.rglob("*.urdf")) if p.stem in _SOME] if _FOLDER else []
_VERSIONS = ("rby1a_model_v1.0", "rby1a_model_v1.2", "rby1m_model_v1.3", "rby1ub_model", "leader_arm_model")
VENDOR = [p for p in sorted(RBY1_DIRECTORY.glob("*.urdf")) if p.stem in _VERSIONS]


def mixture(**options):
    """Every kind of joint but the spherical one, mimics, losses, limits and capsules."""
    b = tree()
    for name in ("follower", "drone"):
        b.link(name, 0.5, (0, 0.1, 0), 0.01)
    b.revolute("follow", "lens", "follower", axis=(1, 1, 0), mimic=Mimic("z_joint", -2.0, 0.3), **AWRY)
    b.floating("fly", "root", "drone", **AWRY)
    b.link("gear", 1.0, (0, 0, 0.1), 0.1)
    b.revolute("drive", "cart", "gear", axis=(0, -1, 0), acceleration=5.0, damping=0.1, friction=0.2, armature=0.3)
    b.capsule("gear", 0.3, 0.1, xyz=(0.1, 0.2, 0.3), rpy=(0.3, 2.5, -1), coltype=3, colaffinity=12)
    b.capsule("gear", 0.3, 0.1, rpy=(np.pi, 0, 0)).capsule("tool", 0.0, 0.2, xyz=(0, 0, 1))
    return build_model(
        b.mobile_base("differential", ("lens_joint", "drive"), (1.0, 0.5)).build_description(), **options
    )


def assert_same(got, want):
    assert got.tree.joint_names == want.tree.joint_names
    assert got.tree.link_names == want.tree.link_names
    for name in (
        "joint_types",
        "parents",
        "link_bodies",
        "mimics",
        "shape_kinds",
        "shape_links",
        "shape_coltypes",
        "mobile_base",
    ):
        assert getattr(got.tree, name) == getattr(want.tree, name), name
    for name in _LEAVES:
        a, b = np.asarray(getattr(got, name)), np.asarray(getattr(want, name))
        np.testing.assert_array_equal(np.isinf(a), np.isinf(b), err_msg=name)
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=name)
        assert_close(np.where(finite, a, 0.0).astype(a.dtype), np.where(finite, b, 0.0))


@pytest.mark.slow
def test_a_model_with_everything_survives_writing_and_reading():
    model = mixture()
    assert_same(load_urdf_string(to_urdf(model)), model)


def test_the_masks_of_a_sphere_are_read_without_a_warning():
    b = RobotBuilder().link("a").capsule("a", 0.0, 0.1, coltype=3, colaffinity=4)
    again = load_urdf_string(to_urdf(build_model(b.build_description())), strict=True)
    assert (again.tree.shape_coltypes, again.tree.shape_colaffinities, again.report) == ((3,), (4,), ())


@pytest.mark.slow
def test_dynamics_are_unchanged():
    model = mixture()
    again = load_urdf_string(to_urdf(model))
    q = jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(jax.random.key(0), 100))
    v, a = jax.random.normal(jax.random.key(1), (2, 100, model.nv), q.dtype)
    assert_close(jax.vmap(fk, (None, 0))(again, q), jax.vmap(fk, (None, 0))(model, q))
    assert_close(jax.vmap(rnea, (None, 0, 0, 0))(again, q, v, a), jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a))


@pytest.mark.slow
@pytest.mark.parametrize("path", VENDOR + EXAMPLES, ids=lambda path: path.stem)
def test_real_robots(path):
    model = load_urdf(path)
    text = to_urdf(model, collisions=False)
    again = load_urdf_string(to_urdf(model))
    assert_same(again, model)
    pin = oracle("pinocchio")
    theirs = pin.buildModelFromXML(text)
    assert theirs.njoints - 1 == len(model.joint_names)
    assert_close(
        np.sum([inertia.mass for inertia in theirs.inertias]),
        np.asarray(model.link_inertias[:, 0], float).sum(),
        1e-12 if X64 else 1e-6,
    )


@pytest.mark.slow
def test_floating_base_is_written_as_a_joint_from_the_world():
    model = build_model(tree().build_description(), floating_base=True)
    again = load_urdf_string(to_urdf(model))
    assert again.link_names == ("world", *model.link_names)
    assert again.joint_names == model.joint_names
    assert_close(np.asarray(again.inertias), np.asarray(model.inertias))


@pytest.mark.ci
def test_joint_order_comes_back_when_asked_for():
    order = ("a_joint", "cart_joint", "z_joint", "lens_joint")
    model = build_model(tree().build_description(), joint_order=order)
    assert_same(load_urdf_string(to_urdf(model), joint_order=model.joint_names), model)


@pytest.mark.ci
def test_fixed_joints_are_named_after_their_link():
    names = [joint.name for joint in describe(build_model(tree().build_description())).joints if joint.kind == "fixed"]
    assert names == ["camera_fixed", "flange_fixed", "tool_fixed"]
    clash = RobotBuilder().link("a").link("b", 1.0).link("c").fixed("f", "b", "c").revolute("c_fixed", "a", "b")
    written = describe(build_model(clash.build_description()))
    assert [joint.name for joint in written.joints] == ["c_fixed", "c_fixed_"]


def test_spherical_joints_cannot_be_written():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).spherical("shoulder", "a", "b")
    with pytest.raises(ModelError, match="no spherical joints, and this robot has 'shoulder'"):
        to_urdf(build_model(b.build_description()))


def test_names_are_escaped_and_files_are_written(tmp_path):
    b = RobotBuilder('r<&"').link("a&b").link("b'\"\u00fc", 1.0, inertia=0.1).continuous("j\t<", "a&b", "b'\"\u00fc")
    model = build_model(b.build_description())
    save_urdf(model, tmp_path / "r.urdf")
    again = load_urdf(tmp_path / "r.urdf")
    assert (again.name, again.link_names, again.joint_names) == (model.name, model.link_names, model.joint_names)


@pytest.mark.ci
def test_massless_links_stay_massless():
    b = RobotBuilder().link("a").link("b").link("c", 3.0, (0.1, 0.2, 0.3), 0.7)
    b.continuous("j", "a", "b").fixed("f", "b", "c", **AWRY)
    again = describe(build_model(b.build_description()))
    assert [link.inertial is None for link in again.links] == [True, True, False]


@pytest.mark.slow
def test_built_in_robots():
    for model in (robots.rby1a(), robots.rby1m(), robots.rby1ub(), robots.panda_like(), robots.two_link_arm()):
        again = load_urdf_string(to_urdf(model))
        assert_same(again, model)
        if X64:
            assert again.tree == model.tree


def test_rates_of_a_cart_are_written():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).link("c", 1.0, inertia=0.1)
    b.planar("cart", "a", "b", velocity=2.0, effort=3.0, acceleration=4.0, damping=0.5)
    b.floating("drone", "a", "c", velocity=5.0, effort=6.0)
    model = build_model(b)
    again = load_urdf_string(to_urdf(model))
    assert_same(again, model)
    assert again.velocity_limit.tolist() == [2.0] * 3 + [5.0] * 6


@pytest.mark.parametrize(("lower", "upper"), [(-0.5, 0.25), (-np.inf, 0.25), (-0.5, np.inf)])
def test_limits_given_to_a_continuous_joint_are_written(lower, upper):
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).link("c", 1.0, inertia=0.1)
    b.continuous("j", "a", "b", velocity=2.0).continuous("k", "a", "c", mimic=Mimic("j", -2.0, 0.5))
    model = build_model(b)
    assert load_urdf_string(to_urdf(model)).tree.joint_types == ("continuous", "continuous")
    limited = with_limits(model, position_lower=jnp.array([lower]), position_upper=jnp.array([upper]))
    again = load_urdf_string(to_urdf(limited), strict=True)
    assert (again.position_lower.tolist(), again.position_upper.tolist()) == ([lower], [upper])
    assert again.tree.joint_types == ("revolute", "continuous")
    assert (again.velocity_limit.tolist(), again.tree.mimics) == ([2.0], model.tree.mimics)
    pin = oracle("pinocchio").buildModelFromXML(to_urdf(limited))
    bounds = np.append(pin.lowerPositionLimit[:1], pin.upperPositionLimit[:1])
    finite = np.isfinite([lower, upper])
    assert_close(bounds[finite], np.array([lower, upper])[finite])


@pytest.mark.parametrize("leaf", ["velocity_limit", "damping", "position_upper"])
def test_numbers_of_each_coordinate_cannot_be_written(leaf):
    """URDF has one number for all coordinates of a joint, and no limits for the place of a cart."""
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).planar("cart", "a", "b", velocity=2.0)
    model = dataclasses.replace(build_model(b), **{leaf: jnp.array([1.0, 2.0, 3.0])})
    for write in (to_urdf, describe):
        with pytest.raises(ModelError, match=rf"planar joint 'cart': {leaf} is \[1.0, 2.0, 3.0\]"):
            write(model)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such directory to write into: .*nowhere"):
        save_urdf(robots.pendulum(), tmp_path / "nowhere" / "r.urdf")


@pytest.mark.ci
def test_a_cylinder_and_two_spheres_fill_the_space_of_a_capsule():
    model = robots.panda_like()
    shapes = list(ElementTree.fromstring(to_urdf(model, capsules="cylinder")).iter("collision"))
    assert len(shapes) == 3 * len(model.tree.shape_links)
    again = load_urdf_string(to_urdf(model, capsules="cylinder"))
    assert again.tree.shape_coltypes[::3] == model.tree.shape_coltypes
    assert again.tree.shape_links[::3] == model.tree.shape_links
    points = np.random.default_rng(0).uniform(-0.3, 0.3, (2000, 3))
    for k, ((a, b), radius) in enumerate(zip(np.asarray(model.capsule_segments), model.capsule_radii, strict=True)):
        along = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        want = np.linalg.norm(points - a - along[:, None] * (b - a), axis=1) - float(radius)
        filled = np.any([_inside(shape, points) for shape in shapes[3 * k : 3 * k + 3]], axis=0)
        clear = np.abs(want) > 1e-9
        assert filled.any() and (filled == (want <= 0.0))[clear].all()


def _inside(collision, points):
    """Whether points are inside of a cylinder or a sphere of a URDF file."""
    origin, (shape,) = collision.find("origin"), collision.find("geometry")
    at = {} if origin is None else origin.attrib
    xyz, rpy = (np.array(at.get(name, "0 0 0").split(), float) for name in ("xyz", "rpy"))
    x = (points - xyz) @ Rotation.from_euler("xyz", rpy).as_matrix()
    radius = float(shape.get("radius"))
    if shape.tag == "sphere":
        return np.linalg.norm(x, axis=1) <= radius
    return (np.hypot(x[:, 0], x[:, 1]) <= radius) & (np.abs(x[:, 2]) <= 0.5 * float(shape.get("length")))


def test_other_words_for_capsules_are_refused():
    with pytest.raises(ArgumentError, match="capsules must be one of 'capsule', 'cylinder', got 'mesh'"):
        to_urdf(robots.pendulum(), capsules="mesh")  # type: ignore[arg-type]
