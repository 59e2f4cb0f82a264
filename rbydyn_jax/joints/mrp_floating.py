"""Free motion in six coordinates."""

from __future__ import annotations

import numpy as np

from .._lazy import jax, jnp
from ..spatial.algebra import Transform, Vec3
from .base import Coordinates, register
from .floating import Floating
from .groups import mrp
from .rotations import rotation_from_quaternion


class MrpFloating(Floating):
    """Free motion without a constraint on q = [modified Rodrigues parameters, p]; v = [w; v] in the frame after the
    joint. Singular at a full turn: `normalize` moves to the parameters of length at most 1, as `integrate` does."""

    name, summary = "mrp_floating", "six degrees of freedom, by modified Rodrigues parameters"
    urdf_instead = "a floating joint"
    mjcf = ""
    pinocchio = mujoco = None
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

    def glide(self, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved, v = super().glide(_with_quaternion(q), v, t)
        return jnp.concatenate([mrp.from_quaternion(moved[:4]), moved[4:]]), v

    def normalize(self, q: jax.Array) -> jax.Array:
        return jnp.concatenate([mrp.principal(q[:3]), q[3:]])

    def problem(self, q: np.ndarray) -> str:
        return ""

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        free = jnp.zeros(7, lower.dtype)
        q = super().random(key, free, free)
        return jnp.concatenate([mrp.from_quaternion(q[:4]), q[4:]])


def _with_quaternion(q: jax.Array) -> jax.Array:
    return jnp.concatenate([mrp.to_quaternion(q[:3]), q[3:]])


register(MrpFloating())
