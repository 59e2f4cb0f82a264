"""The URDF loader of rby1.dynamics against the vendor's, and where it means to differ."""

from __future__ import annotations

import numpy as np
import pytest

import rbydyn_jax as rd
import rbydyn_jax.rby1.dynamics as rby_dyn
from tests.helpers import untyped

from .sdk import LIMITS, assert_all_same, assert_same, make_robots, make_states, sdk, urdf

INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def document(joints, links="abcd", head=""):
    bodies = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in links)
    return f'<robot name="r">{head}{bodies}{joints}</robot>'


def joint(name="j", kind='type="revolute"', parent="a", child="b", rest='<axis xyz="0 0 1"/>'):
    return f'<joint name="{name}" {kind}><parent link="{parent}"/><child link="{child}"/>{rest}</joint>'


DIALECT = {
    "raw axis": joint(rest='<axis xyz="0 2 0"/>'),
    "no axis but a tag": joint(rest="<axis/>"),
    "in_model_type": joint(kind='type="prismatic" in_model_type="fixed"'),
    "moved by in_model_type": joint(kind='type="fixed" in_model_type="revolute"'),
    "continuous with limits": joint(kind='type="continuous"', rest='<axis xyz="1 0 0"/><limit lower="-1" upper="2"/>'),
    "unknown types are fixed": joint(kind='type="floating"') + joint("k", 'type="Revolute"', "b", "c"),
    "limits": joint(rest='<axis xyz="1 0 0"/><limit velocity="3" acceleration="4" effort="5"/>'),
    "negative velocity": joint(rest='<axis xyz="1 0 0"/><limit velocity="-3"/>'),
    "largest double": joint(rest='<axis xyz="1 0 0"/><limit lower="-1.7976931348623157e308" upper="1.7e308"/>'),
    "breadth-first": joint() + joint("k", child="c") + joint("l", parent="b", child="d"),
    "last parent wins": joint() + joint("k", child="c") + joint("l", parent="c", child="b"),
    "origin": joint(rest='<axis xyz="0 0 1"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><mimic joint="j"/><dynamics/>'),
    "unreachable links": joint(parent="c", child="d"),
}


@pytest.mark.parametrize("case", DIALECT)
def test_every_form_of_a_file_is_read_as_the_sdk_reads_it(case):
    both = make_robots(document(DIALECT[case]), "a")
    names = both[1].get_link_names()
    assert set(names) == set(both[0].get_link_names()) and both[0].get_dof() == both[1].get_dof()
    states = make_states(both, names, [])
    assert states[0].joint_names == states[1].joint_names
    for robot, state in zip(both, states, strict=True):
        state.set_q(np.linspace(0.2, 0.7, robot.get_dof()))
        state.set_gravity(np.arange(6.0))
        robot.compute_forward_kinematics(state)
        for limit in LIMITS:
            theirs, mine = (getattr(r, f"get_limit_{limit}")(s) for r, s in zip(both, states, strict=True))
            np.testing.assert_array_equal(mine, theirs)
    assert_all_same(both, states, [(0, len(names) - 1), (len(names) - 1, 0)], M=False)


def test_inertia_and_capsules():
    text = """<robot><link name="a"><inertial><origin xyz="1 2 3" rpy="0.4 0.5 0.6"/><mass value="2"/>
        <inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0.2" iyz="0.3"/></inertial>
        <collision name="c"><origin xyz="0 1 0" rpy="1 0 0"/><geometry>
        <capsule length="0.5" radius="0.1" coltype="0x10" colaffinity="3"/></geometry></collision>
        <collision><geometry><box size="1 1 1"/></geometry></collision>
        <collision name="d"><geometry><capsule sp="0 0 1" ep="0 0 0" radius="0.1"/></geometry></collision>
        </link></robot>"""
    links = [library.load_robot_from_urdf_data(text, "a").base_link for library in (sdk, rby_dyn)]
    both = [x.Robot(x.RobotConfiguration("r", link)) for x, link in zip((sdk, rby_dyn), links, strict=True)]
    states = make_states((both[0], both[1]), [], [])
    totals = [robot.compute_total_inertial(state, 0) for robot, state in zip(both, states, strict=True)]
    assert_same(totals[1], totals[0], "inertia", 1e-14)
    np.testing.assert_array_equal(links[1].inertial, totals[1])
    shapes = [[(c.get_origin(), c.get_geoms()) for c in link.get_collisions()] for link in links]
    assert len(shapes[0]) == len(shapes[1]) == 2
    for (origin, (theirs,)), (pose, (mine,)) in zip(*shapes, strict=True):
        np.testing.assert_allclose(pose, origin, atol=1e-15)
        np.testing.assert_array_equal(mine.get_start_point(), theirs.get_start_point())
        np.testing.assert_array_equal(mine.get_end_point(), theirs.get_end_point())
        assert (mine.get_coltype(), mine.get_colaffinity()) == (theirs.get_coltype(), theirs.get_colaffinity())


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_mobile_base(name):
    theirs, mine = (x.load_robot_from_urdf_data(urdf(name), "base") for x in (sdk, rby_dyn))
    assert (mine.name, str(mine)) == (theirs.name, str(theirs))
    assert str(mine.mobile_base) == str(theirs.mobile_base)
    assert mine.mobile_base.joints == theirs.mobile_base.joints
    assert mine.mobile_base.params == theirs.mobile_base.params
    if name != "rby1ub":  # without wheels theirs has zeros, which is no pose
        assert repr(mine.mobile_base) == repr(theirs.mobile_base)
        np.testing.assert_allclose(mine.mobile_base.T, theirs.mobile_base.T, atol=1e-15)


def test_wheels_out_of_reach(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(urdf("rby1a"))
    for library in (sdk, rby_dyn):
        configuration = library.load_robot_from_urdf(path=str(path), base_link_name="link_torso_5")
        with pytest.raises(RuntimeError, match="ight wheel"):
            library.Robot(configuration)
        configuration.mobile_base = None
        robot = library.Robot(configuration)
        assert (robot.get_dof(), len(robot.get_link_names())) == (16, 24)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("plain", "the first character is not '<'"),
        ("<robot><link name='a'>", "not well-formed XML"),
        ("<html/>", "the root element is <html>, expected <robot>"),
        (document("").replace('name="b"', ""), "a <link> has no name"),
        (document(joint().replace('name="j"', "")), "a <joint> has no name"),
        (document(joint(kind="")), "joint 'j': has no type"),
        (document(joint().replace('<parent link="a"/>', "")), "joint 'j': has no <parent link=...>"),
        (document(joint().replace('<child link="b"/>', "<child/>")), "joint 'j': has no <child link=...>"),
        (document(joint(child="zz")), "its child 'zz' is no link"),
        (document("", links="xy"), "there is no link named 'a' to be the base"),
        (document(joint(rest='<axis xyz="0,0,1"/>')), "uses commas"),
        (document(joint(rest='<axis xyz="0 0 1"/><limit lower="low"/>')), "limit lower 'low' is not a number"),
        (document("", head="<mobile/>"), "mobile base: has no type"),
        (document("", head='<mobile type="mecanum"/>'), "mobile base: has no joints"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(rd.ParseError, match=message) as caught:
        rby_dyn.load_robot_from_urdf_data(text, "a")
    assert isinstance(caught.value, RuntimeError) and caught.value.findings


def test_all_findings_at_once():
    text = document(joint(parent="x", rest='<axis xyz="0 0"/>') + joint("k", kind=""))
    with pytest.raises(rd.ParseError) as caught:
        rby_dyn.load_robot_from_urdf_data(text, "base")
    assert len(caught.value.findings) == 4 and all(finding.line == 1 for finding in caught.value.findings)


def test_a_path_without_a_file_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="no such file"):
        rby_dyn.load_robot_from_urdf(str(tmp_path / "none.urdf"), "base")
    with pytest.raises(rd.ParseError, match="use load_robot_from_urdf_data"):
        rby_dyn.load_robot_from_urdf("<robot/>", "base")
    with pytest.raises(TypeError):
        untyped(rby_dyn.load_robot_from_urdf)(None, "base")


def test_what_third_party_files_leave_out():
    """No axis and no inertial: an error and uninitialized memory in theirs, the x axis and no mass here."""
    text = '<robot><link name="a"/><link name="b"/>' + joint(rest="") + "</robot>"
    robot = rby_dyn.Robot(rby_dyn.load_robot_from_urdf_data(text, "a"))
    state = robot.make_state(["a", "b"], ["j"])
    state.set_q([0.5])
    robot.compute_forward_kinematics(state)
    np.testing.assert_allclose(robot.compute_body_jacobian(state, 0, 1)[:, 0], [1, 0, 0, 0, 0, 0], atol=1e-15)
    assert robot.compute_mass(state, 1) == 0.0
