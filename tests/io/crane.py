"""A small legal URDF robot, and how the tests spoil one thing in it."""

from __future__ import annotations

from rbydyn_jax._errors import Finding, ParseError
from rbydyn_jax.io.check_inertia import check_bodies
from rbydyn_jax.io.urdf import read_urdf
from rbydyn_jax.io.weld import weld
from rbydyn_jax.model.arrays import RobotArrays

CRANE = """<?xml version="1.0"?>
<robot name="crane">
  <link name="mast">
    <inertial><origin xyz="0 0 0.5"/><mass value="4"/><inertia ixx="0.5" ixy="0" ixz="0" iyy="0.5" iyz="0" izz="0.1"/></inertial>
  </link>
  <link name="boom">
    <inertial><origin xyz="0.3 0 0"/><mass value="2"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial>
  </link>
  <link name="hook">
    <inertial><origin xyz="0 0 -0.1"/><mass value="1"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <joint name="slew" type="revolute">
    <parent link="mast"/><child link="boom"/><origin xyz="0 0 1" rpy="0 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="30" velocity="1"/>
  </joint>
  <joint name="hoist" type="prismatic">
    <parent link="boom"/><child link="hook"/><origin xyz="0.6 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-0.8" upper="0" effort="50" velocity="0.5"/>
  </joint>
</robot>
"""  # noqa: E501


def spoil(*changes: tuple[str, str]) -> str:
    """The crane with each `old` replaced by `new`; `old` must be there."""
    text = CRANE
    for old, new in changes:
        assert old in text, f"nothing to replace: {old}"
        text = text.replace(old, new)
    return text


def load(text: str | bytes, **options) -> tuple[RobotArrays, tuple[Finding, ...]]:
    """What `load_urdf_string` does, without making a Model of it."""
    description, findings = read_urdf(text, "crane.urdf", base_link=options.get("base_link"))
    if findings.failed:
        findings.report()
    robot = weld(description, findings=findings, **options)
    check_bodies(robot, findings, [link.name for link in description.links])
    return robot, findings.report()


def refusal(text: str | bytes) -> ParseError:
    """The error that the text must lead to."""
    try:
        load(text)
    except ParseError as error:
        return error
    raise AssertionError("the text was accepted")
