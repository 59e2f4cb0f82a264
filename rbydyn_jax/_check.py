"""Checks of array arguments at trace time; they cost nothing in a compiled call."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import DtypeError, MissingExtraError, ShapeError


def check_array(x: Any, name: str, shape: tuple[int | None, ...] | None = None, meaning: str = "") -> jax.Array:
    """Returns `x` as a JAX array, or says what is wrong with it.

    Args:
        x: The argument.
        name: Its name, for the message.
        shape: The shape that it must have; None stands for any size of an axis.
        meaning: What the shape means, such as ``"model.nq"``.

    Raises:
        DtypeError: `x` is not an array of floating-point numbers.
        ShapeError: `x` has another shape.
    """
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


def require(package: str, extra: str, feature: str) -> ModuleType:
    """Imports an optional package, or names the extra that installs it.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, feature) from error
