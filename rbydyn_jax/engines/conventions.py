"""Conversions between this library's conventions and those of the reference engines, in plain numpy.

Ours: spatial vectors `[angular; linear]`, quaternions wxyz, floating q = [wxyz, p] and v = [w; v] in the frame after
the joint, planar q = [x, y, theta].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.model import Model

# Rows of [angular; linear] taken from [linear; angular], and back: the permutation is its own inverse.
SWAP = np.array([3, 4, 5, 0, 1, 2])


def float64(x) -> np.ndarray:
    """The values of an array, exactly, in the precision of the engines."""
    return np.asarray(x).astype(np.float64)


def swap_rows(a) -> np.ndarray:
    """Exchanges the angular and the linear half along the first axis."""
    return np.asarray(a)[SWAP]


def skew(p: np.ndarray) -> np.ndarray:
    """The matrix of the cross product, skew(p) x = p x x."""
    return np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])


def quat_xyzw(wxyz: np.ndarray) -> np.ndarray:
    """A quaternion with the scalar last, normalized."""
    unit = wxyz / np.linalg.norm(wxyz)
    return unit[[1, 2, 3, 0]]


def quaternion_matrix(wxyz: np.ndarray) -> np.ndarray:
    """The rotation of a quaternion of any length."""
    w, u = wxyz[0], wxyz[1:]
    n = w * w + u @ u
    return np.eye(3) + 2 * (w * skew(u) + skew(u) @ skew(u)) / n


def quaternion_of_mrp(sigma: np.ndarray) -> np.ndarray:
    """The quaternion wxyz of modified Rodrigues parameters tan(angle / 4) axis, by way of the angle."""
    length = np.linalg.norm(sigma)
    angle, axis = 4 * np.arctan(length), sigma / length if length else np.zeros(3)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


def plane_alignment(normal: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes z to `normal`; half a turn about x for -z."""
    z = np.array([0.0, 0.0, 1.0])
    if normal[2] < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    K = skew(np.cross(z, normal))
    return np.eye(3) + K + K @ K / (1 + normal[2])


def change_velocity_origin(p: np.ndarray) -> np.ndarray:
    """X with V_at_p = X V_at_origin, for twists [w; v] in the same axes."""
    X = np.eye(6)
    X[3:, :3] = -skew(p)
    return X


def com_inertia(parameters: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it, of ten parameters about the origin."""
    m, h = parameters[0], parameters[1:4]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    c = h / m if m else np.zeros(3)
    return float(m), c, about_origin + m * skew(c) @ skew(c)


def joint_values(model: Model, q: np.ndarray) -> list[np.ndarray]:
    """The position of every joint, mimic joints included: multiplier * (position of the leader) + offset."""
    q = float64(q)
    multipliers, offsets = float64(model.mimic_multipliers), float64(model.mimic_offsets)
    values = []
    for i, mimic in enumerate(model.tree.mimics):
        own = q[model.tree.q_slices[i]]
        values.append(own if mimic is None else multipliers[mimic.slot] * own + offsets[mimic.slot])
    return values


def joint_velocity_map(model: Model) -> list[np.ndarray]:
    """For every joint, the matrix (nv of the joint, nv) that gives its velocity."""
    multipliers, maps = float64(model.mimic_multipliers), []
    for i, (joint, mimic) in enumerate(zip(model.tree.joints, model.tree.mimics, strict=True)):
        selection = np.zeros((joint.nv, model.nv))
        selection[:, model.tree.v_slices[i]] = np.eye(joint.nv)
        maps.append(selection if mimic is None else multipliers[mimic.slot] * selection)
    return maps


def turned_parameters(turn: np.ndarray) -> np.ndarray:
    """The (10, 10) matrix that turns inertial parameters [m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] by a rotation."""
    entries = np.array([(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)])
    out = np.zeros((10, 10))
    out[0, 0], out[1:4, 1:4] = 1.0, turn
    for k, (i, j) in enumerate(entries):
        one = np.zeros((3, 3))
        one[i, j] = one[j, i] = 1.0
        out[4:, 4 + k] = (turn @ one @ turn.T)[tuple(entries.T)]
    return out


def batch(function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
    """Applies a function of an engine to each row of the arguments, and stacks."""
    return np.stack([np.asarray(function(*row)) for row in zip(*arguments, strict=True)])
