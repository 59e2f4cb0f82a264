"""Compilation ahead of the first call, and kept for the next process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from ..model.model import Model, check_model
from .arguments import Call, Function, check_batch, example, float_type, resolve_call


def precompile(
    model: Model,
    functions: Iterable[Function],
    batch: int | None = None,
    dtype: Any = None,
    *,
    cache_dir: str | PathLike[str] | None = None,
) -> tuple[Callable[..., Any], ...]:
    """XX"""
    if cache_dir is not None:
        _keep_compiled(fspath(cache_dir))
    checked, batch = check_model(model), check_batch(batch)
    calls = [resolve_call(f, checked, float_type(dtype, checked)) for f in functions]
    ready = tuple(_ready(call, batch) for call in calls)
    for call, f in zip(calls, ready, strict=True):
        jax.block_until_ready(f(model, *(example(x, batch) for x in call.arrays.values())))
    return ready


def _ready(call: Call, batch: int | None) -> Callable[..., Any]:
    """The function that is to be called: on one configuration it is the one given, static arguments aside."""
    if batch is None or not call.arrays:
        return call.bound if call.static else call.function

    def batched(model: Model, *arrays: Any) -> Any:
        return jax.vmap(functools.partial(call.bound, model))(*arrays)

    batched.__name__ = call.name
    return jax.jit(batched)


def _keep_compiled(folder: str) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # whether there is a cache, JAX asks once, at the first compilation
