"""Checks of arguments. Each returns or accepts the argument, or raises an error that names it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import ArgumentError, DtypeError, ShapeError
from ._lazy import is_traced, jax, jnp
from ._process import check_process


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
    check_process()
    if shape in (None, ()):
        if isinstance(x, int) and not isinstance(x, bool):
            x = check_number(x, name)
        elif _is_traced_int(x):
            x = 1.0 * x
    if not isinstance(x, jax.Array | np.ndarray | np.floating | float) or is_foreign(x):
        hint = f"; wrap it: jnp.asarray({name}, dtype=float)" if isinstance(x, list | tuple | int) else ""
        raise DtypeError(f"{name} must be an array of floats, got {kind_of(x)}{hint}")
    dtype = x.dtype if isinstance(x, jax.Array | np.ndarray) else jnp.result_type(x)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise DtypeError(f"{name} must be an array of floats, got dtype {dtype}")
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


def _is_traced_int(x: Any) -> bool:
    """Whether it is what an int becomes as an argument of a compiled function."""
    return is_traced(x) and x.shape == () and x.weak_type and jnp.issubdtype(x.dtype, jnp.integer)


def is_foreign(x: Any) -> bool:
    """Whether it holds what JAX cannot read: objects, records, a mask, another byte order, floats beyond 64 bits."""
    if not isinstance(x, np.ndarray | np.generic):
        return False
    if is_masked(x):
        return True
    dtype = x.dtype
    largest = 16 if dtype.kind == "c" else 8
    is_record = dtype.kind == "V" and not dtype.isbuiltin  # bfloat16 is of the same kind
    return dtype.hasobject or is_record or not dtype.isnative or (dtype.kind in "fc" and dtype.itemsize > largest)


def is_masked(x: Any) -> bool:
    """Whether it is an array that hides some of its numbers, which `numpy.asarray` would show."""
    is_special = isinstance(x, np.ndarray) and type(x) is not np.ndarray
    return is_special and isinstance(x, np.ma.MaskedArray)  # importing `np.ma` takes a while


def kind_of(x: Any) -> str:
    """What an argument is that should have been an array of numbers, for a message."""
    if is_masked(x):
        return "a masked array; use its method filled"
    return f"an array of {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__


_LARGEST_INTEGER = 2**31 - 1


def check_integer(x: Any, name: str, minimum: int | None = None) -> int:
    """Returns `x` as an int.

    Raises:
        ArgumentError: `x` is less than `minimum`, or does not fit into 32 bits.
        DtypeError: `x` is not an integer, or is traced.
    """
    if is_traced(x):
        raise DtypeError(f"{name} must be known while tracing: a static argument of jax.jit, not mapped by jax.vmap")
    try:
        number = None if isinstance(x, bool) else operator.index(x)
    except TypeError:
        number = None
    if number is None:
        raise DtypeError(f"{name} must be an integer, got {x!r:.200}")
    if minimum is not None and number < minimum:
        raise ArgumentError(f"{name} must be at least {minimum}, got {number}")
    if not -_LARGEST_INTEGER <= number <= _LARGEST_INTEGER:
        raise ArgumentError(f"{name} must be an integer of 32 bits, got one of {number.bit_length()}")
    return number


def check_number(x: Any, name: str) -> float:
    """Returns `x` as a finite Python float.

    Raises:
        ArgumentError: `x` is NaN or infinite.
        DtypeError: `x` is not a number, or is traced.
    """
    if is_traced(x):
        raise DtypeError(f"{name} must be known while tracing: a static argument of jax.jit, not mapped by jax.vmap")
    if isinstance(x, bool | str | bytes) or getattr(x, "ndim", 0):
        raise DtypeError(f"{name} must be a number, got {x!r:.200}")
    try:
        number = float(x)
    except (TypeError, ValueError):
        raise DtypeError(f"{name} must be a number, got {x!r:.200}") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be finite, got {number}")
    return number


def check_positive_number(x: Any, name: str) -> float:
    """Returns `x` as a finite, positive Python float.

    Raises:
        ArgumentError: `x` is not finite, or not positive.
        DtypeError: `x` is not a number, or is traced.
    """
    number = check_number(x, name)
    check_positive(number, name)
    return number


def check_choice(x: Any, name: str, choices: Iterable[str]) -> str:
    """Returns `x`, one of some words.

    Raises:
        ArgumentError: It is none of them.
    """
    if not isinstance(x, str) or x not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {x!r:.200}")
    return x


def check_flag(x: Any, name: str) -> bool:
    """Returns `x`, True or False.

    Raises:
        DtypeError: It is something else.
    """
    if not isinstance(x, bool | np.bool_):
        raise DtypeError(f"{name} must be True or False, got {type(x).__name__}")
    return bool(x)


def check_sequence(x: Any, name: str, of: str) -> Sequence[Any]:
    """Returns `x`, a list or tuple of something, such as "links, by name or index".

    Raises:
        DtypeError: It is something else.
    """
    if not isinstance(x, Sequence) or isinstance(x, str | bytes):
        raise DtypeError(f"{name} must be a tuple of {of}, got {type(x).__name__}")
    return x


def check_mapping(x: Any, name: str, of: str) -> None:
    """Raises unless `x` is a mapping of something, such as "links to wrenches (6,)".

    Raises:
        DtypeError: It is something else.
    """
    if not isinstance(x, Mapping):
        raise DtypeError(f"{name} must be a mapping from {of}, got {type(x).__name__}")


def real_numbers(x: Any, truth_values: bool = True) -> np.ndarray | None:
    """A new array of real numbers in double precision, of lists and integers too; None of anything else.

    NumPy alone would drop a mask and the imaginary part of a complex number, and make NaN of None.

    Args:
        x: The argument.
        truth_values: Whether they count as numbers.
    """
    if is_masked(x):
        return None
    try:
        given = np.asarray(x)
        return None if given.dtype.kind in ("cOSUMm" if truth_values else "cOSUMmb") else np.array(given, float)
    except (TypeError, ValueError):
        return None


def check_real(x: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns real numbers, integers and lists included, in double precision.

    Raises:
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` has another shape.
    """
    array = real_numbers(x, truth_values=False)
    if array is None:
        raise DtypeError(f"{name} must be {math.prod(shape)} real numbers, got {x!r:.200}")
    if array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def check_key(key: Any, name: str = "key") -> jax.Array:
    """Returns one key of `jax.random`, new-style or raw.

    Raises:
        DtypeError: `key` is something else.
    """
    if isinstance(key, jax.Array | np.ndarray):
        new_style = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        if key.shape == () if new_style else key.dtype == np.uint32 and key.ndim == 1:
            return jnp.asarray(key)
    got = f"{key.dtype}{list(key.shape)}" if isinstance(key, jax.Array | np.ndarray) else f"{key!r:.200}"
    raise DtypeError(f"{name} must be one key of jax.random, such as jax.random.key(0), got {got}")


def check_finite(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are finite, where they are known.

    Raises:
        ArgumentError: A value is NaN or infinite.
    """
    _check_known(x, name, np.isfinite, "finite")


def check_outside_jit(function: str, *arguments: Any, use: str = "") -> None:
    """Raises if an argument or the whole call is traced: the function looks at values, and jits its own steps.

    Args:
        function: Its name.
        *arguments: Its arguments.
        use: What to call instead.

    Raises:
        DtypeError: Something is traced.
    """
    if any(map(is_traced, (jnp.zeros(()), *jax.tree.leaves(arguments)))):
        hint = f", or use {use}" if use else ""
        raise DtypeError(f"{function} needs the values of its arguments: call it outside of jit, vmap and grad{hint}")


def check_single(batch: tuple[int, ...], name: str) -> None:
    """Raises for a batch of what has to be a single one, such as a motion; `batch` are its leading axes.

    Raises:
        ShapeError: It is a batch.
    """
    if batch:
        one = f"jax.tree.map(lambda x: x[0], {name})"
        raise ShapeError(f"{name} must be a single one, got a batch of {batch}; use jax.vmap, or one of them: {one}")


_SHOWN = 10  # numbers of an array in a message


def _check_all(good: np.ndarray, numbers: np.ndarray, name: str, wanted: str) -> None:
    """Raises unless all numbers are good: with the array where it is short, or else with the first that is not."""
    if good.all():
        return
    got: Any = numbers.tolist()
    if numbers.size > _SHOWN:
        bad = np.argwhere(~good)
        first = tuple(bad[0].tolist())
        others = f", and {len(bad) - 1} more that are not" if len(bad) > 1 else ""
        got = f"{numbers[first].item()} at {list(first)}{others}"
    raise ArgumentError(f"{name} must be {wanted}, got {got}")


def known(x: Any) -> np.ndarray | None:
    """The numbers of an argument; None where they are traced, or where it has none."""
    if x is None or isinstance(x, str) or is_traced(x):
        return None
    try:
        numbers = np.asarray(x)
    except (TypeError, ValueError):
        return None
    return numbers if jnp.issubdtype(numbers.dtype, jnp.number) else None


def _check_known(x: Any, name: str, good: Callable[[np.ndarray], np.ndarray], wanted: str) -> None:
    """Raises unless all numbers of `x` are good, where they are known."""
    numbers = known(x)
    if numbers is not None:
        _check_all(good(numbers), numbers, name, wanted)


def check_positive(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are finite and positive, where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    _check_known(x, name, lambda x: np.isfinite(x) & (x > 0.0), "finite and positive")


def check_not_negative(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are finite and not negative, where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    _check_known(x, name, lambda x: np.isfinite(x) & (x >= 0.0), "finite and not negative")


def check_share(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are in [0, 1], where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    _check_known(x, name, lambda x: (x >= 0.0) & (x <= 1.0), "in [0, 1]")


def check_positive_share(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are in (0, 1], where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    _check_known(x, name, lambda x: (x > 0.0) & (x <= 1.0), "in (0, 1]")


def check_size(x: Any, name: str, shape: tuple[int, ...] = ()) -> jax.Array:
    """Returns lengths, such as a radius, as an array: finite and not negative, where they are known.

    Raises:
        ArgumentError: A number is not.
        DtypeError: `x` is not an array of floats.
        ShapeError: `x` has another shape.
    """
    size = check_array(x, name, shape)
    check_not_negative(x, name)
    return size


_ORTHONORMAL = 1e-4  # what float32 and files with five digits leave of an orthonormal matrix


def check_each(x: Any, name: str, size: int, meaning: str) -> jax.Array:
    """Returns a vector of `size`: `x`, or the number `x` for each.

    Raises:
        DtypeError: `x` is neither a number nor an array of floats.
        ShapeError: `x` has another shape.
    """
    array = check_array(x, name, () if isinstance(x, int | float) else None)
    return jnp.broadcast_to(array, (size,)) if array.ndim == 0 else check_array(array, name, (size,), meaning)


def is_rotation(R: np.ndarray) -> bool:
    """Whether a (3, 3) array is a rotation matrix."""
    return bool(np.abs(R.T @ R - np.eye(3)).max() <= _ORTHONORMAL) and np.linalg.det(R) > 0.0


def is_last_row(row: np.ndarray) -> bool:
    """Whether a (4,) array is the last row of a homogeneous transform, 0 0 0 1."""
    return bool(np.abs(row - (0.0, 0.0, 0.0, 1.0)).max() <= _ORTHONORMAL)


def check_rotation(R: Any, name: str) -> None:
    """Raises for a finite (3, 3) array that is no rotation matrix, where its values are known.

    Raises:
        ArgumentError: It is not.
    """
    matrix = known(R)
    if matrix is not None and matrix.shape == (3, 3) and np.isfinite(matrix).all() and not is_rotation(matrix):
        raise ArgumentError(f"{name} must be a rotation matrix, got {matrix.tolist()}")


def check_pose(T: Any, name: str) -> None:
    """Raises for finite (..., 4, 4) arrays that are no rigid transforms, where their values are known.

    Raises:
        ArgumentError: One is not.
    """
    matrices = known(T)
    if matrices is None or matrices.shape[-2:] != (4, 4):
        return
    for matrix in matrices.reshape(-1, 4, 4):
        if np.isfinite(matrix).all() and not (is_last_row(matrix[3]) and is_rotation(matrix[:3, :3])):
            got = matrix.tolist()
            raise ArgumentError(f"{name} must be a rigid transform: a rotation, and 0 0 0 1 below; got {got}")
