"""Distances of a robot from itself and from a world, with gradients, for inverse kinematics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite
from .._errors import ArgumentError, DtypeError, ModelError
from ..collision import CapsulePairs, World, pairs, signed_distances, world_distances
from ..collision.robot import smooth_minimum
from ..collision.world import moving_shapes
from ..model.configuration import integrate
from ..model.model import Model
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
    pairs: CapsulePairs | None = eqx.field(static=True)

    def kinds(self, model: Model) -> list[Callable[[Array], Array]]:
        """Functions of the configuration that return distances: from itself, and from the world."""
        found: list[Callable[[Array], Array]] = []
        if self.pairs is not None:
            found.append(lambda q: signed_distances(model, q, self.pairs))
        if (world := self.world) is not None:
            found.append(lambda q: world_distances(model, q, world))
        return found

    def nearest(self, model: Model, q: Float[Array, "nq"]) -> Float[Array, ""]:
        """The smallest distance."""
        return jnp.stack([jnp.min(f(q)) for f in self.kinds(model)]).min()

    def slopes(self, model: Model, q: Float[Array, "nq"], moving: Moving) -> tuple[Array, Array]:
        """The smallest distance of each kind (r,), and the gradients of their smooth minima (r, m)."""

        def smallest(f: Callable[[Array], Array], step: Array) -> tuple[Array, Array]:
            d = f(_moved(model, q, moving, step))
            return smooth_minimum(d, _TEMPERATURE), jnp.min(d)

        still = jnp.zeros(len(moving.v), q.dtype)
        found = [jax.value_and_grad(lambda s, f=f: smallest(f, s), has_aux=True)(still) for f in self.kinds(model)]
        return jnp.stack([d for (_, d), _ in found]), jnp.stack([g for _, g in found])

    def rows(self, model: Model, q: Float[Array, "nq"], moving: Moving, count: int) -> tuple[Array, Array]:
        """The `count` smallest distances of each kind, or all if there are less, and their gradients."""
        distances, gradients = [], []
        for f in self.kinds(model):
            still = jnp.zeros(len(moving.v), q.dtype)
            d, pull = jax.vjp(lambda step, f=f: f(_moved(model, q, moving, step)), still)
            _, at = jax.lax.top_k(-d, min(count, len(d)))
            one_hot = (at[:, None] == jnp.arange(len(d))[None]).astype(d.dtype)
            distances.append(d[at])
            gradients.append(jax.vmap(lambda x, pull=pull: pull(x)[0])(one_hot))
        return jnp.concatenate(distances), jnp.concatenate(gradients)


def checked_clearance(
    model: Model, clearance: Any, collision_pairs: CapsulePairs | None, world: Any, dtype: Any
) -> Clearance | None:
    """The arguments `clearance`, `collision_pairs` and `world` as one; None if there is nothing to be kept."""
    if clearance is None:
        for name, given in (("world", world), ("collision_pairs", collision_pairs)):
            if given is not None:
                raise ArgumentError(f"{name} needs a clearance, got clearance=None")
        return None
    if world is not None and not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    if not isinstance(collision_pairs, CapsulePairs | None):
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
        check_finite(check_array(clearance, name), name)


def _moved(model: Model, q: Array, moving: Moving, step: Array) -> Array:
    return integrate(model, q, jnp.zeros(model.nv, q.dtype).at[np.array(moving.v)].set(step, unique_indices=True))
