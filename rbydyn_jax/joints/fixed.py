"""No motion: what comes after the joint is part of the body before it."""

from __future__ import annotations

from ..spatial.algebra import IDENTITY, Motion, Transform, Vec3
from .base import Coordinates, JointType, register


class Fixed(JointType):
    """No motion; readers and builders weld the links that it joins."""

    name, summary = "fixed", "a joint without motion, which welds a link to another one"
    nq = nv = 0

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return IDENTITY

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return ()


register(Fixed())
