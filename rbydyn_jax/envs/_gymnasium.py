"""A vector environment of Gymnasium, which is imported with this module."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from jaxtyping import Array

from .._check import check_finite, check_real
from .environment import Environment, EnvState, observe, reset, step


class VectorEnv(gymnasium.vector.VectorEnv):
    """See `envs.vector_env`."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, env: Environment, count: int) -> None:
        """`env` and `count` have been checked."""
        self.env, self.num_envs, self._state = env, count, None
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (env.observation_size,), np.float32)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (env.action_size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Starts all episodes; the same seed draws the same ones."""
        super().reset(seed=seed)
        self._key = jax.random.key(int(self.np_random.integers(2**31)))
        self._state, observations = _start(self.env, self._keys())
        self._over = np.zeros(self.num_envs, bool)
        return np.asarray(observations, np.float32), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Observations, rewards, terminated, truncated, and the distances from the goals.

        Raises:
            ArgumentError: `actions` are not finite.
            ResetNeeded: `reset` was not called.
            ShapeError: `actions` has not a row for each episode.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        rows = check_real(actions, "actions", (self.num_envs, self.env.action_size))
        check_finite(rows, "actions")
        self._state, *found = _advance(self.env, self._state, jnp.asarray(rows), self._over, self._keys())
        observations, rewards, over, distances = (np.array(x) for x in found)
        self._over = over
        terminated = np.zeros(self.num_envs, bool)
        return observations.astype(np.float32), rewards, terminated, over.copy(), {"distance": distances}

    def _keys(self) -> Array:
        self._key, own = jax.random.split(self._key)
        return jax.random.split(own, self.num_envs)


@jax.jit
def _start(env: Environment, keys: Array) -> tuple[EnvState, Array]:
    states = jax.vmap(reset, (None, 0))(env, keys)
    return states, jax.vmap(observe, (None, 0))(env, states)


@jax.jit
def _advance(env: Environment, states: EnvState, actions: Array, over: Array, keys: Array) -> tuple[Any, ...]:
    def one(state: EnvState, action: Array, over: Array, key: Array) -> tuple[Any, ...]:
        after, started = step(env, state, action), reset(env, key)
        anew = (started, observe(env, started), jnp.zeros_like(after.reward), jnp.zeros_like(after.done))
        moved = (after.state, after.observation, after.reward, after.done)
        state, observation, reward, done = jax.tree.map(lambda a, b: jnp.where(over, a, b), anew, moved)
        return state, observation, reward, done, jnp.where(over, jnp.linalg.norm(observation[-3:]), after.distance)

    return jax.vmap(one)(states, actions, over, keys)
