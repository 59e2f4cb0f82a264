"""Environments as other libraries call them: Gymnasium's own checks, and the interface of Rejax."""

from __future__ import annotations

import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import envs
from tests.envs.test_environment import HEAVY, LIGHT, arm
from tests.helpers import assert_close, untyped

ENV = arm(parameters=(LIGHT, HEAVY), max_steps_in_episode=4)


@pytest.fixture(scope="module")
def gymnasium() -> Any:
    return pytest.importorskip("gymnasium")


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:.*Box observation space .* value is -?infinity", "ignore:.*not having a spec")
def test_gymnasium_checks_the_episodes(gymnasium):
    """Its checker takes single environments: a batch of one, row by row."""
    from gymnasium.utils.env_checker import check_env

    class Single(gymnasium.Env):
        def __init__(self):
            self.batch = envs.vector_env(ENV, 1)
            self.observation_space, self.action_space = (
                self.batch.single_observation_space,
                self.batch.single_action_space,
            )

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            if seed is not None:
                self.batch.reset(seed=seed)
            observations, info = self.batch.reset(seed=int(self.np_random.integers(2**31)))
            return observations[0], info

        def step(self, action):
            observations, rewards, terminated, truncated, info = self.batch.step(action[None])
            flags = bool(terminated[0]), bool(truncated[0])
            return observations[0], float(rewards[0]), *flags, {k: x[0] for k, x in info.items()}

    check_env(Single())


@pytest.mark.slow
def test_a_vector_environment_runs_under_the_wrappers_of_gymnasium(gymnasium):
    batch = envs.vector_env(ENV, 2)
    assert isinstance(batch, gymnasium.vector.VectorEnv)
    assert batch.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(batch)
    first, _ = wrapped.reset(seed=5)
    assert first in batch.observation_space and first.dtype == np.float32
    total = np.zeros(2)
    wrapped.action_space.seed(0)
    for k in range(5):
        observations, rewards, terminated, truncated, infos = wrapped.step(wrapped.action_space.sample())
        assert observations in batch.observation_space
        assert rewards.shape == (2,) and not terminated.any() and (truncated == (k == 3)).all()
        assert_close(infos["distance"], np.linalg.norm(observations[:, -3:], axis=1), 1e-5)
        total += rewards
        if k == 3:
            assert (infos["episode"]["l"] == 4).all()
            assert_close(infos["episode"]["r"], total)
    assert not np.any(rewards) and not np.allclose(observations, first)  # the fifth call starts new episodes
    assert_close(observations[:, 2:4], np.zeros((2, 2)), scale=1.0)
    again, _ = wrapped.reset(seed=5)
    np.testing.assert_array_equal(again, first)


@pytest.mark.ci
def test_episodes_of_the_adapter_are_those_of_the_functions(gymnasium):
    batch = envs.vector_env(ENV, 2)
    batch.reset(seed=1)
    state = jax.tree.map(lambda x: x[1], untyped(batch)._state)
    action = np.array([[0.1, 0.2], [-0.4, 0.9]], np.float32)
    observations, rewards, *_ = batch.step(action)
    want = envs.step(ENV, state, jnp.asarray(action[1]))
    assert_close(observations[1], want.observation, 1e-6)
    assert_close(rewards[1], want.reward, 1e-6)


def test_actions_that_are_not_finite_are_refused_and_change_nothing(gymnasium):
    batch, twin = envs.vector_env(ENV, 2), envs.vector_env(ENV, 2)
    action = np.array([[0.1, 0.2], [-0.4, 0.9]], np.float32)
    for each in (batch, twin):
        each.reset(seed=1)
    with pytest.raises(rb.ArgumentError, match=r"actions must be finite, got \[\[0\.0, 0\.0\], \[0\.0, nan\]\]"):
        batch.step(np.array([[0.0, 0.0], [0.0, np.nan]]))
    np.testing.assert_array_equal(batch.step(action)[0], twin.step(action)[0])


@pytest.mark.slow
def test_the_episode_after_a_traced_action_that_is_not_a_number_starts_anew():
    env = envs.RejaxEnv(ENV)
    step = jax.jit(env.step)
    observation, state = env.reset(jax.random.key(0), env.default_params)
    for k in range(5):
        action = jnp.full(2, jnp.nan if k == 0 else 0.0)
        observation, state, reward, done, info = step(jax.random.key(k), state, action, env.default_params)
        assert bool(jnp.isnan(reward)) is bool(jnp.isnan(info["distance"])) is (k < 4) and bool(done) is (k == 3)
    assert bool(jnp.isfinite(observation).all())


def test_wrong_calls(gymnasium):
    with pytest.raises(rb.ArgumentError, match="count must be at least 1"):
        envs.vector_env(ENV, 0)
    with pytest.raises(rb.DtypeError, match=r"env must be an envs\.Environment, got Model"):
        envs.vector_env(untyped(ENV.model), 2)
    batch = envs.vector_env(ENV, 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        batch.step(np.zeros((2, 2)))
    batch.reset(seed=0)
    with pytest.raises(rb.ShapeError, match=r"actions must have shape \(2, 2\)"):
        batch.step(np.zeros(2))


def test_without_gymnasium_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(rb.MissingExtraError, match=r"rbydyn_jax\[rl\]"):
        envs.vector_env(ENV, 2)
    monkeypatch.setitem(sys.modules, "gymnax.environments.spaces", None)
    with pytest.raises(rb.MissingExtraError, match=r"rbydyn_jax\[rl\]"):
        envs.RejaxEnv(ENV).action_space(ENV)


@pytest.mark.slow
def test_the_interface_of_rejax_starts_anew_where_an_episode_is_over():
    env = envs.RejaxEnv(ENV)
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    observation, state = reset(jax.random.key(0), env.default_params)
    for k in range(4):
        key = jax.random.key(10 + k)
        want = envs.step(ENV, state, jnp.ones(2))
        observation, state, reward, done, info = step(key, state, jnp.ones(2), env.default_params)
        assert_close(reward, want.reward)
        assert_close(info["distance"], want.distance)
        assert bool(done) is (k == 3)
    started = envs.reset(ENV, key)
    assert_close(observation, envs.observe(ENV, started))
    assert int(state.steps) == 0 and (state.goal == started.goal).all()


def test_spaces_of_gymnax(monkeypatch):
    """Gymnax itself stays with old versions of JAX; of its spaces only the constructor is called."""
    boxes = types.SimpleNamespace(Box=lambda low, high, shape: (low, high, shape))
    monkeypatch.setitem(sys.modules, "gymnax.environments.spaces", boxes)
    env = envs.RejaxEnv(ENV)
    assert env.action_space(ENV) == (-1.0, 1.0, (2,))
    assert env.observation_space(ENV) == (-np.inf, np.inf, (12,))
