"""Free motion."""

from __future__ import annotations

import numpy as np

from .._lazy import jax, jnp
from ..spatial.algebra import IDENTITY3, O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register
from .groups import quaternions, se3, so3
from .layout import Layout, QuaternionLast
from .rotations import rotation_from_quaternion
from .spherical import Spherical


class InWorld(Layout):
    """The pose in the world, [p, quaternion wxyz], and the linear velocity first, in world axes."""

    def position(self, q: jax.Array, before: jax.Array) -> jax.Array:
        turned = quaternions.multiply(quaternions.from_matrix(before[:3, :3]), quaternions.normalize(q[:4]))
        return jnp.concatenate([before[:3, :3] @ q[4:] + before[:3, 3], turned])

    def position_from(self, x: jax.Array, before: jax.Array) -> jax.Array:
        back = se3.inverse(before)
        turned = quaternions.multiply(quaternions.from_matrix(back[:3, :3]), x[3:])
        return jnp.concatenate([turned, back[:3, :3] @ x[:3] + back[:3, 3]])

    def velocity(self, q: jax.Array, before: jax.Array, v: jax.Array) -> jax.Array:
        R = before[:3, :3] @ quaternions.to_matrix(q[:4])
        return jnp.concatenate([R @ v[3:], v[:3]])

    def drift(self, v: jax.Array) -> jax.Array:
        return Floating().drift(v)


class Floating(JointType):
    """Free motion; q = [quaternion wxyz, p], v = [w; v] in the frame after the joint."""

    name, summary = "floating", "a joint of six degrees of freedom"
    turns, slides = "all", "all"
    mjcf = "free"
    pinocchio, mujoco = QuaternionLast(order=(3, 4, 5, 0, 1, 2)), InWorld()
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
        phi = quaternions.log(quaternions.multiply(quaternions.conjugate(quaternions.normalize(q0[:4])), q1[:4]))
        p = quaternions.to_matrix(q0[:4]).T @ (q1[4:] - q0[4:])
        return jnp.concatenate([phi, so3.left_jacobian_inverse(phi) @ p])

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        rotation = 0.5 * quaternions.multiply(q[:4], jnp.concatenate([jnp.zeros(1, v.dtype), v[:3]]))
        return jnp.concatenate([rotation, quaternions.to_matrix(q[:4]) @ v[3:]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        turning = quaternions.angular_velocity(q[:4], qdot[:4])
        return jnp.concatenate([turning, quaternions.to_matrix(q[:4]).T @ qdot[4:]])

    def drift(self, v: jax.Array) -> jax.Array:
        return jnp.concatenate([jnp.zeros_like(v[:3]), jnp.cross(v[:3], v[3:])])

    def glide(self, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        turning, slide = quaternions.exp(t * v[:3]), t * (quaternions.to_matrix(q[:4]) @ v[3:])
        moved = jnp.concatenate([quaternions.multiply(q[:4], turning), q[4:] + slide])
        return moved, jnp.concatenate([v[:3], quaternions.to_matrix(turning).T @ v[3:]])

    def normalize(self, q: jax.Array) -> jax.Array:
        return jnp.concatenate([quaternions.normalize(q[:4]), q[4:]])

    def problem(self, q: np.ndarray) -> str:
        return Spherical().problem(q[:4])

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        turn, place = jax.random.split(key)
        rotation = Spherical().random(turn, lower[:4], upper[:4])
        return jnp.concatenate([rotation, jax.random.uniform(place, (3,), lower.dtype, -1.0, 1.0)])


register(Floating())
