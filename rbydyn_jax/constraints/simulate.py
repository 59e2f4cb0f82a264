"""Motion in time: robots with loops and contacts, stepped under `lax.scan`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_choice, check_number, full_precision, jit_public
from .._errors import ArgumentError, DtypeError
from .._result import Result
from ..algorithms.aba import aba
from ..algorithms.arguments import arguments
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import bias_forces
from ..model.configuration import normalize, qdot_from_v
from ..model.model import Model, check_model
from ._bodies import body_motions
from .contact import Contact, check_contacts, contact_forces
from .dynamics import DEFAULT_STABILIZATION, Stabilization, constrained_solve, each_stabilization
from .integrators import RUNGE_KUTTA_4, State, munthe_kaas, semi_implicit_euler
from .loops import LoopJoint, assemble, check_loops

# Joint forces at a time: (t, q, v) -> tau.
Control = Callable[[Array, Array, Array], Array]
Method = Literal["semi_implicit_euler", "runge_kutta_4"]
_STEPS = {"semi_implicit_euler": semi_implicit_euler, "runge_kutta_4": functools.partial(munthe_kaas, RUNGE_KUTTA_4)}
_MOST_STEPS = 10**9


class Simulation(Result):
    """A motion: the initial state and the one after each step.

    Attributes:
        ts: Times [s].
        qs: Configurations [rad, m].
        vs: Velocities [rad/s, m/s].
        bristles: Displacements of the bristles of each contact [m].
    """

    ts: Float[Array, "t"]
    qs: Float[Array, "t nq"]
    vs: Float[Array, "t nv"]
    bristles: Float[Array, "t c 3"]


def accelerations(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    f_ext: Array | None,
    loops: Sequence[LoopJoint],
    stabilization: Stabilization,
) -> Float[Array, "nv"]:
    """The accelerations of `forward_dynamics`, and nothing else; of a tree without loops in O(n)."""
    joints = check_loops(model, loops, q.dtype)
    if not joints:
        return aba(model, q, v, tau, f_ext)
    equations = assemble(model, body_motions(model, q, v), v, joints, each_stabilization(stabilization, len(joints)))
    force = tau - bias_forces(model, q, v, f_ext)
    return constrained_solve(crba(model, q), equations.jacobian, force, equations.bias)[0]


@jit_public()
def state_derivative(
    model: Model,
    x: Float[Array, "n"],
    tau: Float[Array, "nv"],
    loops: Sequence[LoopJoint] = (),
    f_ext: Float[Array, "nb 6"] | None = None,
    *,
    stabilization: Stabilization = DEFAULT_STABILIZATION,
) -> Float[Array, "n"]:
    """The rate [qdot; a] of a state x = [q; v], for any ODE solver.

    Quaternions and [sine, cosine] keep their length along the exact flow, and no function of this library requires unit
    length; `normalize` renormalizes them after a solve.

    Args:
        model: The robot.
        x: Configuration and velocity, one after the other (nq + nv,).
        tau: Joint torques or forces [N m, N].
        loops: The joints that close loops.
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.
        stabilization: Gains of the loop joints; see `forward_dynamics`.

    Raises:
        DtypeError: `loops` or `stabilization` holds something else.
        NameNotFoundError: A loop joint names a link that there is not.
        ShapeError: An argument has another shape.

    Example:
        >>> state_derivative(robots.pendulum(), jnp.array([0.0, 2.0]), jnp.zeros(1)).tolist()
        [2.0, 0.0]
    """
    model = check_model(model)
    x = check_array(x, "x", (model.nq + model.nv,), "model.nq + model.nv")
    model, q, v, tau, f_ext = arguments(model, q=x[: model.nq], v=x[model.nq :], tau=tau, f_ext=f_ext)
    a = accelerations(model, q, v, tau, f_ext, loops, stabilization)
    return jnp.concatenate([qdot_from_v(model, q, v), a])


@full_precision
def simulate(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    duration: float,
    dt: float,
    *,
    control: Control | None = None,
    loops: Sequence[LoopJoint] = (),
    contacts: Sequence[Contact] = (),
    stabilization: Stabilization = DEFAULT_STABILIZATION,
    method: Method = "runge_kutta_4",
) -> Simulation:
    """Simulates a robot from an initial state, in round(duration / dt) equal steps.

    A plain function around `lax.scan`: jit it with the varying values as arguments, `jax.jit(lambda q: simulate(...))`.
    It supports `jax.vmap` and gradients. Joints are not damped by default: add `damping_forces`, `friction_forces` and
    `joint_limit_forces` in `control`.

    Args:
        model: The robot.
        q: Initial configuration [rad, m].
        v: Initial velocity [rad/s, m/s].
        duration: Time to simulate [s].
        dt: Time step [s].
        control: Joint torques or forces as a function (t, q, v) -> tau (nv,); None is none.
        loops: The joints that close loops.
        contacts: The contacts; their bristles start undeflected, and are reset after each step without contact.
        stabilization: Gains of the loop joints; see `forward_dynamics`.
        method: ``"runge_kutta_4"`` on the configuration manifold (Munthe-Kaas), or ``"semi_implicit_euler"``.

    Raises:
        DtypeError: `loops`, `contacts` or `stabilization` holds something else, or `duration` or `dt` is traced.
        NameNotFoundError: A loop joint or a contact names a link that there is not.
        ArgumentError: `method` is unknown, `dt` is not positive, `duration` is shorter than `dt`, or not finite.
        ShapeError: An argument, or what `control` returns, has another shape.

    Example:
        A pendulum of 1 m let go at a small angle is back after its period of 2 pi sqrt(l / g):

        >>> motion = simulate(robots.pendulum(), jnp.array([0.01]), jnp.zeros(1), 2.006, 0.002)
        >>> motion.ts.shape, round(float(motion.qs[-1, 0]), 5)
        ((1004,), 0.01)
    """
    model, q, v = arguments(model, q=q, v=v)
    check_choice(method, "method", _STEPS)
    duration, dt = check_number(duration, "duration"), check_number(dt, "dt")
    count = round(min(duration / dt, _MOST_STEPS)) if dt > 0.0 else 0
    if count == _MOST_STEPS:
        raise ArgumentError(f"duration / dt must be less than {_MOST_STEPS:.0e} steps, got {duration} and {dt}")
    if count < 1:
        raise ArgumentError(f"duration must be at least dt, and dt positive, got {duration} and {dt}")
    loops, contacts = check_loops(model, loops, q.dtype), check_contacts(model, contacts, q.dtype)
    if control is not None and not callable(control):
        raise DtypeError(f"control must be a function (t, q, v) -> tau, got {type(control).__name__}")
    step = _STEPS[method]

    def field(t: Array, state: State) -> tuple[Array, Array]:
        q, v, x = state
        tau = jnp.zeros_like(v) if control is None else check_array(control(t, q, v), "control(t, q, v)", v.shape)
        if not contacts:
            return accelerations(model, q, v, tau.astype(q.dtype), None, loops, stabilization), x
        touched = contact_forces(model, q, v, contacts, x)
        a = accelerations(model, q, v, tau.astype(q.dtype), touched.f_ext, loops, stabilization)
        return a, touched.bristle_rates

    def advance(state: State, t: Array) -> tuple[State, State]:
        q, v, x = step(model, field, t, state, jnp.asarray(dt, t.dtype))
        q = normalize(model, q)
        if contacts:  # reset the bristles of contacts that have opened
            x = jnp.where(contact_forces(model, q, v, contacts, x).depths[:, None] > 0.0, x, 0.0)
        return (q, v, x), (q, v, x)

    ts = jnp.asarray(dt * np.arange(count + 1), q.dtype)
    start = (q, v, jnp.zeros((len(contacts), 3), q.dtype))
    _, after = jax.lax.scan(advance, start, ts[:-1])
    qs, vs, xs = (jnp.concatenate([first[None], rest]) for first, rest in zip(start, after, strict=True))
    return Simulation(ts, qs, vs, xs)
