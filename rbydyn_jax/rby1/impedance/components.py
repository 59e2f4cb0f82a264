"""The joints that a command controls as springs, and their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..._check import check_array, check_sequence
from ..._errors import ArgumentError, ModelError
from ...model.model import Model
from ..commands import (
    BodyCommand,
    BodyComponentBasedCommand,
    ComponentBasedCommand,
    JointImpedanceControlCommand,
    TorsoCommand,
)
from ..commands._node import fields_set
from ..commands.containers import Wrapper

Joints = str | Sequence[str] | None  # names of joints, the name of a part, or all

_PARTS = {
    "body": ("torso", "right_arm", "left_arm"),
    "torso": ("torso",),
    "right_arm": ("right_arm",),
    "left_arm": ("left_arm",),
}
_PLACES = {BodyCommand: "body", TorsoCommand: "torso"}
_GAINS = ("stiffness", "damping_ratio")  # which have to be finite, unlike limits
_FIELDS = ("position", "velocity_limit", "acceleration_limit", "stiffness", "torque_limit")


class Component(eqx.Module):
    """Joints that are commanded together, and their command with defaults filled in.

    Args:
        position: Targets [rad, m].
        velocity_limit: Limits of the profile to them [rad/s, m/s].
        acceleration_limit: Limits of the profile to them [rad/s^2, m/s^2].
        stiffness: Stiffness [N m/rad, N/m].
        damping_ratio: Damping ratio.
        torque_limit: Maximum torque or force, at most that of the actuator [N m, N].
        minimum_time: Minimum duration of the profile [s].
        q_indices: Indices of the joints in q; static.
        v_indices: Their indices in v; static.
    """

    position: Float[Array, "n"]
    velocity_limit: Float[Array, "n"]
    acceleration_limit: Float[Array, "n"]
    stiffness: Float[Array, "n"]
    damping_ratio: Float[Array, ""]
    torque_limit: Float[Array, "n"]
    minimum_time: Float[Array, ""]
    q_indices: tuple[int, ...] = eqx.field(static=True)
    v_indices: tuple[int, ...] = eqx.field(static=True)


def components(model: Model, command: Any, joints: Joints) -> tuple[Component, ...]:
    """The parts of the robot that a command is for.

    Raises:
        ArgumentError: The command is not one of joint impedance, or holds none, a joint is commanded twice, a field
            that has no default is unset, or a value is out of range.
        DtypeError: A field is not an array of floats.
        ModelError: A joint has several coordinates, or no joint of the robot belongs to a part.
        NameNotFoundError: The robot has no such joint.
        ShapeError: A field does not have one number for each joint.
    """
    found = tuple(_component(model, leaf, part) for leaf, part in _leaves(command, joints))
    if not found:
        raise ArgumentError("command must hold a joint impedance command, got none")
    taken = [k for component in found for k in component.v_indices]
    if len(set(taken)) < len(taken):
        raise ArgumentError("command names a joint twice")
    return found


def _leaves(command: Any, joints: Joints) -> Iterator[tuple[JointImpedanceControlCommand, Joints]]:
    """The joint impedance commands of a tree, each with the joints that it is for."""
    if isinstance(command, JointImpedanceControlCommand):
        yield command, joints
    elif isinstance(command, Wrapper):
        yield from _leaves(command.command, _PLACES.get(type(command), joints))
    elif isinstance(command, ComponentBasedCommand | BodyComponentBasedCommand):
        for name, child in fields_set(command).items():
            part = name.removesuffix("_command")
            if part not in _PARTS:
                raise ArgumentError(f"command must consist of joint impedance commands, got its {name}")
            yield from _leaves(child, part)
    else:
        kind = type(command).__name__
        raise ArgumentError(f"command must be a joint impedance command, or consist of such, got {kind}")


def _names(model: Model, joints: Joints) -> tuple[str, ...]:
    if joints is None:
        return model.joint_names
    if not isinstance(joints, str):
        return tuple(check_sequence(joints, "joints", "names of joints"))
    if joints not in _PARTS:
        raise ArgumentError(f"joints must be names of joints, or one of {', '.join(map(repr, _PARTS))}, got {joints!r}")
    starts = tuple(f"{part}_" for part in _PARTS[joints])
    names = tuple(name for name in model.joint_names if name.startswith(starts))
    if not names:
        raise ModelError(f"robot {model.name!r} has no joint whose name starts with {starts[0]!r}")
    return names


def _component(model: Model, command: JointImpedanceControlCommand, joints: Joints) -> Component:
    names = _names(model, joints)
    tree, n = model.tree, len(names)
    meaning = "one for each joint" + (" of the robot; give joints= if it is for some" if joints is None else "")
    indices = [tree.joint_index(name) for name in names]
    for k, name in zip(indices, names, strict=True):
        if tree.joints[k].nv != 1 or tree.mimics[k] is not None:
            raise ModelError(f"joint {name!r} has no coordinate of its own, or several: it cannot be a spring")
    at = np.array([tree.v_slices[k].start for k in indices], int)
    limits = {
        "velocity_limit": model.velocity_limit[at],
        "acceleration_limit": model.acceleration_limit[at],
        "torque_limit": model.effort_limit[at],
    }
    values: dict[str, Array] = {}
    for name in _FIELDS:
        x = getattr(command, name)
        x = limits.get(name) if x is None else x
        if x is None:
            raise ArgumentError(f"command.{name} is not set, and has no default")
        values[name] = _array(x, name, (n,), meaning)
    values["torque_limit"] = jnp.minimum(values["torque_limit"], model.effort_limit[at])
    for name, default in (("damping_ratio", 1.0), ("minimum_time", 0.0)):
        x = getattr(command, name)
        values[name] = _array(default if x is None else x, name, ())
    return Component(
        **values,
        q_indices=tuple(tree.q_slices[k].start for k in indices),
        v_indices=tuple(at.tolist()),
    )


def _array(x: Any, name: str, shape: tuple[int, ...], meaning: str = "") -> Array:
    array = check_array(x, f"command.{name}", shape, meaning)
    if not isinstance(array, Tracer):
        numbers = np.asarray(array)
        if name == "position":
            good, wanted = ~np.isnan(numbers), "numbers"
        elif name in _GAINS:
            good, wanted = (numbers >= 0.0) & np.isfinite(numbers), "finite and at least 0"
        else:
            good, wanted = numbers >= 0.0, "at least 0"
        if not good.all():
            raise ArgumentError(f"command.{name} must be {wanted}, got {array}")
    return array
