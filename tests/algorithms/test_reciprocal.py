"""The reciprocal without a division, against the division of numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.xla.reciprocal import reciprocal
from tests.helpers import X64, assert_close, compiled_text

DTYPES = [np.float32, np.float64] if X64 else [np.float32]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_to_the_last_bits(dtype):
    rng = np.random.default_rng(0)
    powers = rng.uniform(-90, 90, 100_000) if dtype == np.float32 else rng.uniform(-950, 950, 100_000)
    x = (np.exp2(powers) * rng.choice([-1, 1], powers.size)).astype(dtype)
    x = np.concatenate([x, 1 + np.linspace(0, 3, 10_000, dtype=dtype)])
    got, want = np.asarray(jax.jit(reciprocal)(x)), 1 / x
    assert got.dtype == dtype
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want))) <= 2


def test_zero_is_not_finite():
    assert not np.isfinite(jax.jit(reciprocal)(jnp.zeros(3))).any()


def test_other_types_are_divided():
    assert jax.jit(reciprocal)(jnp.asarray(4.0, jnp.bfloat16)) == 0.25


def test_derivatives():
    x = jnp.asarray([0.5, -2.0, 3.0])
    assert_close(jax.vmap(jax.grad(reciprocal))(x), -1 / x**2)
    assert_close(jax.vmap(jax.hessian(reciprocal))(x), 2 / x**3)
    assert_close(jax.jvp(lambda y: reciprocal(x) * y, (x,), (x,))[1], np.ones(3))


def test_no_division_in_the_compiled_program():
    text = compiled_text(jax.jit(reciprocal).lower(jnp.ones(8)))
    assert "multiply(" in text and "divide(" not in text
