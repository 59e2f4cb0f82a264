"""One command of every type with every field set, in every part of the robot that takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from rbydyn_jax.rby1 import commands as c

HEADER = c.CommandHeader(2.5)


def pose(seed: int) -> np.ndarray:
    """A pose without symmetry."""
    rng = np.random.default_rng(seed)
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(rng.uniform(-1, 1, 3)).as_matrix()
    T[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return T


def angles(component: str) -> np.ndarray:
    """Angles within the limits of the joints of a component of model A."""
    robot = c.model_description("A")
    at = list(getattr(robot, f"{component}_idx"))
    lower, upper = (np.clip(np.array(x)[at], -3.0, 3.0) for x in (robot.position_lower, robot.position_upper))
    return lower + (upper - lower) * np.linspace(0.1, 0.9, len(at))


def joint_position(component: str) -> c.JointPositionCommand:
    n = len(angles(component))
    return c.JointPositionCommand(
        position=angles(component),
        velocity_limit=np.linspace(0.5, 1.5, n),
        acceleration_limit=np.linspace(2.0, 3.0, n),
        minimum_time=1.25,
        command_header=HEADER,
    )


def joint_impedance(component: str) -> c.JointImpedanceControlCommand:
    n = len(angles(component))
    return c.JointImpedanceControlCommand(
        position=angles(component),
        velocity_limit=np.linspace(0.5, 1.5, n),
        acceleration_limit=np.linspace(2.0, 3.0, n),
        stiffness=np.linspace(40.0, 100.0, n),
        damping_ratio=0.85,
        torque_limit=np.linspace(10.0, 30.0, n),
        minimum_time=3.5,
        command_header=HEADER,
    )


def joint_group() -> c.JointGroupPositionCommand:
    return c.JointGroupPositionCommand(
        joint_names=("torso_1", "torso_5"),
        position=np.array([0.25, -0.5]),
        velocity_limit=np.array([0.5, 0.75]),
        acceleration_limit=np.array([1.0, 2.0]),
        minimum_time=2.0,
        command_header=HEADER,
    )


def cartesian() -> c.CartesianCommand:
    return c.CartesianCommand(
        targets=(
            c.CartesianTarget("base", "ee_right", pose(1), 0.5, 1.5, 0.75),
            c.CartesianTarget("link_torso_5", "ee_left", pose(2), 0.25, 1.25, 1.0),
        ),
        joint_position_targets=(
            c.JointPositionTarget("right_arm_2", 0.5, 1.0, 2.0),
            c.JointPositionTarget("left_arm_2", -0.5),
        ),
        minimum_time=4.0,
        stop_position_tracking_error=0.125,
        stop_orientation_tracking_error=0.0625,
        stop_joint_position_tracking_error=0.03125,
        command_header=HEADER,
    )


def cartesian_impedance(component: str) -> c.CartesianImpedanceControlCommand:
    n = len(angles(component))
    return c.CartesianImpedanceControlCommand(
        targets=(
            c.CartesianImpedanceTarget("base", "ee_right", pose(3), 0.5, 1.5, 2.5, 3.5),
            c.CartesianImpedanceTarget("base", "ee_left", pose(4)),
        ),
        joint_position_targets=(c.JointPositionTarget("right_arm_2", 0.5, 1.0, 2.0),),
        joint_limits=(c.JointLimit("right_arm_3", -2.0, -0.25),),
        nullspace_joint_target=c.NullspaceJointTarget(angles(component), np.linspace(0.0, 1.0, n), 0.3, 0.4, 0.01),
        joint_stiffness=np.linspace(50.0, 150.0, n),
        joint_damping_ratio=0.85,
        joint_torque_limit=np.linspace(10.0, 50.0, n),
        reset_reference=True,
        minimum_time=0.5,
        stop_position_tracking_error=0.125,
        stop_orientation_tracking_error=0.0625,
        stop_joint_position_tracking_error=0.03125,
        command_header=HEADER,
    )


def impedance() -> c.ImpedanceControlCommand:
    return c.ImpedanceControlCommand(
        reference_link_name="link_torso_5",
        link_name="ee_right",
        transformation=pose(5),
        translation_weight=np.array([1000.0, 900.0, 800.0]),
        rotation_weight=np.array([50.0, 40.0, 30.0]),
        damping_ratio=1.25,
        command_header=HEADER,
    )


def optimal_control() -> c.OptimalControlCommand:
    return c.OptimalControlCommand(
        cartesian_targets=(c.WeightedCartesianTarget("base", "ee_right", pose(6), 1.5, 0.5),),
        center_of_mass_target=c.WeightedCenterOfMassTarget("base", np.array([0.1, -0.2, 0.9]), 0.25),
        joint_position_targets=(c.WeightedJointTarget("torso_5", 0.5, 0.125),),
        velocity_limit_scaling=0.5,
        acceleration_limit_scaling=0.75,
        error_scaling=1.5,
        stop_cost=0.01,
        min_delta_cost=0.001,
        patience=10,
        command_header=HEADER,
    )


def gravity() -> c.GravityCompensationCommand:
    return c.GravityCompensationCommand(on=True, command_header=HEADER)


def jog(target: Any) -> c.JogCommand:
    return c.JogCommand(
        joint_name="right_arm_3", command=target, velocity_limit=0.5, acceleration_limit=1.5, command_header=HEADER
    )


def _arm(component: str) -> dict[str, c.ArmCommand]:
    leaves = (
        joint_position(component),
        gravity(),
        cartesian(),
        impedance(),
        joint_impedance(component),
        cartesian_impedance(component),
    )
    return {f"{component}-{type(leaf).__name__}": c.ArmCommand(leaf) for leaf in leaves}


def all_commands() -> dict[str, c.RobotCommand]:
    """Every command type in every place that takes it, by name."""
    parts: dict[str, dict] = {}
    for side in ("right_arm", "left_arm"):
        for name, arm in _arm(side).items():
            parts[name] = {"body_command": c.BodyComponentBasedCommand(**{f"{side}_command": arm})}
    torso = [leaf.command for leaf in _arm("torso").values()] + [optimal_control(), joint_group()]
    for leaf in torso:
        parts[f"torso-{type(leaf).__name__}"] = {"body_command": c.BodyComponentBasedCommand(torso_command=leaf)}
    body = (joint_position("body"), optimal_control(), gravity(), cartesian(), joint_impedance("body"))
    for leaf in (*body, cartesian_impedance("body")):
        parts[f"body-{type(leaf).__name__}"] = {"body_command": leaf}
    parts["head-JointPositionCommand"] = {"head_command": joint_position("head")}
    wheels = c.JointVelocityCommand(
        velocity=np.array([1.5, -2.5]),
        acceleration_limit=np.array([3.0, 4.0]),
        minimum_time=0.75,
        command_header=HEADER,
    )
    base = c.SE2VelocityCommand(
        velocity=c.SE2Velocity(np.array([0.5, 0.0]), -0.25),
        acceleration_limit=c.SE2AccelerationLimit(np.array([1.0, 1.5]), 2.0),
        minimum_time=0.75,
        command_header=HEADER,
    )
    parts["mobility-JointVelocityCommand"] = {"mobility_command": wheels}
    parts["mobility-SE2VelocityCommand"] = {"mobility_command": base}
    parts["all"] = {
        "mobility_command": base,
        "body_command": c.BodyComponentBasedCommand(
            right_arm_command=joint_impedance("right_arm"),
            left_arm_command=cartesian_impedance("left_arm"),
            torso_command=joint_position("torso"),
        ),
        "head_command": joint_position("head"),
    }
    commands = {name: c.RobotCommand(c.ComponentBasedCommand(**part)) for name, part in parts.items()}
    for name, target in (
        ("absolute", -1.0),
        ("relative", c.RelativePosition(0.25)),
        ("forward", c.OneStep(True)),
        ("backward", c.OneStep(False)),
    ):
        commands[f"jog-{name}"] = c.RobotCommand(jog(target))
    commands["stop"] = c.RobotCommand(c.WholeBodyCommand(c.StopCommand(command_header=HEADER)))
    return commands
