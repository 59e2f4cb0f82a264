"""pyrobot's `Kinematics`: forward and inverse kinematics and Jacobian of an arm, as documented by pyrobot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_choice, check_finite, check_outside_jit
from .._errors import ArgumentError, DtypeError, ModelError, RbydynError, ShapeError
from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import link_pose
from ..io.load import load_urdf
from ..model.configuration import clamp, neutral
from ..model.model import Model, check_model
from ..planning import solve_ik
from ..spatial import quaternions, rpy, se3, so3, to_linear_first
from ._numbers import floats, quaternion, rotation


class KinematicsError(RbydynError, ValueError):
    """No configuration was found that reaches the pose."""


class Kinematics:
    """Kinematics of the arm between two links; all other joints stay at their neutral position.

    Positions are in metres, angles in radians, quaternions xyzw; Jacobians and velocities [linear; angular] at the
    frame's origin, in the axes of the base. Poses and solutions are lists of Python floats, as in pyrobot's
    documentation; Jacobians and velocities are arrays.

    Args:
        model: The robot, or the path of its URDF.
        base_frame: The base link of the arm; another one may be assigned later.
        ee_frame: Its end effector; another one may be assigned later.

    Raises:
        DtypeError: `model` is neither a robot nor a path.
        ModelError: No joint lies between the two, or one has several coordinates or mimics another.
        NameNotFoundError: There is no such link.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.compat.pyrobot import Kinematics
        >>> arm = Kinematics(robots.two_link_arm(), "base", "tool")
        >>> position, quaternion = arm.forward_kinematics([0.0, 0.0], "tool")
        >>> [round(x, 4) for x in position], quaternion
        ([0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
        >>> [round(q, 4) for q in arm.inverse_kinematics(position, quaternion)]
        [0.0, 0.0]
    """

    def __init__(self, model: Model | str | Path, base_frame: str, ee_frame: str) -> None:
        self.model = load_urdf(model) if isinstance(model, str | Path) else check_model(model)
        self.base_frame, self.ee_frame = base_frame, ee_frame
        self.check_cfg()
        self._rest = clamp(self.model, neutral(self.model))

    def check_cfg(self) -> None:
        """Raises unless both frames are links of the robot with an arm of one-dof joints between them."""
        self._joints()

    def _joints(self) -> tuple[int, ...]:
        """The joints between the frames as they are now, checked."""
        tree = self.model.tree
        ends = [tree.path(tree.link_bodies[self.model.link_index(k)]) for k in (self.base_frame, self.ee_frame)]
        between = tuple(sorted(set(ends[0]) ^ set(ends[1])))
        if not between:
            raise ModelError(f"no joint lies between {self.base_frame!r} and {self.ee_frame!r}")
        for i in between:
            if tree.joints[i].nq != 1 or tree.mimics[i] is not None:
                raise ModelError(f"joint {tree.joint_names[i]!r} of the arm must have one coordinate of its own")
        return between

    def _at(self) -> np.ndarray:
        """Where their positions stand in the configuration of the robot."""
        return np.array([self.model.tree.q_slices[i].start for i in self._joints()], int)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The arm's joints, in the order of all vectors."""
        return tuple(self.model.joint_names[i] for i in self._joints())

    @property
    def arm_dof(self) -> int:
        """Number of the arm's joints."""
        return len(self._joints())

    def forward_kinematics(
        self, joint_pos: Sequence[float] | Array, target_frame: str
    ) -> tuple[list[float], list[float]]:
        """Pose of a link in the axes of the base.

        Args:
            joint_pos: Positions of all joints of the arm [rad, m].
            target_frame: The link.

        Returns:
            Position [x, y, z] and quaternion [x, y, z, w] with w >= 0.

        Raises:
            ArgumentError: A position is not finite.
            DtypeError: `target_frame` is not a name, or `joint_pos` no numbers, or traced.
            NameNotFoundError: There is no such link.
            ShapeError: `joint_pos` does not have one entry for each joint.
        """
        check_outside_jit("forward_kinematics", joint_pos, use="link_pose")
        if not isinstance(target_frame, str):
            raise DtypeError(f"target_frame must be the name of a link, got {type(target_frame).__name__}")
        T = link_pose(self.model, self._configuration(joint_pos), target_frame, self.base_frame)
        quaternion = quaternions.xyzw_from_wxyz(quaternions.from_matrix(T[:3, :3]))
        return T[:3, 3].tolist(), quaternion.tolist()

    def inverse_kinematics(
        self,
        position: Sequence[float] | Array,
        orientation: Sequence[float] | Array,
        init_joint_pos: Sequence[float] | Array | None = None,
        *,
        order: Literal["rpy", "ypr"] = "rpy",
        position_tolerance: float = 0.01,
        orientation_tolerance: float = 0.1,
    ) -> list[float]:
        """Positions of the arm's joints, within their limits, that bring the end effector to a pose.

        The search is for an exact solution; where there is none, as for an arm of five joints and a rounded pose, the
        nearest configuration found is accepted within the tolerances. They bound each component, as pyrobot's do, whose
        general configuration has the defaults.

        Args:
            position: [x, y, z] in the axes of the base [m].
            orientation: Three Euler angles [rad], a quaternion [x, y, z, w], or a 3x3 rotation matrix.
            init_joint_pos: Where the first attempt starts; default is the neutral position.
            order: Euler angles are ``"rpy"`` (about x, y, z) or ``"ypr"`` (about z, y, x), R = Rz Ry Rx.
            position_tolerance: Maximum distance from the position along each axis of the target [m].
            orientation_tolerance: Maximum rotation from the orientation about each axis of the target [rad].

        Raises:
            ArgumentError: `order` is neither, the orientation is not a rotation, a number is not finite, or a
                tolerance is not positive.
            DtypeError: An argument does not consist of numbers, or is traced.
            KinematicsError: No solution was found.
            ShapeError: An argument has another size.
        """
        check_outside_jit("inverse_kinematics", position, orientation, init_joint_pos, use="solve_ik")
        tolerances = {"position_tolerance": position_tolerance, "orientation_tolerance": orientation_tolerance}
        for name, tolerance in tolerances.items():
            if not float(floats(tolerance, name, ())) > 0.0:
                raise ArgumentError(f"{name} must be positive, got {tolerance}")
        place = self._array(position, "position", 3)
        start = self._rest if init_joint_pos is None else self._configuration(init_joint_pos, "init_joint_pos")
        target = se3.from_R_p(_rotation(orientation, order, self._rest.dtype), place)
        result = solve_ik(self.model, self.ee_frame, target, ref=self.base_frame, q0=start)
        error = se3.inverse(target) @ link_pose(self.model, result.q, self.ee_frame, self.base_frame)
        missed = [float(jnp.abs(x).max()) for x in (error[:3, 3], so3.log(error[:3, :3]))]
        if missed[0] > position_tolerance or missed[1] > orientation_tolerance:
            by = f"{missed[0]:.3g} m along and {missed[1]:.3g} rad about an axis"
            raise KinematicsError(f"no configuration within the limits found; the nearest misses by {by}")
        return result.q[self._at()].tolist()

    def get_jacobian(self, joint_pos: Sequence[float] | Array, target_frame: str | None = None) -> Float[Array, "6 n"]:
        """Jacobian [linear; angular] at the origin of a link, default the end effector, in the axes of the base.

        Args:
            joint_pos: Positions of all joints of the arm [rad, m].
            target_frame: The link.

        Raises:
            ArgumentError: A position is not finite.
            DtypeError: `joint_pos` are no numbers.
            NameNotFoundError: There is no such link.
            ShapeError: `joint_pos` does not have one entry for each joint.
        """
        frame = self.ee_frame if target_frame is None else target_frame
        J = jacobian(self.model, self._configuration(joint_pos), frame, ref=self.base_frame)
        columns = np.array([self.model.tree.v_slices[i].start for i in self._joints()], int)
        return to_linear_first(J)[:, columns]

    def compute_fk_velocity(
        self,
        joint_pos: Sequence[float] | Array,
        joint_vel: Sequence[float] | Array,
        target_frame: str | None = None,
    ) -> Float[Array, "6"]:
        """Velocity [vx, vy, vz, wx, wy, wz] of a link, default the end effector, in the axes of the base.

        Args:
            joint_pos: Positions of all joints of the arm [rad, m].
            joint_vel: Their velocities [rad/s, m/s].
            target_frame: The link.

        Raises:
            ArgumentError: A number is not finite.
            DtypeError: A vector does not consist of numbers.
            NameNotFoundError: There is no such link.
            ShapeError: A vector does not have one entry for each joint.
        """
        return self.get_jacobian(joint_pos, target_frame) @ self._array(joint_vel, "joint_vel", self.arm_dof)

    def _array(self, x: Sequence[float] | Array, name: str, size: int) -> Array:
        array = _vector(floats(x, name), name, size).astype(self._rest.dtype)
        check_finite(array, name)
        return array

    def _configuration(self, joint_pos: Sequence[float] | Array, name: str = "joint_pos") -> Float[Array, "nq"]:
        at = self._at()
        return self._rest.at[at].set(self._array(joint_pos, name, len(at)))


def _vector(x: Array, name: str, size: int) -> Array:
    """A vector, or a row or a column."""
    if x.shape not in ((size,), (1, size), (size, 1)):
        raise ShapeError(f"{name} must have {size} entries, got shape {x.shape}")
    return x.reshape(size)


def _rotation(orientation: Sequence[float] | Array, order: str, dtype: jnp.dtype) -> Float[Array, "3 3"]:
    given = floats(orientation, "orientation").astype(dtype)
    check_choice(order, "order", ("rpy", "ypr"))
    check_finite(given, "orientation")
    if given.shape == (3, 3):
        return rotation(given, "orientation")
    if given.size == 3:
        angles = _vector(given, "orientation", 3)
        return rpy.to_matrix(angles if order == "rpy" else angles[::-1])
    if given.size == 4:
        return quaternions.to_matrix(
            quaternions.wxyz_from_xyzw(quaternion(_vector(given, "orientation", 4), "orientation"))
        )
    raise ShapeError(f"orientation must be 3 Euler angles, a quaternion xyzw or a 3x3 matrix, got shape {given.shape}")
