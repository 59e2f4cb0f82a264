"""A cart on a rail without gravity, with quadratic costs: problems of control that scipy solves, too."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from rbydyn_jax import Model, RobotBuilder, build_model
from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointEffort, JointVelocity, SoftGoal

MASS, DT = 2.0, 0.05
Q, R = np.diag([3.0, 0.5]), np.array([[0.02]])  # weights per second
A = np.array([[1.0, DT], [0.0, 1.0]])  # semi-implicit Euler
B = np.array([[DT**2 / MASS], [DT / MASS]])


def slider() -> Model:
    b = RobotBuilder("slider").link("base").link("cart", MASS, (0, 0, 0), (0.1, 0.1, 0.1))
    b.prismatic("rail", "base", "cart", axis=(1, 0, 0), lower=-5.0, upper=5.0)
    return build_model(b.build_description())


def riccati() -> tuple[np.ndarray, np.ndarray]:
    """The cost of an infinite horizon, and the gain, by scipy."""
    from scipy.linalg import solve_discrete_are

    P = solve_discrete_are(A, B, DT * Q, DT * R)
    return P, np.linalg.solve(DT * R + B.T @ P @ B, B.T @ P @ A)


def root_of_value(root, model, q, v, tau, t):
    return root.T @ jnp.concatenate([q, v])


def problem(steps: int = 30, **limits: Any) -> ControlProblem:
    """The cost of the horizon, and after it that of an infinite one."""
    model = slider()
    to_origin = SoftGoal(ConfigurationGoal(jnp.zeros(1)), Q[0, 0])
    costs = [to_origin, JointVelocity(Q[1, 1]), JointEffort(R[0, 0])]
    end = Partial(root_of_value, jnp.asarray(np.linalg.cholesky(riccati()[0]), model.inertias.dtype))
    return ControlProblem(model, costs, [end], dt=DT, steps=steps, **limits)


def condensed(steps: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the vector of the least squares |M u - y|^2 / 2 in the torques u that the horizon is."""
    P = riccati()[0]
    rows, right, state = [], [], (x, np.zeros((2, steps)))  # a state is s + S u
    for k in range(steps + 1):
        weight = np.linalg.cholesky(P if k == steps else DT * Q).T
        rows.append(weight @ state[1])
        right.append(-weight @ state[0])
        if k < steps:
            S = A @ state[1]
            S[:, k] += B[:, 0]
            state = A @ state[0], S
    rows.append(np.sqrt(DT * R[0, 0]) * np.eye(steps))
    right.append(np.zeros(steps))
    return np.concatenate(rows), np.concatenate(right)
