"""Poses, velocities and accelerations of all bodies in one pass."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..algorithms._body import Body
from ..algorithms._traversal import Traversal, traverse
from ..model.model import Model
from ..spatial._algebra import IDENTITY, NO_MOTION, Motion, Transform

_State = tuple[Transform, Motion, Motion]


class BodyMotions(eqx.Module):
    """How the bodies are and move, relative to the world.

    Attributes:
        rotations: R_world_body.
        positions: Origins in world coordinates [m].
        velocities: Twists [w; v] about the body's origin in its axes [rad/s, m/s].
        accelerations: Their rates, which are spatial accelerations [rad/s^2, m/s^2].
    """

    rotations: Float[Array, "nb 3 3"]
    positions: Float[Array, "nb 3"]
    velocities: Float[Array, "nb 6"]
    accelerations: Float[Array, "nb 6"]


def _step(body: Body, parent: _State, v: tuple, a: tuple) -> tuple[_State, tuple]:
    pose, V0, A0 = parent
    X, joint = body.transform, body.spin(v)
    V = X.motion_inverse(V0) + joint
    A = X.motion_inverse(A0) + body.spin(a) + V.cross(joint)
    after = pose @ X
    return (after, V, A), (*after.R.r0, *after.R.r1, *after.R.r2, *after.p, *V.w, *V.v, *A.w, *A.v)


def body_motions(model: Model, q: Array, v: Array, a: Array | None = None) -> BodyMotions:
    """The motions of all bodies; O(n) [Featherstone 2008, table 5.1]. Without accelerations they count as zero."""

    def rows(run: Traversal, v: Array, a: Array | None) -> Array:
        rates = run.no_v() if a is None else run.split_v(a)
        return run.stack_bodies(run.outward(_step, (IDENTITY, NO_MOTION, NO_MOTION), run.split_v(v), rates), 24)

    x = traverse(model, rows, q, v, a)
    return BodyMotions(jnp.reshape(x[:, :9], (-1, 3, 3)), x[:, 9:12], x[:, 12:18], x[:, 18:])
