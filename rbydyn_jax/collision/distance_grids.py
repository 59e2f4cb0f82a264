"""Grids of signed distances from clouds of points and from meshes."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._check import check_array, check_finite, check_not_negative, check_number, check_positive
from .._errors import ArgumentError
from .._extras import require
from ..io.findings import fail
from ..io.urdf import read_bytes
from ..shapes.distance_grid import DistanceGrid
from .obstacles import distance_grid

_MOST = 2**26  # points of a grid: half a gigabyte
_TOGETHER = 2**20  # distances of points from triangles at a time


def grid_from_points(
    points: Float[np.ndarray, "p 3"], spacing: float, *, margin: float = 0.2, radius: float = 0.0
) -> DistanceGrid:
    """A grid of the distances from a cloud of points, exact at its own points.

    A cloud has no inside: with a radius of zero no distance is negative, and between the points of the grid that of a
    point of the cloud is found too large, by the diagonal of a cell at most. Give at least the spacing as the radius.

    Args:
        points: The cloud in world coordinates [m].
        spacing: Between neighbours of the grid [m].
        margin: How far the grid reaches beyond the cloud and its radius [m].
        radius: Radius of the ball about each point of the cloud [m].

    Raises:
        ArgumentError: There is no point, a number is not finite, `spacing` is not positive or too small for the
            cloud, or `margin` or `radius` negative.
        DtypeError: `points` is no array of floats, or another argument no number.
        ShapeError: `points` is not of shape (p, 3).

    Example:
        >>> import numpy as np
        >>> grid_from_points(np.zeros((1, 3)), 0.1, margin=0.2, radius=0.05).values.shape
        (7, 7, 7)
    """
    cloud = np.asarray(check_array(points, "points", (None, 3), "p, 3"))
    check_finite(cloud, "points")
    if not len(cloud):
        raise ArgumentError("points must have at least one point")
    radius = check_number(radius, "radius")
    check_not_negative(radius, "radius")
    origin, grid, spacing = _lattice(cloud, spacing, margin, radius)
    tree = require("scipy.spatial", "meshes", "collision.grid_from_points").cKDTree(cloud)
    return _made(tree.query(grid)[0] - radius, origin, spacing, cloud.dtype)


def grid_from_mesh(path: str | Path, spacing: float, *, margin: float = 0.2) -> DistanceGrid:
    """A grid of the signed distances from a mesh file, exact at its own points.

    Inside is where the triangles wind around a point [Jacobson et al. 2013]: the mesh should be closed, and small holes
    are closed in effect. The time is that of all points of the grid times all triangles.

    Args:
        path: A file that trimesh reads, in metres.
        spacing: Between neighbours of the grid [m].
        margin: How far the grid reaches beyond the mesh [m].

    Raises:
        ArgumentError: `spacing` is not positive or too small for the mesh, or `margin` negative.
        DtypeError: `path` is no path, or another argument no number.
        MissingExtraError: trimesh is not installed (extra ``meshes``).
        ParseError: The file cannot be read, or has no triangles.

    Example:
        ```python
        shelf = collision.World(collision.grid_from_mesh("shelf.stl", 0.02))
        ```
    """
    trimesh: Any = require("trimesh", "meshes", "collision.grid_from_mesh")
    content, source = read_bytes(path), os.fspath(path)
    try:
        mesh = trimesh.load_mesh(io.BytesIO(content), file_type=Path(path).suffix[1:])
    except Exception as error:  # the readers of the many formats raise whatever they raise
        raise fail(f"{source} cannot be read: {error}", source) from error
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        raise fail(f"{source} has no triangles of finite size", source)
    triangles = np.asarray(mesh.triangles, float)
    origin, grid, spacing = _lattice(np.asarray(mesh.vertices, float), spacing, margin)
    found, rows = [], grid.reshape(-1, 3)
    for some in np.array_split(rows, -(-len(rows) * len(triangles) // _TOGETHER)):
        _, distance, _ = trimesh.proximity.closest_point_naive(mesh, some)
        found.append(np.where(np.abs(_windings(triangles, some)) > 0.5, -distance, distance))
    return _made(np.concatenate(found).reshape(grid.shape[:3]), origin, spacing, jnp.zeros(()).dtype)


def _lattice(
    points: np.ndarray, spacing: float, margin: float, radius: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """The first point of a grid around points, all its points (nx, ny, nz, 3), and the spacing, checked."""
    spacing, margin = check_number(spacing, "spacing"), check_number(margin, "margin")
    check_positive(spacing, "spacing")
    check_not_negative(margin, "margin")
    reach = margin + spacing * np.ceil(radius / spacing)  # whole cells: the grid stays where it was
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    with np.errstate(over="ignore"):
        size = float(np.prod((high - low) / spacing + 1.0))
    if not size <= _MOST:
        raise ArgumentError(f"spacing {spacing:g} makes a grid of {size:.3g} points, more than {_MOST}")
    counts = np.maximum(np.ceil((high - low) / spacing - 1e-9).astype(int), 1) + 1
    index = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1)
    return low, low + spacing * index, spacing


def _made(values: np.ndarray, origin: np.ndarray, spacing: float, dtype: Any) -> DistanceGrid:
    T = np.eye(4)
    T[:3, 3] = origin
    return distance_grid(jnp.asarray(values, dtype), jnp.asarray(spacing, dtype), jnp.asarray(T, dtype))


def _windings(triangles: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How often the surface winds around points: the solid angles of the triangles [van Oosterom and Strackee 1983]."""
    a, b, c = np.moveaxis(triangles[None] - points[:, None, None, :], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    volume = np.einsum("pti,pti->pt", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("pti,pti->pt", x, y) for x, y in ((a, b), (b, c), (c, a)))
    return np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum(axis=1) / (2.0 * np.pi)
