"""Capsule distance against an exhaustive reference in extended precision, at every kind of degeneracy."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, collision
from rbydyn_jax._errors import DtypeError, ShapeError
from rbydyn_jax.collision import capsule_distance
from tests.helpers import X64

DTYPES = [np.float32, np.float64] if X64 else [np.float32]
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}  # absolute [m]: coordinates are at most a few metres
N = 10_000


def _dot(x, y):
    return (x * y).sum(axis=-1)


def reference(a0, a1, b0, b1):
    """Least of the four end-to-segment distances and of the interior stationary point, and which of them it is."""
    a0, a1, b0, b1 = (np.asarray(x, np.longdouble) for x in (a0, a1, b0, b1))
    u, w, r = a1 - a0, b1 - b0, a0 - b0

    def project(p, origin, direction):
        square = _dot(direction, direction)
        t = np.clip(_dot(p - origin, direction) / np.where(square > 0, square, 1), 0, 1)
        return t, origin + t[..., None] * direction

    found = []
    for p, origin, direction in ((a0, b0, w), (a1, b0, w), (b0, a0, u), (b1, a0, u)):
        t, nearest = project(p, origin, direction)
        found.append((np.sqrt(_dot(p - nearest, p - nearest)), np.sign(t) + (t == 1)))
    n = np.cross(u, w)
    square = _dot(n, n)
    s = -_dot(np.cross(r, w), n) / np.where(square > 0, square, 1)
    p = a0 + s[..., None] * u
    t, nearest = project(p, b0, w)
    inside = (square > 0) & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    found.append((np.where(inside, np.sqrt(_dot(p - nearest, p - nearest)), np.inf), np.zeros_like(s)))
    values = np.stack([f[0] for f in found])
    least = np.argmin(values, axis=0)
    kind = np.take_along_axis(np.stack([f[1] for f in found]), least[None], axis=0)[0]
    return values.min(axis=0), 10 * least + kind


def exact(a0, a1, b0, b1):
    """The distance of one pair in rational arithmetic, rounded once."""
    a0, a1, b0, b1 = ([Fraction(float(c)) for c in x] for x in (a0, a1, b0, b1))

    def sub(x, y):
        return [p - q for p, q in zip(x, y, strict=True)]

    def dot(x, y):
        return sum(p * q for p, q in zip(x, y, strict=True))

    def square(s, t):
        gap = [p + s * q - t * o for p, q, o in zip(r, u, w, strict=True)]
        return dot(gap, gap)

    u, w, r = sub(a1, a0), sub(b1, b0), sub(a0, b0)
    a, b, c, d, e = dot(u, u), dot(u, w), dot(w, w), dot(u, r), dot(w, r)
    candidates = []
    for fixed in (Fraction(0), Fraction(1)):
        candidates.append((fixed, min(max((b * fixed + e) / c, 0), 1) if c else Fraction(0)))
        candidates.append((min(max((b * fixed - d) / a, 0), 1) if a else Fraction(0), fixed))
    det = a * c - b * b
    if det:
        s, t = (b * e - c * d) / det, (a * e - b * d) / det
        if 0 <= s <= 1 and 0 <= t <= 1:
            candidates.append((s, t))
    return sqrt(min(square(s, t) for s, t in candidates))


def _sample(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    a0, a1, b0, b1 = rng.uniform(-1, 1, (4, N, 3))
    u = a1 - a0
    scale = rng.choice([-1, 1], (N, 1)) * rng.uniform(0.1, 1, (N, 1))  # parallel and antiparallel
    along = rng.uniform(0, 1, (N, 1))
    name, _, number = kind.partition(" ")
    if name == "near-parallel":
        b1 = b0 + scale * u + float(number) * rng.normal(size=(N, 3))
    elif name == "near-parallel-touching":
        w = scale * u + float(number) * rng.normal(size=(N, 3))
        b0 = a0 + along * u - rng.uniform(0, 1, (N, 1)) * w
        b1 = b0 + w
    elif name == "parallel":
        b1 = b0 + scale * u
    elif name == "collinear":
        b0 = a0 + rng.uniform(-1, 1, (N, 1)) * u
        b1 = b0 + scale * u
    elif name == "crossing":
        w = b1 - b0
        b0 = a0 + along * u - rng.uniform(0, 1, (N, 1)) * w
        b1 = b0 + w
    elif name == "millimetre":
        a1, b1 = a0 + 1e-3 * rng.normal(size=(N, 3)), b0 + 1e-3 * rng.normal(size=(N, 3))
    elif name == "millimetre-close":
        a1, b0, b1 = a0 + 1e-3 * rng.normal(size=(3, N, 3))
    elif name == "millimetre-metre":
        a1 = a0 + 1e-3 * rng.normal(size=(N, 3))
    elif name == "point-segment":
        a1 = a0
    elif name == "segment-point":
        b1 = b0
    elif name == "point-on-segment":
        b0 = b1 = a0 + along * u
    elif name == "point-point":
        a1, b1 = a0, b0
    elif name == "coincident":
        b0, b1 = a0, a1
    elif name == "reversed":
        b0, b1 = a1, a0
    elif name == "shared-end":
        b0 = a1
    elif name == "axis-aligned":
        a0, a1, b0, b1 = np.round(2 * rng.uniform(-1, 1, (4, N, 3))) / 2
    return a0, a1, b0, b1


ANGLES = ("1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8")
KINDS = [
    "random",
    *(f"near-parallel {angle}" for angle in ANGLES),
    *(f"near-parallel-touching {angle}" for angle in ANGLES),
    *("parallel", "collinear", "crossing", "millimetre", "millimetre-close", "millimetre-metre", "point-segment"),
    *("segment-point", "point-on-segment", "point-point", "coincident", "reversed", "shared-end", "axis-aligned"),
]


@jax.jit
@jax.vmap
def batch(a0, a1, ra, b0, b1, rb):
    return capsule_distance(a0, a1, ra, b0, b1, rb)


def _value(x):
    """Distance as a function of the 12 coordinates, for capsules of no radius."""
    zero = jnp.zeros((), x.dtype)
    return capsule_distance(x[0:3], x[3:6], zero, x[6:9], x[9:12], zero).distance


values = jax.jit(jax.vmap(_value))
gradients = jax.jit(jax.vmap(jax.grad(_value)))
hessians = jax.jit(jax.vmap(jax.hessian(_value)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_distance_and_witness_points_are_exact(kind, dtype):
    rng = np.random.default_rng(KINDS.index(kind))
    ends = [x.astype(dtype) for x in _sample(kind, rng)]
    a0, a1, b0, b1 = ends
    ra, rb = rng.uniform(0, 0.2, (2, N)).astype(dtype)
    got = batch(a0, a1, ra, b0, b1, rb)
    tol = TOLERANCE[dtype]
    want, _ = reference(*ends)
    for i in range(0, N, N // 50):
        assert float(want[i]) == pytest.approx(exact(*(x[i] for x in ends)), rel=1e-12, abs=1e-15)
    assert got.distance.dtype == dtype
    assert np.max(np.abs(np.asarray(got.distance) - (want - ra - rb))) < tol

    axis_a, axis_b, a, b = (
        np.asarray(x, np.longdouble) for x in (got.axis_point_a, got.axis_point_b, got.point_a, got.point_b)
    )

    def length(x):
        return np.sqrt(_dot(x, x))

    assert np.max(np.abs(length(axis_a - axis_b) - want)) < tol
    # A gap near rounding error has no accurate direction: the surface points are checked where it has one. Axes that
    # touch outright are the table's, below.
    clear = want > 1e3 * tol
    assert np.max(np.abs(length(a - b) - np.abs(want - ra - rb)), where=clear, initial=0) < tol
    for point, surface, p0, p1, radius in ((axis_a, a, a0, a1, ra), (axis_b, b, b0, b1, rb)):
        assert np.max(reference(point, point, p0, p1)[0]) < tol  # on the axis
        assert np.max(np.abs(length(surface - point) - radius), where=clear, initial=0) < tol
        off_surface = np.abs(reference(surface, surface, p0, p1)[0] - radius)
        assert np.max(off_surface, where=clear, initial=0) < tol


def _smooth_sample(count: int = 4000) -> np.ndarray:
    """Pairs of coordinates (count, 12) away from contact and from parallel axes."""
    x = np.random.default_rng(7).uniform(-1, 1, (8 * count, 12))
    u, w = x[:, 3:6] - x[:, 0:3], x[:, 9:12] - x[:, 6:9]
    sine = np.linalg.norm(np.cross(u, w), axis=1) / (np.linalg.norm(u, axis=1) * np.linalg.norm(w, axis=1))
    distance, _ = reference(*np.split(x, 4, axis=1))
    return x[(sine > 0.2) & (distance > 0.1)][:count]


def _moved(x, direction, step):
    return reference(*np.split(x.astype(np.longdouble) + step * direction, 4, axis=1))


@pytest.mark.skipif(not X64, reason="finite differences are taken in float64")
def test_gradient_matches_differences_of_the_reference():
    x = _smooth_sample()
    got = gradients(x)
    h = np.longdouble(1e-6)
    for k in range(12):
        up, kind_up = _moved(x, np.eye(12)[k], h)
        down, kind_down = _moved(x, np.eye(12)[k], -h)
        same = kind_up == kind_down
        assert same.mean() > 0.99
        assert np.max(np.abs(np.asarray(got[:, k]) - (up - down) / (2 * h))[same]) < 1e-8


@pytest.mark.ci
@pytest.mark.skipif(not X64, reason="finite differences are taken in float64")
def test_hessian_matches_differences_of_the_reference():
    x = _smooth_sample()
    got = np.asarray(hessians(x))
    assert np.allclose(got, np.swapaxes(got, 1, 2), rtol=0, atol=1e-9 * np.abs(got).max())
    h = np.longdouble(1e-4)
    here, kind = _moved(x, np.zeros(12), h)
    for direction in np.random.default_rng(3).normal(size=(20, 12)):
        up, kind_up = _moved(x, direction, h)
        down, kind_down = _moved(x, direction, -h)
        same = (kind == kind_up) & (kind == kind_down)
        assert same.mean() > 0.95
        want = (up - 2 * here + down) / h**2
        curvature = np.einsum("i,nij,j->n", direction, got, direction)
        # Second differences: rounding 1e-19 / h^2, truncation h^2 times a fourth derivative of up to 1e4.
        assert np.max(np.abs(curvature - want)[same] / (1 + np.abs(want[same]))) < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="compares rounding errors in float64")
def test_forward_mode_equals_reverse_mode():
    x = _smooth_sample(1000)
    forward = jax.jit(jax.vmap(jax.jacfwd(_value)))(x)
    assert np.max(np.abs(gradients(x) - forward)) < 1e-12
    again = jax.jit(jax.vmap(jax.jacrev(jax.grad(_value))))(x)
    h = hessians(x)
    assert np.max(np.abs(h - again)) < 1e-12 * np.max(np.abs(h))


E = np.eye(3)
ZERO = np.zeros(3)
DEGENERATE = {
    "crossing": (-E[0], E[0], -E[1], E[1]),
    "crossing off centre": (-E[0], 2 * E[0], -3 * E[1], E[1]),
    "crossing at an end": (ZERO, E[0], ZERO, E[1]),
    "parallel": (ZERO, E[0], E[1], E[1] + E[0]),
    "parallel, partial overlap": (ZERO, E[0], E[1] + 0.5 * E[0], E[1] + 2 * E[0]),
    "antiparallel": (ZERO, E[0], E[1] + E[0], E[1]),
    "oblique parallel": (ZERO, 0.3 * E[0] + 0.1 * E[1] + 0.7 * E[2], E[1], E[1] + 0.9 * E[0] + 0.3 * E[1] + 2.1 * E[2]),
    "collinear apart": (ZERO, E[0], 2 * E[0], 3 * E[0]),
    "collinear end to end": (ZERO, E[0], E[0], 2 * E[0]),
    "collinear overlapping": (ZERO, E[0], 0.5 * E[0], 2 * E[0]),
    "coincident": (ZERO, E[0] + 0.3 * E[1], ZERO, E[0] + 0.3 * E[1]),
    "reversed": (ZERO, E[2], E[2], ZERO),
    "point and segment": (ZERO, ZERO, E[1] - E[0], E[1] + E[0]),
    "segment and point": (-E[0], E[0], E[1], E[1]),
    "point on segment": (ZERO, ZERO, -E[2], E[2]),
    "point at end of segment": (ZERO, ZERO, ZERO, E[2]),
    "two points": (ZERO, ZERO, E[2], E[2]),
    "one point": (ZERO, ZERO, ZERO, ZERO),
    "millimetre crossing": (-1e-3 * E[0], 1e-3 * E[0], -1e-3 * E[1], 1e-3 * E[1]),
    "millimetre, 1e-8 rad": (ZERO, 1e-3 * E[0], 1e-3 * E[1], 1e-3 * E[1] + 1e-3 * E[0] + 1e-11 * E[2]),
    "1e-8 rad": (ZERO, E[0], E[1], E[1] + E[0] + 1e-8 * E[2]),
    "1e-4 rad crossing": (-E[0], E[0], -E[0] - 1e-4 * E[1], E[0] + 1e-4 * E[1]),
    "micrometre": (ZERO, 1e-6 * E[0], 1e-6 * E[1], 1e-6 * E[1] + 1e-6 * E[2]),
    "denormal length": (ZERO, 1e-30 * E[0], E[1], E[1] + 1e-30 * E[2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_are_finite_and_consistent_where_the_distance_is_degenerate(dtype):
    x = np.array([np.concatenate(ends) for ends in DEGENERATE.values()]).astype(dtype)
    zero = np.zeros(len(x), dtype)
    got = batch(*np.split(x, 4, axis=1)[:2], zero + 0.1, *np.split(x, 4, axis=1)[2:], zero + 0.2)
    g, h = np.asarray(gradients(x)), np.asarray(hessians(x))
    for i, name in enumerate(DEGENERATE):
        want = exact(*np.split(x[i], 4))
        assert float(got.distance[i]) == pytest.approx(want - 0.3, abs=TOLERANCE[dtype]), name
        assert np.isfinite(g[i]).all(), name
        assert np.isfinite(h[i]).all(), name
        # Moving the first capsule as a whole changes the distance along the unit vector between the witness points.
        normal = g[i, 0:3] + g[i, 3:6]
        eps = float(8 * np.finfo(dtype).eps)
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=eps), name
        assert np.allclose(normal, -(g[i, 6:9] + g[i, 9:12]), atol=eps), name
        assert np.allclose(got.axis_point_a[i] - 0.1 * normal, got.point_a[i], atol=eps), name
        assert np.allclose(got.axis_point_b[i] + 0.2 * normal, got.point_b[i], atol=eps), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_at_touching_axes_is_a_direction_that_separates(dtype):
    touching = [name for name, ends in DEGENERATE.items() if exact(*ends) == 0.0]
    assert len(touching) >= 10
    x = np.array([np.concatenate(DEGENERATE[name]) for name in touching]).astype(dtype)
    normal = np.asarray(gradients(x)).reshape(-1, 4, 3)[:, :2].sum(axis=1)
    step = dtype(0.25)
    moved = x + step * np.concatenate([normal, normal, 0 * normal, 0 * normal], axis=1)
    assert np.allclose(values(moved), step, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_finite_on_every_kind_of_pair(kind, dtype):
    ends = _sample(kind, np.random.default_rng(99))
    x = np.concatenate([e[:4000] for e in ends], axis=1).astype(dtype)
    g = np.asarray(gradients(x))
    assert np.max(np.abs(np.linalg.norm(g[:, 0:3] + g[:, 3:6], axis=1) - 1)) < 8 * np.finfo(dtype).eps
    assert np.isfinite(hessians(x)).all()


@pytest.mark.ci
def test_derivatives_by_radius_and_of_witness_points_are_finite():
    def surface(radius, x):
        d = capsule_distance(x[0:3], x[3:6], radius, x[6:9], x[9:12], radius)
        return d.distance, jnp.concatenate([d.point_a, d.point_b, d.axis_point_a, d.axis_point_b])

    x = jnp.asarray(np.array([np.concatenate(ends) for ends in DEGENERATE.values()]))
    distance, points = jax.jit(jax.vmap(jax.jacobian(surface, argnums=(0, 1)), in_axes=(None, 0)))(jnp.asarray(0.1), x)
    assert np.all(distance[0] == -2.0)
    assert all(np.isfinite(leaf).all() for leaf in (*distance, *points))


def test_symmetries():
    rng = np.random.default_rng(5)
    a0, a1, b0, b1 = (jnp.asarray(x) for x in rng.uniform(-1, 1, (4, 500, 3)))
    ra, rb = (jnp.asarray(x) for x in rng.uniform(0, 0.2, (2, 500)))
    tol = TOLERANCE[np.dtype(a0.dtype).type]
    here = batch(a0, a1, ra, b0, b1, rb)
    swapped = batch(b0, b1, rb, a0, a1, ra)
    turned = batch(a1, a0, ra, b1, b0, rb)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moved = batch(*(x @ rotation.T + 0.1 if x.ndim == 2 else x for x in (a0, a1, ra, b0, b1, rb)))
    for other in (swapped, turned, moved):
        assert np.max(np.abs(here.distance - other.distance)) < tol
    # Witness points of well separated directions: a few roundings, times the condition of the line-line step.
    assert np.allclose(here.point_a, swapped.point_b, atol=1e3 * tol)
    assert np.allclose(here.point_a @ rotation.T + 0.1, moved.point_a, atol=1e3 * tol)


@pytest.mark.ci
def test_jit_vmap_and_eager_agree():
    rng = np.random.default_rng(6)
    args = [jnp.asarray(x) for x in (*rng.uniform(-1, 1, (2, 3)), 0.1, *rng.uniform(-1, 1, (2, 3)), 0.2)]
    eager = capsule_distance(*args)
    batched = jax.vmap(capsule_distance, in_axes=(0, None, None, None, None, None))(jnp.stack([args[0]] * 3), *args[1:])
    nested = jax.vmap(jax.vmap(capsule_distance, in_axes=(1, *[None] * 5)), in_axes=(2, *[None] * 5))(
        jnp.broadcast_to(args[0][:, None, None], (3, 2, 3)), *args[1:]
    )
    tol = TOLERANCE[np.dtype(args[0].dtype).type]
    for field in ("distance", "point_a", "point_b", "axis_point_a", "axis_point_b"):
        one = getattr(eager, field)
        assert np.allclose(getattr(batched, field), np.broadcast_to(one, (3, *one.shape)), atol=tol)
        assert np.allclose(getattr(nested, field), np.broadcast_to(one, (3, 2, *one.shape)), atol=tol)


def test_nan_goes_through():
    x = np.ones((12, 12)) * np.arange(12)
    np.fill_diagonal(x, np.nan)
    assert np.isnan(values(jnp.asarray(x))).all()


def test_wrong_arguments():
    p, r = jnp.zeros(3), jnp.asarray(0.1)
    with pytest.raises(ShapeError, match=r"b0 must have shape \(3,\).*use jax.vmap"):
        capsule_distance(p, p, r, jnp.zeros((4, 3)), p, r)
    with pytest.raises(ShapeError, match="radius_a"):
        capsule_distance(p, p, jnp.zeros(2), p, p, r)
    with pytest.raises(DtypeError, match="a1 must be an array of floats"):
        capsule_distance(p, jnp.zeros(3, int), r, p, p, r)
    for k, name in enumerate(("a0", "a1", "radius_a", "b0", "b1", "radius_b")):
        given: list = [p, p, r, p, p, r]
        for wrong in ("a", None, [0.0, "b"]):
            given[k] = wrong
            with pytest.raises(DtypeError, match=f"{name} must be an array of floats"):
                capsule_distance(*given)
    for radius in (-0.1, np.float64(-0.1), jnp.asarray(-0.1), -1):
        with pytest.raises(ArgumentError, match="radius_a must be finite and not negative, got -"):
            capsule_distance(p, p, radius, p, p, r)
        with pytest.raises(ArgumentError, match="radius_b must be finite and not negative, got -"):
            capsule_distance(p, p, r, p, p, radius)
    assert issubclass(collision.NearestPairs, collision.CapsuleDistance)


def test_radii_may_be_integers_and_traced():
    x = jnp.array([3.0, 0.0, 0.0])
    assert float(capsule_distance(0 * x, 0 * x, 1, x, x, 0).distance) == 2.0
    traced = jax.vmap(lambda r: capsule_distance(0 * x, 0 * x, r, x, x, 0.0).distance)(jnp.array([1.0, -1.0]))
    assert traced.tolist() == [2.0, 4.0]
