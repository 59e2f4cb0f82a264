r"""The simplex of two polytopes that overlap: the face of their differences that is nearest to the origin.

A face of the polytope of all differences $a - b$ is that of a face and a vertex, or of two edges. Of two edges, the
direction $\pm e_a \times e_b$ is the normal of a face just where both edges are farthest along it, and an edge of a
convex body is so where the third vertices of both adjacent faces are not beyond it, unless these are in one plane.
The nearest face is the one along whose normal the polytopes overlap least.

Where faces or edges are parallel, the face of the differences has more vertices than three, and the foot of the origin
may be outside of those that are known. Other vertices of it follow from the algorithm of `gjk`, of the polytopes moved
apart along the normal: the foot is then the point that is nearest.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.batch_last import in_lanes
from ..xla.control_flow import fori_loop, while_loop
from ..xla.fusion import kernel
from ..xla.loops import in_kernels
from .gjk import nearest_points
from .polytopes import Polytope, Simplex, foot_weights, lowest
from .vectors import cross, dot, map_components, rounding, sub, tiny

T = TypeVar("T")
_Pair = tuple[Array, Array, Vector]  # a vertex of each polytope, and their difference
_PART = 64  # pairs at a time, so that what is kept of their edges stays in cache


class _Found(NamedTuple):
    """A face, and how far it separates."""

    separation: Array
    simplex: Simplex


def overlapping(a: Polytope, b: Polytope, overlap: Array) -> Simplex:
    """The simplex of the nearest face of two polytopes, if they `overlap`; of one pair.

    Of a batch only the pairs that overlap are computed, some at a time.
    """
    return in_lanes(_of_some)(a, b, overlap)


def _of_some(a: Polytope, b: Polytope, overlap: Array) -> Simplex:
    lanes = overlap.ndim

    def flat(x: Array) -> Array:
        return x.reshape(*x.shape[: x.ndim - lanes], math.prod(overlap.shape))

    a, b, chosen = jax.tree.map(flat, (a, b, overlap))
    size = chosen.shape[0]
    part = max(min(size, _PART), 1) if isinstance(size, int) else size  # a size of exported programs is not known
    zero = jnp.zeros_like(chosen, jnp.int32)
    three = jnp.zeros((3, *chosen.shape), jnp.int32)
    nothing = map_components(jnp.zeros_like, map_components(lambda x: x[0], a.vertices))
    order = jnp.argsort(~chosen).astype(jnp.int32)
    order, count = jnp.pad(order, (0, part)), jnp.sum(chosen, dtype=jnp.int32)  # the last part may have others too

    def step(state: tuple[Array, Simplex]) -> tuple[Array, Simplex]:
        k, found = state
        at = lax.dynamic_slice_in_dim(order, k, part)
        of_part = _deepest(*jax.tree.map(lambda x: x[..., at], (a, b)))
        return k + part, jax.tree.map(lambda x, y: x.at[..., at].set(y), found, of_part)

    start = jnp.int32(0), Simplex(three, three, zero + 3, zero == 0, nothing)
    found = while_loop(lambda s: s[0] < count, step, start)[1]
    return jax.tree.map(lambda x: x.reshape(*x.shape[:-1], *overlap.shape), found)


def _deepest(a: Polytope, b: Polytope) -> Simplex:
    """Of pairs in lanes, all of which overlap."""
    behind = _faces(b, a)
    found = _least_deep(_faces(a, b), _Found(behind.separation, _exchanged(behind.simplex)))
    return _with_foot(a, b, _least_deep(found, _edges(a, b)))


def _with_foot(a: Polytope, b: Polytope, found: _Found) -> Simplex:
    """The simplex of the face, of vertices between which the foot of the origin is."""
    plane = found.simplex
    first, second, third = (_pair(a, b, plane, k)[2] for k in range(3))
    weights = jnp.stack(foot_weights((first, second, third), plane.count)[1])
    outside = ~(_are_positive(plane.a, weights) & _are_positive(plane.b, weights))
    size = jnp.sum(jnp.stack([jnp.max(x, axis=0) - jnp.min(x, axis=0) for x in (*a.vertices, *b.vertices)]), axis=0)
    # The smaller the gap, the less far from the foot are points that are as near; but the gap itself is rounded.
    shift = rounding(size) ** (1 / 3) * size - found.separation
    moved = map_components(lambda x, n: x + (shift * n)[None], a.vertices, plane.facing)
    nearest, overlap = nearest_points(moved, b.vertices, outside)
    return _where(outside & ~overlap, _spanning(a, b, nearest, plane), plane)


def _are_positive(vertices: Array, weights: Array) -> Array:
    """Whether no vertex has a negative weight, to rounding; one may be there twice."""
    of_each = jnp.sum(jnp.where(vertices[:, None] == vertices[None], weights[None], 0), axis=1)
    return jnp.all(of_each >= -rounding(weights), axis=0)


def _spanning(a: Polytope, b: Polytope, foot: Simplex, plane: Simplex) -> Simplex:
    """The pairs of vertices at a foot, with as many of a plane as make them three that are far from a line."""
    first, second, third = (_pair(a, b, foot, k) for k in range(3))
    of_plane = jax.tree.map(lambda *x: jnp.stack(x), *(_pair(a, b, plane, k) for k in range(3)))
    arms = map_components(lambda x, o: x - o[None], of_plane[2], first[2])

    def farthest(x: Vector) -> _Pair:
        return _row(of_plane, jnp.argmax(dot(x, x), axis=0))

    second = _where(foot.count > 1, second, farthest(arms))
    side = map_components(lambda x, o: (x - o)[None], second[2], first[2])
    third = _where(foot.count > 2, third, farthest(cross(side, arms)))
    at_a, at_b, _ = jax.tree.map(lambda *x: jnp.stack(x), first, second, third)
    return plane._replace(a=at_a, b=at_b, count=foot.count)


def _pair(a: Polytope, b: Polytope, s: Simplex, k: int) -> _Pair:
    return s.a[k], s.b[k], sub(_row(a.vertices, s.a[k]), _row(b.vertices, s.b[k]))


def _least_deep(x: _Found, y: _Found) -> _Found:
    return _where(y.separation > x.separation, y, x)


def _where(chosen: Array, x: T, y: T) -> T:
    return jax.tree.map(lambda p, q: jnp.where(jnp.broadcast_to(chosen, p.shape), p, q), x, y)


def _exchanged(s: Simplex) -> Simplex:
    """The same with the polytopes in the other order."""
    return s._replace(a=s.b, b=s.a, facing=map_components(lambda x: -x, s.facing))


def _corners(vertices: Vector, index: Array) -> list[Vector]:
    """The vertices of faces or edges (k, n, ...): n of them, each (k, ...)."""
    return [
        map_components(lambda x, k=k: jnp.take_along_axis(x, index[:, k], axis=0), vertices)
        for k in range(index.shape[1])
    ]


def _row(x: T, k: Array) -> T:
    """Of arrays (n, ...) the row that is chosen in each lane."""
    return jax.tree.map(lambda p: jnp.take_along_axis(p, k[None], axis=0)[0], x)


def _faces(a: Polytope, b: Polytope) -> _Found:
    """The best face of the first with the vertex of the second that is deepest behind it."""
    if not a.faces.shape[0]:
        none = jnp.zeros((3, *a.radius.shape), jnp.int32)
        zero = jnp.zeros_like(a.radius)
        return _Found(zero - jnp.inf, _plane(none, none, (zero, zero, zero)))

    def separations(corners: list[Vector], vertices: Vector) -> tuple[Array, Array, Vector]:
        p, q, r = corners
        e, f = sub(q, p), sub(r, p)
        n, exists = _unit(cross(e, f), dot(e, e) * dot(f, f))
        vertex, place = lowest(vertices, n)
        return jnp.where(exists, dot(n, sub(place, p)), -jnp.inf), vertex, n

    vertices = map_components(lambda x: x[:, None], b.vertices)
    separation, vertex, n = kernel(separations)(_corners(a.vertices, a.faces), vertices)
    k = jnp.argmax(separation, axis=0)
    at_a = jnp.stack([_row(a.faces[:, i], k) for i in range(3)])
    at_b = jnp.broadcast_to(_row(vertex, k).astype(jnp.int32), at_a.shape)
    facing = map_components(lambda x: -x, _row(n, k))
    return _Found(_row(separation, k), _plane(at_a, at_b, facing))


def _edges(a: Polytope, b: Polytope) -> _Found:
    """The best face of an edge of the first and one of the second."""
    of_a, of_b = _corners(a.vertices, a.edges), _corners(b.vertices, b.edges)

    def best(k: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        def better(found: tuple[Array, Array], k: Array, *pair: Any) -> tuple[Array, Array]:
            separation = _between_edges(*pair)[0]
            above = separation > found[0]
            return jnp.where(above, separation, found[0]), jnp.where(above, k, found[1])

        k = in_kernels(k, b.sharp.size)
        row, sharp = jax.tree.map(lambda x: x[k][None], (of_a, a.sharp))
        return kernel(better)(found, k.astype(a.radius.dtype), row, of_b, sharp & b.sharp)

    start = jnp.full(b.sharp.shape, -jnp.inf, a.radius.dtype), jnp.zeros(b.sharp.shape, a.radius.dtype)
    separation, first = fori_loop(jnp.int32(0), jnp.int32(a.edges.shape[0]), best, start)
    second = jnp.argmax(separation, axis=0)
    first = _row(first, second).astype(jnp.int32)
    i, j = (jnp.stack([_row(x.edges[:, m], k) for m in range(2)]) for x, k in ((a, first), (b, second)))
    _, facing = _between_edges(_row(of_a, first), _row(of_b, second), _row(separation, second) > -jnp.inf)
    simplex = _plane(jnp.stack([i[0], i[1], i[0]]), jnp.stack([j[0], j[0], j[1]]), facing)
    return _Found(_row(separation, second), simplex)


def _plane(a: Array, b: Array, facing: Vector) -> Simplex:
    return Simplex(a, b, jnp.full_like(a[0], 3), jnp.ones_like(a[0], bool), facing)


def _between_edges(of_a: list[Vector], of_b: list[Vector], sharp: Array) -> tuple[Array, Vector]:
    """How far a face of two edges separates, or minus infinity, and its normal from the second to the first."""
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


def _unit(n: Vector, scale: Array) -> tuple[Vector, Array]:
    """Unit vectors, and whether they are known: n is not rounding error beside the squared size of its factors."""
    square = dot(n, n)
    exists = (square > rounding(square) ** 2 * scale) & (square > tiny(square))
    length = jnp.sqrt(jnp.where(exists, square, 1.0))
    return map_components(lambda x: x / length, n), exists
