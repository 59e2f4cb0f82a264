"""Reports what differs between two calls of a function that were compiled separately."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray

from .._signatures import Signature
from ..model.specialized import SpecializedModel
from ..model.tree import IS_MINUS_ONE, IS_ONE, IS_ZERO, KinematicTree

_CONSTANTS = {IS_ZERO: "0", IS_ONE: "1", IS_MINUS_ONE: "-1"}
_ROTATION = tuple(f"R[{i},{j}]" for i in range(3) for j in range(3))
_PATTERNS = {
    "placement_pattern": ("placement of joint", "joint_names", (*_ROTATION, "x", "y", "z")),
    "axis_pattern": ("axis of joint", "joint_names", ("x", "y", "z")),
    "link_pattern": ("placement of link", "link_names", (*_ROTATION, "x", "y", "z")),
}


_HIDDEN = 5  # differences for which a model that is specialised stands: fewer than those of another robot


def nearest_differences(new: Signature, seen: Sequence[Signature]) -> list[str]:
    """The differences between a call and the most similar one of `seen`."""
    candidates = [list(_of_values("", old, new)) for old in reversed(seen)]
    return min(candidates, key=lambda found: sum(_HIDDEN if _is_of_kind(x) else 1 for x in found), default=[])


def _is_of_kind(difference: str) -> bool:
    """Whether one model is specialised and the other is not; another call will be more similar."""
    return difference.endswith(("Model -> SpecializedModel", "SpecializedModel -> Model"))


def _of_values(path: str, old: Any, new: Any) -> Iterator[str]:
    if _is_array(old) and _is_array(new):
        if old.shape != new.shape:
            yield f"{path}: {old.shape} -> {new.shape}"
        if old.dtype != new.dtype:
            yield f"{path}: dtype {old.dtype} -> {new.dtype}"
        elif old.weak_type != new.weak_type:
            kinds = ("an array", "a Python number")
            yield f"{path}: {kinds[old.weak_type]} -> {kinds[new.weak_type]}"
    elif type(old) is not type(new):
        yield f"{path}: {_name(old)} -> {_name(new)}"
    elif isinstance(old, KinematicTree):
        yield from _of_trees(path, old, new)
    elif isinstance(old, SpecializedModel):
        yield from _of_numbers(path, old.model, new.model)
    elif isinstance(old, Mapping):
        for key in [*old, *(k for k in new if k not in old)]:
            inner = f"{path}[{key!r}]" if path else str(key)
            if key in old and key in new:
                yield from _of_values(inner, old[key], new[key])
            else:
                names = [_name(x[key]) if key in x else "not given" for x in (old, new)]
                yield f"{inner}: {names[0]} -> {names[1]}"
    elif dataclasses.is_dataclass(old):
        yield from _of_fields(path, old, new)
    elif isinstance(old, tuple | list) and len(old) == len(new):
        fields = getattr(old, "_fields", ())
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _of_values(path + (f".{fields[k]}" if fields else f"[{k}]"), a, b)
    elif old != new:
        yield f"{path}: {_name(old)} -> {_name(new)}"


def _of_fields(path: str, old: Any, new: Any) -> Iterator[str]:
    names = [f.name for f in dataclasses.fields(old)]
    found = [d for name in names for d in _of_values(f"{path}.{name}", *_both(old, new, name))]
    casts = {d.partition(": ")[2] for d in found}
    leaves = jax.tree.leaves([getattr(old, name) for name in names])
    if len(casts) == 1 < len(found) == sum(map(_is_array, leaves)):
        yield f"{path}: {casts.pop()} of all leaves"
        return
    # An entry that is no longer 0, 1 or -1 makes the geometry longer; the pattern is the better explanation.
    patterned = any(" of joint " in d or " of link " in d for d in found)
    yield from (d for d in found if not (patterned and d.startswith(f"{path}.geometry:")))


def _of_trees(path: str, old: KinematicTree, new: KinematicTree) -> Iterator[str]:
    for name in (f.name for f in dataclasses.fields(old) if f.name != "report"):
        if name not in _PATTERNS:
            yield from _of_values(f"{path}.{name}", *_both(old, new, name))
            continue
        what, owners, entries = _PATTERNS[name]
        for owner, *rows in zip(getattr(new, owners), *_both(old, new, name), strict=False):
            kinds = [[_CONSTANTS.get(k, "a parameter") for k in row] for row in rows]
            changed = [f"{e} {a} -> {b}" for e, a, b in zip(entries, *kinds, strict=False) if a != b]
            if changed:
                yield f"{path}: {what} {owner!r}: {', '.join(changed)} (see `unstructured`)"


def _of_numbers(path: str, old: Any, new: Any) -> Iterator[str]:
    """The differences of models whose parameters are baked into the program."""
    yield from _of_values(path, *(jax.tree.map(jax.typeof, m) for m in (old, new)))
    leaves = dict(jax.tree.leaves_with_path(new))
    for place, a in jax.tree.leaves_with_path(old):
        b = leaves.get(place)
        if b is not None and a.shape == b.shape and not np.array_equal(a, b):
            yield f"{path}{jax.tree_util.keystr(place)}: other parameters in a specialised model"


def _both(old: Any, new: Any, name: str) -> tuple[Any, Any]:
    return getattr(old, name), getattr(new, name)


def _is_array(x: Any) -> bool:
    return isinstance(x, ShapedArray)


def _name(x: Any) -> str:
    if _is_array(x):
        return f"array {x.shape}"
    if isinstance(x, str | int | float | tuple | list | None) and len(text := repr(x)) <= 80:
        return text
    return type(x).__name__
