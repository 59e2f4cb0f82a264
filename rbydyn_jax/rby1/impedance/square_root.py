"""The square root of a symmetric positive semidefinite matrix, differentiable at repeated eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._check import check_array
from ..._errors import ShapeError
from ...spatial.safe import safe_divide, safe_sqrt
from ...xla.transpose import LinearMap, apply_linear


def square_root(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""The symmetric positive semidefinite $S$ with $S S = A$.

    By the eigenvalues of A, O(n^3). Its derivative is the solution of $S\, dS + dS\, S = dA$, which in the basis of the
    eigenvectors divides by $\sqrt{\lambda_i} + \sqrt{\lambda_j}$ [Higham 2008, sec. 6.1]: derivatives of all orders
    are finite at repeated eigenvalues. Where both are zero the derivative is infinite, and defined as zero.

    Args:
        A: A symmetric matrix without negative eigenvalues; those that are negative by rounding count as zero.

    Raises:
        ShapeError: `A` is not square.

    Example:
        >>> from rbydyn_jax.rby1.impedance import square_root
        >>> square_root(jnp.array([[5.0, 4.0], [4.0, 5.0]])).round(12).tolist()
        [[2.0, 1.0], [1.0, 2.0]]
    """
    A = check_array(A, "A", (None, None))
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"A must be square, got shape {A.shape}")
    return _square_root(A)


def _product(*factors: Array) -> Array:
    return jnp.linalg.multi_dot(factors, precision=jax.lax.Precision.HIGHEST)


@jax.custom_jvp
def _square_root(A: Array) -> Array:
    values, vectors = jnp.linalg.eigh(A)
    return _product(vectors * safe_sqrt(jnp.maximum(values, 0.0))[None], vectors.T)


@_square_root.defjvp
def _square_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    S, dA = _square_root(*primals), tangents[0]
    return S, _solve_sylvester(S, 0.5 * (dA + dA.T))


def _solve_sylvester(S: Array, C: Array) -> Array:
    """X of S X + X S = C, for a symmetric positive semidefinite S, linear in C in every mode of differentiation."""
    return apply_linear(_Sylvester(), (S,), (C,), [C.shape])[0]


@dataclass(frozen=True)
class _Sylvester(LinearMap):
    """C to X; its own transpose."""

    def apply(self, parameters: tuple, arguments: tuple) -> tuple:
        return (_plain_solve(*parameters, *arguments),)

    def transpose(self) -> LinearMap:
        return self


@jax.custom_jvp
def _plain_solve(S: Array, C: Array) -> Array:
    values, vectors = jnp.linalg.eigh(S)
    sums = jnp.maximum(values[:, None] + values[None, :], 0.0)
    return _product(vectors, safe_divide(_product(vectors.T, C, vectors), sums), vectors.T)


@_plain_solve.defjvp
def _plain_solve_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    S, C = primals
    dS, dC = tangents
    X = _plain_solve(S, C)
    return X, _solve_sylvester(S, dC - _product(dS, X) - _product(X, dS))
