"""One GPU: this library beside frax, MJX and MuJoCo Warp, in one run.

Wall time, with all arrays on the device: of one call, with the wait for its result, and of one of `TURNS` evaluations
that follow each other in one program (of MuJoCo Warp: in one CUDA graph). Each operation of each library has a process
of its own; several compile at a time, one at a time measures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .fresh import records
from .store import Store

LIBRARIES = ("rbydyn_jax", "frax", "mjx", "mujoco_warp")
OPERATIONS = (
    "rnea",
    "aba",
    "crba",
    "fk",
    "jacobian",
    "mass_matrix_inverse",
    "rnea_gradient",
    "rnea_derivatives",
    "aba_derivatives",
    "self_distance",
)
BATCHES = (1024, 16384, 131072)
TURNS = 20
REFERENCE = "reference"
_OWN_ONLY = ("self_distance",)
_OF_WARP = ("rnea", "aba", "crba", "fk")
_LARGEST = 8e9  # [bytes] of a result


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `gpu` to the command line."""
    gpu = commands.add_parser("gpu", help="this library and others on one GPU")
    gpu.add_argument("--robots", type=names, default=["rby1a"])
    gpu.add_argument("--libraries", type=names, default=list(LIBRARIES))
    gpu.add_argument("--operations", type=names, default=list(OPERATIONS))
    gpu.add_argument("--dtypes", type=names, default=["float32"])
    gpu.add_argument("--batches", type=names, default=[str(x) for x in BATCHES])
    gpu.add_argument("--seconds", type=float, default=0.2, help="wall time that each measurement gets")
    gpu.add_argument("--processes", type=int, default=8, help="how many compile at a time")
    gpu.add_argument("--limit", type=float, default=240, help="wall seconds after which a process ends itself")
    gpu.add_argument("--platform", default="cuda", help="of JAX; cpu to try the command without a GPU")
    gpu.add_argument("--output", type=Path, default=results / "gpu.json")


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    found: dict[str, Any] = {**Store(Path("unused"), keep=False).about, "device": None, "times": [], "failures": []}
    jobs = list(_jobs(arguments))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(arguments.processes) as pool:
        for kept in pool.map(lambda job: list(_in_process(arguments, job)), jobs):
            for record in kept:
                found["device"] = record.pop("device", found["device"])
                found["failures" if "failure" in record else "times"].append(record)
                print("   ", {k: v for k, v in record.items() if k != "values"}, file=sys.stderr)
            arguments.output.write_text(json.dumps(_compared(found), indent=1) + "\n")
    print(table(json.loads(arguments.output.read_text())))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown: millions of evaluations a second."""
    batches = sorted({r["batch"] for r in found["times"]})
    head = "| | library | " + " | ".join(f"B = {b:,}" for b in batches) + " | in a loop | memory | error |"
    lines = [f"{found['device']}, millions of evaluations a second.", "", head, "|---" * (len(batches) + 5) + "|"]
    rows: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
    for r in found["times"]:
        rows.setdefault(tuple(r[x] for x in ("robot", "dtype", "operation", "library")), {})[r["batch"]] = r
    for (robot, dtype, operation, library), by in rows.items():
        cells = [f"{1.0 / by[b]['call_us']:.3g}" if b in by else "" for b in batches]
        last = by[max(by)]
        error = f"{last['error']:.0e}" if "error" in last else ""
        memory = "" if last["bytes"] is None else f"{last['bytes'] / last['loop_us'] / 1e6:.2f} TB/s"
        cells += [f"{1.0 / last['loop_us']:.3g}", memory, error]
        lines.append(f"| {robot} {dtype} `{operation}` | {library} | " + " | ".join(cells) + " |")
    return "\n".join(
        [*lines, *(f"- without {r['library']} {r['operation']}: {r['failure']}" for r in found["failures"])]
    )


def names(text: str) -> list[str]:
    """Of an option."""
    return [x for x in text.split(",") if x]


def _jobs(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str, str]]:
    """Library, robot, dtype and operation."""
    for robot in arguments.robots:
        for operation in arguments.operations:
            yield REFERENCE, robot, "float64", operation
        for library in arguments.libraries:
            for dtype in arguments.dtypes:
                for operation in arguments.operations:
                    alone = library != LIBRARIES[0] and operation in _OWN_ONLY
                    if not alone and (library != "mujoco_warp" or (operation in _OF_WARP and dtype == "float32")):
                        yield library, robot, dtype, operation


def _in_process(arguments: argparse.Namespace, job: tuple[str, str, str, str]) -> Iterator[dict[str, Any]]:
    """What a fresh process prints."""
    given = (*job, [int(x) for x in arguments.batches], arguments.seconds, str(arguments.output.with_suffix(".lock")))
    named: dict[str, Any] = dict(zip(("library", "robot", "dtype", "operation"), job, strict=True))
    platform = "cpu" if job[0] == REFERENCE else arguments.platform
    return in_process(f"from benchmarks.gpu import time_job; time_job{given!r}", named, arguments.limit, platform)


def in_process(call: str, named: dict[str, Any], limit: float, platform: str) -> Iterator[dict[str, Any]]:
    """What a fresh process that makes a call prints, with a dtype and other names; or why it failed."""
    code = f"import signal; signal.alarm({int(limit)}); {call}"
    platforms = "cpu" if platform == "cpu" else f"{platform},cpu"
    try:
        for record in records(code, named["dtype"], JAX_PLATFORMS=platforms, XLA_PYTHON_CLIENT_PREALLOCATE="false"):
            yield named | record
    except Exception as error:  # one that fails must not take the others with it
        said = f"exit status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else str(error)
        yield named | {"failure": said}


def _compared(found: dict[str, Any]) -> dict[str, Any]:
    """With the difference from the reference, relative to its largest number, in place of the values."""
    exact = {(r["robot"], r["operation"]): np.array(r["values"]) for r in found["times"] if r["library"] == REFERENCE}
    times = []
    for r in found["times"]:
        if r["library"] == REFERENCE:
            continue
        reference = exact.get((r["robot"], r["operation"]))
        r = dict(r)
        values = np.array(r.pop("values"), float)
        if reference is not None and values.size:
            r["error"] = float(np.nanmax(np.abs(values - reference)) / np.nanmax(np.abs(reference)))
        times.append(r)
    return found | {"times": times}


def time_job(
    library: str, robot: str, dtype: str, operation: str, batches: list[int], seconds: float, lock: str
) -> None:
    """Prints the times of one operation of one library, a line each."""
    from .case import CHECKED, make_case

    if library == REFERENCE:
        case = make_case(robot, dtype, max(batches))  # that of the others
        print(json.dumps({"batch": CHECKED, "values": _exact(case, operation).tolist()}))
        return
    case = make_case(robot, dtype, max(batches))
    if library == "mujoco_warp":
        from .peers import mujoco_warp

        found = _in_warp(mujoco_warp, case, operation, batches, seconds, lock)
    else:
        found = _in_jax(library, case, operation, batches, seconds, lock)
    for record in found:
        print(json.dumps(record), flush=True)


def _exact(case: Any, operation: str) -> np.ndarray:
    """This library's results on what is checked."""
    import jax

    from .case import CHECKED
    from .ours import Ours, flat

    ours = Ours(case, operation)
    batched = jax.vmap(ours.single, in_axes=(None, *(0 for _ in ours.operation.inputs)))
    return flat(jax.jit(batched)(ours.model, *ours.arguments(CHECKED)))


def _in_jax(
    library: str, case: Any, operation: str, batches: list[int], seconds: float, lock: str
) -> Iterator[dict[str, Any]]:
    import importlib

    import jax
    import jax.numpy as jnp

    from .case import CHECKED
    from .ours import Ours, flat

    if library == LIBRARIES[0]:
        ours = Ours(case, operation)
        f, shared, arguments = ours.single, (ours.model,), ours.arguments
        told = flat
    else:
        peer = importlib.import_module(f"{__package__}.peers.{library}").library(case)
        f, shared = peer.function(operation), ()
        if f is None:
            return

        def arguments(batch: int | None) -> list[jax.Array]:
            assert batch is not None
            return peer.arguments(case, operation, batch)

        def told(result: Any) -> np.ndarray:
            return peer.ours(case, operation, result)

    def many(*given: Any) -> Any:
        """`TURNS` evaluations; each takes something of the last, so that none can be left out."""

        def turn(_: int, first: jax.Array) -> jax.Array:
            found = batched(*given[: len(shared)], first, *given[len(shared) + 1 :])
            sums = jnp.stack([jnp.sum(x, axis=tuple(range(1, x.ndim))) for x in jax.tree.leaves(found)]).sum(0)
            return first + jnp.asarray(1e-9, first.dtype) * sums.reshape(-1, *(1 for _ in first.shape[1:]))

        return jax.lax.fori_loop(0, TURNS, turn, given[len(shared)])

    device = jax.devices()[0]
    for batch in batches:
        given = (*shared, *arguments(batch))
        batched = jax.vmap(f, in_axes=(*(None for _ in shared), *(0 for _ in given[len(shared) :])))
        sizes = [x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(batched, *given))]
        if sum(sizes) > _LARGEST:
            continue
        started = time.perf_counter()
        one = jax.jit(batched).lower(*given).compile()
        compile_s = time.perf_counter() - started
        loop = jax.jit(many).lower(*given).compile()
        moved = sum(x.size * x.dtype.itemsize for x in given[len(shared) :]) + sum(sizes)
        with alone(lock):
            call_us = least(seconds, lambda f, given: jax.block_until_ready(f(*given)), one, given)
            loop_us = least(seconds, lambda f, given: jax.block_until_ready(f(*given)), loop, given) / TURNS
        values = told(jax.tree.map(lambda x: x[:CHECKED], one(*given)))
        yield {
            "batch": batch,
            "device": f"{device.device_kind}, jax {jax.__version__}",
            "compile_s": compile_s,
            "call_us": call_us / batch,
            "loop_us": loop_us / batch,
            "bytes": moved / batch,
            "values": values.tolist(),
        }


def _in_warp(
    peer: Any, case: Any, operation: str, batches: list[int], seconds: float, lock: str
) -> Iterator[dict[str, Any]]:
    import warp as wp

    for batch in batches:
        robot = peer.Robot(case, batch)
        launch = robot.operations()[operation]
        started = time.perf_counter()
        launch()  # compiles the kernels
        wp.synchronize()
        compile_s = time.perf_counter() - started
        values = [] if operation == "crba" else robot.result(operation).tolist()  # its form is that of a sparse matrix
        graphs = []
        for turns in (1, TURNS):
            with wp.ScopedCapture() as capture:
                for _ in range(turns):
                    launch()
            graphs.append(capture.graph)

        def replay(graph: Any) -> None:
            wp.capture_launch(graph)
            wp.synchronize()

        with alone(lock):
            call_us = least(seconds, replay, graphs[0])
            loop_us = least(seconds, replay, graphs[1]) / TURNS
        yield {
            "batch": batch,
            "compile_s": compile_s,
            "call_us": call_us / batch,
            "loop_us": loop_us / batch,
            "bytes": None,
            "values": values,
        }


@contextmanager
def alone(path: str) -> Iterator[None]:
    """While it is open no other process measures."""
    import fcntl  # not there on Windows

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def least(seconds: float, run: Callable[..., object], *given: Any) -> float:
    """The least wall time of a call [us]."""
    run(*given)
    best, end = float("inf"), time.perf_counter() + seconds
    for _ in range(1000):
        start = time.perf_counter()
        run(*given)
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            break
    return 1e6 * best
