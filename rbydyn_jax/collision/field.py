"""The signed distance field of a robot: how far points are from its shapes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._check import check_array
from .._errors import ModelError
from .._jit import jit_public
from .._result import Result
from ..algorithms.kinematics import link_pose
from ..model.model import Model, check_model
from ..shapes.base import Vector
from ..shapes.convex_hull import PlacedConvexHulls
from ..sweeps.plan import in_one_kernel, is_on_cpu
from ..xla.control_flow import fori_loop
from .groups import placed_shapes
from .hull_points import nearest_hull
from .solids import Placed, Solid, solid
from .vectors import (
    add_scaled,
    any_perpendicular,
    components,
    cross,
    direction,
    dot,
    map_components,
    otherwise,
    perpendicular,
    rounding,
    scaled,
    sub,
    tiny,
)

# Points at a time: on a CPU what is kept of them for each shape stays in cache.
_TILE_CPU, _TILE = 4096, 131_072


class SurfacePoints(Result):
    """For each of some points the nearest point on the surface of a robot.

    Attributes:
        distance: Signed distance [m]; negative inside of a shape.
        link: Index of the link whose shape is nearest.
        point: The nearest point on the surface of that shape [m].
        normal: The outward unit normal there, from the surface to a point outside.
    """

    distance: Float[Array, "p"]
    link: Int[Array, "p"]
    point: Float[Array, "p 3"]
    normal: Float[Array, "p 3"]


def sdf(
    model: Model, q: Float[Array, "nq"], points: Float[Array, "p 3"], link: str | int | None = None
) -> SurfacePoints:
    r"""The signed distance field of the robot's collision shapes, $\min_i d_i(x)$ over its shapes i, at points.

    It is exact for every shape; inside of overlapping shapes it is the depth in the deepest one. Derivatives are finite
    everywhere: on the axis of a capsule or a cylinder, and at its centre, the gradient is a unit vector that leads
    out. Which shape is nearest counts as constant. Large numbers of points are computed a few thousand at a time.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        points: The points [m].
        link: The link in whose frame the points are given, and the results; default is the world.

    Returns:
        Distances, links, and points and normals on the surface, one row for each point.

    Raises:
        DtypeError: `model` is no model, or an argument no array of floats.
        ModelError: The robot has no collision shapes.
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`, or `points` not of shape (p, 3).

    Example:
        The lower arm is a capsule of radius 0.05 m about the x axis of its link:

        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.collision import sdf
        >>> arm = robots.two_link_arm()
        >>> found = sdf(arm, jnp.zeros(2), jnp.array([[0.75, 0.0, 0.2]]))
        >>> bool(found.distance[0] > 0), arm.link_names[int(found.link[0])]
        (True, 'lower')
    """
    return _sdf(model, q, points, None if link is None else check_model(model).link_index(link))


@jit_public("link")
def _sdf(model: Model, q: Array, points: Array, link: int | None) -> SurfacePoints:
    model = check_model(model)
    q = check_array(q, "q", (model.nq,), "model.nq")
    points = check_array(points, "points", (None, 3), "p, 3")
    if not model.tree.shape_links:
        raise ModelError(f"model {model.tree.name!r} has no collision shapes")
    dtype = jnp.result_type(q, points)
    q, points = q.astype(dtype), points.astype(dtype)
    every = range(len(model.tree.shape_links))
    if link is None:
        return _field(model, q, points, every)
    T = link_pose(model, q, link)
    found = _field(model, q, points @ T[:3, :3].T + T[None, :3, 3], every)
    return SurfacePoints(
        found.distance, found.link, (found.point - T[None, :3, 3]) @ T[:3, :3], found.normal @ T[:3, :3]
    )


def field_distances(model: Model, q: Array, points: Array, shapes: Sequence[int]) -> Array:
    """Distances of points from the nearest of some shapes of the robot."""
    return _field(model, q, points, shapes).distance


def _field(model: Model, q: Array, points: Array, shapes: Sequence[int]) -> SurfacePoints:
    placed = placed_shapes(model, q, shapes)
    groups = [(shapes, np.array([model.tree.shape_links[i] for i in chosen])) for chosen, shapes in placed.values()]
    count, tile = points.shape[0], _TILE_CPU if is_on_cpu() else _TILE
    if count <= tile:
        return _nearest(groups, points)
    tiles = -(-count // tile)
    padded = jnp.concatenate([points, jnp.zeros((tiles * tile - count, 3), points.dtype)]).reshape(tiles, tile, 3)
    found = lax.map(lambda some: _nearest(groups, some), padded)
    return jax.tree.map(lambda x: x.reshape(tiles * tile, *x.shape[2:])[:count], found)


def _nearest(groups: list[tuple[Any, np.ndarray]], points: Array) -> SurfacePoints:
    p = components(points)
    best: tuple[Array, Array, Vector] | None = None
    for shapes, links in groups:
        is_hull = isinstance(shapes, PlacedConvexHulls)
        row, distance, normal = nearest_hull(shapes, p) if is_hull else _nearest_solid(shapes, p)
        found = distance, jnp.asarray(links, jnp.int32)[row], normal
        if best is None:
            best = found
        else:
            nearer = found[0] < best[0]
            best = jax.tree.map(lambda x, y, nearer=nearer: jnp.where(nearer, x, y), found, best)
    assert best is not None  # there are shapes
    distance, link, normal = best
    on_surface = add_scaled(p, -distance, normal)
    return SurfacePoints(distance, link, jnp.stack(on_surface, axis=-1), jnp.stack(normal, axis=-1))


def _nearest_solid(placed: Placed, p: Vector) -> tuple[Array, Array, Vector]:
    """For each point which of some solids is nearest, the signed distance, and the outward normal at its surface."""
    shapes = solid(placed)
    row = _nearest_row(*lax.stop_gradient((shapes, p)))
    return row, *signed_distance(jax.tree.map(lambda x: x[row], shapes), p)


def _nearest_row(shapes: Solid, p: Vector) -> Array:
    """Which of some shapes is nearest to each point."""

    def of_points(shapes: Solid, p: Vector) -> Array:
        def visited(k: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
            distance, row = best
            found, _ = signed_distance(jax.tree.map(lambda x: x[k], shapes), p)
            return jnp.minimum(found, distance), jnp.where(found < distance, jnp.asarray(k, jnp.int32), row)

        nothing = jnp.full_like(p[0], jnp.inf), jnp.zeros(p[0].shape, jnp.int32)
        return fori_loop(0, len(shapes.radius), visited, nothing)[1]

    return of_points(shapes, p) if is_on_cpu() else jax.vmap(in_one_kernel(of_points), (None, 0))(shapes, p)


def signed_distance(shape: Solid, p: Vector) -> tuple[Array, Vector]:
    """Of points from solids, one for each or one for all, with the outward normals."""
    gap = sub(p, shape.nearest(p))
    square = dot(gap, gap)
    apart = square > rounding(square) ** 2 * (dot(p, p) + dot(shape.center, shape.center)) + tiny(square)
    outside = jnp.sqrt(jnp.where(apart, square, jnp.ones_like(square)))
    depth, way_out = _inside(shape, p)
    n = map_components(lambda g, w: jnp.where(apart, g / outside, w), gap, way_out)
    return jnp.where(apart, outside, depth) - shape.radius, n


def _inside(shape: Solid, p: Vector) -> tuple[Array, Vector]:
    """Of points in the core the distance to its surface, not positive, and the direction there."""
    from_center = sub(p, shape.center)
    if len(shape.halves) == 1 and shape.disc is None:  # on a segment
        (g,) = shape.halves
        beside = any_perpendicular(otherwise(direction(g, jnp.zeros_like(g[0])), _vertical(g)))
        beside = lax.stop_gradient(map_components(lambda x: jnp.broadcast_to(x, p[0].shape), beside))
        return dot(from_center, beside), beside
    ways = []
    normals = _normals(shape.halves) if shape.disc is None else [shape.disc.axis]
    for g, n in zip(shape.halves, normals, strict=True):
        t = dot(from_center, n)
        sign = jnp.where(t < 0, -jnp.ones_like(t), jnp.ones_like(t))
        ways.append((sign * t - dot(g, n), scaled(sign, n)))
    if shape.disc is not None:
        across = perpendicular(from_center, shape.disc.axis)
        scale = dot(p, p) + dot(shape.center, shape.center)
        n = otherwise(direction(across, scale), any_perpendicular(shape.disc.axis))
        ways.append((dot(across, n) - shape.disc.radius, n))
    depth, normal = ways[0]
    for other, n in ways[1:]:
        nearer = other > depth
        depth = jnp.where(nearer, other, depth)
        normal = map_components(lambda x, y, nearer=nearer: jnp.where(nearer, x, y), n, normal)
    return depth, normal


def _normals(halves: Sequence[Vector]) -> list[Vector]:
    """Unit vectors along the three half axes of boxes; of those that are zero perpendicular to the others."""
    found = [direction(g, jnp.zeros_like(g[0])) for g in halves]
    beside = any_perpendicular(functools.reduce(otherwise, [*found, _vertical(found[0])]))
    for k in range(3):
        found[k] = otherwise(found[k], otherwise(cross(found[k - 2], found[k - 1]), beside))
    return found


def _vertical(like: Vector) -> Vector:
    return jnp.zeros_like(like[0]), jnp.zeros_like(like[0]), jnp.ones_like(like[0])
