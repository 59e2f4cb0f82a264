"""Checks of the arguments of planning, which runs outside of jit with concrete values."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, is_last_row, is_rotation
from .._errors import ArgumentError, DtypeError, RbydynError
from ..collision import CapsulePairs, World, pairs
from ..collision.groups import moving_shapes
from ..model.model import Model


def outside_jit(name: str, *arguments: Any, use: str = "") -> None:
    """Raises if an argument or the whole call is traced: the function checks values, and jits its own steps.

    Args:
        name: The function.
        *arguments: Its arguments.
        use: What to call instead.
    """
    if any(isinstance(x, Tracer) for x in (jnp.zeros(()), *jax.tree.leaves(arguments))):
        hint = f", or use {use}" if use else ""
        raise RbydynError(f"{name} checks the values of its arguments; call it outside of jit, vmap and grad{hint}")


def warn_of_no_shapes(model: Model) -> None:
    """Warns if nothing can be said of the robot's collisions."""
    if not model.tree.shape_links:
        message = f"model {model.tree.name!r} has no collision shapes: nothing keeps it from collisions"
        warnings.warn(f"{message}; clearance=None accepts that", UserWarning, stacklevel=3)


def checked_world(model: Model, world: Any, dtype: Any) -> World | None:
    """The world in a dtype; None, with a warning, if the robot has nothing that could be kept from it."""
    if not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    if not moving_shapes(model.tree):
        message = f"model {model.tree.name!r} has no collision shapes that move: nothing keeps it from the world"
        warnings.warn(message, UserWarning, stacklevel=3)
        return None
    return jax.tree.map(lambda x: x.astype(dtype), world)


def pose(x: Any, name: str) -> Float[Array, "4 4"]:
    """The homogeneous matrix `x`, which must be a rigid transform."""
    array = check_array(x, name, (4, 4), "T_world_link")
    T = np.asarray(array, float)
    if not np.isfinite(T).all():
        raise ArgumentError(f"{name} must be finite, got\n{T}")
    if not is_last_row(T[3]):
        raise ArgumentError(f"{name} must be a pose, its last row 0 0 0 1, got {T[3].tolist()}")
    if not is_rotation(T[:3, :3]):
        raise ArgumentError(f"{name} must be a pose, its upper left block a rotation matrix, got\n{T[:3, :3]}")
    return array


def related(model: Model, link: Any, ref: Any, name: str) -> tuple[int, int | None]:
    """A link and what it is relative to, None for the world, as indices."""
    of, base = model.link_index(link), None if ref is None else model.link_index(ref)
    if of == base:
        it = model.link_names[of]
        raise ArgumentError(f"{name}link and {name}ref must be two links, got {it!r} for both: it moves with itself")
    return of, base


def default_pairs(model: Model, chosen: CapsulePairs | None) -> CapsulePairs | None:
    """The given pairs, or the default pairs of the robot, or None if there are none."""
    if chosen is None and model.tree.shape_links:
        chosen = pairs(model)
    if not isinstance(chosen, CapsulePairs | None):
        what = type(chosen).__name__
        raise DtypeError(f"collision_pairs must be what collision.pairs(model, ...) returns, got {what}")
    return chosen if chosen else None
