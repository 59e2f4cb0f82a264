"""Distances from obstacles, and the signed distance field of a robot."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, ModelError, RobotBuilder, ShapeError, attach, build_model, fk, robots
from rbydyn_jax.collision import (
    World,
    box,
    capsule,
    convex_hull,
    cylinder,
    half_space,
    sdf,
    signed_distances,
    sphere,
    world_contacts,
    world_distances,
)
from rbydyn_jax.model.model import single_shapes
from rbydyn_jax.shapes import BoxGeometry, CylinderGeometry
from rbydyn_jax.spatial import se3
from tests.collision.test_solids import outside, shaped
from tests.helpers import X64, assert_close, oracle, slow, untyped

FLOAT = jnp.float64 if X64 else jnp.float32
float64 = pytest.mark.skipif(not X64, reason="accuracy in float64")


def pose(seed: int) -> jax.Array:
    return se3.exp(jax.random.uniform(jax.random.key(seed), (6,), FLOAT, -1.0, 1.0))


def world() -> World:
    return World(
        sphere(jnp.array([0.3, 0.1, 0.9], FLOAT), 0.1),
        box(pose(1), jnp.array([0.4, 0.2, 0.3], FLOAT)),
        half_space(jnp.array([0.0, 0.0, -0.2], FLOAT), jnp.array([0.1, 0.2, 3.0], FLOAT)),
        capsule(jnp.array([-0.5, 0.1, 0.4], FLOAT), jnp.array([-0.4, 0.5, 0.9], FLOAT), 0.07),
        box(pose(2), jnp.array([0.1, 0.1, 0.6], FLOAT)),
    )


def capsules():
    """A robot with capsules on two links, and a box on its base."""
    b = RobotBuilder("capsules").link("base").link("a", 1.0, inertia=0.1).link("b", 1.0, inertia=0.1)
    b.revolute("first", "base", "a", xyz=(0, 0, 0.5), axis=(0, 1, 0), lower=-2, upper=2)
    b.revolute("second", "a", "b", xyz=(0, 0, 0.5), rpy=(0.3, 0, 0.2), axis=(1, 0, 0), lower=-2, upper=2)
    b.capsule("base", 0.2, 0.1).capsule("a", 0.3, 0.05, xyz=(0, 0, 0.2), rpy=(0.2, 0, 0))
    return build_model(b.capsule("b", 0.2, 0.06, xyz=(0, 0, 0.3)).build_description())


def configurations(count: int = 100) -> jax.Array:
    return jax.random.uniform(jax.random.key(0), (count, 2), FLOAT, -2.0, 2.0)


@pytest.mark.slow
@float64
def test_distances_equal_those_of_coal():
    coal = oracle("coal")
    model, q, around = capsules(), configurations(), world()
    found = jax.jit(jax.vmap(world_contacts, in_axes=(None, 0, None)))(model, q, around)
    assert_close(jax.vmap(world_distances, in_axes=(None, 0, None))(model, q, around), found.distance)
    assert (found.link[0] > 0).all() and found.distance.shape == (100, 10)  # the base stands still

    def placed(shape, T):
        return shape, coal.Transform3s(np.asarray(T[:3, :3]), np.asarray(T[:3, 3]))

    normal = np.array([0.1, 0.2, 3.0]) / np.linalg.norm([0.1, 0.2, 3.0])
    middle = np.eye(4)
    middle[:3, 3] = [0.3, 0.1, 0.9]
    obstacles = {
        0: placed(coal.Sphere(0.1), middle),
        1: placed(coal.Box(0.4, 0.2, 0.3), pose(1)),
        2: placed(coal.Halfspace(normal, float(normal @ [0.0, 0.0, -0.2])), np.eye(4)),
        4: placed(coal.Box(0.1, 0.1, 0.6), pose(2)),
    }
    request = coal.DistanceRequest()
    request.enable_signed_distance, request.gjk_tolerance, request.epa_tolerance = True, 1e-14, 1e-12
    shapes, links = single_shapes(model), model.tree.shape_links
    for k in range(0, 100, 5):
        poses = np.asarray(fk(model, q[k]))
        for column in range(10):
            obstacle, link = int(found.obstacle[k, column]), int(found.link[k, column])
            if obstacle not in obstacles:
                continue
            geometry, origin = untyped(shapes[links.index(link)].described())
            own = placed(coal.Capsule(geometry.radius, geometry.length), poses[link] @ origin)
            want = coal.distance(*own, *obstacles[obstacle], request, coal.DistanceResult())
            assert abs(found.distance[k, column] - want) < 1e-9
    gap = np.linalg.norm(found.point_a - found.point_b, axis=-1)
    assert np.abs(gap - np.abs(found.distance)).max() < 1e-9


@pytest.mark.slow
def test_derivatives_by_the_configuration_and_by_the_world():
    model, q, around = capsules(), configurations(20), world()
    turn = jax.random.normal(jax.random.key(5), q.shape, FLOAT)
    h = 1e-6 if X64 else 1e-3

    def along(t, q, v):
        return world_distances(model, q + t * v, around)

    def rate(q, v):
        return jax.jvp(lambda t: along(t, q, v), (jnp.zeros((), FLOAT),), (jnp.ones((), FLOAT),))

    values = jax.jit(jax.vmap(along, in_axes=(None, 0, 0)))
    above, below = values(jnp.asarray(h, FLOAT), q, turn), values(jnp.asarray(-h, FLOAT), q, turn)
    here, found = jax.jit(jax.vmap(rate))(q, turn)
    smooth = np.abs(above - 2 * here + below) < 1e-5 * h if X64 else np.ones(here.shape, bool)
    assert smooth.mean() > 0.6
    error = np.abs(found - (above - below) / (2 * h))[smooth]
    assert error.max() < 1e-5 if X64 else np.median(error) < 1e-2
    grown = jax.grad(lambda w: world_distances(model, q[0], w).sum())(around)
    assert_close(grown.shapes["capsule"].radius, [-2.0, -2.0])  # each from two shapes
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(grown))


@pytest.mark.ci
def test_a_cloud_counts_as_its_points():
    model, q = capsules(), configurations(3)
    points = jax.random.uniform(jax.random.key(1), (50, 3), FLOAT, -0.5, 1.5)
    cloud = jax.vmap(lambda q: world_distances(model, q, World(points=points, point_radius=0.02)))(q)
    balls = World(*(sphere(p, 0.02) for p in points))
    every = jax.vmap(lambda q: world_distances(model, q, balls))(q)
    assert_close(cloud, every.reshape(3, 2, 50).min(axis=1), 1e-9 if X64 else 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [None, "b"])
def test_the_field_is_the_distance_to_the_nearest_shape(frame):
    model, q = shaped(), configurations(4)
    points = jax.random.uniform(jax.random.key(2), (5000, 3), FLOAT, -0.7, 1.3)  # more than are computed at once
    found = jax.jit(jax.vmap(lambda q: sdf(model, q, points, frame)))(q)
    tol = 1e-9 if X64 else 1e-5
    assert np.abs(np.linalg.norm(found.normal, axis=-1) - 1).max() < tol
    assert np.abs(points[None] - found.point - found.distance[..., None] * found.normal).max() < tol
    for k in range(4):
        T = np.asarray(fk(model, q[k]), float)
        link = np.eye(4) if frame is None else T[model.link_index(frame)]
        p = np.asarray(points, float) @ link[:3, :3].T + link[:3, 3]
        outer = []
        for shape, at in zip(single_shapes(model), model.tree.shape_links, strict=True):
            geometry, origin = untyped(shape.described())
            R = np.tile((T[at] @ origin)[:3, :3], (len(p), 1, 1))
            size = (
                0.5 * geometry.size if geometry.tag == "box" else np.array([geometry.radius, 0, 0.5 * geometry.length])
            )
            outer.append(outside(geometry.tag, R, (T[at] @ origin)[:3, 3], np.tile(size, (len(p), 1)), p))
        want = np.min(outer, axis=0)
        d = np.asarray(found.distance[k])
        assert np.abs(np.maximum(d, 0) - want).max() < tol
        links = np.array(model.tree.shape_links)[np.argmin(outer, axis=0)]
        assert (np.asarray(found.link[k]) == links)[d > 1e-6].all()
        # Inside, the surface is as near as it says: it is reached along the normal, and a ball of that size fits.
        inner = np.flatnonzero(d < -1e-3)
        assert len(inner) > 3


@pytest.mark.slow
def test_derivatives_of_the_field_are_normals_also_on_axes_and_at_centres():
    model, q = shaped(), jnp.array([0.3, -0.4], FLOAT)
    T = fk(model, q)
    shapes = zip(single_shapes(model), model.tree.shape_links, strict=True)
    special = [T[at] @ jnp.asarray(shape.described()[1], FLOAT) for shape, at in shapes]
    inside = jnp.concatenate([jnp.stack([t[:3, 3], t[:3, 3] + 0.01 * t[:3, 2]]) for t in special])
    points = jnp.concatenate([inside, jax.random.uniform(jax.random.key(2), (300, 3), FLOAT, -0.5, 1.3)])

    def total(model, q, points):
        return sdf(model, q, points).distance.sum()

    by_model, by_q, by_points = jax.jit(jax.grad(total, (0, 1, 2)))(model, q, points)
    assert_close(by_points[6:], sdf(model, q, points).normal[6:], 1e-9 if X64 else 1e-4)
    assert_close(np.linalg.norm(by_points, axis=1), np.ones(306), 1e-9 if X64 else 1e-4)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((by_model, by_q)))
    assert np.abs(by_model.shapes["box"].half).max() > 0.1
    if X64:
        h = 1e-6
        steps = [(total(model, q.at[k].add(h), points[6:]), total(model, q.at[k].add(-h), points[6:])) for k in (0, 1)]
        difference = [(x - y) / (2 * h) for x, y in steps]
        assert_close(jax.grad(total, 1)(model, q, points[6:]), difference, 1e-5)


@pytest.mark.ci
def test_an_attached_object_moves_with_its_link():
    b = RobotBuilder("stick").link("stick", 0.1, inertia=1e-3).capsule("stick", 0.4, 0.02, xyz=(0, 0, 0.2))
    model, q = capsules(), configurations(5)
    carrying = attach(model, "b", build_model(b.build_description()))
    floor = World(half_space(jnp.zeros(3, FLOAT), jnp.array([0.0, 0.0, 1.0], FLOAT)))
    found = jax.vmap(lambda q: world_contacts(carrying, q, floor))(q)
    stick = carrying.link_index("stick")
    column = int(np.flatnonzero(np.asarray(found.link[0]) == stick)[0])
    T = jax.vmap(lambda q: fk(carrying, q)[stick])(q)
    heights = [T[:, 2, 3], T[:, 2, 3] + 0.4 * T[:, 2, 2]]
    assert_close(found.distance[:, column], np.min(heights, axis=0) - 0.02, 1e-6)
    assert len(signed_distances(carrying, q[0])) > len(signed_distances(model, q[0]))


@pytest.mark.float32
@pytest.mark.parametrize("floor", ["plane", *slow("hull")])
def test_solids_that_are_nearly_level(floor):
    """The distance is that of the lowest corner, however small the angle, though the middle counts as nearest."""
    b = RobotBuilder("leaf").link("base").link("rod", 1.0, inertia=0.1).revolute("hinge", "base", "rod", axis=(0, 1, 0))
    along = (0.0, np.pi / 2, 0.0)
    b.capsule("rod", 0.4, 0.05, rpy=along).collision("rod", BoxGeometry(np.array([0.6, 0.2, 0.1])))
    model = build_model(b.collision("rod", CylinderGeometry(0.4, 0.1), rpy=along).build_description())
    slab = [(x, y, z) for x in (-2.0, 2.0) for y in (-2.0, 2.0) for z in (-1.2, -1.0)]
    ground = {
        "plane": half_space(jnp.array([0.0, 0.0, -1.0], FLOAT), jnp.array([0.0, 0.0, 1.0], FLOAT)),
        "hull": convex_hull(np.array(slab)),
    }[floor]
    q = jnp.asarray(np.concatenate([[0.0], np.geomspace(1e-12, 1e-1, 67)]), FLOAT)[:, None]
    found = jax.jit(jax.vmap(lambda q: world_distances(model, q, World(ground))))(q)
    s, c = np.sin(np.asarray(q[:, 0], np.float64)), np.cos(np.asarray(q[:, 0], np.float64))
    known = {"capsule": 0.95 - 0.2 * s, "box": 1.0 - 0.3 * s - 0.05 * c, "cylinder": 1.0 - 0.2 * s - 0.1 * c}
    want = np.stack([known[kind] for kind in model.tree.shape_kinds], axis=1)
    assert_close(np.sort(found, axis=1), np.sort(want, axis=1))


def test_wrong_arguments():
    model, q, ball = capsules(), jnp.zeros(2), sphere(jnp.zeros(3), 0.1)
    with pytest.raises(ArgumentError, match="at least one obstacle"):
        World()
    with pytest.raises(DtypeError, match="obstacle 1 must be what box, sphere and the like return, got float"):
        World(ball, untyped(1.0))
    with pytest.raises(ArgumentError, match="radius must be finite and not negative, got -1"):
        sphere(jnp.zeros(3), -1.0)
    with pytest.raises(ArgumentError, match="size must be finite and not negative"):
        box(jnp.eye(4), jnp.array([1.0, -1.0, 1.0]))
    with pytest.raises(ShapeError, match=r"pose must have shape \(4, 4\)"):
        cylinder(jnp.eye(3), length=1.0, radius=1.0)
    with pytest.raises(ArgumentError, match="normal must not be zero"):
        half_space(jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(DtypeError, match=r"world must be a collision.World, got Capsule"):
        world_distances(model, q, untyped(ball))
    with pytest.raises(ModelError, match="no collision shapes that move"):
        world_distances(robots.pendulum(), jnp.zeros(1), World(ball))
    with pytest.raises(ModelError, match="no collision shapes"):
        sdf(robots.pendulum(), jnp.zeros(1), jnp.zeros((1, 3)))
    with pytest.raises(ShapeError, match=r"points must have shape"):
        sdf(model, q, jnp.zeros(3))
    with pytest.raises(ModelError, match="no obstacles but a cloud"):
        world_contacts(model, q, World(points=jnp.zeros((2, 3))))


@pytest.mark.ci
def test_no_tracer_is_kept():
    model, world = robots.two_link_arm(), World(sphere(jnp.ones(3), 0.1))
    q = jnp.ones(2)
    jax.clear_caches()
    with jax.checking_leaks():
        world_distances(model, q, world)
        jax.jit(jax.grad(lambda q: world_distances(model, q, world).sum()))(q)
        jax.grad(lambda q: signed_distances(robots.rby1a(), q).sum())(jnp.zeros(24))
