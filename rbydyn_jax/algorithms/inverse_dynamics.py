"""Inverse dynamics by the recursive Newton-Euler algorithm, and the forces that are special cases of it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import public
from ..model.model import Model
from ..spatial._algebra import NO_FORCE, O3, Force, Vec3, add, mul
from ._api import arguments
from ._body import Body
from ._traversal import Traversal, gravity_root, traverse

_State = tuple[Vec3, Vec3, Vec3]  # angular velocity, angular acceleration, acceleration of the origin


def _outward(body: Body, parent: _State, v: tuple, a: tuple, f_ext: Force | None) -> tuple[_State, Force]:
    """Motion of a body and the force that it takes, about its origin [Luh, Walker, Paul 1980]."""
    w0, dw0, a0 = parent
    R, p = body.transform
    joint = body.spin(v)
    drive = body.spin(a) + body.joint.bias(body.axis, body.x, v)
    turned = R.apply_transposed(w0)
    w = turned + joint.w
    dw = R.apply_transposed(dw0) + turned.cross(joint.w) + drive.w
    carried = R.apply_transposed(a0 + dw0.cross(p) + w0.cross(w0.cross(p)))
    origin = carried + turned.cross(joint.v) + w.cross(joint.v) + drive.v
    m, h, second = body.inertia
    n = second.apply(dw) + w.cross(second.apply(w)) + h.cross(origin)
    f = origin.scale(m) + dw.cross(h) + w.cross(w.cross(h))
    taken = Force(n, f)
    return (w, dw, origin), taken if f_ext is None else taken - f_ext


def _inward(body: Body, children: Force, taken: Force, a: tuple, rotors: tuple) -> tuple[Force, tuple]:
    through = taken + children
    forces = [add(s.dot(through), mul(k, x)) for s, x, k in zip(body.subspace, a, rotors, strict=True)]
    return body.transform.force(through), (tuple(forces), through)


def _newton_euler(run: Traversal, v: Array | None, a: Array | None, f_ext: Array | None) -> list:
    """For each joint: its generalised forces, and the wrench that goes through it."""
    velocities = run.no_v() if v is None else run.split_v(v)
    accelerations = run.no_v() if a is None else run.split_v(a)
    wrenches = run.nothing() if f_ext is None else run.split_wrenches(f_ext)
    root = (O3, O3, gravity_root(run.model))
    taken = run.outward(_outward, root, velocities, accelerations, wrenches)
    return run.inward(_inward, NO_FORCE, taken, accelerations, run.split_armature())


def _rnea(run: Traversal, v: Array | None, a: Array | None, f_ext: Array | None) -> Array:
    return run.stack_v(run.item(_newton_euler(run, v, a, f_ext), 0))


@public()
def rnea(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nv"]:
    r"""Inverse dynamics: $\tau = M(q)\, a + C(q, v)\, v + g(q) - \sum_i J_i^T f_i$.

    Recursive Newton-Euler algorithm, O(n) [Luh, Walker, Paul 1980; Featherstone 2008, table 5.1], with the inertia of
    the rotors (`model.armature`). Damping and friction are not part of it: see `damping_forces` and `friction_forces`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        f_ext: Wrench [n; f] that acts on each body from outside, about its origin in its axes [N m, N]; see
            `external_wrenches`.

    Returns:
        Joint torques or forces [N m, N] in the order of `model.joint_names`.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A 2 kg point mass on a horizontal arm of 0.5 m, accelerated by 1 rad/s^2, needs m g l + m l^2:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(rnea(arm, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.ones(1))[0]), 4)
        10.31
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)
    return traverse(model, _rnea, q, v, a, f_ext)


@public()
def bias_forces(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], f_ext: Float[Array, "nb 6"] | None = None
) -> Float[Array, "nv"]:
    r"""Generalised forces that let the robot move without acceleration, $C(q, v)\, v + g(q) - \sum_i J_i^T f_i$.

    `rnea` with zero acceleration; O(n).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v, f_ext = arguments(model, q=q, v=v, f_ext=f_ext)
    return traverse(model, lambda run, v, f_ext: _rnea(run, v, None, f_ext), q, v, f_ext)


@public()
def gravity_forces(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv"]:
    r"""Generalised forces that hold the robot still, $g(q) = \partial U / \partial q$.

    `rnea` of a robot at rest: every body accelerated by $-\mathbf{g}$; O(n) [Featherstone 2008, sec. 5.3].

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        Joint torques or forces [N m, N].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        A 2 kg point mass on a horizontal arm of 0.5 m needs m g l:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(gravity_forces(arm, jnp.array([jnp.pi / 2]))[0]), 4)
        9.81
    """
    model, q = arguments(model, q=q)
    return traverse(model, lambda run: _rnea(run, None, None, None), q)


class InverseDynamicsTerms(eqx.Module):
    """The three parts of inverse dynamics: `inertial` M a, `coriolis` C v, and `gravity` g [N m, N]."""

    inertial: Float[Array, "nv"]
    coriolis: Float[Array, "nv"]
    gravity: Float[Array, "nv"]


@public()
def inverse_dynamics_terms(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> InverseDynamicsTerms:
    r"""The parts $M a$, $C v$ and $g$ of which `rnea` returns the sum.

    Three runs of the recursive Newton-Euler algorithm, O(n).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    weightless = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))
    return InverseDynamicsTerms(
        inertial=traverse(weightless, lambda run, a: _rnea(run, None, a, None), q, a),
        coriolis=traverse(weightless, lambda run, v: _rnea(run, v, None, None), q, v),
        gravity=traverse(model, lambda run: _rnea(run, None, None, None), q),
    )


@public()
def joint_reaction_wrenches(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nb 6"]:
    r"""Wrench [n; f] that goes through each joint onto its body, about the body's origin in its axes [N m, N].

    Its projection on the joint's motion subspace, plus the torque that turns the rotor, is `rnea`; what is left is
    borne by the bearings.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)

    def wrenches(run: Traversal, v: Array, a: Array, f_ext: Array | None) -> Array:
        through = _newton_euler(run, v, a, f_ext)
        flat = [None if x is None else (*x[1].n, *x[1].f) for x in through]
        return run.stack_bodies(flat, 6)

    return traverse(model, wrenches, q, v, a, f_ext)
