"""The robot that a command is about: of a file, of the library, or of `robot_descriptions`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

from .. import robots
from .._errors import NameNotFoundError
from ..io.build import load_urdf
from ..io.mjcf import load_mjcf
from ..io.urdf import read_bytes
from ..io.xacro import load_xacro
from ..io.xml import parse_xml
from ..model.model import Model


class Source(NamedTuple):
    """Where a robot is described, if in a file, its format, and the folders in which its packages are."""

    name: str
    path: Path | None = None
    format: str = ""
    packages: tuple[Path, ...] = ()

    def load(self) -> Model:
        """The robot, in JAX's default precision.

        Raises:
            MissingExtraError: The package that reads the format is not installed.
            ParseError: The file describes no robot.
        """
        if self.path is None:
            return getattr(robots, self.name)()
        return {"urdf": load_urdf, "xacro": load_xacro, "mjcf": load_mjcf}[self.format](self.path)


def find(robot: str) -> Source:
    """The source of a file name, or of a name.

    Raises:
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read.
    """
    if Path(robot).suffix or Path(robot).exists():
        return _of_file(Path(robot))
    own = [name for name in dir(robots) if name[0] != "_" and callable(getattr(robots, name)) and name != "build_model"]
    if robot in own:
        return Source(robot)
    try:
        description = importlib.import_module(f"robot_descriptions.{robot}")
    except ImportError:
        raise NameNotFoundError(robot, "robot", own) from None
    paths = [getattr(description, name, None) for name in ("URDF_PATH", "XACRO_PATH", "MJCF_PATH")]
    package = Path(description.PACKAGE_PATH)
    return _of_file(Path(next(path for path in paths if path)))._replace(packages=(package, package.parent))


def load(robot: str) -> Model:
    """The robot of a file, or of a name.

    Raises:
        MissingExtraError: The package that reads the format is not installed.
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    return find(robot).load()


def _of_file(path: Path) -> Source:
    if path.suffix == ".xacro":
        return Source(str(path), path, "xacro")
    root = parse_xml(read_bytes(path), str(path)).tag
    return Source(str(path), path, "mjcf" if root == "mujoco" else "urdf")
