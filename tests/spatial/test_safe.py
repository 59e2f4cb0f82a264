"""The branches at zero, against exact rational series and Taylor coefficients."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.spatial import safe
from tests.helpers import assert_close
from tests.spatial.reference import DTYPE, array

pytestmark = pytest.mark.float32
X = np.array([0, 1e-30, 1e-20, 1e-12, 1e-8, 1e-4, 0.01, 0.5, 2, 5, 8.9999, 9, 9.0001, 9.87, 15, 30, 45], DTYPE)


def slope(f):
    """The derivative by forward mode."""
    return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


def stumpff_exactly(k: int, x: float, order: int) -> float:
    """The derivative of c_k of the given order, summed in rational arithmetic."""
    exact, total = Fraction(x), Fraction(0)
    for j in range(order, 45):
        total += Fraction((-1) ** j * math.perm(j, order), math.factorial(2 * j + k)) * exact ** (j - order)
    return float(total)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(6))
def test_stumpff_and_its_derivatives_are_exact(k):
    f = partial(safe.stumpff, k)
    for order in range(4):
        got = np.asarray(jax.jit(jax.vmap(f))(X), np.float64)
        want = np.array([stumpff_exactly(k, float(x), order) for x in X])
        # Relative to the value itself, or where the function crosses zero to the size of its envelope.
        scale = np.maximum(np.abs(want), abs(want[0]) / (1.0 + np.asarray(X, float)) ** (1 + order))
        # Each derivative subtracts neighbours of the family and in float32 costs a digit where the series ends.
        tol = 1e-12 if DTYPE == np.float64 else 2e-5 * (1 + 10 * order)
        assert (np.abs(got - want) <= tol * scale).all(), (order, got, want)
        f = jax.grad(f) if order % 2 else slope(f)


@pytest.mark.slow
def test_angle_ratio_at_zero_has_the_derivatives_of_its_series():
    # 2/w - 2 s2/(3 w^3) + 2 s2^2/(5 w^5) - ...
    w = np.array([0.3, 1.0, 2.0], DTYPE)
    s2 = np.zeros_like(w)
    value = jax.vmap(safe.angle_ratio)(jnp.asarray(s2), jnp.asarray(w))
    first = jax.vmap(jax.grad(safe.angle_ratio, (0, 1)))(s2, w)
    (aa, ab), (ba, bb) = jax.vmap(jax.hessian(safe.angle_ratio, (0, 1)))(s2, w)
    w = w.astype(float)
    for got, want in [
        (value, 2 / w), (first[0], -2 / (3 * w**3)), (first[1], -2 / w**2),
        (aa, 4 / (5 * w**5)), (ab, 2 / w**4), (ba, 2 / w**4), (bb, 4 / w**3),
    ]:  # fmt: skip
        assert_close(got, want)


def test_angle_ratio_of_half_an_angle_is_the_angle_over_its_sine():
    h = array(np.linspace(0.01, np.pi / 2, 100))
    got = jax.vmap(safe.angle_ratio)(jnp.asarray(np.sin(h) ** 2), jnp.asarray(np.cos(h)))
    assert_close(got * np.sin(h), 2 * h)


def test_nan_is_not_swallowed():
    nan = jnp.full((), jnp.nan, DTYPE)
    results = [safe.stumpff(k, nan) for k in range(5)]
    results += [safe.angle_ratio(nan, nan), safe.safe_sqrt(nan), safe.safe_divide(nan, nan), safe.safe_norm(nan[None])]
    assert all(bool(jnp.isnan(r)) for r in results)
