"""Joints of a URDF file: type, placement, axis, limits, dynamics and coupling; and the wheels of an RB-Y1 base."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..joints import JOINT_TYPES
from .description import JointDescription, Mimic, MobileBaseDescription
from .findings import did_you_mean
from .urdf_values import Scope
from .xml import XmlElement

_TAGS = (
    "parent",
    "child",
    "origin",
    "axis",
    "limit",
    "dynamics",
    "mimic",
    "calibration",
    "safety_controller",
    "hardwareInterface",
)
_SHORTEST_AXIS = 1e-6


def read_joint(xml: XmlElement, name: str, scope: Scope) -> JointDescription | None:
    """Reads a `<joint>` element; None if its links are missing."""
    scope.known(xml, ("name", "type", "in_model_type"), _TAGS)
    kind = _kind(xml, scope)
    links = []
    for tag in ("parent", "child"):
        if (element := scope.only(xml, tag)) is None:
            scope.add("error", xml.line, f"has no <{tag}>")
            continue
        scope.known(element, ("link",))
        links.append(scope.name(element, "link", f"<{tag}>"))
    origin = scope.origin(xml, "origin")
    axis = np.array([1.0, 0.0, 0.0])
    if kind is not None and JOINT_TYPES[kind].has_axis:
        axis = _axis(xml, scope)
    limits = _limits(xml, kind, scope)
    dynamics = _dynamics(xml, scope) if kind is None or JOINT_TYPES[kind].nv else {}
    mimic = _mimic(xml, kind, scope)
    if len(links) < 2 or links[0] is None or links[1] is None:
        return None
    return JointDescription(
        name, kind or "revolute", links[0], links[1], origin, axis, **limits, **dynamics, mimic=mimic
    )


def _kind(xml: XmlElement, scope: Scope) -> str | None:
    """Returns the joint's type: `in_model_type`, which RB-Y1 files use to weld the fingers, goes before `type`."""
    known = [name for name, joint in JOINT_TYPES.items() if not joint.urdf_instead]
    kinds: list[str | None] = []
    for attribute in ("type", "in_model_type"):
        text = xml.get(attribute)
        if text is None:
            if attribute == "type":
                scope.add("error", xml.line, "has no type")
            continue
        if text not in known:
            hint = did_you_mean(text, known) or f"; the types are {', '.join(known)}"
            scope.add("error", xml.line, f"unknown {attribute} {text!r}{hint}")
        kinds.append(text if text in known else None)
    return kinds[-1] if kinds else None


def _axis(xml: XmlElement, scope: Scope) -> np.ndarray:
    default = np.array([1.0, 0.0, 0.0])
    element = scope.only(xml, "axis")
    if element is None:
        return default
    scope.known(element, ("xyz",))
    values = scope.vector(element, "xyz", "axis", 3)
    if values is None:
        return default
    length = math.hypot(*values)
    if length < _SHORTEST_AXIS:
        size = "zero length" if length == 0.0 else f"length {length:g}, too short to be a direction"
        scope.add("error", element.line, f"axis has {size}")
        return default
    axis = np.array(values)
    if length == 1.0:
        return axis
    off = abs(length - 1.0)
    if off > 1e-3:
        scope.add("warning", element.line, f"axis of length {length:g} is scaled to unit length")
    elif off > 1e-12:
        scope.add("note", element.line, f"axis is off unit length by {length - 1.0:.1e} and is scaled to it")
    return axis / length


def _limits(xml: XmlElement, kind: str | None, scope: Scope) -> dict[str, Any]:
    if kind is None or not (joint := JOINT_TYPES[kind]).nv:
        return {}
    element = scope.only(xml, "limit")
    if element is None:
        if joint.limited:
            scope.add("warning", xml.line, f"{kind} joint has no <limit>; it is taken as without limits")
        return {}
    scope.known(element, ("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"))
    limits = {name: scope.limit(element, name, math.inf) for name in ("velocity", "acceleration", "effort")}
    if not joint.limited:
        for name in ("lower", "upper"):
            scope.limit(element, name, 0.0)
        return limits
    missing = [name for name in ("effort", "velocity") if element.get(name) is None]
    if missing:
        scope.add("warning", element.line, f"limit lacks {', '.join(missing)}; taken as without limit")
    return limits | {name: scope.limit(element, name, 0.0) for name in ("lower", "upper")}


def _dynamics(xml: XmlElement, scope: Scope) -> dict[str, Any]:
    element = scope.only(xml, "dynamics")
    if element is None:
        return {}
    names = ("damping", "friction", "armature")
    scope.known(element, names)
    return {name: scope.number(element, name, name, 0.0) for name in names}


def _mimic(xml: XmlElement, kind: str | None, scope: Scope) -> Mimic | None:
    element = scope.only(xml, "mimic")
    if element is None:
        return None
    scope.known(element, ("joint", "multiplier", "offset"))
    source = scope.name(element, "joint", "<mimic>")
    multiplier = scope.number(element, "multiplier", "mimic multiplier", 1.0)
    offset = scope.number(element, "offset", "mimic offset", 0.0)
    if kind is not None and not JOINT_TYPES[kind].nv:
        scope.add("note", element.line, "<mimic> of a fixed joint is ignored")
        return None
    return Mimic(source, multiplier, offset) if source is not None else None


def read_mobile(xml: XmlElement, scope: Scope) -> MobileBaseDescription | None:
    """Reads the `<mobile>` element of an RB-Y1 file."""
    scope.known(xml, ("type", "xyz", "rpy", "joints", "params"))
    kind = scope.name(xml, "type", "<mobile>")
    origin = scope.pose(xml, "origin")
    joints = (scope.name(xml, "joints", "<mobile>") or "").split()
    text = scope.name(xml, "params", "<mobile>") or ""
    params = scope.vector(xml, "params", "params", len(text.split())) if text else None
    if kind is None or not joints or params is None:
        return None
    return MobileBaseDescription(kind, origin, tuple(joints), tuple(params))
