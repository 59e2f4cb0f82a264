"""Predictive control in closed loop, against the linear regulator of scipy's Riccati equation."""

from __future__ import annotations

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import no_recompile, robots
from rbydyn_jax._errors import ArgumentError, DtypeError, ShapeError
from rbydyn_jax.constraints import simulate
from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointEffort, JointVelocity, SoftGoal, mpc
from rbydyn_jax.planning.mpc import shifted
from tests.helpers import assert_close
from tests.planning import sliders

X1 = np.zeros(1)


@pytest.mark.slow
def test_a_closed_loop_is_that_of_the_linear_regulator():
    _, K = sliders.riccati()
    controller = mpc(sliders.problem(steps=10), iterations=6)
    x = np.array([1.0, -0.4])
    start = x
    for tick in range(30):
        tau = controller(x[:1], x[1:], sliders.DT * tick)
        assert isinstance(tau, np.ndarray) and tau.shape == (1,)
        assert_close(tau, -K @ x, 1e-5, scale=1.0)
        x = sliders.A @ x + sliders.B @ tau
    closed = np.linalg.matrix_power(sliders.A - sliders.B @ K, 30)
    assert_close(x, closed @ start, 1e-5, scale=1.0)
    assert controller.plan is not None
    assert_close(controller.plan.ts[0], sliders.DT * 29)


def test_plans_are_shifted_by_parts_of_a_step():
    taus = np.array([[0.0], [2.0], [6.0]])
    assert_close(shifted(jnp.asarray(taus), jnp.asarray(1.0)), taus[[1, 2, 2]])
    assert_close(shifted(jnp.asarray(taus), jnp.asarray(0.25)), [[0.5], [3.0], [6.0]])
    assert_close(shifted(jnp.asarray(taus), jnp.asarray(9.0)), taus[[2, 2, 2]])


@pytest.mark.slow
def test_a_double_pendulum_follows_a_target_that_jumps():
    """In `simulate`, with half the period of the plan's time step; the target is data, so that nothing recompiles."""
    model = robots.double_pendulum()
    limit = jnp.full(2, 40.0)

    def problem(target):
        costs = [SoftGoal(ConfigurationGoal(target), 50.0), JointVelocity(1.0), JointEffort(1e-4)]
        options = {"dt": 0.04, "steps": 20, "tau_lower": -limit, "tau_upper": limit}
        return ControlProblem(model, costs, [costs[0], JointVelocity(1.0)], **options)

    @jax.jit
    def plant(q, v, tau):
        motion = simulate(model, q, v, 0.02, 0.002, control=lambda t, q, v: tau)
        return motion.qs[-1], motion.vs[-1]

    first, second = jnp.array([0.8, 0.3]), jnp.array([-0.4, 0.6])
    controller = mpc(problem(first), period=0.02)
    q, v = np.zeros(2), np.zeros(2)
    for target in (first, second):
        for _ in range(100):
            tau = controller(q, v, problem=problem(target))
            assert np.abs(tau).max() <= 40.0
            q, v = map(np.asarray, plant(q, v, tau))
        assert np.abs(q - target).max() < 0.02 and np.abs(v).max() < 0.05
    controller.reset()
    assert controller.plan is None
    controller(q, v)
    controller(q, v)
    with no_recompile():
        controller(q, v)


@pytest.mark.ci
def test_a_plan_that_is_not_finite_leaves_the_old_one():
    controller = mpc(sliders.problem(steps=10), iterations=6)
    controller(np.ones(1), np.zeros(1))
    assert controller.plan is not None
    before = controller.plan.taus
    tau = controller(np.full(1, 1e200), np.full(1, 1e200))
    assert np.isfinite(tau).all()
    assert_close(tau, before[1])


@pytest.mark.ci
def test_torques_are_within_limits_also_without_a_plan():
    """Gravity asks for 9.81 N m, and the plan of before has 8 N m."""

    def problem(limit):
        lost, bound = [lambda *x: x[3] * jnp.nan], jnp.full(1, limit)
        return ControlProblem(robots.pendulum(), lost, dt=0.05, steps=10, tau_lower=-bound, tau_upper=bound)

    down, still = np.array([np.pi / 2]), np.zeros(1)
    assert_close(mpc(problem(2.0))(down, still), np.array([2.0]))
    controller = mpc(problem(8.0))
    assert_close(controller(down, still), np.array([8.0]))
    assert_close(controller(down, still, problem=problem(2.0)), np.array([2.0]))


def shorter(problem):
    return eqx.tree_at(lambda p: p.dt, problem, jnp.full_like(problem.dt, 1e-6))


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (DtypeError, "problem must be a ControlProblem", lambda p: mpc(p.model)),
        (ArgumentError, "period must be finite and positive", lambda p: mpc(p, period=0.0)),
        (ArgumentError, "period must not be longer", lambda p: mpc(p, period=100.0)),
        (ArgumentError, "period must not be longer", lambda p: mpc(p)(X1, X1, problem=shorter(p))),
        (ArgumentError, "iterations must be at least 1", lambda p: mpc(p, iterations=0)),
        (ShapeError, "q must have shape", lambda p: mpc(p)(np.zeros(2), np.zeros(1))),
        (ArgumentError, "q must be finite", lambda p: mpc(p)(np.full(1, np.nan), np.zeros(1))),
        (ArgumentError, "v must be finite", lambda p: mpc(p)(np.zeros(1), np.full(1, np.inf))),
        (DtypeError, "problem must be a", lambda p: mpc(p)(X1, X1, problem=cast(Any, 3))),
        (ArgumentError, "the robot and the steps", lambda p: mpc(p)(X1, X1, problem=sliders.problem(9))),
        (DtypeError, "call it outside of jit", lambda p: jax.jit(lambda x: mpc(x)(np.zeros(1), np.zeros(1)))(p)),
    ],
)
def test_wrong_calls_are_explained(error, message, call):
    with pytest.raises(error, match=message):
        call(sliders.problem(steps=10))
