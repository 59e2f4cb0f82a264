"""The core on its own, without any reference engine: what runs on every interpreter and every version of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.testing import random_tree
from tests.helpers import assert_close, normal

pytestmark = pytest.mark.devices


@pytest.fixture(scope="module", params=["rby1a", "every_type"])
def model(request):
    return robots.rby1a() if request.param == "rby1a" else random_tree(1, n=9)


@pytest.mark.slow
def test_dynamics_is_consistent_batched_and_differentiable(model):
    q = jax.vmap(lambda key: rb.random_configuration(model, key))(jax.random.split(jax.random.key(0), 16))
    v, a = normal(1, 16, model.nv), normal(2, 16, model.nv)

    @jax.jit
    @jax.vmap
    def residuals(q, v, a):
        tau = rb.rnea(model, q, v, a)
        slope = jax.jacfwd(lambda a: rb.rnea(model, q, v, a))(a)
        return rb.aba(model, q, v, tau), rb.crba(model, q), slope

    back, mass_matrix, slope = residuals(q, v, a)
    assert_close(back, a, kind="solve")
    assert_close(mass_matrix, slope)


@pytest.mark.slow
def test_kinematics_is_consistent(model):
    q, v = rb.random_configuration(model, jax.random.key(3)), normal(4, model.nv)
    link = model.link_names[-1]

    def origin(t):
        return rb.link_pose(model, rb.integrate(model, q, t * v), link)[:3, 3]

    zero = jnp.zeros((), q.dtype)
    speed = jax.jvp(origin, (zero,), (jnp.ones_like(zero),))[1]
    assert_close(rb.jacobian(model, q, link)[3:] @ v, speed)


def test_a_file_of_ones_own_is_read_back():
    model = robots.rby1a()
    again = rb.load_urdf_string(rb.to_urdf(model))
    q = rb.random_configuration(model, jax.random.key(5))
    assert again.joint_names == model.joint_names
    assert_close(rb.crba(again, q), rb.crba(model, q))
