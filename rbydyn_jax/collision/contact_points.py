"""Points in which a robot's shapes can rest on obstacles: several of each pair, so that what lies flat stays flat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._check import check_sequence, jit_public
from .._errors import ModelError
from .._result import Result
from ..model.model import Model
from ..model.tree import KinematicTree
from ..shapes.base import Vector
from ..shapes.half_space import PlacedHalfSpaces
from .convex import core_witness
from .field import signed_distance
from .groups import by_kind
from .obstacles import World
from .pair_table import SINGLE
from .solids import Solid, solid
from .vectors import (
    add_scaled,
    any_perpendicular,
    cross,
    direction,
    dot,
    map_components,
    otherwise,
    perpendicular,
    scaled,
    sub,
)
from .world import checked_world, moving_shapes, on_grid

_Points = list[tuple[Array, Vector, Vector]]  # distance, point on the robot, normal


class ContactPoints(Result):
    """Points of a robot that touch obstacles, or may.

    Args:
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

    Of a shape on a half-space: both ends of a capsule, the four corners of a box's face, and of a cylinder three points
    on the rim of the nearer end and one on the other. Of a shape and another solid: these points of the one against the
    other, those of the other against the one, and the two nearest points of both. So many points there are in every
    configuration. What lies on an edge that crosses another one has the nearest points only. Which corners are chosen
    counts as constant in derivatives.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        world: The obstacles; its cloud of points is left out.
        links: The links whose shapes count, by name or index; None is all that a joint moves.

    Raises:
        DtypeError: `model` is no model, `world` no world, `links` no sequence, or `q` no array of floats.
        ModelError: None of the links has collision shapes that move, or the world has no obstacles; or there are
            shapes of which no contacts are known: convex hulls, height maps and distance grids.
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
    model, world, q = checked_world(model, world, q)
    chosen = contact_shapes(model, world, links)
    found = _found(model, q, world, chosen)
    owner, obstacles = owners(model.tree, world, chosen)
    return ContactPoints(*found, link=jnp.asarray(owner, jnp.int32), obstacle=jnp.asarray(obstacles, jnp.int32))


def contact_shapes(model: Model, world: World, links: Sequence[str | int] | None) -> tuple[int, ...]:
    """The shapes of some links that move.

    Raises:
        DtypeError: `links` is no sequence.
        ModelError: There is no shape, or no obstacle, or one of which no contacts are known, such as a convex hull.
        NameNotFoundError: There is no such link.
    """
    if not len(world):
        raise ModelError("the world has no obstacles but a cloud of points, which has no contacts")
    if unknown := SINGLE & {*model.tree.shape_kinds, *world.places}:
        shapes = ", ".join(sorted(unknown)).replace("_", " ")
        raise ModelError(f"contacts are not known of these shapes: {shapes}; take capsules, boxes or cylinders instead")
    shapes = moving_shapes(model.tree)
    if links is not None:
        wanted = [model.link_index(x) for x in check_sequence(links, "links", "links, by name or index")]
        shapes = [i for i in shapes if model.tree.shape_links[i] in wanted]
        if not shapes:
            raise ModelError("none of the links has collision shapes that move")
    return tuple(shapes)


@jit_public("shapes")
def _found(model: Model, q: Array, world: World, shapes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    distance, point, normal = on_grid(model, q, world, list(shapes), _points)
    return distance, jnp.stack(point, axis=1), jnp.stack(normal, axis=1)


def owners(tree: KinematicTree, world: World, shapes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The link and the obstacle of each point, known without the configuration."""
    links, obstacles = [], []
    for kind, of_kind in by_kind(tree, shapes).items():
        for other, places in world.places.items():
            for _ in range(_count(kind, other)):
                links += [tree.shape_links[i] for i in of_kind for _ in places]
                obstacles += [k for _ in of_kind for k in places]
    return np.array(links, int), np.array(obstacles, int)


def _count(first: str, second: str) -> int:
    features = {"capsule": 2, "box": 4, "cylinder": 4, "half_space": 0}
    return features[first] + (features[second] + 1 if second != "half_space" else 0)


def _points(first: str, second: str) -> Any:
    """A function of two kinds of shapes: all points of a pair, one after the other along the first axis."""

    def stacked(points: _Points) -> Any:
        return jax.tree.map(lambda *x: jnp.stack(x), *points)

    def on_plane(a: Any, b: PlacedHalfSpaces) -> Any:
        body = solid(a)
        found: _Points = []
        for p in _features(body, b.normal):
            height = dot(sub(p, b.point), b.normal) - body.radius
            found.append((height, add_scaled(p, -body.radius, b.normal), b.normal))
        return stacked(found)

    def on_solid(a: Any, b: Any) -> Any:
        body, other = solid(a), solid(b)
        core, n, point, _ = core_witness(body, other)
        found: _Points = [(core - body.radius - other.radius, add_scaled(point, -body.radius, n), n)]
        facing = lax.stop_gradient(n)
        for p in _features(body, facing):
            distance, normal = signed_distance(other, p)
            found.append((distance - body.radius, add_scaled(p, -body.radius, normal), normal))
        for p in _features(other, scaled(-jnp.ones_like(core), facing)):
            distance, normal = signed_distance(body, p)
            out = map_components(lambda x: -x, normal)
            found.append((distance - other.radius, add_scaled(p, -distance, normal), out))
        return stacked(found)

    return on_plane if second == "half_space" else on_solid


def _features(body: Solid, n: Vector) -> list[Vector]:
    """The points of the core on which a solid can rest, on what is in the direction of -n."""
    one = jnp.ones_like(n[0])
    if body.disc is not None:
        (half,) = body.halves
        near = jnp.where(dot(n, half) > 0, -one, one)
        down = otherwise(direction(perpendicular(n, body.disc.axis), one), any_perpendicular(body.disc.axis))
        aside = cross(body.disc.axis, down)
        end, far = body.corner([near]), body.corner([-near])
        around = [(-1.0, 0.0), (0.5, 0.75**0.5), (0.5, -(0.75**0.5))]  # the lowest point first
        rim = [add_scaled(add_scaled(end, x * body.disc.radius, down), y * body.disc.radius, aside) for x, y in around]
        return [*rim, add_scaled(far, -body.disc.radius, down)]
    if len(body.halves) == 1:
        return [body.corner([one]), body.corner([-one])]
    steepness = jnp.stack([abs(dot(n, direction(g, jnp.zeros_like(one)))) for g in body.halves])
    face = jnp.argmax(lax.stop_gradient(steepness), axis=0)
    signs = [jnp.where(dot(n, g) > 0, -one, one) for g in body.halves]
    found = []
    for x, y in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
        # The face is that of axis k; the corner's signs along the other two are x and y, in their order.
        found.append(
            body.corner(
                [
                    jnp.where(face == 0, signs[0], x),
                    jnp.where(face == 1, signs[1], jnp.where(face == 0, x, y)),
                    jnp.where(face == 2, signs[2], y),
                ]
            )
        )
    return found
