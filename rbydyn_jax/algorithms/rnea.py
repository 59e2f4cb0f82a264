r"""The recursive Newton-Euler algorithm with its derivative rules.

With $f_i = I_i A_i + V_i \times^* I_i V_i - f^{ext}_i$, the force that body $i$ takes, a loss of cotangent $\lambda$ is
the virtual power $\lambda^T \tau = \sum_i \mu_i \cdot f_i$, where $\mu$ are the velocities of the bodies at joint
velocities $\lambda$. Its gradient takes one pass out and one in: a joint moved along $s$ moves all that it carries as
one, so that relative to it only the velocity, acceleration and virtual velocity of its parent change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial.algebra import NO_FORCE, NO_MOTION, O3, Force, Motion, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Field, Sweep
from ..xla.structural import Scalars, add, mul
from ..xla.transpose import LinearMap
from .derivative_rule import rate_along, state_rule
from .derivatives import inverse_dynamics_matrices

_NAMES = ("q", "v", "a", "f_ext")
_Twists = tuple[Motion, Motion, Motion]  # velocity, acceleration, virtual velocity
_Forces = tuple[Force, Force, Force]  # force, momentum of the virtual velocity, and what a change of V does
State = tuple[Vec3, Vec3, Vec3]  # angular velocity, angular acceleration, acceleration of the origin


def body_force_step(body: Body, parent: State, v: Scalars, a: Scalars, f_ext: Force | None) -> tuple[State, Force]:
    """Motion of a body and the force that it takes, about its origin [Luh, Walker, Paul 1980]."""
    w0, dw0, a0 = parent
    R, p = body.transform
    joint = body.spin(v)
    drive = body.spin(a)
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


def _inward(
    body: Body, children: Force, taken: Force, a: Scalars, rotors: Scalars
) -> tuple[Force, tuple[Scalars, Force]]:
    through = taken + children
    forces = [add(s.dot(through), mul(k, x)) for s, x, k in zip(body.subspace, a, rotors, strict=True)]
    return body.transform.force(through), (tuple(forces), through)


def joint_wrenches(run: Sweep, v: Array | None, a: Array | None, f_ext: Array | None) -> Field[tuple[Scalars, Force]]:
    """For each joint: its generalized forces, and the wrench that goes through it."""
    velocities, accelerations = run.split_v(v), run.split_v(a)
    wrenches = None if f_ext is None else run.split_wrenches(f_ext)
    root = (O3, O3, run.base_acceleration)
    taken = run.outward(body_force_step, root, velocities, accelerations, wrenches)
    return run.inward(_inward, NO_FORCE, taken, accelerations, run.armature)


def _rnea(run: Sweep, v: Array | None, a: Array | None, f_ext: Array | None) -> Array:
    return run.stack_v(joint_wrenches(run, v, a, f_ext).select(lambda x: x[0]))


def _plain(model: Model, q: Array, v: Array | None, a: Array | None, f_ext: Array | None) -> Array:
    return traverse(model, _rnea, q, v, a, f_ext, result="joints")


def _adjoint_outward(
    body: Body, parent: _Twists, v: Scalars, a: Scalars, f_ext: Force | None, cotangent: Scalars
) -> tuple[_Twists, tuple[_Twists, _Forces, Motion]]:
    """V, A and mu of a body and of its parent; the force f, the momentum I mu, and what a change of V does."""
    X = body.transform
    V0, A0, mu0 = (X.motion_inverse(m) for m in parent)
    joint = body.spin(v)
    V, A, mu = V0 + joint, A0 + V0.cross(joint) + body.spin(a), mu0 + body.spin(cotangent)
    momentum, P = body.inertia.apply(V), body.inertia.apply(mu)
    f = body.inertia.apply(A) + V.cross_force(momentum)
    # mu . (I (u x V) + u x* I V + V x* I u) = u . Q
    Q = V.cross_force(P) - mu.cross_force(momentum) - body.inertia.apply(V.cross(mu))
    return (V, A, mu), ((V0, A0, mu0), (f if f_ext is None else f - f_ext, P, Q), mu)


def _adjoint_inward(
    body: Body,
    children: _Forces,
    before: _Twists,
    own: _Forces,
    v: Scalars,
    cotangent: Scalars,
    rotors: Scalars,
) -> tuple[_Forces, tuple[Scalars, ...]]:
    """The gradient with respect to the joint's position, velocity and acceleration."""
    V0, A0, mu0 = before
    F, P, Q = (a + b for a, b in zip(own, children, strict=True))
    twice = V0.scale(2.0) + body.spin(v)  # V0 + V
    gradients = []
    for s, k, rotor in zip(body.subspace, cotangent, rotors, strict=True):
        rate = V0.cross(s)
        of_q = add(add(mu0.cross(s).dot(F), (A0.cross(s) + V0.cross(rate)).dot(P)), rate.dot(Q))
        of_v = add(s.dot(Q), twice.cross(s).dot(P))
        gradients.append((of_q, of_v, add(s.dot(P), mul(rotor, k))))
    X = body.transform
    return (X.force(F), X.force(P), X.force(Q)), tuple(zip(*gradients, strict=True))


def adjoint(
    wrt: Sequence[str],
    run: Sweep,
    v: Array | None,
    a: Array | None,
    f_ext: Array | None,
    cotangent: Array | None,
    of_base: Motion = NO_MOTION,
) -> tuple[Array, ...]:
    r"""The gradients of the virtual power of all $f_i$ when the joints move as the cotangent says, and so the base."""
    velocities, accelerations = run.split_v(v), run.split_v(a)
    wrenches = None if f_ext is None else run.split_wrenches(f_ext)
    cotangents = run.split_v(cotangent)
    root = (NO_MOTION, Motion(O3, run.base_acceleration), of_base)
    motions = run.outward(_adjoint_outward, root, velocities, accelerations, wrenches, cotangents)
    results = run.inward(
        _adjoint_inward,
        (NO_FORCE, NO_FORCE, NO_FORCE),
        motions.select(lambda x: x[0]),
        motions.select(lambda x: x[1]),
        velocities,
        cotangents,
        run.armature,
    )

    def gradient(name: str) -> Array:
        if name == "f_ext":
            return -run.table(motions.select(lambda x: x[2]), 6).T
        return run.stack_v(results.select(lambda x: x[_NAMES.index(name)]))

    return tuple(gradient(name) for name in wrt)


@dataclass(frozen=True)
class _Tangent(LinearMap):
    """Changes of position (as velocities), velocity, acceleration and external wrenches, those in `wrt`, to forces."""

    wrt: tuple[str, ...]

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return (rate_along(_plain, [_NAMES.index(name) for name in self.wrt], parameters, arguments),)

    def transpose(self) -> LinearMap:
        return _Adjoint(self.wrt)

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any] | None:
        if "f_ext" in self.wrt:
            return None
        blocks = inverse_dynamics_matrices(*parameters, wrt=self.wrt)
        return [blocks]


@dataclass(frozen=True)
class _Adjoint(LinearMap):
    """The transpose of `_Tangent`."""

    wrt: tuple[str, ...]

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q, v, a, f_ext = parameters
        return traverse(model, partial(adjoint, self.wrt), q, v, a, f_ext, *arguments, result="joints")

    def transpose(self) -> LinearMap:
        return _Tangent(self.wrt)

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any] | None:
        blocks = _Tangent(self.wrt).matrix(parameters)
        return None if blocks is None else [[block.T] for block in blocks[0]]


def weightless(model: Model) -> Model:
    """The robot without gravity."""
    return dataclasses.replace(model, gravity=jnp.zeros_like(model.gravity))


@jax.custom_jvp
def newton_euler(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"] | None,
    a: Float[Array, "nv"] | None,
    f_ext: Float[Array, "nb 6"] | None,
) -> Float[Array, "nv"]:
    """The generalized forces of `rnea`; None stands for zero."""
    return _plain(model, q, v, a, f_ext)


newton_euler.defjvp(
    lambda primals, tangents: state_rule(newton_euler, _plain, _NAMES, _Tangent, primals, tangents),
    symbolic_zeros=True,
)
