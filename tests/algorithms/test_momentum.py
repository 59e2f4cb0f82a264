"""Centroidal and angular momentum, and the wrench on the ground, against pinocchio and sums over bodies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle
from tests.oracles.conventions import change_velocity_origin, swap_rows

from .cases import TREES, along, by_rows, robot, run, states
from .cases import pin_robot as twin_of

float32 = pytest.mark.float32
EVERY_TYPE = TREES[0]
POINT = (0.3, -0.7, 0.4)


@float32
def test_momentum_and_its_rate_against_pinocchio():
    """pinocchio's own centroidal functions, and its momentum moved to another point."""
    pin = oracle("pinocchio")
    model, twin, s = robot(EVERY_TYPE), twin_of(EVERY_TYPE), states(EVERY_TYPE)
    point = jnp.array(POINT, s.q.dtype)

    def ours(q, v, a):
        A, h = rb.centroidal_momentum_matrix(model, q), rb.centroidal_momentum(model, q, v)
        about = rb.angular_momentum(model, q, v, point), rb.angular_momentum_jacobian(model, q, point)
        return A, h, rb.centroidal_momentum_rate(model, q, v, a), *about

    def rate(q, v, a):
        pin.computeCentroidalMomentumTimeVariation(twin.model, twin.data, twin.q(q), twin.v(v), twin.v(a))
        return swap_rows(twin.data.dhg.vector)

    def matrix(q):
        return swap_rows(pin.computeCentroidalMap(twin.model, twin.data, twin.q(q))) @ twin.G

    def about(q):
        return (change_velocity_origin(-np.array(POINT)).T @ twin.momentum_matrix(q))[:3]

    A, h, dh, about_point, J = run(ours, *s[:3])
    assert_close(A, by_rows(matrix, s.q))
    assert_close(h, by_rows(lambda q, v: matrix(q) @ v, s.q, s.v))
    assert_close(dh, by_rows(rate, *s[:3]))
    assert_close(J, by_rows(about, s.q))
    assert_close(about_point, by_rows(lambda q, v: about(q) @ v, s.q, s.v))


def test_hessians():
    """The rate of momentum is J a + v'Hv, on a tree with a floating joint and one that mimics."""
    model = random_tree(3, ("floating", "revolute", "prismatic"), n=4, mimics=1)
    assert model.tree.has_mimics
    q = jax.vmap(rb.random_configuration, (None, 0))(model, jax.random.split(jax.random.key(0), 20))
    v, a, point = normal(1, 20, model.nv), normal(2, 20, model.nv), jnp.array(POINT, q.dtype)

    def ours(q, v, a):
        H, J = rb.angular_momentum_hessian(model, q, point), rb.angular_momentum_jacobian(model, q, point)
        Hg, A = rb.centroidal_momentum_hessian(model, q), rb.centroidal_momentum_matrix(model, q)
        l_rate = along(model, lambda x, w: rb.angular_momentum(model, x, w, point), q, v, (v, a))[1]
        return (
            (J @ a + jnp.einsum("i,iaj,j->a", v, H, v), l_rate),
            (A @ a + jnp.einsum("i,iaj,j->a", v, Hg, v), rb.centroidal_momentum_rate(model, q, v, a)),
        )

    for got, want in run(ours, q, v, a):
        assert_close(got, want, kind="solve")


@float32
def test_wrench_on_the_ground():
    """[m (g - c''); (c - P) x f - rate of the centroidal angular momentum] by pinocchio; the ZMP by its laws."""
    pin = oracle("pinocchio")
    model, twin, s = robot(EVERY_TYPE), twin_of(EVERY_TYPE), states(EVERY_TYPE)
    point, origin, up = (jnp.array(x, s.q.dtype) for x in (POINT, (0.1, 0.2, -0.3), (0.2, -0.1, 2.0)))

    def ours(q, v, a):
        wrenches = [f(model, q, v, a, point) for f in (rb.gravito_inertial_wrench, rb.net_contact_wrench)]
        return *wrenches, rb.zmp(model, q, v, a, origin, up)

    def want(q, v, a, about):
        pin.computeCentroidalMomentumTimeVariation(twin.model, twin.data, twin.q(q), twin.v(v), twin.v(a))
        f = pin.computeTotalMass(twin.model) * twin.model.gravity.linear - twin.data.dhg.linear
        return np.concatenate([np.cross(twin.data.com[0] - about, f) - twin.data.dhg.angular, f])

    gravito_inertial, contact, z = run(ours, *s[:3])
    assert_close(gravito_inertial, by_rows(lambda *x: want(*x, np.array(POINT)), *s[:3]))
    assert_close(contact, -by_rows(lambda *x: want(*x, np.array(POINT)), *s[:3]))
    assert z.valid.all()
    n, offset = np.asarray(up, float), np.asarray(z.point, float) - np.asarray(origin, float)
    reach = np.abs(offset).max()
    assert np.abs(offset @ n).max() < (1e-12 if X64 else 1e-4) * reach
    moments = np.stack([want(*row)[:3] for row in zip(*map(np.asarray, (*s[:3], z.point)), strict=True)])
    assert np.abs(np.cross(moments, n)).max() < (1e-11 if X64 else 1e-3) * max(1.0, reach) * np.abs(moments).max()


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
