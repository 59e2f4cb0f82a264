"""The smaller and the larger of two numbers, and what is clipped, with derivatives that stay whole.

The derivative of `jnp.minimum` compares its result with its operands. XLA may compute an operand once for each of them
and round it in two ways: then neither is equal, and the derivative is lost.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array


def smaller(a: Array, b: Array | float) -> Array:
    """The smaller one; of equal ones the first."""
    return jnp.where(a <= b, a, b)


def larger(a: Array, b: Array | float) -> Array:
    """The larger one; of equal ones the first."""
    return jnp.where(a >= b, a, b)


def clipped(x: Array, low: Array | float, high: Array | float) -> Array:
    """`x` within a range."""
    return smaller(larger(x, low), high)
