"""The three models of the RB-Y1 for commands: order of joints, components and limits."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from ..._errors import DtypeError, NameNotFoundError

CONTROL_PERIOD = 0.002  # of the robot [s]
COMPONENTS = ("mobility", "body", "head", "right_arm", "left_arm", "torso")


@dataclass(frozen=True)
class ModelDescription:
    """One model of the robot; the names are those of the SDK's `Model_A`, `Model_M` and `Model_UB`.

    A robot with other limits than the latest version's is `dataclasses.replace(model_description("A"), ...)`.

    Args:
        model_name: ``"A"``, ``"M"`` or ``"UB"``.
        robot_joint_names: The joints in the order of the robot.
        mobility_idx: Indices of the wheels in that order.
        body_idx: The torso and both arms.
        head_idx: The head.
        right_arm_idx: The right arm.
        left_arm_idx: The left arm.
        torso_idx: The torso.
        link_names: The links.
        mobile_base: ``"differential"``, ``"mecanum"``, or empty without wheels.
        position_lower: Lower limits [rad].
        position_upper: Upper limits [rad].
        velocity_limit: Limits of the speeds [rad/s].
        control_period: Period of the robot's control loop [s].
    """

    model_name: str
    robot_joint_names: tuple[str, ...]
    mobility_idx: tuple[int, ...]
    body_idx: tuple[int, ...]
    head_idx: tuple[int, ...]
    right_arm_idx: tuple[int, ...]
    left_arm_idx: tuple[int, ...]
    torso_idx: tuple[int, ...]
    link_names: tuple[str, ...]
    mobile_base: str
    position_lower: tuple[float, ...]
    position_upper: tuple[float, ...]
    velocity_limit: tuple[float, ...]
    control_period: float = CONTROL_PERIOD

    @property
    def robot_dof(self) -> int:
        """Number of joints."""
        return len(self.robot_joint_names)

    @property
    def velocity_estimation_required_idx(self) -> tuple[int, ...]:
        """Joints whose velocity the robot estimates: those of the body."""
        return self.body_idx

    def component_joints(self, component: str) -> tuple[str, ...]:
        """Names of the joints of a component, in the order of its command vectors.

        Raises:
            NameNotFoundError: There is no such component.
        """
        if not isinstance(component, str) or component not in COMPONENTS:
            raise NameNotFoundError(str(component), "component", COMPONENTS)
        return tuple(self.robot_joint_names[i] for i in getattr(self, f"{component}_idx"))


_NAMES = ("A", "M", "UB")


def model_description(name: str) -> ModelDescription:
    """One model of the RB-Y1, with the limits of the latest version.

    Args:
        name: ``"A"``, ``"M"`` or ``"UB"``; the case does not matter.

    Raises:
        DtypeError: `name` is not a string.
        NameNotFoundError: There is no such form.

    Example:
        >>> from rbydyn_jax.rby1.commands import model_description
        >>> model_description("A").right_arm_idx
        (8, 9, 10, 11, 12, 13, 14)
    """
    if not isinstance(name, str):
        raise DtypeError(f"model must be a name or a ModelDescription, got {type(name).__name__}")
    if name.upper() not in _NAMES:
        raise NameNotFoundError(name, "model", _NAMES)
    return _describe(name.upper())


@functools.lru_cache(16)
def described_by(name: str, urdf: str) -> ModelDescription:
    """One model of the RB-Y1, with the limits of its joints in a URDF.

    Args:
        name: ``"A"``, ``"M"`` or ``"UB"``.
        urdf: The text of the URDF, as `get_robot_model` of a connected robot returns it.

    Raises:
        NameNotFoundError: There is no such model.
        ParseError: The text describes no robot with a link ``"base"``.
    """
    from ..dynamics import Robot, load_robot_from_urdf_data  # not above: commands need no dynamics

    description = model_description(name)
    robot = Robot(load_robot_from_urdf_data(urdf, "base"))
    state = robot.make_state([], robot.get_joint_names())
    found = {
        "position_lower": robot.get_limit_q_lower(state),
        "position_upper": robot.get_limit_q_upper(state),
        "velocity_limit": robot.get_limit_qdot_upper(state),
    }
    limits = {}
    for field, values in found.items():
        known = dict(zip(robot.get_joint_names(), values.tolist(), strict=True))
        latest = zip(description.robot_joint_names, getattr(description, field), strict=True)
        limits[field] = tuple(known.get(joint, limit) for joint, limit in latest)
    return dataclasses.replace(description, **limits)


@functools.cache
def _describe(name: str) -> ModelDescription:
    from ...robots import descriptions  # not above: it takes longer to import than all commands

    describe = {"A": descriptions.describe_rby1a, "M": descriptions.describe_rby1m, "UB": descriptions.describe_rby1ub}
    robot = describe[name]()
    base = robot.mobile_base
    wheels = base.joints if base else ()
    moving = {j.name: j for j in robot.joints if j.kind != "fixed"}
    parts = {"mobility": list(wheels)}
    for part in ("torso", "right_arm", "left_arm", "head"):
        parts[part] = [joint for joint in moving if joint.startswith(part)]
    order = [joint for part in parts.values() for joint in part]
    indices = {key: tuple(order.index(joint) for joint in part) for key, part in parts.items()}
    return ModelDescription(
        model_name=name,
        robot_joint_names=tuple(order),
        mobility_idx=indices["mobility"],
        body_idx=indices["torso"] + indices["right_arm"] + indices["left_arm"],
        head_idx=indices["head"],
        right_arm_idx=indices["right_arm"],
        left_arm_idx=indices["left_arm"],
        torso_idx=indices["torso"],
        link_names=tuple(link.name for link in robot.links),
        mobile_base=base.kind if base else "",
        position_lower=tuple(moving[joint].lower for joint in order),
        position_upper=tuple(moving[joint].upper for joint in order),
        velocity_limit=tuple(moving[joint].velocity for joint in order),
    )
