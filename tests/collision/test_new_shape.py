"""A shape of one's own: a class of sizes, a class of parameters and a pair function, in two tables and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ModelError, RobotBuilder, build_model, from_mujoco, load_urdf_string, lock_joints, to_urdf
from rbydyn_jax.collision import (
    PAIR_FUNCTIONS,
    Witness,
    capsule_distances,
    min_distance,
    nearest,
    pairs,
    signed_distances,
)
from rbydyn_jax.collision.vectors import add_scaled, dot, sub
from rbydyn_jax.shapes import GEOMETRIES, CollisionGeometry, SizeReader
from rbydyn_jax.shapes.base import Vector
from rbydyn_jax.shapes.capsule import PlacedCapsules, segment_geometry
from rbydyn_jax.spatial.algebra import Transform, Vec3
from tests.helpers import assert_close, oracle


@dataclass(frozen=True, eq=False)
class HalfSpaceGeometry(CollisionGeometry):
    """All that is below the x-y plane."""

    tag = "half_space"
    mujoco = "plane"

    @classmethod
    def read(cls, element: SizeReader) -> HalfSpaceGeometry:
        return cls()

    @classmethod
    def from_mujoco(cls, size: np.ndarray) -> HalfSpaceGeometry:
        return cls()

    def on_link(self, origin: np.ndarray) -> HalfSpace:
        return HalfSpace(origin[:3, 3], origin[:3, 2])


class PlacedHalfSpaces(NamedTuple):
    point: Vector
    normal: Vector


class HalfSpace(NamedTuple):
    point: Any
    normal: Any

    kind = "half_space"
    points, directions = 1, 1

    def moved(self, row: int, pose: Transform) -> tuple:
        point, normal = (Vec3(*(x[row, k] for k in range(3))) for x in self)
        return *pose.apply(point), *pose.R.apply(normal)

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> PlacedHalfSpaces:
        px, py, pz, nx, ny, nz = moved
        return PlacedHalfSpaces((px, py, pz), (nx, ny, nz))

    def described(self) -> tuple[HalfSpaceGeometry, np.ndarray]:
        _, pose = segment_geometry(self.point + 0.5 * self.normal, self.point - 0.5 * self.normal, 0.0)
        return HalfSpaceGeometry(), pose

    def surface(self, pose: np.ndarray) -> np.ndarray:
        square = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        placed = pose @ self.described()[1]
        return (square @ placed[:3, :3].T + placed[:3, 3])[None]


def capsule_half_space(a: PlacedCapsules, b: PlacedHalfSpaces) -> Witness:
    """The end of the axis that is deeper decides."""

    def height(x: Vector) -> jax.Array:
        return dot(sub(x, b.point), b.normal)

    at_end = (height(a.end) < height(a.start)).astype(a.radius.dtype)
    deeper = add_scaled(a.start, at_end, sub(a.end, a.start))
    foot = add_scaled(deeper, -height(deeper), b.normal)
    return Witness(height(deeper) - a.radius, add_scaled(deeper, -a.radius, b.normal), foot, deeper, foot)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GEOMETRIES, "half_space", HalfSpaceGeometry)
    monkeypatch.setitem(PAIR_FUNCTIONS, ("capsule", "half_space"), capsule_half_space)


LINKS = [("rod", "plate"), ("plate", "post"), ("rod", "post")]


def robot(half_space: bool = True):
    """A rod that swings about y at a height of 1 m, over a plate that goes up and down, beside a post.

    The rod has a capsule from 0.1 to 0.5 m along it with the radius 0.05 and a ball of radius 0.02 at 0.6 m; the plate
    fills what is below 0.2 m under its link; the post is a lying capsule of radius 0.1 at a height of 0.5 m.
    """
    b = RobotBuilder("press").link("base").link("rod", 1.0, inertia=0.1).link("plate", 1.0, inertia=0.1).link("post")
    b.revolute("swing", "base", "rod", xyz=(0, 0, 1), axis=(0, 1, 0), lower=-1, upper=1)
    b.prismatic("lift", "base", "plate", axis=(0, 0, 1), lower=-1, upper=1)
    b.fixed("mount", "base", "post", xyz=(2, 0, 0.5), rpy=(0, np.pi / 2, 0))
    b.capsule("rod", 0.4, 0.05, xyz=(0, 0, -0.3)).capsule("rod", 0.0, 0.02, xyz=(0, 0, -0.6))
    if half_space:
        b.collision("plate", HalfSpaceGeometry(), xyz=(0.3, 0.1, -0.2), rpy=(0, 0, 0.4))
    return build_model(b.capsule("post", 0.2, 0.1).build_description())


def configurations() -> jax.Array:
    return jax.random.uniform(jax.random.key(0), (100, 2), minval=-1.0, maxval=1.0)


def expected(model, q: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """Distances of (capsule, plate), (ball, plate), (plate, post), and their derivatives by swing and lift."""
    swing, lift = (np.asarray(q)[:, k] for k in range(2))
    top = lift - 0.2
    d = [1 - 0.5 * np.cos(swing) - 0.05 - top, 1 - 0.6 * np.cos(swing) - 0.02 - top, 0.4 - top]
    zero, one = np.zeros_like(swing), np.ones_like(swing)
    slopes = [[0.5 * np.sin(swing), -one], [0.6 * np.sin(swing), -one], [zero, -one]]
    return np.stack(d, axis=1), np.moveaxis(np.array(slopes), 2, 0)


def places(model) -> tuple[list[int], list[int]]:
    """Of the pairs in `LINKS`, those with the plate and the others; they alternate."""
    links = pairs(model, LINKS).links
    with_plate = [k for k, names in enumerate(links) if "plate" in names]
    others = [k for k in range(len(links)) if k not in with_plate]
    assert links[0] == ("rod", "plate") and (with_plate, others) == ([0, 2, 4], [1, 3])
    return with_plate, others


@pytest.mark.slow
def test_distances_and_derivatives():
    model, q = robot(), configurations()
    chosen = pairs(model, LINKS)
    found = jax.jit(jax.vmap(lambda q: signed_distances(model, q, chosen)))(q)
    slopes = jax.jit(jax.vmap(jax.jacrev(lambda q: signed_distances(model, q, chosen))))(q)
    with_plate, others = places(model)
    distances, derivatives = expected(model, q)
    assert_close(found[:, with_plate], distances)
    assert_close(slopes[:, with_plate], derivatives)
    assert_close(jax.vmap(jax.jacfwd(lambda q: signed_distances(model, q, chosen)))(q), slopes)
    plain = robot(half_space=False)
    want = jax.vmap(lambda q: signed_distances(plain, q, pairs(plain, [("rod", "post")])))(q)
    assert_close(found[:, others], want)


@pytest.mark.slow
def test_witness_points_nearest_and_minimum():
    model, q = robot(), configurations()
    chosen = pairs(model, LINKS)
    every = jax.jit(jax.vmap(lambda q: capsule_distances(model, q, chosen)))(q)
    top = np.asarray(q)[:, 1] - 0.2
    assert_close(every.point_b[:, 0, 2], top)
    assert_close(every.point_a[:, 4, 2], top)  # the plate is the first of this pair
    assert_close(every.point_b[:, 4, 2], np.full(len(q), 0.4))
    gap = np.linalg.norm(every.point_a - every.point_b, axis=-1)
    assert_close(gap, np.abs(every.distance))
    order = np.argsort(np.asarray(every.distance), axis=1)
    for k in (1, 3, 5):
        some = jax.jit(jax.vmap(lambda q, k=k: nearest(model, q, k, chosen)))(q)
        assert_close(some.distance, np.take_along_axis(np.asarray(every.distance), order[:, :k], axis=1))
        picked = np.take_along_axis(np.asarray(every.point_a), np.asarray(some.pair)[:, :, None], axis=1)
        assert_close(some.point_a, picked)
    assert_close(jax.vmap(lambda q: min_distance(model, q, chosen))(q), every.distance.min(axis=1))


def test_its_parameters_are_leaves_of_the_model():
    model, q = robot(), jnp.array([0.3, 0.1])
    chosen = pairs(model, [("rod", "plate")])
    slopes = jax.grad(lambda m: signed_distances(m, q, chosen)[0])(model)
    assert_close(slopes.shapes["half_space"].point, [[0.0, 0.0, -1.0]])
    assert_close(slopes.capsule_radii, [-1.0, 0.0, 0.0])


@pytest.mark.ci
def test_it_is_written_read_locked_and_drawn():
    from rbydyn_jax.viz.robot import robot_surface

    model, q = robot(), configurations()[:10]

    def distances(model, q):
        return jax.vmap(lambda q: signed_distances(model, q, pairs(model, LINKS)))(q)

    want = distances(model, q)
    again = load_urdf_string(to_urdf(model))
    assert "<half_space/>" in to_urdf(model) and again.report == ()
    assert again.tree == model.tree
    assert_close(distances(again, q), want)
    locked = lock_joints(model, {"lift": 0.25})
    assert_close(distances(locked, q[:, :1]), distances(model, q.at[:, 1].set(0.25)))
    drawn = robot_surface(model, np.array([0.0, 0.5]), ["plate"])
    assert drawn.shape == (1, 4, 3)
    assert_close(drawn[..., 2], np.full((1, 4), 0.3))


def test_it_is_read_from_mujoco():
    mujoco = oracle("mujoco")
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1" pos="0 0 0.1"/>
      <body name="a" pos="0 0 1"><joint name="j" type="slide" axis="0 0 1"/><geom size="0.2"/></body>
    </worldbody></mujoco>"""
    model = from_mujoco(mujoco.MjModel.from_xml_string(text))
    assert model.report == ()
    assert_close(signed_distances(model, jnp.array([0.5]), pairs(model, by="masks")), [1.2])


def test_a_pair_without_function_is_named():
    b = RobotBuilder("two").link("a", 1.0, inertia=1.0).link("b", 1.0, inertia=1.0).revolute("j", "a", "b")
    b.collision("a", HalfSpaceGeometry(), coltype=1).collision("b", HalfSpaceGeometry(), colaffinity=1)
    model = build_model(b.build_description())
    with pytest.raises(ModelError, match=r"'half_space' and 'half_space'; known pairs: .*, capsule-half_space"):
        signed_distances(model, jnp.zeros(1))
