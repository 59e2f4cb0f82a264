"""Types of a description written in Python, before its values are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import DtypeError
from ..shapes import Geometry
from .description import (
    CollisionDescription,
    Inertial,
    JointDescription,
    LinkDescription,
    Mimic,
    MobileBaseDescription,
    RobotDescription,
)

_LIMITS = ("lower", "upper", "velocity", "acceleration", "effort", "damping", "friction", "armature")


def check_types(description: RobotDescription) -> None:
    """Raises for a part of a description that is of another type.

    Raises:
        DtypeError: A name is no str, a number no number, or a part is no such part.
    """
    _is(description.name, str, "name of the robot")
    for i, link in enumerate(_all(description.links, LinkDescription, "links")):
        _is(link.name, str, f"links[{i}].name")
        element = f"link {link.name!r}: "
        if link.inertial is not None:
            _is(link.inertial, Inertial, element + "inertial")
            for what in ("mass", "com", "inertia"):
                _numbers(getattr(link.inertial, what), element + what, scalar=what == "mass")
        for collision in _all(link.collisions, CollisionDescription, element + "collisions"):
            _is(collision.geometry, Geometry, element + "geometry")
            _numbers(collision.origin, element + "origin of a collision shape")
    for i, joint in enumerate(_all(description.joints, JointDescription, "joints")):
        _is(joint.name, str, f"joints[{i}].name")
        _joint(joint, f"joint {joint.name!r}: ")
    if description.mobile_base is not None:
        _is(description.mobile_base, MobileBaseDescription, "mobile_base")


def _joint(joint: JointDescription, element: str) -> None:
    for what in ("kind", "parent", "child"):
        _is(getattr(joint, what), str, element + what)
    for what in ("origin", "axis", *_LIMITS):
        _numbers(getattr(joint, what), element + what, scalar=what in _LIMITS)
    if joint.mimic is not None:
        _is(joint.mimic, Mimic, element + "mimic")
        _is(joint.mimic.joint, str, element + "mimic.joint")
        for what in ("multiplier", "offset"):
            _numbers(getattr(joint.mimic, what), f"{element}mimic.{what}", scalar=True)
    _is(joint.parameters, Mapping, element + "parameters")
    for name, value in joint.parameters.items():
        _numbers(value, f"{element}parameters[{name!r}]", scalar=True)


def _is(x: Any, kind: type, what: str) -> None:
    if not isinstance(x, kind):
        raise DtypeError(f"{what} must be a {kind.__name__}, got {type(x).__name__}")


def _all(x: Any, kind: type, what: str) -> tuple[Any, ...]:
    if not isinstance(x, tuple | list):
        raise DtypeError(f"{what} must be a tuple of {kind.__name__}, got {type(x).__name__}")
    for i, item in enumerate(x):
        _is(item, kind, f"{what}[{i}]")
    return tuple(x)


def _numbers(x: Any, what: str, *, scalar: bool = False) -> None:
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "iuf" or (scalar and array.ndim):
        raise DtypeError(f"{what} must be {'a number' if scalar else 'an array of numbers'}, got {x!r:.80}")
