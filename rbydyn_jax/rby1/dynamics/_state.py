"""The state of a robot: positions, velocities, accelerations, torques, and the caches of the compute calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..._errors import DtypeError, StaleStateError
from .._names import listed
from ._algebra import SWAP
from ._errors import ArgumentError, NameNotFoundError, ShapeError
from ._structure import structure_of
from ._values import any_vector, array, at_least

if TYPE_CHECKING:
    from ._pure import JaxState
    from ._robot import _Robot

Vector = Float[np.ndarray, "n"]


class State:
    """State of a robot, made by `Robot.make_state`.

    Vectors are in the order of `joint_names`, indices of links count along `link_names`: first the names asked for,
    then the others in the robot's breadth-first order. What a getter returns is a copy. No array in here is ever
    written to, only replaced, so that `copy.copy` is as good as `copy.deepcopy`; states can be pickled.

    Before the first `compute_forward_kinematics` the poses are those of the zero position and the Jacobians zero, and
    the velocities are zero before the first `compute_diff_forward_kinematics`, as in the SDK. Its torques and
    accelerations would be uninitialized memory; here asking for them raises `StaleStateError`.

    Args:
        robot: The robot.
        link_names: Links that come first, in this order.
        joint_names: Joints that come first, in this order.

    Raises:
        ArgumentError: A joint is named twice.
        DtypeError: `robot` is none, or the names are not a list of names.
        NameNotFoundError: There is no such link, or no such moving joint.
    """

    def __init__(self, robot: _Robot, link_names: Sequence[str] = (), joint_names: Sequence[str] = ()) -> None:
        structure = structure_of(robot)
        topology, n = structure.topology, structure.dof
        links = _indices(link_names, "link", topology.link_names)
        joints = _indices(joint_names, "joint", topology.joint_names)
        if len(set(joints)) < len(joints):
            raise ArgumentError(f"joint_names has a joint more than once: {list(joint_names)}")
        self._topology = topology
        self._links = (*links, *(i for i in range(len(topology.link_names)) if i not in links))
        order = [*joints, *(i for i in range(n) if i not in joints)]
        self._order = np.array(order, np.intp)  # user's position -> joint of the robot
        self._position = np.argsort(self._order)  # joint of the robot -> user's position
        self._q = self._qdot = self._qddot = np.zeros(n)
        self._tau: np.ndarray | None = None
        self._V0 = self._Vdot0 = np.zeros(6)
        # Structure.descent, and Structure.above with each entry six times; joints in the order of the state.
        self._descent = structure.descent.take(self._order, 1)
        self._moved = structure.above.take(self._order, 0).repeat(6, 1)
        # Where the entries of `kernels.columns` stand in an array (b, 6, 7).
        self._column_entries = 42 * (self._order[:, None] + 1) + 7 * SWAP + 6
        # The caches: poses of the base and of all bodies; twists and accelerations without the base.
        self._place(np.tile(np.eye(4), (n + 1, 1, 1)))
        self._placed = False  # the SDK's Jacobians are zero until the first forward kinematics
        self._V = np.zeros((n, 6))
        self._Vdot: np.ndarray | None = None

    def _place(self, T: Float[np.ndarray, "b 4 4"]) -> None:
        """Caches poses; what follows from them alone is computed when it is first needed."""
        self._T, self._placed = T, True
        self._Ad: np.ndarray | None = None
        self._in_base: np.ndarray | None = None
        self._columns: np.ndarray | None = None
        self._scaled: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def base_link_idx(self) -> int:
        """Index of the base link, the last one if it was named several times."""
        return max(i for i, link in enumerate(self._links) if link == 0)

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints, in the order of the vectors."""
        return [self._topology.joint_names[i] for i in self._order]

    @property
    def link_names(self) -> list[str]:
        """Names of the links, in the order of the indices."""
        return [self._topology.link_names[i] for i in self._links]

    def get_base_link_idx(self) -> int:
        """Returns the index of the base link."""
        return self.base_link_idx

    def get_joint_names(self) -> list[str]:
        """Returns the names of the joints, in the order of the vectors."""
        return self.joint_names

    def get_link_names(self) -> list[str]:
        """Returns the names of the links, in the order of the indices."""
        return self.link_names

    def get_q(self) -> Vector:
        """Returns the positions [rad, m]."""
        return self._q[self._order]

    def get_qdot(self) -> Vector:
        """Returns the velocities [rad/s, m/s]."""
        return self._qdot[self._order]

    def get_qddot(self) -> Vector:
        """Returns the accelerations [rad/s^2, m/s^2]."""
        return self._qddot[self._order]

    def get_tau(self) -> Vector:
        """Returns the torques [N m, N] set by `compute_inverse_dynamics` or `set_tau`.

        Raises:
            StaleStateError: Neither was called.
        """
        if self._tau is None:
            raise StaleStateError("tau is not set: call compute_inverse_dynamics(state) or state.set_tau(tau) first")
        return self._tau[self._order]

    def set_q(self, q: ArrayLike) -> None:
        """Sets the positions [rad, m]; see `set_tau` for what is accepted."""
        self._q = self._partly(q, "q", self._q)

    def set_qdot(self, qdot: ArrayLike) -> None:
        """Sets the velocities [rad/s, m/s]; see `set_tau` for what is accepted."""
        self._qdot = self._partly(qdot, "qdot", self._qdot)

    def set_qddot(self, qddot: ArrayLike) -> None:
        """Sets the accelerations [rad/s^2, m/s^2]; see `set_tau` for what is accepted."""
        self._qddot = self._partly(qddot, "qddot", self._qddot)

    def set_tau(self, tau: ArrayLike) -> None:
        """Sets the torques [N m, N].

        A shorter vector sets the robot's first joints and leaves the others, if these are the first joints of the
        state too; otherwise the SDK would write to the wrong joints.

        Raises:
            DtypeError: It is not a vector of numbers.
            ShapeError: It is longer than the number of joints, or shorter and the joints are in another order.
        """
        before = np.full(len(self._q), np.nan) if self._tau is None else self._tau
        self._tau = self._partly(tau, "tau", before)

    def set_V0(self, V0: ArrayLike) -> None:
        """Sets the twist of the base link, angular first, in its frame; entries after the sixth are ignored.

        Raises:
            ShapeError: There are fewer than six.
        """
        self._V0 = at_least(V0, "V0", 6)

    def set_Vdot0(self, Vdot0: ArrayLike) -> None:
        """Sets the spatial acceleration of the base link, angular first, in its frame.

        Raises:
            DtypeError: It is not of shape (6,).
        """
        self._Vdot0 = array(Vdot0, "Vdot0", 6)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Sets the acceleration of free fall, [0, 0, 0, 0, 0, -9.81] on a level floor: `Vdot0 = -gravity`.

        Raises:
            DtypeError: It is not of shape (6,).
        """
        self._Vdot0 = -array(gravity, "gravity", 6)

    q = property(get_q, set_q, doc="Positions [rad, m].")
    qdot = property(get_qdot, set_qdot, doc="Velocities [rad/s, m/s].")
    qddot = property(get_qddot, set_qddot, doc="Accelerations [rad/s^2, m/s^2].")
    tau = property(get_tau, set_tau, doc="Torques [N m, N].")

    @property
    def V0(self) -> Float[np.ndarray, "6"]:
        """Twist of the base link, angular first, in its frame."""
        return self._V0.copy()

    @V0.setter
    def V0(self, V0: ArrayLike) -> None:
        self.set_V0(V0)

    @property
    def Vdot0(self) -> Float[np.ndarray, "6"]:
        """Spatial acceleration of the base link, angular first, in its frame; gravity is its negative."""
        return self._Vdot0.copy()

    @Vdot0.setter
    def Vdot0(self, Vdot0: ArrayLike) -> None:
        self._Vdot0 = at_least(Vdot0, "Vdot0", 6)

    def to_jax(self) -> JaxState:
        """Returns the values as JAX arrays, in the joint order of `Robot.model`, in JAX's default float type."""
        from ._pure import to_jax

        return to_jax(self)

    @classmethod
    def from_jax(
        cls, robot: _Robot, values: JaxState, link_names: Sequence[str] = (), joint_names: Sequence[str] = ()
    ) -> State:
        """Returns a new state of `robot` with the values of `to_jax`; nothing is computed yet.

        Args:
            robot: The robot; its class decides that of the state.
            values: The values, in the joint order of `Robot.model`.
            link_names: Links that come first in the state.
            joint_names: Joints that come first in the state.

        Raises:
            DtypeError: `robot` is none, or an array does not fit it.
        """
        from ._pure import from_jax

        return from_jax(robot, values, link_names, joint_names)

    def _partly(self, x: Any, name: str, before: Vector) -> Vector:
        given, n = any_vector(x, name), len(self._q)
        if len(given) == n:
            return given[self._position]
        if len(given) > n:
            raise ShapeError(f"{name} has {len(given)} entries, and the state {n} joints")
        chosen = self._position[: len(given)]
        if (chosen >= len(given)).any():
            raise ShapeError(f"{name} must have {n} entries, one for each of joint_names, got {len(given)}")
        return np.concatenate([given[chosen], before[len(given) :]])

    def __repr__(self) -> str:
        values = (self.q, self.qdot, self.qddot, None if self._tau is None else self.tau, self._V0, self._Vdot0)
        names = ("q", "qdot", "qddot", "tau", "V0", "Vdot0")
        lines = [f"base_link_idx={self.base_link_idx}"]
        for name, value in zip(names, values, strict=True):
            indent = " " * len(f"  {name}=")  # lines of a wrapped array stand below one another, as in the SDK
            lines.append(f"{name}={str(value).replace(chr(10), chr(10) + indent)}")
        return "State(\n  " + ",\n  ".join(lines) + "\n)"

    def __str__(self) -> str:
        tau = None if self._tau is None else self.tau
        return f"State(base={self.base_link_idx}, q={self.q}, qdot={self.qdot}, tau={tau})"


class State_18(State):
    """State of a `Robot_18`."""


class State_24(State):
    """State of a `Robot_24`."""


class State_26(State):
    """State of a `Robot_26`."""


def _indices(names: Sequence[str], kind: str, known: tuple[str, ...]) -> list[int]:
    names = listed(names)
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise DtypeError(f"{kind}_names must be a list of names, got {names!r}")
    for name in names:
        if name not in known:
            raise NameNotFoundError(name, kind, known)
    return [known.index(name) for name in names]
