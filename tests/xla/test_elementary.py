"""Elementary functions of kernels, against numpy in extended precision."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.xla.composed import COMPOSED
from rbydyn_jax.xla.elementary import ELEMENTARY
from rbydyn_jax.xla.scalar_program import scalar_program
from tests.helpers import X64

DTYPE = np.float64 if X64 else np.float32
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]


def numbers(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=20_000) * 10.0 ** rng.uniform(-8.0, 3.4, 20_000)).astype(DTYPE)


def units(name: str, of_numpy, *xs: np.ndarray) -> float:
    """The largest error in units of the last place."""
    want = of_numpy(*(x.astype(np.longdouble) for x in xs))
    got = np.asarray(ELEMENTARY[name](*map(jnp.asarray, xs)))
    assert got.dtype == DTYPE
    return float(np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(DTYPE))))


@pytest.mark.parametrize(("name", "of_numpy"), [("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("cbrt", np.cbrt)])
def test_functions_of_a_number_are_accurate(name, of_numpy):
    assert units(name, of_numpy, numbers(0)) < 4.0


@pytest.mark.parametrize(("name", "of_numpy"), [("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan)])
def test_inverse_functions_are_accurate(name, of_numpy):
    x = numbers(1)
    assert units(name, of_numpy, x if name == "atan" else np.clip(x / 3e3, -1.0, 1.0).astype(DTYPE)) < 4.0


def test_the_angle_of_a_point_is_accurate_in_all_quadrants():
    assert units("atan2", np.arctan2, numbers(2), numbers(3)) < 4.0
    y, x = (np.array(z, DTYPE).reshape(-1) for z in np.meshgrid([0.0, -0.0, 1.0, -2.0, np.inf, np.nan], SPECIAL))
    np.testing.assert_allclose(ELEMENTARY["atan2"](jnp.asarray(y), jnp.asarray(x)), np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_an_angle_beyond_the_reduction_is_not_a_number(name):
    beyond = np.array([2e6, -1e30, np.inf, np.nan], DTYPE)
    assert np.isnan(ELEMENTARY[name](jnp.asarray(beyond))).all()


def test_special_numbers():
    x = np.array(SPECIAL, DTYPE)
    np.testing.assert_array_equal(ELEMENTARY["cbrt"](jnp.asarray(x)), np.cbrt(x))
    np.testing.assert_array_equal(np.isnan(ELEMENTARY["asin"](jnp.asarray(np.array([1.5, -2.0], DTYPE)))), True)


def test_a_root_of_a_subnormal_number():
    """As a kernel computes it: XLA on a CPU takes such numbers for zero."""
    small = np.array([1e-45, -1e-40, 1e-38] if not X64 else [5e-324, -1e-310, 1e-308], DTYPE)
    program = scalar_program(jax.make_jaxpr(jnp.cbrt)(DTYPE(1.0)), COMPOSED | ELEMENTARY)
    np.testing.assert_allclose(program.evaluate(small)[0], np.cbrt(small), rtol=1e-14 if X64 else 1e-6)
