"""Inverse kinematics of several goals, clear of collisions, with costs that are minimized in the nullspace."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..spatial.safe import safe_norm
from ..sweeps.block_matrix import inverse_by_blocks
from ._clearance import Clearance
from ._ik_problem import Judgement, Near, Problem, product, squared_distances
from .costs import Cost
from .goals import LENGTH, Goal, Moving

_MARGIN = 1e-3  # [m] beyond the clearance, to which a step leads that would end below it
_LONGEST_RETREAT = 0.1  # [m] of one step
_TOGETHER = 256  # configurations whose distances are computed at once
_FLAT = 1e-2  # [m/rad] gradients of distances much smaller than this are not followed


class Wanted(NamedTuple):
    """What is asked of a configuration; arrays have a leading axis for a batch."""

    goals: tuple[Goal, ...]
    costs: tuple[Cost, ...]


class TaskProblem(Problem):
    """Goals are to be reached, clear of collisions.

    Args:
        clearance: What is to be kept apart, or None.
    """

    clearance: Clearance | None

    @property
    def indices(self) -> Moving:
        """Those of the joints that may move."""
        return Moving(tuple(np.flatnonzero(self.moving).tolist()), tuple(self.velocities.tolist()))

    def rows(self, q: Float[Array, "nq"], target: Wanted) -> tuple[Array, Array]:
        errors, slopes = [], []
        for goal in target.goals:
            e, J = goal.evaluate(self.model, q, self.indices)
            unit = jnp.ones_like(e).at[goal.lengths].set(LENGTH / self.length)
            errors.append(e * unit)
            slopes.append(-J * unit[:, None])
        return jnp.concatenate(errors), jnp.concatenate(slopes)

    def deviation(self, q: Float[Array, "nq"], target: Wanted) -> Array:
        found = []
        for goal in target.goals:
            e, _ = goal.evaluate(self.model, q, self.indices)
            is_length = jnp.zeros(len(e), bool).at[goal.lengths].set(True)
            distance, angle = safe_norm(jnp.where(is_length, e, 0.0)), safe_norm(jnp.where(is_length, 0.0, e))
            found.append(jnp.stack([distance * LENGTH, angle]))
        return jnp.stack(found).max(axis=0)

    @property
    def has_clearance(self) -> bool:
        return self.clearance is not None

    def near(self, q: Float[Array, "nq"]) -> Near | None:
        keep = self.clearance
        return None if keep is None else Near(*keep.slopes(self.model, q, self.indices))

    def judged(self, q: Float[Array, "nq"], target: Wanted, error: Array, near: Near | None) -> Judgement:
        reached, size = (self.deviation(q, target) <= self.tolerance).all(), jnp.sum(error * error)
        if self.clearance is None or near is None:
            return Judgement(size, reached, None)
        nearest = near.distances.min()
        lacking = jnp.square(jnp.maximum(self.clearance.distance - nearest, 0.0))
        # The goals come first: what reaches them in collision is better than all that does not reach them.
        in_collision = jnp.square(self.tolerance.min()) * lacking / (self.length**2 + lacking)
        return Judgement(jnp.where(reached, in_collision, size), reached & (lacking == 0), nearest)

    def led(self, q: Float[Array, "nq"], step: Array, near: Near, J: Array, inverse: Array) -> Array:
        """Where a step would end below the clearance, away from that in the nullspace of the goals.

        The step to the goals comes first, so that what reaches them and is too near slides along them.
        """
        assert self.clearance is not None
        (d, G), distance = near, self.clearance.distance
        ahead = d + product(G, step)
        close = ahead < distance
        lacking = jnp.where(close, jnp.minimum(distance + _MARGIN - ahead, _LONGEST_RETREAT), 0.0)
        G = jnp.where(close[:, None] & ~self.blocked(q, jnp.sum(G * lacking[:, None], axis=0))[None], G, 0.0)
        G = G - product(product(product(G, J.T), inverse), J)
        flat = _FLAT**2 * jnp.eye(len(d), dtype=q.dtype)
        return step + product(G.T, product(inverse_by_blocks(product(G, G.T) + flat), lacking))

    def ranked(self, seeds: Float[Array, "s nq"], target: Wanted) -> tuple[TaskProblem, Array]:
        places = [jax.vmap(lambda q, g=g: g.place(self.model, q))(seeds) for g in _first(target).goals]
        lengths = jnp.concatenate([x for _, x in places], axis=1)
        spread = jnp.sqrt(3.0 * jnp.mean(jnp.var(lengths, axis=0))) if lengths.shape[1] else jnp.zeros((), seeds.dtype)
        scaled = self.scaled(spread)

        def features(angles: list[Array], lengths: list[Array]) -> Array:
            return jnp.concatenate([*angles, *(x / scaled.length for x in lengths)], axis=1)

        wanted = [jax.vmap(lambda g: g.wanted())(g) for g in target.goals]
        rank = squared_distances(*(features([a for a, _ in x], [b for _, b in x]) for x in (wanted, places)))
        if (keep := self.clearance) is not None:
            nearest = jax.lax.map(lambda q: keep.nearest(self.model, q), seeds, batch_size=_TOGETHER)
            rank = rank + jnp.square(jnp.maximum(keep.distance - nearest, 0.0) / LENGTH)[None]
        return scaled, rank


def _first(target: Wanted) -> Wanted:
    return jax.tree.map(lambda x: x[0], target)
