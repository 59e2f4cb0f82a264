"""Jerk-limited profiles: the durations of Ruckig, limits, continuity, and derivatives."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, ShapeError
from rbydyn_jax.planning import jerk_limited_profile
from tests.helpers import X64, assert_close, normal, oracle

TIMES = 201


def cases(count, joints, excess=1.0):
    """Distances, limits of velocity, acceleration and jerk, and initial velocities and accelerations."""
    rng, shape = np.random.default_rng(5), (count, joints)
    V, A, J = rng.uniform(0.5, 3, shape), rng.uniform(0.5, 10, shape), rng.uniform(1, 50, shape)
    d = 2 * rng.normal(size=shape) * rng.choice([0.1, 1.0], shape)
    v0, a0 = (x * excess * rng.uniform(-1, 1, shape) * rng.choice([0, 1], shape, p=[0.3, 0.7]) for x in (V, A))
    return tuple(x.astype(np.float64 if X64 else np.float32) for x in (d, V, A, J, v0, a0))


def profile_of(d, V, A, J, v0, a0, **options):
    return jerk_limited_profile(jnp.zeros_like(d), d, V, A, J, start_velocity=v0, start_acceleration=a0, **options)


@jax.jit
@jax.vmap
def run(*arguments):
    profile = profile_of(*arguments)
    t = profile.duration * jnp.linspace(0.0, 1.0, TIMES, dtype=profile.duration.dtype)
    return profile, t, profile.evaluate(t), profile.evaluate(profile.duration * (1 - 1e-9))


def ruckig_durations(d, V, A, J, v0, a0):
    ruckig = oracle("ruckig")
    n, found = d.shape[1], []
    for row in zip(d, V, A, J, v0, a0, strict=True):
        given, result = ruckig.InputParameter(n), ruckig.Trajectory(n)
        given.current_position = np.zeros(n)
        names = ("target_position", "max_velocity", "max_acceleration", "max_jerk", "current_velocity")
        for name, x in zip((*names, "current_acceleration"), row, strict=True):
            setattr(given, name, x)
        assert ruckig.Ruckig(n).calculate(given, result) in (ruckig.Result.Working, ruckig.Result.Finished)
        found.append(result.duration)
    return np.array(found)


@pytest.fixture(scope="module")
def some():
    """Arguments within the limits, profiles and samples."""
    arguments = cases(500, 3)
    return arguments, *run(*arguments)


def check_durations(arguments, profile):
    if not X64:
        pytest.skip("Ruckig is in double precision")
    error = np.abs(np.asarray(profile.duration) - ruckig_durations(*arguments))
    assert error.max() < 1e-9
    all_alike = np.repeat(profile.duration[:, None], arguments[0].shape[1], axis=1)
    assert_close(profile.segments.sum(axis=1), all_alike, 1e-9)


@pytest.mark.ci
def test_durations_of_ruckig(some):
    arguments, profile, *_ = some
    check_durations(arguments, profile)


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "excess"), [(1, 1.0), (4, 1.8)])
def test_ten_thousand_durations_of_ruckig(joints, excess):
    """Also of several joints from velocities and accelerations beyond the limits."""
    arguments = cases(10_000, joints, excess)
    check_durations(arguments, jax.jit(jax.vmap(profile_of))(*arguments))


def test_limits_and_continuity(some):
    (d, V, A, J, v0, a0), profile, t, at, end = some
    inside = np.abs(v0) + a0**2 / (2 * J) <= V  # others have to leave the limit of velocity
    tolerance = 1e-9 if X64 else 1e-3
    assert (np.abs(at.velocity) <= (1 + tolerance) * V[:, None])[np.repeat(inside[:, None], TIMES, axis=1)].all()
    assert (np.abs(at.acceleration) <= (1 + tolerance) * A[:, None]).all()
    assert (np.abs(profile.jerks) <= (1 + tolerance) * J[:, None]).all()
    h = (t[:, 1] - t[:, 0])[:, None, None]
    before, after = (jax.tree.map(lambda x, s=s: np.asarray(x)[:, s], at) for s in (slice(None, -1), slice(1, None)))
    jump = np.abs(after.acceleration - before.acceleration)
    assert (jump <= J[:, None] * h * (1 + 1e-6) + tolerance * A[:, None]).all()
    trapezoid = after.position - before.position - 0.5 * h * (after.velocity + before.velocity)
    assert (np.abs(trapezoid) <= J[:, None] * h**3 / 6 + A[:, None] * tolerance).all()
    assert_close(end.position, d, 1e-6 if X64 else 1e-3)
    assert_close(at.velocity[:, 0], v0)
    assert_close(at.acceleration[:, 0], a0)
    assert_close(at.position[:, -1], d)
    chex.assert_trees_all_equal(at.velocity[:, -1], jnp.zeros_like(d))


def test_long_motions_in_float32_end_on_their_targets():
    """At their limits of jerk times are rounded to some 1e-7 s: on a plateau of 80 s that must not add up."""
    d, V, A, J, v0, a0 = (x[:60].astype(np.float32) for x in cases(500, 3))

    @jax.jit
    @jax.vmap
    def last(*arguments):
        profile = profile_of(*arguments, minimum_time=80.0)
        at = profile.evaluate(profile.duration * jnp.array([0.5, 1 - 1e-6], profile.duration.dtype))
        return at, profile.duration

    at, duration = last(d, V, A, J, v0, a0)
    assert (duration >= 80.0).all() and at.position.dtype == np.float32
    assert np.abs(at.position[:, 1] - d).max() < 1e-5 * np.abs(d).max()
    if X64:
        exact, _ = last(*(x.astype(float) for x in (d, V, A, J, v0, a0)))
        assert np.abs(at.position[:, 0] - exact.position[:, 0]).max() < 1e-4


@pytest.mark.slow
def test_derivatives_of_the_duration():
    if not X64:
        pytest.skip("finite differences")

    def f(x):
        return profile_of(*x).duration

    x = tuple(jnp.asarray(y) for y in cases(64, 2))
    d = tuple(normal(k, *y.shape) for k, y in enumerate(x))
    value, h = jax.jit(jax.vmap(f)), 1e-6
    gradient = jax.jit(jax.vmap(jax.grad(f)))(x)
    slope = sum(jnp.sum(g * e, axis=1) for g, e in zip(gradient, d, strict=True))
    after, before = (value(tuple(y + s * h * e for y, e in zip(x, d, strict=True))) for s in (1.0, -1.0))
    assert_close((after - before) / (2 * h), slope, kind="difference")


@pytest.mark.slow
def test_derivatives_are_finite_where_nothing_moves():
    one = jnp.ones(2)

    def total(q0, q1):
        return jerk_limited_profile(q0, q1, one, one, one).duration

    chex.assert_tree_all_finite(jax.jit(jax.grad(total, argnums=(0, 1)))(one, one))


@pytest.mark.slow
def test_minimum_time_and_evaluation_outside():
    one = jnp.ones(1)
    profile = jerk_limited_profile(0 * one, one, one, 2 * one, 8 * one, start_velocity=0.1 * one, minimum_time=4.0)
    at = profile.evaluate(jnp.array([-1.0, 4.0, 9.0]))
    assert float(profile.duration) == 4.0 and at.position.ravel().tolist() == [0.0, 1.0, 1.0]
    assert_close(profile.segments.sum(), np.asarray(4.0), 1e-9 if X64 else 1e-4)
    assert at.velocity[1:].ravel().tolist() == [0.0, 0.0] and not at.acceleration.any()


@pytest.mark.ci
def test_wrong_arguments():
    one = jnp.ones(2)
    with pytest.raises(ShapeError, match=r"jerk_limit must have shape \(2,\)"):
        jerk_limited_profile(one, one, one, one, jnp.ones(3))
    with pytest.raises(DtypeError, match="target must be an array"):
        jerk_limited_profile(one, [0.0, 1.0], one, one, one)  # type: ignore[arg-type]
    for name, k in (("velocity_limit", 2), ("acceleration_limit", 3), ("jerk_limit", 4)):
        for wrong in (0.0, np.inf):
            arguments = [one] * 5
            arguments[k] = jnp.array([1.0, wrong])
            with pytest.raises(ArgumentError, match=rf"{name}\[1\] must be positive"):
                jerk_limited_profile(*arguments)
    with pytest.raises(ArgumentError, match=r"start_acceleration\[0\] must be finite"):
        jerk_limited_profile(one, one, one, one, one, start_acceleration=one * jnp.nan)
    for wrong in (-1.0, jnp.inf):
        with pytest.raises(ArgumentError, match="minimum_time must be finite and not negative"):
            jerk_limited_profile(one, one, one, one, one, minimum_time=wrong)
    assert jnp.isnan(jax.jit(lambda j: jerk_limited_profile(one, 2 * one, one, one, j).duration)(0 * one))
