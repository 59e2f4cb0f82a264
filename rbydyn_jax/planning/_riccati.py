r"""The backward sweep of iLQR: the steps of a robot and its costs near a motion, and the best change of the torques.

A state near the motion is (dq, dv), dq in tangent coordinates. What is chosen at each step is the velocity dv' after
it, from which positions follow, $dq' = T_q dq + T_v dv'$; torques are what inverse dynamics says of it,
$d\tau = D_{v'} dv' + D_q dq + D_v dv$. The dynamics are then in the costs of all steps, which are found together, and
the recursion itself is a Schur complement: no product with derivatives of the dynamics is left in it. Limits of the
torques are rows of a quadratic program in dv'.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..algorithms.derivatives import rnea_derivatives
from ..model.configuration import difference, integrate, is_vector_space
from ..sweeps.plan import in_one_kernel, scan_in_one_kernel
from ..xla.control_flow import cond
from ..xla.triangular import lower_inverse
from ._ik_problem import product
from ._parallel_riccati import by_state, values
from ._torque_limits import Limited, limited, unlimited
from .control_problem import ControlProblem, implicit, reached
from .motion_costs import Quadratic, expansion


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
    """The cost of a step, torques replaced by what inverse dynamics says of them, as a symmetric matrix.

    States are (dq, 1, dv): what stands at the 1 are gradients.

    Attributes:
        D: Torques by the velocity after the step and by the state.
        speed: By the velocity after the step.
        both: By this velocity and the state.
        state: By the state.
        Tq: Position after the step by (dq, 1).
        Tv: Position after the step by the velocity after.
    """

    D: Float[Array, "n 3n+1"]
    speed: Float[Array, "n n"]
    both: Float[Array, "n 2n+1"]
    state: Float[Array, "2n+1 2n+1"]
    Tq: Float[Array, "n+1 n+1"] | None
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
    n, dtype = taus.shape[1], taus.dtype
    lower, upper = problem.tau_lower[None] - taus, problem.tau_upper[None] - taus
    stages, value = _stages(steps, running, damping), _of_state(end, n, dtype)

    def chosen(V: Array, stage: _Stage) -> tuple[Array, Array, Array]:
        before, across, after = _before_positions(problem.dt, V, stage)
        inverse = lower_inverse(jax.lax.linalg.cholesky(after + stage.speed, symmetrize_input=False))
        return before, inverse, product(inverse, jnp.pad(across, ((0, 0), (0, n))) + stage.both)

    def step(V: Array, at: tuple[_Stage, Array, Array]) -> tuple[Array, tuple[Array, Array, Limited]]:
        stage, low, high = at
        before, inverse, Y = chosen(V, stage)
        value = jnp.pad(before, (0, n)) + stage.state - product(Y.T, Y)
        value, found = limited(value, stage.D, inverse, Y, low, high)
        return value, (inverse, Y, found)

    def in_turn() -> tuple[Array, Array, Limited]:
        return scan_in_one_kernel(step, value, (stages, lower, upper), reverse=True)[1]

    if parallel:
        _, inverses, Y = jax.vmap(chosen)(_values(problem.dt, stages, value), stages)
        wanted = -product(stages.D[:, :, :n], product(jnp.swapaxes(inverses, 1, 2), Y[:, :, n : n + 1]))[:, :, 0]
        within = ((lower < upper) & (lower <= wanted) & (wanted <= upper)).all()
        inverses, Y, found = cond(within, lambda: (inverses, Y, jax.vmap(unlimited)(Y)), in_turn)
    else:
        inverses, Y, found = in_turn()
    speeds = -product(jnp.swapaxes(inverses, 1, 2), Y)
    gains = stages.D[:, :, n:] + product(stages.D[:, :, :n], speeds) - found.taken
    bound = jnp.where(found.at_upper, upper, lower)
    return Policy(
        change=jnp.where(found.free, jnp.clip(gains[:, :, n], lower, upper), bound),
        gains=jnp.where(found.free[:, :, None], by_state(gains), 0.0),
        speeds=speeds[:, :, n],
        speed_gains=by_state(speeds),
        bounded=~found.free.all(),
        linear=jnp.sum(found.linear),
        square=jnp.sum(found.square),
    )


def _values(dt: Array, stages: _Stage, end: Array) -> Array:
    """The value after each step, without limits."""
    N, n, _ = stages.speed.shape
    eye = jnp.broadcast_to(jnp.eye(n, dtype=end.dtype), (N, n, n))
    Tq, Tv = (eye if stages.Tq is None else stages.Tq[:, :n, :n]), (dt * eye if stages.Tv is None else stages.Tv)
    F, B = jnp.pad(Tq, ((0, 0), (0, n), (0, n))), jnp.concatenate([Tv, eye], axis=1)
    return values(F, B, stages.speed, stages.both, stages.state, end)


def _before_positions(dt: Array, V: Array, stage: _Stage) -> tuple[Array, Array, Array]:
    """The value by (dq, 1) and dv' instead of (dq', 1, dv'): by the first, by both, and by the second."""
    n = len(V) // 2
    before, across, after = V[: n + 1, : n + 1], V[n + 1 :, : n + 1], V[n + 1 :, n + 1 :]
    Tq, Tv = stage.Tq, stage.Tv
    if Tq is None or Tv is None:
        both = dt * (across[:, :n] + V[:n, n + 1 :]) + (dt * dt) * before[:n, :n]
        return before, across + dt * before[:n], after + both
    carried = product(Tv.T, before[:n])
    half = product(across[:, :n] + 0.5 * carried[:, :n], Tv)
    return product(Tq.T, product(before, Tq)), product(across + carried, Tq), after + half + half.T


def _stages(steps: Steps, cost: Quadratic, damping: Array) -> _Stage:
    """The costs of all steps."""
    N, n, _ = steps.D.shape
    none = jnp.zeros((N, n), steps.D.dtype)
    D = jnp.concatenate([steps.D[:, :, : 2 * n], none[:, :, None], steps.D[:, :, 2 * n :]], axis=2)
    zero = jnp.zeros((N, n, n), D.dtype)
    by_q, by_v = (zero if x is None else x for x in (cost.tau_q, cost.tau_v))
    by_tau = jnp.concatenate([zero, by_q, (none if cost.tau is None else cost.tau)[:, :, None], by_v], axis=2)
    if cost.tau_tau is not None:
        by_tau = by_tau + 0.5 * product(cost.tau_tau, D)
    half = product(jnp.swapaxes(D, 1, 2), by_tau)
    total = half + jnp.swapaxes(half, 1, 2)
    state = total[:, n:, n:] + jax.vmap(lambda x: _of_state(x, n, D.dtype), axis_size=N)(cost)
    Tq = None if steps.Tq is None else jnp.pad(steps.Tq, ((0, 0), (0, 1), (0, 1))).at[:, n, n].set(1.0)
    speed = total[:, :n, :n] + damping * jnp.eye(n, dtype=D.dtype)[None]
    return _Stage(D, speed, total[:, :n, n:], state, Tq, steps.Tv)


def _of_state(cost: Quadratic, n: int, dtype: jnp.dtype) -> Array:
    """The cost of a state as a symmetric matrix by (dq, 1, dv)."""
    none, zero = jnp.zeros((n, 1), dtype), jnp.zeros((n, n), dtype)
    q, v = (none if x is None else x[:, None] for x in (cost.q, cost.v))
    qq, vq, vv = (zero if x is None else x for x in (cost.qq, cost.vq, cost.vv))
    rows = ([qq, q, vq.T], [q.T, none[:1], v.T], [vq, v, vv])
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])
