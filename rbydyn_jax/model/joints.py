"""The joint types. A new type is one class here; no algorithm changes.

A type says how its transform follows from its coordinates, which motions it allows (its motion subspace S, constant in
the frame after the joint), and how its coordinates are integrated. The first half is written in the structural scalars
of the algorithms, the second half on small arrays.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..spatial import mrp, quaternions, se3, so3
from ..spatial.algebra import IDENTITY3, O3, Mat3, Motion, Transform, Vec3
from ..xla.structural import MINUS_ONE, ONE, ZERO, Scalar, Structural, add, mul, neg, number, sub

# The coordinates of one joint as the algorithms see them: numbers, or (sine, cosine) of those that are angles.
Coordinates = tuple


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


class JointType:
    """One type of joint.

    Attributes:
        nq: Number of position coordinates.
        nv: Number of velocity coordinates.
        angles: Which position coordinates enter through sine and cosine alone.
        translations: Which position coordinates only translate what comes after the joint, in the axes before it.
    """

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    angles: ClassVar[tuple[int, ...]] = ()
    translations: ClassVar[tuple[int, ...]] = ()

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        """T_before_after at coordinates `x`."""
        raise TypeError(f"{type(self).__name__} defines no transform")

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        """The columns of S, in the frame after the joint, in which they are constant (the derivatives rely on it)."""
        raise TypeError(f"{type(self).__name__} defines no motion subspace")

    def neutral(self) -> np.ndarray:
        """The position at which the transform is the identity."""
        return np.zeros(self.nq)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        """The position reached from `q` at constant velocity `dv` in one unit of time."""
        return q + dv

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        """The velocity that leads from `q0` to `q1` in one unit of time."""
        return q1 - q0

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """Time derivative of the position."""
        return v

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        """Velocity of which `qdot` is the rate of the position."""
        return qdot

    def normalize(self, q: jax.Array) -> jax.Array:
        """The same position in its normal form."""
        return q

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        """A random position, uniform within the finite limits given."""
        return jax.random.uniform(key, (self.nq,), lower.dtype, lower, upper)


class Revolute(JointType):
    """Rotation about the axis; q [rad]."""

    angles = (0,)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(rotation_about(axis, *x[0]), O3)

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(axis, O3),)


class Prismatic(JointType):
    """Translation along the axis; q [m]."""

    translations = (0,)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(IDENTITY3, axis.scale(x[0]))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(O3, axis),)


class Planar(JointType):
    """Motion in the plane normal to the axis; q = [x, y, theta], v = [vx, vy, w] in the frame after the joint."""

    nq, nv, angles, translations = 3, 3, (2,), (0, 1)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        ex, ey = plane_directions(axis)
        return Transform(rotation_about(axis, *x[2]), ex.scale(x[0]) + ey.scale(x[1]))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        ex, ey = plane_directions(axis)
        return Motion(O3, ex), Motion(O3, ey), Motion(axis, O3)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        T = se3.exp(jnp.stack([*jnp.zeros(2, q.dtype), dv[2], dv[0], dv[1], jnp.zeros((), q.dtype)]))
        return q + jnp.stack([*(_turn(q[2]) @ T[:2, 3]), dv[2]])

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        angle = q1[2] - q0[2]
        p = _turn(q0[2]).T @ (q1[:2] - q0[:2])
        J_inverse = so3.left_jacobian_inverse(jnp.stack([*jnp.zeros(2, q0.dtype), angle]))[:2, :2]
        return jnp.stack([*(J_inverse @ p), angle])

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.stack([*(_turn(q[2]) @ v[:2]), v[2]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return jnp.stack([*(_turn(q[2]).T @ qdot[:2]), qdot[2]])


def _turn(angle: jax.Array) -> jax.Array:
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])


class Spherical(JointType):
    """Ball joint; q = quaternion wxyz, v = angular velocity in the frame after the joint."""

    nq, nv = 4, 3

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(rotation_from_quaternion(*x), O3)

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return tuple(Motion(e, O3) for e in IDENTITY3)

    def neutral(self) -> np.ndarray:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        return quaternions.multiply(q, quaternions.exp(dv))

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        return quaternions.log(quaternions.multiply(quaternions.conjugate(q0), q1))

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return 0.5 * quaternions.multiply(q, jnp.concatenate([jnp.zeros(1, v.dtype), v]))

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return 2.0 * quaternions.multiply(quaternions.conjugate(q), qdot)[1:] / jnp.sum(q * q)

    def normalize(self, q: jax.Array) -> jax.Array:
        return q / jnp.sqrt(jnp.sum(q * q))

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        return self.normalize(jax.random.normal(key, (4,), lower.dtype))


class Floating(JointType):
    """Free motion; q = [quaternion wxyz, p], v = [w; v] in the frame after the joint."""

    nq, nv, translations = 7, 6, (4, 5, 6)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(rotation_from_quaternion(*x[:4]), Vec3(*x[4:]))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (*(Motion(e, O3) for e in IDENTITY3), *(Motion(O3, e) for e in IDENTITY3))

    def neutral(self) -> np.ndarray:
        return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        T = se3.exp(dv)
        rotation = quaternions.multiply(q[:4], quaternions.exp(dv[:3]))
        return jnp.concatenate([rotation, q[4:] + quaternions.to_matrix(q[:4]) @ T[:3, 3]])

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        phi = quaternions.log(quaternions.multiply(quaternions.conjugate(q0[:4]), q1[:4]))
        p = quaternions.to_matrix(q0[:4]).T @ (q1[4:] - q0[4:])
        return jnp.concatenate([phi, so3.left_jacobian_inverse(phi) @ p])

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        rotation = 0.5 * quaternions.multiply(q[:4], jnp.concatenate([jnp.zeros(1, v.dtype), v[:3]]))
        return jnp.concatenate([rotation, quaternions.to_matrix(q[:4]) @ v[3:]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        w = 2.0 * quaternions.multiply(quaternions.conjugate(q[:4]), qdot[:4])[1:] / jnp.sum(q[:4] * q[:4])
        return jnp.concatenate([w, quaternions.to_matrix(q[:4]).T @ qdot[4:]])

    def normalize(self, q: jax.Array) -> jax.Array:
        return jnp.concatenate([q[:4] / jnp.sqrt(jnp.sum(q[:4] * q[:4])), q[4:]])

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        turn, place = jax.random.split(key)
        rotation = Spherical().random(turn, lower[:4], upper[:4])
        return jnp.concatenate([rotation, jax.random.uniform(place, (3,), lower.dtype, -1.0, 1.0)])


class SinCosRevolute(JointType):
    """Rotation about the axis without a jump anywhere; q = [sine, cosine] of the angle, v = its rate."""

    nq, nv = 2, 1

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        sine, cosine = x
        k = 1.0 / jnp.sqrt(sine * sine + cosine * cosine)
        return Transform(rotation_about(axis, k * sine, k * cosine), O3)

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(axis, O3),)

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 1.0])

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        return _turn(dv[0]).T @ q

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        return jnp.arctan2(q1[0] * q0[1] - q1[1] * q0[0], jnp.sum(q0 * q1))[None]

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return v * jnp.stack([q[1], -q[0]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return ((q[1] * qdot[0] - q[0] * qdot[1]) / jnp.sum(q * q))[None]

    def normalize(self, q: jax.Array) -> jax.Array:
        return q / jnp.sqrt(jnp.sum(q * q))

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        angle = jax.random.uniform(key, (), lower.dtype, -jnp.pi, jnp.pi)
        return jnp.stack([jnp.sin(angle), jnp.cos(angle)])


class MrpFloating(Floating):
    """Free motion without a constraint on q = [modified Rodrigues parameters, p]; v = [w; v] in the frame after the
    joint. Singular at a full turn: `normalize` moves to the parameters of length at most 1, as `integrate` does."""

    nq, translations = 6, (3, 4, 5)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        a, b, c = x[:3]
        rotation = rotation_from_quaternion(1.0 - a * a - b * b - c * c, 2.0 * a, 2.0 * b, 2.0 * c)
        return Transform(rotation, Vec3(*x[3:]))

    def neutral(self) -> np.ndarray:
        return np.zeros(6)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        moved = super().integrate(_with_quaternion(q), dv)
        return jnp.concatenate([mrp.from_quaternion(moved[:4]), moved[4:]])

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        return super().difference(_with_quaternion(q0), _with_quaternion(q1))

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.concatenate([mrp.derivative(q[:3], v[:3]), mrp.to_matrix(q[:3]) @ v[3:]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return jnp.concatenate([mrp.angular_velocity(q[:3], qdot[:3]), mrp.to_matrix(q[:3]).T @ qdot[3:]])

    def normalize(self, q: jax.Array) -> jax.Array:
        return jnp.concatenate([mrp.principal(q[:3]), q[3:]])

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        free = jnp.zeros(7, lower.dtype)
        q = super().random(key, free, free)
        return jnp.concatenate([mrp.from_quaternion(q[:4]), q[4:]])


def _with_quaternion(q: jax.Array) -> jax.Array:
    return jnp.concatenate([mrp.to_quaternion(q[:3]), q[3:]])


JOINT_TYPES: dict[str, JointType] = {
    "revolute": Revolute(),
    "continuous": Revolute(),
    "prismatic": Prismatic(),
    "planar": Planar(),
    "spherical": Spherical(),
    "floating": Floating(),
    "sin_cos_revolute": SinCosRevolute(),
    "mrp_floating": MrpFloating(),
}
