"""Rotation about an axis together with translation along it."""

from __future__ import annotations

from collections.abc import Sequence

from .._lazy import jax, jnp
from ..spatial.algebra import Motion, Transform, Vec3
from ..xla.structural import Scalar
from .base import Coordinates, JointType, register
from .layout import SAME
from .rotations import exact_sincos, rotation_about


class Screw(JointType):
    """Rotation by q about the axis and translation by `pitch` q along it; q [rad], pitch [m/rad]."""

    name, summary = "screw", "a screw, of `pitch` [m/rad]"
    turns, slides = "axis", "axis"
    parameters = ("pitch",)
    limited = True
    urdf_instead = "a revolute joint and a prismatic one that mimics it"
    pinocchio = SAME

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        angle, pitch = x
        return Transform(rotation_about(axis, *_sincos(angle)), axis.scale(pitch * angle))

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        return (Motion(axis, axis.scale(x[1])),)

    def bearing(self, axis: jax.Array, parameters: Sequence[jax.Array]) -> jax.Array:
        across = super().bearing(axis, parameters)  # of a cylindrical joint; the last column couples its two freedoms
        along = jnp.concatenate([-parameters[0] * axis, axis])
        return jnp.concatenate([across, along[:, None]], axis=1)

    def gap(self, axis: jax.Array, parameters: Sequence[jax.Array], E: jax.Array) -> jax.Array:
        """As of other types; of the positions a whole number of turns apart the nearest one is meant."""
        R, (pitch,) = E[:3, :3], parameters
        w = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        sine, cosine = axis @ w, jnp.trace(R) - axis @ R @ axis
        angle = jnp.arctan2(sine, jnp.where((sine == 0.0) & (cosine == 0.0), 1.0, cosine))
        distance, lead = axis @ (R.T @ E[:3, 3]) - pitch * angle, 2.0 * jnp.pi * pitch
        turns = jnp.round(distance / jnp.where(lead == 0.0, 1.0, lead))
        open_by = super().gap(axis, parameters, E)
        return open_by.at[-1].set(distance - lead * turns)


def _sincos(angle: Scalar) -> tuple[Scalar, Scalar]:
    return exact_sincos(angle) if isinstance(angle, float) else (jnp.sin(angle), jnp.cos(angle))


register(Screw())
