"""Loops over a part of the rows of a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .on_cpu import on_cpu
from .sharding import vary_alike
from .tuning import late_barriers


def filled(x: Any, size: int, xp: Any) -> Any:
    """Rows of `x`, and the last one again and again up to `size`."""
    missing = size - x.shape[0]
    return x if missing <= 0 else xp.concatenate([x, xp.broadcast_to(x[-1:], (missing, *x.shape[1:]))])


def in_turn(f: Callable[[list[Any]], Any], rows: list[Any], width: int) -> Any:
    """`f(rows)` in a loop over `width` of them at a time, within one program."""
    size = rows[0].shape[0]
    number = -(-size // width)
    cut = [filled(x, number * width, jnp).reshape(number, width, *x.shape[1:]) for x in rows]

    def body(k: jax.Array, rows: list[Any]) -> tuple[jax.Array, Any]:
        k, rows = jax.lax.optimization_barrier((in_kernels(k), rows))  # nothing uses the counter but the loop itself
        return k + 1, f(rows)

    (first,) = vary_alike([jnp.zeros((), jnp.int32)], *cut)
    _, results = jax.lax.scan(body, first, cut)
    return jax.tree.map(lambda x: x.reshape(number * width, *x.shape[2:])[:size], results)


def in_kernels(k: jax.Array) -> jax.Array:
    """The counter of a loop, an int32; on a CPU, such that XLA does not compile the whole loop as one function.

    It would do so with older and slower emitters, unless something in the loop cannot be compiled that way: here a sort
    of two numbers, which costs as much as calling one kernel.
    """
    return on_cpu(k, _sorted, _same)[0]


def _sorted(k: jax.Array) -> jax.Array:
    if not late_barriers():
        return k
    return jax.lax.sort(jnp.stack([k, jnp.full_like(k, jnp.iinfo(k.dtype).max)]), dimension=0)[0]


def _same(k: jax.Array) -> jax.Array:
    return k
