"""Splits the arguments of a user's function into arrays, of which some have a batch, and constants of the program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ._check import is_foreign, kind_of
from ._errors import ArgumentError, DtypeError, ShapeError

_BATCH, _SHARED = "batch", "shared"
_ROWS, _SAME = 0, -1  # in_axes, with an int for None, which is an empty pytree to JAX


class Constant(NamedTuple):
    """A value by its type, too."""

    kind: type  # 1, 1.0 and True compare equal
    value: Any


class Batched(NamedTuple):
    """`f(*args)` without its arrays: hashable, and equal for equal programs."""

    treedef: Any
    places: tuple[str | Constant, ...]

    def one(self, shared: list, row: list) -> Any:
        """The results for one row of the batch."""
        values = {_SHARED: iter(shared), _BATCH: iter(row)}
        leaves = [place.value if isinstance(place, Constant) else next(values[place]) for place in self.places]
        f, args = jax.tree.unflatten(self.treedef, leaves)
        return check_result(f(*args))


def split_arguments(f: Callable[..., Any], args: tuple, in_axes: Any) -> tuple[Batched, list, list]:
    """The function of the arrays, the shared arrays, and the batched arrays.

    Raises:
        ArgumentError: `in_axes` does not fit the arguments.
        DtypeError: An argument is not an array.
        ShapeError: There is no batch, or batches have different sizes.
    """
    if not callable(f):
        raise DtypeError(f"f must be a function of one configuration, got {type(f).__name__}")
    if isinstance(f, functools.partial):  # JAX would take it for a constant, including its arrays
        f = jax.tree_util.Partial(f.func, *f.args, **f.keywords)
    paths, treedef = jax.tree_util.tree_flatten_with_path((f, args))
    axes = [_SAME] * len(jax.tree.leaves(f)) + _axes(in_axes, args)
    shared, batch, places, sizes = [], [], [], {}
    for (path, leaf), axis in zip(paths, axes, strict=True):
        name = ("f", "args")[path[0].idx] + jax.tree_util.keystr(path[1:])
        if axis == _ROWS:
            sizes.setdefault(_size(leaf, name), name)
            batch.append(leaf)
            places.append(_BATCH)
        elif is_input(leaf):
            shared.append(leaf)
            places.append(_SHARED)
        else:
            places.append(constant(leaf, name))
    if len(sizes) != 1:
        raise ShapeError(_explain(sizes))
    return Batched(treedef, tuple(places)), shared, batch


def _axes(in_axes: Any, args: tuple) -> list[int]:
    """`in_axes` for each leaf of the arguments."""
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    for axis in jax.tree.leaves(in_axes, is_leaf=lambda x: x is None):
        if axis is not None and (type(axis) is not int or axis != 0):
            raise ArgumentError(f"in_axes must consist of 0 (a batch) and None (shared), got {axis!r}")
    numbers = jax.tree.map(lambda x: _SAME if x is None else _ROWS, in_axes, is_leaf=lambda x: x is None)
    try:
        return jax.tree.leaves(jax.tree.broadcast(numbers, args))
    except ValueError:
        raise ArgumentError(
            f"in_axes must be 0, None, or a tuple like the {len(args)} arguments after f, got {in_axes!r}"
        ) from None


def _size(x: Any, name: str) -> int:
    if not _is_array(x) or is_foreign(x):
        raise DtypeError(f"{name} must be an array of numbers, got {kind_of(x)}; shared arguments have None in in_axes")
    if x.ndim == 0:
        raise ShapeError(
            f"{name} must have a leading axis, the batch, got a scalar; shared arguments have None in in_axes"
        )
    return x.shape[0]


def constant(value: Any, name: str) -> Constant:
    """A constant of the program, which is not an array."""
    if isinstance(value, np.ndarray) or is_foreign(value):
        raise DtypeError(f"{name} must be an array that JAX can read, got {kind_of(value)}")
    try:
        hash(value)
    except TypeError:
        raise DtypeError(f"{name} must be an array or hashable, got {type(value).__name__}") from None
    return Constant(type(value), value)


def _explain(sizes: dict[int, str]) -> str:
    if not sizes:
        return "map_batch needs an argument with a batch (0 in in_axes), got none"
    found = ", ".join(f"{name} has {size}" for size, name in list(sizes.items())[:4])
    return f"the leading axes must have one size, but {found}; shared arguments have None in in_axes, as in (None, 0)"


def check_result(result: Any) -> Any:
    """The result of `f`, which must consist of arrays and numbers."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(result):
        is_number = _is_array(leaf) or isinstance(leaf, bool | int | float | complex | np.generic)
        if not is_number or is_foreign(leaf):
            kind = f"numbers of dtype {np.asarray(leaf).dtype.str}" if is_number else type(leaf).__name__
            raise DtypeError(f"f must return arrays, got {kind} (result{jax.tree_util.keystr(path)})")
    return result


def is_input(x: Any) -> bool:
    """Whether an argument is an input of the program, and not a constant."""
    is_number = _is_array(x) or isinstance(x, float) or (isinstance(x, np.generic) and x.dtype.kind in "biufc")
    return is_number and not is_foreign(x)


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufcV")
