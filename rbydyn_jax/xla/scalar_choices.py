"""Moves of numbers to and from places that are computed: each place is compared with all that it can be."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from .scalar_builder import Builder
from .scalar_moves import Numbers, array, result_type
from .scalars import NotScalarError

_BOOL = np.dtype(bool)


def selected(build: Builder, condition: Any, x: Numbers, y: Numbers) -> Numbers:
    """One array or the other, of one shape, by a condition or by one for each place along their leading axes."""
    conditions = np.asarray(condition, object)
    inner = conditions.reshape((*conditions.shape, *(1,) * (x.ndim - conditions.ndim)))
    rows = zip(np.broadcast_to(inner, x.shape).reshape(-1), x.reshape(-1), y.reshape(-1), strict=True)
    return array([build("select", p.dtype, c, p, q) for c, p, q in rows], x.shape)


def _row(build: Builder, x: Numbers, at: Any) -> Numbers:
    """A row of an array, the nearest one where there is none."""
    found = x[0, ...]
    for k in range(1, min(len(x), np.iinfo(at.dtype).max + 1)):
        found = selected(build, build("ge", _BOOL, at, at.dtype.type(k)), x[k, ...], found)
    return found


def _windows(x: Numbers, size: int) -> Numbers:
    """All that a slice along the first axis can be."""
    return np.stack([x[k : k + size] for k in range(len(x) - size + 1)])


def _slice(build: Builder, eqn: JaxprEqn, x: Numbers, *starts: Numbers) -> Numbers:
    for axis, (start, size) in enumerate(zip(starts, eqn.params["slice_sizes"], strict=True)):
        x = np.moveaxis(_row(build, _windows(np.moveaxis(x, axis, 0), size), start[()]), 0, axis)
    return x


def _update(build: Builder, eqn: JaxprEqn, x: Numbers, update: Numbers, *starts: Numbers) -> Numbers:
    found, lengths = x.copy(), zip(x.shape, update.shape, starts, strict=True)
    ends = [min(n - m, np.iinfo(start[()].dtype).max) for n, m, start in lengths]

    def begins(start: Any, end: int, k: int) -> Any:
        """Whether the place along an axis, the nearest one that there is, is this."""
        kind = start.dtype
        return build(
            "eq", _BOOL, build("min", kind, build("max", kind, start, kind.type(0)), kind.type(end)), kind.type(k)
        )

    for corner in np.ndindex(*(end + 1 for end in ends)):
        conditions = [begins(s[()], end, k) for s, end, k in zip(starts, ends, corner, strict=True) if end]
        here = functools.reduce(lambda a, b: build("and", _BOOL, a, b), conditions, np.True_)
        window = tuple(slice(k, k + m) for k, m in zip(corner, update.shape, strict=True))
        found[window] = selected(build, here, update, found[window])
    return found


def _gather(build: Builder, eqn: JaxprEqn, x: Numbers, indices: Numbers) -> Numbers:
    """Rows along one axis, by an array of numbers."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    axes = numbers.start_index_map
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    is_rows = len(axes) == 1 and axes == numbers.collapsed_slice_dims and not numbers.operand_batching_dims
    if not is_rows or tuple(n for k, n in enumerate(sizes) if k not in axes) != rest:
        raise NotScalarError(eqn.primitive.name, "has indices that are computed, of more than rows")
    if eqn.params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP:
        raise NotScalarError(eqn.primitive.name, "has indices that are computed, and fills")
    rows, shape = np.moveaxis(x, axes[0], 0), result_type(eqn).shape
    batch = [k for k in range(len(shape)) if k not in numbers.offset_dims]
    found = np.empty((*(shape[k] for k in batch), *rest), object)
    for at in np.ndindex(*indices.shape[:-1]):
        found[(*at, ...)] = _row(build, rows, indices[(*at, 0)])
    return np.moveaxis(found, range(len(batch)), batch)


CHOSEN: dict[str, Callable[..., Numbers]] = {
    "dynamic_slice": _slice,
    "dynamic_update_slice": _update,
    "gather": _gather,
}
"""By the name of the operation; all operands but the first are indices, or what is written."""
