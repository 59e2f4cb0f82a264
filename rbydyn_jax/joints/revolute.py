"""Rotation about an axis."""

from __future__ import annotations

from ..spatial.algebra import O3, Motion, Transform, Vec3
from .base import Coordinates, JointType, register
from .layout import SAME, AngleOnCircle, Layout
from .rotations import rotation_about


class Revolute(JointType):
    """Rotation about the axis; q [rad].

    Types of this class differ by their limits alone, so that the sweeps take them together.
    """

    turns = "axis"
    angles = (0,)
    mjcf = "hinge"
    mujoco = SAME

    def __init__(self, name: str, summary: str, *, limited: bool, pinocchio: Layout) -> None:
        self.name, self.summary, self.limited, self.pinocchio = name, summary, limited, pinocchio

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        return Transform(rotation_about(axis, *x[0]), O3)

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(axis, O3),)


# The first of them is what a hinge of MuJoCo is read as.
register(Revolute("revolute", "a hinge", limited=True, pinocchio=SAME))
register(Revolute("continuous", "a hinge without limits of position", limited=False, pinocchio=AngleOnCircle()))
