"""Whole-body inverse dynamics of Talos beside TSID: whether both find the same accelerations and wrenches.

Tasks of the centre of mass and of the posture, soles at rest, limits of torque. TSID has forces at the corners of a
sole with one pyramid each, whose sum is our wrench cone where its friction is ours over the root of two. It adds 1e-8
to the Hessian of these forces, which our program does not have: what is left of the difference falls with the damping,
which is the weight of the wrenches.

TSID is in no extra: its wheel wants a Pinocchio of its own, `pip install tsid==1.7.1 pin==3.4.0 cmeel-urdfdom==4.0.1
"cmeel-tinyxml2<11"`.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

import numpy as np

from . import whole_body as wbc
from .case import example_robot


def add_command(commands: argparse._SubParsersAction, _: Path) -> None:
    """Adds `tsid` to the command line."""
    command = commands.add_parser("tsid", help="whole-body inverse dynamics of Talos beside TSID: the same optimum")
    command.add_argument("--batch", type=int, default=16)
    command.add_argument("--dampings", type=float, nargs="+", default=[wbc.MU, 1.0, 100.0, 1e4])


def run(arguments: argparse.Namespace) -> None:
    """Prints the largest difference, relative to the largest entry, for each damping."""
    import jax

    jax.config.update("jax_enable_x64", True)
    print("| Talos | damping | solved by both | largest difference |\n|---|---|---|---|")
    for feet, name in ((wbc.FEET, "two feet"), (wbc.FEET[:1], "one foot")):
        model, q0, states = wbc.problem(feet, arguments.batch)
        states = (states[0], _at_rest(model, feet, *states[:2]), states[2])
        ours, theirs = _Ours(model, q0, feet), _Tsid(model, q0, feet)
        for damping in arguments.dampings:
            found = ours(states, damping)
            wanted = [theirs(*state, damping) for state in zip(*states, strict=True)]
            both = [(x, y) for x, y in zip(found, wanted, strict=True) if x is not None and y is not None]
            # Accelerations and wrenches, each relative to its own largest entry.
            errors = [float(np.abs(a - b).max() / np.abs(b).max()) for x, y in both for a, b in zip(x, y, strict=True)]
            print(f"| {name} | {damping:g} | {len(both)} of {len(found)} | {max(errors, default=np.nan):.0e} |")


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

        self.solve = solve

    def __call__(self, states: tuple[np.ndarray, ...], damping: float) -> list[Any]:
        result = self.solve(*states, damping)
        wrenches = np.concatenate(result.forces, axis=1)
        rows = zip(np.asarray(result.a), wrenches, np.asarray(result.status), strict=True)
        return [(a, f) if status == 0 else None for a, f, status in rows]


class _Tsid:
    def __init__(self, model: Any, q0: np.ndarray, feet: tuple[str, ...]) -> None:
        import pinocchio as pin

        try:
            self.tsid = importlib.import_module("tsid.tsid_pywrap")  # where the wheel 1.7.1 has it
        except ImportError:
            self.tsid = importlib.import_module("tsid")
        self.feet, self.peer = feet, wbc.Peer(list(model.joint_names[1:]), q0, feet)
        free = pin.JointModelFreeFlyer()
        self.robot = self.tsid.RobotWrapper(str(example_robot(wbc.URDF)), [], free, False)
        x, y = wbc.HALF
        self.corners = np.array([[x, x, -x, -x], [y, -y, y, -y], [0.0] * 4])

    def __call__(self, q: np.ndarray, v: np.ndarray, target: np.ndarray, damping: float) -> Any:
        tsid, robot, peer = self.tsid, self.robot, self.peer
        q, v, count = peer.q(q), peer.v(v), robot.nv - 6
        program = tsid.InverseDynamicsFormulationAccForce("program", robot, False)
        program.computeProblemData(0.0, q, v)
        contacts = []
        for foot in self.feet:
            friction = wbc.FRICTION / 2.0**0.5
            contact = tsid.Contact6d(foot, robot, foot, self.corners, np.array([0.0, 0.0, 1.0]), friction, 0.0, 1e9)
            contact.setKp(np.zeros(6))
            contact.setKd(np.zeros(6))
            contact.setReference(robot.framePosition(program.data(), robot.model().getFrameId(foot)))
            contact.setForceReference(np.zeros(6))
            contact.setRegularizationTaskWeightVector(np.ones(6))
            program.addRigidContact(contact, damping / peer.mass**2)
            contacts.append(contact)
        com = self._task(tsid.TaskComEquality("com", robot), 3, 100.0, 20.0, target)
        posture = self._task(tsid.TaskJointPosture("posture", robot), count, 100.0, 20.0, peer.q0[7:])
        nothing = self._task(tsid.TaskJointPosture("damping", robot), count, 0.0, 0.0, peer.q0[7:])
        weights = (wbc.WEIGHTS["com"], wbc.WEIGHTS["posture"], damping)
        for task, weight in zip((com, posture, nothing), weights, strict=True):
            program.addMotionTask(task, weight, 1, 0.0)
        limits = tsid.TaskActuationBounds("limits", robot)
        limits.setBounds(-peer.effort, peer.effort)
        program.addActuationTask(limits, 1.0, 0, 0.0)
        solver = tsid.SolverHQuadProgFast("solver")
        solver.resize(program.nVar, program.nEq, program.nIn)
        found = solver.solve(program.computeProblemData(0.0, q, v))
        if found.status != 0:
            return None
        a = program.getAccelerations(found)
        wrenches = [c.getForceGeneratorMatrix @ program.getContactForce(c.name, found) for c in contacts]
        swapped = np.concatenate([np.concatenate([f[3:], f[:3]]) for f in wrenches])
        return np.concatenate([a[3:6], a[:3], a[6:][peer.back]]), swapped

    def _task(self, task: Any, size: int, stiffness: float, damping: float, value: np.ndarray) -> Any:
        task.setKp(np.full(size, stiffness))
        task.setKd(np.full(size, damping))
        sample = self.tsid.TrajectorySample(size)
        sample.value(value)
        task.setReference(sample)
        return task
