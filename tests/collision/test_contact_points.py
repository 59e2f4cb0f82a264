"""Contact points of hulls, height maps and grids: against boxes, closest points of meshes, planes and differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import collision
from rbydyn_jax.collision.field_contacts import ball_on_map
from rbydyn_jax.collision.obstacle_fields import surface
from rbydyn_jax.collision.obstacles import placed_obstacles
from rbydyn_jax.constraints import simulate
from rbydyn_jax.shapes import (
    BoxGeometry,
    CapsuleGeometry,
    ConvexHullGeometry,
    CylinderGeometry,
    Geometry,
    SphereGeometry,
)
from rbydyn_jax.shapes.convex_hull import ConvexHull
from rbydyn_jax.shapes.distance_grid import DistanceGrid
from rbydyn_jax.shapes.height_map import HeightMap
from tests.helpers import X64, assert_close, oracle

needs_x64 = pytest.mark.skipif(not X64, reason="the bounds are those of float64")
SIZE = np.array([0.2, 0.16, 0.1])
CORNERS = 0.5 * SIZE * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
STONE = np.random.default_rng(5).normal(size=(12, 3)) * [0.15, 0.1, 0.08]


def free_body(geometry: Geometry) -> rb.Model:
    """A body of 1 kg with the inertia of a solid ball of 0.1 m."""
    b = rb.RobotBuilder("free").link("w").link("body", 1.0, (0, 0, 0), (0.004, 0.004, 0.004))
    return rb.build_model(b.floating("free", "w", "body").collision("body", geometry))


def slope_map(n: np.ndarray) -> HeightMap:
    """The plane through the origin with the normal n, as a height map of 5 m by 5 m."""
    x, y = np.meshgrid(*(0.25 * np.arange(21) - 2.5,) * 2, indexing="ij")
    corner = jnp.eye(4).at[:2, 3].set(-2.5)
    return collision.height_map(jnp.asarray(-(n[0] * x + n[1] * y) / n[2]), 0.25, corner)


def slope_grid(n: np.ndarray) -> DistanceGrid:
    """The same as a grid of distances."""
    places = np.stack(np.meshgrid(*(0.5 * np.arange(11) - 2.5,) * 3, indexing="ij"), axis=-1)
    return collision.distance_grid(jnp.asarray(places @ n), 0.5, jnp.eye(4).at[:3, 3].set(-2.5))


def slope_hull(n: np.ndarray) -> ConvexHull:
    """The same as the upper face of a large hull."""
    R = Rotation.align_vectors(n[None], [[0.0, 0.0, 1.0]])[0]
    block = np.array([[x, y, z] for x in (-2, 2) for y in (-2, 2) for z in (-1, 0)])
    return collision.convex_hull(R.apply(block))


NORMAL = np.array([0.3, -0.1, 1.0]) / np.linalg.norm([0.3, -0.1, 1.0])
SLOPES = {"height_map": slope_map, "distance_grid": slope_grid, "convex_hull": slope_hull}
SHAPES = {
    "capsule": CapsuleGeometry(0.2, 0.05),
    "box": BoxGeometry(SIZE),
    "cylinder": CylinderGeometry(0.2, 0.08),
    "convex_hull": ConvexHullGeometry(STONE),
}


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("slope", list(SLOPES))
@pytest.mark.parametrize("shape", list(SHAPES))
def test_on_a_plane_they_are_those_of_a_half_space(shape, slope):
    """All points have the height of the plane below them, its normal, and the least is that of the half-space."""
    model, obstacle = free_body(SHAPES[shape]), SLOPES[slope](NORMAL)
    plane = collision.half_space(jnp.zeros(3), jnp.asarray(NORMAL))

    @jax.jit
    @jax.vmap
    def found(key):
        q = rb.random_configuration(model, key)
        q = q.at[4:].set(0.2 * q[4:] / jnp.linalg.norm(q[4:]) + 0.15 * NORMAL)
        return (
            collision.contact_points(model, q, collision.World(obstacle)),
            collision.world_distances(model, q, collision.World(plane)),
        )

    points, nearest = found(jax.random.split(jax.random.key(0), 100))
    d = np.asarray(points.distance)
    assert 0.1 < (nearest < 0).mean() < 0.9
    assert_close(d.min(axis=1), nearest[:, 0], 1e-9)
    assert_close(np.linalg.norm(points.normal, axis=-1), np.ones(d.shape), 1e-12)
    if slope != "convex_hull":  # whose own corners are points as well
        assert_close(points.normal, np.broadcast_to(NORMAL, points.normal.shape), 1e-9)
        assert_close(points.point @ NORMAL, d, 1e-9)


@pytest.mark.ci
@needs_x64
def test_a_hull_of_eight_corners_rests_on_those_of_the_box():
    floor = collision.World(collision.half_space(jnp.zeros(3), jnp.asarray(NORMAL)))
    R = Rotation.align_vectors(NORMAL[None], [[0.0, 0.0, 1.0]])[0]
    xyzw = (R * Rotation.from_rotvec([0.0, 0.0, 0.7])).as_quat()
    q = jnp.asarray(np.r_[xyzw[3], xyzw[:3], 0.05 * NORMAL])
    both = [free_body(g) for g in (BoxGeometry(SIZE), ConvexHullGeometry(CORNERS))]
    box, hull = (collision.contact_points(model, q, floor) for model in both)
    assert np.abs(hull.distance).max() < 1e-15
    order = [np.lexsort(np.round(x.point, 9).T) for x in (box, hull)]
    assert_close(hull.point[order[1]], box.point[order[0]], 1e-12)


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("of", ["box", "convex_hull"])
def test_a_hull_that_overhangs_a_table_is_held_where_it_is(of):
    """It lies flat and spins: what holds it acts on points of the hull, and so it does on the box of that size."""
    T = jnp.eye(4).at[:3, 3].set(jnp.array([-0.5, 0.0, -0.5]))
    block = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-1, 1) for z in (-0.5, 0.5)])
    table = collision.box(T, jnp.array([1.0, 2.0, 1.0])) if of == "box" else collision.convex_hull(block, T)
    model, world = free_body(ConvexHullGeometry(CORNERS)), collision.World(table)
    start = jnp.array([1.0, 0, 0, 0, -0.02, 0.0, 0.05])
    spin = jnp.zeros(6).at[2].set(4.0)
    motion = simulate(model, start, spin, 0.1, 0.005, method="implicit", world=world, friction=0.5)
    found = jax.jit(jax.vmap(lambda q: collision.contact_points(model, q, world)))(motion.qs[:-1])
    arms = np.asarray(found.point - motion.qs[:-1, None, 4:])
    R = np.asarray(jax.vmap(lambda q: rb.link_pose(model, q, "body")[:3, :3])(motion.qs[:-1]))
    outside = (np.abs(np.einsum("tji,tkj->tki", R, arms)) - 0.5 * SIZE).max(axis=-1)
    touching = np.abs(found.distance) < 1e-3
    assert touching.any(axis=1).all()
    assert outside[touching].max() < 2e-3
    assert (np.linalg.norm(motion.forces[1:], axis=-1).sum(axis=1) > 1.0).all()


def rectangle(size: np.ndarray, yaw: float, place: np.ndarray) -> np.ndarray:
    """Half-planes a x + b y + c <= 0 of a rectangle in the plane."""
    across = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]) @ Rotation.from_euler("z", yaw).as_matrix()[:2, :2].T
    return np.column_stack([across, -across @ place - 0.5 * np.repeat(size, 2)])


@needs_x64
@pytest.mark.parametrize("of", ["box", pytest.param("convex_hull", marks=pytest.mark.slow)])
def test_all_corners_of_an_overlap_are_among_them(of):
    """Faces that lie on each other, against the intersection of half-planes of scipy."""
    table, rng = np.array([0.6, 0.4]), np.random.default_rng(3)
    model, gap = free_body(BoxGeometry(SIZE)), 1e-3
    block = 0.5 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [*table, 0.2]
    T = jnp.eye(4).at[2, 3].set(-0.1)
    world = collision.World(
        collision.box(T, jnp.array([*table, 0.2])) if of == "box" else collision.convex_hull(block, T)
    )
    found = jax.jit(jax.vmap(lambda q: collision.contact_points(model, q, world)))
    yaws, places = rng.uniform(-np.pi, np.pi, 60), rng.uniform(-1, 1, (60, 2)) * (0.5 * table + 0.05)
    yaws[:20], places[:4] = rng.choice([0.0, 0.5 * np.pi], 20), [[0.2, 0.1], [0.3, 0.0], [0.25, -0.16], [-0.3, 0.2]]
    upside_down = Rotation.from_euler("x", np.pi * rng.integers(0, 2, (60, 1)))
    turns = (Rotation.from_euler("z", yaws[:, None]) * upside_down).as_quat(scalar_first=True)
    q = np.column_stack([turns, places, np.full(60, 0.5 * SIZE[2] + gap)])
    points = found(jnp.asarray(q))
    for i in range(60):
        sides = np.concatenate([rectangle(SIZE[:2], yaws[i], places[i]), rectangle(table, 0.0, np.zeros(2))])
        inside = linprog([0, 0, -1], np.column_stack([sides[:, :2], np.ones(8)]), -sides[:, 2], bounds=(None, None))
        if inside.x[2] < 1e-3:  # hardly any overlap
            continue
        corners = HalfspaceIntersection(sides, inside.x[:2]).intersections
        near = np.abs(points.distance[i] - gap) < 1e-9
        at = np.asarray(points.point[i])[near]
        assert (sides[:, :2] @ at[:, :2].T + sides[:, 2:] < 1e-9).all()
        assert np.linalg.norm(corners[:, None] - at[None, :, :2], axis=-1).min(axis=1).max() < 1e-9
        assert_close(np.asarray(points.normal[i])[near], np.tile([0.0, 0, 1], (near.sum(), 1)), 1e-9)
        assert_close(at[:, 2], np.full(near.sum(), gap), 1e-6)


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("height", [3e-5, 1e-4])
def test_a_box_whose_middle_is_on_a_table_stays_there(height):
    """Its middle is 1 mm from the edge; the box is let go a little above, as what simulates in steps always is."""
    table = collision.box(jnp.eye(4).at[2, 3].set(-0.25), jnp.full(3, 0.5))
    model = free_body(BoxGeometry(np.full(3, 0.2)))
    start = jnp.array([1.0, 0, 0, 0, 0.249, 0.0, 0.1 + height])
    motion = simulate(
        model, start, jnp.zeros(6), 0.4, 0.002, method="implicit", world=collision.World(table), friction=0.5
    )
    assert np.abs(motion.vs[:, :3]).max() < 1e-2
    assert_close(motion.qs[-1, 4:], np.array([0.249, 0.0, 0.1]), 1e-4)


@needs_x64
@pytest.mark.ci
def test_rods_whose_axes_meet_touch_along_a_common_normal():
    """A ball in the middle of another, and on the axis of a rod; rods along one line, and crossing: by closed forms."""
    ball, rod = free_body(SphereGeometry(0.2)), free_body(CapsuleGeometry(0.4, 0.05))
    x = jnp.array([0.5, 0.0, 0.0])
    sphere, along_x = collision.sphere(jnp.zeros(3), 0.5), collision.capsule(-x, x, 0.1)
    turned = jnp.array([0.5**0.5, 0.0, 0.5**0.5, 0.0])  # of the rod, whose axis is z, to x
    upright, middle = jnp.array([1.0, 0.0, 0.0, 0.0]), jnp.zeros(3)
    for model, rotation, at, obstacle, depth in (
        (ball, upright, middle, sphere, 0.7),
        (ball, upright, middle, along_x, 0.3),
        (ball, upright, middle.at[0].set(0.1), along_x, 0.3),
        (rod, turned, middle, along_x, 0.15),
        (rod, upright, middle, along_x, 0.15),
    ):
        q, world = jnp.concatenate([rotation, at]), collision.World(obstacle)
        found = collision.contact_points(model, q, world)
        assert_close(found.distance[0], -depth, kind="solve")
        assert_close(found.distance.min(), collision.world_distances(model, q, world)[0], kind="solve")
        assert_close(jnp.linalg.norm(found.normal, axis=1), np.ones(len(found.normal)), kind="solve")
        if obstacle is along_x:
            assert_close(found.normal[0, 0], 0.0, kind="solve")
        slopes = jax.jacrev(lambda q, m=model, w=world: collision.contact_points(m, q, w).distance)(q)
        assert np.isfinite(slopes).all()


@pytest.mark.ci
def test_a_rod_across_a_beam_lies_on_both_edges():
    model = free_body(CapsuleGeometry(0.4, 0.02))
    beam = collision.World(collision.box(jnp.eye(4).at[2, 3].set(-0.1), jnp.array([1.0, 0.1, 0.2])))
    turn = Rotation.from_euler("x", 0.5 * np.pi).as_quat(scalar_first=True)
    points = collision.contact_points(model, jnp.array([*turn, 0.1, 0.03, 0.02]), beam)
    near = np.abs(points.distance) < 1e-9
    at = np.asarray(points.point)[near]
    assert_close(np.array([at[:, 1].min(), at[:, 1].max()]), np.array([-0.05, 0.05]), 1e-9)
    assert_close(at[:, [0, 2]] - [0.1, 0.0], np.zeros((len(at), 2)), 1e-9, scale=1.0)


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("other", ["capsule", "box", "cylinder", "convex_hull"])
def test_the_nearest_point_of_a_hull_is_among_them(other):
    """Of a hull and another shape, in both orders: the least distance is that of `world_distances`."""
    T = jnp.eye(4).at[:3, 3].set(jnp.array([0.1, 0.0, -0.1]))
    obstacles = {
        "capsule": collision.capsule(jnp.array([0.3, 0.0, 0.0]), jnp.array([-0.2, 0.1, -0.1]), 0.08),
        "box": collision.box(T, jnp.array([0.3, 0.4, 0.1])),
        "cylinder": collision.cylinder(T, length=0.3, radius=0.2),
        "convex_hull": collision.convex_hull(STONE - [0.1, 0.0, 0.1]),
    }
    cases = [(SHAPES["convex_hull"], obstacles[other])]
    if other != "convex_hull":
        cases.append((SHAPES[other], obstacles["convex_hull"]))
    for geometry, obstacle in cases:
        model, world = free_body(geometry), collision.World(obstacle)

        @jax.jit
        @jax.vmap
        def found(key, model=model, world=world):
            q = rb.random_configuration(model, key)
            q = q.at[4:].set(0.35 * q[4:] / jnp.linalg.norm(q[4:]))
            return collision.contact_points(model, q, world), collision.world_contacts(model, q, world)

        points, pair = found(jax.random.split(jax.random.key(1), 100))
        assert 0.02 < (pair.distance < 0).mean() < 0.98
        assert_close(points.distance[:, 0], pair.distance[:, 0], 1e-9)
        assert_close(points.point[:, 0], pair.point_a[:, 0], 1e-9)
        apart = np.asarray(pair.distance[:, 0]) > 1e-3
        assert_close(points.distance.min(axis=1)[apart], pair.distance[apart, 0], 1e-9)
        assert_close(np.linalg.norm(points.normal, axis=-1), np.ones(points.distance.shape), 1e-9)


@needs_x64
@pytest.mark.slow
def test_balls_touch_rough_ground_where_its_mesh_is_nearest():
    trimesh = oracle("trimesh")
    rng = np.random.default_rng(0)
    heights, spacing = 0.15 * rng.normal(size=(9, 9)), 0.25
    world = collision.World(collision.height_map(jnp.asarray(heights), spacing))
    one = jax.tree.map(lambda x: x[0], placed_obstacles(world)["height_map"])
    corners = jax.tree.map(np.asarray, collision.height_map(jnp.asarray(heights), spacing)).surface(np.eye(4))[:, :3]
    mesh = trimesh.Trimesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    x, y = jnp.asarray(rng.uniform(0.6, 1.4, (2, 200)))
    centers = jnp.stack([x, y, surface(one, x, y)[0] + jnp.asarray(rng.uniform(0.05, 0.2, 200))], axis=1)
    d, n = jax.jit(jax.vmap(lambda c: ball_on_map(one, (c[0], c[1], c[2]), jnp.asarray(0.25))))(centers)
    _, want, _ = trimesh.proximity.closest_point_naive(mesh, np.asarray(centers))
    error = np.asarray(d.min(axis=1)) - want
    assert -1e-9 < error.min() and error.max() < 1e-6
    feet = np.asarray(centers)[:, None] - np.asarray(d)[..., None] * np.stack(n, axis=-1)
    _, off, _ = trimesh.proximity.closest_point_naive(mesh, feet.reshape(-1, 3))
    assert off.max() < 1e-6  # each of them is a point of the surface


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("slope", ["half_space", *SLOPES])
@pytest.mark.parametrize("shape", ["capsule", "convex_hull"])
def test_their_derivatives_are_finite_and_those_of_differences(shape, slope):
    """Flat on a floor, where corners tie, and at a random pose."""
    up = np.array([0.0, 0.0, 1.0])
    floor = collision.half_space(jnp.zeros(3), jnp.asarray(up)) if slope == "half_space" else SLOPES[slope](up)
    model = free_body(ConvexHullGeometry(CORNERS) if shape == "convex_hull" else SHAPES[shape])
    world = collision.World(floor)

    points = jax.jit(lambda q: collision.contact_points(model, q, world))

    def distances(q):
        return points(q).distance

    @jax.jit
    def both(q):
        return jax.jacrev(distances)(q), jax.jacfwd(jax.jacrev(distances))(q)

    first, second = both(jnp.array([1.0, 0, 0, 0, 0.03, 0.02, 0.05]))
    assert np.isfinite(first).all() and np.isfinite(second).all()
    q = jnp.array([0.9, 0.1, -0.3, 0.2, 0.03, 0.02, 0.15])
    q = q.at[:4].divide(jnp.linalg.norm(q[:4]))
    first, second = both(q)
    assert np.isfinite(second).all()
    h = 1e-6
    slopes = [(distances(q.at[k].add(h)) - distances(q.at[k].add(-h))) / (2 * h) for k in (4, 5, 6)]
    assert_close(first[:, 4:], np.stack(slopes, axis=1), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["capsule", "box", "cylinder"])
def test_distances_alone_are_compiled(kind):
    """XLA drops what nobody uses of the results of a kernel; it ended the process when one of them was left."""
    model, plane = free_body(SHAPES[kind]), collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0, 1])))
    qs = jnp.array([[1.0, 0, 0, 0, 0.03, 0.02, 0.05], [0.6, 0.8, 0, 0, 0.03, 0.02, 0.3]])
    alone = jax.jit(jax.vmap(lambda q: collision.contact_points(model, q, plane).distance))(qs)
    full = jax.jit(jax.vmap(lambda q: collision.contact_points(model, q, plane)))(qs)
    assert_close(alone, full.distance)
    assert_close(full.distance, full.point[..., 2])
