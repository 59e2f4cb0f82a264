"""Rotation about an axis."""

from __future__ import annotations

from ..spatial.algebra import O3, Motion, Transform, Vec3
from .base import Coordinates, JointType
from .rotations import rotation_about


class Revolute(JointType):
    """Rotation about the axis; q [rad]."""

    angles = (0,)

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(rotation_about(axis, *x[0]), O3)

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(axis, O3),)
