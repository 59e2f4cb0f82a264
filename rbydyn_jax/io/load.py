"""Robots from files: URDF, xacro and MJCF, and from the package `mujoco`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._errors import DtypeError
from .._extras import require
from ..model.model import Model
from .build import assemble, check_options
from .check_welded import EARTH_GRAVITY
from .mjcf import compile_mjcf, read_mujoco
from .urdf import read_bytes, read_urdf
from .xacro import expand_xacro


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
    r"""Loads a robot from the text of a URDF file; see `load_urdf`.

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

    Example:
        >>> text = '<robot name="box"><link name="base"/><link name="lid"/>' \
        ...     '<joint name="hinge" type="continuous"><parent link="base"/><child link="lid"/></joint></robot>'
        >>> load_urdf_string(text).joint_names
        ('hinge',)
    """
    if not isinstance(text, str | bytes):
        hint = "; use load_urdf for a file" if isinstance(text, Path) else ""
        raise DtypeError(f"text must be str or bytes, got {type(text).__name__}{hint}")
    if not isinstance(source, str):
        raise DtypeError(f"source must be a str, got {type(source).__name__}")
    check_options(base_link, floating_base, joint_order, strict)
    description, findings = read_urdf(text, source, base_link=base_link)
    return assemble(description, findings, base_link, floating_base, joint_order, EARTH_GRAVITY, strict, None)


def load_xacro(
    path: str | Path,
    arguments: Mapping[str, str | float] | None = None,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    strict: bool = False,
) -> Model:
    """Loads a robot from a xacro file; line numbers in messages are those of the expanded document.

    A xacro file is a program in a small language: load only files that you trust.

    Args:
        path: The file.
        arguments: Values of its ``<xacro:arg>`` elements: text, or numbers, which become text. Names that the file does
            not have are ignored.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is depth-first in document order.
        strict: Whether a warning is an error.

    Raises:
        DtypeError: `path` is not a path, or `arguments` no mapping of names to text or numbers.
        MissingExtraError: xacrodoc is not installed.
        ParseError: The file cannot be expanded, or describes no robot.
        NameNotFoundError: There is no such base link or joint.
    """
    text = expand_xacro(path, arguments)
    return load_urdf_string(
        text,
        base_link=base_link,
        floating_base=floating_base,
        joint_order=joint_order,
        strict=strict,
        source=f"{path} (expanded)",
    )


def load_mjcf(
    path: str | Path,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    strict: bool = False,
) -> Model:
    """Loads a robot from an MJCF file through the package `mujoco`; see `from_mujoco`.

    Args:
        path: The file.
        base_link: Keep only this body and what is below it; default is the world.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is MuJoCo's.
        strict: Whether a warning is an error.

    Raises:
        MissingExtraError: `mujoco` is not installed.
        ParseError: The file cannot be read, or MuJoCo refuses it.
        NameNotFoundError: There is no such base link or joint.
    """
    return _from_mujoco(compile_mjcf(path), str(path), base_link, floating_base, joint_order, strict)


def from_mujoco(
    mj_model: Any,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    strict: bool = False,
) -> Model:
    """Makes a `Model` of a compiled `mujoco.MjModel`: bodies, joints, inertias, armature, losses, limits and gravity.

    Capsules, spheres, boxes and cylinders that take part in contacts become collision shapes, with `contype` and
    `conaffinity` as their bit masks. Gravity, damping or friction that a flag disables is zero. What a `Model` cannot
    hold (tendons, equalities, actuators, springs, damping that is not linear, limits of ball joints, compensation of
    gravity, a medium, other shapes) goes to its report. An `actuatorfrcrange` that is not symmetric becomes its smaller
    side, or the other one if that is zero, with a warning.

    Args:
        mj_model: The compiled model.
        base_link: Keep only this body and what is below it; default is the world.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is MuJoCo's.
        strict: Whether a warning is an error.

    Raises:
        DtypeError: `mj_model` is no `mujoco.MjModel`.
        MissingExtraError: `mujoco` is not installed.
        ModelError: The model makes no sense as a robot.
        NameNotFoundError: There is no such base link or joint.
    """
    if not isinstance(mj_model, require("mujoco", "mjcf", "from_mujoco").MjModel):
        raise DtypeError(f"mj_model must be a mujoco.MjModel, got {type(mj_model).__name__}; a file: load_mjcf")
    return _from_mujoco(mj_model, "<mujoco>", base_link, floating_base, joint_order, strict)


def _from_mujoco(
    mj_model: Any,
    source: str,
    base_link: str | None,
    floating_base: bool,
    joint_order: Sequence[str] | None,
    strict: bool,
) -> Model:
    check_options(base_link, floating_base, joint_order, strict)
    description, findings, gravity = read_mujoco(mj_model, source, base_link=base_link)
    return assemble(description, findings, base_link, floating_base, joint_order, gravity, strict, None)
