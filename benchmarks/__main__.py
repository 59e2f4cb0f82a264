"""Measures the library side by side with others on one CPU core.

`run` measures, writes JSON, and renders it to a README.md with pictures beside; `render` does that with an earlier
run again. Peers come with `pip install 'rbydyn_jax[benchmark]'`; one that is missing is left out, and the page says so.

  python -m benchmarks run                     the standard run, whose results are in the repository
  python -m benchmarks run --quick             RB-Y1 A and the engines in C++, two minutes
  python -m benchmarks run --full              every robot, operation, batch, dtype and peer: hours
  python -m benchmarks run --resume            go on with a run that was stopped
  python -m benchmarks run --update --robots rby1a --operations rnea,aba       measure these again, keep the rest
  python -m benchmarks render --docs           the table in docs/performance.md
  python -m benchmarks scale                   map_batch: time against the batch, memory for a million
  python -m benchmarks forms                   the forms of the sweeps: unrolled, scanned, split over devices, untested
  python -m benchmarks versions PYTHON         two versions of jax in turn: run time, compile time, kernels
  python -m benchmarks compare A B             two files of results; fails where B is over 10 % slower
  python -m benchmarks ik                      inverse kinematics: share of random poses solved, and rate
  python -m benchmarks ik --clear              the same for poses with a solution clear of collisions
  python -m benchmarks planning                trajectory optimization: share of random problems solved, and time
  python -m benchmarks ipopt                   trajectory optimization: cost beside that of IPOPT
  python -m benchmarks paths                   timing of paths and profiles, beside toppra and Ruckig
  python -m benchmarks mpc                     predictive control: an iteration of iLQR, a tick, a rollout; Crocoddyl
  python -m benchmarks collision               distances of pairs of each kind, and of points, beside coal
  python -m benchmarks simulation              creep, slide, finite rollouts and time of a step, beside MuJoCo
  python -m benchmarks whole_body              whole-body inverse dynamics of Talos; quadprog, ProxQP
  python -m benchmarks functions               every function and gradient on many robots; Pinocchio; arithmetic
  python -m benchmarks gpu                     this library, frax, MJX and MuJoCo Warp on one GPU
  python -m benchmarks gpu_tasks               planning, control and distances on one GPU
  python -m benchmarks codegen                 functions in C: time of a call and of gcc, beside Pinocchio
  python -m benchmarks identification          RB-Y1 recovered from noisy torques; figaroh, MuJoCo; regressors
  python -m benchmarks tsid                    whole-body inverse dynamics of Talos: optimum and time of TSID
  python -m benchmarks reinforcement           PPO learns to reach and to lift: learning curves
  python -m benchmarks soak                    long runs: memory and compiled programs must not grow
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import (
    against_tsid,
    codegen,
    collision,
    compare,
    forms,
    functions,
    gpu,
    gpu_tasks,
    identification,
    ik,
    ipopt,
    mpc,
    paths,
    planning,
    reinforcement,
    scale,
    simulation,
    soak,
    versions,
    whole_body,
)
from .plans import Job, plan
from .store import Store

RESULTS, FILE = Path(__file__).parent / "results", "cpu_one_core.json"
KEPT = {  # what keeps its results in files of its own
    "scale": scale,
    "forms": forms,
    "functions": functions,
    "gpu": gpu,
    "gpu_tasks": gpu_tasks,
    "versions": versions,
    "collision": collision,
    "ik": ik,
    "planning": planning,
    "ipopt": ipopt,
    "paths": paths,
    "mpc": mpc,
    "simulation": simulation,
    "whole_body": whole_body,
    "tsid": against_tsid,
    "identification": identification,
    "codegen": codegen,
    "reinforcement": reinforcement,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, write JSON, render")
    size = run.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="plan", action="store_const", const="quick", default="standard")
    size.add_argument("--full", dest="plan", action="store_const", const="full")
    old = run.add_mutually_exclusive_group()
    old.add_argument("--resume", action="store_true", help="measure only what the output does not hold yet")
    old.add_argument("--update", action="store_true", help="keep in the output what is not measured now")
    for what in ("robots", "dtypes", "operations", "batches", "peers"):
        run.add_argument(f"--{what}", type=_names, default=None, help="only these, of those in the plan")
    run.add_argument("--seconds", type=float, default=0.1, help="CPU time that each contestant gets in a race")
    run.add_argument("--core", type=int, default=None, help="the core to run on; default: the last one")
    run.add_argument("--output", type=Path, default=None, help="default: in results, or results/quick and the like")
    render = commands.add_parser("render", help="write README.md and the pictures beside the JSON")
    render.add_argument("input", type=Path, nargs="?", default=RESULTS / FILE)
    for command in (run, render):
        command.add_argument("--docs", action="store_true", help="write the table in docs/performance.md too")
    for module in KEPT.values():
        module.add_command(commands, RESULTS)
    soak.add_command(commands)
    compare.add_command(commands)
    arguments = parser.parse_args()
    others = KEPT | {"soak": soak, "compare": compare}
    if arguments.command in others:
        return others[arguments.command].run(arguments)
    if arguments.command == "run":
        folder = RESULTS if arguments.plan == "standard" else RESULTS / arguments.plan
        arguments.output = arguments.output or folder / FILE
        _run(arguments)
    _render(arguments.output if arguments.command == "run" else arguments.input, arguments.docs)


def _names(text: str) -> list[str]:
    return [x for x in text.split(",") if x]


def _run(arguments: argparse.Namespace) -> None:
    store = Store(arguments.output, keep=arguments.resume or arguments.update)
    todo = [job for job in _chosen(arguments) if not (arguments.resume and store.has(job))]
    core = _last_core() if arguments.core is None else arguments.core
    started = time.perf_counter()
    for robot, dtype in dict.fromkeys((job.robot, job.dtype) for job in todo):
        group = [job for job in todo if (job.robot, job.dtype) == (robot, dtype)]
        print(f"{robot} {dtype}", file=sys.stderr)
        while group:  # a library that ends the process must not take the other operations with it
            for job in group:
                store.forget(job)
            for kind, record in _worker(list(group), arguments.seconds, core):
                store.add(kind, record)
                if kind == "done":
                    group.pop(0)
                    store.save(time.perf_counter() - started)
                    started = time.perf_counter()
                elif kind not in ("versions", "peak"):
                    print("   ", kind, *(f"{k}={_short(v)}" for k, v in record.items()), file=sys.stderr)
            if group:
                broken = {"robot": robot, "dtype": dtype, "operation": group[0].operation, "library": ""}
                store.add("failures", broken | {"error": "the process of the measurement ended"})
                store.add("done", broken | {"batches": group.pop(0).batches})
    store.save(time.perf_counter() - started)


def _chosen(arguments: argparse.Namespace) -> Iterator[Job]:
    """The jobs of the plan that the options leave."""
    for job in plan(arguments.plan):
        wanted = zip((arguments.robots, arguments.dtypes, arguments.operations), job.key, strict=True)
        if all(names is None or x in names for names, x in wanted):
            batches = tuple(b for b in job.batches if arguments.batches is None or str(b) in arguments.batches)
            peers = tuple(p for p in job.peers if arguments.peers is None or p in arguments.peers)
            yield Job(*job.key, batches, peers)


def _worker(jobs: list[Job], seconds: float, core: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines that a fresh process prints, pinned to one core, with one thread and nothing cached."""
    given = [(job.robot, job.dtype, job.operation, job.batches, job.peers) for job in jobs]
    pin = "" if core is None else f"import os; os.sched_setaffinity(0, [{core}]); "
    code = f"{pin}from benchmarks.worker import work; work({given!r}, {seconds!r})"
    one_thread = {f"{x}_NUM_THREADS": "1" for x in ("OMP", "OPENBLAS", "MKL")}
    environment = (
        os.environ
        | one_thread
        | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1" if jobs[0].dtype == "float64" else "0",
            "JAX_ENABLE_COMPILATION_CACHE": "0",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        }
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"kind"'):
            told = json.loads(line)
            yield told["kind"], told["record"]
    process.wait()


def _last_core() -> int | None:
    """The last core that this process may use; None where the system pins no process (macOS, Windows)."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _render(path: Path, docs: bool) -> None:
    from .plots import plot
    from .records import Run
    from .render import render
    from .summary import insert, summary

    run = Run(json.loads(path.read_text()))
    text = render(run, plot(run, path.parent))
    (path.parent / "README.md").write_text(text)
    print(text)
    if docs:
        insert(Path(__file__).parent.parent / "docs" / "performance.md", summary(run))


if __name__ == "__main__":
    main()
