"""Trajectory optimisation: how many of random reachable problems are solved with defaults, and what one costs.

Starts and goals are random configurations within the limits whose gravity torques stay below 95 % of the limits of
torque; the goals are given as poses. A problem counts as solved if the limits are kept at 401 times to 1e-4, measured
here by `rnea` and `link_pose`, and the poses are met to 1e-6. Times are CPU times of warm calls, single and in a batch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .store import Store

if TYPE_CHECKING:
    from rbydyn_jax import Model

FILE = "planning.json"
SOLVED = 0.99  # what is promised
TOLERANCE, POSE = 1e-4, 1e-6  # relative to a limit; of poses, in rad and m


class Task(NamedTuple):
    """A robot, the links that have goals, the duration [s], the joints that move, and the clearance [m]."""

    name: str
    model: Model
    links: tuple[str, ...]
    duration: float
    joints: tuple[str, ...] | None
    clearance: float | None


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `planning` to the command line."""
    planning = commands.add_parser(
        "planning", help="trajectory optimisation: share of random problems solved, and time"
    )
    planning.add_argument("--count", type=int, default=100, help="problems of each robot")
    planning.add_argument("--batch", type=int, default=64, help="problems of a batch; 0 leaves batches out")
    planning.add_argument("--seed", type=int, default=20, help="of the random configurations")
    planning.add_argument("--tasks", default="", help="names, separated by commas; default: all")
    planning.add_argument("--output", type=Path, default=results / FILE)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table; ends with an error if the promise is not kept."""
    import jax

    jax.config.update("jax_enable_x64", True)
    about = Store(arguments.output, keep=False).about
    found: dict[str, Any] = {**about, "count": arguments.count, "seed": arguments.seed, "tasks": []}
    wanted = [name for name in arguments.tasks.split(",") if name]
    for name, make in _tasks().items():
        if not wanted or name in wanted:
            record = _measure(make(name), arguments.count, arguments.batch, arguments.seed)
            found["tasks"].append(record)
            print("   ", record, file=sys.stderr)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if any(task["solved"] < SOLVED for task in found["tasks"]):
        raise SystemExit("less than promised")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = (
        "robot",
        "joints",
        "solved",
        "steps, median and largest",
        "CPU ms, median and mean",
        "in a batch",
        "first [s]",
    )
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for t in found["tasks"]:
        batch = "" if t["batch_ms"] is None else f"{t['batch_ms']:.1f}"
        times = f"{t['ms_median']:.1f}, {t['ms_mean']:.1f}"
        steps = f"{t['steps_median']:.0f}, {t['steps_max']}"
        lines.append(
            f"| {t['task']} | {t['joints']} | {t['solved']:.1%} | {steps} | {times} | {batch} | {t['first_s']:.1f} |"
        )
    return "\n".join(lines)


def _tasks() -> dict[str, Callable[[str], Task]]:
    from rbydyn_jax import load_urdf, robots

    from .case import example_robot

    right, left = (tuple(f"{side}_arm_{i}" for i in range(7)) for side in ("right", "left"))

    def panda(name: str) -> Task:
        model = load_urdf(example_robot("panda_description/urdf/panda.urdf"))
        return Task(name, model, ("panda_link8",), 2.5, None, None)

    def ur5(name: str) -> Task:
        return Task(name, load_urdf(example_robot("ur_description/urdf/ur5_robot.urdf")), ("ee_link",), 2.5, None, None)

    def g1(name: str) -> Task:
        model = load_urdf(example_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf"))
        arm = tuple(x for x in model.joint_names if x.startswith(("left_shoulder", "left_elbow", "left_wrist")))
        return Task(name, model, ("left_wrist_yaw_link",), 2.0, arm, None)

    return {
        "panda": panda,
        "ur5": ur5,
        "g1_arm": g1,
        "panda_like": lambda name: Task(name, robots.panda_like(), ("tool",), 2.5, None, None),
        "panda_like_apart": lambda name: Task(name, robots.panda_like(), ("tool",), 2.5, None, 0.01),
        "rby1a_arm": lambda name: Task(name, robots.rby1a(), ("ee_right",), 3.0, right, None),
        "rby1a_hands": lambda name: Task(name, robots.rby1a(), ("ee_right", "ee_left"), 3.0, right + left, None),
        "rby1a_hands_apart": lambda name: Task(name, robots.rby1a(), ("ee_right", "ee_left"), 3.0, right + left, 0.01),
    }


def _problems(task: Task, count: int, seed: int) -> list[Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import collision, gravity_forces, link_pose, neutral, random_configuration
    from rbydyn_jax.planning import PoseGoal, TrajectoryProblem

    model = task.model
    keys = jax.random.split(jax.random.key(seed), 20 * count)
    q = jax.vmap(random_configuration, (None, 0))(model, keys)
    if task.joints is not None:
        moving = np.zeros(model.nq, bool)
        moving[[model.tree.q_slices[model.joint_index(joint)].start for joint in task.joints]] = True
        rest = jnp.clip(neutral(model), model.position_lower, model.position_upper)
        q = jnp.where(moving[None], q, rest[None])
    gravity = jax.vmap(gravity_forces, (None, 0))(model, q)
    usable = np.asarray((jnp.abs(gravity) <= 0.95 * model.effort_limit[None]).all(axis=1))
    if task.clearance is not None:
        usable = usable & np.asarray(jax.vmap(collision.min_distance, (None, 0))(model, q) > 1.5 * task.clearance)
    q = q[usable]
    if len(q) < 2 * count:
        raise SystemExit(f"{task.name}: too few usable configurations")
    poses = [jax.vmap(lambda x, link=link: link_pose(model, x, link))(q) for link in task.links]
    return [
        TrajectoryProblem(
            model,
            q[i],
            [PoseGoal(link, T[count + i]) for link, T in zip(task.links, poses, strict=True)],
            duration=task.duration,
            joints=task.joints,
            clearance=task.clearance,
        )
        for i in range(count)
    ]


def _kept(task: Task, problem: Any, result: Any) -> Any:
    """Whether a motion keeps the limits at 401 times and ends at its poses."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import collision, damping_forces, friction_forces, link_pose, rnea
    from rbydyn_jax.planning import sample_trajectory

    model, at = task.model, sample_trajectory(result.trajectory, 401)
    tau = jax.vmap(rnea, (None, 0, 0, 0))(model, at.q, at.v, at.a)
    tau -= jax.vmap(lambda v: damping_forces(model, v) + friction_forces(model, v))(at.v)
    limits = ((at.v, model.velocity_limit), (at.a, model.acceleration_limit), (tau, model.effort_limit))
    kept = [(jnp.abs(x) <= (1.0 + TOLERANCE) * limit[None]).all() for x, limit in limits]
    kept += [(at.q >= model.position_lower[None] - TOLERANCE).all()]
    kept += [(at.q <= model.position_upper[None] + TOLERANCE).all()]
    for goal in problem.goals:
        kept.append(jnp.abs(link_pose(model, at.q[-1], goal.link) - goal.target).max() <= POSE)
    if task.clearance is not None:
        apart = jax.vmap(collision.min_distance, (None, 0))(model, at.q)
        kept.append(apart.min() >= task.clearance - 0.1 * TOLERANCE)
    return jnp.stack(kept).all()


def _measure(task: Task, count: int, batch: int, seed: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax.planning import solve_trajectory

    problems = _problems(task, count, seed)
    first, _ = _timed(lambda: solve_trajectory(problems[0]))
    solve_trajectory(problems[0])  # the first call of the compiled program is slower
    runs = [_timed(lambda problem=problem: solve_trajectory(problem)) for problem in problems]
    check = jax.jit(lambda problem, result: _kept(task, problem, result))
    kept = [bool(check(problem, result)) for problem, (_, result) in zip(problems, runs, strict=True)]
    claimed = [bool(result.solved) for _, result in runs]
    together = None
    if batch:
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *problems[:batch])
        solve = jax.jit(jax.vmap(solve_trajectory))
        jax.block_until_ready(solve(stacked))
        together = 1e3 * min(_timed(lambda: solve(stacked))[0] for _ in range(3)) / min(batch, count)
    steps, times = np.array([int(r.iterations) for _, r in runs]), 1e3 * np.array([s for s, _ in runs])
    return {
        "task": task.name,
        "joints": len(problems[0].moving.q),
        "solved": float(np.mean(kept)),
        "claimed": float(np.mean(claimed)),
        "restarted": int(sum(int(r.attempts) > 1 for _, r in runs)),
        "steps_median": float(np.median(steps)),
        "steps_max": int(steps.max()),
        "ms_median": float(np.median(times)),
        "ms_mean": float(times.mean()),
        "batch_ms": together,
        "first_s": first,
    }


def _timed(f: Callable[[], Any]) -> tuple[float, Any]:
    import jax

    started = time.process_time()
    result = jax.block_until_ready(f())
    return time.process_time() - started, result
