"""Distances between the shapes of a robot and the obstacles of a world."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._errors import DtypeError, ModelError
from .._jit import jit_public
from ..algorithms.arguments import arguments
from ..algorithms.kinematics import body_pose_step
from ..model.model import Model, check_model
from ..model.tree import KinematicTree
from ..spatial.algebra import IDENTITY
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from .distances import distances
from .field import field_distances
from .groups import by_kind, moving_shapes, placed_by_kind
from .obstacles import Obstacles, World, placed_obstacles
from .pair_table import is_single, keeps_slopes, pair_function
from .pairing import ShapePairs
from .slopes import spread_along
from .witness import CapsuleDistance


class WorldDistance(CapsuleDistance):
    """Distances of shapes of a robot from obstacles; see `CapsuleDistance` for the other fields.

    Args:
        link: The link of each shape.
        obstacle: Which of the obstacles it is.
    """

    link: Int[Array, "n"]
    obstacle: Int[Array, "n"]


@jit_public()
def world_distances(model: Model, q: Float[Array, "nq"], world: World) -> Float[Array, "n"]:
    """Signed distances of the robot's collision shapes from the obstacles, and of the points of the cloud.

    Shapes that no joint moves are left out, since nothing takes them away from what they stand on. Of a point of the
    cloud it is the distance to the nearest of the other shapes.

    Height maps and distance grids are fields, of which a shape takes the least value that is found at many of its
    points, in a search from coarse to fine: at least every 16th of the length of a capsule, and every 6th of the sides
    of a box or a cylinder; of a convex hull only from its corners and the middles of its edges. What is smaller than
    that, or under the face of a hull, may be missed.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        world: The obstacles.

    Returns:
        One distance for each shape and obstacle, in the order of `world_contacts`, then one for each point of the cloud
        [m]; negative means overlap.

    Raises:
        DtypeError: `model` is no model, `world` no world, or `q` no array of floats.
        ModelError: The robot has no collision shapes that move.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import collision, robots
        >>> arm = robots.two_link_arm()
        >>> world = collision.World(collision.sphere(jnp.array([1.0, 0.0, 1.0]), 0.1))
        >>> bool((world_distances(arm, jnp.zeros(2), world) > 0).all())
        True
    """
    return clearances(*checked_world(model, world, q))[0]


@partial(jax.jit, static_argnames="pairs")
def clearances(
    model: Model, q: Float[Array, "nq"], world: World | None, pairs: ShapePairs | None = None
) -> tuple[Float[Array, "n"], ...]:
    """`signed_distances` of the pairs and `world_distances`, of those that are not None, in one program."""
    model, q = arguments(model, q=q)
    world, indices = jax.tree.map(lambda x: x.astype(q.dtype), world), () if pairs is None else pairs.indices
    obstacles = world if world is not None and len(world) else None
    found = list(distances(model, q, indices, obstacles)) if indices or obstacles is not None else []
    if world is not None and world.points is not None:
        cloud = field_distances(model, q, world.points, moving_shapes(model.tree)) - world.point_radius
        found.append(cloud if obstacles is None else jnp.concatenate([found.pop(), cloud]))
    return tuple(found)


@jit_public()
def world_contacts(model: Model, q: Float[Array, "nq"], world: World) -> WorldDistance:
    """The distances of `world_distances` from the obstacles, with witness points; for the cloud see `sdf`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        world: The obstacles.

    Returns:
        Distances (n,) [m], witness points (n, 3) in world coordinates [m], first that on the robot, the link and the
        obstacle; obstacle after obstacle for the first kind of shape, and so on.

    Raises:
        DtypeError: `model` is no model, `world` no world, or `q` no array of floats.
        ModelError: The robot has no collision shapes that move, or the world has no obstacles.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import collision, robots
        >>> arm = robots.two_link_arm()
        >>> floor = collision.half_space(jnp.array([0.0, 0.0, -1.0]), jnp.array([0.0, 0.0, 1.0]))
        >>> found = world_contacts(arm, jnp.zeros(2), collision.World(floor))
        >>> [arm.link_names[k] for k in found.link]
        ['upper', 'lower']
    """
    model, q, world = checked_world(model, world, q)
    if not len(world):
        raise ModelError("the world has no obstacles but a cloud of points; see sdf")
    shapes = moving_shapes(model.tree)
    found = on_grid(model, q, world, shapes, pair_function)
    links, obstacles = _owners(model.tree, world, shapes)
    return WorldDistance(*found.stacked(), link=jnp.array(links, jnp.int32), obstacle=jnp.array(obstacles, jnp.int32))


def checked_world(model: Model, world: World, q: Array) -> tuple[Model, Array, World]:
    """The robot, the configuration and the world, checked and of one dtype."""
    model = check_model(model)
    if not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    model, q = arguments(model, q=q)
    if not moving_shapes(model.tree):
        raise ModelError(f"model {model.tree.name!r} has no collision shapes that move")
    return model, q, jax.tree.map(lambda x: x.astype(q.dtype), world)


def _owners(tree: KinematicTree, world: World, shapes: list[int]) -> tuple[list[int], list[int]]:
    """The link and the obstacle of each distance."""
    links, obstacles = [], []
    for of_kind in by_kind(tree, shapes).values():
        for places in world.places.values():
            links += [tree.shape_links[i] for i in of_kind for _ in places]
            obstacles += [k for _ in of_kind for k in places]
    return links, obstacles


def on_grid(model: Model, q: Array, world: World, shapes: list[int], what: Callable[[str, str], Any]) -> Any:
    """What the functions `what(kind, other)` of two kinds of shapes find, of some shapes and all obstacles."""

    def on(run: Sweep, placed: Obstacles) -> Any:
        found, poses = [], run.outward(body_pose_step, IDENTITY)
        for kind, (of_kind, first) in placed_by_kind(run, poses, shapes).items():
            for other, second in placed.items():
                function = what(kind, other)
                if is_single(kind, other):
                    # What a pair has several of stays in front, as in the other form.
                    along_obstacles = jax.vmap(run.apart(function), in_axes=(None, 0), out_axes=-1)
                    every = jax.vmap(along_obstacles, in_axes=(0, None), out_axes=-2)
                else:
                    grid = len(of_kind), len(jax.tree.leaves(second)[0])
                    spread = [partial(spread_along, grid, axis) for axis in (1, 0)]
                    every = run.elementwise(function, spread, keeps_slopes(kind, other), separate_use=True)
                found.append(every(first, second))
        return jax.tree.map(lambda *x: jnp.concatenate([y.reshape(-1) for y in x]), *found)

    return traverse(model, on, q, placed_obstacles(world), links=[model.tree.shape_links[i] for i in shapes])
