"""Dynamics against pinocchio, mujoco and rby1_sdk."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from tests.helpers import X64, assert_close, oracle

from .cases import MORE_ROBOTS, ROBOTS, along, compare, pin_robot, robot, run, states

every_robot = pytest.mark.parametrize("name", ROBOTS)
all_robots = pytest.mark.parametrize("name", ROBOTS + MORE_ROBOTS)
float32 = pytest.mark.float32


@float32
@all_robots
def test_rnea(name):
    model, s = robot(name), states(name)
    compare(lambda q, v, a: rb.rnea(model, q, v, a), pin_robot(name).rnea, *s[:3])


@float32
@every_robot
def test_rnea_with_external_wrenches(name):
    model, s = robot(name), states(name)
    compare(lambda *x: rb.rnea(model, *x), pin_robot(name).rnea, s.q, s.v, s.a, s.f_ext)


@float32
@every_robot
def test_bias_and_gravity_forces(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    zero = np.zeros(model.nv)
    compare(lambda q, v: rb.bias_forces(model, q, v), lambda q, v: twin.rnea(q, v, zero), s.q, s.v)
    compare(lambda q: rb.gravity_forces(model, q), twin.gravity, s.q)


@every_robot
def test_gravity_is_a_number_of_the_model(name):
    model, s = robot(name), states(name)
    tilted = rb.with_gravity(model, jnp.array([1.0, -2.0, 3.0], s.q.dtype))
    weightless = rb.with_gravity(model, jnp.zeros(3, s.q.dtype))
    from tests.oracles.pinocchio_oracle import pin_model

    compare(lambda q, v, a: rb.rnea(tilted, q, v, a), pin_model(tilted).rnea, *s[:3])
    assert not run(lambda q: rb.gravity_forces(weightless, q), s.q).any()


@float32
@all_robots
def test_crba(name):
    model, s = robot(name), states(name)
    compare(lambda q: rb.crba(model, q), pin_robot(name).crba, s.q)


@every_robot
def test_mass_matrix_is_symmetric_and_positive(name):
    M = np.asarray(run(lambda q: rb.crba(robot(name), q), states(name).q))
    assert (M == M.swapaxes(1, 2)).all()
    assert np.linalg.eigvalsh(M).min() > 0


@every_robot
def test_mass_matrix_inverse(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    compare(lambda q: rb.mass_matrix_inverse(model, q), lambda q: np.linalg.inv(twin.crba(q)), s.q, kind="solve")


@float32
@all_robots
def test_aba(name):
    model, s = robot(name), states(name)
    compare(lambda q, v, tau: rb.aba(model, q, v, tau), pin_robot(name).aba, s.q, s.v, s.tau, kind="solve")


@every_robot
def test_aba_with_external_wrenches(name):
    model, s = robot(name), states(name)
    compare(lambda *x: rb.aba(model, *x), pin_robot(name).aba, s.q, s.v, s.tau, s.f_ext, kind="solve")


@every_robot
def test_forward_after_inverse_dynamics_is_the_identity(name):
    model, s = robot(name), states(name)

    def there_and_back(q, v, a, f_ext):
        return rb.aba(model, q, v, rb.rnea(model, q, v, a, f_ext), f_ext)

    assert_close(run(there_and_back, s.q, s.v, s.a, s.f_ext), s.a, kind="solve")


@every_robot
def test_coriolis_matrix(name):
    """C v are the velocity terms, and dM/dt - 2 C is skew."""
    model, s = robot(name), states(name)
    C = run(lambda q, v: rb.coriolis_matrix(model, q, v), s.q, s.v)
    forces = run(lambda q, v: rb.bias_forces(model, q, v) - rb.gravity_forces(model, q), s.q, s.v)
    assert_close(jnp.einsum("bij,bj->bi", C, s.v), forces)
    M_dot = run(lambda q, v: along(model, lambda q: rb.crba(model, q), q, v)[1], s.q, s.v)
    skew = np.asarray(M_dot - 2 * C)
    assert_close(skew + skew.swapaxes(1, 2), np.zeros_like(skew), scale=float(np.abs(M_dot).max()))


@every_robot
def test_inverse_dynamics_terms_add_up(name):
    model, s = robot(name), states(name)
    terms = run(lambda q, v, a: rb.inverse_dynamics_terms(model, q, v, a), *s[:3])
    inertial, coriolis, gravity = jax.tree.leaves(terms)
    assert_close(inertial, run(lambda q, a: rb.crba(model, q) @ a, s.q, s.a))
    assert_close(gravity, run(lambda q: rb.gravity_forces(model, q), s.q))
    assert_close(inertial + coriolis + gravity, run(lambda q, v, a: rb.rnea(model, q, v, a), *s[:3]))


@float32
@every_robot
def test_energies(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    compare(lambda q, v: rb.kinetic_energy(model, q, v), twin.kinetic_energy, s.q, s.v)
    compare(lambda q: rb.potential_energy(model, q), twin.potential_energy, s.q)


@every_robot
def test_joint_reaction_wrenches(name):
    model, s = robot(name), states(name)
    compare(lambda *x: rb.joint_reaction_wrenches(model, *x), pin_robot(name).joint_wrenches, s.q, s.v, s.a, s.f_ext)


@pytest.mark.parametrize("name", ["panda_like", "rby1a"])
def test_against_mujoco(name):
    oracle("mujoco")
    from tests.oracles.mujoco_oracle import mujoco_model

    model, s = robot(name), states(name)
    twin = mujoco_model(model)
    # MuJoCo works in principal axes of inertia, found by its own iteration: a few digits are lost there.
    got, want = run(lambda q: rb.crba(model, q), s.q), np.stack([twin.crba(q) for q in np.asarray(s.q)])
    assert_close(got, want, 1e-10 if X64 else None)
    got = run(lambda q, v, a: rb.rnea(model, q, v, a), *s[:3])
    want = np.stack([twin.rnea(*row) for row in zip(*map(np.asarray, s[:3]), strict=True)])
    assert_close(got, want, 1e-10 if X64 else None)


@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_dynamics_of_rby1_against_the_sdk(name):
    oracle("rby1_sdk")
    from tests.oracles.rby1_oracle import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, model.link_names[0])
    compare(lambda q: rb.crba(model, q), sdk.crba, s.q)
    compare(lambda q: rb.gravity_forces(model, q), sdk.gravity, s.q)
    compare(lambda q, v, a: rb.rnea(model, q, v, a), sdk.rnea, *s[:3])
