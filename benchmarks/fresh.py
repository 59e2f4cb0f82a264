"""Measurements in a process of their own, with nothing compiled or cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# glibc gives large arrays back to the system, and the page faults of the next call would count.
KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "10000000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000000",
    "MALLOC_ARENA_MAX": "1",
}


def records(code: str, dtype: str, interpreter: str = sys.executable, **environment: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that some Python code prints, a line each, as it prints them, in a fresh process with that
    dtype as default."""
    given = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1" if dtype == "float64" else "0",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
        **environment,
    }
    command = [interpreter, "-W", "ignore", "-c", code]
    with subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
