"""Links of a URDF file: mass properties and collision shapes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ..shapes import GEOMETRIES, CollisionGeometry, Geometry
from .description import CollisionDescription, Inertial, LinkDescription
from .findings import did_you_mean
from .placement import is_identity
from .urdf_values import Scope
from .xml import XmlElement

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_MASKS = ("coltype", "colaffinity")


def read_link(xml: XmlElement, name: str, scope: Scope) -> LinkDescription:
    """Reads a `<link>` element."""
    scope.known(xml, ("name", "type"), ("inertial", "collision", "visual", "sensor", "contact", "material"))
    inertial = scope.only(xml, "inertial")
    collisions = [_collision(c, scope) for c in xml.children("collision")]
    for visual in xml.children("visual"):
        scope.known(visual, ("name",), ("origin", "geometry", "material"))
        scope.origin(visual, "visual origin")
        read_geometry(visual, scope)
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
    found = read_geometry(xml, scope)
    if found is None:
        return None
    geometry, coltype, colaffinity = found
    return CollisionDescription(geometry, origin, xml.get("name") or "", coltype, colaffinity)


def read_geometry(xml: XmlElement, scope: Scope) -> tuple[Geometry, int, int] | None:
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
    kind = GEOMETRIES.get(shape.tag)
    if kind is None:
        hint = did_you_mean(shape.tag, GEOMETRIES)
        scope.add("warning", shape.line, f"unknown geometry <{shape.tag}> is ignored{hint}")
        return None
    masks = _MASKS if issubclass(kind, CollisionGeometry) else ()
    scope.known(shape, (*(f.name for f in dataclasses.fields(kind)), *masks, *kind.unused))
    coltype, colaffinity = (scope.unsigned(shape, mask, shape.tag) for mask in _MASKS)
    return kind.read(_Sizes(shape, scope)), coltype, colaffinity


class _Sizes:
    """The attributes of the element of a shape; see `SizeReader`."""

    def __init__(self, shape: XmlElement, scope: Scope) -> None:
        self._shape, self._scope = shape, scope

    def size(self, attribute: str) -> float:
        value = self._scope.number(self._shape, attribute, f"{self._shape.tag} {attribute}")
        self._check(value, attribute)
        return value

    def sizes(self, attribute: str) -> np.ndarray:
        values = self.vector(attribute, None)
        self._check(values.min(), attribute)
        return values

    def vector(self, attribute: str, default: Sequence[float] | None) -> np.ndarray:
        given = None if default is None else list(default)
        found = self._scope.vector(self._shape, attribute, f"{self._shape.tag} {attribute}", 3, given)
        return np.array(found or given or [0.0, 0.0, 0.0])

    def text(self, attribute: str) -> str:
        return self._scope.name(self._shape, attribute, self._shape.tag) or ""

    def _check(self, value: float, attribute: str) -> None:
        if value < 0.0:
            self._scope.add("error", self._shape.line, f"{self._shape.tag} {attribute} {value:g} is negative")
