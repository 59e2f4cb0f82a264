"""Boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .base import Geometry, SizeReader


@dataclass(frozen=True, eq=False)
class BoxGeometry(Geometry):
    """A box of full side lengths `size` (3,) [m], centred."""

    tag = "box"
    sizes = ("size",)

    size: np.ndarray

    @classmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""
        return cls(element.sizes("size"))
