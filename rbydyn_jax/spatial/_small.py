"""What the small functions of this package share: the compiling decorator and exact products of small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import ValueCheck, explained
from ..xla.control_flow import fori_loop

F = TypeVar("F", bound=Callable[..., Any])


def jitted(function: F, **values: ValueCheck) -> F:
    """Compiles a function for eager calls; an outer trace sees its operations inline.

    Args:
        function: The function.
        **values: Checks of the values of its arguments, where they are known.
    """
    return explained(function, jax.jit(function, inline=True), values=values)


def dot(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
    """Inner product of two vectors."""
    return jnp.sum(a * b)


def matvec(a: Float[Array, "m n"], x: Float[Array, " n"]) -> Float[Array, " m"]:
    """Product of a small matrix and a vector.

    Element by element: `@` may round float32 to fewer digits on a GPU, and does not fuse on a CPU.
    """
    return jnp.sum(a * x[None, :], axis=1)


def matmul(a: Float[Array, "m n"], b: Float[Array, "n k"]) -> Float[Array, "m k"]:
    """Product of two small matrices, element by element as in `matvec`."""
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


def outer(a: Float[Array, " m"], b: Float[Array, " n"]) -> Float[Array, "m n"]:
    """Outer product $a b^T$."""
    return a[:, None] * b[None, :]


def cross(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """Cross product of two vectors."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def binary_scale(x: Float[Array, "... n"]) -> Float[Array, "... 1"]:
    """Powers of two, held constant, that bring the vectors along the last axis to a length of about 1; 1 for zero.

    The squares of scaled vectors neither underflow nor overflow, and scaling by a power of two rounds nothing.
    """
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=-1, keepdims=True, initial=0.0))
    info = jnp.finfo(x.dtype)
    # Of the largest numbers the reciprocal is subnormal, which devices take as zero.
    most = -info.minexp - 1
    size = jnp.clip(jnp.where((size > 0) & (size < jnp.inf), size, 0.5), 2.0**-most, 2.0**most)
    # The bits of the exponent alone. JAX 0.12 traces programs with `frexp` or `ldexp` twice.
    bits = jax.lax.bitcast_convert_type(size, f"int{info.bits}")
    return 0.5 / jax.lax.bitcast_convert_type(bits & (-1 << info.nmant), x.dtype)


def eliminate(k: int | Array, rows: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Step k of Gauss-Jordan elimination without pivoting, which makes column k that of the identity."""
    pivot = rows[k] / rows[k, k]
    return (rows - rows[:, k, None] * pivot[None]).at[k].set(pivot)


def solve_definite(matrix: Float[Array, "n n"], right: Float[Array, "n"]) -> Float[Array, "n"]:
    """Solves a definite or quasi-definite system, by elimination without pivoting [Vanderbei 1995] and one refinement.

    For loops: LAPACK's routines for batches wait for threads of the pool that they run in, and two loops with them at
    the same time can wait forever.
    """
    if not len(right):
        return right

    def once(b: Array) -> Array:
        return fori_loop(0, len(b), eliminate, jnp.concatenate([matrix, b[:, None]], axis=1))[:, -1]

    rough = once(right)
    return rough + once(right - matrix @ rough)
