"""Roots of monotone functions, elementwise."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..spatial.safe import safe_divide
from ..xla.control_flow import while_loop

_ITERATIONS = 100


def monotone_root(f: Callable[[Array], Array], low: tuple[Array, Array], high: tuple[Array, Array]) -> Array:
    """Roots of functions that decrease, elementwise, to rounding error, with the derivatives of implicit functions.

    Args:
        f: The function.
        low: The lower ends of brackets, and the values there; bounds of the values will do.
        high: The upper ends. Where f is not negative there, they are the result.
    """
    ends = jax.lax.stop_gradient((*low, *high))
    return jax.lax.custom_root(f, low[0], lambda g, _: _bracketed(g, *ends), _divided)


def _divided(slope: Callable[[Array], Array], y: Array) -> Array:
    return safe_divide(y, slope(jnp.ones_like(y)))


def _bracketed(f: Callable[[Array], Array], low: Array, f_low: Array, high: Array, f_high: Array) -> Array:
    """The method of interpolation, truncation and projection [Oliveira, Takahashi 2020]."""
    within = 2.0 * jnp.finfo(low.dtype).eps * jnp.maximum(jnp.abs(low), jnp.abs(high)) + jnp.finfo(low.dtype).tiny
    weight = 0.2 / jnp.maximum(high - low, within)
    wanted = f_high < 0.0

    def go_on(carry: tuple) -> Array:
        count, low, _, high, *_ = carry
        return jnp.any(wanted & (high - low > within)) & (count < _ITERATIONS)

    def step(carry: tuple) -> tuple:
        count, low, f_low, high, f_high, _, _, slack = carry
        middle, width = 0.5 * (low + high), high - low
        secant = jnp.where(f_low == f_high, middle, (f_high * low - f_low * high) / (f_high - f_low))
        towards = jnp.sign(middle - secant)
        shift = weight * width * width
        x = jnp.where(shift <= jnp.abs(middle - secant), secant + towards * shift, middle)
        room = jnp.maximum(slack - 0.5 * width, 0.0)
        x = jnp.where(jnp.abs(x - middle) <= room, x, middle - towards * room)
        x = jnp.where(jnp.isfinite(x), jnp.clip(x, low, high), middle)
        fx = jax.lax.optimization_barrier(f(x))  # computed once: rounded twice it would have two signs
        left = fx > 0.0
        return (
            count + 1,
            jnp.where(left, x, low),
            jnp.where(left, fx, f_low),
            jnp.where(left, high, x),
            jnp.where(left, f_high, fx),
            x,
            fx,
            0.5 * slack,
        )

    slack = within * 2.0 ** (jnp.ceil(jnp.log2(jnp.maximum((high - low) / (2.0 * within), 1.0))) + 1.0)
    start = (jnp.asarray(0), low, f_low, high, f_high, low, f_low, slack)
    _, low, f_low, high, f_high, x, fx, _ = while_loop(go_on, step, start)
    nearest, value = jnp.where(f_low < -f_high, low, high), jnp.minimum(jnp.abs(f_low), jnp.abs(f_high))
    return jnp.where(wanted, jnp.where(jnp.abs(fx) <= value, x, nearest), high)
