"""What the layouts of other engines share: their order of joints, and joints that they do not have."""

from __future__ import annotations

from collections.abc import Callable, Collection

import jax
import jax.numpy as jnp

from .._errors import ArgumentError, ModelError
from ..model.model import Model, check_model


def joint_order(
    model: Model, joint_names: tuple[str, ...] | None, kinds: Collection[str], engine: str
) -> tuple[int, ...]:
    """Our indices of the other engine's joints, in its order.

    Raises:
        ArgumentError: `joint_names` does not name each moving joint once.
        ModelError: A joint mimics another, or is of a type that the engine does not have.
        NameNotFoundError: There is no such joint.
    """
    tree = check_model(model).tree
    for name, kind, mimic in zip(tree.joint_names, tree.joint_types, tree.mimics, strict=True):
        if mimic is not None or kind not in kinds:
            what = "mimics another" if mimic is not None else f"is {kind}"
            raise ModelError(f"joint {name!r} {what}, for which {engine} has no counterpart here")
    if joint_names is None:
        return tuple(range(model.nb))
    order = tuple(model.joint_index(name) for name in joint_names)
    if sorted(order) != list(range(model.nb)):
        raise ArgumentError(f"joint_names must name each of the {model.nb} moving joints once, got {joint_names}")
    return order


def in_order(order: tuple[int, ...], pieces: Callable[[int], jax.Array], dtype: jnp.dtype) -> jax.Array:
    """The pieces of the joints, one after another."""
    return jnp.concatenate([jnp.zeros(0, dtype), *(pieces(i) for i in order)])
