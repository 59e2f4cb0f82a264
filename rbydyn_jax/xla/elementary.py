"""Elementary functions as sums, products and choices, for kernels of GPUs, where there are no others.

Reductions and polynomials are those of the Cephes library, accurate to a bit or two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .scalars import NotScalarError
from .trigonometry import polynomial, reduced_sincos

_INTEGERS: dict[Any, Any] = {np.dtype(np.float32): jnp.int32, np.dtype(np.float64): jnp.int64}
# The arc tangent of a number beyond this one is found by that of another; and the polynomials of what is not beyond.
_ATAN_BEYOND = {np.dtype(np.float32): 0.4142135623730950, np.dtype(np.float64): 0.66}
_ATAN_SINGLE = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
_ATAN_ABOVE = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_ATAN_BELOW = (
    1.0,
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)
# What a third of the bits of a positive number lacks to those of its cube root, to 4 %.
_CUBE_ROOT = {np.dtype(np.float32): 709958130, np.dtype(np.float64): 715094163 << 32}
_HALLEY_STEPS = 3


def _sincos(which: int, x: jax.Array, **_: Any) -> jax.Array:
    """Not a number where an angle is too large for the reduction."""
    values, known = reduced_sincos(x)
    return jnp.where(known, values[which], jnp.nan)


def _atan2(y: jax.Array, x: jax.Array, **_: Any) -> jax.Array:
    a, b = jnp.abs(y), jnp.abs(x)
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    ratio = jnp.where(low == high, (high > 0).astype(x.dtype), low / jnp.where(high == 0, 1.0, high))
    ratio = jnp.where((a != a) | (b != b), a + b, ratio)
    beyond = ratio > _ATAN_BEYOND[x.dtype]
    t = jnp.where(beyond, (ratio - 1.0) / (ratio + 1.0), ratio)
    z = t * t
    if x.dtype == np.float32:
        part = polynomial(_ATAN_SINGLE, z)
    else:
        part = polynomial(_ATAN_ABOVE, z) / polynomial(_ATAN_BELOW, z)
    angle = jnp.where(beyond, np.pi / 4, 0.0).astype(x.dtype) + (t + t * (z * part))
    angle = jnp.where(a > b, np.pi / 2 - angle, angle)
    angle = jnp.where(_is_negative(x), np.pi - angle, angle)
    return jnp.where(_is_negative(y), -angle, angle)


def _is_negative(x: jax.Array) -> jax.Array:
    """A zero too."""
    return jax.lax.bitcast_convert_type(x, _INTEGERS[x.dtype]) < 0


def _cbrt(x: jax.Array, **_: Any) -> jax.Array:
    """By a third of the exponent, and Halley's method."""
    a = jnp.abs(x)
    usual, tiny = (a > 0) & (a < jnp.inf), a < jnp.finfo(x.dtype).tiny
    a = jnp.where(usual, jnp.where(tiny, a * 2.0**54, a), 1.0)
    integer: Any = _INTEGERS[x.dtype]
    third = (jax.lax.bitcast_convert_type(a, integer).astype(x.dtype) * (1.0 / 3.0)).astype(integer)
    root = jax.lax.bitcast_convert_type(third + _CUBE_ROOT[x.dtype], x.dtype)
    for _step in range(_HALLEY_STEPS):
        rest = a / (root * root)
        root = root * ((root + rest + rest) / (root + root + rest))
    root = jnp.where(tiny, root * 2.0**-18, root)
    return jnp.where(usual, jnp.where(x < 0, -root, root), x)


def _of_floats(f: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def checked(*xs: jax.Array, **params: Any) -> jax.Array:
        if xs[0].dtype not in _INTEGERS:
            raise NotScalarError(xs[0].dtype.name, "is not a type of the elementary functions")
        return f(*xs, **params)

    return checked


_FUNCTIONS: dict[str, Callable[..., jax.Array]] = {
    "sin": partial(_sincos, 0),
    "cos": partial(_sincos, 1),
    "tan": lambda x, **_: _sincos(0, x) / _sincos(1, x),
    "atan": lambda x, **_: _atan2(x, jnp.ones_like(x)),
    "atan2": _atan2,
    "asin": lambda x, **_: _atan2(x, jnp.sqrt((1.0 - x) * (1.0 + x))),
    "acos": lambda x, **_: _atan2(jnp.sqrt((1.0 - x) * (1.0 + x)), x),
    "cbrt": _cbrt,
}
ELEMENTARY = {name: _of_floats(f) for name, f in _FUNCTIONS.items()}
"""By the name of the operation, of arrays in float32 or float64."""
