"""Whole-body inverse dynamics: Talos on two feet, beside quadprog and ProxQP on Pinocchio's matrices.

The same quadratic program for all: accelerations, torques and wrenches of Talos for tasks of its centre of mass, its
momentum and its posture, with wrench cones and limits of torque. A peer computes its matrices with Pinocchio and
solves for accelerations and wrenches, torques eliminated; its optimum is compared with ours. Times are CPU times of one
core, the minimum of several runs, of one run of this program; compare within it only.

quadprog comes with the extra `test`, ProxQP with `benchmark`. `against_tsid` compares with TSID.
"""

from __future__ import annotations

import argparse
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .case import example_robot
from .store import Store

FILE, MU, FRICTION = "whole_body.json", 1e-2, 0.6
HALF, FEET = (0.1, 0.06), ("left_sole_link", "right_sole_link")
WEIGHTS = {"com": 10.0, "posture": 0.1, "momentum": 1e-2}
URDF, SRDF = "talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf"


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `whole_body` to the command line."""
    command = commands.add_parser("whole_body", help="whole-body inverse dynamics of Talos: time of a state in a batch")
    command.add_argument("--batch", type=int, default=256)
    command.add_argument("--repeats", type=int, default=10)
    command.add_argument(
        "--output", type=Path, help="default: in the results, what was measured on other versions kept"
    )
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    import jax

    jax.config.update("jax_enable_x64", True)
    output = arguments.output or arguments.results / FILE
    record = {"batch": arguments.batch, "rows": measured(arguments.batch, arguments.repeats)}
    found = Store(output, keep=False).save_run(record)
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = (
        "jax",
        "Talos",
        "us a state, CPU",
        "solved",
        "equal to quadprog",
        "largest difference",
        "compiled in [s]",
    )
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for run_ in found["runs"]:
        for r in run_["rows"]:
            difference = "" if r["difference"] is None else f"{r['difference']:.0e}"
            compiled = "" if r["compile_s"] is None else f"{r['compile_s']:.0f}"
            cells = (run_["versions"].get("jax", ""), r["name"], f"{r['us']:.0f}", f"{r['solved']} of {run_['batch']}")
            lines.append("| " + " | ".join((*cells, str(r["equal"] or ""), difference, compiled)) + " |")
    return "\n".join(lines)


def measured(batch: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each contestant, on two feet and on one."""
    rows = []
    for feet in (FEET, FEET[:1]):
        name = "two feet" if len(feet) == 2 else "one foot"
        model, q0, states = problem(feet, batch)
        ours, first = _ours(model, q0, feet, states, repeats)
        peer = Peer(list(model.joint_names[1:]), q0, feet)
        want = None
        for who in ("quadprog", "ProxQP"):
            row = peer.race(who, states, min(repeats, 3))
            if row is None:
                continue
            x, row = row
            want = x if who == "quadprog" else want
            rows.append(
                {"name": f"{name}, Pinocchio + {who}", **row, "equal": None, "difference": None, "compile_s": None}
            )
            print("   ", rows[-1], file=sys.stderr)
        differences = None if want is None else np.abs(ours - want).max(axis=1) / np.abs(want).max(axis=1)
        equal = None if differences is None else int((differences < 1e-6).sum())
        worst = None if differences is None else float(np.nanmax(differences))
        rows.append({"name": f"{name}, rbydyn_jax", **first, "equal": equal, "difference": worst})
        print("   ", rows[-1], file=sys.stderr)
    return rows


def problem(feet: tuple[str, ...], batch: int) -> tuple[Any, np.ndarray, tuple[np.ndarray, ...]]:
    """Talos, its posture, and configurations near it, velocities, targets of the centre of mass."""
    import jax
    import jax.numpy as jnp

    from rbydyn_jax import center_of_mass, integrate, link_pose, load_urdf, neutral

    model = load_urdf(example_robot(URDF), floating_base=True)
    posture = next(x for x in ET.parse(example_robot(SRDF)).iter("group_state") if x.get("name") == "half_sitting")
    q0 = np.array(neutral(model))
    for joint in posture:
        name, value = joint.get("name", ""), joint.get("value", "")
        if name in model.joint_names and " " not in value:
            q0[model.tree.q_slices[model.joint_index(name)]] = float(value)
    q0[6] = 1.01927
    rng = np.random.default_rng(7)
    steps = rng.uniform(-0.05, 0.05, (batch, model.nv))
    qs = np.asarray(jax.vmap(lambda d: integrate(model, jnp.asarray(q0), d))(jnp.asarray(steps)))
    vs = rng.uniform(-0.1, 0.1, (batch, model.nv))
    com = np.array(center_of_mass(model, jnp.asarray(q0)))
    com[:2] = np.mean([np.asarray(link_pose(model, jnp.asarray(q0), foot))[:2, 3] for foot in feet], axis=0)
    return model, q0, (qs, vs, com + rng.uniform(-0.03, 0.03, (batch, 3)))


def _ours(
    model: Any, q0: np.ndarray, feet: tuple[str, ...], states: Any, repeats: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Accelerations and wrenches, and the row."""
    import jax

    from rbydyn_jax.whole_body import Com, Momentum, PatchContact, Posture, inverse_dynamics

    @jax.jit
    @jax.vmap
    def solve(q: Any, v: Any, target: Any) -> Any:
        tasks = [Com(target, WEIGHTS["com"]), Posture(q0, WEIGHTS["posture"]), Momentum(weight=WEIGHTS["momentum"])]
        contacts = [PatchContact(foot, None, HALF, FRICTION) for foot in feet]
        return inverse_dynamics(model, q, v, tasks, contacts, damping=MU)

    inputs = [jax.numpy.asarray(x) for x in states]
    start = time.process_time()
    compiled = solve.lower(*inputs).compile()
    seconds = time.process_time() - start
    result = jax.block_until_ready(compiled(*inputs))
    us = _fastest(lambda: jax.block_until_ready(compiled(*inputs)), repeats) / len(states[0])
    found = np.concatenate([result.a, *result.forces], axis=1)
    return found, {"us": us, "solved": int((result.status == 0).sum()), "compile_s": seconds}


def _fastest(call: Callable[[], Any], repeats: int) -> float:
    """The least CPU time of a call [us]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e6 * min(times)


class Peer:
    """The program in accelerations a and wrenches f, by Pinocchio, in Pinocchio's order [linear; angular] inside."""

    def __init__(self, ours: list[str], q0: np.ndarray, feet: tuple[str, ...]) -> None:
        import jax.numpy as jnp
        import pinocchio as pin

        from rbydyn_jax.spatial.cones import wrench_cone_faces

        self.pin, self.model = pin, pin.buildModelFromUrdf(str(example_robot(URDF)), pin.JointModelFreeFlyer())
        self.data, self.feet = self.model.createData(), [self.model.getFrameId(foot) for foot in feet]
        # Our order of the joints behind the base, that of the file, in Pinocchio's.
        names = list(self.model.names[2:])
        self.order = np.array([ours.index(name) for name in names])
        self.back = np.argsort(self.order)
        self.q0, self.mass = self.q(q0), pin.computeTotalMass(self.model)
        swap = [3, 4, 5, 0, 1, 2]
        self.faces = np.asarray(wrench_cone_faces(jnp.array(HALF), FRICTION))[:, swap]
        self.faces = self.faces / np.linalg.norm(self.faces, axis=1, keepdims=True)
        self.effort = np.array(self.model.effortLimit[6:])

    def q(self, q: np.ndarray) -> np.ndarray:
        """Our configuration in Pinocchio's coordinates: position, quaternion xyzw, joints."""
        return np.concatenate([q[4:7], q[1:4], q[:1], q[7:][self.order]])

    def v(self, v: np.ndarray) -> np.ndarray:
        """Our velocity in Pinocchio's coordinates."""
        return np.concatenate([v[3:6], v[:3], v[6:][self.order]])

    def matrices(self, q: np.ndarray, v: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, ...]:
        """P, c, and C, d, A, b of C x >= d, A x = b."""
        pin, model, data = self.pin, self.model, self.data
        nv, n = model.nv, model.nv + 6 * len(self.feet)
        q, v = self.q(q), self.v(v)
        pin.computeAllTerms(model, data, q, v)
        pin.computeCentroidalMapTimeVariation(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, np.zeros(nv))
        pin.updateFramePlacements(model, data)
        M = np.triu(data.M) + np.triu(data.M, 1).T
        local = pin.ReferenceFrame.LOCAL
        K = np.concatenate([pin.getFrameJacobian(model, data, foot, local) for foot in self.feet])
        k = np.concatenate([pin.getFrameAcceleration(model, data, foot, local).vector for foot in self.feet])
        rows = np.concatenate([M, -K.T], axis=1)
        P, c = np.zeros((n, n)), np.zeros(n)
        P[np.arange(6, nv), np.arange(6, nv)] = MU + WEIGHTS["posture"]
        P[np.arange(nv, n), np.arange(nv, n)] = MU / self.mass**2
        wanted = 100 * pin.difference(model, q, self.q0) - 20 * v
        c[6:nv] = -WEIGHTS["posture"] * wanted[6:]
        A, drift = np.array(data.Ag), np.array(data.dAg) @ v
        J, rate = A[:3] / self.mass, 100 * (target - data.com[0]) - 20 * data.vcom[0] - drift[:3] / self.mass
        for matrix, right, weight in ((J, rate, WEIGHTS["com"]), (A, -10 * A @ v - drift, WEIGHTS["momentum"])):
            P[:nv, :nv] += weight * matrix.T @ matrix
            c[:nv] -= weight * matrix.T @ right
        cone = np.zeros((len(self.faces) * len(self.feet), n))
        for i in range(len(self.feet)):
            cone[i * len(self.faces) : (i + 1) * len(self.faces), nv + 6 * i : nv + 6 * i + 6] = -self.faces
        C = np.concatenate([rows[6:], -rows[6:], cone])
        h = data.nle
        d = np.concatenate([-self.effort - h[6:], -self.effort + h[6:], np.zeros(len(cone))])
        equal = np.concatenate([rows[:6], np.concatenate([K, np.zeros((len(K), n - nv))], axis=1)])
        return P, c, C, d, equal, np.concatenate([-h[:6], -k])

    def race(self, who: str, states: tuple[np.ndarray, ...], repeats: int) -> tuple[np.ndarray, dict[str, Any]] | None:
        """All optima in our order, and the row; None if the solver is not installed."""
        try:
            solve = {"quadprog": self._quadprog, "ProxQP": self._proxqp}[who]()
        except ImportError:
            return None
        found: list[Any] = []

        def all_states() -> None:
            found[:] = [solve(*self.matrices(*state)) for state in zip(*states, strict=True)]

        us = _fastest(all_states, repeats) / len(states[0])
        solved = sum(x is not None for x in found)
        nv = self.model.nv
        nothing = np.full(nv + 6 * len(self.feet), np.nan)
        x = np.stack([nothing if y is None else y for y in found])
        wrenches = x[:, nv:].reshape(len(x), -1, 2, 3)[:, :, ::-1].reshape(len(x), -1)
        ours = x[:, 3:6], x[:, :3], x[:, 6:nv][:, self.back], wrenches
        return np.concatenate(ours, axis=1), {"us": us, "solved": solved}

    @staticmethod
    def _quadprog() -> Callable[..., Any]:
        import quadprog

        def solve(P: Any, c: Any, C: Any, d: Any, A: Any, b: Any) -> Any:
            try:
                return quadprog.solve_qp(P, -c, np.concatenate([A, C]).T, np.concatenate([b, d]), len(b))[0]
            except ValueError:
                return None

        return solve

    @staticmethod
    def _proxqp() -> Callable[..., Any]:
        import proxsuite

        kept: dict[int, Any] = {}

        def solve(P: Any, c: Any, C: Any, d: Any, A: Any, b: Any) -> Any:
            qp = kept.get(len(c))
            if qp is None:
                qp = kept[len(c)] = proxsuite.proxqp.dense.QP(len(c), len(b), len(d))
                qp.settings.eps_abs, qp.settings.eps_rel = 1e-9, 0.0
                qp.settings.initial_guess = proxsuite.proxqp.InitialGuess.EQUALITY_CONSTRAINED_INITIAL_GUESS
                qp.init(P, c, A, b, C, d, None)
            else:
                qp.update(P, c, A, b, C, d, None)
            qp.solve()
            return (
                np.array(qp.results.x)
                if qp.results.info.status == proxsuite.proxqp.QPSolverOutput.PROXQP_SOLVED
                else None
            )

        return solve
