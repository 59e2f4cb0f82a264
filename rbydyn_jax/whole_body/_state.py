"""What tasks and constraints need of one state of the robot, computed once."""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algorithms.centroidal import center_of_mass, momentum_matrix, total_mass
from ..constraints._bodies import body_motions, body_of, link_frame
from ..model.model import Model
from ..spatial import inertia, motion
from ..sweeps.coordinates import Coordinates
from ..sweeps.topology import dof_bodies


class State:
    """A robot in motion, without accelerations."""

    def __init__(self, model: Model, q: Array, v: Array) -> None:
        self.model, self.q, self.v = model, q, v
        self.bodies = body_motions(model, q, v)

    def pose(self, link: str | int) -> Float[Array, "4 4"]:
        """T_world_link."""
        return link_frame(self.model, self.bodies.poses, link, jnp.eye(4, dtype=self.q.dtype))

    def jacobian(self, link: str | int) -> Float[Array, "6 nv"]:
        """The Jacobian of a link's origin in the axes of the world."""
        body = body_of(self.model, link)
        if body < 0:
            return jnp.zeros((6, self.model.nv), self.q.dtype)
        on_path = self.model.tree.path(body)
        on = np.array([float(i in on_path) for i in dof_bodies(self.model.tree)])
        S = self.bodies.subspaces * on[None].astype(self.q.dtype)
        moved = S[3:] + jnp.cross(S[:3], self.pose(link)[:3, 3, None], axis=0)
        return Coordinates(self.model).gather(jnp.concatenate([S[:3], moved]).T).T

    def drift(self, link: str | int) -> Float[Array, "6"]:
        """The acceleration of a link's origin in the axes of the world: [angular; second derivative of position]."""
        body = body_of(self.model, link)
        if body < 0:
            return jnp.zeros(6, self.q.dtype)
        V, A = self.bodies.velocities[body], self.bodies.accelerations[body]
        R = self.bodies.poses[body, :3, :3]
        arm = R.T @ (self.pose(link)[:3, 3] - self.bodies.poses[body, :3, 3])
        speed = V[3:] + jnp.cross(V[:3], arm)
        linear = A[3:] + jnp.cross(A[:3], arm) + jnp.cross(V[:3], speed)
        return jnp.concatenate([R @ A[:3], R @ linear])

    @cached_property
    def com(self) -> Float[Array, "3"]:
        """Centre of mass."""
        tree = self.model.tree
        if any(body < 0 <= slot for body, slot in zip(tree.link_bodies, tree.welded_slots, strict=True)):
            # Links that do not move have a mass as well.
            return center_of_mass(self.model, self.q)
        poses, own = self.bodies.poses, self.model.inertias
        moments = jnp.einsum("bij,bj->bi", poses[:, :3, :3], own[:, 1:4]) + own[:, :1] * poses[:, :3, 3]
        return moments.sum(axis=0) / self.mass

    @cached_property
    def mass(self) -> Float[Array, ""]:
        """Mass of all links."""
        return total_mass(self.model)

    @cached_property
    def momentum_matrix(self) -> Float[Array, "6 nv"]:
        """Takes velocities to the momentum about the centre of mass."""
        A = momentum_matrix(self.model, self.q)
        return jnp.concatenate([A[:3] - jnp.cross(self.com[:, None], A[3:], axis=0), A[3:]])

    @cached_property
    def momentum_drift(self) -> Float[Array, "6"]:
        """The rate of that momentum."""

        def of_body(T: Array, parameters: Array, V: Array, A: Array) -> Array:
            matrix = inertia.to_matrix(parameters)
            return motion.transform_force(T, matrix @ A + motion.cross_force(V, matrix @ V))

        bodies = self.bodies
        rate = jax.vmap(of_body)(bodies.poses, self.model.inertias, bodies.velocities, bodies.accelerations).sum(axis=0)
        return jnp.concatenate([rate[:3] - jnp.cross(self.com, rate[3:]), rate[3:]])
