"""Simulation: creep on a slope, slide, rollouts that stay finite, and the time of a step, beside MuJoCo.

A box of 1 kg lies on a slope of 20 degrees, with a coefficient of friction of 0.5, and of 0.2 where it slides. The arm
of the RB-Y1 A starts from its middle with random velocities, under servos of 400 N m/rad and 40 N m s/rad and a damping
of 3 N m s/rad. Times are CPU times of a step of one of a batch, the minimum of several runs; compare within one run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .store import Store

SIZE, DEGREES, DT = (0.2, 0.2, 0.1), 20.0, 0.002


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `simulation` to the command line."""
    command = commands.add_parser("simulation", help="simulation: creep, slide, finite rollouts, time; MuJoCo")
    command.add_argument("--batch", type=int, default=256, help="rollouts in a batch")
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--output", type=Path, help="default: simulation_<version of jax>.json in the results")
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    import jax

    jax.config.update("jax_enable_x64", True)
    output = arguments.output or arguments.results / f"simulation_{jax.__version__}.json"
    about = Store(output, keep=False).about
    found: dict[str, Any] = {**about, "batch": arguments.batch, "rows": []}
    for rows in (_box(arguments.batch, arguments.repeats), _arm(arguments.batch, arguments.repeats), _mujoco()):
        found["rows"] += rows
        for row in rows:
            print("   ", row, file=sys.stderr)
        output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    lines = ["| | | |", "|---|---|---:|"]
    return "\n".join(lines + [f"| {r['who']} | {r['what']} | {r['value']:.5g} |" for r in found["rows"]])


def _row(who: str, what: str, value: Any) -> dict[str, Any]:
    return {"who": who, "what": what, "value": float(value)}


def _fastest(f: Callable[[], Any], repeats: int) -> float:
    import jax

    times = []
    for _ in range(repeats):
        begin = time.process_time()
        jax.block_until_ready(f())
        times.append(time.process_time() - begin)
    return min(times)


def _box(batch: int, repeats: int) -> list[dict[str, Any]]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import RobotBuilder, build_model, collision
    from rbydyn_jax.constraints import simulate
    from rbydyn_jax.shapes import BoxGeometry

    size, angle = np.array(SIZE), np.radians(DEGREES)
    x, y, z = size**2 / 12.0
    b = RobotBuilder("box").link("w").link("box", 1.0, (0, 0, 0), (y + z, x + z, x + y)).floating("f", "w", "box")
    model, n = build_model(b.collision("box", BoxGeometry(size))), np.array([np.sin(angle), 0.0, np.cos(angle)])
    world = collision.World(collision.half_space(jnp.zeros(3), jnp.asarray(n)))
    start = jnp.asarray(np.concatenate([[np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0], 0.05 * n]))

    def end(v: Any, friction: Any) -> Any:
        motion = simulate(model, start, v, 2.0, DT, method="implicit", world=world, friction=friction)
        return motion.qs[-1], motion.vs[-1]

    move, still = jax.jit(end), jnp.zeros(6)
    creep = jnp.linalg.norm(move(still, 0.5)[1]) * 1e3
    way = jnp.linalg.norm(move(still, 0.2)[0][4:] - start[4:])
    exact = 0.5 * 9.81 * (np.sin(angle) - 0.2 * np.cos(angle)) * 4.0
    many, pushes = jax.jit(jax.vmap(end, (0, None))), 0.1 * jax.random.normal(jax.random.key(0), (batch, 6))
    many(pushes, 0.5)
    rate = _fastest(lambda: many(pushes, 0.5), repeats) / batch / round(2.0 / DT) * 1e6
    begin = time.process_time()
    jax.jit(jax.grad(lambda v: end(v, 0.2)[0].sum())).lower(still).compile()
    compiling = time.process_time() - begin
    us = "rbydyn_jax"
    return [
        _row(us, "box, speed after 2 s at rest [mm/s]", creep),
        _row(us, "box, slide in 2 s [m]", way),
        _row("closed form", "box, slide in 2 s [m]", exact),
        _row(us, "box, a step in a batch [us]", rate),
        _row(us, "box, compiling the gradient of a rollout [CPU s]", compiling),
    ]


def _arm(batch: int, repeats: int) -> list[dict[str, Any]]:
    import jax
    import numpy as np

    from rbydyn_jax import lock_joints, robots, with_damping
    from rbydyn_jax.constraints import Servo, Stops, simulate

    robot = robots.rby1a()
    locked: dict[str | int, Any] = {x: 0.0 for x in robot.joint_names if not x.startswith("right_arm")}
    model = with_damping(lock_joints(robot, locked), 3.0)
    rest = 0.5 * (model.position_lower + model.position_upper)
    starts = 2.0 * jax.random.normal(jax.random.key(0), (batch, model.nv))
    rows = []
    for dt in (0.002, 0.005):
        servo = Servo(rest, 400.0, 40.0)
        implicit: dict[str, Any] = {"method": "implicit", "servo": servo, "stops": Stops()}
        explicit: dict[str, Any] = {"control": lambda t, q, v: 400.0 * (rest - q) - 43.0 * v}
        for name, options in (("implicit", implicit), ("Runge-Kutta", explicit)):
            end = jax.jit(jax.vmap(lambda v, dt=dt, o=options: simulate(model, rest, v, 1.0, dt, **o).vs[-1]))
            share = 100.0 * np.isfinite(end(starts)).all(axis=1).mean()
            rows.append(_row(f"rbydyn_jax, {name}", f"arm, finite rollouts at {1e3 * dt:g} ms [%]", share))
            if name == "implicit" and dt == DT:
                rate = _fastest(lambda end=end: end(starts), repeats) / batch / round(1.0 / dt) * 1e6
                rows.append(_row("rbydyn_jax, implicit", "arm, a step in a batch [us]", rate))
    return rows


_BOX = """<mujoco><option timestep="0.002" integrator="implicitfast" cone="{cone}" noslip_iterations="{noslip}"/>
<worldbody><geom type="plane" size="9 9 1" euler="0 {degrees} 0" friction="{mu} 0 0" condim="3"/>
<body pos="{x} 0 {z}" euler="0 {degrees} 0"><freejoint/>
<geom type="box" size="0.1 0.1 0.05" mass="1" friction="{mu} 0 0" condim="3"/></body></worldbody></mujoco>"""


def _mujoco() -> list[dict[str, Any]]:
    """The same box; nothing where MuJoCo is not installed."""
    try:
        import mujoco
    except ImportError:
        return []
    import numpy as np

    angle, rows = np.radians(DEGREES), []
    for cone, noslip in (("pyramidal", 0), ("elliptic", 0), ("elliptic", 20)):
        numbers = {"cone": cone, "noslip": noslip, "degrees": DEGREES}
        numbers |= {"x": 0.05 * np.sin(angle), "z": 0.05 * np.cos(angle)}
        who = f"MuJoCo {mujoco.__version__}, {cone}" + ", noslip" * (noslip > 0)
        for mu in (0.5, 0.2):
            model = mujoco.MjModel.from_xml_string(_BOX.format(mu=mu, **numbers))
            data = mujoco.MjData(model)
            first = data.qpos[:3].copy()
            begin = time.process_time()
            for _ in range(round(2.0 / DT)):
                mujoco.mj_step(model, data)
            rate = (time.process_time() - begin) / round(2.0 / DT) * 1e6
            if mu == 0.5:
                rows.append(_row(who, "box, speed after 2 s at rest [mm/s]", 1e3 * np.linalg.norm(data.qvel[:3])))
                rows.append(_row(who, "box, a step [us]", rate))
            else:
                rows.append(_row(who, "box, slide in 2 s [m]", np.linalg.norm(data.qpos[:3] - first)))
    return rows
