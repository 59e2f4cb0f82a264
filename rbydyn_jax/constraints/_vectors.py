"""Validates points, directions and poses given by the user, which may be traced."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_not_negative, check_number, check_pose, check_positive, check_real
from .._errors import ArgumentError, DtypeError
from ..spatial import safe

# What is not traced stays in numpy: inside a traced function a JAX constant would be traced as well.
Numbers = Array | np.ndarray


def pose(T: Any, name: str) -> Float[Numbers, "4 4"]:
    """Returns a transform; None is the identity."""
    if T is None:
        return np.eye(4)
    check_array(T, name, (4, 4))
    check_finite(T, name)
    check_pose(T, name)
    return T if isinstance(T, jax.Array) else np.asarray(T)


def check_link(x: Any, name: str, optional: bool = False) -> Any:
    """Returns a link, by name or index; or None, the world, if it is `optional`."""
    if isinstance(x, bool) or not (isinstance(x, str | int | np.integer) or (optional and x is None)):
        raise DtypeError(f"{name} must be a link, by name or index{' or None' * optional}, got {type(x).__name__}")
    return x


def vector(x: Any, name: str) -> Float[Numbers, "3"]:
    """Returns three numbers as an array."""
    if isinstance(x, jax.Array):
        array = check_array(x, name, (3,))
        check_finite(array, name)
        return array
    array = check_real(x, name, (3,))
    check_finite(array, name)
    return array


def scalar(x: Any, name: str) -> Float[Numbers, ""]:
    """Returns one number as an array; it must be finite, where its value is known."""
    if isinstance(x, jax.Array):
        array = check_array(x, name, ())
        check_finite(array, name)
        return array
    return np.asarray(check_number(x, name))


def positive(x: Any, name: str) -> Float[Numbers, ""]:
    """Returns a positive number as an array."""
    check_positive(array := scalar(x, name), name)
    return array


def not_negative(x: Any, name: str) -> Float[Numbers, ""]:
    """Returns a number that is not negative as an array."""
    check_not_negative(array := scalar(x, name), name)
    return array


def direction(x: Any, name: str) -> Float[Numbers, "3"]:
    """Returns the unit vector along three numbers; NaN for a traced zero."""
    array = vector(x, name)
    if isinstance(array, Tracer):
        return array / safe.safe_norm(array)
    length = float(np.linalg.norm(array))
    if not length > 0.0:
        raise ArgumentError(f"{name} must have a direction, got {np.asarray(array).tolist()}")
    return array / length
