"""Counts of what JAX traces and compiles, by JAX's own events."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """The number of traces (`jaxpr_trace`), lowerings (`jaxpr_to_mlir_module`) and compilations (`backend_compile`)."""
    counts: Counter[str] = Counter()

    def count(event: str, duration: float, **details: str | int) -> None:
        if event.startswith("/jax/core/compile/"):
            counts[event.rsplit("/", 1)[-1].removesuffix("_duration")] += 1

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        yield counts
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
