"""Jerk-limited profiles to moving targets: the durations of Ruckig, with their gaps; limits, ends, derivatives."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, ShapeError
from rbydyn_jax.planning import jerk_limited_profile
from tests.helpers import X64, assert_close, normal, oracle
from tests.planning.test_jerk_limited import cases

TIMES = 201
NAMES = ("target_position", "max_velocity", "max_acceleration", "max_jerk", "current_velocity", "current_acceleration")


def moving(count, joints, excess=1.0):
    """Arguments of `cases`, the velocities of the targets, and minimum durations, half of them zero."""
    rng, arguments = np.random.default_rng(9), cases(count, joints, excess)
    final = arguments[1] * rng.uniform(-1, 1, (count, joints)) * rng.choice([0, 1], (count, joints), p=[0.2, 0.8])
    least = rng.uniform(0, 3, count) * rng.choice([0, 1], count)
    _, V, _, J, v0, a0 = arguments
    through = (np.abs(v0) > V) & (v0 * a0 < 0) & (a0**2 / (2 * J) > V + np.abs(v0))  # from one limit beyond the other
    arguments[5][through] = 0.0
    return (*arguments, *(x.astype(arguments[0].dtype) for x in (final, least)))


def profile_of(d, V, A, J, v0, a0, final, least):
    return jerk_limited_profile(
        jnp.zeros_like(d),
        d,
        V,
        A,
        J,
        start_velocity=v0,
        start_acceleration=a0,
        target_velocity=final,
        minimum_time=least,
    )


solve = jax.jit(jax.vmap(profile_of))


@jax.jit
@jax.vmap
def sampled(profile):
    t = profile.duration * jnp.linspace(0.0, 1.0, TIMES, dtype=profile.duration.dtype)
    return t, profile.evaluate(t)


def ruckig_durations(arguments):
    ruckig = oracle("ruckig")
    n, found = arguments[0].shape[1], []
    for *row, final, least in zip(*arguments, strict=True):
        given, result = ruckig.InputParameter(n), ruckig.Trajectory(n)
        given.current_position = np.zeros(n)
        for name, x in zip((*NAMES, "target_velocity"), (*row, final), strict=True):
            setattr(given, name, x)
        if least > 0.0:
            given.minimum_duration = least
        assert ruckig.Ruckig(n).calculate(given, result) in (ruckig.Result.Working, ruckig.Result.Finished)
        found.append(result.duration)
    return np.array(found)


def check_durations(arguments, profile):
    if not X64:
        pytest.skip("Ruckig is in double precision")
    duration, want = np.asarray(profile.duration), ruckig_durations(arguments)
    assert (np.abs(duration - want) <= 1e-10 * want + 1e-12).all()
    all_alike = np.repeat(duration[:, None], arguments[0].shape[1], axis=1)
    assert_close(profile.segments.sum(axis=1), all_alike, 1e-11)


@pytest.fixture(scope="module")
def some():
    arguments = moving(500, 3)
    return arguments, solve(*arguments)


@pytest.mark.ci
def test_durations_of_ruckig(some):
    check_durations(*some)


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "excess"), [(1, 1.0), (1, 1.8), (7, 1.0), (4, 1.8)])
def test_ten_thousand_durations_of_ruckig(joints, excess):
    arguments = moving(10_000, joints, excess)
    check_durations(arguments, solve(*arguments))


@pytest.mark.ci
def test_common_durations_are_beyond_the_gaps(some):
    """Some joints that could be there first have to arrive later than the slowest one needs."""
    arguments, profile = some
    single = [x[:, :, None] for x in arguments[:-1]]
    alone = jax.jit(jax.vmap(jax.vmap(profile_of)))(*single, jnp.zeros_like(arguments[0])).duration
    slowest = np.maximum(np.asarray(alone).max(axis=1), arguments[-1])
    later = np.asarray(profile.duration) > slowest * (1 + 1e-6)
    assert (np.asarray(profile.duration) >= slowest * (1 - 1e-6)).all()
    assert later.sum() >= 3


@pytest.mark.ci
@pytest.mark.parametrize("excess", [1.0, 1.8])
def test_limits_continuity_and_ends(excess):
    arguments = moving(500, 3, excess)
    profile = solve(*arguments)
    t, at = sampled(profile)
    d, V, A, J, v0, a0, final, _ = arguments
    tolerance = 1e-9 if X64 else 1e-3
    inside = (np.abs(v0) + a0**2 / (2 * J) <= V) & (np.abs(a0) <= A)  # others have to come back into the limits first
    inside = np.repeat(inside[:, None], TIMES, axis=1)
    assert (np.abs(at.velocity) <= (1 + tolerance) * V[:, None])[inside].all()
    assert (np.abs(at.acceleration) <= (1 + tolerance) * A[:, None])[inside].all()
    assert (np.abs(profile.jerks) <= (1 + tolerance) * J[:, None]).all()
    assert (profile.segments >= 0.0).all()
    v, a, x = v0, a0, np.zeros_like(d)
    for k in range(profile.segments.shape[1]):  # integrated anew
        h, j = np.asarray(profile.segments)[:, k], np.asarray(profile.jerks)[:, k]
        x, v, a = x + h * (v + h * (a / 2 + h * j / 6)), v + h * (a + h * j / 2), a + h * j
    way = 1.0 + (np.abs(at.velocity).max(axis=1) * np.asarray(profile.duration)[:, None])
    ends = 1e-11 if X64 else 1e-3
    assert (np.abs(x - d) <= ends * way).all()
    assert (np.abs(v - final) <= ends * way).all()
    assert (np.abs(a) <= ends * way).all()
    h = (t[:, 1] - t[:, 0])[:, None, None]
    before, after = (jax.tree.map(lambda x, s=s: np.asarray(x)[:, s], at) for s in (slice(None, -1), slice(1, None)))
    trapezoid = after.position - before.position - 0.5 * h * (after.velocity + before.velocity)
    largest = np.abs(at.acceleration).max(axis=1)[:, None]
    assert (np.abs(trapezoid) <= J[:, None] * h**3 / 6 + tolerance * (1 + largest * h)).all()
    chex.assert_trees_all_equal(at.velocity[:, -1], jnp.asarray(final))


@pytest.mark.slow
def test_a_target_at_rest_is_the_default():
    *arguments, final, least = moving(500, 3)

    @jax.jit
    @jax.vmap
    def at_rest(d, V, A, J, v0, a0, least):
        given = {"start_velocity": v0, "start_acceleration": a0, "minimum_time": least}
        return jerk_limited_profile(jnp.zeros_like(d), d, V, A, J, **given).duration

    assert_close(solve(*arguments, 0.0 * final, least).duration, at_rest(*arguments, least), 1e-9 if X64 else 1e-3)


@pytest.mark.slow
def test_derivatives_of_the_duration_and_of_states():
    if not X64:
        pytest.skip("finite differences")

    def f(x):
        profile = profile_of(*x)
        at = profile.evaluate(0.4 * profile.duration)
        return jnp.concatenate([profile.duration[None], at.position, at.velocity])

    x = tuple(jnp.asarray(y) for y in moving(64, 2))
    d = tuple(normal(k, *y.shape) for k, y in enumerate(x[:-1]))
    d = (*d, jnp.zeros_like(x[-1]))
    value, h = jax.jit(jax.vmap(f)), 1e-6
    slope = jax.jit(jax.vmap(lambda x, d: jax.jvp(f, (x,), (d,))[1]))(x, d)
    after, before = (value(tuple(y + s * h * e for y, e in zip(x, d, strict=True))) for s in (1.0, -1.0))
    assert_close((after - before) / (2 * h), slope, kind="difference")
    gradient = jax.jit(jax.vmap(jax.grad(lambda x: f(x)[0])))(x)
    along = (jnp.sum((g * e).reshape(64, -1), axis=1) for g, e in zip(gradient, d, strict=True))
    assert_close(sum(along), slope[:, 0], 1e-9)


@pytest.mark.slow
def test_derivatives_are_finite_where_nothing_moves():
    one = jnp.ones(2)

    def total(q0, q1, v1):
        profile = jerk_limited_profile(q0, q1, one, one, one, start_velocity=v1, target_velocity=v1)
        return profile.duration + jnp.sum(profile.evaluate(0.5 * profile.duration).position)

    for v in (0.0, 0.5, 1.0):
        chex.assert_tree_all_finite(jax.jit(jax.grad(total, argnums=(0, 1, 2)))(one, one, v * one))


@pytest.mark.ci
def test_a_cruise_and_what_follows():
    """From 1 to 1 m/s over 2 m: a cruise of 2 s, which goes on."""
    one = jnp.ones(1)
    profile = jerk_limited_profile(0 * one, 2 * one, one, one, one, start_velocity=one, target_velocity=one)
    at = profile.evaluate(jnp.array([0.5, 2.0, 3.5]))
    assert_close(profile.duration, np.asarray(2.0))
    assert_close(at.position.ravel(), [0.5, 2.0, 3.5])
    assert at.velocity.ravel().tolist() == [1.0, 1.0, 1.0] and not at.acceleration.any()


@pytest.mark.ci
def test_wrong_arguments():
    one = jnp.ones(2)
    with pytest.raises(ShapeError, match=r"target_velocity must have shape \(2,\)"):
        jerk_limited_profile(one, one, one, one, one, target_velocity=jnp.ones(3))
    with pytest.raises(ArgumentError, match=r"target_velocity\[1\] must be within its limit 1.0, got -1.5"):
        jerk_limited_profile(one, one, one, one, one, target_velocity=jnp.array([0.5, -1.5]))
    with pytest.raises(ArgumentError, match=r"target_velocity\[0\] must be finite"):
        jerk_limited_profile(one, one, one, one, one, target_velocity=one * jnp.nan)
    traced = jax.jit(lambda v: jerk_limited_profile(one, 2 * one, one, one, one, target_velocity=v).duration)
    assert jnp.isnan(traced(1.5 * one)) and jnp.isfinite(traced(one))
