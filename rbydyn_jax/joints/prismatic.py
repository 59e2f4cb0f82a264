"""Translation along an axis."""

from __future__ import annotations

from ..spatial.algebra import IDENTITY3, O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register
from .layout import SAME


class Prismatic(JointType):
    """Translation along the axis; q [m]."""

    name, summary = "prismatic", "a slide"
    slides = "axis"
    limited = True
    mjcf = "slide"
    pinocchio = mujoco = SAME
    translations = (0,)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(IDENTITY3, axis.scale(x[0]))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(O3, axis),)


register(Prismatic())
