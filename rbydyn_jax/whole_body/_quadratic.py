r"""Convex quadratic programs with two-sided rows, for batches: $\min_x \frac12 x^T P x + c^T x$, $l \le F x \le u$.

Mehrotra's predictor and corrector [Nocedal and Wright 2006, algorithm 16.4]. There are no equations: the caller has
eliminated them, so that a step is the inverse of one small definite matrix, all products of matrices. A bound may be
infinite. Differentiable at the solution by the implicit function theorem.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..sweeps.block_matrix import inverse_by_blocks
from ..xla.control_flow import while_loop
from ..xla.transpose import no_tangent, rule_of

ITERATIONS = 50
_GOOD = {"float64": 1e-12, "float32": 1e-6}  # errors at which the iteration ends,
_ENOUGH = {"float64": 1e-8, "float32": 2e-4}  # and errors of what counts as a solution
_SMALLEST = {"float64": 1e-9, "float32": 1e-5}  # slacks and multipliers in derivatives: smaller ones cost digits
_GIVE = {"float64": 1e-6, "float32": 1e-3}  # how far a row gives way to a change of its multiplier: limits weights
_REFINEMENTS = 3  # of derivatives
_TO_BOUNDARY = 0.995  # share of the step to the nearest bound
_PRODUCT = 1e3  # times s z in errors: of a limit that just becomes active s and z are both about its root
_FAR = 1e5  # a program without a solution nearer than this has none

_product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


class Program(NamedTuple):
    """The data of a program, scaled so that its solution is of the order of one; rows are of length one."""

    P: Float[Array, "n n"]
    c: Float[Array, "n"]
    F: Float[Array, "m n"]
    lower: Float[Array, "m"]
    upper: Float[Array, "m"]


class Point(NamedTuple):
    """An iterate: variables, and the multipliers and slacks of lower and of upper bounds."""

    x: Float[Array, "n"]
    z: Float[Array, "2 m"]
    s: Float[Array, "2 m"]


class Residuals(NamedTuple):
    """What an iterate lacks: of the gradient that is to vanish, and of the slacks."""

    dual: Float[Array, "n"]
    slack: Float[Array, "2 m"]


class Solution(NamedTuple):
    """The best iterate, whether it is the optimum, whether there is certainly none, and the number of iterations."""

    point: Point
    optimal: Bool[Array, ""]
    infeasible: Bool[Array, ""]
    iterations: Int[Array, ""]


class _Search(NamedTuple):
    point: Point
    residuals: Residuals
    best: Point
    least: Float[Array, ""]
    count: Int[Array, ""]
    infeasible: Bool[Array, ""]


def solve(program: Program) -> Solution:
    """The optimum of a program, if it has one; `infeasible` is proved by multipliers [Farkas' lemma]."""
    point, least, infeasible, count = _solve(program)
    return Solution(point, least <= _ENOUGH[program.c.dtype.name], infeasible, count)


@jax.custom_jvp
def _solve(program: Program) -> tuple[Point, Array, Array, Array]:
    dtype = program.c.dtype

    def unsolved(search: _Search) -> Array:
        return (search.count < ITERATIONS) & (search.least > _GOOD[dtype.name]) & ~search.infeasible

    def step(search: _Search) -> _Search:
        point = _step(program, search.point, search.residuals)
        residuals = _residuals(program, point)
        error = _error(point, residuals)
        better = error < search.least  # not for NaN
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), point, search.best)
        count = jnp.where(jnp.isfinite(error), search.count + 1, ITERATIONS)
        infeasible = _impossible(program, point, residuals) & jnp.isfinite(error)
        return _Search(point, residuals, best, jnp.where(better, error, search.least), count, infeasible)

    start = _start(program)
    residuals = _residuals(program, start)
    least, count = _error(start, residuals), jnp.zeros((), jnp.int32)
    first = _Search(start, residuals, start, least, count, jnp.zeros((), bool))
    found = while_loop(unsolved, step, first)
    return found.best, found.least, found.infeasible, found.count


@rule_of(_solve)
def _solve_jvp(primals: tuple[Program], tangents: tuple[Program]) -> Any:
    """The implicit function theorem for the conditions of optimality."""
    (program,), (change,) = primals, tangents
    found = _solve(program)
    point, least, infeasible, count = found
    z, s = (jnp.maximum(x, _SMALLEST[x.dtype.name]) for x in (point.z, point.s))
    bounded = _bounded(program)
    near = Point(point.x, jnp.where(bounded, z, 0.0), jnp.where(bounded, s, 1.0))
    P, c, F, lower, upper = change
    dual = _product(P, point.x) + c - _product(point.z[0] - point.z[1], F)
    moved = _product(F, point.x)
    unequal = jnp.where(bounded, jnp.stack([moved - lower, upper - moved]), 0.0)
    along = _linear(program, near, Residuals(dual, unequal))
    return found, (along, *map(no_tangent, (least, infeasible, count)))


def _bounded(program: Program) -> Bool[Array, "2 m"]:
    return ~jnp.isinf(jnp.stack([program.lower, program.upper]))  # NaN is a bound, and no x is within it


def _room(program: Program, x: Array) -> Float[Array, "2 m"]:
    """How far from its bounds each row is, 1 where there is none."""
    value = _product(program.F, x)
    return jnp.where(_bounded(program), jnp.stack([value - program.lower, program.upper - value]), 1.0)


def _start(program: Program) -> Point:
    x = jnp.zeros_like(program.c)
    s = jnp.maximum(_room(program, x), 1.0)
    return Point(x, jnp.where(_bounded(program), 1.0 / s, 0.0), s)


def _residuals(program: Program, point: Point) -> Residuals:
    dual = _product(program.P, point.x) + program.c - _product(point.z[0] - point.z[1], program.F)
    return Residuals(dual, _room(program, point.x) - point.s)


def _error(point: Point, residuals: Residuals) -> Array:
    """The largest residual of the conditions of optimality."""
    gap = _PRODUCT * jnp.max(point.s * point.z, initial=0.0)
    return jnp.maximum(jnp.maximum(_largest(residuals.dual), _largest(residuals.slack)), gap)


def _largest(x: Array) -> Array:
    return jnp.max(jnp.abs(x), initial=0.0)


def _impossible(program: Program, point: Point, residuals: Residuals) -> Array:
    """Whether a sum of rows that vanishes has to be positive: then no x near enough satisfies all of them."""
    bounds = jnp.where(_bounded(program), jnp.stack([program.lower, -program.upper]), 0.0)
    total = _product(program.P, point.x) + program.c - residuals.dual
    return jnp.sum(bounds * point.z) > _FAR * jnp.sum(jnp.abs(total))


def _inverse(program: Program, point: Point) -> Float[Array, "n n"]:
    weight = jnp.sum(point.z / _stiffened(point), axis=0)
    return inverse_by_blocks(program.P + _product(program.F.T, weight[:, None] * program.F))


def _stiffened(point: Point) -> Float[Array, "2 m"]:
    """Slacks with a share of the multipliers: a proximal step, whose matrix is never worse than the program's own."""
    return point.s + _GIVE[point.s.dtype.name] * point.z


def _newton(program: Program, point: Point, inverse: Array, residuals: Residuals, product: Array) -> Point:
    """The step that takes the residuals to zero, and changes s z by `product`; rows give way a little."""
    P, _, F, _, _ = program
    slack = _stiffened(point)
    ratio = point.z / slack
    pull = product / slack - ratio * residuals.slack
    right = -residuals.dual + _product(pull[0] - pull[1], F)
    rough = _product(inverse, right)
    again = right - _product(P, rough) - _product(jnp.sum(ratio, axis=0) * _product(F, rough), F)
    dx = rough + _product(inverse, again)
    moved = _product(F, dx)
    along = jnp.stack([moved, -moved])
    dz = pull - ratio * along
    return Point(dx, dz, jnp.where(_bounded(program), along + residuals.slack + _GIVE[dz.dtype.name] * dz, 0.0))


def _linear(program: Program, point: Point, residuals: Residuals) -> Point:
    """The step that takes the residuals to zero, in which no row gives way: each refinement takes away what did."""
    inverse, none = _inverse(program, point), jnp.zeros_like(point.s)
    step = _newton(program, point, inverse, residuals, none)
    for _ in range(_REFINEMENTS):
        moved = _product(program.F, step.x)
        along = jnp.stack([moved, -moved])
        dual = residuals.dual + _product(program.P, step.x) - _product(step.z[0] - step.z[1], program.F)
        slack = jnp.where(_bounded(program), residuals.slack + along - step.s, 0.0)
        rest = _newton(program, point, inverse, Residuals(dual, slack), none)
        step = jax.tree.map(jnp.add, step, rest)
    return step


def _step(program: Program, point: Point, residuals: Residuals) -> Point:
    bounded = _bounded(program)
    number = jnp.maximum(jnp.sum(bounded, dtype=point.s.dtype), 1.0)
    product = point.s * point.z
    gap = jnp.sum(product) / number
    inverse = _inverse(program, point)
    predicted = _newton(program, point, inverse, residuals, -product)
    after = _moved(point, predicted, _length(point, predicted))
    smaller = jnp.sum(after.s * after.z) / number
    some = gap > 0.0
    centering = jnp.where(some, smaller / jnp.where(some, gap, 1.0), 0.0) ** 3
    wanted = jnp.where(bounded, centering * gap - product - predicted.s * predicted.z, 0.0)
    corrected = _newton(program, point, inverse, residuals, wanted)
    return _moved(point, corrected, jnp.minimum(1.0, _TO_BOUNDARY * _length(point, corrected, 2.0)))


def _length(point: Point, step: Point, longest: float = 1.0) -> Array:
    """The share of a step after which a slack or a multiplier vanishes."""
    shares = [_share(value, change, longest) for value, change in ((point.s, step.s), (point.z, step.z))]
    return jnp.minimum(*shares)


def _share(value: Array, change: Array, longest: float) -> Array:
    falls = change < 0.0
    return jnp.min(jnp.where(falls, -value / jnp.where(falls, change, -1.0), longest), initial=longest)


def _moved(point: Point, step: Point, length: Array) -> Point:
    return jax.tree.map(lambda x, dx: x + length * dx, point, step)
