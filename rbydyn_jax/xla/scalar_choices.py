"""Moves of numbers to and from places that are computed: each place is compared with all that it can be."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn

from .scalar_builder import Builder
from .scalar_moves import Numbers, array, result_type
from .scalars import Scalar

Follow = Callable[[Any, Sequence[Numbers]], list[Numbers]]
"""What a program gives of operands."""

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


def _window(build: Builder, x: Numbers, starts: Sequence[Any], sizes: Sequence[int]) -> Numbers:
    """A slice of an array, the nearest one where there is none."""
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        x = np.moveaxis(_row(build, _windows(np.moveaxis(x, axis, 0), size), start), 0, axis)
    return x


def _slice(build: Builder, eqn: JaxprEqn, x: Numbers, *starts: Numbers) -> Numbers:
    return _window(build, x, [start[()] for start in starts], eqn.params["slice_sizes"])


def _ends(starts: Sequence[Any], lengths: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The last place along each axis where a slice can start, and its start can be."""
    return [min(n - m, np.iinfo(x.dtype).max) for x, n, m in zip(starts, lengths, sizes, strict=True)]


def _changed(
    build: Builder,
    x: Numbers,
    starts: Sequence[Any],
    sizes: Sequence[int],
    new: Callable[[Numbers], Numbers],
    clamps: bool,
) -> Numbers:
    """An array with another slice in the place of one: the nearest where there is none if it clamps, and else none."""
    found, conditions = x.copy(), list[dict[int, Any]]()
    for start, end in zip(starts, _ends(starts, x.shape, sizes), strict=True):
        kind = start.dtype
        if clamps:
            start = build("min", kind, build("max", kind, start, kind.type(0)), kind.type(end)) if end else kind.type(0)
        begins = {k: build("eq", _BOOL, start, kind.type(k)) for k in range(end + 1)}
        conditions.append({k: here for k, here in begins.items() if isinstance(here, Scalar) or here})
    for corner in itertools.product(*conditions):
        each = [begins[k] for begins, k in zip(conditions, corner, strict=True)]
        here = functools.reduce(lambda a, b: build("and", _BOOL, a, b), each, np.True_)
        window = tuple(slice(k, k + m) for k, m in zip(corner, sizes, strict=True))
        found[window] = selected(build, here, new(x[window]), found[window])
    return found


def _update(build: Builder, eqn: JaxprEqn, x: Numbers, update: Numbers, *starts: Numbers) -> Numbers:
    return _changed(build, x, [start[()] for start in starts], update.shape, lambda _: update, clamps=True)


def _starts(x: Numbers, row: Numbers, axes: Sequence[int], at: Sequence[int], batch: Mapping[int, int]) -> list[Any]:
    """Where a slice of an array starts along each axis: by a row of indices, or by the row's own place `at`."""
    found: dict[int, Any] = dict(zip(axes, row, strict=True)) | {k: np.int32(at[j]) for k, j in batch.items()}
    return [found.get(k, np.int32(0)) for k in range(x.ndim)]


def _gather(build: Builder, eqn: JaxprEqn, x: Numbers, indices: Numbers) -> Numbers:
    numbers, sizes, shape = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], result_type(eqn).shape
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    own = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    batch = [k for k in range(len(shape)) if k not in numbers.offset_dims]
    found = np.empty((*(shape[k] for k in batch), *(shape[k] for k in numbers.offset_dims)), object)
    for at in np.ndindex(*indices.shape[:-1]):
        starts = _starts(x, indices[at], numbers.start_index_map, at, own)
        window = _window(build, x, starts, sizes).squeeze(gone)
        if eqn.params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP:
            bounds = [
                build(relation, _BOOL, start, start.dtype.type(bound))
                for start, end in zip(starts, _ends(starts, x.shape, sizes), strict=True)
                for relation, bound in (("ge", 0), ("le", end))
            ]
            inside = functools.reduce(lambda a, b: build("and", _BOOL, a, b), bounds)
            window = selected(build, inside, window, array([_fill(eqn)] * window.size, window.shape))
        found[(*at, ...)] = window
    return np.moveaxis(found, range(len(batch)), batch)


def _fill(eqn: JaxprEqn) -> Any:
    """What is read beyond an array."""
    value, dtype = eqn.params["fill_value"], result_type(eqn).dtype
    if value is None and dtype.kind in "iu":
        ends = np.iinfo(dtype)
        value = ends.min if dtype.kind == "i" else ends.max
    return dtype.type(np.nan if value is None else value)  # which is true of a boolean


def scattered(build: Builder, follow: Follow, eqn: JaxprEqn, x: Numbers, indices: Numbers, updates: Numbers) -> Numbers:
    """Slices of an array, one after the other, replaced or combined with others."""
    params, numbers = eqn.params, eqn.params["dimension_numbers"]
    clamps = params["mode"] == jax.lax.GatherScatterMode.CLIP
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = [k for k in range(x.ndim) if k not in gone]
    own = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    lengths = {k: updates.shape[j] for k, j in zip(kept, numbers.update_window_dims, strict=True)}
    sizes = [lengths.get(k, 1) for k in range(x.ndim)]
    batch = [k for k in range(updates.ndim) if k not in numbers.update_window_dims]
    rows = np.moveaxis(updates, batch, range(len(batch)))
    for at in np.ndindex(*indices.shape[:-1]):
        starts = _starts(x, indices[at], numbers.scatter_dims_to_operand_dims, at, own)
        update = rows[(*at, ...)].reshape(sizes)

        def new(window: Numbers, update: Numbers = update) -> Numbers:
            if params["update_jaxpr"] is None:
                return update
            combined = ClosedJaxpr(params["update_jaxpr"], params["update_consts"])
            pairs = zip(window.reshape(-1), update.reshape(-1), strict=True)
            return array([follow(combined, [array([a], ()), array([b], ())])[0][()] for a, b in pairs], window.shape)

        x = _changed(build, x, starts, sizes, new, clamps)
    return x


SCATTERS = frozenset("scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max".split())
"""The operations that `scattered` does."""
CHOSEN: dict[str, Callable[..., Numbers]] = {
    "dynamic_slice": _slice,
    "dynamic_update_slice": _update,
    "gather": _gather,
}
"""By the name of the operation; all operands but the first are indices, or what is written."""
