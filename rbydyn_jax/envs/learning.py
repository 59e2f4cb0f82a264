"""Environments as other libraries call them: Gymnasium's vector environments, and the interface of Rejax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .._check import check_integer
from .._extras import require
from .environment import Environment, EnvState, check_environment, observe, reset, step

if TYPE_CHECKING:
    import gymnasium


def vector_env(env: Environment, count: int) -> gymnasium.vector.VectorEnv:
    """Returns a batch of episodes as a vector environment of Gymnasium.

    Its arrays are of numpy. All episodes run in one compiled call. One that is over starts anew in the next step, whose
    action is ignored and whose reward is 0 (`AutoresetMode.NEXT_STEP`). Episodes are over by time only: they are
    truncated, never terminated. ``info["distance"]`` is the distance from the goal [m].

    Args:
        env: The environment.
        count: Number of episodes at a time.

    Raises:
        ArgumentError: `count` is less than 1.
        DtypeError: `env` is no `Environment`, or `count` no integer.
        MissingExtraError: Gymnasium is not installed; it comes with the extra `rl`.
    """
    env, count = check_environment(env), check_integer(count, "count", 1)
    require("gymnasium", "rl", "envs.vector_env")
    from ._gymnasium import VectorEnv

    return VectorEnv(env, count)


class RejaxEnv:
    """The interface by which Rejax trains, that of Gymnax before its version 1: `PPO.create(env=envs.RejaxEnv(env))`.

    Its `params` are the `Environment`, whose leaves may be mapped: one training for each of many robots. An episode
    that is over starts anew in the same step.
    """

    def __init__(self, env: Environment) -> None:
        """Wraps an environment.

        Raises:
            DtypeError: `env` is no `Environment`.
        """
        self.default_params = check_environment(env)

    def reset(self, key: PRNGKeyArray, params: Environment) -> tuple[Float[Array, "n"], EnvState]:
        """Starts an episode: observation and state."""
        state = reset(params, key)
        return observe(params, state), state

    def step(
        self, key: PRNGKeyArray, state: EnvState, action: Float[Array, "nv"], params: Environment
    ) -> tuple[Float[Array, "n"], EnvState, Float[Array, ""], Bool[Array, ""], dict[str, Any]]:
        """Observation, state, reward, whether the episode was over, and ``{"distance": ...}``."""
        after = step(params, state, action)
        again, started = self.reset(key, params)
        over, moved = (again, started), (after.observation, after.state)
        observation, state = jax.tree.map(lambda a, b: jnp.where(after.done, a, b), over, moved)
        return observation, state, after.reward, after.done, {"distance": after.distance}

    def observation_space(self, params: Environment) -> Any:
        """A box of Gymnax.

        Raises:
            DtypeError: `params` is no `Environment`.
            MissingExtraError: Gymnax is not installed; it comes with the extra `rl`.
        """
        return _box(jnp.inf, check_environment(params).observation_size)

    def action_space(self, params: Environment) -> Any:
        """A box of Gymnax, from -1 to 1.

        Raises:
            DtypeError: `params` is no `Environment`.
            MissingExtraError: Gymnax is not installed; it comes with the extra `rl`.
        """
        return _box(1.0, check_environment(params).action_size)


def _box(size: float, count: int) -> Any:
    spaces: Any = require("gymnax.environments.spaces", "rl", "envs.RejaxEnv")
    return spaces.Box(-size, size, (count,))
