"""What pair functions find."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._result import Result
from ..shapes.base import Vector


class Witness(NamedTuple):
    """Signed distances of pairs and their nearest points, component by component; see `CapsuleDistance`."""

    distance: Array
    point_a: Vector
    point_b: Vector
    axis_point_a: Vector
    axis_point_b: Vector

    def swapped(self) -> Witness:
        """The same with the two shapes of each pair in the other order."""
        return Witness(self.distance, self.point_b, self.point_a, self.axis_point_b, self.axis_point_a)

    def stacked(self) -> tuple[Array, ...]:
        """The fields with points (..., 3)."""
        return self.distance, *(jnp.stack(point, axis=-1) for point in self[1:])


class CapsuleDistance(Result):
    """Distance of two shapes and where it is taken; for many pairs each field has a leading axis.

    Attributes:
        distance: Signed distance [m]; negative means overlap, by the depth of the penetration.
        point_a: Nearest point on the surface of the first shape [m].
        point_b: Nearest point on the surface of the second [m].
        axis_point_a: Nearest point on the axis of the first, if it is a capsule; of a shape without axis the point on
            its surface [m].
        axis_point_b: The same of the second [m].
    """

    distance: Float[Array, "*pairs"]
    point_a: Float[Array, "*pairs 3"]
    point_b: Float[Array, "*pairs 3"]
    axis_point_a: Float[Array, "*pairs 3"]
    axis_point_b: Float[Array, "*pairs 3"]
