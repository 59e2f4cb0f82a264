"""`geometry_msgs/msg/Pose` and `nav_msgs/msg/Odometry`: the position and velocity of a floating base."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._check import check_finite, check_real
from ..._errors import ArgumentError
from ._messages import components, filled, get, has

_POSE, _ODOMETRY = "a Pose", "an Odometry"


def from_pose(message: Any) -> np.ndarray:
    """Coordinates [w, x, y, z, p] of a floating joint: a unit quaternion, and the position [m].

    Args:
        message: A `geometry_msgs/msg/Pose`, whose quaternion is [x, y, z, w]; or one that has it as its `pose` or
            `pose.pose`.

    Raises:
        ArgumentError: The quaternion is zero, or a number is not finite.
        DtypeError: The message has no such fields, or they are not numbers.

    Example:
        >>> position, orientation = {"x": 1.0, "y": 0.0, "z": 0.5}, {"x": 0.0, "y": 0.0, "z": 1.0, "w": 0.0}
        >>> compat.ros.from_pose({"position": position, "orientation": orientation}).tolist()
        [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5]
    """
    start = next((path for path in ("", "pose.", "pose.pose.") if has(message, f"{path}position")), "")
    p = components(message, f"{start}position", "xyz", _POSE)
    wxyz = components(message, f"{start}orientation", "wxyz", _POSE)
    return np.concatenate([_unit(wxyz, "orientation of a Pose"), p])


def _unit(quaternion: np.ndarray, name: str) -> np.ndarray:
    """A quaternion of any length with length 1."""
    size = np.abs(quaternion).max()
    if not size:
        raise ArgumentError(f"{name} must not be zero")
    scaled = quaternion / size  # so that squares neither overflow nor vanish
    return scaled / np.linalg.norm(scaled)


def to_pose(pose: Any, message: Any = None) -> Any:
    """The fields of a `geometry_msgs/msg/Pose`, or the message with them.

    Args:
        pose: [w, x, y, z, p], as the coordinates of a floating joint.
        message: A message that is filled.

    Raises:
        ArgumentError: The quaternion is zero, or a number is not finite.
        DtypeError: `pose` does not consist of real numbers, or the message has no such fields.
        ShapeError: `pose` is not of shape (7,).
    """
    x = check_real(pose, "pose", (7,))
    check_finite(x, "pose")
    wxyz, p = _unit(x[:4], "the quaternion of pose").tolist(), x[4:].tolist()
    fields = {
        "position": dict(zip("xyz", p, strict=True)),
        "orientation": dict(zip("xyzw", [*wxyz[1:], wxyz[0]], strict=True)),
    }
    return filled(message, fields)


def from_odometry(message: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates [w, x, y, z, p] and velocity [omega; v] of a floating joint, the latter in the axes of the base.

    Args:
        message: A `nav_msgs/msg/Odometry`; its `child_frame_id`, in whose axes the twist is, must be the base.

    Raises:
        ArgumentError: The quaternion is zero, or a number is not finite.
        DtypeError: The message has no such fields, or they are not numbers.
    """
    angular, linear = (components(message, f"twist.twist.{name}", "xyz", _ODOMETRY) for name in ("angular", "linear"))
    return from_pose(get(message, "pose.pose", _ODOMETRY)), np.concatenate([angular, linear])


def to_odometry(pose: Any, twist: Any, message: Any = None) -> Any:
    """The fields of a `nav_msgs/msg/Odometry` but for its header, its frame and its covariances.

    Args:
        pose: [w, x, y, z, p], as the coordinates of a floating joint.
        twist: [omega; v], as its velocity.
        message: A message that is filled.

    Raises:
        ArgumentError: The quaternion is zero, or a number is not finite.
        DtypeError: An argument does not consist of real numbers, or the message has no such fields.
        ShapeError: `pose` is not of shape (7,), or `twist` not of shape (6,).
    """
    x = check_real(twist, "twist", (6,))
    check_finite(x, "twist")
    parts = {"linear": x[3:].tolist(), "angular": x[:3].tolist()}
    rates = {name: dict(zip("xyz", part, strict=True)) for name, part in parts.items()}
    return filled(message, {"pose": {"pose": to_pose(pose)}, "twist": {"twist": rates}})
