"""Convex hulls of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float

from .._extras import require
from .._lazy import jax
from ..spatial.algebra import Transform
from ..xla.structural import Scalar
from .base import CollisionGeometry, SizeReader, Vector

_FLAT = 1e-9  # thickness, relative to the size, below which a hull has no inside


@dataclass(frozen=True, eq=False)
class ConvexHullGeometry(CollisionGeometry):
    """The convex hull of `vertices` (n, 3) [m], which span a volume; in URDF files, an extension of this library."""

    tag = "convex_hull"

    vertices: np.ndarray

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes; its numbers follow each other, three for a vertex."""
        try:
            numbers = np.array([float(x) for x in element.text("vertices").split()])
        except ValueError:
            numbers = np.zeros(0)
        return cls(numbers.reshape(-1, 3) if numbers.size % 3 == 0 else np.zeros((0, 3)))

    def problem(self) -> str:
        """What is wrong with the vertices; empty if nothing."""
        x = np.asarray(self.vertices)
        if x.ndim != 2 or x.shape[1:] != (3,) or len(x) < 4:
            return f"convex hull has vertices of shape {x.shape}, expected at least 4 rows of three numbers"
        if not (finite := np.isfinite(x).all(axis=1)).all():
            return f"convex hull has a vertex that is not finite: {x[np.argmin(finite)].tolist()}"
        extents = np.linalg.svd(_of_size_one(x), compute_uv=False)
        return "" if extents[2] > _FLAT * extents[0] else "convex hull has vertices that lie in a plane"

    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> ConvexHull:
        """Its parameters in the axes of a link, for its pose T_link_shape there."""
        origin = np.asarray(origin, float)
        vertices, faces, edges = topology(np.asarray(self.vertices, float))
        return ConvexHull(vertices @ origin[:3, :3].T + origin[:3, 3], faces, edges)


class PlacedConvexHulls(NamedTuple):
    """Convex hulls and the poses of their links: what pair functions are given, of which each takes one pair."""

    position: Vector
    axes: tuple[Vector, Vector, Vector]
    vertices: Float[jax.Array, "*n v 3"]
    faces: Float[jax.Array, "*n f 3"]
    edges: Float[jax.Array, "*n e 4"]


class ConvexHull(NamedTuple):
    """Convex hulls on links; see `Shape`.

    Which vertices belong to which face counts as constant. It is kept in floats, since derivatives by a robot or a
    world as a whole need all leaves to be floats. The last vertices may be repeated, and faces and edges may have zeros
    only, where other hulls on the robot have more.

    Attributes:
        vertices: In link axes [m].
        faces: Triangles that are the surface, by the indices of their vertices, counterclockwise seen from outside.
        edges: By the indices of two vertices, and of the third ones of the triangles on both sides.
    """

    vertices: Float[Any, "*n v 3"]
    faces: Float[Any, "*n f 3"]
    edges: Float[Any, "*n e 4"]

    kind = "convex_hull"
    points, directions = 1, 3

    def moved(self, row: int, pose: Transform) -> tuple[Scalar, ...]:
        """The pose of the link: its position, and its axes."""
        return *pose.p, *(x for axis in pose.R.T for x in axis)

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedConvexHulls:
        """Some of the hulls, with their poses."""
        position, *axes = ((moved[k], moved[k + 1], moved[k + 2]) for k in range(0, 12, 3))
        return PlacedConvexHulls(
            position, (axes[0], axes[1], axes[2]), self.vertices[rows], self.faces[rows], self.edges[rows]
        )

    def described(self) -> tuple[ConvexHullGeometry, Float[np.ndarray, "4 4"]]:
        """The geometry of one hull and its pose T_link_shape: none, as its vertices are in the axes of the link."""
        used = np.unique(np.asarray(self.faces).astype(int))
        return ConvexHullGeometry(np.asarray(self.vertices, float)[used]), np.eye(4)

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """The triangles of one hull, with their last corner twice, in world coordinates, given T_world_link."""
        faces = np.asarray(self.faces).astype(int)
        corners = np.asarray(self.vertices, float)[faces[faces.any(axis=1)][:, [0, 1, 2, 2]]]
        return corners @ pose[:3, :3].T + pose[:3, 3]

    def padded(self, vertices: int, faces: int, edges: int) -> ConvexHull:
        """One hull with so many vertices, faces and edges: the last vertex repeated, and zeros."""
        last = self.vertices[-1:]
        more = vertices - len(self.vertices), faces - len(self.faces), edges - len(self.edges)
        xp = last.__array_namespace__()
        return ConvexHull(
            xp.concat([self.vertices, xp.repeat(last, more[0], axis=0)]),
            xp.concat([self.faces, xp.zeros((more[1], 3), dtype=self.faces.dtype)]),
            xp.concat([self.edges, xp.zeros((more[2], 4), dtype=self.edges.dtype)]),
        )


def of_one_size(shapes: Sequence[Any]) -> list[Any]:
    """Shapes of one kind that can be stacked: hulls padded to the size of the largest."""
    if not isinstance(shapes[0], ConvexHull):
        return list(shapes)
    sizes = np.array([[len(field) for field in hull] for hull in shapes]).max(axis=0).tolist()
    return [hull.padded(*sizes) for hull in shapes]


def _of_size_one(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    """Points about their centre, scaled by a power of two: products of large ones overflow, those of small ones vanish.

    The first point is subtracted before their mean, so that points in a plane far from the origin stay in one.
    """
    points = np.asarray(points, float)
    _, exponent = np.frexp(np.abs(points).max())
    points = np.ldexp(points, -exponent)  # exact, and differences are finite
    points = points - points[0]
    points = points - points.mean(axis=0)
    _, exponent = np.frexp(np.abs(points).max())
    return np.ldexp(points, -exponent)


def topology(points: Float[np.ndarray, "n 3"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices, faces and edges of `ConvexHull`, of the hull of points that span a volume, found by Qhull."""
    spatial = require("scipy.spatial", "meshes", "a convex hull")
    unit = _of_size_one(points)
    hull = spatial.ConvexHull(unit)
    number = np.zeros(len(points), int)
    number[hull.vertices] = np.arange(len(hull.vertices))
    outward = np.linalg.det(unit[hull.simplices] - unit[hull.vertices].mean(axis=0)) > 0.0
    faces = number[np.where(outward[:, None], hull.simplices, hull.simplices[:, ::-1])]
    edges = []
    for face, around in enumerate(hull.neighbors):
        for k, other in enumerate(around):
            if face < other:
                pair = np.delete(hull.simplices[face], k)
                (third,) = np.setdiff1d(hull.simplices[other], pair)
                edges.append([*pair, hull.simplices[face, k], third])
    return points[hull.vertices], faces.astype(float), number[np.array(edges)].astype(float)
