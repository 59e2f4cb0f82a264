"""1 / x without a division.

XLA takes a division for so expensive that it puts each into a loop of its own, with all that leads to it, and cuts the
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
    return on_cpu(x, _iterated, _divided, _slope)
