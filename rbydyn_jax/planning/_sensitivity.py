r"""Derivatives of the solution of a trajectory problem, by the implicit function theorem.

With the multipliers $\nu$ of the limits and $\mu$ of the goals at an instant, a solution x of the problem with the data
$\theta$ is a stationary point of $L = c + \nu^T g + \mu^T e$, and the active limits g and the errors e of the goals are
zero. That they stay so is the linear system [Fiacco 1976; Nocedal and Wright 2006, section 12.4]

$$\begin{bmatrix} \nabla^2_{xx} L & A^T \\ A & 0 \end{bmatrix} \begin{bmatrix} dx \\ d\nu \end{bmatrix} =
-\begin{bmatrix} \nabla^2_{x\theta} L \\ \partial_\theta (g, e) \end{bmatrix} d\theta .$$

The search stops short of the stationary point. Newton's method for its augmented Lagrangian, with all second
derivatives, leads there first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from .._errors import RbydynError
from ._newton import Multipliers, Transcription
from ._search import search
from ._seeds import product
from .problem import TrajectoryProblem

_STEPS = 100
_PENALTY, _LARGEST_PENALTY = 1e3, {"float64": 1e6, "float32": 1e3}
_STIFFER = 10.0  # the penalty, after each update of the multipliers
_SMALL = {"float64": 1e-8, "float32": 1e-3}  # a gradient, relative to that of the cost, and a violation
_ROUNDING = 16.0  # of the augmented Lagrangian, in units of the machine epsilon
_SHORTER = 0.3  # the step, where it made the augmented Lagrangian larger
_RANK = 1e3  # times rounding: smaller eigenvalues are zero
_NEAR = 0.3  # distance from where the search ended, relative to the motion


class Solution(NamedTuple):
    """What the search found.

    Args:
        coefficients: Of the motion.
        duration: Of the motion.
        first: The coefficients from which the search started.
        first_duration: The duration from which it started.
        x: The unknowns.
        scale: The guess of the duration and the weight of its square; None if the duration is given.
        dual: Multipliers of the limits.
        tight: Margins of the limits.
        converged: Whether the limits are kept.
        report: The largest violation of each kind.
        costs: History.
        infeasibilities: History.
        attempt: Counted from 0.
        steps: Of all attempts.
    """

    coefficients: Float[Array, "k m"]
    duration: Float[Array, ""]
    first: Float[Array, "k m"]
    first_duration: Float[Array, ""]
    x: Float[Array, "x"]
    scale: tuple[Array, Array] | None
    dual: Multipliers
    tight: Multipliers
    converged: Bool[Array, ""]
    report: dict[str, Array]
    costs: Float[Array, "i"]
    infeasibilities: Float[Array, "i"]
    attempt: Int[Array, ""]
    steps: Int[Array, ""]


@jax.custom_jvp
def solution(problem: TrajectoryProblem) -> Solution:
    """The end of the search; its coefficients and duration have derivatives, all else counts as constant."""
    todo, first, end = search(problem)
    return Solution(
        coefficients=todo.coefficients(end.best),
        duration=todo.duration(end.best),
        first=todo.coefficients(first),
        first_duration=todo.duration(first),
        x=end.best,
        scale=(todo.guess, todo.short) if todo.free else None,
        dual=end.dual,
        tight=end.tight,
        converged=end.converged,
        report=end.report,
        costs=end.costs,
        infeasibilities=end.infeasibilities,
        attempt=end.attempt,
        steps=end.total,
    )


@solution.defjvp
def _solution_jvp(
    primals: tuple[TrajectoryProblem], tangents: tuple[TrajectoryProblem]
) -> tuple[Solution, Solution]:
    (problem,), (d_problem,) = primals, tangents
    data, rest = eqx.partition(problem, eqx.is_inexact_array)
    data = _once(data)
    problem = eqx.combine(data, rest)
    found = solution(problem)
    at = _optimum(problem, found)

    def conditions(data: TrajectoryProblem) -> tuple[Array, Array]:
        return _Conditions(eqx.combine(data, rest), found)(at.x, at.shift, at.penalty)[1:]

    d_data = eqx.filter(d_problem, jax.tree.map(eqx.is_inexact_array, problem))
    uneven, beyond = jax.jvp(conditions, (data,), (d_data,))[1]
    dx = -(product(at.along, uneven) + product(at.onto, beyond))
    count = found.coefficients.size
    given = d_problem.duration
    zeros = jax.tree.map(_no_tangent, found)
    return found, zeros._replace(
        coefficients=dx[:count].reshape(found.coefficients.shape),
        duration=found.duration * dx[-1] if given is None else given,
    )


def _no_tangent(x: Array) -> Array | np.ndarray:
    return jnp.zeros_like(x) if jnp.issubdtype(x.dtype, jnp.floating) else np.zeros(x.shape, jax.dtypes.float0)


@jax.custom_jvp
def _once(data: Any) -> Any:
    """The data of a derivative, which cannot be differentiated again."""
    return data


@_once.defjvp
def _once_jvp(primals: Any, tangents: Any) -> Any:
    raise RbydynError("solve_trajectory has first derivatives only")


class _Conditions:
    """The augmented Lagrangian of a problem at the end of its search, goals included, and what is zero at its optimum.

    The rows are new multipliers, of limits and of goals: their derivatives are `penalty` times those of what is active.
    """

    def __init__(self, problem: TrajectoryProblem, found: Solution) -> None:
        self.todo = Transcription(problem, problem.q_start[np.array(problem.moving.q)])
        if found.scale is not None:  # that of the search, which went from another end
            self.todo.guess, self.todo.short = found.scale
        self.found = found

    def merit(self, x: Array, shift: Array, penalty: Array) -> tuple[Array, Array]:
        """The augmented Lagrangian with the multipliers `shift`, and the rows."""
        flat, tree = ravel_pytree(self.found.dual)
        at = self.todo.plain(x)
        new = self.todo.updated(at, tree(shift[: len(flat)]), self.found.tight, penalty)
        rows = jnp.concatenate([ravel_pytree(new)[0], shift[len(flat) :] + penalty * at.error])
        return self.todo.cost(x, at) + 0.5 * jnp.sum(rows * rows) / penalty, rows

    def __call__(self, x: Array, shift: Array, penalty: Array) -> tuple[Array, Array, Array]:
        """The augmented Lagrangian, its gradient, and the rows."""
        (value, rows), gradient = jax.value_and_grad(self.merit, has_aux=True)(x, shift, penalty)
        return value, gradient, rows


class _Point(NamedTuple):
    """The augmented Lagrangian at a point, the rows, and the derivatives of its gradient and of the rows."""

    x: Float[Array, "x"]
    value: Float[Array, ""]
    gradient: Float[Array, "x"]
    rows: Float[Array, "r"]
    curvature: Float[Array, "x x"]
    slope: Float[Array, "r x"]


class _State(NamedTuple):
    at: _Point
    candidate: Float[Array, "x"]
    length: Float[Array, ""]
    shift: Float[Array, "r"]
    penalty: Float[Array, ""]
    steps: Int[Array, ""]
    done: Bool[Array, ""]


class _Optimum(NamedTuple):
    """The stationary point, and minus the maps of changes of the gradient and of the rows to those of the point.

    The maps are NaN where there is none near the end of the search.
    """

    x: Float[Array, "x"]
    shift: Float[Array, "r"]
    penalty: Float[Array, ""]
    along: Float[Array, "x x"]
    onto: Float[Array, "x r"]


def _optimum(problem: TrajectoryProblem, found: Solution) -> _Optimum:
    """Newton's method for the augmented Lagrangian, whose multipliers are renewed where its gradient vanishes."""
    dtype = found.x.dtype
    small, stiffest = _SMALL[dtype.name], _LARGEST_PENALTY[dtype.name]
    conditions = _Conditions(problem, found)
    dual = ravel_pytree(found.dual)[0]
    shift = jnp.concatenate([dual, jnp.zeros_like(jax.eval_shape(conditions.todo.plain, found.x).error)])

    def evaluated(x: Array, shift: Array, penalty: Array) -> _Point:
        def twice(x: Array) -> tuple[Any, Any]:
            value, gradient, rows = conditions(x, shift, penalty)
            return (gradient, rows), (value, gradient, rows)

        derivatives, values = jax.jacfwd(twice, has_aux=True)(x)
        return _Point(x, *values, *derivatives)

    def advance(s: _State) -> _State:
        new = evaluated(s.candidate, s.shift, s.penalty)
        rounding = _ROUNDING * jnp.finfo(dtype).eps * jnp.abs(new.value)
        accepted = new.value <= s.at.value + rounding
        at = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, s.at)
        length = jnp.where(accepted, 1.0, _SHORTER * s.length)
        size = 1.0 + jnp.max(jnp.abs(product(at.slope.T, at.rows))) / s.penalty  # of the gradient of the cost
        calm = jnp.max(jnp.abs(at.gradient)) <= small * size
        done = calm & (jnp.max(jnp.abs(at.rows - s.shift)) <= small * s.penalty)
        w, V = jnp.linalg.eigh(at.curvature)
        step = product(V, product(V.T, at.gradient) / jnp.maximum(jnp.abs(w), jnp.finfo(dtype).tiny))
        return _State(
            at=at._replace(value=jnp.where(calm, jnp.inf, at.value)),  # that of the old multipliers
            candidate=jnp.where(calm, at.x, at.x - length * step),
            length=length,
            shift=jnp.where(calm & ~done, at.rows, s.shift),
            penalty=jnp.where(calm & ~done, jnp.minimum(_STIFFER * s.penalty, stiffest), s.penalty),
            steps=s.steps + 1,
            done=done,
        )

    penalty, one = jnp.asarray(_PENALTY, dtype), jnp.ones((), dtype)
    shapes = jax.eval_shape(evaluated, found.x, shift, penalty)
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)._replace(value=jnp.inf * one)
    start = _State(nothing, found.x, one, shift, penalty, jnp.zeros((), int), jnp.zeros((), bool))
    end = jax.lax.while_loop(lambda s: found.converged & ~s.done & (s.steps < _STEPS), advance, start)
    x = end.at.x
    near = jnp.linalg.norm(x - found.x) <= _NEAR * (1.0 + jnp.linalg.norm(found.x))
    along, onto = _maps(end.at.curvature, end.at.slope / end.penalty)
    known = jnp.where(end.done & near, 1.0, jnp.nan).astype(dtype)
    return _Optimum(x, end.shift, end.penalty, known * along, known * onto / end.penalty)


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
