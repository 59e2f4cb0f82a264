"""The clock of every number in the tables.

The machine may be shared, so time is the CPU time of the process (it is pinned to one core), and the minimum of many
short slices counts: what disturbs a slice can only add to it. Contestants take turns slice by slice, so that all of
them see the machine in the same state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Clock = Callable[[], float]
Run = Callable[[], object]
T = TypeVar("T")

SLICE = 3e-3  # seconds; a longer call is a slice of its own


def race(runs: Mapping[T, Run], seconds: float, clock: Clock = time.process_time) -> dict[T, float]:
    """The least time of one call [us] for each contestant; each of them gets about `seconds`, and at least 5 slices."""
    repeats, best, used = {}, {}, dict.fromkeys(runs, 0.0)
    for name, run in runs.items():
        run()
        repeats[name] = max(1, int(SLICE / min(_call(run, 1, clock) for _ in range(3))))
        best[name] = float("inf")
    turn, littered = 0, False
    while unfinished := [name for name in runs if turn < 5 or used[name] < seconds]:
        for name in unfinished:
            if littered:  # a large batch gives its memory back in another thread, on the time of who comes next
                runs[name]()
            littered = repeats[name] == 1
            one = _call(runs[name], repeats[name], clock)
            best[name] = min(best[name], one)
            used[name] += one * repeats[name]
        turn += 1
    return {name: 1e6 * t for name, t in best.items()}


def _call(run: Run, repeats: int, clock: Clock) -> float:
    start = clock()
    for _ in range(repeats):
        run()
    return max((clock() - start) / repeats, 1e-9)


def cpu_seconds(f: Callable[[], T]) -> tuple[T, float]:
    """What `f` returns, and the CPU time it took [s]."""
    start = time.process_time()
    result = f()
    return result, time.process_time() - start
