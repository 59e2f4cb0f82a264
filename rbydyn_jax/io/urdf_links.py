"""Links of a URDF file: mass properties and collision shapes."""

from __future__ import annotations

import numpy as np

from .description import (
    BoxGeometry,
    CapsuleGeometry,
    CollisionDescription,
    CylinderGeometry,
    Geometry,
    Inertial,
    LinkDescription,
    MeshGeometry,
    SphereGeometry,
)
from .findings import did_you_mean
from .placement import is_identity
from .urdf_values import Scope
from .xml import XmlElement

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_GEOMETRY = {
    "box": ("size",),
    "cylinder": ("length", "radius"),
    "sphere": ("radius",),
    "capsule": ("length", "radius", "coltype", "colaffinity", "sp", "ep"),
    "mesh": ("filename", "scale"),
}


def read_link(xml: XmlElement, name: str, scope: Scope) -> LinkDescription:
    """Reads a `<link>` element."""
    scope.known(xml, ("name", "type"), ("inertial", "collision", "visual", "sensor", "contact", "material"))
    inertial = scope.only(xml, "inertial")
    collisions = [_collision(c, scope) for c in xml.children("collision")]
    for visual in xml.children("visual"):
        scope.known(visual, ("name",), ("origin", "geometry", "material"))
        scope.origin(visual, "visual origin")
        _geometry(visual, scope)
    return LinkDescription(
        name, _inertial(inertial, scope) if inertial else None, tuple(c for c in collisions if c is not None)
    )


def _inertial(xml: XmlElement, scope: Scope) -> Inertial:
    scope.known(xml, (), ("origin", "mass", "inertia"))
    origin = scope.origin(xml, "inertial origin")
    mass = 0.0
    if (element := scope.only(xml, "mass")) is None:
        scope.add("error", xml.line, "<inertial> has no <mass>")
    else:
        scope.known(element, ("value",))
        mass = scope.number(element, "value", "mass")
    moments = dict.fromkeys(_MOMENTS, 0.0)
    if (element := scope.only(xml, "inertia")) is None:
        scope.add("error", xml.line, "<inertial> has no <inertia>")
    else:
        scope.known(element, _MOMENTS)
        missing = [m for m in _MOMENTS if element.get(m) is None]
        if missing:
            scope.add("error", element.line, f"<inertia> lacks {', '.join(missing)}")
        moments = {m: scope.number(element, m, m, 0.0) for m in _MOMENTS}
    xx, xy, xz, yy, yz, zz = (moments[m] for m in _MOMENTS)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    rotation = origin[:3, :3]
    if not is_identity(rotation):
        inertia = rotation @ inertia @ rotation.T
        inertia = 0.5 * (inertia + inertia.T)
    return Inertial(mass, origin[:3, 3].copy(), inertia)


def _collision(xml: XmlElement, scope: Scope) -> CollisionDescription | None:
    scope.known(xml, ("name", "group"), ("origin", "geometry", "material", "verbose", "contact_coefficients"))
    origin = scope.origin(xml, "collision origin")
    found = _geometry(xml, scope)
    if found is None:
        return None
    geometry, coltype, colaffinity = found
    return CollisionDescription(geometry, origin, xml.get("name") or "", coltype, colaffinity)


def _geometry(xml: XmlElement, scope: Scope) -> tuple[Geometry, int, int] | None:
    """Reads the one shape of the `<geometry>` of a collision or visual; None if there is none that can be used."""
    geometry = scope.only(xml, "geometry")
    if geometry is None:
        scope.add("error", xml.line, f"<{xml.tag}> has no <geometry>")
        return None
    shapes = [shape for tag in geometry.tags for shape in geometry.children(tag)]
    if not shapes:
        scope.add("error", geometry.line, "empty <geometry>, expected one shape")
        return None
    if len(shapes) > 1:
        names = ", ".join(f"<{s.tag}>" for s in shapes)
        scope.add("error", geometry.line, f"<geometry> has {len(shapes)} shapes ({names}), expected one")
        return None
    (shape,) = shapes
    if shape.tag not in _GEOMETRY:
        hint = did_you_mean(shape.tag, _GEOMETRY)
        scope.add("warning", shape.line, f"unknown geometry <{shape.tag}> is ignored{hint}")
        return None
    scope.known(shape, _GEOMETRY[shape.tag])
    masks = [scope.unsigned(shape, mask, shape.tag) for mask in ("coltype", "colaffinity")]
    return _shape(shape, scope), masks[0], masks[1]


def _shape(shape: XmlElement, scope: Scope) -> Geometry:
    def size(attribute: str) -> float:
        value = scope.number(shape, attribute, f"{shape.tag} {attribute}")
        if value < 0.0:
            scope.add("error", shape.line, f"{shape.tag} {attribute} {value:g} is negative")
        return value

    if shape.tag == "box":
        sides = scope.vector(shape, "size", "box size", 3)
        if sides and min(sides) < 0.0:
            scope.add("error", shape.line, f"box size {min(sides):g} is negative")
        return BoxGeometry(np.array(sides or [0.0, 0.0, 0.0]))
    if shape.tag == "sphere":
        return SphereGeometry(size("radius"))
    if shape.tag == "cylinder":
        return CylinderGeometry(size("length"), size("radius"))
    if shape.tag == "capsule":
        return CapsuleGeometry(size("length"), size("radius"))
    filename = scope.name(shape, "filename", "mesh") or ""
    return MeshGeometry(filename, np.array(scope.vector(shape, "scale", "mesh scale", 3, [1.0, 1.0, 1.0]) or [1.0] * 3))
