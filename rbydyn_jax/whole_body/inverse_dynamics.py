"""Inverse dynamics of a whole robot that touches its surroundings: tasks within limits, as a quadratic program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._check import check_array, check_positive
from .._jit import jit_public
from .._result import Result, outcomes
from ..algorithms.arguments import arguments
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import bias_forces
from ..constraints._bodies import body_of
from ..constraints.dynamics import DEFAULT_STABILIZATION, Stabilization, driven_velocities, each_stabilization
from ..constraints.loops import LoopJoint, assemble, check_loops
from ..model.model import Model
from ._program import Equations, Problem, optimum
from ._state import State
from .contacts import ContactModel, check_contacts
from .tasks import Task, check_tasks


class WholeBodyStatus(IntEnum):
    """How `inverse_dynamics` ended."""

    OPTIMAL = 0
    """The optimum, within all limits."""
    INFEASIBLE = 1
    """No accelerations and forces keep the contacts, the loops and the limits."""
    NOT_CONVERGED = 2
    """Neither the optimum nor a proof that there is none was found; rounding is in the way, or contacts that happen to
    depend on one another."""
    SINGULAR = 3
    """Contacts depend on one another in this configuration alone: within all limits, but maybe not the optimum."""
    NOT_FINITE = 4
    """An argument is not finite, or a traced weight is negative, or a traced damping or horizon not positive."""


class WholeBodyResult(Result):
    r"""Result of `inverse_dynamics`; the numbers mean nothing unless the status is OPTIMAL or SINGULAR.

    Attributes:
        a: Accelerations [rad/s^2, m/s^2].
        tau: Torques and forces of the joints, zero where there is no motor [N m, N].
        forces: Of each contact on its link: [n; f] of a patch, f of a point, in the contact's axes [N m, N].
        multipliers: $\lambda$ of the loop joints, as in `constraints.inverse_dynamics` [N m, N].
        errors: The achieved minus the desired value of each task, row by row: accelerations, momentum rates, forces.
        residual: $M a + c - \tau - \sum J^T f + K^T\lambda$ where there is no motor: rounding [N m, N].
        slip: Acceleration of the contacts and loops beyond the one that they are to have: rounding [rad/s^2, m/s^2].
        status: How it ended.
        iterations: Steps of the interior-point method, of all levels.
    """

    _enums: ClassVar[Mapping[str, type[IntEnum]]] = {"status": WholeBodyStatus}

    a: Float[Array, "nv"]
    tau: Float[Array, "nv"]
    forces: tuple[Float[Array, "_"], ...]
    multipliers: Float[Array, "l"]
    errors: tuple[Float[Array, "_"], ...]
    residual: Float[Array, "nv"]
    slip: Float[Array, "e"]
    status: Int[Array, ""]
    iterations: Int[Array, ""]

    @property
    def solved(self) -> Bool[Array, ""]:
        """Whether it is the optimum."""
        return self.status == WholeBodyStatus.OPTIMAL

    def _headline(self) -> str:
        return outcomes(self.status, WholeBodyStatus)


@jit_public("actuated", damping=check_positive, horizon=check_positive)
def inverse_dynamics(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tasks: Sequence[Task],
    contacts: Sequence[ContactModel] = (),
    *,
    loops: Sequence[LoopJoint] = (),
    actuated: tuple[str | int, ...] | None = None,
    f_ext: Float[Array, "nb 6"] | None = None,
    horizon: Float[Array, ""] | float | None = None,
    damping: Float[Array, ""] | float = 1e-4,
    stabilization: Stabilization = DEFAULT_STABILIZATION,
) -> WholeBodyResult:
    r"""Accelerations, torques and contact forces that do the tasks best within the limits.

    $$\min_{a, \tau, f, \lambda} \tfrac12 \sum_i w_i |J_i x - b_i|^2
      + \tfrac\mu2 \left(|a_m|^2 + |f/m|^2 + |\lambda/m|^2\right)$$

    with $M a + c = \tau + \sum_k J_k^T f_k - K^T\lambda$, $J_k a = -\dot J_k v$ for each contact and $K a = -k$ for the
    loops; $|\tau| \le$ `model.effort_limit`, zero where there is no motor; forces in the contacts' cones; and, with a
    horizon T, $|a| \le$ `model.acceleration_limit`, $|v + a T| \le$ `model.velocity_limit` and $q + v T + a T^2 / 2$
    within the limits of position, for joints of one coordinate. $a_m$ are the accelerations of the joints with motors,
    m is the mass of the robot: the second sum chooses among what the tasks leave open.

    Torques, accelerations of joints without a motor, and all equations are eliminated: the first by the dynamics, the
    equations by reflections, in which those that depend on others do no harm. What is left, 32 variables for a humanoid
    of 38 velocities on two feet, is a quadratic program with inequalities alone, solved by an interior-point method
    [Nocedal and Wright 2006, algorithm 16.4]. O(n^3). Tasks of a lower priority number are solved first, and held while
    the next ones are [Escande, Mansard and Wieber 2014]. Derivatives are those of the implicit function theorem, with
    the set of active limits as it is. Pure: works under `jit`, `vmap` and `grad`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tasks: What is wanted: `Pose`, `Com`, `Posture`, `Momentum`, `Force`, `Effort`.
        contacts: What is kept: `PatchContact`, `PointContact`.
        loops: The joints that close loops.
        actuated: The joints that have a motor, by name or index; default is all of one coordinate. Static.
        f_ext: Wrench [n; f] that acts on each body from outside, about its origin in its axes [N m, N].
        horizon: T, the time after which limits of velocity and position hold [s]; None sets none for accelerations.
        damping: $\mu$ > 0, in units of the weights of accelerations.
        stabilization: Gains of all loop joints, or one for each of them; None does nothing against drift.

    Raises:
        ArgumentError: There is no task, nothing has a motor or touches, what touches or closes a loop does not move
            relative to the other side, or a number is not positive or not finite where it is known.
        DtypeError: An argument is of another type.
        ModelError: A joint without velocities or a mimic joint is to have a motor.
        NameNotFoundError: There is no such link or joint.
        ShapeError: An argument has another shape.

    Example:
        A block of 2 kg on the ground cannot do anything else than stand:

        >>> from rbydyn_jax.whole_body import Com, PatchContact, inverse_dynamics
        >>> block = build_model(RobotBuilder().link("w").link("block", 2.0, inertia=0.1).floating("f", "w", "block"))
        >>> up = Com((0.0, 0.0, 1.0))
        >>> result = inverse_dynamics(block, neutral(block), jnp.zeros(6), [up], [PatchContact("block")])
        >>> result.status.item(), round(float(result.forces[0][5]), 2), round(float(jnp.abs(result.a).max()), 6)
        (0, 19.62, 0.0)
    """
    model, q, v, f_ext = arguments(model, q=q, v=v, f_ext=f_ext)
    dtype = q.dtype
    touching = check_contacts(model, contacts, dtype)
    wanted = check_tasks(model, tasks, touching, dtype)
    closing = check_loops(model, loops, dtype)
    gains = each_stabilization(stabilization, len(closing))
    mu = check_array(damping, "damping", ()).astype(dtype)
    T = None if horizon is None else check_array(horizon, "horizon", ()).astype(dtype)
    driven = _driven(model, actuated)

    state = State(model, q, v)
    joints = [contact.joint().cast(dtype) for contact in touching]
    held = assemble(model, state.bodies, v, [*joints, *closing], [*(contact.gain for contact in touching), *gains])
    K, k = _turned(state, touching, held.jacobian, held.bias)
    equations = Equations(crba(model, q), bias_forces(model, q, v, f_ext), K, k, _sure(model, touching, len(k)))
    problem = Problem(state, wanted, touching, equations, driven, T, mu)
    found = optimum(problem)

    a, forces, tau = found.a, found.forces, found.tau
    finite = jnp.isfinite(jnp.concatenate([q, v, equations.M.ravel(), equations.c, k])).all() & found.finite
    for number in (mu,) if T is None else (mu, T):
        finite &= (number > 0.0) & (number < jnp.inf)
    status = jnp.where(found.optimal, WholeBodyStatus.OPTIMAL, WholeBodyStatus.NOT_CONVERGED)
    status = jnp.where(found.optimal & ~found.regular, WholeBodyStatus.SINGULAR, status)
    # Of equations that happen to depend on one another some of the solutions are left out.
    status = jnp.where(found.infeasible & found.regular, WholeBodyStatus.INFEASIBLE, status)
    status = jnp.where(finite, status, WholeBodyStatus.NOT_FINITE)
    ends = np.cumsum([0, *(contact.size for contact in touching)])
    return WholeBodyResult(
        a=a,
        tau=tau,
        forces=tuple(forces[i:j] for i, j in pairwise(ends.tolist())),
        multipliers=-forces[ends[-1] :],
        errors=found.errors,
        residual=equations.M @ a + equations.c - tau - K.T @ forces,
        slip=K @ a + k,
        status=status.astype(jnp.int32),
        iterations=found.iterations,
    )


def _driven(model: Model, actuated: Any) -> np.ndarray:
    """The velocities that have a motor; those of all joints with one freedom are the default."""
    tree = model.tree
    if actuated is None:
        actuated = [i for i, joint in enumerate(tree.joints) if joint.nv == 1 and tree.mimics[i] is None]
    return driven_velocities(model, actuated)


def _turned(state: State, contacts: Sequence[ContactModel], K: Array, k: Array) -> tuple[Array, Array]:
    """The equations with those of contacts in the contacts' axes."""
    rows, biases, at = [], [], 0
    for contact in contacts:
        axes, here = contact.axes(state.model, state.bodies), slice(at, at + contact.size)
        rows.append(axes @ K[here])
        biases.append(axes @ k[here])
        at += contact.size
    return jnp.concatenate([*rows, K[at:]]), jnp.concatenate([*biases, k[at:]])


def _sure(model: Model, contacts: Sequence[ContactModel], size: int) -> np.ndarray:
    """The equations that are independent but in singular configurations.

    They are those of contacts with the world, each by joints that move none of the contacts before it, at least as many
    as its equations. A toe beside a sole depends on the sole, but for one joint.
    """
    sure, at = np.zeros(size, bool), 0
    used: set[int] = set()
    for contact in contacts:
        paths = [_velocities(model, link) for link in (contact.link, contact.ref) if link is not None]
        if contact.ref is None and len(paths[0] - used) >= contact.size:
            sure[at : at + contact.size] = True
        used.update(*paths)
        at += contact.size
    return sure


def _velocities(model: Model, link: str | int) -> set[int]:
    """Those that move a link."""
    tree, body = model.tree, body_of(model, link)
    on_path = tree.path(body) if body >= 0 else ()
    return {k for i in on_path for k in range(tree.v_slices[i].start, tree.v_slices[i].stop)}
