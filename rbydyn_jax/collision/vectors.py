"""Vectors as components, each an array of one shape: pairs and batches vectorise, nothing is stacked before the end."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..shapes.base import Vector


def components(x: Float[Array, "*shape 3"]) -> Vector:
    """The components of vectors along the last axis."""
    return x[..., 0], x[..., 1], x[..., 2]


def map_components(f: Callable[..., Array], *vectors: Vector) -> Vector:
    """`f` of the components of vectors, one by one."""
    x, y, z = (f(*c) for c in zip(*vectors, strict=True))
    return x, y, z


def sub(x: Vector, y: Vector) -> Vector:
    """x - y."""
    return map_components(lambda p, q: p - q, x, y)


def add_scaled(x: Vector, scale: Array, y: Vector) -> Vector:
    """x + scale * y."""
    return map_components(lambda p, q: p + scale * q, x, y)


def dot(x: Vector, y: Vector) -> Array:
    """The scalar product."""
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def cross(x: Vector, y: Vector) -> Vector:
    """The vector product."""
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


def norm(x: Vector) -> Array:
    """The Euclidean norm; its derivative at zero is not finite."""
    return jnp.sqrt(dot(x, x))


def tiny(x: Array) -> float:
    """The smallest normal number: a smaller square is zero to rounding."""
    return float(jnp.finfo(x.dtype).tiny)
