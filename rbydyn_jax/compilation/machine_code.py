"""Machine code of a compiled function, for other processes with the same jaxlib on the same kind of processor.

JAX's exported programs are portable, and hold nothing that is private to one version of XLA: not the fusions that make
a kernel of each step. Machine code holds what they were compiled to.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable


def machine() -> dict[str, str]:
    """What machine code depends on: version, platform, and processor with its instructions."""
    processor = [platform.machine(), platform.processor()]
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        lines = facts.read_text().splitlines()
        processor += sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    digest = hashlib.sha256("\n".join(processor).encode()).hexdigest()[:16]
    device = jax.devices()[0]
    return {"jaxlib": version("jaxlib"), "platform": device.platform, "device": device.device_kind, "processor": digest}


def machine_code(f: Callable[..., Any], *arguments: Any) -> bytes:
    """A function, compiled for arguments of these types."""

    def anew(*arguments: Any) -> Any:
        return f(*arguments)

    # With a name of its own it is in no cache on disk: a program that was read from one cannot be written again.
    anew.__name__ = f"machine_code_{uuid.uuid4().hex}"
    return pickle.dumps(serialize_executable.serialize(jax.jit(anew).lower(*arguments).compile()))


def load_machine_code(code: bytes) -> Callable[..., Any]:
    """The function, which cannot be traced."""
    return serialize_executable.deserialize_and_load(*pickle.loads(code))
