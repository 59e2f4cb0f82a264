r"""Exact distance between two capsules, with witness points and derivatives.

A capsule is a segment swept by a sphere, so its distance to another is that of the two segments less both radii. The
points of the segments are $a_0 + s u$ and $b_0 + t w$ with $s, t \in [0, 1]$, and $|r + s u - t w|$ with
$r = a_0 - b_0$ is least after three clamped steps without a branch [Ericson 2005, sec. 5.1.9]: the line-line solution
for $s$, the projection of that point on the other segment for $t$, and of this one back for $s$.

No threshold decides what is parallel. The line-line step is taken from cross products,
$s = -(r \times w) \cdot n / |n|^2$ with $n = u \times w$, whose error is largest along the very direction in which the
distance does not change: the distance stays exact to rounding at every angle, where the usual form
$(be - cd)/(ac - b^2)$ loses it to cancellation. A step whose divisor vanishes (parallel axes, a point) is taken as
zero, which is right because the other two steps then find a minimum alone.

Everything here is arithmetic on components (see `vectors`). Choices between a value and a constant are written as
arithmetic, since `select` under `vmap` moves the batch to the front, and batches come last here.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._check import check_array, check_size
from .._jit import jit_public
from ..shapes.base import Vector
from ..shapes.capsule import PlacedCapsules
from ..xla.fusion import kernel
from ..xla.reciprocal import reciprocal, reciprocal_root
from .vectors import add_scaled, components, cross, dot, map_components, norm, scaled, sub, tiny, where
from .witness import CapsuleDistance, Witness

Segments = tuple[Vector, Vector, Vector]  # r, u, w


def capsule_distance(
    a0: Float[Array, "3"],
    a1: Float[Array, "3"],
    radius_a: Float[Array, ""] | float,
    b0: Float[Array, "3"],
    b1: Float[Array, "3"],
    radius_b: Float[Array, ""] | float,
) -> CapsuleDistance:
    r"""Signed distance between two capsules, $\min_{s,t} |r + s u - t w| - r_a - r_b$, with its witness points.

    Any two segments: crossing, parallel, coincident, of length zero (a sphere). The error is a few roundings of the
    coordinates, at every angle between the axes.

    The first and second derivatives of `distance` are exact wherever they exist, and finite everywhere. Its gradient is
    that of the distance between the witness points held fixed on their capsules (Danskin); where several pairs of
    points are nearest (parallel axes that overlap) it belongs to the pair that is returned. Where the axes touch, to
    rounding, the gradient is that of moving apart along a unit normal of both axes, an element of the subdifferential,
    and the normal counts as constant.

    Args:
        a0: First end of the axis of the first capsule [m].
        a1: Second end of that axis [m].
        radius_a: Radius of the first capsule [m], not negative; while it is traced this is not checked.
        b0: First end of the axis of the second capsule [m].
        b1: Second end of that axis [m].
        radius_b: Radius of the second capsule [m].

    Returns:
        Distance and witness points, in the coordinates of the arguments. Where the axes touch, the surface points lie
        along a common normal of the axes.

    Raises:
        ArgumentError: A radius is negative.
        DtypeError: An argument is not an array of floats.
        ShapeError: An end is not of shape (3,), or a radius not a scalar.

    Example:
        Two crossed rods of radius 0.1 m, one 0.5 m above the other:

        >>> import jax.numpy as jnp
        >>> x, y, up = jnp.eye(3)
        >>> d = capsule_distance(-x, x, 0.1, 0.5 * up - y, 0.5 * up + y, 0.1)
        >>> round(float(d.distance), 6)
        0.3
        >>> round(float(d.point_a[2]), 6), round(float(d.point_b[2]), 6)
        (0.1, 0.4)
    """
    return _capsule_distance(a0, a1, check_size(radius_a, "radius_a"), b0, b1, check_size(radius_b, "radius_b"))


@jit_public()
def _capsule_distance(a0: Array, a1: Array, radius_a: Array, b0: Array, b1: Array, radius_b: Array) -> CapsuleDistance:
    names = ("a0", "a1", "b0", "b1")
    ends = [check_array(x, n, (3,), "x, y, z") for n, x in zip(names, (a0, a1, b0, b1), strict=True)]
    dtype = jnp.result_type(*ends)
    p0, p1, q0, q1 = (components(x.astype(dtype)) for x in ends)
    a = PlacedCapsules(p0, p1, radius_a.astype(dtype))
    b = PlacedCapsules(q0, q1, radius_b.astype(dtype))
    return CapsuleDistance(*capsule_capsule(a, b).stacked())


def capsule_capsule(a: PlacedCapsules, b: PlacedCapsules) -> Witness:
    """`capsule_distance` on components, for arrays of pairs of any one shape."""
    distance, normal, axis_a, axis_b = axes_witness(a, b)
    on_surfaces = add_scaled(axis_a, -a.radius, normal), add_scaled(axis_b, b.radius, normal)
    return Witness(distance - a.radius - b.radius, *on_surfaces, axis_a, axis_b)


def axes_witness(a: PlacedCapsules, b: PlacedCapsules) -> tuple[Array, Vector, Vector, Vector]:
    """The distance of the axes, the unit normal from the second to the first, and the nearest points of both."""
    r, u, w = sub(a.start, b.start), sub(a.end, a.start), sub(b.end, b.start)
    s, t = _nearest_parameters(r, u, w)
    on_axes = add_scaled(a.start, s, u), add_scaled(b.start, t, w)
    return _segment_distance(r, u, w), _normal(r, u, w, s, t), *on_axes


@jax.custom_jvp
def _segment_distance(r: Vector, u: Vector, w: Vector) -> Array:
    r"""Distance of the segments $\{r + s u\}$ and $\{t w\}$ on components, for arrays of pairs of any one shape."""
    return norm(_gap(r, u, w, *_nearest_parameters(r, u, w)))


@_segment_distance.defjvp
def _segment_distance_jvp(primals: Segments, tangents: Segments) -> tuple[Array, Array]:
    # The parameters are optimal, so their own change does not change the distance: leaving it out is exact and spares
    # the gradient the rounding that near-parallel axes would amplify. They stay functions of the primals, so the next
    # derivative, where their change does count, is right as well.
    r, u, w = primals
    s, t = _nearest_parameters(r, u, w)
    return norm(_gap(r, u, w, s, t)), dot(_normal(r, u, w, s, t), _gap(*tangents, s, t))


def _nearest_parameters(r: Vector, u: Vector, w: Vector) -> tuple[Array, Array]:
    n = cross(u, w)
    uu, uw, ww = dot(u, u), dot(u, w), dot(w, w)
    s = _clamped_ratio(-dot(cross(r, w), n), dot(n, n), _rounding_of_normal(uu, ww))
    t = _clamped_ratio(dot(w, r) + uw * s, ww)
    s = _clamped_ratio(uw * t - dot(u, r), uu)
    return s, t


def _rounding_of_normal(uu: Array, ww: Array) -> Array:
    """A cross product whose square is not larger is rounding error."""
    return (8 * jnp.finfo(uu.dtype).eps) ** 2 * (uu * ww)


@jax.custom_jvp
def _clamped_ratio(x: Array, y: Array, rounding: Array | float = 0.0) -> Array:
    """x / y for y >= 0, clamped to [0, 1]; x = y = 0 gives 0. Held constant where y is not larger than its rounding."""
    return lax.clamp(jnp.zeros((), x.dtype), x / jnp.maximum(y, tiny(y)), jnp.ones((), x.dtype))


@_clamped_ratio.defjvp
def _clamped_ratio_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    x, y, rounding = primals
    dx, dy, _ = tangents
    ratio = _clamped_ratio(x, y)
    # XLA may compute y once more, and round it otherwise: of what is rounding alone it could be zero there.
    inside = ((ratio > 0) & (ratio < 1) & (y > jnp.maximum(rounding, tiny(y)))).astype(ratio.dtype)
    # Neither y**2, which may underflow, nor the reciprocal of a zero is ever formed.
    return ratio, (dx - ratio * dy) * (inside / (inside * y + (1 - inside)))


def _gap(r: Vector, u: Vector, w: Vector, s: Array, t: Array) -> Vector:
    return add_scaled(add_scaled(r, s, u), -t, w)


def _normal(r: Vector, u: Vector, w: Vector, s: Array, t: Array) -> Vector:
    """Unit vector along the gap; where that vanishes to rounding, a common normal of the axes, held constant."""
    # A kernel: XLA would compute the gap for each component once more, and round it otherwise.
    gap = kernel(_gap, exportable=True)(r, u, w, s, t)
    square = dot(gap, gap)
    rounding = (2 * jnp.finfo(square.dtype).eps) ** 2 * (dot(r, r) + dot(u, u) + dot(w, w))
    apart = (square > rounding) & (square > tiny(square))
    some = map_components(lambda g: where(apart, g, jnp.ones_like(g)), gap)
    touching = _common_normal(*lax.stop_gradient((u, w)))
    return map_components(lambda n, other: where(apart, n, other), _unit(some), touching)


@jax.custom_jvp
def _unit(x: Vector) -> Vector:
    return scaled(reciprocal_root(dot(x, x)), x)


@_unit.defjvp
def _unit_jvp(primals: tuple[Vector], tangents: tuple[Vector]) -> tuple[Vector, Vector]:
    # Without the third power of the length, which may overflow.
    (x,), (dx,) = primals, tangents
    n = _unit(x)
    return n, scaled(reciprocal_root(dot(x, x)), add_scaled(dx, -dot(n, dx), n))


def _common_normal(u: Vector, w: Vector) -> Vector:
    """Unit vector perpendicular to both axes; z for two points."""
    n = cross(u, w)
    uu, ww = dot(u, u), dot(w, w)
    crossing = dot(n, n) > _rounding_of_normal(uu, ww)
    x, y, z = longer = map_components(lambda p, q: jnp.where(uu >= ww, p, q), u, w)
    k = (abs(x) > abs(z)).astype(x.dtype)
    beside = (-k * y, k * x - (1 - k) * z, (1 - k) * y)  # (-y, x, 0) or (0, -z, y)
    n = map_components(lambda p, q: jnp.where(crossing, p, q), n, beside)
    tilt = dot(n, longer) * reciprocal(jnp.maximum(jnp.maximum(uu, ww), tiny(uu)))  # near-parallel axes: rounding of n
    n = add_scaled(n, -tilt, longer)
    square = dot(n, n)
    none = (square <= tiny(square)).astype(square.dtype)
    per_length = reciprocal_root(square + none)
    return n[0] * per_length, n[1] * per_length, (n[2] + none) * per_length
