"""Regressors against pinocchio, and as linear functions of the parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import actuator_regressor, energy_regressor, momentum_regressor, torque_regressor
from tests.algorithms.cases import by_rows, pin_robot, robot, run, states
from tests.helpers import X64, assert_close, normal


@pytest.mark.float32
@pytest.mark.slow
@pytest.mark.parametrize("name", ["every_type", "mimic"])
def test_regressors_are_pinocchios(name):
    model, s, twin = robot(name), states(name), pin_robot(name)

    def all_three(q, v, a):
        momentum = momentum_regressor(model, q, v) @ model.inertias.reshape(-1) + model.armature * v
        return torque_regressor(model, q, v, a), energy_regressor(model, q, v), momentum

    torques, energies, momenta = run(all_three, s.q, s.v, s.a)
    assert_close(torques, by_rows(twin.torque_regressor, s.q, s.v, s.a))
    assert_close(energies, by_rows(twin.energy_regressor, s.q, s.v))
    assert_close(momenta, by_rows(lambda q, v: twin.crba(q) @ v, s.q, s.v))


def test_actuator_columns_are_those_of_damping_and_friction():
    model = rb.build_model(
        rb.RobotBuilder("r").link("a").link("b", 2.0, inertia=0.1)
        .revolute("j", "a", "b", armature=0.3, damping=0.7, friction=1.1)
    )  # fmt: skip
    v, a = jnp.array([-0.4]), jnp.array([2.0])
    for width in (None, 0.5):
        Y = actuator_regressor(model, v, a, width)
        got = Y @ jnp.concatenate([model.armature, model.damping, model.friction])
        want = model.armature * a - rb.damping_forces(model, v) - rb.friction_forces(model, v, width=width)
        assert_close(got, want)
    with pytest.raises(rb.ArgumentError, match="width must be finite and positive, got -1"):
        actuator_regressor(model, v, a, -1.0)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences")
def test_derivatives_both_ways():
    model = robots.two_link_arm()
    state = tuple(normal(k, 2) for k in (0, 1, 2))
    f = jax.jit(lambda *x: torque_regressor(model, *x))
    assert_close(f(*state) @ model.inertias.reshape(-1) + model.armature * state[2], rb.rnea(model, *state))
    along = tuple(normal(k, *x.shape) for k, x in enumerate(state))
    ahead, behind = (f(*(x + h * d for x, d in zip(state, along, strict=True))) for h in (1e-6, -1e-6))
    by_differences, weight = (ahead - behind) / 2e-6, normal(3, *ahead.shape)
    moved, gradient = jax.jit(lambda: (jax.jvp(f, state, along)[1], jax.vjp(f, *state)[1](weight)))()
    assert_close(moved, by_differences, kind="difference")
    assert_close(sum(g @ d for g, d in zip(gradient, along, strict=True)), jnp.vdot(weight, moved))


def test_a_batch_needs_vmap():
    with pytest.raises(rb.ShapeError, match=r"for a batch use jax\.vmap"):
        torque_regressor(robots.two_link_arm(), *(normal(0, 5, 2) for _ in range(3)))


def test_a_robot_without_joints_has_no_columns():
    q = jnp.zeros(0)
    model = rb.build_model(rb.RobotBuilder("r").link("a", 1.0, inertia=0.1))
    assert torque_regressor(model, q, q, q).shape == momentum_regressor(model, q, q).shape == (0, 0)
