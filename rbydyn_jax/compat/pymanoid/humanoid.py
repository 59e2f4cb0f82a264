"""Robots that float: their base, centre of mass, momentum and zero-tilting-moment point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._check import check_integer
from ..._errors import ArgumentError, ModelError
from ...algorithms.centroidal import (
    center_of_mass,
    com_acceleration,
    com_hessian,
    com_jacobian,
    com_velocity,
    total_mass,
)
from ...algorithms.momentum import (
    angular_momentum,
    angular_momentum_hessian,
    angular_momentum_jacobian,
    centroidal_momentum,
    centroidal_momentum_hessian,
    centroidal_momentum_matrix,
    centroidal_momentum_rate,
)
from ...algorithms.zmp import gravito_inertial_wrench, net_contact_wrench, zmp
from ...io.build import build_model
from ...io.builder import RobotBuilder
from ...io.load import load_urdf
from ...io.restructure import attach
from ...model.edit import with_gravity
from ...model.model import Model
from ...spatial import to_linear_first
from .._numbers import finite_floats, floats, quaternion, transform
from . import transformations
from .body import Body
from .point import PointMass
from .robot import Robot

BASE_JOINTS = ("TRANS_X", "TRANS_Y", "TRANS_Z", "ROT_Y", "ROT_P", "ROT_R")


def with_rpy_base(model: Model) -> Model:
    """The robot on six joints: translations along x, y, z of the world, then yaw, pitch and roll, as OpenRAVE has it.

    Velocities are the rates of these coordinates, which have no finite rates where the pitch is a right angle; a
    floating joint (`load_urdf(..., floating_base=True)`) has no such place.

    Args:
        model: A robot whose root is fixed to the world.
    """
    base = RobotBuilder(model.name).link("floating_base")
    parent, axes = "floating_base", ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0))
    for k, (name, axis) in enumerate(zip(BASE_JOINTS, axes, strict=True)):
        base.link(f"floating_base_{name}")
        add = base.prismatic if k < 3 else base.continuous
        limits = {"lower": -np.inf, "upper": np.inf} if k < 3 else {}
        add(name, parent, f"floating_base_{name}", axis=axis, **limits)
        parent = f"floating_base_{name}"
    carrier = build_model(base.build_description(), dtype=model.inertias.dtype)
    return attach(with_gravity(carrier, model.gravity), parent, model)


class Humanoid(Robot):
    """A robot with a floating base of six joints, from `with_rpy_base`, or of a model with joints of these names.

    Args:
        path: The robot, or the path of a URDF, which is put on six joints.
        root_body: The link that the six joints carry; given with a path only, and checked.
        q: Configuration [rad, m]; default is zero, moved inside the limits.
        qd: Velocity [rad/s, m/s]; default is zero.

    Raises:
        ArgumentError: `root_body` is given with a model, or a number is not finite.
        ModelError: A joint of the base is not there, a joint has several coordinates, or `root_body` is not the root.
        NameNotFoundError: There is no link `root_body`.
        ParseError: The file cannot be read.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.compat.pymanoid import Humanoid, with_rpy_base
        >>> robot = Humanoid(with_rpy_base(robots.pendulum(mass=2.0, length=0.5)))
        >>> robot.set_pos([0, 0, 1])
        >>> robot.compute_zmp([0] * 7).tolist() == [*robot.com[:2].tolist(), 0.0]
        True
    """

    def __init__(
        self, path: Model | str | Path, root_body: str | None = None, *, q: Any = None, qd: Any = None
    ) -> None:
        if isinstance(path, str | Path):
            path = _load(path, root_body)
        elif root_body is not None:
            raise ArgumentError("root_body is for a path; with_rpy_base puts the root of a model on six joints")
        super().__init__(path, q=q, qd=qd)
        model = self.model
        missing = [name for name in BASE_JOINTS if name not in model.joint_names]
        if missing:
            raise ModelError(f"the robot has no joint {missing[0]!r}; with_rpy_base puts it on a floating base")
        at = [model.tree.v_slices[model.joint_index(name)].start for name in BASE_JOINTS]
        self.TRANS_X, self.TRANS_Y, self.TRANS_Z, self.ROT_Y, self.ROT_P, self.ROT_R = at

    # The base

    @property
    def body(self) -> Body:
        """The base as a body."""
        return Body(pos=self.p, rpy=self.rpy)

    @property
    def p(self) -> Float[Array, "3"]:
        """Position of the base [m]."""
        return self._q[np.array([self.TRANS_X, self.TRANS_Y, self.TRANS_Z])]

    pos = p

    @property
    def rpy(self) -> Float[Array, "3"]:
        """Roll, pitch and yaw of the base [rad]."""
        return self._q[np.array([self.ROT_R, self.ROT_P, self.ROT_Y])]

    @property
    def R(self) -> Float[Array, "3 3"]:
        """Rotation matrix from the base to the world."""
        return self.body.R

    @property
    def T(self) -> Float[Array, "4 4"]:
        """T_world_base."""
        return self.body.T

    @property
    def quat(self) -> Float[Array, "4"]:
        """Quaternion wxyz of the base, w >= 0."""
        return self.body.quat

    @property
    def pose(self) -> Float[Array, "7"]:
        """[qw, qx, qy, qz, x, y, z] of the base."""
        return self.body.pose

    @property
    def t(self) -> Float[Array, "3"]:
        """Tangent of the base: its x axis, in world axes."""
        return self.body.t

    @property
    def b(self) -> Float[Array, "3"]:
        """Binormal of the base: its y axis, in world axes."""
        return self.body.b

    @property
    def n(self) -> Float[Array, "3"]:
        """Normal of the base: its z axis, in world axes."""
        return self.body.n

    def get_dof_name_from_index(self, index: int) -> str:
        """Name of the joint of an index.

        Raises:
            ArgumentError: There is no such joint.
            DtypeError: `index` is not an integer.
        """
        number = int(self._indices([check_integer(index, "index")])[0])
        return self.model.tree.v_names[number]

    def set_pos(self, pos: Any) -> None:
        """Moves the base to a position [m]."""
        self.set_dof_values(finite_floats(pos, "pos", (3,)), [self.TRANS_X, self.TRANS_Y, self.TRANS_Z])

    def set_rpy(self, rpy: Any) -> None:
        """Turns the base to roll, pitch and yaw [rad]."""
        self.set_dof_values(finite_floats(rpy, "rpy", (3,)), [self.ROT_R, self.ROT_P, self.ROT_Y])

    def set_quat(self, quat: Any) -> None:
        """Turns the base to a quaternion wxyz."""
        self.set_rpy(transformations.rpy_from_quat(quaternion(quat, "quat")))

    def set_pose(self, pose: Any) -> None:
        """Moves the base to a pose [qw, qx, qy, qz, x, y, z]."""
        pose = finite_floats(pose, "pose", (7,), "[qw, qx, qy, qz, x, y, z]")
        self.set_quat(quaternion(pose[:4], "pose[:4]"))
        self.set_pos(pose[4:])

    def set_transform(self, T: Any) -> None:
        """Moves the base to T_world_base."""
        T = transform(T, "T")
        self.set_pos(T[:3, 3])
        self.set_rpy(transformations.rpy_from_rotation_matrix(T[:3, :3]))

    # The centre of mass

    @property
    def mass(self) -> float:
        """Mass of all links [kg]."""
        return float(total_mass(self.model))

    @property
    def com(self) -> Float[Array, "3"]:
        """Centre of mass [m]."""
        return center_of_mass(self.model, self._q)

    @property
    def comd(self) -> Float[Array, "3"]:
        """Velocity of the centre of mass [m/s]."""
        return com_velocity(self.model, self._q, self._qd)

    def get_com_point_mass(self) -> PointMass:
        """The centre of mass as a point with the robot's mass, its position and velocity as they are now."""
        return PointMass(self.com, self.mass, self.comd)

    def compute_com_acceleration(self, qdd: Any) -> Float[Array, "3"]:
        """Acceleration of the centre of mass [m/s^2]."""
        return com_acceleration(self.model, self._q, self._qd, self._vector(qdd, "qdd"))

    def compute_com_jacobian(self) -> Float[Array, "3 n"]:
        """Jacobian of the centre of mass."""
        return com_jacobian(self.model, self._q)

    def compute_com_hessian(self) -> Float[Array, "n 3 n"]:
        """Derivative H[i, :, j] = dJ[:, j] / dq_i of `compute_com_jacobian`."""
        return com_hessian(self.model, self._q)

    # Momentum

    def compute_angular_momentum(self, p: Any) -> Float[Array, "3"]:
        """Angular momentum about a point of the world [kg m^2/s]."""
        return angular_momentum(self.model, self._q, self._qd, floats(p, "p", (3,)))

    def compute_angular_momentum_jacobian(self, p: Any) -> Float[Array, "3 n"]:
        """Jacobian of the angular momentum about a point of the world."""
        return angular_momentum_jacobian(self.model, self._q, floats(p, "p", (3,)))

    def compute_angular_momentum_hessian(self, p: Any) -> Float[Array, "n 3 n"]:
        """Derivative of that Jacobian: the momentum's rate is J qdd + qd H qd."""
        return angular_momentum_hessian(self.model, self._q, floats(p, "p", (3,)))

    @property
    def cam(self) -> Float[Array, "3"]:
        """Angular momentum about the centre of mass [kg m^2/s]."""
        return self.compute_cam()

    def compute_cam(self) -> Float[Array, "3"]:
        """Angular momentum about the centre of mass [kg m^2/s]."""
        return centroidal_momentum(self.model, self._q, self._qd)[:3]

    def compute_cam_jacobian(self) -> Float[Array, "3 n"]:
        """Jacobian of the angular momentum about the centre of mass."""
        return centroidal_momentum_matrix(self.model, self._q)[:3]

    def compute_cam_hessian(self, q: Any = None) -> Float[Array, "n 3 n"]:
        """Derivative of `compute_cam_jacobian`, at a configuration [rad, m]; default is the present one."""
        at = self._q if q is None else self._vector(q, "q")
        return centroidal_momentum_hessian(self.model, at)[:, :3]

    def compute_cam_rate(self, qdd: Any) -> Float[Array, "3"]:
        """Rate J qdd + qd H qd of the angular momentum about the centre of mass [N m]."""
        return centroidal_momentum_rate(self.model, self._q, self._qd, self._vector(qdd, "qdd"))[:3]

    # The ground

    def compute_gravito_inertial_wrench(self, qdd: Any, p: Any) -> Float[Array, "6"]:
        """Wrench [f; n] of weight and inertia about a point [N, N m]."""
        return to_linear_first(
            gravito_inertial_wrench(self.model, self._q, self._qd, self._vector(qdd, "qdd"), floats(p, "p", (3,)))
        )

    def compute_net_contact_wrench(self, qdd: Any, p: Any) -> Float[Array, "6"]:
        """Wrench [f; n] of all contacts on the robot about a point [N, N m]."""
        return to_linear_first(
            net_contact_wrench(self.model, self._q, self._qd, self._vector(qdd, "qdd"), floats(p, "p", (3,)))
        )

    def compute_zmp(self, qdd: Any, origin: Any = None, normal: Any = None) -> Float[Array, "3"]:
        """The zero-tilting-moment point in a plane [m]; NaN where there is none.

        Args:
            qdd: Accelerations [rad/s^2, m/s^2].
            origin: A point of the plane [m]; default is the world's origin.
            normal: Its normal; default is the vertical.
        """
        point = jnp.zeros(3) if origin is None else floats(origin, "origin", (3,))
        up = jnp.array([0.0, 0.0, 1.0]) if normal is None else floats(normal, "normal", (3,))
        found = zmp(self.model, self._q, self._qd, self._vector(qdd, "qdd"), point, up)
        return jnp.where(found.valid, found.point, jnp.nan)


def _load(path: str | Path, root_body: str | None) -> Model:
    model = load_urdf(path)
    if root_body is not None and model.link_index(root_body) != 0:
        raise ModelError(f"root_body must be the root link {model.link_names[0]!r}, got {root_body!r}")
    return with_rpy_base(model)
