"""Fits: against numpy's least squares, held-out motions, outliers, payloads; every fitted body can exist."""

from __future__ import annotations

import functools
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import (
    TrajectoryData,
    actuator_regressor,
    fit,
    motor_torques,
    parameters,
    torque_regressor,
)
from rbydyn_jax.model.states import random_states
from rbydyn_jax.spatial import inertia
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, oracle

pytestmark = pytest.mark.skipif(not X64, reason="what is compared needs float64")
torques = jax.jit(jax.vmap(motor_torques, (None, 0, 0, 0)))


def with_friction(model: rb.Model, rng: np.random.Generator) -> rb.Model:
    chosen = (rng.uniform(0.1, 1.0, model.nv) * np.minimum(np.asarray(model.effort_limit), 10.0) / 10.0 for _ in "df")
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, tuple(map(jnp.asarray, chosen)))


def perturbed(model: rb.Model, rng: np.random.Generator, by: float = 0.2) -> rb.Model:
    """Other bodies that can exist, no friction."""
    theta = jax.vmap(inertia.to_log_cholesky)(model.inertias)
    other = jax.vmap(inertia.from_log_cholesky)(theta + by * rng.normal(size=theta.shape))
    zero = jnp.zeros(model.nv)
    return eqx.tree_at(lambda m: (m.inertias, m.damping, m.friction), model, (other, zero, zero))


@functools.cache
def measured():
    """A robot, another one to begin with, and motions of the first with 1 % of noise; the torques without, too."""
    rng = np.random.default_rng(0)
    true = with_friction(random_tree(4, ("revolute", "prismatic"), 4, branching=0.3), rng)
    q, v, a = random_states(true, jax.random.key(1), 600)
    tau = np.asarray(torques(true, q, v, a))
    noise = 0.01 * tau.std(axis=0)
    data = TrajectoryData(q, v, a, jnp.asarray(tau + noise * rng.normal(size=tau.shape)))
    return true, perturbed(true, rng), data, tau, noise


def held_out(model: rb.Model) -> np.ndarray:
    """The errors of the torques on the last third of the motion, in units of the noise."""
    _, _, data, tau, noise = measured()
    got = np.asarray(torques(model, *data[400:].motion))
    return np.sqrt(np.mean((got - tau[400:]) ** 2, axis=0)) / noise


@pytest.mark.slow
def test_the_linear_fit_is_that_of_least_squares():
    _, initial, data, _, noise = measured()
    found = fit(initial, data, terms=("inertia", "friction"), consistent=False, noise=jnp.asarray(noise), prior=0.5)
    Y = jax.vmap(lambda q, v, a: torque_regressor(initial, q, v, a))(*data.motion)
    drives = jax.vmap(lambda v, a: actuator_regressor(initial, v, a))(data.v, data.a)
    rows = np.concatenate([Y, drives[:, :, -initial.nv :]], axis=2) / noise[:, None]
    rest = np.asarray(data.tau) - np.asarray(initial.armature) * np.asarray(data.a)
    none = fit(initial, data, terms=("inertia", "friction"), consistent=False, noise=jnp.full(4, 1e12), prior=0.5)
    scale = none.deviation  # that of the prior, since these data do not count
    stacked = np.concatenate([rows.reshape(-1, len(scale)), np.diag(1.0 / scale)])
    before = np.asarray(parameters(initial, ("inertia", "friction")))
    want, *_ = np.linalg.lstsq(stacked * scale, np.concatenate([(rest / noise).reshape(-1), before / scale]))
    assert_close(found.values / scale, want, 1e-8)
    covariance = np.linalg.inv((stacked * scale).T @ (stacked * scale)) * np.outer(scale, scale)
    assert_close(found.covariance / np.outer(scale, scale), covariance / np.outer(scale, scale), 1e-8)
    assert_close(none.values, before, 1e-6)
    assert found.iterations == 0 and held_out(found.model).max() < 1e3


@pytest.mark.slow
@pytest.mark.parametrize("huber", [None, 2.0])
def test_a_consistent_fit_predicts_torques_of_other_motions(huber):
    _, initial, data, _, noise = measured()
    some = data[:400]
    if huber is not None:  # one in twenty torques is nonsense
        wrong = np.random.default_rng(1).random(some.tau.shape) < 0.05
        some = eqx.tree_at(lambda d: d.tau, some, some.tau + jnp.asarray(30.0 * noise * np.asarray(wrong)))
    found = fit(initial, some, huber=huber)
    assert found.converged and all(found.consistent.values())
    assert held_out(found.model).max() < 0.5 < held_out(initial).max()
    drives = parameters(found.model, ("armature", "damping", "friction"))
    assert (np.asarray(drives) >= 0.0).all()
    if huber is None:
        assert_close(found.noise, noise, 0.15)
        free = fit(initial, some, consistent=False)
        assert not all(free.consistent.values())
        assert (np.abs(free.values - found.values) < 4.0 * found.deviation).all()
        assert "friction of joint_4" in str(found)


@pytest.mark.slow
def test_payloads_and_single_links():
    true, *_ = measured()
    q, v, a = random_states(true, jax.random.key(2), 50)
    box = jnp.array([1.3, 0.13, -0.26, 0.05, 0.15, 0.02, 0.12, 0.0, 0.02, 0.14])
    link = true.link_names[-1]
    loaded = rb.with_inertias(true, {link: true.link_inertias[-1] + box})
    data = TrajectoryData(q, v, a, torques(loaded, q, v, a))
    found = fit(true, data, terms=("inertia",), payload=link)
    assert found.payload is not None and len(found.names) == 10 and found.names[0] == "m of the payload"
    assert_close(torques(found.model, q, v, a), data.tau, 1e-5)
    assert bool(inertia.is_consistent(jnp.asarray(found.payload)))
    single = fit(true, data, terms=("inertia",), links=[link])
    assert_close(torques(single.model, q, v, a), data.tau, 1e-5)
    assert_close(single.model.link_inertias[:-1], true.link_inertias[:-1])


@functools.cache
def currents():
    """Currents of the robot of `measured`, whose torques Pinocchio computes, its constants, and a guess of them."""
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    true, *_ = measured()
    rng, pin = np.random.default_rng(5), pin_model(true)
    q, v, a = (np.asarray(x) for x in random_states(true, jax.random.key(3), 400))
    tau = np.stack([pin.rnea(*state) for state in zip(q, v, a, strict=True)])
    tau += np.asarray(true.damping) * v + np.asarray(true.friction) * np.sign(v)
    constants = np.array([4.0, 0.5, 11.0, 2.0])
    exact = tau / constants
    noisy = exact + 0.01 * exact.std(axis=0) * rng.normal(size=exact.shape)
    return TrajectoryData(*map(jnp.asarray, (q, v, a, noisy))), exact, constants, constants * rng.uniform(0.6, 1.6, 4)


@pytest.mark.slow
def test_motor_constants_and_friction_are_found_together():
    """Of a robot whose inertias are known; the deviations are those of the errors."""
    true, *_ = measured()
    data, exact, constants, guess = currents()
    zero = jnp.zeros(true.nv)
    still = eqx.tree_at(lambda m: (m.damping, m.friction), true, (zero, zero))
    found = fit(still, data, terms=("damping", "friction"), constants=jnp.asarray(guess))
    assert found.converged and found.constants is not None and found.names[-1] == "constant of joint_4"
    assert (np.abs(found.constants - constants) < 4.0 * found.deviation[-4:]).all()
    assert (found.deviation[-4:] < 0.01 * constants).all()
    assert_close(found.constants, constants, 0.01)
    drives = np.concatenate([true.damping, true.friction])
    assert (np.abs(found.values[:-4] - drives) < 4.0 * found.deviation[:-4]).all()
    assert_close(found.noise, 0.01 * exact.std(axis=0) * constants, 0.15)
    wrong = eqx.tree_at(lambda d: d.tau, data, data.tau.at[::25].add(jnp.asarray(20.0 * exact.std(axis=0))))
    robust = fit(still, wrong, terms=("damping", "friction"), constants=jnp.asarray(guess), huber=2.0)
    assert_close(robust.constants, constants, 0.01)
    free = fit(still, data, terms=("damping", "friction"), constants=jnp.asarray(guess), consistent=False)
    assert_close(free.values, found.values, 1e-3)


@pytest.mark.ci
@pytest.mark.parametrize("believed", [0.02, 50.0])
def test_a_motor_constant_may_be_far_from_what_is_believed(believed):
    true, *_ = measured()
    data, _, constants, _ = currents()
    still = eqx.tree_at(lambda m: (m.damping, m.friction), true, (jnp.zeros(true.nv),) * 2)
    found = fit(still, data, terms=("damping", "friction"), constants=jnp.asarray(believed * constants))
    assert found.converged and found.constants is not None
    assert (np.abs(found.constants - constants) < 4.0 * found.deviation[-4:]).all()
    assert_close(found.constants, constants, 0.01)


@pytest.mark.ci
def test_a_current_of_the_wrong_sign_is_refused():
    true, *_ = measured()
    data, _, constants, _ = currents()
    wrong = eqx.tree_at(lambda d: d.tau, data, data.tau.at[:, 2].multiply(-1.0))
    settings = {"terms": ("damping", "friction"), "constants": jnp.asarray(constants)}
    with pytest.raises(rb.ArgumentError, match="current of 'joint_3' has the sign opposite"):
        fit(true, wrong, **settings)
    found = fit(true, wrong, **settings, consistent=False).constants
    assert found is not None
    assert_close(found, constants * np.array([1.0, 1.0, -1.0, 1.0]), 0.01)


@pytest.mark.slow
def test_currents_are_explained_by_inertias_and_constants_together():
    _, initial, *_ = measured()
    data, exact, constants, _ = currents()
    found = fit(initial, data, constants=jnp.asarray(constants), prior=0.3)
    assert found.converged and all(found.consistent.values())
    got = np.asarray(torques(found.model, *data.motion)) / found.constants
    assert (np.sqrt(np.mean((got - exact) ** 2, axis=0)) < 0.005 * exact.std(axis=0)).all()
    # All torques may be scaled together: what the constants are is known from the prior alone.
    assert (found.deviation[-4:] > 0.01 * constants).all()


@pytest.mark.ci
def test_wrong_arguments():
    _, initial, data, *_ = measured()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"prior": 0.0}, "prior must be finite and positive"),
        ({"terms": ("friction",), "links": ["link_1"]}, "without 'inertia' no link is fitted"),
        ({"terms": ("inertia",), "links": []}, "there is nothing to fit"),
        ({"payload": "link_0"}, "link 'link_0' does not move"),
        ({"noise": jnp.zeros(4)}, "noise must be finite and positive"),
        ({"constants": jnp.zeros(4)}, "constants must be finite and positive"),
    )
    for wrong, message in cases:
        with pytest.raises(rb.ArgumentError, match=message):
            fit(initial, data[:20], **wrong)


def sines(model: rb.Model, seed: int, count: int, period: float = 0.01) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A smooth motion within half of the limits: sums of sines."""
    rng = np.random.default_rng(seed)
    t = np.arange(count) * period
    low, high = (np.clip(np.asarray(x), -np.pi, np.pi) for x in (model.position_lower, model.position_upper))
    q, v, a = np.tile((low + high) / 2.0, (count, 1)), np.zeros((count, model.nv)), np.zeros((count, model.nv))
    for k in range(1, 6):
        rate, phase = rng.uniform(0.5, 1.5, model.nv) * k, rng.uniform(0, 2 * np.pi, model.nv)
        size = 0.1 * (high - low) / k
        q += size * np.sin(rate * t[:, None] + phase)
        v += size * rate * np.cos(rate * t[:, None] + phase)
        a -= size * rate**2 * np.sin(rate * t[:, None] + phase)
    return jnp.asarray(q), jnp.asarray(v), jnp.asarray(a)


@pytest.mark.slow
def test_rby1_is_recovered_in_less_than_a_minute():
    rng = np.random.default_rng(3)
    true = with_friction(robots.rby1a(), rng)
    initial = perturbed(true, rng)
    motion, later = sines(true, 1, 4000), sines(true, 2, 1000)
    tau, want = (np.asarray(torques(true, *x)) for x in (motion, later))
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    data = TrajectoryData(*motion, jnp.asarray(tau + noise * rng.normal(size=tau.shape)))
    start = time.process_time()
    found = fit(initial, data)
    seconds = time.process_time() - start
    errors = np.sqrt(np.mean((np.asarray(torques(found.model, *later)) - want) ** 2, axis=0)) / noise
    print(f"{seconds:.1f} s of CPU, {found.iterations} steps, largest error {errors.max():.2f} of the noise")
    assert found.converged and all(found.consistent.values())
    assert errors.max() < 2.0
    assert seconds < 120.0  # of two cores
