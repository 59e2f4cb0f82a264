"""The points in which one shape can rest on another: pair functions that find several of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.box import Box, PlacedBoxes
from ..shapes.capsule import Capsule, PlacedCapsules
from ..shapes.convex_hull import ConvexHull, PlacedConvexHulls
from ..shapes.cylinder import Cylinder, PlacedCylinders
from ..shapes.distance_grid import DistanceGrid
from ..shapes.half_space import HalfSpace, PlacedHalfSpaces
from ..shapes.height_map import HeightMap, PlacedHeightMaps
from ..xla.fusion import barrier
from .capsule_capsule import axes_witness
from .convex import core_witness
from .field import signed_distance
from .field_contacts import AROUND, ball_on_map, point_on_field
from .hull_points import nearest_hull
from .hulls import cylinder_core, in_one_batch, polytope_core
from .obstacle_fields import Field, hull_field, solid_field
from .overlap import Drawn, drawn_onto
from .polytopes import Polytope, polytope
from .solids import Solid, solid
from .vectors import (
    add_scaled,
    any_perpendicular,
    cross,
    direction,
    dot,
    map_components,
    otherwise,
    perpendicular,
    safe_norm,
    sub,
)

Points = tuple[Array, Vector, Vector]
"""Distances, points on the first shape, and normals from the second to the first; along the first axis."""

_FEATURES = {Capsule.kind: 2, Box.kind: 4, Cylinder.kind: 4, ConvexHull.kind: 4}
_LEVEL = 0.1  # the slope up to which vertices of a hull count as those of its lowest face


def contact_count(first: str, second: str) -> int:
    """How many points a pair of two kinds has."""
    if second == HalfSpace.kind:
        return _FEATURES[first]
    if (first, second) == (Capsule.kind, HeightMap.kind):
        return AROUND * _FEATURES[first] + 1
    return _FEATURES[first] + _FEATURES.get(second, 0) + 1


def contact_function(first: str, second: str) -> Any:
    """The function of two kinds of shapes: all points of a pair, one after the other along the first axis."""
    if second == HalfSpace.kind:
        return _on_plane
    if second in (HeightMap.kind, DistanceGrid.kind):
        return _on_field
    return _on_solid


def _stacked(points: list[Points]) -> Points:
    return jax.tree.map(lambda *x: jnp.stack(x), *points)


def _on_plane(a: Any, b: PlacedHalfSpaces) -> Points:
    radius, found = _radius(a), []
    for p in _features(a, b.normal):
        height = dot(sub(p, b.point), b.normal) - radius
        found.append((height, add_scaled(p, -radius, b.normal), b.normal))
    return _stacked(found)


def _on_solid(a: Any, b: Any) -> Points:
    if isinstance(a, PlacedConvexHulls) or isinstance(b, PlacedConvexHulls):
        a, b = in_one_batch(a, b)
    core, n, point = _core(a, b)
    radius, other = _radius(a), _radius(b)
    found = [(core - radius - other, add_scaled(point, -radius, n), n)]
    facing = lax.stop_gradient(n)
    on_a, on_b = _features(a, facing), _features(b, map_components(lambda x: -x, facing))
    for p, (distance, normal), drawn in zip(on_a, _distances(b, on_a), _drawn(a, on_a, b, on_b, facing), strict=True):
        if drawn is not None:
            distance, p, normal = _chosen(drawn.exists, (drawn.height, drawn.point, n), (distance, p, normal))
        found.append((distance - radius, add_scaled(p, -radius, normal), normal))
    for p, (distance, normal), drawn in zip(on_b, _distances(a, on_b), _drawn(b, on_b, a, on_a, facing), strict=True):
        out = map_components(lambda x: -x, normal)
        if drawn is not None:
            distance, p, out = _chosen(drawn.exists, (-drawn.height, drawn.point, n), (distance, p, out))
        found.append((distance - other, add_scaled(p, distance, out), out))
    return _stacked(found)


def _drawn(a: Any, on_a: list[Vector], b: Any, on_b: list[Vector], n: Vector) -> Sequence[Drawn | None]:
    """The points of the first drawn onto the face of the second, if it has one; rims are not drawn."""
    if isinstance(a, PlacedCylinders) or not isinstance(b, PlacedBoxes | PlacedConvexHulls):
        return [None] * len(on_a)
    return drawn_onto(on_a, on_b, n)


def _chosen(exists: Array, drawn: Points, own: Points) -> Points:
    """What was drawn onto a face touches it along the normal of the pair, and all else along its own."""
    return jax.tree.map(lambda new, old: jnp.where(exists, new, old), drawn, own)


def _on_field(a: Any, b: Field) -> Points:
    """The nearest point that is found, and of a capsule its ends, of other shapes the corners on that side."""
    # Barriers: without them XLA:CPU repeats all that comes before in each of the results.
    nearest = barrier(hull_field(a, b) if isinstance(a, PlacedConvexHulls) else solid_field(a, b)).axis_point_a
    radius = _radius(a)
    if isinstance(b, PlacedHeightMaps) and isinstance(a, PlacedCapsules):
        first = jax.tree.map(lambda x: x[0], barrier(ball_on_map(b, nearest, radius)))
        ends = _each(_features(a, b.axes[2]))
        others = jax.tree.map(jnp.ravel, jax.vmap(lambda p: ball_on_map(b, p, radius))(ends))
        p = map_components(lambda x: jnp.repeat(x, AROUND), ends)
    else:
        first = barrier(point_on_field(b, nearest))
        p = _each(_features(a, lax.stop_gradient(first[1])))
        others = jax.vmap(lambda p: point_on_field(b, p))(p)
    points = (*first, nearest), (*others, p)
    distance, n, p = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), *points)
    return distance - radius, add_scaled(p, -radius, n), n


def _each(points: list[Vector]) -> Vector:
    return barrier(map_components(lambda *x: jnp.stack(x), *points))


def _core(a: Any, b: Any) -> tuple[Array, Vector, Vector]:
    """The distance without balls, the normal from the second to the first, and the nearest point of the first."""
    hulls = isinstance(a, PlacedConvexHulls), isinstance(b, PlacedConvexHulls)
    if all(isinstance(x, PlacedCapsules) for x in (a, b)):
        core, n, point, _ = axes_witness(a, b)
    elif not any(hulls):
        core, n, point, _ = core_witness(solid(a), solid(b))
    elif hulls[0] and isinstance(b, PlacedCylinders):
        core, n, point, _ = cylinder_core(a, b)
    elif hulls[1] and isinstance(a, PlacedCylinders):
        core, n, _, point = cylinder_core(b, a)
        n = map_components(lambda x: -x, n)
    else:
        core, n, point, _ = polytope_core(a, b)
    return core, n, point


def _radius(shape: Any) -> Array:
    """Of the ball around the core."""
    return jnp.zeros_like(shape.position[0]) if isinstance(shape, PlacedConvexHulls) else solid(shape).radius


def _distances(shape: Any, points: list[Vector]) -> list[tuple[Array, Vector]]:
    """Of points from the core's surface with the ball around it, and the outward normals."""
    if not isinstance(shape, PlacedConvexHulls):
        return [signed_distance(solid(shape), p) for p in points]
    one = jax.tree.map(lambda x: x[None], shape)
    _, distances, n = nearest_hull(one, map_components(lambda *x: jnp.stack(x), *points))
    return [(distances[k], map_components(lambda x, k=k: x[k], n)) for k in range(len(points))]


def _features(shape: Any, n: Vector) -> list[Vector]:
    """The points of the core on which a shape can rest, on what is in the direction of -n."""
    if isinstance(shape, PlacedConvexHulls):
        return _lowest_vertices(polytope(shape), n)
    body = solid(shape)
    if body.disc is not None:
        return _rim_points(body, n)
    one = jnp.ones_like(n[0])
    if len(body.halves) == 1:
        return [body.corner([one]), body.corner([-one])]
    return _face_corners(body, n)


def _lowest_vertices(hull: Polytope, n: Vector) -> list[Vector]:
    """The lowest vertex, the one farthest from it of those about as low, and after each the farthest on one side."""
    vertices, n = lax.stop_gradient((hull.vertices, n))
    one = jnp.ones_like(n[0])
    first = jnp.argmin(lax.stop_gradient(hull.along(n)))
    arms = map_components(lambda x: x - x[first], vertices)
    rise = arms[0] * n[0] + arms[1] * n[1] + arms[2] * n[2]
    level = map_components(lambda x, c: x - rise * c, arms, n)
    second = jnp.argmax(_LEVEL * safe_norm(level) - rise)
    side = cross(n, direction(map_components(lambda x: x[second], level), one))
    aside = level[0] * side[0] + level[1] * side[1] + level[2] * side[2]
    third, fourth = jnp.argmax(_LEVEL * aside - rise), jnp.argmax(-_LEVEL * aside - rise)
    return [hull.at(k) for k in (first, third, second, fourth)]


def _rim_points(body: Solid, n: Vector) -> list[Vector]:
    """Three points on the rim of the nearer end of a cylinder, the lowest first, and one on the other."""
    one = jnp.ones_like(n[0])
    assert body.disc is not None
    (half,) = body.halves
    near = jnp.where(dot(n, half) > 0, -one, one)
    down = otherwise(direction(perpendicular(n, body.disc.axis), one), any_perpendicular(body.disc.axis))
    aside = cross(body.disc.axis, down)
    end, far = body.corner([near]), body.corner([-near])
    around = [(-1.0, 0.0), (0.5, 0.75**0.5), (0.5, -(0.75**0.5))]  # the lowest point first
    rim = [add_scaled(add_scaled(end, x * body.disc.radius, down), y * body.disc.radius, aside) for x, y in around]
    return [*rim, add_scaled(far, -body.disc.radius, down)]


def _face_corners(body: Solid, n: Vector) -> list[Vector]:
    """The corners of the face of a box that looks in the direction of -n, one after the other around it."""
    one = jnp.ones_like(n[0])
    steepness = jnp.stack([abs(dot(n, direction(g, jnp.zeros_like(one)))) for g in body.halves])
    face = jnp.argmax(lax.stop_gradient(steepness), axis=0)
    signs = [jnp.where(dot(n, g) > 0, -one, one) for g in body.halves]
    found = []
    for x, y in ((1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)):
        # The face is that of axis k; the corner's signs along the other two are x and y, in their order.
        found.append(
            body.corner(
                [
                    jnp.where(face == 0, signs[0], x),
                    jnp.where(face == 1, signs[1], jnp.where(face == 0, x, y)),
                    jnp.where(face == 2, signs[2], y),
                ]
            )
        )
    return found
