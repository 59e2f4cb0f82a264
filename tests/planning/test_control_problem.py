"""Steps of the control problem beside `constraints.simulate`, and the laws that a free body obeys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import RobotBuilder, build_model, constraints, random_configuration, robots, with_gravity
from rbydyn_jax.algorithms.energy import kinetic_energy
from rbydyn_jax.planning import ControlProblem, JointEffort, JointVelocity, ilqr
from tests.helpers import X64, assert_close


def free(base: str):
    """A free body with one arm, without weight."""
    b = RobotBuilder("free").link("world").link("hull", 3.0, (0.1, 0, 0.02), (0.2, 0.3, 0.4))
    b.link("hand", 0.5, (0, 0.1, 0.1), (0.01, 0.02, 0.02))
    if base == "floating":
        b.floating("base", "world", "hull")
    else:
        b.planar("base", "world", "hull", axis=(0, 0, 1))
    b.revolute("elbow", "hull", "hand", xyz=(0, 0, 0.4), axis=(0, 1, 0), effort=5.0, lower=-2.0, upper=2.0)
    return with_gravity(build_model(b.build_description()), jnp.zeros(3))


@pytest.mark.ci
@pytest.mark.parametrize("base", ["floating", "planar"])
def test_rollouts_are_those_of_simulate(base):
    model, dt, steps = free(base), 0.02, 40
    problem = ControlProblem(model, [JointEffort()], dt=dt, steps=steps)
    q = random_configuration(model, jax.random.key(0))
    v = jax.random.normal(jax.random.key(1), (model.nv,))
    tau = jnp.zeros(model.nv).at[-1].set(0.3)
    qs, vs = jax.jit(lambda *x: problem.rollout(*x))(q, v, jnp.broadcast_to(tau, (steps, model.nv)))
    motion = constraints.simulate(model, q, v, steps * dt, dt, method="semi_implicit_euler", control=lambda *_: tau)
    assert_close(qs, motion.qs)
    assert_close(vs, motion.vs)


def test_a_specialised_robot_steps_as_the_robot_does():
    arm = rb.with_damping(robots.two_link_arm(), 0.5)
    q = v = tau = jnp.array([0.3, -0.2])
    one, other = (ControlProblem(m, [JointEffort()], dt=0.1, steps=2) for m in (rb.specialize(arm), arm))
    jax.tree.map(assert_close, one.step(q, v, tau), other.step(q, v, tau))


@pytest.mark.ci
def test_a_tumbling_body_keeps_its_energy():
    model, steps = free("floating"), 400
    problem = ControlProblem(model, [JointEffort()], dt=0.01, steps=steps)
    q = random_configuration(model, jax.random.key(0))
    v = jnp.array([0.5, -2.0, 1.0, 3.0, 1.0, -2.0, 0.0])
    qs, vs = jax.jit(lambda *x: problem.rollout(*x))(q, v, jnp.zeros((steps, model.nv)))
    energy = np.asarray(jax.vmap(kinetic_energy, (None, 0, 0))(model, qs, vs))
    assert np.abs(energy / energy[0] - 1.0).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("base", ["floating", "planar"])
def test_what_ilqr_returns_is_what_its_torques_lead_to(base):
    model = free(base)
    n = model.nv
    limit = jnp.full(n, 20.0)
    problem = ControlProblem(
        model, [JointEffort(1e-2)], [JointVelocity(1.0)], dt=0.05, steps=10, tau_lower=-limit, tau_upper=limit
    )
    q = random_configuration(model, jax.random.key(0))
    v = jax.random.normal(jax.random.key(1), (n,))
    found = ilqr(problem, q, v, iterations=300, tolerance=1e-13 if X64 else 1e-6)
    qs, vs = jax.jit(lambda *x: problem.rollout(*x))(q, v, found.taus)
    assert_close(found.qs, qs, kind="solve")
    assert_close(found.vs, vs, kind="solve")
    gradient = jax.jit(jax.grad(lambda taus: problem.cost(*problem.rollout(q, v, taus), taus)))
    before, after = gradient(jnp.zeros_like(found.taus)), gradient(found.taus)
    assert np.abs(after).max() < 1e-4 * np.abs(before).max()
