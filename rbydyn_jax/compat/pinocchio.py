"""Pinocchio's layout of configurations and velocities, and ours; no pinocchio is needed for it.

Pinocchio puts children in alphabetical order, linear before angular, quaternions xyzw, and the angles of continuous
joints as cosine and sine. Velocities differ by their order alone, so what has velocities as an axis (v, a, tau, columns
of Jacobians, mass matrices, derivatives) is only permuted; six-vectors have `spatial.to_linear_first`. Pinocchio's
LOCAL, WORLD and LOCAL_WORLD_ALIGNED are our frames ``"local"``, ``"world"`` and ``"world_aligned"``. Joints that mimic
others have no coordinates, as in pinocchio's models that were read with `mimic=True`.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_integer
from .._errors import DtypeError, ShapeError
from .._jit import jit_public
from ..model.model import Model, check_model
from ._joints import engine_slices, from_engine, layouts_and_order, to_engine


@jit_public("joint_names")
def q_to_pinocchio(
    model: Model, q: Float[Array, "nq"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "n"]:
    """A configuration in pinocchio's layout, its quaternions of unit length.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.

    Example:
        >>> from rbydyn_jax.compat import pinocchio
        >>> wheel = RobotBuilder("wheel").link("base").link("rim", 1.0)
        >>> wheel = build_model(wheel.continuous("hub", "base", "rim", axis=(0, 1, 0)).build_description())
        >>> pinocchio.q_to_pinocchio(wheel, jnp.array([0.0])).tolist()
        [1.0, 0.0]
    """
    layouts, order = layouts_and_order(model, joint_names, "pinocchio")
    return to_engine(check_model(model), check_array(q, "q", (model.nq,), "model.nq"), layouts, order)


@jit_public("joint_names", configurations=())
def q_from_pinocchio(
    model: Model, q: Float[Array, "n"], joint_names: tuple[str, ...] | None = None
) -> Float[Array, "nq"]:
    """A configuration of pinocchio's in our layout; angles given as cosine and sine are in (-pi, pi].

    Args:
        model: The robot.
        q: Pinocchio's configuration [rad, m].
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument has another size.
    """
    layouts, order = layouts_and_order(model, joint_names, "pinocchio")
    at, size = engine_slices(model, layouts, order)
    return from_engine(check_model(model), check_array(q, "q", (size,), "pinocchio's nq"), layouts, at)


def velocity_order(model: Model, joint_names: tuple[str, ...] | None = None) -> np.ndarray:
    """The permutation with `v_pinocchio = v[velocity_order(model)]`.

    Args:
        model: The robot.
        joint_names: Pinocchio's joints in its order, `tuple(pin_model.names)[1:]`; default is our order.

    Raises:
        ModelError: A joint is of a type that pinocchio does not have.
        NameNotFoundError: There is no such joint.
        ShapeError: The names are not those of all joints.
    """
    layouts, order = layouts_and_order(model, joint_names, "pinocchio")
    own = [np.r_[model.tree.v_slices[i]] for i in order]
    theirs = [at[list(layouts[i].order)] if layouts[i].order else at for i, at in zip(order, own, strict=True)]
    return np.concatenate([np.zeros(0, int), *theirs])


@jit_public("axes", "joint_names")
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
        DtypeError: `axes` or `joint_names` is not a tuple, of integers or of names.
        ModelError: A joint is of a type that pinocchio does not have.
        ShapeError: An axis has another size.

    Example:
        >>> from rbydyn_jax.compat import pinocchio
        >>> from rbydyn_jax.testing import random_tree
        >>> drone = random_tree(0, ("floating",), n=1)
        >>> pinocchio.to_pinocchio(drone, jnp.arange(6.0)).tolist()
        [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]
    """
    return _permuted(model, x, axes, velocity_order(model, joint_names))


@jit_public("axes", "joint_names")
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
        DtypeError: `axes` or `joint_names` is not a tuple, of integers or of names.
        ModelError: A joint is of a type that pinocchio does not have.
        ShapeError: An axis has another size.
    """
    return _permuted(model, x, axes, np.argsort(velocity_order(model, joint_names)))


def _permuted(model: Model, x: Array, axes: tuple[int, ...], order: np.ndarray) -> Array:
    x = check_array(x, "x")
    if not isinstance(axes, Sequence) or isinstance(axes, str):
        raise DtypeError(f"axes must be a tuple of integers, got {axes!r}")
    for axis in axes:
        axis = check_integer(axis, "axes")
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != model.nv:
            raise ShapeError(f"x must have {model.nv} entries (model.nv) along axis {axis}, got shape {x.shape}")
        x = jnp.take(x, order, axis=axis, unique_indices=True)
    return x
