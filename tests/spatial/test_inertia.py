"""Inertial parameters against pinocchio, and by identities of bodies, frames and distributions of mass."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.spatial import inertia, motion, se3
from tests.helpers import X64, assert_close, oracle
from tests.spatial.reference import DTYPE, array, derivatives

pytestmark = pytest.mark.float32
RNG = np.random.default_rng(0)
V = array(RNG.normal(size=(100, 6)))
T = jax.vmap(se3.exp)(array(RNG.normal(size=(100, 6))))
THETA = array(0.5 * RNG.normal(size=(100, 10)))


def point_clouds() -> np.ndarray:
    """The ten parameters of a hundred bodies of eight point masses each, from the definition."""
    m, r = RNG.uniform(0.1, 1, (100, 8)), RNG.normal(size=(100, 8, 3)) + RNG.normal(size=(100, 1, 3))
    J = np.einsum("bk,bkij->bij", m, np.sum(r * r, -1)[..., None, None] * np.eye(3) - r[..., None] * r[..., None, :])
    six = np.stack([J[:, 0, 0], J[:, 0, 1], J[:, 1, 1], J[:, 0, 2], J[:, 1, 2], J[:, 2, 2]], axis=1)
    return np.concatenate([m.sum(1)[:, None], np.einsum("bk,bki->bi", m, r), six], axis=1)


CLOUDS = point_clouds()
BODIES = array(CLOUDS)


def test_against_pinocchio():
    pin = oracle("pinocchio")
    bodies = [pin.Inertia.FromDynamicParameters(x) for x in CLOUDS]
    mass, com, rotational = jax.vmap(inertia.to_mass_com)(BODIES)
    assert_close(mass, [b.mass for b in bodies])
    assert_close(com, np.stack([b.lever for b in bodies]))
    assert_close(rotational, np.stack([b.inertia for b in bodies]), 1e-12 if X64 else 1e-4)  # a difference
    matrices = np.stack([b.matrix() for b in bodies])
    matrices = np.block([[matrices[:, 3:, 3:], matrices[:, 3:, :3]], [matrices[:, :3, 3:], matrices[:, :3, :3]]])
    assert_close(jax.vmap(inertia.to_matrix)(BODIES), matrices)
    frames = [pin.SE3(np.asarray(t[:3, :3], float), np.asarray(t[:3, 3], float)) for t in T]
    moved = np.stack([f.act(b).toDynamicParameters() for f, b in zip(frames, bodies, strict=True)])
    assert_close(jax.vmap(inertia.transform)(T, BODIES), moved)
    assert_close(
        jax.vmap(inertia.to_pseudo_inertia)(BODIES), np.stack([b.toPseudoInertia().toMatrix() for b in bodies])
    )


def test_log_cholesky_against_pinocchio():
    pin = oracle("pinocchio")
    want = np.stack([pin.LogCholeskyParameters(x).toDynamicParameters() for x in np.asarray(THETA, float)])
    assert_close(jax.vmap(inertia.from_log_cholesky)(THETA), want)


def test_mass_com_and_matrix_there_and_back():
    again = jax.vmap(lambda x: inertia.from_mass_com(*inertia.to_mass_com(x)))(BODIES)
    assert_close(again, CLOUDS)
    assert np.array_equal(jax.vmap(lambda x: inertia.from_matrix(inertia.to_matrix(x)))(BODIES), BODIES)
    assert_close(jax.vmap(lambda x: inertia.from_pseudo_inertia(inertia.to_pseudo_inertia(x)))(BODIES), CLOUDS)


def test_transform_is_the_congruence_by_Ad_and_is_linear():
    Ad = jax.vmap(motion.Ad)(jax.vmap(se3.inverse)(T))
    moved = jax.vmap(inertia.transform)(T, BODIES)
    assert_close(
        jax.vmap(inertia.to_matrix)(moved), jnp.einsum("bji,bjk,bkl->bil", Ad, jax.vmap(inertia.to_matrix)(BODIES), Ad)
    )
    assert_close(
        jax.vmap(inertia.transform)(T, BODIES + BODIES[::-1]), moved + jax.vmap(inertia.transform)(T, BODIES[::-1])
    )
    back = jax.vmap(inertia.transform)(jax.vmap(se3.inverse)(T), moved)
    assert_close(back, CLOUDS, 5e-12 if X64 else 5e-5)  # moving off and back cancels


def test_momentum_and_kinetic_energy():
    h = jax.vmap(inertia.momentum)(BODIES, V)
    assert_close(h, jnp.einsum("bij,bj->bi", jax.vmap(inertia.to_matrix)(BODIES), V))
    moved = jax.vmap(inertia.momentum)(jax.vmap(inertia.transform)(T, BODIES), jax.vmap(motion.transform_motion)(T, V))
    assert_close(moved, jax.vmap(motion.transform_force)(T, h))
    energy = 0.5 * jnp.sum(h * V, axis=1)
    assert bool((energy > 0).all())


def test_newton_euler_is_the_same_in_every_frame():
    def wrench(x, v, a):
        return inertia.momentum(x, a) + motion.cross_force(v, inertia.momentum(x, v))

    a = V[::-1]
    move = jax.vmap(motion.transform_motion)
    got = jax.vmap(wrench)(jax.vmap(inertia.transform)(T, BODIES), move(T, V), move(T, a))
    assert_close(got, jax.vmap(motion.transform_force)(T, jax.vmap(wrench)(BODIES, V, a)))


def test_massless_body_has_finite_values_and_derivatives():
    def flat(x):
        mass, com, rotational = inertia.to_mass_com(x)
        return jnp.concatenate([mass[None], com, rotational.ravel()])

    value, forward, reverse, hessian, _ = derivatives(flat)(jnp.zeros((1, 10), DTYPE))
    assert (value == 0).all()
    assert_close(forward, reverse, 1e-12 if X64 else 2e-5)
    assert np.isfinite(hessian).all()


def test_real_bodies_are_consistent():
    assert bool(jax.vmap(inertia.is_consistent)(BODIES).all())
    assert bool(jax.vmap(inertia.is_consistent)(jax.vmap(inertia.from_log_cholesky)(THETA)).all())
    small = jax.vmap(inertia.is_consistent)(BODIES * array([[1e-6] + [1e-9] * 3 + [1e-12] * 6]))
    assert bool(small.all())
    point = inertia.from_mass_com(1.0, jnp.array([0.3, -2.0, 0.1], DTYPE), jnp.zeros((3, 3), DTYPE))
    rod = inertia.from_mass_com(1.0, jnp.zeros(3, DTYPE), jnp.diag(jnp.array([0.0, 0.1, 0.1], DTYPE)))
    for body in (point, rod, jnp.zeros(10, DTYPE)):
        assert bool(inertia.is_consistent(body))


@pytest.mark.parametrize(
    ("mass", "diagonal"),
    [(-1.0, (1.0, 1, 1)), (1.0, (1.0, 1, 3)), (1.0, (-1e-3, 1, 1)), (1.0, (1.0, 1, 2.01)), (0.0, (1, 1, 3.0))],
)
def test_impossible_bodies_are_not(mass, diagonal):
    body = inertia.from_mass_com(mass, jnp.zeros(3, DTYPE), jnp.diag(jnp.array(diagonal, DTYPE)))
    assert not bool(inertia.is_consistent(body))


def test_impossible_offsets_are_not():
    assert not bool(inertia.is_consistent(jnp.array([0.0, 1, 0, 0, 1, 0, 1, 0, 0, 1], DTYPE)))
    assert not bool(inertia.is_consistent(jnp.array([1.0, 5, 0, 0, 1, 0, 1, 0, 0, 1], DTYPE)))
    slightly = jnp.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 2.001], DTYPE)
    assert not bool(inertia.is_consistent(slightly)) and bool(inertia.is_consistent(slightly, 1e-2))


@pytest.mark.ci
def test_log_cholesky_there_and_back_with_derivatives():
    there_and_back = lambda x: inertia.to_log_cholesky(inertia.from_log_cholesky(x))  # noqa: E731
    tol = 1e-10 if X64 else 2e-3  # the Cholesky factor of an ill-conditioned matrix
    assert_close(jax.jit(jax.vmap(there_and_back))(THETA), THETA, tol)
    eye = np.broadcast_to(np.eye(10), (100, 10, 10))
    assert_close(jax.jit(jax.vmap(jax.jacfwd(there_and_back)))(THETA), eye, 10 * tol)
    assert_close(jax.jit(jax.vmap(jax.jacrev(there_and_back)))(THETA), eye, 10 * tol)
    assert np.isnan(inertia.to_log_cholesky(jnp.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 3], DTYPE))).any()
