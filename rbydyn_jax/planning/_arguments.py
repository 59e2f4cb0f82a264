"""Checks of the arguments of planning, which runs outside of jit with concrete values."""

from __future__ import annotations

import warnings
from typing import Any

import jax
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_pose
from .._errors import ArgumentError, DtypeError
from ..collision import ShapePairs, World, pairs
from ..collision.groups import moving_shapes
from ..model.model import Model


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


def pose(x: Any, name: str, meaning: str = "T_world_link") -> Float[Array, "4 4"]:
    """The homogeneous matrix `x`, which must be a rigid transform where its values are known."""
    array = check_array(x, name, (4, 4), meaning)
    check_finite(array, name)
    check_pose(array, name)
    return array


def related(model: Model, link: Any, ref: Any, name: str) -> tuple[int, int | None]:
    """A link and what it is relative to, None for the world, as indices."""
    of, base = model.link_index(link), None if ref is None else model.link_index(ref)
    if of == base:
        it = model.link_names[of]
        raise ArgumentError(f"{name}link and {name}ref must be two links, got {it!r} for both")
    return of, base


def default_pairs(model: Model, chosen: ShapePairs | None) -> ShapePairs | None:
    """The given pairs, or the default pairs of the robot, or None if there are none."""
    if chosen is None and model.tree.shape_links:
        chosen = pairs(model)
    if not isinstance(chosen, ShapePairs | None):
        what = type(chosen).__name__
        raise DtypeError(f"collision_pairs must be what collision.pairs(model, ...) returns, got {what}")
    return chosen if chosen else None
