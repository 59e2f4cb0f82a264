"""Other libraries.

A module here has `entries(case, operations, batches)` and `version()`; it fails to import where its library is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..case import LOOP, Case, Entry

NAMES = ("pinocchio", "rby1_sdk", "mujoco", "frax")

Entries = Callable[[Case, Iterable[str], Iterable[int]], Iterable[Entry]]


def loop(f: Callable[[int], object]) -> Callable[[], None]:
    """One pass over the configurations, one call each."""

    def run() -> None:
        for k in range(LOOP):
            f(k)

    return run
