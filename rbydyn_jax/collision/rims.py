r"""Directions along which the rim of a disc may be nearest to a straight edge or to another rim.

Where a rim is nearest, the direction between the two points is perpendicular to both curves. The points are sought by
fixed numbers of steps, held constant, and improved by one step of Newton's method, which has the derivatives of the
exact solution.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..shapes.base import Vector
from ..xla.control_flow import fori_loop
from ..xla.fusion import kernel
from ..xla.reciprocal import reciprocal, reciprocal_root
from .vectors import (
    add_scaled,
    any_perpendicular,
    clamped,
    constant_where,
    cross,
    direction,
    dot,
    larger,
    map_components,
    otherwise,
    perpendicular,
    safe_norm,
    scaled,
    sub,
    tiny,
    where,
)

T = TypeVar("T")
_HALVINGS = 26
_ALTERNATIONS = 6
_KEPT = 3  # of the eight
_NEWTON_STEPS = 6


class Rim(NamedTuple):
    """The rim at one end of a cylinder, by centre, outward unit axis and radius."""

    center: Vector
    axis: Vector
    radius: Array


def rim_edge_directions(rim: Rim, point: Vector, w: Vector) -> list[Vector]:
    """Between rims and the lines through `point` along unit vectors w; zero where they are not determined."""
    start = lax.stop_gradient(_nearest_on_ellipse(*lax.stop_gradient((rim, point, w))))
    return kernel(_from_start)(rim, point, w, start)


def _from_start(rim: Rim, point: Vector, w: Vector, start: Vector) -> list[Vector]:
    """After a step of Newton's method from the direction of a point of the rim."""
    u, t = _basis(rim.axis, start)
    d = sub(rim.center, point)
    pu, pt = perpendicular(u, w), perpendicular(t, w)
    gap = perpendicular(add_scaled(d, rim.radius, u), w)
    slope, curvature = dot(gap, pt), rim.radius * dot(pt, pt) - dot(gap, pu)
    usable = curvature > 1e-6 * rim.radius
    angle = where(usable, -slope * reciprocal(where(usable, curvature, jnp.ones_like(curvature))), 0.0)
    u, t = _turned(u, t, clamped(angle, 0.1))
    return _directions(perpendicular(add_scaled(d, rim.radius, u), w), dot(d, d) + rim.radius * rim.radius, t, w)


def rim_rim_directions(a: Rim, b: Rim) -> list[Vector]:
    """Between two rims, where their distance has a minimum: unit vectors, or zero where they are not determined."""

    def from_ends(a: Rim, b: Rim, ends: tuple[Vector, Vector]) -> list[Vector]:
        ua, ub, ta, tb = _newton(a, b, *ends)
        d = sub(a.center, b.center)
        scale = dot(d, d) + a.radius * a.radius + b.radius * b.radius
        return _directions(_rim_gap(a, b, ua, ub), scale, ta, tb)

    minima = lax.stop_gradient(_nearest_on_rims(*lax.stop_gradient((a, b))))
    return [n for k in range(_KEPT) for n in kernel(from_ends)(a, b, jax.tree.map(lambda x, k=k: x[k], minima))]


def _directions(gap: Vector, scale: Array, first: Vector, second: Vector) -> list[Vector]:
    """Along the gap, and perpendicular to both tangents: where it vanishes, or they are parallel, one is left."""
    return [direction(gap, scale), direction(cross(first, second), jnp.ones_like(scale))]


def _basis(axis: Vector, u: Vector) -> tuple[Vector, Vector]:
    """Unit vectors perpendicular to the axis, the first near u."""
    u = _projected(axis, u)
    return u, cross(axis, u)


def _projected(axis: Vector, x: Vector) -> Vector:
    """The unit vector perpendicular to the axis that is nearest to x."""
    return otherwise(direction(perpendicular(x, axis), dot(x, x)), any_perpendicular(axis))


def _turned(u: Vector, t: Vector, angle: Array) -> tuple[Vector, Vector]:
    """Unit vectors in the plane of u and t, turned by about `angle`, in small angles to third order."""
    half = 0.5 * angle
    scale = reciprocal(1 + half * half)
    c, s = (1 - half * half) * scale, angle * scale
    return map_components(lambda x, y: c * x + s * y, u, t), map_components(lambda x, y: c * y - s * x, u, t)


def _nearest_on_ellipse(rim: Rim, point: Vector, w: Vector) -> Vector:
    """Directions from the centres of rims to their points that are nearest to lines.

    Seen along the line the rim is an ellipse, of which one side of the major axis looks outward. There, in the quadrant
    of the line, the derivative of the distance by the angle is zero once between the bounds.
    """
    major, minor, along, across, bulge, bounds = kernel(_ellipse)(rim, point, w)

    def halved(bounds: tuple[Array, ...]) -> tuple[Array, ...]:
        c0, s0, c1, s1 = bounds
        c, s = _unit(c0 + c1, s0 + s1)
        beyond = along * s - across * c - bulge * s * c > 0
        return tuple(where(beyond, p, q) for p, q in ((c0, c), (s0, s), (c, c1), (s, s1)))

    c, s, *_ = fori_loop(0, _HALVINGS, lambda _, x: kernel(halved)(x), bounds)
    return map_components(lambda p, q: c * p + s * q, major, minor)


def _ellipse(rim: Rim, point: Vector, w: Vector) -> tuple[Vector, Vector, Array, Array, Array, tuple[Array, ...]]:
    """Unit vectors towards the line along the axes of the ellipse, the terms of the derivative, and bounds of its zero.

    The bounds are cosines and sines of the angle from the major axis.
    """
    major = _projected(rim.axis, cross(rim.axis, w))
    minor = cross(rim.axis, major)
    outward = where(dot(minor, w) * dot(w, rim.axis) > 0, -1.0, jnp.ones_like(rim.radius))
    minor = map_components(lambda p: outward * p, minor)
    seen = perpendicular(minor, w)
    flat = safe_norm(seen)
    seen = otherwise(direction(seen, jnp.ones_like(flat)), cross(w, major))
    d = sub(point, rim.center)
    x, y = dot(d, major), dot(d, seen)
    major = map_components(lambda p: where(x < 0, -p, p), major)
    along, across = rim.radius * abs(x), rim.radius * flat * y
    bulge = rim.radius * rim.radius * (1 - flat * flat)
    below = jnp.maximum(-across, 0.0)
    c, s = _unit(where(below > 0, jnp.cbrt(along), 1.0), jnp.cbrt(below))
    return major, minor, along, across, bulge, (c, s, jnp.zeros_like(x), jnp.ones_like(x))


def _unit(c: Array, s: Array) -> tuple[Array, Array]:
    square = c * c + s * s
    per_length = reciprocal_root(where(square > tiny(square), square, jnp.ones_like(square)))
    return c * per_length, s * per_length


def _nearest_on_rims(a: Rim, b: Rim) -> tuple[Vector, Vector]:
    """Directions from the centres to points of two rims where their distance has a minimum, several rows of them.

    Alternating projections from the quarters of both rims lead near to the minima, of which there may be two. Which one
    counts where solids overlap is not known here, so that the nearest points and those farthest from them are kept.
    """
    a, b = jax.tree.map(lambda x: x[None], (a, b))
    on_a, on_b = kernel(_quarters)(a, b)
    ua = _rows([_rows(on_a), kernel(_on_other)(b, _rows(on_b), a)])
    ua = fori_loop(0, _ALTERNATIONS, lambda _, u: kernel(_alternated)(a, b, u), ua)
    starts = [map_components(lambda x, k=k: x[k : k + 1], ua) for k in range(8)]
    ends = jax.tree.map(lambda *x: jnp.concatenate(x), *kernel(_distinct)(a, b, starts))
    return fori_loop(0, _NEWTON_STEPS, lambda _, u: kernel(_newton)(a, b, *u)[:2], ends)


def _rows(vectors: list[Vector]) -> Vector:
    return map_components(lambda *x: jnp.concatenate(x), *vectors)


def _quarters(a: Rim, b: Rim) -> tuple[list[Vector], list[Vector]]:
    """Four directions from the centre of each."""
    u, t = _basis(a.axis, cross(a.axis, b.axis))
    v, w = _basis(b.axis, u)
    back = -jnp.ones_like(a.radius)
    return [u, t, scaled(back, u), scaled(back, t)], [v, w, scaled(back, v), scaled(back, w)]


def _on_other(rim: Rim, u: Vector, other: Rim) -> Vector:
    """The direction to the point of the other rim that is nearest to a point of a rim."""
    return _projected(other.axis, add_scaled(sub(rim.center, other.center), rim.radius, u))


def _alternated(a: Rim, b: Rim, ua: Vector) -> Vector:
    return _on_other(b, _on_other(a, ua, b), a)


def _distinct(a: Rim, b: Rim, starts: list[Vector]) -> list[tuple[Vector, Vector]]:
    """The nearest points of those from which the search starts, and those farthest from all that are chosen before."""
    ends = [(ua, _on_other(a, ua, b)) for ua in starts]
    gaps = [_rim_gap(a, b, *pair) for pair in ends]
    found = [_least([dot(gap, gap) for gap in gaps], ends)]
    near = [jnp.full_like(a.radius, -jnp.inf) for _ in ends]
    while len(found) < _KEPT:
        u, v = found[-1]
        near = [larger(x, dot(ua, u) + dot(ub, v)) for x, (ua, ub) in zip(near, ends, strict=True)]
        found.append(_least(near, ends))
    return found


def _least(values: list[Array], items: list[T]) -> T:
    """The item of the least value."""
    least, found = values[0], items[0]
    for value, item in zip(values[1:], items[1:], strict=True):
        found = jax.tree.map(lambda x, y, less=value < least: where(less, x, y), item, found)
        least = jnp.minimum(value, least)
    return found


def _rim_gap(a: Rim, b: Rim, ua: Vector, ub: Vector) -> Vector:
    return add_scaled(add_scaled(sub(a.center, b.center), a.radius, ua), -b.radius, ub)


def _newton(a: Rim, b: Rim, ua: Vector, ub: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """One step on the squared distance over both angles; where it is not convex there, with its curvature raised."""
    ua, ta = _basis(a.axis, ua)
    ub, tb = _basis(b.axis, ub)
    gap = _rim_gap(a, b, ua, ub)
    ga, gb = a.radius * dot(gap, ta), -b.radius * dot(gap, tb)
    haa = a.radius * (a.radius - dot(gap, ua))
    hbb = b.radius * (b.radius + dot(gap, ub))
    hab = -a.radius * b.radius * dot(ta, tb)
    size = a.radius * a.radius + b.radius * b.radius
    mean, half = 0.5 * (haa + hbb), 0.5 * (haa - hbb)
    lowest = lax.stop_gradient(mean - safe_norm((half, hab, jnp.zeros_like(hab))))
    raised = where(lowest > 1e-6 * size, jnp.zeros_like(size), 1e-2 * size - lowest)
    haa, hbb = haa + raised, hbb + raised
    det = haa * hbb - hab * hab
    usable = det > 0
    per_det = reciprocal(where(usable, det, jnp.ones_like(det)))
    steps = -(hbb * ga - hab * gb) * per_det, -(haa * gb - hab * ga) * per_det
    by_a, by_b = (constant_where(det < 1e-5 * size * size, where(usable, x, jnp.zeros_like(x))) for x in steps)
    ua, ta = _turned(ua, ta, clamped(by_a, 0.5))
    ub, tb = _turned(ub, tb, clamped(by_b, 0.5))
    return ua, ub, ta, tb
