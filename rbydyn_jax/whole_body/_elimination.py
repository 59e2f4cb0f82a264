"""The solutions of linear equations as an affine space, by Householder reflections: all that satisfy them, and no more.

Equations may depend on one another. Which ones do is known only at run time, while shapes are static: an equation that
is sure to be independent takes a variable away, another one leaves a variable that is held at zero where it is not
needed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..spatial._small import binary_scale
from ..xla.control_flow import fori_loop

_DEAD = {"float64": 1e-10, "float32": 1e-4}  # a row counts as zero if less than this part of its length is left
_CONSISTENT = {"float64": 1e-7, "float32": 1e-3}


class Solutions(NamedTuple):
    """All x = offset + basis @ z; columns of the basis are orthonormal, or zero.

    Attributes:
        offset: The shortest solution.
        basis: A column for each variable that is left.
        consistent: Whether there is a solution.
        regular: Whether the equations that were sure to be independent are.
    """

    offset: Float[Array, "n"]
    basis: Float[Array, "n f"]
    consistent: Bool[Array, ""]
    regular: Bool[Array, ""]


def solutions(G: Float[Array, "e n"], g: Float[Array, "e"], sure: np.ndarray) -> Solutions:
    """The solutions of G x = g, at most as many equations as variables; `sure` (e,) tells those that are independent.

    G Q = [L 0] with Q a product of reflections I - b v v^T, in the form I - V^T T V [Golub and Van Loan 2013,
    sec. 5.1.7]. A row of which nothing is left depends on those before it.
    """
    e, n = G.shape
    dtype = G.dtype
    if not e:
        true = jnp.ones((), bool)
        return Solutions(jnp.zeros(n, dtype), jnp.eye(n, dtype=dtype), true, true)
    scale = binary_scale(G)
    G, g = G * scale, g * scale[:, 0]
    lengths = jnp.sum(G * G, axis=1)
    places, eye = np.arange(n), jnp.eye(e, dtype=dtype)
    tolerance = _DEAD[dtype.name] ** 2

    def reflect(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        left, V, T, y, live = carry
        at_k = (places == k).astype(dtype)
        row = jnp.where(jnp.pad(~live, (0, n - e), constant_values=True), left[k], 0.0)  # without those taken away
        square = jnp.sum(row * row)
        alive = square > tolerance * lengths[k]
        length = jnp.where(alive, jnp.sqrt(jnp.where(alive, square, 1.0)), 1.0)
        pivot = jnp.sum(row * at_k)
        pivot_after = jnp.where(pivot < 0.0, length, -length)
        v = jnp.where(alive, row - pivot_after * at_k, 0.0)
        beta = jnp.where(alive, 1.0 / (length * (length + jnp.abs(pivot))), 0.0)
        known = jnp.sum(jnp.where(np.arange(n)[:e] < k, left[k, :e], 0.0) * y)
        y = y.at[k].set(jnp.where(alive, (g[k] - known) / pivot_after, 0.0))
        left = left - beta * (left @ v)[:, None] * v[None]
        column = beta * (eye[k] - T @ (V @ v))
        return left, V.at[k].set(v), T.at[:, k].set(column), y, live.at[k].set(alive)

    start = (G, jnp.zeros_like(G), jnp.zeros((e, e), dtype), jnp.zeros(e, dtype), jnp.zeros(e, bool))
    _, V, T, y, live = fori_loop(0, e, reflect, start)
    spare = np.flatnonzero(~sure)
    kept = np.concatenate([spare, np.arange(e, n)])
    reflected = jnp.matmul(V.T, T, precision="highest")  # Q = I - reflected @ V
    basis = jnp.eye(n, dtype=dtype)[:, kept] - jnp.matmul(reflected, V[:, kept], precision="highest")
    free = jnp.concatenate([~live[spare], jnp.ones(n - e, bool)])
    offset = jnp.zeros(n, dtype).at[:e].set(y) - reflected @ (V[:, :e] @ y)
    lacking = jnp.abs(G @ offset - g)
    size = 1.0 + jnp.max(jnp.abs(g))
    consistent = jnp.all(lacking <= _CONSISTENT[dtype.name] * size)
    return Solutions(offset, jnp.where(free[None], basis, 0.0), consistent, jnp.all(live[np.flatnonzero(sure)]))
