"""Meshes, by the names of their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .base import Geometry, SizeReader


@dataclass(frozen=True, eq=False)
class MeshGeometry(Geometry):
    """A mesh file; it is never opened, only its name is kept."""

    tag = "mesh"

    filename: str
    scale: np.ndarray

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.text("filename"), element.vector("scale", (1.0, 1.0, 1.0)))
