"""Rigid bodies in the world: a pose, what follows from it, and other poses of the same body."""

from __future__ import annotations

from typing import Literal, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._check import check_array
from ..._errors import ArgumentError
from ...spatial import quaternions, rpy, se3, so3, to_linear_first
from ...spatial.motion import Ad
from ...spatial.safe import safe_norm
from ...spatial.transformations import pose_from_transform, transform_from_pose
from .point import Point, PointMass

B = TypeVar("B", bound="Body")


class Body(eqx.Module):
    """A frame in the world.

    Args:
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.

    Example:
        >>> from rbydyn_jax.compat.pymanoid import Body
        >>> body = Body(pos=jnp.array([1.0, 2.0, 3.0])).translate(jnp.array([0.0, 0.0, 1.0]))
        >>> body.p.tolist(), float(body.z)
        ([1.0, 2.0, 4.0], 4.0)
    """

    T: Float[Array, "4 4"]

    def __init__(
        self,
        pos: Float[Array, "3"] | None = None,
        rpy: Float[Array, "3"] | None = None,
        pose: Float[Array, "7"] | None = None,
    ) -> None:
        self.T = _transform(pos, rpy, pose)

    @property
    def transform(self) -> Float[Array, "4 4"]:
        """T_world_body."""
        return self.T

    @property
    def R(self) -> Float[Array, "3 3"]:
        """Rotation matrix from the body to the world."""
        return self.T[:3, :3]

    rotation_matrix = R

    @property
    def p(self) -> Float[Array, "3"]:
        """Position in the world [m]."""
        return self.T[:3, 3]

    pos = p

    @property
    def x(self) -> Float[Array, ""]:
        """Coordinate x in the world [m]."""
        return self.T[0, 3]

    @property
    def y(self) -> Float[Array, ""]:
        """Coordinate y in the world [m]."""
        return self.T[1, 3]

    @property
    def z(self) -> Float[Array, ""]:
        """Coordinate z in the world [m]."""
        return self.T[2, 3]

    @property
    def t(self) -> Float[Array, "3"]:
        """Tangent: the x axis, in world axes."""
        return self.T[:3, 0]

    @property
    def b(self) -> Float[Array, "3"]:
        """Binormal: the y axis, in world axes."""
        return self.T[:3, 1]

    @property
    def n(self) -> Float[Array, "3"]:
        """Normal: the z axis, in world axes."""
        return self.T[:3, 2]

    normal = n

    @property
    def quat(self) -> Float[Array, "4"]:
        """Quaternion wxyz with w >= 0."""
        return quaternions.from_matrix(self.R)

    @property
    def pose(self) -> Float[Array, "7"]:
        """[qw, qx, qy, qz, x, y, z] with qw >= 0."""
        return pose_from_transform(self.T)

    @property
    def rpy(self) -> Float[Array, "3"]:
        """Roll, pitch and yaw [rad]."""
        return rpy.from_matrix(self.R)

    @property
    def roll(self) -> Float[Array, ""]:
        """Roll [rad]."""
        return self.rpy[0]

    @property
    def pitch(self) -> Float[Array, ""]:
        """Pitch [rad]."""
        return self.rpy[1]

    @property
    def yaw(self) -> Float[Array, ""]:
        """Yaw [rad]."""
        return self.rpy[2]

    @property
    def adjoint_matrix(self) -> Float[Array, "6 6"]:
        """Takes wrenches [f; n] in the body's frame to the world's: [[R, 0], [[p] R, R]]."""
        return Ad(self.T)  # of a wrench with the force first as of a twist with the rotation first

    def dist(self, point: Float[Array, "3"] | Point | PointMass) -> Float[Array, ""]:
        """Distance of the origin from a point of the world [m]."""
        other = point.pos if isinstance(point, Point | PointMass) else check_array(point, "point", (3,))
        return safe_norm(self.p - other)

    def with_transform(self: B, T: Float[Array, "4 4"]) -> B:
        """The same body at another T_world_body."""
        return eqx.tree_at(lambda body: body.T, self, check_array(T, "T", (4, 4)))

    def with_pos(self: B, pos: Float[Array, "3"]) -> B:
        """At another position [m]."""
        return self.with_transform(self.T.at[:3, 3].set(check_array(pos, "pos", (3,))))

    def with_x(self: B, x: Float[Array, ""] | float) -> B:
        """At another coordinate x [m]."""
        return self.with_transform(self.T.at[0, 3].set(x))

    def with_y(self: B, y: Float[Array, ""] | float) -> B:
        """At another coordinate y [m]."""
        return self.with_transform(self.T.at[1, 3].set(y))

    def with_z(self: B, z: Float[Array, ""] | float) -> B:
        """At another coordinate z [m]."""
        return self.with_transform(self.T.at[2, 3].set(z))

    def with_rotation_matrix(self: B, R: Float[Array, "3 3"]) -> B:
        """With another orientation."""
        return self.with_transform(self.T.at[:3, :3].set(check_array(R, "R", (3, 3))))

    def with_quat(self: B, quat: Float[Array, "4"]) -> B:
        """With the orientation of a quaternion wxyz."""
        return self.with_rotation_matrix(quaternions.to_matrix(quat))

    def with_rpy(self: B, angles: Float[Array, "3"]) -> B:
        """With another roll, pitch and yaw [rad]."""
        return self.with_rotation_matrix(rpy.to_matrix(angles))

    def with_roll(self: B, roll: Float[Array, ""] | float) -> B:
        """With another roll [rad], pitch and yaw as they are."""
        return self.with_rpy(self.rpy.at[0].set(roll))

    def with_pitch(self: B, pitch: Float[Array, ""] | float) -> B:
        """With another pitch [rad], roll and yaw as they are."""
        return self.with_rpy(self.rpy.at[1].set(pitch))

    def with_yaw(self: B, yaw: Float[Array, ""] | float) -> B:
        """With another yaw [rad], roll and pitch as they are."""
        return self.with_rpy(self.rpy.at[2].set(yaw))

    def with_pose(self: B, pose: Float[Array, "7"]) -> B:
        """At another pose [qw, qx, qy, qz, x, y, z]."""
        return self.with_transform(transform_from_pose(pose))

    def translate(self: B, translation: Float[Array, "3"]) -> B:
        """Moved by an offset in world axes [m]."""
        return self.with_pos(self.p + check_array(translation, "translation", (3,)))

    def apply_twist(
        self: B,
        v: Float[Array, "3"],
        omega: Float[Array, "3"],
        dt: Float[Array, ""] | float,
        *,
        frame: Literal["local", "world"] = "local",
    ) -> B:
        r"""Where the body is after it has moved at a constant twist, $T \exp(\xi\,dt)$.

        Args:
            v: Velocity of the body's origin [m/s].
            omega: Angular velocity [rad/s].
            dt: Duration [s].
            frame: ``"local"``: both in the body's axes, which turn; ``"world"``: both in world axes, which do not.

        Raises:
            ArgumentError: `frame` is neither.
        """
        v, omega, dt = check_array(v, "v", (3,)), check_array(omega, "omega", (3,)), check_array(dt, "dt", ())
        if frame == "local":
            return self.with_transform(self.T @ se3.exp(jnp.concatenate([omega, v]) * dt))
        if frame != "world":
            raise ArgumentError(f"frame must be 'local' or 'world', got {frame!r}")
        return self.with_transform(se3.from_R_p(so3.exp(omega * dt) @ self.R, self.p + v * dt))


def _transform(pos: Array | None, angles: Array | None, pose: Array | None) -> Float[Array, "4 4"]:
    if pose is not None:
        return transform_from_pose(pose)
    R = jnp.eye(3) if angles is None else rpy.to_matrix(angles)
    return se3.from_R_p(R, jnp.zeros(3) if pos is None else check_array(pos, "pos", (3,)))


def linear_first_cone(cone: Float[Array, "n 6"], R: Float[Array, "3 3"]) -> Float[Array, "n 6"]:
    """Faces of a cone of wrenches [n; f] in a body's axes as faces of the wrenches [f; n] in world axes."""
    return jnp.concatenate([part @ R.T for part in jnp.split(to_linear_first(cone, axis=1), 2, axis=1)], axis=1)
