"""Links, joints, collision objects and the names of the vendor's API."""

from __future__ import annotations

import enum
import inspect
import re
from typing import Any

import numpy as np
import pytest

import rbydyn_jax as rd
import rbydyn_jax.rby1.dynamics as rby_dyn
from tests.helpers import untyped

from .sdk import sdk

unchecked: Any = rby_dyn  # for arguments of wrong types

CLASSES = [name for name in dir(sdk) if isinstance(getattr(sdk, name), type)]
DOCUMENTED = {
    "Collision": ("origin", "geoms"),
    "Geom": ("coltype", "colaffinity"),
    "GeomCapsule": ("start_point", "end_point", "radius"),
    "Joint": ("name", "parent_link", "child_link"),
    "Link": ("name", "inertial", "parent_joint"),
    "Robot": ("base", "link_names", "joint_names"),
    "RobotConfiguration": ("name", "base_link", "mobile_base"),
    "CollisionResult": ("link1", "link2", "position1", "position2", "distance"),
}


def shift(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


@pytest.mark.parametrize("name", CLASSES)
def test_every_name_and_keyword_is_there(name):
    """The signatures are in the docstrings that pybind11 writes, one for each overload."""
    theirs, mine = getattr(sdk, name), getattr(rby_dyn, name)
    if issubclass(mine, enum.Enum):
        theirs, mine = theirs(0), mine(0)
    for member in dir(theirs):
        if member.startswith("_"):
            continue
        assert _has(mine, member), member
        signatures = re.findall(rf"^(?:\d\. )?{member}\((.*)\) ->", getattr(theirs, member).__doc__ or "", re.M)
        if not signatures or not callable(getattr(mine, member, None)):
            continue
        keywords = {k for s in signatures for k in re.findall(r"(?:^|, )(\w+):", s)} - {"self"}
        accepted = inspect.signature(getattr(mine, member)).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
            assert keywords - {k for k in keywords if k.startswith("arg")} <= set(accepted), member


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_attributes_that_theirs_lacks(name):
    for attribute in DOCUMENTED[name]:
        assert _has(getattr(rby_dyn, name), attribute)


def _has(owner, attribute):
    """Whether there is such an attribute, be it a field of a dataclass."""
    return hasattr(owner, attribute) or attribute in inspect.get_annotations(owner)


def test_there_is_nothing_missing_in_the_module():
    assert {name for name in dir(sdk) if not name.startswith("_")} <= set(dir(rby_dyn))


@pytest.mark.parametrize("library", [sdk, rby_dyn], ids=["theirs", "ours"])
def test_connecting(library):
    a, b, c = (library.Link(name) for name in "abc")
    first, second = library.Joint.make_revolute("j"), library.Joint.make_fixed("k")
    assert first.get_parent_link() is None and first.get_child_link() is None and a.get_parent_joint() is None
    first.connect_links(a, b)
    second.connect_links(parent_link=b, child_link=c, T_pj=shift(1, 0, 0), T_jc=shift(0, 1, 0))
    assert (first.get_parent_link(), first.get_child_link()) == (a, b)
    assert b.get_parent_joint() is first and b.get_child_joint_list() == [second]
    assert (first.is_fixed(), second.is_fixed()) == (False, True)
    count = library.Robot.count_joints
    assert (count(a), count(a, True), count(base_link=b, include_fixed=True)) == (1, 2, 1)

    second.connect_links(a, c)  # moves the joint
    assert b.get_child_joint_list() == [] and a.get_child_joint_list() == [first, second]
    third = library.Joint.make_prismatic("l")
    third.connect_links(b, c)  # takes the child from the second joint
    assert a.get_child_joint_list() == [first] and c.get_parent_joint() is third
    third.disconnect()
    assert b.get_child_joint_list() == [] and c.get_parent_joint() is None
    assert third.get_child_link() is c and third.get_parent_link() is b  # which it remembers
    twin = library.Joint.make_fixed("j")
    twin.connect_links(a, c)
    first.disconnect()  # takes away all joints of its name
    assert a.get_child_joint_list() == []


@pytest.mark.parametrize("library", [sdk, rby_dyn], ids=["theirs", "ours"])
def test_a_robot_is_a_copy_but_limits_are_live(library):
    a, b, c = (library.Link(name) for name in "abc")
    joint = library.Joint.make_revolute("j")
    joint.connect_links(a, b)
    robot = library.Robot(library.RobotConfiguration(name="r", base_link=a))
    state = robot.make_state(["a", "b"], [])
    joint.set_limit_q(-1.0, 2.0)
    joint.set_limit_q_upper(3.0)
    joint.set_limit_torque(5.0)
    library.Joint.make_fixed("k").connect_links(b, c)
    joint.disconnect()
    assert robot.get_limit_q_lower(state)[0] == -1.0 and robot.get_limit_q_upper(state)[0] == 3.0
    assert robot.get_limit_torque(state)[0] == 5.0
    assert robot.get_dof() == robot.get_number_of_joints() == 1
    assert set(robot.get_link_names()) == {"a", "b"} and robot.get_joint_names() == ["j"]
    assert robot.get_base() is a and robot.get_link("b") is b and robot.get_link("c") is None
    assert robot.get_link(name="a") is a and robot.get_link(state, 1) is b and robot.get_link(state, 2) is None
    np.testing.assert_array_equal(untyped(robot.get_joint_property)(state, lambda j: j.get_limit_q_upper() + 1), [4.0])
    np.testing.assert_array_equal(robot.get_joint_property(state=state, getter=lambda j: 1), [1.0])


@pytest.mark.parametrize("library", [sdk, rby_dyn], ids=["theirs", "ours"])
def test_limits_have_the_defaults_of_the_sdk_and_keep_what_is_set(library):
    joint = library.Joint.make_revolute("j")
    largest = 1.7976931348623157e308
    for what, default in (("q", largest), ("qdot", largest), ("qddot", 10.0)):
        lower, upper = (getattr(joint, f"get_limit_{what}_{side}") for side in ("lower", "upper"))
        assert (lower(), upper()) == (-default, default)
        getattr(joint, f"set_limit_{what}")(lower=-2, upper=3)
        assert (lower(), upper()) == (-2.0, 3.0) and type(lower()) is float
        getattr(joint, f"set_limit_{what}_lower")(val=-4)
        getattr(joint, f"set_limit_{what}_upper")(val=5)
        assert (lower(), upper()) == (-4.0, 5.0)
    assert joint.get_limit_torque() == largest


@pytest.mark.parametrize("library", [sdk, rby_dyn], ids=["theirs", "ours"])
def test_objects_print_as_in_the_sdk(library):
    a, b = library.Link("a"), library.Link("b")
    joint = library.Joint.make_revolute("j")
    joint.connect_links(a, b)
    collision, capsule = library.Collision("shell"), library.GeomCapsule(0.1, 0.2, 1, 2)
    collision.add_geom(capsule)
    a.add_collision(collision)
    configuration = library.RobotConfiguration("r", a)
    robot = library.Robot(configuration)
    assert str(a) == "Link(a, children=1, collisions=1)" and str(joint) == "Joint(j)"
    assert repr(a) == "Link(\n  name='a',\n  parent_joint='None',\n  children=['j'],\n  collisions=['shell']\n)"
    assert repr(joint) == "Joint(\n  name='j',\n  fixed=False,\n  parent='a',\n  child='b'\n)"
    assert str(library.Joint.make_fixed("k")) == "Joint(k, fixed)"
    assert str(robot) == "Robot(DOF=1, joints=1, base=a)"
    assert repr(robot) == "Robot(\n  DOF=1,\n  links=2,\n  joints=1,\n  base='a'\n)"
    assert str(configuration) == "RobotConfiguration(r, base=a, mobile=None)"
    assert repr(configuration) == "RobotConfiguration(\n  name='r',\n  base_link='a',\n  mobile_base=None\n)"
    assert str(collision) == "Collision(geoms=1)"
    assert str(capsule) == "GeomCapsule(r=0.2, p0=[0.   0.   0.05], p1=[ 0.    0.   -0.05])"
    assert repr(capsule).endswith("end_point=[ 0.    0.   -0.05],\n  radius=0.2\n)")
    assert repr(robot.make_state([], [])).startswith("State(\n  base_link_idx=")
    assert str(robot.make_state([], [])).startswith("State(base=")
    kind = library.MobileBaseType.Mecanum
    assert (str(kind), repr(kind)) == ("MobileBaseType.Mecanum", "<MobileBaseType.Mecanum: 2>")
    assert (kind.name, kind.value, int(kind)) == ("Mecanum", 2, 2) and library.MobileBaseType(2) is not None
    result = capsule.compute_minimum_distance(np.eye(4), capsule, shift(1, 0, 0))
    assert str(result) == "CollisionResult(l1='', l2='', d=0.6)"


def test_configuration():
    configuration = rby_dyn.RobotConfiguration()
    assert (configuration.name, configuration.base_link, configuration.mobile_base) == ("", None, None)
    with pytest.raises(TypeError, match="base_link must be a Link, got NoneType"):
        rby_dyn.Robot(configuration)
    with pytest.raises(TypeError, match="robot_configuration must be a RobotConfiguration"):
        unchecked.Robot(rby_dyn.Link("a"))


def test_cycles_end():
    """At which theirs never returns."""
    a, b, c = (rby_dyn.Link(name) for name in "abc")
    for name, parent, child in (("j", a, b), ("k", b, c), ("l", c, a)):
        rby_dyn.Joint.make_fixed(name).connect_links(parent, child)
    for call in (rby_dyn.Robot.count_joints, lambda x: rby_dyn.Robot(rby_dyn.RobotConfiguration("r", x))):
        with pytest.raises(rd.ModelError, match="joint 'l' leads back to link 'a': the joints form a cycle"):
            call(a)
    loop = rby_dyn.Link("loop")
    rby_dyn.Joint.make_revolute("self").connect_links(loop, loop)
    with pytest.raises(rd.ModelError, match="joint 'self' leads back to link 'loop'"):
        rby_dyn.Robot(rby_dyn.RobotConfiguration("r", loop))


def test_names_are_unique():
    a, b, c = rby_dyn.Link("a"), rby_dyn.Link("b"), rby_dyn.Link("b")
    rby_dyn.Joint.make_revolute("j").connect_links(a, b)
    rby_dyn.Joint.make_revolute("k").connect_links(a, c)
    with pytest.raises(rd.ModelError, match="link names must be unique, given more than once: b"):
        rby_dyn.Robot(rby_dyn.RobotConfiguration("r", a))


@pytest.mark.parametrize(
    "call",
    [
        lambda: unchecked.Joint.make_fixed("j").connect_links(None, rby_dyn.Link("b")),
        lambda: unchecked.Joint.make_fixed("j").connect_links(rby_dyn.Link("b"), None),
        lambda: unchecked.Link("a").add_collision(None),
        lambda: unchecked.Collision("c").add_geom(None),
        lambda: rby_dyn.Collision("c").set_origin(np.eye(3)),
        lambda: rby_dyn.Link("a", np.eye(3)),
        lambda: unchecked.Link(3),
        lambda: rby_dyn.Joint.make("j", np.zeros(5)),
        lambda: rby_dyn.Joint.make_revolute("j", np.eye(3)),
        lambda: rby_dyn.GeomCapsule(0.1, 0.2, -1, 0),
        lambda: rby_dyn.GeomCapsule(0.1, 0.2),
        lambda: rby_dyn.GeomCapsule(0.1, 0.2, 1, colaffinity=1, coltype=1),
        lambda: unchecked.Robot.count_joints(None),
        lambda: unchecked.Joint.make_revolute("j").set_limit_q("low", 1.0),
        lambda: unchecked.load_robot_from_urdf_data(3, "base"),
    ],
)
def test_wrong_arguments_are_type_errors(call):
    with pytest.raises(rd.DtypeError):
        call()


def test_inertias_are_symmetric():
    with pytest.raises(rd.ModelError, match="link 'a': the inertia I must be symmetric"):
        rby_dyn.Link("a", np.eye(6) + np.eye(6, k=1))


def test_robots_say_what_they_cannot_do():
    a, b = rby_dyn.Link("a"), rby_dyn.Link("b")
    rby_dyn.Joint.make_revolute("j").connect_links(a, b)
    robot = rby_dyn.Robot(rby_dyn.RobotConfiguration("r", a))
    state = robot.make_state([], [])
    for call in (
        robot.compute_mobility_diff_kinematics,
        lambda s: untyped(robot.compute_mobility_inverse_diff_kinematics)(s, [0, 0, 0]),
    ):
        with pytest.raises(rd.ModelError, match="robot 'r' has no mobile base"):
            call(state)
    for wrong in ([0, 0], 1.0), ([0, 0, 0],) * 2:
        with pytest.raises(rd.RbydynError):
            untyped(robot.compute_mobility_inverse_diff_kinematics)(state, *wrong)
    for getter in (lambda joint: None, rby_dyn.Joint.get_name, lambda joint: np.ones(1), lambda joint: [1.0, [2.0]]):
        with pytest.raises(RuntimeError, match="getter must return a number for each joint") as raised:  # as in the SDK
            untyped(robot.get_joint_property)(state, getter)
        assert isinstance(raised.value, rd.DtypeError)
    np.testing.assert_array_equal(untyped(robot.get_joint_property)(state, lambda joint: True), [1.0])
    with pytest.raises(TypeError, match="getter must be a function"):
        untyped(robot.get_joint_property)(state, 3)
    with pytest.raises(TypeError):
        robot.get_link(state, -1)
    with pytest.raises(TypeError):
        untyped(robot.get_link)(state)
    with pytest.raises(TypeError):
        untyped(robot.detect_collisions_or_nearest_links)(state, 1.0)


@pytest.mark.parametrize(
    ("kind", "joints", "params", "message"),
    [
        ("Differential", ["j"], [1.0, 2.0], r"differential mobile base must have 2 joints \(right, left\), got 1"),
        ("Differential", ["j", "j"], [1.0], r"must have 2 params \(wheel base, wheel radius\), got 1"),
        ("Differential", ["zz", "j"], [1.0, 2.0], "the right wheel 'zz' of the mobile base is not a moving joint"),
        ("Mecanum", ["j", "j"], [1.0], r"must have 4 joints \(front-right, front-left, rear-right, rear-left\), got 2"),
        ("Mecanum", ["j"] * 3 + ["f"], [1.0] * 3, "the rear-left wheel 'f' of the mobile base is not a moving joint"),
    ],
)
def test_mobile_bases_that_do_not_fit(kind, joints, params, message):
    a, b, c = (rby_dyn.Link(name) for name in "abc")
    rby_dyn.Joint.make_revolute("j").connect_links(a, b)
    rby_dyn.Joint.make_fixed("f").connect_links(a, c)
    base = rby_dyn.MobileBase(rby_dyn.MobileBaseType[kind], np.eye(4), joints, params)
    with pytest.raises(rd.ModelError, match=message):
        rby_dyn.Robot(rby_dyn.RobotConfiguration("r", a, base))
