"""Revolute joint in (sin, cos) coordinates."""

from __future__ import annotations

import numpy as np

from .._lazy import jax, jnp
from ..spatial.algebra import O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register, vanishes
from .groups import _small, safe
from .rotations import rotation_about, turn


class SinCosRevolute(JointType):
    """Revolute joint with (sin, cos) coordinates: no wrap-around; q = [sine, cosine] of the angle, v = its rate."""

    name, summary = "sin_cos_revolute", "a hinge whose position is [sine, cosine]"
    turns = "axis"
    urdf_instead = "a continuous joint"
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
        return turn(dv[0]).T @ q

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        q0, q1 = q0 * _small.binary_scale(q0), q1 * _small.binary_scale(q1)
        return jnp.arctan2(q1[0] * q0[1] - q1[1] * q0[0], jnp.sum(q0 * q1))[None]

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return v * jnp.stack([q[1], -q[0]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        scale = _small.binary_scale(q)
        q, qdot = q * scale, qdot * scale
        return ((q[1] * qdot[0] - q[0] * qdot[1]) / jnp.sum(q * q))[None]

    def normalize(self, q: jax.Array) -> jax.Array:
        return q / safe.safe_norm(q)

    def problem(self, q: np.ndarray) -> str:
        return "is zero, which is sine and cosine of no angle" if vanishes(q) else ""

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        angle = jax.random.uniform(key, (), lower.dtype, -jnp.pi, jnp.pi)
        return jnp.stack([jnp.sin(angle), jnp.cos(angle)])


register(SinCosRevolute())
