"""Modified Rodrigues parameters against scipy, published numbers and the derivative of the rotation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax.spatial import mrp, quaternions, so3
from tests.helpers import X64, assert_close
from tests.spatial.reference import DTYPE, PHI, SO3, array, derivatives, exp_derivatives

pytestmark = pytest.mark.float32
TOL = 1e-12 if X64 else 2e-5
RANDOM = Rotation.random(200, rng=np.random.default_rng(5))
SIGMA = array(np.random.default_rng(0).normal(size=(200, 3)))
OMEGA = array(np.random.default_rng(1).normal(size=(200, 3)))


def test_against_scipy():
    R = array(RANDOM.as_matrix())
    assert_close(jax.vmap(mrp.from_matrix)(R), RANDOM.as_mrp())
    assert_close(jax.vmap(mrp.to_matrix)(SIGMA), Rotation.from_mrp(np.array(SIGMA)).as_matrix())
    assert_close(jnp.linalg.norm(jax.vmap(mrp.to_quaternion)(SIGMA), axis=1), np.ones(200))


def test_published_parameters_and_rate():
    sigma = mrp.from_quaternion(quaternions.exp(array([0.3, -0.4, 0.5])))
    tol = 1e-9 if X64 else 2e-5  # ten decimals are published
    assert_close(sigma, [0.0757911407, -0.1010548543, 0.1263185679], tol)
    rate = mrp.derivative(sigma, array([0.7, -0.2, 0.1]))
    assert_close(rate, [0.1802494825, -0.0123225557, 0.0574174353], tol)


@pytest.mark.slow
def test_there_and_back_to_second_order_at_every_angle():
    value, first, second = exp_derivatives(SO3, PHI)
    got = derivatives(lambda phi: mrp.to_matrix(mrp.from_matrix(so3.exp(phi))))(PHI)
    for g, want in ((got[0], value), (got[1], first), (got[2], first), (got[3], second)):
        assert_close(g, want, 5 * TOL)


def test_principal_is_the_same_rotation_within_the_unit_ball():
    got = jax.vmap(mrp.principal)(SIGMA)
    assert float(jnp.max(jnp.linalg.norm(got, axis=1))) <= 1.0
    assert_close(jax.vmap(mrp.to_matrix)(got), jax.vmap(mrp.to_matrix)(SIGMA))
    inside = np.linalg.norm(SIGMA, axis=1) <= 1
    assert np.array_equal(got[inside], SIGMA[inside])
    assert_close(jax.vmap(mrp.from_quaternion)(jax.vmap(mrp.to_quaternion)(SIGMA)), got)


def test_rate_is_that_of_the_rotation_and_inverts():
    rate = jax.vmap(mrp.derivative)(SIGMA, OMEGA)
    Rdot = jax.vmap(lambda s, d: jax.jvp(mrp.to_matrix, (s,), (d,))[1])(SIGMA, rate)
    want = jnp.einsum("bij,bjk->bik", jax.vmap(mrp.to_matrix)(SIGMA), jax.vmap(so3.hat)(OMEGA))
    assert_close(Rdot, want, 5 * TOL)
    assert_close(jax.vmap(mrp.angular_velocity)(SIGMA, rate), OMEGA, 5 * TOL)


@pytest.mark.slow
def test_derivatives_at_zero():
    zero = jnp.zeros(3, DTYPE)
    for f in (mrp.to_matrix, mrp.principal, mrp.to_quaternion):
        _, forward, reverse, hessian, _ = derivatives(f)(zero[None])
        assert_close(forward, reverse, TOL)
        assert np.isfinite(hessian).all()
    assert_close(jax.jit(jax.jacrev(lambda phi: mrp.from_quaternion(quaternions.exp(phi))))(zero), np.eye(3) / 4)
