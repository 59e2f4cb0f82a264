r"""The backward sweep of iLQR: the steps of a robot and its costs near a motion, and the best change of the torques.

A state near the motion is (dq, dv), dq in tangent coordinates. A time step changes velocities by
$dv' = F_q dq + F_v dv + F_\tau d\tau$, and then positions by $dq' = T_q dq + T_v dv'$: products of (n, n) matrices
with the accelerations' derivatives, none of (2n, 2n).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..algorithms.derivatives import aba_derivatives
from ..joints.base import JointType
from ..model.configuration import difference, integrate
from ..xla.triangular import lower_inverse
from .control_problem import ControlProblem, implicit
from .motion_costs import Quadratic, expansion

_PASSES = 6  # over the set of torques at their limits


class Steps(NamedTuple):
    """Time steps near a motion; no Tq and Tv: the identity, and dt times the identity."""

    F: Float[Array, "N n 3n"]
    Tq: Float[Array, "N n n"] | None
    Tv: Float[Array, "N n n"] | None


Value = tuple[Array, Array]
"""Gradient (2n,) and Hessian (2n, 2n) of the cost from some time on, by the state."""


class Policy(NamedTuple):
    """Changes of the torques of a motion, constant and by the state, and the decrease of the cost that they predict.

    The decrease by a share s of the constant change is s times the first number, less s^2 times the second.
    """

    change: Float[Array, "N n"]
    gains: Float[Array, "N n 2n"]
    linear: Float[Array, ""]
    square: Float[Array, ""]

    def predicted(self, share: Array | float) -> Array:
        """The decrease of the cost by a share of the change."""
        return share * self.linear - share * share * self.square


def linearised(problem: ControlProblem, qs: Array, vs: Array, taus: Array) -> Steps:
    """The time steps of a motion."""
    model, dt = problem.model, problem.dt
    stepped, eye = implicit(model, dt), jnp.eye(model.nv, dtype=dt.dtype)

    def one(q: Array, v: Array, tau: Array, q_next: Array, v_next: Array) -> Steps:
        d = aba_derivatives(stepped, q, v, tau - model.damping * v)
        by_v = d.da_dv - d.da_dtau * model.damping[None]
        F = jnp.concatenate([dt * d.da_dq, eye + dt * by_v, dt * d.da_dtau], axis=1)
        if all(type(joint).integrate is JointType.integrate for joint in model.tree.joints):
            return Steps(F, None, None)

        def moved(dq: Array, dv: Array) -> Array:
            return difference(model, q_next, integrate(model, integrate(model, q, dq), dt * (v_next + dv)))

        return Steps(F, *jax.jacfwd(moved, argnums=(0, 1))(jnp.zeros_like(v), jnp.zeros_like(v)))

    return jax.vmap(one)(qs[:-1], vs[:-1], taus, qs[1:], vs[1:])


def expanded(problem: ControlProblem, qs: Array, vs: Array, taus: Array, t: Array) -> tuple[Quadratic, Quadratic]:
    """The costs of all time steps, and at the end."""
    ts, model = problem.times(t), problem.model
    running = jax.vmap(lambda *x: expansion(problem.costs, model, *x))(qs[:-1], vs[:-1], taus, ts[:-1])
    running = jax.tree.map(lambda x: problem.dt * x, running)
    return running, expansion(problem.end_costs, model, qs[-1], vs[-1], jnp.zeros_like(vs[-1]), ts[-1])


def backward(
    problem: ControlProblem, steps: Steps, running: Quadratic, end: Quadratic, taus: Array, damping: Array
) -> Policy:
    """The changes of the torques, within their limits, that minimise the quadratic cost [Tassa 2014].

    Damped by half of `damping` times the squared change of each velocity.
    """
    n, dtype = taus.shape[1], taus.dtype
    lower, upper = problem.tau_lower[None] - taus, problem.tau_upper[None] - taus

    def step(after: Value, at: tuple[Steps, Quadratic, Array, Array]) -> tuple[Value, Policy]:
        moved, cost, low, high = at
        p, P = _before_positions(problem.dt, after, moved)
        return _step(p, P, moved.F, cost, low, high, damping)

    value = _gradient(end, n, dtype), _hessian(end, n, dtype)
    _, found = jax.lax.scan(step, value, (steps, running, lower, upper), reverse=True)
    return Policy(found.change, found.gains, jnp.sum(found.linear), jnp.sum(found.square))


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")


def _before_positions(dt: Array, after: Value, step: Steps) -> Value:
    """The value by (dq, dv') instead of (dq', dv')."""
    p, P = after
    n = len(p) // 2
    pq, pv, Pqq, Pvq, Pvv = p[:n], p[n:], P[:n, :n], P[n:, :n], P[n:, n:]
    if step.Tq is None or step.Tv is None:
        both = dt * (Pvq + Pvq.T) + (dt * dt) * Pqq
        Pvq, pv = Pvq + dt * Pqq, pv + dt * pq
    else:
        half = Pvq + 0.5 * _product(step.Tv.T, Pqq)
        both = _product(half, step.Tv)
        both = both + both.T
        Pvq = _product(half + 0.5 * _product(step.Tv.T, Pqq), step.Tq)
        Pqq = _product(step.Tq.T, _product(Pqq, step.Tq))
        pq, pv = _product(pq, step.Tq), pv + _product(pq, step.Tv)
    rows = jnp.concatenate([Pqq, Pvq.T], axis=1), jnp.concatenate([Pvq, Pvv + both], axis=1)
    return jnp.concatenate([pq, pv]), jnp.concatenate(rows)


def _step(
    p: Array, P: Array, F: Array, cost: Quadratic, low: Array, high: Array, damping: Array
) -> tuple[Value, Policy]:
    n = len(low)
    eye = jnp.eye(n, dtype=p.dtype)
    Pvv, Pvq = P[n:, n:] + damping * eye, P[n:, :n]
    S = _product(Pvv, F)
    both = jnp.concatenate([Pvq, jnp.zeros_like(Pvq)], axis=1)
    by_tau = _product(F[:, 2 * n :].T, S + jnp.concatenate([both, jnp.zeros_like(Pvq)], axis=1))
    half = _product(F[:, : 2 * n].T, 0.5 * S[:, : 2 * n] + both)
    gradient = _product(p[n:], F)
    Qx = gradient[: 2 * n] + jnp.concatenate([p[:n], jnp.zeros_like(low)]) + _gradient(cost, n, p.dtype)
    Qu = _plus(gradient[2 * n :], cost.tau)
    Quu = _plus(by_tau[:, 2 * n :], cost.tau_tau)
    cross = [jnp.zeros_like(Quu) if x is None else x for x in (cost.tau_q, cost.tau_v)]
    Qux = by_tau[:, : 2 * n] + jnp.concatenate(cross, axis=1)
    Qxx = half + half.T + jnp.pad(P[:n, :n], (0, n)) + _hessian(cost, n, p.dtype)
    change, free, inverse = _within(Quu, Qu, low, high)
    Y = _product(inverse, jnp.where(free[:, None], Qux, 0.0))
    gains = -_product(inverse.T, Y)
    linear, square = -jnp.sum(Qu * change), 0.5 * jnp.sum(change * _product(Quu, change))
    before = Qx + _product(change, Qux), Qxx - _product(Y.T, Y)
    return before, Policy(change, jnp.where(free[:, None], gains, 0.0), linear, square)


def _within(H: Array, g: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Minimises a quadratic within bounds, by the primal-dual active set method [Hintermueller et al. 2002].

    Returns the minimum, the entries that are at no bound, and the inverse of the Cholesky factor of their block of H.
    """
    diagonal, eye = jnp.diagonal(H), jnp.eye(len(g), dtype=g.dtype)
    still = low >= high
    start = still | ((low >= 0.0) & (g > 0.0)), ~still & (high <= 0.0) & (g < 0.0)

    def at(sets: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        free = ~(sets[0] | sets[1])
        bound = jnp.where(sets[0], low, jnp.where(sets[1], high, 0.0))
        right = jnp.where(free, -g - _product(H, bound), bound)
        L = jax.lax.linalg.cholesky(jnp.where(free[:, None] & free[None], H, eye), symmetrize_input=False)
        inverse = lower_inverse(L)
        return _product(_product(inverse, right), inverse), free, inverse

    def unsettled(carry: tuple[tuple[Array, Array], Array, Array, tuple[Array, Array, Array]]) -> Array:
        return carry[1] & (carry[2] < _PASSES)

    def again(
        carry: tuple[tuple[Array, Array], Array, Array, tuple[Array, Array, Array]],
    ) -> tuple[tuple[Array, Array], Array, Array, tuple[Array, Array, Array]]:
        sets, _, count, _ = carry
        x, free, inverse = at(sets)
        shifted = x - (g + _product(H, x)) / diagonal
        new = still | (shifted < low), ~still & (shifted > high)
        changed = (new[0] != sets[0]).any() | (new[1] != sets[1]).any()
        return new, changed, count + 1, (x, free, inverse)

    none = jnp.zeros_like(g), jnp.zeros(g.shape, bool), jnp.zeros_like(H)
    found = jax.lax.while_loop(unsettled, again, (start, jnp.array(True), jnp.zeros((), jnp.int32), none))[3]
    return jnp.clip(found[0], low, high), found[1], found[2]


def _gradient(cost: Quadratic, n: int, dtype: jnp.dtype) -> Array:
    zero = jnp.zeros(n, dtype)
    return jnp.concatenate([zero if x is None else x for x in (cost.q, cost.v)])


def _hessian(cost: Quadratic, n: int, dtype: jnp.dtype) -> Array:
    zero = jnp.zeros((n, n), dtype)
    qq, vq, vv = (zero if x is None else x for x in (cost.qq, cost.vq, cost.vv))
    return jnp.concatenate([jnp.concatenate([qq, vq.T], axis=1), jnp.concatenate([vq, vv], axis=1)])


def _plus(x: Array, y: Array | None) -> Array:
    return x if y is None else x + y
