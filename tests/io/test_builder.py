"""The builder, and what `build_model` says of robots written in Python."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    ModelError,
    NameNotFoundError,
    ParseError,
    ShapeError,
    crba,
    random_configuration,
    robots,
)
from rbydyn_jax.io import RobotBuilder, build_model, load_urdf, load_urdf_string
from rbydyn_jax.io.description import Mimic
from rbydyn_jax.shapes import BoxGeometry, CapsuleGeometry, SphereGeometry
from tests.helpers import assert_close, untyped

from .crane import CRANE, spoil


def test_inertia_in_its_four_forms():
    b = RobotBuilder().link("a", 1.0, inertia=2.0).link("b", 1.0, inertia=(1, 2, 3))
    b.link("c", 1.0, inertia=(1, 2, 3, 4, 5, 6)).link("d", 1.0, inertia=np.diag([4.0, 5, 6])).link("e")
    moments = {link.name: link.inertial and link.inertial.inertia for link in b._links.values()}
    np.testing.assert_array_equal(moments["a"], np.diag([2.0, 2, 2]))
    np.testing.assert_array_equal(moments["b"], np.diag([1.0, 2, 3]))
    np.testing.assert_array_equal(moments["c"], [[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    np.testing.assert_array_equal(moments["d"], np.diag([4.0, 5, 6]))
    assert moments["e"] is None
    with pytest.raises(ModelError, match=r"link 'f': inertia has shape \(2,\)"):
        b.link("f", 1.0, inertia=(1, 2))


def test_joints_of_every_kind_have_their_coordinates():
    sizes = {"revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "spherical": 4, "floating": 7, "fixed": 0}
    sizes |= {"sin_cos_revolute": 2, "mrp_floating": 6}
    for kind, nq in sizes.items():
        b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1)
        assert build_model(getattr(b, kind)("j", "a", "b").build_description()).nq == nq


def test_axis_is_normalised():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("j", "a", "b", axis=(0, 3, 4))
    np.testing.assert_allclose(b.build_description().joints[0].axis, [0, 0.6, 0.8], rtol=1e-15)
    with pytest.raises(ModelError, match="joint 'k': axis"):
        b.revolute("k", "a", "b", axis=(0, 0, 0))


def test_capsules_and_spheres():
    b = RobotBuilder().link("a").capsule("a", 0.2, 0.1, coltype=3, colaffinity=4).capsule("a", 0, 0.3)
    capsule, sphere = b.build_description().links[0].collisions
    assert isinstance(capsule.geometry, CapsuleGeometry)
    assert isinstance(sphere.geometry, SphereGeometry)
    assert (capsule.coltype, capsule.colaffinity, sphere.geometry.radius) == (3, 4, 0.3)
    with pytest.raises(ModelError, match="unknown link 'arm'"):
        b.capsule("arm", 1, 1)


def test_mistakes_are_named():
    b = RobotBuilder("r").link("a").link("b", 1.0)
    with pytest.raises(ModelError, match="link 'a' is added twice"):
        b.link("a")
    b.revolute("j", "a", "c", lower=2, upper=1).link("d", 1.0, inertia=-1.0)
    with pytest.raises(ModelError) as error:
        b.build_description()
    text = str(error.value)
    assert not isinstance(error.value, ParseError)
    for phrase in (
        "child link 'c' is not defined",
        "limit lower 2 > upper 1",
        "link 'd': inertia is not positive definite",
    ):
        assert phrase in text


def test_unknown_limit_is_a_type_error():
    with pytest.raises(TypeError, match="joint 'j': no option 'lowr'; did you mean 'lower'"):
        RobotBuilder().link("a").link("b").revolute("j", "a", "b", lowr=1)


BAD_OPTIONS = {
    "xyz of two": (ShapeError, {"xyz": (0, 0)}, r"xyz must have shape \(3,\), got \(2,\)"),
    "rpy of four": (ShapeError, {"rpy": (0, 0, 0, 0)}, r"rpy must have shape \(3,\)"),
    "axis of two": (ShapeError, {"axis": (0, 1)}, r"axis must have shape \(3,\)"),
    "axis by name": (DtypeError, {"axis": "z"}, "axis must be numbers, got 'z'"),
    "limit in words": (DtypeError, {"upper": "two"}, "upper must be a number, got 'two'"),
    "mimic by name": (DtypeError, {"mimic": "k"}, "mimic must be a Mimic"),
    "unlike any": (DtypeError, {"zzz": 1}, "no option 'zzz'; there are xyz, rpy, axis, mimic, lower"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_options_of_the_wrong_form_are_named(case):
    error, options, phrase = BAD_OPTIONS[case]
    with pytest.raises(error, match=f"joint 'j': {phrase}"):
        RobotBuilder().link("a").link("b").revolute("j", "a", "b", **options)


def test_links_and_capsules_of_the_wrong_form_are_named():
    b = RobotBuilder()
    with pytest.raises(DtypeError, match="link 'a': mass must be a number, got 'heavy'"):
        b.link("a", "heavy")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="link 'a': com"):
        b.link("a", 1.0, com=(0, 0))
    with pytest.raises(DtypeError, match="link 'a': inertia"):
        b.link("a", 1.0, inertia="big")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="capsule of link 'b': xyz"):
        b.link("b").capsule("b", 0.1, 0.1, xyz=(0, 0))


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        (BoxGeometry(0.1), "box has the size 0.1, expected three numbers"),  # pyright: ignore[reportArgumentType]
        (BoxGeometry(np.ones(2)), "box has the size .*, expected three numbers"),
        (SphereGeometry("a"), "sphere has the radius 'a', expected a number"),  # pyright: ignore[reportArgumentType]
        (SphereGeometry(None), "sizes .nan., expected finite numbers"),  # pyright: ignore[reportArgumentType]
        (CapsuleGeometry(np.ones(2), 0.1), "capsule has the length"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_sizes_of_shapes_of_the_wrong_form_are_named(shape, match):
    builder = RobotBuilder().link("w").link("body", 1.0, inertia=0.1).revolute("j", "w", "body", lower=-1, upper=1)
    with pytest.raises(ModelError, match=match):
        build_model(builder.collision("body", shape))


def test_a_builder_is_built_as_its_description():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("j", "a", "b")
    assert build_model(b).tree == build_model(b.build_description()).tree
    for wrong in ("robot.urdf", None):
        with pytest.raises(DtypeError, match=r"RobotDescription or a RobotBuilder.*load_urdf"):
            build_model(wrong)  # type: ignore[arg-type]


WRONG_GRAVITY = {
    "a number": (9.81, ShapeError, r"shape \(3,\), got \(\)"),
    "two numbers": ((0.0, -9.81), ShapeError, r"got \(2,\)"),
    "words": ("down", DtypeError, "3 real numbers"),
    "nan": ((0.0, 0.0, np.nan), ArgumentError, "finite"),
    "infinite": ([0.0, 0.0, -np.inf], ArgumentError, "finite"),
}


@pytest.mark.parametrize("case", WRONG_GRAVITY)
def test_gravity_is_checked(case):
    gravity, error, phrase = WRONG_GRAVITY[case]
    with pytest.raises(error, match=f"gravity must .*{phrase}"):
        robots.pendulum(gravity=gravity)


def test_gravity_may_be_any_sequence():
    for gravity in ((0, 0, -2), [0, 0, -2], np.array([0, 0, -2.0]), jnp.array([0, 0, -2.0])):
        assert robots.pendulum(gravity=gravity).gravity.tolist() == [0.0, 0.0, -2.0]


@pytest.mark.parametrize("dtype", [jnp.int32, bool, complex, "words"])
def test_numbers_are_floating(dtype):
    with pytest.raises(DtypeError, match="dtype must be a floating-point type"):
        robots.pendulum(dtype=dtype)


def follower(**options):
    """A joint at -2 q + 0.5 of one with limits [-1, 2], speed 3 and acceleration 4."""
    b = RobotBuilder("two").link("a").link("b", 1.0, inertia=0.1).link("c", 1.0, inertia=0.1)
    b.revolute("lead", "a", "b", lower=-1, upper=2, velocity=3, acceleration=4, effort=5)
    b.revolute("follow", "b", "c", mimic=Mimic("lead", -2.0, 0.5), **options)
    return [str(finding) for finding in build_model(b).report]


UNUSED = {
    "effort": ({"effort": 1.0}, "effort limit is"),
    "velocity": ({"velocity": 5.9}, "velocity limit is"),
    "acceleration": ({"acceleration": 7.9}, "acceleration limit is"),
    "lower": ({"lower": -3.4, "upper": 2.5}, "position limits are"),
    "upper": ({"lower": -3.5, "upper": 2.4}, "position limits are"),
    "losses": ({"damping": 1.0, "friction": 1.0, "armature": 0.1}, "armature, damping, friction are"),
}


@pytest.mark.parametrize("case", UNUSED)
def test_what_a_follower_declares_in_vain_is_noted(case):
    options, phrase = UNUSED[case]
    want = f"note: joint 'follow': follows joint 'lead': its own {phrase} not used"
    assert follower(**options) == [want]


def test_what_a_follower_keeps_anyway_is_not_noted():
    assert follower() == []
    assert follower(lower=-3.5, upper=2.5, velocity=6.0, acceleration=8.0) == []


def test_the_note_on_a_follower_has_its_line():
    text = """<robot name="r">
  <link name="a"/> <link name="b"/> <link name="c"/>
  <joint name="lead" type="continuous"><parent link="a"/><child link="b"/></joint>
  <joint name="follow" type="continuous"><parent link="b"/><child link="c"/>
    <dynamics damping="2"/><mimic joint="lead" multiplier="0"/></joint>
</robot>"""
    (note,) = [f for f in load_urdf_string(text).report if "follows" in f.message]
    assert (note.line, note.element, note.level) == (4, "joint 'follow'", "note")


def test_paths_and_texts_are_told_apart(tmp_path):
    for wrong in (None, 3, b"robot.urdf"):
        with pytest.raises(DtypeError, match="path must be a str or a Path"):
            load_urdf(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParseError, match="NUL character"):
        load_urdf("robot\0.urdf")
    with pytest.raises(ParseError, match="XML text and no path; use load_urdf_string") as error:
        load_urdf(CRANE)
    assert len(str(error.value)) < 100
    with pytest.raises(DtypeError, match="use load_urdf for a file"):
        load_urdf_string(tmp_path)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="str or bytes, got NoneType"):
        load_urdf_string(None)  # type: ignore[arg-type]


def test_a_body_that_no_matter_has_is_refused():
    b = RobotBuilder().link("a").link("b", 0.0, inertia=1.0).revolute("j", "a", "b")
    with pytest.raises(ModelError, match="link 'b': moves with zero mass but non-zero inertia"):
        build_model(b.build_description())


def test_report_and_strictness():
    b = RobotBuilder().link("a").link("b").revolute("j", "a", "b", lower=-1, upper=1)
    model = build_model(b.build_description())
    assert ["mass matrix is singular" in finding.message for finding in model.report] == [True]
    with pytest.raises(ModelError, match="singular"):
        build_model(b.build_description(), strict=True)


def test_gravity_and_options_reach_the_model():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("j", "a", "b")
    model = build_model(b.build_description(), gravity=(0, 0, -1.62), floating_base=True)
    np.testing.assert_allclose(model.gravity, [0, 0, -1.62], rtol=1e-6)
    assert model.joint_names == ("floating_base", "j")
    assert untyped(build_model)(b.build_description(), dtype=np.float32).inertias.dtype == np.float32


def test_loading_text_and_files(tmp_path):
    path = tmp_path / "crane.urdf"
    path.write_text(CRANE)
    assert load_urdf(path).tree == load_urdf_string(CRANE).tree == load_urdf(str(path)).tree
    assert load_urdf_string(CRANE.encode("utf-16"), base_link="boom").joint_names == ("hoist",)
    path.write_text(spoil(('mass value="1"', 'mass value="x"'), (' name="crane"', "")))
    with pytest.raises(ParseError) as error:
        load_urdf(path)
    assert str(error.value).splitlines()[1].startswith(f"{path}:10: error: link 'hook': mass 'x'")
    with pytest.raises(ParseError, match="error: robot: has no name"):
        load_urdf_string(spoil((' name="crane"', "")), strict=True)
    with pytest.raises(NameNotFoundError, match="did you mean 'boom'"):
        load_urdf_string(CRANE, base_link="bom")
    with pytest.raises(ParseError, match="no such file"):
        load_urdf(tmp_path / "none.urdf")
    assert load_urdf_string(spoil((' name="crane"', ""))).report[0].line == 2


def test_two_loads_are_one_tree():
    assert hash(load_urdf_string(CRANE).tree) == hash(load_urdf_string(CRANE).tree)


def test_two_roots_can_be_chosen_from():
    text = spoil(("</robot>", '<link name="spare"/></robot>'))
    with pytest.raises(ParseError, match="pick one with base_link="):
        load_urdf_string(text)
    model = load_urdf_string(text, base_link="mast")
    assert model.link_names == ("mast", "boom", "hook")
    assert "more than one root" in model.report[0].message


def test_a_universal_joint_is_two_hinges_in_one_point():
    b = RobotBuilder().link("a").link("b", 2.0, (0, 0, -0.5), 0.02)
    b.universal("gimbal", "a", "b", axes=((0, 0, 2), (0, 1, 0)), xyz=(0, 0, 1), damping=0.1)
    model = build_model(b)
    assert model.joint_names == ("gimbal_1", "gimbal_2")
    assert model.damping.tolist() == [0.1, 0.1]
    (c, c2), (s, s2) = np.cos([0.4, 0.9]), np.sin([0.4, 0.9])
    T = np.eye(4)
    T[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array([[c2, 0, s2], [0, 1, 0], [-s2, 0, c2]])
    T[2, 3] = 1.0
    assert_close(rb.link_pose(model, jnp.array([0.4, 0.9]), "b"), T)


@pytest.mark.ci
@pytest.mark.parametrize("joint", ["continuous", "floating"])
@pytest.mark.parametrize("floating_base", [True, False])
def test_a_massless_base_that_moves_in_more_ways_than_what_it_carries(joint, floating_base):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    ends = '<parent link="w"/><child link="b"/><axis xyz="0 0 1"/>'
    links = f'<link name="w"/><link name="b">{inertial}</link><joint name="f" type="{joint}">{ends}</joint>'
    model = load_urdf_string(f'<robot name="r">{links}</robot>', floating_base=floating_base)
    M = np.asarray(crba(model, random_configuration(model, jax.random.key(1))))
    assert bool(np.linalg.matrix_rank(M) < model.nv) is floating_base
    assert ["mass matrix is singular" in finding.message for finding in model.report] == [True] * floating_base
