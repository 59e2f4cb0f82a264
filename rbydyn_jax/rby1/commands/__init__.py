"""Commands for the RB-Y1 as values, and the way to the robot through its SDK.

Every builder of the SDK has a dataclass here that is frozen, compared by value and printed, and can be sent any number
of times. What is made is checked by type and number of axes; physics, and the joints and limits of the robot, are
checked by `validate`, `to_sdk` and `send`, unless `strict=False`.
"""

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
