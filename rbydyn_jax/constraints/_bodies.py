"""Poses, velocities and accelerations of all bodies in one pass."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial import se3
from ..spatial.algebra import IDENTITY, NO_MOTION, Motion, Transform
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ._vectors import Numbers

_State = tuple[Transform, Motion, Motion]


class BodyMotions(eqx.Module):
    """Poses and motion of the bodies relative to the world.

    Attributes:
        poses: T_world_body.
        velocities: Twists [w; v] about the body's origin in its axes [rad/s, m/s].
        accelerations: Their rates, which are spatial accelerations [rad/s^2, m/s^2].
        subspaces: The columns of S of all joints, mimic joints included, about the world origin in world axes.
    """

    poses: Float[Array, "nb 4 4"]
    velocities: Float[Array, "nb 6"]
    accelerations: Float[Array, "nb 6"]
    subspaces: Float[Array, "6 dofs"]


def _step(body: Body, parent: _State, v: tuple, a: tuple) -> tuple[_State, tuple]:
    pose, V0, A0 = parent
    X, joint = body.transform, body.spin(v)
    V = X.motion_inverse(V0) + joint
    A = X.motion_inverse(A0) + body.spin(a) + V.cross(joint)
    after = pose @ X
    moved = [after.motion(s) for s in body.subspace]
    rows = (*after.R.r0, *after.R.r1, *after.R.r2, *after.p, *V.w, *V.v, *A.w, *A.v)
    return (after, V, A), (rows, tuple(moved))


def body_motions(model: Model, q: Array, v: Array, a: Array | None = None) -> BodyMotions:
    """The motions of all bodies; O(n) [Featherstone 2008, table 5.1]. Without accelerations they count as zero."""

    def tables(run: Sweep, v: Array, a: Array | None) -> tuple[Array, Array]:
        rates = run.split_v(a)
        found = run.outward(_step, (IDENTITY, NO_MOTION, NO_MOTION), run.split_v(v), rates)
        return run.table(found.select(lambda x: x[0]), 24).T, run.columns(found.select(lambda x: x[1]), 6)

    x, subspaces = traverse(model, tables, q, v, a)
    # They seem to need x: of a step of which a program uses a single result XLA ends the process (`xla.emission`).
    subspaces = jnp.where(jax.lax.optimization_barrier(np.array(True)), subspaces, jnp.sum(x))
    poses = jax.vmap(se3.from_R_p)(x[:, :9].reshape(-1, 3, 3), x[:, 9:12])
    return BodyMotions(poses, x[:, 12:18], x[:, 18:], subspaces)


def link_frame(model: Model, poses: Array, link: str | int | None, frame: Numbers) -> Array:
    """T_world_frame of a frame that is fixed to a link; None is the world."""
    body = body_of(model, link)
    fixed = jnp.asarray(frame) if link is None else model.link_placements[model.link_index(link)] @ frame
    return fixed if body < 0 else poses[body] @ fixed


def body_of(model: Model, link: str | int | None) -> int:
    """The body on which a link sits, -1 for the world."""
    return -1 if link is None else model.tree.link_bodies[model.link_index(link)]
