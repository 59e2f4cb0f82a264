"""Spatial vectors against pinocchio and by identities that hold in every frame."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.spatial import motion, se3
from tests.helpers import X64, assert_close, oracle
from tests.spatial.reference import DTYPE, array

pytestmark = pytest.mark.float32
RNG = np.random.default_rng(0)
V, W, M, F = (array(RNG.normal(size=(100, 6))) for _ in range(4))
P = array(RNG.normal(size=(100, 3)))
T = jax.vmap(se3.exp)(array(RNG.normal(size=(100, 6))))


def halves(spatial) -> np.ndarray:
    return np.concatenate([spatial.angular, spatial.linear])


def test_against_pinocchio():
    pin = oracle("pinocchio")
    motions = [pin.Motion(v[3:], v[:3]) for v in np.asarray(V, float)]
    others = [pin.Motion(v[3:], v[:3]) for v in np.asarray(W, float)]
    forces = [pin.Force(f[3:], f[:3]) for f in np.asarray(F, float)]
    frames = [pin.SE3(np.asarray(t[:3, :3], float), np.asarray(t[:3, 3], float)) for t in T]
    assert_close(
        jax.vmap(motion.cross_motion)(V, W),
        np.stack([halves(a.cross(b)) for a, b in zip(motions, others, strict=True)]),
    )
    assert_close(
        jax.vmap(motion.cross_force)(V, F), np.stack([halves(a.cross(b)) for a, b in zip(motions, forces, strict=True)])
    )
    # The orthonormality that T lost to rounding enters twice.
    assert_close(
        jax.vmap(motion.transform_motion)(T, V),
        np.stack([halves(t.act(a)) for t, a in zip(frames, motions, strict=True)]),
    )
    assert_close(
        jax.vmap(motion.transform_force)(T, F),
        np.stack([halves(t.act(f)) for t, f in zip(frames, forces, strict=True)]),
    )
    want = np.stack([pin.classicAcceleration(a, b) for a, b in zip(motions, others, strict=True)])
    got = jax.vmap(motion.classical_acceleration)(V, W)
    assert_close(got[:, 3:], want)
    assert np.array_equal(got[:, :3], W[:, :3])


def test_matrices_are_those_of_the_vector_functions():
    Ad, ad = jax.vmap(motion.Ad)(T), jax.vmap(motion.ad)(V)
    assert_close(jnp.einsum("bij,bj->bi", Ad, W), jax.vmap(motion.transform_motion)(T, W))
    assert_close(jnp.einsum("bji,bj->bi", jnp.linalg.inv(Ad), F), jax.vmap(motion.transform_force)(T, F))
    assert_close(jnp.einsum("bij,bj->bi", ad, W), jax.vmap(motion.cross_motion)(V, W))
    assert_close(-jnp.einsum("bji,bj->bi", ad, F), jax.vmap(motion.cross_force)(V, F))


def test_power_is_the_same_in_every_frame():
    want = np.sum(np.asarray(V, float) * F, axis=1)
    assert_close(
        jnp.sum(jax.vmap(motion.transform_motion)(T, V) * jax.vmap(motion.transform_force)(T, F), axis=1), want
    )


def test_transforms_compose_and_commute_with_cross_products():
    S = T[::-1]
    assert_close(jax.vmap(motion.Ad)(S @ T), jax.vmap(motion.Ad)(S) @ jax.vmap(motion.Ad)(T))
    move, push = jax.vmap(motion.transform_motion), jax.vmap(motion.transform_force)
    cross, star = jax.vmap(motion.cross_motion), jax.vmap(motion.cross_force)
    assert_close(move(T, cross(V, W)), cross(move(T, V), move(T, W)))
    assert_close(push(T, star(V, F)), star(move(T, V), push(T, F)))


def test_jacobi_identity():
    cross = jax.vmap(motion.cross_motion)
    total = cross(V, cross(W, M)) + cross(W, cross(M, V)) + cross(M, cross(V, W))
    assert_close(total, np.zeros((100, 6)), scale=10.0)


def test_ad_is_the_derivative_of_Ad():
    d = jax.jit(jax.vmap(jax.jacfwd(lambda s, v: motion.Ad(se3.exp(s * v))), (None, 0)))(jnp.zeros((), DTYPE), V)
    assert_close(d, jax.vmap(motion.ad)(V))


def test_point_acceleration_is_the_derivative_of_the_points_velocity():
    # A body with the twist V + t A in the fixed frame; its point now at P follows p' = v(p).
    def velocity(t, p, v, a):
        return motion.point_velocity(v + t * a, p)

    def want(p, v, a):
        zero, one = jnp.zeros((), DTYPE), jnp.ones((), DTYPE)
        return jax.jvp(lambda t, p: velocity(t, p, v, a), (zero, p), (one, velocity(zero, p, v, a)))[1]

    assert_close(jax.vmap(motion.point_acceleration)(V, W, P), jax.vmap(want)(P, V, W))


def test_spatial_and_classical_acceleration_are_inverse():
    there = jax.vmap(motion.classical_acceleration)(V, W)
    assert_close(jax.vmap(motion.spatial_acceleration)(V, there), W)
    assert_close(there[:, 3:], jax.vmap(motion.point_acceleration)(V, W, jnp.zeros_like(P)))


def test_published_wrench_in_another_frame():
    # rpy (0.3, -0.5, 1.2) and p (0.4, -0.2, 0.7); force (1, 2, 3), moment (0.1, 0.2, 0.3).
    R = [
        [0.3179988465, -0.9417497709, 0.1094719259],
        [0.8179412488, 0.2141223486, -0.5339697869],
        [0.4794255386, 0.2593433801, 0.8383866436],
    ]
    T = se3.from_R_p(array(R), array([0.4, -0.2, 0.7]))
    got = motion.transform_force(T, array([0.1, 0.2, 0.3, 1, 2, 3]))
    want = [-0.5773565474, -2.3068406757, -0.0383791265, -1.2370849178, -0.3557234147, 3.5132722295]
    assert_close(got, want, 1e-9 if X64 else 2e-5)  # ten digits are published
