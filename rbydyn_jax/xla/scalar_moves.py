"""Arrays of the numbers of a program, and the operations of JAX that only move numbers to other places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from .scalars import NotScalarError, Scalar

Numbers = np.ndarray
"""An array of scalars, or of numpy scalars where they are known."""


def array(scalars: Sequence[Any], shape: Sequence[int]) -> Numbers:
    """The numbers in an array of this shape."""
    found = np.empty(len(scalars), object)
    found[:] = scalars
    return found.reshape(shape)


def flat(arrays: Sequence[Numbers]) -> list[Any]:
    """The numbers of arrays, one array after the other."""
    return [x for numbers in arrays for x in numbers.reshape(-1)]


def unflattened(numbers: Iterable[Any], like: Sequence[Any]) -> list[Numbers]:
    """Numbers, one array after the other, in arrays of the shapes of others."""
    given = iter(numbers)
    return [array([next(given) for _ in range(x.size)], x.shape) for x in like]


def known(x: Numbers) -> bool:
    """Whether all of an array is known."""
    return not any(isinstance(k, Scalar) for k in x.reshape(-1))


def constant(x: Any) -> Numbers:
    """The numbers of an array that is known."""
    dense = np.asarray(x)
    return array([dense.dtype.type(k) for k in dense.reshape(-1)], dense.shape)


def result_type(eqn: JaxprEqn) -> Any:
    """The type of the only result."""
    return eqn.outvars[0].aval


def values_of(x: Numbers, aval: Any) -> np.ndarray:
    """The array that known numbers make up, of the dtype of a type."""
    return np.array([k.item() for k in x.reshape(-1)], aval.dtype).reshape(x.shape)


def _broadcast(eqn: JaxprEqn, x: Numbers, *_: Numbers) -> Numbers:
    shape, places = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    inner = [1] * len(shape)
    for k, place in enumerate(places):
        inner[place] = x.shape[k]
    return np.broadcast_to(x.reshape(inner), shape)


def _slice(eqn: JaxprEqn, x: Numbers) -> Numbers:
    steps = eqn.params["strides"] or (1,) * x.ndim
    limits = zip(eqn.params["start_indices"], eqn.params["limit_indices"], steps, strict=True)
    return x[tuple(slice(*each) for each in limits)]


def _pad(eqn: JaxprEqn, x: Numbers, value: Numbers) -> Numbers:
    shape = result_type(eqn).shape
    found = np.empty(shape, object)
    found[...] = value[()]
    target, source = [], []
    for (low, _, inside), size, limit in zip(eqn.params["padding_config"], x.shape, shape, strict=True):
        places = low + np.arange(size) * (inside + 1)
        kept = (places >= 0) & (places < limit)
        target.append(places[kept])
        source.append(np.arange(size)[kept])
    if x.ndim:
        found[np.ix_(*target)] = x[np.ix_(*source)]
        return found
    return x


def _split(eqn: JaxprEqn, x: Numbers) -> list[Numbers]:
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], axis=eqn.params["axis"])


def _unstack(eqn: JaxprEqn, x: Numbers) -> list[Numbers]:
    at = eqn.params["axis"]
    return [part.squeeze(at) for part in np.split(x, x.shape[at], at)]


def _places(eqn: JaxprEqn, x: Numbers, *rest: Numbers) -> Numbers:
    """By the operation itself on the numbers' places: indices must be known.

    What comes from no place, which -1 marks, is what the operation takes for it.
    """
    if not all(map(known, rest)):
        raise NotScalarError(eqn.primitive.name, "has indices that are computed")
    at = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    indices = [values_of(r, v.aval) for r, v in zip(rest, eqn.invars[1:], strict=True)]
    marks = {"fill_value": -1} if "fill_value" in eqn.params else {}
    with jax.ensure_compile_time_eval():
        places = np.asarray(eqn.primitive.bind(at, *indices, **eqn.params | marks))
        fills = places
        if (places < 0).any():
            fills = np.asarray(eqn.primitive.bind(np.zeros(x.shape, result_type(eqn).dtype), *indices, **eqn.params))
    flat = x.reshape(-1)
    return array([flat[k] if k >= 0 else fill for k, fill in zip(places.flat, fills.flat, strict=True)], places.shape)


def _dynamic_update(eqn: JaxprEqn, x: Numbers, update: Numbers, *starts: Numbers) -> Numbers:
    if not all(map(known, starts)):
        raise NotScalarError(eqn.primitive.name, "has indices that are computed")
    found = x.copy()
    limits = (min(max(int(k[()]), 0), n - m) for k, n, m in zip(starts, x.shape, update.shape, strict=True))
    found[tuple(slice(k, k + m) for k, m in zip(limits, update.shape, strict=True))] = update
    return found


def _iota(eqn: JaxprEqn, *_: Numbers) -> Numbers:
    size, at = eqn.params["shape"], eqn.params["dimension"]
    inner = np.arange(size[at], dtype=eqn.params["dtype"]).reshape([-1 if k == at else 1 for k in range(len(size))])
    return constant(np.broadcast_to(inner, size))


MOVES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda eqn, x, *_: x.reshape(eqn.params["new_sizes"]),
    "squeeze": lambda eqn, x: x.squeeze(tuple(eqn.params["dimensions"])),
    "expand_dims": lambda eqn, x: np.expand_dims(x, tuple(eqn.params["dimensions"])),
    "transpose": lambda eqn, x: x.transpose(eqn.params["permutation"]),
    "slice": _slice,
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
    "concatenate": lambda eqn, *xs: np.concatenate(xs, axis=eqn.params["dimension"]),
    "stack": lambda eqn, *xs: np.stack(xs, axis=eqn.params["axis"]),
    "unstack": _unstack,
    "split": _split,
    "tile": lambda eqn, x: np.tile(x, eqn.params["reps"]),
    "pad": _pad,
    "iota": _iota,
    "gather": _places,
    "dynamic_slice": _places,
    "dynamic_update_slice": _dynamic_update,
    "rbydyn_batch_axis": lambda eqn, x: x,
}
