"""Height maps and distance grids: against planes, meshes and clouds, whose distances are known."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.collision.obstacle_fields import field_value
from rbydyn_jax.collision.obstacles import placed_obstacles
from tests.collision.test_convex_hulls import with_hulls
from tests.helpers import X64, assert_close, oracle

FLOAT = jnp.float64 if X64 else jnp.float32
TOLERANCE = 1e-9 if X64 else 1e-5


def value(obstacle, points) -> np.ndarray:
    """The field of one obstacle at points (n, 3)."""
    world = collision.World(obstacle)
    (kind,) = world.shapes
    one = jax.tree.map(lambda x: x[0], placed_obstacles(world)[kind])
    x, y, z = (jnp.asarray(points[:, k], FLOAT) for k in range(3))
    return np.asarray(field_value(one, (x, y, z)))


def frame() -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_matrix(), [0.1, -0.2, -0.6]
    return T


def shaped():
    """An arm with a box, a hull and its own capsules."""
    model = with_hulls()[0]
    pose = jnp.asarray(frame(), FLOAT).at[:3, 3].set(jnp.array([0.05, 0.1, 0.0]))
    return collision.with_shapes(model, {"tool": [collision.box(pose, jnp.array([0.3, 0.2, 0.1], FLOAT))]})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["height_map", "distance_grid"])
def test_a_plane_is_a_half_space(kind):
    T, n = frame(), np.array([0.2, -0.1, 1.0])  # the plane in the axes of the field
    slope = -n[:2] / n[2]
    if kind == "height_map":
        i, j = np.meshgrid(np.arange(9.0), np.arange(7.0), indexing="ij")
        shift = T @ np.array([-2.0, -1.5, 0.0, 1.0])
        heights = 0.5 * (i * slope[0] + j * slope[1]) + slope @ [-2.0, -1.5]
        pose = np.c_[T[:, :3], shift]
        field = collision.height_map(jnp.asarray(heights, FLOAT), 0.5, jnp.asarray(pose, FLOAT))
    else:
        x = np.stack(np.meshgrid(*(0.4 * np.arange(m) - 1.6 for m in (9, 9, 8)), indexing="ij"), axis=-1)
        pose = np.c_[T[:, :3], T @ np.array([-1.6, -1.6, -1.6, 1.0])]
        field = collision.distance_grid(jnp.asarray(x @ n / np.linalg.norm(n), FLOAT), 0.4, jnp.asarray(pose, FLOAT))
    model, q = shaped(), jnp.array([0.3, -0.9], FLOAT)
    half = collision.half_space(jnp.asarray(T[:3, 3], FLOAT), jnp.asarray(T[:3, :3] @ n, FLOAT))
    found = jax.jit(collision.world_contacts)(model, q, collision.World(field))
    want = jax.jit(collision.world_contacts)(model, q, collision.World(half))
    assert np.ptp(want.distance) > 0.05
    assert_close(found.distance, want.distance, TOLERANCE)
    assert (found.link == want.link).all()
    gap = np.asarray(found.point_a) - np.asarray(found.point_b)
    assert_close(gap, np.asarray(found.distance)[:, None] * (T[:3, :3] @ n / np.linalg.norm(n)), TOLERANCE, scale=1.0)

    def total(model, q, world):
        return collision.world_distances(model, q, world).sum()

    slopes = jax.jit(jax.grad(total, (0, 1, 2)))(model, q, collision.World(field))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))
    assert_close(slopes[1], jax.grad(total, 1)(model, q, collision.World(half)), TOLERANCE, scale=1.0)


@pytest.mark.ci
def test_heights_of_a_terrain_bound_the_distance():
    trimesh = oracle("trimesh")
    heights = 0.1 * np.random.default_rng(0).normal(size=(6, 7))
    terrain = collision.height_map(jnp.asarray(heights, FLOAT), 0.25)
    quads = jax.tree.map(lambda x: np.asarray(x, float), terrain).surface(np.eye(4))
    mesh = trimesh.Trimesh(quads[:, :3].reshape(-1, 3), np.arange(3 * len(quads)).reshape(-1, 3), process=False)
    x = np.random.default_rng(1).uniform([0.3, 0.3, -0.2], [0.95, 1.2, 0.3], (300, 3))
    d = value(terrain, x)
    distance = trimesh.proximity.closest_point_naive(mesh, x)[1]
    normals = mesh.face_normals
    cosine = np.abs(normals[:, 2]).min()  # of the steepest slope
    assert (np.abs(d) <= distance + TOLERANCE).all()
    assert (np.abs(d) >= cosine**2 * distance - TOLERANCE).all()
    # It is the height above the triangle below.
    corners = mesh.triangles[:, :, :2]
    for point, found in zip(x[:100], d[:100], strict=True):
        weights = np.linalg.solve(
            np.concatenate([np.moveaxis(corners, 1, 2), np.ones((len(corners), 1, 3))], axis=1),
            np.broadcast_to([[point[0]], [point[1]], [1.0]], (len(corners), 3, 1)),
        )[..., 0]
        inside = weights.min(axis=1) > -1e-9
        height = (weights * mesh.triangles[:, :, 2]).sum(axis=1)[inside][0]
        assert abs(found - cosine * (point[2] - height)) < (1e-9 if X64 else 1e-5)
    beyond = value(terrain, np.array([[-3.0, -1.0, 1.0], [9.0, 9.0, 1.0]]))
    assert_close(beyond, cosine * (1.0 - heights[[0, -1], [0, -1]]), TOLERANCE)


@pytest.mark.ci
@pytest.mark.ci
def test_a_hull_feels_a_peak_under_the_middle_of_a_face():
    """A block above flat ground with one peak, which is nowhere near its corners and edges."""
    spacing, half, lift = 0.05, np.array([0.3, 0.2, 0.05]), 0.3
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
    builder = rb.RobotBuilder("lift").link("world").link("block", 1.0, inertia=0.1)
    builder.prismatic("up", "world", "block", axis=(0, 0, 1), lower=0.0, upper=1.0)
    hull = collision.convex_hull(corners)
    block = collision.with_shapes(rb.build_model(builder.build_description()), {"block": [hull]})
    places = [(i, j) for i in range(3, 14, 2) for j in (5, 6, 8, 10)]
    heights = np.zeros((len(places), 17, 17))
    for k, (i, j) in enumerate(places):
        heights[k, i - 1 : i + 2, j - 1 : j + 2] = 0.05
        heights[k, i, j] = 0.1
    pose = jnp.eye(4).at[:2, 3].set(-8 * spacing)

    @jax.jit
    @jax.vmap
    def distance(heights):
        world = collision.World(collision.height_map(heights, spacing, pose))
        return collision.world_distances(block, jnp.array([lift]), world).min()

    got = np.asarray(distance(jnp.asarray(heights)))
    terrain = collision.height_map(jnp.asarray(heights[0]), spacing, pose)
    x, y = (spacing * (k - 8) for k in places[0])
    above, beside = value(terrain, np.array([[x, y, lift - half[2]], [x, y + 3 * spacing, lift - half[2]]]))
    assert (got >= above - TOLERANCE).all()
    assert (got < above + 0.1 * (beside - above)).all(), got


def test_grids_of_clouds_and_meshes(tmp_path):
    trimesh = oracle("trimesh")
    cloud = np.random.default_rng(2).uniform(-0.3, 0.3, (40, 3))
    grid = collision.grid_from_points(cloud, 0.05, margin=0.2, radius=0.02)
    x = np.random.default_rng(3).uniform(-0.45, 0.45, (300, 3))
    want = np.linalg.norm(x[:, None] - cloud[None], axis=-1).min(axis=1) - 0.02
    error = value(grid, x) - want
    assert np.abs(error).max() < 0.05 * 3**0.5
    assert np.median(np.abs(error)) < 0.005
    nodes = np.asarray(grid.origin) + 0.05 * np.array([[0, 0, 0], [3, 4, 5], [9, 2, 7]])
    exact = np.linalg.norm(nodes[:, None] - cloud[None], axis=-1).min(axis=1) - 0.02
    assert_close(value(grid, nodes), exact, 1e-9 if X64 else 1e-4)
    far = np.array([[2.0, 0.1, 0.2], [-1.0, -1.0, 1.5]])
    bound = np.linalg.norm(far[:, None] - cloud[None], axis=-1).min(axis=1) - 0.02
    assert (value(grid, far) <= bound + 0.05).all() and (value(grid, far) > 0.7 * bound).all()
    # A ball that is wider than the margin is inside of the grid, too.
    ball = collision.grid_from_points(np.zeros((1, 3)), 0.05, margin=0.1, radius=0.3)
    outside = np.array([[0.0, 0.0, z] for z in (0.32, 0.45, 0.8)])
    assert (value(ball, outside) <= outside[:, 2] - 0.3 + 0.01).all()
    box = trimesh.creation.box([0.4, 0.3, 0.2])
    box.export(tmp_path / "box.stl")
    grid = collision.grid_from_mesh(tmp_path / "box.stl", 0.05, margin=0.1)
    low, half = np.asarray(grid.origin, float), np.array([0.2, 0.15, 0.1])
    index = np.stack(np.meshgrid(*map(np.arange, grid.values.shape), indexing="ij"), axis=-1)
    away = np.abs(low + 0.05 * index) - half
    want = np.linalg.norm(np.maximum(away, 0), axis=-1) + np.minimum(away.max(axis=-1), 0)
    assert np.abs(np.asarray(grid.values) - want).max() < 1e-6  # STL files have float32
    box.invert()
    box.export(tmp_path / "inverted.stl")  # triangles that face inward bound the same body
    inverted = collision.grid_from_mesh(tmp_path / "inverted.stl", 0.05, margin=0.1)
    assert_close(inverted.values, grid.values, 1e-6)
    drawn = jax.tree.map(np.asarray, grid).surface(np.eye(4))
    assert np.abs(drawn).max(axis=(0, 1)).max() < 0.25


def around() -> collision.World:
    """A hull and a cloud on both sides of a planar arm, above a floor."""
    wall = np.array([[x, y, z] for x in (0.2, 0.4) for y in (0.5, 0.9) for z in (-0.1, 0.1)])
    return collision.World(
        collision.convex_hull(wall),
        collision.height_map(jnp.zeros((3, 3), FLOAT), 1.0, jnp.eye(4, dtype=FLOAT).at[2, 3].set(-0.5)),
        collision.grid_from_points(wall - [1.0, 0.0, 0.0], 0.1, radius=0.05),
    )


@pytest.mark.slow
def test_planning_has_their_slopes():
    from rbydyn_jax.planning._clearance import Clearance
    from rbydyn_jax.planning.goals import Moving

    arm, world = robots.two_link_arm(), around()
    clearance = Clearance(jnp.zeros((), FLOAT), world, None)
    q, h = jnp.array([0.5, 0.7], FLOAT), 1e-6 if X64 else 1e-3
    moving = Moving((0, 1), (0, 1))
    d, slopes = jax.jit(lambda q: clearance.rows(arm, q, moving, 6))(q)
    distances = jax.jit(lambda q: jnp.sort(collision.world_distances(arm, q, world)))
    assert_close(d, distances(q), TOLERANCE)
    steps = h * np.eye(2)
    difference = np.stack([(distances(q + step) - distances(q - step)) / (2 * h) for step in steps], axis=1)
    assert_close(slopes, difference, kind="difference")


def test_they_are_shown():
    from unittest.mock import MagicMock

    from rbydyn_jax.viz.scene import add_world

    oracle("trimesh")
    scene = MagicMock()
    add_world(scene, around())
    meshes = {call.args[0]: call.args[1:3] for call in scene.add_mesh_simple.call_args_list}
    assert set(meshes) == {"/world/0", "/world/1", "/world/2"}
    assert all(len(vertices) and len(faces) for vertices, faces in meshes.values())
    assert_close(meshes["/world/0"][0].max(axis=0), [0.4, 0.9, 0.1], 1e-6)
    assert_close(meshes["/world/1"][0].max(axis=0), [2.0, 2.0, -0.5], 1e-6)
    assert (np.abs(meshes["/world/2"][0] - [-0.7, 0.7, 0.0]).max(axis=0) < [0.3, 0.4, 0.3]).all()


def test_wrong_fields(tmp_path):
    flat = jnp.zeros((2, 2))
    with pytest.raises(rb.ArgumentError, match="spacing must be finite and positive, got 0"):
        collision.height_map(flat, 0.0)
    with pytest.raises(rb.ShapeError, match=r"heights must have two or more numbers along each axis, got \(1, 2\)"):
        collision.height_map(jnp.zeros((1, 2)), 0.1)
    with pytest.raises(rb.ShapeError, match=r"values must have shape"):
        collision.distance_grid(flat, 0.1)
    with pytest.raises(rb.ArgumentError, match="values must be finite"):
        collision.distance_grid(jnp.full((2, 2, 2), jnp.nan), 0.1)
    with pytest.raises(rb.ShapeError, match="obstacles of the kind height_map in a world must have one size"):
        collision.World(collision.height_map(flat, 0.1), collision.height_map(jnp.zeros((2, 3)), 0.1))
    with pytest.raises(rb.ArgumentError, match="points must have at least one point"):
        collision.grid_from_points(np.zeros((0, 3)), 0.1)
    with pytest.raises(rb.ParseError, match="no such file"):
        collision.grid_from_mesh(tmp_path / "nowhere.stl", 0.1)
    (tmp_path / "empty.stl").write_text("no mesh at all")
    with pytest.raises(rb.ParseError, match=r"empty.stl"):
        collision.grid_from_mesh(tmp_path / "empty.stl", 0.1)
    with pytest.raises(rb.ArgumentError, match="makes a grid of"):
        collision.grid_from_points(np.zeros((1, 3)), 1e-6)
