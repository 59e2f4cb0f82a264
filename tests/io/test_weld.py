"""Welding: against pinocchio's own reading of the same text, and the rules for orders, bases and couplings."""

from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax._errors import ArgumentError, ModelError, NameNotFoundError
from rbydyn_jax.io.builder import RobotBuilder
from rbydyn_jax.io.description import JointDescription, LinkDescription, Mimic, RobotDescription
from rbydyn_jax.io.placement import compose, placement, rotation_from_rpy, rotation_from_wxyz, rpy_from_rotation
from rbydyn_jax.io.urdf_writer import write_urdf
from rbydyn_jax.io.weld import weld
from tests.helpers import assert_close, oracle

AWRY = {"xyz": (0.1, -0.2, 0.3), "rpy": (0.4, -1.1, 2.0)}


def tree() -> RobotBuilder:
    """A root with two branches, welded links below the root and below moving ones, in an order that is not by name."""
    b = RobotBuilder("tree")
    for i, name in enumerate(("root", "z", "tool", "flange", "a", "camera", "lens", "cart")):
        b.link(name, 1.0 + i, (0.1, 0.02 * i, -0.3), (0.2 + i, 0.01, -0.02, 0.3 + i, 0.03, 0.25 + i))
    b.fixed("camera_mount", "root", "camera", **AWRY)
    b.revolute("z_joint", "root", "z", axis=(1, 2, 3), lower=-1, upper=2, velocity=3, effort=4, **AWRY)
    b.fixed("flange_mount", "z", "flange", **AWRY)
    b.fixed("tool_mount", "flange", "tool", xyz=(0, 0, 1))
    b.prismatic("a_joint", "flange", "a", axis=(0, 1, 0), lower=-1, upper=1, velocity=1, effort=1, **AWRY)
    b.continuous("lens_joint", "camera", "lens", axis=(0, 0, 1))
    b.planar("cart_joint", "root", "cart", axis=(0, 0, 1))
    return b


def test_order_is_depth_first_in_document_order():
    robot = weld(tree().build_description())
    assert robot.link_names == ("root", "camera", "lens", "z", "flange", "tool", "a", "cart")
    assert robot.joint_names == ("lens_joint", "z_joint", "a_joint", "cart_joint")
    assert robot.parents == (-1, -1, 1, -1)
    assert robot.link_bodies == (-1, -1, 0, 1, 1, 1, 2, 3)
    assert robot.joint_types == ("continuous", "revolute", "prismatic", "planar")


def test_welded_bodies_equal_pinocchio():
    pin = oracle("pinocchio")
    robot = weld(tree().build_description())
    theirs = pin.buildModelFromXML(write_urdf(tree().build_description()))
    bodies = [theirs.getJointId(name) for name in robot.joint_names]
    assert_close(robot.body_inertias, np.array([theirs.inertias[i].toDynamicParameters() for i in bodies]))
    assert_close(robot.joint_placements, np.array([theirs.jointPlacements[i].homogeneous for i in bodies]))
    for name, body, at in zip(robot.link_names, robot.link_bodies, robot.link_placements, strict=True):
        frame = theirs.frames[theirs.getFrameId(name, pin.BODY)]
        assert_close(at, frame.placement.homogeneous)
        assert theirs.names[frame.parentJoint] == (robot.joint_names[body] if body >= 0 else "universe")


def test_links_keep_their_own_share():
    description = tree().build_description()
    robot = weld(description)
    first = dict(zip(robot.link_names, robot.link_inertias, strict=True))
    for link in description.links:
        assert link.inertial is not None
        m, c, about_com = link.inertial.mass, link.inertial.com, link.inertial.inertia
        at_origin = about_com + m * (c @ c * np.eye(3) - np.outer(c, c))
        assert_close(first[link.name], [m, *m * c, *at_origin[np.tril_indices(3)]])
    assert_close(robot.body_inertias[1, 0], first["z"][0] + first["flange"][0] + first["tool"][0])


def test_a_structure_without_rotation_is_exact():
    b = RobotBuilder().link("a").link("b", 1.0).link("c", 2.0, (0.1, 0, 0))
    b.revolute("j", "a", "b", xyz=(0.1, 0, 0.7)).fixed("f", "b", "c", xyz=(0.2, 0.3, 0), rpy=(np.pi / 2, 0, -np.pi))
    robot = weld(b.build_description())
    assert set(np.unique(robot.joint_placements)) == {0.0, 0.1, 0.7, 1.0}
    np.testing.assert_array_equal(robot.link_placements[2][:3, :3], [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_joint_order_permutes_everything():
    description = tree().build_description()
    plain, order = weld(description), ("a_joint", "cart_joint", "z_joint", "lens_joint")
    robot = weld(description, joint_order=order)
    index = [plain.joint_names.index(name) for name in order]
    assert robot.joint_names == order
    assert robot.parents == (2, -1, -1, -1)
    assert robot.link_bodies == (-1, -1, 3, 2, 2, 2, 0, 1)
    for field in ("joint_placements", "joint_axes", "body_inertias", "lower", "upper", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(robot, field), getattr(plain, field)[index])
    np.testing.assert_array_equal(robot.link_inertias, plain.link_inertias)


def test_joint_order_must_be_a_permutation():
    description = tree().build_description()
    with pytest.raises(NameNotFoundError, match="did you mean 'z_joint'"):
        weld(description, joint_order=("z_jont",))
    with pytest.raises(ArgumentError, match="lacks 'lens_joint', 'cart_joint'"):
        weld(description, joint_order=("z_joint", "a_joint"))
    with pytest.raises(ArgumentError, match="names 'z_joint' more than once"):
        weld(description, joint_order=("z_joint", "z_joint", "a_joint", "lens_joint", "cart_joint"))


def test_floating_base_carries_the_root():
    description = tree().build_description()
    robot = weld(description, floating_base=True)
    assert robot.joint_names[0] == "floating_base"
    assert robot.joint_types[0] == "floating"
    assert robot.link_bodies[0] == 0
    assert -1 not in robot.link_bodies
    assert robot.parents == (-1, 0, 0, 2, 0)
    assert_close(robot.body_inertias[0, 0], 1.0 + 6.0)  # the root and the camera that is welded to it
    reordered = weld(description, floating_base=True, joint_order=("a_joint", "cart_joint", "z_joint", "lens_joint"))
    assert reordered.joint_names[0] == "floating_base"
    with pytest.raises(ModelError, match="floating_base"):
        weld(
            RobotBuilder().link("a").link("b").revolute("floating_base", "a", "b").build_description(),
            floating_base=True,
        )


def test_base_link_keeps_the_subtree():
    b = tree().mobile_base("differential", ("lens_joint", "cart_joint"), (1.0, 1.0))
    robot = weld(b.build_description(), base_link="z")
    assert robot.link_names == ("z", "flange", "tool", "a")
    assert robot.joint_names == ("a_joint",)
    assert robot.mobile_base is None
    kept = weld(b.build_description()).mobile_base
    assert kept is not None and kept.joints == ("lens_joint", "cart_joint")
    with pytest.raises(NameNotFoundError, match="did you mean 'camera'"):
        weld(b.build_description(), base_link="camra")


def test_chains_of_mimics_end_at_an_independent_joint():
    b = RobotBuilder()
    for name in "abcd":
        b.link(name, 1.0)
    b.revolute("j1", "a", "b", mimic=Mimic("j2", 2.0, 0.5)).revolute("j2", "b", "c", mimic=Mimic("j3", -3.0, 0.1))
    b.revolute("j3", "c", "d")
    robot = weld(b.build_description())
    assert robot.mimic[2] is None
    assert robot.mimic[1] == (2, -3.0, 0.1)
    assert robot.mimic[0] == (2, -6.0, 0.5 + 2.0 * 0.1)
    reordered = weld(b.build_description(), joint_order=("j3", "j1", "j2"))
    assert reordered.mimic == (None, (0, -6.0, 0.7), (0, -3.0, 0.1))


def test_a_mimic_whose_source_is_left_out_is_refused():
    b = RobotBuilder()
    for name in "abc":
        b.link(name, 1.0)
    b.revolute("first", "a", "b").revolute("second", "b", "c", mimic=Mimic("first"))
    with pytest.raises(ModelError, match="'second' mimics 'first', which the base link leaves out"):
        weld(b.build_description(), base_link="b")


WRONG = {
    "cycle": ([("a", "b"), ("b", "c"), ("c", "b")], "two parent joints"),
    "loop without root": ([("a", "b"), ("b", "a")], "cycle"),
    "two roots": ([("a", "b")], "more than one root link: 'a', 'c'"),
    "unknown link": ([("a", "b"), ("b", "cc")], "'cc' is not defined"),
}


@pytest.mark.parametrize("case", WRONG)
def test_descriptions_that_are_no_tree(case):
    pairs, phrase = WRONG[case]
    links = tuple(LinkDescription(name) for name in ("a", "b", "c"))
    joints = tuple(JointDescription(f"j{i}", "revolute", p, c) for i, (p, c) in enumerate(pairs))
    with pytest.raises(ModelError, match=phrase):
        weld(RobotDescription("r", links, joints))


BAD_VALUES = {
    "axis of length 2": ({"axis": np.array([0, 0, 2.0])}, "axis has length 2"),
    "axis of two numbers": ({"axis": np.array([0, 1.0])}, "have shapes"),
    "no rotation": ({"origin": np.diag([1.0, 2.0, 1.0, 1.0])}, "no rotation"),
    "mirror": ({"origin": np.diag([1.0, -1.0, 1.0, 1.0])}, "no rotation"),
    "nan": ({"origin": np.full((4, 4), np.nan)}, "not finite"),
    "limit nan": ({"lower": np.nan}, "must not be nan"),
    "limit inverted": ({"lower": 1.0, "upper": 0.0}, "lower 1 > upper 0"),
    "infinite armature": ({"armature": np.inf}, "armature"),
    "unknown kind": ({"kind": "hinge"}, "unknown type 'hinge'"),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_descriptions_with_bad_values(case):
    changes, phrase = BAD_VALUES[case]
    joint = JointDescription(**({"name": "j", "kind": "revolute", "parent": "a", "child": "b"} | changes))
    with pytest.raises(ModelError, match=f"joint 'j': .*{phrase}"):
        weld(RobotDescription("r", (LinkDescription("a"), LinkDescription("b")), (joint,)))


def test_rpy_of_random_rotations_and_at_the_gimbal_lock():
    Rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (500, 3))
    angles[::5, 1] = np.pi / 2 * np.sign(angles[::5, 1])
    angles[1::5, 1] = np.pi / 2 + 1e-9 * angles[1::5, 0]
    for rpy in angles:
        expected = Rotation.from_euler("xyz", rpy).as_matrix()
        assert_close(rotation_from_rpy(rpy), expected)
        assert_close(rotation_from_rpy(rpy_from_rotation(expected)), expected)
        x, y, z, w = Rotation.from_euler("xyz", rpy).as_quat()
        assert_close(rotation_from_wxyz((w, x, y, z)), expected)


def test_right_angles_are_exact():
    for turns in np.ndindex(5, 5, 5):
        matrix = rotation_from_rpy(np.array(turns) * np.pi / 2)
        assert set(np.unique(np.abs(matrix))) == {0.0, 1.0}
        assert not np.signbit(matrix[matrix == 0.0]).any()
        np.testing.assert_array_equal(rotation_from_rpy(rpy_from_rotation(matrix)), matrix)


def test_compose_is_the_matrix_product():
    first = placement((1, 2, 3), rotation_from_rpy((0.1, 0.2, 0.3)))
    second = placement((4, 5, 6), rotation_from_rpy((-1, 0.5, 2)))
    assert_close(compose(first, second), first @ second)
    assert_close(compose(placement((1, 2, 3)), second), placement((1, 2, 3)) @ second)
