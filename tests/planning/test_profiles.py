"""Trapezoidal profiles: the figures of the vendor's generator, limits, continuity, optimality and derivatives."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, ShapeError
from rbydyn_jax.planning import trapezoidal_profile
from tests.helpers import X64, assert_close, normal

CASES, JOINTS = 400, 4

# Start velocity, target, minimum time; duration. From 0, at most 1 rad/s and 2 rad/s^2, by rby1_sdk 0.10.
GOLDEN = [
    ((0.0,), (1.0,), 0.0, 1.5),
    ((0.0,), (0.1,), 0.0, 0.447214),
    ((0.0,), (1.0,), 3.0, 3.0),
    ((0.5,), (1.0,), 0.0, 1.3125),
    ((-0.5,), (1.0,), 0.0, 1.8125),
    ((2.0,), (0.1,), 0.0, 2.4),
    ((2.0,), (5.0,), 0.0, 5.0),
    ((0.0, 0.0), (1.0, 0.2), 0.0, 1.5),
]


def profile_of(q0, v0, q1, limit, a, least):
    return trapezoidal_profile(q0, q1, limit, a, start_velocity=v0, minimum_time=least)


@pytest.fixture(scope="module")
def random_cases():
    """Arguments, profiles and samples at 301 times; starts of every kind: at rest, away, too fast, on the target."""
    rng, dtype = np.random.default_rng(3), np.float64 if X64 else np.float32
    shape = (CASES, JOINTS)
    q0, q1 = rng.normal(size=shape), rng.normal(size=shape)
    v0 = rng.normal(size=shape) * rng.choice([0.0, 0.3, 2.0], size=shape)
    q1 = np.where(rng.uniform(size=shape) < 0.1, q0, q1)
    limit, a = rng.uniform(0.2, 3.0, shape), rng.uniform(0.5, 8.0, shape)
    least = rng.choice([0.0, 6.0], size=CASES)
    arguments = tuple(x.astype(dtype) for x in (q0, v0, q1, limit, a, least))

    @jax.jit
    @jax.vmap
    def run(*args):
        profile = profile_of(*args)
        t = profile.duration * jnp.linspace(0.0, 1.0, 301, dtype=dtype)
        return profile, t, profile.evaluate(t)

    return arguments, *run(*arguments)


@pytest.mark.parametrize(("v0", "target", "least", "duration"), GOLDEN)
@pytest.mark.float32
def test_golden_durations(v0, target, least, duration, dtype):
    ones = jnp.ones(len(target), dtype)
    profile = profile_of(0 * ones, jnp.array(v0, dtype), jnp.array(target, dtype), ones, 2 * ones, least)
    assert profile.duration.dtype == dtype
    assert_close(profile.duration, np.array(duration), 2e-6)
    if least:
        assert_close(profile.cruise, np.array([0.354249]), 2e-6)
    if len(target) == 2:
        assert_close(profile.cruise, np.array([1.0, 0.139853]), 1e-5)  # the vendor's second one comes of a bisection


def test_agrees_with_the_sdk(random_cases):
    generator = pytest.importorskip("rby1_sdk.math").TrapezoidalMotionGenerator
    (q0, v0, q1, limit, a, least), profile, t, at = (jax.tree.map(np.asarray, x) for x in random_cases)
    if not X64:
        pytest.skip("the SDK computes in float64")
    for k in range(0, CASES, 4):
        given = generator.Input()
        given.current_position, given.current_velocity, given.target_position = q0[k], v0[k], q1[k]
        given.velocity_limit, given.acceleration_limit, given.minimum_time = limit[k], a[k], float(least[k])
        sdk = generator(60)
        sdk.update(given)
        assert_close(profile.duration[k], np.array(sdk.get_total_time()))
        want = np.stack([sdk(float(s)).position for s in t[k, ::30]])
        # The SDK's joints arrive within 1e-5 s of each other, and their time is stretched by what is left.
        assert_close(at.position[k, ::30], want, 3e-5, scale=1.0)


@pytest.mark.float32
def test_starts_and_ends_as_told_and_keeps_the_limits(random_cases):
    (q0, v0, q1, limit, a, least), profile, t, at = (jax.tree.map(np.asarray, x) for x in random_cases)
    slack = 1e-12 if X64 else 1e-5
    assert_close(at.position[:, 0], q0)
    assert_close(at.velocity[:, 0], v0)
    assert (at.position[:, -1] == q1).all() and not at.velocity[:, -1].any() and not at.acceleration[:, -1].any()
    assert (np.abs(at.velocity) <= np.maximum(limit, np.abs(v0))[:, None] * (1 + slack)).all()
    assert (np.abs(at.acceleration) <= a[:, None] * (1 + slack)).all()
    assert (profile.duration >= least).all()
    # Whoever is faster than the limit brakes at once: after |v0| / a no speed is above the limit.
    braked = t[..., None] >= (np.abs(v0) / a)[:, None]
    assert (np.abs(at.velocity) <= np.where(braked, limit[:, None], np.inf) * (1 + slack)).all()


def test_velocity_is_the_integral_of_the_acceleration_and_position_that_of_velocity(random_cases):
    _, profile, t, at = (jax.tree.map(np.asarray, x) for x in random_cases)
    if not X64:
        pytest.skip("differences of float32 positions hold no digits")
    h = (t[:, 1] - t[:, 0])[:, None, None]
    rises = (profile.cruise - profile.start_velocity) / profile.acceleration
    falls = profile.duration[:, None] + profile.cruise / profile.deceleration
    steady = np.ones_like(at.velocity[:, 1:-1], bool)
    for jump in (rises, falls):
        steady &= (jump[:, None] <= t[:, :-2, None]) | (jump[:, None] >= t[:, 2:, None])
    assert steady.mean() > 0.9
    rise = (at.velocity[:, 2:] - at.velocity[:, :-2]) / (2 * h)
    error = np.abs(rise - at.acceleration[:, 1:-1])
    assert error[steady].max() < 1e-9
    moved = 0.5 * (at.velocity[:, 1:] + at.velocity[:, :-1]) * h  # the trapezoidal rule, exact within a part
    gap = np.abs(np.diff(at.position, axis=1) - moved)
    assert gap[:, 1:][steady].max() < 1e-12
    # Across a jump of the acceleration it misses at most da h^2 / 8, and no more if position and velocity do not jump.
    largest = np.abs(at.acceleration).max(axis=1, keepdims=True)
    assert (gap <= 0.25 * largest * h**2 + 1e-12).all()
    assert (np.abs(np.diff(at.velocity, axis=1)) <= largest * h + 1e-12).all()


def test_no_joint_alone_is_quicker_than_bang_bang_allows(random_cases):
    """The optimum from rest, by textbook: d / v + v / a, or 2 sqrt(d / a); the slowest joint has it."""
    (q0, _, q1, limit, a, _), *_ = random_cases
    d = np.abs(q1 - q0).astype(float)
    best = np.where(d * a > limit**2, d / limit + limit / a, 2 * np.sqrt(d / a)).max(axis=1)
    got = jax.jit(jax.vmap(lambda *x: trapezoidal_profile(*x).duration))(q0, q1, limit, a)
    assert_close(got, best)


@pytest.mark.slow
def test_derivatives_in_both_modes():
    """Along random directions, first and second, against finite differences; at rest, away, towards, and too fast."""
    if not X64:
        pytest.skip("finite differences")

    def f(x):
        v0, q1, limit, a, least = x
        profile = profile_of(jnp.zeros(3), v0, q1, limit, a, least)
        at = profile.evaluate(jnp.array([0.21, 0.9]) * profile.duration)
        return jnp.sum(jnp.sin(jnp.concatenate([profile.duration[None], at.position.ravel(), at.velocity.ravel()])))

    @jax.jit
    @jax.vmap
    def derivatives(x, d):
        gradient = jax.grad(f)(x)
        slope, curvature = jax.jvp(lambda x: jax.jvp(f, (x,), (d,))[1], (x,), (d,))
        reverse = sum(jnp.sum(g * e) for g, e in zip(gradient, d, strict=True))
        return f(x), slope, reverse, curvature

    cases = [(v0, least) for v0 in (0.0, 0.4, -0.7, 1.6) for least in (0.0, 4.0)]
    n = len(cases)
    v0 = jnp.array([[v, 0.1, -0.2] for v, _ in cases])
    q1, limit, a = (jnp.tile(jnp.array([x]), (n, 1)) for x in ([1.0, 0.2, -0.4], [1.0, 2.0, 1.5], [2.0, 3.0, 2.5]))
    x = (v0, q1, limit, a, jnp.array([least for _, least in cases]))
    d = tuple(normal(k, *y.shape) for k, y in enumerate(x))
    value, slope, reverse, curvature = derivatives(x, d)
    h = 1e-5

    def moved(sign):
        return derivatives(tuple(y + sign * h * e for y, e in zip(x, d, strict=True)), d)

    (after, slope_after, *_), (before, slope_before, *_) = moved(1.0), moved(-1.0)
    assert_close(reverse, slope)
    assert_close((after - before) / (2 * h), slope, kind="difference")
    assert_close((slope_after - slope_before) / (2 * h), curvature, kind="difference")
    assert float(jnp.abs(slope).min()) > 1e-3 and value.shape == (n,)


@pytest.mark.slow
@pytest.mark.float32
def test_derivatives_are_finite_where_nothing_moves(dtype):
    zero, one = jnp.zeros(2, dtype), jnp.ones(2, dtype)

    def total(x):
        q0, v0, q1 = x
        profile = profile_of(q0, v0, q1, one, one, jnp.asarray(0.0, dtype))
        return profile.duration + profile.evaluate(jnp.array([0.0, 0.5], dtype)).position.sum()

    q1 = jnp.stack([zero, one])  # at rest on the target; two joints that are equally slow
    for f in (jax.grad, jax.hessian):
        of_both = jax.jit(jax.vmap(f(total), in_axes=((None, None, 0),)))((zero, zero, q1))
        chex.assert_tree_all_finite(of_both)


def test_evaluation_outside_of_the_motion(dtype):
    one = jnp.ones(1, dtype)
    at = profile_of(0 * one, 0.5 * one, one, one, 2 * one, 0.0).evaluate(jnp.array([[-1.0, 9.0]], dtype))
    assert at.position.shape == (1, 2, 1)
    assert at.position.ravel().tolist() == [0.0, 1.0]
    assert at.velocity.ravel().tolist() == [0.5, 0.0] and not at.acceleration.any()


def test_wrong_arguments():
    one = jnp.ones(2)
    with pytest.raises(ShapeError, match=r"target must have shape \(2,\)"):
        trapezoidal_profile(one, jnp.ones(3), one, one)
    with pytest.raises(ShapeError, match="minimum_time"):
        trapezoidal_profile(one, one, one, one, minimum_time=one)
    with pytest.raises(DtypeError, match="start must be an array"):
        trapezoidal_profile([0.0, 1.0], one, one, one)  # type: ignore[arg-type]
    for name, k, wrong in (
        ("velocity_limit", 2, 0.0),
        ("acceleration_limit", 3, -1.0),
        ("acceleration_limit", 3, np.inf),
    ):
        arguments = [one, one, one, one]
        arguments[k] = jnp.array([1.0, wrong])
        with pytest.raises(ArgumentError, match=rf"{name}\[1\] must be positive"):
            trapezoidal_profile(*arguments)
    with pytest.raises(ArgumentError, match=r"target\[0\] must be finite, got nan"):
        trapezoidal_profile(one, one * jnp.nan, one, one)
    for wrong in (-1.0, jnp.nan):
        with pytest.raises(ArgumentError, match="minimum_time must be finite and not negative"):
            trapezoidal_profile(one, one, one, one, minimum_time=wrong)
    assert jnp.isnan(jax.jit(lambda a: trapezoidal_profile(one, one, one, a).duration)(0 * one))
    free = trapezoidal_profile(0 * one, one, one * jnp.inf, one)
    assert float(free.duration) == 2.0
