"""Predictive control: an iteration of iLQR alone and in a batch, a tick of the controller, and rollouts of samples.

The same problem for all: an end effector to a pose in 50 steps of 20 ms, with costs of torque and velocity and limits
of torque. Times are CPU times, the minimum of several runs, of one run of this program; compare within it only.

Crocoddyl's BoxFDDP runs beside on the same robot file where Crocoddyl is installed, from the same torques. With `pin`
4.1 it crashes: install `crocoddyl` and `pin<4.1` in an environment of their own, and name its Python with --crocoddyl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .store import Store

if TYPE_CHECKING:
    from rbydyn_jax import Model

FILE, STEPS, DT = "mpc.json", 50, 0.02
WEIGHTS = {"pose": 1.0, "velocity": 1e-2, "effort": 1e-4, "end": 100.0}


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `mpc` to the command line."""
    command = commands.add_parser("mpc", help="predictive control: time of an iteration, a tick and a rollout")
    command.add_argument("--robots", default="panda,rby1a", help="some of panda, rby1a")
    command.add_argument("--batch", type=int, default=64, help="problems in a batch; 0 is none")
    command.add_argument("--repeats", type=int, default=10)
    command.add_argument("--crocoddyl", help="a Python that has crocoddyl; default is this one")
    command.add_argument("--output", type=Path, help="default: in the results")
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    import jax

    jax.config.update("jax_enable_x64", True)
    output = arguments.output or arguments.results / FILE
    about = Store(output, keep=False).about
    found: dict[str, Any] = {**about, "steps": STEPS, "batch": arguments.batch, "robots": []}
    for name in arguments.robots.split(","):
        record = _measure(name, arguments.batch, arguments.repeats)
        record |= _crocoddyl(name, arguments.crocoddyl or sys.executable, record.pop("problem"))
        found["robots"].append(record)
        print("   ", record, file=sys.stderr)
        output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = ("robot", "", "one iteration from the start, CPU ms", "to the end", "iterations", "cost")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in found["robots"]:
        for who, prefix in (("rbydyn_jax", ""), ("Crocoddyl", "crocoddyl_")):
            if f"{prefix}one" in r:
                one, solve, count, cost = (r[f"{prefix}{key}"] for key in ("one", "solve", "iterations", "cost"))
                lines.append(f"| {r['robot']} | {who} | {one:.2f} | {solve:.1f} | {count} | {cost:.6g} |")
    head = (
        "robot",
        "an iteration, CPU ms",
        "in a batch",
        "a knot of its backward sweep, us",
        "without limits",
        "a tick",
        "us per sampled step, float32",
        "first call [s]",
    )
    lines += ["", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in found["robots"]:
        keys = ("iteration_ms", "batch_ms", "knot_us", "free_knot_us", "tick_ms", "sample_us", "first_s")
        numbers = [r[key] for key in keys]
        lines.append(f"| {r['robot']} | " + " | ".join("" if x is None else f"{x:.2f}" for x in numbers) + " |")
    return "\n".join(lines)


def _robot(name: str) -> tuple[Model, str]:
    import equinox as eqx
    import jax.numpy as jnp

    from rbydyn_jax import robots

    model, link = {"panda": (robots.panda_like(), "tool"), "rby1a": (robots.rby1a(), "ee_right")}[name]
    return eqx.tree_at(lambda m: m.damping, model, jnp.zeros(model.nv)), link  # Crocoddyl has none


def _start(model: Model) -> Any:
    import jax.numpy as jnp

    from rbydyn_jax import neutral

    return jnp.clip(neutral(model) + 0.3, model.position_lower, model.position_upper)


def _target(model: Model, link: str) -> Any:
    import jax.numpy as jnp

    from rbydyn_jax import link_pose

    return link_pose(model, jnp.clip(_start(model) + 0.4, model.position_lower, model.position_upper), link)


def _measure(name: str, batch: int, repeats: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax.planning import ControlProblem, JointEffort, JointVelocity, PoseGoal, SoftGoal, ilqr, mpc, mppi

    model, link = _robot(name)
    q, v = _start(model), jnp.zeros(model.nv)
    target = _target(model, link)
    costs = [JointEffort(WEIGHTS["effort"]), JointVelocity(WEIGHTS["velocity"])]
    costs += [SoftGoal(PoseGoal(link, target), WEIGHTS["pose"])]
    ends = [SoftGoal(PoseGoal(link, target), WEIGHTS["end"]), JointVelocity(1.0)]
    problem = ControlProblem(model, costs, ends, dt=DT, steps=STEPS)

    def solve(count: int, tolerance: float | None = 0.0) -> Callable[[Any], Any]:
        return jax.jit(lambda q: ilqr(problem, q, v, iterations=count, tolerance=tolerance))

    def least(f: Callable[[], Any]) -> float:
        return min(_timed(f) for _ in range(repeats))

    one, eleven, whole = solve(1), solve(11), solve(200, None)
    first = _timed(lambda: one(q).cost)
    for program in (eleven, whole):
        program(q)
    single = least(lambda: one(q))
    iteration = (least(lambda: eleven(q)) - single) / 10.0
    result = whole(q)
    together = None
    if batch:
        starts = jnp.clip(q[None] + 0.05 * jax.random.normal(jax.random.key(0), (batch, model.nq)), -3.0, 3.0)
        short, long = (jax.jit(jax.vmap(lambda q, f=f: f(q).cost)) for f in (one, eleven))
        for program in (short, long):
            program(starts)
        together = (least(lambda: long(starts)) - least(lambda: short(starts))) / 10.0 / batch
    fourth = jax.jit(lambda q: ilqr(problem, q, v, iterations=4))(q)
    wide = {"tau_lower": jnp.full(model.nv, -jnp.inf), "tau_upper": jnp.full(model.nv, jnp.inf)}
    knots = []
    for todo in (problem, ControlProblem(model, costs, ends, dt=DT, steps=STEPS, **wide)):
        sweep = _backward(todo, fourth)
        sweep()
        knots.append(least(lambda sweep=sweep: [sweep() for _ in range(20)]) / 20 / STEPS)
    controller, at, still = mpc(problem), np.asarray(q), np.zeros(model.nv)
    for _ in range(2):
        controller(at, still)
    tick = least(lambda: controller(at, still))
    samples = 1024
    light = jax.tree.map(lambda x: x.astype(jnp.float32), problem)
    sampled = jax.jit(lambda key: mppi(light, q.astype(jnp.float32), v, key, samples=samples).cost)
    sampled(jax.random.key(0))
    sample = least(lambda: sampled(jax.random.key(1))) / samples / STEPS
    return {
        "robot": name,
        "iteration_ms": 1e3 * iteration,
        "one": 1e3 * single,
        "solve": 1e3 * least(lambda: whole(q)),
        "iterations": int(result.iterations),
        "cost": float(result.cost),
        "problem": problem,
        "batch_ms": None if together is None else 1e3 * together,
        "knot_us": 1e6 * knots[0],
        "free_knot_us": 1e6 * knots[1],
        "tick_ms": 1e3 * tick,
        "sample_us": 1e6 * sample,
        "first_s": first,
    }


def _backward(problem: Any, motion: Any) -> Callable[[], Any]:
    """The backward sweep along a motion."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax.planning._riccati import backward, expanded, linearized

    steps = jax.jit(linearized)(problem, motion.qs, motion.vs)
    running, end = jax.jit(expanded)(problem, motion.qs, motion.vs, motion.taus, jnp.zeros(()))
    sweep, damping = jax.jit(backward), jnp.asarray(1e-6)
    return lambda: sweep(problem, steps, running, end, motion.taus, damping)


def _timed(f: Callable[[], Any]) -> float:
    import jax

    started = time.process_time()
    jax.block_until_ready(f())
    return time.process_time() - started


CROCODDYL = """
import json, sys, time
import crocoddyl, numpy as np, pinocchio as pin
urdf, names, armature, link, q, target, steps, dt, weights, limits = json.loads(sys.stdin.read())
model = pin.buildModelFromUrdf(urdf)
order = [names.index(name) for name in list(model.names)[1:]]
model.armature = np.array(armature)[order]
state, act = crocoddyl.StateMultibody(model), None
act = crocoddyl.ActuationModelFull(state)
q = pin.integrate(model, pin.neutral(model), np.array(q)[order])
frame = model.getFrameId(link)
data = model.createData()
place = pin.SE3(np.array(target))
def costs(pose, velocity, effort):
    total = crocoddyl.CostModelSum(state)
    reach = crocoddyl.ResidualModelFramePlacement(state, frame, place)
    scaled = crocoddyl.ActivationModelWeightedQuad(np.array([100.0] * 3 + [1.0] * 3))
    total.addCost("pose", crocoddyl.CostModelResidual(state, scaled, reach), pose)
    still = crocoddyl.ActivationModelWeightedQuad(np.array([0.0] * model.nv + [1.0] * model.nv))
    rest = crocoddyl.ResidualModelState(state, np.zeros(state.nx), model.nv)
    total.addCost("velocity", crocoddyl.CostModelResidual(state, still, rest), velocity)
    if effort:
        total.addCost("effort", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state)), effort)
    return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, act, total)
running = crocoddyl.IntegratedActionModelEuler(costs(weights["pose"], weights["velocity"], weights["effort"]), dt)
end = crocoddyl.IntegratedActionModelEuler(costs(weights["end"], 1.0, 0.0), 0.0)
limits = np.array([1e6 if x is None else x for x in limits])[order]
running.u_lb, running.u_ub = -limits, limits
x = np.concatenate([q, np.zeros(model.nv)])
hold = np.clip(pin.computeGeneralizedGravity(model, data, q), -limits, limits)
def best(count, stop, kind=crocoddyl.SolverBoxFDDP):
    least = 1e9
    for _ in range(5):
        solver = kind(crocoddyl.ShootingProblem(x, [running] * steps, end))
        solver.th_stop = stop
        started = time.process_time()
        solver.solve([x] * (steps + 1), [hold] * steps, count, True)
        least = min(least, time.process_time() - started)
    return 1e3 * least, solver
one, _ = best(1, 1e-16)
free, _ = best(1, 1e-16, crocoddyl.SolverFDDP)  # without limits
whole, solver = best(200, 1e-9)
taus = [u[np.argsort(order)].tolist() for u in solver.us]
found = {"one": one, "one_without_limits": free, "solve": whole, "iterations": solver.iter + 1, "taus": taus}
print(json.dumps(found))
"""


def _crocoddyl(name: str, python: str, problem: Any) -> dict[str, Any]:
    """BoxFDDP, in a process of its own, which may crash; the cost of its torques is measured as that of ours."""
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import save_urdf

    model, link = _robot(name)
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "robot.urdf"
        save_urdf(model, urdf)
        limits = [float(x) if np.isfinite(x) else None for x in np.asarray(model.effort_limit)]
        q, target = np.asarray(_start(model)).tolist(), np.asarray(_target(model, link)).tolist()
        names, armature = list(model.joint_names), np.asarray(model.armature).tolist()
        given = [str(urdf), names, armature, link, q, target, STEPS, DT, WEIGHTS, limits]
        ran = subprocess.run(
            [python, "-c", CROCODDYL], input=json.dumps(given), capture_output=True, text=True, timeout=300
        )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        print(f"no crocoddyl: {ran.stderr.strip()[-300:]}", file=sys.stderr)
        return {}
    found = json.loads(lines[-1])
    taus = jnp.asarray(found.pop("taus"))
    qs, vs = problem.rollout(_start(model), jnp.zeros(model.nv), taus)
    found["cost"] = float(problem.cost(qs, vs, taus))
    return {f"crocoddyl_{key}": value for key, value in found.items()}
