"""Public functions: jitted, with arguments checked at trace time, at no cost for compiled calls."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from ._check import is_foreign, is_masked, kind_of
from ._errors import DtypeError, RbydynError
from ._lazy import jax
from ._process import check_process
from ._signatures import recorded

F = TypeVar("F", bound=Callable[..., Any])
ValueCheck = Callable[[Any, str], None]


def full_precision(f: F) -> F:
    """`f`, traced with matmul precision "highest" (no TF32 or bfloat16)."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return f(*args, **kwargs)

    return cast(F, call)


def jit_public(
    *static: str, configurations: Sequence[str] = ("q", "q0", "q1"), **values: ValueCheck
) -> Callable[[F], F]:
    """Jits a public function.

    Args:
        *static: Arguments (links, frames) that are static and must be hashable.
        configurations: Those of its arguments that are configurations of its argument `model`: at a singular one, such
            as the quaternion zero, a call with known values raises.
        **values: Checks of the values of other arguments, where they are known.
    """

    def wrap(f: F) -> F:
        compiled = jax.jit(recorded(full_precision(f)), static_argnames=static)
        return explained(f, compiled, static, configurations, values)

    return wrap


def explained(
    f: F,
    compiled: Callable[..., Any],
    static: Sequence[str] = (),
    configurations: Sequence[str] = (),
    values: Mapping[str, ValueCheck] = MappingProxyType({}),
) -> F:
    """`compiled`, made of `f`, with checks of values before and typed errors instead of JAX's for wrong arguments."""
    signature = inspect.signature(f)
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    of_model = [(names.index(n), n) for n in configurations if n in names] if names[:1] == ["model"] else []
    by_place = [(names.index(n), n, check) for n, check in values.items() if n in names]
    by_name = [(n, check) for n, check in values.items() if n not in names]

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_process()
        if kwargs:  # JAX would compile keyword and positional arguments separately
            for name in names[len(args) :]:
                if name not in kwargs:
                    break
                args = (*args, kwargs.pop(name))
        for k, x in enumerate(args):
            if isinstance(x, np.ndarray) and (type(x) is not np.ndarray or not x.dtype.isnative):
                _check_memory(x, names[k] if k < len(names) else f"argument {k}")
        for name, x in kwargs.items():
            if isinstance(x, np.ndarray):
                _check_memory(x, name)
        tree: Any = getattr(args[0], "tree", None) if of_model and args else None
        if getattr(tree, "singular_joints", ()):
            for place, name in of_model:
                if place < len(args):
                    tree.check_configuration(args[place], name)
        for place, name, check in by_place:
            if place < len(args) or name in kwargs:
                check(args[place] if place < len(args) else kwargs[name], name)
        for name, check in by_name:
            if name in kwargs:
                check(kwargs[name], name)
        try:
            return compiled(*args, **kwargs)
        except DtypeError as error:  # inside of the trace an array is a tracer
            if names[:1] == ["model"] and args and isinstance(args[0], jax.Array | np.ndarray):
                raise DtypeError(
                    "model must be a Model (from load_urdf, build_model or robots), got an array"
                ) from None
            if "Tracer" not in str(error):
                raise
            raise DtypeError(re.sub(r"\b\w*Tracer\b", "a number or an array", str(error))) from None
        except RbydynError:
            raise
        except (TypeError, ValueError, OverflowError):  # from JAX, for objects that cannot be arguments
            _check_arguments(signature.bind(*args, **kwargs), static)
            raise

    return cast(F, call)


_EXPECTED = {
    "model": "a Model",
    "env": "an envs.Environment",
    "state": "an envs.EnvState",
    "key": "a key of jax.random, such as jax.random.key(0)",
    "goals": "a list of goals such as PoseGoal",
    "costs": "a list of costs such as SoftGoal",
    "world": "a collision.World",
}


def _check_memory(x: np.ndarray, name: str) -> None:
    """Refuses what compiled programs would misread: they look at the bytes alone."""
    if not x.dtype.isnative:
        raise DtypeError(f"{name} must be an array in the byte order of this machine, got dtype {x.dtype.str}")
    if is_masked(x):
        raise DtypeError(f"{name} must be an array of floats, got {kind_of(x)}")


def _check_arguments(given: inspect.BoundArguments, static: Sequence[str]) -> None:
    for name, value in given.arguments.items():
        kind = kind_of(value)
        annotation = str(given.signature.parameters[name].annotation)
        expected = f"a {annotation}" if annotation.endswith("Problem") else _EXPECTED.get(name, "an array of floats")
        if name in static:
            try:
                hash(value)
            except TypeError:
                raise DtypeError(f"{name} must be hashable: a name, number or tuple of these, got {kind}") from None
        elif name == "model" and isinstance(value, str | bytes | Path):
            raise DtypeError(f"model must be a Model, got {kind}; load_urdf reads one from a file")
        elif not _is_data(value):
            of = re.fullmatch(r"(?:Sequence|tuple|list)\[([\w .|]+?)(?:, \.\.\.)?\]", annotation)
            if of is None:
                raise DtypeError(f"{name} must be {expected}, got {kind}")
            element = " or ".join(of[1].split(" | "))
            if not isinstance(value, list | tuple):
                expected = _EXPECTED.get(name, f"a list of {element}")
                raise DtypeError(f"{name} must be {expected}, got {kind}")
            k = next(k for k, x in enumerate(value) if not _is_data(x))
            path, leaf = next((path, x) for path, x in jax.tree.leaves_with_path(value[k]) if not _is_array(x))
            if (field := jax.tree_util.keystr(path)).startswith("."):
                raise DtypeError(f"{name}[{k}]{field} must be an array of floats, got {kind_of(leaf)}")
            raise DtypeError(f"{name}[{k}] must be a {element}, got {type(value[k]).__name__}")


def _is_data(x: Any) -> bool:
    return all(_is_array(leaf) for leaf in jax.tree.leaves(x))


def _is_array(x: Any) -> bool:
    if isinstance(x, int):
        return abs(x) < 2**31
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "biufc" and not is_foreign(x)
    return isinstance(x, jax.Array | float)
