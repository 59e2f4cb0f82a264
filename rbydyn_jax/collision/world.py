"""Distances between the shapes of a robot and the obstacles of a world."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._check import jit_public
from .._errors import DtypeError, ModelError
from ..algorithms.arguments import arguments
from ..algorithms.kinematics import body_pose_step
from ..model.model import Model, check_model
from ..model.tree import KinematicTree
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import ConvexHull
from ..spatial.algebra import IDENTITY, Transform
from ..sweeps.plan import traverse
from ..sweeps.sweep import Field, Sweep
from .field import field_distances
from .groups import by_kind, placed_by_kind, vectors
from .obstacles import World
from .pair_table import is_single, keeps_slopes, pair_distance, pair_function
from .rates import distances_of, with_wrench
from .slopes import on_spread, with_slopes
from .witness import CapsuleDistance

Obstacles = dict[str, Any]


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
    of a box or a cylinder. What is smaller than that may be missed.

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
    model, world, q = checked_world(model, world, q)
    shapes = moving_shapes(model.tree)
    found = [_distances(model, q, world, shapes)] if len(world) else []
    if world.points is not None:
        found.append(field_distances(model, q, world.points, shapes) - world.point_radius)
    return jnp.concatenate(found)


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
    model, world, q = checked_world(model, world, q)
    if not len(world):
        raise ModelError("the world has no obstacles but a cloud of points; see sdf")
    shapes = moving_shapes(model.tree)
    found = on_grid(model, q, world, shapes, pair_function)
    links, obstacles = _owners(model.tree, world, shapes)
    return WorldDistance(*found.stacked(), link=jnp.array(links, jnp.int32), obstacle=jnp.array(obstacles, jnp.int32))


def moving_shapes(tree: KinematicTree) -> list[int]:
    """The shapes on links that a joint moves."""
    return [i for i, link in enumerate(tree.shape_links) if tree.link_bodies[link] >= 0]


def checked_world(model: Model, world: World, q: Array) -> tuple[Model, World, Array]:
    """The robot, the world and the configuration, checked and of one dtype."""
    model = check_model(model)
    if not isinstance(world, World):
        raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
    model, q = arguments(model, q=q)
    if not moving_shapes(model.tree):
        raise ModelError(f"model {model.tree.name!r} has no collision shapes that move")
    return model, jax.tree.map(lambda x: x.astype(q.dtype), world), q


def _distances(model: Model, q: Array, world: World, shapes: list[int]) -> Array:
    """The distances from the obstacles, without those of the cloud."""

    def find(run: Sweep, poses: Field[Transform], placed: Obstacles, wrenches: bool) -> Any:
        def what(kind: str, other: str) -> Callable[..., Any]:
            alone = pair_distance(kind, other)
            return with_wrench(alone, *vectors(run, kind)) if wrenches else alone

        return _on_poses(run, poses, placed, shapes, what, slopes=not wrenches)

    tree = model.tree
    bodies = [(tree.link_bodies[link], -1) for link in _owners(tree, world, shapes)[0]]
    return distances_of(model, q, _obstacles(world), find, tuple(bodies), [tree.shape_links[i] for i in shapes])


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
        return _on_poses(run, run.outward(body_pose_step, IDENTITY), placed, shapes, what)

    return traverse(model, on, q, _obstacles(world), links=[model.tree.shape_links[i] for i in shapes])


def _on_poses(
    run: Sweep,
    poses: Field[Transform],
    placed: Obstacles,
    shapes: list[int],
    what: Callable[[str, str], Any],
    slopes: bool = False,
) -> Any:
    """`on_grid` within a traversal, from the poses of the bodies; distances keep their `slopes`."""
    mapped, found = partial(run.fused_map, separate_use=True), []
    for kind, (of_kind, first) in placed_by_kind(run, poses, shapes).items():
        for other, second in placed.items():
            function = what(kind, other)
            if is_single(kind, other):
                # What a pair has several of stays in front, as in the other form.
                along_obstacles = jax.vmap(function, in_axes=(None, 0), out_axes=-1)
                every = jax.vmap(along_obstacles, in_axes=(0, None), out_axes=-2)
            else:
                grid = len(of_kind), len(jax.tree.leaves(second)[0])
                spread_a, spread_b = partial(_spread, grid, 1), partial(_spread, grid, 0)
                if slopes and keeps_slopes(kind, other):
                    every = with_slopes(mapped, function, spread_a, spread_b)
                else:
                    every = mapped(on_spread(function, spread_a, spread_b))
            found.append(every(first, second))
    return jax.tree.map(lambda *x: jnp.concatenate([y.reshape(-1) for y in x]), *found)


def _spread(grid: tuple[int, int], axis: int, x: Array) -> Array:
    """Along an axis of a grid; a batch stands behind it."""
    return jnp.broadcast_to(jnp.expand_dims(x, axis), (*grid, *x.shape[1:]))


def _obstacles(world: World) -> Obstacles:
    """The obstacles of each kind as pair functions take them."""
    return {kind: _placed(kind, rows) for kind, rows in world.shapes.items()}


def _placed(kind: str, rows: Any) -> Any:
    """Those of one kind."""
    leaves = jax.tree.leaves(rows)
    count = len(leaves[0])
    if kind == ConvexHull.kind:  # its vertices are in the world already
        pose = np.concatenate([np.zeros(3), np.eye(3).ravel()])
        moved = [jnp.full(count, x, leaves[0].dtype) for x in pose]
    else:
        places = 1 if kind == Capsule.kind else 2  # the leaves that are no sizes
        moved = list(jnp.concatenate([x.reshape(count, -1).T for x in leaves[:places]]))
    return rows.gathered(np.arange(count), moved)
