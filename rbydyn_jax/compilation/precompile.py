"""Ahead-of-time compilation, and the persistent compilation cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from .._errors import ArgumentError, DtypeError
from ..model.model import Model, check_model
from .arguments import Call, Function, check_batch, example, float_type, resolve_call


def precompile(
    model: Model, functions: Iterable[Function], batch: int | None = None, dtype: Any = None
) -> tuple[Callable[..., Any], ...]:
    """Compiles functions ahead of time: later calls neither trace nor compile, whatever the model's parameters.

    Each function is called once, with arrays of ones, and JAX caches what it compiled. For a batch,
    ``jax.jit(jax.vmap(function))`` over all arrays and one model is compiled; only the returned functions are ready.

    Args:
        model: A robot. All models with the same tree and dtype share the compiled functions.
        functions: Functions of this library, or your own under `jax.jit` that take a model first, as objects or by name
            (``"rnea"``, ``"collision.min_distance"``). Static arguments are given in a pair,
            ``("jacobian", {"link": "tool"})``, or a `functools.partial`. So are optional arrays, and arrays whose shape
            is not in the annotations of the function: as an example or a `jax.ShapeDtypeStruct`, without the batch
            axis.
        batch: Batch size; None for a single configuration.
        dtype: Of all arrays; default is that of the model.

    Returns:
        The compiled functions, which take the model and the arrays in order, without static arguments.

    Raises:
        ArgumentError: `batch` is less than 1, or an argument of a function is missing.
        DtypeError: `dtype` is not an enabled floating-point type, or an entry is not a function.
        NameNotFoundError: There is no function, or no argument of it, of that name.

    Example:
        >>> arm = robots.two_link_arm()
        >>> forces, jacobians = precompile(arm, ["gravity_forces", ("jacobian", {"link": "tool"})], batch=8)
        >>> heavier, q = attach_payload(arm, "tool", 3.0), jnp.zeros((8, 2))
        >>> with no_recompile():
        ...     jacobians(heavier, q).shape
        (8, 6, 2)
    """
    checked, batch = check_model(model), check_batch(batch)
    if isinstance(functions, str) or callable(functions) or not isinstance(functions, Iterable):
        raise DtypeError(f"functions must be a sequence of functions or names, got {functions!r}")
    dtype = float_type(dtype, checked)
    calls = [resolve_call(f, checked, dtype) for f in functions]
    ready = tuple(_ready(call, batch) for call in calls)
    for call, f in zip(calls, ready, strict=True):
        jax.block_until_ready(f(model, *(example(x, batch) for x in call.arrays.values())))
    return ready


def _ready(call: Call, batch: int | None) -> Callable[..., Any]:
    """The function to call; for a single configuration the given one with its static arguments bound."""
    if batch is None or not call.arrays:
        return call.bound if call.static else call.function

    def batched(model: Model, *arrays: Any) -> Any:
        return jax.vmap(functools.partial(call.bound, model))(*arrays)

    batched.__name__ = call.name
    return jax.jit(batched)


def set_compilation_cache(directory: str | PathLike[str]) -> None:
    """Caches everything that JAX compiles from now on in a directory, for other processes.

    Enables JAX's persistent compilation cache for this process, for programs of any size and compile time: sets
    `jax_compilation_cache_dir`, `jax_persistent_cache_min_compile_time_secs` and
    `jax_persistent_cache_min_entry_size_bytes`. Call it before the first compilation. A process with a warm cache still
    traces: for RB-Y1 and a batch, 0.4 s (`fk`) and 0.9 s (`rnea`) instead of 1.8 s and 3.4 s; `load_function` avoids
    most of that, too.

    Args:
        directory: The directory, `~` being the user's own; created if it does not exist. Programs depend on the type of
            the processor.

    Raises:
        ArgumentError: There can be no such directory.
        DtypeError: `directory` is not a path.
    """
    if not isinstance(directory, str | PathLike):
        raise DtypeError(f"directory must be a path, got {type(directory).__name__}")
    path = Path(directory).expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"directory {str(path)!r} cannot be made: {error.strerror}") from error
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # JAX asks once whether there is a cache: at the first compilation
