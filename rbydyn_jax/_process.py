"""Processes that were forked from one that had used JAX."""

from __future__ import annotations

import os
import sys
from typing import Any

from ._errors import RbydynError

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
