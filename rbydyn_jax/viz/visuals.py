"""The visuals of a URDF file: shapes and mesh files that are only looked at, which no model has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..io.findings import Findings
from ..io.urdf import read_bytes
from ..io.urdf_links import read_geometry
from ..io.urdf_values import Scope
from ..io.xacro import expand_xacro
from ..io.xml import XmlElement, parse_xml
from ..shapes import Geometry

Color = tuple[float, float, float, float]  # red, green, blue, opacity in [0, 1]


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
