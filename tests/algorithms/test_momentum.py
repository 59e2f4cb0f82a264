"""Centroidal and angular momentum, and the wrench on the ground, against pinocchio and sums over bodies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.engines.conventions import change_velocity_origin, swap_rows
from rbydyn_jax.testing import random_tree
from tests.helpers import BATCH, X64, assert_close, normal, oracle

from .cases import along, by_rows, run

float32 = pytest.mark.float32
POINT, ORIGIN, UP = (0.3, -0.7, 0.4), (0.1, 0.2, -0.3), (0.2, -0.1, 2.0)


@pytest.fixture(scope="module")
def case():
    """A tree with most types of joint, and all that is computed of it, as one program."""
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    model = random_tree(1, ("floating", "planar", "spherical", "prismatic", "continuous"), n=5)
    q = jax.vmap(rb.random_configuration, (None, 0))(model, jax.random.split(jax.random.key(0), BATCH))
    state = q, normal(1, BATCH, model.nv), normal(2, BATCH, model.nv)
    point, origin, up = (jnp.array(x, q.dtype) for x in (POINT, ORIGIN, UP))

    def ours(q, v, a):
        return {
            "matrix": rb.centroidal_momentum_matrix(model, q),
            "momentum": rb.centroidal_momentum(model, q, v),
            "rate": rb.centroidal_momentum_rate(model, q, v, a),
            "angular": rb.angular_momentum(model, q, v, point),
            "jacobian": rb.angular_momentum_jacobian(model, q, point),
            "gravito_inertial": rb.gravito_inertial_wrench(model, q, v, a, point),
            "contact": rb.net_contact_wrench(model, q, v, a, point),
            "zmp": rb.zmp(model, q, v, a, origin, up),
        }

    return pin_model(model), state, run(ours, *state)


@pytest.mark.slow
@float32
def test_momentum_and_its_rate_against_pinocchio(case):
    """pinocchio's own centroidal functions, and its momentum moved to another point."""
    pin, (twin, (q, v, a), found) = oracle("pinocchio"), case

    def rate(q, v, a):
        pin.computeCentroidalMomentumTimeVariation(twin.model, twin.data, twin.q(q), twin.v(v), twin.v(a))
        return swap_rows(twin.data.dhg.vector)

    def matrix(q):
        return swap_rows(pin.computeCentroidalMap(twin.model, twin.data, twin.q(q))) @ twin.G

    def about(q):
        return (change_velocity_origin(-np.array(POINT)).T @ twin.momentum_matrix(q))[:3]

    assert_close(found["matrix"], by_rows(matrix, q))
    assert_close(found["momentum"], by_rows(lambda q, v: matrix(q) @ v, q, v))
    assert_close(found["rate"], by_rows(rate, q, v, a))
    assert_close(found["jacobian"], by_rows(about, q))
    assert_close(found["angular"], by_rows(lambda q, v: about(q) @ v, q, v))


@pytest.mark.slow
@float32
def test_wrench_on_the_ground(case):
    """[m (g - c''); (c - P) x f - rate of the centroidal angular momentum] by pinocchio; the ZMP by its laws."""
    pin, (twin, state, found) = oracle("pinocchio"), case

    def want(q, v, a, about):
        pin.computeCentroidalMomentumTimeVariation(twin.model, twin.data, twin.q(q), twin.v(v), twin.v(a))
        f = pin.computeTotalMass(twin.model) * twin.model.gravity.linear - twin.data.dhg.linear
        return np.concatenate([np.cross(twin.data.com[0] - about, f) - twin.data.dhg.angular, f])

    expected = by_rows(lambda q, v, a: want(q, v, a, np.array(POINT)), *state)
    assert_close(found["gravito_inertial"], expected)
    assert_close(found["contact"], -expected)
    z = found["zmp"]
    assert z.valid.all()
    offset = np.asarray(z.point, float) - np.array(ORIGIN)
    reach = np.abs(offset).max()
    assert np.abs(offset @ UP).max() < (1e-12 if X64 else 1e-4) * reach
    moments = by_rows(want, *state, z.point)[:, :3]
    assert np.abs(np.cross(moments, UP)).max() < (1e-11 if X64 else 1e-3) * max(1.0, reach) * np.abs(moments).max()


@pytest.mark.slow
def test_hessians():
    """The rate of momentum is J a + v'Hv, and H the derivative of J, with a floating joint and one that mimics."""
    model = random_tree(3, ("floating", "revolute", "prismatic"), n=4, mimics=1)
    assert model.tree.has_mimics
    q = jax.vmap(rb.random_configuration, (None, 0))(model, jax.random.split(jax.random.key(0), 20))
    v, a, point = normal(1, 20, model.nv), normal(2, 20, model.nv), jnp.array(POINT, q.dtype)

    def ours(q, v, a):
        H, J = rb.angular_momentum_hessian(model, q, point), rb.angular_momentum_jacobian(model, q, point)
        Hg, A = rb.centroidal_momentum_hessian(model, q), rb.centroidal_momentum_matrix(model, q)
        l_rate = along(model, lambda x, w: rb.angular_momentum(model, x, w, point), q, v, (v, a))[1]

        def derivative(f):
            return jax.vmap(lambda e: along(model, f, q, e)[1])(jnp.eye(model.nv, dtype=q.dtype))

        return (
            (J @ a + jnp.einsum("i,iaj,j->a", v, H, v), l_rate),
            (A @ a + jnp.einsum("i,iaj,j->a", v, Hg, v), rb.centroidal_momentum_rate(model, q, v, a)),
            (H, derivative(lambda x: rb.angular_momentum_jacobian(model, x, point))),
            (Hg, derivative(lambda x: rb.centroidal_momentum_matrix(model, x))),
        )

    for got, want in run(ours, q, v, a):
        assert_close(got, want, kind="solve")


def test_no_zmp_in_free_fall():
    bob, rest = robots.pendulum(mass=2.0, length=0.5, gravity=(0.0, 0.0, 0.0)), jnp.zeros(1)
    z = rb.zmp(bob, rest, rest, rest, (1.0, 2.0, 3.0))
    assert not z.valid and z.point.tolist() == [1.0, 2.0, 3.0]
    slope = jax.jacrev(lambda a: rb.zmp(bob, rest, rest, a).point)(rest)
    assert jnp.isfinite(slope).all()


def test_wrong_arguments():
    bob, rest = robots.pendulum(), jnp.zeros(1)
    with pytest.raises(rb.ShapeError, match="point"):
        rb.angular_momentum(bob, rest, rest, jnp.zeros(2))
    with pytest.raises(rb.ShapeError, match="normal"):
        rb.zmp(bob, rest, rest, rest, normal=jnp.zeros(4))
    with pytest.raises(rb.ShapeError, match="q must"):
        rb.centroidal_momentum(bob, jnp.zeros(2), rest)
