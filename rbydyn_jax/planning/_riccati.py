r"""The backward sweep of iLQR: the steps of a robot and its costs near a motion, and the best change of the torques.

A state near the motion is (dq, dv), dq in tangent coordinates. What is chosen at each step is the velocity dv' after
it, from which positions follow, $dq' = T_q dq + T_v dv'$; torques are what inverse dynamics says of it,
$d\tau = D_{v'} dv' + D_q dq + D_v dv$. The dynamics are then in the costs of all steps, which are found together, and
the recursion itself is a Schur complement: no product with derivatives of the dynamics is left in it. Limits of the
torques are rows of a quadratic program in dv'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..algorithms.derivatives import rnea_derivatives
from ..model.configuration import difference, integrate, is_vector_space
from ..sweeps.plan import in_one_kernel, is_on_cpu, scan_in_one_kernel
from ..xla.control_flow import cond
from ..xla.triangular import lower_inverse
from ._ik_problem import product
from ._parallel_riccati import values
from ._torque_limits import Limited, Pairs, limited, summed, unlimited
from .control_problem import ControlProblem, implicit, reached
from .motion_costs import Quadratic, expansion

_IN_CACHE = 6  # joints from which fewer trips to memory pay for more calls in the loop


class Steps(NamedTuple):
    """Time steps near a motion; no Tq and Tv: the identity, and dt times the identity.

    Attributes:
        D: Torques by the velocity after the step, the position, and the velocity before.
        Tq: Position after the step by the position before.
        Tv: Position after the step by the velocity after.
    """

    D: Float[Array, "N n 3n"]
    Tq: Float[Array, "N n n"] | None
    Tv: Float[Array, "N n n"] | None


class Policy(NamedTuple):
    """Changes of a motion, constant and by the state, and the decrease of the cost that they predict.

    The decrease by a share s of the constant change is s times the first number, less s^2 times the second.

    Attributes:
        change: Of the torques.
        gains: Of the torques, by the state.
        speeds: Of the velocities after the steps; with no torque at a limit, they say the same.
        speed_gains: Of these velocities, by the state.
        bounded: Whether a torque is at a limit.
        linear: The first number.
        square: The second.
    """

    change: Float[Array, "N n"]
    gains: Float[Array, "N n 2n"]
    speeds: Float[Array, "N n"]
    speed_gains: Float[Array, "N n 2n"]
    bounded: Bool[Array, ""]
    linear: Float[Array, ""]
    square: Float[Array, ""]

    def predicted(self, share: Array | float) -> Array:
        """The decrease of the cost by a share of the change."""
        return share * self.linear - share * share * self.square


def unchanged(taus: Float[Array, "N n"]) -> Policy:
    """The policy that follows given torques."""
    N, n = taus.shape
    none, gains, zero = jnp.zeros_like(taus), jnp.zeros((N, n, 2 * n), taus.dtype), jnp.zeros((), taus.dtype)
    return Policy(none, gains, none, gains, jnp.array(True), zero, zero)


def linearized(problem: ControlProblem, qs: Array, vs: Array) -> Steps:
    """The time steps of a motion."""
    model, dt = problem.model, problem.dt
    stepped, steady = implicit(model, dt), is_vector_space(model)

    def acceleration(q: Array, v: Array, v_next: Array) -> Array:
        return reached(problem, q, v, v_next)[1]

    def one(q: Array, v: Array, q_next: Array, v_next: Array) -> Steps:
        d = rnea_derivatives(stepped, q, v, acceleration(q, v, v_next))
        by_v = d.dtau_dv + jnp.diag(model.damping)
        if steady:
            after = d.dtau_da / dt
            return Steps(jnp.concatenate([after, d.dtau_dq, by_v - after], axis=1), None, None)

        def moved(dq: Array, dv: Array) -> Array:
            return difference(model, q_next, reached(problem, integrate(model, q, dq), v, v_next + dv)[0])

        a_v, a_next = jax.jacfwd(acceleration, argnums=(1, 2))(q, v, v_next)
        D = jnp.concatenate([product(d.dtau_da, a_next), d.dtau_dq, by_v + product(d.dtau_da, a_v)], axis=1)
        return Steps(D, *jax.jacfwd(moved, argnums=(0, 1))(jnp.zeros_like(v), jnp.zeros_like(v)))

    return jax.vmap(in_one_kernel(one))(qs[:-1], vs[:-1], qs[1:], vs[1:])


def expanded(problem: ControlProblem, qs: Array, vs: Array, taus: Array, t: Array) -> tuple[Quadratic, Quadratic]:
    """The costs of all time steps, and at the end."""
    ts, model = problem.times(t), problem.model
    every = in_one_kernel(lambda *x: expansion(problem.costs, model, *x))
    running = jax.tree.map(lambda x: problem.dt * x, jax.vmap(every)(qs[:-1], vs[:-1], taus, ts[:-1]))
    last = in_one_kernel(lambda *x: expansion(problem.end_costs, model, *x))
    return running, last(qs[-1], vs[-1], jnp.zeros_like(vs[-1]), ts[-1])


class _Stage(NamedTuple):
    """The cost of a step, torques replaced by what inverse dynamics says of them, by dv' and by (dq, dv, 1).

    Columns of the 1 are gradients; Hessians by the state have no row for it.

    Attributes:
        speed: Hessian by the velocity after the step.
        both: By this velocity and the state.
        state: By the state, without the pairs.
        pairs: Their sum of products is the rest of it.
        Tq: Position after the step by the position before.
        Tv: Position after the step by the velocity after.
    """

    speed: Float[Array, "n n"]
    both: Float[Array, "n 2n+1"]
    state: Float[Array, "2n 2n+1"]
    pairs: Pairs
    Tq: Float[Array, "n n"] | None
    Tv: Float[Array, "n n"] | None


def backward(
    problem: ControlProblem,
    steps: Steps,
    running: Quadratic,
    end: Quadratic,
    taus: Array,
    damping: Array,
    parallel: bool = False,
) -> Policy:
    """The changes of the torques, within their limits, that minimize the quadratic cost [Tassa 2014].

    Damped by half of `damping` times the squared change of each velocity. In parallel, all steps are taken at once if
    no torque comes to a limit, and else one after another.
    """
    n = taus.shape[1]
    lower, upper = problem.tau_lower[None] - taus, problem.tau_upper[None] - taus
    value = _of_state(end, n, taus.dtype)
    late = is_on_cpu() and not parallel and n >= _IN_CACHE  # whether matrices of a step are made where they are used

    def stage(step: Steps, cost: Quadratic) -> _Stage:
        made = _stage(step, cost, damping)
        return made if late else made._replace(state=made.state + summed(made.pairs), pairs=())

    stages: Any = (steps, running) if late else jax.vmap(stage)(steps, running)

    def chosen(V: Array, stage: _Stage) -> tuple[Array, Array, Array]:
        before, across, after = _before_positions(problem.dt, V, stage)
        inverse = lower_inverse(jax.lax.linalg.cholesky(after + stage.speed, symmetrize_input=False))
        return before, inverse, product(inverse, across + stage.both)

    def step(V: Array, at: tuple[Any, Array, Array, Array]) -> tuple[Array, tuple[Array, Limited]]:
        given, D, low, high = at
        here = stage(*given) if late else given
        before, inverse, Y = chosen(V, here)
        lowered, found = limited(here.pairs, D, inverse, Y, low, high)
        return before + here.state + lowered, (inverse, found)

    def in_turn() -> tuple[Array, Limited]:
        return scan_in_one_kernel(step, value, (stages, steps.D, lower, upper), reverse=True)[1]

    if parallel:
        _, inverses, Y = jax.vmap(chosen)(_values(problem.dt, stages, value), stages)
        wanted = -product(steps.D[:, :, :n], product(jnp.swapaxes(inverses, 1, 2), Y[:, :, 2 * n :]))[:, :, 0]
        within = ((lower < upper) & (lower <= wanted) & (wanted <= upper)).all()
        inverses, found = cond(within, lambda: (inverses, jax.vmap(unlimited)(Y)), in_turn)
    else:
        inverses, found = in_turn()
    speeds = -product(jnp.swapaxes(inverses, 1, 2), found.Y)
    moved = product(steps.D[:, :, :n], speeds)
    bound = jnp.where(found.at_upper, upper, lower)
    return Policy(
        change=jnp.where(found.free, jnp.clip(moved[:, :, 2 * n], lower, upper), bound),
        gains=jnp.where(found.free[:, :, None], steps.D[:, :, n:] + moved[:, :, : 2 * n], 0.0),
        speeds=speeds[:, :, 2 * n],
        speed_gains=speeds[:, :, : 2 * n],
        bounded=~found.free.all(),
        linear=jnp.sum(found.linear),
        square=jnp.sum(found.square),
    )


def _values(dt: Array, stages: _Stage, end: Array) -> Array:
    """The value after each step, without limits."""
    N, n, _ = stages.speed.shape
    eye = jnp.broadcast_to(jnp.eye(n, dtype=end.dtype), (N, n, n))
    Tq, Tv = (eye if stages.Tq is None else stages.Tq), (dt * eye if stages.Tv is None else stages.Tv)
    F, B = jnp.pad(Tq, ((0, 0), (0, n), (0, n))), jnp.concatenate([Tv, eye], axis=1)
    return values(F, B, stages.speed, stages.both, stages.state, end)


def _before_positions(dt: Array, V: Array, stage: _Stage) -> tuple[Array, Array, Array]:
    """The value by (dq, dv') instead of (dq', dv'): by (dq, 0) and (dq, 0, 1), by dv' and (dq, 0, 1), and by dv'."""
    n = len(V) // 2
    Q, W = V[:n], V[n:]
    row, column = jnp.arange(2 * n)[:, None], jnp.arange(2 * n + 1)[None]
    known = (column < n) | (column == 2 * n)
    Tq, Tv = stage.Tq, stage.Tv
    if Tq is None or Tv is None:
        after = W[:, n : 2 * n] + dt * (W[:, :n] + Q[:, n : 2 * n]) + (dt * dt) * Q[:, :n]
        return jnp.where((row < n) & known, V, 0.0), jnp.where(known, W + dt * Q, 0.0), after
    carried = product(Tv.T, Q)
    half = product(W[:, :n] + 0.5 * carried[:, :n], Tv)
    T = jnp.where(known, jnp.eye(2 * n + 1, dtype=V.dtype), 0.0).at[:n, :n].set(Tq)
    before = jnp.pad(product(Tq.T, product(Q, T)), ((0, n), (0, 0)))
    return before, product(W + carried, T), W[:, n : 2 * n] + half + half.T


def _stage(step: Steps, cost: Quadratic, damping: Array) -> _Stage:
    """The cost of one step."""
    D, n = step.D, len(step.D)
    tau = jnp.zeros((n, 1), D.dtype) if cost.tau is None else cost.tau[:, None]
    R = cost.tau_tau
    by_tau = jnp.zeros_like(D) if R is None else R[:, None] * D if R.ndim == 1 else product(R, D)
    crossed = cost.tau_q is not None or cost.tau_v is not None
    if crossed:
        zero = jnp.zeros((n, n), D.dtype)
        by_state = jnp.concatenate([zero if x is None else x for x in (cost.tau_q, cost.tau_v)], axis=1)
        by_tau = by_tau.at[:, n:].add(by_state)
    right = jnp.concatenate([by_tau, tau], axis=1)
    moved = product(D[:, :n].T, right)
    pairs: Pairs = ((D[:, n:], right[:, n:]),)
    if crossed:
        pairs += ((by_state, jnp.pad(D[:, n:], ((0, 0), (0, 1)))),)
    speed = moved[:, :n] + damping * jnp.eye(n, dtype=D.dtype)
    return _Stage(speed, moved[:, n:], _of_state(cost, n, D.dtype), pairs, step.Tq, step.Tv)


def _of_state(cost: Quadratic, n: int, dtype: jnp.dtype) -> Array:
    """The cost of a state by (dq, dv) and (dq, dv, 1)."""
    none, zero = jnp.zeros((n, 1), dtype), jnp.zeros((n, n), dtype)
    q, v = (none if x is None else x[:, None] for x in (cost.q, cost.v))
    blocks = (cost.qq, cost.vq, cost.vv)
    qq, vq, vv = (zero if x is None else jnp.diag(x) if x.ndim == 1 else x for x in blocks)
    rows = ([qq, vq.T, q], [vq, vv, v])
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])
