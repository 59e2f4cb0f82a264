"""Collision shapes of robots whose files have meshes, and lists of spheres."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from .._check import check_choice, check_integer, check_sequence
from .._extras import require
from .._progress import Progress, check_progress, reported
from ..io.findings import fail
from ..io.mesh_files import find_mesh
from ..io.urdf import read_bytes, read_urdf
from ..io.xacro import expand_xacro
from ..shapes.base import Shape
from ..shapes.box import Box
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import ConvexHull, ConvexHullGeometry
from ..shapes.mesh import MeshGeometry
from .bounding import bounding_ball, bounding_capsule, bounding_hull, covering_balls

_FEATURE = "collision.mesh_shapes"
_FINEST = 20  # edges are cut to this part of a mesh's size before it is covered by spheres
_MOST_VERTICES = 32  # of a hull
_FLAT = 1e-6  # thickness of a flat mesh, relative to its size: files have float32
_THRESHOLD = 0.05  # concavity at which coacd stops cutting
# Of coacd: a quarter of its own default search, which takes 20 s for a link of a UR5 instead of over a minute.
_SEARCH = {"mcts_iterations": 60, "mcts_max_depth": 2, "resolution": 1000, "preprocess_resolution": 30}

Fit = Literal["capsule", "sphere", "box", "hull"]


def mesh_shapes(
    path: str | Path,
    fit: Fit = "capsule",
    *,
    parts: int = 1,
    packages: Sequence[str | Path] = (),
    progress: Progress = False,
) -> dict[str, list[Shape]]:
    """Shapes around the collision meshes of a URDF or xacro file, for `with_shapes`.

    Every shape contains what it stands for, so that a distance is never larger than that of the mesh: one capsule, box
    or hull the convex hull, several spheres the surface, several capsules, boxes or hulls the convex parts that CoACD
    makes of it [Wei et al. 2022], which are off by about a hundredth of its size. Capsules have a small volume; boxes
    are oriented as trimesh finds them; a hull is the convex hull itself, or where that has more than 32 vertices, what
    a choice of its faces bounds.

    Args:
        path: The file of the robot.
        fit: ``"capsule"``, ``"sphere"``, ``"box"`` or ``"hull"``.
        parts: The most shapes of a mesh: with more than one, spheres cover its surface in groups of triangles, and
            other shapes stand for convex parts.
        packages: Folders that are ROS packages, or that hold some, where ``package://`` is looked for.
        progress: Called with the number of meshes done and that of all; True shows a progress bar.

    Returns:
        For each link that has collision meshes their shapes, in the axes of the link.

    Raises:
        ArgumentError: `fit` is unknown, or `parts` less than 1.
        DtypeError: `path` is no path, `parts` no integer, `packages` no sequence, or `progress` neither a bool nor a
            function.
        MissingExtraError: trimesh, scipy or coacd is not installed (extra ``meshes``), or tqdm for a progress bar.
        ParseError: The file or a mesh is not there or cannot be read, or a mesh is flat and has no hull.

    Example:
        ```python
        shapes = collision.mesh_shapes("panda.urdf", packages=["~/ros"])
        arm = collision.with_shapes(rb.load_urdf("panda.urdf"), shapes)
        ```
    """
    check_choice(fit, "fit", get_args(Fit))
    parts = check_integer(parts, "parts", 1)
    check_sequence(packages, "packages", "folders")
    check_progress(progress)
    text: bytes | str = read_bytes(path)
    if Path(path).suffix == ".xacro":
        text = expand_xacro(path)
    description, findings = read_urdf(text, os.fspath(path))
    findings.report()
    meshes = [
        (link.name, collision.geometry, collision.origin)
        for link in description.links
        for collision in link.collisions
        if isinstance(collision.geometry, MeshGeometry)
    ]
    found: dict[str, list[Shape]] = {}
    for link, geometry, origin in reported(meshes, progress, len(meshes), _FEATURE):
        mesh = _mesh(geometry, origin, path, packages, link)
        if fit == "hull" and _is_flat(np.asarray(mesh.vertices)):
            message = f'link {link!r}: the mesh {geometry.filename!r} is flat and has no hull; use fit="box"'
            raise fail(message, os.fspath(path))
        found.setdefault(link, []).extend(_fitted(mesh, fit, parts))
    return found


def _mesh(geometry: MeshGeometry, origin: np.ndarray, urdf: str | Path, packages: Any, link: str) -> Any:
    """The mesh in the axes of its link."""
    trimesh = require("trimesh", "meshes", _FEATURE)
    folders = [Path(folder).expanduser() for folder in packages]
    if (file := find_mesh(geometry.filename, urdf, folders)) is None:
        raise fail(
            f"link {link!r}: the mesh {geometry.filename!r} is not found; give the folder of its package in packages=",
            os.fspath(urdf),
        )
    try:
        mesh = trimesh.load_mesh(file)
    except Exception as error:  # the readers of the many formats raise whatever they raise
        raise fail(f"link {link!r}: {file} cannot be read: {error}", os.fspath(urdf)) from error
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        raise fail(f"link {link!r}: {file} has no triangles of finite size", os.fspath(urdf))
    mesh.apply_transform(np.asarray(origin, float) @ np.diag([*np.asarray(geometry.scale, float), 1.0]))
    return mesh


def _fitted(mesh: Any, fit: Fit, parts: int) -> list[Shape]:
    if fit == "sphere":
        if parts == 1:
            return [_ball(*bounding_ball(np.asarray(mesh.vertices)))]
        fine = mesh.subdivide_to_size(float(mesh.scale) / _FINEST, max_iter=30)
        return [_ball(*ball) for ball in covering_balls(np.asarray(fine.triangles), parts)]
    make = {"capsule": _capsule, "box": _box, "hull": _hull}[fit]
    return [make(x) for x in _convex_parts(mesh, parts)]


def _convex_parts(mesh: Any, parts: int) -> list[Any]:
    trimesh = require("trimesh", "meshes", _FEATURE)
    if parts == 1:
        return [mesh]
    coacd = require("coacd", "meshes", f"{_FEATURE} with several parts")
    coacd.set_log_level("error")
    whole = coacd.Mesh(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int32))
    found = coacd.run_coacd(whole, threshold=_THRESHOLD, max_convex_hull=parts, seed=0, **_SEARCH)
    return [trimesh.Trimesh(vertices, faces) for vertices, faces in found]


def _corners(mesh: Any) -> np.ndarray:
    """Those of its convex hull; all of a flat mesh, which has none."""
    require("scipy.spatial", "meshes", _FEATURE)
    try:
        return np.asarray(mesh.convex_hull.vertices)
    except Exception:  # of the hull's library, whose errors are its own
        return np.asarray(mesh.vertices)


def _ball(center: np.ndarray, radius: float) -> Capsule:
    return Capsule(np.array([center, center]), np.array(radius))


def _capsule(mesh: Any) -> Capsule:
    ends, radius = bounding_capsule(_corners(mesh))
    return Capsule(ends, np.array(radius))


def _plane(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes as rows, the last normal to the plane next to points (n, 3), and how far they extend along these."""
    axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    return axes, np.ptp(points @ axes.T, axis=0)


def _is_flat(points: np.ndarray) -> bool:
    _, extents = _plane(points)
    return bool(extents[2] <= _FLAT * extents[0])


def _flat_bounds(trimesh: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `oriented_bounds` finds of points in space, for those in a plane."""
    axes, extents = _plane(points)
    to_plane = np.eye(4)
    to_plane[:3, :3] = axes * [[1.0], [1.0], [np.linalg.det(axes)]]
    to_plane[2, 3] = -(to_plane[2, :3] @ points.mean(axis=0))
    in_plane = trimesh.transform_points(points, to_plane)[:, :2]
    try:
        turned, rectangle = trimesh.bounds.oriented_bounds_2D(in_plane)
    except Exception:  # of the hull's library, of points on a line
        turned, rectangle = np.eye(3), extents[:2]
        turned[:2, 2] = -0.5 * (in_plane.max(axis=0) + in_plane.min(axis=0))
    to_box = np.eye(4)
    to_box[:2, :2], to_box[:2, 3] = turned[:2, :2], turned[:2, 2]
    return to_box @ to_plane, np.append(rectangle, 0.0)


def _box(mesh: Any) -> Box:
    trimesh = require("trimesh", "meshes", _FEATURE)
    points = np.asarray(mesh.vertices)
    if _is_flat(points):
        to_box, extents = _flat_bounds(trimesh, points)
    else:
        to_box, extents = trimesh.bounds.oriented_bounds(mesh, ordered=False)
    T = np.linalg.inv(to_box)
    x = np.asarray(mesh.vertices) @ T[:3, :3] - T[:3, 3] @ T[:3, :3]
    return Box(T[:3, 3], T[:3, :3].T, np.maximum(0.5 * np.asarray(extents), np.abs(x).max(axis=0)))


def _hull(mesh: Any) -> ConvexHull:
    return ConvexHullGeometry(bounding_hull(_corners(mesh), _MOST_VERTICES)).on_link(np.eye(4))


def read_spheres(path: str | Path) -> dict[str, list[Capsule]]:
    """Spheres on links from a YAML file with `collision_spheres`, as cuRobo and others have, for `with_shapes`.

    The file maps each link to a list of ``{center: [x, y, z], radius: r}`` in metres and axes of the link; the mapping
    may stand below ``robot_cfg`` and ``kinematics``. A sphere of negative radius is one that is switched off. A
    `collision_sphere_buffer` beside it, one number or one for each link, is added to the radii.

    Args:
        path: The file.

    Raises:
        DtypeError: `path` is no path.
        MissingExtraError: PyYAML is not installed (extra ``meshes``).
        ParseError: The file cannot be read, has no such lists, or lists a link twice.
    """
    yaml = require("yaml", "meshes", "collision.read_spheres")
    source = os.fspath(path) if isinstance(path, str | os.PathLike) else str(path)
    text = read_bytes(path)
    twice: list[str] = []

    class Loader(yaml.SafeLoader):
        """YAML allows no key twice; PyYAML takes the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value if isinstance(key.value, str)]
            twice.extend(name for k, name in enumerate(names) if name in names[:k])
            return super().construct_mapping(node, deep)

    try:
        content = yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: of a date, a number or an encoding
        raise fail(f"this is no YAML: {error}", source) from error
    if twice:
        raise fail(f"{twice[0]!r} is listed twice", source)
    added: Any = 0.0
    for name in ("robot_cfg", "kinematics", "collision_spheres"):
        if isinstance(content, dict) and name in content:
            added, content = content.get("collision_sphere_buffer", 0.0), content[name]
    if not isinstance(content, dict) or not all(isinstance(rows, list) for rows in content.values()):
        raise fail("expected collision_spheres: a list of spheres for each link", source)
    found: dict[str, list[Capsule]] = {}
    for link, rows in content.items():
        own = added.get(link, 0.0) if isinstance(added, dict) else added
        if isinstance(own, bool) or not isinstance(own, int | float) or not np.isfinite(own):
            raise fail(f"expected collision_sphere_buffer: a number, or one for each link, got {added!r}", source)
        balls = (_sphere(row, f"{link}[{k}]", source, float(own)) for k, row in enumerate(rows))
        found[str(link)] = [ball for ball in balls if ball is not None]
    return found


def _sphere(row: Any, name: str, source: str, added: float) -> Capsule | None:
    try:
        if any(isinstance(x, bool) for x in (*row["center"], row["radius"])):
            raise TypeError
        center, radius = np.array([float(x) for x in row["center"]]), float(row["radius"])
    except (TypeError, KeyError, ValueError, OverflowError):
        raise fail(f"{name}: expected center: [x, y, z] and radius:, got {row!r}", source) from None
    if center.shape != (3,) or not np.isfinite([*center, radius]).all():
        raise fail(f"{name}: expected three finite coordinates and a finite radius, got {row!r}", source)
    if 0.0 <= radius < -added:
        raise fail(f"{name}: the radius {radius} and collision_sphere_buffer {added} are less than nothing", source)
    return None if radius < 0.0 else _ball(center, radius + added)
