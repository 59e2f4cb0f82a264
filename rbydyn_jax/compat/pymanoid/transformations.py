"""pymanoid's transformations: its names and arguments, twists linear first, lists accepted.

A pose is `[qw, qx, qy, qz, x, y, z]`; quaternions are wxyz; rpy is (roll, pitch, yaw). The equations are those of
`rbydyn_jax.spatial.transformations`, whose twists are angular first.
"""

from __future__ import annotations

from typing import Any, Literal

from jaxtyping import Array, Float

from ..._check import check_choice
from ...spatial import from_linear_first
from ...spatial import transformations as core
from .._numbers import floats, quaternion, rotation, transform


def apply_transform(T: Any, p: Any) -> Float[Array, " n"]:
    """Applies a transform to a point [m] or to a pose."""
    return core.apply_transform(transform(T, "T"), floats(p, "p"))


def axis_angle_from_quat(quat: Any) -> Float[Array, "3"]:
    """Rotation vector [rad] of a quaternion."""
    return core.axis_angle_from_quat(quaternion(quat, "quat"))


def crossmat(x: Any) -> Float[Array, "3 3"]:
    """Cross-product matrix: `crossmat(x) @ y` is the cross product of x and y."""
    return core.crossmat(floats(x, "x", (3,)))


def integrate_angular_acceleration(R: Any, omega: Any, omegad: Any, dt: Any) -> Float[Array, "3 3"]:
    """Rotation after dt under a constant angular acceleration in world axes [rad/s^2]."""
    rates = floats(omega, "omega", (3,)), floats(omegad, "omegad", (3,))
    return core.integrate_angular_acceleration(rotation(R, "R"), *rates, floats(dt, "dt", ()))


def integrate_body_acceleration(
    T: Any, v: Any, a: Any, dt: Any, *, method: Literal["semi_implicit", "exact"] = "semi_implicit"
) -> Float[Array, "4 4"]:
    r"""Pose of a body after dt under constant accelerations of its origin and of its rotation.

    Args:
        T: T_world_body now.
        v: [velocity of the body's origin; angular velocity], world axes [m/s, rad/s].
        a: [acceleration of the body's origin; angular acceleration], world axes [m/s^2, rad/s^2].
        dt: Duration [s].
        method: For the origin: `"semi_implicit"`, pymanoid's Euler step $p + (v + a\,dt)\,dt$, or `"exact"`.

    Raises:
        ArgumentError: `T` is not a rigid transform, or `method` not one of the two.

    Example:
        >>> from rbydyn_jax.compat.pymanoid import transformations
        >>> fall = [0.0, 0.0, -10.0, 0.0, 0.0, 0.0]
        >>> float(transformations.integrate_body_acceleration(jnp.eye(4), [0] * 6, fall, 1.0)[2, 3])
        -10.0
    """
    v, a = floats(v, "v", (6,), "[linear; angular]"), floats(a, "a", (6,), "[linear; angular]")
    pose, dt = transform(T, "T"), floats(dt, "dt", ())
    check_choice(method, "method", ("semi_implicit", "exact"))
    return core.integrate_body_acceleration(pose, from_linear_first(v), from_linear_first(a), dt, method=method)


def magnus_expansion(omega: Any, omegad: Any, dt: Any) -> Float[Array, "3"]:
    """Rotation vector [rad] reached in dt under a constant angular acceleration, three terms of Magnus' series."""
    return core.magnus_expansion(floats(omega, "omega", (3,)), floats(omegad, "omegad", (3,)), floats(dt, "dt", ()))


def pose_from_transform(T: Any) -> Float[Array, "7"]:
    """Pose of a transform, with qw >= 0."""
    return core.pose_from_transform(transform(T, "T"))


def quat_from_rotation_matrix(R: Any) -> Float[Array, "4"]:
    """Quaternion of a rotation matrix, with w >= 0."""
    return core.quat_from_rotation_matrix(rotation(R, "R"))


def quat_from_rpy(rpy: Any) -> Float[Array, "4"]:
    """Quaternion of roll, pitch and yaw [rad]."""
    return core.quat_from_rpy(floats(rpy, "rpy", (3,)))


def rotation_matrix_from_quat(quat: Any) -> Float[Array, "3 3"]:
    """Rotation matrix of a quaternion, which need not be of unit length."""
    return core.rotation_matrix_from_quat(quaternion(quat, "quat"))


def rotation_matrix_from_rpy(rpy: Any) -> Float[Array, "3 3"]:
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll) [rad]."""
    return core.rotation_matrix_from_rpy(floats(rpy, "rpy", (3,)))


def rpy_from_quat(quat: Any) -> Float[Array, "3"]:
    """Roll, pitch and yaw [rad] of a quaternion."""
    return core.rpy_from_quat(quaternion(quat, "quat"))


def rpy_from_rotation_matrix(R: Any) -> Float[Array, "3"]:
    """Roll, pitch and yaw [rad] of a rotation matrix."""
    return core.rpy_from_rotation_matrix(rotation(R, "R"))


def transform_from_pose(pose: Any) -> Float[Array, "4 4"]:
    """Transform of a pose."""
    pose = floats(pose, "pose", (7,), "[qw, qx, qy, qz, x, y, z]")
    quaternion(pose[:4], "pose[:4]")
    return core.transform_from_pose(pose)


def transform_from_R_p(R: Any, p: Any) -> Float[Array, "4 4"]:
    """Transform of a rotation matrix and a position [m]."""
    return core.transform_from_R_p(rotation(R, "R"), floats(p, "p", (3,)))


def transform_inverse(T: Any) -> Float[Array, "4 4"]:
    """Inverse of a transform."""
    return core.transform_inverse(transform(T, "T"))
