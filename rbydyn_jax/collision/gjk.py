r"""The simplex of two polytopes that are apart, by the algorithm of Gilbert, Johnson and Keerthi [1988].

The vertex of the differences $a - b$ that is farthest against the nearest point found so far joins the simplex, and
the nearest point of the larger simplex follows: on one of its edges or triangles at the new vertex, or the origin is
inside, and the polytopes overlap. All candidates are computed, and the nearest counts: no threshold tells the case.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.batch_last import in_lanes
from ..xla.control_flow import while_loop
from ..xla.fusion import kernel
from ..xla.loops import in_kernels
from .polytopes import Polytope, Simplex, lowest
from .vectors import add_scaled, cross, dot, map_components, rounding, sub, tiny

T = TypeVar("T")
_STEPS = 64  # a polytope with a hundred vertices takes about ten
# The vertices of the old simplex on the edges and triangles at the new one.
_EDGES, _TRIANGLES = (0, 1, 2), ((0, 1), (0, 2), (1, 2))


class _Vertex(NamedTuple):
    """A difference, and the vertices of both polytopes that it is of."""

    w: Vector
    a: Array
    b: Array


class _State(NamedTuple):
    """A simplex of three differences, of which the first `count` are in use, and its point nearest to the origin.

    Indices, the count and what is true (1) or not (0) are floats, so that one loop computes all of a step, and rounding
    cannot part them.
    """

    step: Array
    goes_on: Array
    overlap: Array
    point: Vector
    count: Array
    vertices: tuple[_Vertex, _Vertex, _Vertex]


def apart(a: Polytope, b: Polytope) -> tuple[Simplex, Array]:
    """The simplex of the nearest points of two polytopes, and whether they overlap or touch instead; of one pair.

    Pairs of a batch are lanes of one search, which ends with the last of them; what is found does not change any more.
    """
    return in_lanes(nearest_points)(a.vertices, b.vertices)


def nearest_points(a: Vector, b: Vector, wanted: Array | None = None) -> tuple[Simplex, Array]:
    """The same of vertices (v, ...) in lanes; only in those lanes that are `wanted`, if these are given."""
    start_a, start_b = (map_components(lambda x: x[0], x) for x in (a, b))
    scale = dot(start_a, start_a) + dot(start_b, start_b)
    zero = jnp.zeros_like(scale)
    first = _Vertex(sub(start_a, start_b), zero, zero)
    goes_on = zero + 1 if wanted is None else wanted.astype(zero.dtype)
    start = _State(jnp.int32(0), goes_on, zero, first.w, zero + 1, (first, first, first))

    def step(s: _State) -> _State:
        new = kernel(_farthest)(a, b, s.point)
        return _State(in_kernels(s.step, scale.size) + 1, *kernel(_next)(s, new, scale))

    found = while_loop(lambda s: jnp.any(s.goes_on > 0) & (s.step < _STEPS), step, start)
    at_a, at_b = (jnp.stack([getattr(v, side) for v in found.vertices]).astype(jnp.int32) for side in "ab")
    count = found.count.astype(jnp.int32)
    return Simplex(at_a, at_b, count, count == 3, found.point), found.overlap > 0


def _farthest(a: Vector, b: Vector, n: Vector) -> _Vertex:
    """The difference that is farthest against a direction."""
    i, p = lowest(a, n)
    j, q = lowest(b, map_components(lambda x: -x, n))
    return _Vertex(sub(p, q), i, j)


def _next(s: _State, new: _Vertex, scale: Array) -> tuple:
    """The state, but for the step, once another vertex is known."""
    touching = jnp.maximum(rounding(scale) ** 2 * scale, tiny(scale))
    square, ahead = dot(s.point, s.point), dot(s.point, new.w)
    nearest = square - ahead <= rounding(square) * square
    for k, old in enumerate(s.vertices):
        nearest = nearest | ((new.a == old.a) & (new.b == old.b) & (s.count > k))
    point, count, vertices, inside = _grown(s.count, s.vertices, new)
    inside = inside & (ahead < 0)
    # Where faces are nearly parallel a vertex that is ahead changes the square by less than its rounding.
    grown, ulp = dot(point, point), float(jnp.finfo(square.dtype).eps)
    closer = (grown < square) | ((ahead > 0) & (grown <= square * (1.0 + 8.0 * ulp)))
    better = ~nearest & ~inside & (square > touching) & closer
    # A point that cannot be improved any more, though no plane separates there, is the origin to rounding.
    overlap = (square <= touching) | (~nearest & (inside | (~better & (ahead <= 0))))
    kept = _where(better, (point, count, vertices), (s.point, s.count, s.vertices))
    return better.astype(square.dtype), overlap.astype(square.dtype), *kept


def _grown(
    count: Array, old: tuple[_Vertex, _Vertex, _Vertex], new: _Vertex
) -> tuple[Vector, Array, tuple[_Vertex, _Vertex, _Vertex], Array]:
    """The simplex at another vertex whose point is nearest to the origin, and whether the origin is inside of all."""
    p = new.w
    sides = [sub(v.w, p) for v in old]
    zero = jnp.zeros_like(p[0])
    # The square of the distance, the weights of two old vertices, and which these are.
    best = dot(p, p), zero, zero, zero, zero, zero + 1

    def nearer(best: tuple, exists: Array, x: Array, y: Array, k: int, m: int, count: int) -> tuple:
        point = add_scaled(add_scaled(p, x, sides[k]), y, sides[m])
        square = jnp.where(exists, dot(point, point), jnp.inf)
        return _where(square < best[0], (square, x, y, *(zero + n for n in (k, m, count))), best)

    for k in _EDGES:
        exists, x = _on_edge(p, sides[k])
        best = nearer(best, exists, x, zero, k, k, 2)
    inside = count == 3
    for k, m in _TRIANGLES:
        n = cross(sides[k], sides[m])
        best = nearer(best, *_on_triangle(p, sides[k], sides[m], n), k, m, 3)
        # The origin and the vertex that is left out are on one side.
        inside = inside & (dot(n, sides[3 - k - m]) * dot(n, p) < 0)
    _, x, y, k, m, count = best
    second, third = (_where(at == 0, old[0], _where(at == 1, old[1], old[2])) for at in (k, m))
    point = add_scaled(add_scaled(p, x, sub(second.w, p)), y, sub(third.w, p))
    return point, count, (new, second, third), inside


def _where(condition: Array, x: T, y: T) -> T:
    return jax.tree.map(lambda p, q: jnp.where(condition, p, q), x, y)


def _on_edge(p: Vector, e: Vector) -> tuple[Array, Array]:
    """Whether the foot of the origin on the line from p along e is between its ends, and the weight of e there."""
    square, along = dot(e, e), -dot(p, e)
    inside = (along > 0) & (along < square)
    return inside, jnp.where(inside, along, 0.0) / jnp.where(inside, square, 1.0)


def _on_triangle(p: Vector, e: Vector, f: Vector, n: Vector) -> tuple[Array, Array, Array]:
    """Whether the foot of the origin on the plane is in the triangle of p, p + e and p + f, and the weights of both."""
    square = dot(n, n)
    back = cross(p, n)
    x, y = dot(back, f), -dot(back, e)
    flat = square <= rounding(square) * dot(e, e) * dot(f, f)
    inside = ~flat & (x > 0) & (y > 0) & (x + y < square)
    per = 1.0 / jnp.where(inside, square, 1.0)
    return inside, jnp.where(inside, x, 0.0) * per, jnp.where(inside, y, 0.0) * per
