"""A planar arm with a pole in its way, and the task to get past it."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from rbydyn_jax import Model, RobotBuilder, build_model, collision, link_pose
from rbydyn_jax.collision import ShapePairs

Q_START, Q_GOAL = (-0.9, 0.6), (0.7, 0.6)

NO_POSES = [  # what is said of it, and a matrix
    ("target must be a rigid transform", np.zeros((4, 4))),
    ("target must be a rigid transform", np.eye(4) + np.eye(4)[[3] * 4] * [[0], [0], [0], [0.1]]),
    ("target must be finite", np.eye(4) * np.nan),
    ("target must be a rigid transform", np.diag([1.0, 1.0, 1.01, 1.0])),
    ("target must be a rigid transform", np.diag([1.0, 1.0, -1.0, 1.0])),
]


def pole_arm(**limits: float) -> Model:
    """Two links of 0.5 m and 0.4 m that turn about z; a pole stands at x = 0.9 m, where the tip would pass."""
    b = RobotBuilder("pole_arm").link("base").capsule("base", 0.4, 0.03, xyz=(0.9, 0, 0))
    b.link("upper", 2.0, (0.25, 0, 0), (0.002, 0.05, 0.05)).link("lower", 1.0, (0.2, 0, 0), (0.001, 0.015, 0.015))
    limits = {"lower": -2.8, "upper": 2.8, "velocity": 6.5, "acceleration": 36.0, "effort": 23.0} | limits
    b.revolute("shoulder", "base", "upper", axis=(0, 0, 1), **limits)
    b.revolute("elbow", "upper", "lower", xyz=(0.5, 0, 0), axis=(0, 0, 1), **limits)
    b.capsule("lower", 0.3, 0.03, xyz=(0.25, 0, 0), rpy=(0, math.pi / 2, 0))
    b.link("tool").fixed("tool_mount", "lower", "tool", xyz=(0.4, 0, 0))
    return build_model(b.build_description())


def pole_pairs(model: Model) -> ShapePairs:
    return collision.pairs(model, [("base", "lower")])


def q_start(dtype=float) -> jnp.ndarray:
    return jnp.asarray(np.array(Q_START), dtype)


def target(model: Model, dtype=float) -> jnp.ndarray:
    return link_pose(model, jnp.asarray(np.array(Q_GOAL), dtype), "tool")
