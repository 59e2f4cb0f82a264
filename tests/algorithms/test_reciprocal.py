"""The reciprocal without a division, and that of the root, against numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.xla.reciprocal import reciprocal, reciprocal_root
from tests.helpers import X64, assert_close, compiled_text

DTYPES = [np.float32, np.float64] if X64 else [np.float32]


@pytest.mark.parametrize("function", [reciprocal, reciprocal_root])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_to_the_last_bits(dtype, function):
    rng = np.random.default_rng(0)
    powers = rng.uniform(-90, 90, 100_000) if dtype == np.float32 else rng.uniform(-950, 950, 100_000)
    x = np.exp2(powers).astype(dtype)
    if function is reciprocal:
        x = x * rng.choice([-1, 1], powers.size).astype(dtype)
    x = np.concatenate([x, 1 + np.linspace(0, 3, 10_000, dtype=dtype)])
    got, want = np.asarray(jax.jit(function)(x)), 1 / (x if function is reciprocal else np.sqrt(x))
    assert got.dtype == dtype
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want))) <= 2


def test_zero_is_not_finite():
    assert not np.isfinite(jax.jit(reciprocal)(jnp.zeros(3))).any()


def test_other_types_are_divided():
    assert jax.jit(reciprocal)(jnp.asarray(4.0, jnp.bfloat16)) == 0.25
    assert jax.jit(reciprocal_root)(jnp.asarray(4.0, jnp.bfloat16)) == 0.5


def test_derivatives():
    x = jnp.asarray([0.5, -2.0, 3.0])
    assert_close(jax.vmap(jax.grad(reciprocal))(x), -1 / x**2)
    assert_close(jax.vmap(jax.hessian(reciprocal))(x), 2 / x**3)
    assert_close(jax.jvp(lambda y: reciprocal(x) * y, (x,), (x,))[1], np.ones(3))
    x = abs(x)
    assert_close(jax.vmap(jax.grad(reciprocal_root))(x), -0.5 * x**-1.5)
    assert_close(jax.vmap(jax.hessian(reciprocal_root))(x), 0.75 * x**-2.5)


@pytest.mark.parametrize("function", [reciprocal, reciprocal_root])
def test_neither_a_division_nor_a_root_in_the_compiled_program(function):
    text = compiled_text(jax.jit(function).lower(jnp.ones(8)))
    assert "multiply(" in text and "divide(" not in text and "sqrt(" not in text
