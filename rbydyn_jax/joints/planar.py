"""Motion in a plane."""

from __future__ import annotations

from .._lazy import jax, jnp
from ..spatial.algebra import O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register
from .groups import se3, so3
from .layout import AngleOnCircle
from .rotations import plane_directions, rotation_about, turn


class Planar(JointType):
    """Motion in the plane normal to the axis; q = [x, y, theta], v = [vx, vy, w] in the frame after the joint."""

    name, summary = "planar", "a joint that moves in the plane normal to `axis`"
    turns, slides = "axis", "plane"
    pinocchio = AngleOnCircle()
    nq, nv, angles, translations = 3, 3, (2,), (0, 1)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        ex, ey = plane_directions(axis)
        return Transform(rotation_about(axis, *x[2]), ex.scale(x[0]) + ey.scale(x[1]))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        ex, ey = plane_directions(axis)
        return Motion(O3, ex), Motion(O3, ey), Motion(axis, O3)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        T = se3.exp(jnp.stack([*jnp.zeros(2, q.dtype), dv[2], dv[0], dv[1], jnp.zeros((), q.dtype)]))
        return q + jnp.stack([*(turn(q[2]) @ T[:2, 3]), dv[2]])

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        angle = q1[2] - q0[2]
        p = turn(q0[2]).T @ (q1[:2] - q0[:2])
        J_inverse = so3.left_jacobian_inverse(jnp.stack([*jnp.zeros(2, q0.dtype), angle]))[:2, :2]
        return jnp.stack([*(J_inverse @ p), angle])

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.stack([*(turn(q[2]) @ v[:2]), v[2]])

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        return jnp.stack([*(turn(q[2]).T @ qdot[:2]), qdot[2]])

    def drift(self, v: jax.Array) -> jax.Array:
        return jnp.stack([-v[2] * v[1], v[2] * v[0], jnp.zeros_like(v[2])])

    def glide(self, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        return q + t * self.qdot_from_v(q, v), jnp.stack([*(turn(t * v[2]).T @ v[:2]), v[2]])


register(Planar())
