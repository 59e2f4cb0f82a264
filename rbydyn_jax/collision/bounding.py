"""The smallest shapes around points: spheres, capsules, hulls, and covers of a surface by spheres."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._extras import require

_FEATURE = "collision.mesh_shapes"
_BALL_STEPS = 2000
_SEED = 0


def bounding_ball(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre (3,) and radius [m] of a sphere around points (n, 3), larger than the smallest one by 0.1 % at most.

    Steps towards the farthest point, each shorter than the last [Badoiu and Clarkson 2003].
    """
    center = 0.5 * (points.min(axis=0) + points.max(axis=0))
    best, radius = center, float(np.linalg.norm(points - center, axis=1).max())
    center = points.mean(axis=0)
    for k in range(1, _BALL_STEPS):
        distances = np.linalg.norm(points - center, axis=1)
        farthest = int(distances.argmax())
        if distances[farthest] < radius:
            best, radius = center, float(distances[farthest])
        center = center + (points[farthest] - center) / (k + 1.0)
    return best, radius


def bounding_capsule(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Ends (2, 3) of the axis and radius [m] of a capsule around points (n, 3), of small volume.

    For a given axis the smallest capsule has a closed form; the axis is found by the simplex method of Nelder and Mead
    [1965] from the three principal axes. A sphere is a capsule without length, if no other is smaller.
    """
    minimize = require("scipy.optimize", "meshes", _FEATURE).minimize
    center = points.mean(axis=0)
    x = points - center
    size = float(np.abs(x).max()) or 1.0
    x = x / size
    axes = np.linalg.svd(x, full_matrices=True)[2] if len(x) > 2 else np.eye(3)

    def frame(u: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Rows: two normals and the axis, turned by small angles from a start."""
        z = start[2] + u[0] * start[0] + u[1] * start[1]
        z = z / np.linalg.norm(z)
        a = np.cross(z, np.eye(3)[np.abs(z).argmin()])
        a = a / np.linalg.norm(a)
        return np.array([a, np.cross(z, a), z])

    def around(u: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
        R = frame(u, start)
        y = x @ R.T - np.array([u[2], u[3], 0.0])
        distance = np.hypot(y[:, 0], y[:, 1])
        radius = float(distance.max()) + abs(u[4])
        reach = np.sqrt(np.maximum(radius**2 - distance**2, 0.0))
        low, high = float((y[:, 2] + reach).min()), float((y[:, 2] - reach).max())
        if high < low:
            low = high = 0.5 * (low + high)
        return np.array([[u[2], u[3], high], [u[2], u[3], low]]) @ R, radius

    def volume(u: np.ndarray, start: np.ndarray) -> float:
        ends, radius = around(u, start)
        length = float(np.linalg.norm(ends[0] - ends[1]))
        return np.pi * radius**2 * (length + 4.0 / 3.0 * radius)

    found: list[tuple[float, np.ndarray, float]] = []
    for k in range(3):
        start = np.roll(axes, k, axis=0)
        middle = 0.5 * ((x @ start.T).min(axis=0) + (x @ start.T).max(axis=0))
        R = frame(np.zeros(2), start)
        at = R @ (start.T @ middle)
        first = np.array([0.0, 0.0, at[0], at[1], 0.0])
        options = {"maxfev": 1500, "xatol": 1e-6, "fatol": 1e-9, "adaptive": True}
        solved = minimize(volume, first, args=(start,), method="Nelder-Mead", options=options)
        ends, radius = around(solved.x, start)
        found.append((float(solved.fun), ends, radius))
    ball, radius = bounding_ball(x)
    found.append((4.0 / 3.0 * np.pi * radius**3, np.array([ball, ball]), radius))
    _, ends, radius = min(found, key=lambda each: each[0])
    return ends * size + center, radius * size


def bounding_hull(points: np.ndarray, most: int) -> np.ndarray:
    """Vertices (v, 3), `most` at most, of a convex polytope around points (n, 3) that span a volume.

    The points themselves, if they are not more; otherwise what bounds it are planes that touch the points, with normals
    of faces of their hull, each the farthest from those before. k planes leave 2 k - 4 vertices at most.
    """
    spatial: Any = require("scipy.spatial", "meshes", _FEATURE)
    hull = spatial.ConvexHull(points)
    corners = points[hull.vertices]
    if len(corners) <= most:
        return corners
    normals = hull.equations[:, :3]
    axes = np.linalg.svd(corners - corners.mean(axis=0))[2]
    chosen = [*axes, *-axes]  # which bound a volume whatever follows
    nearest = np.max(normals @ np.array(chosen).T, axis=1)
    while len(chosen) < most // 2 + 2:
        chosen.append(normals[nearest.argmin()])
        nearest = np.maximum(nearest, normals @ chosen[-1])
    planes = np.array(chosen)
    half_spaces = np.column_stack([planes, -np.max(planes @ corners.T, axis=1)])
    return spatial.HalfspaceIntersection(half_spaces, corners.mean(axis=0)).intersections


def covering_balls(triangles: np.ndarray, count: int) -> list[tuple[np.ndarray, float]]:
    """Centres and radii [m] of so many spheres at most that cover all triangles (n, 3, 3).

    The triangles are grouped by the k-means of their centres; each group has the sphere around its corners, which
    contains the triangles, as it is convex.
    """
    vq: Any = require("scipy.cluster.vq", "meshes", _FEATURE)
    centers = triangles.mean(axis=1)
    count = min(count, len(np.unique(centers, axis=0)))
    _, group = vq.kmeans2(centers, count, seed=_SEED, minit="++", missing="warn" if count == 1 else "raise")
    return [bounding_ball(triangles[group == k].reshape(-1, 3)) for k in range(count) if (group == k).any()]
