"""Boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float

from .._lazy import jax
from ..spatial.algebra import Transform, Vec3
from ..xla.structural import Scalar
from .base import CollisionGeometry, SizeReader, Vector


@dataclass(frozen=True, eq=False)
class BoxGeometry(CollisionGeometry):
    """A box of full side lengths `size` (3,) [m], centred."""

    tag = "box"
    sizes = ("size",)
    size_shape = (3,)
    mujoco = "box"

    size: np.ndarray

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.sizes("size"))

    @classmethod
    def from_mujoco(cls, size: np.ndarray) -> Self:
        """The shape of a geom of MuJoCo with the numbers `size` (3,): half the side lengths."""
        return cls(2.0 * np.asarray(size, float))

    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> Box:
        """Its parameters in the axes of a link, for its pose T_link_shape there."""
        origin = np.asarray(origin, float)
        return Box(origin[:3, 3], origin[:3, :3].T, 0.5 * np.asarray(self.size, float))


class PlacedBoxes(NamedTuple):
    """Boxes in world coordinates, component by component: what pair functions are given."""

    center: Vector
    axes: tuple[Vector, Vector, Vector]
    half: Vector


class Box(NamedTuple):
    """Boxes on links; see `Shape`.

    Attributes:
        center: In link axes [m].
        axes: The directions of the sides as rows, unit vectors in link axes.
        half: Half the side lengths [m].
    """

    center: Float[Any, "*n 3"]
    axes: Float[Any, "*n 3 3"]
    half: Float[Any, "*n 3"]

    kind = "box"
    points, directions = 1, 3

    def moved(self, row: int, pose: Transform) -> tuple[Scalar, ...]:
        """The centre and the three axes of one box in the axes of the world."""
        center = pose.apply(Vec3(*(self.center[row, i] for i in range(3))))
        axes = [pose.R.apply(Vec3(*(self.axes[row, k, i] for i in range(3)))) for k in range(3)]
        return tuple(x for vector in (center, *axes) for x in vector)

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedBoxes:
        """Some of the boxes in world coordinates."""
        center, *axes = ((moved[k], moved[k + 1], moved[k + 2]) for k in range(0, 12, 3))
        x, y, z = (self.half[rows, k] for k in range(3))
        return PlacedBoxes(center, (axes[0], axes[1], axes[2]), (x, y, z))

    def described(self) -> tuple[BoxGeometry, Float[np.ndarray, "4 4"]]:
        """The geometry of one box and its pose T_link_shape."""
        origin = np.eye(4)
        origin[:3, :3], origin[:3, 3] = np.asarray(self.axes, float).T, self.center
        return BoxGeometry(2.0 * np.asarray(self.half, float)), origin

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """The quadrilaterals of one box's surface in world coordinates, given T_world_link."""
        corners = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]) * 1.0
        faces = np.stack([np.roll(corners, k, axis=1) * sign for k in range(3) for sign in (1.0, -1.0)])
        points = np.asarray(self.center) + (faces * self.half) @ np.asarray(self.axes)
        return points @ pose[:3, :3].T + pose[:3, 3]
