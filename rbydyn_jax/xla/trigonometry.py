"""Sine and cosine of all joint angles in one vectorized step, accurate for any finite angle.

XLA's own sine and cosine take three times as long on a CPU, because each reduces the argument anew, for the largest
arguments. Here both come from one reduction to [-pi/4, pi/4] (Cody and Waite, three parts of pi/2) and the minimax
polynomials of the Cephes library; arguments too large for that reduction are left to XLA.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .fusion import kernel
from .on_cpu import on_cpu

_HALF_PI_PARTS = {  # parts of few bits, so that k * part is exact for the multiples k that occur
    np.dtype(np.float32): (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8),
    np.dtype(np.float64): (1.570796251296997, 7.549789415861596e-8, 5.390302858158119e-15),
}
_SINE = {
    np.dtype(np.float32): (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
    np.dtype(np.float64): (
        1.58962301576546568060e-10,
        -2.50507477628578072866e-8,
        2.75573136213857245213e-6,
        -1.98412698295895385996e-4,
        8.33333333332211858878e-3,
        -1.66666666666666307295e-1,
    ),
}
_COSINE = {
    np.dtype(np.float32): (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
    np.dtype(np.float64): (
        -1.13585365213876817300e-11,
        2.08757008419747316778e-9,
        -2.75573141792967388112e-7,
        2.48015872888517045348e-5,
        -1.38888888888730564116e-3,
        4.16666666666665929218e-2,
    ),
}
_LARGEST = {np.dtype(np.float32): 8e3, np.dtype(np.float64): 1e6}


def polynomial(coefficients: tuple[float, ...], z: jax.Array) -> jax.Array:
    """Coefficients from the highest power on."""
    value = jnp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        value = value * z + c
    return value


def _reduced(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    k = jnp.round(x * (2.0 / np.pi))
    r = x
    for part in _HALF_PI_PARTS[x.dtype]:
        r = r - k * part
    z = r * r
    s = r + r * z * polynomial(_SINE[x.dtype], z)
    c = 1.0 - 0.5 * z + z * z * polynomial(_COSINE[x.dtype], z)
    quadrant = k.astype(jnp.int32)
    odd = (quadrant & 1) == 1
    sine, cosine = jnp.where(odd, c, s), jnp.where(odd, s, c)
    return jnp.where((quadrant & 2) == 2, -sine, sine), jnp.where(((quadrant + 1) & 2) == 2, -cosine, cosine)


def reduced_sincos(x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """(sin x, cos x) without XLA's own, and where the reduction is accurate."""
    return _reduced(x), jnp.abs(x) <= _LARGEST[x.dtype]


def _exact(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.sin(x), jnp.cos(x)


def _chosen(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One choice for all elements: a choice for each would compute both sides."""
    return jax.lax.cond(jnp.any(jnp.abs(x) > _LARGEST[x.dtype]), _exact, kernel(_reduced), x)


def _slope(sine: jax.Array, cosine: jax.Array) -> tuple[jax.Array, jax.Array]:
    return cosine, -sine


def sincos(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(sin x, cos x) of an array."""
    sine, cosine = on_cpu(x, _chosen if x.dtype in _LARGEST else _exact, _exact, _slope, results=2)
    return sine, cosine
