"""`sensor_msgs/msg/JointState`: measured positions, velocities and forces of joints."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._check import check_flag
from ..._errors import ArgumentError
from ...model.model import Model
from ._joints import Joints
from ._messages import filled, has, names, numbers
from .poses import from_odometry, from_pose

_KIND = "a JointState"


class JointValues(NamedTuple):
    """What a JointState tells of a robot.

    Attributes:
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s]; None if the message has no velocities.
        tau: Generalized forces [N m, N]; None if the message has no efforts.
    """

    q: np.ndarray
    v: np.ndarray | None
    tau: np.ndarray | None


def from_joint_state(
    model: Model, message: Any, *, base: Any = None, q0: Any = None, ignore_extra: bool = False
) -> JointValues:
    """Configuration, velocity and forces from a message, whatever the order of its joints.

    Joints that mimic others follow these, whatever the message says of them. A velocity or an effort that the message
    has as NaN, which ros2_control publishes where it has no measurement, stays NaN.

    Args:
        model: The robot.
        message: A `sensor_msgs/msg/JointState`; velocity and effort may be empty.
        base: Of a floating base: a `geometry_msgs/msg/Pose` (with velocity zero) or a `nav_msgs/msg/Odometry`, whose
            child frame is the base; default is that of `q0`.
        q0: Configuration of the joints that the message does not have, whose velocities and forces are zero; without
            it, it must have all.
        ignore_extra: Whether the message may have joints that the robot does not have.

    Raises:
        ArgumentError: A joint is missing, or comes twice; there are no positions, or one is not finite, of `q0` too.
        DtypeError: The message has no such fields, or they are not numbers.
        ModelError: There is a `base`, and no floating joint at the robot's root.
        NameNotFoundError: The robot has no joint of that name.
        ShapeError: The numbers are not as many as the names.

    Example:
        >>> message = {"name": ["elbow", "shoulder"], "position": [0.2, 0.1], "velocity": [], "effort": [3.0, 5.0]}
        >>> state = compat.ros.from_joint_state(robots.two_link_arm(), message)
        >>> state.q.tolist(), state.v, state.tau.tolist()
        ([0.1, 0.2], None, [5.0, 3.0])
    """
    joints = Joints(model)
    check_flag(ignore_extra, "ignore_extra")
    given = names(message, "name", _KIND)
    found = joints.index(given, ignore_extra)
    fields = [numbers(message, name, _KIND) for name in ("position", "velocity", "effort")]
    for name, x in zip(("position", "velocity", "effort"), fields, strict=True):
        if len(x):
            numbers(message, name, _KIND, len(given))
    position, *rest = fields
    if found and not len(position):
        raise ArgumentError("position of a JointState must not be empty")
    if q0 is None:
        joints.check_complete([*found, *([] if base is None else [joints.base()])], _KIND)
    q = np.zeros(joints.model.nq) if q0 is None else joints.configuration(q0, "q0")
    for i, k in found.items():
        if not np.isfinite(position[k]):
            raise ArgumentError(f"position of {given[k]!r} in {_KIND} must be finite, got {position[k]}")
        joints.set_position(q, i, position[k])
    rates: list[np.ndarray | None] = []
    for values in rest:
        own = np.zeros(joints.model.nv)
        for i, k in found.items() if len(values) else ():
            own[joints.tree.v_slices[i]] = values[k]
        rates.append(own if len(values) else None)
    if base is not None:
        at = joints.base()
        pose, twist = from_odometry(base) if has(base, "twist.twist") else (from_pose(base), np.zeros(6))
        q[joints.tree.q_slices[at]] = pose
        if (v := rates[0]) is not None:
            v[joints.tree.v_slices[at]] = twist
    return JointValues(q, *rates)


def to_joint_state(model: Model, q: Any, v: Any = None, tau: Any = None, message: Any = None) -> Any:
    """The fields of a JointState but for its header, or the message with them.

    It has the joints with one freedom: those that mimic others, too, with an effort of zero, since that of the joint
    that they follow holds both.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s]; None leaves the field empty.
        tau: Generalized forces [N m, N]; None leaves the field empty.
        message: A `sensor_msgs/msg/JointState` that is filled.

    Raises:
        ArgumentError: A position is not finite.
        DtypeError: An argument does not consist of real numbers, or the message has no such fields.
        ShapeError: An argument has another size.

    Example:
        >>> compat.ros.to_joint_state(robots.two_link_arm(), jnp.array([0.5, 0.25]), tau=jnp.array([1.0, 2.0]))
        {'name': ['shoulder', 'elbow'], 'position': [0.5, 0.25], 'velocity': [], 'effort': [1.0, 2.0]}
    """
    joints = Joints(model)
    q = joints.configuration(q)
    tree, shown = joints.tree, [i for i in range(joints.model.nb) if joints.tree.joints[i].nv == 1]
    velocity = effort = []
    if v is not None:
        v = joints.velocity(v, "v")
        velocity = [float(joints.rate(v, i)) for i in shown]
    if tau is not None:
        tau = joints.velocity(tau, "tau")
        effort = [float(tau[tree.v_slices[i].start]) if tree.mimics[i] is None else 0.0 for i in shown]
    fields = {
        "name": [tree.joint_names[i] for i in shown],
        "position": [float(joints.position(q, i)) for i in shown],
        "velocity": velocity,
        "effort": effort,
    }
    return filled(message, fields)
