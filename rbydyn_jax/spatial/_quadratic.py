r"""Small dense convex quadratic programs by an interior-point method, differentiable at their solutions.

$\min_x \frac12 x^T P x + c^T x$ subject to $A x = b$ and $F x \le h$, with Mehrotra's predictor and corrector [Nocedal
and Wright 2006, algorithm 16.4].
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..xla.control_flow import while_loop
from ._small import solve_definite

ITERATIONS = 50
_GOOD = {"float64": 1e-12, "float32": 1e-5}  # errors at which the iteration ends,
_ENOUGH = {"float64": 1e-7, "float32": 1e-3}  # and errors of what counts as a solution
_PRODUCT = {"float64": 1.0, "float32": 1e4}  # times s z in errors: where P is small, it moves x far
_SMALLEST = {"float64": 1e-9, "float32": 1e-5}  # slacks and multipliers in derivatives: smaller ones cost digits
_TO_BOUNDARY = 0.99  # share of the step to the nearest bound


class Program(NamedTuple):
    """The data of a program, scaled so that its solution is of the order of one."""

    P: Float[Array, "n n"]
    c: Float[Array, "n"]
    A: Float[Array, "e n"]
    b: Float[Array, "e"]
    F: Float[Array, "m n"]
    h: Float[Array, "m"]


class Point(NamedTuple):
    """An iterate: variables, multipliers of equations and of inequalities, and slacks of the latter."""

    x: Float[Array, "n"]
    y: Float[Array, "e"]
    z: Float[Array, "m"]
    s: Float[Array, "m"]


def error(program: Program, point: Point) -> Float[Array, ""]:
    """The largest residual of the conditions of optimality."""
    gap = _PRODUCT[program.c.dtype.name] * jnp.mean(point.s * point.z)
    residuals = [*_residuals(program, point), gap[None]]
    return jnp.stack([jnp.max(jnp.abs(r), initial=0.0) for r in residuals]).max()


def solved(program: Program, point: Point) -> Bool[Array, ""]:
    """Whether a point is a solution."""
    return error(program, point) <= _ENOUGH[program.c.dtype.name]


@jax.custom_jvp
def solve(program: Program) -> Point:
    """The best iterate: no solution if `solved` is false: the program has none, or is unbounded."""
    dtype = program.c.dtype
    slack = jnp.maximum(program.h, 1.0)
    start = Point(jnp.zeros_like(program.c), jnp.zeros_like(program.b), 1.0 / slack, slack)  # centred

    def unsolved(carry: tuple[Point, Array, Point, Array]) -> Array:
        _, count, _, least = carry
        return (count < ITERATIONS) & (least > _GOOD[dtype.name])

    def step(carry: tuple[Point, Array, Point, Array]) -> tuple[Point, Array, Point, Array]:
        point, count, best, least = carry
        point = _step(program, point)
        now = error(program, point)
        better = now < least  # not for NaN
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), point, best)
        return point, jnp.where(jnp.isfinite(now), count + 1, ITERATIONS), best, jnp.where(better, now, least)

    return while_loop(unsolved, step, (start, jnp.zeros((), int), start, error(program, start)))[2]


@solve.defjvp
def _solve_jvp(primals: tuple[Program], tangents: tuple[Program]) -> tuple[Point, Point]:
    """The implicit function theorem for the conditions of optimality."""
    (program,), (d_program,) = primals, tangents
    point = solve(program)
    _, change = jax.jvp(lambda data: _residuals(data, point), (program,), (d_program,))
    z, s = (jnp.maximum(x, _SMALLEST[x.dtype.name]) for x in (point.z, point.s))
    return point, _newton(program, point._replace(z=z, s=s), change, jnp.zeros_like(s))


def _residuals(program: Program, point: Point) -> tuple[Array, Array, Array]:
    P, c, A, b, F, h = program
    x, y, z, s = point
    return P @ x + c + A.T @ y + F.T @ z, A @ x - b, F @ x + s - h


def _newton(program: Program, point: Point, residuals: tuple[Array, Array, Array], product: Array) -> Point:
    """The step that takes the residuals to zero, and changes s z by `product`."""
    P, _, A, _, F, _ = program
    dual, equal, unequal = residuals
    weight = point.z / point.s
    n, e = P.shape[0], A.shape[0]
    small = jnp.finfo(P.dtype).eps
    top = jnp.concatenate([P + F.T @ (weight[:, None] * F), A.T], axis=1)
    bottom = jnp.concatenate([A, -small * jnp.eye(e, dtype=P.dtype)], axis=1)  # rows may depend on one another
    right = jnp.concatenate([-dual - F.T @ (product / point.s + weight * unequal), -equal])
    matrix = jnp.concatenate([top, bottom])
    step = jax.lax.custom_linear_solve(
        lambda x: matrix @ x, right, lambda _, b: solve_definite(matrix, b), symmetric=True
    )
    dx, dy = step[:n], step[n:]
    ds = -unequal - F @ dx
    return Point(dx, dy, (product - point.z * ds) / point.s, ds)


def _step(program: Program, point: Point) -> Point:
    residuals, product = _residuals(program, point), point.s * point.z
    gap = jnp.mean(product)
    predicted = _newton(program, point, residuals, -product)
    after = _moved(point, predicted, _length(point, predicted))
    centering = (jnp.mean(after.s * after.z) / gap) ** 3
    corrected = _newton(program, point, residuals, centering * gap - product - predicted.s * predicted.z)
    return _moved(point, corrected, _TO_BOUNDARY * _length(point, corrected))


def _length(point: Point, step: Point) -> Array:
    values, changes = jnp.concatenate([point.s, point.z]), jnp.concatenate([step.s, step.z])
    falls = changes < 0.0
    return jnp.min(jnp.where(falls, -values / jnp.where(falls, changes, -1.0), 1.0), initial=1.0)


def _moved(point: Point, step: Point, length: Array) -> Point:
    return jax.tree.map(lambda x, dx: x + length * dx, point, step)
