"""The visuals of a URDF file: shapes and mesh files that are only looked at, which no model has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from ..io.findings import Findings
from ..io.urdf import read_bytes
from ..io.urdf_links import read_geometry
from ..io.urdf_values import Scope
from ..io.xacro import expand_xacro
from ..io.xml import XmlElement, parse_xml
from ..shapes import Geometry

Color = tuple[float, float, float, float]  # red, green, blue, opacity in [0, 1]
_SEARCHED = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")


@dataclass(frozen=True, eq=False)
class Visual:
    """One visual: its link, its geometry with the pose T_link_visual (4, 4), and its colour, if it has one."""

    link: str
    geometry: Geometry
    origin: np.ndarray
    color: Color | None


def read_visuals(path: str | Path) -> list[Visual]:
    """The visuals of all links of a URDF or xacro file; those that cannot be read are left out.

    Raises:
        DtypeError: `path` is not a path.
        MissingExtraError: It is a xacro file, and xacrodoc is not installed.
        ParseError: There is no such file, or it is no XML.
    """
    text = read_bytes(path) if Path(path).suffix != ".xacro" else expand_xacro(path)
    root = parse_xml(text, str(path))
    scope = Scope(Findings(str(path)), "visual")
    materials = {m.get("name"): color for m in root.children("material") if (color := _color(m, scope)) is not None}
    found = []
    for link in root.children("link"):
        for visual in link.children("visual"):
            read = read_geometry(visual, scope)
            if read is None:
                continue
            material = visual.first("material")
            color = None if material is None else _color(material, scope) or materials.get(material.get("name"))
            found.append(Visual(link.get("name") or "", read[0], scope.origin(visual, "visual origin"), color))
    return found


def _color(material: XmlElement, scope: Scope) -> Color | None:
    element = material.first("color")
    rgba = None if element is None else scope.vector(element, "rgba", "material rgba", 4)
    return None if rgba is None else (rgba[0], rgba[1], rgba[2], rgba[3])


def find_mesh(filename: str, urdf: str | Path, packages: Sequence[str | Path] = ()) -> Path | None:
    """The file that a URDF file means by the name of a mesh; None if it is not found.

    ``package://NAME/...`` is looked for in the folders `packages`, in those of ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and
    CMAKE_PREFIX_PATH, and in the folders around the file; other names are relative to the file.

    Args:
        filename: The name in the file.
        urdf: The URDF file.
        packages: Folders that are packages, or that hold some.
    """
    around = Path(urdf).resolve().parent
    scheme, colon, rest = filename.partition("://")
    if not colon:
        candidates: Iterator[Path] = iter([around / filename])
    elif scheme == "file":
        candidates = iter([Path(unquote(rest))])
    elif scheme in ("package", "model"):
        name, _, inside = rest.partition("/")
        candidates = _in_packages(name, inside, [*map(Path, packages), *_environment(), around, *around.parents])
    else:
        return None
    return next((path for path in candidates if path.is_file()), None)


def _in_packages(name: str, inside: str, folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.name == name:
            yield folder / inside
        yield folder / name / inside
        yield folder / "share" / name / inside


def _environment() -> list[Path]:
    return [Path(x) for name in _SEARCHED for x in os.environ.get(name, "").split(os.pathsep) if x]
