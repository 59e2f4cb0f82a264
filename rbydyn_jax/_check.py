"""Public functions: jitted, with arguments checked at trace time, at no cost for compiled calls."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._errors import ArgumentError, DtypeError, MissingExtraError, RbydynError, ShapeError
from ._signatures import recorded


def check_array(x: Any, name: str, shape: tuple[int | None, ...] | None = None, meaning: str = "") -> jax.Array:
    """Returns `x` as a JAX array.

    Args:
        x: The argument.
        name: Its name, for the message.
        shape: The required shape; None is an axis of any size.
        meaning: What the shape means, such as ``"model.nq"``.

    Raises:
        DtypeError: `x` is not an array of floating-point numbers; an int is accepted as a scalar.
        ShapeError: `x` has another shape.
    """
    if shape == () and isinstance(x, int) and not isinstance(x, bool):
        x = float(x)
    if not isinstance(x, jax.Array | np.ndarray | np.floating | float):
        hint = f"; wrap it: jnp.asarray({name}, dtype=float)" if isinstance(x, list | tuple | int) else ""
        raise DtypeError(f"{name} must be an array of floats, got {type(x).__name__}{hint}")
    if not jnp.issubdtype(jnp.result_type(x), jnp.floating):
        raise DtypeError(f"{name} must be an array of floats, got dtype {jnp.result_type(x)}")
    array = jnp.asarray(x)
    if shape is not None:
        ok = len(shape) == array.ndim and all(e is None or e == g for e, g in zip(shape, array.shape, strict=True))
        if not ok:
            want = (
                "(" + ", ".join("..." if e is None else str(e) for e in shape) + ("," if len(shape) == 1 else "") + ")"
            )
            extra = f" ({meaning})" if meaning else ""
            batched = (
                "; for a batch use jax.vmap" if array.ndim == len(shape) + 1 and array.shape[1:] == tuple(shape) else ""
            )
            raise ShapeError(f"{name} must have shape {want}{extra}, got {array.shape}{batched}")
    return array


def check_integer(x: Any, name: str, minimum: int | None = None) -> int:
    """Returns `x` as an int.

    Raises:
        ArgumentError: `x` is less than `minimum`.
        DtypeError: `x` is not an integer, or is traced.
    """
    if isinstance(x, Tracer):
        raise DtypeError(f"{name} must be known while tracing: a static argument of jax.jit, not mapped by jax.vmap")
    try:
        number = None if isinstance(x, bool) else operator.index(x)
    except TypeError:
        number = None
    if number is None:
        raise DtypeError(f"{name} must be an integer, got {x!r}")
    if minimum is not None and number < minimum:
        raise ArgumentError(f"{name} must be at least {minimum}, got {number}")
    return number


def check_finite(x: Any, name: str) -> None:
    """Raises unless the array `x` is finite, where its values are known.

    Raises:
        ArgumentError: A value is NaN or infinite.
    """
    if not isinstance(x, Tracer) and not np.isfinite(x).all():
        raise ArgumentError(f"{name} must be finite, got {np.asarray(x).tolist()}")


_ORTHONORMAL = 1e-4  # what float32 and files with five digits leave of an orthonormal matrix


def is_rotation(R: np.ndarray) -> bool:
    """Whether a (3, 3) array is a rotation matrix."""
    return bool(np.abs(R.T @ R - np.eye(3)).max() <= _ORTHONORMAL) and np.linalg.det(R) > 0.0


def is_last_row(row: np.ndarray) -> bool:
    """Whether a (4,) array is the last row of a homogeneous transform, 0 0 0 1."""
    return bool(np.abs(row - (0.0, 0.0, 0.0, 1.0)).max() <= _ORTHONORMAL)


F = TypeVar("F", bound=Callable[..., Any])


def full_precision(f: F) -> F:
    """`f`, traced with matmul precision "highest" (no TF32 or bfloat16)."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return f(*args, **kwargs)

    return cast(F, call)


def jit_public(*static: str) -> Callable[[F], F]:
    """Jits a public function; the named arguments (links, frames) are static and must be hashable."""

    def wrap(f: F) -> F:
        compiled = jax.jit(recorded(full_precision(f)), static_argnames=static)
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:  # JAX would compile keyword and positional arguments separately
                for name in names[len(args) :]:
                    if name not in kwargs:
                        break
                    args = (*args, kwargs.pop(name))
            try:
                return compiled(*args, **kwargs)
            except RbydynError:
                raise
            except (TypeError, ValueError):  # from JAX, for objects that cannot be arguments
                _check_arguments(inspect.signature(f).bind(*args, **kwargs).arguments, static)
                raise

        return cast(F, call)

    return wrap


def _check_arguments(given: Mapping[str, Any], static: Sequence[str]) -> None:
    for name, value in given.items():
        kind = type(value).__name__
        if name in static:
            try:
                hash(value)
            except TypeError:
                raise DtypeError(f"{name} must be hashable: a name, number or tuple of these, got {kind}") from None
        elif name == "model" and isinstance(value, str | bytes | Path):
            raise DtypeError(f"model must be a Model, got {kind}; load_urdf reads one from a file")
        elif not all(_is_array(leaf) for leaf in jax.tree.leaves(value)):
            raise DtypeError(f"{name} must be {'a Model' if name == 'model' else 'an array of floats'}, got {kind}")


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.generic | bool | int | float) or (
        isinstance(x, np.ndarray) and x.dtype.kind in "biufc"
    )


def require(package: str, extra: str, feature: str) -> ModuleType:
    """Imports an optional package; if it is missing, the error names the extra that installs it.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, feature) from error
