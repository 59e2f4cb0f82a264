"""What a viewer shows of one configuration, in one compiled function."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from ..algorithms.centroidal import center_of_mass
from ..algorithms.kinematics import fk
from ..collision import ShapePairs, World, nearest, pairs, world_contacts
from ..collision.groups import moving_shapes
from ..model.model import Model
from ..spatial.quaternions import from_matrix

# A page takes little computing: what the user waits for is the compiler.
QUICK = {"xla_backend_optimization_level": 0}


class Poses(NamedTuple):
    """Poses T_world_link of all links: positions [m] and unit quaternions."""

    position: Float[Array, "*b nl 3"]
    wxyz: Float[Array, "*b nl 4"]


class Gaps(NamedTuple):
    """The nearest pairs in ascending order: distances [m], both witness points [m], and the two of each pair as indices
    of links, or of obstacles behind the links."""

    distance: Float[Array, "k"]
    ends: Float[Array, "k 2 3"]
    between: Int[Array, "k 2"]


class RobotState(NamedTuple):
    """The poses of all links, the centre of mass [m], and the nearest pairs, if there are any."""

    poses: Poses
    com: Float[Array, "3"]
    gaps: Gaps | None


def poses_of(model: Model, q: Array) -> Poses:
    """The poses of all links."""
    T = fk(model, q)
    return Poses(T[:, :3, 3], jax.vmap(from_matrix)(T[:, :3, :3]))


@partial(jax.jit, compiler_options=QUICK)
def batch_poses(model: Model, q: Float[Array, "n nq"]) -> Poses:
    """The poses of all links in each of the configurations."""
    return jax.vmap(poses_of, in_axes=(None, 0))(model, q)


@partial(jax.jit, static_argnames=("chosen", "count"), compiler_options=QUICK)
def robot_state(model: Model, q: Array, world: World | None, chosen: ShapePairs | None, count: int) -> RobotState:
    """All that is shown of a configuration, with the `count` nearest pairs among `chosen` and with the world."""
    found = []
    if chosen is not None:
        own = nearest(model, q, min(count, len(chosen)), chosen)
        links = np.array([[model.tree.shape_links[shape] for shape in pair] for pair in chosen.indices], np.int32)
        found.append(Gaps(own.distance, jnp.stack([own.point_a, own.point_b], axis=1), jnp.asarray(links)[own.pair]))
    if world is not None and len(world) and moving_shapes(model.tree):
        met = world_contacts(model, q, world)
        behind = jnp.stack([met.link, met.obstacle + np.int32(len(model.link_names))], axis=1)
        found.append(Gaps(met.distance, jnp.stack([met.point_a, met.point_b], axis=1), behind))
    gaps = None
    if found:
        every = jax.tree.map(lambda *x: jnp.concatenate(x), *found)
        _, rows = lax.top_k(-every.distance, min(count, every.distance.shape[0]))
        gaps = jax.tree.map(lambda x: x[rows], every)
    return RobotState(poses_of(model, q), center_of_mass(model, q), gaps)


def default_pairs(model: Model) -> ShapePairs | None:
    """The pairs of `collision.pairs`; None if there are none."""
    chosen = pairs(model) if model.tree.shape_links else ()
    return chosen or None


def numpy(x: Any) -> Any:
    """The same pytree in numpy."""
    return jax.tree.map(np.asarray, x)
