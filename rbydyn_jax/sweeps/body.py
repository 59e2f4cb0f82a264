"""What a step of an algorithm sees of one body, and how independent coordinates map to those of all joints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..joints import JointType
from ..model.model import Model
from ..spatial.algebra import NO_MOTION, Inertia, Mat3, Motion, Sym3, Transform, Vec3
from ..xla.structural import Scalar, add


class Body(NamedTuple):
    """What a step sees of a body and of the joint that moves it; x are the joint's coordinates and parameters."""

    joint: JointType
    axis: Vec3
    placement: Transform
    inertia: Inertia
    x: tuple

    @property
    def transform(self) -> Transform:
        """T_parent_body."""
        return self.placement @ self.joint.transform(self.axis, self.x)

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """The columns of the motion subspace, in the body's frame."""
        return self.joint.subspace(self.axis, self.x)

    def spin(self, v: Sequence[Scalar]) -> Motion:
        """S v, the velocity across the joint."""
        total = NO_MOTION
        for s, k in zip(self.subspace, v, strict=True):
            total = total + s.scale(k)
        return total


def add_states(a: Any, b: Any) -> Any:
    """The sum of two states: an algebra type by its own +, tuples element by element."""
    if type(a) is tuple:
        return tuple(add_states(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple):
        return a + b
    return add(a, b)


def inertia_from_row(r: Any) -> Inertia:
    """The inertia of a row of `Model.inertias`; `r[k]` is its k-th number."""
    return Inertia(r[0], Vec3(r[1], r[2], r[3]), Sym3(xx=r[4], xy=r[5], xz=r[7], yy=r[6], yz=r[8], zz=r[9]))


def transform_from_numbers(numbers: Sequence[Scalar]) -> Transform:
    """The transform of 12 numbers: rows of R, then p."""
    rows = [Vec3(*numbers[k : k + 3]) for k in (0, 3, 6, 9)]
    return Transform(Mat3(*rows[:3]), rows[3])


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
