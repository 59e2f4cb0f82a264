"""Soft contact: published figures, an oracle in numpy, and derivatives at the edge of touch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import Contact, contact_forces, joint_limit_forces
from rbydyn_jax.constraints.contact import friction_force, normal_force
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, untyped

from .mechanisms import falling_ball


@pytest.mark.skipif(not X64, reason="ten decimals need float64")
def test_golden_forces():
    """Hunt-Crossley with k = 5e4, alpha = 0.2; friction with mu = 0.8, k = 2e4, b = 100."""
    numbers = (jnp.array(5e4), jnp.array(1.5), jnp.array(0.2))
    assert_close(normal_force(jnp.array(0.002), jnp.array(0.3), *numbers), 4.87462819095, 1e-11)
    assert float(normal_force(jnp.array(0.002), jnp.array(-4.0), *numbers)) == 0.0
    held = (jnp.array(0.8), jnp.array(2e4), jnp.array(100.0))
    force, rate = friction_force(jnp.array([1e-3, -2e-3, 0]), jnp.array([0.1, 0.05, 0]), jnp.array(30.0), *held)
    assert_close(force, [-15.6189929629, 18.2221584568, 0], 1e-9)
    assert_close(rate, [-0.0438100704, 0.2177784154, 0], 1e-9)


def test_friction_sticks_below_the_limit_and_slips_at_it():
    held = (jnp.array(0.5), jnp.array(2e4), jnp.array(100.0))
    force, rate = friction_force(jnp.array([1e-4, 0, 0]), jnp.array([0.02, 0, 0]), jnp.array(30.0), *held)
    assert_close(force, [-4.0, 0, 0])
    assert_close(rate, [0.02, 0, 0])  # the bristle's end follows
    force, _ = friction_force(jnp.array([0.1, 0, 0]), jnp.zeros(3), jnp.array(30.0), *held)
    assert_close(np.linalg.norm(force), 15.0)


@pytest.mark.slow
def test_forces_enter_the_dynamics_at_their_points():
    """J^T f of the points is what the wrenches on the bodies do to the joints."""
    model = random_tree(4, ("floating", "revolute", "prismatic"), 4)
    links, points = (model.link_names[2], model.link_names[-1]), normal(0, 2, 3)
    normals = np.array([[0, 0, 1.0], [1, 2, 2]])
    contacts = tuple(
        Contact(link, point, plane_point=(0, 0, 3.0), plane_normal=2 * n, friction=mu)
        for link, point, n, mu in zip(links, points, normals, (0.5, 1.0), strict=True)
    )
    q, v = rb.random_configuration(model, jax.random.key(1)), normal(2, model.nv)
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    bristles = jnp.asarray(1e-3 * np.cross(normal(3, 2, 3), unit))  # along the planes

    @jax.jit
    def both(q, v):
        found = contact_forces(model, q, v, contacts, bristles)
        rows = [rb.point_jacobian(model, q, link, point) for link, point in zip(links, points, strict=True)]
        pushed = rb.bias_forces(model, q, v) - rb.bias_forces(model, q, v, found.f_ext)
        where = [rb.link_pose(model, q, link) @ jnp.append(p, 1.0) for link, p in zip(links, points, strict=True)]
        speeds = jnp.stack([J @ v for J in rows])
        return found, pushed, sum(J.T @ f for J, f in zip(rows, found.forces, strict=True)), jnp.stack(where), speeds

    found, pushed, want, where, speeds = both(q, v)
    assert_close(pushed, want, kind="solve")
    for k, n in enumerate(unit):
        depth = (np.array([0, 0, 3.0]) - np.asarray(where[k, :3])) @ n
        assert_close(found.depths[k], depth, kind="solve")
        if depth < 0:
            assert not np.asarray(found.forces[k]).any()
        else:
            rate = -np.asarray(speeds[k]) @ n
            size = max(5e4 * depth**1.5 * (1 + 3.0 * rate), 0.0)
            assert_close(found.forces[k] @ n, size, kind="solve")
    assert (np.asarray(found.depths) > 0).any()


def test_springs_at_the_limits():
    """Only hinges and slides with limits have them, and they never pull."""
    model = random_tree(2, ("revolute", "prismatic", "continuous", "spherical"), 5)
    q, v = 3.0 * rb.random_configuration(model, jax.random.key(5)), normal(6, model.nv)
    got = np.asarray(jax.jit(lambda q, v: joint_limit_forces(model, q, v, 200.0, 0.3))(q, v))
    want = np.zeros(model.nv)
    for joint, at_q, at_v in zip(model.tree.joint_types, model.tree.q_slices, model.tree.v_slices, strict=True):
        if joint in ("revolute", "prismatic"):
            x, speed = float(q[at_q.start]), float(v[at_v.start])
            low, high = float(model.position_lower[at_q.start]), float(model.position_upper[at_q.start])
            if x > high:
                want[at_v.start] = -max(200 * (x - high) * (1 + 0.45 * speed), 0.0)
            if x < low:
                want[at_v.start] = max(200 * (low - x) * (1 - 0.45 * speed), 0.0)
    assert want.any()
    assert_close(got, want)


def test_errors_say_what_is_wrong():
    ball, zero = falling_ball(), jnp.zeros(6)
    q = rb.neutral(ball)
    with pytest.raises(rb.ArgumentError, match="plane_normal"):
        Contact("ball", plane_normal=(0.0, 0.0, 0.0))
    with pytest.raises(rb.ShapeError, match="point"):
        Contact("ball", (0.0, 0.0))
    with pytest.raises(rb.NameNotFoundError, match="bal"):
        contact_forces(ball, q, zero, (Contact("bal"),))
    with pytest.raises(rb.DtypeError, match="sequence of Contact"):
        untyped(contact_forces)(ball, q, zero, Contact("ball"))
    with pytest.raises(rb.ShapeError, match="bristles"):
        contact_forces(ball, q, zero, (Contact("ball"),), jnp.zeros((2, 3)))
    assert joint_limit_forces(robots.pendulum(), jnp.array([99.0]), jnp.zeros(1)).tolist() == [0.0]
