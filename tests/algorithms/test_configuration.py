"""The configuration space: integration along velocities, its inverse, and the two kinds of rates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from tests.helpers import X64, assert_close, normal, oracle

from .cases import TREES, pin_robot, robot, run, states

every_robot = pytest.mark.parametrize("name", ["every_type", "mimic"])


@every_robot
def test_neutral_is_normal_and_leaves_every_joint_at_its_placement(name):
    model = robot(name)
    q = rb.neutral(model)
    assert q.shape == (model.nq,)
    assert_close(rb.normalize(model, q), q)
    if not model.tree.has_mimics:  # their offsets move them
        poses = rb.fk(model, q)
        for i in model.tree.order:
            parent, body = model.tree.parents[i], model.tree.principal_links[i]
            before = poses[model.tree.principal_links[parent]] if parent >= 0 else jnp.eye(4, dtype=q.dtype)
            assert_close(before @ model.joint_placements[i], poses[body])


@pytest.mark.slow
@every_robot
def test_random_configurations_are_normal_inside_the_limits_and_spread(name):
    model, q = robot(name), np.asarray(states(name).q)
    assert (q >= np.asarray(model.position_lower)).all() and (q <= np.asarray(model.position_upper)).all()
    assert_close(run(lambda q: rb.normalize(model, q), states(name).q), q)
    assert q.std(axis=0).min() > 1e-3


@pytest.mark.parametrize(
    ("lower", "upper", "low", "high"),
    [
        (-1, 2, -1, 2),
        (5, np.inf, 5, 5 + 2 * np.pi),
        (-np.inf, -7, -7 - 2 * np.pi, -7),
        (-np.inf, np.inf, -np.pi, np.pi),
    ],
)
def test_random_configurations_fill_the_range_between_limits_that_there_are(lower, upper, low, high):
    arm = rb.with_limits(
        robots.pendulum(), position_lower=jnp.array([lower + 0.0]), position_upper=jnp.array([upper + 0.0])
    )
    q = np.asarray(jax.vmap(rb.random_configuration, (None, 0))(arm, jax.random.split(jax.random.key(0), 1000)))
    assert low <= q.min() < low + 0.02 * (high - low)
    assert high - 0.02 * (high - low) < q.max() <= high


@pytest.mark.slow
@pytest.mark.float32
@every_robot
def test_difference_undoes_integration(name):
    """difference(q, q + dv) = dv as long as no rotation is longer than half a turn."""
    model, q = robot(name), states(name).q
    dv = 1.5 * jnp.tanh(normal(5, len(q), model.nv))
    got = run(lambda q, dv: rb.difference(model, q, rb.integrate(model, q, dv)), q, dv)
    assert_close(got, dv)


@pytest.mark.slow
@every_robot
def test_integration_undoes_difference(name):
    model, q0, q1 = robot(name), states(name).q, states(name, seed=50).q
    got = run(lambda a, b: rb.fk(model, rb.integrate(model, a, rb.difference(model, a, b))), q0, q1)
    assert_close(got, run(lambda q: rb.fk(model, q), q1))


@pytest.mark.slow
@every_robot
def test_integration_is_that_of_pinocchio(name):
    oracle("pinocchio")
    import pinocchio as pin

    model, twin, s = robot(name), pin_robot(name), states(name)
    got = run(lambda q, v: rb.fk(model, rb.integrate(model, q, v)), s.q, s.v)
    link_ids = [twin._frame(link) for link in model.link_names]
    for row, q, v in zip(np.asarray(got), np.asarray(s.q), np.asarray(s.v), strict=True):
        moved = pin.integrate(twin.model, twin.q(q), twin.v(v))
        pin.framesForwardKinematics(twin.model, twin.data, moved)
        want = np.stack([twin.data.oMf[i].homogeneous for i in link_ids])
        assert_close(row, want, None if X64 else 1e-4)


@pytest.mark.slow
@every_robot
def test_integrating_nothing_changes_nothing(name):
    model, q = robot(name), states(name).q
    zero = jnp.zeros((len(q), model.nv), q.dtype)
    assert_close(run(lambda q, dv: rb.integrate(model, q, dv), q, zero), q)
    assert_close(run(lambda q: rb.difference(model, q, q), q), zero, scale=1.0)


@pytest.mark.slow
@every_robot
def test_integration_has_the_rate_qdot(name):
    model, s = robot(name), states(name)

    def rate(q, v):
        return jax.jvp(lambda t: rb.integrate(model, q, t * v), (jnp.zeros((), q.dtype),), (jnp.ones((), q.dtype),))[1]

    assert_close(run(lambda q, v: rb.qdot_from_v(model, q, v), s.q, s.v), run(rate, s.q, s.v))


@pytest.mark.ci
@every_robot
def test_velocity_from_rate_undoes_rate_from_velocity(name):
    """Also where a quaternion is not of unit length."""
    model, s = robot(name), states(name)
    for q in (s.q, 1.3 * s.q):
        got = run(lambda q, v: rb.v_from_qdot(model, q, rb.qdot_from_v(model, q, v)), q, s.v)
        assert_close(got, s.v)


@pytest.mark.parametrize("name", TREES)
def test_integration_derivative_at_zero_is_finite_in_both_modes(name):
    model, q = robot(name), states(name).q[:5]
    zero = jnp.zeros(model.nv, q.dtype)

    def both(q):
        step = lambda dv: rb.integrate(model, q, dv)  # noqa: E731
        gap = lambda dv: rb.difference(model, q, rb.integrate(model, q, dv))  # noqa: E731
        second = jax.jacfwd(jax.jacrev(lambda dv: jnp.sum(rb.integrate(model, q, dv) ** 3)))(zero)
        return jax.jacfwd(step)(zero), jax.jacrev(step)(zero), jax.jacfwd(gap)(zero), jax.jacrev(gap)(zero), second

    forward, reverse, gap_forward, gap_reverse, second = run(both, q)
    assert_close(forward, reverse)
    identity = np.tile(np.eye(model.nv), (len(q), 1, 1))
    assert_close(gap_forward, identity)
    assert_close(gap_reverse, identity)
    assert np.isfinite(second).all()


@pytest.mark.ci
def test_normalize_keeps_the_pose_and_mends_the_length():
    model, q = robot("every_type"), states("every_type").q
    scaled = q
    for kind, at in zip(model.tree.joint_types, model.tree.q_slices, strict=True):
        if kind in ("spherical", "floating"):
            scaled = scaled.at[:, at.start : at.start + 4].multiply(2.5)
        if kind == "sin_cos_revolute":
            scaled = scaled.at[:, at].multiply(2.5)
        if kind == "mrp_floating":  # the shadow of the same rotation
            sigma = scaled[:, at][:, :3]
            scaled = scaled.at[:, at.start : at.start + 3].divide(-jnp.sum(sigma**2, axis=1, keepdims=True))
    assert_close(run(lambda q: rb.normalize(model, q), scaled), q)
    assert_close(run(lambda q: rb.fk(model, q), scaled), run(lambda q: rb.fk(model, q), q))


@pytest.mark.ci
@every_robot
def test_clamp_moves_only_what_is_outside(name):
    model, q = robot(name), states(name).q
    lower, upper = np.asarray(model.position_lower), np.asarray(model.position_upper)
    inside = run(lambda q: rb.clamp(model, q), q)
    assert_close(inside, q)
    outside = run(lambda q: rb.clamp(model, q), 10.0 * q + 1.0)
    assert_close(outside, np.clip(10.0 * np.asarray(q) + 1.0, lower, upper))
