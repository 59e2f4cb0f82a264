"""``rbydyn codegen``: a function of a robot as C source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax

from .._errors import ArgumentError
from ..compilation.arguments import MissingArgumentError
from ..compilation.codegen import generate_c
from .source import load


def codegen(
    robot: str,
    function: str,
    output: Path,
    *,
    arguments: Sequence[tuple[str, str]] = (),
    name: str | None = None,
    dtype: str = "float64",
    parameters: bool = False,
) -> int:
    """Writes the header and the source of a function; returns 0.

    Args:
        robot: A file or a name.
        function: Name of a function of the library.
        output: The folder.
        arguments: Its static arguments, such as ``("link", "tool")``.
        name: Name in C; None is made of those of the robot and of the function.
        dtype: ``"float64"`` or ``"float32"``.
        parameters: Whether the robot's parameters are an argument.

    Raises:
        ArgumentError: The function cannot be written in C, returns no arrays, or an argument is missing.
        NameNotFoundError: There is no such robot, function, or argument.
        ParseError: The file describes no robot.
    """
    with jax.enable_x64(True):
        try:
            found = generate_c(load(robot), (function, dict(arguments)), dtype, name=name, parameters=parameters)
        except MissingArgumentError as error:
            raise ArgumentError(f"{function} needs {error.argument}: --set {error.argument}=...") from None
        header, source = found.save(output)
    print(f"{found}\n{header}\n{source}")
    return 0
