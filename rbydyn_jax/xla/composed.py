"""Operations of arrays as compositions of simpler ones, in a straight line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .scalars import NotScalarError
from .trigonometry import polynomial

_MOST_SORTED = 64  # numbers, of which each is compared with each


def _power(x: jax.Array, *, y: int) -> jax.Array:
    if y < 0:
        return 1.0 / _power(x, y=-y)
    result, square = None, x
    while y:
        if y & 1:
            result = square if result is None else result * square
        y >>= 1
        square = square * square if y else square
    return jnp.ones_like(x) if result is None else result


def _cholesky(matrix: jax.Array, **_: Any) -> jax.Array:
    """The lower factor, column by column."""
    columns: list[jax.Array] = []
    for k in range(len(matrix)):
        rest = matrix[k:, k] - sum((x[k:] * x[k] for x in columns), jnp.zeros(len(matrix) - k, matrix.dtype))
        columns.append(jnp.concatenate([jnp.zeros(k, matrix.dtype), rest / jnp.sqrt(rest[0])]))
    return jnp.stack(columns, axis=1)


def _triangular_solve(
    a: jax.Array, b: jax.Array, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool, **_: Any
) -> jax.Array:
    """a x = b, row by row; x a = b, which is its transpose, if a is not on the left."""
    a, b = (a, b) if left_side else (a.T, b.T)
    is_lower = lower == left_side
    if transpose_a:
        a, is_lower = a.T, not is_lower
    rows: dict[int, jax.Array] = {}
    for k in range(len(a)) if is_lower else reversed(range(len(a))):
        rest = b[k] - sum((a[k, j] * x for j, x in rows.items()), jnp.zeros(b.shape[1], b.dtype))
        rows[k] = rest if unit_diagonal else rest / a[k, k]
    x = jnp.stack([rows[k] for k in range(len(a))])
    return x if left_side else x.T


def _lu(matrix: jax.Array, **_: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Both factors in one matrix, the row that was exchanged in each step, and the order of the rows in the end.

    Of a square matrix, with the largest number of a column as the pivot.
    """
    n, both = len(matrix), matrix
    order, pivots = jnp.arange(n, dtype=jnp.int32), list[jax.Array]()
    for k in range(n):
        pivots.append(k + jnp.argmax(jnp.abs(both[k:, k])).astype(jnp.int32))
        both, order = (_exchanged(x, k, pivots[-1]) for x in (both, order))
        pivot, column = both[k, k], both[k + 1 :, k]
        below = jnp.where(pivot != 0, column / jnp.where(pivot != 0, pivot, 1), column)
        rest = both[k + 1 :, k + 1 :] - below[:, None] * both[k, k + 1 :][None]
        both = jnp.concatenate([both[: k + 1], jnp.concatenate([both[k + 1 :, :k], below[:, None], rest], axis=1)])
    return both, jnp.stack(pivots), order


def _exchanged(x: jax.Array, k: int, pivot: jax.Array) -> jax.Array:
    """An array with two of its rows exchanged, of which the second is computed, and not before the first."""
    chosen = x[k]
    for i in range(k + 1, len(x)):
        chosen = jnp.where(pivot == i, x[i], chosen)
    rest = [jnp.where(pivot == i, x[k], x[i]) for i in range(k + 1, len(x))]
    return jnp.concatenate([x[:k], jnp.stack([chosen, *rest])])


def _first(better: Callable[[jax.Array, jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """The index of the first best number along an axis, or of the first that is none."""

    def found(x: jax.Array, *, axes: Sequence[int], index_dtype: Any) -> jax.Array:
        rows = jnp.moveaxis(x.astype(jnp.int32) if x.dtype == jnp.bool_ else x, axes[0], 0)
        best, at = rows[0], jnp.zeros(rows.shape[1:], index_dtype)
        for k, row in enumerate(rows[1:], start=1):
            new = better(row, best) | ((row != row) & (best == best))
            best, at = jnp.where(new, row, best), jnp.where(new, jnp.asarray(k, index_dtype), at)
        return at

    return found


def _precedes(x: jax.Array, y: jax.Array) -> jax.Array:
    """Whether numbers come before others in a sort, where those that are none are the last."""
    return (x < y) | ((x == x) & (y != y)) if jnp.issubdtype(x.dtype, jnp.floating) else x < y


def _sort(*arrays: jax.Array, dimension: int, num_keys: int, **_: Any) -> list[jax.Array]:
    """By the first arrays: neighbours are exchanged in turns, which leaves equal rows in their order."""
    rows = [jnp.moveaxis(x, dimension, 0) for x in arrays]
    size = len(rows[0])
    if size > _MOST_SORTED:
        raise NotScalarError("sort", f"of more than {_MOST_SORTED} numbers is not supported")
    for turn in range(size):
        begin, end = turn % 2, size - (size - turn) % 2
        pairs = [(x[begin:end:2], x[begin + 1 : end : 2]) for x in rows]
        swap = jnp.zeros(pairs[0][0].shape, bool)
        for x, y in reversed(pairs[:num_keys]):
            swap = _precedes(y, x) | (swap & ~_precedes(x, y))
        changed = [jnp.stack([jnp.where(swap, y, x), jnp.where(swap, x, y)], axis=1) for x, y in pairs]
        rows = [
            jnp.concatenate([x[:begin], y.reshape(end - begin, *x.shape[1:]), x[end:]])
            for x, y in zip(rows, changed, strict=True)
        ]
    return [jnp.moveaxis(x, 0, dimension) for x in rows]


def _cumulative(combined: Callable[[jax.Array, jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """What each row makes of all before it."""

    def found(x: jax.Array, *, axis: int, reverse: bool) -> jax.Array:
        rows = list(jnp.moveaxis(x, axis, 0))
        results = list(itertools.accumulate(rows[::-1] if reverse else rows, combined))
        return jnp.stack(results[::-1] if reverse else results, axis=axis) if rows else x

    return found


COMPOSED: dict[str, Callable[..., Any]] = {
    "square": lambda x, **_: x * x,
    "one_minus_square": lambda x, **_: (1.0 - x) * (1.0 + x),
    "polynomial": lambda x, *coefficients, **_: polynomial(coefficients[::-1], x),  # the constant term comes first
    "rsqrt": lambda x, **_: 1.0 / jnp.sqrt(x),
    "logistic": lambda x, **_: 1.0 / (1.0 + jnp.exp(-x)),
    "clamp": lambda low, x, high: jnp.minimum(jnp.maximum(x, low), high),
    "sign": lambda x: jnp.where(x > 0, 1.0, jnp.where(x < 0, -1.0, x)).astype(x.dtype),
    "integer_pow": _power,
    "argmax": _first(jnp.greater),
    "argmin": _first(jnp.less),
    "lt_to": _precedes,  # by `sort` and `searchsorted`, which know one zero
    "le_to": lambda x, y: ~_precedes(y, x),
    "sort": _sort,
    "cumsum": _cumulative(jnp.add),
    "cumprod": _cumulative(jnp.multiply),
    "cummax": _cumulative(jnp.maximum),
    "cummin": _cumulative(jnp.minimum),
    "cumlogsumexp": _cumulative(jnp.logaddexp),
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
}
"""By the name of the operation, with its parameters as keywords; matrices have two axes."""
