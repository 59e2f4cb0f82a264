"""Exact signed distances of convex hulls from capsules, boxes, hulls, cylinders and half-spaces; of one pair each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.convex_hull import PlacedConvexHulls
from ..shapes.cylinder import PlacedCylinders
from ..shapes.half_space import PlacedHalfSpaces
from .gjk import apart
from .penetration import overlapping
from .polytopes import Polytopal, Polytope, Simplex, polytope, simplex_core, simplex_witness
from .rims import Rim, rim_edge_directions
from .solids import Solid, following, solid
from .vectors import (
    add,
    add_scaled,
    any_perpendicular,
    cross,
    direction,
    dot,
    larger,
    map_components,
    otherwise,
    perpendicular,
    scaled,
    sub,
)
from .witness import Witness

T = TypeVar("T")
U = TypeVar("U")


def polytope_polytope(a: Polytopal, b: Polytopal) -> Witness:
    """The signed distance of two capsules, boxes or hulls, and its witness points; see `polytopes`."""
    first, second = polytope(a), polytope(b)
    return simplex_witness(first, second, _simplex(first, second))


def polytope_core(a: Polytopal, b: Polytopal) -> tuple[Array, Vector, Vector, Vector]:
    """The distance without the balls, the normal from the second to the first, and the nearest points."""
    first, second = polytope(a), polytope(b)
    return simplex_core(first, second, _simplex(first, second))


def _simplex(first: Polytope, second: Polytope) -> Simplex:
    still = lax.stop_gradient((first, second))
    gap, overlap = apart(*still)
    depth = overlapping(*still, overlap)
    return jax.tree.map(lambda x, y: jnp.where(overlap, x, y), depth, gap)


def hull_half_space(a: PlacedConvexHulls, b: PlacedHalfSpaces) -> Witness:
    """How far the deepest vertex of a hull is above the plane."""
    hull = polytope(a)
    deepest = hull.at(jnp.argmin(lax.stop_gradient(hull.along(b.normal))))
    height = dot(sub(deepest, b.point), b.normal)
    foot = add_scaled(deepest, -height, b.normal)
    return Witness(height, deepest, foot, deepest, foot)


def hull_cylinder(a: PlacedConvexHulls, b: PlacedCylinders) -> Witness:
    """The signed distance of a hull and a cylinder, and its witness points.

    As in `convex`: the largest separation along the normals of the faces, the axis, what is perpendicular to an edge
    and the axis, from a vertex to the cylinder, and between an edge and a rim. The points follow from the derivatives
    by motions of the solids; where a face or an edge lies along the cylinder, they are the middle of its end or its
    side, and the foot of that in the plane of the face.
    """
    distance, _, point_a, point_b = cylinder_core(*in_one_batch(a, b))
    return Witness(distance, point_a, point_b, point_a, point_b)


def in_one_batch(a: T, b: U) -> tuple[T, U]:
    """Two shapes, all of whose numbers are in a batch: kernels want that, also where `jax.vmap` has only one in it."""
    zero = 0.0 * lax.stop_gradient(sum(jnp.ravel(x)[0] for x in jax.tree.leaves((a, b))))
    return jax.tree.map(lambda x: x + zero, (a, b))


def cylinder_core(a: PlacedConvexHulls, b: PlacedCylinders) -> tuple[Array, Vector, Vector, Vector]:
    """The distance of a hull and a cylinder, the normal from the second to the first, and the nearest points."""
    hull, other = polytope(a), solid(b)
    zero = 0.0 * lax.stop_gradient(a.position[0])  # in the batch of the shapes, too

    def moved(by: Vector, turn_a: Vector, turn_b: Vector) -> Array:
        return _hull_cylinder(_moved(hull, a.position, by, turn_a), other.turned(turn_b))

    still = zero, zero, zero
    distance, by_motions = jax.vjp(moved, still, still, still)
    n, moment_a, moment_b = by_motions(1.0 + zero)
    lowest = jnp.min(hull.along(n)) - dot(n, a.position)
    point_a = add(add_scaled(a.position, lowest, n), cross(n, moment_a))
    point_b = sub(add_scaled(other.center, other.reach(n), n), cross(n, moment_b))
    return distance, n, point_a, point_b


def _moved(hull: Polytope, about: Vector, by: Vector, turn: Vector) -> Polytope:
    """Shifted, and turned about a point by a rotation vector that is infinitesimal."""
    one = jnp.ones_like(hull.vertices[0])
    arm = map_components(lambda x, o: x - o, hull.vertices, about)
    turned = cross(map_components(lambda t: t * one, turn), arm)
    return hull._replace(vertices=map_components(lambda x, t, d: x + t + d, hull.vertices, turned, by))


def _hull_cylinder(hull: Polytope, cylinder: Solid) -> Array:
    disc = cylinder.disc
    assert disc is not None
    axis = disc.axis

    def along_face(face: Array) -> list[Vector]:
        p, q, r = (hull.at(face[k]) for k in range(3))
        e, f = sub(q, p), sub(r, p)
        return [direction(cross(e, f), dot(e, e) * dot(f, f))]

    def from_vertex(vertex: Array) -> list[Vector]:
        p = hull.at(vertex)
        scale = dot(p, p) + dot(cylinder.center, cylinder.center)
        away = direction(perpendicular(sub(p, cylinder.center), axis), scale)
        return [direction(sub(p, cylinder.nearest(p)), scale), otherwise(away, any_perpendicular(axis))]

    def at_edge(choice: tuple[Array, Array]) -> list[Vector]:
        edge, end = choice
        p, q = hull.at(edge[0]), hull.at(edge[1])
        e = sub(q, p)
        unit = direction(e, dot(e, e))
        rim = Rim(cylinder.corner([end]), scaled(end, axis), disc.radius)
        return [direction(cross(unit, axis), jnp.ones_like(end)), *rim_edge_directions(rim, p, unit)]

    def separation(directions: Callable[[Any], list[Vector]], choice: Any) -> Array:
        found = [following(n, cylinder) for n in directions(choice)]
        return functools.reduce(larger, [_separation(hull, cylinder, n) for n in found])

    vertices = jnp.arange(hull.vertices[0].shape[0], dtype=jnp.int32)
    count = hull.edges.shape[0]
    ends = jnp.repeat(jnp.array([1.0, -1.0], axis[0].dtype), count)
    families = (along_face, hull.faces), (from_vertex, vertices), (at_edge, (jnp.tile(hull.edges, (2, 1)), ends))
    best = [_separation(hull, cylinder, axis)]
    for directions, choices in families:
        every = lax.stop_gradient(jax.vmap(functools.partial(separation, directions))(choices))
        chosen = jnp.argmax(every)
        best.append(separation(directions, jax.tree.map(lambda x, chosen=chosen: x[chosen], choices)))
    return functools.reduce(larger, best)


def _separation(hull: Polytope, cylinder: Solid, n: Vector) -> Array:
    """Along a unit vector, on the side where it is larger; minus infinity along zero."""
    heights, reach, middle = hull.along(n), cylinder.reach(n), dot(n, cylinder.center)
    above, below = jnp.min(heights) - middle - reach, middle - reach - jnp.max(heights)
    exists = (n[0] != 0) | (n[1] != 0) | (n[2] != 0)
    return jnp.where(exists, larger(above, below), -jnp.inf)
