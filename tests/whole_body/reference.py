"""The same problems for quadprog, from Pinocchio's matrices, with torques, accelerations and forces as variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import quadprog
from scipy.optimize import linprog

from rbydyn_jax.engines.pinocchio import PinRobot


class Touch(NamedTuple):
    """A contact: its link, its frame in the link, its cone F f <= 0, the limits of its normal force."""

    link: str
    pose: np.ndarray
    faces: np.ndarray
    least: float = 0.0
    most: float = np.inf


class Wanted(NamedTuple):
    """A task: J x = b, x = [a; tau; f], and the weights of the rows."""

    J: np.ndarray
    b: np.ndarray
    weight: np.ndarray


class Whole(NamedTuple):
    """The whole program: equations A x = b, inequalities C x >= d."""

    A: np.ndarray
    b: np.ndarray
    C: np.ndarray
    d: np.ndarray

    def feasible(self) -> bool:
        """Whether any x satisfies them."""
        n = self.A.shape[1]
        found = linprog(np.zeros(n), -self.C, -self.d, self.A, self.b, bounds=(None, None), method="highs")
        assert found.status in (0, 2)
        return found.status == 0

    def best(self, tasks: Sequence[Wanted], damping: np.ndarray, slack: float = 0.0) -> np.ndarray:
        """The optimum by quadprog, on an orthonormal basis of the solutions of the equations."""
        n = self.A.shape[1]
        start = np.linalg.lstsq(self.A, self.b, rcond=None)[0]
        values = np.linalg.svd(self.A)
        rank = int((values.S > 1e-9 * values.S[0]).sum())
        Z = values.Vh[rank:].T
        P = np.diag(damping) + sum((t.J.T @ (t.weight[:, None] * t.J) for t in tasks), np.zeros((n, n)))
        c = sum((-t.J.T @ (t.weight * t.b) for t in tasks), np.zeros(n))
        H = Z.T @ P @ Z
        limits = self.C @ Z, self.d - self.C @ start
        size = np.linalg.norm(limits[0], axis=1)
        C, d = ((x[size > 1e-9].T / size[size > 1e-9]).T for x in limits)  # others cannot be changed any more
        z = quadprog.solve_qp(H, -Z.T @ (P @ start + c), C.T, d - slack)[0]
        return start + Z @ z


def rows(robot: PinRobot, q: Any, v: Any, touch: Touch) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian of a contact in its own axes, and its acceleration without those of the joints."""
    T = np.linalg.inv(touch.pose)
    R, p = T[:3, :3], T[:3, 3]
    across = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    X = np.block([[R, np.zeros((3, 3))], [across @ R, R]])[6 - touch.faces.shape[1] :]
    zero = np.zeros_like(np.asarray(v))
    return X @ robot.jacobian(q, touch.link, "local"), X @ robot.acceleration(q, v, zero, touch.link, "local")


def whole(
    robot: PinRobot,
    q: Any,
    v: Any,
    touches: Sequence[Touch],
    driven: np.ndarray,
    *,
    horizon: float | None = None,
    held: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> Whole:
    """The constraints of a state; `held` are further Jacobians and accelerations, of loops."""
    model, zero = robot.ours, np.zeros(robot.ours.nv)
    nv = model.nv
    found = [rows(robot, q, v, touch) for touch in touches]
    K = np.concatenate([np.zeros((0, nv)), *(J for J, _ in found), *(J for J, _ in held)])
    k = np.concatenate([np.zeros(0), *(x for _, x in found), *(x for _, x in held)])
    e = len(k)
    A = np.block([[robot.crba(q), -np.eye(nv), -K.T], [K, np.zeros((e, nv + e))]])
    passive = np.setdiff1d(np.arange(nv), driven)
    none = np.zeros((len(passive), 2 * nv + e))
    none[np.arange(len(passive)), nv + passive] = 1.0
    A = np.concatenate([A, none])
    b = np.concatenate([-robot.rnea(q, v, zero), -k, np.zeros(len(passive))])
    eye = np.eye(2 * nv + e)
    lower, upper = [], []  # of x

    def limit(index: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        lower.append((eye[index], np.asarray(low)))
        upper.append((eye[index], np.asarray(high)))

    effort = np.asarray(model.effort_limit)[driven]
    limit(nv + driven, -effort, effort)
    if horizon is not None:
        tree = model.tree
        single = [i for i, joint in enumerate(tree.joints) if joint.nq == 1]
        at, at_q = (np.array([s[i].start for i in single]) for s in (tree.v_slices, tree.q_slices))
        x, rate, T = np.asarray(q)[at_q], np.asarray(v)[at], horizon
        limit(at, -np.asarray(model.acceleration_limit)[at], np.asarray(model.acceleration_limit)[at])
        speed = np.asarray(model.velocity_limit)[at]
        limit(at, (-speed - rate) / T, (speed - rate) / T)
        ends = [np.asarray(y)[at_q] for y in (model.position_lower, model.position_upper)]
        limit(at, *(2 * (end - x - rate * T) / T**2 for end in ends))
    first = 2 * nv
    for touch in touches:
        size = touch.faces.shape[1]
        lower.append((-touch.faces @ eye[first : first + size], np.zeros(len(touch.faces))))
        limit(np.array([first + size - 1]), np.array([touch.least]), np.array([touch.most]))
        first += size
    C = np.concatenate([M for M, _ in lower] + [-M for M, _ in upper])
    d = np.concatenate([x for _, x in lower] + [-x for _, x in upper])
    return Whole(A, b, C[np.isfinite(d)], d[np.isfinite(d)])


def damping_of(robot: PinRobot, count: int, driven: np.ndarray, mu: float) -> np.ndarray:
    """The diagonal of the damping term."""
    nv, mass = robot.ours.nv, float(np.asarray(robot.ours.inertias)[:, 0].sum())
    own = np.zeros(nv)
    own[driven] = mu
    return np.concatenate([own, np.zeros(nv), np.full(count, mu / mass**2)])


def on_accelerations(J: np.ndarray, b: np.ndarray, weight: Any, count: int) -> Wanted:
    """A task of accelerations."""
    nothing = np.zeros((len(J), J.shape[1] + count))
    return Wanted(np.concatenate([J, nothing], axis=1), b, np.broadcast_to(weight, (len(b),)))
