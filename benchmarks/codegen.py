"""Functions in C from `generate_c`, compiled by gcc: the time of a call and of compiling them, beside Pinocchio.

A call in C takes one configuration, 32 random ones in turn. Pinocchio is called from Python, and the same call on a
robot of one joint is subtracted; its `fk` is that of the joints alone. CPU times, least of many slices, in turns;
compare within one run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .fresh import records
from .store import Store

OPERATIONS = ("fk", "jacobian", "rnea", "crba", "aba", "mass_matrix_inverse", "rnea_derivatives", "aba_derivatives")
FLAGS = {"-O2": ["-O2"], "-O3 -march=native": ["-O3", "-march=native"]}


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `codegen` to the command line."""
    command = commands.add_parser("codegen", help="functions in C: time of a call and of gcc; Pinocchio")
    command.add_argument("--robots", type=lambda s: s.split(","), default=["rby1a", "panda"])
    command.add_argument("--operations", type=lambda s: s.split(","), default=list(OPERATIONS))
    command.add_argument("--seconds", type=float, default=0.3, help="CPU time that each contestant gets")
    command.add_argument("--output", type=Path, default=results / "codegen.json")


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    about = Store(Path("unused"), keep=False).about
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    about["versions"] |= {"gcc": gcc}
    found: dict[str, Any] = {**about, "times": []}
    for robot in arguments.robots:
        for operation in arguments.operations:
            code = f"from benchmarks.codegen import measure; measure{(robot, operation, arguments.seconds)!r}"
            for record in records(code, "float64", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"):
                found["versions"] |= record.pop("versions")
                found["times"].append(record)
                print("   ", record, file=sys.stderr)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    flags = list(FLAGS)
    head = ["robot", "function", "operations", *(f"`gcc {x}` [us]" for x in flags), "compiled in [s]", "Pinocchio [us]"]
    lines = ["| " + " | ".join(head) + " |", "|---|---" + "|---:" * (len(head) - 2) + "|"]
    for r in found["times"]:
        cells = [f"{r['us'][x]:.2f}" for x in flags]
        compiled = f"{r['compile_s'][flags[0]]:.1f}"
        row = [r["robot"], f"`{r['operation']}`", f"{r['operations']}", *cells, compiled, f"{r['pinocchio_us']:.2f}"]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def measure(robot: str, operation: str, seconds: float) -> None:
    """Prints the times of one function."""
    import rbydyn_jax as rb

    from .case import LOOP, make_case
    from .peers import pinocchio
    from .timing import cpu_seconds, race

    case = make_case(robot, "float64", LOOP)
    entry = (operation, {"link": case.link}) if operation == "jacobian" else operation
    code, generate_s = cpu_seconds(lambda: rb.generate_c(case.model, entry))
    with tempfile.TemporaryDirectory() as folder:
        loops, compile_s = {}, {}
        for name, flags in FLAGS.items():
            inputs = [case.inputs[x][:LOOP] for x in code.arguments]
            loops[name], compile_s[name] = _loop(code, Path(folder) / name.replace(" ", ""), flags, inputs)
        runs: dict[str, Callable[[], object]] = dict(loops)
        peers = list(pinocchio.entries(case, [operation], [1]))
        for peer in peers:
            assert peer.overhead is not None
            runs |= {peer.library: peer.run, f"{peer.library} overhead": peer.overhead}
        times = {name: x / LOOP for name, x in race(runs, seconds).items()}
    record = {
        "robot": robot,
        "operation": operation,
        "operations": code.operations,
        "generate_s": generate_s,
        "compile_s": compile_s,
        "us": {name: times[name] for name in FLAGS},
        "pinocchio_us": min(times[x.library] - times[f"{x.library} overhead"] for x in peers),
        "versions": {"pinocchio": pinocchio.version()},
    }
    print(json.dumps(record))


def _loop(code: Any, folder: Path, flags: list[str], inputs: list[np.ndarray]) -> tuple[Callable[[], object], float]:
    """A call of the function on each row of the inputs, and the CPU time of the compiler."""
    import resource

    folder.mkdir()
    _, source = code.save(folder)
    (folder / "loop.c").write_text(_driver(code, len(inputs[0])))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["gcc", "-std=c99", *flags, "-fPIC", "-c", source, "-o", folder / "function.o"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    built = [folder / "loop.c", folder / "function.o", "-o", folder / "loop.so", "-lm"]
    subprocess.run(["gcc", "-std=c99", "-O2", "-fPIC", "-shared", *built], check=True)
    results = [np.zeros(shape) for shape in code.results.values()]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*inputs, *results)]
    function = ctypes.CDLL(str(folder / "loop.so")).loop

    def call(_kept: tuple[Any, ...] = (inputs, results)) -> None:
        function(*pointers)

    return call, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _driver(code: Any, rows: int) -> str:
    def lines() -> Iterator[str]:
        names = [*code.arguments, *code.results]
        yield f'#include "{code.name}.h"'
        yield f"void loop({', '.join(f'double *{x}' for x in names)}) {{"
        moved = [f"{x} + k * {int(np.prod(shape))}" for x, shape in code.arguments.items()]
        yield f"  for (int k = 0; k < {rows}; k++) {code.name}({', '.join([*moved, *code.results])});"
        yield "}"

    return "\n".join(lines()) + "\n"
