"""The table of shapes, by the names of their URDF elements."""

from __future__ import annotations

from .base import CollisionGeometry, Geometry
from .box import BoxGeometry
from .capsule import CapsuleGeometry, SphereGeometry
from .convex_hull import ConvexHullGeometry
from .cylinder import CylinderGeometry
from .mesh import MeshGeometry

GEOMETRIES: dict[str, type[Geometry]] = {
    geometry.tag: geometry
    for geometry in (CapsuleGeometry, SphereGeometry, CylinderGeometry, BoxGeometry, ConvexHullGeometry, MeshGeometry)
}


def collision_geometries() -> dict[str, type[CollisionGeometry]]:
    """The shapes of the table of which distances are computed."""
    return {tag: geometry for tag, geometry in GEOMETRIES.items() if issubclass(geometry, CollisionGeometry)}
