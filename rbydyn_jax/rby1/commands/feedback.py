"""The feedback of the robot on a command: the SDK's tree as frozen dataclasses, read once.

Branches that the robot did not report are there with `valid=False`, as in the SDK, and are not printed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..._errors import DtypeError
from .._enumerations import SdkEnum, mirrors

__all__ = [
    "ArmCommandFeedback",
    "BodyCommandFeedback",
    "BodyComponentBasedCommandFeedback",
    "CartesianCommandFeedback",
    "CartesianImpedanceControlCommandFeedback",
    "CommandFeedback",
    "CommandHeaderFeedback",
    "CommandStatus",
    "ComponentBasedCommandFeedback",
    "FinishCode",
    "GravityCompensationCommandFeedback",
    "HeadCommandFeedback",
    "ImpedanceControlCommandFeedback",
    "JogCommandFeedback",
    "JointGroupPositionCommandFeedback",
    "JointImpedanceControlCommandFeedback",
    "JointPositionCommandFeedback",
    "JointVelocityCommandFeedback",
    "MobilityCommandFeedback",
    "OptimalControlCommandFeedback",
    "PoseTrackingError",
    "RobotCommandFeedback",
    "SE2VelocityCommandFeedback",
    "SpringTrackingError",
    "StopCommandFeedback",
    "TorsoCommandFeedback",
    "WholeBodyCommandFeedback",
    "read_feedback",
]

_TYPES: dict[str, type] = {}
T = TypeVar("T", bound=type)


def _mirrors(name: str = ""):
    """Registers a class under the qualified name of the SDK's class that it mirrors."""

    def register(cls: T) -> T:
        _TYPES[name or cls.__name__] = cls
        return cls

    return register


class _Printed:
    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields if getattr(self, f.name) != f.default)
        return f"{type(self).__name__}({', '.join(shown)})"


@_mirrors("RobotCommandFeedback.Status")
@mirrors("RobotCommandFeedback.Status")
class CommandStatus(SdkEnum):
    """How far a command is; equal to the SDK's `RobotCommandFeedback.Status`."""

    Idle = 0
    Initializing = 1
    Running = 2
    Finished = 3


@_mirrors("RobotCommandFeedback.FinishCode")
@mirrors("RobotCommandFeedback.FinishCode")
class FinishCode(SdkEnum):
    """Why a command ended; equal to the SDK's `RobotCommandFeedback.FinishCode`."""

    Unknown = 0
    Ok = 1
    Canceled = 2
    Preempted = 3
    InitializationFailed = 4
    ControlManagerIdle = 5
    ControlManagerFault = 6
    UnexpectedState = 7


@_mirrors()
@dataclass(frozen=True, repr=False)
class CommandHeaderFeedback(_Printed):
    """Args:
    valid: Whether the robot reported it.
    finished: Whether the command has ended.
    """

    valid: bool = False
    finished: bool = False


@_mirrors()
@dataclass(frozen=True, repr=False)
class CommandFeedback(_Printed):
    """Base of the feedback on each command, and the complete feedback of some.

    Args:
        valid: Whether the robot reported it.
        command_header: Whether it has ended.
    """

    valid: bool = False
    command_header: CommandHeaderFeedback = CommandHeaderFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class StopCommandFeedback(CommandFeedback):
    """Feedback on a `StopCommand`."""


@_mirrors()
@dataclass(frozen=True, repr=False)
class SE2VelocityCommandFeedback(CommandFeedback):
    """Feedback on an `SE2VelocityCommand`."""


@_mirrors()
@dataclass(frozen=True, repr=False)
class JointVelocityCommandFeedback(CommandFeedback):
    """Feedback on a `JointVelocityCommand`."""


@_mirrors()
@dataclass(frozen=True, repr=False)
class GravityCompensationCommandFeedback(CommandFeedback):
    """Feedback on a `GravityCompensationCommand`."""


@_mirrors()
@dataclass(frozen=True, repr=False)
class JogCommandFeedback(CommandFeedback):
    """Feedback on a `JogCommand`: the joint that is jogged."""

    target_joint_name: str = ""


@_mirrors()
@dataclass(frozen=True, repr=False)
class JointPositionCommandFeedback(CommandFeedback):
    """Feedback on a `JointPositionCommand`: progress from 0 to 1, by time and by position."""

    time_based_progress: float = 0.0
    position_based_progress: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class JointGroupPositionCommandFeedback(CommandFeedback):
    """Feedback on a `JointGroupPositionCommand`: which joints in the robot's order, and progress from 0 to 1."""

    joint_indices: tuple[int, ...] = ()
    time_based_progress: float = 0.0
    position_based_progress: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class JointImpedanceControlCommandFeedback(CommandFeedback):
    """Feedback on a `JointImpedanceControlCommand`: where the joints are drawn to, and how far off they are [rad]."""

    set_position: tuple[float, ...] = ()
    error: tuple[float, ...] = ()


@_mirrors("CartesianCommandFeedback.TrackingError")
@dataclass(frozen=True)
class PoseTrackingError:
    """How far a link is from its target: distance [m] and angle [rad]."""

    position_error: float = 0.0
    orientation_error: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class CartesianCommandFeedback(CommandFeedback):
    """Feedback on a `CartesianCommand`: errors of poses and joints [rad], time left [s], manipulability."""

    se3_pose_tracking_errors: tuple[PoseTrackingError, ...] = ()
    joint_position_tracking_errors: tuple[float, ...] = ()
    remain_time: float = 0.0
    manipulability: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class CartesianImpedanceControlCommandFeedback(CommandFeedback):
    """Feedback on a `CartesianImpedanceControlCommand`: where the joints are drawn to [rad], time left [s],
    manipulability."""

    set_position: tuple[float, ...] = ()
    remain_time: float = 0.0
    manipulability: float = 0.0


@_mirrors("ImpedanceControlCommandFeedback.TrackingError")
@dataclass(frozen=True)
class SpringTrackingError:
    """How far a link is from the pose that it is drawn to: distance [m] and angle [rad]."""

    position_error: float = 0.0
    rotation_error: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class ImpedanceControlCommandFeedback(CommandFeedback):
    """Feedback on an `ImpedanceControlCommand`."""

    tracking_error: SpringTrackingError = SpringTrackingError()


@_mirrors()
@dataclass(frozen=True, repr=False)
class OptimalControlCommandFeedback(CommandFeedback):
    """Feedback on an `OptimalControlCommand`: the costs."""

    total_cost: float = 0.0
    cartesian_costs: tuple[float, ...] = ()
    center_of_mass_cost: float = 0.0
    joint_position_costs: tuple[float, ...] = ()


@_mirrors()
@dataclass(frozen=True, repr=False)
class ArmCommandFeedback(CommandFeedback):
    """Feedback on an `ArmCommand`."""

    joint_position_command: JointPositionCommandFeedback = JointPositionCommandFeedback()
    gravity_compensation_command: GravityCompensationCommandFeedback = GravityCompensationCommandFeedback()
    cartesian_command: CartesianCommandFeedback = CartesianCommandFeedback()
    impedance_control_command: ImpedanceControlCommandFeedback = ImpedanceControlCommandFeedback()
    joint_impedance_control_command: JointImpedanceControlCommandFeedback = JointImpedanceControlCommandFeedback()
    cartesian_impedance_control_command: CartesianImpedanceControlCommandFeedback = (
        CartesianImpedanceControlCommandFeedback()
    )


@_mirrors()
@dataclass(frozen=True, repr=False)
class TorsoCommandFeedback(ArmCommandFeedback):
    """Feedback on a `TorsoCommand`."""

    optimal_control_command: OptimalControlCommandFeedback = OptimalControlCommandFeedback()
    joint_group_position_command: JointGroupPositionCommandFeedback = JointGroupPositionCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class HeadCommandFeedback(CommandFeedback):
    """Feedback on a `HeadCommand`."""

    joint_position_command: JointPositionCommandFeedback = JointPositionCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class MobilityCommandFeedback(CommandFeedback):
    """Feedback on a `MobilityCommand`."""

    joint_velocity_command: JointVelocityCommandFeedback = JointVelocityCommandFeedback()
    se2_velocity_command: SE2VelocityCommandFeedback = SE2VelocityCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class BodyComponentBasedCommandFeedback(CommandFeedback):
    """Feedback on a `BodyComponentBasedCommand`."""

    right_arm_command: ArmCommandFeedback = ArmCommandFeedback()
    left_arm_command: ArmCommandFeedback = ArmCommandFeedback()
    torso_command: TorsoCommandFeedback = TorsoCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class BodyCommandFeedback(CommandFeedback):
    """Feedback on a `BodyCommand`."""

    joint_position_command: JointPositionCommandFeedback = JointPositionCommandFeedback()
    optimal_control_command: OptimalControlCommandFeedback = OptimalControlCommandFeedback()
    gravity_compensation_command: GravityCompensationCommandFeedback = GravityCompensationCommandFeedback()
    cartesian_command: CartesianCommandFeedback = CartesianCommandFeedback()
    body_component_based_command: BodyComponentBasedCommandFeedback = BodyComponentBasedCommandFeedback()
    joint_impedance_control_command: JointImpedanceControlCommandFeedback = JointImpedanceControlCommandFeedback()
    cartesian_impedance_control_command: CartesianImpedanceControlCommandFeedback = (
        CartesianImpedanceControlCommandFeedback()
    )


@_mirrors()
@dataclass(frozen=True, repr=False)
class ComponentBasedCommandFeedback(CommandFeedback):
    """Feedback on a `ComponentBasedCommand`."""

    mobility_command: MobilityCommandFeedback = MobilityCommandFeedback()
    body_command: BodyCommandFeedback = BodyCommandFeedback()
    head_command: HeadCommandFeedback = HeadCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class WholeBodyCommandFeedback(CommandFeedback):
    """Feedback on a `WholeBodyCommand`."""

    stop_command: StopCommandFeedback = StopCommandFeedback()


@_mirrors()
@dataclass(frozen=True, repr=False)
class RobotCommandFeedback(CommandFeedback):
    """Feedback on a `RobotCommand`.

    Args:
        valid: Whether the robot reported it.
        command_header: Whether it has ended.
        whole_body_command: On a command for the whole robot.
        component_based_command: On commands for components.
        jog_command: On a command for one joint.
        status: How far the command is.
        finish_code: Why it ended.

    Example:
        >>> from rbydyn_jax.rby1.commands import FinishCode, RobotCommandFeedback
        >>> RobotCommandFeedback(valid=True, finish_code=FinishCode.Ok)
        RobotCommandFeedback(valid=True, finish_code=<FinishCode.Ok: 1>)
    """

    Status = CommandStatus
    FinishCode = FinishCode

    whole_body_command: WholeBodyCommandFeedback = WholeBodyCommandFeedback()
    component_based_command: ComponentBasedCommandFeedback = ComponentBasedCommandFeedback()
    jog_command: JogCommandFeedback = JogCommandFeedback()
    status: CommandStatus = CommandStatus.Idle
    finish_code: FinishCode = FinishCode.Unknown


def read_feedback(feedback: Any) -> Any:
    """Converts a feedback of the SDK.

    Values of a branch that is not valid are not read: in the SDK they are uninitialized memory.

    Args:
        feedback: An instance of one of the SDK's classes of feedback.

    Raises:
        DtypeError: It is none.
    """
    cls = _TYPES.get(type(feedback).__qualname__)
    if cls is None:
        raise DtypeError(f"feedback must be one of the SDK's, got {type(feedback).__name__}")
    if issubclass(cls, SdkEnum):
        return cls(int(feedback))
    if not getattr(feedback, "valid", True):
        return cls()
    return cls(**{f.name: _read(getattr(feedback, f.name)) for f in dataclasses.fields(cls)})


def _read(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    if isinstance(value, list):
        return tuple(_read(x) for x in value)
    return read_feedback(value)
