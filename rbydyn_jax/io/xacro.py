"""Expands xacro files by `xacrodoc`, without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .._check import check_mapping
from .._errors import DtypeError, Finding, ParseError
from .._extras import require
from .urdf import read_bytes


def expand_xacro(path: str | Path, arguments: Mapping[str, str | float] | None = None) -> str:
    """The URDF document that a xacro file becomes; see `load_xacro`.

    Raises:
        DtypeError: `path` is not a path, or `arguments` no mapping of names to text or numbers.
        MissingExtraError: xacrodoc is not installed.
        ParseError: The file cannot be expanded.
    """
    xacrodoc = require("xacrodoc", "xacro", "load_xacro")
    read_bytes(path)  # raises this library's error for a wrong path
    given = _checked({} if arguments is None else arguments)
    # xacrodoc passes on the text alone: xacro would look for included files in the working directory.
    require("xacro", "xacro", "load_xacro").init_stacks(str(path))
    try:
        document = xacrodoc.XacroDoc.from_file(str(path), subargs=given, resolve_packages=False)
        return document.to_urdf_string()
    except Exception as error:  # xacro runs the file's expressions: it raises whatever they raise
        raise ParseError([Finding("error", f"xacro: {error}", source=str(path))]) from error


def _checked(arguments: Mapping[str, str | float]) -> dict[str, str]:
    check_mapping(arguments, "arguments", "names to texts or numbers")
    for name, value in arguments.items():
        if not isinstance(name, str):
            raise DtypeError(f"arguments must have names as keys, got {name!r}")
        if not isinstance(value, str | int | float):
            raise DtypeError(f"arguments[{name!r}] must be text or a number, got {type(value).__name__}")
    return {name: str(value) for name, value in arguments.items()}
