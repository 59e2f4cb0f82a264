"""``rbydyn convert``: a robot as URDF."""

from __future__ import annotations

from pathlib import Path

import jax

from ..io.save import save_urdf, to_urdf
from .source import load


def convert(robot: str, output: Path | None = None, *, collisions: bool = True) -> int:
    """Writes a robot with the same kinematics and dynamics as URDF; returns 0.

    Args:
        robot: A file or a name.
        output: The file, which is replaced if it exists; None is the standard output.
        collisions: Whether to write the collision shapes; capsules are not part of standard URDF.

    Raises:
        ModelError: A joint is of a type that URDF does not have.
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    with jax.enable_x64(True):
        model = load(robot)
        if output is None:
            print(to_urdf(model, collisions=collisions), end="")
        else:
            save_urdf(model, output, collisions=collisions)
    return 0
