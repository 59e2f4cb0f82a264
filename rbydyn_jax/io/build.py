"""From a description or a file to a `Model`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._check import check_flag
from .._errors import DtypeError
from ..model.model import Model, float_dtype, free_fall, model_from_arrays
from .builder import RobotBuilder
from .check import check_description
from .check_inertia import check_bodies
from .check_mimic import note_unused_of_followers
from .check_numbers import check_numbers
from .check_types import check_types
from .description import RobotDescription
from .findings import Findings
from .urdf import read_bytes, read_urdf
from .weld import weld

EARTH_GRAVITY = (0.0, 0.0, -9.81)


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


def load_urdf(
    path: str | Path,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    strict: bool = False,
) -> Model:
    """Loads a robot from a URDF file, the RB-Y1 dialect included; mesh files are never opened.

    `model.report` lists what was corrected or ignored, with line numbers.

    Args:
        path: The file.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is depth-first in document order.
        strict: Whether a warning is an error.

    Raises:
        DtypeError: `path` is not a path.
        ParseError: The file cannot be read or describes no robot; `error.findings` has all that is wrong, with lines.
        NameNotFoundError: There is no such base link or joint.
    """
    return load_urdf_string(
        read_bytes(path, hint="; use load_urdf_string"),
        base_link=base_link,
        floating_base=floating_base,
        joint_order=joint_order,
        strict=strict,
        source=str(path),
    )


def load_urdf_string(
    text: str | bytes,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    strict: bool = False,
    source: str = "<string>",
) -> Model:
    """Loads a robot from the text of a URDF file; see `load_urdf`.

    Args:
        text: The document.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is depth-first in document order.
        strict: Whether a warning is an error.
        source: Name of the text in messages.

    Raises:
        DtypeError: `text` is not str or bytes.
        ParseError: The text describes no robot; `error.findings` has all that is wrong, with lines.
        NameNotFoundError: There is no such base link or joint.
    """
    if not isinstance(text, str | bytes):
        hint = "; use load_urdf for a file" if isinstance(text, Path) else ""
        raise DtypeError(f"text must be str or bytes, got {type(text).__name__}{hint}")
    if not isinstance(source, str):
        raise DtypeError(f"source must be a str, got {type(source).__name__}")
    check_options(base_link, floating_base, joint_order, strict)
    description, findings = read_urdf(text, source, base_link=base_link)
    return assemble(description, findings, base_link, floating_base, joint_order, EARTH_GRAVITY, strict, None)


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


@np.errstate(over="ignore", invalid="ignore")  # overflows become findings
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
    """Welds a description whose findings are all in, and makes a `Model` of it unless one of them is an error."""
    if findings.failed:
        findings.report(strict)
    dtype, gravity = float_dtype(dtype), free_fall(gravity).tolist()
    robot = weld(
        description, base_link=base_link, floating_base=floating_base, joint_order=joint_order, findings=findings
    )
    check_numbers(description, robot, gravity, dtype, findings)
    if findings.failed:
        findings.report(strict)
    check_bodies(robot, findings, [link.name for link in description.links])
    note_unused_of_followers(robot, findings, [joint.name for joint in description.joints])
    return model_from_arrays(
        robot,
        report=findings.report(strict),
        gravity=gravity,
        dtype=dtype,
    )
