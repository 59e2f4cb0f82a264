"""Convex hulls: distances against coal, trimesh and the definition, derivatives against differences."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.collision import PAIR_FUNCTIONS
from rbydyn_jax.collision.bounding import bounding_hull
from rbydyn_jax.io import BoxGeometry, ConvexHullGeometry, CylinderGeometry
from tests.collision.polytopes import coal_distances, coal_pairs, geometries, placed, poses
from tests.collision.test_solids import outside, reach
from tests.helpers import X64, assert_close, compiled_text, oracle, untyped

COUNT = 200
FLOAT = jnp.float64 if X64 else jnp.float32
float64 = pytest.mark.skipif(not X64, reason="accuracy in float64")


@functools.cache
def witness(kind: str):
    return jax.jit(jax.vmap(PAIR_FUNCTIONS["convex_hull", kind]))


def sample(kind: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (geometries("convex_hull", COUNT, rng), poses(COUNT, rng)), (geometries(kind, COUNT, rng), poses(COUNT, rng))


def stacked(x) -> np.ndarray:
    return np.stack(x, axis=-1)


@pytest.mark.slow
@float64
@pytest.mark.parametrize("kind", ["capsule", "box", "convex_hull"])
def test_distances_equal_those_of_coal(kind):
    coal = oracle("coal")
    a, b = sample(kind)
    found = witness(kind)(placed(*a), placed(*b))
    d = np.asarray(found.distance)
    assert 0.05 < (d < 0).mean() < 0.6
    assert np.abs(d - coal_distances(coal, coal_pairs(coal, *a, *b))).max() < 1e-9
    assert np.abs(np.linalg.norm(stacked(found.point_a) - stacked(found.point_b), axis=1) - np.abs(d)).max() < 1e-9
    planes = [ConvexHull(g.vertices).equations for g in a[0]]
    for x, T, plane in zip(stacked(found.point_a), a[1], planes, strict=True):
        assert (plane[:, :3] @ (T[:3, :3].T @ (x - T[:3, 3])) + plane[:, 3]).max() < 1e-9


def many_vertices(count: int, pairs: int):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, pairs, count, 3))
    points *= 0.2 / np.linalg.norm(points, axis=-1, keepdims=True)
    T = np.tile(np.eye(4), (2, pairs, 1, 1))
    T[0, :, 0, 3] = np.linspace(0.1, 0.6, pairs)
    return [([ConvexHullGeometry(x) for x in side], at) for side, at in zip(points, T, strict=True)]


@pytest.mark.slow
@float64
def test_many_vertices_do_not_make_the_program_larger():
    coal, (a, b) = oracle("coal"), many_vertices(70, 20)  # no multiple of those that are looked at together
    found = witness("convex_hull")(placed(*a), placed(*b)).distance
    assert 0.3 < (found < 0).mean() < 0.9
    assert_close(found, coal_distances(coal, coal_pairs(coal, *a, *b)), 1e-9)
    few, many = ([placed(*side) for side in many_vertices(count, 1)] for count in (70, 700))
    sizes = [len(witness("convex_hull").lower(*hulls).as_text()) for hulls in (few, many)]
    assert sizes[1] < 1.02 * sizes[0]


@pytest.mark.slow
@pytest.mark.parametrize("of", ["points", "pairs"])
def test_loops_over_many_elements_are_kernels(of):
    """As one function, as XLA from 0.11.1 on compiles small loops, they are not vectorized."""
    b = rb.RobotBuilder("free").link("w").link("body", 1.0, (0, 0, 0), (0.004, 0.004, 0.004)).floating("f", "w", "body")
    model = rb.build_model(b.collision("body", geometries("convex_hull", 1, np.random.default_rng(3))[0]))
    world = collision.World(collision.convex_hull(np.random.default_rng(4).normal(size=(12, 3))))
    q = jnp.broadcast_to(rb.neutral(model).astype(FLOAT), (256, 7))
    if of == "points":
        program = jax.jit(lambda q, x: collision.sdf(model, q, x).distance).lower(q[0], q[:, 4:])
    else:
        program = jax.jit(jax.vmap(lambda q: collision.world_distances(model, q, world))).lower(q)
    text = compiled_text(program)
    assert " while(" in text
    assert not [line for line in text.splitlines() if "xla_cpu_small_call" in line and '/while"' in line]


@pytest.mark.slow
@float64
def test_cylinders_attain_the_distance_and_no_direction_separates_more():
    a, b = sample("cylinder")
    found = witness("cylinder")(placed(*a), placed(*b))
    d, p, q = np.asarray(found.distance), stacked(found.point_a), stacked(found.point_b)
    assert 0.05 < (d < 0).mean() < 0.6
    sizes = np.array([[g.radius, 0.0, 0.5 * g.length] for g in untyped(b[0])])
    off = np.abs(np.linalg.norm(p - q, axis=1) - np.abs(d)) + outside(
        "cylinder", b[1][:, :3, :3], b[1][:, :3, 3], sizes, q
    )
    planes = [ConvexHull(g.vertices).equations for g in a[0]]
    for k, (x, T, plane) in enumerate(zip(p, a[1], planes, strict=True)):
        off[k] += max((plane[:, :3] @ (T[:3, :3].T @ (x - T[:3, 3])) + plane[:, 3]).max(), 0.0)
    assert (off < 1e-9).mean() > 0.9  # the others lie along each other
    rng = np.random.default_rng(1)
    n = rng.normal(size=(COUNT, 2000, 3))
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    vertices = [g.vertices @ T[:3, :3].T + T[:3, 3] for g, T in zip(untyped(a[0]), a[1], strict=True)]

    def separation(n: np.ndarray) -> np.ndarray:
        lowest = np.stack([(x @ m.T).min(axis=0) for x, m in zip(vertices, n, strict=True)])
        return lowest - np.einsum("ci,cmi->cm", b[1][:, :3, 3], n) - reach("cylinder", b[1][:, :3, :3], sizes, n)

    best, step = np.take_along_axis(n, separation(n).argmax(axis=1)[:, None, None], axis=1), 0.1
    for _ in range(80):
        trial = np.concatenate([best, best + step * rng.normal(size=(COUNT, 32, 3))], axis=1)
        trial /= np.linalg.norm(trial, axis=-1, keepdims=True)
        best = np.take_along_axis(trial, separation(trial).argmax(axis=1)[:, None, None], axis=1)
        step *= 0.85
    assert (separation(best)[:, 0] - d).max() < 1e-9


@pytest.mark.slow
@float64
@pytest.mark.parametrize("kind", ["box", "convex_hull", "cylinder"])
def test_first_and_second_derivatives_match_differences(kind):
    a, b = sample(kind, seed=3)
    y, rng, h = placed(*b), np.random.default_rng(4), 1e-6
    turn, shift, growth = rng.normal(size=(3, COUNT, 3))

    def moved(x, turn, shift, growth, t):
        """The hull along a motion that also deforms it."""

        def turned(v):
            return jax.tree.map(lambda p, q: p + t * q, v, tuple(jnp.cross(turn, jnp.stack(v))))

        vertices = x.vertices * (1 + t * growth[None])
        position = tuple(p + t * s for p, s in zip(x.position, shift, strict=True))
        return x._replace(position=position, axes=tuple(map(turned, x.axes)), vertices=vertices)

    def value(t, x, y, turn, shift, growth):
        return PAIR_FUNCTIONS["convex_hull", kind](moved(x, turn, shift, growth, t), y).distance

    first = jax.value_and_grad(value)

    @jax.jit
    def derivatives(t):
        return jax.vmap(first, in_axes=(None, *(0,) * 5))(t, placed(*a), y, turn, shift, growth)

    (above, slope_above), (here, slope), (below, slope_below) = (derivatives(jnp.asarray(t)) for t in (h, 0.0, -h))
    smooth = np.abs(above - 2 * here + below) < 1e-5 * h  # the nearest features are the same within the step
    assert smooth.mean() > 0.8
    assert np.isfinite(slope).all()
    assert np.abs(slope - (above - below) / (2 * h))[smooth].max() < 1e-6
    if kind == "cylinder":  # compiles long
        return

    @jax.jit
    @functools.partial(jax.vmap, in_axes=0)
    def curvature(*rest):
        zero = jnp.zeros(())
        return jax.jvp(lambda t: first(t, *rest), (zero,), (jnp.ones_like(zero),))[1]

    forward, second = curvature(placed(*a), y, turn, shift, growth)
    assert_close(forward, slope, 1e-9)
    assert np.isfinite(second).all()
    curved = smooth & (np.abs(second) < 1e3)  # elsewhere a difference has a curvature of its own
    error = np.abs(second - (slope_above - slope_below) / (2 * h))[curved]
    assert error.max() < 1e-3 * np.abs(second[curved]).max()


CUBE = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.3, 0.3) for z in (-0.3, 0.3)])
PLACES = [(0, 0, 0), (0, 0, 0.4), (0, 0, 2.0), (0.6, 0, 0), (0.6, 0.6, 0), (0.6, 0.6, 0.6), (1.0, 0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "convex_hull", "cylinder"])
def test_derivatives_are_finite_where_faces_edges_and_corners_meet(kind):
    T = np.tile(np.eye(4), (len(PLACES), 1, 1))
    T[:, :3, 3] = PLACES
    cube = ConvexHullGeometry(CUBE)
    other = {"box": BoxGeometry(np.full(3, 0.6)), "convex_hull": cube, "cylinder": CylinderGeometry(0.6, 0.3)}[kind]
    a, b = placed([cube] * len(T), T), placed([other] * len(T), np.tile(np.eye(4), (len(T), 1, 1)))
    a, b = jax.tree.map(lambda x: x.astype(FLOAT), (a, b))

    def total(a, b):
        return jax.vmap(PAIR_FUNCTIONS["convex_hull", kind])(a, b).distance.sum()

    d = witness(kind)(a, b)
    assert_close(d.distance[:4], [-0.6, -0.2, 1.4, 0.0], 1e-6)
    slope = jax.jit(jax.grad(total, (0, 1)))(a, b)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((d, slope)))
    assert max(np.abs(x).max() for x in jax.tree.leaves(slope)) < 20.0


@functools.cache
def parallel(kind: str, wedges: float = 0.0, count: int = 60):
    """Hulls with faces along the axes, at places on a grid, that touch or overlap a box or a hull of that sort."""
    rng, hulls, others, T = np.random.default_rng(11), [], [], np.tile(np.eye(4), (2, count, 1, 1))
    wedge = np.delete(CUBE, 7, axis=0)  # a cube with a triangle in place of a corner
    while len(hulls) < count:
        sizes, place = rng.integers(1, 4, (2, 3)), 0.15 * rng.integers(-6, 7, 3)
        depths = 0.3 * sizes.sum(axis=0) - np.abs(place)
        first, second, _ = np.sort(depths)
        if first > -1e-9 and second > first + 0.01 and place[depths.argmin()] != 0.0:  # nearest along one axis
            T[0, len(hulls), :3, 3] = place
            x, y = ((wedge if rng.random() < wedges else CUBE) * size for size in sizes)
            hulls.append(ConvexHullGeometry(x))
            others.append(ConvexHullGeometry(y) if kind == "convex_hull" else BoxGeometry(0.6 * sizes[1]))
    return (hulls, T[0]), (others, T[1])


def planes_of(geometry) -> np.ndarray:
    points = geometry.vertices if isinstance(geometry, ConvexHullGeometry) else CUBE * geometry.size / 0.6
    return ConvexHull(points).equations


@pytest.mark.parametrize(
    "kind", [pytest.param("box", marks=pytest.mark.ci), pytest.param("convex_hull", marks=pytest.mark.slow)]
)
def test_points_of_parallel_faces_are_on_both_bodies(kind):
    """Of faces that touch or overlap: where several vertices are equally deep, the points are in both faces."""
    sides, tol = parallel(kind, wedges=0.3), 1e-9 if X64 else 1e-5
    a, b = (jax.tree.map(lambda x: x.astype(FLOAT), placed(*side)) for side in sides)
    found = witness(kind)(a, b)
    slope = jax.jit(jax.grad(lambda a: jax.vmap(PAIR_FUNCTIONS["convex_hull", kind])(a, b).distance.sum()))(a)
    d, points = np.asarray(found.distance), [stacked(x) for x in (found.point_a, found.point_b)]
    assert 5 < (np.abs(d) < 1e-6).sum() < 30 and d.max() < 1e-6
    for (shapes, T), p in zip(sides, points, strict=True):
        for g, t, x in zip(shapes, T, p, strict=True):
            planes = planes_of(g)
            assert abs((planes[:, :3] @ (x - t[:3, 3]) + planes[:, 3]).max()) < tol
    assert np.abs(points[0] - points[1] - d[:, None] * stacked(slope.position)).max() < tol


@pytest.mark.slow
@float64
@pytest.mark.parametrize("kind", ["box", "convex_hull"])
def test_derivatives_of_parallel_faces_are_between_those_of_both_sides(kind):
    """By a rotation of the hull; the second derivatives are finite."""
    a, b = (placed(*side) for side in parallel(kind))

    def turned(t, a, b, axis):
        one = jnp.ones_like(axis[0])

        def along(v):
            first = tuple(jnp.cross(axis, jnp.stack(v)))
            second = tuple(jnp.cross(axis, jnp.stack(first)))
            return tuple(
                x + jnp.sin(t) * one * p + (1 - jnp.cos(t)) * q for x, p, q in zip(v, first, second, strict=True)
            )

        return PAIR_FUNCTIONS["convex_hull", kind](a._replace(axes=tuple(map(along, a.axes))), b).distance

    h, slopes = 1e-6, jax.grad(turned)
    first = jax.jit(jax.vmap(lambda *x: (turned(h, *x), turned(0.0, *x), turned(-h, *x), slopes(0.0, *x))))
    second = jax.jit(jax.vmap(lambda *x: jax.hessian(turned)(0.0, *x)))
    normals = np.random.default_rng(12).normal(size=(len(a.vertices), 3))
    for axes in (*(np.tile(e, (len(normals), 1)) for e in np.eye(3)), normals):
        axes = jnp.asarray(axes / np.linalg.norm(axes, axis=1, keepdims=True))
        above, here, below, slope = first(a, b, axes)
        sides = np.stack([(above - here) / h, (here - below) / h])
        assert (slope > sides.min(axis=0) - 1e-5).all() and (slope < sides.max(axis=0) + 1e-5).all()
        assert np.isfinite(second(a, b, axes)).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "convex_hull", "cylinder"])
def test_one_hull_and_many_shapes_are_as_many_hulls(kind):
    a, b = sample(kind, seed=8)
    a, b = (jax.tree.map(lambda x: x.astype(FLOAT), placed(*side)) for side in (a, b))
    one = jax.tree.map(lambda x: x[0], a)
    same = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), a)
    function = PAIR_FUNCTIONS["convex_hull", kind]

    def both(a, b):
        if kind == "cylinder":  # compiles long; its points are derivatives
            return (function(a, b),)
        return function(a, b), jax.grad(lambda b: function(a, b).distance)(b)

    want = jax.jit(jax.vmap(both))(same, b)
    found = jax.jit(jax.vmap(both, in_axes=(None, 0)))(one, b)
    assert (np.asarray(want[0].distance) < 0).any()
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert_close(x, y, 1e-9 if X64 else 1e-4, scale=1.0)


def with_hulls():
    """An arm with hulls of different sizes on two links, and the points that they are of."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(14, 3)) * 0.1, rng.normal(size=(6, 3)) * [0.2, 0.1, 0.1]
    hulls = [collision.convex_hull(x) for x in points]
    return collision.with_shapes(robots.two_link_arm(), {"upper": hulls[:1], "tool": hulls[1:]}), points


@pytest.mark.slow
@float64
def test_the_field_of_hulls_is_that_of_their_meshes():
    trimesh = oracle("trimesh")
    model, points = with_hulls()
    q, x = jnp.array([0.4, -0.6]), np.random.default_rng(6).uniform(-1.2, 1.2, (400, 3)) * [1, 1, 0.3]
    x[:50] = np.random.default_rng(7).normal(size=(50, 3)) * 0.03  # inside of the first
    links, points = ("upper", "tool", "lower"), (*points, points[1] * [0.5, 1.0, 2.0])
    shapes = {link: [collision.convex_hull(x)] for link, x in zip(links, points, strict=True)}
    alone = collision.with_shapes(model, shapes, keep=False)
    found = jax.jit(lambda x: collision.sdf(alone, q, x))(jnp.asarray(x))
    want = []
    for cloud, link in zip(points, links, strict=True):
        T, hull = np.asarray(rb.link_pose(alone, q, link)), ConvexHull(cloud)
        local = (x - T[:3, 3]) @ T[:3, :3]
        mesh = trimesh.Trimesh(cloud, hull.simplices, process=False)
        inner = (local @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)
        want.append(np.where(inner < 0, inner, trimesh.proximity.closest_point_naive(mesh, local)[1]))
    assert (np.min(want, axis=0) < 0).sum() > 20
    assert np.abs(found.distance - np.min(want, axis=0)).max() < 1e-9
    assert_close(np.linalg.norm(found.normal, axis=1), np.ones(len(x)), 1e-9)
    slope = jax.jit(jax.grad(lambda x: collision.sdf(alone, q, x).distance.sum()))(jnp.asarray(x))
    assert_close(slope, found.normal, 1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("dtype", [jnp.float32, pytest.param(jnp.float64, marks=float64)])
def test_normals_at_edges_that_are_at_the_origin(dtype):
    """At a point on an edge of a long bar no corner of it may lie further along the normal than the point."""
    corners = np.array(list(itertools.product((-0.5, 0.5), (-0.01, 0.01), (-0.01, 0.01))))
    b = rb.RobotBuilder().link("w").link("bar", 1.0, (0, 0, 0), 0.005).floating("free", "w", "bar")
    bar = jax.tree.map(lambda x: jnp.asarray(x, dtype), rb.build_model(b.collision("bar", ConvexHullGeometry(corners))))
    rng = np.random.default_rng(12)
    turns = Rotation.random(300, rng=rng)
    edge = np.stack([rng.uniform(-0.5, 0.5, 300), np.full(300, 0.01), np.full(300, 0.01)], axis=1)
    q = np.concatenate([turns.as_quat(scalar_first=True), -turns.apply(edge)], axis=1)
    found = jax.jit(jax.vmap(lambda q: collision.sdf(bar, q, jnp.zeros((1, 3), dtype))))(jnp.asarray(q, dtype))
    slack = 1e-9 if dtype == jnp.float64 else 1e-5
    assert np.abs(found.distance).max() < slack
    normal = turns.apply(np.array(found.normal[:, 0], float), inverse=True)
    assert_close(np.linalg.norm(normal, axis=1), np.ones(300), slack)
    assert (np.max(normal @ corners.T, axis=1) - np.sum(normal * edge, axis=1)).max() < slack


def test_a_robot_keeps_its_hulls_in_files_and_pictures():
    from rbydyn_jax.viz.robot import robot_surface

    model, points = with_hulls()
    again = rb.load_urdf_string(rb.to_urdf(model))
    assert again.report == () and again.tree == model.tree
    for mine, other in zip(jax.tree.leaves(model.shapes), jax.tree.leaves(again.shapes), strict=True):
        assert_close(other, mine)
    assert "2 convex hulls" in str(model)
    corners = robot_surface(collision.with_shapes(model, {"tool": []}, keep=False), np.zeros(2), ["upper"])
    hull = ConvexHull(points[0])
    lowest, highest = (f(hull.points[hull.vertices], axis=0) for f in (np.min, np.max))
    assert (corners.reshape(-1, 3).min(axis=0) <= lowest + 1e-6).all()
    assert (corners.reshape(-1, 3).max(axis=0) >= highest - 1e-6).all()
    for text, problem in (("0 0 0 1 0 0 0 1 0", "at least 4 rows"), ("0 0 0 1 0 0 0 1 0 1 1 0", "lie in a plane")):
        shape = f'<collision><geometry><convex_hull vertices="{text}"/></geometry></collision>'
        urdf = f'<robot name="r"><link name="a">{shape}</link></robot>'
        with pytest.raises(rb.ParseError, match=problem):
            rb.load_urdf_string(urdf)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30, 1e200, 1e300])
def test_hulls_of_any_size(size):
    for points, far in ((CUBE, 0.0), (CUBE * [1, 1e-3, 1e-6], 0.0), (CUBE, 1e6)):
        hull = ConvexHullGeometry(size * (points + far)).on_link(np.eye(4))
        vertices, faces = hull.vertices / size - far, hull.faces.astype(int)
        assert_close(np.unique(np.round(vertices, 9), axis=0), np.unique(np.round(points, 9), axis=0))
        volume = np.linalg.det(vertices[faces]).sum() / 6.0
        assert_close(volume, ConvexHull(points).volume, 1e-6)
        assert len(hull.edges) == 18
    assert "in a plane" in ConvexHullGeometry(size * (CUBE * [1, 1, 0] + 1e6 + 0.1)).problem()


def test_a_hull_too_large_for_the_numbers_of_a_robot():
    shape = '<collision><geometry><convex_hull vertices="0 0 0 1e200 0 0 0 1e200 0 0 0 1e200"/></geometry></collision>'
    with pytest.raises(rb.ParseError, match=r"link 'a': collision shape .*1e\+200"):
        rb.load_urdf_string(f'<robot name="r"><link name="a">{shape}</link></robot>')


def test_few_planes_bound_many_points():
    x = np.random.default_rng(0).normal(size=(500, 3))
    x *= np.array([0.3, 0.2, 0.1]) / np.linalg.norm(x, axis=1, keepdims=True)
    few = bounding_hull(x, 32)
    assert len(few) <= 32
    equations = ConvexHull(few).equations
    assert (x @ equations[:, :3].T + equations[:, 3]).max() < 1e-9
    assert ConvexHull(few).volume < 1.5 * ConvexHull(x).volume
    assert_close(bounding_hull(CUBE, 32), CUBE)


def test_wrong_hulls():
    with pytest.raises(rb.ArgumentError, match="points: convex hull has vertices that lie in a plane"):
        collision.convex_hull(CUBE * [1, 1, 0])
    with pytest.raises(rb.DtypeError, match="known while tracing"):
        jax.jit(collision.convex_hull)(CUBE)
    with pytest.raises(rb.ArgumentError, match="rigid transform"):
        collision.convex_hull(CUBE, 2.0 * jnp.eye(4))
    turned = np.eye(4)
    turned[:3, :3], turned[:3, 3] = Rotation.from_rotvec([0.1, 0.2, 0.3]).as_matrix(), [1.0, 2.0, 3.0]
    found = jax.jit(lambda T: collision.convex_hull(CUBE, T).vertices)(jnp.asarray(turned))
    assert_close(found, CUBE @ turned[:3, :3].T + turned[:3, 3], 1e-6)
