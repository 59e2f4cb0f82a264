r"""Roll, pitch, yaw: $R = R_z(\mathrm{yaw})\,R_y(\mathrm{pitch})\,R_x(\mathrm{roll})$, about the fixed axes x, y, z.

At pitch = +-pi/2 (gimbal lock) only the sum or the difference of roll and yaw is defined; there yaw is set to 0.
Values recompose the rotation to rounding error everywhere, but derivatives of the angles grow without bound
towards the lock: optimize on rotation vectors or quaternions instead.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_rotation
from . import quaternions
from ._small import jitted


def _sin_cos(rpy, factor: float) -> tuple[Array, Array]:
    rpy = check_array(rpy, "rpy", (3,), "roll, pitch, yaw")
    return jnp.sin(factor * rpy), jnp.cos(factor * rpy)


@jitted
def to_matrix(rpy: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Rotation matrix of roll, pitch, yaw [rad].

    Example:
        >>> bool((to_matrix(jnp.zeros(3)) == jnp.eye(3)).all())
        True
    """
    (sr, sp, sy), (cr, cp, cy) = _sin_cos(rpy, 1.0)
    return jnp.stack(
        [
            jnp.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr]),
            jnp.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr]),
            jnp.stack([-sp, cp * sr, cp * cr]),
        ]
    )


@partial(jitted, R=check_rotation)
def from_matrix(R: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """Roll, pitch, yaw of a rotation matrix, with pitch in [-pi/2, pi/2] and yaw = 0 at gimbal lock.

    Yaw is found first and taken out before roll and pitch are read, so that whatever rounding makes of yaw
    near the lock is made up for by roll.

    Returns:
        The angles [rad].

    Example:
        >>> angles = from_matrix(to_matrix(jnp.array([0.5, 0.1, 0.2])))
        >>> [round(float(x), 6) for x in angles]
        [0.5, 0.1, 0.2]
    """
    R = check_array(R, "R", (3, 3), "a rotation matrix")
    x, y = R[0, 0], R[1, 0]
    c2 = x * x + y * y
    locked = c2 <= (16.0 * jnp.finfo(R.dtype).eps) ** 2
    cos_pitch = jnp.sqrt(jnp.where(locked, 1.0, c2))
    cy, sy = jnp.where(locked, 1.0, x / cos_pitch), jnp.where(locked, 0.0, y / cos_pitch)
    level = cy * R[1] - sy * R[0]  # the second row of R_y R_x: 0, cos(roll), -sin(roll)
    roll = jnp.arctan2(-level[2], level[1])
    pitch = jnp.arctan2(-R[2, 0], cy * x + sy * y)
    return jnp.stack([roll, pitch, jnp.arctan2(sy, cy)])


@jitted
def to_quaternion(rpy: Float[Array, "3"]) -> Float[Array, "4"]:
    """Unit quaternion wxyz of roll, pitch, yaw [rad]; smooth, so its w may be negative.

    Example:
        >>> to_quaternion(jnp.zeros(3)).tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    (sr, sp, sy), (cr, cp, cy) = _sin_cos(rpy, 0.5)
    return jnp.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


@jitted
def from_quaternion(q: Float[Array, "4"]) -> Float[Array, "3"]:
    """Roll, pitch, yaw of a quaternion wxyz; see `from_matrix`."""
    return from_matrix(quaternions.to_matrix(q))
