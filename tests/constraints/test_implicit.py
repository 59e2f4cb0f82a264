"""Implicit steps: MuJoCo's `implicitfast`, the scalar formula, gains that no explicit method bears, and derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import Servo, Stops, close_loops, simulate
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle

from .mechanisms import four_bar

needs_x64 = pytest.mark.skipif(not X64, reason="the bounds are those of float64")
ARM = robots.two_link_arm()
GAINS = {"stiffness": 400.0, "damping": 40.0}


@pytest.mark.ci
@needs_x64
def test_a_step_is_that_of_mujoco():
    """One step of `implicitfast` with damped joints and actuators with velocity feedback."""
    mujoco = oracle("mujoco")
    from rbydyn_jax.engines.mujoco import mujoco_model

    dt = 0.005
    model = random_tree(5, ("revolute", "prismatic", "spherical"), 4)
    damping, gain = jnp.abs(normal(0, model.nv)), 5.0 * jnp.abs(normal(1, model.nv))
    damping = jnp.concatenate(  # MuJoCo has one number for each joint
        [jnp.full(s.stop - s.start, damping[s.start]) for s in model.tree.v_slices]
    )
    model = rb.with_friction(rb.with_damping(model, damping), 0.0)  # MuJoCo softens dry friction
    q, v, tau = rb.random_configuration(model, jax.random.key(0)), normal(2, model.nv), normal(3, model.nv)
    servo = Servo(q, 0.0, gain)
    motion = jax.jit(lambda q, v: simulate(model, q, v, dt, dt, method="implicit", servo=servo, control=lambda *_: tau))
    got = motion(q, v).vs[-1]

    twin = mujoco_model(model)
    twin.model.opt.timestep, twin.model.opt.integrator = dt, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    where = np.argmax(np.abs(twin.velocity_map(q)), axis=0)
    twin.model.dof_damping[where] = np.asarray(damping + gain)  # what is linear in v counts together
    twin.data.qpos[:], twin.data.qvel[where] = twin.q(q), np.asarray(v)
    twin.data.qfrc_applied[where] = np.asarray(tau)
    mujoco.mj_step(twin.model, twin.data)
    assert_close(got, twin.data.qvel[where], 1e-9)


@pytest.mark.ci
@needs_x64
def test_a_step_is_the_closed_form_of_one_joint():
    """(m + dt d + dt^2 k) dv = dt (k (x - q - dt v) - d v), and the same with the spring of a stop."""
    inertia, dt, q, v = 0.5, 0.01, 0.3, -2.0
    model = rb.with_gravity(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(3))

    def step(**forces):
        end = simulate(model, jnp.array([q]), jnp.array([v]), dt, dt, method="implicit", **forces)
        return float(end.vs[-1, 0]), float(end.qs[-1, 0])

    def want(x, k, d):
        speed = v + dt * (k * (x - q - dt * v) - d * v) / (inertia + dt * d + dt * dt * k)
        return pytest.approx((speed, q + dt * speed), abs=1e-14)

    assert step(servo=Servo(jnp.array([1.0]), 400.0, 30.0)) == want(1.0, 400.0, 30.0)
    assert step(servo=lambda t: Servo(jnp.array([1.0]), 400.0, 30.0)) == want(1.0, 400.0, 30.0)
    limit = step(servo=Servo(jnp.array([1.0]), 400.0, 30.0, effort=7.0))
    assert limit[0] == pytest.approx(v + dt * 7.0 / inertia, abs=1e-14)
    model = rb.with_limits(rb.with_damping(model, 0.7), position_lower=jnp.array([0.35]))
    assert step(stops=Stops(5e3, 20.0)) == want(0.35, 5e3, 20.7)
    model = rb.with_armature(model, 0.1)
    inertia = 0.6
    assert step(stops=Stops(5e3, 20.0)) == want(0.35, 5e3, 20.7)


@pytest.mark.ci
@needs_x64
@pytest.mark.parametrize("dt", [0.002, 0.02])
@pytest.mark.parametrize("inertia", [1e-3, 0.1])
def test_a_joint_that_is_pressed_into_its_stop_comes_to_rest(inertia, dt):
    """Where spring and load balance; light joints take the load of one step before the stop is felt."""
    model = rb.with_gravity(robots.pendulum(mass=100.0 * inertia, length=0.1), jnp.zeros(3))
    model = rb.with_limits(model, position_lower=jnp.array([-0.5]), position_upper=jnp.array([0.5]))
    loads, k = np.array([-30.0, -4.0, -0.3, 0.3, 4.0, 30.0]), 1e4

    def end(load):
        pressed = lambda t, q, v: load[None]  # noqa: E731
        options: dict[str, Any] = {"method": "implicit", "stops": Stops(k, 100.0), "control": pressed}
        motion = simulate(model, jnp.zeros(1), jnp.zeros(1), 3.0, dt, **options)
        return motion.qs[-1, 0], motion.vs[-1, 0]

    q, v = jax.jit(jax.vmap(end))(jnp.asarray(loads))
    assert np.abs(v).max() < 1e-12
    assert_close(q, 0.5 * np.sign(loads) + loads / k, 1e-9)


@pytest.mark.ci
@needs_x64
def test_stops_do_not_pull():
    """A joint that leaves its stop faster than the spring expands is free; a slower one feels what both leave."""
    model = rb.with_gravity(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(3))
    model = rb.with_limits(model, position_upper=jnp.array([0.5]))
    inertia, dt, depth, k, d = 0.5, 0.001, 0.01, 5e3, 20.0

    def after(v):
        start = jnp.array([0.5 + depth]), jnp.array([v])
        return float(simulate(model, *start, dt, dt, method="implicit", stops=Stops(k, d)).vs[-1, 0])

    assert after(-k * depth / d - 0.1) == -k * depth / d - 0.1
    v = -1.0
    slower = v - dt * (k * (depth + dt * v) + d * v) / (inertia + dt * d + dt * dt * k)
    assert after(v) == pytest.approx(slower, abs=1e-14) and slower < v


@pytest.mark.slow
@needs_x64
def test_it_converges_to_the_motion_of_small_steps():
    """First order, against Runge-Kutta with the same forces; also with a loop."""
    model, loop = four_bar()
    q = close_loops(model, jnp.array([0.9, -0.5, 1.2]), (loop,)).q
    model = rb.with_damping(model, 2.0)
    servo, control = Servo(q, 30.0, 1.0), lambda t, x, v: 30.0 * (q - x) - 3.0 * v

    def end(dt, **options):
        return np.asarray(jax.jit(lambda q: simulate(model, q, 0 * q, 0.4, dt, loops=(loop,), **options).qs[-1])(q))

    exact = end(0.002, control=control)
    errors = [np.abs(end(dt, method="implicit", servo=servo) - exact).max() for dt in (0.004, 0.002)]
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.slow
@needs_x64
def test_usual_gains_stay_finite():
    """256 rollouts of an arm of the RB-Y1 under servos at 2 and 5 ms: all settle where gravity and spring balance.

    Runge-Kutta leaves none finite.
    """
    model = rb.with_damping(_right_arm(), 3.0)
    rest = 0.5 * (model.position_lower + model.position_upper)
    servo = Servo(rest, 400.0, 40.0)
    starts = 2.0 * normal(0, 256, model.nv)

    def ends(dt):
        move = lambda v: simulate(model, rest, v, 2.0, dt, method="implicit", servo=servo, stops=Stops())  # noqa: E731
        return jax.jit(jax.vmap(lambda v: jax.tree.map(lambda x: x[-1], move(v))))(starts)

    explicit = lambda t, q, v: 400.0 * (rest - q) - 43.0 * v  # noqa: E731
    lost = jax.jit(jax.vmap(lambda v: simulate(model, rest, v, 0.5, 0.002, control=explicit).vs[-1]))(starts)
    assert not np.isfinite(lost).all(axis=1).any()
    for dt in (0.002, 0.005):
        end = ends(dt)
        assert np.isfinite(end.vs).all()
        sag = jax.jit(jax.vmap(lambda q: rb.gravity_forces(model, q)))(end.qs)
        assert_close(400.0 * (rest[None] - end.qs), sag, 1e-3)


@needs_x64
@pytest.mark.slow
def test_gradients_of_a_rollout():
    """100 steps through servo, stops and damping, in the state and in the parameters, against differences."""
    model = rb.with_limits(ARM, position_upper=jnp.array([0.6, 2.0]))

    def loss(v, gains):
        servo = Servo(jnp.array([0.9, -0.3]), gains[0], gains[1])
        damped = rb.with_damping(model, gains[2])
        motion = simulate(damped, jnp.zeros(2), v, 0.5, 0.005, method="implicit", servo=servo, stops=Stops(5e3, 20.0))
        return jnp.sum(motion.qs**2)

    at, along = (
        (jnp.array([0.5, -1.0]), jnp.array([60.0, 4.0, 0.5])),
        (jnp.array([0.3, 0.7]), jnp.array([9.0, -2.0, 0.1])),
    )
    both = jax.jit(lambda h: jax.value_and_grad(loss, (0, 1))(*jax.tree.map(lambda x, d: x + h * d, at, along)))
    slope = sum(jnp.vdot(g, d) for g, d in zip(both(0.0)[1], along, strict=True))
    assert_close(slope, (both(1e-5)[0] - both(-1e-5)[0]) / 2e-5, 1e-6)


def test_errors_say_what_is_wrong():
    q = jnp.zeros(2)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"servo": Servo(q, 1.0)}, rb.ArgumentError, 'servo needs method="implicit"'),
        ({"stops": Stops()}, rb.ArgumentError, 'stops needs method="implicit"'),
        ({"servo": Servo(jnp.zeros(3), 1.0), "method": "implicit"}, rb.ShapeError, "servo.target must have shape"),
        ({"servo": Servo(q, jnp.ones(3)), "method": "implicit"}, rb.ShapeError, "servo.stiffness must have shape"),
        ({"servo": 1.0, "method": "implicit"}, rb.DtypeError, "servo must be a Servo"),
        ({"servo": lambda t: t, "method": "implicit"}, rb.DtypeError, r"servo\(t\) must be a Servo"),
        ({"stops": 1.0, "method": "implicit"}, rb.DtypeError, "stops must be a Stops"),
    ]
    for options, error, match in wrong:
        with pytest.raises(error, match=match):
            simulate(ARM, q, q, 0.1, 0.1, **options)
    with pytest.raises(rb.ArgumentError, match="effort must not be negative"):
        Servo(q, 1.0, effort=-1.0)
    with pytest.raises(rb.ArgumentError, match="stiffness must be finite and not negative"):
        Servo(q, -1.0)


def _right_arm() -> rb.Model:
    model = robots.rby1a()
    others: dict[str | int, Any] = {name: 0.0 for name in model.joint_names if not name.startswith("right_arm")}
    return rb.lock_joints(model, others)
