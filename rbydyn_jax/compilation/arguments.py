"""Arguments for the public functions, with shapes from their signatures."""

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

from .._check import check_integer
from .._errors import ArgumentError, DtypeError, NameNotFoundError
from ..model.model import Model, float_dtype

# A function with its static arguments: alone, by its name in this package, or with a mapping or a partial.
Function = str | Callable[..., Any] | tuple[str | Callable[..., Any], Mapping[str, Any]]

# How the annotations begin of what public functions of a model return that hold no arrays.
_NO_ARRAYS = ("None", "str", "CFunction", "ExecutionPlan", "ExportedFunction", "PrecisionReport", "tuple[Callable")


class MissingArgumentError(ArgumentError):
    """An argument is missing whose shape the signature does not give.

    Args:
        function: The name of the function.
        argument: The name of the argument.
    """

    def __init__(self, function: str, argument: str) -> None:
        self.function, self.argument = function, argument
        super().__init__(
            f"{function} needs {argument}: give it as ({function!r}, {{{argument!r}: ...}}), an array as an example or "
            "a jax.ShapeDtypeStruct"
        )

    def __reduce__(self):
        return (MissingArgumentError, (self.function, self.argument))


class Call(NamedTuple):
    """A function of a model, its static arguments, and the arrays that it takes, or their shapes, in their order."""

    name: str
    function: Callable[..., Any]
    static: dict[str, Any]
    arrays: dict[str, Any]

    def bound(self, model: Any, *arrays: Any) -> Any:
        """The function of the model and its arrays."""
        return self.function(model, **dict(zip(self.arrays, arrays, strict=True)), **self.static)


def resolve_call(function: Function, model: Model, dtype: Any) -> Call:
    """The function and its arguments: the static ones that were given, and arrays of the shapes in its signature.

    Raises:
        DtypeError: It is not a function, or not a pair of a function and a mapping.
        NameNotFoundError: There is no such function, or argument.
        ArgumentError: An argument is missing whose shape the signature does not give, or the function of that name
            returns no arrays.
    """
    given: dict[str, Any] = {}
    if isinstance(function, tuple):
        if len(function) != 2 or not isinstance(function[1], Mapping):
            raise DtypeError(f"a function with its arguments is a pair (function, mapping), got {function!r}")
        function, given = function[0], dict(function[1])
    if isinstance(function, functools.partial):
        if function.args:
            raise ArgumentError("a functools.partial must hold its arguments by name")
        function, given = function.func, {**function.keywords, **given}
    if isinstance(function, str):
        function = _by_name(function)
    if not callable(function):
        raise DtypeError(f"function must be a function or its name, got {type(function).__name__}")
    name = getattr(function, "__name__", type(function).__name__)
    parameters = list(inspect.signature(function).parameters.values())[1:]  # the first is the model
    if unknown := [k for k in given if k not in [p.name for p in parameters]]:
        raise NameNotFoundError(unknown[0], f"argument of {name}", [p.name for p in parameters])
    arrays = {
        p.name: given[p.name] if p.name in given else jax.ShapeDtypeStruct(_shape(name, p, model), dtype)
        for p in parameters
        if (_is_array(given[p.name]) if p.name in given else _is_required(p))
    }
    return Call(name, function, {k: x for k, x in given.items() if k not in arrays}, arrays)


def check_result(result: Any) -> None:
    """Raises unless a function has returned arrays.

    Raises:
        DtypeError: The result holds something else.
    """
    for leaf in jax.tree.leaves(result):
        if not isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int):
            found = type(leaf).__name__
            raise DtypeError(f"function must take a model first, and return arrays; its result holds a {found}")


def float_type(dtype: Any, model: Model) -> np.dtype:
    """`dtype`, or that of the model.

    Raises:
        DtypeError: It is not a floating-point type, or one that JAX would replace by another.
    """
    found = float_dtype(model.inertias.dtype if dtype is None else dtype)
    if jax.dtypes.canonicalize_dtype(found) != found:
        raise DtypeError(f"dtype is {found}, which needs jax_enable_x64")
    return found


def check_batch(batch: Any) -> int | None:
    """The batch size, which must be positive, or None for single configurations."""
    return None if batch is None else check_integer(batch, "batch", 1)


def example(x: Any, batch: int | None) -> jax.Array:
    """An array with a leading batch axis; for a shape it is of ones, since a quaternion must not be zero."""
    shape = x.shape if batch is None else (batch, *x.shape)
    return jnp.ones(shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else jnp.broadcast_to(x, shape)


def _by_name(name: str) -> Callable[..., Any]:
    package, _, last = f"rbydyn_jax.{name}".rpartition(".")
    found: Any = None
    try:
        if any(part.startswith("_") for part in name.split(".")):
            raise AttributeError(name)
        found = operator.attrgetter(last)(importlib.import_module(package))
    except (ImportError, AttributeError):
        pass
    if _is_of_model(found):
        if not _returns_arrays(found):
            raise ArgumentError(f"function must return arrays, and {name} returns {_returned(found)}")
        return found
    public = vars(importlib.import_module("rbydyn_jax")).items()
    raise NameNotFoundError(name, "function", [n for n, f in public if _is_of_model(f) and _returns_arrays(f)])


def _returned(f: Callable[..., Any]) -> str:
    return str(inspect.signature(f).return_annotation)


def _returns_arrays(f: Callable[..., Any]) -> bool:
    return not _returned(f).startswith(_NO_ARRAYS)


def _is_of_model(f: Any) -> bool:
    """Whether it is a function whose first argument is a model."""
    return inspect.isfunction(f) and next(iter(inspect.signature(f).parameters), "") == "model"


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _is_required(p: inspect.Parameter) -> bool:
    return p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)


def _shape(function: str, p: inspect.Parameter, model: Model) -> tuple[int, ...]:
    """The shape that is written in the annotation of an argument, such as ``Float[Array, "nb 6"]``."""
    found = re.match(r"""Float\[Array, ["']([\w ]*)["']\]""", p.annotation if isinstance(p.annotation, str) else "")
    sizes = {"nq": model.nq, "nv": model.nv, "nb": model.nb, "nl": len(model.link_names)}
    names: Sequence[str] = found[1].split() if found else ("?",)
    if not all(n in sizes or n.isdecimal() for n in names):
        raise MissingArgumentError(function, p.name)
    return tuple(sizes[n] if n in sizes else int(n) for n in names)
