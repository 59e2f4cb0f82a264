"""Solutions of inverse kinematics moved along their goals to where a cost is smallest nearby."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..model.configuration import integrate
from ..model.model import Model
from ..spatial._small import solve_definite
from ..xla.control_flow import fori_loop, while_loop
from ._ik_problem import damped_inverse, product, room
from ._ik_search import most_lanes
from ._ik_tasks import TaskProblem, Wanted
from .costs import Cost, Expansion
from .goals import Moving

_STEPS = 64
_CORRECTIONS = 3  # steps back to the goals after each step along them
_LONGEST_STEP = 0.3  # rad or m of one joint
_FIRST_DAMPING, _LESS, _MORE = 1e-3, 0.1, 8.0  # Levenberg's, relative to the curvature, and its factors
_HOPELESS = 1e8  # damping
_CLOSE = 1e-3  # [rad, m] to a limit: the joint is held
_POLISH = 4  # steps,
_NEAR = 1e-2  # which lead no farther than this [rad, m] where the search has ended at the minimum
_RANK = 1e3  # times rounding: smaller singular values are zero
_FLAT = 1e-10  # relative decrease of the cost that a step has to promise


def refined(
    problem: TaskProblem,
    q: Float[Array, "n nq"],
    target: Wanted,
    solved: Bool[Array, "n"],
    distance: Float[Array, "n"] | None,
) -> tuple[Array, Array | None]:
    """The solutions with the smallest cost nearby, and their smallest distances; what is no solution stays."""
    return jax.lax.map(lambda given: _refined(problem, *given), (q, target, solved, distance), batch_size=most_lanes())


def total(model: Model, costs: tuple[Cost, ...], q: Array, moving: Moving) -> Expansion:
    """The sum of costs."""
    found = [cost.expand(model, q, moving) for cost in costs]
    return reduce(lambda a, b: jax.tree.map(jnp.add, a, b), found)


class _State(NamedTuple):
    steps: Int[Array, ""]
    q: Float[Array, "nq"]
    distance: Float[Array, ""] | None
    cost: Float[Array, ""]
    damping: Float[Array, ""]
    promise: Float[Array, ""]


def _refined(
    problem: TaskProblem, q: Array, target: Wanted, solved: Array, distance: Array | None
) -> tuple[Array, Array | None]:
    def value(x: Array) -> Array:
        return total(problem.model, target.costs, x, problem.indices).value

    def unfinished(s: _State) -> Array:
        return solved & (s.steps < _STEPS) & (s.damping < _HOPELESS) & (s.promise > _FLAT * scale)

    def advance(s: _State) -> _State:
        step, promise = _along(problem, s.q, target, s.damping)
        moved, known, _ = problem.pursued(problem.move(s.q, step), target, _CORRECTIONS)
        cost = value(moved)
        better = known.reached & (cost < s.cost)
        kept = jax.tree.map(
            lambda a, b: jnp.where(better, a, b), (moved, known.distance, cost), (s.q, s.distance, s.cost)
        )
        q, distance, cost = kept
        damping = jnp.maximum(s.damping * jnp.where(better, _LESS, _MORE), least).astype(cost.dtype)
        return _State(s.steps + 1, q, distance, cost, damping, promise)

    cost = value(q)
    scale = jnp.abs(cost) + 1.0
    damping, infinite = jnp.asarray(_FIRST_DAMPING, q.dtype), jnp.asarray(jnp.inf, q.dtype)
    least = jnp.finfo(q.dtype).eps ** 0.5  # with less, a direction without curvature is all rounding
    end = while_loop(unfinished, advance, _State(jnp.zeros((), int), q, distance, cost, damping, infinite))
    return end.q, end.distance


def _along(problem: TaskProblem, q: Array, target: Wanted, damping: Array) -> tuple[Array, Array]:
    """A step along the goals, which makes a model of the cost smaller, and by how much it does."""
    _, J = problem.rows(q, target)
    _, g, H = total(problem.model, target.costs, q, problem.indices)
    step, keep, count = jnp.zeros_like(g), problem.clearance, len(g)
    d, G = (jnp.zeros(0, q.dtype), J[:0]) if keep is None else keep.slopes(problem.model, q, problem.indices)
    for first in (True, False):  # limits and distances that hold a first step back are kept by the second
        free = ~problem.blocked(q, step)
        near = jnp.zeros(len(d), bool) if first or keep is None else d + product(G, step) < keep.distance
        rows = jnp.concatenate([J, jnp.where(near[:, None], G, 0.0)])
        rows, pushed = jnp.where(free[None], rows, 0.0), jnp.where(free, g, 0.0)
        P = jnp.where(free[None] & free[:, None], jnp.eye(count, dtype=q.dtype), 0.0)
        P = P - product(rows.T, product(damped_inverse(rows, jnp.zeros((), q.dtype)), rows))
        size = jnp.maximum(jnp.trace(H) / count, jnp.finfo(q.dtype).tiny)
        eye = jnp.eye(count, dtype=q.dtype)
        curvature = product(P, product(H, P)) + size * (eye - P + damping * eye)  # regular across the goals, too
        step = -product(P, solve_definite(curvature, product(P, pushed)))
    length = jnp.maximum(1.0, jnp.abs(step).max() / _LONGEST_STEP)
    return step / length, -0.5 * jnp.sum(g * step)


def followed(
    problem: TaskProblem, d_problem: TaskProblem, q: Array, target: Wanted, d_q: Array, d_target: Wanted
) -> Float[Array, "m"]:
    r"""The change of the moving joints that keeps a solution one, with the smallest cost nearby.

    By the implicit function theorem: of the cost c, the errors e with the derivatives -J and the multipliers $\lambda$,
    $\nabla c + J^T \lambda$ and e stay zero. Joints closer to a limit than 1e-3 stay there; of directions in which
    nothing is curved it is the minimum-norm change. It is zero where the minimum is not near, since the search ended
    before.
    """
    count = len(problem.indices.v)

    def conditions(problem: TaskProblem, q: Array, target: Wanted, multipliers: Array) -> tuple[Array, Array]:
        e, J = problem.rows(q, target)
        return total(problem.model, target.costs, q, problem.indices).gradient + product(J.T, multipliers), e

    def system(q: Array) -> tuple[Array, Array, Array, Array]:
        """Multipliers, the inverse of the matrix of the changes, the size of its upper part, and which joints move."""
        free = ~(problem.blocked(q, 1.0) | problem.blocked(q, -1.0))
        J = jnp.where(free[None], problem.rows(q, target)[1], 0.0)
        g = jnp.where(free, total(problem.model, target.costs, q, problem.indices).gradient, 0.0)
        multipliers = -product(jnp.linalg.pinv(J.T, rtol=_RANK * jnp.finfo(q.dtype).eps), g)

        def moved(step: Array) -> Array:
            dv = jnp.zeros(problem.model.nv, q.dtype).at[problem.velocities].set(step, unique_indices=True)
            return conditions(problem, integrate(problem.model, q, dv), target, multipliers)[0]

        H = jax.jacfwd(moved)(jnp.zeros(count, q.dtype))
        H = jnp.where(free[:, None] & free[None], H, 0.0)
        size = jnp.maximum(jnp.abs(H).max(), jnp.finfo(q.dtype).tiny)
        matrix = jnp.block([[H / size, J.T], [J, jnp.zeros((len(J), len(J)), q.dtype)]])
        return multipliers, jnp.linalg.pinv(matrix, rtol=_RANK * jnp.finfo(q.dtype).eps), size, free

    def change(inverse: Array, size: Array, free: Array, uneven: Array, e: Array) -> Array:
        return product(inverse[:count], jnp.concatenate([jnp.where(free, -uneven, 0.0) / size, e]))

    def improved(_: int, q: Array) -> Array:
        multipliers, inverse, size, free = system(q)
        return problem.move(q, change(inverse, size, free, *conditions(problem, q, target, multipliers)))

    # First onto the limits, then Newton's method: the search ends short of them, and where cost no longer changes.
    below, above = room(problem.model, q, problem.velocities)
    found, q = q, problem.move(q, jnp.where(above < _CLOSE, above, jnp.where(below < _CLOSE, -below, 0.0)))
    q = fori_loop(0, _POLISH, improved, q)
    multipliers, inverse, size, free = system(q)
    changed = jax.jvp(
        lambda p, x, T: conditions(p, x, T, multipliers), (problem, q, target), (d_problem, d_q, d_target)
    )[1]
    near = jnp.abs(q - found).max() < _NEAR
    return jnp.where(near, change(inverse, size, free, *changed), 0.0)
