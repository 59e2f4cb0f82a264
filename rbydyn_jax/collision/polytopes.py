r"""Capsules, boxes and convex hulls as polytopes with a ball around, and their distance once its simplex is known.

The points $a - b$ of two polytopes are a polytope, whose point nearest to the origin tells their distance where they
are apart, and whose face nearest to the origin the depth where they overlap [Cameron and Culley 1986]. Both lie in the
plane, on the line or in the point of three vertices $w_k = a_k - b_k$ at most: with the weights $\lambda_k$ of the
foot of the origin there and the unit normal n, the distance is $n \cdot \sum_k \lambda_k w_k$. Which vertices these
are counts as constant, and since the foot is optimal, the derivative is that with n and the weights held fixed
(Danskin); both are functions of the vertices, so that the second derivative is exact as well. Of polytopes that
overlap n is always the normal of the plane of all three, also where one or two of them make up the foot.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.box import PlacedBoxes
from ..shapes.capsule import PlacedCapsules
from ..shapes.convex_hull import PlacedConvexHulls
from ..xla.control_flow import fori_loop
from ..xla.fusion import kernel
from ..xla.loops import in_kernels
from .vectors import (
    add,
    add_scaled,
    combined,
    components,
    cross,
    dot,
    map_components,
    norm,
    rounding,
    scaled,
    sub,
    tiny,
)
from .witness import Witness

Polytopal = PlacedCapsules | PlacedBoxes | PlacedConvexHulls
Three = tuple[Vector, Vector, Vector]
Weights = tuple[Array, Array, Array]
_Lowest = tuple[Array, Array, Vector]  # its height, its index and its place

_TOGETHER = 32  # vertices that are compared without a loop
_SIGNS: list[tuple[int, ...]] = list(itertools.product((1, -1), repeat=3))  # of the corners of a box


def _corner(*signs: int) -> int:
    return _SIGNS.index(tuple(map(int, signs)))


def _box_topology() -> tuple[np.ndarray, np.ndarray]:
    faces, edges = [], []
    for axis, sign in itertools.product(range(3), (1, -1)):
        ring = [(1, 1), (-1, 1), (-1, -1)] if sign > 0 else [(-1, -1), (-1, 1), (1, 1)]
        faces.append([_corner(*np.roll([sign, p, q], axis)) for p, q in ring])
        # the edges along this axis, each once, by the sign of the next one
        for other in (1, -1):
            at = [np.roll([end, sign, other], axis) for end in (1, -1)]
            beside = [np.roll([1, -sign, other], axis), np.roll([1, sign, -other], axis)]
            edges.append([_corner(*x) for x in (*at, *beside)])
    return np.array(faces), np.array(edges)


_BOX_FACES, _BOX_EDGES = _box_topology()


class Polytope(NamedTuple):
    """One polytope with a ball around each of its points.

    Attributes:
        vertices: Each component an array (v,) [m].
        faces: Three vertices of each face (f, 3), counterclockwise seen from outside.
        edges: Two vertices, and one more of each of both faces (e, 4).
        sharp: Whether the faces of each edge are in two planes (e,), to rounding; where they are not, it is no edge.
        radius: Of the ball [m].
    """

    vertices: Vector
    faces: Array
    edges: Array
    sharp: Array
    radius: Array

    def at(self, index: Array) -> Vector:
        """Some of the vertices."""
        return map_components(lambda x: x[index], self.vertices)

    def along(self, n: Vector) -> Array:
        """The vertices' coordinates along a direction (v,)."""
        x, y, z = self.vertices
        return x * n[0] + y * n[1] + z * n[2]


def lowest(vertices: Vector, n: Vector) -> tuple[Array, Vector]:
    """Of vertices (v, ...) in lanes the index and the place of the first that is least far along directions n (...).

    The index is a float, so that in a `kernel` one loop computes both, and rounding cannot part them. Many vertices are
    a loop over some of them at a time: a program does not grow with their number.
    """
    count = vertices[0].shape[0]
    place = map_components(lambda x: x[0], vertices)
    height = dot(place, n)
    best = height, jnp.zeros_like(height), place
    if count <= _TOGETHER:
        return _lower(best, map_components(lambda x: x[1:], vertices), 1, n)[1:]

    def step(k: Array, best: _Lowest) -> _Lowest:
        start = jnp.minimum(in_kernels(k, height.size) * _TOGETHER, count - _TOGETHER)
        some = map_components(lambda x: lax.dynamic_slice_in_dim(x, start, _TOGETHER), vertices)
        return kernel(_lower)(best, some, start.astype(height.dtype), n)

    best = height, best[1], map_components(lambda x: jnp.broadcast_to(x, height.shape), place)
    return fori_loop(jnp.int32(0), jnp.int32(-(-count // _TOGETHER)), step, best)[1:]


def _lower(best: _Lowest, vertices: Vector, first: Array | int, n: Vector) -> _Lowest:
    """The best, or another vertex that is lower; `first` is the index of the first of these."""
    height, index, place = best
    for k in range(vertices[0].shape[0]):
        x = map_components(lambda c, k=k: c[k], vertices)
        other = dot(x, n)
        less = other < height
        height, index = jnp.where(less, other, height), jnp.where(less, first + k, index)
        place = map_components(lambda p, q, less=less: jnp.where(less, p, q), x, place)
    return height, index, place


class Simplex(NamedTuple):
    """Three vertices of each of two polytopes, and how many count.

    Attributes:
        a: Indices of the vertices of the first (3,).
        b: Of the second (3,).
        count: 3 if the foot of the origin is in the plane, 2 if on the line of the first two pairs, 1 in a point.
        flat: Whether the normal is that of the plane of all three, and not the direction of the foot.
        facing: About the direction of the normal, from the second to the first; it tells the sides of a plane.
    """

    a: Array
    b: Array
    count: Array
    flat: Array
    facing: Vector


def polytope(placed: Polytopal) -> Polytope:
    """The polytope of one shape as its `gathered` gives it."""
    if isinstance(placed, PlacedCapsules):
        ends = map_components(lambda p, q: jnp.stack([p, q]), placed.start, placed.end)
        faces, edges = np.zeros((0, 3), np.int32), np.array([[0, 1, 0, 0]], np.int32)
        return Polytope(ends, jnp.asarray(faces), jnp.asarray(edges), jnp.ones(1, bool), placed.radius)
    no_ball = jnp.zeros_like(placed.axes[0][0])
    if isinstance(placed, PlacedBoxes):
        halves = [scaled(h, axis) for h, axis in zip(placed.half, placed.axes, strict=True)]
        corners = [add(placed.center, combined([jnp.asarray(s, no_ball.dtype) for s in k], halves)) for k in _SIGNS]
        vertices = map_components(lambda *x: jnp.stack(x), *corners)
        faces, edges = (jnp.asarray(x, jnp.int32) for x in (_BOX_FACES, _BOX_EDGES))
        return Polytope(vertices, faces, edges, jnp.ones(len(edges), bool), no_ball)
    vertices = add(placed.position, combined(components(placed.vertices), placed.axes))
    faces, edges = (lax.stop_gradient(x).astype(jnp.int32) for x in (placed.faces, placed.edges))
    return Polytope(vertices, faces, edges, _are_sharp(placed.vertices, edges), no_ball)


def _are_sharp(vertices: Array, edges: Array) -> Array:
    start, *others = (components(lax.stop_gradient(vertices)[edges[:, k]]) for k in range(4))
    e, f, g = (sub(x, start) for x in others)
    volume = dot(cross(e, f), g)
    return volume * volume > rounding(volume) ** 2 * dot(e, e) * dot(f, f) * dot(g, g)


def simplex_witness(a: Polytope, b: Polytope, simplex: Simplex) -> Witness:
    """The distance and the nearest points of two polytopes, whose simplex is known."""
    core, normal, on_a, on_b = simplex_core(a, b, simplex)
    surfaces = add_scaled(on_a, -a.radius, normal), add_scaled(on_b, b.radius, normal)
    return Witness(core - a.radius - b.radius, *surfaces, on_a, on_b)


def simplex_core(a: Polytope, b: Polytope, simplex: Simplex) -> tuple[Array, Vector, Vector, Vector]:
    """The distance without the balls, the normal from the second to the first, and the nearest points."""
    corners = _three(a.at(simplex.a)), _three(b.at(simplex.b))
    return simplex_distance(*corners, simplex.count, simplex.facing, simplex.flat)


def simplex_distance(
    a: Three, b: Three, count: Array, facing: Vector, flat: Array | None = None
) -> tuple[Array, Vector, Vector, Vector]:
    """The distance of the polytopes of these vertices, its normal, and the points of both, for any one shape."""
    flat = count == 3 if flat is None else flat
    normal, weights = _normal_and_weights(a, b, count, facing, flat)
    return _distance(a, b, count, facing, flat), normal, combined(weights, a), combined(weights, b)


@jax.custom_jvp
def _distance(a: Three, b: Three, count: Array, facing: Vector, flat: Array) -> Array:
    normal, weights = _normal_and_weights(a, b, count, facing, flat)
    w = [sub(p, q) for p, q in zip(a, b, strict=True)]
    return jnp.where(flat, dot(normal, w[0]), norm(combined(weights, w)))


@_distance.defjvp
def _distance_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    normal, weights = _normal_and_weights(*primals)
    by_a, by_b = (combined(weights, moves) for moves in tangents[:2])
    return _distance(*primals), dot(normal, sub(by_a, by_b))


def _normal_and_weights(a: Three, b: Three, count: Array, facing: Vector, flat: Array) -> tuple[Vector, Weights]:
    """The unit normal, and the weights of the vertices whose sum is nearest to the origin."""
    w = [sub(p, q) for p, q in zip(a, b, strict=True)]
    n, weights = foot_weights((w[0], w[1], w[2]), count)
    gap = map_components(lambda p, q: jnp.where(flat, p, q), n, combined(weights, w))
    turned = flat & (dot(n, facing) < 0)
    square = dot(gap, gap)
    length = jnp.sqrt(jnp.where(square > tiny(square), square, jnp.ones_like(square)))
    return map_components(lambda x: jnp.where(turned, -x, x) / length, gap), weights


def foot_weights(w: Three, count: Array) -> tuple[Vector, Weights]:
    """A normal of the plane of three points, and the weights of the foot of the origin on what `count` of them span."""
    e, f, back = sub(w[1], w[0]), sub(w[2], w[0]), scaled(-jnp.ones_like(w[0][0]), w[0])
    n = cross(e, f)
    nn, ee = dot(n, n), dot(e, e)
    plane, line = count == 3, count == 2
    per_n, per_e = _inverse(nn, plane), _inverse(ee, line)
    one, zero = jnp.ones_like(nn), jnp.zeros_like(nn)
    second = jnp.where(plane, dot(cross(back, f), n) * per_n, jnp.where(line, dot(back, e) * per_e, zero))
    third = jnp.where(plane, dot(cross(e, back), n) * per_n, zero)
    return n, (one - second - third, second, third)


def _inverse(x: Array, used: Array) -> Array:
    usable = used & (x > tiny(x))
    return jnp.where(usable, 1.0 / jnp.where(usable, x, jnp.ones_like(x)), jnp.zeros_like(x))


def _three(x: Vector) -> Three:
    first, second, third = (map_components(lambda p, k=k: p[k], x) for k in range(3))
    return first, second, third
