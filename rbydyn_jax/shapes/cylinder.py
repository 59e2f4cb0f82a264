"""Cylinders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from .base import Geometry, SizeReader


@dataclass(frozen=True, eq=False)
class CylinderGeometry(Geometry):
    """A cylinder of `length` and `radius` [m] along its own z axis, centred."""

    tag = "cylinder"
    sizes = ("length", "radius")

    length: float
    radius: float

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.size("length"), element.size("radius"))
