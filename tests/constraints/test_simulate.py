"""Motion in time: conserved quantities, order of convergence, bouncing, sliding, and loops that stay closed."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import Baumgarte, Contact, close_loops, impulse, simulate, state_derivative
from rbydyn_jax.constraints.integrators import RUNGE_KUTTA_4, munthe_kaas, semi_implicit_euler
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal

from .mechanisms import COUPLER, CRANK, GROUND, ROCKER, falling_ball, four_bar

needs_x64 = pytest.mark.skipif(not X64, reason="the bounds are those of float64")


def _energies(model, motion):
    both = lambda q, v: rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)  # noqa: E731
    return np.asarray(jax.jit(jax.vmap(both))(motion.qs, motion.vs))


@pytest.mark.float32
@pytest.mark.parametrize("method", ["semi_implicit_euler", "runge_kutta_4"])
def test_times_and_shapes(method):
    motion = simulate(robots.double_pendulum(), jnp.ones(2), jnp.zeros(2), 0.1, 0.01, method=method)
    assert motion.qs.shape == motion.vs.shape == (11, 2)
    assert_close(motion.ts, 0.01 * np.arange(11))
    assert motion.qs[0].tolist() == [1.0, 1.0]


@pytest.mark.slow
@needs_x64
def test_order_of_convergence():
    """On a tree with every curved type of joint, against steps eight times as short."""
    model = random_tree(6, ("mrp_floating", "planar", "spherical"), 3, armature=False)
    q, v = rb.random_configuration(model, jax.random.key(0)), normal(1, model.nv)

    def field(t, state):
        return rb.aba(model, state[0], state[1], jnp.sin(9 * t) * jnp.ones_like(v)), state[2]

    steps = [semi_implicit_euler, functools.partial(munthe_kaas, RUNGE_KUTTA_4)]
    advance = jax.jit(lambda t, states, dt: [f(model, field, t, s, dt) for f, s in zip(steps, states, strict=True)])

    def ends(count):
        states = [(q, v, jnp.zeros(0))] * 2
        for k in range(count):
            states = advance(jnp.array(0.2 * k / count), states, jnp.array(0.2 / count))
        return [np.concatenate([np.asarray(rb.fk(model, q)).ravel(), v]) for q, v, _ in states]

    results = zip(ends(10), ends(20), ends(160), (1, 4), strict=True)
    for coarse, fine, exact, order in results:
        # The reference is itself off by 1 / 8^order of the finer error.
        want = (2**order - 1 / 8**order) / (1 - 1 / 8**order)
        assert np.linalg.norm(coarse - exact) / np.linalg.norm(fine - exact) == pytest.approx(want, rel=0.2)


@needs_x64
def test_energy_of_an_acrobot():
    """P24: a drift below 1e-3 J in 0.1 s with steps of 0.01 s."""
    model = robots.double_pendulum()
    motion = simulate(model, jnp.array([0.3, -0.7]), jnp.array([0.5, 1.1]), 0.1, 0.01)
    assert np.ptp(_energies(model, motion)) < 1e-5


@pytest.mark.slow
@needs_x64
def test_a_free_body_keeps_its_momentum_and_energy():
    """A tumbling body, in both of its coordinates, which also have to agree."""
    b = rb.RobotBuilder().link("w")
    kinds = {"a": "floating", "b": "mrp_floating"}
    for name, kind in kinds.items():
        b.link(name, 2.0, (0.1, -0.2, 0.05), (0.02, 0.05, 0.06)).joint(kind, f"free_{name}", "w", name)
    model = rb.with_gravity(rb.build_model(b), jnp.zeros(3))
    v = jnp.tile(jnp.array([3.0, 5.0, -4.0, 0.3, 0.2, 0.1]), 2)
    motion = jax.jit(lambda v: simulate(model, rb.neutral(model), v, 2.0, 0.002))(v)
    momenta = jax.vmap(lambda q, v: rb.momentum(model, q, v))(motion.qs, motion.vs)
    assert_close(momenta, np.tile(momenta[0], (1001, 1)), 1e-8)
    assert np.ptp(_energies(model, motion)) < 1e-8
    poses = rb.fk(model, motion.qs[-1])
    assert_close(poses[model.link_index("b")], poses[model.link_index("a")], 1e-8)
    sigma = np.asarray(motion.qs[:, 7:10])  # it turned more than once, and the parameters never grew
    assert np.linalg.norm(sigma, axis=1).max() <= 1.0
    assert np.linalg.norm(np.diff(sigma, axis=0), axis=1).max() > 1.0


@pytest.mark.slow
@needs_x64
@pytest.mark.parametrize("method", ["semi_implicit_euler", "implicit"])
def test_free_bodies_turn_and_fly_straight(method):
    """Balls on every joint that turns and slides, and a disc in a plane; Runge-Kutta has them straight to its order."""
    b = rb.RobotBuilder().link("w").link("disc", 1.0, inertia=0.004).planar("plane", "w", "disc", axis=(0, 0.6, 0.8))
    for kind in ("floating", "mrp_floating"):
        b.link(kind, 1.0, inertia=0.004).joint(kind, f"free_{kind}", "w", kind)
    model = rb.with_gravity(rb.build_model(b), jnp.zeros(3))
    v = jnp.array([0.5, -0.3, 7.0, *[3.0, 9.0, -2.0, 0.9, 0.2, 0.1] * 2])
    motion = jax.jit(lambda v: simulate(model, rb.neutral(model), v, 0.5, 0.01, method=method))(v)
    assert_close(_energies(model, motion), np.full(51, _energies(model, motion)[0]), 1e-12)
    ends = rb.fk(model, motion.qs[-1])[1:, :3, 3]
    assert_close(ends[1:], np.tile([0.45, 0.1, 0.05], (2, 1)), 1e-12)
    start = rb.link_velocity(model, motion.qs[0], v, "disc")[3:]
    assert_close(ends[0], 0.5 * start, 1e-12)


@pytest.mark.slow
def test_a_ball_joint_swings_without_becoming_nan():
    """P26: a pendulum on a ball joint, let go from rest in its neutral position and from aside."""
    b = rb.RobotBuilder().link("w").link("bob", 1.0, (0, 0, -0.5), 0.01)
    model = rb.build_model(b.spherical("ball", "w", "bob"))
    start = jnp.stack([rb.neutral(model), rb.random_configuration(model, jax.random.key(0))])
    motion = jax.jit(jax.vmap(lambda q: simulate(model, q, jnp.zeros(3), 1.0, 0.01)))(start)
    assert np.isfinite(motion.qs).all() and np.isfinite(motion.vs).all()
    assert_close(np.linalg.norm(motion.qs, axis=-1), np.ones((2, 101)))


@pytest.fixture(scope="module")
def linkage():
    """The four-bar linkage, a closed state of it, and its motion for 3 s by the gains of the stabilization."""
    model, loop = four_bar()
    q = close_loops(model, jnp.array([0.9, -0.5, 1.2]), (loop,)).q
    v = impulse(model, q, jnp.array([1.0, 0.0, 0.0]), (loop,))
    move = jax.jit(lambda q, v, gains: simulate(model, q, v, 3.0, 1e-3, loops=(loop,), stabilization=gains))
    return model, q, v, move


@pytest.mark.slow
@needs_x64
def test_a_four_bar_linkage_keeps_its_energy_and_its_loop(linkage):
    """P25: without stabilization, energy within 1e-8 J and the gap within 1e-10 m after 1 s of steps of 1 ms."""
    model, q, v, move = linkage
    motion = move(q, v, Baumgarte(0.0, 0.0, 0.0, 0.0))
    assert np.ptp(_energies(model, motion)[:1001]) < 1e-8
    assert _gap(motion.qs[1000]) < 1e-10


@pytest.mark.slow
@needs_x64
def test_stabilization_closes_an_open_four_bar_linkage(linkage):
    """P25: with more than 1 cm of gap at first, it is closed after 2 s and loses no energy from then on."""
    model, q, v, move = linkage
    q = q + jnp.array([0.0, 0.03, 0.0])
    assert _gap(q) > 1e-2
    motion = move(q, 0 * v, Baumgarte())
    assert _gap(motion.qs[2000]) < 1e-5
    assert np.ptp(_energies(model, motion)[2000:]) < 1e-5


def _gap(q):
    """The distance of the ends of coupler and rocker, by trigonometry."""
    a, b, d = np.asarray(q, float)
    end = CRANK * np.array([np.cos(a), -np.sin(a)]) + COUPLER * np.array([np.cos(a + b), -np.sin(a + b)])
    return np.linalg.norm(end - np.array([GROUND + ROCKER * np.cos(d), -ROCKER * np.sin(d)]))


@pytest.mark.slow
@needs_x64
def test_an_elastic_ball_bounces_with_its_energy():
    """P24: without dissipation more than three bounces, energy within 1 %."""
    ball = falling_ball()
    contact = (Contact("ball", dissipation=0.0, friction=0.0),)
    start = rb.neutral(ball).at[6].set(0.1)
    motion = jax.jit(lambda q: simulate(ball, q, jnp.zeros(6), 1.2, 2e-4, contacts=contact))(start)
    height, energy = np.asarray(motion.qs[:, 6]), _energies(ball, motion)
    bounces = ((height[1:] <= 0) & (height[:-1] > 0)).sum()
    assert bounces > 3
    flying = height > 0
    assert np.abs(energy[flying] / energy[0] - 1).max() < 1e-2


@pytest.mark.slow
@needs_x64
def test_a_block_on_an_inclined_plane():
    """P24: on a slope of 0.5 rad it sticks for mu = tan + 0.01 and slips for tan - 0.01, whatever other planes there
    are."""
    angle, point = 0.5, falling_ball()
    slope = jnp.array([np.sin(angle), 0.0, np.cos(angle)])
    # Pressed in as deep as it rests, the friction's spring not yet loaded.
    weight = 0.3 * 9.81 * np.cos(angle)
    start = rb.neutral(point).at[4:].set(-((weight / 5e4) ** (2 / 3)) * slope)

    @jax.jit
    @jax.vmap
    def move(friction):
        contacts = Contact("ball", plane_normal=slope, friction=friction), Contact("ball", plane_point=(0, 0, -100.0))
        return simulate(point, start, jnp.zeros(6), 1.5, 1e-3, contacts=contacts)

    frictions = np.tan(angle) + np.array([0.01, -0.01])
    motion = move(frictions)
    stuck, slipped = np.linalg.norm(np.asarray(motion.qs[:, -1, 4:] - motion.qs[:, 500, 4:]), axis=1)
    assert stuck < 1e-4
    assert slipped > 5e-2
    # It is accelerated by what the friction at its limit leaves of gravity along the slope.
    pull = 9.81 * (np.sin(angle) - frictions[1] * np.cos(angle))
    gained = np.linalg.norm(np.asarray(motion.vs[1, 1500, 3:] - motion.vs[1, 500, 3:]))
    assert gained == pytest.approx(pull * 1.0, rel=1e-3)


@pytest.mark.slow
def test_bristles_stand_up_again_after_the_touch():
    """A point that is dragged over the ground and lifted off keeps nothing of it."""
    ball = falling_ball()
    contacts = (Contact("ball", dissipation=0.2),)  # with the default one, what leaves so fast is not held at all
    start = rb.neutral(ball).at[6].set(-1e-3)
    move = jax.jit(lambda q, v: simulate(ball, q, v, 0.02, 5e-4, contacts=contacts))
    motion = move(start, jnp.array([0, 0, 0, 0.2, 0, 0.5]))
    touching = np.asarray(motion.qs[1:, 6] < 0)
    assert touching.any() and not touching.all()
    assert np.abs(np.asarray(motion.bristles[1:])[touching]).max() > 0
    assert not np.asarray(motion.bristles[1:])[~touching].any()


@pytest.mark.slow
def test_control_sees_time_and_state_and_gradients_go_through():
    model = robots.pendulum(mass=2.0, length=0.5)

    def end(gain):
        control = lambda t, q, v: -gain * q + rb.damping_forces(model, v)  # noqa: E731
        return simulate(model, jnp.array([0.4]), jnp.zeros(1), 0.5, 0.02, control=control).qs[-1, 0]

    gain = jnp.array(3.0)
    slope = jax.jit(jax.grad(end))(gain)
    assert_close(slope, jax.jit(jax.jacfwd(end))(gain), kind="solve")
    if X64:
        h = 1e-5
        assert_close(slope, (end(gain + h) - end(gain - h)) / (2 * h), kind="difference")


@pytest.mark.slow
def test_state_derivative_is_rate_and_acceleration():
    model = random_tree(6, ("floating", "revolute"), 2)
    q, v, tau = rb.random_configuration(model, jax.random.key(0)), normal(1, model.nv), normal(2, model.nv)
    got = state_derivative(model, jnp.concatenate([q, v]), tau)
    assert_close(got[: model.nq], rb.qdot_from_v(model, q, v))
    assert_close(rb.rnea(model, q, v, got[model.nq :]), tau, kind="solve", scale=100.0)
    with pytest.raises(rb.ShapeError, match="x must have shape"):
        state_derivative(model, q, tau)


def test_errors_say_what_is_wrong():
    model, q = robots.pendulum(), jnp.zeros(1)
    with pytest.raises(rb.ArgumentError, match="method must be one of"):
        simulate(model, q, q, 1.0, 0.1, method="rk4")  # type: ignore[arg-type]
    for duration, dt in ((0.0, 0.1), (0.06, 0.1), (1.0, 0.0), (1.0, -0.1)):
        with pytest.raises(rb.ArgumentError, match="duration must be at least dt"):
            simulate(model, q, q, duration, dt)
    assert len(simulate(model, q, q, 0.3 - 0.2, 0.1).ts) == 2  # the difference is less than 0.1, by rounding
    with pytest.raises(rb.ShapeError, match=r"control\(t, q, v\)"):
        simulate(model, q, q, 1.0, 0.1, control=lambda t, q, v: jnp.zeros(2))


@pytest.mark.parametrize("options", [{}, {"method": "implicit"}, {"contacts": (Contact("tool"),)}])
def test_without_functions_it_is_compiled_once(options):
    model = robots.two_link_arm()
    simulate(model, jnp.zeros(2), jnp.zeros(2), 0.1, 0.01, **options)
    with rb.no_recompile():
        simulate(model, jnp.ones(2), jnp.ones(2), 0.1, 0.01, **options)


def test_what_a_control_closes_over_is_read_at_each_call():
    model, gain = robots.two_link_arm(), [0.0]

    def control(t, q, v):
        return gain[0] * jnp.ones(2)

    def end():
        return np.asarray(simulate(model, jnp.zeros(2), jnp.zeros(2), 0.1, 0.01, control=control).qs[-1])

    still = end()
    gain[0] = 1.0
    assert np.abs(end() - still).max() > 1e-3
