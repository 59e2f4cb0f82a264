"""Rotations and placements in plain numpy, exact where they can be: no rotation gives the identity, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..joints.rotations import SNAP, exact_sincos

Vector = Sequence[float] | np.ndarray


def rotation_from_rpy(rpy: Vector) -> np.ndarray:
    """Returns R = Rz(yaw) Ry(pitch) Rx(roll) (3, 3) for angles `rpy` [rad], exact at right angles."""
    (sr, cr), (sp, cp), (sy, cy) = (exact_sincos(float(angle)) for angle in rpy)
    matrix = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return matrix + 0.0  # no negative zeros


def rpy_from_rotation(rotation: np.ndarray) -> tuple[float, float, float]:
    """Returns (roll, pitch, yaw) [rad] with `rotation_from_rpy(rpy) == rotation` to rounding, at the gimbal lock too.

    Yaw comes first; roll and pitch are read from Rz(-yaw) R, so that an arbitrary yaw at the lock is made up for.
    """
    r = rotation
    yaw = math.atan2(r[1, 0], r[0, 0])
    s, c = exact_sincos(yaw)
    pitch = math.atan2(-r[2, 0], c * r[0, 0] + s * r[1, 0])
    roll = math.atan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    return roll + 0.0, pitch + 0.0, yaw + 0.0


def rotation_from_wxyz(wxyz: Vector) -> np.ndarray:
    """Returns the rotation (3, 3) of a quaternion (w, x, y, z) of any length but zero, exact at right angles."""
    w, x, y, z = (float(c) for c in np.asarray(wxyz, float) / np.linalg.norm(wxyz))
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) <= 2.0 * SNAP, nearest, matrix) + 0.0


def placement(xyz: Vector = (0.0, 0.0, 0.0), rotation: np.ndarray | None = None) -> np.ndarray:
    """Returns the homogeneous matrix (4, 4) of a rotation and a translation [m]."""
    matrix = np.eye(4)
    if rotation is not None:
        matrix[:3, :3] = rotation
    matrix[:3, 3] = xyz
    return matrix


def is_identity(rotation: np.ndarray) -> bool:
    """Whether a rotation (3, 3) is the identity, entry by entry."""
    return rotation.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def compose(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns T_AC = T_AB T_BC; translations only are added, and nothing is rounded that need not be."""
    if is_identity(first[:3, :3]):
        result = second.copy()
        result[:3, 3] += first[:3, 3]
        return result
    return first @ second + 0.0
