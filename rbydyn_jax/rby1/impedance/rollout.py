"""Simulation of a commanded robot at the period of its controller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..._check import check_array
from ..._errors import ArgumentError, DtypeError
from ..._jit import jit_public
from ..._result import Result
from ...algorithms.crba import crba
from ...algorithms.energy import damping_forces
from ...algorithms.inverse_dynamics import bias_forces, gravity_forces
from ...model.model import Model, check_model
from ...planning.profiles import TrapezoidalProfile, trapezoidal_profile
from ...xla.control_flow import scan
from ..commands.models import CONTROL_PERIOD
from .components import Component, Joints, components
from .law import component_torques, follow_dtype


class Rollout(Result):
    """A commanded motion; the torques of a row act until the time of the next.

    Attributes:
        times: Times [s].
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s].
        tau: Torques or forces of the springs [N m, N], zero for joints that are held.
        q_desired: Reference positions [rad, m].
        v_desired: Reference velocities [rad/s, m/s].
    """

    times: Float[Array, "t+1"]
    q: Float[Array, "t+1 nq"]
    v: Float[Array, "t+1 nv"]
    tau: Float[Array, "t nv"]
    q_desired: Float[Array, "t nq"]
    v_desired: Float[Array, "t nv"]


def rollout(
    model: Model,
    command: Any,
    q0: Float[Array, "nq"],
    v0: Float[Array, "nv"],
    duration: float,
    *,
    joints: Joints = None,
    period: float = CONTROL_PERIOD,
) -> Rollout:
    r"""Simulates the robot under a joint impedance command.

    In each period the controller samples the state and the reference, a `planning.trapezoidal_profile` from the initial
    state to the commanded position for each component, and applies the torques of `impedance_torque` until the next
    period. The robot answers with $a = M^{-1} (\tau - d\, v - C v - g)$ for the joints that are commanded, and moves
    with that acceleration for one period, which is exact for a constant inertia without friction, and of first order
    otherwise. All other joints, wheels and a floating base included, are held in place. Joint stops and Coulomb
    friction are not simulated.

    Unset fields default to the robot's limits of velocity, acceleration and effort, a damping ratio of 1, and no
    minimum time. The result is differentiable with respect to the fields of the command, the state and the parameters
    of the robot, in both modes, and under `vmap`.

    A sampled-data controller makes a joint unstable if $D / M$ is greater than 2 / period, or $\zeta$ less than
    $\sqrt{K / M}$ period / 4. On the robot the rotor inertia of light joints prevents this; set `model.armature`
    accordingly.

    Args:
        model: The robot.
        command: A joint impedance command (`position`, `stiffness`, and where set `damping_ratio`, `torque_limit`,
            `velocity_limit`, `acceleration_limit`, `minimum_time`), or a tree of commands that has such for the body,
            the arms or the torso, as it is sent to the robot.
        q0: Initial configuration [rad, m].
        v0: Initial velocity [rad/s, m/s]; ignored for joints that are held.
        duration: Time to simulate [s], rounded up to whole periods.
        joints: The joints of a command without a tree, as names, or as ``"right_arm"``, ``"left_arm"``,
            ``"torso"`` or ``"body"``; default is all.
        period: Period of the controller [s].

    Returns:
        The motion, with one more state than torques.

    Raises:
        ArgumentError: The command is not one of joint impedance, commands a joint twice or leaves a field unset that
            has no default; a limit of velocity or acceleration is zero, the latter is infinite; the state of a joint
            is not finite, where it is known; or a time is not positive.
        DtypeError: The command, or an argument, does not hold floats; or `duration` or `period` is traced.
        ModelError: The command does not fit the robot.
        NameNotFoundError: There is no such joint.
        ShapeError: An argument, or a field of the command, has another shape.

    Example:
        The arm of two links as springs with critical damping, moved by one radian in the shoulder:

        >>> from rbydyn_jax.rby1.commands import JointImpedanceControlCommand
        >>> from rbydyn_jax.rby1.impedance import rollout
        >>> command = JointImpedanceControlCommand(position=[1.0, 0.0], stiffness=[80.0, 40.0])
        >>> motion = rollout(robots.two_link_arm(), command, jnp.zeros(2), jnp.zeros(2), 3.0)
        >>> motion.q[-1].round(4).tolist()
        [1.0, 0.0]
    """
    model = check_model(model)
    duration, period = _time(duration, "duration"), _time(period, "period")
    parts = components(model, command, joints)
    steps = max(1, math.ceil(duration / period - 1e-9))
    model, parts, q0, v0 = follow_dtype(model, parts, q0, v0)
    _check_state(model, q0, "q0", model.tree.q_slices)
    _check_state(model, v0, "v0", model.tree.v_slices)
    references = tuple(_reference(part, q0, v0) for part in parts)
    times = jnp.asarray(period * np.arange(steps + 1), q0.dtype)
    return _simulate(model, parts, references, q0, v0, times, jnp.asarray(period, q0.dtype))


def _check_state(model: Model, x: Array, name: str, slices: Sequence[slice]) -> None:
    """Raises unless the numbers of all joints are finite, where they are known."""
    if isinstance(x, Tracer):
        return
    numbers = np.asarray(x)
    for joint, place in zip(model.joint_names, slices, strict=True):
        if not np.isfinite(numbers[place]).all():
            raise ArgumentError(f"{name} of joint {joint!r} must be finite, got {numbers[place].tolist()}")


def _time(x: Any, name: str) -> float:
    if isinstance(x, Tracer):
        raise DtypeError(f"{name} must be known while tracing: it sets the number of steps")
    check_array(x, name, ())
    if not 0.0 < float(x) < math.inf:
        raise ArgumentError(f"{name} must be positive and finite, got {x}")
    return float(x)


def _reference(part: Component, q0: Array, v0: Array) -> TrapezoidalProfile:
    return trapezoidal_profile(
        q0[np.array(part.q_indices, int)],
        part.position,
        part.velocity_limit,
        part.acceleration_limit,
        start_velocity=v0[np.array(part.v_indices, int)],
        minimum_time=part.minimum_time,
    )


@jit_public()
def _simulate(
    model: Model,
    parts: tuple[Component, ...],
    references: tuple[TrapezoidalProfile, ...],
    q0: Array,
    v0: Array,
    times: Array,
    period: Array,
) -> Rollout:
    qi = np.array([k for part in parts for k in part.q_indices], int)
    vi = np.array([k for part in parts for k in part.v_indices], int)
    at = [reference.evaluate(times[:-1]) for reference in references]
    steps = times.shape[0] - 1
    q_desired = jnp.tile(q0[None], (steps, 1)).at[:, qi].set(jnp.concatenate([x.position for x in at], axis=1))
    v_desired = jnp.zeros((steps, model.nv), q0.dtype)
    v_desired = v_desired.at[:, vi].set(jnp.concatenate([x.velocity for x in at], axis=1))

    def step(state: tuple[Array, Array], desired: tuple[Array, Array]) -> tuple:
        q, v = state
        M = crba(model, q)
        tau = component_torques(parts, M, gravity_forces(model, q), q, v, *desired)
        net = tau + damping_forces(model, v) - bias_forces(model, q, v)
        a = jsl.cho_solve(jsl.cho_factor(M[np.ix_(vi, vi)], lower=True), net[vi])
        after = (q.at[qi].add(period * (v[vi] + 0.5 * period * a)), v.at[vi].add(period * a))
        return after, (*after, tau)

    start = (q0, jnp.zeros_like(v0).at[vi].set(v0[vi]))
    _, (q, v, tau) = scan(step, start, (q_desired, v_desired))
    q, v = (jnp.concatenate([first[None], later]) for first, later in zip(start, (q, v), strict=True))
    return Rollout(times, q, v, tau, q_desired, v_desired)
