"""The small robots against closed forms, and the made-up arm for sense."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import crba, fk, gravity_forces, random_configuration, rnea, robots
from tests.helpers import assert_close, normal

G = 9.81
NAMES = ("pendulum", "double_pendulum", "two_link_arm", "panda_like", "rby1a", "rby1m", "rby1ub")


def test_pendulum_swings_as_the_book_says():
    m, length = 2.0, 0.5
    model = robots.pendulum(m, length)
    q, v, a = normal(0, 3, 100, 1)
    got = jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a)
    assert_close(got, m * length**2 * np.asarray(a, float) + m * G * length * np.sin(np.asarray(q, float)))


def test_double_pendulum_has_the_books_mass_matrix_and_weight():
    (m1, m2), (l1, l2) = (1.5, 0.7), (0.8, 1.1)
    model = robots.double_pendulum((m1, m2), (l1, l2))
    q = normal(1, 100, 2)
    t1, t2 = np.asarray(q, float).T
    c = np.cos(t2)
    m22 = m2 * l2**2 / 3
    m12 = m22 + 0.5 * m2 * l1 * l2 * c
    m11 = m1 * l1**2 / 3 + m2 * l1**2 + m22 + m2 * l1 * l2 * c
    want = np.moveaxis(np.array([[m11, m12], [m12, m22 + 0 * c]]), 2, 0)
    assert_close(jax.vmap(crba, (None, 0))(model, q), want)
    lower = 0.5 * m2 * G * l2 * np.sin(t1 + t2)
    upper = (0.5 * m1 + m2) * G * l1 * np.sin(t1)
    assert_close(jax.vmap(gravity_forces, (None, 0))(model, q), np.stack([upper + lower, lower], axis=1))


def test_two_link_arm_reaches_where_trigonometry_says():
    model = robots.two_link_arm()
    q = normal(2, 100, 2)
    t1, t2 = np.asarray(q, float).T
    tool = np.asarray(jax.vmap(fk, (None, 0))(model, q))[:, model.link_index("tool"), :3, 3]
    want = 0.5 * np.array([np.cos(t1), np.sin(t1), 0 * t1]) + 0.4 * np.array([np.cos(t1 + t2), np.sin(t1 + t2), 0 * t1])
    assert_close(tool, want.T)
    assert_close(jax.vmap(gravity_forces, (None, 0))(model, q), np.zeros((100, 2)), scale=1.0)


@pytest.mark.slow
def test_panda_like_is_a_sound_arm():
    model = robots.panda_like()
    assert (model.nq, model.link_names[-1]) == (7, "tool")
    q = jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(jax.random.key(3), 100))
    eigenvalues = jnp.linalg.eigvalsh(jax.vmap(crba, (None, 0))(model, q))
    assert float(eigenvalues.min()) > 0.1  # the armature alone
    torque = jnp.abs(jax.vmap(gravity_forces, (None, 0))(model, q)).max(0)
    assert bool((torque < model.effort_limit).all())
    reach = jnp.linalg.norm(jax.vmap(fk, (None, 0))(model, q)[:, -1, :3, 3], axis=1)
    assert 1.0 < float(reach.max()) < 1.5


@pytest.mark.parametrize(
    "name", ["pendulum", "double_pendulum", "two_link_arm", "panda_like", "rby1a", "rby1m", "rby1ub"]
)
def test_nothing_to_report(name):
    model = getattr(robots, name)()
    assert model.report == ()
    assert bool(jnp.isfinite(model.inertias).all())
