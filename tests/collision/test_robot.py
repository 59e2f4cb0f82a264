"""Distances between the capsules of whole robots, against rby1_sdk and the exhaustive reference."""

from __future__ import annotations

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    Model,
    ModelError,
    ShapeError,
    fk,
    random_configuration,
    robots,
)
from rbydyn_jax.collision import (
    ShapePairs,
    capsule_distances,
    min_distance,
    nearest,
    pairs,
    signed_distances,
    smooth_min_distance,
)
from tests.collision.test_distance import reference
from tests.helpers import X64, arithmetic_in, assert_close, compiled_text, oracle, rby1_file, slow, untyped

RBY1 = {"rby1a": "rby1a_model_v1.2.urdf", "rby1m": "rby1m_model_v1.3.urdf", "rby1ub": "rby1ub_model.urdf"}
COUNT = 200


@functools.cache
def robot(name: str) -> Model:
    return getattr(robots, name)()


@functools.cache
def configurations(name: str) -> jax.Array:
    model, keys = robot(name), jax.random.split(jax.random.key(11), COUNT)
    return jax.jit(jax.vmap(lambda key: random_configuration(model, key)))(keys)


def batched(f, name: str):
    model = robot(name)
    return jax.jit(jax.vmap(lambda q: f(model, q)))


@functools.cache
def distances(name: str) -> np.ndarray:
    return np.asarray(batched(signed_distances, name)(configurations(name)))


def sdk_robot(name: str):
    """The maker's file in the maker's library."""
    oracle("rby1_sdk")
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    model = robot(name)
    return Rby1Robot(rby1_file(RBY1[name]), model.joint_names, model.link_names, model.link_names[0])


@functools.cache
def sdk_distances(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of rby1_sdk: distances (COUNT, pairs) in our order of pairs, and link poses (COUNT, links, 4, 4) in the base."""
    model, sdk = robot(name), sdk_robot(name)
    base = model.link_names[0]
    order = {frozenset(p): k for k, p in enumerate(pairs(model).links)}
    assert len(order) == len(pairs(model))  # one capsule a link
    found, poses = np.full((COUNT, len(order)), np.nan), []
    for row, q in zip(found, np.asarray(configurations(name)), strict=True):
        poses.append(sdk.fk(q, base, model.link_names))
        results = sdk.robot.detect_collisions_or_nearest_links(sdk.state, len(order))
        assert len(results) == len(order)
        for result in results:
            row[order[frozenset((result.link1, result.link2))]] = result.distance
    assert np.isfinite(found).all()  # the SDK tests the very same pairs
    return found, np.array(poses)


def exact_distances(model: Model, poses: np.ndarray) -> np.ndarray:
    """Distances of the default pairs by the exhaustive reference, from given link poses."""
    segments, radii = (np.asarray(x, np.float64) for x in (model.capsule_segments, model.capsule_radii))
    placed = poses[:, list(model.tree.shape_links)]
    ends = np.einsum("bcij,ckj->bcki", placed[..., :3, :3], segments) + placed[..., None, :3, 3]
    first, second = np.array(pairs(model).indices).T
    distance, _ = reference(ends[:, first, 0], ends[:, first, 1], ends[:, second, 0], ends[:, second, 1])
    return (distance - radii[first] - radii[second]).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", RBY1)
def test_distances_equal_the_exact_ones_at_the_poses_of_the_sdk(name):
    found, poses = sdk_distances(name)
    exact = exact_distances(robot(name), poses)
    # The SDK keeps the axes as printed in the file and takes the cosine as the root of 1 - sin^2: its poses are off by
    # up to 1e-8.
    assert_close(distances(name), exact, 1e-8 if X64 else None)
    # It takes segments with |u x w| < 1e-3 m^2 (6 degrees, for 0.1 m) as parallel. So it is never below the exact
    # distance, rarely above it, and by no more than 1e-3 m^2 over a length of 0.1 m.
    excess = found - exact
    rounding = 1e-12 if X64 else 1e-7  # float32 rounds the capsules themselves
    assert excess.min() > -rounding
    assert (excess > 1e3 * rounding).mean() < 2e-3
    assert excess.max() < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RBY1, "panda_like"])
def test_distances_equal_the_exact_ones_at_our_poses(name):
    poses = np.asarray(batched(fk, name)(configurations(name)), np.float64)
    assert_close(distances(name), exact_distances(robot(name), poses))


def test_two_link_arm_by_hand():
    # Both capsules lie along their links: 0.05..0.45 of the upper one, 0.05..0.35 of the lower one, from the elbow at
    # 0.5. Stretched out, the gap is 0.1 less the radii 0.05 and 0.04; at a right angle it is the diagonal.
    model = robot("two_link_arm")
    right_angle = signed_distances(model, jnp.array([0.3, jnp.pi / 2]))
    assert_close(signed_distances(model, jnp.zeros(2)), [0.1 - 0.09], 1e-5 if not X64 else 1e-12)
    assert_close(right_angle, [np.hypot(0.05, 0.05) - 0.09], scale=0.05)


@pytest.mark.ci
@pytest.mark.parametrize("name", [*slow("rby1a"), "panda_like"])
def test_witness_points(name):
    model, q = robot(name), configurations(name)
    found = batched(capsule_distances, name)(q)
    assert_close(found.distance, distances(name))
    gap = np.linalg.norm(found.axis_point_a - found.axis_point_b, axis=-1)
    radii = np.asarray(model.capsule_radii)
    first, second = np.array(pairs(model).indices).T
    assert_close(gap - radii[first] - radii[second], distances(name))
    assert_close(np.linalg.norm(found.point_a - found.point_b, axis=-1), np.abs(distances(name)), scale=0.1)
    # In the link's own axes the nearest point of the axis lies on the link's segment: world coordinates, right link.
    poses = np.asarray(batched(fk, name)(q), np.float64)
    segments = np.asarray(model.capsule_segments, np.float64)
    for points, capsules in ((found.axis_point_a, first), (found.axis_point_b, second)):
        T = poses[:, np.array(model.tree.shape_links)[capsules]]
        local = np.einsum("bnji,bnj->bni", T[..., :3, :3], np.asarray(points, np.float64) - T[..., :3, 3])
        ends = (np.broadcast_to(segments[capsules, k], local.shape) for k in (0, 1))
        assert np.max(reference(local, local, *ends)[0]) < (1e-12 if X64 else 2e-6)


@pytest.mark.slow
def test_witness_points_equal_the_sdk_axis_points():
    model, sdk = robot("rby1a"), sdk_robot("rby1a")
    ours = batched(capsule_distances, "rby1a")(configurations("rby1a"))
    order = {p: k for k, p in enumerate(pairs(model).links)}
    compared = 0
    for row, q in enumerate(np.asarray(configurations("rby1a")[:100])):
        sdk.set(q)
        # The SDK's points are on the axes, in the frame of the state's first link, which is our root.
        for result in sdk.robot.detect_collisions_or_nearest_links(sdk.state, len(order)):
            swapped = (result.link1, result.link2) not in order
            k = order[(result.link2, result.link1) if swapped else (result.link1, result.link2)]
            want = [result.position2, result.position1] if swapped else [result.position1, result.position2]
            if abs(result.distance - float(ours.distance[row, k])) > 1e-6:
                continue  # one of its outliers
            got = [np.asarray(x[row, k]) for x in (ours.axis_point_a, ours.axis_point_b)]
            # Where the axes are nearly parallel the points are badly determined though the distance is not.
            compared += np.allclose(got, want, rtol=0, atol=1e-6 if X64 else 1e-4)
    assert compared > 0.99 * 100 * len(order)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 43])
def test_nearest_sorts(k):
    model, q = robot("rby1a"), configurations("rby1a")
    found = jax.jit(jax.vmap(lambda q: nearest(model, q, k)))(q)
    everything = batched(capsule_distances, "rby1a")(q)
    assert_close(found.distance, np.sort(distances("rby1a"), axis=1)[:, :k])
    rows = np.arange(COUNT)[:, None]
    assert_close(found.distance, distances("rby1a")[rows, found.pair])
    assert_close(found.axis_point_a, np.asarray(everything.axis_point_a)[rows, found.pair], 1e-9 if X64 else 1e-3)
    assert_close(found.point_b, np.asarray(everything.point_b)[rows, found.pair], 1e-9 if X64 else 1e-3)
    assert found.pair.shape == (COUNT, k)


@pytest.mark.slow
def test_minimum_and_its_smooth_bound():
    model, q = robot("rby1a"), configurations("rby1a")
    least = batched(min_distance, "rby1a")(q)
    assert_close(least, distances("rby1a").min(axis=1))
    bound = jax.jit(jax.vmap(lambda q, t: smooth_min_distance(model, q, t), in_axes=(0, None)))
    for temperature in (1e-4, 1e-2, 1.0):
        smooth = bound(q, jnp.asarray(temperature))
        assert (smooth <= least).all()
        lowest = least - temperature * np.log(43)
        assert (smooth >= lowest - 1e-6 * np.abs(lowest)).all()
        if X64:
            from scipy.special import logsumexp

            assert_close(smooth, -temperature * logsumexp(-distances("rby1a") / temperature, axis=1), 1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences are taken in float64")
@pytest.mark.parametrize("name", [*slow("rby1a"), "panda_like"])
def test_gradients_match_finite_differences(name):
    model, q = robot(name), configurations(name)[:50]
    direction = jax.random.normal(jax.random.key(3), q.shape)

    def along(f):
        def value(t, q, d):
            return f(model, q + t * d)

        h = 1e-6
        exact = jax.jit(jax.vmap(lambda q, d: jax.jvp(lambda t: value(t, q, d), (0.0,), (1.0,))[1]))(q, direction)
        both = jax.jit(jax.vmap(lambda q, d: (value(h, q, d) - value(-h, q, d)) / (2 * h)))(q, direction)
        return np.asarray(exact), np.asarray(both)

    for f in (smooth_min_distance, signed_distances) if name == "panda_like" else (smooth_min_distance,):
        exact, difference = along(f)
        assert_close(exact, difference, 1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="compares rounding errors in float64")
def test_forward_mode_equals_reverse_mode_and_hessian_is_symmetric():
    model, q = robot("panda_like"), configurations("panda_like")[:50]

    def compiled(transform):
        return jax.jit(jax.vmap(transform(lambda q: smooth_min_distance(model, q, 0.02))))

    gradient = compiled(jax.grad)
    assert_close(compiled(jax.jacfwd)(q), gradient(q), 1e-12)
    hessian = compiled(jax.hessian)(q)
    assert_close(hessian, np.swapaxes(hessian, 1, 2), 1e-9)
    h = 1e-5
    step = h * np.eye(model.nq)[:, None]
    difference = np.stack([(gradient(q + s) - gradient(q - s)) / (2 * h) for s in step], axis=-1)
    error = np.abs(hessian - difference).max(axis=(1, 2)) / np.abs(difference).max(axis=(1, 2))
    assert np.quantile(error, 0.9) < 1e-6  # the others cross an end of a capsule within the step


@pytest.mark.slow
@pytest.mark.parametrize("name", [*slow("rby1a"), "two_link_arm"])
def test_derivatives_are_finite_at_the_zero_pose(name):
    # Arms and torso hang or stand parallel there.
    model = robot(name)
    q = jnp.zeros(model.nq)
    assert np.isfinite(jax.jit(jax.jacrev(lambda q: signed_distances(model, q)))(q)).all()
    assert np.isfinite(jax.jit(jax.jacfwd(lambda q: nearest(model, q, 1).point_a))(q)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda_like", "two_link_arm"])  # of 24 joints they take half a minute to compile
def test_second_derivatives_are_finite_at_the_zero_pose(name):
    model = robot(name)
    hessian = jax.jit(jax.hessian(lambda q: smooth_min_distance(model, q)))
    assert np.isfinite(hessian(jnp.zeros(model.nq))).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "f",
    [smooth_min_distance, lambda model, q: jnp.sum(capsule_distances(model, q).point_a)],
    ids=["smooth_min_distance", "points"],
)
def test_a_gradient_computes_once_what_is_shared(f):
    """Were the distances no kernel, XLA would compute them again for each coordinate: up to twenty times the time."""
    model = robots.rby1a()
    lowered = jax.jit(jax.vmap(jax.grad(f, argnums=1), (None, 0))).lower(model, jnp.zeros((8, model.nq)))
    assert arithmetic_in(compiled_text(lowered)) < 1.7 * arithmetic_in(lowered.as_text())


@pytest.mark.slow
def test_gradients_by_the_numbers_of_the_model():
    model = robot("two_link_arm")
    q = jnp.array([0.2, 0.7])
    g = jax.grad(lambda m: min_distance(m, q))(model)
    assert_close(g.capsule_radii, [-1.0, -1.0])
    assert np.isfinite(g.capsule_segments).all()
    assert np.abs(g.capsule_segments).max() > 0.1
    assert np.isfinite(g.geometry).all()


def test_jit_vmap_and_eager_agree_and_a_changed_number_traces_nothing():
    model, q = robot("two_link_arm"), jnp.array([[0.1, 0.9], [0.2, -1.1]])
    eager = np.stack([signed_distances(model, x) for x in q])

    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(model, q):
        return jax.vmap(signed_distances, in_axes=(None, 0))(model, q)

    assert_close(f(model, q), eager)
    import equinox as eqx

    thicker = eqx.tree_at(lambda m: m.capsule_radii, model, model.capsule_radii + 0.01)
    assert_close(f(thicker, q), eager - 0.02)
    last = jax.vmap(signed_distances, in_axes=(None, 1), out_axes=1)(model, q.T)
    assert_close(last, eager.T)


@pytest.mark.slow
def test_float32_in_float32_out():
    model = robot("two_link_arm")
    q = jnp.zeros(2, jnp.float32)
    assert signed_distances(model, q).dtype == jnp.float32
    assert smooth_min_distance(model, q).dtype == jnp.float32
    assert nearest(model, q, 1).point_a.dtype == jnp.float32
    assert jax.grad(min_distance, argnums=1)(model, q).dtype == jnp.float32


def test_nan_goes_through():
    model = robot("two_link_arm")
    q = jnp.array([0.1, jnp.nan])
    assert np.isnan(signed_distances(model, q)).all()
    assert np.isnan(min_distance(model, q))
    assert np.isnan(smooth_min_distance(model, q))


@pytest.mark.slow
def test_explicit_pairs():
    model = robot("rby1a")
    chosen = pairs(model, [("link_right_arm_5", "link_left_arm_5")])
    k = pairs(model).links.index(chosen.links[0])
    q = configurations("rby1a")[0]
    assert_close(signed_distances(model, q, chosen), distances("rby1a")[0, k : k + 1])
    assert_close(nearest(model, q, 1, chosen).distance, distances("rby1a")[0, k : k + 1])
    assert_close(min_distance(model, q, pairs=chosen), distances("rby1a")[0, k])


def test_wrong_arguments():
    model = robot("two_link_arm")
    q = jnp.zeros(2)
    with pytest.raises(ShapeError, match=r"q must have shape \(2,\)"):
        signed_distances(model, jnp.zeros(3))
    with pytest.raises(DtypeError, match="q must be an array of floats"):
        min_distance(model, jnp.zeros(2, int))
    with pytest.raises(DtypeError, match="model must be a Model"):
        untyped(signed_distances)(q, q)
    for k in (2, 0, np.int32(-1)):
        with pytest.raises(ArgumentError, match=f"k must be between 1 and 1, the number of pairs, got {k}"):
            nearest(model, q, k)  # type: ignore[arg-type]
    nearest(model, q, 1)  # to jit, True is the same as this 1
    for k in (1.0, True, np.True_, "1", None):
        with pytest.raises(DtypeError, match="k must be an integer, got "):
            nearest(model, q, k)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="k must be known while tracing"):
        jax.jit(nearest)(model, q, 1)
    with pytest.raises(ModelError, match="no collision shapes"):
        signed_distances(robot("pendulum"), jnp.zeros(1))
    with pytest.raises(ModelError, match="does not belong to model"):
        signed_distances(model, q, pairs(robot("rby1a")))
    with pytest.raises(ModelError, match="no pair of shapes"):
        min_distance(model, q, ShapePairs((), ()))
    with pytest.raises(ShapeError, match="temperature"):
        smooth_min_distance(model, q, jnp.ones(2))
    with pytest.raises(DtypeError, match="temperature"):
        smooth_min_distance(model, q, "warm")  # type: ignore[arg-type]
    for temperature in (0.0, -0.01, 0, jnp.asarray(-1.0), float("nan")):
        with pytest.raises(ArgumentError, match="temperature must be positive, got"):
            smooth_min_distance(model, q, temperature)


def test_k_is_any_integer_and_temperature_may_be_traced():
    model, q = robot("two_link_arm"), jnp.array([0.1, 0.9])
    want = nearest(model, q, 1)
    for k in (np.int64(1), np.uint8(1), jnp.asarray(1)):
        assert nearest(model, q, k).pair.tolist() == want.pair.tolist()  # type: ignore[arg-type]
    bounds = jax.vmap(lambda t: smooth_min_distance(model, q, t))(jnp.array([0.01, -1.0]))
    assert_close(bounds[0], min_distance(model, q))  # of one pair there is nothing to smooth
    assert_close(smooth_min_distance(model, q, 1), min_distance(model, q))
