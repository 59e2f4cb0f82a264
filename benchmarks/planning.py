"""Trajectory optimization: how many of random reachable problems are solved with defaults, and what one costs.

Every problem has a motion that is known, so that it can be solved. Configurations are random within the limits, with
gravity torques below 95 % of the limits of torque. From the start to the goal leads a witness: by straight motions of
minimum jerk to the middle and on, or among obstacles, where that collides, by way of a third random configuration. The
duration is the first of `DURATIONS` in which a witness keeps the limits of velocity, acceleration and torque at 52
times; configurations without one are drawn anew. The solver is told the pose at the goal, not the configuration.
Obstacles are two spheres, two boxes and a capsule, each around a place that the link reaches. For poses in between, the
middle of the witness is another random configuration, and the solver is told its pose at half of the time.

A problem counts as solved if the limits and the clearance are kept at 401 times to 1e-4, measured here by `rnea`,
`link_pose` and the exact distances, and the poses are met to 1e-6. Times are CPU times of warm calls, single and in a
batch.
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
SOLVED, SOLVED_AMONG_OBSTACLES = 0.99, 0.95  # what is promised
TOLERANCE, POSE = 1e-4, 1e-6  # relative to a limit; of poses, in rad and m
CLEARANCE = 0.01  # [m] of tasks with obstacles
DURATIONS = (1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 9.0)  # [s]
OBSTACLES, BETWEEN = "+obstacles", "+between"  # ends of names of tasks
_TOGETHER = 256  # candidates drawn at a time


class Task(NamedTuple):
    """A robot, links that have goals, joints that move, and whether there are obstacles, and poses in between."""

    name: str
    model: Model
    links: tuple[str, ...]
    joints: tuple[str, ...] | None
    obstacles: bool
    between: bool


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `planning` to the command line."""
    planning = commands.add_parser(
        "planning", help="trajectory optimization: share of random problems solved, and time"
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
    found: dict[str, Any] = {**about, "tasks": []}
    wanted = [name for name in arguments.tasks.split(",") if name]
    for name, make in _tasks().items():
        if not wanted or name in wanted:
            record = _measure(make(), arguments.count, arguments.batch, arguments.seed)
            found["tasks"].append(record)
            print("   ", record, file=sys.stderr)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if any(
        task["solved"] < (SOLVED_AMONG_OBSTACLES if OBSTACLES in task["task"] else SOLVED) for task in found["tasks"]
    ):
        raise SystemExit("less than promised")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = (
        "robot",
        "joints",
        "problems",
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
        who = f"{t['task']} | {t['joints']} | {t['count']}"
        lines.append(f"| {who} | {t['solved']:.1%} | {steps} | {times} | {batch} | {t['first_s']:.1f} |")
    return "\n".join(lines)


def _tasks() -> dict[str, Callable[[], Task]]:
    """Each robot in free space, with its shapes among obstacles, and by way of poses."""
    from rbydyn_jax import collision, load_urdf, lock_joints, robots

    from .case import example_robot

    right, left = (tuple(f"{side}_arm_{i}" for i in range(7)) for side in ("right", "left"))
    g1_arm = tuple(
        f"left_{x}_joint"
        for x in ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
    )

    def from_file(
        path: str, shapes: bool, held: dict[str | int, Any] | None = None, only: tuple[str, ...] = ()
    ) -> Model:
        """With some joints held, and if there are to be shapes, with capsules around its meshes.

        Then `only` these joints move, if any are named: of random configurations of all of them too few are apart.
        """
        file = example_robot(path)
        model = load_urdf(file)
        if shapes:
            packages = [file.parents[3], file.parents[2]]
            model = collision.with_shapes(model, collision.mesh_shapes(file, packages=packages))
            held = {x: 0.0 for x in model.joint_names if only and x not in only} | (held or {})
        return lock_joints(model, held or {})

    robots_ = {
        "panda": (
            lambda b: from_file("panda_description/urdf/panda.urdf", b, {"panda_finger_joint1": 0.04}),
            ("panda_link8",),
            None,
        ),
        "ur5": (lambda b: from_file("ur_description/urdf/ur5_robot.urdf", b), ("ee_link",), None),
        "rby1a_arm": (lambda _: robots.rby1a(), ("ee_right",), right),
        "rby1a_hands": (lambda _: robots.rby1a(), ("ee_right", "ee_left"), right + left),
        "g1_arm": (
            lambda b: from_file("g1_description/urdf/g1_29dof_rev_1_0.urdf", b, only=g1_arm),
            ("left_wrist_yaw_link",),
            g1_arm,
        ),
    }

    def task(name: str, what: str) -> Callable[[], Task]:
        model, links, joints = robots_[name]
        obstacles = what == OBSTACLES
        return lambda: Task(name + what, model(obstacles), links, joints, obstacles, what == BETWEEN)

    return {name + what: task(name, what) for what in ("", OBSTACLES, BETWEEN) for name in robots_}


def _problems(task: Task, count: int, seed: int) -> list[Any]:
    """Problems that have a solution, of one structure."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import collision, gravity_forces, link_pose, neutral, random_configuration
    from rbydyn_jax.planning import PoseGoal, TrajectoryProblem

    model = task.model
    moving = np.ones(model.nq, bool)
    if task.joints is not None:
        moving[:] = False
        moving[[model.tree.q_slices[model.joint_index(joint)].start for joint in task.joints]] = True
    rest = jnp.clip(neutral(model), model.position_lower, model.position_upper)
    pairs = _pairs(task)
    s = jnp.linspace(0.0, 1.0, 26)
    blend = jnp.stack(
        [6 * s**5 - 15 * s**4 + 10 * s**3, 30 * s**4 - 60 * s**3 + 30 * s**2, 120 * s**3 - 180 * s**2 + 60 * s]
    )

    def configuration(key: Any) -> Any:
        return jnp.where(moving, random_configuration(model, key), rest)

    def held(q: Any) -> Any:
        return (jnp.abs(gravity_forces(model, q)) <= 0.95 * model.effort_limit).all()

    def apart(q: Any, world: Any) -> Any:
        nearest = jnp.min(collision.signed_distances(model, q, pairs))
        return jnp.minimum(nearest, jnp.min(collision.world_distances(model, q, world)))

    def witness(start: Any, via: Any, end: Any) -> tuple[Any, Any]:
        """Configurations of the motion by way of one at rest, and the index of the first duration that it keeps."""
        knots, moved = jnp.stack([start, via])[:, None], jnp.stack([via - start, end - via])[:, None]
        q, v, a = (row[None, :, None] * moved * 2**k for k, row in enumerate(blend))
        q, v, a = (x.reshape(-1, model.nq) for x in (knots + q, v, a))

        def kept(T: Any) -> Any:
            tau = jax.vmap(lambda *x: _forces(model, *x))(q, v / T, a / T**2)
            limits = ((v / T, model.velocity_limit), (a / T**2, model.acceleration_limit), (tau, model.effort_limit))
            return jnp.stack([(jnp.abs(x) <= limit).all() for x, limit in limits]).all()

        good = jax.lax.map(kept, jnp.array(DURATIONS))
        return q, jnp.where(good.any(), jnp.argmax(good), len(DURATIONS))

    def candidate(key: Any) -> Any:
        """Start, middle, goal, index of the duration, or a larger one if it is not usable; and obstacles."""
        keys = jax.random.split(key, 4)
        start, end, via = (configuration(k) for k in keys[:3])
        vias = via[None] if task.between else jnp.stack([0.5 * (start + end), via])[: 1 + task.obstacles]
        q, index = jax.lax.map(lambda via: witness(start, via, end), vias)
        world = None
        if task.obstacles:
            world = _world(task, configuration, keys[3])

            def all_apart(q: Any) -> Any:
                return jax.vmap(lambda q: apart(q, world))(q.reshape(-1, model.nq)).reshape(2, -1).min(axis=1)

            ends = jax.lax.map(lambda x: apart(x, world), jnp.stack([start, end])).min() > 1.5 * CLEARANCE
            clear = jax.lax.cond(ends, all_apart, lambda _: jnp.zeros(2), q) > CLEARANCE
            index = jnp.where(clear, index, len(DURATIONS))[jnp.where(clear[0], 0, 1)][None]
        index = jnp.where(jax.vmap(held)(jnp.stack([start, end])).all(), index[0], len(DURATIONS))
        return start, via, end, index, world

    draw = jax.jit(lambda keys: jax.lax.map(candidate, keys))  # one after the other: most are refused early
    key, found = jax.random.key(seed), []
    for k in range(4 * max(count, 100)):
        start, via, end, index, worlds = draw(jax.random.split(jax.random.fold_in(key, k), _TOGETHER))
        for i in np.flatnonzero(np.asarray(index) < len(DURATIONS)):
            world = None if worlds is None else jax.tree.map(lambda x, i=i: x[i], worlds)
            found.append((start[i], via[i], end[i], DURATIONS[int(index[i])], world))
        if len(found) >= count:
            break
    else:
        raise SystemExit(f"{task.name}: too few usable configurations")
    pose = jax.jit(lambda q: [link_pose(model, q, link) for link in task.links])
    return [
        TrajectoryProblem(
            model,
            start,
            [
                PoseGoal(link, T, at=when)
                for when, q in ((1.0, end), *([(0.5, via)] if task.between else []))
                for link, T in zip(task.links, pose(q), strict=True)
            ],
            duration=duration,
            joints=task.joints,
            clearance=CLEARANCE if task.obstacles else None,
            collision_pairs=pairs,
            world=world,
        )
        for start, via, end, duration, world in found[:count]
    ]


def _pairs(task: Task) -> Any:
    """Those that the moving joints move and that can touch."""
    import jax.numpy as jnp

    from rbydyn_jax import collision
    from rbydyn_jax.planning import ConfigurationGoal, TrajectoryProblem

    if not task.obstacles:
        return None
    model, q = task.model, jnp.zeros(task.model.nq)
    masks = any(model.tree.shape_coltypes)
    pairs = collision.pairs(model) if masks else collision.sampled_pairs(model, margin=2 * CLEARANCE)
    return TrajectoryProblem(model, q, [ConfigurationGoal(q)], joints=task.joints, collision_pairs=pairs).pairs


def _world(task: Task, configuration: Any, key: Any) -> Any:
    """Two spheres, two boxes and a capsule around places that the links reach."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import collision, link_pose
    from rbydyn_jax.spatial import so3

    def reached(key: Any) -> Any:
        q = configuration(key)
        return jnp.stack([link_pose(task.model, q, link)[:3, 3] for link in task.links])

    def uniform(key: Any, low: float, high: float, shape: tuple[int, ...] = ()) -> Any:
        return jax.random.uniform(key, shape, jnp.zeros(0).dtype, low, high)

    keys = jax.random.split(key, 15).reshape(3, 5)
    places = jax.vmap(reached)(keys[0])[jnp.arange(5), jnp.arange(5) % len(task.links)]
    shapes: list[Any] = [collision.sphere(places[k], uniform(keys[1, k], 0.05, 0.12)) for k in range(2)]
    for k in range(2, 4):
        turn = so3.exp(uniform(keys[2, k], -2.0, 2.0, (3,)))
        pose = jnp.eye(4).at[:3, :3].set(turn).at[:3, 3].set(places[k])
        shapes.append(collision.box(pose, uniform(keys[1, k], 0.08, 0.24, (3,))))
    half = uniform(keys[2, 4], -0.2, 0.2, (3,))
    shapes.append(collision.capsule(places[4] - half, places[4] + half, uniform(keys[1, 4], 0.03, 0.08)))
    return collision.World(*shapes)


def _forces(model: Any, q: Any, v: Any, a: Any) -> Any:
    from rbydyn_jax import damping_forces, friction_forces, rnea

    return rnea(model, q, v, a) - damping_forces(model, v) - friction_forces(model, v)


def _kept(task: Task, problem: Any, result: Any) -> Any:
    """Whether a motion keeps the limits at 401 times and meets its poses."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import collision, link_pose
    from rbydyn_jax.planning import sample_trajectory

    model, at = task.model, sample_trajectory(result.trajectory, 401)
    tau = jax.vmap(lambda *x: _forces(model, *x))(at.q, at.v, at.a)
    limits = ((at.v, model.velocity_limit), (at.a, model.acceleration_limit), (tau, model.effort_limit))
    kept = [(jnp.abs(x) <= (1.0 + TOLERANCE) * limit[None]).all() for x, limit in limits]
    kept += [(at.q >= model.position_lower[None] - TOLERANCE).all()]
    kept += [(at.q <= model.position_upper[None] + TOLERANCE).all()]
    for goal in problem.goals:
        met = link_pose(model, at.q[round(400 * goal.when)], goal.link)
        kept.append(jnp.abs(met - goal.target).max() <= POSE)
    if task.obstacles:
        apart = jax.vmap(lambda q: collision.signed_distances(model, q, problem.pairs).min())(at.q)
        away = jax.vmap(lambda q: collision.world_distances(model, q, problem.world).min())(at.q)
        kept.append(jnp.minimum(apart, away).min() >= CLEARANCE - 0.1 * TOLERANCE)
    return jnp.stack(kept).all()


def _measure(task: Task, count: int, batch: int, seed: int) -> dict[str, Any]:
    import equinox as eqx
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
        solve = jax.jit(jax.vmap(lambda x: solve_trajectory(eqx.tree_at(lambda x: x.model, x, problems[0].model))))
        jax.block_until_ready(solve(stacked))
        together = 1e3 * min(_timed(lambda: solve(stacked))[0] for _ in range(3)) / min(batch, count)
    steps, times = np.array([int(r.iterations) for _, r in runs]), 1e3 * np.array([s for s, _ in runs])
    return {
        "task": task.name,
        "count": count,
        "seed": seed,
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
