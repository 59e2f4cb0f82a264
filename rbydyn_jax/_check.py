"""Public functions: jitted, with arguments checked at trace time, at no cost for compiled calls."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from ._errors import ArgumentError, DtypeError, MissingExtraError, RbydynError, ShapeError
from ._lazy import is_traced, jax, jnp
from ._signatures import recorded

_forked = False  # this process was forked from one that had used JAX


def _after_fork() -> None:
    global _forked
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    _forked = _forked or (bridge is not None and getattr(bridge, "backends_are_initialized", lambda: True)())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_process() -> None:
    """Raises in a process that was forked from one that had used JAX.

    Of the threads of a process only the one that forks is in the new process. A call that compiles, or that shares its
    work with JAX's threads, would wait for them forever there.

    Raises:
        RbydynError: It is such a process.
    """
    if _forked:
        raise RbydynError(
            "this process was forked from one that had used JAX, whose threads are not in it: the call could wait "
            'forever. Start processes by spawn: multiprocessing.get_context("spawn"), or '
            'DataLoader(multiprocessing_context="spawn")'
        )


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
    if shape == () and isinstance(x, int) and not isinstance(x, bool):
        x = check_number(x, name)
    if not isinstance(x, jax.Array | np.ndarray | np.floating | float) or is_foreign(x):
        hint = f"; wrap it: jnp.asarray({name}, dtype=float)" if isinstance(x, list | tuple | int) else ""
        kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
        raise DtypeError(f"{name} must be an array of floats, got {kind}{hint}")
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


def is_foreign(x: Any) -> bool:
    """Whether it holds what JAX cannot read: objects, records, another byte order, floats of more than 64 bits."""
    if not isinstance(x, np.ndarray | np.generic):
        return False
    dtype = x.dtype
    largest = 16 if dtype.kind == "c" else 8
    is_record = dtype.kind == "V" and not dtype.isbuiltin  # bfloat16 is of the same kind
    return dtype.hasobject or is_record or not dtype.isnative or (dtype.kind in "fc" and dtype.itemsize > largest)


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


def real_numbers(x: Any) -> np.ndarray | None:
    """A new array of real numbers in double precision, of a list or truth values too; None of anything else.

    NumPy alone would drop the imaginary part of a complex number, and make NaN of None.
    """
    try:
        given = np.asarray(x)
        return None if given.dtype.kind in "cOSUMm" else np.array(given, float)
    except (TypeError, ValueError):
        return None


def check_real(x: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns real numbers, integers and lists included, in double precision.

    Raises:
        DtypeError: `x` does not consist of real numbers.
        ShapeError: `x` has another shape.
    """
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "iuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise DtypeError(f"{name} must be {math.prod(shape)} real numbers, got {x!r:.200}")
    if array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, got {array.shape}")
    return array.astype(float)


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
    """Raises unless the array `x` is finite, where its values are known.

    Raises:
        ArgumentError: A value is NaN or infinite.
    """
    if not is_traced(x):
        numbers = np.asarray(x)
        _check_all(np.isfinite(numbers), numbers, name, "finite")


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


def check_positive(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are finite and positive, where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    numbers = known(x)
    if numbers is not None:
        _check_all(np.isfinite(numbers) & (numbers > 0.0), numbers, name, "finite and positive")


def check_not_negative(x: Any, name: str) -> None:
    """Raises unless the numbers `x` are finite and not negative, where they are known.

    Raises:
        ArgumentError: A number is not.
    """
    numbers = known(x)
    if numbers is not None:
        _check_all(np.isfinite(numbers) & (numbers >= 0.0), numbers, name, "finite and not negative")


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
        ArgumentError: It is none.
    """
    matrix = known(R)
    if matrix is not None and matrix.shape == (3, 3) and np.isfinite(matrix).all() and not is_rotation(matrix):
        raise ArgumentError(f"{name} must be a rotation matrix, got {matrix.tolist()}")


def check_pose(T: Any, name: str) -> None:
    """Raises for finite (..., 4, 4) arrays that are no rigid transforms, where their values are known.

    Raises:
        ArgumentError: One is none.
    """
    matrices = known(T)
    if matrices is None or matrices.shape[-2:] != (4, 4):
        return
    for matrix in matrices.reshape(-1, 4, 4):
        if np.isfinite(matrix).all() and not (is_last_row(matrix[3]) and is_rotation(matrix[:3, :3])):
            got = matrix.tolist()
            raise ArgumentError(f"{name} must be a rigid transform: a rotation, and 0 0 0 1 below; got {got}")


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
        for k, x in enumerate(args):  # JAX would read their bytes in the wrong order
            if type(x) is np.ndarray and not x.dtype.isnative:
                name = names[k] if k < len(names) else f"argument {k}"
                raise DtypeError(f"{name} must be an array in the byte order of this machine, got dtype {x.dtype.str}")
        if kwargs:  # JAX would compile keyword and positional arguments separately
            for name in names[len(args) :]:
                if name not in kwargs:
                    break
                args = (*args, kwargs.pop(name))
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


def _check_arguments(given: inspect.BoundArguments, static: Sequence[str]) -> None:
    for name, value in given.arguments.items():
        kind = type(value).__name__
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
            raise DtypeError(f"{name}[{k}] must be a {element}, got {type(value[k]).__name__}")


def _is_data(x: Any) -> bool:
    return all(_is_array(leaf) for leaf in jax.tree.leaves(x))


def _is_array(x: Any) -> bool:
    if isinstance(x, int):
        return abs(x) < 2**31
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "biufc" and not is_foreign(x)
    return isinstance(x, jax.Array | float)


def require(package: str, extra: str, feature: str) -> ModuleType:
    """Imports an optional package; if it is missing, the error names the extra that installs it.

    Raises:
        MissingExtraError: The package is not installed, or cannot be imported; the message says which.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        is_absent = isinstance(error, ModuleNotFoundError) and f"{package}.".startswith(f"{error.name or ''}.")
        cause = "" if is_absent else f"{type(error).__name__}: {error}"
        raise MissingExtraError(package, extra, feature, cause) from error
