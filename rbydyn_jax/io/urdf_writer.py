"""Writes a `RobotDescription` as URDF, with full precision so that it reads back unchanged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Literal
from xml.sax.saxutils import quoteattr

import numpy as np

from .._check import check_choice
from .._errors import ModelError
from ..joints import JOINT_TYPES
from ..shapes import CapsuleGeometry, CylinderGeometry, Geometry, SphereGeometry
from .description import CollisionDescription, JointDescription, LinkDescription, RobotDescription
from .findings import did_you_mean
from .placement import compose, is_identity, placement, rpy_from_rotation

# How capsules are written: as the tag that plain URDF lacks, or as a cylinder with a sphere at each end.
Capsules = Literal["capsule", "cylinder"]
_DBL_MAX = float(np.finfo(np.float64).max)


def write_urdf(description: RobotDescription, *, collisions: bool = True, capsules: Capsules = "capsule") -> str:
    """Returns the URDF text of a robot.

    What plain URDF has no word for is written as attributes and tags that other readers pass over: capsules, the bit
    masks of shapes, the `acceleration` limit, `armature` of `<dynamics>`, and `<mobile>`. No limit is written as the
    largest double, since other readers take no infinity. A continuous joint with limits is written as a revolute one.

    Args:
        description: The robot.
        collisions: Whether to write collision shapes.
        capsules: Whether capsules are written as such, or each as a cylinder with a sphere at each end, which fill the
            same space and which every reader knows.

    Raises:
        ArgumentError: `capsules` is another word.
        ModelError: A joint is of a type that URDF does not have, or of an unknown one.
    """
    check_choice(capsules, "capsules", ("capsule", "cylinder"))
    for joint in description.joints:
        if joint.kind not in JOINT_TYPES:
            hint = did_you_mean(joint.kind, JOINT_TYPES)
            raise ModelError(f"joint {joint.name!r}: unknown type {joint.kind!r}{hint}")
        if instead := JOINT_TYPES[joint.kind].urdf_instead:
            raise ModelError(
                f"URDF has no {joint.kind} joints, and this robot has {joint.name!r}; use {instead} instead"
            )
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(description.name)}>"]
    if (mobile := description.mobile_base) is not None:
        wheels = _attributes(joints=" ".join(mobile.joints), params=_join(mobile.params))
        lines.append(f"  <mobile{_attributes(type=mobile.kind)}{_pose(mobile.origin)}{wheels}/>")
    for link in description.links:
        lines += _link(link, collisions, capsules)
    for joint in description.joints:
        lines += _joint(joint)
    return "\n".join([*lines, "</robot>", ""])


def _number(value: float) -> str:
    if math.isinf(value):
        value = math.copysign(_DBL_MAX, value)
    return repr(float(value) + 0.0)


def _join(values: Iterable[float]) -> str:
    return " ".join(_number(value) for value in values)


def _attributes(**values: str | float) -> str:
    return "".join(
        f" {name}={quoteattr(value) if isinstance(value, str) else quoteattr(_number(value))}"
        for name, value in values.items()
    )


def _pose(matrix: np.ndarray) -> str:
    rotation = np.asarray(matrix, float)[:3, :3]
    rpy = (0.0, 0.0, 0.0) if is_identity(rotation) else rpy_from_rotation(rotation)
    return _attributes(xyz=_join(np.asarray(matrix, float)[:3, 3]), rpy=_join(rpy))


def _origin(matrix: np.ndarray, indent: str) -> list[str]:
    return [] if np.array_equal(matrix, np.eye(4)) else [f"{indent}<origin{_pose(matrix)}/>"]


def _link(link: LinkDescription, collisions: bool, capsules: Capsules) -> list[str]:
    lines = []
    if (inertial := link.inertial) is not None:
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.asarray(inertial.inertia, float).tolist()
        moments = _attributes(ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
        lines += [
            "    <inertial>",
            f"      <origin{_attributes(xyz=_join(inertial.com), rpy='0.0 0.0 0.0')}/>",
            f"      <mass{_attributes(value=inertial.mass)}/>",
            f"      <inertia{moments}/>",
            "    </inertial>",
        ]
    for collision in link.collisions if collisions else ():
        for part in _parts(collision) if capsules == "cylinder" else (collision,):
            lines += _collision(part)
    name = quoteattr(link.name)
    return [f"  <link name={name}>", *lines, "  </link>"] if lines else [f"  <link name={name}/>"]


def _parts(collision: CollisionDescription) -> list[CollisionDescription]:
    """A capsule as a cylinder and two spheres; other shapes as they are."""
    capsule = collision.geometry
    if not isinstance(capsule, CapsuleGeometry):
        return [collision]
    ball, half = SphereGeometry(capsule.radius), 0.5 * capsule.length
    parts: list[tuple[Geometry, float]] = [(ball, half)]
    if half > 0.0:
        parts = [(CylinderGeometry(capsule.length, capsule.radius), 0.0), (ball, half), (ball, -half)]
    return [
        dataclasses.replace(
            collision,
            geometry=geometry,
            origin=compose(np.asarray(collision.origin, float), placement((0.0, 0.0, z))),
            name=f"{collision.name}_{k}" if collision.name and len(parts) > 1 else collision.name,
        )
        for k, (geometry, z) in enumerate(parts)
    ]


def _collision(collision: CollisionDescription) -> list[str]:
    name = _attributes(name=collision.name) if collision.name else ""
    masks = "".join(f' {mask}="{bits}"' for mask in ("coltype", "colaffinity") if (bits := getattr(collision, mask)))
    return [
        f"    <collision{name}>",
        *_origin(collision.origin, "      "),
        f"      <geometry><{_geometry(collision.geometry)}{masks}/></geometry>",
        "    </collision>",
    ]


def _geometry(geometry: Geometry) -> str:
    fields = {f.name: getattr(geometry, f.name) for f in dataclasses.fields(geometry)}
    texts = {k: _join(x.ravel()) if isinstance(x, np.ndarray) else x for k, x in fields.items()}
    return geometry.tag + _attributes(**texts)


def _joint(joint: JointDescription) -> list[str]:
    kind = JOINT_TYPES[_written_kind(joint)]
    lines = [f"  <joint{_attributes(name=joint.name, type=kind.name)}>"]
    lines += [f"    <parent{_attributes(link=joint.parent)}/>", f"    <child{_attributes(link=joint.child)}/>"]
    lines += _origin(joint.origin, "    ")
    if kind.has_axis or not kind.nv:  # a fixed joint has no use for an axis, but rby1_sdk refuses a file without it
        lines.append(f"    <axis{_attributes(xyz=_join(joint.axis))}/>")
    if kind.limited:
        bounds = _attributes(lower=joint.lower, upper=joint.upper)
        lines.append(f"    <limit{bounds}{_rates(joint)}/>")
    elif kind.nv and any(map(math.isfinite, (joint.velocity, joint.effort, joint.acceleration))):
        lines.append(f"    <limit{_rates(joint)}/>")
    losses = {name: getattr(joint, name) for name in ("damping", "friction", "armature") if getattr(joint, name)}
    if losses:
        lines.append(f"    <dynamics{_attributes(**losses)}/>")
    if (mimic := joint.mimic) is not None:
        factors = _attributes(multiplier=mimic.multiplier, offset=mimic.offset)
        lines.append(f"    <mimic{_attributes(joint=mimic.joint)}{factors}/>")
    return [*lines, "  </joint>"]


def _written_kind(joint: JointDescription) -> str:
    """The type of a joint in URDF, where one with limits is not continuous; a follower has those of its source."""
    limited = math.isfinite(joint.lower) or math.isfinite(joint.upper)
    return "revolute" if joint.kind == "continuous" and limited and joint.mimic is None else joint.kind


def _rates(joint: JointDescription) -> str:
    acceleration = _attributes(acceleration=joint.acceleration) if math.isfinite(joint.acceleration) else ""
    return _attributes(effort=joint.effort, velocity=joint.velocity) + acceleration
