r"""Transformation functions with the names of pymanoid.

A pose is `[qw, qx, qy, qz, x, y, z]`; quaternions are wxyz; rpy is (roll, pitch, yaw). Unlike pymanoid's, twists are
angular first here as everywhere in this library: convert with `spatial.from_linear_first`.
"""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_choice
from . import quaternions, rpy, se3, so3
from ._small import cross, jitted, matmul, matvec

axis_angle_from_quat = quaternions.log
crossmat = so3.hat
quat_from_rotation_matrix = quaternions.from_matrix
quat_from_rpy = rpy.to_quaternion
rotation_matrix_from_quat = quaternions.to_matrix
rotation_matrix_from_rpy = rpy.to_matrix
rpy_from_quat = rpy.from_quaternion
rpy_from_rotation_matrix = rpy.from_matrix
transform_from_R_p = se3.from_R_p
transform_inverse = se3.inverse


@jitted
def apply_transform(T: Float[Array, "4 4"], p: Float[Array, "3"] | Float[Array, "7"]) -> Float[Array, " n"]:
    """Applies a transform to a point, R p + t, or to a pose.

    Args:
        T: Transform T_AB.
        p: Point [m] or pose in B.

    Returns:
        The same point or pose in A.

    Raises:
        ShapeError: `p` is neither a point nor a pose.

    Example:
        >>> apply_transform(jnp.eye(4).at[2, 3].set(1.0), jnp.array([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 4.0]
    """
    T, p = check_array(T, "T", (4, 4), "a transform"), check_array(p, "p")
    if p.shape != (7,):
        return matvec(T[:3, :3], check_array(p, "p", (3,), "a point; a pose has 7 numbers")) + T[:3, 3]
    rotation = quaternions.multiply(quaternions.from_matrix(T[:3, :3]), p[:4])
    return jnp.concatenate([rotation, apply_transform(T, p[4:])])


@jitted
def pose_from_transform(T: Float[Array, "4 4"]) -> Float[Array, "7"]:
    """The pose [qw, qx, qy, qz, x, y, z] of a transform, with qw >= 0."""
    T = check_array(T, "T", (4, 4), "a transform")
    return jnp.concatenate([quaternions.from_matrix(T[:3, :3]), T[:3, 3]])


@jitted
def transform_from_pose(pose: Float[Array, "7"]) -> Float[Array, "4 4"]:
    """The transform of a pose [qw, qx, qy, qz, x, y, z].

    Example:
        >>> transform_from_pose(jnp.array([1.0, 0, 0, 0, 5, 6, 7]))[:3, 3].tolist()
        [5.0, 6.0, 7.0]
    """
    pose = check_array(pose, "pose", (7,), "[qw, qx, qy, qz, x, y, z]")
    return se3.from_R_p(quaternions.to_matrix(pose[:4]), pose[4:])


@jitted
def magnus_expansion(
    omega: Float[Array, "3"], omegad: Float[Array, "3"], dt: Float[Array, ""] | float
) -> Float[Array, "3"]:
    r"""Rotation vector reached in dt under a constant angular acceleration, three terms of Magnus' series.

    $\Omega_1 = (\omega_0 + \omega_1)\,dt/2$, $\Omega_2 = (\omega_1 \times \omega_0)\,dt^2/12$,
    $\Omega_3 = (\dot\omega \times \Omega_2)\,dt^2/20$ with $\omega_1 = \omega_0 + \dot\omega\,dt$. The error is of the
    order of $dt^5$, that of $\Omega_3$ itself.

    Args:
        omega: Angular velocity now, in world axes [rad/s].
        omegad: Angular acceleration in world axes [rad/s^2].
        dt: Duration [s].

    Returns:
        $\Omega$ [rad] with $R(dt) = \exp(\hat\Omega) R(0)$.

    Example:
        >>> magnus_expansion(jnp.array([0.0, 0.0, 1.0]), jnp.zeros(3), 0.5).tolist()
        [0.0, 0.0, 0.5]
    """
    omega, omegad = check_array(omega, "omega", (3,)), check_array(omegad, "omegad", (3,))
    dt = check_array(dt, "dt", ())
    end = omega + omegad * dt
    second = cross(end, omega) * (dt * dt / 12.0)
    return (omega + end) * (0.5 * dt) + second + cross(omegad, second) * (dt * dt / 20.0)


@jitted
def integrate_angular_acceleration(
    R: Float[Array, "3 3"], omega: Float[Array, "3"], omegad: Float[Array, "3"], dt: Float[Array, ""] | float
) -> Float[Array, "3 3"]:
    r"""The rotation after dt under a constant angular acceleration, $\exp(\hat\Omega) R$.

    Args:
        R: Rotation matrix now.
        omega: Angular velocity in world axes [rad/s].
        omegad: Angular acceleration in world axes [rad/s^2].
        dt: Duration [s].

    Returns:
        The rotation matrix at dt; equal to R up to rounding if there is no motion.
    """
    return matmul(so3.exp(magnus_expansion(omega, omegad, dt)), check_array(R, "R", (3, 3), "a rotation matrix"))


def integrate_body_acceleration(
    T: Float[Array, "4 4"],
    v: Float[Array, "6"],
    a: Float[Array, "6"],
    dt: Float[Array, ""] | float,
    *,
    method: Literal["semi_implicit", "exact"] = "semi_implicit",
) -> Float[Array, "4 4"]:
    r"""The pose of a body after dt under constant accelerations of its origin and of its rotation.

    Args:
        T: Transform of the body now, body to world.
        v: [angular velocity; velocity of the body's origin], world axes [rad/s, m/s].
        a: [angular acceleration; acceleration of the body's origin], world axes [rad/s^2, m/s^2].
        dt: Duration [s].
        method: For the origin: `"semi_implicit"`, the Euler step $p + (v + a\,dt)\,dt$ that pymanoid takes, or
            `"exact"`, $p + v\,dt + a\,dt^2/2$.

    Returns:
        The transform at dt.

    Raises:
        ArgumentError: `method` is not one of the two.

    Example:
        >>> fall = jnp.array([0.0, 0, 0, 0, 0, -10])
        >>> float(integrate_body_acceleration(jnp.eye(4), jnp.zeros(6), fall, 1.0, method="exact")[2, 3])
        -5.0
    """
    check_choice(method, "method", ("semi_implicit", "exact"))
    return _integrate_body(T, v, a, dt, 1.0 if method == "semi_implicit" else 0.5)


@jitted
def _integrate_body(T, v, a, dt, weight) -> Array:
    T, dt = check_array(T, "T", (4, 4), "a transform"), check_array(dt, "dt", ())
    v, a = check_array(v, "v", (6,), "[angular; linear]"), check_array(a, "a", (6,), "[angular; linear]")
    R = integrate_angular_acceleration(T[:3, :3], v[:3], a[:3], dt)
    return se3.from_R_p(R, T[:3, 3] + (v[3:] + a[3:] * (weight * dt)) * dt)


@jitted
def integrate_constant_jerk(
    p: Float[Array, "3"],
    v: Float[Array, "3"],
    a: Float[Array, "3"],
    jerk: Float[Array, "3"],
    dt: Float[Array, ""] | float,
) -> tuple[Float[Array, "3"], Float[Array, "3"], Float[Array, "3"]]:
    """Position, velocity and acceleration of a point after dt under a constant jerk [m/s^3], exactly."""
    p, v, a = check_array(p, "p", (3,)), check_array(v, "v", (3,)), check_array(a, "a", (3,))
    j, dt = check_array(jerk, "jerk", (3,)), check_array(dt, "dt", ())
    return p + dt * (v + dt / 2.0 * (a + dt / 3.0 * j)), v + dt * (a + dt / 2.0 * j), a + dt * j
