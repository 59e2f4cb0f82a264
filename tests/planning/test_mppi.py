"""Sampling, against the optimum that scipy's Riccati equation knows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import robots
from rbydyn_jax._errors import ArgumentError, DtypeError, ShapeError
from rbydyn_jax.planning import ControlProblem, MppiStatus, mppi
from rbydyn_jax.planning.mppi import _correlated
from tests.helpers import assert_close
from tests.planning import sliders

Q, V = jnp.ones(1), jnp.full(1, -0.4)


@pytest.mark.float32
@pytest.mark.slow
def test_samples_find_the_optimum_of_a_linear_robot():
    limit = jnp.full(1, 8.0)
    found = sliders.problem(tau_lower=-limit, tau_upper=limit)
    result = mppi(found, Q, V, jax.random.key(1), samples=512, iterations=30, noise=1.0)
    x = np.array([1.0, -0.4])
    best = 0.5 * x @ sliders.riccati()[0] @ x
    costs = np.asarray(result.costs)
    assert costs.shape == (31,) and (np.diff(costs) <= 0.0).all()
    assert best * (1.0 - 1e-4) <= result.cost <= 1.03 * best < costs[0]
    assert (jnp.abs(result.taus) <= limit[None]).all() and 1.0 <= result.samples <= 512.0
    assert result.taus.dtype == found.dt.dtype
    qs, vs = found.rollout(Q.astype(found.dt.dtype), V.astype(found.dt.dtype), result.taus)
    assert_close(found.cost(qs, vs, result.taus), result.cost)
    assert_close(qs, result.qs)


@pytest.mark.ci
def test_the_status_tells_whether_the_cost_is_lower():
    def found(q, noise):
        return mppi(sliders.problem(steps=10), q, V, jax.random.key(1), samples=32, noise=noise)

    start = jnp.stack([Q, Q, jnp.full(1, jnp.nan)])
    result = jax.vmap(found)(start, jnp.array([1.0, 0.0, 1.0]))
    assert result.status.tolist() == [MppiStatus.IMPROVED, MppiStatus.NOT_IMPROVED, MppiStatus.NOT_FINITE]
    assert (result.cost < result.costs[:, 0]).tolist() == [True, False, False]
    assert result.samples[2] == 0.0
    assert "NOT_FINITE" in repr(result) and repr(found(Q, 1.0)).startswith("MppiResult: IMPROVED")


def test_torques_whose_cost_is_not_finite_are_left_for_those_with_one():
    def residuals(model, q, v, tau, t):
        return jnp.where(tau > 0.5, jnp.inf, tau)

    problem = ControlProblem(sliders.problem().model, [residuals], dt=0.1, steps=3)
    result = mppi(problem, Q, V, jax.random.key(1), tau=jnp.ones((3, 1)), samples=16, noise=0.5)
    assert jnp.isinf(result.costs[0]) and jnp.isfinite(result.cost) and result.status == MppiStatus.IMPROVED


@pytest.mark.ci
def test_a_key_says_all():
    found = sliders.problem(steps=10)
    solve = jax.jit(lambda key: mppi(found, Q, V, key, samples=32, noise=1.0).taus)
    one, again, other = (solve(jax.random.key(k)) for k in (1, 1, 2))
    assert (one == again).all() and not (one == other).all()
    together = jax.vmap(solve)(jax.vmap(jax.random.key)(jnp.arange(1, 3)))
    assert_close(together, jnp.stack([one, other]), 1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_cost_has_a_derivative_also_where_all_samples_are_alike(noise):
    found = sliders.problem(steps=10)

    @jax.jit
    def cost(v):
        return mppi(found, Q, v, jax.random.key(1), samples=32, noise=noise).cost

    h = 1e-6
    expected = (cost(V + h) - cost(V - h)) / (2.0 * h)
    assert_close(jax.grad(cost)(V)[0], expected, 1e-7)


def test_noise_without_correlation_has_a_derivative_by_it():
    def next_to_it(share):
        return _correlated(3, share)[1, 0]  # x / sqrt(1 + x^2)

    assert_close(jax.grad(next_to_it)(jnp.zeros(())), 1.0)
    assert_close(_correlated(3, jnp.zeros(())), jnp.eye(3))


def test_noise_has_variance_one_and_forgets_as_asked():
    smooth = np.asarray(_correlated(200, jnp.asarray(0.5)))
    assert_close(np.diag(smooth @ smooth.T), np.ones(200))
    late = smooth[150:]
    lag = np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    assert_close(late @ late.T, 0.5**lag)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (DtypeError, "key must be one key", {"key": 3}),
        (ArgumentError, "samples must be at least 2", {"samples": 1}),
        (ArgumentError, "temperature must be", {"temperature": 0.0}),
        (ArgumentError, "noise must be", {"noise": -1.0}),
        (ShapeError, "noise must have shape", {"noise": jnp.ones(2)}),
        (ArgumentError, "correlation must be", {"correlation": 1.0}),
        (ShapeError, "v must have shape", {"v": jnp.zeros(3)}),
        (DtypeError, "problem must be a ControlProblem", {"problem": robots.pendulum()}),
    ],
)
def test_wrong_calls_are_explained(error, message, options):
    with pytest.raises(error, match=message):
        mppi(**{"problem": sliders.problem(steps=4), "q": Q, "v": V, "key": jax.random.key(0)} | options)
