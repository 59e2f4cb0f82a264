r"""Capsules, boxes and cylinders as one kind of solid: a sum of segments, a disc and a ball.

A point of a solid is $c + \sum_i t_i g_i + y + z$ with $|t_i| \le 1$ along half axes $g_i$ that are perpendicular to
each other, $y$ in a disc of radius $r$ perpendicular to its axis, and $|z| \le R$. All without the ball is its core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..shapes.box import PlacedBoxes
from ..shapes.capsule import PlacedCapsules
from ..shapes.cylinder import PlacedCylinders
from ..xla.reciprocal import reciprocal
from .vectors import (
    add,
    add_scaled,
    clamped,
    combined,
    constant_where,
    direction,
    dot,
    map_components,
    otherwise,
    perpendicular,
    rounding,
    safe_norm,
    scaled,
    sub,
    tiny,
    where,
)

Placed = PlacedCapsules | PlacedBoxes | PlacedCylinders


class Disc(NamedTuple):
    """A disc, by its unit axis and its radius [m]."""

    axis: Vector
    radius: Array


class Solid(NamedTuple):
    """A sum of segments, a disc and a ball.

    Attributes:
        center: Its centre [m].
        halves: The half axes $g_i$ [m], perpendicular to each other.
        disc: The disc, if there is one; then the only half axis is along its axis.
        radius: Radius of the ball [m].
        axes: Unit vectors along the half axes of a box, which count as constants: those of sides without length.
    """

    center: Vector
    halves: tuple[Vector, ...]
    disc: Disc | None
    radius: Array
    axes: tuple[Vector, ...] = ()

    @property
    def edges(self) -> tuple[Vector, ...]:
        """The directions of the half axes, of any length; of a box they are there whatever its sides."""
        if not self.axes:
            return self.halves
        return tuple(otherwise(g, axis) for g, axis in zip(self.halves, self.axes, strict=True))

    def reach(self, n: Vector) -> Array:
        """How far the core reaches from its centre along unit vectors.

        Of a half axis or a disc that is perpendicular, to rounding, its middle counts as the point that is reached.
        """
        total = jnp.zeros_like(n[0])
        for g in self.halves:
            t = dot(n, g)
            total = total + constant_where(_is_level(t, g), abs(t))
        if self.disc is None:
            return total
        across = safe_norm(perpendicular(n, self.disc.axis))
        return total + self.disc.radius * constant_where(across * across <= rounding(across), across)

    def support(self, n: Vector) -> Vector:
        """The point of the core that is deepest against unit vectors; of several the middle, to rounding."""
        found = self.center
        for g in self.halves:
            t = dot(n, g)
            sign = where(_is_level(t, g), jnp.zeros_like(t), jnp.sign(t))
            found = add_scaled(found, -sign, g)
        if self.disc is None:
            return found
        return add_scaled(found, -self.disc.radius, direction(perpendicular(n, self.disc.axis), jnp.ones_like(n[0])))

    def face(self, n: Vector) -> tuple[Solid, Array]:
        """All points of the core that are deepest against unit vectors, to rounding, and whether they have edges.

        Those without are a point or a disc.
        """
        has_edges, halves = jnp.zeros_like(n[0], bool), []
        for g in self.halves:
            level = _is_level(dot(n, g), g)
            has_edges |= level & (dot(g, g) > 0)
            halves.append(map_components(lambda x, level=level: where(level, x, 0.0), g))
        disc = self.disc
        if disc is not None:
            across = perpendicular(n, disc.axis)
            disc = Disc(disc.axis, where(dot(across, across) <= rounding(n[0]), disc.radius, 0.0))
        return Solid(self.support(n), tuple(halves), disc, jnp.zeros_like(self.radius)), has_edges

    def nearest(self, p: Vector) -> Vector:
        """The points of the core that are nearest to points."""
        q, found = sub(p, self.center), self.center
        for g in self.halves:
            square = dot(g, g)
            usable = square > tiny(square)
            t = clamped(dot(q, g) * reciprocal(where(usable, square, jnp.ones_like(square))), 1.0)
            found = add_scaled(found, where(usable, t, jnp.zeros_like(t)), g)
        if self.disc is None:
            return found
        q = perpendicular(q, self.disc.axis)
        length = safe_norm(q)
        inside = length <= self.disc.radius
        scale = self.disc.radius * reciprocal(where(inside, 1.0, length))
        return add_scaled(found, where(inside, 1.0, scale), q)

    def corner(self, signs: Sequence[Array]) -> Vector:
        """The centre, and each half axis with a sign; where a sign is zero, the middle of an edge or a face."""
        return add(self.center, combined(signs, self.halves))

    def turned(self, rotation: Vector) -> Solid:
        """Turned about its centre by a rotation vector that is infinitesimal."""

        def turn(x: Vector) -> Vector:
            a, b, c = rotation
            return x[0] + (b * x[2] - c * x[1]), x[1] + (c * x[0] - a * x[2]), x[2] + (a * x[1] - b * x[0])

        disc = None if self.disc is None else Disc(turn(self.disc.axis), self.disc.radius)
        return self._replace(halves=tuple(turn(g) for g in self.halves), disc=disc)


def _is_level(t: Array, g: Vector) -> Array:
    """Whether half axes g are perpendicular to unit vectors n to rounding, where t = n . g."""
    return t * t <= rounding(t) * dot(g, g)


def following(n: Vector, *solids: Solid) -> Vector:
    """Unit vectors n, which turn with the half axes and discs of which `reach` takes the middle.

    So they stay as perpendicular to these as they are, as `reach` has it. A direction between nearest points does so by
    itself, unless they are at the end of such a half axis or on the rim of such a disc.
    """
    halves = tuple(g for solid in solids for g in solid.halves)
    return _following(n, halves, tuple(solid.disc.axis for solid in solids if solid.disc is not None))


@jax.custom_jvp
def _following(n: Vector, halves: tuple[Vector, ...], axes: tuple[Vector, ...]) -> Vector:
    return n


@_following.defjvp
def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    (n, halves, axes), (dn, d_halves, d_axes) = primals, tangents
    last = map_components(jnp.zeros_like, n)
    per_last = last[0]
    for g, dg in zip(halves, d_halves, strict=True):
        # A turn along what is perpendicular to n and to the half axis before, so that n goes on following that, too.
        beside = lax.stop_gradient(add_scaled(perpendicular(g, n), -dot(last, g) * per_last, last))
        square = dot(beside, beside)
        follows = _is_level(dot(n, g), g) & (square > rounding(square) * dot(g, g))
        per = where(follows, reciprocal(where(follows, square, jnp.ones_like(square))), jnp.zeros_like(square))
        dn = add_scaled(dn, -(dot(dn, g) + dot(n, dg)) * per, beside)
        last = map_components(lambda x, y, f=follows: where(f, x, y), beside, last)
        per_last = where(follows, per, per_last)
    for axis, d_axis in zip(axes, d_axes, strict=True):
        across, along = perpendicular(n, axis), dot(n, axis)
        follows = dot(across, across) <= rounding(along)
        dn = map_components(lambda x, y, f=follows: where(f, x, y), perpendicular(scaled(along, d_axis), n), dn)
    return _following(n, halves, axes), dn


def solid(placed: Placed) -> Solid:
    """The solid of shapes as their `gathered` gives them."""
    if isinstance(placed, PlacedCapsules):
        middle = map_components(lambda p, q: 0.5 * (p + q), placed.start, placed.end)
        half = map_components(lambda p, q: 0.5 * (p - q), placed.start, placed.end)
        return Solid(middle, (half,), None, placed.radius)
    no_ball = jnp.zeros_like(placed.center[0])
    if isinstance(placed, PlacedBoxes):
        halves = tuple(scaled(h, axis) for h, axis in zip(placed.half, placed.axes, strict=True))
        return Solid(placed.center, halves, None, no_ball, lax.stop_gradient(placed.axes))
    disc = Disc(placed.axis, placed.radius)
    return Solid(placed.center, (scaled(placed.half_length, placed.axis),), disc, no_ball)
