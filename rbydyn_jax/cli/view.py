"""``rbydyn view``: a robot in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..viz.show import show
from .source import find


def view(
    robot: str,
    q: Sequence[float] | None = None,
    *,
    drag: Sequence[str] = (),
    packages: Sequence[Path] = (),
    host: str = "127.0.0.1",
    port: int = 8080,
    block: bool = True,
) -> int:
    """Shows a robot until Ctrl-C is pressed; returns 0.

    Args:
        robot: A URDF, xacro or MJCF file, a robot of the library, or a module of `robot_descriptions`.
        q: Its configuration [rad, m]; default is the neutral one.
        drag: Links that can be dragged.
        packages: Folders in which ``package://`` is looked for.
        host: The network interface.
        port: The first port that is tried.
        block: Whether to wait.

    Raises:
        ArgumentError: No server can listen at `host` and `port`.
        ModelError: No joint moves a link that is to be dragged.
        NameNotFoundError: There is no such robot, or no such link.
        ParseError: The file describes no robot.
    """
    found = find(robot)
    viewer = show(
        found.load(),
        None if q is None else np.array(q),
        urdf=found.path,
        packages=(*packages, *found.packages),
        drag=drag,
        host=host,
        port=port,
        block=False,
    )
    if viewer.missing_meshes:
        print(f"not shown: {', '.join(viewer.missing_meshes)} (see --packages)")
    viewer.wait() if block else viewer.close()
    return 0
