"""Random states within the limits of a robot."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .configuration import random_configuration
from .model import Model


def random_states(
    model: Model, key: PRNGKeyArray, count: int
) -> tuple[Float[Array, "b nq"], Float[Array, "b nv"], Float[Array, "b nv"]]:
    """Configurations, velocities and accelerations, uniform within the limits, or within 1 where there is no limit."""
    keys = jax.random.split(key, 3)
    q = jax.vmap(random_configuration, in_axes=(None, 0))(model, jax.random.split(keys[0], count))
    return q, _bounded(keys[1], model.velocity_limit, count), _bounded(keys[2], model.acceleration_limit, count)


def _bounded(key: PRNGKeyArray, limit: Array, count: int) -> Array:
    bound = jnp.where(jnp.isfinite(limit), limit, 1.0)
    return bound[None] * jax.random.uniform(key, (count, limit.shape[0]), limit.dtype, -1.0, 1.0)
