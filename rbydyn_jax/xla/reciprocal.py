"""1 / x and 1 / sqrt(x) without a division or a square root.

XLA takes these for so expensive that it puts each into a loop of its own, with all that leads to it, and cuts the
kernels in two. On a CPU, therefore: a first guess from the bits, and Newton's iteration.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .on_cpu import on_cpu

# For a float type: the integers of its size; what its bits are taken from for a guess that is off by a twentieth at
# most; and the steps that cube this error, before a last one that squares it and rounds.
_GUESS = {
    np.dtype(np.float32): (jnp.int32, 0x7EF311C7, 1),
    np.dtype(np.float64): (jnp.int64, 0x7FDE6238502484BA, 2),
}

# The same for the root, whose first guess is off by a thirtieth at most [Lomont 2003].
_ROOT_GUESS = {
    np.dtype(np.float32): (jnp.int32, 0x5F375A86, 1),
    np.dtype(np.float64): (jnp.int64, 0x5FE6EB50C7B537A9, 2),
}


def _divided(x: jax.Array) -> jax.Array:
    return 1.0 / x


def _iterated(x: jax.Array) -> jax.Array:
    if x.dtype not in _GUESS:
        return _divided(x)
    integer, magic, steps = _GUESS[x.dtype]
    bits = jax.lax.bitcast_convert_type(x, integer)
    y = jax.lax.bitcast_convert_type(jnp.array(magic, integer) - bits, x.dtype)
    for _ in range(steps):
        error = 1.0 - x * y
        y = y + y * (error + error * error)
    return y + y * (1.0 - x * y)


def _slope(y: jax.Array) -> jax.Array:
    return -(y * y)


def reciprocal(x: jax.Array) -> jax.Array:
    """1 / x to the last bit or two, unless that is close to the smallest numbers there are; not finite at zero."""
    return on_cpu(x, _iterated, _divided, _slope)[0]


def _one_over_root(x: jax.Array) -> jax.Array:
    return 1.0 / jnp.sqrt(x)


def _iterated_root(x: jax.Array) -> jax.Array:
    if x.dtype not in _ROOT_GUESS:
        return _one_over_root(x)
    integer, magic, steps = _ROOT_GUESS[x.dtype]
    bits = jax.lax.bitcast_convert_type(x, integer)
    y = jax.lax.bitcast_convert_type(jnp.array(magic, integer) - (bits >> 1), x.dtype)
    for _ in range(steps):
        error = 1.0 - x * y * y
        y = y + y * error * (0.5 + 0.375 * error)
    return y + 0.5 * y * (1.0 - x * y * y)


def _root_slope(y: jax.Array) -> jax.Array:
    return -0.5 * (y * y * y)


def reciprocal_root(x: jax.Array) -> jax.Array:
    """1 / sqrt(x) of positive normal numbers, to the last bit or two; not to be used at zero."""
    return on_cpu(x, _iterated_root, _one_over_root, _root_slope)[0]
