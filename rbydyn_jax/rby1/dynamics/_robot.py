"""The robot: all computations of the SDK on a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar, cast, overload

import numpy as np
from jaxtyping import Float

from ..._check import check_flag, check_integer
from ..._errors import DtypeError
from ...model.model import Model
from . import _kernels as kernels
from ._algebra import adjoint, cross, inverse, inverse_adjoint, swap_both
from ._collisions import CollisionTable, detect, make_table, revisions
from ._configuration import RobotConfiguration
from ._errors import ArgumentError, ModelError
from ._errors import DtypeError as ResultError
from ._geometry import CollisionResult
from ._links import Joint, Link
from ._mobility import MobileBase, Mobility, resolve
from ._state import State, State_18, State_24, State_26
from ._structure import build_structure, walk
from ._values import array, checked, index, number

S = TypeVar("S", bound=State)
_TABLES = 16  # collision tables kept, one for each order of links


class _Robot(Generic[S]):
    _State: ClassVar[type[State]] = State
    _dof: ClassVar[int | None] = None

    def __init__(self, robot_configuration: RobotConfiguration) -> None:
        configuration = checked(robot_configuration, "robot_configuration", RobotConfiguration)
        base = checked(configuration.base_link, "robot_configuration.base_link", Link)
        self._name, self._structure = configuration.name, build_structure(base)
        dof = self._structure.dof
        if self._dof not in (None, dof):
            raise ModelError(f"{type(self).__name__} needs {self._dof} joints, and robot {self._name!r} has {dof}")
        mobile, names = configuration.mobile_base, self._structure.topology.joint_names
        self._mobility = None if mobile is None else resolve(checked(mobile, "mobile_base", MobileBase), names)
        self._tables: dict[tuple[int, ...], CollisionTable] = {}

    # -- what the robot is

    @property
    def base(self) -> Link:
        """The base link."""
        return self._structure.links[0]

    @property
    def link_names(self) -> list[str]:
        """Names of all links, breadth-first from the base, siblings in the order of connection."""
        return list(self._structure.topology.link_names)

    @property
    def joint_names(self) -> list[str]:
        """Names of the moving joints in the same order, which is that of `make_state([], [])` and of `model`."""
        return list(self._structure.topology.joint_names)

    @property
    def mobile_base(self) -> MobileBase | None:
        """The mobile base with the indices of its wheels, or None; the SDK does not expose it."""
        return None if self._mobility is None else self._mobility.base

    @property
    def model(self) -> Model:
        """The robot for the pure functions of `rbydyn_jax`, in JAX's default float type; joints as in `joint_names`.

        A snapshot of the current limits and collision objects, built at each access: keep it in a variable.
        Axes are normalized. A hinge whose axis does not pass through its child's origin becomes two links, the first
        named after the joint with ``_axis`` behind it.

        Raises:
            ModelError: The robot has something that a pure model lacks: a zero or scaled screw, unsymmetric
                limits of velocity or acceleration, or an inertia that no rigid body has.
        """
        from ._model import to_model

        return to_model(self._name, self._structure, self.mobile_base)

    def get_base(self) -> Link:
        """Returns the base link."""
        return self.base

    def get_link_names(self) -> list[str]:
        """Returns the names of all links, breadth-first; the SDK's order is that of a hash table."""
        return self.link_names

    def get_joint_names(self) -> list[str]:
        """Returns the names of the moving joints, breadth-first; the SDK's order is that of a hash table."""
        return self.joint_names

    def get_dof(self) -> int:
        """Returns the number of moving joints."""
        return self._structure.dof

    def get_number_of_joints(self) -> int:
        """Returns the number of moving joints."""
        return self._structure.dof

    @staticmethod
    def count_joints(base_link: Link, include_fixed: bool = False) -> int:
        """Returns the number of joints below a link.

        Raises:
            DtypeError: `base_link` is no link, or `include_fixed` neither True nor False.
            ModelError: The joints form a cycle, at which the SDK hangs.
        """
        connections = walk(checked(base_link, "base_link", Link))
        fixed = check_flag(include_fixed, "include_fixed")
        return sum(1 for x in connections if fixed or not x.joint.is_fixed())

    @overload
    def get_link(self, name: str) -> Link | None: ...
    @overload
    def get_link(self, state: S, index: int) -> Link | None: ...
    def get_link(self, *args, **kwargs) -> Link | None:
        """Returns a link by `name`, or by `state` and `index`; None if there is none.

        Raises:
            ArgumentError: The state belongs to another robot, or the index is too large.
            DtypeError: The arguments are neither of the two, or the index is negative.
        """
        given = dict(zip(("state", "index"), args, strict=False)) | kwargs
        if len(args) == 1 and not kwargs:
            given = {"name": args[0]}
        links = self._structure.links
        if given.keys() == {"name"}:
            known = self._structure.topology.link_names
            name = checked(given["name"], "name", str)
            return links[known.index(name)] if name in known else None
        if given.keys() != {"state", "index"}:
            raise DtypeError(f"get_link takes (name) or (state, index), got {len(args)} values and {sorted(kwargs)}")
        state = self._checked(given["state"])
        at = index(given["index"], "index", 2**63)
        return links[state._links[at]] if at < len(state._links) else None

    # -- states

    def make_state(self, link_names: Sequence[str], joint_names: Sequence[str]) -> S:
        """Makes a state whose indices and vectors begin with these links and joints; the others follow breadth-first.

        Raises:
            ArgumentError: A joint is named twice.
            DtypeError: The names are not a list of names.
            NameNotFoundError: There is no such link, or no such moving joint.

        Example:
            >>> import numpy as np, rbydyn_jax.rby1.dynamics as rby_dyn
            >>> upper, lower = rby_dyn.Link("upper"), rby_dyn.Link("lower")
            >>> rby_dyn.Joint.make_revolute("elbow").connect_links(upper, lower)
            >>> robot = rby_dyn.Robot(rby_dyn.RobotConfiguration("arm", upper))
            >>> state = robot.make_state(["upper", "lower"], ["elbow"])
            >>> state.set_q([np.pi / 2])
            >>> robot.compute_forward_kinematics(state)
            >>> robot.compute_transformation(state, 0, 1)[:2, :2].round(12) + 0.0
            array([[ 0., -1.],
                   [ 1.,  0.]])
        """
        return cast(S, self._State(self, link_names, joint_names))

    def _checked(self, state: S) -> S:
        if type(state) is not self._State:
            raise DtypeError(f"state must be a {self._State.__name__}, got {type(state).__name__}")
        if state._topology is not self._structure.topology and state._topology != self._structure.topology:
            raise ArgumentError("state was made by another robot, with other links and joints")
        return state

    # -- kinematics

    def compute_forward_kinematics(self, state: S) -> None:
        """Caches poses and screws at `state.q`; everything else but limits needs this first."""
        kernels.forward_kinematics(self._structure, self._checked(state))

    def compute_diff_forward_kinematics(self, state: S) -> None:
        """Caches twists from `state.qdot` and `V0`, at the cached poses."""
        kernels.diff_forward_kinematics(self._structure, self._checked(state))

    def compute_2nd_diff_forward_kinematics(self, state: S) -> None:
        """Caches accelerations from `state.qdot`, `qddot` and `Vdot0`, with the cached poses and twists."""
        kernels.second_diff_forward_kinematics(self._structure, self._checked(state))

    def compute_transformation(
        self, state: S, reference_link_index: int, target_link_index: int
    ) -> Float[np.ndarray, "4 4"]:
        """Returns the pose of the target link in the reference link, from the cached poses.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref, tgt = self._two(state, reference_link_index, target_link_index)
        return inverse(self._pose(state, ref)) @ self._pose(state, tgt)

    def compute_body_velocity(
        self, state: S, reference_link_index: int, target_link_index: int
    ) -> Float[np.ndarray, "6"]:
        """Returns the twist of the target link relative to the reference link, in the target's frame.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref, tgt = self._two(state, reference_link_index, target_link_index)
        structure, bodies = self._structure, self._structure.topology.link_bodies
        V = [state._V[bodies[k] - 1] if bodies[k] else state._V0 for k in (tgt, ref)]  # in their body frames
        Ad = kernels.adjoints(state)
        across = inverse_adjoint(Ad[bodies[tgt]]) @ Ad[bodies[ref]]
        return structure.link_adjoints[tgt] @ (V[0] - across @ V[1])

    def compute_space_jacobian(
        self, state: S, reference_link_index: int, target_link_index: int
    ) -> Float[np.ndarray, "6 n"]:
        """Returns the Jacobian of the target's motion relative to the reference link, at and in the reference's frame.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref, tgt = self._two(state, reference_link_index, target_link_index)
        return self._jacobian(state, ref, tgt, ref)

    def compute_body_jacobian(
        self, state: S, reference_link_index: int, target_link_index: int
    ) -> Float[np.ndarray, "6 n"]:
        """Returns the Jacobian of the target's motion relative to the reference link, at and in the target's frame.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref, tgt = self._two(state, reference_link_index, target_link_index)
        return self._jacobian(state, ref, tgt, tgt)

    # -- dynamics

    def compute_inverse_dynamics(self, state: S) -> None:
        """Writes the torques of the cached motion to `state.tau`.

        Raises:
            StaleStateError: `compute_2nd_diff_forward_kinematics` was never called on this state.
        """
        kernels.inverse_dynamics(self._structure, self._checked(state))

    def compute_gravity_term(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the torques that hold the robot still at the cached poses, for the gravity that is set now."""
        return kernels.gravity_term(self._structure, self._checked(state))

    def compute_mass_matrix(self, state: S) -> Float[np.ndarray, "n n"]:
        """Returns the joint space inertia at the cached poses. Unlike the SDK's it works on `Robot` too."""
        return kernels.mass_matrix(self._structure, self._checked(state))

    def compute_reflective_inertia(
        self, state: S, reference_link_index: int, target_link_index: int
    ) -> Float[np.ndarray, "6 6"]:
        """Returns pinv(J pinv(M) J^T), the reflected inertia at the target link, in its frame. Works on `Robot` too.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref, tgt = self._two(state, reference_link_index, target_link_index)
        J = self._jacobian(state, ref, tgt, tgt)
        return kernels.reflected_inertia(kernels.mass_matrix(self._structure, state), J)

    def compute_mass(self, state: S, target_link_index: int) -> float:
        """Returns the mass of one link [kg], without the links welded to it.

        Raises:
            ArgumentError: The index is out of range.
        """
        link = self._link(self._checked(state), target_link_index, "target_link_index")
        return float(self._structure.link_moments[link, 3])

    def compute_center_of_mass(
        self,
        state: S,
        ref_link: int,
        target_link: int | Sequence[int] | None = None,
        *,
        target_links: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "3"]:
        """Returns the centre of mass of one link, of several, or of the whole robot, in the reference link's frame.

        A link without mass adds nothing (in the SDK it makes the result NaN); no mass at all gives NaN.

        Args:
            state: The state, after `compute_forward_kinematics`.
            ref_link: Index of the reference link.
            target_link: Index of the link, or a list of indices, in which a link may come twice.
            target_links: The list by name.

        Raises:
            ArgumentError: An index is out of range.
            DtypeError: An index is no integer, or an array has no axis, as in the SDK.
        """
        ref = self._link(self._checked(state), ref_link, "ref_link")
        targets = target_link if target_links is None else target_links
        if targets is None:
            moment = self._moments(state).sum(0)
        elif isinstance(targets, np.ndarray) and not targets.ndim:
            raise DtypeError(f"target_link must be an index or a list of them, got an array of shape {targets.shape}")
        elif isinstance(targets, Sequence | np.ndarray) and not isinstance(targets, str | bytes):
            chosen = [self._link(state, i, "target_links") for i in targets]
            moment = np.sum([self._link_moment(state, i) for i in chosen], axis=0) if chosen else np.zeros(4)
        else:
            moment = self._link_moment(state, self._link(state, cast(int, targets), "target_link"))
        return (inverse(self._pose(state, ref)) @ _center(moment))[:3]

    def compute_center_of_mass_jacobian(
        self, state: S, ref_link: int, target_link: int | None = None
    ) -> Float[np.ndarray, "3 n"]:
        """Returns the derivative of the centre of mass, of a link or of the whole robot, in the reference link's frame.

        The frame may itself move: this differentiates the coordinates that `compute_center_of_mass` returns.

        Raises:
            ArgumentError: An index is out of range.
        """
        ref = self._link(self._checked(state), ref_link, "ref_link")
        structure, R = self._structure, self._pose(state, ref)[:3, :3]
        if target_link is None:
            moments = self._moments(state)
            total = moments.sum(0)
            below = structure.descent.T @ moments  # of each joint: what it moves
        else:
            link = self._link(state, target_link, "target_link")
            total = self._link_moment(state, link)
            below = structure.descent[structure.topology.link_bodies[link], :, None] * total
        below = below / total[3] if total[3] else below * np.nan
        below = below - structure.descent[structure.topology.link_bodies[ref], :, None] * _center(total)
        columns = kernels.screws(structure, state) if state._placed else np.zeros((structure.dof, 6))
        rates = cross(columns[:, :3], below[:, :3]) + columns[:, 3:] * below[:, 3:]
        return (R.T @ rates.T).take(state._order, 1)

    def compute_total_inertial(self, state: S, ref_link: int) -> Float[np.ndarray, "6 6"]:
        """Returns the spatial inertia of the whole robot, the base included, in the reference link's frame.

        Raises:
            ArgumentError: The index is out of range.
        """
        ref = self._link(self._checked(state), ref_link, "ref_link")
        total = swap_both(kernels.space_inertias(self._structure, state).sum(0))
        Ad = adjoint(self._pose(state, ref))
        return Ad.T @ total @ Ad

    # -- collisions

    def detect_collisions_or_nearest_links(self, state: S, collision_threshold: int = 0) -> list[CollisionResult]:
        """Returns all overlapping pairs of capsules, and nearest ones up to `collision_threshold` pairs in all.

        Exact distances; positions are on the axes of the capsules, in the frame of the state's first link. The first
        link of a pair is the one that comes first in the state. Sorted by distance, equal ones in the order of the
        state's links.

        Raises:
            DtypeError: `collision_threshold` is not an integer.
            ModelError: A shape to be tested has no form.
        """
        count = check_integer(collision_threshold, "collision_threshold")
        links, structure = self._checked(state)._links, self._structure
        table = self._tables.get(links)
        if table is None or table.revisions != revisions(structure):
            while len(self._tables) >= _TABLES:
                self._tables.pop(next(iter(self._tables)))
            table = self._tables[links] = make_table(structure, links)
        return detect(table, structure, state, count)

    # -- limits

    def get_joint_property(self, state: S, getter: Callable[[Joint], float]) -> Float[np.ndarray, "n"]:
        """Returns `getter` of each joint, in the order of the state's joints.

        Raises:
            DtypeError: `getter` is no function; or it returns something else than a number, which is a `RuntimeError`
                as well.
        """
        if not callable(getter):
            raise DtypeError(f"getter must be a function of a Joint, got {type(getter).__name__}")
        joints, order = self._structure.joints, self._checked(state)._order
        values = [getter(joints[i]) for i in order]
        try:
            found = np.array(values)
        except ValueError:
            found = np.array(None)
        if found.shape != order.shape or found.dtype.kind not in "fiub":
            raise ResultError(f"getter must return a number for each joint, got {values!r:.200}")
        return found.astype(float)

    def get_limit_q_lower(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the lower limits of the positions [rad, m]; the largest double, negative, where there is none."""
        return self.get_joint_property(state, Joint.get_limit_q_lower)

    def get_limit_q_upper(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the upper limits of the positions [rad, m]; the largest double where there is none."""
        return self.get_joint_property(state, Joint.get_limit_q_upper)

    def get_limit_qdot_lower(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the lower limits of the velocities [rad/s, m/s]."""
        return self.get_joint_property(state, Joint.get_limit_qdot_lower)

    def get_limit_qdot_upper(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the upper limits of the velocities [rad/s, m/s]."""
        return self.get_joint_property(state, Joint.get_limit_qdot_upper)

    def get_limit_qddot_lower(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the lower limits of the accelerations [rad/s^2, m/s^2]."""
        return self.get_joint_property(state, Joint.get_limit_qddot_lower)

    def get_limit_qddot_upper(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the upper limits of the accelerations [rad/s^2, m/s^2]."""
        return self.get_joint_property(state, Joint.get_limit_qddot_upper)

    def get_limit_torque(self, state: S) -> Float[np.ndarray, "n"]:
        """Returns the limits of the torques [N m, N]."""
        return self.get_joint_property(state, Joint.get_limit_torque)

    # -- wheels

    def compute_mobility_diff_kinematics(self, state: S) -> Float[np.ndarray, "3"]:
        """Returns the twist [w, vx, vy] of the base for the wheel velocities in `state.qdot`.

        Raises:
            ModelError: `RobotConfiguration.mobile_base` is None. One without wheels has a velocity of zero.
        """
        mobility = self._wheels()
        return mobility.forward @ self._checked(state)._qdot[list(mobility.wheels)]

    @overload
    def compute_mobility_inverse_diff_kinematics(
        self, state: S, linear_velocity: Float[np.ndarray, "2"], angular_velocity: float
    ) -> None: ...
    @overload
    def compute_mobility_inverse_diff_kinematics(self, state: S, body_velocity: Float[np.ndarray, "3"]) -> None: ...
    def compute_mobility_inverse_diff_kinematics(self, state: S, *args, **kwargs) -> None:
        """Writes the wheel velocities of a twist of the base to `state.qdot`; other joints are unchanged.

        Takes `linear_velocity` (2,) [m/s] and `angular_velocity` [rad/s], or `body_velocity` = [w, vx, vy]; a
        differential drive does not look at vy.

        Raises:
            DtypeError: The arguments are neither of the two.
            ModelError: `RobotConfiguration.mobile_base` is None. One without wheels has a velocity of zero.
        """
        names = ("body_velocity",) if len(args) + len(kwargs) == 1 else ("linear_velocity", "angular_velocity")
        given = dict(zip(names, args, strict=False)) | kwargs
        if given.keys() != set(names) or len(args) + len(kwargs) != len(names):
            raise DtypeError("expected (state, body_velocity) or (state, linear_velocity, angular_velocity)")
        if len(names) == 1:
            twist = array(given["body_velocity"], "body_velocity", 3)
        else:
            linear = array(given["linear_velocity"], "linear_velocity", 2)
            twist = np.array([number(given["angular_velocity"], "angular_velocity"), *linear])
        mobility = self._wheels()
        qdot = self._checked(state)._qdot.copy()
        qdot[list(mobility.wheels)] = mobility.backward @ twist
        state._qdot = qdot

    # -- parts

    def _wheels(self) -> Mobility:
        if self._mobility is None:
            raise ModelError(f"robot {self._name!r} has no mobile base; set RobotConfiguration.mobile_base")
        return self._mobility

    def _link(self, state: S, at: int, name: str) -> int:
        return state._links[index(at, name, len(state._links))]

    def _two(self, state: S, reference_link_index: int, target_link_index: int) -> tuple[int, int]:
        self._checked(state)
        ref = self._link(state, reference_link_index, "reference_link_index")
        return ref, self._link(state, target_link_index, "target_link_index")

    def _pose(self, state: S, link: int) -> Float[np.ndarray, "4 4"]:
        return state._T[self._structure.topology.link_bodies[link]] @ self._structure.link_placements[link]

    def _jacobian(self, state: S, ref: int, tgt: int, frame: int) -> Float[np.ndarray, "6 n"]:
        structure, descent = self._structure, state._descent
        if not state._placed:  # the SDK knows the screws only after the first forward kinematics
            return np.zeros((6, structure.dof))
        bodies = structure.topology.link_bodies
        to_frame = structure.swapped_link_adjoints[frame].dot(kernels.adjoints(state)[bodies[frame]].T)
        J = to_frame.dot(kernels.columns(structure, state).T)
        J *= descent[bodies[tgt]] - descent[bodies[ref]]  # joints above both cancel
        return J

    def _moments(self, state: S) -> Float[np.ndarray, "b 4"]:
        """First moment and mass of each body, in the base frame."""
        return (state._T @ self._structure.body_moments[:, :, None])[:, :, 0]

    def _link_moment(self, state: S, link: int) -> Float[np.ndarray, "4"]:
        return self._pose(state, link) @ self._structure.link_moments[link]

    def __repr__(self) -> str:
        dof, links = self._structure.dof, len(self._structure.links)
        return f"Robot(\n  DOF={dof},\n  links={links},\n  joints={dof},\n  base={self.base.name!r}\n)"

    def __str__(self) -> str:
        return f"Robot(DOF={self._structure.dof}, joints={self._structure.dof}, base={self.base.name})"


class Robot(_Robot[State]):
    """A robot with any number of joints.

    It is a copy of the tree below the base link: links that are connected later are not part of it. Limits of joints
    and collision objects of links stay live. Links and joints are numbered breadth-first from the base, siblings in
    the order of connection (of the `<joint>` elements in a URDF file).

    Args:
        robot_configuration: Base link and mobile base.

    Raises:
        DtypeError: `robot_configuration` is none, or has no base link.
        ModelError: The joints form a cycle, a name is given twice, or a wheel of the mobile base is no joint below the
            base link.
    """


class Robot_18(_Robot[State_18]):
    """A robot with 18 joints, such as the RB-Y1 UB; otherwise as `Robot`, with states of its own class."""

    _State, _dof = State_18, 18


class Robot_24(_Robot[State_24]):
    """A robot with 24 joints, such as the RB-Y1 A; otherwise as `Robot`, with states of its own class."""

    _State, _dof = State_24, 24


class Robot_26(_Robot[State_26]):
    """A robot with 26 joints, such as the RB-Y1 M; otherwise as `Robot`, with states of its own class."""

    _State, _dof = State_26, 26


def _center(moment: Float[np.ndarray, "4"]) -> Float[np.ndarray, "4"]:
    """The homogeneous point of a first moment and mass; NaN without mass."""
    return moment / moment[3] if moment[3] else np.full(4, np.nan)
