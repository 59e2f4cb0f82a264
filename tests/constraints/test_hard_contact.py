"""Hard contact and dry friction: rest, slide and fall of a box by closed forms, cones, derivatives, joints."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.constraints import Contact, LoopJoint, simulate
from rbydyn_jax.shapes import (
    BoxGeometry,
    CapsuleGeometry,
    ConvexHullGeometry,
    CylinderGeometry,
    Geometry,
    SphereGeometry,
)
from tests.collision.test_contact_points import SLOPES
from tests.helpers import X64, assert_close, normal, oracle

needs_x64 = pytest.mark.skipif(not X64, reason="the bounds are those of float64")
SIZE, ANGLE = np.array([0.2, 0.2, 0.1]), np.radians(20.0)
NORMAL = np.array([np.sin(ANGLE), 0.0, np.cos(ANGLE)])


def free_body(geometry: Geometry) -> rb.Model:
    """A body of 1 kg with the inertia of the box."""
    x, y, z = SIZE**2 / 12.0
    b = rb.RobotBuilder("free").link("w").link("body", 1.0, (0, 0, 0), (y + z, x + z, x + y))
    return rb.build_model(b.floating("free", "w", "body").collision("body", geometry))


BOX = free_body(BoxGeometry(SIZE))
ON_SLOPE = np.concatenate([[np.cos(ANGLE / 2), 0.0, np.sin(ANGLE / 2), 0.0], 0.05 * NORMAL])


def slope() -> collision.World:
    return collision.World(collision.half_space(jnp.zeros(3), jnp.asarray(NORMAL)))


@pytest.fixture(scope="module")
def moved():
    """The motion of the box on the slope for 1 s, by its friction and its first state."""

    def move(q, v, friction):
        return simulate(BOX, q, v, 1.0, 0.002, method="implicit", world=slope(), friction=friction)

    return jax.jit(move)


@needs_x64
@pytest.mark.slow
def test_a_box_rests_or_slides_as_it_must(moved):
    """At tan 20 = 0.364: at 0.5 it stays, at 0.2 it has g (sin - mu cos) from the first step on."""
    q, still = jnp.asarray(ON_SLOPE), jnp.zeros(6)
    rest = moved(q, still, 0.5)
    assert np.linalg.norm(rest.vs[-1]) < 1e-11  # 1e-8 mm/s
    assert np.linalg.norm(rest.qs[-1, 4:] - q[4:]) < 1e-6
    assert_close(rest.forces[-1].sum(axis=0), [0.0, 0.0, 9.81], 1e-9)
    slid = moved(q, still, 0.2)
    pull = 9.81 * (np.sin(ANGLE) - 0.2 * np.cos(ANGLE))
    way = 0.5 * pull * (1.0 + 0.002)  # of semi-implicit steps: dt^2 a (1 + 2 + ... + n)
    assert np.linalg.norm(slid.qs[-1, 4:] - q[4:]) == pytest.approx(way, rel=1e-6)
    pressed = np.asarray(slid.forces[1:]) @ NORMAL
    rubbed = np.linalg.norm(np.asarray(slid.forces[1:]) - pressed[..., None] * NORMAL, axis=-1)
    assert_close(rubbed, 0.2 * pressed, 1e-9)


@needs_x64
@pytest.mark.slow
def test_a_box_that_falls_comes_to_rest_without_bounce(moved):
    """It tumbles, its energy never grows, forces stay in their cones, and it ends flat on the slope."""
    motion = moved(jnp.asarray(ON_SLOPE).at[4:].add(0.1 * NORMAL), jnp.array([1.0, 2.0, 3.0, 0, 0, 0]), 0.6)
    energy = jax.jit(jax.vmap(lambda q, v: rb.kinetic_energy(BOX, q, v) + rb.potential_energy(BOX, q)))
    gained = np.diff(energy(motion.qs, motion.vs))
    assert gained.max() < 2e-3  # of free flight and of gyroscopic forces, which are first order in the step
    assert np.linalg.norm(motion.vs[-1]) < 1e-5
    heights = np.asarray(motion.qs[:, 4:]) @ NORMAL
    assert heights[-1] == pytest.approx(0.05, abs=1e-6)
    assert heights.min() > 0.05 - 1e-4
    forces = np.asarray(motion.forces)
    pressed = forces @ NORMAL
    assert (np.linalg.norm(forces - pressed[..., None] * NORMAL, axis=-1) <= 0.6 * pressed * (1 + 1e-9) + 1e-9).all()


@pytest.mark.slow
@needs_x64
def test_gradients_of_rollouts_with_contact():
    """100 steps that stick, slide, or slide and spin, in the velocity and the friction, against differences."""

    @jax.jit
    def loss(v, friction):
        motion = simulate(
            BOX, jnp.asarray(ON_SLOPE), v, 0.5, 0.005, method="implicit", world=slope(), friction=friction
        )
        return jnp.sum(motion.qs[-1, 4:] ** 2) + jnp.sum(motion.vs[-1] ** 2)

    slopes = jax.jit(jax.grad(loss, (0, 1)))
    along = jnp.array([0.0, 0.0, 0.4, 0.3, 0.8, 0.0]), jnp.array(0.3)  # in the plane: what lifts off is curved in um
    for v, friction in (([0, 0, 0, 0.3, 0.6, 0], 0.5), ([0, 0, 0, 0.1, 0.2, 0], 0.2), ([0, 0, 1.0, 0.5, 0.8, 0], 0.3)):
        at = jnp.array(v, float), jnp.array(friction)
        got = sum(jnp.vdot(g, d) for g, d in zip(slopes(*at), along, strict=True))
        ends = [loss(*jax.tree.map(lambda x, d, h=h: x + h * d, at, along)) for h in (1e-4, -1e-4)]
        assert_close(got, (ends[0] - ends[1]) / 2e-4, 1e-5)


@pytest.mark.slow
def test_contact_points_include_the_nearest_one():
    """The least distance of each pair is that of `world_distances`, and normals are of unit length."""
    pose = jnp.eye(4).at[:3, 3].set(jnp.array([0.1, -0.2, -0.4]))
    floor = collision.half_space(jnp.array([0.0, 0.0, -0.6]), jnp.array([0.1, 0.2, 1.0]))
    both = collision.World(floor, collision.box(pose, jnp.array([0.5, 0.8, 0.2])))
    keys = jax.random.split(jax.random.key(0), 100)
    for geometry, world in (
        (BoxGeometry(SIZE), both),
        (CapsuleGeometry(0.3, 0.05), collision.World(floor)),
        (CylinderGeometry(0.3, 0.1), collision.World(floor)),
    ):
        model = free_body(geometry)

        # Without optimizations the older emitters of XLA, which tests use on jax 0.10, take one entry from another row.
        @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
        @jax.vmap
        def found(key, model=model, world=world):
            q = rb.random_configuration(model, key)
            return collision.contact_points(model, q, world), collision.world_distances(model, q, world)

        points, nearest = found(keys)
        for column, k in enumerate(reversed(range(len(world)))):  # "box" comes before "half_space"
            mine = np.asarray(points.obstacle[0]) == k
            assert mine.sum() >= 2
            assert_close(points.distance[:, mine].min(axis=1), nearest[:, column], kind="solve")
        assert_close(np.linalg.norm(points.normal, axis=-1), np.ones(points.distance.shape), kind="solve")


@pytest.mark.ci
@needs_x64
@pytest.mark.parametrize("geometry", [BoxGeometry(SIZE), CapsuleGeometry(0.3, 0.05), CylinderGeometry(0.3, 0.1)])
def test_derivatives_of_contact_points_are_finite_where_corners_tie(geometry):
    """Flat or upright on a floor all corners and rim points are equally near; along z each comes down alike."""
    model, world = free_body(geometry), collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
    q = jnp.array([1.0, 0, 0, 0, 0, 0, 0.2])

    def distances(q):
        return collision.contact_points(model, q, world).distance

    first, second = jax.jit(lambda q: (jax.jacrev(distances)(q), jax.jacfwd(jax.jacrev(distances))(q)))(q)
    assert np.isfinite(second).all()
    assert_close(first[:, 4:], np.tile([0.0, 0.0, 1.0], (len(first), 1)))
    assert np.isfinite(first).all()


@pytest.mark.ci
@needs_x64
def test_dry_friction_of_joints():
    """A joint at rest stays below its friction, breaks away above it by (tau - f) / I, and comes to rest again."""
    model = rb.with_gravity(rb.with_friction(robots.pendulum(mass=2.0, length=0.5), 3.0), jnp.zeros(3))

    @jax.jit
    @jax.vmap
    def ends(tau, v):
        return simulate(model, jnp.zeros(1), v[None], 0.2, 0.002, method="implicit", control=lambda *_: tau[None])

    motion = ends(jnp.array([2.9, -2.9, 3.5, 0.0, 1.0]), jnp.array([0.0, 0.0, 0.0, 1.0, 0.4]))
    assert np.abs(motion.vs[:2]).max() < 1e-12
    assert float(motion.vs[2, -1, 0]) == pytest.approx(0.2 * 0.5 / 0.5, rel=1e-9)
    assert float(motion.vs[3, 50, 0]) == pytest.approx(1.0 - 0.1 * 3.0 / 0.5, rel=1e-9)
    assert abs(float(motion.vs[3, -1, 0])) < 1e-12
    assert abs(float(motion.vs[4, -1, 0])) < 1e-12


DTYPES = [jnp.float32, pytest.param(jnp.float64, marks=needs_x64)]


def on_floor(*bodies: tuple[float, Geometry, float]) -> tuple[rb.Model, np.ndarray]:
    """Free bodies of some masses and shapes, side by side, each at a height."""
    b, q = rb.RobotBuilder().link("w"), []
    for k, (mass, geometry, height) in enumerate(bodies):
        b = b.link(f"b{k}", mass, (0, 0, 0), 0.4 * mass * height**2).floating(f"f{k}", "w", f"b{k}")
        b = b.collision(f"b{k}", geometry)
        q += [1.0, 0.0, 0.0, 0.0, float(k), 0.0, height]
    return rb.build_model(b), np.array(q)


def after_a_second(model: rb.Model, q: jax.Array) -> jax.Array:
    """The configuration after 1 s on a floor, in steps of 5 ms."""
    floor = collision.World(collision.half_space(jnp.zeros(3, q.dtype), jnp.array([0.0, 0.0, 1.0], q.dtype)))
    v = jnp.zeros(model.nv, q.dtype)
    return simulate(model, q, v, 1.0, 0.005, method="implicit", world=floor).qs[-1]


def sinks(share: float) -> float:
    """Into the floor: a fifth of it, undone in a step of 5 ms, is the speed that the compliance of 1e-4 lets through.

    The force on each point would accelerate it, alone, by this share of g.
    """
    return 5.0 * 1e-4 * share * 9.81 * 0.005**2


@pytest.mark.ci
@pytest.mark.parametrize("dtype", DTYPES)
def test_bodies_of_any_size_rest_whether_the_model_is_traced_or_not(dtype):
    """A traced model may have dry friction, so that it has more rows: a steel ball of 9 mm, and cubes from 2 mm on."""
    cases: list[tuple[float, Geometry, float, float]] = [
        (0.003, SphereGeometry(0.0045), 0.0045, 1 / 2)
    ]  # at both ends of a capsule of no length
    for mass, h in ((1e-3, 0.005), (1e-4, 0.0023), (3e-5, 0.001), (1e3, 0.5)):
        cases.append((mass, BoxGeometry(np.full(3, 2.0 * h)), h, (1 + 2 / 0.4) / 4))  # 1/m + 2 h^2 / I at each corner
    precise = dtype == jnp.float64
    for mass, geometry, height, share in cases:
        model, start = on_floor((mass, geometry, height))
        q = jnp.asarray(start, dtype)
        for end in (after_a_second(model, q), jax.jit(after_a_second)(model, q)):
            moved = np.asarray(end - q, float)
            assert abs(moved[6] + sinks(share)) < (1e-3 if precise else 0.5) * sinks(share)
            assert np.abs(moved[:6]).max() < (1e-10 if precise else 1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_heavy_body_rests_beside_a_light_one(dtype):
    """A ball of 100 kg and one of 1 g, which do not know of each other."""
    model, start = on_floor((100.0, SphereGeometry(0.1), 0.1), (1e-3, SphereGeometry(0.02), 0.02))
    q = jnp.asarray(start, dtype)
    sunk = np.asarray(q - after_a_second(model, q), float)[[6, 13]]
    assert np.abs(sunk - sinks(1 / 2)).max() < (1e-3 if dtype == jnp.float64 else 0.5) * sinks(1 / 2)


@pytest.mark.ci
@pytest.mark.parametrize("dtype", DTYPES)
def test_light_joints_with_dry_friction_soften_nothing_else(dtype):
    """A rotor of 1e-6 kg m^2 on a body that rests on the floor, and beside a joint that sticks."""
    b = rb.RobotBuilder().link("w").link("body", 2.0, (0, 0, 0), 0.01).collision("body", SphereGeometry(0.1))
    b = b.prismatic("lift", "w", "body", axis=(0, 0, 1), lower=-5, upper=5, effort=1000)
    b = b.link("rotor", 0.01, (0, 0, 0), 1e-6)
    b = b.revolute("spin", "body", "rotor", axis=(0, 0, 1), lower=-9, upper=9, effort=10)
    model = rb.build_model(b)
    q = jnp.array([0.1, 0.0], dtype)
    smooth, rough = (after_a_second(rb.with_friction(model, jnp.array([0.0, f])), q) for f in (0.0, 0.01))
    assert abs(float(rough[0]) - 0.1) < 1e-7
    assert_close(rough[0], smooth[0], 1e-12 if dtype == jnp.float64 else 1e-7)

    held = rb.with_gravity(rb.with_friction(model, jnp.array([1.0, 0.01])), jnp.zeros(3))
    tau = jnp.array([0.9, 0.0], dtype)
    v = jnp.zeros(2, dtype)
    stuck = simulate(held, jnp.zeros(2, dtype), v, 0.1, 0.002, method="implicit", control=lambda *_: tau)
    assert abs(float(stuck.vs[-1, 0])) < 1e-6  # of 0.0009, to which the torque accelerates it in a step


@pytest.mark.slow
@needs_x64
def test_a_box_on_a_loop_and_on_default_soft_contact():
    """A loop joint to the world carries what the ground does not, and the default `Contact` rests at 2 ms."""
    loop = (LoopJoint("prismatic", None, "body", predecessor_pose=jnp.eye(4), axis=(0, 0, 1.0)),)
    floor = collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
    start = rb.neutral(BOX).at[6].set(0.06)
    move = lambda q: simulate(BOX, q, jnp.zeros(6), 0.4, 0.002, method="implicit", world=floor, loops=loop)  # noqa: E731
    held = jax.jit(move)(start)
    assert float(held.qs[-1, 6]) == pytest.approx(0.05, abs=1e-6)
    assert float(held.forces[-1, :, 2].sum()) == pytest.approx(9.81, rel=1e-6)

    corners = [(x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    contacts = tuple(Contact("body", corner, plane_normal=NORMAL) for corner in corners)
    soft = jax.jit(lambda q: simulate(BOX, q, jnp.zeros(6), 2.0, 0.002, contacts=contacts))(jnp.asarray(ON_SLOPE))
    assert np.linalg.norm(soft.vs[-1, 3:]) < 1e-6


@pytest.mark.ci
@needs_x64
def test_a_rod_on_a_hinge_above_the_floor_rests_on_its_end():
    """Of such a robot the columns of S are constant but for one entry: by the angle and the moment about the hinge."""
    b = rb.RobotBuilder("rod").link("w").link("rod", 1.0, (0.5, 0, 0), 0.01)
    b = b.revolute("hinge", "w", "rod", xyz=(0, 0, 0.3), axis=(0, 1, 0))
    model = rb.build_model(b.collision("rod", SphereGeometry(0.05), xyz=(1.0, 0, 0)))
    floor = collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
    motion = simulate(model, jnp.zeros(1), jnp.zeros(1), 1.0, 0.005, method="implicit", world=floor, friction=0.0)
    assert_close(motion.qs[-1], [np.arcsin(0.25)], 1e-6)
    assert_close(motion.forces[-1].sum(axis=0), [0.0, 0.0, 0.5 * 9.81], 1e-6)


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("obstacle", ["height_map", "distance_grid"])
def test_a_cylinder_rolls_down_a_field_as_down_a_plane(obstacle):
    """On its side, with 2/3 g sin from the first step on; its distance is that of the plane."""
    world = collision.World(SLOPES[obstacle](NORMAL))
    inertia = np.array([0.01, 0.01, 0.5 * 0.1**2])
    b = rb.RobotBuilder("roll").link("w").link("body", 1.0, (0, 0, 0), inertia)
    model = rb.build_model(b.floating("free", "w", "body").collision("body", CylinderGeometry(0.3, 0.1)))
    start = np.concatenate([[0.5**0.5, 0.5**0.5, 0, 0], 0.1 * NORMAL])  # its axis along y
    above = jnp.asarray(start).at[4:].add(0.1 * NORMAL)
    assert_close(collision.world_distances(model, above, world), [0.1], 1e-12)
    move = lambda q: simulate(model, q, jnp.zeros(6), 0.5, 0.005, method="implicit", world=world)  # noqa: E731
    way = np.asarray(jax.jit(move)(jnp.asarray(start)).qs[-1, 4:]) - start[4:]
    down = np.array([np.cos(ANGLE), 0.0, -np.sin(ANGLE)])
    assert_close(way, 0.5 * (2.0 / 3.0) * 9.81 * np.sin(ANGLE) * 0.5 * (0.5 + 0.005) * down, 1e-6)


def test_errors_say_what_is_wrong():
    q, v = jnp.asarray(ON_SLOPE), normal(0, 6)
    q = q.astype(v.dtype)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"world": slope()}, rb.ArgumentError, 'world needs method="implicit"'),
        ({"world": 1.0, "method": "implicit"}, rb.DtypeError, "world must be a collision.World"),
        ({"world": slope(), "method": "implicit", "friction": -1.0}, rb.ArgumentError, "friction must be"),
        ({"world": slope(), "method": "implicit", "friction": jnp.ones(2)}, rb.ShapeError, "friction must have shape"),
        ({"world": slope(), "method": "implicit", "contact_links": ("w",)}, rb.ModelError, "none of the links"),
        ({"world": slope(), "method": "implicit", "contact_links": "body"}, rb.DtypeError, "contact_links must be a"),
        ({"contact_links": ("block",)}, rb.ArgumentError, "contact_links needs a world"),
        ({"friction": -1.0}, rb.ArgumentError, "friction must be finite and not negative"),
        ({"friction": "smooth"}, rb.DtypeError, "friction"),
        ({"world": collision.World(points=jnp.zeros((1, 3))), "method": "implicit"}, rb.ModelError, "no obstacles"),
    ]
    for options, error, match in wrong:
        with pytest.raises(error, match=match):
            simulate(BOX, q, v, 0.1, 0.1, **options)
    bare = rb.build_model(rb.RobotBuilder().link("w").link("body", 2.0, inertia=0.1).floating("f", "w", "body"))
    with pytest.raises(rb.ModelError, match="none of the links has collision shapes"):
        simulate(bare, q, v, 0.1, 0.1, method="implicit", world=slope())


@needs_x64
@pytest.mark.slow
@pytest.mark.parametrize("obstacle", ["half_space", *SLOPES])
def test_a_convex_hull_rests_and_slides_as_a_box_does(obstacle):
    """A hull of the box's corners on a slope of each kind, by the closed forms of the box."""
    model = free_body(ConvexHullGeometry(0.5 * SIZE * np.array(list(itertools.product((-1, 1), repeat=3)))))
    world = slope() if obstacle == "half_space" else collision.World(SLOPES[obstacle](NORMAL))

    @jax.jit
    def move(friction):
        start = jnp.asarray(ON_SLOPE)
        return simulate(model, start, jnp.zeros(6), 0.5, 0.002, method="implicit", world=world, friction=friction)

    rest, slid = move(0.5), move(0.2)
    assert np.linalg.norm(rest.vs[-1]) < 1e-4  # the nearest point changes among four corners that are as near
    assert np.linalg.norm(rest.qs[-1, 4:] - ON_SLOPE[4:]) < 1e-6
    assert_close(rest.forces[-1].sum(axis=0), [0.0, 0.0, 9.81], 1e-3)
    pull = 9.81 * (np.sin(ANGLE) - 0.2 * np.cos(ANGLE))
    way = 0.5 * pull * (0.5**2 + 0.5 * 0.002)  # of semi-implicit steps
    assert np.linalg.norm(slid.qs[-1, 4:] - ON_SLOPE[4:]) == pytest.approx(way, rel=1e-6)
    pressed = np.asarray(slid.forces[1:]) @ NORMAL
    rubbed = np.linalg.norm(np.asarray(slid.forces[1:]) - pressed[..., None] * NORMAL, axis=-1)
    assert_close(rubbed, 0.2 * pressed, 1e-6)


@needs_x64
@pytest.mark.slow
def test_a_ball_rolls_on_and_slips_until_it_rolls():
    """No energy is gained; a ball that does not turn at first loses 2/7 of its speed and of its energy."""
    radius, speed = 0.1, 0.9
    b = rb.RobotBuilder("ball").link("w").link("body", 1.0, (0, 0, 0), (0.4 * radius**2,) * 3)
    model = rb.build_model(b.floating("free", "w", "body").collision("body", CapsuleGeometry(0.0, radius)))
    world = collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))

    @jax.jit
    def move(turning):
        v = jnp.array([0.0, 0.0, 0.0, speed, 0.0, 0.0]).at[1].set(turning)
        q = jnp.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, radius])
        motion = simulate(model, q, v, 1.0, 0.002, method="implicit", world=world, friction=0.5)
        energy = lambda q, v: rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)  # noqa: E731
        return motion, jax.vmap(energy)(motion.qs, motion.vs)

    rolled, energies = move(speed / radius)
    assert np.diff(energies).max() < 1e-12
    assert energies[0] - energies[-1] < 1e-6
    assert_close(rolled.qs[-1, 4:], [speed, 0.0, radius], 1e-6)
    slipped, energies = move(0.0)
    assert np.diff(energies).max() < 1e-12
    assert_close(np.linalg.norm(slipped.vs[-1, 3:]), 5 / 7 * speed, 1e-9)
    assert_close(slipped.vs[-1, 1], 5 / 7 * speed / radius, 1e-9)
    assert_close(energies[0] - energies[-1], 0.5 * speed**2 * 2 / 7, 1e-5)


@needs_x64
@pytest.mark.slow
def test_a_ball_on_a_height_map_rolls_as_in_mujoco():
    """Through a shallow bowl of 0.1 m triangles, whose edges cost both a little energy."""
    mujoco = oracle("mujoco")
    radius, half, count, dt = 0.1, 2.0, 41, 0.0005
    x = np.linspace(-half, half, count)
    heights = 0.075 * x[:, None] ** 2 + 0.05 * x[None] ** 2
    bowl = collision.height_map(jnp.asarray(heights), x[1] - x[0], jnp.eye(4).at[:2, 3].set(-half))
    b = rb.RobotBuilder("ball").link("w").link("body", 1.0, (0, 0, 0), (0.4 * radius**2,) * 3)
    model = rb.build_model(b.floating("free", "w", "body").collision("body", CapsuleGeometry(0.0, radius)))
    begin = [-1.0, 0.0, 0.175]

    @jax.jit
    def move(world):
        q = jnp.array([1.0, 0.0, 0.0, 0.0, *begin])
        return simulate(model, q, jnp.zeros(6), 1.0, dt, method="implicit", world=world).qs[:, 4:]

    mine = np.asarray(move(collision.World(bowl)))
    text = f"""<mujoco><option timestep="{dt}" integrator="implicitfast"/>
      <asset><hfield name="h" nrow="{count}" ncol="{count}" size="{half} {half} {heights.max()} 1"/></asset>
      <worldbody><geom type="hfield" hfield="h" friction="0.8 0 0" solref="0.005 1"/>
      <body pos="{begin[0]} {begin[1]} {begin[2]}"><freejoint/>
      <geom type="sphere" size="{radius}" mass="1" friction="0.8 0 0" solref="0.005 1"/></body></worldbody></mujoco>"""
    there = mujoco.MjModel.from_xml_string(text)
    there.hfield_data[:] = (heights.T / heights.max()).ravel()
    data = mujoco.MjData(there)
    theirs = []
    for _ in mine:
        theirs.append(data.qpos[:3].copy())
        mujoco.mj_step(there, data)
    assert theirs[-1][0] > -0.55  # of -1 at first
    assert np.abs(mine - theirs).max() < 0.01
