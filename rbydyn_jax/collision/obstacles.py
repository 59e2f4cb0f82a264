"""Obstacles, and the world that they make."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_pose, check_positive, check_size, known
from .._errors import ArgumentError, DtypeError, ShapeError
from ..shapes.box import Box
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import ConvexHull, ConvexHullGeometry, of_one_size
from ..shapes.cylinder import Cylinder
from ..shapes.distance_grid import DistanceGrid
from ..shapes.half_space import HalfSpace
from ..shapes.height_map import HeightMap
from ..spatial.safe import safe_norm

Obstacle = Capsule | Box | Cylinder | HalfSpace | ConvexHull | HeightMap | DistanceGrid
Obstacles = dict[str, Any]
"""The obstacles of each kind as pair functions take them."""


def sphere(center: Float[Array, "3"], radius: Float[Array, ""] | float) -> Capsule:
    """A sphere as an obstacle.

    Args:
        center: Its centre in world coordinates [m].
        radius: Radius [m].

    Raises:
        ArgumentError: The radius is negative, or a number not finite.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> float(sphere(jnp.zeros(3), 0.1).radius)
        0.1
    """
    center = _position(center, "center")
    return capsule(center, center, radius)


def capsule(start: Float[Array, "3"], end: Float[Array, "3"], radius: Float[Array, ""] | float) -> Capsule:
    """A capsule as an obstacle.

    Args:
        start: One end of its axis in world coordinates [m].
        end: The other end [m].
        radius: Radius [m].

    Raises:
        ArgumentError: The radius is negative, or a number not finite.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> capsule(jnp.zeros(3), jnp.ones(3), 0.1).segment.shape
        (2, 3)
    """
    ends = [_position(start, "start"), _position(end, "end")]
    return Capsule(jnp.stack(ends), check_size(radius, "radius"))


def box(pose: Float[Array, "4 4"], size: Float[Array, "3"]) -> Box:
    """A box as an obstacle.

    Args:
        pose: T_world_box, at its centre.
        size: Its side lengths [m].

    Raises:
        ArgumentError: A side length is negative, or `pose` is no rigid transform.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> print(box(jnp.eye(4), jnp.array([0.4, 0.6, 0.1])).half)
        [0.2  0.3  0.05]
    """
    T = _pose(pose, "T_world_box")
    return Box(T[:3, 3], T[:3, :3].T, 0.5 * check_size(size, "size", (3,)))


def cylinder(
    pose: Float[Array, "4 4"], *, length: Float[Array, ""] | float, radius: Float[Array, ""] | float
) -> Cylinder:
    """A cylinder as an obstacle.

    Args:
        pose: T_world_cylinder, at its centre; its axis is z.
        length: Length [m].
        radius: Radius [m].

    Raises:
        ArgumentError: A length is negative, or `pose` is no rigid transform.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> float(cylinder(jnp.eye(4), length=0.5, radius=0.1).half_length)
        0.25
    """
    T = _pose(pose, "T_world_cylinder")
    return Cylinder(T[:3, 3], T[:3, 2], 0.5 * check_size(length, "length"), check_size(radius, "radius"))


def half_space(point: Float[Array, "3"], normal: Float[Array, "3"]) -> HalfSpace:
    """All below a plane as an obstacle, such as a floor or a wall.

    Args:
        point: A point of the plane in world coordinates [m].
        normal: Its normal away from what is filled; of any length but zero.

    Raises:
        ArgumentError: The normal is zero, or a number not finite.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> print(half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 2.0])).normal)
        [0. 0. 1.]
    """
    point, normal = _position(point, "point"), _position(normal, "normal")
    if not isinstance(normal, Tracer) and not np.linalg.norm(np.asarray(normal)) > 0:
        raise ArgumentError("normal must not be zero")
    return HalfSpace(point, normal / safe_norm(normal))


def convex_hull(points: Float[np.ndarray, "n 3"], pose: Float[Array, "4 4"] | None = None) -> ConvexHull:
    """The convex hull of points as an obstacle.

    Which of them are its vertices, and its faces, are found once, by Qhull; the vertices are leaves like all positions,
    and can be moved as long as the faces stay those of their hull.

    Args:
        points: The points [m], known while tracing.
        pose: T_world_points, which may be traced; the identity if not given.

    Raises:
        ArgumentError: The points do not span a volume, a number is not finite, or `pose` is no rigid transform.
        DtypeError: An argument is not an array of floats, or the points are traced.
        ShapeError: An argument has another shape.

    Example:
        >>> import numpy as np
        >>> corner = convex_hull(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]]))
        >>> corner.vertices.shape, corner.faces.shape
        ((4, 3), (4, 3))
    """
    dtype = check_array(points, "points", (None, 3), "n, 3").dtype
    if isinstance(points, Tracer):
        raise DtypeError("points must be known while tracing: which of them are vertices is found outside of jit")
    geometry = ConvexHullGeometry(np.asarray(points, float))
    if problem := geometry.problem():
        raise ArgumentError(f"points: {problem}")
    hull = jax.tree.map(lambda x: jnp.asarray(x, dtype), geometry.on_link(np.eye(4)))
    if pose is None:
        return hull
    T = _pose(pose, "T_world_points")
    return hull._replace(vertices=hull.vertices @ T[:3, :3].T + T[None, :3, 3])


def height_map(
    heights: Float[Array, "nx ny"], spacing: Float[Array, ""] | float, pose: Float[Array, "4 4"] | None = None
) -> HeightMap:
    """All below a surface over a regular grid as an obstacle, such as a terrain.

    Between four neighbours the surface is two triangles, which meet on the diagonal from heights[i, j] to heights[i+1,
    j+1]; beyond its border the outermost heights go on. The distance of a point is its height above the surface over
    sqrt(1 + s^2), with s the steepest slope of the map: exact over a plane, and elsewhere of the right sign and never
    larger than the distance, nor less than 1 / (1 + s^2) of it. See `world_distances` for that of a shape.

    Args:
        heights: Along x and y of the map [m]; two or more each.
        spacing: Between neighbours [m].
        pose: T_world_map, with the first height on its z axis; the identity if not given.

    Raises:
        ArgumentError: The spacing is not positive, a number is not finite, or `pose` is no rigid transform.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape, or there are too few heights.

    Example:
        >>> import jax.numpy as jnp
        >>> slope = height_map(jnp.array([[0.0, 0.0], [0.1, 0.1]]), 1.0)
        >>> slope.heights.shape
        (2, 2)
    """
    heights = _numbers(heights, "heights", "nx, ny")
    return HeightMap(*_grid_frame(pose, "T_world_map"), heights, _spacing(spacing))


def distance_grid(
    values: Float[Array, "nx ny nz"], spacing: Float[Array, ""] | float, pose: Float[Array, "4 4"] | None = None
) -> DistanceGrid:
    """A grid of signed distances as an obstacle, such as those of a reconstruction.

    Between the points of the grid the distance is trilinear: what is found is as right as the numbers are, and off by a
    part of the spacing where the obstacle has edges. Outside of the grid it is a lower bound for an obstacle inside of
    it: the distance from the nearest point of the grid and the value there, at right angles. See `world_distances` for
    what the distance of a shape is, `grid_from_points` and `grid_from_mesh` for grids of clouds and meshes.

    Args:
        values: Signed distances along x, y and z of the grid, negative inside [m]; two or more each.
        spacing: Between neighbours [m].
        pose: T_world_grid, at the first point; the identity if not given.

    Raises:
        ArgumentError: The spacing is not positive, a number is not finite, or `pose` is no rigid transform.
        DtypeError: An argument is not an array of floats.
        ShapeError: An argument has another shape, or there are too few values.

    Example:
        >>> import jax.numpy as jnp
        >>> distance_grid(jnp.ones((4, 5, 6)), 0.1).values.shape
        (4, 5, 6)
    """
    values = _numbers(values, "values", "nx, ny, nz")
    return DistanceGrid(*_grid_frame(pose, "T_world_grid"), values, _spacing(spacing))


class World(eqx.Module):
    """Obstacles that stand still, and a cloud of points: a pytree.

    All positions and sizes are leaves: other numbers do not recompile, and batches of worlds, stacked leaf by leaf,
    go through `jax.vmap`. What moves with the robot belongs to the robot: `attach` a body that has shapes.

    Args:
        *obstacles: What `sphere`, `capsule`, `box`, `cylinder`, `half_space`, `convex_hull`, `height_map` and
            `distance_grid` return.
        points: A cloud of points in world coordinates [m], such as that of a depth camera, without those that it did
            not see; a cloud of fixed size may be filled up with points far away.
        point_radius: Radius of the ball about each of them [m].

    Attributes:
        shapes: For each kind of obstacle the parameters of all of that kind.
        places: For each kind, which of the obstacles these are.

    Raises:
        ArgumentError: There is neither an obstacle nor a cloud, or a point is not finite where it is known.
        DtypeError: An obstacle is of another type, or the points are not an array of floats.
        ShapeError: `points` is not of shape (p, 3), or height maps or distance grids have different shapes.

    Example:
        A floor with a table on it:

        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import collision
        >>> floor = collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0]))
        >>> table = collision.box(jnp.eye(4).at[:3, 3].set(jnp.array([0.6, 0.0, 0.4])), jnp.array([0.5, 0.8, 0.05]))
        >>> len(collision.World(floor, table))
        2
    """

    shapes: dict[str, Any]
    points: Float[Array, "p 3"] | None
    point_radius: Float[Array, ""]
    places: dict[str, tuple[int, ...]] = eqx.field(static=True)

    def __init__(
        self,
        *obstacles: Obstacle,
        points: Float[Array, "p 3"] | None = None,
        point_radius: Float[Array, ""] | float = 0.0,
    ) -> None:
        if not obstacles and points is None:
            raise ArgumentError("World needs at least one obstacle, or points=")
        for k, x in enumerate(obstacles):
            if not isinstance(x, Obstacle):
                raise DtypeError(f"obstacle {k} must be what box, sphere and the like return, got {type(x).__name__}")
        kinds = sorted({x.kind for x in obstacles})  # as JAX orders the keys of a dict
        self.places = {kind: tuple(k for k, x in enumerate(obstacles) if x.kind == kind) for kind in kinds}
        for kind in kinds:
            fields = [x for x in obstacles if x.kind == kind and isinstance(x, HeightMap | DistanceGrid)]
            sizes = {x[2].shape for x in fields}
            if len(sizes) > 1:
                raise ShapeError(f"the obstacles of the kind {kind} in a world must have one size, got {sizes}")
        self.shapes = {
            kind: jax.tree.map(lambda *x: jnp.stack(x), *of_one_size([obstacles[k] for k in places]))
            for kind, places in self.places.items()
        }
        self.points = None if points is None else check_array(points, "points", (None, 3), "p, 3")
        _check_cloud(self.points)
        self.point_radius = check_size(point_radius, "point_radius")

    def __len__(self) -> int:
        return sum(map(len, self.places.values()))


def _check_cloud(points: Array | None) -> None:
    """Raises for a point that is not finite, where its values are known."""
    numbers = known(points)
    if numbers is not None and not (finite := np.isfinite(numbers).all(axis=1)).all():
        k = int(np.argmin(finite))
        raise ArgumentError(
            f"points must be finite: leave out what the camera did not see; points[{k}] is {numbers[k]}"
        )


def _numbers(x: Any, name: str, meaning: str) -> Array:
    numbers = check_array(x, name, (None,) * (meaning.count(",") + 1), meaning)
    if min(numbers.shape) < 2:
        raise ShapeError(f"{name} must have two or more numbers along each axis, got {numbers.shape}")
    check_finite(numbers, name)
    return numbers


def _grid_frame(pose: Any, meaning: str) -> tuple[Array, Array]:
    if pose is None:
        return jnp.zeros(3), jnp.eye(3)
    T = _pose(pose, meaning)
    return T[:3, 3], T[:3, :3].T


def _spacing(x: Any) -> Array:
    check_positive(x, "spacing")
    return check_array(x, "spacing", ())


def _position(x: Any, name: str) -> Array:
    position = check_array(x, name, (3,), "x, y, z")
    check_finite(position, name)
    return position


def _pose(x: Any, meaning: str) -> Array:
    pose = check_array(x, "pose", (4, 4), meaning)
    check_finite(pose, "pose")
    check_pose(x, "pose")
    return pose


def placed_obstacles(world: World) -> Obstacles:
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
