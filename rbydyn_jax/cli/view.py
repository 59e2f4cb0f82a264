"""``rbydyn view``: a robot in a browser."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import robots
from .._errors import NameNotFoundError
from ..io.build import load_urdf
from ..io.mjcf import load_mjcf
from ..io.urdf import read_bytes
from ..io.xacro import load_xacro
from ..io.xml import parse_xml
from ..model.model import Model
from ..viz.show import show


class Found(NamedTuple):
    """A robot, the file that has its visuals, and the folders in which their packages are."""

    model: Model
    urdf: Path | None = None
    packages: tuple[Path, ...] = ()


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
        NameNotFoundError: There is no such robot, or no such link.
        ParseError: The file describes no robot.
    """
    found = find(robot)
    viewer = show(
        found.model,
        None if q is None else np.array(q),
        urdf=found.urdf,
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


def find(robot: str) -> Found:
    """The robot of a file, or of a name.

    Raises:
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    if Path(robot).suffix or Path(robot).exists():
        return _from_file(Path(robot))
    own = [name for name in dir(robots) if name[0] != "_" and callable(getattr(robots, name)) and name != "build_model"]
    if robot in own:
        return Found(getattr(robots, robot)())
    try:
        description = importlib.import_module(f"robot_descriptions.{robot}")
    except ImportError:
        raise NameNotFoundError(robot, "robot", own) from None
    paths = [getattr(description, name, None) for name in ("URDF_PATH", "XACRO_PATH", "MJCF_PATH")]
    package = Path(description.PACKAGE_PATH)
    return _from_file(Path(next(path for path in paths if path)))._replace(packages=(package, package.parent))


def _from_file(path: Path) -> Found:
    if path.suffix == ".xacro":
        return Found(load_xacro(path), path)
    if parse_xml(read_bytes(path), str(path)).tag == "mujoco":
        return Found(load_mjcf(path))
    return Found(load_urdf(path), path)
