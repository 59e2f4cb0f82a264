"""Quaternions against scipy, matrix exponentials and identities; both signs, half turns, coinciding rotations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from rbydyn_jax.spatial import quaternions as quat
from rbydyn_jax.spatial import so3
from tests.helpers import X64, assert_close
from tests.spatial.reference import DTYPE, PHI, SO3, array, derivatives, exp_derivatives, principal

pytestmark = pytest.mark.float32
TOL = 1e-12 if X64 else 2e-5
EXP = exp_derivatives(SO3, PHI)
Q = jax.vmap(quat.exp)(PHI)
RANDOM = Rotation.random(200, rng=np.random.default_rng(2))
WXYZ = array(np.roll(RANDOM.as_quat(), 1, axis=1))


def test_orders_of_components():
    q = array([1.0, 2, 3, 4])
    assert quat.xyzw_from_wxyz(q).tolist() == [2, 3, 4, 1]
    assert quat.wxyz_from_xyzw(q).tolist() == [4, 1, 2, 3]


def test_matrix_against_scipy_for_any_length_of_the_quaternion():
    for length in (1.0, 0.01, 70.0):
        assert_close(jax.vmap(quat.to_matrix)(array(length * WXYZ)), RANDOM.as_matrix())


def test_multiply_conjugate_and_rotate():
    a, b = WXYZ[:100], WXYZ[100:]
    product = jax.vmap(quat.multiply)(a, b)
    assert_close(jax.vmap(quat.to_matrix)(product), (RANDOM[:100] * RANDOM[100:]).as_matrix())
    assert_close(jax.vmap(lambda q: quat.multiply(q, quat.conjugate(q)))(a), np.broadcast_to([1.0, 0, 0, 0], a.shape))
    p = array(np.random.default_rng(0).normal(size=(100, 3)))
    assert_close(jax.vmap(quat.rotate)(3 * a, p), RANDOM[:100].apply(np.array(p)))


def test_multiplication_is_associative():
    a, b, c = Q, Q[::-1], jnp.roll(Q, 7, axis=0)
    left = jax.vmap(quat.multiply)(jax.vmap(quat.multiply)(a, b), c)
    assert_close(left, jax.vmap(quat.multiply)(a, jax.vmap(quat.multiply)(b, c)))


def test_gradients_do_not_see_the_length():
    radial = lambda f: lambda q: jax.jvp(f, (q,), (q,))[1]  # noqa: E731
    for f in (quat.to_matrix, quat.log, lambda q: quat.rotate(q, jnp.ones(3, DTYPE))):
        assert_close(jax.vmap(radial(f))(WXYZ), jax.vmap(lambda q, f=f: 0 * f(q))(WXYZ), scale=1.0)


@pytest.mark.slow
def test_exp_and_its_derivatives():
    composed = lambda phi: quat.to_matrix(quat.exp(phi))  # noqa: E731
    value, forward, reverse, hessian, _ = derivatives(composed)(PHI)
    for got, want in ((value, EXP[0]), (forward, EXP[1]), (reverse, EXP[1]), (hessian, EXP[2])):
        assert_close(got, want, TOL)
    assert_close(jnp.linalg.norm(Q, axis=1), np.ones(len(Q)))


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_inverts_exp_to_second_order_for_both_signs(sign):
    value, forward, reverse, hessian, hessian_reverse = derivatives(lambda phi: quat.log(sign * quat.exp(phi)))(PHI)
    want = [np.stack(w) for w in zip(*map(principal, PHI, value), strict=True)]
    assert_close(value, want[0], TOL)
    for got, expected in ((forward, want[1]), (reverse, want[1]), (hessian, want[2]), (hessian_reverse, want[2])):
        # Beyond pi the exact Hessian is itself as large as 10 times a small rotation's.
        assert_close(got, expected, 1e-11 if X64 else 1e-4, scale=1.0)


@pytest.mark.slow
def test_from_matrix_and_its_derivatives_at_every_angle():
    there_and_back = lambda phi: quat.to_matrix(quat.from_matrix(so3.exp(phi)))  # noqa: E731
    value, forward, reverse, hessian, _ = derivatives(there_and_back)(PHI)
    for got, want in ((value, EXP[0]), (forward, EXP[1]), (reverse, EXP[1]), (hessian, EXP[2])):
        assert_close(got, want, 5 * TOL)


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
def test_from_matrix_has_finite_derivatives_at_the_identity_and_half_turns(diagonal):
    R = jnp.diag(jnp.array(diagonal, DTYPE))
    value, forward, reverse, hessian, _ = derivatives(quat.from_matrix)(R[None])
    identity = sum(diagonal) == 3
    assert_close(value[0], [1, 0, 0, 0] if identity else [0, *np.maximum(diagonal, 0)])
    assert_close(forward, reverse, TOL)
    assert np.isfinite(hessian).all()


def test_from_matrix_at_half_a_turn_about_a_skew_axis():
    a = np.array([1.0, 2, 3]) / np.sqrt(14)
    got = quat.from_matrix(array(2 * np.outer(a, a) - np.eye(3)))
    assert_close(np.abs(got), [0, 0.2672612419, 0.5345224838, 0.8017837257], 2e-10 if X64 else 2e-5)


def test_from_matrix_returns_the_canonical_sign():
    got = jax.vmap(quat.from_matrix)(array(RANDOM.as_matrix()))
    want = np.roll(RANDOM.as_quat(canonical=True), 1, axis=1)
    assert_close(got, want)


def test_canonical_sign_and_its_ties():
    cases = array([[-1, 2, 3, 4], [0, -1, 2, 3], [0, 0, -1, 2], [0, 0, 0, -1], [-0.0, 0, 0, -2], [1, -1, 0, 0]])
    sign = np.array([-1, -1, -1, -1, -1, 1])[:, None]
    for flip in (1, -1):
        assert np.array_equal(jax.vmap(quat.canonical)(flip * cases), sign * cases)
    assert np.array_equal(jax.vmap(quat.canonical)(jnp.zeros((1, 4), DTYPE)), np.zeros((1, 4)))


def test_slerp_against_scipy():
    t = array(np.linspace(0, 1, 100))
    a, b = WXYZ[0], -WXYZ[1]
    want = Slerp([0, 1], RANDOM[:2])(t).as_matrix()
    assert_close(jax.vmap(lambda t: quat.to_matrix(quat.slerp(a, b, t)))(t), want, 2 * TOL)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slerp_between_coinciding_rotations_has_the_right_derivatives(sign):
    # Along b = q exp(delta) the way is q exp(t delta), whatever the sign of b.
    t = jnp.asarray(0.3, DTYPE)

    def got(delta, q):
        return quat.slerp(q, sign * quat.multiply(q, quat.exp(delta)), t)

    def want(delta, q):
        return quat.multiply(q, quat.exp(t * delta))

    @jax.jit
    @jax.vmap
    def both(q):
        zero = jnp.zeros(3, DTYPE)
        return [(o(got)(zero, q), o(want)(zero, q)) for o in (lambda f: f, jax.jacfwd, jax.jacrev, jax.hessian)]

    for g, w in both(WXYZ):
        assert_close(g, w)


@pytest.mark.slow
def test_rate_of_a_quaternion_is_that_of_its_rotation():
    omega = array(np.random.default_rng(3).normal(size=WXYZ.shape)[:, :3])
    qdot = jax.vmap(quat.derivative)(WXYZ, omega)
    assert_close(jax.vmap(quat.angular_velocity)(WXYZ, qdot), omega)
    # R' = R omega^, along the motion q exp(t omega); the same for an unnormalized q and with radial drift.
    Rdot = jax.vmap(lambda q, d: jax.jvp(quat.to_matrix, (q,), (d,))[1])(WXYZ, qdot)
    assert_close(Rdot, jnp.einsum("bij,bjk->bik", jnp.asarray(RANDOM.as_matrix(), DTYPE), jax.vmap(so3.hat)(omega)))
    assert_close(jax.vmap(quat.angular_velocity)(3 * WXYZ, 3 * qdot + WXYZ), omega)
    still = jax.vmap(jax.jacrev(quat.angular_velocity, (0, 1)))(WXYZ, jnp.zeros_like(qdot))
    assert all(np.isfinite(x).all() for x in still)


@pytest.mark.slow
def test_distance_of_equal_rotations_has_the_right_derivatives():
    def offset(delta, q):
        return quat.log(quat.multiply(quat.conjugate(q), -quat.multiply(q, quat.exp(delta))))

    J = jax.vmap(lambda q: jax.jacrev(offset)(jnp.zeros(3, DTYPE), q))(WXYZ)
    assert_close(J, np.broadcast_to(np.eye(3), J.shape))


def test_zero_quaternion_and_nan_give_nan():
    assert np.isnan(quat.normalize(jnp.zeros(4, DTYPE))).all()
    assert np.isnan(quat.from_matrix(jnp.full((3, 3), jnp.nan, DTYPE))).all()
    assert np.isnan(quat.log(jnp.full(4, jnp.nan, DTYPE))).all()
