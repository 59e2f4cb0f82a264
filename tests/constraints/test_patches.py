"""Wrenches over contacts with friction and areas of support, against scipy's linear and nonlinear programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import constraints
from rbydyn_jax.constraints import ContactPatch, distribute_wrench, static_equilibrium_polygon, zmp_support_area
from rbydyn_jax.spatial import se3
from tests.helpers import X64, assert_close, untyped

pytestmark = pytest.mark.skipif(not X64, reason="the oracle works in float64")
WEIGHT, P = 400.0, np.array([0.05, 0.02, 0.3])


def place(xyz, rpy):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return jnp.asarray(T)


PATCHES = (
    ContactPatch(place((0.3, 0.1, 0.0), (0.1, -0.2, 0.3)), (0.11, 0.05), 0.6),
    ContactPatch(place((-0.2, -0.15, 0.1), (-0.3, 0.1, 0.8)), (0.1, 0.0), 0.8),
    ContactPatch(place((0.1, 0.4, 0.6), (1.2, 0.1, 0.0)), (0.0, 0.0), 0.5),  # a hand against a wall
)


def rays(patches):
    """Forces at the corners that span each pyramid, and where they act: (96, 3) each."""
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    forces, points = [], []
    for patch in patches:
        T = np.asarray(patch.pose)
        for corner in signs * np.asarray(patch.half_sizes):
            for side in signs * float(patch.friction) / np.sqrt(2):
                points.append(T[:3, :3] @ [*corner, 0.0] + T[:3, 3])
                forces.append(T[:3, :3] @ [*side, 1.0])
    return np.array(forces), np.array(points)


FORCES, POINTS = rays(PATCHES)


def span(p):
    return np.concatenate([np.cross(POINTS - p, FORCES), FORCES], axis=1).T


@pytest.fixture(scope="module")
def found():
    wrench = jnp.array([3.0, -2.0, 1.0, 20.0, -10.0, WEIGHT])
    return wrench, distribute_wrench(PATCHES, wrench, jnp.asarray(P))


@pytest.mark.ci
def test_forces_give_the_wrench_and_keep_to_the_cones(found):
    wrench, result = found
    assert bool(result.feasible)
    assert_close(result.residual, np.zeros(6), 1e-7, scale=WEIGHT)
    total = np.zeros(6)
    for patch, w, corner_forces in zip(PATCHES, np.asarray(result.wrenches), np.asarray(result.forces), strict=True):
        R, p = np.asarray(patch.pose)[:3, :3], np.asarray(patch.pose)[:3, 3]
        for f in corner_forces @ R:
            assert np.abs(f[:2]).max() <= float(patch.friction) / np.sqrt(2) * f[2] + 1e-6
        total += [*(w[:3] + np.cross(p - P, w[3:])), *w[3:]]
    assert_close(total, wrench, 1e-7, scale=WEIGHT)


def test_no_other_forces_are_smaller(found):
    """scipy's program over the rays of the pyramids; the sum of squares is that of the forces at each corner."""
    wrench, result = found
    sums = np.kron(np.eye(len(FORCES) // 4), np.ones(4))
    G = span(P) / WEIGHT

    def cost(x):
        f = sums @ (x[:, None] * FORCES)
        return (f * f).sum(), 2.0 * ((sums.T @ f) * FORCES).sum(axis=1)

    start = linprog(np.ones(len(FORCES)), A_eq=G, b_eq=np.asarray(wrench) / WEIGHT).x
    best = minimize(
        cost, start, jac=True, bounds=[(0, None)] * len(start), method="SLSQP", options={"ftol": 1e-12, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda x: G @ x - np.asarray(wrench) / WEIGHT, "jac": lambda x: G},
    )  # fmt: skip
    got = float((np.asarray(result.forces) ** 2).sum())
    assert best.success and got == pytest.approx(best.fun, rel=1e-5)


@pytest.mark.slow
def test_derivative_and_batch(found):
    wrench, _ = found
    direction = jnp.array([0.5, 1.0, -0.3, 10.0, 5.0, 20.0])

    def solve(w, t):
        return distribute_wrench(PATCHES, w + t * direction, jnp.asarray(P)).forces

    slope = jax.jvp(lambda t: solve(wrench, t), (0.0,), (1.0,))[1]
    h = 1e-3
    assert_close(slope, (solve(wrench, h) - solve(wrench, -h)) / (2 * h), 1e-4)
    weights = jax.random.normal(jax.random.key(0), slope.shape)
    gradient = jax.grad(lambda w: (weights * solve(w, 0.0)).sum())(wrench)
    assert_close(gradient @ direction, (weights * slope).sum(), 1e-6)
    batch = jax.vmap(solve, (0, None))(jnp.stack([wrench, -wrench]), 0.0)
    assert_close(batch[0], solve(wrench, 0.0))


@pytest.mark.ci
def test_a_wrench_that_no_forces_give_is_not_feasible():
    for wrench in ([0, 0, 0, 0, 0, -WEIGHT], [0, 0, 0, 2000, 0, WEIGHT], [500, 0, 0, 0, 0, WEIGHT]):
        w = np.array(wrench, float)
        possible = linprog(np.zeros(len(FORCES)), A_eq=span(P), b_eq=w).success
        assert not possible and not bool(distribute_wrench(PATCHES, jnp.asarray(w), jnp.asarray(P)).feasible)
    nothing = distribute_wrench(PATCHES, jnp.zeros(6))
    assert bool(nothing.feasible) and float(jnp.abs(nothing.forces).max()) < 1e-6


def outermost(equal, right, plane, normals):
    """The largest value of normals @ plane @ x over x >= 0 with equal @ x = right and a sum of forces of 100."""
    heights = np.concatenate([np.full(16, np.asarray(p.pose)[:3, 2] @ FORCES[16 * k]) for k, p in enumerate(PATCHES)])
    found = [
        linprog(-n @ plane, A_eq=equal, b_eq=right, A_ub=heights[None], b_ub=[100.0], method="highs") for n in normals
    ]
    assert all(x.success for x in found)
    return [-x.fun for x in found]


@pytest.mark.ci
def test_static_equilibrium_polygon():
    area = static_equilibrium_polygon(PATCHES, directions=12)
    G = span(np.zeros(3))
    want = outermost(G[[3, 4, 5, 2]], [0, 0, 1, 0], np.stack([-G[1], G[0]]), np.asarray(area.normals))
    assert bool(area.feasible)
    assert_close(area.offsets, want, 1e-6, scale=1.0)
    assert_close(jnp.sum(area.normals * area.points, axis=1), area.offsets)
    assert (np.asarray(area.normals @ area.points.T) <= np.asarray(area.offsets)[:, None] + 1e-6).all()  # convex


@pytest.mark.slow
def test_zmp_support_area():
    com = np.array([0.05, 0.0, 0.8])
    area = zmp_support_area(PATCHES, jnp.asarray(com), 0.1, directions=12)
    G = span(com)
    offsets = np.asarray(area.normals) @ com[:2]
    want = outermost(G[[0, 1, 5, 2]], [0, 0, 1, 0], (0.1 - 0.8) * G[3:5], np.asarray(area.normals)) + offsets
    assert bool(area.feasible)
    assert_close(area.offsets, want, 1e-6, scale=1.0)
    far = zmp_support_area(PATCHES, jnp.array([5.0, 0.0, 0.8]), directions=4)
    assert not bool(far.feasible)


def scipy_points(patches, normals, com):
    """The outermost points of both areas by linear programs over the rays of the pyramids."""
    forces, points = rays(patches)
    heights = np.repeat([np.asarray(p.pose)[:3, 2] for p in patches], 16, axis=0)
    pressing = (heights * forces).sum(axis=1)
    G = np.concatenate([np.cross(points, forces), forces], axis=1).T
    about = np.concatenate([np.cross(points - com, forces), forces], axis=1).T
    out = []
    for equal, plane, origin in (
        (G[[3, 4, 5, 2]], np.stack([-G[1], G[0]]), 0.0),
        (about[[0, 1, 5, 2]], (0.1 - com[2]) * G[3:5], com[:2]),
    ):
        for n in normals:
            found = linprog(-n @ plane, pressing[None], [100.0], equal, [0, 0, 1, 0], method="highs")
            assert found.success
            out.append(plane @ found.x + origin)
    return np.array(out)


@pytest.mark.slow
def test_derivatives_of_areas():
    """Of contacts that move, grow and change their friction, and of the centre of mass, at vertices."""
    com, n = np.array([0.05, 0.0, 0.8]), 7
    twists = jax.random.normal(jax.random.key(5), (3, 6))

    def moved(x):
        patches = [
            ContactPatch(
                se3.exp(x[0] * t) @ p.pose, jnp.asarray(p.half_sizes) * (1 + x[1]), p.friction * (1 + k * x[2])
            )
            for k, (t, p) in enumerate(zip(twists, PATCHES, strict=True))
        ]
        return patches, jnp.asarray(com) + x[3] * jnp.array([1.0, -0.5, 0.3])

    def points(x):
        patches, c = moved(x)
        areas = static_equilibrium_polygon(patches, directions=n), zmp_support_area(patches, c, 0.1, directions=n)
        return jnp.concatenate([area.points for area in areas])

    origin, h = jnp.zeros(4), 1e-5
    normals = np.asarray(static_equilibrium_polygon(PATCHES, directions=n).normals)
    got = jax.jit(jax.jacfwd(points))(origin)
    for i in range(4):
        up, down = ((patches, np.asarray(c)) for patches, c in (moved(origin.at[i].set(s * h)) for s in (1, -1)))
        want = (scipy_points(up[0], normals, up[1]) - scipy_points(down[0], normals, down[1])) / (2 * h)
        assert_close(got[:, :, i], want, 1e-5)
    assert_close(jax.jit(jax.jacrev(points))(origin), got, 1e-9)
    along = jnp.array([0.5, 0.2, -0.3, 0.4])
    slope = jax.jit(lambda t: jax.jvp(points, (t * along,), (along,))[1])
    curvature = jax.jit(jax.jacfwd(slope))(0.0)
    assert_close(curvature, (slope(1e-4) - slope(-1e-4)) / 2e-4, 1e-4)


@pytest.mark.slow
def test_derivatives_where_directions_are_normal_to_edges():
    """The offsets of a flat foot: its half sizes and place."""

    def offsets(x):
        foot = ContactPatch(jnp.eye(4).at[:2, 3].set(x[2:]), x[:2], 0.5)
        areas = (
            static_equilibrium_polygon([foot], directions=4),
            zmp_support_area([foot], jnp.array([0.0, 0, 0.8]), directions=4),
        )
        return jnp.stack([area.offsets for area in areas])

    want = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, -1, 0], [0, 1, 0, -1]]).T
    assert_close(jax.jacfwd(offsets)(jnp.array([0.1, 0.05, 0.0, 0.0])), np.stack([want, want]), 1e-6)


@pytest.mark.slow
def test_random_contacts_in_one_batch():
    """Feasible or not as scipy says; both areas in one program, whose loops run at the same time."""
    rng, count = np.random.default_rng(0), 40
    T = np.tile(np.eye(4), (count, 3, 1, 1))
    T[..., :3, :3] = Rotation.from_rotvec(0.5 * rng.normal(size=(3 * count, 3))).as_matrix().reshape(count, 3, 3, 3)
    T[..., :3, 3] = 0.4 * rng.normal(size=(count, 3, 3))
    sizes, friction = rng.uniform(0, 0.1, (count, 3, 2)), rng.uniform(0.1, 1.0, (count, 3))
    com = np.array([0.0, 0.0, 0.8])

    @jax.jit
    @jax.vmap
    def areas(T, sizes, friction):
        patches = tuple(ContactPatch(*x) for x in zip(T, sizes, friction, strict=True))
        static = static_equilibrium_polygon(patches, directions=4)
        return static.feasible, zmp_support_area(patches, jnp.asarray(com), directions=4).feasible

    got = areas(*(jnp.asarray(x) for x in (T, sizes, friction)))
    for k in range(count):
        forces, points = rays([ContactPatch(*x) for x in zip(T[k], sizes[k], friction[k], strict=True)])
        about = [np.concatenate([np.cross(points - p, forces), forces], axis=1).T for p in (np.zeros(3), com)]
        for feasible, equal in ((got[0][k], about[0][[3, 4, 5, 2]]), (got[1][k], about[1][[0, 1, 5, 2]])):
            some = linprog(np.zeros(48), A_eq=equal, b_eq=[0, 0, 1, 0], A_ub=np.ones((1, 48)), b_ub=[100])
            assert some.success == bool(feasible), k


@pytest.mark.slow
def test_the_areas_of_a_flat_foot_are_the_foot_itself_and_move_with_it():
    def offsets(x, directions=4):
        foot = ContactPatch(jnp.eye(4).at[0, 3].set(x), (0.1, 0.05), 0.9)
        static = static_equilibrium_polygon((foot,), directions=directions).offsets
        return static, zmp_support_area((foot,), jnp.array([x, 0.0, 0.7]), directions=directions).offsets

    for got in offsets(2.0):
        assert_close(got, [2.1, 0.05, -1.9, 0.05], 1e-7)
    for slope in jax.jacfwd(offsets)(2.0):
        assert_close(slope, [1.0, 0.0, -1.0, 0.0], 1e-5, scale=1.0)


def test_what_raises():
    for call, error, match in (
        (lambda: ContactPatch(jnp.zeros((4, 4))), rb.ArgumentError, "rigid transform"),
        (lambda: ContactPatch(np.diag([2.0, 1, 1, 1])), rb.ArgumentError, "rigid transform"),
        (lambda: ContactPatch(np.full((4, 4), np.nan)), rb.ArgumentError, "pose must be finite"),
        (lambda: ContactPatch(half_sizes=(-0.1, 0.1)), rb.ArgumentError, "half_sizes"),
        (lambda: ContactPatch(half_sizes=(0.1,)), rb.ShapeError, "half_sizes"),
        (lambda: ContactPatch(half_sizes="ab"), rb.DtypeError, "half_sizes"),
        (lambda: ContactPatch(friction=0.0), rb.ArgumentError, "friction must be positive"),
        (lambda: ContactPatch(friction=np.nan), rb.ArgumentError, "friction must be finite"),
        (lambda: ContactPatch(friction="x"), rb.DtypeError, "friction"),
        (lambda: distribute_wrench((), jnp.zeros(6)), rb.ShapeError, "at least one"),
        (lambda: distribute_wrench(PATCHES, jnp.zeros(3)), rb.ShapeError, "wrench"),
        (lambda: distribute_wrench(untyped(PATCHES[0]), jnp.zeros(6)), rb.DtypeError, "sequence"),
        (lambda: distribute_wrench(untyped([constraints.Contact("a")]), jnp.zeros(6)), rb.DtypeError, "hold"),
        (lambda: static_equilibrium_polygon(PATCHES, directions=2), rb.ArgumentError, "directions"),
        (lambda: zmp_support_area(PATCHES, jnp.zeros(2)), rb.ShapeError, "com"),
        (lambda: zmp_support_area(PATCHES, jnp.zeros(3), pressing=-1.0), rb.ArgumentError, "pressing must be finite"),
        (lambda: static_equilibrium_polygon(PATCHES, pressing=np.nan), rb.ArgumentError, "pressing must be finite"),
    ):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.ci
def test_of_what_is_not_finite_nothing_is_known():
    foot, com = ContactPatch(half_sizes=(0.1, 0.1), friction=0.5), jnp.array([0.0, 0.0, 0.8])
    found = distribute_wrench((foot,), jnp.zeros(6).at[5].set(jnp.nan))
    assert bool(jnp.isnan(found.forces).all()) and not found.feasible
    for at, height in ((com.at[0].set(jnp.nan), 0.0), (com, jnp.nan)):
        area = zmp_support_area((foot,), at, height, directions=4)
        assert bool(jnp.isnan(area.points).all()) and not area.feasible


@pytest.mark.ci
def test_results_have_the_dtype_of_the_arguments():
    foot = ContactPatch(half_sizes=(0.1, 0.1), friction=0.5)
    found = distribute_wrench((foot,), jnp.array([0, 0, 0, 0, 0, 400.0], jnp.float32))
    area = zmp_support_area((foot,), jnp.array([0.0, 0.0, 0.8], jnp.float32), directions=4)
    assert {x.dtype for x in jax.tree.leaves((found, area))} == {jnp.dtype("float32"), jnp.dtype(bool)}
