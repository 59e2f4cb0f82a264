"""Loops over a part of the rows of a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def filled(x: Any, size: int, xp: Any) -> Any:
    """Rows of `x`, and the last one again and again up to `size`."""
    missing = size - x.shape[0]
    return x if missing <= 0 else xp.concatenate([x, xp.broadcast_to(x[-1:], (missing, *x.shape[1:]))])


def in_turn(f: Callable[[list], Any], rows: list, width: int) -> Any:
    """`f(rows)` in a loop over `width` of them at a time, within one program."""
    size = rows[0].shape[0]
    number = -(-size // width)
    cut = [filled(x, number * width, jnp).reshape(number, width, *x.shape[1:]) for x in rows]
    return jax.tree.map(lambda x: x.reshape(number * width, *x.shape[2:])[:size], jax.lax.map(f, cut))
