"""Links and joints, the parts of a robot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from . import _algebra
from ._errors import ModelError
from ._values import checked, finite, limits, number, pose

if TYPE_CHECKING:
    from ._geometry import Collision

_UNLIMITED = sys.float_info.max  # the SDK's word for no limit
_ACCELERATION = 10.0  # the SDK's default [rad/s^2]


class Link:
    """A rigid link.

    Args:
        name: Its name.
        I: Spatial inertia (6, 6) in the link frame, angular first, symmetric. The default is the SDK's: 1 kg and
            1 kg m^2 about each axis.

    Raises:
        ArgumentError: `I` is not finite.
        DtypeError: `I` is not of shape (6, 6).
        ModelError: `I` is not symmetric.
    """

    def __init__(self, name: str, I: ArrayLike | None = None) -> None:  # noqa: E741 (the SDK's keyword)
        self._name = checked(name, "name", str)
        self._inertial = np.eye(6) if I is None else finite(I, "I", 6, 6)
        if np.abs(self._inertial - self._inertial.T).max() > 1e-12 * np.abs(self._inertial).max():
            raise ModelError(f"link {name!r}: the inertia I must be symmetric")
        self._parent: Joint | None = None
        self._children: list[Joint] = []
        self._collisions: list[Collision] = []

    @property
    def name(self) -> str:
        """Name of the link."""
        return self._name

    @property
    def inertial(self) -> Float[np.ndarray, "6 6"]:
        """Spatial inertia in the link frame, angular first: a copy."""
        return self._inertial.copy()

    @property
    def parent_joint(self) -> Joint | None:
        """The joint that carries the link, or None."""
        return self._parent

    def get_name(self) -> str:
        """Returns the name of the link."""
        return self._name

    def get_parent_joint(self) -> Joint | None:
        """Returns the joint that carries the link, or None."""
        return self._parent

    def get_child_joint_list(self) -> list[Joint]:
        """Returns the joints that the link carries, in the order in which they were connected: a copy of the list."""
        return list(self._children)

    def add_collision(self, collision: Collision) -> None:
        """Adds a collision object. Robots that were built before see it too.

        Raises:
            DtypeError: It is not a `Collision`.
        """
        from ._geometry import Collision

        self._collisions.append(checked(collision, "collision", Collision))

    def get_collisions(self) -> list[Collision]:
        """Returns the collision objects: a copy of the list."""
        return list(self._collisions)

    def __repr__(self) -> str:
        parent = "None" if self._parent is None else self._parent.name
        children, collisions = [j.name for j in self._children], [c.name for c in self._collisions]
        return (
            f"Link(\n  name={self._name!r},\n  parent_joint={parent!r},\n  children={children},\n"
            f"  collisions={collisions}\n)"
        )

    def __str__(self) -> str:
        return f"Link({self._name}, children={len(self._children)}, collisions={len(self._collisions)})"


class Joint:
    """A joint with one degree of freedom or none; made by `make`, `make_revolute`, `make_prismatic`, `make_fixed`.

    The screw is taken as it is: an axis of length 2 turns twice as far. Limits are the largest double until they are
    set, those of the acceleration 10. A robot that was built already sees a changed limit.
    """

    def __init__(self, name: str, S: Float[np.ndarray, "6"] | None) -> None:
        self._name = checked(name, "name", str)
        self._screw = None if S is None else finite(S, "S", 6)
        self._parent: Link | None = None
        self._child: Link | None = None
        self._T_pj, self._T_jc = np.eye(4), np.eye(4)
        self._q_lower, self._q_upper = -_UNLIMITED, _UNLIMITED
        self._qdot_lower, self._qdot_upper = -_UNLIMITED, _UNLIMITED
        self._qddot_lower, self._qddot_upper = -_ACCELERATION, _ACCELERATION
        self._torque = _UNLIMITED

    @staticmethod
    def make(name: str, S: ArrayLike) -> Joint:
        """Makes a joint with the screw `S` = [angular; linear] (6,) in the joint frame; it may be a helical one.

        Raises:
            ArgumentError: `S` is not finite.
            DtypeError: `S` is not of shape (6,).
        """
        return Joint(name, finite(S, "S", 6))

    @staticmethod
    def make_fixed(name: str) -> Joint:
        """Makes a joint that does not move."""
        return Joint(name, None)

    @staticmethod
    def make_revolute(name: str, T: ArrayLike | None = None, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Joint:
        """Makes a revolute joint.

        Args:
            name: Its name.
            T: Pose (4, 4) of the axis in the joint frame; default is the identity. It moves the axis, not the child.
            axis: Direction (3,), and by its length speed, of the rotation.

        Raises:
            ArgumentError: The axis is not finite, or `T` no rigid transform.
            DtypeError: An array is of another shape.
        """
        return Joint(name, _moved(T, [*finite(axis, "axis", 3), 0.0, 0.0, 0.0]))

    @staticmethod
    def make_prismatic(name: str, T: ArrayLike | None = None, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Joint:
        """Makes a prismatic joint; the arguments are those of `make_revolute`."""
        return Joint(name, _moved(T, [0.0, 0.0, 0.0, *finite(axis, "axis", 3)]))

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self._name

    @property
    def parent_link(self) -> Link | None:
        """The link that carries the joint, or None."""
        return self._parent

    @property
    def child_link(self) -> Link | None:
        """The link that the joint moves, or None."""
        return self._child

    def get_name(self) -> str:
        """Returns the name of the joint."""
        return self._name

    def get_parent_link(self) -> Link | None:
        """Returns the link that carries the joint, or None."""
        return self._parent

    def get_child_link(self) -> Link | None:
        """Returns the link that the joint moves, or None."""
        return self._child

    def is_fixed(self) -> bool:
        """Returns whether the joint does not move."""
        return self._screw is None

    def connect_links(
        self,
        parent_link: Link,
        child_link: Link,
        T_pj: ArrayLike | None = None,
        T_jc: ArrayLike | None = None,
    ) -> None:
        """Connects two links through this joint; earlier connections of it and of the child are removed first.

        Args:
            parent_link: The link that carries the joint.
            child_link: The link that it moves.
            T_pj: Pose (4, 4) of the joint in the parent; default is the identity.
            T_jc: Pose (4, 4) of the child in the joint; default is the identity. Only fixed joints use it.

        Raises:
            ArgumentError: A pose is no rigid transform.
            DtypeError: A link is none, or a pose is not of shape (4, 4).
        """
        parent, child = checked(parent_link, "parent_link", Link), checked(child_link, "child_link", Link)
        poses = [np.eye(4) if T is None else pose(T, n) for n, T in (("T_pj", T_pj), ("T_jc", T_jc))]
        self.disconnect()
        if child._parent is not None:
            child._parent.disconnect()
        self._T_pj, self._T_jc = poses
        self._parent, self._child = parent, child
        parent._children.append(self)
        child._parent = self

    def disconnect(self) -> None:
        """Disconnects the joint from its links, which it still remembers.

        As in the SDK, the parent then loses all joints of this name.
        """
        if self._parent is not None:
            self._parent._children = [joint for joint in self._parent._children if joint._name != self._name]
        if self._child is not None:
            self._child._parent = None

    def set_limit_q(self, lower: float, upper: float) -> None:
        """Sets the limits of the position, the lower not above the upper [rad, m]."""
        self._q_lower, self._q_upper = limits(lower, upper)

    def set_limit_q_lower(self, val: float) -> None:
        """Sets the lower limit of the position [rad, m]."""
        self._q_lower = number(val, "val")

    def set_limit_q_upper(self, val: float) -> None:
        """Sets the upper limit of the position [rad, m]."""
        self._q_upper = number(val, "val")

    def set_limit_qdot(self, lower: float, upper: float) -> None:
        """Sets the limits of the velocity, the lower not above the upper [rad/s, m/s]."""
        self._qdot_lower, self._qdot_upper = limits(lower, upper)

    def set_limit_qdot_lower(self, val: float) -> None:
        """Sets the lower limit of the velocity [rad/s, m/s]."""
        self._qdot_lower = number(val, "val")

    def set_limit_qdot_upper(self, val: float) -> None:
        """Sets the upper limit of the velocity [rad/s, m/s]."""
        self._qdot_upper = number(val, "val")

    def set_limit_qddot(self, lower: float, upper: float) -> None:
        """Sets the limits of the acceleration, the lower not above the upper [rad/s^2, m/s^2]."""
        self._qddot_lower, self._qddot_upper = limits(lower, upper)

    def set_limit_qddot_lower(self, val: float) -> None:
        """Sets the lower limit of the acceleration [rad/s^2, m/s^2]."""
        self._qddot_lower = number(val, "val")

    def set_limit_qddot_upper(self, val: float) -> None:
        """Sets the upper limit of the acceleration [rad/s^2, m/s^2]."""
        self._qddot_upper = number(val, "val")

    def set_limit_torque(self, torque: float) -> None:
        """Sets the limit of the torque [N m, N]."""
        self._torque = number(torque, "torque")

    def get_limit_q_lower(self) -> float:
        """Returns the lower limit of the position [rad, m]."""
        return self._q_lower

    def get_limit_q_upper(self) -> float:
        """Returns the upper limit of the position [rad, m]."""
        return self._q_upper

    def get_limit_qdot_lower(self) -> float:
        """Returns the lower limit of the velocity [rad/s, m/s]."""
        return self._qdot_lower

    def get_limit_qdot_upper(self) -> float:
        """Returns the upper limit of the velocity [rad/s, m/s]."""
        return self._qdot_upper

    def get_limit_qddot_lower(self) -> float:
        """Returns the lower limit of the acceleration [rad/s^2, m/s^2]."""
        return self._qddot_lower

    def get_limit_qddot_upper(self) -> float:
        """Returns the upper limit of the acceleration [rad/s^2, m/s^2]."""
        return self._qddot_upper

    def get_limit_torque(self) -> float:
        """Returns the limit of the torque [N m, N]."""
        return self._torque

    def __repr__(self) -> str:
        ends = ["None" if link is None else link.name for link in (self._parent, self._child)]
        return (
            f"Joint(\n  name={self._name!r},\n  fixed={self.is_fixed()},\n  parent={ends[0]!r},\n  child={ends[1]!r}\n)"
        )

    def __str__(self) -> str:
        return f"Joint({self._name}, fixed)" if self.is_fixed() else f"Joint({self._name})"


def _moved(T: ArrayLike | None, screw: list[float]) -> Float[np.ndarray, "6"]:
    return np.array(screw) if T is None else _algebra.adjoint(pose(T, "T")) @ np.array(screw)
