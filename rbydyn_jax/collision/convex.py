r"""Exact signed distance of capsules, boxes and cylinders, with witness points and derivatives.

The separation of two convex solids along a unit vector is $s(n) = n \cdot (c_a - c_b) - h_a(n) - h_b(n)$, where $h$
is the reach of a solid from its centre. Their signed distance is the largest: the gap where they are apart, and the
opposite of the shortest way out where they overlap [Cameron and Culley 1986]. For these solids the best direction is
one of few that can be written down: normals of faces and cross products of edges, which alone decide where polytopes
overlap (separating axes); from corners to what is nearest to them; and, of a cylinder, along its axis, away from it,
and between its rim and an edge or another rim (`rims`). The largest separation along all of them is the distance.

Whatever their direction, none is larger than the distance: an error in a direction never hides a collision. The
derivatives are those of the separation along the best direction, which is a function of the solids.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.batch_last import broadcast_leading
from ..xla.control_flow import fori_loop
from ..xla.fusion import kernel
from .rims import Rim, rim_edge_directions, rim_rim_directions
from .solids import Placed, Solid, following, solid
from .vectors import (
    add,
    add_scaled,
    any_perpendicular,
    combined,
    cross,
    direction,
    dot,
    larger,
    map_components,
    otherwise,
    perpendicular,
    scaled,
    sub,
    where,
)
from .witness import Witness

Separation = Callable[[Solid, Solid, Sequence[Array]], Array]
Choice = tuple[float, ...]
_SIGNS = (1.0, -1.0)

_ALTERNATIONS = 60


def convex_convex(a: Placed, b: Placed) -> Witness:
    """The signed distance of two shapes as their `gathered` gives them, and its witness points.

    The derivatives of the distance by the position of a solid and by its rotation about its centre are the normal, and
    the moment of the normal at the witness point; from them the points are found. Where faces or edges lie on each
    other, so that many points are nearest, one is found by alternating projections.
    """
    first, second = solid(a), solid(b)
    core, normal, point_a, point_b = core_witness(first, second)
    on_surfaces = add_scaled(point_a, -first.radius, normal), add_scaled(point_b, second.radius, normal)
    return Witness(core - first.radius - second.radius, *on_surfaces, point_a, point_b)


def convex_distance(a: Placed, b: Placed) -> Array:
    """The distance of `convex_convex` alone, for which less is traced."""
    first, second = solid(a), solid(b)
    return core_distance(first, second) - first.radius - second.radius


def core_witness(first: Solid, second: Solid) -> tuple[Array, Vector, Vector, Vector]:
    """The signed distance of two cores, the normal from the second to the first, and the witness points."""

    def moved(by: Vector, turn_a: Vector, turn_b: Vector) -> Array:
        return core_distance(first._replace(center=add(first.center, by)).turned(turn_a), second.turned(turn_b))

    still = map_components(jnp.zeros_like, first.center)
    core, by_motions = jax.vjp(moved, still, still, still)
    normal, moment_a, moment_b = by_motions(jnp.ones_like(core))
    point_a = add(add_scaled(first.center, -first.reach(normal), normal), cross(normal, moment_a))
    point_b = sub(add_scaled(second.center, second.reach(normal), normal), cross(normal, moment_b))
    point_a, point_b = _on_both(first, second, core, normal, point_a, point_b)
    return core, normal, point_a, point_b


def core_distance(a: Solid, b: Solid) -> Array:
    """The signed distance of the cores of two solids."""
    families = _families(a, b)
    best = [_best(separation, choices, a, b) for separation, choices in families]

    def largest(a: Solid, b: Solid, best: Sequence[Array]) -> Array:
        # Where rims are sought a program is several loops, each of which might round what they compare in another way.
        once = kernel if a.disc is not None or b.disc is not None else lambda f: f
        rows = zip(families, best, strict=True)
        return functools.reduce(larger, [once(f)(a, b, _row(choices, k)) for (f, choices), k in rows])

    def value_and_slopes(a: Solid, b: Solid, best: Sequence[Array]) -> tuple[Array, tuple[Solid, Solid]]:
        value, pull_back = jax.vjp(lambda a, b: largest(a, b, best), a, b)
        return value, pull_back(jnp.ones_like(value))

    @jax.custom_jvp
    def distance(a: Solid, b: Solid, best: Sequence[Array]) -> Array:
        return kernel(largest)(a, b, best)

    @functools.partial(distance.defjvp, symbolic_zeros=True)
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
        # All leave one kernel: XLA:CPU would make one for each number that the derivative of `largest` keeps.
        a, b, best = primals
        value, by_each = kernel(value_and_slopes)(a, b, best)
        pairs = zip(jax.tree.leaves(by_each), jax.tree.leaves(tangents[:2]), strict=True)
        terms = [slope * by for slope, by in pairs if not isinstance(by, SymbolicZero)]
        return value, functools.reduce(operator.add, terms)

    return distance(a, b, best)


def _best(separation: Separation, choices: Sequence[Choice], a: Solid, b: Solid) -> Array:
    """The member of a family with the largest separation, as a number that counts as constant."""
    if len(choices) == 1:
        return jnp.zeros_like(a.radius)
    rows = [jnp.asarray(broadcast_leading(x, a.radius[None]), a.radius.dtype) for x in np.array(choices).T]
    separations = kernel(separation)(*lax.stop_gradient(jax.tree.map(lambda x: x[None], (a, b))), rows)
    return jnp.argmax(separations, axis=0).astype(a.radius.dtype)


def _row(choices: Sequence[Choice], index: Array) -> list[Array]:
    """The numbers of one member of a family, by comparisons: each gather would be a loop of its own."""

    def entry(column: np.ndarray) -> Array:
        found = jnp.full_like(index, column[0])
        for k in np.flatnonzero(column != column[0]):
            found = where(index == float(k), float(column[k]), found)
        return found

    return [entry(column) for column in np.array(choices).T]


def _along(a: Solid, b: Solid, *directions: Vector) -> Array:
    """The largest separation along some unit vectors; those that are zero do not count."""

    def along(n: Vector) -> Array:
        c = dot(n, sub(a.center, b.center))
        exists = (n[0] != 0) | (n[1] != 0) | (n[2] != 0)
        return where(exists, where(c < 0, -c, c) - a.reach(n) - b.reach(n), jnp.full_like(c, -jnp.inf))

    return functools.reduce(larger, map(along, directions))


def _families(a: Solid, b: Solid) -> list[tuple[Separation, list[Choice]]]:
    """The directions that may be best, by kind: the separation along one of them, and the numbers that choose it."""
    axes = np.eye(len(a.halves) + len(b.halves)).tolist()
    found: list[tuple[Separation, list[Choice]]] = [(_across, [(*g, *h) for g, h in itertools.combinations(axes, 2)])]
    found += _features(a, b)
    found += [(_reversed(separation), choices) for separation, choices in _features(b, a)]
    if a.disc is not None and b.disc is not None:
        found.append((_between_rims, list(itertools.product(_SIGNS, _SIGNS))))
    return found


def _features(a: Solid, b: Solid) -> list[tuple[Separation, list[Choice]]]:
    """The families of the corners of the first, or of its axis and its rims."""
    if a.disc is None:
        return [(_from_corner, list(itertools.product(_SIGNS, repeat=len(a.halves))))]
    edges: list[Choice] = []
    for k in range(len(b.halves)):
        signs = [(0.0,) if i == k or b.disc is not None else _SIGNS for i in range(len(b.halves))]
        edges += [(*np.eye(len(b.halves))[k].tolist(), *middle) for middle in itertools.product(*signs)]
    return [(_along_axis, [()]), (_from_rim, [(end, *edge) for end in _SIGNS for edge in edges])]


def _reversed(separation: Separation) -> Separation:
    return lambda a, b, choice: separation(b, a, choice)


def _across(a: Solid, b: Solid, choice: Sequence[Array]) -> Array:
    """Along the normal of a face, or of two edges: perpendicular to two of all half axes."""
    edges = (*a.edges, *b.edges)
    g, h = combined(choice[: len(edges)], edges), combined(choice[len(edges) :], edges)
    return _along(a, b, direction(cross(g, h), dot(g, g) * dot(h, h)))


def _along_axis(a: Solid, b: Solid, choice: Sequence[Array]) -> Array:
    """Along the axis of the first, a cylinder."""
    assert a.disc is not None
    return _along(a, b, a.disc.axis)


def _from_corner(a: Solid, b: Solid, choice: Sequence[Array]) -> Array:
    """From a corner to what is nearest, and away from the axis of a cylinder."""
    p = a.corner(choice)
    scale = dot(p, p) + dot(b.center, b.center)
    gap = following(direction(sub(p, b.nearest(p)), scale), a, b)
    if b.disc is None:
        return _along(a, b, gap)
    away = direction(perpendicular(sub(p, b.center), b.disc.axis), scale)
    return _along(a, b, gap, following(otherwise(away, any_perpendicular(b.disc.axis)), a, b))


def _from_rim(a: Solid, b: Solid, choice: Sequence[Array]) -> Array:
    """Between a rim of the first and an edge of the second, or its axis."""

    def chosen(a: Solid, b: Solid, choice: Sequence[Array]) -> tuple[Rim, Vector, Vector]:
        count = len(b.halves)
        if b.disc is not None:
            return _rim(a, choice[0]), b.center, b.disc.axis
        edge = combined(choice[1 : 1 + count], b.halves)
        return _rim(a, choice[0]), b.corner(choice[1 + count :]), direction(edge, dot(edge, edge))

    return _along(a, b, *(following(n, a, b) for n in rim_edge_directions(*kernel(chosen)(a, b, choice))))


def _between_rims(a: Solid, b: Solid, choice: Sequence[Array]) -> Array:
    """Between two rims."""

    def chosen(a: Solid, b: Solid, choice: Sequence[Array]) -> tuple[Rim, Rim]:
        return _rim(a, choice[0]), _rim(b, choice[1])

    return _along(a, b, *(following(n, a, b) for n in rim_rim_directions(*kernel(chosen)(a, b, choice))))


def _rim(a: Solid, end: Array) -> Rim:
    """The rim at one end of a cylinder."""
    assert a.disc is not None
    return Rim(a.corner([end]), scaled(end, a.disc.axis), a.disc.radius)


def _on_both(a: Solid, b: Solid, core: Array, normal: Vector, p: Vector, q: Vector) -> tuple[Vector, Vector]:
    """Points of both cores at the distance that is known, from points that are so unless many are."""
    shift = lax.stop_gradient(scaled(core, normal))
    a, b, n, start = lax.stop_gradient((a, b, normal, p))
    # A point or a disc, if it meets the other face at all, does so where that is nearest to its middle.
    on_a, a_has_edges = a.face(n)
    on_b, b_has_edges = b.face(scaled(-jnp.ones_like(core), n))
    at_b = add(on_b.nearest(sub(on_a.center, shift)), shift)
    start = map_components(lambda x, y: where(a_has_edges, x, y), start, at_b)
    start = map_components(lambda x, y: where(b_has_edges, x, y), start, on_a.nearest(add(on_b.center, shift)))

    def alternated(_: int, x: Vector) -> Vector:
        return a.nearest(add(b.nearest(sub(x, shift)), shift))

    found = fori_loop(0, _ALTERNATIONS, alternated, start)
    on_b = b.nearest(sub(found, shift))
    return (
        map_components(lambda x, y: x + lax.stop_gradient(y - x), p, found),
        map_components(lambda x, y: x + lax.stop_gradient(y - x), q, on_b),
    )
