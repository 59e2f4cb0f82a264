"""Loops over a part of the rows of a batch at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard, TypeVar

import jax
import jax.numpy as jnp
from jax.core import ShapedArray

from .on_cpu import on_cpu
from .sharding import vary_alike
from .tuning import FEW_ELEMENTS, late_barriers

T = TypeVar("T")


def filled(x: Any, size: int, xp: Any) -> Any:
    """Rows of `x`, and the last one again and again up to `size`."""
    missing = size - x.shape[0]
    return x if missing <= 0 else xp.concatenate([x, xp.broadcast_to(x[-1:], (missing, *x.shape[1:]))])


class Pieces(NamedTuple):
    """An array in pieces along its first axis; after `tiled` it is one piece."""

    arrays: tuple[jax.Array, ...]

    def whole(self, axis: int = 0) -> jax.Array:
        """The array; with axes of a batch before it, the pieces are along a later one."""
        return self.arrays[0] if len(self.arrays) == 1 else jnp.concatenate(self.arrays, axis)


def is_in_pieces(x: Any) -> TypeGuard[Pieces]:
    """Whether this is an array in pieces, a leaf of a pytree of results."""
    return isinstance(x, Pieces)


def one_piece(tree: T) -> T:
    """A pytree in which each array in pieces is one piece."""
    return jax.tree.map(lambda x: Pieces((x.whole(),)) if is_in_pieces(x) else x, tree, is_leaf=is_in_pieces)


def in_turn(f: Callable[[list[Any]], Any], rows: list[Any], width: int) -> Any:
    """`f(rows)` in a loop over `width` of them at a time, within one program."""
    cut = _cut(rows, width)

    def body(k: jax.Array, rows: list[Any]) -> tuple[jax.Array, Any]:
        k, rows = jax.lax.optimization_barrier((in_kernels(k), rows))  # nothing uses the counter but the loop itself
        return k + 1, f(rows)

    (first,) = vary_alike([jnp.zeros((), jnp.int32)], *cut)
    _, results = jax.lax.scan(body, first, cut)
    size, wide = rows[0].shape[0], cut[0].shape[0] * width  # -1 has no meaning where a result is empty
    return jax.tree.map(lambda x: x.reshape(wide, *x.shape[2:])[:size], results)


def in_place(
    f: Callable[[list[Any]], list[Pieces]], rows: list[Any], width: int, types: Sequence[ShapedArray], axis: int
) -> list[jax.Array]:
    """As `in_turn`, with each piece of a result written to where it belongs.

    Args:
        f: Computes `width` rows.
        rows: Arrays of all rows.
        width: How many rows are computed at a time.
        types: Of the results for all rows.
        axis: Along which the pieces of a result are.
    """
    size, cut = rows[0].shape[0], _cut(rows, width)
    wide = cut[0].shape[0] * width
    first = [jnp.zeros((), jnp.int32), *(jnp.zeros((wide, *x.shape[1:]), x.dtype) for x in types)]

    def body(carry: list[jax.Array], rows: list[Any]) -> tuple[list[jax.Array], None]:
        k, rows = jax.lax.optimization_barrier((in_kernels(carry[0]), rows))
        results = [_written(x, pieces, k * width, axis) for x, pieces in zip(carry[1:], f(rows), strict=True)]
        return [k + 1, *results], None

    (_, *results), _ = jax.lax.scan(body, vary_alike(first, *cut), cut)
    return [x[:size] for x in results]


def _cut(rows: list[Any], width: int) -> list[jax.Array]:
    """So many rows, the last ones filled up, along a second axis."""
    number = -(-rows[0].shape[0] // width)
    return [filled(x, number * width, jnp).reshape(number, width, *x.shape[1:]) for x in rows]


def _written(x: jax.Array, pieces: Pieces, row: jax.Array, axis: int) -> jax.Array:
    """The array with the pieces of some rows in place."""
    sizes = [piece.shape[axis] for piece in pieces.arrays[:-1]]  # none of a single piece, which may be scalars
    for piece, at in zip(pieces.arrays, itertools.accumulate(sizes, initial=0), strict=True):
        start = [row, *(jnp.int32(at if k == axis else 0) for k in range(1, x.ndim))]
        x = jax.lax.dynamic_update_slice(x, piece, start)
    return x


def scan_in_kernels(
    f: Callable[[T, Any], tuple[T, Any]], init: T, xs: Any, *, reverse: bool = False, size: Any = None
) -> tuple[T, Any]:
    """`lax.scan` that is `in_kernels`; inside of `shard_map` what is carried varies as `xs` do."""

    def counted(state: tuple[jax.Array, T], x: Any) -> tuple[tuple[jax.Array, T], Any]:
        k, carry = jax.lax.optimization_barrier((in_kernels(state[0], size), state[1]))
        carry, out = f(carry, x)
        return vary_alike((k + 1, carry), state), out

    start = vary_alike((jnp.zeros((), jnp.int32), init), xs)
    (_, carry), out = jax.lax.scan(counted, start, xs, reverse=reverse)
    return carry, out


def in_kernels(k: jax.Array, size: Any = None) -> jax.Array:
    """The counter of a loop, an int32; on a CPU, such that XLA does not compile the whole loop as one function.

    It would do so with older emitters, which do not vectorize a kernel of many arrays, unless something in the loop
    cannot be compiled that way: here a sort of two numbers, which costs as much as calling one kernel. A loop over
    arrays of few elements, if their `size` is known, is left as one function, which is faster.
    """
    if isinstance(size, int) and size < FEW_ELEMENTS:
        return k
    return on_cpu(k, _sorted, _same)[0]


def _sorted(k: jax.Array) -> jax.Array:
    if not late_barriers():
        return k
    return jax.lax.sort(jnp.stack([k, jnp.full_like(k, jnp.iinfo(k.dtype).max)]), dimension=0)[0]


def _same(k: jax.Array) -> jax.Array:
    return k
