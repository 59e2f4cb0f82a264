"""Inverses of small triangular matrices, for loops whose time is spent in them.

XLA:CPU multiplies small matrices and takes their Cholesky factors as fast in a batch as one at a time, but solves with
triangular matrices several times slower than it multiplies: a product with the inverse is faster.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

_UNROLLED = 8  # rows up to which elements beat a call of LAPACK


def lower_inverse(L: jax.Array) -> jax.Array:
    """The inverse of a lower triangular matrix (n, n); what is above its diagonal is not read."""
    n = L.shape[0]
    eye = jnp.eye(n, dtype=L.dtype)
    if n > _UNROLLED:
        return jax.lax.linalg.triangular_solve(L, eye, left_side=True, lower=True)
    rows: list[jax.Array] = []
    for i in range(n):
        row = eye[i]
        for j in range(i):
            row = row - L[i, j] * rows[j]
        rows.append(row / L[i, i])
    return jnp.stack(rows) if rows else eye
