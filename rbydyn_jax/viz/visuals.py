"""The visuals of a robot file: shapes and meshes that are only looked at, which no model has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._extras import require
from ..io.findings import Findings
from ..io.mjcf import compile_mjcf, object_names
from ..io.placement import placement, rotation_from_wxyz
from ..io.urdf import read_bytes
from ..io.urdf_links import read_geometry
from ..io.urdf_values import Scope
from ..io.xacro import expand_xacro
from ..io.xml import XmlElement, parse_xml
from ..shapes import Geometry, collision_geometries

Color = tuple[float, float, float, float]  # red, green, blue, opacity in [0, 1]


@dataclass(frozen=True, eq=False)
class Triangles:
    """A mesh that is at hand: vertices (n, 3) [m] and faces (m, 3)."""

    tag: ClassVar[str] = "mesh"

    vertices: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True, eq=False)
class Visual:
    """One visual: its link, its geometry with the pose T_link_visual (4, 4), and its colour, if it has one."""

    link: str
    geometry: Geometry | Triangles
    origin: np.ndarray
    color: Color | None


def read_visuals(path: str | Path) -> list[Visual]:
    """The visuals of all links of a URDF, xacro or MJCF file; those that cannot be read are left out.

    Raises:
        DtypeError: `path` is not a path.
        MissingExtraError: It is a xacro or MJCF file, and xacrodoc or mujoco is not installed.
        ParseError: There is no such file, or it is no XML.
    """
    text = expand_xacro(path) if str(path).endswith(".xacro") else read_bytes(path)
    root = parse_xml(text, str(path))
    if root.tag == "mujoco":
        return _of_mujoco(compile_mjcf(path), str(path))
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


_SHOWN_GROUPS = 3  # of the geoms of MuJoCo, as in its own viewer: 0, 1 and 2


def _of_mujoco(mj_model: Any, source: str) -> list[Visual]:
    """The meshes of a compiled model, and the shapes that take no part in contacts; the others a model has."""
    mujoco = require("mujoco", "mjcf", "rbydyn_jax.viz.Viewer")
    mesh = int(mujoco.mjtGeom.mjGEOM_MESH)
    shapes = {
        int(getattr(mujoco.mjtGeom, f"mjGEOM_{shape.mujoco.upper()}")): shape
        for shape in collision_geometries().values()
        if shape.mujoco is not None
    }
    found, links = [], object_names(mujoco, mj_model, "body", source)
    for k in range(mj_model.ngeom):
        kind, touches = int(mj_model.geom_type[k]), mj_model.geom_contype[k] or mj_model.geom_conaffinity[k]
        if mj_model.geom_group[k] >= _SHOWN_GROUPS or (kind != mesh and (touches or kind not in shapes)):
            continue
        geometry = _triangles(mj_model, k) if kind == mesh else shapes[kind].from_mujoco(mj_model.geom_size[k])
        pose = placement(mj_model.geom_pos[k], rotation_from_wxyz(mj_model.geom_quat[k]))
        material = int(mj_model.geom_matid[k])
        r, g, b, opacity = (mj_model.mat_rgba[material] if material >= 0 else mj_model.geom_rgba[k]).tolist()
        found.append(Visual(links[int(mj_model.geom_bodyid[k])], geometry, pose, (r, g, b, opacity)))
    return found


def _triangles(mj_model: Any, geom: int) -> Triangles:
    mesh = int(mj_model.geom_dataid[geom])
    first, count = int(mj_model.mesh_vertadr[mesh]), int(mj_model.mesh_vertnum[mesh])
    face, faces = int(mj_model.mesh_faceadr[mesh]), int(mj_model.mesh_facenum[mesh])
    vertices = np.array(mj_model.mesh_vert[first : first + count], float)
    return Triangles(vertices, np.array(mj_model.mesh_face[face : face + faces]))


def _color(material: XmlElement, scope: Scope) -> Color | None:
    element = material.first("color")
    rgba = None if element is None else scope.vector(element, "rgba", "material rgba", 4)
    return None if rgba is None else (rgba[0], rgba[1], rgba[2], rgba[3])
