"""Distances of a robot from itself and from a world, with gradients, for inverse kinematics."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite
from .._errors import ArgumentError, DtypeError, ModelError
from ..collision import ShapePairs, World, pairs
from ..collision.groups import moving_shapes
from ..collision.robot import smooth_minimum
from ..collision.world import clearances
from ..model.configuration import integrate
from ..model.model import Model
from ..xla.transpose import Pull, values_and_pulls
from .goals import Moving

_TEMPERATURE = 0.002  # [m] of the smooth minimum whose gradient is used


class Clearance(eqx.Module):
    """What is to be kept apart, and how far.

    Args:
        distance: The minimum distance [m].
        world: Obstacles, or None.
        pairs: The pairs of shapes of the robot, or None; static.
    """

    distance: Float[Array, ""]
    world: World | None
    pairs: ShapePairs | None = eqx.field(static=True)

    def nearest(self, model: Model, q: Float[Array, "nq"]) -> Float[Array, ""]:
        """The smallest distance."""
        return jnp.stack([jnp.min(d) for d in clearances(model, q, self.world, self.pairs)]).min()

    def slopes(self, model: Model, q: Float[Array, "nq"], moving: Moving) -> tuple[Array, Array]:
        """The smallest distance of each kind (r,), and the gradients of their smooth minima (r, m)."""
        found, pulls = self._with_pulls(model, q, moving)
        gradients = [pull(jax.grad(smooth_minimum)(d, _TEMPERATURE)) for d, pull in zip(found, pulls, strict=True)]
        return jnp.stack([jnp.min(d) for d in found]), jnp.stack(gradients)

    def rows(self, model: Model, q: Float[Array, "nq"], moving: Moving, count: int) -> tuple[Array, Array]:
        """The `count` smallest distances of each kind, or all if there are less, and their gradients."""
        distances, gradients = [], []
        for d, pull in zip(*self._with_pulls(model, q, moving), strict=True):
            _, at = jax.lax.top_k(-d, min(count, len(d)))
            one_hot = (at[:, None] == jnp.arange(len(d), dtype=at.dtype)[None]).astype(d.dtype)
            distances.append(d[at])
            gradients.append(jax.vmap(pull)(one_hot))
        return jnp.concatenate(distances), jnp.concatenate(gradients)

    def _with_pulls(self, model: Model, q: Float[Array, "nq"], moving: Moving) -> tuple[tuple[Array, ...], list[Pull]]:
        """The distances of each kind, and what takes weights of these to a gradient (m,)."""

        def found(step: Array) -> tuple[Array, ...]:
            return clearances(model, _moved(model, q, moving, step), self.world, self.pairs)

        return values_and_pulls(found, jnp.zeros(len(moving.v), q.dtype))


def checked_clearance(
    model: Model, clearance: Any, collision_pairs: ShapePairs | None, world: Any, dtype: Any
) -> Clearance | None:
    """The arguments `clearance`, `collision_pairs` and `world` as one; None if there is nothing to be kept."""
    if clearance is None:
        for name, given in (("world", world), ("collision_pairs", collision_pairs)):
            if given is not None:
                raise ArgumentError(f"{name} needs a clearance, got clearance=None")
        return None
    if world is not None and not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    if not isinstance(collision_pairs, ShapePairs | None):
        what = type(collision_pairs).__name__
        raise DtypeError(f"collision_pairs must be what collision.pairs(model, ...) returns, got {what}")
    chosen = pairs(model) if collision_pairs is None else collision_pairs  # raises if the robot has no shapes
    if world is not None and not moving_shapes(model.tree):
        raise ModelError(f"model {model.tree.name!r} has no collision shapes that move: nothing is kept from the world")
    if world is None and not chosen:
        raise ModelError(f"there is no pair of shapes of model {model.tree.name!r} to keep apart")
    distance = check_array(clearance, "clearance", ()).astype(dtype)
    world = None if world is None else jax.tree.map(lambda x: x.astype(dtype), world)
    return Clearance(distance, world, chosen if chosen else None)


def check_clearance(clearance: Any, name: str) -> None:
    """Raises unless a clearance is finite, where it is known."""
    if clearance is not None:
        check_finite(check_array(clearance, name, ()), name)


def _moved(model: Model, q: Array, moving: Moving, step: Array) -> Array:
    return integrate(model, q, jnp.zeros(model.nv, q.dtype).at[np.array(moving.v)].set(step, unique_indices=True))
