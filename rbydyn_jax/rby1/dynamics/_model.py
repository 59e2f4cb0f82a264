"""Converts a built robot to a `Model`."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from ..._errors import ModelError as _ModelError
from ...io.build import build_model
from ...io.description import (
    CollisionDescription,
    Inertial,
    JointDescription,
    LinkDescription,
    MobileBaseDescription,
    RobotDescription,
)
from ...io.placement import placement
from ...model.model import Model
from ...shapes.capsule import segment_geometry
from ._errors import ModelError
from ._geometry import GeomCapsule
from ._links import Joint, Link
from ._mobility import MobileBase, MobileBaseType
from ._structure import Connection, Structure

_UNIT = 1e-6  # how far from 1 the length of a printed axis may be
_LARGEST = float(np.finfo(np.float64).max)


def to_model(name: str, structure: Structure, mobile: MobileBase | None) -> Model:
    """The robot as a `Model`, with the joint order of the structure; see `Robot.model`.

    Raises:
        ModelError: A pure model does not support it.
    """
    links, joints = [_link(structure.links[0])], []
    for connection in structure.connections:
        more, ways = _joint(connection, structure.topology.link_names)
        links += [*more, _link(connection.child)]
        joints += ways
    base = None
    if mobile is not None and mobile.type is not MobileBaseType.Unspecified:
        base = MobileBaseDescription(mobile.type.name.lower(), mobile.T, tuple(mobile.joints), tuple(mobile.params))
    description = RobotDescription(name or "robot", tuple(links), tuple(joints), base)
    try:
        return build_model(description, joint_order=structure.topology.joint_names)
    except _ModelError as error:
        raise ModelError(str(error)) from None


def _link(link: Link) -> LinkDescription:
    shapes = [
        _capsule(collision._origin, geom, collision.name)
        for collision in link._collisions
        for geom in collision._geoms
        if isinstance(geom, GeomCapsule)
    ]
    return LinkDescription(link.name, _inertial(link), tuple(shapes))


def _inertial(link: Link) -> Inertial | None:
    I = link._inertial  # noqa: E741
    if not I.any():
        return None
    mass = float(I[3, 3])
    com = np.array([-I[1, 5], I[0, 5], -I[0, 4]]) / mass if mass else np.zeros(3)
    x, y, z = com
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rigid = np.block([[I[:3, :3], mass * cross], [-mass * cross, mass * np.eye(3)]])
    if np.abs(I - rigid).max() > 1e-12 * np.abs(I).max():
        raise ModelError(f"link {link.name!r}: no rigid body has this inertia; its blocks are not those of one mass")
    central = I[:3, :3] + mass * cross @ cross
    return Inertial(mass, com, 0.5 * (central + central.T))


def _capsule(origin: Float[np.ndarray, "4 4"], geom: GeomCapsule, name: str) -> CollisionDescription:
    shape, pose = segment_geometry(geom._start, geom._end, geom.radius)
    return CollisionDescription(shape, origin @ pose, name, geom.coltype, geom.colaffinity)


def _joint(connection: Connection, taken: tuple[str, ...]) -> tuple[list[LinkDescription], list[JointDescription]]:
    """The joint; if its axis misses the origin of its child, also a link on the axis and a fixed joint."""
    joint, parent, child = connection.joint, connection.parent, connection.child
    if joint._screw is None:
        origin = connection.T_pj @ connection.T_jc
        return [], [JointDescription(joint.name, "fixed", parent.name, child.name, origin)]
    kind, axis, point, parameters = _axis(joint)
    limits = _limits(joint)
    if kind == "revolute" and np.isinf([limits["lower"], limits["upper"]]).all():
        kind = "continuous"
    said: dict[str, Any] = {"parameters": parameters, **limits}
    if not np.abs(point).max() > 0.0:
        return [], [JointDescription(joint.name, kind, parent.name, child.name, connection.T_pj, axis, **said)]
    middle = f"{joint.name}_axis"
    if middle in taken:
        raise ModelError(f"joint {joint.name!r} needs a link {middle!r} on its axis, a name that is taken")
    origin = connection.T_pj @ placement(point)
    return [LinkDescription(middle)], [
        JointDescription(joint.name, kind, parent.name, middle, origin, axis, **said),
        JointDescription(f"{middle}_fixed", "fixed", middle, child.name, placement(-point)),
    ]


def _axis(joint: Joint) -> tuple[str, Float[np.ndarray, "3"], Float[np.ndarray, "3"], dict[str, float]]:
    """Kind, unit axis, a point on the axis and parameters of a joint's screw."""
    assert joint._screw is not None
    w, v = joint._screw[:3], joint._screw[3:]
    turning = float(np.linalg.norm(w))
    length = turning or float(np.linalg.norm(v))
    if abs(length - 1.0) > _UNIT:
        what = "has no axis" if length == 0.0 else f"has an axis of length {length:g}"
        raise ModelError(f"joint {joint.name!r} {what}; a pure model has axes of length 1 only")
    if not turning:
        return "prismatic", v / length, np.zeros(3), {}
    pitch = float(w @ v) / turning**2
    kind, parameters = ("screw", {"pitch": pitch}) if abs(pitch) > 1e-9 else ("revolute", {})
    return kind, w / length, np.cross(w, v) / turning**2, parameters


def _limits(joint: Joint) -> dict[str, Any]:
    def limit(x: float) -> float:
        return float(np.copysign(np.inf, x)) if abs(x) >= _LARGEST else x

    limits = {"lower": limit(joint.get_limit_q_lower()), "upper": limit(joint.get_limit_q_upper())}
    rates = {
        "velocity": (joint.get_limit_qdot_lower(), joint.get_limit_qdot_upper()),
        "acceleration": (joint.get_limit_qddot_lower(), joint.get_limit_qddot_upper()),
    }
    for what, (lower, upper) in rates.items():
        if lower != -upper:
            raise ModelError(
                f"joint {joint.name!r} has {what} limits {lower:g} and {upper:g}; a pure model has one bound"
            )
        limits[what] = limit(upper)
    return limits | {"effort": limit(joint.get_limit_torque())}
