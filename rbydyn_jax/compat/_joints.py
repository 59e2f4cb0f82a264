"""What the layouts of other engines share: their order of joints, and joints that they do not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from .._errors import ArgumentError, DtypeError, ModelError
from ..joints import Layout
from ..model.model import Model, check_model

_NAMES = {"pinocchio": "pinocchio", "mujoco": "MuJoCo"}


def layouts_and_order(
    model: Model, joint_names: tuple[str, ...] | None, engine: Literal["pinocchio", "mujoco"]
) -> tuple[list[Layout], tuple[int, ...]]:
    """The layout of each of our joints in another engine, and our indices of its joints in its order.

    Joints that mimic others have no coordinates in pinocchio either: they are not in the order, named or not.

    Raises:
        ArgumentError: `joint_names` does not name each other moving joint once.
        DtypeError: `joint_names` is not a sequence of names.
        ModelError: A joint is of a type that the engine does not have, or mimics another and the engine is MuJoCo.
        NameNotFoundError: There is no such joint.
    """
    tree = check_model(model).tree
    layouts: list[Layout] = []
    for name, joint, mimic in zip(tree.joint_names, tree.joints, tree.mimics, strict=True):
        layout: Layout | None = getattr(joint, engine)
        tied = mimic is not None and engine == "mujoco"
        if tied or layout is None:
            what = "mimics another" if tied else f"is {joint.name}"
            raise ModelError(f"joint {name!r} {what}, for which {_NAMES[engine]} has no counterpart here")
        layouts.append(layout)
    own = tuple(i for i, mimic in enumerate(tree.mimics) if mimic is None)
    if joint_names is None:
        return layouts, own
    if isinstance(joint_names, str) or not isinstance(joint_names, Sequence):
        raise DtypeError(f"joint_names must be a tuple of names, got {joint_names!r}")
    named = tuple(model.joint_index(name) for name in joint_names)
    order = tuple(i for i in named if i in own)
    if sorted(order) != list(own) or len(set(named)) < len(named):
        raise ArgumentError(f"joint_names must name each of the {len(own)} moving joints once, got {joint_names}")
    return layouts, order


def engine_slices(model: Model, layouts: list[Layout], order: tuple[int, ...]) -> tuple[dict[int, slice], int]:
    """Where the position of each of our joints stands in the engine's, and how long that is."""
    at, start = {}, 0
    for i in order:
        at[i] = slice(start, start := start + model.tree.joints[i].nq + layouts[i].more)
    return at, start


def in_order(order: tuple[int, ...], pieces: Callable[[int], jax.Array], dtype: jnp.dtype) -> jax.Array:
    """The pieces of the joints, one after another."""
    return jnp.concatenate([jnp.zeros(0, dtype), *(pieces(i) for i in order)])


def to_engine(model: Model, q: jax.Array, layouts: list[Layout], order: tuple[int, ...]) -> jax.Array:
    """A configuration in the engine's coordinates and order."""
    placements, slices = model.joint_placements.astype(q.dtype), model.tree.q_slices
    return in_order(order, lambda i: layouts[i].position(q[slices[i]], placements[i]), q.dtype)


def from_engine(model: Model, q: jax.Array, layouts: list[Layout], at: dict[int, slice]) -> jax.Array:
    """A configuration in our coordinates and order."""
    placements = model.joint_placements.astype(q.dtype)
    return in_order(tuple(sorted(at)), lambda i: layouts[i].position_from(q[at[i]], placements[i]), q.dtype)
