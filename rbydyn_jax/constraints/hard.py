"""One implicit step with hard contacts and dry friction in the joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_each, check_not_negative
from .._errors import DtypeError
from ..algorithms.crba import mass_matrix_inverse
from ..collision.contact_points import contact_points, contact_shapes, owners
from ..collision.obstacles import World
from ..model.model import Model
from ..model.tree import KinematicTree
from ..sweeps.coordinates import Coordinates
from ..sweeps.topology import dof_bodies
from ._bodies import body_motions
from .dynamics import Stabilization, each_stabilization, pseudo_inverse
from .impulses import Rows, softened, solve_impulses
from .loops import LoopJoint, assemble

_RECOVERY = 0.2  # of a penetration is undone in a step,
_FASTEST = 0.1  # at no more than this speed [m/s], so that nothing jumps out
_SKIN = 1e-5  # gap [m] in which the one law goes over into the other, so that what rests at no gap has derivatives


class HardContacts(eqx.Module):
    """What can touch, checked.

    Attributes:
        world: The obstacles; None without contacts.
        friction: mu of each obstacle.
        dry: Whether joints have dry friction; static.
        links: The links whose shapes count; static.
    """

    world: World | None
    friction: Float[Array, "o"]
    dry: bool = eqx.field(static=True)
    links: tuple[str | int, ...] | None = eqx.field(static=True)

    def points(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """The link and the obstacle of each contact point."""
        if self.world is None:
            return np.zeros(0, int), np.zeros(0, int)
        return owners(model.tree, self.world, contact_shapes(model, self.world, self.links))

    def count(self, model: Model) -> int:
        """Number of impulses."""
        return 3 * len(self.points(model)[0]) + (model.nv if self.dry else 0)


def check_contact_world(
    model: Model, world: Any, friction: Any, links: Sequence[str | int] | None, dry: bool, dtype: Any
) -> HardContacts:
    """What can touch.

    Raises:
        ArgumentError: `friction` is negative or not finite.
        DtypeError: `world` is no world, or `contact_links` no sequence.
        ModelError: There is nothing to touch with, or nothing to touch.
        NameNotFoundError: There is no such link.
        ShapeError: `friction` has another shape.
    """
    if world is None:
        check_not_negative(check_array(friction, "friction"), "friction")
        return HardContacts(None, jnp.zeros(0, dtype), dry, None)
    if not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    contact_shapes(model, world, links, "contact_links")
    mu = check_each(friction, "friction", len(world), "number of obstacles")
    check_not_negative(mu, "friction")
    world = jax.tree.map(lambda x: x.astype(dtype), world)
    return HardContacts(world, mu.astype(dtype), dry, None if links is None else tuple(links))


def hard_impulses(
    model: Model,
    extra: Array,
    q: Array,
    v: Array,
    free: Array,
    dt: Array,
    contacts: HardContacts,
    start: Array,
    loops: Sequence[LoopJoint],
    stabilization: Stabilization,
) -> tuple[Float[Array, "nv"], Float[Array, "m"]]:
    """The velocity at the end of a step that would be `free` without impulses, and the impulses."""
    bodies = body_motions(model, q, v)
    normals, speeds, frictions, J = _contact_rows(model, q, bodies.subspaces, dt, contacts)
    if contacts.dry:
        J = jnp.concatenate([J, jnp.eye(model.nv, dtype=q.dtype)])
    W = mass_matrix_inverse(eqx.tree_at(lambda m: m.armature, model, model.armature + extra), q)
    Y = W @ J.T
    scales = jnp.sum(J.T * Y, axis=0)
    if loops:
        K = assemble(model, bodies, v, loops, each_stabilization(stabilization, len(loops))).jacobian
        WK = W @ K.T
        Y = Y - WK @ (pseudo_inverse(K @ WK) @ (K @ Y))
    limits = dt * model.friction if contacts.dry else jnp.zeros(0, q.dtype)
    rows = Rows(softened(J @ Y, normals, scales), J @ free, normals, speeds, frictions, limits)
    impulses = solve_impulses(rows, jax.lax.stop_gradient(start))
    return free + Y @ impulses, impulses


def _contact_rows(
    model: Model, q: Array, subspaces: Array, dt: Array, contacts: HardContacts
) -> tuple[Array, Array, Array, Array]:
    """Normals, least normal velocities, coefficients of friction, and the Jacobian of the points in world axes."""
    if contacts.world is None:
        none = jnp.zeros(0, q.dtype)
        return jnp.zeros((0, 3), q.dtype), none, none, jnp.zeros((0, model.nv), q.dtype)
    found = contact_points(model, q, contacts.world, contacts.links)
    links, obstacles = contacts.points(model)
    moves = jnp.asarray(_moving(model.tree, links), q.dtype)
    at = jnp.cross(subspaces[:3].T[None], found.point[:, None, :]) + subspaces[3:].T[None]
    rows = (at * moves[:, :, None]).transpose(1, 0, 2).reshape(subspaces.shape[1], -1)
    return (
        found.normal,
        _least_speeds(found.distance, dt),
        contacts.friction[obstacles],
        Coordinates(model).gather(rows).T,
    )


def _least_speeds(gap: Array, dt: Array) -> Array:
    """The normal velocity with which a gap closes in a step, and with which a penetration is undone."""
    apart = jnp.where(gap > 0.0, gap, 0.0)
    closing = -apart * (1.0 - (1.0 - _RECOVERY) * _SKIN / (apart + _SKIN)) / dt
    return jnp.where(gap > 0.0, closing, jnp.minimum(-_RECOVERY * gap / dt, _FASTEST))


def _moving(tree: KinematicTree, links: np.ndarray) -> np.ndarray:
    """Which coordinates of all joints move each of some links."""
    of = np.array(dof_bodies(tree))
    return np.array([np.isin(of, list(tree.path(tree.link_bodies[k]))) for k in links]).reshape(len(links), len(of))
