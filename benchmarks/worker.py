"""One process, one robot, one dtype: measures job after job, and prints what it found as JSON lines."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from . import floor
from .case import LOOP, Case, Entry, make_case
from .operations import OPERATIONS
from .ours import LIBRARY, Ours
from .peers import NAMES
from .plans import Job, peer_batches
from .timing import race

LARGEST_RESULT = 2e9  # bytes


def work(jobs: list[tuple], seconds: float) -> None:
    """Measures and prints; the jobs are of one robot and dtype."""
    todo = [Job(*job) for job in jobs]
    robot, dtype = todo[0].robot, todo[0].dtype
    case = make_case(robot, dtype, max(max(job.batches) for job in todo))
    wanted = {name for job in todo for name in job.peers}
    libraries = _import([name for name in NAMES if name in wanted])
    jax.config.update("jax_enable_x64", dtype == "float64")  # some import of a peer has set it
    versions = {x: libraries[x].version() if x in libraries else "not installed" for x in NAMES if x in wanted}
    _print("versions", versions)
    _print("peak", {"dtype": dtype, "per_second": floor.peak(dtype)})
    for job in todo:
        if job.operation != "self_distance" or case.model.tree.shape_links:
            try:
                _measure(case, job, {k: v for k, v in libraries.items() if k in job.peers}, seconds)
            except Exception as error:  # one broken operation must not take the others with it
                _report(case, job.operation, "failures", {"library": LIBRARY, "error": _said(error)})
        _report(case, job.operation, "done", {"batches": job.batches})


def _measure(case: Case, job: Job, libraries: dict[str, Any], seconds: float) -> None:
    operation, ours = job.operation, Ours(case, job.operation)
    flops = ours.flops()
    batches = [batch for batch in job.batches if batch * ours.result_bytes() <= LARGEST_RESULT]
    for batch in batches:
        _report(case, operation, "compile", ours.compile_cold(batch) | {"flops": flops})
    for batch in set(job.batches) - set(batches):
        error = f"B = {batch}: results of {batch * ours.result_bytes() / 1e9:.1f} GB"
        _report(case, operation, "failures", {"library": LIBRARY, "error": error})
    racers = [ours.entry(batch) for batch in batches]
    for name, module in libraries.items():
        try:
            racers += module.entries(case, [operation], [x for x in peer_batches(job) if x in batches])
        except Exception as error:
            _report(case, operation, "failures", {"library": name, "error": _said(error)})
    for record in contest(racers, seconds):
        _report(case, operation, "times", record)
    if OPERATIONS[operation].public:
        _report(case, operation, "single", ours.single_call(seconds))


def contest(entries: list[Entry], seconds: float) -> Iterator[dict[str, Any]]:
    """The time of each entry [us], and its largest difference from the library that all are compared with."""
    runs = {}
    for entry in entries:
        runs[entry.name] = entry.run
        if entry.overhead is not None:
            runs[entry.name + "|overhead"] = entry.overhead
    times = race(runs, seconds)
    told = {entry.name: entry.values() for entry in entries if entry.values is not None}
    reference = _reference(entries, told)
    for entry in entries:
        units = LOOP if entry.overhead is not None else entry.batch
        overhead = times.get(entry.name + "|overhead", 0.0)
        record = {"library": entry.library, "batch": entry.batch, "us": (times[entry.name] - overhead) / units}
        if entry.overhead is not None:
            record["overhead_us"] = overhead / units
        if reference is not None and entry.name in told:
            record["error"] = _difference(entry, told[entry.name], reference)
        yield record | entry.facts


def _reference(entries: list[Entry], told: dict[str, np.ndarray]) -> np.ndarray | None:
    """What all are compared with: the first library in the order of `NAMES` that states its results."""
    stated = {entry.library: told[entry.name] for entry in entries if entry.name in told}
    return next((stated[name] for name in (*NAMES, LIBRARY) if name in stated), None)


def _difference(entry: Entry, told: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference where both tell something, relative to the largest entry."""
    if told.shape != reference.shape:
        raise ValueError(f"results of {entry.library} have shape {told.shape}, not {reference.shape}")
    silent = entry.operation == "fk" and entry.library != LIBRARY  # of welded links some tell nothing
    if np.isnan(told).any() and not silent:
        return float("inf")
    return float(np.nanmax(np.abs(told - reference)) / np.nanmax(np.abs(reference)))


def _import(peers: list[str]) -> dict[str, Any]:
    found = {}
    for name in peers:
        try:
            found[name] = importlib.import_module(f"{__package__}.peers.{name}")
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _report(case: Case, operation: str, kind: str, record: dict[str, Any]) -> None:
    _print(kind, {"robot": case.robot, "nv": case.model.nv, "dtype": case.dtype, "operation": operation, **record})


def _print(kind: str, record: dict[str, Any]) -> None:
    print(json.dumps({"kind": kind, "record": record}), flush=True)
