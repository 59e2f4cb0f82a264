"""SO(3) against matrix exponentials and their derivatives, scipy and pinocchio, at singular angles on purpose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax.spatial import so3
from tests.helpers import X64, assert_close, oracle
from tests.spatial.reference import DTYPE, PHI, SO3, array, derivatives, exp_derivatives, hat, principal

pytestmark = pytest.mark.float32
TOL = 1e-12 if X64 else 2e-5
EXP = exp_derivatives(SO3, PHI)
ROTATIONS = jax.vmap(so3.exp)(PHI)


@pytest.mark.slow
def test_exp_and_its_derivatives_equal_the_matrix_exponential():
    value, forward, reverse, hessian, hessian_reverse = derivatives(so3.exp)(PHI)
    for got, order in ((value, 0), (forward, 1), (reverse, 1), (hessian, 2), (hessian_reverse, 2)):
        assert_close(got, EXP[order], TOL)


def test_exp_is_a_rotation_and_periodic():
    assert_close(jnp.einsum("bij,bkj->bik", ROTATIONS, ROTATIONS), np.broadcast_to(np.eye(3), ROTATIONS.shape))
    assert_close(np.linalg.det(np.asarray(ROTATIONS, float)), np.ones(len(PHI)), TOL)
    for turns in (1, 2, 3):
        axis = PHI[-6:] / (2 * np.pi)
        got = jax.vmap(so3.exp)(array((1.1 + 2 * np.pi * turns) * axis))
        assert_close(got, jax.vmap(so3.exp)(array(1.1 * axis)))


@pytest.mark.slow
def test_log_inverts_exp_to_second_order():
    value, forward, reverse, hessian, hessian_reverse = derivatives(lambda phi: so3.log(so3.exp(phi)))(PHI)
    want = [np.stack(w) for w in zip(*map(principal, PHI, value), strict=True)]
    assert_close(value, want[0], TOL)
    for got, expected in ((forward, want[1]), (reverse, want[1]), (hessian, want[2]), (hessian_reverse, want[2])):
        # float32: rounding in R alone moves its logarithm's second derivatives by more than the value tolerance.
        assert_close(got, expected, 1e-11 if X64 else 1e-3, scale=1.0)


def test_log_is_relatively_exact_for_small_rotations():
    small = np.linalg.norm(PHI, axis=1) < 0.2
    got = np.asarray(jax.vmap(so3.log)(ROTATIONS))[small]
    size = np.linalg.norm(PHI[small], axis=1, keepdims=True)
    assert (np.abs(got - PHI[small]) <= TOL * size).all()


def test_log_has_length_at_most_pi_and_gives_the_rotation_back():
    phi = jax.vmap(so3.log)(ROTATIONS)
    assert float(jnp.max(jnp.linalg.norm(phi, axis=1))) <= np.pi * (1 + 1e-6)
    assert_close(jax.vmap(so3.exp)(phi), ROTATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (1.0, 2, 3), (0, 1.0, -1)])
def test_log_at_exactly_half_a_turn(axis):
    a = np.array(axis) / np.linalg.norm(axis)
    R = array(2 * np.outer(a, a) - np.eye(3))
    value, forward, reverse, hessian, _ = derivatives(so3.log)(R[None])
    assert_close(value[0], np.pi * a, TOL)
    assert_close(forward, reverse, TOL)
    assert np.isfinite(hessian).all()


def test_jacobians_are_those_of_exp():
    value, first, _ = EXP
    world = np.einsum("bikn,bjk->bijn", first, value)
    body = np.einsum("bki,bkjn->bijn", value, first)
    vee = lambda m: np.stack([m[:, 2, 1], m[:, 0, 2], m[:, 1, 0]], axis=1)  # noqa: E731
    assert_close(jax.vmap(so3.left_jacobian)(PHI), vee(world))
    assert_close(jax.vmap(so3.right_jacobian)(PHI), vee(body))


def test_inverse_jacobians_are_inverse():
    # At a full turn the Jacobian has no inverse.
    phi = PHI[:-6]
    for jacobian, inverse in (
        (so3.left_jacobian, so3.left_jacobian_inverse),
        (so3.right_jacobian, so3.right_jacobian_inverse),
    ):
        a, b = jax.vmap(jacobian)(phi), jax.vmap(inverse)(phi)
        # Near a full turn the inverse is as large as 20.
        assert_close(jnp.einsum("bij,bjk->bik", a, b), np.broadcast_to(np.eye(3), a.shape), 2 * TOL, scale=20.0)


@pytest.mark.slow
def test_second_derivatives_of_exp_from_the_derivative_of_its_jacobian():
    # d/dphi_j of (J_l e_i)^ R is (dJ_l e_i)^ R + (J_l e_i)^ (J_l e_j)^ R.
    J = np.asarray(jax.vmap(so3.left_jacobian)(PHI), float)
    dJ = np.asarray(jax.vmap(jax.jacrev(so3.left_jacobian))(PHI), float)
    skew = np.einsum("nij,bnk->bkij", SO3, J)
    second = np.einsum("nij,bnkl->bklij", SO3, dJ) + np.einsum("bkij,bljm->bklim", skew, skew)
    assert_close(np.einsum("bklij,bjm->bimkl", second, EXP[0]), EXP[2], TOL)


@pytest.mark.slow
def test_derivatives_of_the_inverse_jacobian():
    phi = PHI[:-6]
    product = lambda phi: so3.left_jacobian_inverse(phi) @ so3.left_jacobian(phi)  # noqa: E731
    _, forward, reverse, hessian, _ = derivatives(product)(phi)
    # Near a full turn the factors' derivatives are in the hundreds and thousands, and cancel.
    for got, scale in ((forward, 1e3), (reverse, 1e3), (hessian, 1e5)):
        assert_close(got, np.zeros_like(got), TOL, scale=scale)


def test_hat_and_vee():
    v = array(np.random.default_rng(0).normal(size=(100, 3)))
    assert_close(jax.vmap(so3.hat)(v), np.stack([hat(x) for x in v]))
    assert (jax.vmap(lambda x: so3.vee(so3.hat(x)))(v) == v).all()
    assert (so3.vee(jnp.ones((3, 3), DTYPE)) == 0).all()


def test_against_scipy():
    random = Rotation.random(200, rng=np.random.default_rng(1))
    R = array(random.as_matrix())
    assert_close(jax.vmap(so3.log)(R), random.as_rotvec())
    assert_close(jax.vmap(so3.exp)(array(random.as_rotvec())), random.as_matrix())


def test_against_pinocchio():
    pin = oracle("pinocchio")
    phi = np.asarray(PHI[:-6], float)
    assert_close(ROTATIONS[:-6], np.stack([pin.exp3(x) for x in phi]))
    assert_close(jax.vmap(so3.right_jacobian)(PHI[:-6]), np.stack([pin.Jexp3(x) for x in phi]))
    inside = phi[np.linalg.norm(phi, axis=1) < 3.05]
    want = np.stack([pin.Jlog3(pin.exp3(x)) for x in inside])
    # pinocchio itself is right to 1e-8 at angles where its series takes over.
    assert_close(jax.vmap(so3.right_jacobian_inverse)(array(inside)), want, 1e-7 if X64 else 2e-5)
