"""Every class of damage in a URDF file: the element is named, the line is right, and nothing is accepted in silence."""

# ruff: noqa: E501 (tables of damage, one case a line)
from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax._errors import ModelError
from rbydyn_jax.io.urdf import read_urdf
from rbydyn_jax.shapes.capsule import Capsule

from .crane import CRANE, load, refusal, spoil

HOOK = 'mass value="1"'
HOOK_INERTIA = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/>'
HOOK_INERTIAL = '<inertial><origin xyz="0 0 -0.1"/><mass value="1"/>' + HOOK_INERTIA + "</inertial>"
HOIST_LIMIT = '<limit lower="-0.8" upper="0" effort="50" velocity="0.5"/>'
SPHERE = '<sphere radius="0.05"/>'
HOIST_TAIL = HOIST_LIMIT + "\n"
LINE_HOOK, LINE_SLEW, LINE_HOIST = 9, 13, 17


def mass(text):
    return [(HOOK, f'mass value="{text}"')]


def limit(text):
    return [(HOIST_LIMIT, text)]


def after_limit(text):
    return [(HOIST_LIMIT, HOIST_LIMIT + text)]


def shape(text):
    return [(SPHERE, text)]


# What is wrong: the changes, the element that the message must name, a phrase of it, and its line.
WRONG = {
    "no links": ([(CRANE[CRANE.index("  <link") : CRANE.index("</robot>")], "")], "robot 'crane'", "has no links", 0),
    "link twice": ([('"mast"', '"boom"')], "link 'boom'", "defined twice (first in line 3)", 6),
    "joint twice": ([('"slew"', '"hoist"')], "joint 'hoist'", "defined twice", 17),
    "unknown child": ([('child link="hook"', 'child link="hok"')], "joint 'hoist'", "'hok' is not defined; did you mean 'hook'?", 17),
    "no parent": ([('<parent link="boom"/>', "")], "joint 'hoist'", "has no <parent>", 17),
    "parent without link": ([('<parent link="boom"/>', '<parent lnk="boom"/>')], "joint 'hoist'", "<parent> has no link attribute", 18),
    "two roots": ([('<parent link="mast"/><child link="boom"/>', '<parent link="hook"/><child link="boom"/>'), ('<parent link="boom"/><child link="hook"/>', '<parent link="boom"/><child link="boom2"/>'), ("</robot>", '<link name="boom2"/></robot>')], "robot 'crane'", "more than one root link: 'mast', 'hook'", 0),
    "cycle, no root": ([('<parent link="mast"/>', '<parent link="hook"/>'), ('  <link name="mast">', '  <link name="loose">'), ("</robot>", '<joint name="j" type="fixed"><parent link="hook"/><child link="loose"/></joint></robot>')], "link '", "links form a cycle", 6),
    "cycle beside a root": ([("</robot>", '<link name="x"/><link name="y"/><joint name="p" type="fixed"><parent link="x"/><child link="y"/></joint><joint name="q" type="fixed"><parent link="y"/><child link="x"/></joint></robot>')], "link 'y'", "cycle 'y' -> 'x' -> 'y', not reachable from the root 'mast'", 21),
    "joint to itself": ([('<parent link="boom"/>', '<parent link="hook"/>')], "link 'hook'", "cycle 'hook' -> 'hook'", 9),
    "two parents": ([("</robot>", '<joint name="extra" type="fixed"><parent link="mast"/><child link="hook"/></joint></robot>')], "link 'hook'", "two parent joints: 'hoist', 'extra'", 9),
    "unknown type": ([('type="prismatic"', 'type="slider"')], "joint 'hoist'", "unknown type 'slider'", 17),
    "type in capitals": ([('type="prismatic"', 'type="Prismatic"')], "joint 'hoist'", "did you mean 'prismatic'?", 17),
    "spherical": ([('type="prismatic"', 'type="spherical"')], "joint 'hoist'", "unknown type 'spherical'", 17),
    "no type": ([(' type="prismatic"', "")], "joint 'hoist'", "has no type", 17),
    "joint without name": ([('name="hoist" ', "")], "parent 'boom', child 'hook'", "has no name", 17),
    "link without name": ([('<link name="hook"', "<link")], "link", "has no name", 9),
    "empty name": ([('"hook"', '""')], "link", "empty name", 9),
    "two limits": (limit(HOIST_LIMIT * 2), "joint 'hoist'", "<limit> given 2 times", 17),
    "two inertials": ([(HOOK_INERTIAL, HOOK_INERTIAL * 2)], "link 'hook'", "<inertial> given 2 times", 9),
    "mass nan": (mass("nan"), "link 'hook'", "mass is nan", 10),
    "mass NaN with sign": (mass("-NaN"), "link 'hook'", "mass is -NaN", 10),
    "mass inf": (mass("inf"), "link 'hook'", "mass is inf", 10),
    "mass overflows": (mass("1e400"), "link 'hook'", "overflows", 10),
    "decimal comma": (mass("1,5"), "link 'hook'", "mass '1,5' is not a number (decimal comma?)", 10),
    "unit": (mass("1.5kg"), "link 'hook'", "mass '1.5kg' is not a number", 10),
    "hex": (mass("0x10"), "link 'hook'", "mass '0x10' is not a decimal number", 10),
    "underscore": (mass("1_5"), "link 'hook'", "mass '1_5' is not a number", 10),
    "other digits": (mass("\u0661"), "link 'hook'", "ASCII", 10),
    "two numbers": (mass("1 2"), "link 'hook'", "has 2 numbers", 10),
    "empty number": (mass(""), "link 'hook'", "is empty", 10),
    "xacro": (mass("${m}"), "link 'hook'", "unexpanded xacro expression ${m}; run xacro", 10),
    "xacro in a vector": ([('origin xyz="0 0 -0.1"', 'origin xyz="0 0 ${-l / 2}"')], "link 'hook'", "run xacro", 10),
    "xacro in a name": ([('"hook"', '"${p}hook"')], "link", "run xacro", 9),
    "negative mass": (mass("-1"), "link 'hook'", "mass -1 is negative", 9),
    "zero mass with inertia": (mass("0"), "link 'hook'", "zero mass but non-zero inertia", 9),
    "no mass": ([('<mass value="1"/>', "")], "link 'hook'", "<inertial> has no <mass>", 10),
    "mass without value": ([('mass value="1"', 'mass val="1"')], "link 'hook'", "<mass> has no value", 10),
    "no inertia": ([(HOOK_INERTIA, "")], "link 'hook'", "<inertial> has no <inertia>", 10),
    "inertia lacks one": ([(HOOK_INERTIA, HOOK_INERTIA.replace('iyz="0" ', ""))], "link 'hook'", "<inertia> lacks iyz", 10),
    "negative moment": ([(HOOK_INERTIA, HOOK_INERTIA.replace('"0.01"', '"-0.01"'))], "link 'hook'", "not positive definite", 9),
    "small negative moment": ([(HOOK_INERTIA, HOOK_INERTIA.replace('"0.02"', '"-0.0001"'))], "link 'hook'", "not positive definite", 9),
    "product of inertia too large": ([(HOOK_INERTIA, HOOK_INERTIA.replace('ixy="0"', 'ixy="0.5"'))], "link 'hook'", "not positive definite", 9),
    "two coordinates": ([('xyz="0.6 0 0"', 'xyz="0.6 0"')], "joint 'hoist'", "origin xyz needs 3 numbers, got 2", 18),
    "coordinate nan": ([('xyz="0.6 0 0"', 'xyz="0.6 nan 0"')], "joint 'hoist'", "origin xyz is nan", 18),
    "coordinate inf": ([('xyz="0.6 0 0"', 'xyz="0.6 inf 0"')], "joint 'hoist'", "origin xyz is inf", 18),
    "commas": ([('xyz="0.6 0 0"', 'xyz="0.6,0,0"')], "joint 'hoist'", "uses commas", 18),
    "zero axis": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0 0 0"/><limit lower="-0.8"')], "joint 'hoist'", "axis has zero length", 19),
    "tiny axis": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0 0 1e-200"/><limit lower="-0.8"')], "joint 'hoist'", "length 1e-200", 19),
    "axis nan": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0 0 nan"/><limit lower="-0.8"')], "joint 'hoist'", "axis is nan", 19),
    "axis without xyz": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis/><limit lower="-0.8"')], "joint 'hoist'", "<axis> has no xyz", 19),
    "limit nan": (limit(HOIST_LIMIT.replace("-0.8", "nan")), "joint 'hoist'", "limit lower is nan", 19),
    "limit text": (limit(HOIST_LIMIT.replace("-0.8", "-90deg")), "joint 'hoist'", "limit lower '-90deg' is not a number", 19),
    "inverted limits": (limit(HOIST_LIMIT.replace("-0.8", "0.8")), "joint 'hoist'", "limit lower 0.8 > upper 0", 17),
    "negative velocity": (limit(HOIST_LIMIT.replace("0.5", "-0.5")), "joint 'hoist'", "velocity limit -0.5 is negative", 17),
    "negative effort": (limit(HOIST_LIMIT.replace("50", "-50")), "joint 'hoist'", "effort limit -50 is negative", 17),
    "unknown mimic": (after_limit('<mimic joint="sleww"/>'), "joint 'hoist'", "unknown joint 'sleww'; did you mean 'slew'?", 17),
    "mimic of itself": (after_limit('<mimic joint="hoist"/>'), "joint 'hoist'", "mimic cycle hoist -> hoist", 17),
    "mimic without joint": (after_limit("<mimic/>"), "joint 'hoist'", "<mimic> has no joint attribute", 19),
    "mimic nan": (after_limit('<mimic joint="slew" multiplier="nan"/>'), "joint 'hoist'", "mimic multiplier is nan", 19),
    "mimic of a welded joint": ([*after_limit('<mimic joint="slew"/>'), ('type="revolute"', 'type="fixed"')], "joint 'hoist'", "cannot mimic the fixed joint 'slew'", 17),
    "friction nan": (after_limit('<dynamics friction="nan"/>'), "joint 'hoist'", "friction is nan", 19),
    "negative damping": (after_limit('<dynamics damping="-1"/>'), "joint 'hoist'", "damping -1 must be", 17),
    "mesh without file": (shape("<mesh/>"), "link 'hook'", "mesh has no filename", 11),
    "sphere without radius": (shape("<sphere/>"), "link 'hook'", "<sphere> has no radius", 11),
    "negative radius": (shape('<sphere radius="-1"/>'), "link 'hook'", "sphere radius -1 is negative", 11),
    "cylinder nan": (shape('<cylinder radius="1" length="nan"/>'), "link 'hook'", "cylinder length is nan", 11),
    "capsule without length": (shape('<capsule radius="1"/>'), "link 'hook'", "<capsule> has no length", 11),
    "box of two sides": (shape('<box size="1 1"/>'), "link 'hook'", "box size needs 3 numbers", 11),
    "empty geometry": (shape(""), "link 'hook'", "empty <geometry>", 11),
    "two shapes": (shape(SPHERE * 2), "link 'hook'", "<geometry> has 2 shapes", 11),
    "no geometry": ([(f"<geometry>{SPHERE}</geometry>", "")], "link 'hook'", "<collision> has no <geometry>", 11),
    "bad mask": (shape('<capsule radius="1" length="1" coltype="-1"/>'), "link 'hook'", "coltype '-1'", 11),
    "bad visual": (shape(SPHERE + '</geometry></collision><visual><geometry><sphere radius="x"/></geometry></visual><collision><geometry>' + SPHERE), "link 'hook'", "sphere radius 'x'", 11),
    "mobile base without joint": ([("</robot>", '<mobile type="differential" joints="slew hoists" params="1 1"/></robot>')], "mobile base", "unknown joint 'hoists'; did you mean 'hoist'?", 21),
    "mobile base of one joint": ([("</robot>", '<mobile type="differential" joints="slew" params="1 1"/></robot>')], "mobile base", "needs 2 joints, got 1", 21),
    "mobile base without type": ([("</robot>", '<mobile joints="slew" params="1"/></robot>')], "mobile base", "<mobile> has no type", 21),
    "two orientations": ([('rpy="0 0 0"', 'rpy="0 0 0" quat_xyzw="0 0 0 1"')], "joint 'slew'", "both rpy and quat_xyzw", 14),
}  # fmt: skip

# What is doubtful: the changes, the element, and a phrase. It loads, and the report says so.
DOUBTFUL = {
    "no robot name": ([(' name="crane"', "")], "robot", "has no name"),
    "name with spaces": ([('"hoist"', '" ho ist"')], "joint ' ho ist'", "white space"),
    "stray text": ([("</robot>", "text</robot>")], "robot 'crane'", "stray text 'text'"),
    "unknown tag": ([("<inertial><origin xyz", "<inertal/><inertial><origin xyz")], "link", "unknown tag <inertal> is ignored; did you mean 'inertial'?"),
    "unknown attributes": ([('<joint name="hoist"', '<joint name="hoist" ' + " ".join(f'a{i}="1"' for i in range(2000)))], "joint 'hoist'", "a0, a1, a2 and 1997 more"),
    "misspelt attribute": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0 0 1"/><limit lowr="-0.8"')], "joint 'hoist'", "did you mean 'lower'?"),
    "xacro element": ([("</robot>", '<xacro:include filename="a"/></robot>')], "robot 'crane'", "unexpanded xacro element <xacro:include>"),
    "unknown shape": (shape('<torus radius="1"/>'), "link 'hook'", "unknown geometry <torus>"),
    "no limit": (limit(""), "joint 'hoist'", "has no <limit>"),
    "limit without effort": (limit('<limit lower="-1" upper="1"/>'), "joint 'hoist'", "limit lacks effort, velocity"),
    "equal limits": (limit(HOIST_LIMIT.replace("-0.8", "0")), "joint 'hoist'", "lower equals upper"),
    "zero limits": (limit('<limit lower="-1" upper="1" effort="0" velocity="0"/>'), "joint 'hoist'", "zero effort and velocity limit"),
    "no inertial": ([(HOOK_INERTIAL, "")], "link 'hook'", "mass matrix is singular"),
    "zero inertial": ([*mass("0"), (HOOK_INERTIA, '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>')], "link 'hook'", "mass matrix is singular"),
    "point mass": ([(HOOK_INERTIA, '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>')], "link 'hook'", "point mass"),
    "no body has such inertia": ([(HOOK_INERTIA, HOOK_INERTIA.replace('izz="0.01"', 'izz="0.1"'))], "link 'hook'", "triangle inequality"),
    "long axis": ([('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0 0 2"/><limit lower="-0.8"')], "joint 'hoist'", "axis of length 2"),
    "mimic that lacks its prefix": ([("slew", "L_slew"), ("hoist", "L_hoist"), *after_limit('<mimic joint="slew"/>')], "joint 'L_hoist'", "taken as 'L_slew'"),
    "wheels of another kind": ([("</robot>", '<mobile type="legs" joints="slew hoist" params="1"/></robot>')], "mobile base", "unknown type 'legs'"),
}  # fmt: skip

LEGAL = {
    "as it is": [],
    "other order": [(CRANE[CRANE.index("  <joint") : CRANE.index("</robot>")], ""), ("  <link name=\"mast\">", CRANE[CRANE.index("  <joint") : CRANE.index("</robot>")] + "  <link name=\"mast\">")],
    "other namespaces": [("</robot>", "<gz:x a='1'/></robot>"), ('name="crane"', 'name="crane" xmlns:gz="http://gz"')],
    "other sections": [("</robot>", '<gazebo reference="hook"/><transmission name="t"/></robot>')],
    "sign and blanks": mass(" +1. "),
    "tabs and line ends": [('xyz="0.6 0 0"', 'xyz="\t0.6\n0   0 "')],
    "rotation only": [('xyz="0.6 0 0"', 'rpy="0 0 1"')],
    "no axis": [('<axis xyz="0 0 1"/><limit lower="-0.8"', '<limit lower="-0.8"')],
    "rounded axis": [('<axis xyz="0 0 1"/><limit lower="-0.8"', '<axis xyz="0.577 0.577 0.577"/><limit lower="-0.8"')],
    "upper limit only": limit('<limit upper="1" effort="10" velocity="2"/>'),
    "missing mesh": shape('<mesh filename="package://nowhere/a.stl"/>'),
    "mesh on the net": shape('<mesh filename="http://127.0.0.1:1/a.stl" scale="1 1 1"/>'),
    "capsule": shape('<capsule radius="0.05" length="0.3" coltype="0x10" colaffinity="3"/>'),
    "undefined material": shape(SPHERE + '</geometry></collision><visual><geometry><box size="1 1 1"/></geometry><material name="m"/></visual><collision><geometry>' + SPHERE),
    "continuous with half a limit": [('type="prismatic"', 'type="continuous"'), *limit('<limit velocity="1"/>')],
    "infinite limits": limit('<limit lower="-inf" upper="inf" effort="inf" velocity="+Infinity"/>'),
    "floating": [('type="prismatic"', 'type="floating"'), *limit("")],
    "link named universe": [('"mast"', '"universe"')],
    "massless root": [(CRANE[CRANE.index("    <inertial>") : CRANE.index("  </link>")], "")],
    "mimic": after_limit('<mimic joint="slew" multiplier="-2" offset="0.1"/>'),
    "dynamics": after_limit('<dynamics damping="1" friction="2" armature="3"/>'),
}  # fmt: skip


@pytest.mark.parametrize("damage", WRONG)
def test_wrong_files_are_refused_with_element_and_line(damage):
    changes, element, phrase, line = WRONG[damage]
    error = refusal(spoil(*changes))
    found = [f for f in error.findings if f.level == "error" and phrase in f.message]
    assert found, str(error)
    assert element in str(found[0])
    assert found[0].line == line
    assert "nan" not in phrase or "nan" in str(error).lower()


@pytest.mark.parametrize("doubt", DOUBTFUL)
def test_doubtful_files_load_with_a_warning(doubt):
    changes, element, phrase = DOUBTFUL[doubt]
    robot, report = load(spoil(*changes))
    found = [f for f in report if f.level == "warning" and phrase in f.message]
    assert found, [str(f) for f in report]
    assert element in str(found[0])
    assert found[0].line > 0
    assert len(robot.joint_names) == 2


@pytest.mark.parametrize("case", LEGAL)
def test_legal_files_load_without_a_warning(case):
    robot, report = load(spoil(*LEGAL[case]))
    assert [f for f in report if f.level != "note"] == []
    assert len(robot.joint_names) == 2
    assert robot.link_names[-1] == "hook"


def test_all_findings_are_collected_and_sorted_by_line():
    error = refusal(spoil(*mass("heavy"), ('xyz="0.6 0 0"', 'xyz="0.6 0"'), ("</robot>", "text</robot>")))
    assert [f.level for f in error.findings] == ["warning", "error", "error"]
    assert [f.line for f in error.findings] == [2, 10, 18]
    assert str(error).splitlines()[1] == "crane.urdf:10: error: link 'hook': mass 'heavy' is not a number"
    assert (error.source, error.line, error.element) == ("crane.urdf", 10, "link 'hook'")


def test_strict_turns_warnings_into_errors():
    _, findings = read_urdf(spoil((' name="crane"', "")), "crane.urdf")
    assert findings.report()[0].level == "warning"
    with pytest.raises(ModelError, match="error: robot: has no name"):
        findings.report(strict=True)


def test_values_are_read_as_written():
    dynamics = '<dynamics damping="1.5" friction="2.5" armature="3.5"/>'
    text = spoil(
        (HOIST_LIMIT, HOIST_LIMIT.replace("/>", ' acceleration="7"/>') + dynamics),
        (SPHERE, '<capsule length="0.4" radius="0.1" coltype="0x10" colaffinity="3"/>'),
    )
    robot, _ = load(text)
    limits = [robot.lower, robot.upper, robot.effort, robot.velocity, robot.acceleration]
    assert [x[1] for x in limits] == [-0.8, 0.0, 50.0, 0.5, 7.0]
    assert robot.acceleration[0] == np.inf
    assert (robot.damping[1], robot.friction[1], robot.armature[1]) == (1.5, 2.5, 3.5)
    (capsule,) = [x for x in robot.shapes.values() if isinstance(x, Capsule)]
    np.testing.assert_array_equal(capsule.segment, [[[0, 0, 0.2], [0, 0, -0.2]]])
    assert (robot.shape_coltypes, robot.shape_colaffinities, robot.shape_links) == ((16,), (3,), (2,))


def test_in_model_type_goes_before_type():
    robot, report = load(spoil(('type="prismatic"', 'type="prismatic" in_model_type="fixed"')))
    assert robot.joint_names == ("slew",)
    assert report == ()


def test_quaternion_origin_is_the_same_as_rpy():
    half = float(np.sqrt(0.5))
    by_quaternion, _ = load(spoil(('rpy="0 0 0"', f'quat_xyzw="0 0 {half!r} {half!r}"')))
    by_rpy, _ = load(spoil(('rpy="0 0 0"', f'rpy="0 0 {np.pi / 2!r}"')))
    np.testing.assert_array_equal(by_quaternion.joint_placements, by_rpy.joint_placements)


@pytest.mark.parametrize("largest", ["1.7976931348623157e308", "1e+16"])  # of a double, and the default of SDFormat
def test_largest_number_means_no_limit(largest):
    robot, _ = load(spoil(*limit(f'<limit lower="-{largest}" upper="0" effort="{largest}" velocity="1"/>')))
    assert (robot.lower[1], robot.upper[1], robot.effort[1]) == (-np.inf, 0.0, np.inf)


def test_what_is_not_used_is_noted_with_its_number():
    tail = '<gazebo/><gazebo reference="hook"/></robot>'
    safety = HOIST_LIMIT + '<safety_controller k_velocity="1"/>'
    mesh = SPHERE + '</geometry></collision><collision><geometry><mesh filename="a.stl"/>'
    _, report = load(spoil(("</robot>", tail), (HOIST_LIMIT, safety), (SPHERE, mesh)))
    assert [str(finding) for finding in report] == [
        "crane.urdf:2: note: robot 'crane': 2 <gazebo>, 1 <safety_controller> not used",
        "crane.urdf:2: note: robot 'crane': 1 mesh among the collision shapes not used; used are: capsule, sphere, cylinder, box, convex_hull",
    ]
