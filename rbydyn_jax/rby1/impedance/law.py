"""The law of joint impedance control: springs with a damping that follows from the inertia."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._check import check_array
from ..._jit import jit_public
from ...algorithms.crba import crba
from ...algorithms.inverse_dynamics import gravity_forces
from ...model.model import Model, check_model
from ...spatial.safe import safe_sqrt
from .components import Component, Joints, components
from .square_root import square_root


def damping_matrix(
    M: Float[Array, "n n"], stiffness: Float[Array, "n"], damping_ratio: Float[Array, ""] | float = 1.0
) -> Float[Array, "n n"]:
    r"""The damping $D = \zeta (\sqrt{M} \sqrt{K} + \sqrt{K} \sqrt{M})$ for the stiffness K and the inertia M.

    For one joint it is $2 \zeta \sqrt{m k}$, critical at $\zeta = 1$.

    Args:
        M: Inertia [kg m^2, kg], symmetric and positive.
        stiffness: Diagonal of K [N m/rad, N/m]; at zero the derivative of its root is defined as zero.
        damping_ratio: The damping ratio.

    Returns:
        D [N m s/rad, N s/m], symmetric.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.rby1.impedance import damping_matrix
        >>> damping_matrix(jnp.array([[0.25]]), jnp.array([100.0]), 0.7).tolist()
        [[7.0]]
    """
    S = square_root(M)
    k = safe_sqrt(check_array(stiffness, "stiffness", S.shape[:1], "one for each row of M"))
    ratio = check_array(damping_ratio, "damping_ratio", ())
    return (ratio * S * (k[:, None] + k[None, :])).astype(jnp.result_type(S, k))


def impedance_torque(
    model: Model,
    command: Any,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    q_desired: Float[Array, "nq"],
    v_desired: Float[Array, "nv"],
    *,
    joints: Joints = None,
) -> Float[Array, "nv"]:
    r"""The torques $\mathrm{clip}(K (q_d - q) + D (\dot q_d - \dot q) + g(q), \pm\tau_{max})$ of a command in a state.

    D is `damping_matrix` of the component's block of the mass matrix. The manufacturer documents the law, but not
    whether that block or the whole matrix is meant. Torques are limited to those of the actuators,
    `model.effort_limit`.

    Args:
        model: The robot.
        command: A joint impedance command, or a tree with such for the body, arms or torso: see `rollout`.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        q_desired: Reference positions [rad, m]; entries of joints that are not commanded are ignored.
        v_desired: Reference velocities [rad/s, m/s].
        joints: The joints of a command without a tree, as names, or as ``"right_arm"``, ``"left_arm"``,
            ``"torso"`` or ``"body"``; default is all.

    Returns:
        Torques or forces [N m, N], zero for joints that are not commanded.

    Raises:
        ArgumentError: The command is not one of joint impedance, or its values are invalid.
        DtypeError: The command, or an argument, does not hold floats.
        ModelError: The command does not fit the robot.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument, or a field of the command, has another shape.
    """
    model = check_model(model)
    return _command_torques(model, components(model, command, joints), q, v, q_desired, v_desired)


@jit_public()
def _command_torques(
    model: Model, parts: tuple[Component, ...], q: Array, v: Array, q_desired: Array, v_desired: Array
) -> Array:
    model, parts, q, v = follow_dtype(model, parts, q, v)
    q_desired = check_array(q_desired, "q_desired", (model.nq,), "model.nq").astype(q.dtype)
    v_desired = check_array(v_desired, "v_desired", (model.nv,), "model.nv").astype(q.dtype)
    return component_torques(parts, crba(model, q), gravity_forces(model, q), q, v, q_desired, v_desired)


def follow_dtype(
    model: Model, parts: tuple[Component, ...], q: Any, v: Any
) -> tuple[Model, tuple[Component, ...], Array, Array]:
    """Converts all arrays to the dtype of the state, which is checked."""
    q, v = check_array(q, "q", (model.nq,), "model.nq"), check_array(v, "v", (model.nv,), "model.nv")
    dtype = jnp.result_type(q, v)
    return jax.tree.map(lambda x: x.astype(dtype), (model, parts, q, v))


def component_torques(
    parts: Sequence[Component], M: Array, gravity: Array, q: Array, v: Array, q_desired: Array, v_desired: Array
) -> Array:
    """The law for each component, with the mass matrix and the gravity forces of the robot."""
    tau = jnp.zeros_like(v)
    for part in parts:
        qi, vi = np.array(part.q_indices, int), np.array(part.v_indices, int)
        D = damping_matrix(M[np.ix_(vi, vi)], part.stiffness, part.damping_ratio)
        wanted = part.stiffness * (q_desired - q)[qi] + D @ (v_desired - v)[vi] + gravity[vi]
        tau = tau.at[vi].set(jnp.clip(wanted, -part.torque_limit, part.torque_limit))
    return tau
