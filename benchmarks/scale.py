"""How `map_batch` scales: time per configuration against the batch, and memory for a million configurations.

Times are CPU times on one core, as in the rest of the benchmarks: of plain `vmap` of the whole batch, and of
`map_batch`, of NumPy arrays into arrays that are there already (`out=`), and of JAX arrays into new ones. Memory is the
largest resident set of a process of its own, which may be no more than its arguments, its results and `ALLOWANCE`;
beside it stands what XLA says that one `vmap` would need.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .fresh import records
from .store import Store

FILE = "scale.json"
OPERATIONS = ("rnea", "fk", "crba", "aba")
DTYPES = ("float64", "float32")
BATCHES = (1024, 16384, 131072)
MILLION = 1_000_000
ALLOWANCE = 1 << 30  # bytes: Python, JAX, the compiler and the program of a chunk, and the chunks themselves
FLAT = 1.3  # the largest ratio of times per configuration, largest batch to smallest, that is promised


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `scale` to the command line."""
    scale = commands.add_parser("scale", help="time and memory of map_batch against the size of the batch")
    scale.add_argument("--robot", default="rby1a")
    scale.add_argument("--operations", type=lambda s: s.split(","), default=list(OPERATIONS))
    scale.add_argument("--dtypes", type=lambda s: s.split(","), default=list(DTYPES))
    scale.add_argument("--seconds", type=float, default=1.0, help="CPU time that each contestant gets")
    scale.add_argument("--size", type=int, default=MILLION, help="configurations of the measurement of memory")
    scale.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    scale.add_argument("--output", type=Path, default=results / FILE)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table; ends with an error if memory was more than it may be."""
    about = Store(arguments.output, keep=False).about
    found: dict[str, Any] = {**about, "robot": arguments.robot, "times": [], "memory": []}
    for dtype in arguments.dtypes:
        for operation in arguments.operations:
            for kind in ("times", "memory"):
                for record in _in_process(arguments, kind, dtype, operation):
                    found[kind].append(record)
                    print("   ", record, file=sys.stderr)
                arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if any(record["peak_mib"] > record["cap_mib"] for record in found["memory"]):
        raise SystemExit("more memory than promised")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    times, batches = found["times"], sorted({record["batch"] for record in found["times"]})
    ways = [
        (w, b)
        for w in ("vmap", "numpy", "jax")
        for b in batches
        if any((r["way"], r["batch"]) == (w, b) for r in times)
    ]
    lines = [
        "Time per configuration [us], and of the largest batch relative to `vmap` of the smallest:",
        "",
        "| | " + " | ".join(f"{w} {b}" for w, b in ways) + " | flat numpy | flat jax |",
        "|---" * (len(ways) + 3) + "|",
    ]
    for dtype, operation in dict.fromkeys((r["dtype"], r["operation"]) for r in times):
        us = {(r["way"], r["batch"]): r["us"] for r in times if (r["dtype"], r["operation"]) == (dtype, operation)}
        flat = [us[way, batches[-1]] / us["vmap", batches[0]] for way in ("numpy", "jax")]
        cells = [f"{us[x]:.3f}" for x in ways] + [f"{x:.2f}{'' if x <= FLAT else ' (!)'}" for x in flat]
        lines.append(f"| `{operation}` {dtype} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Memory [MiB]:",
        "",
        "| | configurations | arguments and results | largest resident set | cap | one `vmap`, besides |",
        "|---|---|---|---|---|---|",
    ]
    for r in found["memory"]:
        cells = (r["data_mib"], r["peak_mib"], r["cap_mib"], r["vmap_mib"])
        lines.append(
            f"| `{r['operation']}` {r['dtype']} | {r['size']:,} | " + " | ".join(f"{x:,.0f}" for x in cells) + " |"
        )
    return "\n".join(lines)


def _in_process(arguments: argparse.Namespace, kind: str, dtype: str, operation: str) -> Iterator[dict[str, Any]]:
    """The records that a fresh process prints, pinned to one core, with nothing cached."""
    given = (arguments.robot, dtype, operation, arguments.seconds if kind == "times" else arguments.size)
    code = (
        f"import os; os.sched_setaffinity(0, [{arguments.core}]); from benchmarks.scale import {kind}; {kind}{given!r}"
    )
    for record in records(code, dtype):
        yield {"dtype": dtype, "operation": operation, **record}


def times(robot: str, dtype: str, operation: str, seconds: float) -> None:
    """Prints the time per configuration of each batch, each way."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import map_batch

    from .timing import Run, race

    f, model, rows = _case(robot, dtype, operation, max(BATCHES))
    axes = (None,) + (0,) * len(rows)
    vmapped = jax.jit(jax.vmap(f, axes))
    runs: dict[Any, Run] = {}
    for batch in BATCHES:
        numpy = [x[:batch] for x in rows]
        arrays = [jnp.asarray(x) for x in numpy]
        runs["vmap", batch] = lambda arrays=arrays: jax.block_until_ready(vmapped(model, *arrays))
        if batch > min(BATCHES):
            out = map_batch(f, model, *numpy, in_axes=axes)
            runs["numpy", batch] = lambda x=numpy, out=out: map_batch(f, model, *x, in_axes=axes, out=out)
            runs["jax", batch] = lambda x=arrays: jax.block_until_ready(map_batch(f, model, *x, in_axes=axes))
    for (way, batch), us in race(runs, seconds).items():
        print(json.dumps({"way": way, "batch": batch, "us": us / batch}), flush=True)


def memory(robot: str, dtype: str, operation: str, size: int) -> None:
    """Prints the largest resident set of this process, after `size` configurations of NumPy arrays."""
    import resource

    import jax
    import numpy as np

    from rbydyn_jax import map_batch

    f, model, rows = _case(robot, dtype, operation, size)
    axes = (None,) + (0,) * len(rows)
    results = map_batch(f, model, *rows, in_axes=axes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(results))
    data = sum(x.nbytes for x in (*rows, *jax.tree.leaves(results)))
    like = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in rows]
    at_once = jax.jit(jax.vmap(f, axes)).lower(model, *like).compile().memory_analysis()
    assert at_once is not None
    found = {"data": data, "peak": peak, "cap": data + ALLOWANCE, "vmap": at_once.temp_size_in_bytes}
    print(json.dumps({"size": size} | {f"{k}_mib": v / 2**20 for k, v in found.items()}))


def _case(robot: str, dtype: str, operation: str, size: int) -> tuple:
    """The function, the robot and `size` rows of the arguments, in one dtype from the start."""
    import jax
    import numpy as np

    from .case import make_case
    from .operations import OPERATIONS

    case, wanted = make_case(robot, dtype, 1), OPERATIONS[operation]
    model = jax.tree.map(lambda x: x.astype(dtype), case.model)
    rng = np.random.default_rng(7)
    rows = [rng.random((size, model.nv), np.dtype(dtype).type) for _ in wanted.inputs]
    for x in rows:
        x *= 2.0
        x -= 1.0
    return wanted.function(case.link), model, rows
