"""Forward dynamics by the articulated-body algorithm."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..spatial.algebra import (
    NO_FORCE,
    NO_MOTION,
    O3,
    ZERO_MAT3,
    ZERO_SYM3,
    Force,
    Mat3,
    Motion,
    Sym3,
    Transform,
    Vec3,
    skew,
)
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ..xla.reciprocal import reciprocal
from ..xla.structural import ZERO, Scalar, Scalars, add, mul, sub
from ..xla.transpose import LinearMap, apply_linear, is_zero, jvp_of, value_and_jvp
from .arguments import arguments
from .crba import crba, mass_matrix_inverse
from .rnea import newton_euler, weightless


class ArticulatedInertia(NamedTuple):
    """A symmetric 6x6 matrix [[A, B], [B^T, C]] that maps motions to forces."""

    A: Sym3
    B: Mat3
    C: Sym3

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:  # type: ignore[override]
        return ArticulatedInertia(self.A + other.A, self.B + other.B, self.C + other.C)

    def apply(self, m: Motion) -> Force:
        """The force that goes with a motion."""
        return Force(self.A.apply(m.w) + self.B.apply(m.v), self.B.apply_transposed(m.w) + self.C.apply(m.v))

    def minus_outer(self, k: Force, u: Force) -> ArticulatedInertia:
        """self - k u^T, for products that are symmetric when summed over a joint."""
        return ArticulatedInertia(
            self.A - k.n.outer(u.n).symmetric(), self.B - k.n.outer(u.f), self.C - k.f.outer(u.f).symmetric()
        )

    def transform(self, X: Transform) -> ArticulatedInertia:
        """The same inertia seen from A, where X = T_AB [Featherstone 2008, sec. 7.2]."""
        R, p = X
        C = self.C.rotate(R)
        rotated = R @ self.B @ R.T
        P = skew(p)
        B = rotated + P @ C.full
        Y = P @ B.T - rotated @ P
        return ArticulatedInertia(self.A.rotate(R) + Y.symmetric(), B, C)


_Joint = tuple[tuple[Force, ...], Scalars]  # for each motion of a joint K = U D^-1, and D^-1 u
NO_INERTIA = ArticulatedInertia(ZERO_SYM3, ZERO_MAT3, ZERO_SYM3)


def _solve(D: list[list[Scalar]], columns: list[list[Scalar]]) -> list[list[Scalar]]:
    """Solves D x = c for each column c; D symmetric positive definite and of the size of one joint, by L D L^T."""
    n = len(D)
    L: list[list[Scalar]] = [[None] * n for _ in range(n)]
    pivots: list[Scalar] = []
    inverse: list[Scalar] = []
    for i in range(n):
        for j in range(i + 1):
            value = D[i][j]
            for k in range(j):
                value = sub(value, mul(L[i][k], mul(L[j][k], pivots[k])))
            if i == j:
                pivots.append(value)
                inverse.append(reciprocal(value))
            else:
                L[i][j] = mul(value, inverse[j])
    solved = []
    for c in columns:
        x = list(c)
        for i in range(n):
            for k in range(i):
                x[i] = sub(x[i], mul(L[i][k], x[k]))
        x = [mul(x[i], inverse[i]) for i in range(n)]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                x[i] = sub(x[i], mul(L[k][i], x[k]))
        solved.append(x)
    return solved


def _outward_velocity(
    body: Body, parent: Motion, v: Scalars, f_ext: Force | None
) -> tuple[Motion, tuple[Motion, Force]]:
    """Velocity-product acceleration and bias force of a body (first pass of table 7.1)."""
    joint = body.spin(v)
    V = body.transform.motion_inverse(parent) + joint
    bias = V.cross_force(body.inertia.apply(V))
    c = V.cross(joint)
    return V, (c, bias if f_ext is None else bias - f_ext)


def _inward_inertia(
    body: Body,
    children: tuple[ArticulatedInertia, Force],
    motion: tuple[Motion, Force],
    tau: Scalars,
    armature: Scalars,
) -> tuple[tuple[ArticulatedInertia, Force], _Joint]:
    """Articulated inertia and bias force (second pass): for each motion K = U D^-1 and D^-1 u."""
    c, own = motion
    force = own + children[1]
    u = [sub(t, s.dot(force)) for t, s in zip(tau, body.subspace, strict=True)]
    inertia, U, K, (drive,) = relieved(body, children[0], armature, [u])
    force = force + inertia.apply(c)
    for k, f in zip(drive, U, strict=True):
        force = force + f.scale(k)
    X = body.transform
    return (inertia.transform(X), X.force(force)), (tuple(K), tuple(drive))


def relieved(
    body: Body, children: ArticulatedInertia, armature: Scalars, columns: list[list[Scalar]]
) -> tuple[ArticulatedInertia, list[Force], list[Force], list[list[Scalar]]]:
    """What is felt of the articulated inertia I of a body through its joint, I - U D^-1 U^T, and what it is made of.

    Returns:
        It, U = I S and K = U D^-1 for each motion of the joint, and D^-1 times each of the columns.
    """
    m, h, second = body.inertia
    inertia = ArticulatedInertia(second, skew(h), Sym3(m, ZERO, ZERO, m, ZERO, m)) + children
    S = body.subspace
    U = [inertia.apply(s) for s in S]
    D = [[s.dot(u) for u in U] for s in S]
    for k, rotor in enumerate(armature):
        D[k][k] = add(D[k][k], rotor)
    flat = [list((*f.n, *f.f)) for f in U]
    solved = _solve(D, [*columns, *([f[row] for f in flat] for row in range(6))])
    solved, rows = solved[: len(columns)], solved[len(columns) :]
    K = [Force(Vec3(*(r[k] for r in rows[:3])), Vec3(*(r[k] for r in rows[3:]))) for k in range(len(S))]
    for k, f in zip(K, U, strict=True):
        inertia = inertia.minus_outer(k, f)
    return inertia, U, K, solved


def _outward_acceleration(
    body: Body, parent: Motion, motion: tuple[Motion, Force], joint: _Joint
) -> tuple[Motion, Scalars]:
    """Accelerations (third pass): a = D^-1 (u - U^T a')."""
    K, drive = joint
    moved = body.transform.motion_inverse(parent) + motion[0]
    a = tuple(sub(d, moved.dot(k)) for d, k in zip(drive, K, strict=True))
    return moved + body.spin(a), a


def _aba(run: Sweep, tau: Array, v: Array | None, f_ext: Array | None, *, gravity: bool) -> Array:
    velocities = run.split_v(v)
    wrenches = None if f_ext is None else run.split_wrenches(f_ext)
    motions = run.outward(_outward_velocity, NO_MOTION, velocities, wrenches)
    joints = run.inward(_inward_inertia, (NO_INERTIA, NO_FORCE), motions, run.split_v(tau), run.armature)
    base = Motion(O3, run.base_acceleration) if gravity else NO_MOTION
    return run.stack_v(run.outward(_outward_acceleration, base, motions, joints))


def _plain(model: Model, q: Array, v: Array, tau: Array, f_ext: Array | None) -> Array:
    if model.tree.has_mimics:  # they couple distant joints
        return _solve_dense(model, q, tau - newton_euler(model, q, v, None, f_ext))
    return traverse(model, functools.partial(_aba, gravity=True), q, tau, v, f_ext, result="joints")


def _solve_dense(model: Model, q: Array, tau: Array) -> Array:
    return jsl.cho_solve(jsl.cho_factor(crba(model, q), lower=True), tau)


@dataclass(frozen=True)
class _MassSolve(LinearMap):
    """Forces to the accelerations that they cause, M^-1 tau; its own transpose."""

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_mass_solve(*parameters, *arguments),)

    def transpose(self) -> LinearMap:
        return self

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any]:
        return [[mass_matrix_inverse(*parameters)]]


def _solved(model: Model, q: Array, gained: Any, lost: Array | None) -> Array:
    """M^-1 (gained - lost), where one of them may be missing."""
    if lost is None:
        change = gained
    else:
        change = -lost if is_zero(gained) else gained - lost
    return apply_linear(_MassSolve(), (model, q), (change,), [change.shape])[0]


def _plain_solve(model: Model, q: Array, tau: Array) -> Array:
    if model.tree.has_mimics:
        return _solve_dense(model, q, tau)
    return traverse(model, lambda run, tau: _aba(run, tau, None, None, gravity=False), q, tau, result="joints")


_mass_solve = jax.custom_jvp(_plain_solve)


def _mass_solve_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    model, q = primals[:2]
    if not is_zero(tangents[0]):  # the numbers of the model: rare, and of many kinds
        return value_and_jvp(_plain_solve, primals, tangents)
    a = _mass_solve(*primals)
    floating = weightless(model)
    lost = jvp_of(lambda q: newton_euler(floating, q, None, a, None), (q,), (tangents[1],))
    return a, _solved(model, q, tangents[2], lost)


_mass_solve.defjvp(_mass_solve_jvp, symbolic_zeros=True)


_accelerations = jax.custom_jvp(_plain)


def _accelerations_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    """From tau = rnea(q, v, a): da = M^-1 (dtau - drnea at constant a)."""
    model, q, v, _, f_ext = primals
    d_model, d_q, d_v, d_tau, d_f = tangents
    if not is_zero(d_model):
        return value_and_jvp(_plain, primals, tangents)
    a = _accelerations(*primals)
    lost = jvp_of(lambda q, v, f: newton_euler(model, q, v, a, f), (q, v, f_ext), (d_q, d_v, d_f))
    return a, _solved(model, q, d_tau, lost)


_accelerations.defjvp(_accelerations_jvp, symbolic_zeros=True)


def _stiffened(model: Model, extra: Array) -> Model:
    return dataclasses.replace(model, armature=model.armature + extra)


def _plain_damped(model: Model, extra: Array, q: Array, v: Array, tau: Array, f_ext: Array | None) -> Array:
    return _accelerations(_stiffened(model, extra), q, v, tau, f_ext)


@jax.custom_jvp
def damped_accelerations(model: Model, extra: Array, q: Array, v: Array, tau: Array, f_ext: Array | None) -> Array:
    """(M + diag(extra))^-1 (tau - c): `aba` with inertia added to the joints, as implicit integration does."""
    return _plain_damped(model, extra, q, v, tau, f_ext)


def _damped_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    """The rule of `_accelerations`, in which inertia that changes costs a force: da = M^-1 (... - dextra a)."""
    model, extra, q, v, _, f_ext = primals
    d_model, d_extra, d_q, d_v, d_tau, d_f = tangents
    if not is_zero(d_model):
        return value_and_jvp(_plain_damped, primals, tangents)
    a = damped_accelerations(*primals)
    lost = jvp_of(lambda q, v, f: newton_euler(model, q, v, a, f), (q, v, f_ext), (d_q, d_v, d_f))
    if not is_zero(d_extra):
        heavier = d_extra * a
        lost = heavier if lost is None else lost + heavier
    return a, _solved(_stiffened(model, extra), q, d_tau, lost)


damped_accelerations.defjvp(_damped_jvp, symbolic_zeros=True)


@jit_public()
def aba(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nv"]:
    r"""Forward dynamics: $a = M(q)^{-1} (\tau - C(q, v)\, v - g(q) + \sum_i J_i^T f_i)$.

    Articulated-body algorithm, O(n) [Featherstone 2008, table 7.1], rotors included. A robot with mimic joints couples
    distant joints and is solved with the Cholesky factors of `crba` instead, O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tau: Joint torques or forces [N m, N].
        f_ext: Wrench [n; f] that acts on each body from outside, about its origin in its axes [N m, N].

    Returns:
        Accelerations [rad/s^2, m/s^2] in the order of `model.joint_names`.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A pendulum let go when it is horizontal falls with g / l:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(aba(arm, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.zeros(1))[0]), 4)
        -19.62
    """
    model, q, v, tau, f_ext = arguments(model, q=q, v=v, tau=tau, f_ext=f_ext)
    return _accelerations(model, q, v, tau, f_ext)
