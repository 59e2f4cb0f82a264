"""The robot that a command is about: of a file, of the library, or of `robot_descriptions`."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .._errors import ArgumentError, NameNotFoundError, RbydynError
from ..io.check_welded import EARTH_GRAVITY, weld_checked
from ..io.description import RobotDescription
from ..io.findings import Findings
from ..io.mjcf import compile_mjcf, read_mujoco
from ..io.urdf import read_bytes, read_urdf
from ..io.xacro import expand_xacro
from ..io.xml import parse_xml
from ..model.arrays import RobotArrays
from ..robots import descriptions

if TYPE_CHECKING:
    from ..model.model import Model

_DESCRIBE = "describe_"
_OTHERS = "robot_descriptions"


class Described(NamedTuple):
    """A robot in plain numpy: its description, the same welded, and what was found in its file, in float64."""

    description: RobotDescription
    robot: RobotArrays
    findings: Findings


class Source(NamedTuple):
    """Where a robot is described, if in a file, its format, and the folders in which its packages are."""

    name: str
    path: Path | None = None
    format: str = ""
    packages: tuple[Path, ...] = ()

    def describe(self) -> Described:
        """The robot in plain numpy, read and checked as `load` does it.

        Raises:
            MissingExtraError: The package that reads the format is not installed.
            ParseError: The file describes no robot.
        """
        gravity = list(EARTH_GRAVITY)
        if self.path is None:
            description, findings = getattr(descriptions, _DESCRIBE + self.name)(), Findings()
        elif self.format == "mjcf":
            description, findings, gravity = read_mujoco(compile_mjcf(self.path), _short(self.path))
        else:
            text = expand_xacro(self.path) if self.format == "xacro" else read_bytes(self.path)
            name = f"{_short(self.path)} (expanded)" if self.format == "xacro" else _short(self.path)
            description, findings = read_urdf(text, name)
        return Described(description, weld_checked(description, findings, gravity=gravity), findings)

    def load(self) -> Model:
        """The robot, in JAX's default precision.

        Raises:
            MissingExtraError: The package that reads the format is not installed.
            ParseError: The file describes no robot.
        """
        from .. import io, robots

        if self.path is None:
            return getattr(robots, self.name)()
        return {"urdf": io.load_urdf, "xacro": io.load_xacro, "mjcf": io.load_mjcf}[self.format](self.path)


def find(robot: str) -> Source:
    """The source of a file name, or of a name.

    Raises:
        ArgumentError: The name is empty.
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read.
        RbydynError: `robot_descriptions` cannot fetch the robot.
    """
    if not robot:
        raise ArgumentError("the name of the robot is empty")
    if Path(robot).suffix or Path(robot).exists():
        return _of_file(Path(robot))
    own = [name.removeprefix(_DESCRIBE) for name in dir(descriptions) if name.startswith(_DESCRIBE)]
    if robot in own:
        return Source(robot)
    try:
        description = importlib.import_module(f"{_OTHERS}.{robot}")
    except ImportError:
        raise _not_found(robot, own) from None
    except Exception as error:  # such as of git, which fetches the files
        raise RbydynError(f"{_OTHERS}.{robot} cannot be fetched: {_first_line(error)}") from error
    paths = [getattr(description, name, None) for name in ("URDF_PATH", "XACRO_PATH", "MJCF_PATH")]
    path, package = next(filter(None, paths), None), getattr(description, "PACKAGE_PATH", None)
    if path is None or package is None:
        raise _not_found(robot, own)
    return _of_file(Path(path))._replace(packages=(Path(package), Path(package).parent))


def load(robot: str) -> Model:
    """The robot of a file, or of a name.

    Raises:
        MissingExtraError: The package that reads the format is not installed.
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    return find(robot).load()


def _not_found(robot: str, own: list[str]) -> NameNotFoundError:
    try:
        folders = importlib.import_module(_OTHERS).__path__
    except ImportError:
        return NameNotFoundError(robot, "robot", own, f"for others: pip install {_OTHERS}")
    others = [found.name for found in pkgutil.iter_modules(folders) if found.name.endswith("_description")]
    return NameNotFoundError(robot, "robot", [*own, *others])


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _of_file(path: Path) -> Source:
    if path.suffix == ".xacro":
        return Source(str(path), path, "xacro")
    root = parse_xml(read_bytes(path), str(path)).tag
    return Source(str(path), path, "mjcf" if root == "mujoco" else "urdf")


def _short(path: Path) -> str:
    """The path from the working directory, where it is below that."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
