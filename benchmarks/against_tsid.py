"""Whole-body inverse dynamics of Talos beside TSID: whether both find the same, and the time of a control tick.

Tasks of the centre of mass and of the posture, soles at rest, limits of torque. TSID has forces at the corners of a
sole with one pyramid each, whose sum is our wrench cone where its friction is ours over the root of two. It adds 1e-8
to the Hessian of these forces, which our program does not have: what is left of the difference falls with the damping,
which is the weight of the wrenches.

A tick of TSID sets the target, computes the program and solves it, with the formulation built once; it is called from
Python, as it usually is. Ours is one state a call, or a batch of robots or of samples. The contestants are timed in
turn; each time is the least CPU time of several runs.

TSID is in no extra: its wheel wants a Pinocchio of its own, `pip install tsid==1.7.1 pin==3.4.0 cmeel-urdfdom==4.0.1
"cmeel-tinyxml2<11"`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import whole_body as wbc
from .case import example_robot
from .store import Store

FILE, SINGLE = "tsid.json", 32


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `tsid` to the command line."""
    command = commands.add_parser("tsid", help="whole-body inverse dynamics of Talos beside TSID: optimum and time")
    command.add_argument("--dampings", type=float, nargs="+", default=[wbc.MU, 1.0, 100.0, 1e4])
    command.add_argument(
        "--batches", type=int, nargs="+", default=[64, 256], help="timed; the optima of the first compared"
    )
    command.add_argument("--repeats", type=int, default=10)
    command.add_argument(
        "--output", type=Path, help="default: in the results, what was measured on other versions kept"
    )
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints tables."""
    import jax

    jax.config.update("jax_enable_x64", True)
    store = Store(arguments.output or arguments.results / FILE, keep=False)
    found: dict[str, Any] = {"optima": [], "times": []}
    for feet, name in ((wbc.FEET, "two feet"), (wbc.FEET[:1], "one foot")):
        model, q0, states = wbc.problem(feet, max(arguments.batches))
        states = (states[0], _at_rest(model, feet, *states[:2]), states[2])
        ours = _Ours(model, q0, feet)
        for damping in arguments.dampings:
            compared = tuple(x[: arguments.batches[0]] for x in states)
            found["optima"].append({"name": name, "damping": damping} | _difference(ours, model, q0, compared, damping))
        for row in _times(ours, model, q0, states, arguments):
            found["times"].append({"name": name} | row)
            print("   ", found["times"][-1], file=sys.stderr)
        kept = store.save_run(found)
    print(tables(kept))


def tables(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    optima = ["| jax | Talos | damping | solved by both | largest difference |", "|---" * 5 + "|"]
    times = ["| jax | Talos | us a tick, CPU | over TSID |", "|---" * 4 + "|"]
    for r in found["runs"]:
        jax = r["versions"].get("jax", "")
        for x in r["optima"]:
            cells = (jax, x["name"], f"{x['damping']:g}", f"{x['both']} of {x['states']}", f"{x['difference']:.0e}")
            optima.append("| " + " | ".join(cells) + " |")
        for x in r["times"]:
            cells = (jax, f"{x['name']}, {x['who']}", f"{x['us']:.0f}", f"{x['ratio']:.2f}")
            times.append("| " + " | ".join(cells) + " |")
    return "\n".join([*optima, "", *times])


def _difference(ours: _Ours, model: Any, q0: np.ndarray, states: Any, damping: float) -> dict[str, Any]:
    """Accelerations and wrenches beside TSID's, each relative to its own largest entry."""
    theirs = _Tsid(model, q0, ours.feet, damping)
    pairs = zip(ours(states, damping), (theirs(*state) for state in zip(*states, strict=True)), strict=True)
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    errors = [float(np.abs(a - b).max() / np.abs(b).max()) for x, y in both for a, b in zip(x, y, strict=True)]
    return {"states": len(states[0]), "both": len(both), "difference": max(errors, default=np.nan)}


def _times(ours: _Ours, model: Any, q0: np.ndarray, states: Any, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for TSID, for ours one by one, and for each batch."""
    import jax

    theirs = _Tsid(model, q0, ours.feet, wbc.MU)
    ticks = [(theirs.peer.q(q), theirs.peer.v(v), target) for q, v, target in zip(*states, strict=True)]
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "TSID": (len(ticks), lambda: [theirs.tick(*tick) for tick in ticks])
    }
    for size in (1, *arguments.batches):
        rows = [tuple(jax.numpy.asarray(x[k : k + size]) for x in states) for k in range(SINGLE if size == 1 else 1)]

        def solve(rows: Any = rows) -> None:
            for row in rows:
                jax.block_until_ready(ours.solve(*row, wbc.MU))

        solve()  # compiles
        calls["rbydyn_jax, " + ("one state" if size == 1 else f"a batch of {size}")] = size * len(rows), solve
    least = dict.fromkeys(calls, np.inf)
    for _ in range(arguments.repeats):
        for who, (count, call) in calls.items():
            start = time.process_time()
            call()
            least[who] = min(least[who], 1e6 * (time.process_time() - start) / count)
    return [{"who": who, "us": us, "ratio": us / least["TSID"]} for who, us in least.items()]


def _at_rest(model: Any, feet: tuple[str, ...], q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The nearest velocities at which the feet are at rest."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import jacobian

    J = jax.jit(jax.vmap(lambda q: jnp.concatenate([jacobian(model, q, foot) for foot in feet])))(q)
    return np.stack([x - np.linalg.pinv(j) @ (j @ x) for x, j in zip(v, np.asarray(J), strict=True)])


class _Ours:
    def __init__(self, model: Any, q0: np.ndarray, feet: tuple[str, ...]) -> None:
        import jax

        from rbydyn_jax.whole_body import Com, PatchContact, Posture, inverse_dynamics

        @jax.jit
        def solve(q: Any, v: Any, target: Any, damping: Any) -> Any:
            def one(q: Any, v: Any, target: Any) -> Any:
                tasks = [Com(target, wbc.WEIGHTS["com"]), Posture(q0, wbc.WEIGHTS["posture"])]
                contacts = [PatchContact(foot, None, wbc.HALF, wbc.FRICTION) for foot in feet]
                return inverse_dynamics(model, q, v, tasks, contacts, damping=damping)

            return jax.vmap(one)(q, v, target)

        self.solve, self.feet = solve, feet

    def __call__(self, states: tuple[np.ndarray, ...], damping: float) -> list[Any]:
        result = self.solve(*states, damping)
        wrenches = np.concatenate(result.forces, axis=1)
        rows = zip(np.asarray(result.a), wrenches, np.asarray(result.status), strict=True)
        return [(a, f) if status == 0 else None for a, f, status in rows]


class _Tsid:
    """The program of TSID, built once."""

    def __init__(self, model: Any, q0: np.ndarray, feet: tuple[str, ...], damping: float) -> None:
        import pinocchio as pin

        try:
            tsid = importlib.import_module("tsid.tsid_pywrap")  # where the wheel 1.7.1 has it
        except ImportError:
            tsid = importlib.import_module("tsid")
        self.tsid, self.peer = tsid, wbc.Peer(list(model.joint_names[1:]), q0, feet)
        peer, free = self.peer, pin.JointModelFreeFlyer()
        self.robot = robot = tsid.RobotWrapper(str(example_robot(wbc.URDF)), [], free, False)
        self.program = program = tsid.InverseDynamicsFormulationAccForce("program", robot, False)
        program.computeProblemData(0.0, peer.q0, np.zeros(robot.nv))
        x, y = wbc.HALF
        corners = np.array([[x, x, -x, -x], [y, -y, y, -y], [0.0] * 4])
        up, friction = np.array([0.0, 0.0, 1.0]), wbc.FRICTION / 2.0**0.5
        self.contacts = [tsid.Contact6d(foot, robot, foot, corners, up, friction, 0.0, 1e9) for foot in feet]
        for foot, contact in zip(feet, self.contacts, strict=True):
            contact.setKp(np.zeros(6))  # at rest, wherever it is
            contact.setKd(np.zeros(6))
            contact.setReference(robot.framePosition(program.data(), robot.model().getFrameId(foot)))
            contact.setForceReference(np.zeros(6))
            contact.setRegularizationTaskWeightVector(np.ones(6))
            program.addRigidContact(contact, damping / peer.mass**2)
        count = robot.nv - 6
        self.com = self._task(tsid.TaskComEquality("com", robot), 3, 100.0, 20.0, np.zeros(3))
        posture = self._task(tsid.TaskJointPosture("posture", robot), count, 100.0, 20.0, peer.q0[7:])
        nothing = self._task(tsid.TaskJointPosture("damping", robot), count, 0.0, 0.0, peer.q0[7:])
        weights = (wbc.WEIGHTS["com"], wbc.WEIGHTS["posture"], damping)
        for task, weight in zip((self.com, posture, nothing), weights, strict=True):
            program.addMotionTask(task, weight, 1, 0.0)
        self.limits = tsid.TaskActuationBounds("limits", robot)
        self.limits.setBounds(-peer.effort, peer.effort)
        program.addActuationTask(self.limits, 1.0, 0, 0.0)
        self.tasks = posture, nothing  # which the program does not keep
        self.solver = tsid.SolverHQuadProgFast("solver")
        self.solver.resize(program.nVar, program.nEq, program.nIn)

    def tick(self, q: np.ndarray, v: np.ndarray, target: np.ndarray) -> Any:
        """The solution, its accelerations and its torques, of a state in Pinocchio's coordinates."""
        self.com.setReference(self._sample(target))
        found = self.solver.solve(self.program.computeProblemData(0.0, q, v))
        return found, self.program.getAccelerations(found), self.program.getActuatorForces(found)

    def __call__(self, q: np.ndarray, v: np.ndarray, target: np.ndarray) -> Any:
        peer, program = self.peer, self.program
        found, a, _ = self.tick(peer.q(q), peer.v(v), target)
        if found.status != 0:
            return None
        wrenches = [c.getForceGeneratorMatrix @ program.getContactForce(c.name, found) for c in self.contacts]
        swapped = np.concatenate([np.concatenate([f[3:], f[:3]]) for f in wrenches])
        return np.concatenate([a[3:6], a[:3], a[6:][peer.back]]), swapped

    def _sample(self, value: np.ndarray) -> Any:
        sample = self.tsid.TrajectorySample(len(value))
        sample.value(value)
        return sample

    def _task(self, task: Any, size: int, stiffness: float, damping: float, value: np.ndarray) -> Any:
        task.setKp(np.full(size, stiffness))
        task.setKd(np.full(size, damping))
        task.setReference(self._sample(value))
        return task
