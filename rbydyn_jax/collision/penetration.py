r"""The simplex of two polytopes that overlap: the face of their differences that is nearest to the origin.

A face of the polytope of all differences $a - b$ is that of a face and a vertex, or of two edges. Of two edges, the
direction $\pm e_a \times e_b$ is the normal of a face just where both edges are farthest along it, and an edge of a
convex body is so where the third vertices of both adjacent faces are not beyond it, unless these are in one plane.
The nearest face is the one along whose normal the polytopes overlap least.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.fusion import kernel
from .polytopes import Polytope, Simplex
from .vectors import cross, dot, map_components, rounding, sub, tiny


class _Found(NamedTuple):
    """A face, and how far it separates."""

    separation: Array
    simplex: Simplex


def overlapping(a: Polytope, b: Polytope, overlap: Array) -> Simplex:
    """The simplex of the nearest face of two polytopes, if they `overlap`; of one pair.

    Edges are compared in a loop that ends at once where nothing overlaps.
    """
    if a.edges.shape[0] > b.edges.shape[0]:
        return _exchanged(overlapping(b, a, overlap))
    behind = _faces(b, a)
    found = _least_deep(_faces(a, b), _Found(behind.separation, _exchanged(behind.simplex)))
    count = jnp.asarray(a.edges.shape[0], jnp.int32)
    of_b = [b.at(b.edges[:, k]) for k in range(4)]

    def step(state: tuple[Array, _Found]) -> tuple[Array, _Found]:
        k, best = state
        return k + 1, _least_deep(best, _edges(a, a.edges[k], a.sharp[k], of_b, b.edges, b.sharp))

    return lax.while_loop(lambda s: overlap & (s[0] < count), step, (jnp.zeros((), jnp.int32), found))[1].simplex


def _least_deep(x: _Found, y: _Found) -> _Found:
    return jax.tree.map(lambda p, q: jnp.where(y.separation > x.separation, q, p), x, y)


def _exchanged(s: Simplex) -> Simplex:
    """The same with the polytopes in the other order."""
    return Simplex(s.b, s.a, s.count, map_components(lambda x: -x, s.facing))


def _faces(a: Polytope, b: Polytope) -> _Found:
    """The best face of the first with the vertex of the second that is deepest behind it."""
    three = jnp.array(3, jnp.int32)
    if not a.faces.shape[0]:
        none, zero = jnp.zeros(3, jnp.int32), jnp.zeros_like(a.radius)
        return _Found(jnp.full_like(zero, -jnp.inf), Simplex(none, none, three, (zero, zero, zero)))
    p, q, r = (a.at(a.faces[:, k]) for k in range(3))
    e, f = sub(q, p), sub(r, p)
    n, exists = _unit(cross(e, f), dot(e, e) * dot(f, f))
    x, y, z = (p[:, None] * q[None] for p, q in zip(n, b.vertices, strict=True))
    heights = x + y + z
    separation = jnp.where(exists, jnp.min(heights, axis=1) - dot(n, p), -jnp.inf)
    k = jnp.argmax(separation)
    vertex = jnp.asarray(jnp.argmin(heights[k]), jnp.int32)
    facing = map_components(lambda x: -x[k], n)
    return _Found(separation[k], Simplex(a.faces[k], jnp.broadcast_to(vertex, (3,)), three, facing))


def _edges(a: Polytope, edge: Array, sharp_a: Array, of_b: list[Vector], edges_b: Array, sharp_b: Array) -> _Found:
    """The best face of one edge of the first and any of the second, of which all vertices are given."""

    def separations(of_a: list[Vector], of_b: list[Vector], sharp: Array) -> tuple[Array, Vector]:
        (a0, a1, *beside_a), (b0, b1, *beside_b) = of_a, of_b
        ea, eb = sub(a1, a0), sub(b1, b0)
        n, exists = _unit(cross(ea, eb), dot(ea, ea) * dot(eb, eb))
        heights = [*(dot(n, sub(x, a0)) for x in beside_a), *(dot(n, sub(b0, x)) for x in beside_b)]
        along = against = exists & sharp
        for height in heights:
            along, against = along & (height <= 0), against & (height >= 0)
        height = dot(n, sub(b0, a0))
        first, second = jnp.where(along, height, -jnp.inf), jnp.where(against, -height, -jnp.inf)
        sign = jnp.where(first > second, -jnp.ones_like(height), jnp.ones_like(height))
        return jnp.maximum(first, second), map_components(lambda x: sign * x, n)

    separation, normals = kernel(separations)([a.at(edge[k]) for k in range(4)], of_b, sharp_a & sharp_b)
    k = jnp.argmax(separation)
    other, facing = edges_b[k], map_components(lambda x: x[k], normals)
    at_a, at_b = jnp.stack([edge[0], edge[1], edge[0]]), jnp.stack([other[0], other[0], other[1]])
    return _Found(separation[k], Simplex(at_a, at_b, jnp.array(3, jnp.int32), facing))


def _unit(n: Vector, scale: Array) -> tuple[Vector, Array]:
    """Unit vectors, and whether they are known: n is not rounding error beside the squared size of its factors."""
    square = dot(n, n)
    exists = (square > rounding(square) ** 2 * scale) & (square > tiny(square))
    length = jnp.sqrt(jnp.where(exists, square, 1.0))
    return map_components(lambda x: x / length, n), exists
