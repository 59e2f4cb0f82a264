"""Identification of RB-Y1 A: a robot is recovered from noisy torques, and what a regressor costs beside Pinocchio's.

The robot has friction; the fit begins with other inertias, 20 % off in log-Cholesky coordinates, and none. It sees 40 s
of a motion at 100 Hz whose torques have 1 % of noise, and predicts 10 s of another motion. Errors are relative to the
noise, the largest of all joints. The time of the first fit includes compilation; the second finds everything compiled.

An arm is identified beside figaroh and MuJoCo's system identification, where they are installed.

A regressor is 24 x 240. Times are CPU times of one core, the least of several runs; of Pinocchio in a loop from Python,
less the same calls on a robot of one joint. "As many equal numbers" is the time of writing a result of that size.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import identification_peers
from .store import Store

FILE, PERIOD, PERTURBED, NOISE = "identification.json", 0.01, 0.2, 0.01


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `identification` to the command line."""
    command = commands.add_parser("identification", help="RB-Y1 recovered from noisy torques; time of a regressor")
    command.add_argument("--rows", type=int, default=4000, help="of the motion that is fitted")
    command.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024], help="of the regressors")
    command.add_argument("--repeats", type=int, default=20)
    command.add_argument(
        "--output", type=Path, help="default: in the results, what was measured on other versions kept"
    )
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints tables."""
    import jax

    jax.config.update("jax_enable_x64", True)
    output = arguments.output or arguments.results / FILE
    record = {
        "rows": arguments.rows,
        "fits": fits(arguments.rows),
        "peers": identification_peers.compare(_motion, _perturbed),
        "regressors": regressors(arguments.batches, arguments.repeats),
    }
    found = Store(output, keep=False).save_run(record)
    print(tables(found))


def tables(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    fit_head = (
        "jax",
        "fit",
        "wall [s]",
        "CPU [s]",
        "links that can exist",
        "error on another motion / noise",
        "before",
    )
    slope = "gradient of a squared error with respect to all parameters [us]"
    head = ("jax", "batch", "regressor [us]", "as many equal numbers [us]", "Pinocchio [us]", slope)
    fit_lines, lines = ([f"| {' | '.join(x)} |", "|---" * len(x) + "|"] for x in (fit_head, head))
    for r in found["runs"]:
        jax = r["versions"].get("jax", "")
        for x in r["fits"]:
            cells = (f"{x['wall_s']:.0f}", f"{x['cpu_s']:.0f}", f"{x['consistent']} of {x['links']}")
            errors = (f"{x['error']:.2f}", f"{x['before']:.0f}")
            fit_lines.append("| " + " | ".join((jax, x["name"], *cells, *errors)) + " |")
        for x in r["regressors"]:
            written, pinocchio = ("" if x.get(k) is None else f"{x[k]:.1f}" for k in ("written_us", "pinocchio_us"))
            cells = (jax, str(x["batch"]), f"{x['us']:.1f}", written, pinocchio, f"{x['gradient_us']:.1f}")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*fit_lines, "", identification_peers.table(found["runs"]), "", *lines])


def fits(rows: int) -> list[dict[str, Any]]:
    """A row for each way to fit."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import robots
    from rbydyn_jax.identification import TrajectoryData, fit, motor_torques

    rng = np.random.default_rng(3)
    true = _with_friction(robots.rby1a(), rng)
    initial = _perturbed(true, rng)
    torques = jax.jit(jax.vmap(motor_torques, (None, 0, 0, 0)))
    motion, later = _motion(true, 1, rows), _motion(true, 2, 1000)
    tau, want = (np.asarray(torques(true, *x)) for x in (motion, later))
    noise = NOISE * np.sqrt(np.mean(tau**2, axis=0))
    data = TrajectoryData(*motion, jnp.asarray(tau + noise * rng.normal(size=tau.shape)))

    def error(model: Any) -> float:
        errors = np.asarray(torques(model, *later)) - want
        return float((np.sqrt(np.mean(errors**2, axis=0)) / noise).max())

    found = []
    for name, consistent in (("bodies that can exist", True), ("plain least squares", False)):
        wall, cpu = time.perf_counter(), time.process_time()
        result = fit(initial, data, consistent=consistent)
        times = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        possible = list(result.consistent.values())
        counts = {"consistent": sum(possible), "links": len(possible), "steps": result.iterations}
        found.append({"name": name, **times, **counts, "error": error(result.model), "before": error(initial)})
        print("   ", found[-1], file=sys.stderr)
    return found


def _with_friction(model: Any, rng: np.random.Generator) -> Any:
    import equinox as eqx
    import jax.numpy as jnp

    chosen = (rng.uniform(0.1, 1.0, model.nv) * np.minimum(np.asarray(model.effort_limit), 10.0) / 10.0 for _ in "df")
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, tuple(map(jnp.asarray, chosen)))


def _perturbed(model: Any, rng: np.random.Generator) -> Any:
    """Other bodies that can exist, and no friction."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from rbydyn_jax.spatial import inertia

    theta = jax.vmap(inertia.to_log_cholesky)(model.inertias)
    other = jax.vmap(inertia.from_log_cholesky)(theta + PERTURBED * rng.normal(size=theta.shape))
    zero = jnp.zeros(model.nv)
    return eqx.tree_at(lambda m: (m.inertias, m.damping, m.friction), model, (other, zero, zero))


def _motion(model: Any, seed: int, rows: int) -> tuple[Any, Any, Any]:
    """Sums of five sines for each joint, within its limits of position."""
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    t = (np.arange(rows) * PERIOD)[:, None]
    low, high = (np.clip(np.asarray(x), -np.pi, np.pi) for x in (model.position_lower, model.position_upper))
    q, v, a = np.tile((low + high) / 2.0, (rows, 1)), np.zeros((rows, model.nv)), np.zeros((rows, model.nv))
    for k in range(1, 6):
        rate, phase = rng.uniform(0.5, 1.5, model.nv) * k, rng.uniform(0.0, 2.0 * np.pi, model.nv)
        size, angle = 0.1 * (high - low) / k, rate * t + phase
        q += size * np.sin(angle)
        v += size * rate * np.cos(angle)
        a -= size * rate**2 * np.sin(angle)
    return jnp.asarray(q), jnp.asarray(v), jnp.asarray(a)


def regressors(batches: list[int], repeats: int) -> list[dict[str, Any]]:
    """A row for each batch."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import rnea, robots
    from rbydyn_jax.identification import torque_regressor
    from rbydyn_jax.model.states import random_states

    model = robots.rby1a()

    @jax.jit
    @jax.grad
    def gradient(inertias: Any, q: Any, v: Any, a: Any, tau: Any) -> Any:
        other = eqx.tree_at(lambda m: m.inertias, model, inertias)
        return jnp.sum((jax.vmap(rnea, (None, 0, 0, 0))(other, q, v, a) - tau) ** 2)

    regressor = jax.jit(jax.vmap(torque_regressor, (None, 0, 0, 0)))
    found = []
    for batch in batches:
        states = random_states(model, jax.random.key(0), batch)
        tau = jnp.ones((batch, model.nv))
        us = _least(lambda x=states: jax.block_until_ready(regressor(model, *x)), repeats) / batch
        slope = _least(lambda x=states, t=tau: jax.block_until_ready(gradient(model.inertias, *x, t)), repeats) / batch
        shape = (batch, model.nv, model.inertias.size)
        written = jax.jit(lambda x, shape=shape: jnp.broadcast_to(x[:, :1, None], shape))
        floor = _least(lambda x=states, f=written: jax.block_until_ready(f(x[0])), repeats) / batch
        theirs = _pinocchio(model, states, repeats)
        times = {"us": us, "written_us": floor, "pinocchio_us": theirs, "gradient_us": slope}
        found.append({"batch": batch} | times)
        print("   ", found[-1], file=sys.stderr)
    return found


def _pinocchio(model: Any, states: Any, repeats: int) -> float | None:
    """The time of a regressor, without that of the call from Python; None if it is not installed."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    from rbydyn_jax import robots, to_urdf

    def loop(robot: Any) -> Callable[[], None]:
        twin = pin.buildModelFromXML(to_urdf(robot, collisions=False))
        data, size = twin.createData(), (len(states[0]), twin.nv)
        steps, v, a = (np.resize(np.asarray(x), size) for x in states)
        rows = [np.stack([pin.integrate(twin, pin.neutral(twin), step) for step in steps]), v, a]

        def call() -> None:
            for q, v, a in zip(*rows, strict=True):
                pin.computeJointTorqueRegressor(twin, data, q, v, a)

        return call

    whole, nothing = (_least(loop(robot), repeats) for robot in (model, robots.pendulum()))
    return (whole - nothing) / len(states[0])


def _least(call: Callable[[], Any], repeats: int) -> float:
    """The least CPU time of a call [us]."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e6 * min(times)
