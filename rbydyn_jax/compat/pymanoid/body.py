"""Rigid bodies in the world: a pose, which the setters change in place, and what follows from it."""

from __future__ import annotations

import copy
from typing import Any, Literal, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._check import check_choice
from ..._errors import ArgumentError, DtypeError
from ...spatial import quaternions, rpy, se3, so3, to_linear_first
from ...spatial.motion import Ad
from ...spatial.safe import safe_norm
from .._numbers import finite_floats, floats, lengths, quaternion, rotation, transform
from . import transformations

B = TypeVar("B", bound="Body")


class Body:
    """A frame in the world. Setters, `translate` and `apply_twist` change it in place, as in pymanoid.

    Args:
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.
        name: The body's name.

    Raises:
        ArgumentError: The quaternion of the pose is zero, or a number is not finite.
        DtypeError: An argument does not consist of numbers.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.compat.pymanoid import Body
        >>> body = Body(pos=[1, 2, 3])
        >>> body.translate([0, 0, 1])
        >>> body.p.tolist(), float(body.z)
        ([1.0, 2.0, 4.0], 4.0)
    """

    def __init__(self, pos: Any = None, rpy: Any = None, pose: Any = None, *, name: str = "") -> None:
        self._T = _initial(pos, rpy, pose)
        self.set_name(name)

    @property
    def T(self) -> Float[Array, "4 4"]:
        """T_world_body."""
        return self._T

    @property
    def name(self) -> str:
        """Name of the body."""
        return self._name

    def set_name(self, name: str) -> None:
        """Renames the body."""
        if not isinstance(name, str):
            raise DtypeError(f"name must be a str, got {type(name).__name__}")
        self._name = name

    @property
    def index(self) -> int:
        """Index of the link, for Jacobians and Hessians.

        Raises:
            ArgumentError: The body is not a link of a robot.
        """
        raise ArgumentError(f"{type(self).__name__} {self.name!r} is not a link of a robot: Robot.get_link returns one")

    def copy(self: B) -> B:
        """Another object with the same values."""
        return copy.copy(self)

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
        return transformations.pose_from_transform(self.T)

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

    def dist(self, point: Any) -> Float[Array, ""]:
        """Distance of the origin from a point of the world, or from the origin of another body [m]."""
        return safe_norm(self.p - (point.p if isinstance(point, Body) else floats(point, "point", (3,))))

    def set_transform(self, T: Any) -> None:
        """Moves the body to a T_world_body.

        Raises:
            ArgumentError: `T` is not a rigid transform.
            DtypeError: `T` does not consist of numbers.
            ShapeError: `T` has another shape.
        """
        self._move(transform(T, "T"))

    def _move(self, T: Float[Array, "4 4"]) -> None:
        self._T = T

    def set_pos(self, pos: Any) -> None:
        """Moves the origin to a position [m]."""
        self._move(se3.from_R_p(self.R, finite_floats(pos, "pos", (3,))))

    def set_x(self, x: Any) -> None:
        """Sets the coordinate x [m]."""
        self.set_pos(self.p.at[0].set(finite_floats(x, "x", ())))

    def set_y(self, y: Any) -> None:
        """Sets the coordinate y [m]."""
        self.set_pos(self.p.at[1].set(finite_floats(y, "y", ())))

    def set_z(self, z: Any) -> None:
        """Sets the coordinate z [m]."""
        self.set_pos(self.p.at[2].set(finite_floats(z, "z", ())))

    def set_rotation_matrix(self, R: Any) -> None:
        """Sets the orientation; the matrix is checked."""
        self._move(se3.from_R_p(rotation(R, "R"), self.p))

    def set_quat(self, quat: Any) -> None:
        """Sets the orientation to that of a quaternion wxyz."""
        self.set_rotation_matrix(quaternions.to_matrix(quaternion(quat, "quat")))

    def set_rpy(self, rpy: Any) -> None:
        """Sets roll, pitch and yaw [rad]."""
        self._move(se3.from_R_p(_of_rpy(rpy), self.p))

    def set_roll(self, roll: Any) -> None:
        """Sets the roll [rad]; pitch and yaw stay."""
        self.set_rpy(self.rpy.at[0].set(finite_floats(roll, "roll", ())))

    def set_pitch(self, pitch: Any) -> None:
        """Sets the pitch [rad]; roll and yaw stay."""
        self.set_rpy(self.rpy.at[1].set(finite_floats(pitch, "pitch", ())))

    def set_yaw(self, yaw: Any) -> None:
        """Sets the yaw [rad]; roll and pitch stay."""
        self.set_rpy(self.rpy.at[2].set(finite_floats(yaw, "yaw", ())))

    def set_pose(self, pose: Any) -> None:
        """Moves the body to a pose [qw, qx, qy, qz, x, y, z]."""
        self._move(_of_pose(pose))

    def translate(self, translation: Any) -> None:
        """Moves the body by an offset in world axes [m]."""
        self.set_pos(self.p + finite_floats(translation, "translation", (3,)))

    def apply_twist(self, v: Any, omega: Any, dt: Any, *, frame: Literal["local", "world"] = "local") -> None:
        r"""Moves the body for a while at a constant twist, exactly: $T \exp(\xi\,dt)$.

        Args:
            v: Velocity of the body's origin [m/s].
            omega: Angular velocity [rad/s].
            dt: Duration [s].
            frame: ``"local"``: both in the body's axes, which turn; ``"world"``: both in world axes, which do not.

        Raises:
            ArgumentError: `frame` is neither, or a number is not finite.
        """
        v, omega = finite_floats(v, "v", (3,)), finite_floats(omega, "omega", (3,))
        dt = finite_floats(dt, "dt", ())
        check_choice(frame, "frame", ("local", "world"))
        if frame == "local":
            self._move(self.T @ se3.exp(jnp.concatenate([omega, v]) * dt))
        else:
            self._move(se3.from_R_p(so3.exp(omega * dt) @ self.R, self.p + v * dt))


class Box(Body):
    """A box, with its half sizes.

    Args:
        X: Half of its length along x [m].
        Y: Half of its width along y [m].
        Z: Half of its height along z [m].
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.
        dZ: Where the middle of the box is along its z axis [m].

    Raises:
        ArgumentError: A half size is negative, or a number is not finite.
    """

    def __init__(
        self, X: Any, Y: Any, Z: Any, pos: Any = None, rpy: Any = None, pose: Any = None, *, dZ: Any = 0.0
    ) -> None:
        super().__init__(pos, rpy, pose)
        self.X, self.Y, self.Z = lengths(X, "X"), lengths(Y, "Y"), lengths(Z, "Z")
        self.dZ = finite_floats(dZ, "dZ", ())


class Cube(Box):
    """A cube.

    Args:
        size: Half of the length of a side [m].
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.

    Raises:
        ArgumentError: The size is negative, or a number is not finite.
    """

    def __init__(self, size: Any, pos: Any = None, rpy: Any = None, pose: Any = None) -> None:
        half = lengths(size, "size")
        super().__init__(half, half, half, pos, rpy, pose)


def _initial(pos: Any, angles: Any, pose: Any) -> Float[Array, "4 4"]:
    if pose is not None:
        return _of_pose(pose)
    R = jnp.eye(3) if angles is None else _of_rpy(angles)
    return se3.from_R_p(R, jnp.zeros(3) if pos is None else finite_floats(pos, "pos", (3,)))


def _of_rpy(angles: Any) -> Float[Array, "3 3"]:
    return transformations.rotation_matrix_from_rpy(finite_floats(angles, "rpy", (3,)))


def _of_pose(pose: Any) -> Float[Array, "4 4"]:
    return transformations.transform_from_pose(finite_floats(pose, "pose", (7,), "[qw, qx, qy, qz, x, y, z]"))


def linear_first_cone(cone: Float[Array, "n 6"], R: Float[Array, "3 3"]) -> Float[Array, "n 6"]:
    """Faces of a cone of wrenches [n; f] in a body's axes as faces of the wrenches [f; n] in world axes."""
    return jnp.concatenate([part @ R.T for part in jnp.split(to_linear_first(cone, axis=1), 2, axis=1)], axis=1)
