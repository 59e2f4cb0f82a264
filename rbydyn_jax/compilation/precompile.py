"""Compilation ahead of the first call, and across processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from .._check import check_integer
from .._errors import ShapeError
from ..model.model import Model, check_model
from .arguments import Call, Function, example, float_type, resolve_call


def precompile(
    model: Model,
    functions: Iterable[Function],
    batch: int | None = None,
    dtype: Any = None,
    *,
    cache_dir: str | PathLike[str] | None = None,
) -> tuple[Callable[..., Any], ...]:
    """Compiles functions before they are needed, so that no later call waits for it.

    XX
    """
    if cache_dir is not None:
        _keep_compiled(fspath(cache_dir))
    found = check_model(model)
    if batch is not None and check_integer(batch, "batch") < 1:
        raise ShapeError(f"batch must be at least 1, got {batch}")
    calls = [resolve_call(f, found, float_type(dtype, found)) for f in functions]
    ready = tuple(_batched(call) if batch is not None and call.shapes else _single(call) for call in calls)
    for call, f in zip(calls, ready, strict=True):
        jax.block_until_ready(f(model, *(example(s, batch) for s in call.shapes.values())))
    return ready


def _single(call: Call) -> Callable[..., Any]:
    ...


def _batched(call: Call) -> Callable[..., Any]:
    ...


def _keep_compiled(folder: str) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # JAX decides at the first compilation, which may have been, whether it has one
