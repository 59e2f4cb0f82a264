"""From a description to a `Model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from .._check import check_flag
from .._errors import DtypeError
from ..model.model import Model, float_dtype, free_fall, model_from_arrays
from .builder import RobotBuilder
from .check import check_description
from .check_types import check_types
from .check_welded import EARTH_GRAVITY, weld_checked
from .description import RobotDescription
from .findings import Findings


def build_model(
    description: RobotDescription | RobotBuilder,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    gravity: Sequence[float] = EARTH_GRAVITY,
    strict: bool = False,
    dtype: jnp.dtype | None = None,
) -> Model:
    """Checks a description, welds what does not move, and makes a `Model` of it.

    Args:
        description: The robot, or the builder that has collected it.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is depth-first in document order.
        gravity: Acceleration of free fall in world axes (3,) [m/s^2].
        strict: Whether a warning is an error.
        dtype: Type of the leaves; default is JAX's default float.

    Raises:
        ArgumentError: `gravity` is not finite, or `joint_order` is not a permutation of the moving joints.
        DtypeError: `description` or a part of it, `gravity` or an option is of another type, or `dtype` is not a
            floating-point type.
        ModelError: The description is invalid; the message names every element concerned.
        NameNotFoundError: There is no such base link or joint.
        ShapeError: `gravity` is not of shape (3,).

    Example:
        >>> from rbydyn_jax.io import RobotBuilder
        >>> robot = RobotBuilder("pendulum").link("base").link("bob", mass=2.0, com=(0, 0, -0.5), inertia=0.01)
        >>> build_model(robot.revolute("hinge", "base", "bob", axis=(0, 1, 0))).nq
        1
    """
    if isinstance(description, RobotBuilder):
        description = description.build_description()
    if not isinstance(description, RobotDescription):
        kind = type(description).__name__
        raise DtypeError(f"description must be a RobotDescription or a RobotBuilder, got {kind}; a file: load_urdf")
    check_options(base_link, floating_base, joint_order, strict)
    check_types(description)
    findings = Findings()
    check_description(description, findings, base_link)
    return assemble(description, findings, base_link, floating_base, joint_order, gravity, strict, dtype)


def check_options(base_link: Any, floating_base: Any, joint_order: Any, strict: Any) -> None:
    """Checks the options that all formats share.

    Raises:
        DtypeError: One is of another type.
    """
    if not isinstance(base_link, str | None):
        raise DtypeError(f"base_link must be the name of a link, got {type(base_link).__name__}")
    check_flag(floating_base, "floating_base")
    check_flag(strict, "strict")
    listed = isinstance(joint_order, Sequence) and not isinstance(joint_order, str | bytes)
    if joint_order is not None and not (listed and all(isinstance(name, str) for name in joint_order)):
        raise DtypeError(f"joint_order must be a sequence of names of joints, got {joint_order!r}")


def assemble(
    description: RobotDescription,
    findings: Findings,
    base_link: str | None,
    floating_base: bool,
    joint_order: Sequence[str] | None,
    gravity: Sequence[float],
    strict: bool,
    dtype: jnp.dtype | None,
) -> Model:
    """Welds a checked description and makes a `Model` of it, unless there is an error among the findings."""
    dtype, gravity = float_dtype(dtype), free_fall(gravity).tolist()
    robot = weld_checked(
        description,
        findings,
        base_link=base_link,
        floating_base=floating_base,
        joint_order=joint_order,
        gravity=gravity,
        strict=strict,
        floats=jnp.finfo(dtype),
    )
    return model_from_arrays(robot, report=findings.report(strict), gravity=gravity, dtype=dtype)
