r"""MuJoCo's layout of configurations and velocities, and ours; no MuJoCo is needed for it.

A free joint's linear velocity is in world axes there, and in the body's here, so the map between velocities depends on
the configuration: $v_{mujoco} = E(q)\,v$ with an orthogonal E. Forces are mapped by the same E, Jacobians by
$J E^T$, mass matrices by $E M E^T$; accelerations have one more term. A free joint's pose is that in the world, its
quaternion wxyz comes last.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, public
from ..model.model import Model, check_model
from ..spatial import quaternions, se3
from ._joints import in_order, joint_order

_KINDS = ("revolute", "prismatic", "continuous", "spherical", "floating")


@public("joint_names")
def q_to_mujoco(model: Model, q: Float[Array, "nq"], joint_names: tuple[str, ...] | None = None) -> Float[Array, "nq"]:
    """A configuration in MuJoCo's layout, its quaternions of unit length.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        joint_names: MuJoCo's joints in its order; default is ours.

    Raises:
        ModelError: A joint mimics another, or is of a type that MuJoCo does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    order = joint_order(model, joint_names, _KINDS, "MuJoCo")
    model = check_model(model)
    q, tree, placements = check_array(q, "q", (model.nq,), "model.nq"), model.tree, model.joint_placements

    def piece(i: int) -> Array:
        x, kind = q[tree.q_slices[i]], tree.joint_types[i]
        if kind == "spherical":
            return quaternions.normalize(x)
        if kind == "floating":
            before = placements[i].astype(q.dtype)
            turned = quaternions.multiply(quaternions.from_matrix(before[:3, :3]), quaternions.normalize(x[:4]))
            return jnp.concatenate([before[:3, :3] @ x[4:] + before[:3, 3], turned])
        return x

    return in_order(order, piece, q.dtype)


@public("joint_names")
def q_from_mujoco(
    model: Model, q: Float[Array, "nq"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "nq"]:
    """A configuration of MuJoCo's in our layout; the inverse of `q_to_mujoco`.

    Args:
        model: The robot.
        q: MuJoCo's configuration [rad, m].
        joint_names: MuJoCo's joints in its order; default is ours.

    Raises:
        ModelError: A joint mimics another, or is of a type that MuJoCo does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    order = joint_order(model, joint_names, _KINDS, "MuJoCo")
    model = check_model(model)
    q, tree, placements = check_array(q, "q", (model.nq,), "model.nq"), model.tree, model.joint_placements
    at, start = {}, 0
    for i in order:
        at[i] = slice(start, start := start + tree.joints[i].nq)

    def piece(i: int) -> Array:
        x = q[at[i]]
        if tree.joint_types[i] != "floating":
            return x
        back = se3.inverse(placements[i].astype(q.dtype))
        turned = quaternions.multiply(quaternions.from_matrix(back[:3, :3]), x[3:])
        return jnp.concatenate([turned, back[:3, :3] @ x[:3] + back[:3, 3]])

    return in_order(tuple(range(model.nb)), piece, q.dtype)


@public("joint_names")
def velocity_map(
    model: Model, q: Float[Array, "nq"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "nv nv"]:
    r"""The orthogonal matrix E(q) of $v_{mujoco} = E v$, $\tau_{mujoco} = E \tau$.

    Args:
        model: The robot.
        q: Configuration, in our layout [rad, m].
        joint_names: MuJoCo's joints in its order; default is ours.

    Raises:
        ModelError: A joint mimics another, or is of a type that MuJoCo does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    order = joint_order(model, joint_names, _KINDS, "MuJoCo")
    model = check_model(model)
    q, tree = check_array(q, "q", (model.nq,), "model.nq"), model.tree
    eye, rows = jnp.eye(model.nv, dtype=q.dtype), []
    for i in order:
        own = eye[tree.v_slices[i]]
        if tree.joint_types[i] == "floating":
            R = model.joint_placements[i, :3, :3].astype(q.dtype) @ quaternions.to_matrix(q[tree.q_slices[i]][:4])
            own = jnp.concatenate([R @ own[3:], own[:3]])
        rows.append(own)
    return jnp.concatenate(rows) if rows else eye


@public("joint_names")
def acceleration_to_mujoco(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    joint_names: tuple[str, ...] | None = None,
) -> Float[Array, "nv"]:
    r"""An acceleration in MuJoCo's layout, $E a + \dot E v$: a free body's linear one gains $\omega \times v$.

    Args:
        model: The robot.
        q: Configuration, in our layout [rad, m].
        v: Velocity, in our layout [rad/s, m/s].
        a: Acceleration, in our layout [rad/s^2, m/s^2].
        joint_names: MuJoCo's joints in its order; default is ours.

    Raises:
        ModelError: A joint mimics another, or is of a type that MuJoCo does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    tree = check_model(model).tree
    v, a = (check_array(x, name, (model.nv,), "model.nv") for x, name in ((v, "v"), (a, "a")))
    for i, kind in enumerate(tree.joint_types):
        if kind == "floating":
            at = tree.v_slices[i].start
            a = a.at[at + 3 : at + 6].add(jnp.cross(v[at : at + 3], v[at + 3 : at + 6]))
    return velocity_map(model, q, joint_names) @ a
