"""Triangles of shapes and of mesh files, by trimesh, which comes with viser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import require
from ..io.mesh_files import find_mesh
from ..shapes import CollisionGeometry, MeshGeometry
from ..shapes.base import Shape
from .visuals import Triangles, Visual

FEATURE = "rbydyn_jax.viz.Viewer"
_SHARP = np.deg2rad(40.0)  # edges between faces that differ by more are shown as edges


def surface_mesh(shape: Shape) -> Any:
    """The surface of one shape in the axes of its link, as a `trimesh.Trimesh` that is smooth but at its edges."""
    trimesh = require("trimesh", "view", FEATURE)
    quads = shape.surface(np.eye(4))
    corners = np.arange(4 * len(quads)).reshape(-1, 4)
    mesh = trimesh.Trimesh(quads.reshape(-1, 3), np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]))
    mesh.merge_vertices(digits_vertex=9)
    mesh.update_faces(mesh.nondegenerate_faces())
    return trimesh.graph.smooth_shade(mesh, angle=_SHARP, facet_minarea=None)


def visual_mesh(visual: Visual, urdf: str | Path, packages: Sequence[str | Path] = ()) -> Any:
    """One visual in the axes of its link, as a `trimesh.Trimesh` or a `trimesh.Scene`; None if its file is not found or
    cannot be read."""
    trimesh = require("trimesh", "view", FEATURE)
    geometry = visual.geometry
    if isinstance(geometry, CollisionGeometry):
        mesh = surface_mesh(geometry.on_link(visual.origin))
    elif isinstance(geometry, Triangles):
        mesh = trimesh.Trimesh(geometry.vertices, geometry.faces)
        mesh = trimesh.graph.smooth_shade(mesh, angle=_SHARP, facet_minarea=None)
        mesh.apply_transform(np.asarray(visual.origin, float))
    elif not isinstance(geometry, MeshGeometry) or (path := find_mesh(geometry.filename, urdf, packages)) is None:
        return None
    else:
        try:
            mesh = trimesh.load_scene(path)
        except Exception:  # the readers of the many formats raise whatever they raise
            return None
        scale = np.diag([*np.asarray(geometry.scale, float), 1.0])
        mesh.apply_transform(np.asarray(visual.origin, float) @ scale)
    if visual.color is not None:
        for part in mesh.geometry.values() if isinstance(mesh, trimesh.Scene) else [mesh]:
            if part.visual.kind is None:  # as in STL files
                part.visual.face_colors = np.array(visual.color)
    return mesh
