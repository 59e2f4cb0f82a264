"""The tree of commands, which assigns commands to parts of the robot.

A part takes a command for it as it is or wrapped: `right_arm_command=JointPositionCommand(...)` is
`right_arm_command=ArmCommand(JointPositionCommand(...))`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from ._kinds import Child
from ._node import command, node
from ._sdk import Command
from .cartesian import (
    CartesianCommand,
    CartesianImpedanceControlCommand,
    ImpedanceControlCommand,
    OptimalControlCommand,
)
from .joint import (
    GravityCompensationCommand,
    JogCommand,
    JointGroupPositionCommand,
    JointImpedanceControlCommand,
    JointPositionCommand,
    JointVelocityCommand,
    SE2VelocityCommand,
    StopCommand,
)

_ARM = (
    JointPositionCommand,
    GravityCompensationCommand,
    CartesianCommand,
    ImpedanceControlCommand,
    JointImpedanceControlCommand,
    CartesianImpedanceControlCommand,
)
_TORSO = (*_ARM, OptimalControlCommand, JointGroupPositionCommand)
_MOBILITY = (JointVelocityCommand, SE2VelocityCommand)


class Wrapper(Command):
    """Base of what holds one command of several types."""

    wraps: ClassVar[tuple[type[Command], ...]]
    command: Any


@node
class ArmCommand(Wrapper):
    """A command for one arm.

    Args:
        command: A command by joint positions, gravity compensation, poses, or one of the three kinds of impedance.
    """

    wraps = _ARM
    command: Annotated[Command | None, Child(_ARM, optional=False)] = None


@node
class TorsoCommand(Wrapper):
    """A command for the torso.

    Args:
        command: What an arm takes, or optimal control, or a position of some of the joints.
    """

    wraps = _TORSO
    command: Annotated[Command | None, Child(_TORSO, optional=False)] = None


@node
class HeadCommand(Wrapper):
    """A command for the head.

    Args:
        command: A position of the joints.
    """

    wraps = (JointPositionCommand,)
    command: Annotated[JointPositionCommand | None, Child((JointPositionCommand,), optional=False)] = None


@node
class MobilityCommand(Wrapper):
    """A command for the wheels.

    Args:
        command: Velocities of the wheels or of the base.
    """

    wraps = _MOBILITY
    command: Annotated[Command | None, Child(_MOBILITY, optional=False)] = None


@command
class BodyComponentBasedCommand(Command):
    """Commands for parts of the body, each of its own kind.

    Args:
        right_arm_command: For the right arm.
        left_arm_command: For the left arm.
        torso_command: For the torso.
    """

    right_arm_command: Annotated[Any, Child((ArmCommand,))] = None
    left_arm_command: Annotated[Any, Child((ArmCommand,))] = None
    torso_command: Annotated[Any, Child((TorsoCommand,))] = None


_BODY = (
    JointPositionCommand,
    OptimalControlCommand,
    GravityCompensationCommand,
    CartesianCommand,
    BodyComponentBasedCommand,
    JointImpedanceControlCommand,
    CartesianImpedanceControlCommand,
)


@node
class BodyCommand(Wrapper):
    """A command for torso and arms.

    Args:
        command: One command for all joints of the body, or commands for its parts.
    """

    wraps = _BODY
    command: Annotated[Command | None, Child(_BODY, optional=False)] = None


@command
class ComponentBasedCommand(Command):
    """Commands for wheels, body and head.

    Args:
        mobility_command: For the wheels.
        body_command: For torso and arms.
        head_command: For the head.
    """

    mobility_command: Annotated[Any, Child((MobilityCommand,))] = None
    body_command: Annotated[Any, Child((BodyCommand,))] = None
    head_command: Annotated[Any, Child((HeadCommand,))] = None


@node
class WholeBodyCommand(Wrapper):
    """A command for the whole robot.

    Args:
        command: To stop.
    """

    wraps = (StopCommand,)
    command: Annotated[StopCommand | None, Child((StopCommand,), optional=False)] = None


_ROBOT = (WholeBodyCommand, ComponentBasedCommand, JogCommand)


@node
class RobotCommand(Wrapper):
    """The root command, which is sent to the robot.

    Args:
        command: A command for the whole robot, for its components, or for one joint.

    Example:
        The right arm as springs of 50 N m/rad, the head straight:

        >>> from rbydyn_jax.rby1 import commands
        >>> arm = commands.JointImpedanceControlCommand(position=np.zeros(7), stiffness=np.full(7, 50.0))
        >>> body = commands.BodyComponentBasedCommand(right_arm_command=arm)
        >>> head = commands.JointPositionCommand(position=[0.0, 0.0])
        >>> command = commands.RobotCommand(commands.ComponentBasedCommand(body_command=body, head_command=head))
        >>> command.validate("A")
        >>> command == commands.RobotCommand.from_dict(command.to_dict())
        True
    """

    wraps = _ROBOT
    command: Annotated[Command | None, Child(_ROBOT, optional=False)] = None
