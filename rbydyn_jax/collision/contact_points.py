"""Points in which a robot's shapes can rest on obstacles: several of each pair, so that what lies flat stays flat."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._check import check_sequence
from .._errors import ModelError
from .._jit import jit_public
from .._result import Result
from ..model.model import Model
from ..model.tree import KinematicTree
from .contact_pairs import contact_count, contact_function
from .groups import by_kind, moving_shapes
from .obstacles import World
from .world import checked_world, on_grid


class ContactPoints(Result):
    """Points of a robot that touch obstacles, or may.

    Attributes:
        distance: Signed distance of each point from the obstacle [m]; negative inside.
        point: The point on the surface of the robot, in world coordinates [m].
        normal: Unit normal at the point, away from the obstacle.
        link: The link of each point.
        obstacle: Which of the obstacles it is.
    """

    distance: Float[Array, "n"]
    point: Float[Array, "n 3"]
    normal: Float[Array, "n 3"]
    link: Int[Array, "n"]
    obstacle: Int[Array, "n"]


def contact_points(
    model: Model, q: Float[Array, "nq"], world: World, links: Sequence[str | int] | None = None
) -> ContactPoints:
    """Several points of each shape of a robot that are nearest to each obstacle.

    Of a shape on a half-space: both ends of a capsule, the four corners of a box's face, of a cylinder three points
    on the rim of the nearer end and one on the other, and of a convex hull four vertices: the lowest one, and three
    that are far apart among those about as low. Of a shape and another solid: these points of the one against the
    other, those of the other against the one, and the nearest one; points outside a face of a box, or of a hull that
    has four corners, are moved along their edges to the boundary of the face, so that all corners of two faces'
    overlap are among them. On a height map or a grid of distances: these points, and the nearest one that is found;
    a ball, at an end of a capsule, has two points on a map, so that it can lie in a groove. So many points there are
    in every configuration. Rims are not moved: a cylinder that overhangs has the nearest point instead. Which points
    are chosen counts as constant in derivatives.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        world: The obstacles; its cloud of points is left out.
        links: The links whose shapes count, by name or index; None is all that a joint moves.

    Raises:
        DtypeError: `model` is no model, `world` no world, `links` no sequence, or `q` no array of floats.
        ModelError: None of the links has collision shapes that move, or the world has no obstacles.
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import collision, robots
        >>> arm = robots.two_link_arm()
        >>> floor = collision.half_space(jnp.array([0.0, 0.0, -1.0]), jnp.array([0.0, 0.0, 1.0]))
        >>> found = contact_points(arm, jnp.zeros(2), collision.World(floor), links=("lower",))
        >>> found.distance.shape, [arm.link_names[k] for k in found.link]
        ((2,), ['lower', 'lower'])
    """
    model, q, world = checked_world(model, world, q)
    chosen = contact_shapes(model, world, links)
    found = _found(model, q, world, chosen)
    owner, obstacles = owners(model.tree, world, chosen)
    return ContactPoints(*found, link=jnp.asarray(owner, jnp.int32), obstacle=jnp.asarray(obstacles, jnp.int32))


def contact_shapes(
    model: Model, world: World, links: Sequence[str | int] | None, name: str = "links"
) -> tuple[int, ...]:
    """The shapes of some links, an argument of that name, that move.

    Raises:
        DtypeError: `links` is no sequence.
        ModelError: None of the links has shapes that move, or the world has no obstacle.
        NameNotFoundError: There is no such link.
    """
    if not len(world):
        raise ModelError("the world has no obstacles but a cloud of points, which has no contacts")
    shapes = moving_shapes(model.tree)
    if links is not None:
        wanted = [model.link_index(x) for x in check_sequence(links, name, "links, by name or index")]
        shapes = [i for i in shapes if model.tree.shape_links[i] in wanted]
    if not shapes:
        raise ModelError("none of the links has collision shapes that move")
    return tuple(shapes)


@jit_public("shapes")
def _found(model: Model, q: Array, world: World, shapes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    distance, point, normal = on_grid(model, q, world, list(shapes), contact_function)
    return distance, jnp.stack(point, axis=1), jnp.stack(normal, axis=1)


def owners(tree: KinematicTree, world: World, shapes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The link and the obstacle of each point, known without the configuration."""
    links, obstacles = [], []
    for kind, of_kind in by_kind(tree, shapes).items():
        for other, places in world.places.items():
            for _ in range(contact_count(kind, other)):
                links += [tree.shape_links[i] for i in of_kind for _ in places]
                obstacles += [k for _ in of_kind for k in places]
    return np.array(links, int), np.array(obstacles, int)
