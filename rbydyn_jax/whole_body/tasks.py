"""What a robot is to do: accelerations of links, of the centre of mass and of joints, momentum, forces and efforts."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_integer, check_not_negative, check_number, check_real
from .._errors import ArgumentError, DtypeError, ShapeError
from ..constraints._vectors import Numbers, check_link, not_negative, vector
from ..constraints._vectors import pose as rigid
from ..model.configuration import difference
from ..model.model import Model
from ..spatial import so3
from ..spatial.safe import safe_sqrt
from ._state import State


class Rows(NamedTuple):
    """Equations J x = wanted, x being the accelerations, the efforts or the force of a contact; J may be the identity.

    Attributes:
        of: ``"acceleration"``, ``"effort"``, or the index of a contact.
        matrix: J; None is the identity.
        wanted: The right side.
        weight: Of the squared error, for each row.
    """

    of: Literal["acceleration", "effort"] | int
    matrix: Float[Array, "k n"] | None
    wanted: Float[Array, "k"]
    weight: Float[Array, "k"]


class Task(eqx.Module):
    """Something that a robot is to do, as well as more important tasks and the constraints allow."""

    weight: eqx.AbstractVar[Float[Numbers, "..."]]
    priority: eqx.AbstractVar[int]

    @abc.abstractmethod
    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """Its equations; `driven` are the velocities that have a motor."""

    @abc.abstractmethod
    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """Raises unless it is a task of this robot with these contacts."""


class Pose(Task):
    r"""The pose of a link: $\dot V^* = \dot V_d + k_d (V_d - V) + k_p e$, in world axes at the link's origin.

    The error e is the rotation vector to the target, and the way to its origin. A link that is to have an orientation
    or a position alone has weights of zero for the others.

    Attributes:
        link: The link, by name or index; static.
        target: T_world_link (4, 4).
        weight: Of the squared error of the acceleration, a number or one for each of its six entries.
        stiffness: $k_p$ [1/s^2].
        damping: $k_d$ [1/s]; None is critical, $2 \sqrt{k_p}$.
        velocity: $V_d$ [rad/s, m/s].
        acceleration: $\dot V_d$ [rad/s^2, m/s^2].
        priority: Tasks of a lower number come first; static.
    """

    link: str | int = eqx.field(static=True)
    target: Float[Numbers, "4 4"]
    weight: Float[Numbers, "..."]
    stiffness: Float[Numbers, ""]
    damping: Float[Numbers, ""] | None
    velocity: Float[Numbers, "6"]
    acceleration: Float[Numbers, "6"]
    priority: int = eqx.field(static=True)

    def __init__(
        self,
        link: str | int,
        target: Any,
        weight: Any = 1.0,
        *,
        stiffness: Any = 100.0,
        damping: Any = None,
        velocity: Any = (0.0,) * 6,
        acceleration: Any = (0.0,) * 6,
        priority: int = 0,
    ) -> None:
        """The target is that of a moment; its velocity and acceleration are those of its motion.

        Raises:
            ArgumentError: The target is no rigid transform, or a weight or a gain is negative or not finite, where
                values are known.
            DtypeError: An argument is not numeric.
            ShapeError: An argument has another shape.
        """
        self.link, self.target = check_link(link, "link"), rigid(check_array(target, "target"), "target")
        self.weight, self.priority = _weight(weight, (6,)), check_integer(priority, "priority")
        self.stiffness, self.damping = _gains(stiffness, damping)
        self.velocity, self.acceleration = _numbers(velocity, "velocity", 6), _numbers(acceleration, "acceleration", 6)

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """Six rows of accelerations."""
        here, J = state.pose(self.link), state.jacobian(self.link)
        turned = so3.log(jnp.asarray(self.target[:3, :3]) @ here[:3, :3].T)
        error = jnp.concatenate([turned, self.target[:3, 3] - here[:3, 3]])
        pull = _pulled(self.stiffness, self.damping, error, self.velocity - J @ state.v)
        wanted = jnp.asarray(self.acceleration + pull) - state.drift(self.link)
        return Rows("acceleration", J, wanted, jnp.broadcast_to(self.weight, (6,)))

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """The link must be one of the robot's."""
        model.link_index(self.link)


class Com(Task):
    r"""The centre of mass: $\ddot c^* = \ddot c_d + k_d (\dot c_d - \dot c) + k_p (c_d - c)$.

    Attributes:
        target: $c_d$ in world coordinates (3,) [m].
        weight: Of the squared error of the acceleration, a number or one for each of its three entries.
        stiffness: $k_p$ [1/s^2].
        damping: $k_d$ [1/s]; None is critical.
        velocity: $\dot c_d$ (3,) [m/s].
        acceleration: $\ddot c_d$ (3,) [m/s^2].
        priority: Tasks of a lower number come first; static.
    """

    target: Float[Numbers, "3"]
    weight: Float[Numbers, "..."]
    stiffness: Float[Numbers, ""]
    damping: Float[Numbers, ""] | None
    velocity: Float[Numbers, "3"]
    acceleration: Float[Numbers, "3"]
    priority: int = eqx.field(static=True)

    def __init__(
        self,
        target: Any,
        weight: Any = 1.0,
        *,
        stiffness: Any = 100.0,
        damping: Any = None,
        velocity: Any = (0.0,) * 3,
        acceleration: Any = (0.0,) * 3,
        priority: int = 0,
    ) -> None:
        """The target is that of a moment; its velocity and acceleration are those of its motion.

        Raises:
            ArgumentError: A weight or a gain is negative, or a number is not finite, where values are known.
            DtypeError: An argument is not numeric.
            ShapeError: An argument has another shape.
        """
        self.target = vector(target, "target")
        self.weight, self.priority = _weight(weight, (3,)), check_integer(priority, "priority")
        self.stiffness, self.damping = _gains(stiffness, damping)
        self.velocity, self.acceleration = vector(velocity, "velocity"), vector(acceleration, "acceleration")

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """Three rows of accelerations."""
        J = state.momentum_matrix[3:] / state.mass
        pull = _pulled(self.stiffness, self.damping, self.target - state.com, self.velocity - J @ state.v)
        wanted = jnp.asarray(self.acceleration + pull) - state.momentum_drift[3:] / state.mass
        return Rows("acceleration", J, wanted, jnp.broadcast_to(self.weight, (3,)))

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """Every robot has a centre of mass."""


class Posture(Task):
    r"""A configuration: $a^* = k_p (q_d \ominus q) - k_d v$.

    Attributes:
        target: $q_d$ (nq,) [rad, m].
        weight: Of the squared error of the acceleration: a number for all joints that have a motor, or one for each
            velocity (nv,).
        stiffness: $k_p$ [1/s^2].
        damping: $k_d$ [1/s]; None is critical.
        priority: Tasks of a lower number come first; static.
    """

    target: Float[Numbers, "nq"]
    weight: Float[Numbers, "..."]
    stiffness: Float[Numbers, ""]
    damping: Float[Numbers, ""] | None
    priority: int = eqx.field(static=True)

    def __init__(
        self, target: Any, weight: Any = 1.0, *, stiffness: Any = 100.0, damping: Any = None, priority: int = 0
    ) -> None:
        """The shapes are checked where the robot is known.

        Raises:
            ArgumentError: A weight or a gain is negative, or a number is not finite, where values are known.
            DtypeError: An argument is not numeric.
        """
        self.target = _vector(target, "target")
        self.weight, self.priority = _weight(weight, None), check_integer(priority, "priority")
        self.stiffness, self.damping = _gains(stiffness, damping)

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """A row for each velocity."""
        error = difference(state.model, state.q, jnp.asarray(self.target))
        weight = jnp.asarray(self.weight)
        if weight.ndim == 0:
            weight = jnp.zeros(state.model.nv, state.q.dtype).at[driven].set(weight)
        return Rows("acceleration", None, _pulled(self.stiffness, self.damping, error, -state.v), weight)

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """The shapes must be those of the robot."""
        check_array(self.target, f"{name}.target", (model.nq,), "model.nq")
        if np.ndim(self.weight):
            check_array(self.weight, f"{name}.weight", (model.nv,), "model.nv")


class Momentum(Task):
    r"""The momentum [l; p] about the centre of mass in world axes: $\dot h^* = \dot h_d + k (h_d - h)$.

    Attributes:
        target: $h_d$ (6,) [kg m^2/s, kg m/s].
        weight: Of the squared error of its rate, a number or one for each of its six entries.
        gain: k [1/s].
        rate: $\dot h_d$ (6,) [N m, N].
        priority: Tasks of a lower number come first; static.
    """

    target: Float[Numbers, "6"]
    weight: Float[Numbers, "..."]
    gain: Float[Numbers, ""]
    rate: Float[Numbers, "6"]
    priority: int = eqx.field(static=True)

    def __init__(
        self,
        target: Any = (0.0,) * 6,
        weight: Any = 1.0,
        *,
        gain: Any = 10.0,
        rate: Any = (0.0,) * 6,
        priority: int = 0,
    ) -> None:
        """The target is that of a moment.

        Raises:
            ArgumentError: A weight or the gain is negative, or a number is not finite, where values are known.
            DtypeError: An argument is not numeric.
            ShapeError: An argument has another shape.
        """
        self.target, self.rate = _numbers(target, "target", 6), _numbers(rate, "rate", 6)
        self.weight, self.gain = _weight(weight, (6,)), not_negative(gain, "gain")
        self.priority = check_integer(priority, "priority")

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """Six rows of accelerations."""
        A = state.momentum_matrix
        pull = self.gain * (self.target - A @ state.v)
        wanted = jnp.asarray(self.rate + pull) - state.momentum_drift
        return Rows("acceleration", A, wanted, jnp.broadcast_to(self.weight, (6,)))

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """Every robot has a momentum."""


class Force(Task):
    """The force of a contact.

    Attributes:
        contact: The index of the contact; static.
        target: [n; f] of a patch (6,), f of a point (3,), in the contact's axes [N m, N].
        weight: Of the squared error, a number or one for each entry.
        priority: Tasks of a lower number come first; static.
    """

    contact: int = eqx.field(static=True)
    target: Float[Numbers, "n"]
    weight: Float[Numbers, "..."]
    priority: int = eqx.field(static=True)

    def __init__(self, contact: int, target: Any, weight: Any = 1.0, *, priority: int = 0) -> None:
        """The shapes are checked where the contacts are known.

        Raises:
            ArgumentError: The index is negative, a weight is negative, or a number is not finite, where it is known.
            DtypeError: An argument is not numeric.
        """
        self.contact, self.priority = check_integer(contact, "contact", 0), check_integer(priority, "priority")
        self.target = _vector(target, "target")
        self.weight = _weight(weight, None)

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """A row for each component."""
        target = jnp.asarray(self.target)
        return Rows(self.contact, None, target, jnp.broadcast_to(self.weight, target.shape))

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """The contact must be there, and the shapes those of its force."""
        if self.contact >= len(contacts):
            raise ArgumentError(
                f"{name}.contact must be the index of one of {len(contacts)} contacts, got {self.contact}"
            )
        size = contacts[self.contact].size
        check_array(self.target, f"{name}.target", (size,), "the force of the contact")
        if np.ndim(self.weight):
            check_array(self.weight, f"{name}.weight", (size,), "the force of the contact")


class Effort(Task):
    """Torques and forces of the joints: small ones, or given ones.

    Attributes:
        target: A number for all joints that have a motor, or one for each velocity (nv,) [N m, N].
        weight: Of the squared error, in the same way.
        priority: Tasks of a lower number come first; static.
    """

    target: Float[Numbers, "..."]
    weight: Float[Numbers, "..."]
    priority: int = eqx.field(static=True)

    def __init__(self, target: Any = 0.0, weight: Any = 1.0, *, priority: int = 0) -> None:
        """The shapes are checked where the robot is known.

        Raises:
            ArgumentError: A weight is negative, or a number is not finite, where values are known.
            DtypeError: An argument is not numeric.
        """
        self.target = _any(target, "target")
        self.weight, self.priority = _weight(weight, None), check_integer(priority, "priority")

    def rows(self, state: State, driven: np.ndarray) -> Rows:
        """A row for each joint that has a motor."""
        target, weight = (jnp.broadcast_to(x, (state.model.nv,))[driven] for x in (self.target, self.weight))
        return Rows("effort", None, target, weight)

    def check(self, model: Model, contacts: Sequence[Any], name: str) -> None:
        """The shapes must be those of the robot."""
        for what in ("target", "weight"):
            if np.ndim(getattr(self, what)):
                check_array(getattr(self, what), f"{name}.{what}", (model.nv,), "model.nv")


def check_tasks(model: Model, tasks: Any, contacts: Sequence[Any], dtype: Any) -> tuple[Task, ...]:
    """The tasks, cast to one dtype.

    Raises:
        ArgumentError: There is none.
        DtypeError: They are no sequence of tasks.
        NameNotFoundError: One names a link that the robot does not have.
        ShapeError: An array of one has another shape.
    """
    if isinstance(tasks, Task) or not isinstance(tasks, Sequence) or isinstance(tasks, str | bytes):
        raise DtypeError(f"tasks must be a sequence of tasks such as Pose, got {type(tasks).__name__}")
    if not tasks:
        raise ArgumentError("tasks must not be empty")
    for i, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise DtypeError(f"tasks[{i}] must be a task such as Pose, got {type(task).__name__}")
        task.check(model, contacts, f"tasks[{i}]")
    return tuple(jax.tree.map(lambda x: jnp.asarray(x, dtype), task) for task in tasks)


def _pulled(stiffness: Any, damping: Any, error: Any, rate: Any) -> Any:
    damped = 2.0 * safe_sqrt(jnp.asarray(stiffness)) if damping is None else damping
    return stiffness * error + damped * rate


def _gains(stiffness: Any, damping: Any) -> tuple[Numbers, Numbers | None]:
    return not_negative(stiffness, "stiffness"), None if damping is None else not_negative(damping, "damping")


def _any(x: Any, name: str) -> Numbers:
    """A number, or numbers of a shape that is checked later."""
    return np.asarray(check_number(x, name)) if isinstance(x, int | float) else _vector(x, name)


def _numbers(x: Any, name: str, size: int) -> Numbers:
    array = check_array(x, name, (size,)) if isinstance(x, jax.Array) else check_real(x, name, (size,))
    check_finite(array, name)
    return array


def _vector(x: Any, name: str) -> Numbers:
    """Numbers of a shape that is checked later."""
    is_vector = isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.ndim == 1)
    array = check_real(x, name, (len(x),)) if is_vector else check_array(x, name)
    check_finite(array, name)
    return array


def _weight(x: Any, shape: tuple[int, ...] | None) -> Numbers:
    array = _any(x, "weight")
    if shape is not None and array.shape not in ((), shape):
        raise ShapeError(f"weight must be a number or have shape {shape}, got {array.shape}")
    check_not_negative(array, "weight")
    return array
