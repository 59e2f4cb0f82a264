"""Exact signed distances of points from convex hulls: many points, and for each the nearest of several hulls."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.convex_hull import PlacedConvexHulls
from ..xla.batch_last import in_lanes
from ..xla.control_flow import fori_loop
from ..xla.fusion import barrier, kernel
from ..xla.loops import in_kernels
from .polytopes import polytope, simplex_distance
from .vectors import add_scaled, cross, dot, map_components, rounding, scaled, sub, tiny

_FACE, _EDGE, _VERTEX = 0, 1, 4  # kinds of features: the face itself, its three edges, and its three vertices
_KINDS = 7
_ENDS = (0, 1), (1, 2), (2, 0)  # the vertices of the edges of a face


class _Best(NamedTuple):
    """Of each point and a hull squared distance and number of the nearest feature, height over and number of a face.

    Numbers are floats, and one tells all of a feature: one loop computes them, and rounding cannot part them.
    """

    square: Array
    feature: Array
    height: Array
    face: Array


class _Face(NamedTuple):
    """A face of a hull, or all of them.

    Attributes:
        corners: Its three vertices.
        along: From each of them to the next.
        inverse: The same, divided by its square.
        normal: The unit normal; zero if the face has no area.
        beside: The products of these with what leads from the first vertex to a point are the weights of the others.
        missing: Infinite if the face has no area, or zero.
    """

    corners: tuple[Vector, ...]
    along: tuple[Vector, ...]
    inverse: tuple[Vector, ...]
    normal: Vector
    beside: tuple[Vector, Vector]
    missing: Array


def nearest_hull(hulls: PlacedConvexHulls, p: Vector) -> tuple[Array, Array, Vector]:
    """For each point which of some hulls is nearest, the signed distance, and the outward normal at its surface."""
    every = jax.vmap(polytope)(hulls)
    vertices, faces = lax.stop_gradient(every.vertices), every.faces
    points = lax.stop_gradient(p)

    found = in_lanes(_search)(jax.vmap(_prepared)(vertices, faces), points)
    row, feature, face = (x.astype(jnp.int32) for x in found)
    face_of, kind = feature // _KINDS, feature % _KINDS
    side = (kind - 1) % 3  # of an edge or a vertex
    is_face, is_edge = kind == _FACE, (kind >= _EDGE) & (kind < _VERTEX)
    second = jnp.where(is_edge, (side + 1) % 3, side)
    at = (jnp.where(is_face, k, x) for k, x in enumerate((side, second, side)))

    def corner(x: Vector, number: Array, i: Array | int) -> Vector:
        index = faces[row, number, i]
        return map_components(lambda c: c[row, index], x)

    x, y, z = (corner(vertices, face, i) for i in range(3))
    first, second, third = (corner(every.vertices, face_of, i) for i in at)
    count = jnp.where(is_face, 3, jnp.where(is_edge, 2, 1))
    distance, normal, _, _ = simplex_distance((p, p, p), (first, second, third), count, cross(sub(y, x), sub(z, x)))
    return row, distance, normal


def _search(every: _Face, points: Vector) -> tuple[Array, Array, Array]:
    """Of each point the nearest hull, its nearest feature, and the face over which the point is highest."""
    hulls, faces = every.missing.shape[:2]
    zero, far = jnp.zeros_like(points[0]), jnp.full_like(points[0], jnp.inf)
    reach = jnp.max(jnp.stack([dot(x, x) for x in every.corners]), axis=(0, 2))  # of the farthest corner, squared

    def of_hull(k: Array, chosen: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        def of_each(f: Array, best: _Best) -> _Best:
            f = in_kernels(f, zero.size)
            face = barrier(jax.tree.map(lambda x: x[k, f][None], every))
            return kernel(_of_face)(best, face, f.astype(zero.dtype), points)

        best = fori_loop(jnp.int32(0), jnp.int32(faces), of_each, _Best(far, zero, -far, zero))
        scale = dot(points, points) + reach[k][None]
        inner = best.height <= rounding(scale) * jnp.sqrt(scale)
        found = jnp.where(inner, best.height, jnp.sqrt(best.square))
        feature = jnp.where(inner, _KINDS * best.face + _FACE, best.feature)
        nearer = found < chosen[0]
        new = found, k.astype(found.dtype) + zero, feature, best.face
        return jax.tree.map(lambda x, y: jnp.where(nearer, x, y), new, chosen)

    return fori_loop(jnp.int32(0), jnp.int32(hulls), of_hull, (far, zero, zero, zero))[1:]


def _prepared(vertices: Vector, faces: Array) -> _Face:
    """Of all faces of a hull what does not depend on the points."""
    corners = tuple(map_components(lambda x, i=i: x[faces[:, i]], vertices) for i in range(3))
    along = tuple(sub(corners[m], corners[k]) for k, m in _ENDS)
    e, f = along[0], sub(corners[2], corners[0])
    n = cross(e, f)
    square = dot(n, n)
    exists = square > jnp.maximum(rounding(square) ** 2 * dot(e, e) * dot(f, f), tiny(square))
    per = 1.0 / jnp.where(exists, square, 1.0)
    lengths = [dot(x, x) for x in along]
    inverse = [scaled(1.0 / jnp.where(exists, d, 1.0), x) for d, x in zip(lengths, along, strict=True)]
    beside = scaled(per, cross(f, n)), scaled(per, cross(n, e))
    return _Face(
        corners,
        along,
        tuple(inverse),
        scaled(jnp.sqrt(per), n),
        beside,
        jnp.where(exists, jnp.zeros_like(square), jnp.inf),
    )


def _of_face(best: _Best, face: _Face, number: Array, points: Vector) -> _Best:
    gap = sub(points, face.corners[0])
    height = dot(gap, face.normal) - face.missing
    above = height > best.height
    best = best._replace(height=jnp.where(above, height, best.height), face=jnp.where(above, number, best.face))
    u, v = (dot(gap, x) for x in face.beside)
    inside = (u > 0) & (v > 0) & (u + v < 1)
    best = _nearer(best, jnp.where(inside, height * height, jnp.inf), _KINDS * number + _FACE)
    for side, (corner, along, inverse) in enumerate(zip(face.corners, face.along, face.inverse, strict=True)):
        between = sub(points, corner)
        t = dot(between, inverse)
        on = (t > 0) & (t < 1)
        foot = add_scaled(between, -jnp.where(on, t, 0.0), along)
        feature = jnp.where(on, _KINDS * number + (_EDGE + side), _KINDS * number + (_VERTEX + side))
        best = _nearer(best, dot(foot, foot) + face.missing, feature)
    return best


def _nearer(best: _Best, square: Array, feature: Array) -> _Best:
    nearer = square < best.square
    return best._replace(
        square=jnp.where(nearer, square, best.square), feature=jnp.where(nearer, feature, best.feature)
    )
