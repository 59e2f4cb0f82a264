"""`trajectory_msgs/msg/JointTrajectory`: motions of joints by points with times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._check import check_finite, check_flag, check_sequence, check_single
from ..._errors import ArgumentError, DtypeError, NameNotFoundError
from ...model.model import Model
from ...planning.trajectory import TrajectorySamples, check_motion, sample_trajectory
from ._joints import Joints
from ._messages import filled, get, names, numbers

_KIND, _POINT = "a JointTrajectory", "a JointTrajectoryPoint"
_BILLION = 10**9


class JointMotion(NamedTuple):
    """What a JointTrajectory tells of a robot, a row for each point.

    Attributes:
        times: Times from the start [s].
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s]; None if the points have none.
        a: Accelerations [rad/s^2, m/s^2]; None if the points have none.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray | None
    a: np.ndarray | None


def to_joint_trajectory(
    model: Model,
    motion: Any,
    *,
    points: int = 101,
    joints: Sequence[str] | None = None,
    message: Any = None,
    point: Callable[[], Any] | None = None,
) -> Any:
    """The fields of a JointTrajectory but for its header, or the message with them.

    Args:
        model: The robot.
        motion: A `planning.Trajectory` or `planning.TimedPath`, or samples of one.
        points: Number of points, equally spaced in time; samples have their own.
        joints: Names of the joints; default are all with one freedom that do not mimic others.
        message: A `trajectory_msgs/msg/JointTrajectory` that is filled.
        point: The class `trajectory_msgs.msg.JointTrajectoryPoint`, with which `message` is filled.

    Raises:
        ArgumentError: `points` is less than 2, the motion is not finite, or one of `message` and `point` is missing.
        DtypeError: `motion` is not a motion, `point` no class, or a message has no such fields.
        NameNotFoundError: There is no such joint with one freedom.
        ShapeError: The motion is that of another robot, or a batch.

    Example:
        >>> motion = planning.Trajectory(jnp.zeros(2), jnp.ones((1, 2)), jnp.asarray(2.5), (0, 1), (0, 1), nv=2)
        >>> fields = compat.ros.to_joint_trajectory(robots.two_link_arm(), motion, points=3)
        >>> fields["joint_names"], fields["points"][1]["positions"], fields["points"][1]["time_from_start"]
        (['shoulder', 'elbow'], [0.5, 0.5], {'sec': 1, 'nanosec': 250000000})
    """
    own = Joints(model)
    is_sampled = isinstance(motion, TrajectorySamples)
    samples = motion if is_sampled else sample_trajectory(check_motion(motion, "motion"), points)
    check_single(np.shape(samples.q)[:-2], "motion")
    if (message is None) != (point is None):
        raise ArgumentError("message and point must be given together")
    if point is not None and not callable(point):
        raise DtypeError(f"point must be the class of a point, not one of them, got {type(point).__name__}")
    known = {own.tree.joint_names[i]: i for i in own.single}
    if joints is not None:
        check_sequence(joints, "joints", "names")
    chosen = list(known) if joints is None else list(joints)
    if unknown := [x for x in chosen if not isinstance(x, str) or x not in known]:
        raise NameNotFoundError(unknown[0], "joint", known)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ArgumentError(f"joints must name at least one joint, and each once, got {chosen}")
    q = np.stack([own.configuration(x, "motion.q") for x in np.asarray(samples.q)])
    v, a = (np.stack([own.velocity(x, "motion") for x in np.asarray(y)]) for y in (samples.v, samples.a))
    check_finite(v, "motion.v")
    check_finite(a, "motion.a")
    at = [known[name] for name in chosen]
    columns = [[own.position(q, i) for i in at], [own.rate(v, i) for i in at], [own.rate(a, i) for i in at]]
    rows = [np.reshape(x, (len(at), len(q))).T.tolist() for x in columns]
    made = [
        filled(
            None if point is None else point(),
            {"positions": x, "velocities": dx, "accelerations": ddx, "effort": [], "time_from_start": _duration(t)},
        )
        for t, x, dx, ddx in zip(np.asarray(samples.times).tolist(), *rows, strict=True)
    ]
    return filled(message, {"joint_names": chosen, "points": made})


def from_joint_trajectory(model: Model, message: Any, *, q0: Any = None, ignore_extra: bool = False) -> JointMotion:
    """Times, configurations, velocities and accelerations from a message, whatever the order of its joints.

    Args:
        model: The robot.
        message: A `trajectory_msgs/msg/JointTrajectory`; either all of its points have velocities or accelerations,
            or none.
        q0: Configuration of the joints that the message does not have, which rest; without it, it must have all.
        ignore_extra: Whether the message may have joints that the robot does not have.

    Raises:
        ArgumentError: A joint is missing, or comes twice; times do not increase, or the first is negative; a number of
            the robot's joints is not finite; or there are no points.
        DtypeError: The message has no such fields, or they are not numbers.
        NameNotFoundError: The robot has no joint of that name.
        ShapeError: The numbers of a point are not as many as the names.
    """
    own = Joints(model)
    check_flag(ignore_extra, "ignore_extra")
    given = names(message, "joint_names", _KIND)
    found = own.index(given, ignore_extra)
    if q0 is None:
        own.check_complete(list(found), _KIND)
    points = get(message, "points", _KIND)
    if isinstance(points, np.ndarray):
        points = points.tolist()
    if isinstance(points, str) or not isinstance(points, Sequence) or not len(points):
        raise ArgumentError(f"points of {_KIND} must be a sequence of at least one point, got {points!r:.100}")
    times = np.array([_seconds(x) for x in points])
    if (np.diff(times) <= 0).any() or times[0] < 0:
        raise ArgumentError(f"time_from_start must increase from point to point, from 0 on, got {times.tolist()}")
    q = np.tile(np.zeros(own.model.nq) if q0 is None else own.configuration(q0, "q0"), (len(points), 1))
    position = np.stack([numbers(x, "positions", _POINT, len(given)) for x in points])
    for i, k in found.items():
        check_finite(position[:, k], f"positions of {given[k]!r} in {_KIND}")
        own.set_position(q, i, position[:, k])
    rates: list[np.ndarray | None] = []
    for name in ("velocities", "accelerations"):
        sizes = {len(numbers(x, name, _POINT)) for x in points}
        if sizes == {0} and given:
            rates.append(None)
            continue
        values = np.stack([numbers(x, name, _POINT, len(given)) for x in points])
        rate = np.zeros((len(points), own.model.nv))
        for i, k in found.items():
            check_finite(values[:, k], f"{name} of {given[k]!r} in {_KIND}")
            rate[:, own.tree.v_slices[i].start] = values[:, k]
        rates.append(rate)
    return JointMotion(times, q, *rates)


def _duration(seconds: float) -> dict[str, int]:
    """The fields of a `builtin_interfaces/msg/Duration`."""
    sec, nanosec = divmod(round(seconds * _BILLION), _BILLION)
    return {"sec": sec, "nanosec": nanosec}


def _seconds(point: Any) -> float:
    parts = [get(point, f"time_from_start.{name}", _POINT) for name in ("sec", "nanosec")]
    if not all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in parts):
        raise DtypeError(f"time_from_start of {_POINT} must be whole seconds and nanoseconds, got {parts}")
    return int(parts[0]) + int(parts[1]) / _BILLION
