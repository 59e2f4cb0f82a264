r"""Unit quaternions, stored scalar first: $q = [w, x, y, z]$, $R(q) = R(-q)$.

Every function that reads a rotation from a quaternion divides by $|q|^2$: its value does not depend on the
length of q and its gradient is orthogonal to q, so that rounding in $|q|$ never reaches a result. Rates are
body rates: $\dot q = \frac12 q \otimes [0, \omega]$ with $\omega$ in the rotated axes.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_rotation
from ._small import binary_scale, cross, dot, jitted
from .safe import angle_ratio, stumpff


def _check(q, name: str = "q") -> Array:
    return check_array(q, name, (4,), "a quaternion wxyz")


def _scaled(q: Array) -> Array:
    """A multiple of q whose square neither underflows nor overflows; what does not depend on |q| may use it for q."""
    return q * binary_scale(q)


@jitted
def multiply(a: Float[Array, "4"], b: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Hamilton product $a \otimes b$: the rotation b, followed by the rotation a, $R(ab) = R(a) R(b)$.

    Example:
        >>> i, j = jnp.array([0.0, 1, 0, 0]), jnp.array([0.0, 0, 1, 0])
        >>> multiply(i, j).tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    a, b = _check(a, "a"), _check(b, "b")
    w = a[0] * b[0] - dot(a[1:], b[1:])
    return jnp.concatenate([w[None], a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])])


@jitted
def conjugate(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The conjugate [w, -x, -y, -z]: the inverse rotation."""
    q = _check(q)
    return jnp.concatenate([q[:1], -q[1:]])


@jitted
def normalize(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """The quaternion scaled to unit length; the zero quaternion is no rotation and gives NaN."""
    q = _scaled(_check(q))
    return q / jnp.sqrt(dot(q, q))


@jitted
def canonical(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """Of q and -q, the same rotation, the one with w > 0; at w = 0 the first component that is not 0 is positive.

    The choice is discontinuous across rotations by pi.

    Example:
        >>> canonical(jnp.array([-0.5, 0.5, 0.5, -0.5])).tolist()
        [0.5, -0.5, -0.5, 0.5]
    """
    w, x, y, z = q = _check(q)
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return jnp.where(negative, -q, q)


@jitted
def rotate(q: Float[Array, "4"], p: Float[Array, "3"]) -> Float[Array, "3"]:
    """The vector p rotated by q, R(q) p.

    Example:
        A quarter turn about z takes x to y:

        >>> rotate(jnp.array([1.0, 0, 0, 1]), jnp.array([1.0, 0, 0])).tolist()
        [0.0, 1.0, 0.0]
    """
    q, p = _scaled(_check(q)), check_array(p, "p", (3,))
    u = cross(q[1:], p)
    return p + 2.0 / dot(q, q) * (q[0] * u + cross(q[1:], u))


@jitted
def to_matrix(q: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """Rotation matrix of a quaternion of any length but zero."""
    q = _scaled(_check(q))
    w, x, y, z = q * jnp.sqrt(2.0 / dot(q, q))
    return jnp.stack(
        [
            jnp.stack([1.0 - y * y - z * z, x * y - w * z, x * z + w * y]),
            jnp.stack([x * y + w * z, 1.0 - x * x - z * z, y * z - w * x]),
            jnp.stack([x * z - w * y, y * z + w * x, 1.0 - x * x - y * y]),
        ]
    )


@partial(jitted, R=check_rotation)
def from_matrix(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    r"""Unit quaternion of a rotation matrix, with the sign of `canonical`.

    The matrix determines the products $4 q_i q_j$; of their four rows the one with the largest diagonal is
    taken (Shepperd's method), so that no square root is taken of zero at the identity or at angle pi.

    Example:
        >>> from_matrix(jnp.diag(jnp.array([1.0, -1.0, -1.0]))).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """
    R = check_array(R, "R", (3, 3), "a rotation matrix")
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    ww, xx, yy, zz = 1.0 + a + b + c, 1.0 + a - b - c, 1.0 - a + b - c, 1.0 - a - b + c
    rows = [jnp.stack(row) for row in ((ww, wx, wy, wz), (wx, xx, xy, xz), (wy, xy, yy, yz), (wz, xz, yz, zz))]
    largest = jnp.argmax(jnp.stack([ww, xx, yy, zz]))
    return canonical(normalize(jax.lax.select_n(largest, *rows)))


@jitted
def exp(phi: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Unit quaternion of a rotation vector, $[\cos\frac\theta2,\ \frac12 c_1(\theta^2/4)\,\phi]$.

    Example:
        >>> exp(jnp.zeros(3)).tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    phi = check_array(phi, "phi", (3,), "a rotation vector")
    x = 0.25 * dot(phi, phi)
    return jnp.concatenate([stumpff(0, x)[None], 0.5 * stumpff(1, x) * phi])


@jitted
def log(q: Float[Array, "4"]) -> Float[Array, "3"]:
    r"""Rotation vector of a quaternion of any length but zero, the same for q and -q.

    Exact with its derivatives of every order at the identity; at angle pi it is discontinuous, and the side is
    that of `canonical`: do not optimize across it.

    Returns:
        The rotation vector [rad], of length at most pi.

    Example:
        Half a turn about y:

        >>> [round(float(x), 4) for x in log(jnp.array([0.0, 0.0, 2.0, 0.0]))]
        [0.0, 3.1416, 0.0]
    """
    q = _scaled(canonical(q))
    return angle_ratio(dot(q[1:], q[1:]), q[0]) * q[1:]


@jitted
def slerp(a: Float[Array, "4"], b: Float[Array, "4"], t: Float[Array, ""] | float) -> Float[Array, "4"]:
    r"""The rotation at the fraction t of the shortest way from a to b, $a \exp(t \log(a^{-1} b))$.

    Args:
        a: Rotation at t = 0.
        b: Rotation at t = 1; b and -b are the same.
        t: Fraction; values outside [0, 1] go on with the same rate.

    Returns:
        Unit quaternion in the half-space of a.

    Example:
        >>> half = slerp(jnp.array([1.0, 0, 0, 0]), jnp.array([0, 0, 0, 1.0]), 0.5)
        >>> [round(float(x), 4) for x in half]
        [0.7071, 0.0, 0.0, 0.7071]
    """
    a, b, t = _check(a, "a"), _check(b, "b"), check_array(t, "t", ())
    return multiply(normalize(a), exp(t * log(multiply(conjugate(_scaled(a)), _scaled(b)))))


@jitted
def derivative(q: Float[Array, "4"], omega: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Time derivative $\dot q = \frac12 q \otimes [0, \omega]$ for the angular velocity in body axes [rad/s]."""
    omega = check_array(omega, "omega", (3,), "an angular velocity")
    return 0.5 * multiply(q, jnp.concatenate([jnp.zeros_like(omega[:1]), omega]))


@jitted
def angular_velocity(q: Float[Array, "4"], qdot: Float[Array, "4"]) -> Float[Array, "3"]:
    r"""Angular velocity in body axes, $2\,\mathrm{vec}(\bar q \otimes \dot q)/|q|^2$; the inverse of `derivative`.

    Returns:
        $\omega$ [rad/s]; a change of the length of q does not enter.
    """
    q = _check(q)
    scale = binary_scale(q)
    q, qdot = q * scale, _check(qdot, "qdot") * scale
    return 2.0 / dot(q, q) * multiply(conjugate(q), qdot)[1:]


@jitted
def xyzw_from_wxyz(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """Moves the scalar part to the end, as ROS, scipy and pinocchio store quaternions."""
    return jnp.roll(_check(q), -1)


@jitted
def wxyz_from_xyzw(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """Moves the scalar part to the front, as this library stores quaternions."""
    return jnp.roll(check_array(q, "q", (4,), "a quaternion xyzw"), 1)
