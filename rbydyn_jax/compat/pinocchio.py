"""Pinocchio's layout of configurations and velocities, and ours; no pinocchio is needed for it.

Pinocchio puts children in alphabetical order, linear before angular, quaternions xyzw, and the angles of continuous
joints as cosine and sine. Velocities differ by their order alone, so what has velocities as an axis (v, a, tau, columns
of Jacobians, mass matrices, derivatives) is only permuted; six-vectors have `spatial.to_linear_first`. Pinocchio's
LOCAL, WORLD and LOCAL_WORLD_ALIGNED are our frames ``"local"``, ``"world"`` and ``"world_aligned"``.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, public
from .._errors import ShapeError
from ..model.model import Model, check_model
from ..spatial import quaternions
from ._joints import in_order, joint_order

_SIZES = {"revolute": 1, "prismatic": 1, "continuous": 2, "planar": 4, "spherical": 4, "floating": 7}


@public("joint_names")
def q_to_pinocchio(
    model: Model, q: Float[Array, "nq"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "n"]:
    """A configuration in pinocchio's layout, its quaternions of unit length.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint mimics another, or is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.

    Example:
        >>> from rbydyn_jax.compat import pinocchio
        >>> wheel = RobotBuilder("wheel").link("base").link("rim", 1.0)
        >>> wheel = build_model(wheel.continuous("hub", "base", "rim", axis=(0, 1, 0)).build_description())
        >>> pinocchio.q_to_pinocchio(wheel, jnp.array([0.0])).tolist()
        [1.0, 0.0]
    """
    order = joint_order(model, joint_names, _SIZES, "pinocchio")
    q, tree = check_array(q, "q", (model.nq,), "model.nq"), check_model(model).tree

    def piece(i: int) -> Array:
        x, kind = q[tree.q_slices[i]], tree.joint_types[i]
        if kind in ("continuous", "planar"):
            return jnp.concatenate([x[:-1], jnp.cos(x[-1:]), jnp.sin(x[-1:])])
        if kind in ("spherical", "floating"):
            return jnp.concatenate([x[4:], quaternions.xyzw_from_wxyz(quaternions.normalize(x[:4]))])
        return x

    return in_order(order, piece, q.dtype)


@public("joint_names")
def q_from_pinocchio(
    model: Model, q: Float[Array, "n"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "nq"]:
    """A configuration of pinocchio's in our layout; angles given as cosine and sine are in (-pi, pi].

    Args:
        model: The robot.
        q: Pinocchio's configuration [rad, m].
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint mimics another, or is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    order = joint_order(model, joint_names, _SIZES, "pinocchio")
    types = check_model(model).tree.joint_types
    sizes = [_SIZES[types[i]] for i in order]
    q, starts = check_array(q, "q", (sum(sizes),), "pinocchio's nq"), np.concatenate([[0], np.cumsum(sizes)])
    at = {i: slice(starts[k], starts[k + 1]) for k, i in enumerate(order)}

    def piece(i: int) -> Array:
        x, kind = q[at[i]], types[i]
        if kind in ("continuous", "planar"):
            return jnp.concatenate([x[:-2], jnp.arctan2(x[-1:], x[-2:-1])])
        if kind in ("spherical", "floating"):
            return jnp.concatenate([quaternions.wxyz_from_xyzw(x[-4:]), x[:-4]])
        return x

    return in_order(tuple(range(model.nb)), piece, q.dtype)


def velocity_order(model: Model, joint_names: tuple[str, ...] | None = None) -> np.ndarray:
    """The permutation with `v_pinocchio = v[velocity_order(model)]`.

    Args:
        model: The robot.
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint mimics another, or is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: The names are not those of all joints.
    """
    order, tree = joint_order(model, joint_names, _SIZES, "pinocchio"), model.tree
    own = [np.r_[tree.v_slices[i]] for i in order]
    return np.concatenate([np.zeros(0, int), *(np.roll(at, 3) if len(at) == 6 else at for at in own)])


@public("axes", "joint_names")
def to_pinocchio(
    model: Model, x: Float[Array, "..."], axes: tuple[int, ...] = (0,), joint_names: tuple[str, ...] | None = None
) -> Float[Array, "..."]:
    """What has velocities as axes, in pinocchio's order.

    Args:
        model: The robot.
        x: A velocity, acceleration or force (nv,), a Jacobian (6, nv), a matrix (nv, nv) and the like.
        axes: Which axes are those of velocities: (0,) of vectors, (1,) of Jacobians, (0, 1) of square matrices.
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint mimics another, or is of a type that pinocchio does not have.
        ShapeError: An axis has another size.

    Example:
        >>> from rbydyn_jax.compat import pinocchio
        >>> from rbydyn_jax.testing import random_tree
        >>> drone = random_tree(0, ("floating",), n=1)
        >>> pinocchio.to_pinocchio(drone, jnp.arange(6.0)).tolist()
        [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]
    """
    return _permuted(model, x, axes, velocity_order(model, joint_names))


@public("axes", "joint_names")
def from_pinocchio(
    model: Model, x: Float[Array, "..."], axes: tuple[int, ...] = (0,), joint_names: tuple[str, ...] | None = None
) -> Float[Array, "..."]:
    """What has velocities as axes, from pinocchio's order to ours; the inverse of `to_pinocchio`.

    Args:
        model: The robot.
        x: A velocity, acceleration or force (nv,), a Jacobian (6, nv), a matrix (nv, nv) and the like.
        axes: Which axes are those of velocities.
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint mimics another, or is of a type that pinocchio does not have.
        ShapeError: An axis has another size.
    """
    return _permuted(model, x, axes, np.argsort(velocity_order(model, joint_names)))


def _permuted(model: Model, x: Array, axes: tuple[int, ...], order: np.ndarray) -> Array:
    x = check_array(x, "x")
    for axis in axes:
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != model.nv:
            raise ShapeError(f"x must have {model.nv} entries (model.nv) along axis {axis}, got shape {x.shape}")
        x = jnp.take(x, order, axis=axis, unique_indices=True)
    return x
