"""The joint-space inertia matrix by the composite-rigid-body algorithm, and its inverse."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import public
from ..model.model import Model
from ._api import arguments
from ._kernels import opaque
from ._layout import batch_first
from ._traversal import Traversal, traverse
from ._world import at_origin, composite_momenta, symmetric


def _crba(run: Traversal) -> Array:
    motions, momenta = composite_momenta(run)
    return symmetric(run, momenta, motions)


@public()
def crba(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""Joint-space inertia matrix $M(q)$, symmetric and positive definite where no moving part is massless.

    Composite-rigid-body algorithm in world coordinates, $M_{ij} = S_i \cdot I^c_j S_j$ for $i$ an ancestor of $j$,
    O(n d) [Featherstone 2008, table 6.2], plus the rotors' inertia `model.armature` on the diagonal.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        M [kg m^2, kg m, kg], with a row and a column for each velocity.

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> float(crba(arm, jnp.zeros(1))[0, 0])  # m l^2
        0.5
    """
    model, q = arguments(model, q=q)
    return traverse(model, _crba, at_origin(model, q), parts=True)


def _product(a: Array, b: Array) -> Array:
    if max(*a.shape, *b.shape) > 6:
        return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
    # XLA:CPU takes several times as long for a batch of products of matrices as small as these.
    a, b = opaque((a, b))
    return opaque(functools.reduce(jax.lax.add, (a[:, k, None] * b[None, k] for k in range(len(b)))))


def inverse_by_blocks(M: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse of a symmetric positive definite matrix, by elimination of blocks, halved down to single entries.

    Nearly all of it is products of matrices: for a batch of small ones several times as fast as Cholesky factors.
    """
    n = M.shape[0]
    if n < 2:
        return 1.0 / M
    k, M = n // 2, batch_first(M)
    A, B, C = M[:k, :k], M[:k, k:], M[k:, k:]
    A_inverse = inverse_by_blocks(A)
    W = _product(A_inverse, B)
    S_inverse = inverse_by_blocks(C - _product(B.T, W))
    X = _product(W, S_inverse)
    top = jnp.concatenate([A_inverse + _product(X, W.T), -X], axis=1)
    return jnp.concatenate([top, jnp.concatenate([-X.T, S_inverse], axis=1)])


def _inverse(run: Traversal) -> Array:
    inverse = inverse_by_blocks(_crba(run))
    return 0.5 * (inverse + inverse.T)


@public()
def mass_matrix_inverse(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""The inverse $M(q)^{-1}$ of `crba`, by elimination of blocks; not finite where M is singular. O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    return traverse(model, _inverse, at_origin(model, q), parts=True)
