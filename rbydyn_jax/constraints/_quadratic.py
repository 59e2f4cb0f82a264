r"""Small dense convex quadratic programs by an interior-point method, differentiable at their solutions.

$\min_x \frac12 x^T P x + c^T x$ subject to $A x = b$ and $F x \le h$, with Mehrotra's predictor and corrector [Nocedal
and Wright 2006, algorithm 16.4].
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

ITERATIONS = 50
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


def tolerance(dtype: jnp.dtype) -> float:
    """Residual and duality gap at which an iterate is a solution."""
    return 1e-9 if dtype == jnp.float64 else 2e-5


def error(program: Program, point: Point) -> Float[Array, ""]:
    """The largest residual of the conditions of optimality."""
    gap = jnp.mean(point.s * point.z)
    residuals = [*_residuals(program, point), gap[None]]
    return jnp.stack([jnp.max(jnp.abs(r), initial=0.0) for r in residuals]).max()


@jax.custom_jvp
def solve(program: Program) -> Point:
    """The last iterate: a solution if `error` is at most `tolerance`, else the program has none or is unbounded."""
    dtype = program.c.dtype
    ones = jnp.ones_like(program.h)
    start = Point(jnp.zeros_like(program.c), jnp.zeros_like(program.b), ones, ones)

    def unsolved(carry: tuple[Point, Array]) -> Array:
        point, count = carry
        return (count < ITERATIONS) & (error(program, point) > tolerance(dtype))

    def step(carry: tuple[Point, Array]) -> tuple[Point, Array]:
        point, count = carry
        following = _step(program, point)
        finite = jnp.stack([jnp.isfinite(x).all() for x in following]).all()
        keep = jax.tree.map(lambda new, old: jnp.where(finite, new, old), following, point)
        return keep, jnp.where(finite, count + 1, ITERATIONS)

    return jax.lax.while_loop(unsolved, step, (start, jnp.zeros((), int)))[0]


@solve.defjvp
def _solve_jvp(primals: tuple[Program], tangents: tuple[Program]) -> tuple[Point, Point]:
    """The implicit function theorem for the conditions of optimality."""
    (program,), (d_program,) = primals, tangents
    point = solve(program)
    _, change = jax.jvp(lambda data: _residuals(data, point), (program,), (d_program,))
    return point, _newton(program, point, change, jnp.zeros_like(point.s))


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
    step = jnp.linalg.solve(jnp.concatenate([top, bottom]), right)
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
