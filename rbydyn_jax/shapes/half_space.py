"""Half-spaces, such as a floor or a wall: obstacles of a world only, since nothing fills one on a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._lazy import jax
from .base import Vector


class PlacedHalfSpaces(NamedTuple):
    """Half-spaces in world coordinates, component by component: what pair functions are given."""

    point: Vector
    normal: Vector


class HalfSpace(NamedTuple):
    """All that is below planes.

    Attributes:
        point: A point of the plane [m].
        normal: The unit normal of the plane, away from what is filled.
    """

    point: Float[Any, "*n 3"]
    normal: Float[Any, "*n 3"]

    kind = "half_space"

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedHalfSpaces:
        """Some of the half-spaces; `moved` are the coordinates of the points and of the normals."""
        px, py, pz, nx, ny, nz = moved
        return PlacedHalfSpaces((px, py, pz), (nx, ny, nz))
