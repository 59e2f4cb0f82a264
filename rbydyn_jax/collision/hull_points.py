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


class _Best(NamedTuple):
    """Of each point and a hull squared distance and vertices of the nearest simplex, and the best face."""

    square: Array
    feature: tuple[Array, Array, Array]
    count: Array
    height: Array
    face: tuple[Array, Array, Array]


def nearest_hull(hulls: PlacedConvexHulls, p: Vector) -> tuple[Array, Array, Vector]:
    """For each point which of some hulls is nearest, the signed distance, and the outward normal at its surface."""
    every = jax.vmap(polytope)(hulls)
    vertices, faces = lax.stop_gradient(every.vertices), every.faces
    points = lax.stop_gradient(p)

    def of_face(best: _Best, corners: list[Vector], index: list[Array], points: Vector) -> _Best:
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
            face=tuple(jnp.where(above, k, old) for k, old in zip(index, best.face, strict=True)),
        )
        best = _nearer(best, jnp.where(inside, height * height, jnp.inf), index, 3)
        for k, m in ((0, 1), (1, 2), (2, 0)):
            along, between = sub(corners[m], corners[k]), sub(points, corners[k])
            length, t = dot(along, along), dot(between, along)
            on = exists & (t > 0) & (t < length)
            foot = add_scaled(between, -jnp.where(on, t, 0.0) / jnp.where(on, length, 1.0), along)
            ends = [index[k], jnp.where(on, index[m], index[k]), index[k]]
            best = _nearer(best, jnp.where(exists, dot(foot, foot), jnp.inf), ends, jnp.where(on, 2, 1))
        return best

    def of_hull(k: Array, chosen: tuple[Array, Array, _Best]) -> tuple[Array, Array, _Best]:
        corners = map_components(lambda x: x[k], vertices)

        def of_each(f: Array, best: _Best) -> _Best:
            at = [faces[k, f, i] for i in range(3)]
            index = [jnp.broadcast_to(i, points[0].shape) for i in at]
            return kernel(of_face)(best, [map_components(lambda x, i=i: x[i], corners) for i in at], index, points)

        zero = jnp.zeros(points[0].shape, jnp.int32)
        far = jnp.full_like(points[0], jnp.inf)
        start = _Best(far, (zero,) * 3, zero + 1, -far, (zero,) * 3)
        best = lax.fori_loop(jnp.int32(0), jnp.int32(faces.shape[1]), of_each, start)
        scale = dot(points, points)
        inner = best.height <= rounding(scale) * jnp.sqrt(scale)
        found = jnp.where(inner, best.height, jnp.sqrt(best.square))
        simplex = best._replace(
            feature=tuple(jnp.where(inner, x, y) for x, y in zip(best.face, best.feature, strict=True)),
            count=jnp.where(inner, 3, best.count),
        )
        nearer = found < chosen[0]
        return jax.tree.map(lambda x, y: jnp.where(nearer, x, y), (found, zero + k, simplex), chosen)

    zero = jnp.zeros(points[0].shape, jnp.int32)
    far = jnp.full_like(points[0], jnp.inf)
    start = far, zero, _Best(far, (zero,) * 3, zero + 1, far, (zero,) * 3)
    _, row, best = lax.fori_loop(jnp.int32(0), jnp.int32(faces.shape[0]), of_hull, start)

    def corners(x: Vector, index: tuple[Array, Array, Array]) -> tuple[Vector, Vector, Vector]:
        first, second, third = (map_components(lambda c, i=i: c[row, i], x) for i in index)
        return first, second, third

    x, y, z = corners(vertices, best.face)
    simplex = corners(every.vertices, best.feature)
    distance, normal, _, _ = simplex_distance((p, p, p), simplex, best.count, cross(sub(y, x), sub(z, x)))
    return row, distance, normal


def _nearer(best: _Best, square: Array, index: list[Array], count: Array | int) -> _Best:
    nearer = square < best.square
    return best._replace(
        square=jnp.where(nearer, square, best.square),
        feature=tuple(jnp.where(nearer, k, old) for k, old in zip(index, best.feature, strict=True)),
        count=jnp.where(nearer, count, best.count),
    )
