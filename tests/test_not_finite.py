"""What is not finite is refused where it is known, and seen in the result where it is traced: no limit vanishes."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, constraints, estimation, planning, robots, whole_body
from rbydyn_jax.rby1 import dynamics as rby_dyn
from rbydyn_jax.shapes import BoxGeometry
from tests.helpers import untyped

ARM = robots.two_link_arm()
Q = jnp.array([0.3, 0.7])
NAN = Q.at[0].set(jnp.nan)
PATH = jnp.array([[0.0, 0.0], [0.4, -0.3], [0.8, 0.6]])


@pytest.mark.ci
def test_a_cloud_with_an_unknown_point_is_refused_and_no_velocity_leads_through_it():
    near = rb.link_pose(ARM, Q, "tool")[:3, 3] + jnp.array([0.06, 0.06, 0.0])
    cloud = jnp.stack([near, jnp.full(3, jnp.nan)])
    with pytest.raises(rb.ArgumentError, match=r"points must be finite.*points\[1\]"):
        collision.World(points=cloud)
    towards = [planning.LinkVelocity("tool", jnp.array([0.0, 0.0, 0.0, 0.5, 0.5, 0.0]))]

    @jax.jit
    def go(points):
        world = collision.World(points=points, point_radius=0.01)
        return planning.differential_ik(ARM, Q, towards, dt=0.1, clearance=0.1, world=world)

    assert bool(go(cloud.at[1].set(near + 5.0)).solved)
    found = go(cloud)
    assert not found.solved and not found.v.any()


@pytest.mark.parametrize("dt", [np.nan, -1.0])
def test_a_time_step_that_is_none_solves_nothing(dt):
    fast = [planning.LinkVelocity("tool", jnp.array([0.0, 0.0, 0.0, 100.0, 100.0, 0.0]))]
    go = jax.jit(lambda dt: planning.differential_ik(ARM, Q, fast, dt=dt))
    found = go(jnp.asarray(dt, Q.dtype))
    assert not found.solved and not found.v.any()
    assert bool(go(jnp.asarray(0.01, Q.dtype)).solved)


def test_an_unknown_limit_of_velocity_is_none_that_can_be_kept():
    wanted = [planning.LinkVelocity("tool", jnp.array([0.0, 0.0, 0.0, 0.5, 0.5, 0.0]))]
    broken = eqx.tree_at(lambda m: m.velocity_limit, ARM, ARM.velocity_limit.at[0].set(jnp.nan))
    found = jax.jit(lambda m: planning.differential_ik(m, Q, wanted, dt=0.1))(broken)
    assert not found.solved and not found.v.any()


@pytest.mark.parametrize(
    "jerk", [pytest.param(False, marks=pytest.mark.ci), pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("change", [lambda x: x * jnp.nan, lambda x: -x])
def test_a_path_is_not_timed_within_limits_that_are_none(change, jerk):
    options: dict[str, Any] = {"jerk_limit": jnp.full(2, 50.0)} if jerk else {"intervals": 10}
    timed = jax.jit(lambda m: planning.time_parametrize(m, PATH, **options))
    for name in ("velocity_limit", "acceleration_limit", "effort_limit"):
        limit = jnp.full(2, 20.0)
        broken = eqx.tree_at(lambda m, name=name: getattr(m, name), ARM, change(limit))
        found = timed(broken)
        assert found.status == planning.TimingStatus.NOT_FINITE and bool(jnp.isnan(found.duration))
    free = eqx.tree_at(lambda m: m.effort_limit, ARM, change(ARM.effort_limit))
    assert planning.time_parametrize(free, PATH, torques=False, **options).solved


@pytest.mark.ci
def test_a_path_that_is_not_finite():
    found = jax.jit(lambda path: planning.time_parametrize(ARM, path, intervals=4))(PATH.at[1, 0].set(jnp.nan))
    assert found.status == planning.TimingStatus.NOT_FINITE and bool(jnp.isnan(found.duration))


def test_whole_body_forces_beyond_limits_that_are_unknown():
    go = jax.jit(lambda m: whole_body.inverse_dynamics(m, Q, jnp.zeros(2), [whole_body.Posture(Q + 0.1)]))
    assert go(ARM).status == whole_body.WholeBodyStatus.OPTIMAL
    broken = eqx.tree_at(lambda m: m.effort_limit, ARM, ARM.effort_limit.at[0].set(jnp.nan))
    assert go(broken).status == whole_body.WholeBodyStatus.NOT_FINITE


def test_contacts_at_unknown_places():
    found = constraints.contact_forces(ARM, NAN, Q, (constraints.Contact("tool"),))
    assert bool(jnp.isnan(found.forces).any() & jnp.isnan(found.depths).all() & jnp.isnan(found.bristle_rates).any())
    springs = constraints.joint_limit_forces(ARM, NAN, Q)
    assert bool(jnp.isnan(springs[0])) and float(springs[1]) == 0.0


def test_friction_that_is_unknown_is_seen_in_the_motion():
    box = rb.RobotBuilder().link("w").link("box", 1.0, (0, 0, 0), 0.005).floating("free", "w", "box")
    box = rb.build_model(box.collision("box", BoxGeometry(np.array([0.2, 0.2, 0.1]))))
    world = collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
    on_floor, along = rb.neutral(box).at[6].set(0.05), jnp.zeros(6).at[3].set(1.0)
    implicit: dict[str, Any] = {"duration": 0.01, "dt": 0.002, "method": "implicit"}

    @jax.jit
    def hard(mu):
        return constraints.simulate(box, on_floor, along, world=world, friction=mu, **implicit).vs[-1]

    @jax.jit
    def soft(mu):
        contact = constraints.Contact("box", (0.0, 0.0, -0.051), friction=mu)
        return constraints.simulate(box, on_floor, along, 0.01, 0.002, contacts=(contact,)).vs[-1]

    @jax.jit
    def in_joints(torque):
        return constraints.simulate(rb.with_friction(ARM, torque), Q, Q, **implicit).vs[-1]

    for motion in (hard, soft, in_joints):
        assert bool(jnp.isfinite(motion(0.3)).all() & jnp.isnan(motion(jnp.nan)).any())


def test_torques_that_are_unknown_are_felt():
    unknown = jnp.array([0.0, jnp.nan])
    assert int(estimation.touched_body(ARM, unknown, 1.0)) == 1
    assert int(estimation.touched_body(ARM, jnp.zeros(2), 1.0)) == -1


@pytest.mark.ci
@pytest.mark.parametrize("t", [np.nan, [np.nan, 0.1]])
def test_profiles_at_an_unknown_time(t):
    one = jnp.ones(1)
    profiles = (
        planning.jerk_limited_profile(0.0 * one, one, one, 2.0 * one, 8.0 * one),
        planning.jerk_limited_profile(0.0 * one, one, one, 2.0 * one, 8.0 * one, target_velocity=0.5 * one),
        planning.trapezoidal_profile(0.0 * one, one, one, 2.0 * one),
    )
    timed = planning.time_parametrize(ARM, PATH, intervals=4, torques=False)
    for motion in (*profiles, timed):
        found = motion.evaluate(jnp.asarray(t))
        names = ("q", "v", "a") if motion is timed else ("position", "velocity", "acceleration")
        for x in (getattr(found, name) for name in names):
            unknown = jnp.isnan(x).all(axis=-1)
            assert unknown.tolist() == np.isnan(t).tolist()


def test_the_zmp_of_an_unknown_motion():
    found = rb.zmp(ARM, NAN, Q, Q)
    assert bool(jnp.isnan(found.point).any()) and not found.valid
    with pytest.raises(rb.ArgumentError, match="normal must have a length"):
        rb.zmp(ARM, Q, Q, Q, normal=jnp.zeros(3))


@pytest.mark.parametrize("e", [-3.0, 2.0, np.nan])
def test_coefficients_of_restitution(e):
    with pytest.raises(rb.ArgumentError, match="restitution must be"):
        constraints.impulse(ARM, Q, Q, rows=jnp.ones((1, 2)), restitution=e)


@pytest.mark.parametrize("mask", [True, False])
def test_masked_arrays_are_refused_by_name(mask):
    """NumPy would show what they hide, and JAX's error tells no name."""
    q, many = (np.ma.masked_array(np.zeros(shape), mask=mask) for shape in (2, (3, 2)))
    zero = np.zeros((3, 2))
    untyped(rb.fk)(ARM, zero[0, :2])  # a compiled program would read what the mask hides
    calls = {
        "q must be an array of floats": lambda: untyped(rb.fk)(ARM, q),
        "v must be an array of floats": lambda: untyped(rb.rnea)(ARM, Q, v=q, a=Q),
        "com must be an array of floats": lambda: rb.attach_payload(ARM, "tool", 1.0, com=many[0].repeat(2)[:3]),
        r"args\[1\] must be an array of numbers": lambda: rb.map_batch(rb.fk, ARM, many, in_axes=(None, 0)),
        r"args\[0\] must be an array that JAX can read": lambda: rb.map_batch(
            lambda x, y: x + y, q, zero, in_axes=(None, 0)
        ),
        "target must be 3 real numbers": lambda: whole_body.Com(np.ma.masked_array(np.zeros(3), mask=mask)),
    }
    for message, call in calls.items():
        with pytest.raises(rb.DtypeError, match=message) as raised:
            call()
        assert "masked" in str(raised.value)
    state = rby_dyn.Robot(rby_dyn.RobotConfiguration("none", rby_dyn.Link("base"))).make_state([], [])
    with pytest.raises(rb.DtypeError, match="V0 must be numbers, got MaskedArray"):
        state.V0 = np.ma.masked_array(np.zeros(6), mask=mask)


@pytest.mark.parametrize(
    ("kind", "message"), [(">f8", "byte order"), (">f4", "byte order"), ("longdouble", "q must be")]
)
def test_bytes_that_jax_cannot_read(kind, message):
    q = np.array([0.3, 0.7], np.dtype(kind))
    for f in (rb.gravity_forces, rb.center_of_mass):
        f(ARM, Q)  # is compiled
        with pytest.raises(rb.DtypeError, match=message):
            untyped(f)(ARM, q)
    with pytest.raises(rb.DtypeError, match="path must be an array of floats"):
        untyped(planning.time_parametrize)(ARM, np.zeros((2, 2), q.dtype))
