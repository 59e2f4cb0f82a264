"""Converts arguments to float64 NumPy arrays of a known shape: always copies, regardless of JAX's flags."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._check import check_integer, check_pose, real_numbers
from ..._errors import ArgumentError as _ArgumentError
from ..._errors import DtypeError
from ._errors import ArgumentError, ShapeError


def numbers(x: Any, name: str) -> np.ndarray:
    """Returns a new float64 array.

    Raises:
        DtypeError: `x` is not numeric, or complex.
    """
    found = real_numbers(x)
    if found is None:
        raise DtypeError(f"{name} must be numbers, got {type(x).__name__}")
    return found


def any_vector(x: Any, name: str) -> np.ndarray:
    """Returns a vector (m,) of any length; a column (m, 1) counts as one.

    Raises:
        DtypeError: `x` is not a vector of numbers, which is a `TypeError` in the SDK too.
    """
    vector = numbers(x, name)
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1:
        raise DtypeError(f"{name} must be a vector, got shape {vector.shape}")
    return vector


def array(x: Any, name: str, *shape: int) -> np.ndarray:
    """Returns an array of exactly that shape; a column (n, 1) counts as (n,).

    Raises:
        DtypeError: `x` is not numeric, or of another shape, which is a `TypeError` in the SDK too.
    """
    result = numbers(x, name)
    if result.shape != shape:
        if len(shape) != 1 or result.shape != (*shape, 1):
            raise DtypeError(f"{name} must have shape {shape}, got {result.shape}")
        result = result[:, 0]
    return result


def number(x: Any, name: str) -> float:
    """Returns one number.

    Raises:
        ArgumentError: It is NaN.
        DtypeError: It is not a number.
    """
    value = float(array(x, name))
    if value != value:
        raise ArgumentError(f"{name} must be a number, got nan")
    return value


def finite(x: Any, name: str, *shape: int) -> np.ndarray:
    """Returns an array of finite numbers of exactly that shape.

    Raises:
        ArgumentError: A number is NaN or infinite.
        DtypeError: `x` is not numeric, or of another shape.
    """
    result = array(x, name, *shape)
    if not np.isfinite(result).all():
        raise ArgumentError(f"{name} must be finite, got {result.tolist()}")
    return result


def pose(x: Any, name: str) -> np.ndarray:
    """Returns a homogeneous transform (4, 4).

    Raises:
        ArgumentError: It is not finite, or no rigid transform.
        DtypeError: It is not numeric, or of another shape.
    """
    T = finite(x, name, 4, 4)
    try:
        check_pose(T, name)
    except _ArgumentError as error:
        raise ArgumentError(str(error)) from None
    return T


def limits(lower: Any, upper: Any) -> tuple[float, float]:
    """Returns two numbers, of which the first is not greater.

    Raises:
        ArgumentError: It is, or one is NaN.
        DtypeError: One is not a number.
    """
    low, high = number(lower, "lower"), number(upper, "upper")
    if low > high:
        raise ArgumentError(f"lower must not be greater than upper, got {low} and {high}")
    return low, high


def size(x: Any, name: str) -> float:
    """Returns one length.

    Raises:
        ArgumentError: It is negative or not finite.
        DtypeError: It is not a number.
    """
    length = float(finite(x, name))
    if length < 0.0:
        raise ArgumentError(f"{name} must not be negative, got {length}")
    return length


def at_least(x: Any, name: str, size: int) -> np.ndarray:
    """Returns the first `size` entries of a vector; the SDK ignores the rest.

    Raises:
        ShapeError: There are fewer.
    """
    vector = any_vector(x, name)
    if len(vector) < size:
        raise ShapeError(f"{name} must have {size} entries, got {len(vector)}")
    return vector[:size]


def unsigned(x: Any, name: str) -> int:
    """Returns a number that is not negative.

    Raises:
        DtypeError: It is negative or not an integer, which is a `TypeError` in the SDK too.
    """
    integer = check_integer(x, name)
    if integer < 0:
        raise DtypeError(f"{name} must not be negative, got {integer}")
    return integer


def index(x: Any, name: str, count: int) -> int:
    """Returns an index into the `count` links of a state.

    Raises:
        ArgumentError: It is too large.
        DtypeError: It is negative or not an integer.
    """
    place = x if type(x) is int and x >= 0 else unsigned(x, name)
    if place >= count:
        raise ArgumentError(f"{name} must be less than {count}, the number of links of the state, got {place}")
    return place


def checked(x: Any, name: str, kind: type) -> Any:
    """Returns `x`, which has to be of a class.

    Raises:
        DtypeError: It is not, None included.
    """
    if not isinstance(x, kind):
        raise DtypeError(f"{name} must be a {kind.__name__}, got {type(x).__name__}")
    return x
