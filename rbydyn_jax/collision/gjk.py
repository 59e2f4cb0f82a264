r"""The simplex of two polytopes that are apart, by the algorithm of Gilbert, Johnson and Keerthi [1988].

The vertex of the differences $a - b$ that is farthest against the nearest point found so far joins the simplex, and
the nearest point of the larger simplex follows: on one of its edges or triangles at the new vertex, or the origin is
inside, and the polytopes overlap. All candidates are computed, and the nearest counts: no threshold tells the case.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.fusion import kernel
from .polytopes import Polytope, Simplex
from .vectors import add_scaled, cross, dot, rounding, sub, tiny

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
    """A simplex of three differences, of which the first `count` are in use, and its point nearest to the origin."""

    step: Array
    goes_on: Array
    overlap: Array
    point: Vector
    count: Array
    vertices: tuple[_Vertex, _Vertex, _Vertex]


def apart(a: Polytope, b: Polytope) -> tuple[Simplex, Array]:
    """The simplex of the nearest points of two polytopes, and whether they overlap or touch instead; of one pair."""
    zero = jnp.zeros((), jnp.int32)
    first = _Vertex(sub(a.at(zero), b.at(zero)), zero, zero)
    scale = dot(a.at(zero), a.at(zero)) + dot(b.at(zero), b.at(zero))
    touching = jnp.maximum(rounding(scale) ** 2 * scale, tiny(scale))
    start = _State(zero, jnp.array(True), jnp.array(False), first.w, zero + 1, (first, first, first))

    def step(s: _State) -> _State:
        square = dot(s.point, s.point)
        i, j = (jnp.asarray(k, jnp.int32) for k in (jnp.argmin(a.along(s.point)), jnp.argmax(b.along(s.point))))
        new = _Vertex(sub(a.at(i), b.at(j)), i, j)
        ahead = dot(s.point, new.w)
        nearest = square - ahead <= rounding(square) * square
        for k, old in enumerate(s.vertices):
            nearest = nearest | ((i == old.a) & (j == old.b) & (s.count > k))
        point, count, vertices, inside = kernel(_grown)(s.count, s.vertices, new)
        inside = inside & (ahead < 0)
        better = ~nearest & ~inside & (square > touching) & (dot(point, point) < square)
        # A point that cannot be improved any more, though no plane separates there, is the origin to rounding.
        overlap = (square <= touching) | (~nearest & (inside | (~better & (ahead <= 0))))
        kept = _where(better, (point, count, vertices), (s.point, s.count, s.vertices))
        return _State(s.step + 1, better, overlap, *kept)

    found = lax.while_loop(lambda s: s.goes_on & (s.step < _STEPS), step, start)
    at_a, at_b = (jnp.stack([getattr(v, side) for v in found.vertices]) for side in "ab")
    return Simplex(at_a, at_b, found.count, found.point), found.overlap


def _grown(
    count: Array, old: tuple[_Vertex, _Vertex, _Vertex], new: _Vertex
) -> tuple[Vector, Array, tuple[_Vertex, _Vertex, _Vertex], Array]:
    """The simplex at another vertex whose point is nearest to the origin, and whether the origin is inside of all."""
    p = new.w
    sides = [sub(v.w, p) for v in old]
    zero = jnp.zeros_like(p[0])
    # The square of the distance, the weights of two old vertices, and which these are.
    best = dot(p, p), zero, zero, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), jnp.ones((), jnp.int32)

    def nearer(best: tuple, exists: Array, x: Array, y: Array, k: int, m: int, count: int) -> tuple:
        point = add_scaled(add_scaled(p, x, sides[k]), y, sides[m])
        square = jnp.where(exists, dot(point, point), jnp.inf)
        numbers = (jnp.asarray(n, jnp.int32) for n in (k, m, count))
        return _where(square < best[0], (square, x, y, *numbers), best)

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
