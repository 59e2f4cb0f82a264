"""Derivatives of distances by the configuration, on random trees with shapes of all kinds: twists and wrenches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import Model, build_model, integrate, neutral, robots, with_traversal
from rbydyn_jax.collision import (
    World,
    box,
    capsule,
    convex_hull,
    cylinder,
    half_space,
    pairs,
    signed_distances,
    smooth_min_distance,
    sphere,
    world_distances,
)
from rbydyn_jax.collision.world import clearances
from rbydyn_jax.io.description import CollisionDescription, LinkDescription
from rbydyn_jax.model.tree import Traversal
from rbydyn_jax.shapes import BoxGeometry, CapsuleGeometry, ConvexHullGeometry, CylinderGeometry
from rbydyn_jax.testing import random_description, random_transform
from rbydyn_jax.xla.transpose import values_and_pulls
from tests.helpers import X64, arithmetic_in, assert_close, normal

JOINTS = ("floating", "revolute", "prismatic", "planar", "spherical", "revolute", "screw", "fixed")
CORNERS = np.array([[0.2, 0.0, 0.1], [-0.1, 0.1, 0.0], [0.0, -0.2, 0.05], [0.05, 0.05, -0.2], [0.1, 0.1, 0.15]])
SHAPES = {
    "capsule": CapsuleGeometry(0.4, 0.06),
    "box": BoxGeometry(np.array([0.3, 0.2, 0.1])),
    "cylinder": CylinderGeometry(0.3, 0.1),
    "convex_hull": ConvexHullGeometry(CORNERS),
}


def tree(kinds: Sequence[str], traversal: Traversal = "auto", joints: Sequence[str] = JOINTS) -> Model:
    """A random tree with such joints, of which two follow others if they are of all kinds, with shapes in turn."""
    robot = random_description(3, joints, len(joints), mimics=2 if joints is JOINTS else 0)

    def with_shape(i: int) -> LinkDescription:
        shape = CollisionDescription(SHAPES[kinds[i % len(kinds)]], random_transform(i), "", 0, 0)
        return dataclasses.replace(robot.links[i], collisions=(shape,))

    links = tuple(map(with_shape, range(len(robot.links))))
    return with_traversal(build_model(dataclasses.replace(robot, links=links)), traversal)


def states(model: Model, count: int = 5) -> tuple[jax.Array, jax.Array]:
    q = jax.vmap(lambda v: integrate(model, neutral(model), v))(normal(1, count, model.nv))
    return q, normal(2, count, model.nv)


def world(kinds: Sequence[str]) -> World:
    pose = jnp.asarray(random_transform(11), normal(0, 1).dtype)
    of_kind = {
        "capsule": capsule(jnp.array([-0.5, 0.1, 0.4]), jnp.array([-0.4, 0.5, 0.9]), 0.07),
        "box": box(pose, jnp.array([0.4, 0.2, 0.3])),
        "cylinder": cylinder(pose, length=0.3, radius=0.1),
        "convex_hull": convex_hull(CORNERS, pose),
    }
    floor = half_space(jnp.array([0.0, 0.0, -0.5]), jnp.array([0.1, 0.2, 3.0]))
    return World(floor, sphere(jnp.array([0.3, 0.1, 0.9]), 0.1), *(of_kind[kind] for kind in kinds))


def check(model: Model, distances: Callable[[jax.Array], jax.Array]) -> None:
    """Along random velocities: the rate, the matrix and its transpose against differences of the distances."""
    q, v = states(model)

    def after(q, dq):
        return distances(integrate(model, q, dq))

    still = jnp.zeros_like(v[0])
    matrix = jax.jit(jax.vmap(jax.jacrev(after, 1), (0, None)))(q, still)
    rates = jax.jit(jax.vmap(lambda q, v: jax.jvp(lambda v: after(q, v), (still,), (v,))[1]))(q, v)
    assert_close(jnp.einsum("bij,bj->bi", matrix, v), rates, kind="solve")
    weights = normal(3, *rates.shape)
    pulled = jax.jit(jax.vmap(lambda q, w: jax.vjp(lambda v: after(q, v), still)[1](w)[0]))(q, weights)
    assert_close(pulled, jnp.einsum("bij,bi->bj", matrix, weights), kind="solve")
    if X64:
        moved = jax.jit(jax.vmap(lambda q, v, h: after(q, h * v), (0, 0, None)))
        differences = (moved(q, v, 1e-6) - moved(q, v, -1e-6)) / 2e-6
        assert_close(rates, differences, kind="difference")


@pytest.mark.parametrize(
    "traversal", [pytest.param("unrolled", marks=pytest.mark.ci), pytest.param("scanned", marks=pytest.mark.slow)]
)
def test_rates_of_distances_between_links(traversal):
    model = tree(["capsule"], traversal)
    check(model, lambda q: signed_distances(model, q))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("capsule", "box"), ("capsule", "cylinder"), ("convex_hull", "box")])
def test_rates_of_distances_from_links_and_a_world(kinds):
    model, around = tree(kinds), world(kinds)
    check(model, lambda q: jnp.concatenate([signed_distances(model, q), world_distances(model, q, around)]))


@pytest.mark.slow
def test_what_changes_with_the_world_too_is_the_sum():
    model, around = tree(["capsule", "box"]), world(["box"])
    (q, *_), _ = states(model)
    by_q = normal(5, model.nq)
    by_world = jax.tree.map(lambda x: 0.1 * normal(x.size, *x.shape), around)
    still = jax.tree.map(jnp.zeros_like, around)

    @jax.jit
    def rate(by_q, by_world):
        return jax.jvp(lambda q, world: world_distances(model, q, world), (q, around), (by_q, by_world))[1]

    alone = jax.jit(lambda t: jax.jvp(lambda q: world_distances(model, q, around), (q,), (t,))[1])(by_q)
    assert_close(rate(by_q, still), alone, kind="solve")
    assert_close(rate(by_q, by_world), alone + rate(0.0 * by_q, by_world), kind="solve")


def test_a_gradient_takes_the_distances_once_and_little_more():
    model = robots.rby1a()
    q = jnp.zeros(model.nq)

    def arithmetic(f) -> int:
        return arithmetic_in(jax.jit(f).lower(q).as_text())

    value = arithmetic(lambda q: smooth_min_distance(model, q))
    chosen = pairs(model)
    assert arithmetic(jax.grad(lambda q: smooth_min_distance(model, q))) < 3 * value
    assert arithmetic(jax.jacrev(lambda q: signed_distances(model, q, chosen))) < 3 * value


@pytest.mark.parametrize(
    ("kinds", "cloud"),
    [
        pytest.param(("capsule",), False, marks=pytest.mark.ci),
        pytest.param(("capsule",), True, marks=pytest.mark.slow),
        pytest.param(("box", "capsule"), False, marks=pytest.mark.slow),
        pytest.param(("convex_hull", "cylinder"), False, marks=pytest.mark.slow),
    ],
)
def test_distances_from_itself_and_from_a_world_in_one_program(kinds, cloud):
    """Against those of the two functions, which have a program for each part, with gradients."""
    model, around = tree(kinds, joints=("revolute", "prismatic", "spherical")), world(kinds[::-1])
    chosen = pairs(model)
    if cloud:
        around = World(sphere(jnp.array([0.3, 0.1, 0.9]), 0.1), points=normal(4, 3, 3), point_radius=0.01)
    q, _ = states(model, 2)

    def apart(q):
        return signed_distances(model, q, chosen), world_distances(model, q, around)

    def together(q):
        return clearances(model, q, around, chosen)

    weights = [normal(k, len(x)) for k, x in enumerate(jax.eval_shape(lambda q: apart(q), q[0]))]

    def weighed(f):
        def of_both(q):
            return sum(jnp.vdot(w, d) for w, d in zip(weights, f(q), strict=True))

        return jax.jit(jax.vmap(lambda q: (f(q), jax.grad(of_both)(q))))(q)

    (found, gradient), (wanted, wanted_gradient) = weighed(together), weighed(apart)
    for d, expected in zip(found, wanted, strict=True):
        assert_close(d, expected)
    assert_close(gradient, wanted_gradient, kind="solve")
    _, pulls = values_and_pulls(together, q[0])
    each = sum(pull(w) for pull, w in zip(pulls, weights, strict=True))
    assert_close(each, wanted_gradient[0], kind="solve")


@pytest.mark.ci
def test_one_program_has_the_code_of_two_kinds_once():
    model, around, chosen = tree(["box", "capsule"]), world(["box", "capsule"]), pairs(tree(["box", "capsule"]))
    q, _ = states(model, 64)

    def size(f) -> int:
        return jax.jit(jax.vmap(f)).lower(q).as_text().count(" = ")

    own = size(lambda q: signed_distances(model, q, chosen))
    others = size(lambda q: world_distances(model, q, around))
    assert size(lambda q: clearances(model, q, around, chosen)) < 0.7 * (own + others)
