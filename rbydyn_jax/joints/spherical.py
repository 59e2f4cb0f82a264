"""Rotation about a point."""

from __future__ import annotations

import numpy as np

from .._lazy import jax, jnp
from ..spatial.algebra import IDENTITY3, O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register, vanishes
from .groups import quaternions
from .layout import Layout, QuaternionLast
from .rotations import rotation_from_quaternion


class UnitQuaternion(Layout):
    """The same, of unit length."""

    def position(self, q: jax.Array, before: jax.Array) -> jax.Array:
        return quaternions.normalize(q)


class Spherical(JointType):
    """Ball joint; q = quaternion wxyz, v = angular velocity in the frame after the joint."""

    name, summary = "spherical", "a ball joint"
    turns = "all"
    urdf_instead = "three revolute joints"
    mjcf = "ball"
    pinocchio, mujoco = QuaternionLast(), UnitQuaternion()
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
        return quaternions.log(quaternions.multiply(quaternions.conjugate(quaternions.normalize(q0)), q1))

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return 0.5 * quaternions.multiply(q, jnp.concatenate([jnp.zeros(1, v.dtype), v]))

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return quaternions.angular_velocity(q, qdot)

    def normalize(self, q: jax.Array) -> jax.Array:
        return quaternions.normalize(q)

    def problem(self, q: np.ndarray) -> str:
        return "starts with the quaternion zero, which is no rotation" if vanishes(q[:4]) else ""

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        return self.normalize(jax.random.normal(key, (4,), lower.dtype))


register(Spherical())
