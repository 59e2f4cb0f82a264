"""Exact signed distances of points from convex hulls: many points, and for each the nearest of several hulls."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.convex_hull import PlacedConvexHulls
from ..xla.fusion import kernel
from .polytopes import polytope, simplex_distance
from .vectors import add_scaled, cross, dot, map_components, rounding, sub, tiny

_Three = tuple[Array, Array, Array]  # the indices of three vertices


class _Best(NamedTuple):
    """Of each point and a hull squared distance and vertices of the nearest simplex, and the best face."""

    square: Array
    feature: _Three
    count: Array
    height: Array
    face: _Three


def nearest_hull(hulls: PlacedConvexHulls, p: Vector) -> tuple[Array, Array, Vector]:
    """For each point which of some hulls is nearest, the signed distance, and the outward normal at its surface."""
    every = jax.vmap(polytope)(hulls)
    vertices, faces = lax.stop_gradient(every.vertices), every.faces
    points = lax.stop_gradient(p)

    def of_face(best: _Best, corners: list[Vector], index: _Three, points: Vector) -> _Best:
        x, y, z = corners
        e, f = sub(y, x), sub(z, x)
        n, gap = cross(e, f), sub(points, x)
        square = dot(n, n)
        exists = square > jnp.maximum(rounding(square) ** 2 * dot(e, e) * dot(f, f), tiny(square))
        height = jnp.where(exists, dot(gap, n) / jnp.sqrt(jnp.where(exists, square, 1.0)), -jnp.inf)
        per = 1.0 / jnp.where(exists, square, 1.0)
        u, v = dot(cross(gap, f), n) * per, dot(cross(e, gap), n) * per
        inside = exists & (u > 0) & (v > 0) & (u + v < 1)
        above = height > best.height
        best = best._replace(
            height=jnp.where(above, height, best.height),
            face=map_components(lambda k, old: jnp.where(above, k, old), index, best.face),
        )
        best = _nearer(best, jnp.where(inside, height * height, jnp.inf), index, 3)
        for k, m in ((0, 1), (1, 2), (2, 0)):
            along, between = sub(corners[m], corners[k]), sub(points, corners[k])
            length, t = dot(along, along), dot(between, along)
            on = exists & (t > 0) & (t < length)
            foot = add_scaled(between, -jnp.where(on, t, 0.0) / jnp.where(on, length, 1.0), along)
            ends = index[k], jnp.where(on, index[m], index[k]), index[k]
            best = _nearer(best, jnp.where(exists, dot(foot, foot), jnp.inf), ends, jnp.where(on, 2, 1))
        return best

    def of_hull(k: Array, chosen: tuple[Array, Array, _Best]) -> tuple[Array, Array, _Best]:
        corners = map_components(lambda x: x[k], vertices)

        def of_each(f: Array, best: _Best) -> _Best:
            at = faces[k, f, 0], faces[k, f, 1], faces[k, f, 2]
            index = map_components(lambda i: jnp.broadcast_to(i, points[0].shape), at)
            return kernel(of_face)(best, [map_components(lambda x, i=i: x[i], corners) for i in at], index, points)

        zero = jnp.zeros(points[0].shape, jnp.int32)
        far = jnp.full_like(points[0], jnp.inf)
        start = _Best(far, (zero, zero, zero), zero + 1, -far, (zero, zero, zero))
        best = lax.fori_loop(jnp.int32(0), jnp.int32(faces.shape[1]), of_each, start)
        scale = dot(points, points)
        inner = best.height <= rounding(scale) * jnp.sqrt(scale)
        found = jnp.where(inner, best.height, jnp.sqrt(best.square))
        simplex = best._replace(
            feature=map_components(lambda x, y: jnp.where(inner, x, y), best.face, best.feature),
            count=jnp.where(inner, 3, best.count),
        )
        nearer = found < chosen[0]
        return jax.tree.map(lambda x, y: jnp.where(nearer, x, y), (found, zero + k, simplex), chosen)

    zero = jnp.zeros(points[0].shape, jnp.int32)
    far = jnp.full_like(points[0], jnp.inf)
    start = far, zero, _Best(far, (zero, zero, zero), zero + 1, far, (zero, zero, zero))
    _, row, best = lax.fori_loop(jnp.int32(0), jnp.int32(faces.shape[0]), of_hull, start)

    def corners(x: Vector, index: _Three) -> tuple[Vector, Vector, Vector]:
        first, second, third = (map_components(lambda c, i=i: c[row, i], x) for i in index)
        return first, second, third

    x, y, z = corners(vertices, best.face)
    simplex = corners(every.vertices, best.feature)
    distance, normal, _, _ = simplex_distance((p, p, p), simplex, best.count, cross(sub(y, x), sub(z, x)))
    return row, distance, normal


def _nearer(best: _Best, square: Array, index: _Three, count: Array | int) -> _Best:
    nearer = square < best.square
    return best._replace(
        square=jnp.where(nearer, square, best.square),
        feature=map_components(lambda k, old: jnp.where(nearer, k, old), index, best.feature),
        count=jnp.where(nearer, count, best.count),
    )
