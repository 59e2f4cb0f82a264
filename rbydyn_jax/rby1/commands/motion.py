"""Motions of `rbydyn_jax.planning` as commands for a stream."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._check import check_mapping, check_outside_jit, check_positive_number, check_sequence, check_single
from ..._errors import ArgumentError, CommandError, DtypeError, Finding, ModelError, NameNotFoundError
from ._kinds import LIMIT_TOLERANCE
from .containers import BodyComponentBasedCommand, ComponentBasedCommand, RobotCommand
from .joint import JointImpedanceControlCommand, JointPositionCommand
from .models import ModelDescription, model_description

if TYPE_CHECKING:
    from ...model.model import Model
    from ...planning.trajectory import Motion

_PARTS = ("torso", "right_arm", "left_arm", "head")
_ROUNDING = 1e-6  # of a velocity, relative to its limit
_ROUNDED = 4  # of a difference of two positions, in roundings of the larger one
_AT_REST = 1e-3  # of a velocity, relative to its limit


def to_commands(
    model: Model,
    motion: Motion,
    *,
    period: float = 0.02,
    robot: str | ModelDescription | None = None,
    components: tuple[str, ...] | None = None,
    using: Mapping[str, JointPositionCommand | JointImpedanceControlCommand] | None = None,
) -> tuple[RobotCommand, ...]:
    """The commands of a stream that moves the robot along a motion.

    The motion is cut into equal steps of at most `period`; each command holds the positions at the end of one, to be
    reached in the time of the step: send it at the beginning of the step, as `CommandStream.follow` does. The robot has
    to be at the start of the motion. All commands are checked here, before anything moves: positions, the speeds from
    one to the next, and all else by `validate`.

    A command says where a joint is to be, not how fast: the robot stops at the last one. A motion that begins or ends
    at speed therefore has to continue another one, or to be continued: send the commands of both with one call of
    `follow`, or with one right after the other.

    Args:
        model: The robot for which the motion was planned, with all joints of the parts that move.
        motion: A `planning.Trajectory`, a timed path, or what else has samples.
        period: The longest step [s]; not shorter than the robot's own control period.
        robot: Whose limits count: ``"A"``, ``"M"``, ``"UB"``, or a description with other limits; default is the one
            with the joints of `model`.
        components: The parts to be commanded, of ``"torso"``, ``"right_arm"``, ``"left_arm"`` and ``"head"``; default
            are those that move.
        using: For a part the command whose positions and minimum time are filled in, such as joint impedance with its
            stiffness; default is `JointPositionCommand()`.

    Returns:
        A command for each step.

    Raises:
        ArgumentError: `period` is too short or not positive, a position is not finite, nothing moves, or the wheels do.
        CommandError: A position or a speed is beyond the limits of the robot; all such joints are named.
        DtypeError: An argument is of another type, or traced.
        ModelError: The motion is of another robot, a joint moves that the robot has not, or the model has not the
            joints of an RB-Y1, and `robot` is not given.
        NameNotFoundError: There is no such part or robot, or the model lacks a joint of a part.
        ShapeError: `motion` is a batch.

    Warns:
        UserWarning: A joint moves at the start or at the end of the motion; the first such joint is named, with its
            speed.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.planning import ConfigurationGoal, TrajectoryProblem, solve_trajectory
        >>> from rbydyn_jax.rby1.commands import to_commands
        >>> model = robots.rby1a()
        >>> q, joints = jnp.zeros(model.nq), ("head_0", "head_1")
        >>> nod = ConfigurationGoal(q.at[np.array([model.joint_index(name) for name in joints])].set(0.3))
        >>> problem = TrajectoryProblem(model, q, [nod], duration=1.0, joints=joints, clearance=None)
        >>> commands = to_commands(model, solve_trajectory(problem).trajectory)
        >>> len(commands), commands[-1].command.head_command.command.position.round(6).tolist()
        (50, [0.3, 0.3])
    """
    from ...model.model import check_model  # not above: commands need neither models nor plans
    from ...planning.trajectory import check_motion, sample_trajectory

    check_outside_jit("to_commands", model, motion, using)
    described = _described(check_model(model).joint_names, robot)
    check_motion(motion, "motion")
    step = check_positive_number(period, "period")
    if step < described.control_period:
        raise ArgumentError(f"period must be at least {described.control_period}, that of the robot, got {step}")
    duration = _duration(motion)
    if motion.q_start.shape != (model.nq,) or motion.nv != model.nv:
        sizes = f"{motion.q_start.size} coordinates and {motion.nv} velocities"
        raise ModelError(f"motion is of a robot with {sizes}, the model has {model.nq} and {model.nv}")
    count = max(1, int(np.ceil(duration / step - 1e-9)))
    step = duration / count
    samples = sample_trajectory(motion, count + 1)
    positions = {name: np.asarray(samples.q)[:, _place(model, name)] for name in _joints(model, described)}
    moving = _parts(positions, described, components)
    _check_others(model, np.asarray(samples.q), described)
    commands = _templates(using, moving)
    _check_limits({part: described.component_joints(part) for part in moving}, positions, step, described)
    found = []
    for k in range(1, count + 1):
        filled = {}
        for part in moving:
            position = np.array([positions[name][k] for name in described.component_joints(part)])
            filled[f"{part}_command"] = commands[part].replace(position=position, minimum_time=step)
        head = filled.pop("head_command", None)
        body = BodyComponentBasedCommand(**filled) if filled else None
        found.append(RobotCommand(ComponentBasedCommand(body_command=body, head_command=head)))
    for command in found:
        command.validate(described)
    _warn_at_speed(model, np.asarray(samples.v), moving, described)
    return tuple(found)


def _described(joints: tuple[str, ...], robot: Any) -> ModelDescription:
    if isinstance(robot, ModelDescription):
        return robot
    if robot is not None:
        return model_description(robot)
    for name in ("A", "M", "UB"):
        if set(joints) == set(model_description(name).robot_joint_names):
            return model_description(name)
    raise ModelError("model has not the joints of an RB-Y1: name the robot that is to move, robot='A', 'M' or 'UB'")


def _duration(motion: Any) -> float:
    duration = np.asarray(motion.duration)
    check_single(duration.shape, "motion")
    if not 0.0 < duration < np.inf:
        raise ArgumentError(f"motion must have a finite duration, got {float(duration)}")
    return float(duration)


def _joints(model: Model, described: ModelDescription) -> list[str]:
    return [name for name in described.robot_joint_names if name in model.joint_names]


def _place(model: Model, joint: str) -> int:
    return model.tree.q_slices[model.joint_index(joint)].start


def _check_others(model: Model, qs: np.ndarray, described: ModelDescription) -> None:
    """Joints that the robot has not must stand still."""
    tree = model.tree
    for name, part, mimic in zip(model.joint_names, tree.q_slices, tree.mimics, strict=True):
        if mimic is None and name not in described.robot_joint_names and np.ptp(qs[:, part], axis=0).any():
            raise ModelError(f"joint {name!r} moves along the motion, and the robot has none of this name")


def _parts(positions: dict[str, np.ndarray], described: ModelDescription, asked: Any) -> tuple[str, ...]:
    """The parts that are commanded, in the order of the robot."""
    for name, x in positions.items():
        if not np.isfinite(x).all():
            raise ArgumentError(f"the positions of {name!r} along the motion are not finite")
    moved = {name for name, x in positions.items() if np.ptp(x) > 0.0}
    if moved & set(described.component_joints("mobility")):
        raise ArgumentError("the wheels move along the motion: they take velocities, not positions")
    if asked is None:
        parts = tuple(part for part in _PARTS if moved & set(described.component_joints(part)))
        if not parts:
            raise ArgumentError("nothing moves along the motion: name the components that are to be commanded")
    else:
        parts = tuple(check_sequence(asked, "components", f"parts such as {_PARTS[1]!r}"))
        for part in parts:
            if part not in _PARTS:
                raise NameNotFoundError(str(part), "component", _PARTS)
        left = moved - {name for part in parts for name in described.component_joints(part)}
        if left or not parts:
            raise ArgumentError(f"components must hold all that moves, got {parts}; {sorted(left)} move too")
    for part in parts:
        for name in described.component_joints(part):
            if name not in positions:
                raise NameNotFoundError(name, "joint", positions)
    return parts


def _templates(using: Any, parts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(parts, JointPositionCommand())
    if using is None:
        return found
    check_mapping(using, "using", "parts of the robot to commands")
    for part, command in using.items():
        if part not in parts:
            raise NameNotFoundError(str(part), "component", parts)
        kinds = JointPositionCommand if part == "head" else JointPositionCommand | JointImpedanceControlCommand
        if not isinstance(command, kinds):
            raise DtypeError(f"using[{part!r}] must be a command with joint positions, got {type(command).__name__}")
    return found | dict(using)


def _warn_at_speed(model: Model, v: np.ndarray, parts: tuple[str, ...], described: ModelDescription) -> None:
    """Warns if a joint that is commanded does not start and end at rest."""
    for k, where in ((0, "begins"), (-1, "ends")):
        for name in (name for part in parts for name in described.component_joints(part)):
            speed = abs(float(v[k, model.tree.v_slices[model.joint_index(name)].start]))
            if speed > _AT_REST * described.velocity_limit[described.robot_joint_names.index(name)]:
                message = f"the motion {where} at speed, that of joint {name!r} is {speed:.4g} rad/s"
                hint = "the robot is at rest before the first command and after the last, unless other motions join"
                warnings.warn(f"{message}; {hint}", stacklevel=3)
                break


def _check_limits(
    parts: dict[str, tuple[str, ...]], positions: dict[str, np.ndarray], step: float, described: ModelDescription
) -> None:
    """The positions that are commanded, and the speeds from one to the next, must be within the limits."""
    findings = []
    for part, joints in parts.items():
        for name in joints:
            q, joint = positions[name], described.robot_joint_names.index(name)
            low, high = described.position_lower[joint], described.position_upper[joint]
            commanded = q[1:].astype(float)
            beyond = np.maximum(low - commanded, commanded - high)
            k = int(np.argmax(beyond))
            if beyond[k] > LIMIT_TOLERANCE:
                message = f"must be between {low:g} and {high:g} rad, got {commanded[k]:g} at {(k + 1) * step:.3f} s"
                findings.append(Finding("error", message, f"joint {name!r}", f"{part}: position"))
            limit = described.velocity_limit[joint]
            speeds = np.abs(np.diff(q)) / step
            k = int(np.argmax(speeds))
            rounding = _ROUNDED * float(np.finfo(q.dtype).eps * np.abs(q).max()) / step
            if not speeds[k] <= limit * (1.0 + _ROUNDING) + rounding:
                where = f"from {k * step:.3f} s to {(k + 1) * step:.3f} s"
                message = f"must be at most {limit} rad/s, got {speeds[k]:.4g} {where}"
                findings.append(Finding("error", message, f"joint {name!r}", f"{part}: speed"))
    if findings:
        raise CommandError(findings)
