"""Distances of capsules, boxes and cylinders: against coal, and against the definition where coal is not exact."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax import RobotBuilder, build_model, from_mujoco, load_urdf_string, to_urdf
from rbydyn_jax.collision import PAIR_FUNCTIONS, capsule_distances, pairs, sdf, signed_distances
from rbydyn_jax.io import BoxGeometry, CapsuleGeometry, CylinderGeometry
from tests.helpers import X64, assert_close, oracle

KINDS = {"capsule": CapsuleGeometry, "box": BoxGeometry, "cylinder": CylinderGeometry}
COUNT = 400  # of all samples of the slow tests, so that they share programs
PAIRS = ["capsule-box", "box-box", "capsule-cylinder", "box-cylinder", "cylinder-cylinder"]
float64 = pytest.mark.skipif(not X64, reason="accuracy in float64")


def geometry(kind: str, size: np.ndarray):
    """A shape of the half lengths `size` (3,), of which the first is its radius."""
    return BoxGeometry(2 * size) if kind == "box" else KINDS[kind](2 * size[2], size[0])


def poses(rng: np.random.Generator, count: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Random rotations, half of them by right angles so that edges and faces are parallel, and positions."""
    turned = Rotation.random(count, rng=rng).as_matrix()
    right = np.round(Rotation.from_euler("xyz", 90 * rng.integers(0, 4, (count, 3)), degrees=True).as_matrix())
    return np.where(rng.random((count, 1, 1)) < 0.5, turned, right), rng.uniform(-spread, spread, (count, 3))


def placed(kind: str, R: np.ndarray, p: np.ndarray, size: np.ndarray):
    """The shapes in world coordinates as pair functions are given them."""
    T = np.tile(np.eye(4), (len(p), 1, 1))
    T[:, :3, :3], T[:, :3, 3] = R, p
    rows = jax.tree.map(lambda *x: np.stack(x), *(geometry(kind, s).on_link(t) for s, t in zip(size, T, strict=True)))
    moved = [x.reshape(len(p), -1) for x in jax.tree.leaves(rows)]
    count = {"capsule": 1, "box": 2, "cylinder": 2}[kind]  # the leaves that move with the link
    columns = [jnp.asarray(column) for column in np.concatenate(moved[:count], axis=1).T]
    return jax.tree.map(jnp.asarray, rows).gathered(np.arange(len(p)), columns)


def reach(kind: str, R: np.ndarray, size: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The support functions of shapes about their centres, for directions (count, many, 3)."""
    x, y, z = np.moveaxis(np.abs(np.einsum("cij,cmi->cmj", R, n)), -1, 0)
    a, b, c = size.T[:, :, None]
    return {"capsule": c * z + a, "box": a * x + b * y + c * z, "cylinder": c * z + a * np.hypot(x, y)}[kind]


def outside(kind: str, R: np.ndarray, p: np.ndarray, size: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far points (count, 3) are outside of the shapes."""
    x = np.einsum("cij,ci->cj", R, points - p)
    if kind == "box":
        return np.linalg.norm(np.maximum(np.abs(x) - size, 0), axis=1)
    height, side = np.maximum(np.abs(x[:, 2]) - size[:, 2], 0), np.hypot(x[:, 0], x[:, 1])
    if kind == "capsule":
        return np.maximum(np.hypot(side, height) - size[:, 0], 0)
    return np.hypot(np.maximum(side - size[:, 0], 0), height)


def sample(name: str, count: int, spread: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0.05, 0.6, (2, count, 3))
    sizes[0, ::7, 2] *= 0.0 if name.startswith("capsule") else 1.0  # spheres
    return [(kind, *poses(rng, count, spread), size) for kind, size in zip(name.split("-"), sizes, strict=True)]


def evaluated(a, b):
    return witness(a[0], b[0])(placed(*a), placed(*b))


@functools.cache
def witness(first: str, second: str):
    return jax.jit(PAIR_FUNCTIONS[first, second])


@functools.cache
def gradient(first: str, second: str):
    """Of the distances, with respect to both shapes."""
    return jax.jit(jax.grad(lambda a, b: PAIR_FUNCTIONS[first, second](a, b).distance.sum(), (0, 1)))


@pytest.mark.slow
@float64
@pytest.mark.parametrize("name", PAIRS)
def test_no_direction_separates_more_and_the_points_attain_the_distance(name):
    a, b = sample(name, COUNT, 0.7)
    found = evaluated(a, b)
    d, p, q = (np.stack(x, axis=-1) if isinstance(x, tuple) else np.asarray(x) for x in found[:3])
    assert 0.2 < (d < 0).mean() < 0.8
    # The points are on both shapes, and as far apart as the distance says: where the shapes are apart it is not larger.
    off = np.abs(np.linalg.norm(p - q, axis=1) - np.abs(d)) + outside(*a, p) + outside(*b, q)
    assert off.max() < 1e-9
    # Along the line through the points the shapes are so far apart, or in each other: it is not smaller.
    n = (p - q) / d[:, None]
    known = off < 1e-11 * np.abs(d)  # the direction of the line
    assert known.mean() > 0.9
    # The direction to a rim is found by halving angles, to about 1e-8.
    assert np.abs(separation(a, b, n[:, None])[:, 0] - d)[known].max() < (1e-6 if "cylinder" in name else 1e-9)
    # And no direction of many, improved by a random search, is better.
    assert (largest_separation(a, b, 400) - d).max() < 1e-9


# Axis, position, half length and radius of two flat cylinders, one deep in the other.
DEEP = [
    [([-0.37, -0.36, 0.85], [0, 0, 0], 0.135, 0.295), ([-0.9, 0.43, 0.02], [-0.118, 0.137, 0.283], 0.214, 0.369)],
    [
        ([0.16, 0.49, -0.86], [0, 0, 0], 0.152, 0.385),
        ([0.58, 0.78, -0.25], [0.235, -0.214, -0.161], 0.032, 0.422),
    ],
    [
        ([0.77, -0.14, 0.62], [0, 0, 0], 0.021, 0.233),
        ([-0.37, -0.61, -0.7], [0.244, 0.097, -0.194], 0.094, 0.375),
    ],
    [([0.78, 0.53, 0.33], [0, 0, 0], 0.113, 0.526), ([0.33, -0.55, -0.76], [-0.075, 0.54, -0.236], 0.158, 0.566)],
    [([0.38, 0.9, 0.21], [0, 0, 0], 0.199, 0.224), ([-0.39, 0.63, 0.67], [-0.269, -0.126, -0.303], 0.146, 0.37)],
    [([-0.37, -0.4, 0.84], [0, 0, 0], 0.043, 0.339), ([0.04, 0.67, 0.74], [-0.348, 0.13, -0.198], 0.11, 0.444)],
    [([0.39, 0.8, 0.46], [0, 0, 0], 0.174, 0.366), ([-0.9, -0.19, 0.39], [-0.051, -0.396, 0.239], 0.195, 0.321)],
    [([0.18, 0.84, 0.51], [0, 0, 0], 0.181, 0.271), ([0.2, 0.65, 0.73], [-0.202, -0.083, 0.006], 0.204, 0.327)],
]


@pytest.mark.slow
@float64
def test_no_direction_separates_cylinders_more_that_are_deep_in_each_other():
    # Where the rims are nearest, of several places, is found only from some starts, or slowly.
    sides = []
    for side in zip(*DEEP, strict=True):
        axes, centers, lengths, radii = (np.array(column) for column in zip(*side, strict=True))
        z = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        x = np.cross(z, [0.0, 0.0, 1.0]) / np.linalg.norm(z[:, :2], axis=1, keepdims=True)
        R = np.stack([x, np.cross(z, x), z], axis=-1)
        sides.append(("cylinder", R, centers, np.stack([radii, radii, lengths], axis=1)))
    a, b = sides
    d = np.asarray(evaluated(a, b).distance)
    assert (d < 0).all()
    assert (largest_separation(a, b, 1000) - d).max() < 1e-9


def separation(a, b, n: np.ndarray) -> np.ndarray:
    """Of pairs, along directions (count, many, 3)."""
    apart = np.einsum("ci,cmi->cm", a[2] - b[2], n)
    return apart - reach(a[0], a[1], a[3], n) - reach(b[0], b[1], b[3], n)


def largest_separation(a, b, many: int) -> np.ndarray:
    """Of pairs, along the best of random directions, improved by a random search."""
    count, rng = len(a[2]), np.random.default_rng(1)
    m = rng.normal(size=(count, many, 3))
    m /= np.linalg.norm(m, axis=-1, keepdims=True)
    step = np.full((count, 8, 1, 1), 0.2)
    best = np.take_along_axis(m, np.argsort(-separation(a, b, m), axis=1)[:, :8, None], axis=1)
    for _ in range(60):
        trial = np.concatenate([best[:, :, None], best[:, :, None] + step * rng.normal(size=(count, 8, 8, 3))], axis=2)
        trial /= np.linalg.norm(trial, axis=-1, keepdims=True)
        k = separation(a, b, trial.reshape(count, -1, 3)).reshape(count, 8, 9).argmax(axis=2)
        best = np.take_along_axis(trial, k[:, :, None, None], axis=2)[:, :, 0]
        step = np.where((k > 0)[:, :, None, None], 1.3 * step, 0.7 * step)
    return separation(a, b, best).max(axis=1)


def coal_distances(a, b) -> np.ndarray:
    coal = oracle("coal")
    request = coal.DistanceRequest()
    request.enable_signed_distance, request.gjk_tolerance, request.epa_tolerance = True, 1e-14, 1e-12

    def shape(kind: str, size: np.ndarray):
        return coal.Box(*(2 * size)) if kind == "box" else getattr(coal, kind.capitalize())(size[0], 2 * size[2])

    def shapes(kind: str, R: np.ndarray, p: np.ndarray, size: np.ndarray) -> list:
        return [(shape(kind, s), coal.Transform3s(r, x)) for r, x, s in zip(R, p, size, strict=True)]

    sides = shapes(*a), shapes(*b)
    return np.array([coal.distance(*x, *y, request, coal.DistanceResult()) for x, y in zip(*sides, strict=True)])


@pytest.mark.ci
@float64
@pytest.mark.parametrize("name", ["capsule-box", "box-box"])
def test_distances_equal_those_of_coal(name):
    a, b = sample(name, 2000, 0.8, seed=2)
    d = np.asarray(evaluated(a, b).distance)
    assert np.abs(d - coal_distances(a, b)).max() < 1e-9


@pytest.fixture
def optimized():
    """Programs as users compile them, not as other tests do.

    Without optimizations XLA of jax 0.12 rounds otherwise in the loop of the tangents than in that of the values. Where
    two directions separate two cylinders alike, to rounding, the forward derivative was that of the wrong one in 2 of
    400 pairs.
    """
    config: Any = jax.config
    before = config.values["jax_disable_most_optimizations"]
    config.update("jax_disable_most_optimizations", False)
    yield
    config.update("jax_disable_most_optimizations", before)


@pytest.mark.slow
@float64
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_match_differences(name, optimized):
    a, b = sample(name, COUNT, 0.7, seed=3)
    function, y, rng, h = PAIR_FUNCTIONS[a[0], b[0]], placed(*b), np.random.default_rng(4), 1e-6
    turn, shift, growth = rng.normal(size=(3, COUNT, 3))

    def moved(h: float):
        return placed(
            a[0], Rotation.from_rotvec(h * turn).as_matrix() @ a[1], a[2] + h * shift, a[3] * (1 + h * growth)
        )

    def value(x):
        return function(x, y).distance

    up, x, down = map(moved, (h, 0.0, -h))
    step = jax.tree.map(lambda p, q: (p - q) / (2 * h), up, down)
    forward = jax.jit(lambda x, step: jax.jvp(value, (x,), (step,)))
    here, slope = forward(x, step)
    slopes, _ = gradient(a[0], b[0])(x, y)
    reverse = sum(g * t for g, t in zip(jax.tree.leaves(slopes), jax.tree.leaves(step), strict=True))
    above, below = forward(up, step)[0], forward(down, step)[0]
    smooth = np.abs(above - 2 * here + below) < 1e-5 * h  # the nearest features are the same within the step
    assert smooth.mean() > 0.6
    for found in (slope, reverse):
        assert np.abs(found - (above - below) / (2 * h))[smooth].max() < 1e-5  # or their change is seen above


DEGENERATE = [
    ((0, 0, 0), (0, 0, 0)),  # the same centre and axes
    ((0, 0, 0), (0, 0, 0.4)),
    ((0, 0, 0.2), (0, 0, 0)),  # coaxial
    ((0, 0, 2.0), (0, 0, 0)),
    ((0.6, 0, 0), (0, 0, 0)),  # faces, and sides, that touch
    ((0.6, 0.6, 0), (0, 0, 0)),  # edges that touch
    ((0.6, 0.6, 0.6), (0, 0, 0)),  # corners that touch
    ((1.0, 0, 0), (0, np.pi / 2, 0)),
    ((0, 0, 0.6), (np.pi / 2, 0, 0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_are_finite_where_the_distance_is_degenerate(name):
    dtype = np.float64 if X64 else np.float32
    places, turns = (np.resize(np.array(x, float), (COUNT, 3)) for x in zip(*DEGENERATE, strict=True))
    size, kinds = np.full((COUNT, 3), 0.3), name.split("-")
    a = placed(kinds[0], Rotation.from_euler("xyz", turns).as_matrix(), places, size)
    b = placed(kinds[1], np.tile(np.eye(3), (COUNT, 1, 1)), np.zeros((COUNT, 3)), size)
    a, b = jax.tree.map(lambda x: x.astype(dtype), (a, b))
    found, slope = witness(*kinds)(a, b), gradient(*kinds)(a, b)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((found, slope)))
    assert max(np.abs(x).max() for x in jax.tree.leaves(slope)) < 10.0
    if kinds[0] == kinds[1]:
        assert_close(found.distance[:4], [-0.6, -0.6, -0.4, 1.4], 1e-6)


def shaped():
    """A robot with a box, a cylinder and a capsule on three links."""
    b = RobotBuilder("shaped").link("base").link("a", 1.0, inertia=0.1).link("b", 1.0, inertia=0.1)
    b.revolute("first", "base", "a", xyz=(0, 0, 0.5), axis=(0, 1, 0), lower=-2, upper=2)
    b.revolute("second", "a", "b", xyz=(0, 0, 0.5), rpy=(0.3, 0, 0.2), axis=(1, 0, 0), lower=-2, upper=2)
    b.collision("base", BoxGeometry(np.array([0.4, 0.2, 0.1])), xyz=(0.1, 0, 0), rpy=(0.1, 0.2, 0.3))
    b.collision("a", CylinderGeometry(0.3, 0.05), xyz=(0, 0, 0.2), rpy=(0.2, 0, 0))
    return build_model(b.capsule("b", 0.2, 0.06, xyz=(0, 0, 0.3)).build_description())


@pytest.mark.slow
def test_they_are_read_written_and_drawn():
    from rbydyn_jax.viz.robot import robot_surface

    model = shaped()
    chosen = pairs(model, [("base", "b")])
    again = load_urdf_string(to_urdf(model))
    assert again.report == () and again.tree == model.tree
    q = jax.random.uniform(jax.random.key(0), (100, 2), minval=-2.0, maxval=2.0)
    found = jax.jit(jax.vmap(lambda m, q: capsule_distances(m, q, chosen), in_axes=(None, 0)))
    assert_close(found(again, q).distance, found(model, q).distance)
    gap = np.linalg.norm(found(model, q).point_a - found(model, q).point_b, axis=-1)
    assert_close(gap, np.abs(found(model, q).distance), 1e-9 if X64 else 1e-4)
    slopes = jax.grad(lambda m: signed_distances(m, q[0], chosen).sum())(model)
    assert np.abs(slopes.shapes["box"].half).max() > 0.1
    corners = robot_surface(model, np.zeros(2), ["base"])
    half = np.array(list(itertools.product((0.2, -0.2), (0.1, -0.1), (0.05, -0.05))))
    want = half @ Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix().T + [0.1, 0, 0]
    assert_close(np.sort(np.unique(corners.reshape(-1, 3).round(9), axis=0), axis=0), np.sort(want, axis=0), 1e-6)
    side = robot_surface(model, np.zeros(2), ["a"]).reshape(-1, 3) - [0, 0, 0.7]
    assert np.abs(np.linalg.norm(side, axis=1).max() - np.hypot(0.15, 0.05)) < 1e-9


@pytest.mark.slow
def test_they_are_read_from_mujoco():
    mujoco = oracle("mujoco")
    text = """<mujoco><worldbody><geom type="box" size="1 2 0.1"/>
      <body name="a" pos="0 0 1"><joint name="j" type="slide" axis="0 0 1"/>
        <geom type="cylinder" size="0.2 0.3" euler="90 0 0"/></body></worldbody></mujoco>"""
    model = from_mujoco(mujoco.MjModel.from_xml_string(text))
    assert model.report == ()
    assert_close(signed_distances(model, jnp.array([0.5]), pairs(model, by="masks")), [1.2], 1e-6)


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow if "cylinder" in x else pytest.mark.ci) for x in PAIRS]
)
def test_solids_that_abut_are_pushed_along_their_normal(name):
    # Beside each other in x; the lower end of one is as high as the upper end of the other, or hardly higher.
    first, second = name.split("-")
    turned = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix()
    beside = np.array([[0.7, 0.0, 0.6], [0.7, 0.0, 0.6 + 1e-8], [0.7, 0.0, -0.6]]) @ turned.T
    R, size = np.tile(turned, (3, 1, 1)), np.full((3, 3), 0.3)
    a, b = placed(first, R, beside, size), placed(second, R, np.zeros((3, 3)), size)
    a, b = jax.tree.map(lambda x: x.astype(jnp.float64 if X64 else jnp.float32), (a, b))
    found, by_both = witness(first, second)(a, b), gradient(first, second)(a, b)
    points = {"capsule": 2, "box": 1, "cylinder": 1}
    forces, moments = [], []
    for kind, x, slopes in zip((first, second), (a, b), by_both, strict=True):
        moved = {"capsule": 2, "box": 4, "cylinder": 2}[kind]
        x, s = (np.stack(jax.tree.leaves(y)[: 3 * moved], axis=1).reshape(3, moved, 3) for y in (x, slopes))
        forces.append(s[:, : points[kind]].sum(axis=1))
        moments.append(np.cross(x, s).sum(axis=1))
    tol = 1e-6 if X64 else 1e-3  # 1e-8 m higher, the normal is steeper by 1e-7
    assert_close(found.distance, np.full(3, 0.1), tol)
    assert_close(forces[0], np.tile(turned[:, 0], (3, 1)), tol)
    assert_close(forces[0], -forces[1], tol)
    assert_close(moments[0], -moments[1], tol, scale=1.0)  # moved as one they keep their distance
    gap = np.stack(found.point_a, axis=1) - np.stack(found.point_b, axis=1)
    assert_close(np.linalg.norm(gap, axis=1), found.distance, tol)


def shape_alone(shape, angle=0.0):
    """A robot that is one shape, turned about the y axis, and its configuration."""
    model = build_model(
        RobotBuilder().link("w").link("x").revolute("j", "w", "x", axis=(0, 1, 0)).collision("x", shape)
    )
    return model, jnp.array([angle])


def test_the_field_of_flat_shapes_is_zero_on_them():
    # Points on plates, a disc and a stick, none of which is perpendicular to the vertical.
    inside = [[0.0, 0.0, 0.3], [0.0, 0.2, -0.4]]
    stick = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, -0.2]])
    for shape, angle, points in (
        (BoxGeometry(np.array([0.0, 1.0, 1.0])), 0.0, inside),
        (CylinderGeometry(0.0, 0.5), np.pi / 2, inside),
        (BoxGeometry(np.array([0.0, 0.0, 1.0])), 0.0, stick),
    ):
        model, q = shape_alone(shape, angle)
        found = sdf(model, q, jnp.asarray(points))
        assert_close(found.distance, np.zeros(2), scale=1.0)
        assert_close(found.normal[:, 2], np.zeros(2), scale=1.0)
        assert_close(np.linalg.norm(found.normal, axis=1), np.ones(2))


def test_derivatives_beside_an_axis_are_finite():
    model, q = shape_alone(CylinderGeometry(0.2, 0.05))
    tiny = float(jnp.finfo(q.dtype).tiny)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=0)
    def slope(x):
        return jax.grad(lambda p: sdf(model, q, p[None]).distance[0])(jnp.array([0.0, 0.0, 0.3]).at[0].set(x))

    assert_close(slope(jnp.array([tiny**0.45, tiny**0.4, tiny**0.35])), np.tile([0.0, 0.0, 1.0], (3, 1)), 1e-6)


def on_a_grid(name: str, count: int, sizes: list[Any], seed: int = 7):
    """Shapes on a grid in steps of 0.1 m, turned by right angles and then together by a random rotation."""
    rng = np.random.default_rng(seed)
    whole = Rotation.random(count, rng=rng).as_matrix()
    found: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]] = []
    for kind, size in zip(name.split("-"), sizes, strict=True):
        right = np.round(Rotation.from_euler("xyz", 90 * rng.integers(0, 4, (count, 3)), degrees=True).as_matrix())
        p = 0.1 * rng.integers(-5, 6, (count, 3))
        R, at = whole @ right, np.einsum("cij,cj->ci", whole, p)
        found.append((kind, np.round(R, 15), at, np.tile(np.asarray(size, float), (count, 1))))
    return found


@pytest.mark.slow
@float64
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("cylinder-cylinder", [(0.2, 0.0, 0.2), (0.3, 0.0, 0.3)]),
        ("capsule-cylinder", [(0.2, 0.0, 0.2), (0.4, 0.0, 0.2)]),
        ("box-cylinder", [(0.1, 0.2, 0.3), (0.4, 0.0, 0.2)]),
        ("box-box", [(0.1, 0.2, 0.3), (0.2, 0.1, 0.2)]),
    ],
)
def test_points_are_on_both_solids_where_faces_edges_and_rims_touch_along_a_line_or_in_a_point(name, sizes):
    """Axes tangential to rims, aligned faces, equal sizes: where alternating projections alone take very long."""
    a, b = on_a_grid(name, COUNT, sizes)
    found = evaluated(a, b)
    d = np.asarray(found.distance)
    pa, pb = np.stack(found.point_a, axis=1), np.stack(found.point_b, axis=1)
    assert_close(np.linalg.norm(pa - pb, axis=1), np.abs(d), 1e-9, scale=1.0)
    assert (outside(*a, pa) < 1e-9).all() and (outside(*b, pb) < 1e-9).all()
    assert (np.abs(d) < 1e-12).sum() > 5 and (d < -0.01).sum() > 30 and (d > 0.01).sum() > 50


@pytest.mark.ci
@pytest.mark.parametrize("tilt", [0.0, 1e-9])
def test_boxes_without_width_have_the_distance_of_their_segment(tilt):
    """A needle, and a point, against capsules on the same axis and across: as coal has capsules of radius zero."""
    n = 5
    R = np.tile(Rotation.from_euler("x", tilt).as_matrix(), (n, 1, 1))
    needle = np.tile([0.0, 0.0, 0.2], (n, 1))
    needle[4] = 0.0
    along = np.zeros((n, 3))
    along[1, 0] = along[3, 0] = 1e-9
    along[2, 2] = 0.1
    radii = np.array([0.1, 0.4, 0.4, 0.1, 0.3])
    capsule = "capsule", np.tile(np.eye(3), (n, 1, 1)), along, np.stack([radii, radii, 0.05 * np.ones(n)], axis=1)
    found = evaluated(capsule, ("box", R, np.zeros((n, 3)), needle))
    assert_close(found.distance, -radii, 1e-8 if X64 else 1e-6, scale=1.0)
    twice = evaluated(("box", R, 0.0 * along, needle), ("box", R, 0.0 * along, needle))
    assert_close(twice.distance, np.zeros(n), scale=1.0)
    for result in (found, twice):
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(result))


@pytest.mark.slow
@float64
@pytest.mark.parametrize(("radius", "length"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.1, 0.2)])
def test_discs_and_needles_have_the_distance_of_parallel_cylinders(radius, length):
    """Of cylinders with one axis: the larger of both gaps, and outside of both the corner between them."""
    size = (radius, 0.0, 0.3), (0.6, 0.0, 0.5 * length)
    (_, R, p, sa), (_, _, o, sb) = on_a_grid("cylinder-cylinder", COUNT, list(size))
    flipped = R @ np.diag([1.0, -1.0, -1.0])
    found = evaluated(("cylinder", R, p, sa), ("cylinder", flipped, o, sb))
    x, y, z = np.einsum("cij,ci->jc", R, p - o)
    side, end = np.hypot(x, y) - radius - 0.6, np.abs(z) - 0.3 - 0.5 * length
    apart = np.hypot(np.maximum(side, 0), np.maximum(end, 0))
    assert_close(found.distance, np.where((side > 0) | (end > 0), apart, np.maximum(side, end)), 1e-9, scale=1.0)
