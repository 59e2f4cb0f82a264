"""Counts of what JAX traces and compiles, by JAX's own events; and processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax

from tests.helpers import ROOT


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """The number of traces (`jaxpr_trace`), lowerings (`jaxpr_to_mlir_module`) and compilations (`backend_compile`)."""
    counts: Counter[str] = Counter()

    def count(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith("/jax/core/compile/"):
            counts[event.rsplit("/", 1)[-1].removesuffix("_duration")] += 1

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        yield counts
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


def start(script: str, *arguments: str) -> Any:
    """The JSON that a script prints in a process of its own."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
