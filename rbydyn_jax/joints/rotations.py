"""Rotations in structural scalars, and the directions of a plane."""

from __future__ import annotations

import math

from .._lazy import jax, jnp
from ..spatial.algebra import IDENTITY3, Mat3, Vec3
from ..xla.structural import MINUS_ONE, ONE, ZERO, Scalar, Structural, add, mul, neg, number, sub

# Half a unit in the last place of 2 pi is 4.4e-16: an angle written in decimals as a multiple of pi/2 up to a full turn
# cannot be told from the exact one, so a sine or cosine below it is meant as zero.
SNAP = 2.5e-16


def exact_sincos(angle: float) -> tuple[float, float]:
    """(sine, cosine) of an angle, exact at right angles."""
    s, c = math.sin(angle), math.cos(angle)
    if abs(s) <= SNAP:
        return 0.0, math.copysign(1.0, c)
    if abs(c) <= SNAP:
        return math.copysign(1.0, s), 0.0
    return s, c


def rotation_about(axis: Vec3, sine: Scalar, cosine: Scalar) -> Mat3:
    """Rodrigues' formula for a unit axis."""
    k = sub(ONE, cosine)

    def diagonal(a: Scalar) -> Scalar:
        if isinstance(a, Structural):
            return cosine if a is ZERO else ONE
        return add(cosine, mul(mul(a, a), k))

    xy, xz, yz = (mul(mul(a, b), k) for a, b in ((axis.x, axis.y), (axis.x, axis.z), (axis.y, axis.z)))
    x, y, z = axis.scale(sine)
    return Mat3(
        Vec3(diagonal(axis.x), sub(xy, z), add(xz, y)),
        Vec3(add(xy, z), diagonal(axis.y), sub(yz, x)),
        Vec3(sub(xz, y), add(yz, x), diagonal(axis.z)),
    )


def rotation_from_quaternion(w: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Mat3:
    """R of a quaternion of any length but zero: the length divides out."""
    k = 2.0 / (w * w + x * x + y * y + z * z)
    kx, ky, kz = k * x, k * y, k * z
    return Mat3(
        Vec3(1.0 - ky * y - kz * z, kx * y - kz * w, kx * z + ky * w),
        Vec3(kx * y + kz * w, 1.0 - kx * x - kz * z, ky * z - kx * w),
        Vec3(kx * z - ky * w, ky * z + kx * w, 1.0 - kx * x - ky * y),
    )


def plane_directions(normal: Vec3) -> tuple[Vec3, Vec3]:
    """The images of e_x and e_y under the smallest rotation that takes e_z to `normal`."""
    x, y, z = normal
    if z is ONE:
        return IDENTITY3.r0, IDENTITY3.r1
    if z is MINUS_ONE:  # half a turn about x
        return IDENTITY3.r0, Vec3(ZERO, MINUS_ONE, ZERO)
    down = add(ONE, z)
    safe = down
    if not isinstance(down, Structural | float):
        safe = jnp.where(down == 0.0, 1.0, down)
    kx, ky = number(x) / number(safe), number(y) / number(safe)
    first = Vec3(sub(ONE, mul(kx, x)), neg(mul(kx, y)), neg(x))
    second = Vec3(neg(mul(kx, y)), sub(ONE, mul(ky, y)), neg(y))
    if not isinstance(down, Structural | float):
        second = Vec3(second.x, jnp.where(down == 0.0, -1.0, number(second.y)), second.z)
    return first, second


def turn(angle: jax.Array) -> jax.Array:
    """The rotation (2, 2) of a plane."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])
