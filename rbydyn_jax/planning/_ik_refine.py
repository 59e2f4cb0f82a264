"""Solutions of inverse kinematics moved along their goals to where a cost is smallest nearby."""

from __future__ import annotations

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..model.model import Model
from ..spatial._small import solve_definite
from ._ik_problem import product
from ._ik_search import LANES
from ._ik_tasks import TaskProblem, Wanted, damped_inverse
from .costs import Cost, Expansion
from .goals import Moving

_STEPS = 64
_CORRECTIONS = 3  # steps back to the goals after each step along them
_LONGEST_STEP = 0.3  # rad or m of one joint
_FIRST_DAMPING, _LESS, _MORE = 1e-3, 0.1, 8.0  # Levenberg's, relative to the curvature, and its factors
_HOPELESS = 1e8  # damping
_FLAT = 1e-10  # relative decrease of the cost that a step has to promise


def refined(problem: TaskProblem, q: Float[Array, "n nq"], target: Wanted, solved: Bool[Array, "n"]) -> Array:
    """The solutions with the smallest cost nearby; what is no solution stays."""

    def one(given: tuple[Array, Wanted, Array]) -> Array:
        return _refined(problem, *given)

    return jax.lax.map(one, (q, target, solved), batch_size=LANES)


def total(model: Model, costs: tuple[Cost, ...], q: Array, moving: Moving) -> Expansion:
    """The sum of costs."""
    found = [cost.expand(model, q, moving) for cost in costs]
    return reduce(lambda a, b: jax.tree.map(jnp.add, a, b), found)


def _refined(problem: TaskProblem, q: Array, target: Wanted, solved: Array) -> Array:
    def unfinished(state: tuple[Array, ...]) -> Array:
        i, _, _, damping, promise, scale = state
        return solved & (i < _STEPS) & (damping < _HOPELESS) & (promise > _FLAT * scale)

    def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
        i, q, cost, damping, _, scale = state
        step, promise = _along(problem, q, target, damping)
        moved = problem.move(q, step)
        moved = jax.lax.fori_loop(0, _CORRECTIONS, lambda _, x: problem.improved(x, target), moved)
        reached, new = problem.judged(moved, target)[1], value(moved)
        better = reached & (new < cost)
        q, cost = jnp.where(better, moved, q), jnp.where(better, new, cost)
        return i + 1, q, cost, jnp.where(better, damping * _LESS, damping * _MORE), promise, scale

    def value(x: Array) -> Array:
        return total(problem.model, target.costs, x, problem.indices).value

    cost = value(q)
    first: Any = (jnp.zeros((), int), q, cost, jnp.asarray(_FIRST_DAMPING, q.dtype), jnp.inf, jnp.abs(cost) + 1.0)
    first = jax.tree.map(lambda x, like: jnp.asarray(x, like), first, (int, *[q.dtype] * 5))
    return jax.lax.while_loop(unfinished, advance, first)[1]


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
        size = damping * jnp.maximum(jnp.trace(H) / count, jnp.finfo(q.dtype).tiny)
        curvature = product(P, product(H, P)) + size * jnp.eye(count, dtype=q.dtype)
        step = -product(P, solve_definite(curvature, product(P, pushed)))
    length = jnp.maximum(1.0, jnp.abs(step).max() / _LONGEST_STEP)
    return step / length, -0.5 * jnp.sum(g * step)
