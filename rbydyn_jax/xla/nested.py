"""A batch of batches as one batch, for primitives that already have a batch when `vmap` gives them another.

With two batch axes XLA would cut neither into tiles, and would transpose large results with strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp


def size_along(xs: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """The size of a batch that is an axis of some of the arrays; symbolic in an exported program."""
    return next(x.shape[axis] for x, axis in zip(xs, axes, strict=True) if axis is not None)


def rows_first(x: Any, axis: int | None) -> Any:
    """The array with its batch axis, if it has one, as the first one."""
    return x if axis is None else jnp.moveaxis(x, axis, 0)


def merged(x: Any, outer_axis: int | None, inner_axis: int | None, sizes: tuple[Any, Any]) -> Any:
    """The array with one batch axis, the first one, for an outer and an inner one; with none if it had neither.

    `inner_axis` counts the axes without the outer one, `sizes` are those of the outer and the inner batch. What only
    one of the axes has is repeated along the other.
    """
    if outer_axis is None and inner_axis is None:
        return x
    x = x[None] if outer_axis is None else jnp.moveaxis(x, outer_axis, 0)
    x = x[:, None] if inner_axis is None else jnp.moveaxis(x, 1 + inner_axis, 1)
    own = x.shape[2:]
    return jnp.broadcast_to(x, (*sizes, *own)).reshape(sizes[0] * sizes[1], *own)
