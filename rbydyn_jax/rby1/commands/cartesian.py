"""Commands in Cartesian space: poses of links, springs to poses, weighted targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from . import _quantities as quantity
from ._kinds import Child, Children, Scope, numbers_of
from ._node import Node, command, node
from ._sdk import Command
from .joint import Header


class _OfOneJoint(Node):
    """A part that concerns the one joint that it names."""

    joint_name: str

    def _narrowed(self, scope: Scope) -> Scope:
        return Scope(scope.model, scope.component, (self.joint_name,))


@node
class JointPositionTarget(_OfOneJoint):
    """A target angle of a joint, in addition to the poses of the links.

    Args:
        joint_name: The joint.
        target_position: Target [rad].
        velocity_limit: Limit of the motion [rad/s].
        acceleration_limit: Limit of the motion [rad/s^2].
    """

    joint_name: quantity.JointName
    target_position: quantity.Angle
    velocity_limit: quantity.RateLimit = None
    acceleration_limit: quantity.AccelerationLimit = None


@node
class CartesianTarget(Node):
    """A target pose of a link.

    Args:
        ref_link_name: The link in whose axes the pose is meant.
        link_name: The link that moves.
        T: Target, T_ref_link (4, 4) [m].
        linear_velocity_limit: Limit of the motion [m/s].
        angular_velocity_limit: Limit of the motion [rad/s].
        acceleration_limit_scaling: Factor on the robot's own limits of acceleration.
    """

    ref_link_name: quantity.LinkName
    link_name: quantity.LinkName
    T: quantity.Transform
    linear_velocity_limit: quantity.LinearVelocityLimit
    angular_velocity_limit: quantity.AngularVelocityLimit
    acceleration_limit_scaling: quantity.Scaling


@command
class CartesianCommand(Command):
    """Moves links to poses.

    Args:
        targets: The poses.
        joint_position_targets: Angles of some joints, to settle what the poses leave open.
        minimum_time: The motion takes at least this time [s].
        stop_position_tracking_error: Distance at which it counts as arrived [m].
        stop_orientation_tracking_error: Angle at which it counts as arrived [rad].
        stop_joint_position_tracking_error: Angle at which a joint counts as arrived [rad].
        command_header: How long control is held afterwards.
    """

    targets: Annotated[tuple[CartesianTarget, ...], Children(CartesianTarget)] = ()
    joint_position_targets: Annotated[tuple[JointPositionTarget, ...], Children(JointPositionTarget)] = ()
    minimum_time: quantity.Time = None
    stop_position_tracking_error: quantity.DistanceError = None
    stop_orientation_tracking_error: quantity.AngleError = None
    stop_joint_position_tracking_error: quantity.AngleError = None
    command_header: Header = None


@node
class CartesianImpedanceTarget(Node):
    """A target pose of a link for impedance control.

    Args:
        ref_link_name: The link in whose axes the pose is meant.
        link_name: The link that moves.
        T: Target, T_ref_link (4, 4) [m].
        linear_velocity_limit: Limit of the motion [m/s].
        angular_velocity_limit: Limit of the motion [rad/s].
        linear_acceleration_limit: Limit of the motion [m/s^2].
        angular_acceleration_limit: Limit of the motion [rad/s^2].
    """

    ref_link_name: quantity.LinkName
    link_name: quantity.LinkName
    T: quantity.Transform
    linear_velocity_limit: quantity.LinearVelocityLimitOrUnset = None
    angular_velocity_limit: quantity.RateLimit = None
    linear_acceleration_limit: quantity.LinearAccelerationLimit = None
    angular_acceleration_limit: quantity.AccelerationLimit = None


@node
class JointLimit(_OfOneJoint):
    """A range that a joint must not leave.

    Args:
        joint_name: The joint.
        lower: Least angle [rad].
        upper: Greatest angle [rad].
    """

    joint_name: quantity.JointName
    lower: quantity.AngleDifference
    upper: quantity.AngleDifference

    def _problems(self, scope: Scope) -> Iterator[tuple[str, str]]:
        for lower, upper in zip(numbers_of(self.lower).ravel(), numbers_of(self.upper).ravel(), strict=False):
            if lower > upper:
                yield "lower", f"joint {self.joint_name!r}: must be at most upper, {upper:g} rad, got {lower:g}"


@node
class NullspaceJointTarget(Node):
    """Null-space targets of the joints of the component.

    Args:
        target_position: Target [rad].
        weight: Weight of each joint.
        k_p: Proportional gain.
        k_d: Derivative gain.
        cost_weight: Weight against the other targets.
    """

    target_position: quantity.AnglesSet
    weight: quantity.JointWeights
    k_p: quantity.WeightOrUnset = 0.2
    k_d: quantity.WeightOrUnset = 0.2
    cost_weight: quantity.WeightOrUnset = 1e-3


@command
class CartesianImpedanceControlCommand(Command):
    """Moves links to poses with joint impedance control.

    Args:
        targets: The poses.
        joint_position_targets: Angles of some joints.
        joint_limits: Ranges of some joints.
        nullspace_joint_target: Angles to be drawn to where the poses leave freedom.
        joint_stiffness: Stiffness of the joints [N m/rad].
        joint_damping_ratio: Damping ratio in [0, 1].
        joint_torque_limit: Limits of the torques [N m].
        reset_reference: Whether the reference starts from the measured position.
        minimum_time: The motion takes at least this time [s].
        stop_position_tracking_error: Distance at which it counts as arrived [m].
        stop_orientation_tracking_error: Angle at which it counts as arrived [rad].
        stop_joint_position_tracking_error: Angle at which a joint counts as arrived [rad].
        command_header: How long control is held afterwards.
    """

    targets: Annotated[tuple[CartesianImpedanceTarget, ...], Children(CartesianImpedanceTarget)] = ()
    joint_position_targets: Annotated[tuple[JointPositionTarget, ...], Children(JointPositionTarget)] = ()
    joint_limits: Annotated[tuple[JointLimit, ...], Children(JointLimit)] = ()
    nullspace_joint_target: Annotated[NullspaceJointTarget | None, Child((NullspaceJointTarget,))] = None
    joint_stiffness: quantity.Stiffness = None
    joint_damping_ratio: quantity.JointDampingRatio = None
    joint_torque_limit: quantity.TorqueLimits = None
    reset_reference: quantity.SwitchOrUnset = None
    minimum_time: quantity.Time = None
    stop_position_tracking_error: quantity.DistanceError = None
    stop_orientation_tracking_error: quantity.AngleError = None
    stop_joint_position_tracking_error: quantity.AngleError = None
    command_header: Header = None


@command
class ImpedanceControlCommand(Command):
    """Holds a link at a pose with a spring and a damper.

    Args:
        reference_link_name: The link in whose axes the pose is meant.
        link_name: The link that is held.
        transformation: Target, T_reference_link (4, 4) [m].
        translation_weight: Stiffness along x, y, z [N/m].
        rotation_weight: Stiffness about x, y, z [N m/rad].
        damping_ratio: Damping ratio in [0, 1.5].
        command_header: How long control is held afterwards.
    """

    reference_link_name: quantity.LinkNameOrUnset = None
    link_name: quantity.LinkNameOrUnset = None
    transformation: quantity.TransformOrUnset = None
    translation_weight: quantity.TranslationStiffness = None
    rotation_weight: quantity.RotationStiffness = None
    damping_ratio: quantity.CartesianDampingRatio = None
    command_header: Header = None


@node
class WeightedCartesianTarget(Node):
    """A pose in the cost of an optimal control command.

    Args:
        ref_link_name: The link in whose axes the pose is meant.
        link_name: The link that moves.
        T: Target, T_ref_link (4, 4) [m].
        translation_weight: Weight of the distance.
        rotation_weight: Weight of the angle.
    """

    ref_link_name: quantity.LinkName
    link_name: quantity.LinkName
    T: quantity.Transform
    translation_weight: quantity.Weight
    rotation_weight: quantity.Weight


@node
class WeightedCenterOfMassTarget(Node):
    """A position of the centre of mass in the cost of an optimal control command.

    Args:
        ref_link_name: The link in whose axes the position is meant.
        pose: Target (3,) [m].
        weight: Weight of the distance.
    """

    ref_link_name: quantity.LinkName
    pose: quantity.Point
    weight: quantity.Weight


@node
class WeightedJointTarget(_OfOneJoint):
    """A joint angle in the cost of an optimal control command.

    Args:
        joint_name: The joint.
        target_position: Target [rad].
        weight: Weight of the difference.
    """

    joint_name: quantity.JointName
    target_position: quantity.Angle
    weight: quantity.Weight


@command
class OptimalControlCommand(Command):
    """Minimizes a weighted sum of squared errors.

    Args:
        cartesian_targets: Poses of links.
        center_of_mass_target: Position of the centre of mass.
        joint_position_targets: Angles of joints.
        velocity_limit_scaling: Factor on the limits of the speeds.
        acceleration_limit_scaling: Factor on the limits of the accelerations.
        error_scaling: Factor on the errors.
        stop_cost: Cost at which it counts as arrived.
        min_delta_cost: Decrease of the cost below which it counts as standing still.
        patience: Number of steps without progress before it ends.
        command_header: How long control is held afterwards.
    """

    cartesian_targets: Annotated[tuple[WeightedCartesianTarget, ...], Children(WeightedCartesianTarget)] = ()
    center_of_mass_target: Annotated[WeightedCenterOfMassTarget | None, Child((WeightedCenterOfMassTarget,))] = None
    joint_position_targets: Annotated[tuple[WeightedJointTarget, ...], Children(WeightedJointTarget)] = ()
    velocity_limit_scaling: quantity.ScalingOrUnset = None
    acceleration_limit_scaling: quantity.ScalingOrUnset = None
    error_scaling: quantity.ScalingOrUnset = None
    stop_cost: quantity.WeightOrUnset = None
    min_delta_cost: quantity.WeightOrUnset = None
    patience: quantity.Iterations = None
    command_header: Header = None
