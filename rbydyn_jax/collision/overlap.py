"""Where the edges of one face lie on another one: the corners of their overlap, on which what overhangs rests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ..shapes.base import Vector
from .vectors import add_scaled, cross, dot, map_components, sub

_AREA = 1e-3  # of a face relative to the product of its diagonals: what has less counts as an edge
_STEEP = 0.1  # cosine of the angle of a face's normal to that of the pair: steeper ones have no overlap


class Drawn(NamedTuple):
    """A point that was drawn along its edge to where this lies on a face.

    Attributes:
        exists: Whether there is such a point.
        point: The point.
        height: How far it is from the face, along the normal of the pair [m].
    """

    exists: Bool[Array, "*n"]
    point: Vector
    height: Float[Array, "*n"]


def drawn_onto(ring: Sequence[Vector], face: Sequence[Vector], n: Vector) -> list[Drawn]:
    """Where the edges of a ring lie on a face, seen along n.

    Each point is drawn along the edge that begins there, counterclockwise about n, to where it comes onto the face; if
    that edge is not on the face, along the other one. Points on the face stay where they are. Of two convex faces, each
    drawn onto the other, all corners of their overlap are among these: an edge comes onto the other face where one of
    that leaves it. Shares of edges count as constant in derivatives.

    Args:
        ring: Points, of which those that follow each other have an edge, and so have the last and the first: two, or
            four corners of a face.
        face: Four corners of a plane face, one after the other around it, of which some may be one.
        n: The normal of the pair, for both.

    Returns:
        For each point where it is drawn to; none on a face whose corners are not in a plane, or that n hardly meets.
    """
    held_ring, held_face, held_n = lax.stop_gradient((list(ring), list(face), n))
    inward, usable = _sides(held_face, held_n)
    after = [*range(1, len(ring)), 0]
    spans = [_clipped(held_ring[i], held_ring[k], inward) for i, k in enumerate(after)]
    normal = _normal(face)
    slope = dot(normal, held_n)
    forward = dot(_normal(held_ring), held_n) >= 0.0 if len(ring) == 4 else jnp.ones_like(usable)
    found = []
    for i, k in enumerate(after):
        (first, _, begins), (_, last, ends) = spans[i], spans[i - 1]
        on_next = add_scaled(ring[i], first, sub(ring[k], ring[i]))
        on_previous = add_scaled(ring[i - 1], last, sub(ring[i], ring[i - 1]))
        chosen = begins & (forward | ~ends)
        point = map_components(lambda x, y, chosen=chosen: jnp.where(chosen, x, y), on_next, on_previous)
        height = dot(normal, sub(point, face[0])) / jnp.where(usable, slope, 1.0)
        found.append(Drawn(usable & (begins | ends), point, height))
    return found


def _normal(face: Sequence[Vector]) -> Vector:
    """A normal as long as twice the area, by the diagonals."""
    return cross(sub(face[2], face[0]), sub(face[3], face[1]))


def _sides(face: Sequence[Vector], n: Vector) -> tuple[list[tuple[Vector, Vector]], Array]:
    """A corner of each side with the direction inward, across n, and whether the corners are those of a plane face."""
    normal = _normal(face)
    one, other = sub(face[2], face[0]), sub(face[3], face[1])
    square, slope = dot(normal, normal), dot(normal, n)
    off = dot(normal, sub(face[1], face[0]))  # both diagonals are across the normal: it is how far they are apart
    flat = off * off <= jnp.finfo(square.dtype).eps * square * dot(one, one)
    usable = flat & (square > _AREA**2 * dot(one, one) * dot(other, other)) & (slope * slope > _STEEP**2 * square)
    sign = jnp.where(slope < 0.0, -1.0, 1.0)
    sides = [(face[k - 1], cross(n, sub(face[k], face[k - 1]))) for k in range(4)]
    return [(corner, map_components(lambda x: sign * x, way)) for corner, way in sides], usable


def _clipped(p: Vector, q: Vector, inward: Sequence[tuple[Vector, Vector]]) -> tuple[Array, Array, Array]:
    """The shares of the way from p to q between which it is inside of all sides, and whether there are some."""
    first, last = jnp.zeros_like(p[0]), jnp.ones_like(p[0])
    for corner, way in inward:
        g, h = dot(way, sub(p, corner)), dot(way, sub(q, corner))
        share = g / jnp.where(g == h, 1.0, g - h)
        first = jnp.where(g < 0.0, jnp.where(h < 0.0, 2.0, jnp.maximum(first, share)), first)
        last = jnp.where((g >= 0.0) & (h < 0.0), jnp.minimum(last, share), last)
    return first, last, first <= last
