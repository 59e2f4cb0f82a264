r"""Distances from obstacles that are fields: height maps and grids of signed distances; of one pair each.

A field tells how far a point is from the obstacle, and a shape is as far as the nearest of its points. Of a capsule, a
box or a cylinder these are sought on a lattice over its core, then on two finer ones about the best point, and where
the core is deepest against the slope there, which is exact over a plane; of a convex hull among its vertices, the
middles of its edges and nine points of each triangle of its surface, and from the best four of these by shorter and
shorter steps towards vertices. What is found is the field at a point of the shape: not less than the least value, and
larger by what the field can fall between the points of the lattice. Where the point lies in the shape counts as
constant (Danskin).
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.convex_hull import PlacedConvexHulls
from ..shapes.distance_grid import PlacedDistanceGrids
from ..shapes.height_map import PlacedHeightMaps
from ..xla.control_flow import fori_loop
from .polytopes import polytope
from .solids import Placed, Solid, solid
from .vectors import (
    add,
    add_scaled,
    any_perpendicular,
    combined,
    cross,
    direction,
    dot,
    map_components,
    otherwise,
    safe_norm,
    scaled,
    sub,
)
from .witness import Witness

Field = PlacedHeightMaps | PlacedDistanceGrids
_COUNT = {1: 17, 3: 7}  # points along each direction of the lattice, by their number
_ZOOMS = 2
_ON_FACES = (0.15, 0.4, 0.7)  # from the middle of an edge to the corner across: nine points of each triangle of a hull
_STARTS, _STEPS = 4, 24  # of these points, and from each, of a hull
_SHARE, _SHORTER = 0.125, 0.6  # of the way to a vertex: at first, and where no step leads nearer


def field_value(field: Field, p: Vector) -> Array:
    """The signed distance of points from one obstacle, or a lower bound of it."""
    local = in_axes(field, p)
    return _above(field, local) if isinstance(field, PlacedHeightMaps) else _in_grid(field, local)


def in_axes(field: Field, p: Vector) -> Vector:
    """Points in the axes of an obstacle, from its origin."""
    gap = sub(p, map_components(lambda x: jnp.broadcast_to(x, p[0].shape), field.origin))
    x, y, z = (dot(gap, map_components(lambda x: jnp.broadcast_to(x, p[0].shape), axis)) for axis in field.axes)
    return x, y, z


def solid_field(a: Placed, b: Field) -> Witness:
    """The distance of a capsule, a box or a cylinder from a field, and the points of both."""
    body = solid(a)
    still, field = lax.stop_gradient((body, b))
    size = 3 if len(body.halves) == 3 or body.disc is not None else 1
    lattice = np.array(list(itertools.product(np.linspace(-1.0, 1.0, _COUNT[size]), repeat=size)))
    dtype = body.center[0].dtype
    best, reach = jnp.zeros(size, dtype), 1.0
    for _ in range(1 + _ZOOMS):
        places = jnp.clip(best[None] + reach * jnp.asarray(lattice, dtype), -1.0, 1.0)
        values = field_value(field, _points(still, places))
        best = lax.optimization_barrier(places[jnp.argmin(values)])  # searched once, whatever uses it
        reach *= 2.0 / (_COUNT[size] - 1)
    point = map_components(lambda x: x[0], _points(body, best[None]))
    value, slope = jax.value_and_grad(lambda p: field_value(field, p))(lax.stop_gradient(point))
    deepest = body.support(direction(slope, jnp.ones_like(value)))
    better = field_value(field, lax.stop_gradient(deepest)) < value
    return _witness(b, map_components(lambda x, y: jnp.where(better, x, y), deepest, point), body.radius)


def hull_field(a: PlacedConvexHulls, b: Field) -> Witness:
    """The distance of a convex hull from a field, and the points of both."""
    hull = polytope(a)
    still, field = lax.stop_gradient((hull, b))
    count = hull.vertices[0].shape[0]
    corner = jnp.eye(count, dtype=hull.radius.dtype)
    middles = 0.5 * (corner[hull.edges[:, 0]] + corner[hull.edges[:, 1]])
    on_faces = [middles + share * (corner[hull.edges[:, k]] - middles) for share in _ON_FACES for k in (2, 3)]
    starts = jnp.concatenate([corner, middles, *on_faces])

    def at(weights: Array) -> Vector:
        return map_components(lambda x: weights @ x, still.vertices)

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        weights, value, share = state
        trials = weights[None] + share * (corner - weights[None])
        values = field_value(field, at(trials))
        k = jnp.argmin(values)
        better = values[k] < value
        now = jnp.where(better, trials[k], weights), jnp.where(better, values[k], value)
        return *now, jnp.where(better, share, _SHORTER * share)

    def searched(weights: Array, value: Array) -> tuple[Array, Array]:
        return fori_loop(0, _STEPS, step, (weights, value, jnp.full_like(value, _SHARE)))[:2]

    values = field_value(field, at(starts))
    first = lax.top_k(-values, _STARTS)[1]
    found, values = jax.vmap(searched)(starts[first], values[first])
    weights = found[jnp.argmin(values)]
    return _witness(b, map_components(lambda x: weights @ x, hull.vertices), hull.radius)


def _witness(field: Field, point: Vector, radius: Array) -> Witness:
    value, slope = jax.value_and_grad(lambda p: field_value(field, p))(point)
    n = otherwise(direction(slope, jnp.ones_like(value)), field.axes[2])
    on_obstacle = add_scaled(point, -value, n)
    return Witness(value - radius, add_scaled(point, -radius, n), on_obstacle, point, on_obstacle)


def _points(body: Solid, places: Array) -> Vector:
    """The points of a core at places between -1 and 1 along its half axes, and in the square about its disc."""

    def spread(v: Vector) -> Vector:
        return map_components(lambda x: jnp.broadcast_to(x, places.shape[:1]), v)

    t = [places[:, k] for k in range(places.shape[1])]
    if body.disc is None:
        return add(spread(body.center), combined(t, [spread(g) for g in body.halves]))
    u = any_perpendicular(body.disc.axis)
    w = cross(body.disc.axis, u)
    across = [t[0] * jnp.sqrt(1 - 0.5 * t[1] ** 2), t[1] * jnp.sqrt(1 - 0.5 * t[0] ** 2)]  # the square as a disc
    sides = [spread(scaled(body.disc.radius, x)) for x in (u, w)]
    return add(spread(body.center), combined([*across, t[2]], [*sides, spread(body.halves[0])]))


def _above(field: PlacedHeightMaps, p: Vector) -> Array:
    """The height above the surface as the distance from a slope as steep as the steepest of the map."""
    h, spacing = field.heights, field.spacing
    height, _, _ = surface(field, p[0], p[1])
    by_rows, by_columns = h[1:] - h[:-1], h[:, 1:] - h[:, :-1]
    ascents = [by_rows[:, k : k + h.shape[1] - 1] ** 2 + by_columns[1 - k : h.shape[0] - k] ** 2 for k in (0, 1)]
    steepest = jnp.maximum(ascents[0].max(), ascents[1].max()) / spacing**2
    return (p[2] - height) / jnp.sqrt(1 + steepest)


def surface(field: PlacedHeightMaps, x: Array, y: Array) -> Vector:
    """The height of a map's surface and its slopes along both directions, at points in the axes of the map."""
    h, spacing = field.heights, field.spacing
    (i, u), (j, v) = (_cell(p / spacing, n) for p, n in zip((x, y), h.shape, strict=True))
    low, high = h[i, j], h[i + 1, j + 1]
    rows_first = u >= v
    beside = jnp.where(rows_first, h[i + 1, j], h[i, j + 1])
    first, second = jnp.where(rows_first, u, v), jnp.where(rows_first, v, u)
    height = low + first * (beside - low) + second * (high - beside)
    ascents = (beside - low) / spacing, (high - beside) / spacing
    slopes = [
        jnp.where((p >= 0) & (p <= spacing * (n - 1)), slope, 0.0)
        for p, n, slope in (
            (x, h.shape[0], jnp.where(rows_first, ascents[0], ascents[1])),
            (y, h.shape[1], jnp.where(rows_first, ascents[1], ascents[0])),
        )
    ]
    return height, slopes[0], slopes[1]


def _in_grid(field: PlacedDistanceGrids, p: Vector) -> Array:
    """Between eight neighbours; outside of the grid what follows from its nearest point for an obstacle in it."""
    values, spacing = field.values, field.spacing
    cells = [_cell(p[k] / spacing, values.shape[k]) for k in range(3)]
    found = jnp.zeros_like(p[0])
    for corner in itertools.product((0, 1), repeat=3):
        weight = jnp.ones_like(p[0])
        for (_, u), c in zip(cells, corner, strict=True):
            weight = weight * (u if c else 1 - u)
        i, j, k = (cell + c for (cell, _), c in zip(cells, corner, strict=True))
        found = found + weight * values[i, j, k]
    ends = [spacing * (values.shape[k] - 1) for k in range(3)]
    beyond = [jnp.where(x < 0, x, jnp.where(x > end, x - end, 0.0)) for x, end in zip(p, ends, strict=True)]
    out = safe_norm((beyond[0], beyond[1], beyond[2]))
    positive = jnp.where(found > 0, found, 0.0)
    far = jnp.where(found > 0, safe_norm((out, positive, jnp.zeros_like(out))), found + out)
    return jnp.where(out > 0, far, found)


def _cell(x: Array, count: int) -> tuple[Array, Array]:
    """The cell of places in units of the spacing, and where in it, from 0 to 1: at the border outside."""
    i = jnp.clip(jnp.floor(lax.stop_gradient(x)), 0, count - 2).astype(jnp.int32)
    return i, jnp.clip(x - i.astype(x.dtype), 0.0, 1.0)
