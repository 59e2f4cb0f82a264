"""Cylinders."""

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
from .capsule import rotation_to


@dataclass(frozen=True, eq=False)
class CylinderGeometry(CollisionGeometry):
    """A cylinder of `length` and `radius` [m] along its own z axis, centred."""

    tag = "cylinder"
    sizes = ("length", "radius")
    mujoco = "cylinder"

    length: float
    radius: float

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.size("length"), element.size("radius"))

    @classmethod
    def from_mujoco(cls, size: np.ndarray) -> Self:
        """The shape of a geom of MuJoCo with the numbers `size` (3,): radius and half the length."""
        return cls(2.0 * float(size[1]), float(size[0]))

    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> Cylinder:
        """Its parameters in the axes of a link, for its pose T_link_shape there."""
        origin = np.asarray(origin, float)
        return Cylinder(origin[:3, 3], origin[:3, 2], np.array(0.5 * self.length), np.array(self.radius, float))


class PlacedCylinders(NamedTuple):
    """Cylinders in world coordinates, component by component: what pair functions are given."""

    center: Vector
    axis: Vector
    half_length: jax.Array
    radius: jax.Array


class Cylinder(NamedTuple):
    """Cylinders on links; see `Shape`.

    Attributes:
        center: In link axes [m].
        axis: Its direction, a unit vector in link axes.
        half_length: Half its length [m].
        radius: Radius [m].
    """

    center: Float[Any, "*n 3"]
    axis: Float[Any, "*n 3"]
    half_length: Float[Any, "*n"]
    radius: Float[Any, "*n"]

    kind = "cylinder"
    points, directions = 1, 1

    def moved(self, row: int, pose: Transform) -> tuple[Scalar, ...]:
        """The centre and the axis of one cylinder in the axes of the world."""
        center = pose.apply(Vec3(*(self.center[row, i] for i in range(3))))
        return *center, *pose.R.apply(Vec3(*(self.axis[row, i] for i in range(3))))

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedCylinders:
        """Some of the cylinders in world coordinates."""
        cx, cy, cz, ax, ay, az = moved
        return PlacedCylinders((cx, cy, cz), (ax, ay, az), self.half_length[rows], self.radius[rows])

    def described(self) -> tuple[CylinderGeometry, Float[np.ndarray, "4 4"]]:
        """The geometry of one cylinder and its pose T_link_shape."""
        origin = np.eye(4)
        origin[:3, :3], origin[:3, 3] = rotation_to(np.asarray(self.axis, float)), self.center
        return CylinderGeometry(2.0 * float(self.half_length), float(self.radius)), origin

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """The quadrilaterals of one cylinder's surface in world coordinates, given T_world_link."""
        around = np.linspace(0.0, 2.0 * np.pi, 19)
        ring = np.stack([np.cos(around), np.sin(around)], axis=1)
        outline = np.array([[0.0, -1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]) * [self.radius, self.half_length]
        circles = np.stack([np.c_[r * ring, np.full(len(ring), z)] for r, z in outline])
        quads = np.stack([circles[:-1, :-1], circles[:-1, 1:], circles[1:, 1:], circles[1:, :-1]], axis=2)
        placed = pose @ self.described()[1]
        return quads.reshape(-1, 4, 3) @ placed[:3, :3].T + placed[:3, 3]
