"""What users run, on a GPU or a CPU: inverse kinematics, planning, predictive control, rollouts, distances.

Wall time of one call of a batch, by plain `vmap` where the function takes one, with all arrays on the device and the
wait for the result. Each task has a process of its own; several compile at a time, one at a time measures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .gpu import alone, in_process, least, names
from .store import Store

KNOTS, TURNS = 50, 100
BATCHES = {  # the tasks, and the batches that each is measured with
    "solve_ik panda": (1024, 16384),
    "solve_ik rby1a": (1024, 16384),
    "solve_ik rby1a clear": (1024,),
    "solve_trajectory panda": (64, 1024),
    "solve_trajectory panda clear": (64, 512),
    "ilqr panda": (64, 1024),
    "mppi rby1a": (1024, 16384),
    "rollout rby1a": (8192, 65536),
    "simulate panda": (1024, 16384),
    "simulate rby1a": (1024, 16384),
    "simulate box": (1024, 16384),
    "reach rby1a": (4096, 65536),
    "world_distances panda": (1024, 16384, 131072),
    "gradient of distances panda": (1024, 16384, 131072),
    "sdf rby1a": (1024, 102400),
}


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `gpu_tasks` to the command line."""
    command = commands.add_parser("gpu_tasks", help="planning, control and distances on one GPU, or a CPU")
    command.add_argument("--tasks", type=names, default=list(BATCHES))
    command.add_argument("--dtypes", type=names, default=["float32"])
    command.add_argument("--largest", type=int, default=10**9, help="batches beyond are left out")
    command.add_argument("--seconds", type=float, default=0.5, help="wall time that each measurement gets")
    command.add_argument("--processes", type=int, default=8, help="how many compile at a time")
    command.add_argument("--limit", type=float, default=300, help="wall seconds after which a process ends itself")
    command.add_argument("--platform", default="cuda", help="of JAX: cuda or cpu")
    command.add_argument("--output", type=Path, default=results / "gpu_tasks.json")


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    found: dict[str, Any] = {**Store(Path("unused"), keep=False).about, "device": None, "tasks": [], "failures": []}
    jobs = [
        (task, dtype, batch)
        for task in arguments.tasks
        for dtype in arguments.dtypes
        for batch in BATCHES[task]
        if batch <= arguments.largest
    ]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    lock = str(arguments.output.with_suffix(".lock"))

    def measured(job: tuple[str, str, int]) -> list[dict[str, Any]]:
        call = f"from benchmarks.gpu_tasks import time_task; time_task{(*job, arguments.seconds, lock)!r}"
        named: dict[str, Any] = dict(zip(("task", "dtype", "batch"), job, strict=True))
        return list(in_process(call, named, arguments.limit, arguments.platform))

    with ThreadPoolExecutor(arguments.processes) as pool:
        for kept in pool.map(measured, jobs):
            for record in kept:
                found["device"] = record.pop("device", found["device"])
                found["failures" if "failure" in record else "tasks"].append(record)
                print("   ", record, file=sys.stderr)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    lines = [f"{found['device']}.", "", "| task | dtype | batch | ms | a second | of | solved | compile [s] |"]
    lines.append("|---" * 8 + "|")
    for r in found["tasks"]:
        solved = "" if r["solved"] is None else f"{100 * r['solved']:.1f} %"
        numbers = f"{r['ms']:.3g} | {1e3 * r['count'] / r['ms']:.3g} | {r['unit']} | {solved} | {r['compile_s']:.1f}"
        lines.append(f"| {r['task']} | {r['dtype']} | {r['batch']:,} | {numbers} |")
    return "\n".join([*lines, *(f"- without {r['task']}, {r['batch']}: {r['failure']}" for r in found["failures"])])


def time_task(task: str, dtype: str, batch: int, seconds: float, lock: str) -> None:
    """Prints the time of one task."""
    import jax

    f, given, count, unit, solved = _task(task, batch)
    started = time.perf_counter()
    program = jax.jit(f).lower(*given).compile()
    compile_s = time.perf_counter() - started
    result = program(*given)
    with alone(lock):
        took = least(seconds, lambda: jax.block_until_ready(program(*given)))
    device = jax.devices()[0]
    record = {
        "device": f"{device.device_kind}, jax {jax.__version__}",
        "ms": 1e-3 * took,
        "count": count,
        "unit": unit,
        "compile_s": compile_s,
        "solved": None if solved is None else solved(result),
    }
    print(json.dumps(record), flush=True)


Task = tuple[Callable[..., Any], tuple[Any, ...], int, str, Callable[[Any], float] | None]


def _task(task: str, batch: int) -> Task:
    """A function, what it is given, how many of a unit it computes, and which share of it is solved."""
    import jax
    import jax.numpy as jnp

    import rbydyn_jax as rb

    kind, robot, *how = task.removeprefix("gradient of ").split()
    robots = {"panda": (rb.robots.panda_like, "tool"), "rby1a": (rb.robots.rby1a, "ee_right"), "box": (_box, "body")}
    build, link = robots[robot]
    model = build()
    keys = jax.random.split(jax.random.key(0), 2 * batch).reshape(2, batch)
    q, other = (jax.vmap(lambda key: rb.random_configuration(model, key))(x) for x in keys)
    still = jnp.zeros((batch, model.nv), q.dtype)
    match kind:
        case "solve_ik":
            targets = jax.vmap(lambda q: rb.link_pose(model, q, link))(other)
            clearance = 0.0 if how else None
            solve = lambda T, q: rb.planning.solve_ik(model, link, T, q0=q, clearance=clearance)  # noqa: E731
            return solve, (targets, q), batch, "poses", _share  # it takes a batch itself
        case "solve_trajectory":
            return *_trajectories(model, link, q, other, bool(how)), batch, "trajectories", _share
        case "ilqr":
            return jax.vmap(_ilqr(model, link)), (q, still), batch * TURNS // 10, "iterations", None
        case "mppi":
            planning, problem = rb.planning, _control(model, link)
            f = lambda q, v, key: planning.mppi(problem, q, v, key, samples=batch).cost  # noqa: E731
            return f, (q[0], still[0], keys[0, 0]), batch * KNOTS, "steps", None
        case "rollout":
            return jax.vmap(_rollout(model)), (q, still), batch * TURNS, "steps", None
        case "simulate":  # the arms with dry friction, the box on the ground
            ground = rb.collision.World(rb.collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
            how_it_moves = {"method": "implicit", "world": ground if robot == "box" else None}
            q = q.at[:, 4:].set(jnp.array([0.0, 0.0, 0.12])) if robot == "box" else q
            f = lambda q, v: rb.constraints.simulate(model, q, v, 2e-3 * TURNS, 2e-3, **how_it_moves).qs[-1]  # noqa: E731
            return jax.vmap(f), (q, still), batch * TURNS, "steps", None
        case "reach":
            env = rb.envs.reach(jnp.float32)
            states = jax.vmap(rb.envs.reset, (None, 0))(env, keys[0])
            actions = jax.random.uniform(keys[0, 0], (batch, env.action_size), jnp.float32, -1.0, 1.0)
            step = jax.vmap(rb.envs.step, (None, 0, 0))

            def episode(states: Any, actions: Any) -> Any:
                def turn(states: Any, _: Any) -> Any:
                    after = step(env, states, actions)
                    return after.state, after.reward

                return jax.lax.scan(turn, states, None, length=TURNS)[1].sum(axis=0)

            return episode, (states, actions), batch * TURNS, "actions", None
        case "world_distances":
            world = _world()
            f = lambda q: rb.collision.world_distances(model, q, world)  # noqa: E731
            pairs = jax.eval_shape(f, q[0]).size
            return jax.vmap(f), (q,), batch * pairs, "pairs", None
        case "distances":
            world = _world()
            f = jax.grad(lambda q: rb.collision.world_distances(model, q, world).min())
            return jax.vmap(f), (q,), batch, "configurations", None
        case "sdf":
            points = jax.random.uniform(keys[0, 0], (batch, 3), q.dtype, -1.0, 1.5)
            f = lambda q, points: rb.collision.sdf(model, q, points).distance  # noqa: E731
            return f, (q[0], points), batch, "points", None
    raise ValueError(task)


def _box() -> Any:
    import numpy as np

    import rbydyn_jax as rb
    from rbydyn_jax.shapes import BoxGeometry

    b = rb.RobotBuilder("box").link("world").link("body", 1.0, (0, 0, 0), (0.005, 0.005, 0.007))
    return rb.build_model(b.floating("free", "world", "body").collision("body", BoxGeometry(np.array([0.2, 0.2, 0.1]))))


def _share(result: Any) -> float:
    return float((result.status == 0).mean())


def _world() -> Any:
    import jax.numpy as jnp

    from rbydyn_jax import collision

    def at(x: float, y: float, z: float) -> Any:
        return jnp.eye(4).at[:3, 3].set(jnp.array([x, y, z]))

    return collision.World(
        collision.box(at(0.6, 0.3, 0.2), jnp.array([0.2, 0.2, 0.4])),
        collision.box(at(-0.5, 0.3, 0.4), jnp.array([0.2, 0.3, 0.2])),
        collision.cylinder(at(0.2, -0.6, 0.3), length=0.6, radius=0.08),
        collision.sphere(jnp.array([0.4, -0.4, 0.8]), 0.1),
    )


def _trajectories(model: Any, link: str, q: Any, other: Any, clear: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    import jax

    import rbydyn_jax as rb
    from rbydyn_jax import planning

    targets = jax.vmap(lambda q: rb.link_pose(model, q, link))(other)
    clearance, world = (0.0, _world()) if clear else (None, None)

    def one(q: Any, target: Any) -> Any:
        goals = [planning.PoseGoal(link, target)]
        problem = planning.TrajectoryProblem(model, q, goals, duration=2.5, clearance=clearance, world=world)
        return planning.solve_trajectory(problem)

    return jax.vmap(one), (q, targets)


def _control(model: Any, link: str) -> Any:
    import jax.numpy as jnp

    from rbydyn_jax import link_pose, neutral
    from rbydyn_jax.planning import ControlProblem, JointEffort, JointVelocity, PoseGoal, SoftGoal

    at = jnp.clip(neutral(model) + 0.7, model.position_lower, model.position_upper)
    goal = PoseGoal(link, link_pose(model, at, link))
    costs = [JointEffort(1e-4), JointVelocity(1e-2), SoftGoal(goal, 1.0)]
    return ControlProblem(model, costs, [SoftGoal(goal, 100.0), JointVelocity(1.0)], dt=0.02, steps=KNOTS)


def _ilqr(model: Any, link: str) -> Callable[..., Any]:
    from rbydyn_jax.planning import ilqr

    problem = _control(model, link)
    return lambda q, v: ilqr(problem, q, v, iterations=TURNS // 10, tolerance=0.0).cost


def _rollout(model: Any) -> Callable[..., Any]:
    import jax

    import rbydyn_jax as rb

    def step(state: Any, _: Any) -> Any:
        q, v = state
        v = v + 2e-3 * rb.aba(model, q, v, rb.gravity_forces(model, q))
        return (rb.integrate(model, q, 2e-3 * v), v), None

    return lambda q, v: jax.lax.scan(step, (q, v), None, length=TURNS)[0]
