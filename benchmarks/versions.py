"""The same programs on two versions of jax, in turn: run time, compile time and number of kernels.

Each version is an interpreter in whose environment the library is installed. A process measures all operations of one
dtype; processes of the two versions take turns, on one core, so that both see the machine in the same state. Times are
CPU times, the minimum over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .fresh import records
from .store import Store

OPERATIONS = (
    "fk",
    "jacobian",
    "rnea",
    "crba",
    "aba",
    "self_distance",
    "fk_gradient",
    "rnea_gradient",
    "aba_gradient",
    "rnea_derivatives",
    "aba_derivatives",
)
BATCH = 1024


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `versions` to the command line."""
    versions = commands.add_parser("versions", help="two versions of jax in turn: run time, compile time, kernels")
    versions.add_argument("other", help="the interpreter of the other version; this one is the first")
    versions.add_argument("--robot", default="rby1a")
    versions.add_argument("--operations", type=lambda s: s.split(","), default=list(OPERATIONS))
    versions.add_argument("--dtypes", type=lambda s: s.split(","), default=["float64", "float32"])
    versions.add_argument("--rounds", type=int, default=3)
    versions.add_argument("--seconds", type=float, default=0.3, help="CPU time that each operation gets in a round")
    versions.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    versions.add_argument("--output", type=Path, default=results / "versions.json")


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    best: dict[tuple[str, str, str], dict[str, Any]] = {}
    for number in range(arguments.rounds):
        for dtype in arguments.dtypes:
            for interpreter in (sys.executable, arguments.other):
                given = arguments.robot, arguments.operations, dtype, arguments.seconds, arguments.core
                code = f"from benchmarks.versions import measure; measure{given!r}"
                for record in records(code, dtype, interpreter=interpreter, OMP_NUM_THREADS="1"):
                    key = record["jax"], dtype, record["operation"]
                    before = best.get(key, record)
                    least = {name: min(record[name], before[name]) for name in ("us", "compile_s")}
                    best[key] = record | least | {"dtype": dtype}
                    print(f"    round {number + 1}", record, file=sys.stderr)
    about = {key: Store(Path("unused"), keep=False).found[key] for key in ("date", "machine")}
    found = {
        **about,
        "robot": arguments.robot,
        "batch": BATCH,
        "rounds": arguments.rounds,
        "times": list(best.values()),
    }
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    first, other = dict.fromkeys(r["jax"] for r in found["times"])
    by = {(r["jax"], r["dtype"], r["operation"]): r for r in found["times"]}
    lines = [
        f"| | us, jax {first} | jax {other} | ratio | compile [s], {first} | {other} | ratio | kernels | |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for jax, dtype, operation in by:
        if jax != first:
            continue
        a, b = by[first, dtype, operation], by[other, dtype, operation]
        lines.append(
            f"| `{operation}` {dtype} | {a['us']:.3f} | {b['us']:.3f} | {b['us'] / a['us']:.2f} "
            f"| {a['compile_s']:.1f} | {b['compile_s']:.1f} | {b['compile_s'] / a['compile_s']:.2f} "
            f"| {a['kernels']} | {b['kernels']} |"
        )
    return "\n".join(lines)


def measure(robot: str, operations: list[str], dtype: str, seconds: float, core: int) -> None:
    """Prints time, compile time and number of kernels of each operation."""
    os.sched_setaffinity(0, [core])
    import jax

    from .case import make_case
    from .ours import Ours
    from .timing import race

    case = make_case(robot, dtype, BATCH)
    for operation in operations:
        ours = Ours(case, operation)
        compile_s = ours.compile_cold(BATCH)["compile_s"]
        f, arguments = ours.compiled[BATCH], (ours.model, *ours.arguments(BATCH))
        (us,) = race({operation: lambda f=f, given=arguments: jax.block_until_ready(f(*given))}, seconds).values()
        kernels = f.as_text().count(" fusion(")  # pyright: ignore[reportFunctionMemberAccess]
        record = {"operation": operation, "jax": jax.__version__, "us": us / BATCH, "compile_s": compile_s}
        print(json.dumps(record | {"kernels": kernels}), flush=True)
