"""Collision shapes: capsules, the collision objects that carry them, and results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..._errors import DtypeError
from .._enumerations import SdkEnum, mirrors
from ._errors import ModelError
from ._segments import nearest_points
from ._values import checked, finite, pose, size, unsigned

Point = Float[np.ndarray, "3"]


@mirrors("dynamics.GeomType")
class GeomType(SdkEnum):
    """Kinds of shapes."""

    Capsule = 0


class CollisionResult(NamedTuple):
    """Distance of two shapes.

    Attributes:
        link1: Link of the first shape; empty where the shapes were compared without a robot.
        link2: Link of the second.
        position1: Nearest point (3,) on the *axis* of the first capsule, not on its surface, as in the SDK [m].
        position2: Nearest point on the axis of the second.
        distance: Signed distance of the surfaces [m]; negative is the depth of the overlap.
    """

    link1: str = ""
    link2: str = ""
    position1: Point = np.zeros(3)
    position2: Point = np.zeros(3)
    distance: float = 0.0

    def __repr__(self) -> str:
        return (
            f"CollisionResult(\n  link1={self.link1!r},\n  link2={self.link2!r},\n  position1={self.position1},\n"
            f"  position2={self.position2},\n  distance={self.distance:.3g}\n)"
        )

    def __str__(self) -> str:
        return f"CollisionResult(l1={self.link1!r}, l2={self.link2!r}, d={self.distance:.3g})"


class Geom:
    """A shape with two bit masks; only `GeomCapsule` has a form.

    Args:
        coltype: Bit mask of its collision group.
        colaffinity: Bit mask of the groups that it is tested against.

    Raises:
        DtypeError: A mask is negative or no integer.
    """

    def __init__(self, coltype: int, colaffinity: int) -> None:
        self._coltype, self._colaffinity = unsigned(coltype, "coltype"), unsigned(colaffinity, "colaffinity")

    @property
    def coltype(self) -> int:
        """Bit mask of its collision group."""
        return self._coltype

    @property
    def colaffinity(self) -> int:
        """Bit mask of the groups that it is tested against."""
        return self._colaffinity

    def get_coltype(self) -> int:
        """Returns the bit mask of its collision group."""
        return self._coltype

    def get_colaffinity(self) -> int:
        """Returns the bit mask of the groups that it is tested against."""
        return self._colaffinity

    def get_type(self) -> GeomType:
        """Returns the kind of shape.

        Raises:
            ModelError: It is a plain `Geom`, which has no form.
        """
        raise ModelError("a plain Geom has no form; use GeomCapsule")

    def filter(self, other_geom: Geom) -> bool:
        """Returns whether the pair is tested: the type of the one meets the affinity of the other."""
        other = checked(other_geom, "other_geom", Geom)
        return bool(self._coltype & other._colaffinity or other._coltype & self._colaffinity)

    def compute_minimum_distance(self, T: ArrayLike, other_geom: Geom, other_T: ArrayLike) -> CollisionResult | None:
        """Returns the distance to another shape; ignores the filter, as in the SDK.

        Args:
            T: Pose (4, 4) of this shape.
            other_geom: The other shape.
            other_T: Its pose (4, 4).

        Raises:
            ModelError: One of the two is a plain `Geom`.
        """
        for geom in (self, checked(other_geom, "other_geom", Geom)):
            geom.get_type()
        return None


class GeomCapsule(Geom):
    """A capsule: a segment, swept by a sphere.

    `GeomCapsule(height, radius, coltype, colaffinity)` lies along z, from +height/2 to -height/2;
    `GeomCapsule(start_point, end_point, radius, coltype, colaffinity)` anywhere. All arguments are required, by
    position or by name.

    Raises:
        ArgumentError: A length is negative or not finite.
        DtypeError: The arguments are neither of the two.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        forms = (
            ("height", "radius", "coltype", "colaffinity"),
            ("start_point", "end_point", "radius", "coltype", "colaffinity"),
        )
        for names in forms:
            given = dict(zip(names, args, strict=False)) if len(args) <= len(names) else {}
            if len(given) == len(args) and not given.keys() & kwargs.keys() and {*given, *kwargs} == {*names}:
                break
        else:
            options = " or ".join(f"({', '.join(names)})" for names in forms)
            raise DtypeError(f"GeomCapsule takes {options}, got {len(args)} values and {sorted(kwargs)}")
        given |= kwargs
        super().__init__(given["coltype"], given["colaffinity"])
        if "height" in given:
            half = 0.5 * size(given["height"], "height")
            self._start, self._end = np.array([0.0, 0.0, half]), np.array([0.0, 0.0, -half])
        else:
            self._start, self._end = (finite(given[name], name, 3) for name in ("start_point", "end_point"))
        self._radius = size(given["radius"], "radius")

    @property
    def start_point(self) -> Point:
        """First end of the axis [m]: a copy."""
        return self._start.copy()

    @property
    def end_point(self) -> Point:
        """Second end of the axis [m]: a copy."""
        return self._end.copy()

    @property
    def radius(self) -> float:
        """Radius [m]."""
        return self._radius

    def get_start_point(self) -> Point:
        """Returns the first end of the axis [m]."""
        return self.start_point

    def get_end_point(self) -> Point:
        """Returns the second end of the axis [m]."""
        return self.end_point

    def get_radius(self) -> float:
        """Returns the radius [m]."""
        return self._radius

    def get_type(self) -> GeomType:
        """Returns `GeomType.Capsule`."""
        return GeomType.Capsule

    def compute_minimum_distance(self, T: ArrayLike, other_geom: Geom, other_T: ArrayLike) -> CollisionResult | None:
        """Returns the exact distance to another capsule; ignores the filter, as in the SDK.

        Args:
            T: Pose (4, 4) of this capsule.
            other_geom: The other capsule.
            other_T: Its pose (4, 4).

        Raises:
            ArgumentError: A pose is no rigid transform.
            DtypeError: A pose is not of shape (4, 4).
            ModelError: The other one is a plain `Geom`.
        """
        other = checked(other_geom, "other_geom", Geom)
        if not isinstance(other, GeomCapsule):
            return super().compute_minimum_distance(T, other, other_T)
        ends = []
        for geom, at in ((self, pose(T, "T")), (other, pose(other_T, "other_T"))):
            R, p = at[:3, :3], at[:3, 3]
            ends += [(R @ geom._start + p)[:, None], (R @ (geom._end - geom._start))[:, None]]
        distance, first, second = nearest_points(*ends)
        return CollisionResult("", "", first[:, 0], second[:, 0], float(distance[0]) - self._radius - other._radius)

    def __repr__(self) -> str:
        return f"GeomCapsule(\n  start_point={self._start},\n  end_point={self._end},\n  radius={self._radius:g}\n)"

    def __str__(self) -> str:
        return f"GeomCapsule(r={self._radius:g}, p0={self._start}, p1={self._end})"


class Collision:
    """A collision object of a link: shapes in one frame.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._name = checked(name, "name", str)
        self._origin = np.eye(4)
        self._geoms: list[Geom] = []
        self._revision = object()  # another one after each change, so that robots notice

    @property
    def name(self) -> str:
        """Its name, which the SDK does not expose."""
        return self._name

    @property
    def origin(self) -> Float[np.ndarray, "4 4"]:
        """Pose in the link: a copy."""
        return self._origin.copy()

    @property
    def geoms(self) -> list[Geom]:
        """The shapes: a copy of the list."""
        return list(self._geoms)

    def add_geom(self, geom: Geom) -> None:
        """Adds a shape.

        Raises:
            DtypeError: It is not a `Geom`.
        """
        self._geoms.append(checked(geom, "geom", Geom))
        self._revision = object()

    def get_geoms(self) -> list[Geom]:
        """Returns the shapes: a copy of the list."""
        return list(self._geoms)

    def set_origin(self, T: ArrayLike) -> None:
        """Sets the pose (4, 4) in the link.

        Raises:
            ArgumentError: It is no rigid transform.
            DtypeError: It is not of shape (4, 4).
        """
        self._origin = pose(T, "T")
        self._revision = object()

    def get_origin(self) -> Float[np.ndarray, "4 4"]:
        """Returns the pose in the link."""
        return self.origin

    def __repr__(self) -> str:
        return f"Collision(\n  origin={self._origin},\n  geoms={len(self._geoms)}\n)"

    def __str__(self) -> str:
        return f"Collision(geoms={len(self._geoms)})"
