"""The sound files that the fuzzer damages: text by kind, small ones more often than large ones."""

from __future__ import annotations

import functools
import random
from typing import Literal

from rbydyn_jax import robots, to_urdf
from rbydyn_jax.io.urdf_writer import write_urdf
from rbydyn_jax.testing import random_description
from tests.io.crane import CRANE
from tests.io.test_xacro import ARM as XACRO_ARM

Kind = Literal["urdf", "mjcf", "xacro"]
KINDS: tuple[Kind, ...] = ("urdf", "mjcf", "xacro")

_GRIPPER = """<?xml version="1.0" encoding="utf-8"?>
<!-- every element that the reader knows -->
<robot name="gripper" version="1.0">
  <link name="world"/>
  <link name="hand"><inertial><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/><mass value="0.7"/>
    <inertia ixx="1e-3" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1.5e-3"/></inertial>
    <visual><geometry><mesh filename="package://hand.stl" scale="1 1 1"/></geometry></visual>
    <collision><origin xyz="0 0 0.05"/><geometry><capsule radius="0.03" length="0.1" coltype="1" colaffinity="0x2"/></geometry></collision>
    <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="left"><inertial><mass value="0.05"/><inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/></inertial>
    <collision><geometry><cylinder radius="0.01" length="0.1"/></geometry></collision></link>
  <link name="right"><inertial><mass value="0.05"/><inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/></inertial></link>
  <link name="tip"><inertial><origin xyz="0.01 0 0"/><mass value="0.01"/><inertia ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/></inertial></link>
  <joint name="base" type="floating"><parent link="world"/><child link="hand"/></joint>
  <joint name="l" type="prismatic"><parent link="hand"/><child link="left"/><origin xyz="0 0.02 0.1" quat_xyzw="0 0 1 0"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2" acceleration="3"/><dynamics damping="1" friction="0.1" armature="1e-3"/></joint>
  <joint name="r" type="prismatic"><parent link="hand"/><child link="right"/><origin xyz="0 -0.02 0.1" rpy="0 0 3.14159"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/><mimic joint="l" multiplier="-1" offset="0.001"/></joint>
  <joint name="t" type="continuous"><parent link="left"/><child link="tip"/><axis xyz="0.6 0 0.8"/><mimic joint="r" multiplier="2"/></joint>
  <transmission name="unused"/><gazebo/>
</robot>
"""  # noqa: E501

_MJCF = """<mujoco model="lamp"><compiler angle="radian"/><option gravity="0.1 0.3 -9"/>
<default><joint damping="0.1" armature="0.01"/><default class="arm"><geom contype="1" conaffinity="2"/></default></default>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3">
  <joint name="h1" axis="0 1 1" pos="0.05 0 0.02" range="-1 1" limited="true" frictionloss="0.3" ref="0.2"/>
  <joint name="s1" type="slide" axis="1 0 1" pos="0 0.1 0" range="-1 1" limited="true"/>
  <geom class="arm" type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.05"/>
  <body name="b" pos="0.4 0 0"><joint name="ball" type="ball" pos="0.1 0 0"/><geom type="sphere" size="0.1" pos="0.1 0.1 0"/>
    <body pos="0 0 0.1" quat="1 1 0 0"><inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body>
</body>
<body name="c" pos="0 0.1 1"><freejoint name="free"/><inertial pos="0 0.1 0" quat="1 0 0.2 0" mass="2" diaginertia="0.1 0.2 0.15"/></body>
</worldbody><actuator><motor joint="h1"/></actuator></mujoco>
"""  # noqa: E501

_URDF_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")


@functools.cache
def sources(kind: Kind) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The texts of a kind, and their weights."""
    if kind == "mjcf":
        return (_MJCF,), (1.0,)
    if kind == "xacro":
        return (XACRO_ARM,), (1.0,)
    trees = [write_urdf(random_description(k, _URDF_TYPES, 8, mimics=2)) for k in range(3)]
    texts = (CRANE, _GRIPPER, *trees, to_urdf(robots.rby1m()))
    return texts, (8.0, 8.0, 3.0, 3.0, 3.0, 0.3)


def choose(kind: Kind, dice: random.Random) -> str:
    """A sound text."""
    texts, weights = sources(kind)
    return dice.choices(texts, weights)[0]
