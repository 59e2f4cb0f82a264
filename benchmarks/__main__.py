"""Measures the library side by side with others on one CPU core.

`run` measures, writes JSON, and renders it to a README.md beside; `render` makes the tables of an earlier run again.
Peers come with `pip install 'rbydyn_jax[test]' frax`; one that is missing is left out, and the tables say so.

  python -m benchmarks run                                       all of RB-Y1 A
  python -m benchmarks run --operations rnea --output r.json     one operation
  python -m benchmarks run --robots chain32,chain64,chain128     compile time against length
  python -m benchmarks render --readme                           the table in the project's README
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
KINDS = ("compile", "times", "single", "failures")
DTYPES = ("float64", "float32")
CHAIN_OPERATIONS = ("rnea", "aba")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, write JSON, render")
    run.add_argument("--robots", type=_names, default=["rby1a"], help="of rby1a, panda, g1, chain32, chain64, ...")
    run.add_argument("--dtypes", type=_names, default=list(DTYPES))
    run.add_argument("--operations", type=_names, default=None, help="default: all (chains: rnea, aba)")
    run.add_argument("--batches", type=lambda s: [int(x) for x in s.split(",")], default=[1, 64, 1024, 16384])
    run.add_argument("--compile-batch", type=int, default=1024, help="the batch whose compile time is measured")
    run.add_argument("--peers", type=_names, default=None, help="of pinocchio, rby1_sdk, mujoco, frax")
    run.add_argument("--seconds", type=float, default=0.1, help="CPU time that each contestant gets in a race")
    run.add_argument("--core", type=int, default=None, help="the core to run on; default: the last one")
    run.add_argument("--output", type=Path, default=RESULTS / "cpu_one_core.json")
    render = commands.add_parser("render", help="write README.md beside the JSON")
    render.add_argument("input", type=Path, nargs="?", default=RESULTS / "cpu_one_core.json")
    for command in (run, render):
        command.add_argument("--plot", action="store_true", help="write a picture too (needs matplotlib)")
        command.add_argument("--readme", action="store_true", help="write the table in the project's README too")
    arguments = parser.parse_args()
    if arguments.command == "run":
        _run(arguments)
    _render(arguments.output if arguments.command == "run" else arguments.input, arguments.plot, arguments.readme)


def _names(text: str) -> list[str]:
    return [x for x in text.split(",") if x]


def _run(arguments: argparse.Namespace) -> None:
    start = time.perf_counter()
    core = _last_core() if arguments.core is None else arguments.core
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": _machine(),
        "versions": {"python": platform.python_version(), **_versions("jax", "jaxlib", "numpy", "rbydyn_jax")},
        "compile_batch": arguments.compile_batch,
        **{kind: [] for kind in KINDS},
    }
    for robot in arguments.robots:
        for dtype in arguments.dtypes:
            print(f"{robot} {dtype}", file=sys.stderr)
            for line in _worker(arguments, robot, dtype, core):
                kind, record = line["kind"], line["record"]
                if kind == "versions":
                    found["versions"] |= record
                else:
                    found[kind].append(record)
                    print("   ", kind, *(f"{k}={_short(v)}" for k, v in record.items()), file=sys.stderr)
            found["wall_s"] = round(time.perf_counter() - start)  # written at every step: what is measured is kept
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")


def _worker(arguments: argparse.Namespace, robot: str, dtype: str, core: int | None):
    """The lines that a fresh process prints, pinned to one core, with one thread and nothing cached."""
    from .operations import OPERATIONS
    from .peers import NAMES

    operations = arguments.operations
    if operations is None:
        operations = list(CHAIN_OPERATIONS if robot.startswith("chain") else OPERATIONS)
    given = (
        robot,
        dtype,
        operations,
        arguments.batches,
        list(NAMES) if arguments.peers is None else arguments.peers,
        arguments.compile_batch,
        arguments.seconds,
    )
    pin = "" if core is None else f"import os; os.sched_setaffinity(0, [{core}]); "
    code = f"{pin}from benchmarks.worker import work; work(*{given!r})"
    one_thread = {f"{x}_NUM_THREADS": "1" for x in ("OMP", "OPENBLAS", "MKL")}
    environment = (
        os.environ
        | one_thread
        | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1" if dtype == "float64" else "0",
            "JAX_ENABLE_COMPILATION_CACHE": "0",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        }
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)
    if process.wait():
        raise SystemExit(f"the measurement of {robot} in {dtype} ended with code {process.returncode}")


def _last_core() -> int | None:
    """The last core that this process may use; None where the system pins no process (macOS, Windows)."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    fields = dict(reversed([[x.strip() for x in line.split(":", 1)] for line in lines if ":" in line]))
    vectors = [x for x in ("avx512f", "avx2", "asimd") if x in fields.get("flags", fields.get("Features", "")).split()]
    return {
        "cpu": fields.get("model name", platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "vectors": vectors[0] if vectors else "",
        "system": platform.system(),
    }


def _versions(*names: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _render(path: Path, plot: bool, readme: bool) -> None:
    from .render import render, render_plot
    from .summary import insert, summary

    found = json.loads(path.read_text())
    text = render(found)
    (path.parent / "README.md").write_text(text)
    print(text)
    if plot:
        render_plot(found, path.with_suffix(".png"))
    if readme:
        insert(Path(__file__).parent.parent / "README.md", summary(found))


if __name__ == "__main__":
    main()
