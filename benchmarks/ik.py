"""Inverse kinematics: how many of random reachable poses are solved within the limits, and how many a second.

Each robot's poses are those of random configurations within its limits. Rates are wall times of warm calls, the least
of several with different starts, with whatever cores the process may use; optimistix's Levenberg-Marquardt, one start
for each pose with the joints squeezed into their limits by tanh, runs beside on the first robot.

With --clear: poses of configurations of the RB-Y1 that are clear of the robot itself and of a world by a clearance, of
one arm and of both; how many are solved with the clearance, measured anew, and CPU time, alone and in a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .store import Store

if TYPE_CHECKING:
    from rbydyn_jax import Model

FILE, CLEAR_FILE = "ik.json", "ik_clear.json"
CLEARANCE, SOLVED_CLEAR = 0.01, 0.999  # [m], and what is promised
SOLVED, RATE = 0.995, 2000.0  # what is promised, on two cores
TOLERANCE = 1e-6  # m and rad


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `ik` to the command line."""
    ik = commands.add_parser("ik", help="inverse kinematics: share of random poses that are solved, and rate")
    ik.add_argument("--count", type=int, default=1000, help="poses of each arm")
    ik.add_argument("--repeats", type=int, default=5)
    ik.add_argument("--clear", action="store_true", help="poses that have a solution clear of collisions, instead")
    ik.add_argument("--output", type=Path, help="default: in the results")
    ik.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table; ends with an error if a promise is not kept."""
    import jax

    jax.config.update("jax_enable_x64", True)
    arguments.output = arguments.output or arguments.results / (CLEAR_FILE if arguments.clear else FILE)
    about = Store(arguments.output, keep=False).about
    found: dict[str, Any] = {**about, "cores": len(os.sched_getaffinity(0)), "count": arguments.count, "arms": []}
    if arguments.clear:
        return _run_clear(arguments, found)
    for number, arm in enumerate(_arms()):
        record = _measure(*arm, arguments.count, arguments.repeats)
        if number == 0:
            record |= _optimistix(*arm, arguments.count, arguments.repeats)
        found["arms"].append(record)
        print("   ", record, file=sys.stderr)
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if any(arm["solved"] < SOLVED or arm["per_second"] < RATE for arm in found["arms"]):
        raise SystemExit("less than promised")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    lines = ["| arm | joints | solved | a second | starts, mean and largest | first call [s] |", "|---" * 6 + "|"]
    for a in found["arms"]:
        starts = f"{a['attempts_mean']:.2f}, {a['attempts_max']}"
        cells = f"{a['solved']:.2%} | {a['per_second']:,.0f} | {starts} | {a['first_call_s']:.1f}"
        lines.append(f"| {a['arm']} | {a['joints']} | {cells} |")
    return "\n".join(lines)


def _run_clear(arguments: argparse.Namespace, found: dict[str, Any]) -> None:
    """Poses that have a solution clear of collisions."""
    for link in ("ee_right", ("ee_right", "ee_left")):
        for world in (False, True):
            found["arms"].append(_measure_clear(link, world, arguments.count, arguments.repeats))
            print("   ", found["arms"][-1], file=sys.stderr)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    lines = [
        "| RB-Y1 A | world | solved and clear | CPU us, batch | CPU us, alone | first call [s] |",
        "|---" * 6 + "|",
    ]
    for a in found["arms"]:
        times = f"{a['cpu_us_batch']:.0f} | {a['cpu_us_single']:.0f} | {a['first_call_s']:.0f}"
        lines.append(f"| {a['arm']} | {a['world']} | {a['solved']:.2%} | {times} |")
    print("\n".join(lines))
    if any(a["solved"] < SOLVED_CLEAR for a in found["arms"]):
        raise SystemExit("less than promised")


def _measure_clear(link: str | tuple[str, ...], with_world: bool, count: int, repeats: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import collision, link_pose, neutral, random_configuration, robots
    from rbydyn_jax.planning import solve_ik

    model, ref = robots.rby1a(), "link_torso_5"
    links = (link,) if isinstance(link, str) else link
    table = collision.box(jnp.eye(4).at[:3, 3].set(jnp.array([0.6, 0.0, 0.6])), jnp.array([0.3, 1.0, 0.05]))
    centers = ((0.45, -0.3, 1.0), (0.4, 0.3, 1.2), (0.35, 0.0, 0.7))
    balls = [collision.sphere(jnp.array(center), 0.08) for center in centers]
    world = collision.World(*balls, table) if with_world else None

    @jax.jit
    @jax.vmap
    def distance(q: Any) -> Any:
        d = collision.min_distance(model, q)
        return d if world is None else jnp.minimum(d, collision.world_distances(model, q, world).min())

    @jax.jit
    @jax.vmap
    def poses(q: Any) -> Any:
        return jnp.stack([link_pose(model, q, name, ref) for name in links])

    tree, rest = model.tree, jnp.clip(neutral(model), model.position_lower, model.position_upper)
    below = set(tree.path(tree.link_bodies[model.link_index(ref)]))
    moving = {i for name in links for i in tree.path(tree.link_bodies[model.link_index(name)])} - below
    mask = np.isin(np.arange(model.nq), [tree.q_slices[i].start for i in moving])
    q = jax.vmap(random_configuration, (None, 0))(model, jax.random.split(jax.random.key(11), 4 * count))
    q = jnp.where(mask, q, rest)
    q = q[distance(q) >= CLEARANCE][:count]
    goal = poses(q)
    target = goal[:, 0] if isinstance(link, str) else goal

    def solve(target: Any, seed: int) -> Any:
        options = {"ref": ref, "clearance": CLEARANCE, "world": world, "key": jax.random.key(seed)}
        return jax.block_until_ready(solve_ik(model, link, target, **options))

    first, result = _timed(lambda: solve(target, 0))
    batch = min(_cpu(lambda seed=seed: solve(target, seed)) for seed in range(repeats))
    solve(target[0], 0)
    alone = [_cpu(lambda k=k: solve(target[k], 0)) for k in range(min(count, 100))]
    error = np.abs(np.asarray(poses(result.q) - goal)).max(axis=(1, 2, 3))
    ok = np.asarray(result.solved) & (np.asarray(distance(result.q)) >= CLEARANCE - 1e-12) & (error < 2 * TOLERANCE)
    return {
        "arm": " and ".join(links),
        "world": with_world,
        "count": len(q),
        "solved": float(ok.mean()),
        "attempts_max": int(np.asarray(result.attempts).max()),
        "cpu_us_batch": 1e6 * batch / len(q),
        "cpu_us_single": 1e6 * float(np.median(alone)),
        "first_call_s": first,
    }


def _cpu(f: Any) -> float:
    started = time.process_time()
    f()
    return time.process_time() - started


def _arms() -> list[tuple[str, Model, str, str | None]]:
    """Name, robot, link, and the link that the arm stands on."""
    from rbydyn_jax import load_urdf, robots

    from .case import example_robot

    panda = load_urdf(example_robot("panda_description/urdf/panda.urdf"))
    ur5 = load_urdf(example_robot("ur_description/urdf/ur5_robot.urdf"))
    arms: list[tuple[str, Model, str, str | None]] = [
        ("panda", panda, "panda_link8", None),
        ("UR5", ur5, "ee_link", None),
    ]
    for name in ("rby1a", "rby1m", "rby1ub"):
        model = getattr(robots, name)()
        arms += [(f"{name} {side}", model, f"ee_{side}", "link_torso_5") for side in ("right", "left")]
    return arms


def _poses(model: Any, link: str, ref: str | None, count: int) -> Any:
    import jax

    from rbydyn_jax import link_pose, random_configuration

    q = jax.vmap(random_configuration, (None, 0))(model, jax.random.split(jax.random.key(7), count))
    return jax.vmap(lambda x: link_pose(model, x, link, ref))(q)


def _measure(name: str, model: Any, link: str, ref: str | None, count: int, repeats: int) -> dict[str, Any]:
    import jax
    import numpy as np

    from rbydyn_jax import link_pose
    from rbydyn_jax.planning import solve_ik

    target = _poses(model, link, ref, count)

    def solve(seed: int) -> Any:
        return jax.block_until_ready(solve_ik(model, link, target, ref=ref, key=jax.random.key(seed)))

    first, result = _timed(lambda: solve(0))
    warm = [_timed(lambda seed=seed: solve(seed)) for seed in range(repeats)]
    result = warm[0][1]
    T = np.asarray(jax.vmap(lambda q: link_pose(model, q, link, ref))(result.q))
    turn = np.swapaxes(T[:, :3, :3], 1, 2) @ np.asarray(target)[:, :3, :3]
    skew = turn - np.swapaxes(turn, 1, 2)
    angle = np.linalg.norm(np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]]), axis=0) / 2
    cosine = (np.trace(turn, axis1=1, axis2=2) - 1) / 2
    distance = np.linalg.norm(T[:, :3, 3] - np.asarray(target)[:, :3, 3], axis=1)
    q = np.asarray(result.q)
    inside = ((q >= np.asarray(model.position_lower)) & (q <= np.asarray(model.position_upper))).all(axis=1)
    solved = (np.arctan2(angle, cosine) <= 1.001 * TOLERANCE) & (distance <= 1.001 * TOLERANCE) & inside
    attempts, tree = np.asarray(result.attempts), model.tree
    paths = [set(() if k is None else tree.path(tree.link_bodies[model.link_index(k)])) for k in (link, ref)]
    return {
        "arm": name,
        "joints": len(paths[0] ^ paths[1]),
        "solved": float(solved.mean()),
        "per_second": count / min(s for s, _ in warm),
        "attempts_mean": float(attempts.mean()),
        "attempts_max": int(attempts.max()),
        "first_call_s": first,
    }


def _optimistix(name: str, model: Any, link: str, ref: str | None, count: int, repeats: int) -> dict[str, Any]:
    """What one start of optimistix's Levenberg-Marquardt for each pose does."""
    try:
        import optimistix
    except ImportError:
        return {}
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import link_pose, lock_joints, random_configuration
    from rbydyn_jax.spatial import so3

    path = model.tree.path(model.tree.link_bodies[model.link_index(link)])
    still = {joint: 0.0 for i, joint in enumerate(model.joint_names) if i not in path and model.tree.mimics[i] is None}
    target, arm = _poses(model, link, ref, count), lock_joints(model, still)
    middle = 0.5 * (arm.position_upper + arm.position_lower)
    half = 0.5 * (arm.position_upper - arm.position_lower)

    def error(y: Any, goal: Any) -> Any:
        T = link_pose(arm, middle + half * jnp.tanh(y), link, ref)
        return jnp.concatenate([so3.log(goal[:3, :3] @ T[:3, :3].T), goal[:3, 3] - T[:3, 3]])

    def one(goal: Any, q: Any) -> Any:
        y = jnp.arctanh(jnp.clip((q - middle) / half, -0.999, 0.999))
        solver = optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
        found = optimistix.least_squares(error, solver, y, args=goal, max_steps=48, throw=False).value
        e = error(found, goal)
        return (jnp.linalg.norm(e[:3]) <= TOLERANCE) & (jnp.linalg.norm(e[3:]) <= TOLERANCE)

    solve = jax.jit(jax.vmap(one))

    warm = []
    for seed in range(repeats + 1):
        keys = jax.random.split(jax.random.key(seed), count)
        starts = jax.block_until_ready(jax.vmap(random_configuration, (None, 0))(arm, keys))
        warm.append(_timed(lambda starts=starts: jax.block_until_ready(solve(target, starts))))
    share, seconds = float(jnp.mean(warm[0][1])), min(s for s, _ in warm[1:])
    return {"optimistix_solved_of_one_start": share, "optimistix_solved_per_second": share * count / seconds}


def _timed(f: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = f()
    return time.perf_counter() - started, result
