"""Exact distance between a capsule, a box or a cylinder and a half-space."""

from __future__ import annotations

from ..shapes.half_space import PlacedHalfSpaces
from .solids import Placed, solid
from .vectors import add_scaled, dot, sub
from .witness import Witness


def solid_half_space(a: Placed, b: PlacedHalfSpaces) -> Witness:
    """How far the deepest point of a solid is above the plane; of a face or an edge that is parallel, its middle.

    The derivatives are those of the height of that point; the distance is that of the deepest one for all angles.
    """
    body = solid(a)
    deepest = body.support(b.normal)
    height = dot(sub(body.center, b.point), b.normal) - body.reach(b.normal)
    foot = add_scaled(deepest, -height, b.normal)
    return Witness(height - body.radius, add_scaled(deepest, -body.radius, b.normal), foot, deepest, foot)
