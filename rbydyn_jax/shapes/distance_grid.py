"""Grids of signed distances: obstacles of a world only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from .base import Vector


class PlacedDistanceGrids(NamedTuple):
    """Grids in world coordinates: what pair functions are given, of which each takes one pair."""

    origin: Vector
    axes: tuple[Vector, Vector, Vector]
    values: Float[Array, "*n nx ny nz"]
    spacing: Float[Array, "*n"]


class DistanceGrid(NamedTuple):
    """Signed distances at the points of regular grids.

    Attributes:
        origin: The first point [m].
        axes: The directions of the grid, unit vectors as rows.
        values: The signed distances from what the grid stands for, negative inside of it [m].
        spacing: Between neighbours [m].
    """

    origin: Float[Any, "*n 3"]
    axes: Float[Any, "*n 3 3"]
    values: Float[Any, "*n nx ny nz"]
    spacing: Float[Any, "*n"]

    kind = "distance_grid"

    def gathered(self, rows: np.ndarray, moved: Sequence[Array]) -> PlacedDistanceGrids:
        """Some of the grids; `moved` are the coordinates of the origins and of the axes."""
        origin, *axes = ((moved[k], moved[k + 1], moved[k + 2]) for k in range(0, 12, 3))
        return PlacedDistanceGrids(origin, (axes[0], axes[1], axes[2]), self.values[rows], self.spacing[rows])

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """Squares around the points of one grid that are inside of what it stands for, in world coordinates."""
        inner = np.pad(np.asarray(self.values) < 0.0, 1)
        square = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
        found = []
        for axis in range(3):
            for sign in (1, -1):
                at = np.argwhere(inner & ~np.roll(inner, -sign, axis)) - 1
                corners = np.insert(square[::sign], axis, 0.5 * sign, axis=1)
                found.append(at[:, None, :] + corners)
        points = np.asarray(self.origin) + float(self.spacing) * np.concatenate(found) @ np.asarray(self.axes)
        return points @ pose[:3, :3].T + pose[:3, 3]
