"""Vectors as components, each an array of one shape: pairs and batches vectorize, nothing is stacked before the end.

The operations are bare ones where nothing is broadcast, which are traced several times faster than those of `jnp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..shapes.base import Vector
from ..xla.reciprocal import reciprocal_root
from ..xla.structural import add as plus
from ..xla.structural import mul as times
from ..xla.structural import sub as minus


def components(x: Float[Array, "*shape 3"]) -> Vector:
    """The components of vectors along the last axis."""
    return x[..., 0], x[..., 1], x[..., 2]


def where(condition: Array, x: Array | float, y: Array | float) -> Array:
    """`jnp.where` as the bare operation, which is traced and differentiated several times faster.

    One of both is an array, which has the dtype of the result.
    """
    given = x if isinstance(x, Array) else y
    shape = lax.broadcast_shapes(condition.shape, jnp.shape(x), jnp.shape(y))
    dtype = jnp.result_type(given)
    return lax.select(
        *(jnp.broadcast_to(jnp.asarray(z, t), shape) for z, t in ((condition, bool), (x, dtype), (y, dtype)))
    )


def map_components(f: Callable[..., Array], *vectors: Vector) -> Vector:
    """`f` of the components of vectors, one by one."""
    x, y, z = (f(*c) for c in zip(*vectors, strict=True))
    return x, y, z


def add(x: Vector, y: Vector) -> Vector:
    """x + y."""
    return map_components(plus, x, y)


def sub(x: Vector, y: Vector) -> Vector:
    """x - y."""
    return map_components(minus, x, y)


def add_scaled(x: Vector, scale: Array, y: Vector) -> Vector:
    """x + scale * y."""
    return map_components(lambda p, q: plus(p, times(scale, q)), x, y)


def scaled(scale: Array, x: Vector) -> Vector:
    """scale * x."""
    return map_components(lambda p: times(scale, p), x)


def dot(x: Vector, y: Vector) -> Array:
    """The scalar product."""
    return plus(plus(times(x[0], y[0]), times(x[1], y[1])), times(x[2], y[2]))


def cross(x: Vector, y: Vector) -> Vector:
    """The vector product."""

    def component(i: int, j: int) -> Array:
        return minus(times(x[i], y[j]), times(x[j], y[i]))

    return component(1, 2), component(2, 0), component(0, 1)


def norm(x: Vector) -> Array:
    """The Euclidean norm; its derivative at zero is not finite."""
    return jnp.sqrt(dot(x, x))


def safe_norm(x: Vector) -> Array:
    """The Euclidean norm, with the derivative zero at zero."""
    square = dot(x, x)
    usable = square > _smallest_square(square)
    length = square * reciprocal_root(where(usable, square, jnp.ones_like(square)))
    return where(usable, length, jnp.zeros_like(square))


def perpendicular(x: Vector, axis: Vector) -> Vector:
    """The part of x that is perpendicular to a unit vector."""
    return add_scaled(x, -dot(x, axis), axis)


def direction(x: Vector, scale: Array) -> Vector:
    """x / |x|, or zero where |x|^2, relative to the `scale` of its terms, is rounding error.

    Where it is so small that its derivative would be little but rounding error, it counts as constant.
    """
    square = dot(x, x)
    usable = square > jnp.maximum(rounding(square) ** 2 * scale, _smallest_square(square))
    per_length = reciprocal_root(where(usable, square, jnp.ones_like(square)))
    smooth = square > rounding(square) * scale

    def component(p: Array) -> Array:
        n = where(usable, times(p, per_length), jnp.zeros_like(p))
        return where(smooth, n, lax.stop_gradient(n))

    return map_components(component, x)


def any_perpendicular(x: Vector) -> Vector:
    """A unit vector that is perpendicular to the unit vector x."""
    a, b, c = x
    k = (abs(a) > abs(c)).astype(a.dtype)
    return direction((-k * b, k * a - (1 - k) * c, (1 - k) * b), jnp.ones_like(a))


def otherwise(x: Vector, y: Vector) -> Vector:
    """x, or y where x is zero."""
    is_zero = (x[0] == 0) & (x[1] == 0) & (x[2] == 0)
    return map_components(lambda p, q: where(is_zero, q, p), x, y)


def combined(weights: Sequence[Array], vectors: Sequence[Vector]) -> Vector:
    """The sum of vectors with weights."""
    total = scaled(weights[0], vectors[0])
    for weight, x in zip(weights[1:], vectors[1:], strict=True):
        total = add_scaled(total, weight, x)
    return total


def larger(x: Array, y: Array) -> Array:
    """The maximum; the derivative of `jnp.maximum` compares it with x, which XLA may have rounded otherwise."""
    return where(x > y, x, y)


def clamped(x: Array, bound: Array | float) -> Array:
    """x between -bound and bound."""
    bound = jnp.asarray(bound, x.dtype)
    return lax.clamp(-bound, x, bound)


def constant_where(small: Array, x: Array) -> Array:
    """x, with the derivative zero where it is `small`."""
    return where(small, lax.stop_gradient(x), x)


def rounding(x: Array) -> float:
    """What counts as rounding error beside 1. Its root is where derivatives begin to lose half of their digits."""
    return 64.0 * float(jnp.finfo(x.dtype).eps)


def tiny(x: Array) -> float:
    """The smallest normal number: a smaller square is zero to rounding."""
    return float(jnp.finfo(x.dtype).tiny)


def _smallest_square(x: Array) -> float:
    """Of a smaller square the derivative of 1 / sqrt is not finite."""
    return float(jnp.finfo(x.dtype).max) ** (-2 / 3)
