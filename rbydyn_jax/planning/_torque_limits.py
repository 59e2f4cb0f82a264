r"""Limits of the torques in a step of the backward sweep of iLQR.

The sweep chooses velocities dv' with the Hessian $H = L L^T$ and the gradient g, and torques follow from them,
$d\tau = D_{v'} dv' + D_x x$. With $E = D_{v'} L^{-T}$, the inverse Hessian by torques is $G = E E^T$. Torques C that
are held at their limits b have the multipliers $\lambda = G_{CC}^{-1} (d\tau_C - b)$: the best velocities change by
$-L^{-T} E_C^T \lambda$, and the cost rises by $\frac12 (d\tau_C - b)^T \lambda$.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..xla.control_flow import cond, while_loop
from ..xla.triangular import lower_inverse
from ._ik_problem import product

_TOGETHER, _PASSES = 4, 32  # passes over the set of torques at their limits: with all changes at a time, and at most

Pairs = tuple[tuple[Float[Array, "k 2n"], Float[Array, "k 2n+1"]], ...]
"""Matrices whose products, the first transposed, are parts of a Hessian and gradient by (dq, dv)."""


class Limited(NamedTuple):
    """The best velocities of a step within the limits of its torques.

    Attributes:
        Y: These velocities, by (dq, dv, 1), are $-L^{-T} Y$.
        free: Torques that are at no limit.
        at_upper: Torques at their upper limit.
        linear: Predicted decrease of the cost by a share of the constant change, by the share.
        square: And by the square of the share, taken off.
    """

    Y: Float[Array, "n 2n+1"]
    free: Bool[Array, "n"]
    at_upper: Bool[Array, "n"]
    linear: Float[Array, ""]
    square: Float[Array, ""]


def summed(pairs: Pairs) -> Float[Array, "2n 2n+1"]:
    """The sum of the products of pairs, as one product."""
    left, right = (jnp.concatenate(x) for x in zip(*pairs, strict=True))
    return product(left.T, right)


def limited(
    pairs: Pairs,
    D: Float[Array, "n 3n"],
    inverse: Float[Array, "n n"],
    Y: Float[Array, "n 2n+1"],
    low: Float[Array, "n"],
    high: Float[Array, "n"],
) -> tuple[Float[Array, "2n 2n+1"], Limited]:
    """What the best dv' within the limits of its torques adds to the value of a step, with the sum of `pairs`.

    The set of torques at their limits is found by the primal-dual active set method [Hintermueller et al. 2002], and by
    single changes if it does not settle.

    Args:
        pairs: Other products that are to be added.
        D: Torques by dv' and by (dq, dv).
        inverse: The inverse of L.
        Y: The inverse of L times the Hessian by dv' and (dq, dv, 1).
        low: Least changes of the torques.
        high: Largest changes.
    """
    n = len(low)
    y, still = Y[:, 2 * n], low >= high
    wanted = -product(D[:, :n], product(y, inverse))
    start = still | (wanted < low), ~still & (wanted > high)
    pairs = (*pairs, (-Y[:, : 2 * n], Y))

    def kept() -> tuple[Array, Limited]:
        return summed(pairs), unlimited(Y)

    def changed() -> tuple[Array, Limited]:
        E = product(D[:, :n], inverse.T)
        G = product(E, E.T)
        held, at_upper, factor = _held(G, wanted, low, high, start)
        bound = jnp.where(at_upper, high, low)
        by_state = jnp.concatenate([D[:, n:], -bound[:, None]], axis=1) - product(E, Y)
        beyond = product(factor, jnp.where(held[:, None], by_state, 0.0))
        within = Y + product(E.T, product(factor.T, beyond))
        left = within[:, 2 * n]
        found = Limited(within, ~held, at_upper, jnp.sum(y * left), 0.5 * jnp.sum(left * left))
        return summed((*pairs, (beyond[:, : 2 * n], beyond))), found

    return cond((start[0] | start[1]).any(), changed, kept)


def unlimited(Y: Float[Array, "n 2n+1"]) -> Limited:
    """The best velocities where no torque is at a limit."""
    free, decrease = jnp.ones(len(Y), bool), jnp.sum(Y[:, -1] ** 2)
    return Limited(Y, free, ~free, decrease, 0.5 * decrease)


_Sets = tuple[Array, Array]  # torques at their lower limits, and at their upper ones


def _held(G: Array, wanted: Array, low: Array, high: Array, start: _Sets) -> tuple[Array, Array, Array]:
    """Torques at their limits, those at the upper one, and the inverse of the Cholesky factor of their block of G."""
    eye, still = jnp.eye(len(low), dtype=low.dtype), low >= high

    def unsettled(carry: tuple[_Sets, _Sets, Array, Array, Array]) -> Array:
        return carry[2] & (carry[3] < _PASSES)

    def again(carry: tuple[_Sets, _Sets, Array, Array, Array]) -> tuple[_Sets, _Sets, Array, Array, Array]:
        sets, _, _, count, _ = carry
        held = sets[0] | sets[1]
        factor = jax.lax.linalg.cholesky(jnp.where(held[:, None] & held[None], G, eye), symmetrize_input=False)
        factor = lower_inverse(factor)
        beyond = jnp.where(held, wanted - jnp.where(sets[1], high, low), 0.0)
        multipliers = product(product(factor, beyond), factor)
        tau = wanted - product(G, multipliers)
        below, above = jnp.where(held, multipliers, tau - low) < 0.0, jnp.where(held, multipliers, tau - high) > 0.0
        new = still | (below & ~sets[1]), ~still & above & ~sets[0]
        changed = (new[0] != sets[0]) | (new[1] != sets[1])
        last = len(low) - 1 - jnp.argmax(changed[::-1])  # by one at a time it cannot cycle [Murty 1974]
        moved = changed & ((count < _TOGETHER) | (jnp.arange(len(low)) == last))
        new = jnp.where(moved, new[0], sets[0]), jnp.where(moved, new[1], sets[1])
        return new, sets, changed.any(), count + 1, factor

    first = (start, start, jnp.array(True), jnp.zeros((), jnp.int32), eye)
    _, sets, _, _, factor = while_loop(unsettled, again, first)
    return sets[0] | sets[1], sets[1], factor
