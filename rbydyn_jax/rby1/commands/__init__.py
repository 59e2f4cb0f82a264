"""Commands for the RB-Y1 as values, sent through its SDK.

Every builder of the SDK has a dataclass here that is frozen, compared by value and printed, and can be sent any number
of times. Constructors check types and numbers of dimensions; values, and the joints and limits of the robot,
are checked by `validate`, `to_sdk` and `send`, unless `strict=False`.
"""

from typing import TYPE_CHECKING

from .cartesian import CartesianCommand as CartesianCommand
from .cartesian import CartesianImpedanceControlCommand as CartesianImpedanceControlCommand
from .cartesian import CartesianImpedanceTarget as CartesianImpedanceTarget
from .cartesian import CartesianTarget as CartesianTarget
from .cartesian import ImpedanceControlCommand as ImpedanceControlCommand
from .cartesian import JointLimit as JointLimit
from .cartesian import JointPositionTarget as JointPositionTarget
from .cartesian import NullspaceJointTarget as NullspaceJointTarget
from .cartesian import OptimalControlCommand as OptimalControlCommand
from .cartesian import WeightedCartesianTarget as WeightedCartesianTarget
from .cartesian import WeightedCenterOfMassTarget as WeightedCenterOfMassTarget
from .cartesian import WeightedJointTarget as WeightedJointTarget
from .containers import ArmCommand as ArmCommand
from .containers import BodyCommand as BodyCommand
from .containers import BodyComponentBasedCommand as BodyComponentBasedCommand
from .containers import ComponentBasedCommand as ComponentBasedCommand
from .containers import HeadCommand as HeadCommand
from .containers import MobilityCommand as MobilityCommand
from .containers import RobotCommand as RobotCommand
from .containers import TorsoCommand as TorsoCommand
from .containers import WholeBodyCommand as WholeBodyCommand
from .joint import AbsolutePosition as AbsolutePosition
from .joint import CommandHeader as CommandHeader
from .joint import GravityCompensationCommand as GravityCompensationCommand
from .joint import JogCommand as JogCommand
from .joint import JointGroupPositionCommand as JointGroupPositionCommand
from .joint import JointImpedanceControlCommand as JointImpedanceControlCommand
from .joint import JointPositionCommand as JointPositionCommand
from .joint import JointVelocityCommand as JointVelocityCommand
from .joint import OneStep as OneStep
from .joint import RelativePosition as RelativePosition
from .joint import SE2AccelerationLimit as SE2AccelerationLimit
from .joint import SE2Velocity as SE2Velocity
from .joint import SE2VelocityCommand as SE2VelocityCommand
from .joint import StopCommand as StopCommand
from .models import ModelDescription as ModelDescription
from .models import model_description as model_description
from .motion import to_commands as to_commands
from .sending import CommandHandle as CommandHandle
from .sending import CommandStream as CommandStream
from .sending import create_command_stream as create_command_stream
from .sending import send as send

if TYPE_CHECKING:
    from .feedback import ArmCommandFeedback as ArmCommandFeedback
    from .feedback import BodyCommandFeedback as BodyCommandFeedback
    from .feedback import BodyComponentBasedCommandFeedback as BodyComponentBasedCommandFeedback
    from .feedback import CartesianCommandFeedback as CartesianCommandFeedback
    from .feedback import CartesianImpedanceControlCommandFeedback as CartesianImpedanceControlCommandFeedback
    from .feedback import CommandFeedback as CommandFeedback
    from .feedback import CommandHeaderFeedback as CommandHeaderFeedback
    from .feedback import CommandStatus as CommandStatus
    from .feedback import ComponentBasedCommandFeedback as ComponentBasedCommandFeedback
    from .feedback import FinishCode as FinishCode
    from .feedback import GravityCompensationCommandFeedback as GravityCompensationCommandFeedback
    from .feedback import HeadCommandFeedback as HeadCommandFeedback
    from .feedback import ImpedanceControlCommandFeedback as ImpedanceControlCommandFeedback
    from .feedback import JogCommandFeedback as JogCommandFeedback
    from .feedback import JointGroupPositionCommandFeedback as JointGroupPositionCommandFeedback
    from .feedback import JointImpedanceControlCommandFeedback as JointImpedanceControlCommandFeedback
    from .feedback import JointPositionCommandFeedback as JointPositionCommandFeedback
    from .feedback import JointVelocityCommandFeedback as JointVelocityCommandFeedback
    from .feedback import MobilityCommandFeedback as MobilityCommandFeedback
    from .feedback import OptimalControlCommandFeedback as OptimalControlCommandFeedback
    from .feedback import PoseTrackingError as PoseTrackingError
    from .feedback import RobotCommandFeedback as RobotCommandFeedback
    from .feedback import SE2VelocityCommandFeedback as SE2VelocityCommandFeedback
    from .feedback import SpringTrackingError as SpringTrackingError
    from .feedback import StopCommandFeedback as StopCommandFeedback
    from .feedback import TorsoCommandFeedback as TorsoCommandFeedback
    from .feedback import WholeBodyCommandFeedback as WholeBodyCommandFeedback
    from .feedback import read_feedback as read_feedback
else:  # feedback takes as long to import as all commands, and is read where a robot is
    import importlib as _importlib

    def __getattr__(name):
        if not name.startswith("_") and name != "feedback":
            feedback = _importlib.import_module(f"{__name__}.feedback")
            if name in feedback.__all__:
                return getattr(feedback, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted([*globals(), *_importlib.import_module(f"{__name__}.feedback").__all__])
