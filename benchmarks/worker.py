"""One process, one robot, one dtype: measures, and prints what it found as JSON lines."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from .case import LOOP, Case, Entry, make_case
from .operations import OPERATIONS
from .ours import LIBRARY, Ours
from .peers import NAMES
from .timing import race

COMPILATIONS = 2  # the faster one counts, as with every other time


def work(
    robot: str,
    dtype: str,
    operations: list[str],
    batches: list[int],
    peers: list[str],
    compile_batch: int,
    seconds: float,
) -> None:
    """Measures and prints."""
    case = make_case(robot, dtype, max(batches))
    libraries = _import(peers)
    _print("versions", {name: libraries[name].version() if name in libraries else "not installed" for name in peers})
    for operation in operations:
        if operation == "self_distance" and not case.model.tree.capsule_links:
            continue
        try:
            _measure(case, operation, batches, libraries, compile_batch, seconds)
        except Exception as error:  # one broken operation must not take the others with it
            _report(case, operation, "failures", {"error": f"{type(error).__name__}: {error}"[:300]})


def _measure(
    case: Case, operation: str, batches: list[int], libraries: dict, compile_batch: int, seconds: float
) -> None:
    ours = Ours(case, operation)
    compilations = [ours.compile_cold(compile_batch) for _ in range(COMPILATIONS)]
    _report(case, operation, "compile", min(compilations, key=lambda x: x["compile_s"]))
    only = ours.operation.batches
    racers = [ours.entry(batch) for batch in batches if only is None or batch in only]
    for name, module in libraries.items():
        try:
            racers += module.entries(case, [operation], [b for b in batches if b == compile_batch])
        except Exception as error:
            _report(case, operation, "failures", {"library": name, "error": f"{type(error).__name__}: {error}"[:300]})
    for record in _race(racers, seconds):
        _report(case, operation, "times", record)
    if OPERATIONS[operation].public:
        _report(case, operation, "single", ours.single_call(seconds))


def _race(entries: list[Entry], seconds: float) -> Iterable[dict[str, Any]]:
    runs = {}
    for entry in entries:
        runs[entry.name] = entry.run
        if entry.overhead is not None:
            runs[entry.name + "|overhead"] = entry.overhead
    times = race(runs, seconds)
    reference = _reference(entries)
    for entry in entries:
        units = LOOP if entry.overhead is not None else entry.batch
        overhead = times.get(entry.name + "|overhead", 0.0)
        record = {"library": entry.library, "batch": entry.batch, "us": (times[entry.name] - overhead) / units}
        if entry.overhead is not None:
            record["overhead_us"] = overhead / units
        if reference is not None and entry.values is not None:
            record["error"] = float(np.abs(entry.values() - reference).max() / np.abs(reference).max())
        yield record


def _reference(entries: list[Entry]) -> np.ndarray | None:
    """What all are compared with: the first library in the order of `NAMES` that states its results."""
    stated = {entry.library: entry.values for entry in entries if entry.values is not None}
    for name in (*NAMES, LIBRARY):
        if name in stated:
            return stated[name]()
    return None


def _import(peers: list[str]) -> dict[str, Any]:
    found = {}
    for name in peers:
        try:
            found[name] = importlib.import_module(f"{__package__}.peers.{name}")
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return found


def _report(case: Case, operation: str, kind: str, record: dict[str, Any]) -> None:
    _print(kind, {"robot": case.robot, "nv": case.model.nv, "dtype": case.dtype, "operation": operation, **record})


def _print(kind: str, record: dict[str, Any]) -> None:
    print(json.dumps({"kind": kind, "record": record}), flush=True)
