"""How results are printed: a short table of their values with units, as text and in notebooks."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from os import PathLike
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._saved import write_result

_FEW = 10  # numbers that are printed one by one
_WIDTH = 72  # characters of a value


class Result(eqx.Module):
    """Base class of results: `print` shows values with units, or shapes where values are not known.

    Units are those at the end of the description of each field in the docstring of the class. Long arrays are
    summarized by their shape and range.
    """

    _enums: ClassVar[Mapping[str, type[IntEnum]]] = {}

    def _headline(self) -> str:
        """What matters most, in a few words; called with plain numpy arrays."""
        return ""

    def __repr__(self) -> str:
        if not _known(self):
            return eqx.tree_pformat(self)
        rows = list(_rows(self))
        names, values = (max((len(row[k]) for row in rows), default=0) for k in (0, 1))
        lines = [f"  {name:{names}}  {value:{values}}  {unit}".rstrip() for name, value, unit in rows]
        return "\n".join([_title(self), *lines])

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it to a `.npz` file, from which `load_result` reads it.

        Args:
            path: The file.

        Raises:
            DtypeError: A value is traced, or `path` is no path.
        """
        write_result(self, path)

    def summary(self) -> str:
        """What `print` shows: the outcome, then a line for each value with its unit."""
        return repr(self)

    def _repr_html_(self) -> str:
        if not _known(self):
            return f"<pre>{html.escape(repr(self))}</pre>"
        cells = ("".join(f"<td>{html.escape(x)}</td>" for x in row) for row in _rows(self))
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><caption>{html.escape(_title(self))}</caption>{rows}</table>"


def outcomes(status: Any, names: type[IntEnum]) -> str:
    """How often each outcome came out, the most frequent first; of a single one its name."""
    numbers, counts = np.unique(np.asarray(status), return_counts=True)
    found = sorted(zip(counts.tolist(), numbers.tolist(), strict=True), reverse=True)
    return ", ".join(names(number).name if np.ndim(status) == 0 else f"{n} {names(number).name}" for n, number in found)


def count_of(flags: Any, what: str) -> str:
    """`what` or not, for a batch how many of them are."""
    flags = np.asarray(flags)
    if flags.ndim == 0:
        return what if flags else f"not {what}"
    return f"{int(flags.sum())} of {flags.size} {what}"


def _title(result: Result) -> str:
    headline = jax.tree.map(np.asarray, result)._headline()  # in the precision of the values, whatever JAX's default
    return type(result).__name__ + (f": {headline}" if headline else "")


def _known(result: Result) -> bool:
    """Whether all leaves have values: none is traced, donated, or on another machine."""
    leaves = jax.tree.leaves(result)
    return all(
        isinstance(x, np.ndarray | np.generic | bool | int | float)
        or (isinstance(x, jax.Array) and not isinstance(x, Tracer) and _readable(x))
        for x in leaves
    )


def _readable(x: jax.Array) -> bool:
    return not x.is_deleted() and x.is_fully_addressable


def _rows(result: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, value and unit of each field; those of a result inside after its own name."""
    units, enums = _units(type(result)), getattr(type(result), "_enums", {})
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if value is None:
            continue
        if isinstance(value, Result):
            yield from _rows(value, f"{prefix}{field.name}.")
        elif field.name in enums:
            yield prefix + field.name, outcomes(value, enums[field.name]), ""
        else:
            yield prefix + field.name, _text(value), units.get(field.name, "")


def _text(value: Any) -> str:
    if not isinstance(value, jax.Array | np.ndarray | np.generic | float):
        text = " ".join(repr(value).split())
        return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return f"{value.dtype}{list(value.shape)}"
    x = np.asarray(value)
    if x.dtype.kind not in "biuf":
        x = x.astype(np.float64)  # such as bfloat16
    if x.ndim == 0:
        return _number(x)
    if x.ndim == 1 and x.size <= _FEW:
        return f"[{', '.join(map(_number, x))}]"
    return f"{' x '.join(map(str, x.shape))}" + _range(x)


def _range(x: np.ndarray) -> str:
    if not x.size:
        return ""
    if x.dtype.kind == "b":
        return f", {int(x.sum())} true"
    finite = x[np.isfinite(x)]
    low, high = (_number(f(finite)) if finite.size else "" for f in (np.min, np.max))
    within = "" if not low else f", all {low}" if low == high else f", {low} to {high}"
    return within + (f", {x.size - finite.size} not finite" if finite.size < x.size else "")


def _number(x: Any) -> str:
    return f"{x:.4g}" if np.asarray(x).dtype.kind == "f" else str(x)


@lru_cache(maxsize=256)
def _units(cls: type) -> dict[str, str]:
    """The units of the fields: what stands in the last brackets of each description in the docstring."""
    entry = re.compile(r"^ {4,8}(\w+): (.*(?:\n(?! {4,8}\w+: )(?!\s*$).*)*)", re.MULTILINE)
    texts = [pair for base in reversed(cls.__mro__) for pair in entry.findall(base.__doc__ or "")]
    found = {name: re.findall(r"\[([^\[\]]+)\]", text) for name, text in texts}
    return {name: " ".join(brackets[-1].split()) for name, brackets in found.items() if brackets}
