"""Capsules, and spheres: on a robot, a sphere is a capsule whose axis has no length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float

from .._check import check_finite, check_integer, check_not_negative, check_number, check_real
from .._lazy import jax
from ..spatial.algebra import Transform, Vec3
from ..xla.structural import Scalar
from .base import CollisionGeometry, SizeReader, Vector


@dataclass(frozen=True, eq=False)
class CapsuleGeometry(CollisionGeometry):
    """A capsule: a segment of `length` [m] along its own z axis, centred, swept by a sphere of `radius` [m]."""

    tag = "capsule"
    sizes = ("length", "radius")
    unused = ("sp", "ep")
    mujoco = "capsule"

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

    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> Capsule:
        """Its parameters in the axes of a link, for its pose T_link_shape there; the end at +z comes first."""
        return _along_z(self.length, self.radius, origin)


@dataclass(frozen=True, eq=False)
class SphereGeometry(CollisionGeometry):
    """A sphere of `radius` [m]."""

    tag = "sphere"
    sizes = ("radius",)
    mujoco = "sphere"

    radius: float

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.size("radius"))

    @classmethod
    def from_mujoco(cls, size: np.ndarray) -> Self:
        """The shape of a geom of MuJoCo with the numbers `size` (3,): the radius."""
        return cls(float(size[0]))

    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> Capsule:
        """Its parameters in the axes of a link, for its pose T_link_shape there."""
        return _along_z(0.0, self.radius, origin)


class PlacedCapsules(NamedTuple):
    """Capsules in world coordinates, component by component: what pair functions are given."""

    start: Vector
    end: Vector
    radius: jax.Array


class Capsule(NamedTuple):
    """Capsules on links; see `Shape`.

    Attributes:
        segment: End points of the axis, in link axes [m].
        radius: Radius [m].
    """

    segment: Float[Any, "*n 2 3"]
    radius: Float[Any, "*n"]

    kind = "capsule"
    points, directions = 2, 0

    def moved(self, row: int, pose: Transform) -> tuple[Scalar, ...]:
        """The six coordinates of the ends of one capsule's axis in the axes of the world."""
        points = [pose.apply(Vec3(*(self.segment[row, k, i] for i in range(3)))) for k in range(2)]
        return tuple(x for point in points for x in point)

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedCapsules:
        """Some of the capsules in world coordinates."""
        x0, y0, z0, x1, y1, z1 = moved
        return PlacedCapsules((x0, y0, z0), (x1, y1, z1), self.radius[rows])

    def described(self) -> tuple[CapsuleGeometry | SphereGeometry, Float[np.ndarray, "4 4"]]:
        """The geometry of one capsule and its pose T_link_shape; without length it is a sphere."""
        start, end = np.asarray(self.segment, float)
        return segment_geometry(start, end, float(self.radius))

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """The quadrilaterals of one capsule's surface in world coordinates, given T_world_link."""
        start, end = self.segment @ pose[:3, :3].T + pose[:3, 3]
        return capsule_surface(start, end, float(self.radius))


def segment_geometry(
    start: Float[np.ndarray, "3"], end: Float[np.ndarray, "3"], radius: float
) -> tuple[CapsuleGeometry | SphereGeometry, Float[np.ndarray, "4 4"]]:
    """The geometry and the pose (4, 4) of a capsule with the ends `start`, at +z, and `end` of its axis [m]."""
    length = float(np.linalg.norm(start - end))
    origin = np.eye(4)
    origin[:3, 3] = 0.5 * (start + end)
    if not length > 0.0:
        return SphereGeometry(radius), origin
    origin[:3, :3] = rotation_to((start - end) / length)
    return CapsuleGeometry(length, radius), origin


def capsule_surface(start: np.ndarray, end: np.ndarray, radius: float, sides: int = 18) -> np.ndarray:
    """The quadrilaterals of a capsule's surface.

    Args:
        start: One end of the axis (3,) [m].
        end: The other end (3,) [m].
        radius: Radius [m].
        sides: How many quadrilaterals go around the axis.

    Returns:
        Corners (n, 4, 3) [m].

    Raises:
        ArgumentError: A number is not finite, `radius` is negative, or `sides` less than 3.
        DtypeError: An argument is of another type.
        ShapeError: `start` or `end` is not of shape (3,).

    Example:
        >>> corners = capsule_surface(np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.1)
        >>> float(corners[..., 2].min()), float(corners[..., 2].max())
        (-0.1, 1.1)
    """
    start, end = check_real(start, "start", (3,)), check_real(end, "end", (3,))
    radius, sides = check_number(radius, "radius"), check_integer(sides, "sides", 3)
    for x, name in ((start, "start"), (end, "end")):
        check_finite(x, name)
    check_not_negative(radius, "radius")
    length = float(np.linalg.norm(end - start))
    z = (end - start) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    latitude = np.linspace(-0.5 * np.pi, 0.5 * np.pi, sides // 2 + 1)
    latitude = np.concatenate([latitude[latitude <= 0], latitude[latitude >= 0]])
    upper = np.arange(len(latitude)) >= len(latitude) // 2
    around = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    ring = np.cos(around)[:, None] * x + np.sin(around)[:, None] * np.cross(z, x)
    centers = np.where(upper[:, None], end, start) + radius * np.sin(latitude)[:, None] * z
    points = centers[:, None] + radius * np.cos(latitude)[:, None, None] * ring
    return np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], axis=2).reshape(-1, 4, 3)


def _along_z(length: float, radius: float, origin: np.ndarray) -> Capsule:
    origin = np.asarray(origin, float)
    center, reach = origin[:3, 3], 0.5 * length * origin[:3, 2]
    return Capsule(np.array([center + reach, center - reach]), np.array(radius, float))


def rotation_to(direction: np.ndarray) -> np.ndarray:
    """Returns a rotation (3, 3) that takes the z axis to a unit vector."""
    x, y, z = direction.tolist()
    if z < 0.0:  # half a turn about x first, away from the antipode
        return rotation_to(np.array([x, -y, -z])) * np.array([[1.0], [-1.0], [-1.0]])
    return np.array(
        [
            [1.0 - x * x / (1.0 + z), -x * y / (1.0 + z), x],
            [-x * y / (1.0 + z), 1.0 - y * y / (1.0 + z), y],
            [-x, -y, z],
        ]
    )
