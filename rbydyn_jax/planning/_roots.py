"""Roots of monotone functions, elementwise."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..spatial.safe import safe_divide

_ITERATIONS = 100


def implicit_root(f: Callable[[Array], Array], x: Array, wanted: Array) -> Array:
    """The root x of f with the derivatives of an implicit function."""
    x = jax.lax.stop_gradient(x)
    value, slope = jax.jvp(f, (x,), (jnp.ones_like(x),))
    step = safe_divide(value, jax.lax.stop_gradient(slope))
    return jnp.where(wanted, x - (step - jax.lax.stop_gradient(step)), x)


def bracketed_root(f: Callable[[Array], Array], low: Array, high: Array, wanted: Array) -> Array:
    """Roots of monotone functions in brackets, elementwise, to rounding error [Chandrupatla 1997]."""
    eps = jnp.finfo(low.dtype).eps
    low, high = jax.lax.stop_gradient((low, high))

    def at(x: Array) -> Array:
        return jax.lax.stop_gradient(f(x))

    def go_on(carry: tuple) -> Array:
        return jnp.any(carry[-1]) & (carry[0] < _ITERATIONS)

    def step(carry: tuple) -> tuple:
        count, x1, f1, x2, f2, t, active = carry
        x = x1 + t * (x2 - x1)
        fx = at(x)
        same = jnp.sign(fx) == jnp.sign(f1)
        x3, f3 = jnp.where(same, x1, x2), jnp.where(same, f1, f2)
        x2_, f2_ = jnp.where(same, x2, x1), jnp.where(same, f2, f1)
        x1_, f1_ = x, fx
        width = jnp.abs(x2_ - x1_)
        best = jnp.where(jnp.abs(f1_) < jnp.abs(f2_), x1_, x2_)
        tolerance = 2.0 * eps * jnp.abs(best) + jnp.finfo(low.dtype).tiny
        xi, phi = safe_divide(x1_ - x2_, x3 - x2_), safe_divide(f1_ - f2_, f3 - f2_)
        quadratic = (phi * phi < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
        a = safe_divide(f1_, f2_ - f1_) * safe_divide(f3, f2_ - f3)
        b = safe_divide(x3 - x1_, x2_ - x1_) * safe_divide(f1_, f3 - f1_) * safe_divide(f2_, f3 - f2_)
        t_ = jnp.where(quadratic, a + b, 0.5)
        least = jnp.minimum(0.5 * safe_divide(tolerance, width), 0.5)
        t_ = jnp.clip(jnp.where(jnp.isfinite(t_), t_, 0.5), least, 1.0 - least)
        still = active & (width > tolerance) & (f1_ != 0.0)
        new = (x1_, f1_, x2_, f2_, t_)
        old = (x1, f1, x2, f2, t)
        return (count + 1, *(jnp.where(active, n, o) for n, o in zip(new, old, strict=True)), still)

    f_low, f_high = at(low), at(high)
    start = (jnp.asarray(0), low, f_low, high, f_high, jnp.full_like(low, 0.5), wanted & (high > low))
    _, x1, f1, x2, f2, _, _ = jax.lax.while_loop(go_on, step, start)
    return jnp.where(jnp.abs(f1) < jnp.abs(f2), x1, x2)
