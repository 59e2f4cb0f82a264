"""Arguments as NumPy-based libraries take them: lists, tuples and integers are numbers, too."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from .._check import check_array, check_finite, check_size, is_last_row, is_rotation
from .._errors import ArgumentError, DtypeError


def floats(x: Any, name: str, shape: tuple[int | None, ...] | None = None, meaning: str = "") -> Array:
    """Returns `x` as a JAX array of floats.

    Args:
        x: An array, a number, or lists of numbers.
        name: Its name, for the message.
        shape: The required shape; None is an axis of any size.
        meaning: What the shape means.

    Raises:
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` has another shape.
    """
    if isinstance(x, list | tuple):
        given = x
        try:
            x = jnp.stack(x) if any(isinstance(e, Tracer) for e in x) else np.asarray(x, None if len(x) else float)
        except (TypeError, ValueError):
            raise DtypeError(f"{name} must hold numbers in rows of equal length, got {given!r}") from None
        if isinstance(x, np.ndarray) and x.dtype.kind not in "iuf":
            raise DtypeError(f"{name} must hold real numbers, got {given!r}")
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "USOV":
        raise DtypeError(f"{name} must be an array of floats, got dtype {x.dtype}")
    if isinstance(x, Array | np.ndarray | np.generic | int) and jnp.issubdtype(jnp.result_type(x), jnp.integer):
        try:
            x = jnp.asarray(x, float)
        except OverflowError:
            raise DtypeError(f"{name} must be an array of floats, got an int too large for one") from None
    return check_array(x, name, shape, meaning)


def finite_floats(x: Any, name: str, shape: tuple[int | None, ...], meaning: str = "") -> Array:
    """Returns `x` as a JAX array of floats that are finite, where they are known; see `floats`.

    Raises:
        ArgumentError: A number is NaN or infinite.
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` has another shape.
    """
    array = floats(x, name, shape, meaning)
    check_finite(array, name)
    return array


def lengths(x: Any, name: str, shape: tuple[int, ...] = ()) -> Array:
    """Returns lengths, or a coefficient of friction, as an array: finite and not negative, where they are known.

    Raises:
        ArgumentError: A number is not.
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` has another shape.
    """
    return check_size(floats(x, name, shape), name, shape)


def rotation(x: Any, name: str) -> Array:
    """Returns `x` as a rotation matrix, which is checked unless it is traced.

    Raises:
        ArgumentError: `x` is not a rotation matrix.
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` is not of shape (3, 3).
    """
    R = floats(x, name, (3, 3), "a rotation matrix")
    if not isinstance(R, Tracer):
        M = np.asarray(R, float)
        if not is_rotation(M):
            raise ArgumentError(f"{name} must be a rotation matrix, got\n{M}")
    return R


def transform(x: Any, name: str) -> Array:
    """Returns `x` as a homogeneous matrix, which is checked unless it is traced.

    Raises:
        ArgumentError: `x` is not a rigid transform, or not finite.
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` is not of shape (4, 4).
    """
    T = floats(x, name, (4, 4), "a transform")
    rotation(T[:3, :3], f"{name}[:3, :3]")
    if not isinstance(T, Tracer):
        M = np.asarray(T, float)
        if not np.isfinite(M).all():
            raise ArgumentError(f"{name} must be finite, got\n{M}")
        if not is_last_row(M[3]):
            raise ArgumentError(f"the last row of {name} must be 0 0 0 1, got {M[3].tolist()}")
    return T


def quaternion(x: Any, name: str) -> Array:
    """Returns `x` as a quaternion wxyz of any length but zero.

    Raises:
        ArgumentError: It is zero or not finite.
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` is not of shape (4,).
    """
    quat = floats(x, name, (4,), "[w, x, y, z]")
    if not isinstance(quat, Tracer) and not (np.isfinite(quat).all() and np.any(quat)):
        raise ArgumentError(f"{name} must be finite and not zero, got {np.asarray(quat).tolist()}")
    return quat
