"""Arguments of the right shapes for the public functions, from their signatures."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import DtypeError, NameNotFoundError, RbydynError
from ..model.model import Model

# A function with its static arguments: alone, by its name in this package, or with a mapping or a partial.
Function = str | Callable[..., Any] | tuple[str | Callable[..., Any], Mapping[str, Any]]


class Call(NamedTuple):
    """A function of a model, its static arguments, and the shapes of the arrays that it takes."""

    name: str
    function: Callable[..., Any]
    static: dict[str, Any]
    shapes: dict[str, jax.ShapeDtypeStruct]

    def bound(self, model: Any, *arrays: Any) -> Any:
        """The function of the model and its arrays, in the order of `shapes`."""
        return self.function(model, **dict(zip(self.shapes, arrays, strict=True)), **self.static)


def resolve_call(function: Function, model: Model, dtype: Any) -> Call:
    """The function and its arguments; for `dtype` see `float_type`."""
    given: dict[str, Any] = {}
    if isinstance(function, tuple):
        if len(function) != 2 or not isinstance(function[1], Mapping):
            raise DtypeError(f"a function with its arguments is a pair (function, mapping), got {function!r}")
        function, given = function[0], dict(function[1])
    if isinstance(function, functools.partial):
        if function.args:
            raise RbydynError("a partial must hold its arguments by name")
        function, given = function.func, {**function.keywords, **given}
    if isinstance(function, str):
        function = _by_name(function)
    if not callable(function):
        raise DtypeError(f"a function or its name is due, got {type(function).__name__}")
    name = getattr(function, "__name__", type(function).__name__)
    first, *parameters = inspect.signature(function).parameters.values()
    if unknown := set(given) - {p.name for p in parameters}:
        raise NameNotFoundError(min(unknown), f"argument of {name}", [p.name for p in parameters])
    shapes, static = {}, {}
    for p in parameters:
        if p.name in given and not _is_array(given[p.name]):
            static[p.name] = given[p.name]
        elif p.name in given:
            shapes[p.name] = jax.ShapeDtypeStruct(given[p.name].shape, given[p.name].dtype)
        elif p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            shapes[p.name] = jax.ShapeDtypeStruct(_shape(name, p, model), dtype)
    return Call(name, function, static, shapes)


def float_type(dtype: Any, model: Model) -> np.dtype:
    """`dtype`, or that of the model; raises where JAX would make another of it."""
    found = np.dtype(model.inertias.dtype if dtype is None else dtype)
    if not jnp.issubdtype(found, jnp.floating) or jax.dtypes.canonicalize_dtype(found) != found:
        enable = "; JAX makes it float32 while jax_enable_x64 is off" if found == np.float64 else ""
        raise DtypeError(f"dtype must be a floating-point type that is enabled, got {found}{enable}")
    return found


def example(shape: jax.ShapeDtypeStruct, batch: int | None) -> jax.Array:
    """Numbers of that shape, with a leading axis for the batch: ones, which as quaternions are no zero."""
    return jnp.ones((*(() if batch is None else (batch,)), *shape.shape), shape.dtype)


def _by_name(name: str) -> Callable[..., Any]:
    package, _, last = f"rbydyn_jax.{name}".rpartition(".")
    try:
        return operator.attrgetter(last)(importlib.import_module(package))
    except (ImportError, AttributeError):
        known = [n for n, f in vars(importlib.import_module("rbydyn_jax")).items() if inspect.isfunction(f)]
        raise NameNotFoundError(name, "function", known) from None


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _shape(function: str, p: inspect.Parameter, model: Model) -> tuple[int, ...]:
    """The shape that is written in the annotation of an argument, such as ``Float[Array, "nb 6"]``."""
    found = re.match(r"""Float\[Array, ["']([\w ]*)["']\]""", str(p.annotation))
    sizes = {"nq": model.nq, "nv": model.nv, "nb": model.nb, "nl": len(model.link_names)}
    names: Sequence[str] = found[1].split() if found else ("?",)
    if not all(n in sizes or n.isdecimal() for n in names):
        raise RbydynError(
            f"{function} needs {p.name}: give it as ({function}, {{{p.name!r}: ...}}), with a jax.ShapeDtypeStruct for "
            "an array"
        )
    return tuple(sizes[n] if n in sizes else int(n) for n in names)
