"""Motion in time: robots with loops and contacts, stepped under `lax.scan`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_choice, check_number, known
from .._errors import ArgumentError, DtypeError
from .._jit import full_precision, jit_public
from .._result import Result
from ..algorithms.aba import aba, damped_accelerations
from ..algorithms.arguments import arguments
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import bias_forces
from ..collision.obstacles import World
from ..model.configuration import drift, glide, normalize, qdot_from_v
from ..model.model import Model, check_model
from ..sweeps.plan import scan_in_one_kernel
from ._bodies import body_motions
from .contact import Contact, check_contacts, contact_forces
from .dynamics import DEFAULT_STABILIZATION, Stabilization, constrained_solve, each_stabilization
from .hard import HardContacts, check_contact_world, hard_impulses
from .integrators import RUNGE_KUTTA_4, State, munthe_kaas, semi_implicit_euler
from .loops import LoopJoint, assemble, check_loops
from .servo import Drive, Stops, check_servo, implicit_terms

# Joint forces at a time: (t, q, v) -> tau.
Control = Callable[[Array, Array, Array], Array]
Method = Literal["semi_implicit_euler", "runge_kutta_4", "implicit"]
_EXPLICIT = {"semi_implicit_euler": semi_implicit_euler, "runge_kutta_4": functools.partial(munthe_kaas, RUNGE_KUTTA_4)}
_MOST_STEPS = 10**9
_ROUNDING = 1e-6  # of a duration of one step, relative to it


class Simulation(Result):
    """A motion: the initial state and the one after each step.

    Attributes:
        ts: Times [s].
        qs: Configurations [rad, m].
        vs: Velocities [rad/s, m/s].
        bristles: Displacements of the bristles of each contact [m].
        forces: Forces of the obstacles of `world` on the robot at the points of `collision.contact_points`, in world
            axes, over the step that ends at each time; zero at the first [N].
    """

    ts: Float[Array, "t"]
    qs: Float[Array, "t nq"]
    vs: Float[Array, "t nv"]
    bristles: Float[Array, "t c 3"]
    forces: Float[Array, "t k 3"]


def accelerations(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    f_ext: Array | None,
    loops: Sequence[LoopJoint],
    stabilization: Stabilization,
    extra: Array | None = None,
) -> Float[Array, "nv"]:
    """The accelerations of `forward_dynamics`, and nothing else; of a tree without loops in O(n).

    With `extra` inertia in the joints, for implicit steps.
    """
    joints = check_loops(model, loops, q.dtype)
    if not joints:
        return aba(model, q, v, tau, f_ext) if extra is None else damped_accelerations(model, extra, q, v, tau, f_ext)
    equations = assemble(model, body_motions(model, q, v), v, joints, each_stabilization(stabilization, len(joints)))
    force = tau - bias_forces(model, q, v, f_ext)
    M = crba(model, q) if extra is None else crba(model, q) + jnp.diag(extra)
    return constrained_solve(M, equations.jacobian, force, equations.bias)[0]


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
    servo: Drive | None = None,
    stops: Stops | None = None,
    world: World | None = None,
    friction: Float[Array, "o"] | float = 0.8,
    contact_links: Sequence[str | int] | None = None,
) -> Simulation:
    r"""Simulates a robot from an initial state, in round(duration / dt) equal steps.

    Pure, as functions that it is given have to be: works under `jit`, `vmap` and gradients. With a `control` or a
    `servo` that is a function it compiles at each call outside of `jit`: jit it with the varying values as arguments,
    `jax.jit(lambda q: simulate(...))`. On a CUDA GPU a step is a kernel, if it has at most 80,000 operations, in which
    the sine of an angle beyond 8e3 rad, in float64 1e6 rad, is not a number.

    The explicit methods do not damp joints: add `damping_forces`, `friction_forces` and `joint_limit_forces` in
    `control`. The method ``"implicit"`` takes the viscous friction of the model, a `Servo` and `Stops` at the end of
    the step, so that it stays finite whatever their gains: a semi-implicit Euler step with the mass matrix
    $M + \Delta t D + \Delta t^2 K$ [Baraff and Witkin 1998, eq. 6], by the articulated-body algorithm in O(n). Its
    joints have the dry friction of the model, and with `world` its shapes touch obstacles: hard contact without bounce,
    by impulses in exact Coulomb cones [Stewart and Trinkle 1996]. What sticks does not creep, and a fifth of a
    penetration is undone in each step. Shapes of the robot do not touch each other.

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
        method: ``"runge_kutta_4"`` on the configuration manifold (Munthe-Kaas), ``"semi_implicit_euler"``, or
            ``"implicit"``.
        servo: Position servos of the joints, or a function t -> `Servo`; with the method ``"implicit"``.
        stops: Springs at the position limits; with the method ``"implicit"``.
        world: Obstacles for hard contact, which must not be a cloud alone; with the method ``"implicit"``.
        friction: Coefficient of friction of the obstacles, or of each.
        contact_links: The links that can touch, by name or index; None is all that have collision shapes. One that
            is named twice counts once. The cost grows with the square of the number of points: name the few that
            matter.

    Raises:
        DtypeError: `loops`, `contacts` or `stabilization` holds something else, `servo`, `stops` or `world` is
            something else, or `duration` or `dt` is traced.
        ModelError: No shape of the robot, or no obstacle, can touch.
        NameNotFoundError: A loop joint, a contact or `contact_links` names a link that there is not.
        ArgumentError: `method` is unknown, or explicit where `servo`, `stops` or `world` is given, `dt` is not
            positive, `duration` is shorter than `dt`, or not finite, `friction` is negative, or a loop joint joins
            links that do not move relative to each other.
        ShapeError: An argument, or what `control` returns, has another shape.

    Example:
        A pendulum of 1 m let go at a small angle is back after its period of 2 pi sqrt(l / g):

        >>> motion = simulate(robots.pendulum(), jnp.array([0.01]), jnp.zeros(1), 2.006, 0.002)
        >>> motion.ts.shape, round(float(motion.qs[-1, 0]), 5)
        ((1004,), 0.01)
    """
    check_choice(method, "method", (*_EXPLICIT, "implicit"))
    rubs = known(check_model(model).friction)  # which are not known once they are traced
    dry = method == "implicit" and (rubs is None or bool(rubs.any()))
    model, q, v = arguments(model, q=q, v=v)
    duration, dt = check_number(duration, "duration"), check_number(dt, "dt")
    steps = duration / dt if dt > 0.0 else 0.0
    count = round(min(steps, _MOST_STEPS))
    if count == _MOST_STEPS:
        raise ArgumentError(f"duration / dt must be less than {_MOST_STEPS:.0e} steps, got {duration} and {dt}")
    if steps < 1.0 - _ROUNDING:
        raise ArgumentError(f"duration must be at least dt, and dt positive, got {duration} and {dt}")
    loops, contacts = check_loops(model, loops, q.dtype), check_contacts(model, contacts, q.dtype)
    gains = each_stabilization(stabilization, len(loops))
    if control is not None and not callable(control):
        raise DtypeError(f"control must be a function (t, q, v) -> tau, got {type(control).__name__}")
    if method != "implicit":
        for name, given in (("servo", servo), ("stops", stops), ("world", world)):
            if given is not None:
                raise ArgumentError(f'{name} needs method="implicit", got {method!r}')
    if stops is not None and not isinstance(stops, Stops):
        raise DtypeError(f"stops must be a Stops, got {type(stops).__name__}")
    stops = jax.tree.map(lambda x: jnp.asarray(x, q.dtype), stops)
    if world is None and contact_links is not None:
        raise ArgumentError("contact_links needs a world, got world=None")
    touching = check_contact_world(model, world, friction, contact_links, dry, q.dtype)
    if servo is not None and not callable(servo):
        servo = check_servo(model, servo, "servo", q.dtype)
    # A function may depend on what it closes over: what was compiled for it before need not be what it computes now.
    run = _steps if control is not None or callable(servo) else _compiled_steps
    return run(
        *(model, q, v, loops, contacts, gains, servo, stops, touching),
        control=control,
        count=count,
        dt=dt,
        method=method,
    )


def _steps(
    model: Model,
    q: Array,
    v: Array,
    loops: Sequence[LoopJoint],
    contacts: Sequence[Contact],
    stabilization: Stabilization,
    servo: Drive | None,
    stops: Stops | None,
    touching: HardContacts,
    *,
    control: Control | None,
    count: int,
    dt: float,
    method: Method,
) -> Simulation:
    count_points, rows = len(touching.points(model)[0]), touching.count(model)

    def forces(t: Array, state: State) -> tuple[Array, Array, Array | None]:
        """Accelerations, rates of the bristles, and the inertia that implicit forces add."""
        q, v, x = state
        tau = jnp.zeros_like(v) if control is None else check_array(control(t, q, v), "control(t, q, v)", v.shape)
        tau, extra = tau.astype(q.dtype), None
        if method == "implicit":
            held = check_servo(model, servo(t), "servo(t)", q.dtype) if callable(servo) else servo
            in_joints, extra = implicit_terms(model, q, v, jnp.asarray(dt, t.dtype), held, stops)
            tau = tau + in_joints
        if not contacts:
            return accelerations(model, q, v, tau, None, loops, stabilization, extra), x, extra
        touched = contact_forces(model, q, v, contacts, x)
        a = accelerations(model, q, v, tau, touched.f_ext, loops, stabilization, extra)
        return a, touched.bristle_rates, extra

    def step(state: State, t: Array, h: Array, impulses: Array) -> tuple[State, Array]:
        if method != "implicit":
            return _EXPLICIT[method](model, lambda t, state: forces(t, state)[:2], t, state, h), impulses
        q, v, x = state
        a, xdot, extra = forces(t, state)
        v_new = v + h * (a + drift(model, v))
        if rows and extra is not None:
            v_new, impulses = hard_impulses(model, extra, q, v, v_new, h, touching, impulses, loops, stabilization)
        return (*glide(model, q, v_new, h), x + h * xdot), impulses

    def advance(carry: tuple[State, Array], t: Array) -> tuple[tuple[State, Array], tuple[State, Array]]:
        h = jnp.asarray(dt, t.dtype)
        (q, v, x), impulses = step(carry[0], t, h, carry[1])
        q = normalize(model, q)
        if contacts:  # reset the bristles of contacts that have opened
            x = jnp.where(contact_forces(model, q, v, contacts, x).depths[:, None] > 0.0, x, 0.0)
        return ((q, v, x), impulses), ((q, v, x), impulses[: 3 * count_points].reshape(-1, 3) / h)

    ts = jnp.asarray(dt * np.arange(count + 1), q.dtype)
    start = q, v, jnp.zeros((len(contacts), 3), q.dtype)
    _, (states, pressed) = scan_in_one_kernel(advance, (start, jnp.zeros(rows, q.dtype)), ts[:-1])
    first = *start, jnp.zeros((count_points, 3), q.dtype)
    histories = (jnp.concatenate([x[None], rest]) for x, rest in zip(first, (*states, pressed), strict=True))
    return Simulation(ts, *histories)


_compiled_steps = jax.jit(_steps, static_argnames=("control", "count", "dt", "method"))
