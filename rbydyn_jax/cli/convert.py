"""``rbydyn convert``: a robot as URDF."""

from __future__ import annotations

import sys
from pathlib import Path

from ..io.urdf_writer import Capsules, write_urdf
from .source import find


def convert(robot: str, output: Path | None = None, *, collisions: bool = True, capsules: Capsules = "capsule") -> int:
    """Writes a robot with the same kinematics and dynamics as URDF; returns 0.

    Args:
        robot: A file or a name.
        output: The file, which is replaced if it exists, and whose folder is made if there is none; None is the
            standard output.
        collisions: Whether to write the collision shapes.
        capsules: As in `to_urdf`.

    Raises:
        ModelError: A joint is of a type that URDF does not have.
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    text = write_urdf(find(robot).describe().description, collisions=collisions, capsules=capsules)
    if output is None:
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:  # a stream of text, such as io.StringIO
            print(text, end="")
        else:  # whose encoding may be another than that of the file
            sys.stdout.flush()
            buffer.write(text.encode("utf-8"))
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    return 0
