"""How independent coordinates map to those of all joints, mimic joints included."""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model


class Coordinates:
    """The independent coordinates of a model spread over all joints, mimic joints included, and back."""

    def __init__(self, model: Model) -> None:
        tree = model.tree
        self.model, self.tree = model, tree
        self.sizes = tuple(j.nv for j in tree.joints)

    @cached_property
    def columns(self) -> np.ndarray:
        """For each velocity of all joints, the independent velocity that drives it."""
        return np.concatenate([np.arange(s.start, s.stop) for s in self.tree.v_slices]).astype(int)

    @cached_property
    def factors(self) -> jax.Array:
        """For each velocity of all joints, the multiplier with which it is driven."""
        one = jnp.ones((), self.model.inertias.dtype)
        per_joint = [one if m is None else self.model.mimic_multipliers[m.slot] for m in self.tree.mimics]
        return jnp.stack([f for f, size in zip(per_joint, self.sizes, strict=True) for _ in range(size)])

    def spread_q(self, q: jax.Array) -> jax.Array:
        """Positions of all joints."""
        if not self.tree.has_mimics:
            return q
        pieces = []
        for part, m in zip(self.tree.q_slices, self.tree.mimics, strict=True):
            x = q[part]
            if m is not None:
                x = self.model.mimic_multipliers[m.slot] * x + self.model.mimic_offsets[m.slot]
            pieces.append(x)
        return jnp.concatenate(pieces)

    def spread_v(self, v: jax.Array) -> jax.Array:
        """Velocities of all joints."""
        return v[self.columns] * self.factors if self.tree.has_mimics else v

    @cached_property
    def armature(self) -> jax.Array:
        """Rotor inertia of all joints; that of a coordinate counts once, on the joint that owns it."""
        if not self.tree.has_mimics:
            return self.model.armature
        own = [m is None for m, size in zip(self.tree.mimics, self.sizes, strict=True) for _ in range(size)]
        return jnp.where(np.array(own), self.model.armature[self.columns], 0.0)

    def gather(self, forces: jax.Array) -> jax.Array:
        """Independent forces from those of all joints, along the first axis."""
        if not self.tree.has_mimics:
            return forces
        weight = self.factors.reshape(-1, *(1,) * (forces.ndim - 1))
        zero = jnp.zeros((self.tree.nv, *forces.shape[1:]), forces.dtype)
        return zero.at[self.columns].add(forces * weight)
