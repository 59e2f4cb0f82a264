"""1 / x without a division.

XLA takes a division for so expensive that it puts each into a loop of its own, with all that leads to it, and cuts the
kernels in two. On a CPU, therefore: a first guess from the bits, and Newton's iteration.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# For a float type: the integers of its size; what its bits are taken from for a guess that is off by a twentieth at
# most; and the steps that cube this error, before a last one that squares it and rounds.
_GUESS = {
    np.dtype(np.float32): (jnp.int32, 0x7EF311C7, 1),
    np.dtype(np.float64): (jnp.int64, 0x7FDE6238502484BA, 2),
}

_reciprocal_p = Primitive("rbydyn_reciprocal")


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


def _jvp(primals: tuple, tangents: tuple) -> tuple:
    y = reciprocal(primals[0])
    return y, tangents[0] if type(tangents[0]) is ad.Zero else -(y * y) * tangents[0]


_reciprocal_p.def_impl(_divided)
_reciprocal_p.def_abstract_eval(lambda x: x.update(weak_type=False))
batching.defvectorized(_reciprocal_p)
ad.primitive_jvps[_reciprocal_p] = _jvp
mlir.register_lowering(_reciprocal_p, mlir.lower_fun(_divided, multiple_results=False))
mlir.register_lowering(_reciprocal_p, mlir.lower_fun(_iterated, multiple_results=False), platform="cpu")


def reciprocal(x: jax.Array) -> jax.Array:
    """1 / x to the last bit or two, unless that is close to the smallest numbers there are; not finite at zero."""
    return _reciprocal_p.bind(x)
