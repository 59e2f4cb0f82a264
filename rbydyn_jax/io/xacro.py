"""Robots from xacro files, expanded by `xacrodoc` without ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .._check import require
from .._errors import Finding, ParseError
from ..model.model import Model
from .build import load_urdf_string
from .urdf import read_bytes


def load_xacro(
    path: str | Path,
    arguments: Mapping[str, str] | None = None,
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
        arguments: Values of its ``<xacro:arg>`` elements.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a quaternion joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted for q and v; default is depth-first in document order.
        strict: Whether a warning is an error.

    Raises:
        DtypeError: `path` is not a path.
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


def expand_xacro(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """The URDF document that a xacro file becomes; see `load_xacro`.

    Raises:
        DtypeError: `path` is not a path.
        MissingExtraError: xacrodoc is not installed.
        ParseError: The file cannot be expanded.
    """
    xacrodoc = require("xacrodoc", "xacro", "load_xacro")
    read_bytes(path)  # raises this library's error for a wrong path
    try:
        document = xacrodoc.XacroDoc.from_file(str(path), subargs=dict(arguments or {}), resolve_packages=False)
        return document.to_urdf_string()
    except Exception as error:  # xacro runs the file's expressions: it raises whatever they raise
        raise ParseError([Finding("error", f"xacro: {error}", source=str(path))]) from error
