r"""Contacts with height maps and grids of distances: of a point, and of a ball in two directions.

Of a point, a map is the plane of the triangle beneath it, and a grid its value and its slope. A ball on a map touches
what its centre is nearest to: in each of the four quadrants around the centre the nearest point of the surface is
sought, on a lattice from coarse to fine, and two of them are taken: the nearest, and one whose normal is another, so
that a ball in a groove has a point on each side. If the foot of the centre in the plane there is on the surface, it is
that foot, exactly; otherwise the point lies on an edge or a corner of the surface, and is right to $10^{-6}$ of the
radius. On rough ground a place that is nearer by less than a hundredth of the radius may be missed. Which point it is
counts as constant (Danskin).
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.height_map import PlacedHeightMaps
from ..xla.control_flow import fori_loop
from .obstacle_fields import Field, field_value, in_axes, surface
from .vectors import combined, direction, dot, map_components, otherwise, rounding, sub

AROUND = 2
_ASIDE = 0.1  # of the radius: how much nearer what has the same normal must be to count as the second
_QUADRANTS = np.array(list(itertools.product((1.0, -1.0), repeat=2)))
_LATTICE = np.array(list(itertools.product(np.linspace(0.0, 1.0, 9), repeat=2)))
_FINER = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
_ZOOMS, _ZOOM = 24, 0.6  # to less than a millionth of the radius
_ON_SURFACE = 1e-6  # how far a foot may be from the surface, relative to the radius


def point_on_field(field: Field, p: Vector) -> tuple[Array, Vector]:
    """The signed distance of a point from one obstacle, and the normal there."""
    if isinstance(field, PlacedHeightMaps):
        x, y, z = in_axes(field, p)
        height, n = _plane(field, x, y)
        return (z - height) * n[2], combined(n, field.axes)
    value, slope = jax.value_and_grad(lambda p: field_value(field, p))(p)
    return value, otherwise(direction(slope, jnp.ones_like(value)), field.axes[2])


def ball_on_map(field: PlacedHeightMaps, center: Vector, radius: Array) -> tuple[Array, Vector]:
    """Signed distances of a centre from two near points of the surface (2,), the nearest first, and the normals.

    Of a centre below the surface they are those from the triangle above it.
    """
    p = in_axes(field, center)
    places = _nearest_places(*lax.stop_gradient((field, p, radius)))
    height, n = _plane(field, places[0], places[1])
    at = places[0], places[1], height
    arm = map_components(lambda x, y: x - y, p, at)
    along = dot(arm, n)
    foot = map_components(lambda x, c: x - along * c, p, n)
    bound = _ON_SURFACE * radius + rounding(height) * jnp.max(jnp.abs(field.heights))
    flat = jnp.abs(surface(field, foot[0], foot[1])[0] - foot[2]) <= bound
    square = dot(arm, arm)
    flat = flat | (square <= bound * bound)
    length = jnp.sqrt(jnp.where(flat, 1.0, square))
    distance = jnp.where(flat, along, length)
    normal = map_components(lambda c, x: jnp.where(flat, c, x / length), n, arm)
    beneath, n_beneath = _plane(field, p[0], p[1])
    inside = p[2] < beneath
    first = jnp.argmin(lax.stop_gradient(distance))
    alike = dot(normal, map_components(lambda x: x[first], normal))
    second = jnp.argmin(lax.stop_gradient(distance + _ASIDE * radius * alike))
    distance, normal = jax.tree.map(lambda x: jnp.stack([x[first], x[second]]), (distance, normal))
    distance = jnp.where(inside, (p[2] - beneath) * n_beneath[2], distance)
    normal = map_components(lambda c, x: jnp.where(inside, c, x), n_beneath, normal)
    return distance, combined(normal, field.axes)


def _plane(field: PlacedHeightMaps, x: Array, y: Array) -> tuple[Array, Vector]:
    """The height of the surface and its unit normal, in the axes of the map."""
    height, along_x, along_y = surface(field, x, y)
    up = lax.rsqrt(1.0 + along_x**2 + along_y**2)
    return height, (-along_x * up, -along_y * up, up)


def _nearest_places(field: PlacedHeightMaps, p: Vector, radius: Array) -> tuple[Array, Array]:
    """Where the points of the surface are that are nearest in the quadrants around a point (4,), within a radius."""

    def nearest(offsets: Array) -> Array:
        """The best of offsets (4, n, 2), in units of the radius."""
        x, y = (c + radius * offsets[..., k] for k, c in enumerate(p[:2]))
        gap = sub(p, (x, y, surface(field, x, y)[0]))
        k = jnp.argmin(dot(gap, gap), axis=1)
        return lax.optimization_barrier(jnp.take_along_axis(offsets, k[:, None, None], axis=1))  # searched once

    dtype = p[0].dtype
    best = nearest(jnp.asarray(_QUADRANTS[:, None] * _LATTICE[None], dtype))
    finer = jnp.asarray(_LATTICE[1, 1] * _FINER[None], dtype)
    best = fori_loop(0, _ZOOMS, lambda k, best: nearest(best + _ZOOM**k * finer), best)
    return p[0] + radius * best[:, 0, 0], p[1] + radius * best[:, 0, 1]
