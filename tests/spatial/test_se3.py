"""SE(3) against matrix exponentials and their derivatives, pinocchio and published numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.spatial import from_linear_first, se3
from tests.helpers import X64, assert_close, oracle
from tests.spatial.reference import DTYPE, SE3, XI, array, derivatives, exp_derivatives

pytestmark = pytest.mark.float32
TOL = 1e-12 if X64 else 2e-5
EXP = exp_derivatives(SE3, XI)
T = jax.vmap(se3.exp)(XI)
ANGLE = np.linalg.norm(XI[:, :3], axis=1)


@pytest.mark.slow
def test_exp_and_its_derivatives_equal_the_matrix_exponential():
    value, forward, reverse, hessian, hessian_reverse = derivatives(se3.exp)(XI)
    for got, order in ((value, 0), (forward, 1), (reverse, 1), (hessian, 2), (hessian_reverse, 2)):
        assert_close(got, EXP[order], TOL)


def test_exp_of_a_pure_translation():
    xi = array([0, 0, 0, 1, -2, 3])
    assert np.array_equal(se3.exp(xi), se3.from_R_p(jnp.eye(3, dtype=DTYPE), xi[3:]))


@pytest.mark.slow
def test_log_inverts_exp_to_second_order():
    xi = XI[ANGLE < 3.11]
    value, forward, reverse, hessian, hessian_reverse = derivatives(lambda x: se3.log(se3.exp(x)))(xi)
    assert_close(value, xi, TOL)
    eye, zero = np.broadcast_to(np.eye(6), forward.shape), np.zeros_like(hessian)
    for got, want in ((forward, eye), (reverse, eye), (hessian, zero), (hessian_reverse, zero)):
        # float32: rounding in T alone moves its logarithm's second derivatives by more than the value tolerance.
        assert_close(got, want, 1e-11 if X64 else 1e-3, scale=1.0)


def test_exp_inverts_log_at_every_angle():
    xi = jax.vmap(se3.log)(T)
    assert np.isfinite(xi).all()
    assert_close(jax.vmap(se3.exp)(xi), T, 2 * TOL)


@pytest.mark.slow
def test_derivatives_of_log_are_finite_at_every_angle():
    _, forward, reverse, hessian, _ = derivatives(se3.log)(T)
    assert_close(forward, reverse, TOL)
    assert np.isfinite(hessian).all()


def test_jacobians_are_those_of_exp():
    value, first, _ = EXP
    inverse = np.linalg.inv(value)
    vee = lambda m: np.stack([m[:, 2, 1], m[:, 0, 2], m[:, 1, 0], *np.moveaxis(m[:, :3, 3], 1, 0)], axis=1)  # noqa: E731
    assert_close(jax.vmap(se3.left_jacobian)(XI), vee(np.einsum("bikn,bkj->bijn", first, inverse)))
    assert_close(jax.vmap(se3.right_jacobian)(XI), vee(np.einsum("bik,bkjn->bijn", inverse, first)))


@pytest.mark.slow
def test_inverse_jacobians_are_inverse():
    xi = XI[ANGLE < 5]
    for jacobian, inverse in (
        (se3.left_jacobian, se3.left_jacobian_inverse),
        (se3.right_jacobian, se3.right_jacobian_inverse),
    ):
        product = np.einsum("bij,bjk->bik", jax.vmap(jacobian)(xi), jax.vmap(inverse)(xi))
        assert_close(product, np.broadcast_to(np.eye(6), product.shape), scale=10.0)  # entries up to 10 cancel


@pytest.mark.slow
def test_derivatives_of_the_jacobians():
    # d/dx_j of (J_l e_i)^ T is (dJ_l e_i)^ T + (J_l e_i)^ (J_l e_j)^ T.
    @jax.jit
    @jax.vmap
    def first(x):
        inverse = se3.left_jacobian_inverse
        return se3.left_jacobian(x), jax.jacfwd(se3.left_jacobian)(x), inverse(x), jax.jacrev(inverse)(x)

    J, dJ, inverse, dinverse = (np.asarray(y, float) for y in first(XI))
    skew = np.einsum("nij,bnk->bkij", SE3, J)
    second = np.einsum("nij,bnkl->bklij", SE3, dJ) + np.einsum("bkij,bljm->bklim", skew, skew)
    assert_close(np.einsum("bklij,bjm->bimkl", second, EXP[0]), EXP[2], 5 * TOL)
    inside = ANGLE < 5
    want = -np.einsum("bij,bjkn,bkl->biln", inverse, dJ, inverse)[inside]
    assert_close(dinverse[inside], want, 5 * TOL)


def test_inverse_and_group_axioms():
    rng = np.random.default_rng(3)
    A, B, C = (T[rng.permutation(len(T))] for _ in range(3))
    assert_close(A @ jax.vmap(se3.inverse)(A), np.broadcast_to(np.eye(4), A.shape), scale=5.0)
    assert_close((A @ B) @ C, A @ (B @ C))
    assert_close(jax.vmap(se3.inverse)(A @ B), jax.vmap(se3.inverse)(B) @ jax.vmap(se3.inverse)(A))


def test_adjoint_moves_a_twist_to_the_other_side():
    rng = np.random.default_rng(4)
    A, x = T[rng.permutation(len(T))], XI[ANGLE < 3.11]
    A = A[: len(x)]
    moved = jnp.einsum("bij,bj->bi", jax.vmap(se3.Ad)(A), x)
    assert_close(jax.vmap(se3.exp)(moved) @ A, A @ jax.vmap(se3.exp)(x), 5 * TOL)


def test_published_exponential_and_rate_of_the_logarithm():
    xi = array([0.3, -0.4, 0.5, 0.2, 0.1, -0.3])
    twist = array([0.7, -0.2, 0.1, -0.5, 0.4, 0.9])
    rate = [0.7091590349, -0.0430253015, 0.220084338, -0.7570917024, -0.0010378909, 0.7704167578]
    tol = 2e-10 if X64 else 2e-5  # ten digits are published
    assert_close(se3.exp(xi)[:3, 3], [0.2109714092, 0.1914321516, -0.2334371242], tol)
    assert_close(se3.right_jacobian_inverse(se3.log(se3.exp(xi))) @ twist, rate, tol)


@pytest.mark.slow
def test_rate_of_the_logarithm_is_its_derivative_along_the_motion():
    xi = XI[(ANGLE < 3.11)]
    V = array(np.random.default_rng(5).normal(size=xi.shape))

    def rate(x, v):
        T = se3.exp(x)
        return jax.jvp(lambda s: se3.log(T @ se3.exp(s * v)), (jnp.zeros((), DTYPE),), (jnp.ones((), DTYPE),))[1]

    want = jax.vmap(rate)(xi, V)
    got = jnp.einsum("bij,bj->bi", jax.vmap(se3.right_jacobian_inverse)(xi), V)
    assert_close(got, want, 1e-11 if X64 else 2e-4)  # near pi the derivative of log loses a digit


def test_against_pinocchio():
    pin = oracle("pinocchio")
    xi = XI[ANGLE < 3.05]
    motions = [pin.Motion(x[3:], x[:3]) for x in np.asarray(xi, float)]
    transforms = [pin.exp6(m) for m in motions]
    got = jax.vmap(se3.exp)(xi)
    assert_close(got, np.stack([t.homogeneous for t in transforms]))
    swap = lambda m: from_linear_first(from_linear_first(jnp.asarray(m), 0), 1)  # noqa: E731
    want = np.stack([swap(pin.Jexp6(m)) for m in motions])
    # pinocchio's own series are right to 1e-8 only at small angles.
    tol = 1e-7 if X64 else 2e-5
    assert_close(jax.vmap(se3.right_jacobian)(xi), want, tol)
    want = np.stack([swap(pin.Jlog6(t)) for t in transforms])
    assert_close(jax.vmap(se3.right_jacobian_inverse)(xi), want, tol)
    logs = [pin.log6(t) for t in transforms]
    want = np.stack([np.concatenate([m.angular, m.linear]) for m in logs])
    assert_close(jax.vmap(se3.log)(got), want, 1e-7 if X64 else 2e-5)
