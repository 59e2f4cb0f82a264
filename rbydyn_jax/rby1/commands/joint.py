"""Commands in joint space: positions, velocities, impedance, one joint at a time, none at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import jax
import numpy as np

from . import _quantities as quantity
from ._kinds import Child, Scope, numbers_of
from ._node import Node, command, node
from ._sdk import Command, JogTarget


@node
class CommandHeader(Command):
    """Options of any command.

    Args:
        control_hold_time: How long the robot keeps controlling after the command has ended [s].
    """

    control_hold_time: quantity.Time = None


Header = Annotated[CommandHeader | None, Child((CommandHeader,))]


@command
class JointPositionCommand(Command):
    """Moves the joints of a component to a position. Unset fields are left to the robot.

    Args:
        position: Target [rad].
        velocity_limit: Limits of the profile [rad/s].
        acceleration_limit: Limits of the profile [rad/s^2].
        minimum_time: The motion takes at least this time [s].
        command_header: How long control is held afterwards.

    Example:
        >>> from rbydyn_jax.rby1.commands import JointPositionCommand
        >>> JointPositionCommand(position=[0.0, 0.5], minimum_time=2)
        JointPositionCommand(position=[0.0, 0.5], minimum_time=2.0)
    """

    position: quantity.Angles = None
    velocity_limit: quantity.RateLimits = None
    acceleration_limit: quantity.AccelerationLimits = None
    minimum_time: quantity.Time = None
    command_header: Header = None


@command
class JointGroupPositionCommand(Command):
    """Moves some joints of the torso to a position.

    Args:
        joint_names: The joints; all vectors are in this order.
        position: Target [rad].
        velocity_limit: Limits of the profile [rad/s].
        acceleration_limit: Limits of the profile [rad/s^2].
        minimum_time: The motion takes at least this time [s].
        command_header: How long control is held afterwards.
    """

    joint_names: quantity.NamesOfJoints = None
    position: quantity.Angles = None
    velocity_limit: quantity.RateLimits = None
    acceleration_limit: quantity.AccelerationLimits = None
    minimum_time: quantity.Time = None
    command_header: Header = None

    def _narrowed(self, scope: Scope) -> Scope:
        return Scope(scope.model, scope.component, self.joint_names)


@command
class JointImpedanceControlCommand(Command):
    r"""Holds the joints of a component at a position with springs and dampers.

    $\tau = \mathrm{clip}(K (q_d - q) + D (\dot q_d - \dot q) + \tau_g, \pm\tau_{max})$ with
    $D = \zeta (\sqrt M \sqrt K + \sqrt K \sqrt M)$ and $\tau_g$ the forces of gravity.

    The fields are leaves of a pytree and may be traced, so that what is simulated is what is sent.

    Args:
        position: Target $q_d$ [rad].
        velocity_limit: Limits of the profile towards it [rad/s].
        acceleration_limit: Limits of the profile towards it [rad/s^2].
        stiffness: Diagonal of $K$ [N m/rad].
        damping_ratio: $\zeta$ in [0, 1]; the robot takes 1 if it is unset.
        torque_limit: $\tau_{max}$ [N m].
        minimum_time: The motion takes at least this time [s].
        command_header: How long control is held afterwards.

    Example:
        >>> from rbydyn_jax.rby1.commands import JointImpedanceControlCommand
        >>> soft = JointImpedanceControlCommand(position=np.zeros(7), stiffness=np.full(7, 50.0), damping_ratio=0.7)
        >>> soft.validate("A", "right_arm")
        >>> soft.replace(damping_ratio=1.7).validate()
        Traceback (most recent call last):
        rbydyn_jax.CommandError: JointImpedanceControlCommand.damping_ratio: error: must be at most 1, got 1.7
    """

    position: quantity.Angles = None
    velocity_limit: quantity.RateLimits = None
    acceleration_limit: quantity.AccelerationLimits = None
    stiffness: quantity.Stiffness = None
    damping_ratio: quantity.JointDampingRatio = None
    torque_limit: quantity.TorqueLimits = None
    minimum_time: quantity.Time = None
    command_header: Header = None


@command
class JointVelocityCommand(Command):
    """Turns the wheels.

    Args:
        velocity: Target [rad/s].
        acceleration_limit: Limits of the ramp towards it [rad/s^2].
        minimum_time: The ramp takes at least this time [s].
        command_header: How long the velocity is held afterwards.
    """

    velocity: quantity.Rates = None
    acceleration_limit: quantity.AccelerationLimits = None
    minimum_time: quantity.Time = None
    command_header: Header = None


@node
class SE2Velocity(Node):
    """A velocity of the mobile base.

    Args:
        linear: Along x and y [m/s].
        angular: About z [rad/s].
    """

    linear: quantity.PlanarVelocity
    angular: quantity.AngularRate

    def _ignored(self, scope: Scope) -> Iterator[tuple[str, str]]:
        if scope.model and scope.model.mobile_base == "differential":
            for _, y in numbers_of(self.linear).reshape(-1, 2):
                if y != 0.0:
                    yield "linear", f"model {scope.model.model_name} cannot move sideways and ignores y = {y:g} m/s"


@node
class SE2AccelerationLimit(Node):
    """Limits of the acceleration of the mobile base.

    Args:
        linear: Along x and y [m/s^2].
        angular: About z [rad/s^2].
    """

    linear: quantity.PlanarAccelerationLimits
    angular: quantity.AngularAccelerationLimit


@command
class SE2VelocityCommand(Command):
    """Drives the mobile base.

    Args:
        velocity: Target.
        acceleration_limit: Limits of the ramp towards it.
        minimum_time: The ramp takes at least this time [s].
        command_header: How long the velocity is held afterwards.
    """

    velocity: Annotated[SE2Velocity | None, Child((SE2Velocity,))] = None
    acceleration_limit: Annotated[SE2AccelerationLimit | None, Child((SE2AccelerationLimit,))] = None
    minimum_time: quantity.Time = None
    command_header: Header = None


@command
class GravityCompensationCommand(Command):
    """Compensates the weight of a component.

    Args:
        on: Whether to.
        command_header: How long control is held afterwards.
    """

    on: quantity.SwitchOrUnset = None
    command_header: Header = None


@node
class AbsolutePosition(JogTarget):
    """Jogs to an angle.

    Args:
        value: Target [rad].
    """

    value: quantity.Angle


@node
class RelativePosition(JogTarget):
    """Jogs by an angle.

    Args:
        value: Difference [rad].
    """

    value: quantity.AngleDifference


@node
class OneStep(JogTarget):
    """Jogs by one step of the robot's own size, 5 degrees.

    Args:
        value: True forward, False backward. The SDK takes any number and sends whether it is not 0, so that -0.05 steps
            forward; here a number is an error.
    """

    value: quantity.Switch


class _JogChild(Child):
    """A bare number is an absolute position, as in the SDK."""

    def convert(self, value: object, name: str) -> object:
        number = isinstance(value, int | float | np.number | jax.Array) and not isinstance(value, bool)
        return AbsolutePosition(value) if number else super().convert(value, name)  # pyright: ignore[reportArgumentType]


@command
class JogCommand(Command):
    """Jogs one joint.

    Args:
        joint_name: The joint.
        command: Where to; a number is an absolute position [rad].
        velocity_limit: Limit of the motion [rad/s].
        acceleration_limit: Limit of the motion [rad/s^2].
        command_header: How long control is held afterwards.
    """

    joint_name: quantity.JointNameOrUnset = None
    command: Annotated[
        AbsolutePosition | RelativePosition | OneStep | float | None,
        _JogChild((AbsolutePosition, RelativePosition, OneStep), optional=False),
    ] = None
    velocity_limit: quantity.RateLimit = None
    acceleration_limit: quantity.AccelerationLimit = None
    command_header: Header = None

    def _narrowed(self, scope: Scope) -> Scope:
        return Scope(scope.model, scope.component, (self.joint_name,) if self.joint_name else None)


@command
class StopCommand(Command):
    """Stops the whole robot.

    Args:
        command_header: How long control is held afterwards.
    """

    command_header: Header = None
