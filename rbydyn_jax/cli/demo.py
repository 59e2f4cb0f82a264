"""``rbydyn demo``: the core algorithms on a batch, then a trajectory optimization, on the built-in RB-Y1 A."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

from .._extras import require
from ..planning import TrajectoryReport, TrajectoryResult, check_trajectory
from .batch import compile_batch, run_batch
from .task import Task, at_rest, reaching_task, solve

POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 1e-3, np.deg2rad(0.5)  # [m], [rad]


def demo(output: Path, batch: int = 4096, task: Callable[[], Task] = reaching_task) -> int:
    """Runs the demo in float64.

    Args:
        output: Directory of the figure; created if it does not exist.
        batch: Number of random configurations.
        task: Makes the robot and what it is to do.

    Returns:
        0 if the identities hold and the motion keeps its limits, 1 if not.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require("matplotlib", "viz", "rbydyn demo")
    output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with jax.enable_x64(True):
        todo = task()
        device = jax.devices()[0]
        print(f"{todo.model.name}, {todo.model.nv} degrees of freedom, float64 on {device.device_kind}")
        print("compiling, the planner beside the algorithms ...\n", flush=True)
        with ThreadPoolExecutor(1) as beside:
            planner = beside.submit(_compile_planner, todo)
            programs = compile_batch(todo.model, todo.link, batch)
            check_trajectory(todo.model, at_rest(todo), todo.link, todo.target)  # is compiled
            compile_time = planner.result()
        right = run_batch(programs)
        good = _plan(todo, compile_time, output / "trajectory.png")
    print(f"\ndone in {time.perf_counter() - started:.0f} s: " + ("all checks passed" if right and good else "FAILED"))
    return 0 if right and good else 1


def _compile_planner(task: Task) -> float:
    """Solves the task, of which nothing but the compiled planner is kept; returns how long it took [s]."""
    with jax.enable_x64(True):  # in this thread
        return _solved(task)[1]


def _solved(task: Task) -> tuple[tuple[TrajectoryResult, TrajectoryResult], float]:
    started = time.perf_counter()
    results = jax.block_until_ready(solve(task))
    return results, time.perf_counter() - started


def _plan(task: Task, compile_time: float, figure_path: Path) -> bool:
    print(f"\nTrajectory: {task.title} in {task.duration:g} s; before: the smoothest way, without regard to limits.")
    results, seconds = _solved(task)
    steps = int(results[1].iterations)
    print(f"{steps} steps; compiled once in {compile_time:.1f} s, then both motions take {seconds:.2f} s\n")
    before, after = (check_trajectory(task.model, r.trajectory, task.link, task.target) for r in results)
    print(table(before, after))
    from ..viz import plot_motion

    motion, title = results[1].trajectory, f"{task.model.name}: {task.title}"
    figure = plot_motion(
        task.model, motion, after, task.link, task.target, before=before, moving_links=task.limb, title=title
    )
    figure.savefig(figure_path, dpi=130)
    print(f"figure: {figure_path.resolve()}")
    return bool(results[1].solved) and after.feasible(POSITION_TOLERANCE, ORIENTATION_TOLERANCE)


def table(before: TrajectoryReport, after: TrajectoryReport) -> str:
    """The comparison of two motions, one quantity a line."""
    degrees = 180.0 / np.pi
    rows = [
        ("final position error [mm]", 1e3, "position_error", "<=", POSITION_TOLERANCE),
        ("final orientation error [deg]", degrees, "orientation_error", "<=", ORIENTATION_TOLERANCE),
        ("smallest distance [mm]", 1e3, "distance", ">", 0.0),
        ("largest position / limit", 1.0, "position_ratio", "<=", 1.0),
        ("largest velocity / limit", 1.0, "velocity_ratio", "<=", 1.0),
        ("largest acceleration / limit", 1.0, "acceleration_ratio", "<=", 1.0),
        ("largest torque / limit", 1.0, "torque_ratio", "<=", 1.0),
        ("smoothness: jerk^2 [rad^2/s^5]", 1.0, "smoothness", "", np.nan),
    ]
    lines = [f"{'':32}{'before':>11}{'after':>11}{'wanted':>11}"]
    for name, unit, field, relation, bound in rows:
        values = [float(getattr(report, field)) for report in (before, after)]
        kept = [relation == "" or (x > bound if relation == ">" else x <= bound) for x in values]
        cells = [f"{unit * x:10.4g}" + (" " if ok else "!") for x, ok in zip(values, kept, strict=True)]
        wanted = f"{relation} {unit * bound:g}" if relation else ""
        lines.append(f"{name:32}{cells[0]:>11}{cells[1]:>11}{wanted:>11}")
    return "\n".join([*lines, "(! = not kept)"])
