"""A batch of kernels' lanes: another batch of what has one, as one number of lanes behind all axes of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .nested import size_along

Flags = tuple[bool, ...]


def in_all_lanes(f: Callable[..., list[Any]], xs: Sequence[Any], batched: Flags, lanes: int) -> list[Any]:
    """The results of a function of one lane, of arrays some of which have lanes behind their axes, in all lanes."""
    if not any(batched):
        return [jnp.broadcast_to(y[..., None], (*y.shape, lanes)) for y in f(*xs)]
    return jax.vmap(f, [-1 if b else None for b in batched], -1)(*xs)


class Spread(NamedTuple):
    """Operands in the lanes of both batches, and how the results are read.

    Attributes:
        operands: The arrays; None if there are no lanes.
        batched: Whether each of them has lanes.
        lanes: Number of lanes.
        types: Of the results of one lane.
        is_nested: Whether there was a batch before.
        is_last: Whether the new batch is the last axis, behind the lanes that were there.
        order: Sizes of the two batches in the lanes.
    """

    operands: Sequence[Any] | None
    batched: Flags
    lanes: int
    types: Sequence[Any]
    is_nested: bool
    is_last: bool
    order: tuple[int, int]

    def restored(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results with the new batch as an axis of its own, and which one it is."""
        if self.operands is None:
            size, inner = self.order
            empty = (inner,) if self.is_nested else ()
            zeros = [jnp.zeros((*x.shape, size, *empty), x.dtype) for x in self.types]
            return zeros, [x.ndim for x in self.types]
        if not self.is_nested:
            return list(results), [y.ndim - 1 for y in results]
        found = [y.reshape(*y.shape[:-1], *self.order) for y in results]
        return found, [y.ndim - (not self.is_last) for y in results]


def spread_over_lanes(
    xs: Sequence[Any],
    axes: Sequence[Any],
    batched: Flags,
    lanes: int | None,
    ranks: Sequence[int],
    types: Sequence[Any],
) -> Spread:
    """Arrays with a new batch.

    Args:
        xs: The arrays.
        axes: Where each of them has the new batch, None if it has none.
        batched: Whether each of them has lanes behind its own axes.
        lanes: Their number; None outside of a batch.
        ranks: How many own axes each of them has.
        types: Of the results of one lane.
    """
    size, is_nested = size_along(xs, axes), lanes is not None
    inner = 1 if lanes is None else lanes
    flags = tuple(b or axis is not None for b, axis in zip(batched, axes, strict=True))
    # A batch of what a kernel gives is the last axis already, and remains it.
    is_last = all(axis in (None, x.ndim - 1) for x, axis in zip(xs, axes, strict=True))
    if not size or not inner:
        return Spread(None, flags, 0, types, is_nested, is_last, (size, inner))
    order = (inner, size) if is_last else (size, inner)

    def spread(x: Any, axis: Any, was: bool, own: int) -> Any:
        """(own axes, size, inner) as (own axes, size * inner), or in the other order."""
        x = jnp.moveaxis(x, axis, own) if axis is not None else jnp.expand_dims(x, own)
        x = x if was else x[..., None]
        x = jnp.swapaxes(x, own, own + 1) if is_last else x
        return jnp.broadcast_to(x, (*x.shape[:own], *order)).reshape(*x.shape[:own], size * inner)

    rows = zip(xs, axes, batched, flags, ranks, strict=True)
    operands = [spread(x, axis, was, own) if b else x for x, axis, was, b, own in rows]
    return Spread(operands, flags, size * inner, types, is_nested, is_last, order)
