"""The feedback of the robot on a command: the SDK's tree as frozen dataclasses, read once.

Branches that the robot did not report are there with `valid=False`, as in the SDK, and are not printed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

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
Item = TypeVar("Item")


def _mirrors(name: str = ""):
    """Registers a class under the qualified name of the SDK's class that it mirrors."""

    def register(cls: T) -> T:
        _TYPES[name or cls.__name__] = cls
        return cls

    return register


class Values(tuple[Item, ...]):
    """What is a list in the SDK: printed like one and equal to one, but hashed."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return repr(list(self))


_NONE: Values[Any] = Values()


class _Printed:
    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        defaults = {f.name: () if f.default is MISSING else f.default for f in fields}
        shown = (f"{n}={getattr(self, n)!r}" for n, default in defaults.items() if _plain(getattr(self, n)) != default)
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

    joint_indices: Values[int] = _NONE
    time_based_progress: float = 0.0
    position_based_progress: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False)
class JointImpedanceControlCommandFeedback(CommandFeedback):
    """Feedback on a `JointImpedanceControlCommand`: where the joints are drawn to, and how far off they are [rad]."""

    set_position: Values[float] = _NONE
    error: Values[float] = _NONE


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

    se3_pose_tracking_errors: Values[PoseTrackingError] = _NONE
    joint_position_tracking_errors: Values[float] = _NONE
    remain_time: float = 0.0
    manipulability: float = 0.0


@_mirrors()
@dataclass(frozen=True, repr=False, eq=False)
class CartesianImpedanceControlCommandFeedback(CommandFeedback):
    """Feedback on a `CartesianImpedanceControlCommand`: where the joints are drawn to [rad], time left [s],
    manipulability."""

    set_position: Float[np.ndarray, "n"] = field(default_factory=lambda: np.zeros(0))
    remain_time: float = 0.0
    manipulability: float = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return tuple(_plain(getattr(self, f.name)) for f in dataclasses.fields(self))


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
    cartesian_costs: Values[float] = _NONE
    center_of_mass_cost: float = 0.0
    joint_position_costs: Values[float] = _NONE


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
        DtypeError: It is not.
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
    if isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, list):
        return Values(_read(x) for x in value)
    return read_feedback(value)


def _plain(value: Any) -> Any:
    """A value that is compared and hashed as a whole."""
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value
