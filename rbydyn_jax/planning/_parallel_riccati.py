r"""The values of all steps of a linear-quadratic problem at once, by an associative scan.

[Sarkka, Garcia-Fernandez 2023] The least cost of some steps as a function of the state x before and y after them is
kept as $\max_\lambda \tfrac12 x^T J x - x^T \eta - \tfrac12 \lambda^T C \lambda - \lambda^T (y - A x - b)$: that of
more steps follows from those of fewer, in any order. A sweep takes a factor of n rows at each step; here it takes some
2 log2 N turns with matrices of 2n rows, which pay only where they run beside each other.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..xla.triangular import lower_inverse
from ._ik_problem import product


class _Span(NamedTuple):
    """The least cost of some steps, as the module says."""

    A: Float[Array, "2n 2n"]
    b: Float[Array, "2n"]
    C: Float[Array, "2n 2n"]
    eta: Float[Array, "2n"]
    J: Float[Array, "2n 2n"]


def values(
    F: Float[Array, "N 2n 2n"],
    B: Float[Array, "N 2n n"],
    speed: Float[Array, "N n n"],
    both: Float[Array, "N n 2n+1"],
    state: Float[Array, "N 2n 2n+1"],
    end: Float[Array, "2n 2n+1"],
) -> Float[Array, "N 2n 2n+1"]:
    """The value after each step by (dq, dv) and (dq, dv, 1), without limits.

    Args:
        F: State after the step by the state before, (dq, dv).
        B: And by the velocity after the step, which is chosen.
        speed: The cost by this velocity; positive definite.
        both: By this velocity and (dq, dv, 1).
        state: By (dq, dv) and (dq, dv, 1).
        end: The value after the last step.
    """
    n = speed.shape[1]
    steps = jax.vmap(_of_step)(F, B, speed, both, state)
    none = jnp.zeros((2 * n, 2 * n), end.dtype)
    last = _Span(none, none[0], none, -end[:, 2 * n], end[:, : 2 * n])
    spans = jax.tree.map(lambda x, y: jnp.concatenate([x[1:], y[None]]), steps, last)
    found = jax.lax.associative_scan(lambda later, earlier: jax.vmap(_joined)(earlier, later), spans, reverse=True)
    return jnp.concatenate([found.J, -found.eta[:, :, None]], axis=2)


def _of_step(F: Array, B: Array, speed: Array, both: Array, state: Array) -> _Span:
    """The step with the best velocity between two states."""
    size = len(B)
    inverse = lower_inverse(jax.lax.linalg.cholesky(speed, symmetrize_input=False))
    crossed, G = product(inverse, both), product(inverse, B.T)
    steered, value = product(G.T, crossed), state - product(crossed[:, :size].T, crossed)
    return _Span(
        A=F - steered[:, :size],
        b=-steered[:, size],
        C=product(G.T, G),
        eta=-value[:, size],
        J=value[:, :size],
    )


def _joined(first: _Span, then: _Span) -> _Span:
    """Two spans, one after the other."""
    size = len(first.b)
    through = jnp.eye(size, dtype=first.b.dtype) + product(first.C, then.J)
    known = [first.A, (first.b + product(first.C, then.eta))[:, None], first.C]
    solved = jnp.linalg.solve(through, jnp.concatenate(known, axis=1))
    A, b, C = solved[:, :size], solved[:, size], solved[:, size + 1 :]
    back = jnp.linalg.solve(through.T, jnp.stack([then.eta - product(then.J, first.b)], axis=1))[:, 0]
    return _Span(
        A=product(then.A, A),
        b=product(then.A, b) + then.b,
        C=_symmetric(product(product(then.A, C), then.A.T)) + then.C,
        eta=product(first.A.T, back) + first.eta,
        J=_symmetric(product(product(first.A.T, then.J), A)) + first.J,
    )


def _symmetric(x: Array) -> Array:
    return 0.5 * (x + x.T)
