"""A robot with a configuration and a velocity, and what pymanoid computes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._check import check_finite
from ..._errors import ArgumentError, DtypeError, ModelError
from ...algorithms.crba import crba
from ...algorithms.hessians import hessian, point_hessian
from ...algorithms.inverse_dynamics import gravity_forces, inverse_dynamics_terms
from ...algorithms.jacobians import jacobian, point_jacobian, quaternion_jacobian
from ...algorithms.kinematics import link_pose
from ...io.load import load_urdf
from ...model.configuration import clamp, neutral
from ...model.edit import with_limits
from ...model.model import Model, check_model
from ...spatial import se3, to_linear_first
from .._numbers import finite_floats, floats
from .body import Body
from .contact import Contact, contact_tuple

Indices = Sequence[int] | None


class Link(Body):
    """A link of a robot, made by `Robot.get_link`: it moves with the joints, and its setters raise an ArgumentError."""

    def __init__(self, robot: Robot, name: str) -> None:
        self._robot, self._index = robot, robot.model.link_index(name)
        self.set_name(name)

    @property
    def T(self) -> Float[Array, "4 4"]:
        """T_world_link at the robot's present configuration."""
        return self._robot.get_link_transform(self._index)

    @property
    def index(self) -> int:
        """Index of the link, for Jacobians and Hessians."""
        return self._index

    def _move(self, T: Float[Array, "4 4"]) -> None:
        raise ArgumentError(f"link {self.name!r} moves with its robot: set the positions of the joints")


class Robot:
    """A model and its present configuration and velocity; 6-vectors are [linear; angular], axes those of the world.

    Every joint has one coordinate, so that velocities are the rates of coordinates; a floating base is made of six
    such joints by `with_rpy_base`. Points p are given in world coordinates, and are held to move with the link.

    Args:
        path: The robot, or the path of its URDF.
        q: Configuration [rad, m]; default is zero, moved inside the limits.
        qd: Velocity [rad/s, m/s]; default is zero.

    Raises:
        ArgumentError: A number is not finite.
        ModelError: A joint has several coordinates.
        ParseError: The file cannot be read.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.compat.pymanoid import Robot
        >>> arm = Robot(robots.two_link_arm())
        >>> arm.compute_link_jacobian("tool")[1].tolist()  # along y, of the joints' turning about z
        [0.9, 0.4]
    """

    def __init__(self, path: Model | str | Path, *, q: Any = None, qd: Any = None) -> None:
        self.model = model = load_urdf(path) if isinstance(path, str | Path) else check_model(path)
        several = [n for n, joint in zip(model.joint_names, model.tree.joints, strict=True) if joint.nq != 1]
        if several:
            raise ModelError(f"joint {several[0]!r} has several coordinates; with_rpy_base makes six joints of a base")
        self._q = clamp(model, neutral(model)) if q is None else self._finite(q, "q")
        self._qd = jnp.zeros_like(self._q) if qd is None else self._finite(qd, "qd")

    def _vector(self, x: Any, name: str) -> Float[Array, "n"]:
        return floats(x, name, (self.model.nv,), "nb_dofs").astype(self.model.inertias.dtype)

    def _finite(self, x: Any, name: str) -> Float[Array, "n"]:
        found = self._vector(x, name)
        check_finite(found, name)
        return found

    @property
    def nb_dofs(self) -> int:
        """Number of joints."""
        return self.model.nv

    @property
    def q(self) -> Float[Array, "n"]:
        """Configuration [rad, m]."""
        return self._q

    @property
    def qd(self) -> Float[Array, "n"]:
        """Velocity [rad/s, m/s]."""
        return self._qd

    @property
    def q_min(self) -> Float[Array, "n"]:
        """Lower limits of q [rad, m]."""
        return self.model.position_lower

    @property
    def q_max(self) -> Float[Array, "n"]:
        """Upper limits of q [rad, m]."""
        return self.model.position_upper

    def get_link(self, name: str) -> Link:
        """A link by its name; it moves with the robot, and stands for it in Jacobians and Hessians.

        Raises:
            NameNotFoundError: There is no such link.
        """
        return Link(self, name)

    def get_dof_values(self, dof_indices: Indices = None) -> Float[Array, "k"]:
        """Positions of some joints, or of all."""
        return self._q if dof_indices is None else self._q[self._indices(dof_indices)]

    def set_dof_values(self, q: Any, dof_indices: Indices = None, clamp: bool = False) -> None:
        """Moves some joints, or all.

        Args:
            q: Their positions [rad, m].
            dof_indices: Which joints; None is all.
            clamp: Whether to move them inside their limits first.

        Raises:
            ArgumentError: There is no such joint, one is named twice, or a position is not finite.
            DtypeError: An argument is of another type.
            ShapeError: `q` has another shape.
        """
        at = self._distinct(dof_indices)
        values = finite_floats(q, "q", (len(at),), "number of joints")
        if not isinstance(clamp, bool):
            raise DtypeError(f"clamp must be True or False, got {clamp!r}")
        if clamp:
            values = jnp.clip(values, self.q_min[at], self.q_max[at])
        self._q = self._q.at[at].set(values)

    def get_dof_velocities(self, dof_indices: Indices = None) -> Float[Array, "k"]:
        """Velocities of some joints, or of all."""
        return self._qd if dof_indices is None else self._qd[self._indices(dof_indices)]

    def set_dof_velocities(self, qd: Any, dof_indices: Indices = None) -> None:
        """Sets the velocities of some joints, or of all [rad/s, m/s]."""
        at = self._distinct(dof_indices)
        self._qd = self._qd.at[at].set(finite_floats(qd, "qd", (len(at),), "number of joints"))

    def get_dof_limits(self, dof_indices: Indices = None) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
        """Lower and upper limits of some joints, or of all."""
        at = self._indices(dof_indices)
        return self.q_min[at], self.q_max[at]

    def set_dof_limits(self, q_min: Any, q_max: Any, dof_indices: Indices = None) -> None:
        """Replaces the limits of some joints, or of all [rad, m]; the configuration stays as it is."""
        at = self._distinct(dof_indices)
        low, high = (floats(x, n, (len(at),), "number of joints") for x, n in ((q_min, "q_min"), (q_max, "q_max")))
        self.model = with_limits(
            self.model, position_lower=self.q_min.at[at].set(low), position_upper=self.q_max.at[at].set(high)
        )

    def _indices(self, dof_indices: Indices) -> np.ndarray:
        try:
            at = np.arange(self.nb_dofs) if dof_indices is None else np.asarray(dof_indices).reshape(-1)
        except ValueError:  # rows of different lengths
            at = np.array([None])
        if at.size and at.dtype.kind not in "iu":
            raise DtypeError(f"dof_indices must be integers, got {dof_indices!r}")
        at = at.astype(int)
        if at.size and not (0 <= at.min() and at.max() < self.nb_dofs):
            raise ArgumentError(f"dof_indices must lie in 0 to {self.nb_dofs - 1}, got {at.tolist()}")
        return at

    def _distinct(self, dof_indices: Indices) -> np.ndarray:
        at = self._indices(dof_indices)
        if len(np.unique(at)) < len(at):
            raise ArgumentError(f"dof_indices must name each joint once, got {at.tolist()}")
        return at

    # Jacobians and Hessians

    def get_link_transform(self, link: Body | str | int) -> Float[Array, "4 4"]:
        """T_world_link."""
        return link_pose(self.model, self._q, _link(link))

    def _local(self, link: Body | str | int, p: Any) -> Float[Array, "3"]:
        T = se3.inverse(self.get_link_transform(link))
        return T[:3, :3] @ floats(p, "p", (3,)) + T[:3, 3]

    def compute_link_jacobian(self, link: Body | str | int, p: Any = None) -> Float[Array, "6 n"]:
        """Jacobian of a link, rows [velocity of its point at p; angular velocity]; default is the link's origin."""
        J = to_linear_first(jacobian(self.model, self._q, _link(link)))
        return J if p is None else jnp.concatenate([self.compute_link_pos_jacobian(link, p), J[3:]])

    def compute_link_pos_jacobian(self, link: Body | str | int, p: Any = None) -> Float[Array, "3 n"]:
        """Jacobian of the velocity of a link's point at p; default is the link's origin."""
        local = jnp.zeros(3, self._q.dtype) if p is None else self._local(link, p)
        return point_jacobian(self.model, self._q, _link(link), local)

    def compute_link_pose_jacobian(self, link: Body | str | int) -> Float[Array, "7 n"]:
        """Jacobian of a link's pose [qw, qx, qy, qz, x, y, z] with qw >= 0."""
        return quaternion_jacobian(self.model, self._q, _link(link))

    def compute_link_hessian(self, link: Body | str | int, p: Any = None) -> Float[Array, "n 6 n"]:
        """Derivative H[i, :, j] = dJ[:, j] / dq_i of `compute_link_jacobian`: accelerations are J qdd + qd H qd."""
        H = to_linear_first(hessian(self.model, self._q, _link(link)), axis=1)
        return H if p is None else jnp.concatenate([self.compute_link_pos_hessian(link, p), H[:, 3:]], axis=1)

    def compute_link_pos_hessian(self, link: Body | str | int, p: Any = None) -> Float[Array, "n 3 n"]:
        """Derivative of `compute_link_pos_jacobian`."""
        local = jnp.zeros(3, self._q.dtype) if p is None else self._local(link, p)
        return point_hessian(self.model, self._q, _link(link), local)

    def compute_contact_jacobian(self, contacts: Iterable[Contact]) -> Float[Array, "k n"]:
        """Jacobians of the contacts' links at the contacts, below one another."""
        each = [self.compute_link_jacobian(_contact_link(c), c.p) for c in contact_tuple(contacts)]
        return jnp.concatenate([jnp.zeros((0, self.nb_dofs), self._q.dtype), *each])

    def compute_contact_hessian(self, contacts: Iterable[Contact]) -> Float[Array, "n k n"]:
        """Derivative of `compute_contact_jacobian`."""
        each = [self.compute_link_hessian(_contact_link(c), c.p) for c in contact_tuple(contacts)]
        return jnp.concatenate([jnp.zeros((self.nb_dofs, 0, self.nb_dofs), self._q.dtype), *each], axis=1)

    # Dynamics

    def compute_inertia_matrix(self) -> Float[Array, "n n"]:
        """The mass matrix."""
        return crba(self.model, self._q)

    def compute_inverse_dynamics(
        self, qdd: Any = None, external_torque: Any = None
    ) -> tuple[Float[Array, "n"] | None, Float[Array, "n"], Float[Array, "n"]]:
        """The terms tm = M qdd, tc = C qd and tg = g - external_torque, of which the actuators have to give the sum.

        Args:
            qdd: Accelerations [rad/s^2, m/s^2]; without them tm is None.
            external_torque: Joint torques that others give [N m, N].
        """
        zero = jnp.zeros_like(self._q)
        a = zero if qdd is None else self._vector(qdd, "qdd")
        terms = inverse_dynamics_terms(self.model, self._q, self._qd, a)
        others = zero if external_torque is None else self._vector(external_torque, "external_torque")
        return None if qdd is None else terms.inertial, terms.coriolis, terms.gravity - others

    def compute_static_gravity_torques(self, external_torque: Any = None) -> Float[Array, "n"]:
        """Torques that hold the robot still, less those that others give [N m, N]."""
        tau = gravity_forces(self.model, self._q)
        return tau if external_torque is None else tau - self._vector(external_torque, "external_torque")


def _link(link: Body | str | int) -> str | int:
    return link.index if isinstance(link, Body) else link


def _contact_link(contact: Contact) -> Body | str | int:
    if contact.link is None:
        raise ArgumentError("the contact has no link; give link=")
    return contact.link
