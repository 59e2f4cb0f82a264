"""The scale of vectors by a power of two."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.spatial._small import binary_scale
from tests.spatial.reference import DTYPE, array

pytestmark = pytest.mark.float32
INFO = np.finfo(DTYPE)


def test_the_scale_is_a_power_of_two_and_brings_a_vector_to_a_length_of_about_one():
    sizes = array([1.0, 0.5, 0.75, 3.0, 7e9, 1e-20, INFO.tiny, INFO.max, INFO.max / 2])
    scale = np.asarray(binary_scale(jnp.stack([sizes, -0.3 * sizes], axis=1))[:, 0])
    assert (np.frexp(scale)[0] == 0.5).all()
    scaled = np.asarray(sizes) * scale
    assert (scaled[:6] >= 0.5).all() and (scaled[:6] < 1.0).all()
    assert (scaled[6:] >= 0.25).all() and (scaled[6:] <= 4.0).all()  # where the scale itself would be subnormal


@pytest.mark.parametrize("size", [0.0, np.inf, np.nan])
def test_zero_and_what_is_not_finite_are_not_scaled(size):
    assert binary_scale(array([size, 0.0])) == 1.0


def test_a_program_with_quaternions_is_lowered_as_it_was_traced():
    """JAX 0.12 traces programs with some functions of `jnp`, such as `frexp`, a second time."""
    b = rb.RobotBuilder("free").link("w").link("body", 1.0, (0, 0, 0), (0.1, 0.1, 0.1)).floating("f", "w", "body")
    model = rb.build_model(b)
    program = str(jax.make_jaxpr(lambda q, v: rb.integrate(model, q, v))(rb.neutral(model), jnp.zeros(6)))
    assert "bitcast_convert_type" in program
    assert "call_hi_primitive" not in program
