"""Expands xacro files by `xacrodoc`, without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .._check import require
from .._errors import Finding, ParseError
from .urdf import read_bytes


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
