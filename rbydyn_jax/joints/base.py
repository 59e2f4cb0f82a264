"""What every joint type is made of."""

from __future__ import annotations

from typing import ClassVar

import jax
import numpy as np

from ..spatial.algebra import Motion, Transform, Vec3

# The coordinates of one joint as the algorithms see them: numbers, or (sine, cosine) of those that are angles.
Coordinates = tuple


class JointType:
    """One type of joint.

    Attributes:
        nq: Number of position coordinates.
        nv: Number of velocity coordinates.
        angles: Which position coordinates enter through sine and cosine alone.
        translations: Which position coordinates only translate what comes after the joint, in the axes before it.
    """

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    angles: ClassVar[tuple[int, ...]] = ()
    translations: ClassVar[tuple[int, ...]] = ()

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        """T_before_after at coordinates `x`."""
        raise TypeError(f"{type(self).__name__} defines no transform")

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        """The columns of S, in the frame after the joint, in which they are constant (the derivatives rely on it)."""
        raise TypeError(f"{type(self).__name__} defines no motion subspace")

    def neutral(self) -> np.ndarray:
        """The position at which the transform is the identity."""
        return np.zeros(self.nq)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        """The position reached from `q` at constant velocity `dv` in one unit of time."""
        return q + dv

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        """The velocity that leads from `q0` to `q1` in one unit of time."""
        return q1 - q0

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """Time derivative of the position."""
        return v

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        """Velocity of which `qdot` is the rate of the position."""
        return qdot

    def normalize(self, q: jax.Array) -> jax.Array:
        """The same position in its normal form."""
        return q

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        """A random position, uniform within the finite limits given."""
        return jax.random.uniform(key, (self.nq,), lower.dtype, lower, upper)
