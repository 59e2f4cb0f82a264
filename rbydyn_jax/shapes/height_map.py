"""Height maps, such as a terrain: obstacles of a world only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from .base import Vector


class PlacedHeightMaps(NamedTuple):
    """Height maps in world coordinates: what pair functions are given, of which each takes one pair."""

    origin: Vector
    axes: tuple[Vector, Vector, Vector]
    heights: Float[Array, "*n nx ny"]
    spacing: Float[Array, "*n"]


class HeightMap(NamedTuple):
    """All that is below surfaces over regular grids of points.

    Between four neighbours the surface is two triangles, which meet on the diagonal from the first to the last of them.
    Beyond its border, the outermost heights go on.

    Attributes:
        origin: The point of the first height, at height zero [m].
        axes: The directions of the rows, of the columns and upwards, unit vectors as rows.
        heights: Above the plane of the origin, along both directions of the grid [m].
        spacing: Between neighbours [m].
    """

    origin: Float[Any, "*n 3"]
    axes: Float[Any, "*n 3 3"]
    heights: Float[Any, "*n nx ny"]
    spacing: Float[Any, "*n"]

    kind = "height_map"

    def gathered(self, rows: np.ndarray, moved: Sequence[Array]) -> PlacedHeightMaps:
        """Some of the maps; `moved` are the coordinates of the origins and of the axes."""
        origin, *axes = ((moved[k], moved[k + 1], moved[k + 2]) for k in range(0, 12, 3))
        return PlacedHeightMaps(origin, (axes[0], axes[1], axes[2]), self.heights[rows], self.spacing[rows])

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """The triangles of one map's surface, with their last corner twice, in world coordinates."""
        heights = np.asarray(self.heights, float)
        x, y = np.meshgrid(*(float(self.spacing) * np.arange(n) for n in heights.shape), indexing="ij")
        points = np.asarray(self.origin) + np.stack([x, y, heights], axis=-1) @ np.asarray(self.axes)
        a, b, c, d = (points[i : i - 1 or None, j : j - 1 or None] for i in (0, 1) for j in (0, 1))
        corners = np.concatenate([np.stack(x, axis=2).reshape(-1, 4, 3) for x in ((a, c, d, d), (a, d, b, b))])
        return corners @ pose[:3, :3].T + pose[:3, 3]
