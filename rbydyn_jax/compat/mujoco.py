r"""MuJoCo's layout of configurations and velocities, and ours; no MuJoCo is needed for it.

A free joint's linear velocity is in world axes there, and in the body's here, so the map between velocities depends on
the configuration: $v_{mujoco} = E(q)\,v$ with an orthogonal E. Forces are mapped by the same E, Jacobians by
$J E^T$, mass matrices by $E M E^T$; accelerations have one more term. A free joint's pose is that in the world, its
quaternion wxyz comes last.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array
from .._jit import jit_public
from ..model.model import Model, check_model
from ._joints import engine_slices, from_engine, in_order, layouts_and_order, to_engine


@jit_public("joint_names")
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
    layouts, order = layouts_and_order(model, joint_names, "mujoco")
    return to_engine(check_model(model), check_array(q, "q", (model.nq,), "model.nq"), layouts, order)


@jit_public("joint_names", configurations=())
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
    layouts, order = layouts_and_order(model, joint_names, "mujoco")
    at, _ = engine_slices(model, layouts, order)
    return from_engine(check_model(model), check_array(q, "q", (model.nq,), "model.nq"), layouts, at)


@jit_public("joint_names")
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
    layouts, order = layouts_and_order(model, joint_names, "mujoco")
    model = check_model(model)
    q, tree = check_array(q, "q", (model.nq,), "model.nq"), model.tree
    placements, eye = model.joint_placements.astype(q.dtype), jnp.eye(model.nv, dtype=q.dtype)
    rows = [layouts[i].velocity(q[tree.q_slices[i]], placements[i], eye[tree.v_slices[i]]) for i in order]
    return jnp.concatenate(rows) if rows else eye


@jit_public("joint_names")
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
    layouts, _ = layouts_and_order(model, joint_names, "mujoco")
    v, a = (check_array(x, name, (model.nv,), "model.nv") for x, name in ((v, "v"), (a, "a")))
    slices = check_model(model).tree.v_slices
    drift = in_order(tuple(range(model.nb)), lambda i: layouts[i].drift(v[slices[i]]), a.dtype)
    return velocity_map(model, q, joint_names) @ (a + drift)
