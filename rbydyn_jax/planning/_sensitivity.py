r"""Derivatives of the solution of a trajectory problem, by the implicit function theorem.

With the multipliers $\nu$ of the limits and $\mu$ of the goals at an instant, a solution x of the problem with the data
$\theta$ is a stationary point of $L = c + \nu^T g + \mu^T e$, and the active limits g and the errors e of the goals are
zero. That they stay so is the linear system [Fiacco 1976; Nocedal and Wright 2006, section 12.4]

$$\begin{bmatrix} \nabla^2_{xx} L & A^T \\ A & 0 \end{bmatrix} \begin{bmatrix} dx \\ d\nu \end{bmatrix} =
-\begin{bmatrix} \nabla^2_{x\theta} L \\ \partial_\theta (g, e) \end{bmatrix} d\theta .$$

The search stops short of the stationary point. Sequential quadratic programming, with all second derivatives, leads
there first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from ..spatial import _quadratic
from ..xla.control_flow import while_loop
from ..xla.transpose import no_tangent, rule_of
from ._lanes import search
from ._newton import Transcription
from ._no_derivatives import without_derivatives
from ._search import Found
from ._seeds import product
from .problem import TrajectoryProblem

_STEPS = 30
_SMALL = {"float64": 1e-8, "float32": 1e-3}  # the last step, relative to the motion
_NEAREST = 6  # times the number of unknowns: how many limits a step looks at, the nearest ones
_CONVEX = 10.0  # weight of squares of what is zero, relative to the largest multiplier
_RANK = 1e3  # times rounding: smaller eigenvalues are zero
_NEAR = 0.3  # distance from where the search ended, relative to the motion


def solution(problem: TrajectoryProblem) -> Found:
    """The end of the search; its coefficients and duration have derivatives, all else counts as constant."""
    arrays, rest = eqx.partition(_without_closures(problem), eqx.is_array)

    @jax.custom_jvp
    def of(arrays: Any) -> Found:
        return search(eqx.combine(arrays, rest))

    @rule_of(of)
    def _(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Found, Found]:
        (arrays,), (changes,) = primals, tangents
        data, others = eqx.partition(arrays, eqx.is_inexact_array)
        data = without_derivatives(data, "solve_trajectory has first derivatives only")
        problem = eqx.combine(data, others, rest)
        found = of(eqx.combine(data, others))
        at = _optimum(problem, found)

        def conditions(data: Any) -> tuple[Array, Array]:
            gradient, rows = _conditions(eqx.combine(data, others, rest), found, at.x, at.multipliers)
            return gradient, rows.active(at.multipliers)

        changes = eqx.filter(changes, jax.tree.map(eqx.is_inexact_array, arrays))
        uneven, away = jax.jvp(conditions, (data,), (changes,))[1]
        dx = -(product(at.along, uneven) + product(at.onto, away))
        count = found.coefficients.size
        return found, jax.tree.map(no_tangent, found)._replace(
            coefficients=dx[:count].reshape(found.coefficients.shape),
            duration=found.duration * dx[-1] if problem.duration is None else changes.duration,
        )

    return of(arrays)


def _without_closures(problem: TrajectoryProblem) -> TrajectoryProblem:
    """What the user's functions take from around them becomes a part of the problem: it may be batched, or changed."""
    x, v = problem.q_start, jnp.zeros(problem.model.nv, problem.q_start.dtype)

    def closed(functions: tuple[Any, ...]) -> tuple[Any, ...]:
        zero = jnp.zeros((), x.dtype)
        return tuple(eqx.filter_closure_convert(f, problem.model, x, v, v, v, zero) for f in functions)

    functions = closed(problem.costs), closed(problem.constraints)
    return eqx.tree_at(lambda p: (p.costs, p.constraints), problem, functions)


class _Multipliers(NamedTuple):
    """Of lower limits and then of upper ones, zero where these are not active, and of the goals."""

    limits: Float[Array, "r"]
    goals: Float[Array, "g"]


class _Rows(NamedTuple):
    """The room to the limits, and the errors of the goals, or derivatives of these."""

    room: Array
    error: Array

    def active(self, multipliers: _Multipliers) -> Array:
        """Those that stay zero; the others are set to zero."""
        active = (multipliers.limits > 0).reshape(-1, *(1,) * (self.room.ndim - 1))
        return jnp.concatenate([jnp.where(active, self.room, 0.0), self.error])


def _transcribed(problem: TrajectoryProblem, found: Found) -> Transcription:
    """The transcription whose solution the search found, with the weight of the duration as a constant."""
    todo = Transcription(problem, problem.q_start[np.array(problem.moving.q)][None])
    if found.scale is not None:  # that of the search, which is for another end
        todo.guess, todo.short = found.scale
    return todo


def _conditions(
    problem: TrajectoryProblem, found: Found, x: Array, multipliers: _Multipliers
) -> tuple[Float[Array, "x"], _Rows]:
    """The gradient of the Lagrangian, and the rows.

    Squares of what is zero at the solution are added. They do not change it, and make the Lagrangian convex nearby
    [Nocedal and Wright 2006, theorem 17.5].
    """
    todo = _transcribed(problem, found)
    weight = _CONVEX * (1.0 + jnp.max(multipliers.limits))
    forces = jnp.concatenate([-multipliers.limits, multipliers.goals])

    def lagrangian(x: Array) -> tuple[Array, _Rows]:
        at = todo.plain(x)
        rows = _Rows(todo.room(at, found.tight), at.error)
        zero = rows.active(multipliers)
        return todo.cost(x, at) + jnp.sum(forces * zero) + 0.5 * weight * jnp.sum(zero * zero), rows

    return jax.grad(lagrangian, has_aux=True)(x)


class _Point(NamedTuple):
    """A motion and its multipliers, and there the derivatives of the gradient of the Lagrangian and of the rows."""

    x: Float[Array, "x"]
    multipliers: _Multipliers
    curvature: Float[Array, "x x"]
    slope: _Rows


class _State(NamedTuple):
    at: _Point
    x: Float[Array, "x"]
    multipliers: _Multipliers
    count: Int[Array, ""]
    done: Bool[Array, ""]


class _Optimum(NamedTuple):
    """The stationary point, and minus the maps of changes of the gradient and of the rows to those of the point.

    The maps are NaN where there is none near the end of the search.
    """

    x: Float[Array, "x"]
    multipliers: _Multipliers
    along: Float[Array, "x x"]
    onto: Float[Array, "x r"]


def _optimum(problem: TrajectoryProblem, found: Found) -> _Optimum:
    """Sequential quadratic programming from the end of the search [Nocedal and Wright 2006, algorithm 18.1]."""
    small = _SMALL[found.x.dtype.name]

    def evaluated(x: Array, multipliers: _Multipliers) -> tuple[_Point, tuple[Array, _Rows]]:
        def twice(x: Array) -> tuple[Any, Any]:
            values = _conditions(problem, found, x, multipliers)
            return values, values

        derivatives, values = jax.jacfwd(twice, has_aux=True)(x)
        return _Point(x, multipliers, *derivatives), values

    def advance(s: _State) -> _State:
        at, values = evaluated(s.x, s.multipliers)
        step, multipliers, solved = _step(at, *values)
        done = solved & (jnp.linalg.norm(step) <= small * (1.0 + jnp.linalg.norm(s.x)))
        return _State(at, s.x + step, multipliers, s.count + 1, done)

    dual = ravel_pytree(found.dual)[0]
    errors = jax.eval_shape(lambda x: _transcribed(problem, found).plain(x).error, found.x)
    multipliers = _Multipliers(jnp.maximum(jnp.concatenate([-dual, dual]), 0.0), jnp.zeros(errors.shape, dual.dtype))
    shapes = jax.eval_shape(evaluated, found.x, multipliers)[0]
    nowhere = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    start = _State(nowhere, found.x, multipliers, jnp.zeros((), int), jnp.zeros((), bool))
    end = while_loop(lambda s: found.converged & ~s.done & (s.count < _STEPS), advance, start)
    near = jnp.linalg.norm(end.at.x - found.x) <= _NEAR * (1.0 + jnp.linalg.norm(found.x))
    along, onto = _maps(end.at.curvature, end.at.slope.active(end.at.multipliers))
    known = jnp.where(end.done & near, 1.0, jnp.nan).astype(found.x.dtype)
    return _Optimum(end.at.x, end.at.multipliers, known * along, known * onto)


def _step(at: _Point, gradient: Array, rows: _Rows) -> tuple[Array, _Multipliers, Array]:
    """The step of the quadratic program, its multipliers, and whether it was solved."""
    limits, goals = at.multipliers
    linear = gradient + product(limits, at.slope.room) - product(goals, at.slope.error)
    size = 1.0 + jnp.max(jnp.abs(linear))
    _, nearest = jax.lax.top_k(-rows.room, min(len(limits), _NEAREST * len(linear)))
    room = rows.room[nearest]
    kept = jnp.isfinite(room)
    F, h = jnp.where(kept[:, None], -at.slope.room[nearest], 0.0), jnp.where(kept, room, 1.0)
    program = _quadratic.Program(at.curvature / size, linear / size, at.slope.error, -rows.error, F, h)
    point = _quadratic.solve(program)
    found, y, z = _settled(program, kept & (point.z > point.s))
    multipliers = _Multipliers(jnp.zeros_like(limits).at[nearest].set(size * z), size * y)
    return found, multipliers, _quadratic.solved(program, point)


def _settled(program: _quadratic.Program, active: Bool[Array, "m"]) -> tuple[Array, Array, Array]:
    """The solution along the limits that count as active, without those whose multipliers are negative.

    Where a limit is nearly active, the interior point does not tell whether it is.
    """

    def solution(active: Array) -> tuple[Array, Array]:
        rows = jnp.concatenate([program.A, jnp.where(active[:, None], program.F, 0.0)])
        along, onto = _maps(program.P, rows)
        x = product(onto, jnp.concatenate([program.b, jnp.where(active, program.h, 0.0)])) - product(along, program.c)
        return x, -product(onto.T, product(program.P, x) + program.c)

    def pulling(active: Array) -> Array:
        return jnp.where(active, solution(active)[1][len(program.b) :], 0.0)

    def fewer(state: tuple[Array, Array]) -> tuple[Array, Array]:
        active, z = state
        active = active.at[jnp.argmin(z)].set(False)
        return active, pulling(active)

    active, z = while_loop(lambda state: jnp.min(state[1]) < 0.0, fewer, (active, pulling(active)))
    x, forces = solution(active)
    return x, forces[: len(program.b)], z


def _maps(H: Float[Array, "x x"], A: Float[Array, "r x"]) -> tuple[Float[Array, "x x"], Float[Array, "x r"]]:
    """The upper blocks of the pseudoinverse of [[H, A^T], [A, 0]], in which multiples of A^T A in H do not matter."""
    s, V = jnp.linalg.eigh(product(A.T, A))
    held = s > _RANK * jnp.finfo(s.dtype).eps * jnp.maximum(jnp.max(s), jnp.finfo(s.dtype).tiny)
    free = ~held[:, None] & ~held[None]
    inner = jnp.where(free, product(V.T, product(H, V)), jnp.eye(len(s), dtype=s.dtype))
    inverse = jnp.where(free, jnp.linalg.inv(inner), 0.0)
    along = product(V, product(inverse, V.T))
    onto = product(V * jnp.where(held, 1.0 / jnp.where(held, s, 1.0), 0.0)[None], product(V.T, A.T))
    return along, onto - product(along, product(H, onto))
