"""Dynamics against pinocchio, mujoco and rby1_sdk."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from tests.helpers import X64, assert_close, oracle

from .cases import ROBOTS, TREES, along, by_rows, compare, pin_robot, robot, run, states, tips

every_robot = pytest.mark.parametrize("name", ROBOTS)
every_tree = pytest.mark.parametrize("name", TREES)
float32 = pytest.mark.float32


@float32
@every_robot
def test_rnea(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    both = run(lambda q, v, a, f: (rb.rnea(model, q, v, a), rb.rnea(model, q, v, a, f)), s.q, s.v, s.a, s.f_ext)
    assert_close(both[0], by_rows(twin.rnea, *s[:3]))
    assert_close(both[1], by_rows(twin.rnea, s.q, s.v, s.a, s.f_ext))


@float32
@every_robot
def test_crba(name):
    model, s = robot(name), states(name)
    compare(lambda q: rb.crba(model, q), pin_robot(name).crba, s.q)


@pytest.mark.ci
@float32
@every_robot
def test_generalized_momentum(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    found = run(lambda q, v: rb.generalized_momentum(model, q, v), s.q, s.v)
    assert_close(found.momentum, by_rows(lambda q, v: twin.crba(q) @ v, s.q, s.v))
    assert_close(found.drift, by_rows(lambda q, v: twin.coriolis_matrix(q, v).T @ v - twin.gravity(q), s.q, s.v))


@float32
@every_robot
def test_aba(name):
    model, s = robot(name), states(name)
    compare(lambda *x: rb.aba(model, *x), pin_robot(name).aba, s.q, s.v, s.tau, s.f_ext, kind="solve")


@pytest.mark.slow
@every_tree
def test_forward_after_inverse_dynamics_is_the_identity(name):
    model, s = robot(name), states(name)

    def there_and_back(q, v, a, f_ext):
        with_wrenches = rb.aba(model, q, v, rb.rnea(model, q, v, a, f_ext), f_ext)
        return with_wrenches, rb.aba(model, q, v, rb.rnea(model, q, v, a))

    for got in run(there_and_back, s.q, s.v, s.a, s.f_ext):
        assert_close(got, s.a, kind="solve")


@pytest.mark.slow
@float32
@every_tree
def test_bias_gravity_and_the_terms_of_inverse_dynamics(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    zero = np.zeros(model.nv)

    def ours(q, v, a, f_ext):
        bias = rb.bias_forces(model, q, v), rb.bias_forces(model, q, v, f_ext)
        return bias, rb.gravity_forces(model, q), rb.inverse_dynamics_terms(model, q, v, a)

    (bias, pushed), gravity, terms = run(ours, s.q, s.v, s.a, s.f_ext)
    assert_close(bias, by_rows(lambda q, v: twin.rnea(q, v, zero), s.q, s.v))
    assert_close(pushed, by_rows(lambda q, v, f: twin.rnea(q, v, zero, f), s.q, s.v, s.f_ext))
    want = by_rows(twin.gravity, s.q)
    assert_close(gravity, want)
    assert_close(terms.gravity, want)
    assert_close(terms.inertial, by_rows(lambda q, a: twin.crba(q) @ a, s.q, s.a))
    assert_close(terms.coriolis, by_rows(lambda q, v: twin.rnea(q, v, zero) - twin.gravity(q), s.q, s.v))


@pytest.mark.slow
def test_gravity_is_a_number_of_the_model():
    from rbydyn_jax.engines.pinocchio import pin_model

    model, s = robot("mimic"), states("mimic")
    tilted = rb.with_gravity(model, jnp.array([1.0, -2.0, 3.0], s.q.dtype))
    weightless = rb.with_gravity(model, jnp.zeros(3, s.q.dtype))
    compare(lambda q, v, a: rb.rnea(tilted, q, v, a), pin_model(tilted).rnea, *s[:3])
    assert not run(lambda q: rb.gravity_forces(weightless, q), s.q).any()


@every_tree
def test_mass_matrix_is_symmetric_positive_and_inverted(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    M, inverse = map(np.asarray, run(lambda q: (rb.crba(model, q), rb.mass_matrix_inverse(model, q)), s.q))
    assert (M == M.swapaxes(1, 2)).all()
    assert np.linalg.eigvalsh(M).min() > 0
    assert_close(inverse, by_rows(lambda q: np.linalg.inv(twin.crba(q)), s.q), kind="solve")


@pytest.mark.slow
@every_tree
def test_coriolis_matrix(name):
    """C v are the velocity terms, and dM/dt - 2 C is skew."""
    model, s = robot(name), states(name)

    def terms(q, v):
        M_dot = along(model, lambda q: rb.crba(model, q), q, v)[1]
        return rb.coriolis_matrix(model, q, v), rb.inverse_dynamics_terms(model, q, v, v).coriolis, M_dot

    C, forces, M_dot = run(terms, s.q, s.v)
    assert_close(jnp.einsum("bij,bj->bi", C, s.v), forces)
    skew = np.asarray(M_dot - 2 * C)
    assert_close(skew + skew.swapaxes(1, 2), np.zeros_like(skew), scale=float(np.abs(M_dot).max()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mimic", "chain"])
def test_coriolis_matrix_is_that_of_the_christoffel_symbols(name):
    """C_kj = 1/2 (d_i M_kj + d_j M_ki - d_k M_ij) v_i, where velocities are derivatives of coordinates."""
    model, s = robot(name), states(name)

    def both(q, v):
        slopes = jax.jacfwd(lambda q: rb.crba(model, q))(q)
        first, second, third = (jnp.einsum(e, slopes, v) for e in ("kji,i->kj", "kij,i->kj", "ijk,i->kj"))
        return rb.coriolis_matrix(model, q, v), 0.5 * (first + second - third)

    assert_close(*run(both, s.q, s.v))


@pytest.mark.ci
@float32
@every_tree
def test_energies(name):
    model, s, twin = robot(name), states(name), pin_robot(name)
    kinetic, potential = run(lambda q, v: (rb.kinetic_energy(model, q, v), rb.potential_energy(model, q)), s.q, s.v)
    assert_close(kinetic, by_rows(twin.kinetic_energy, s.q, s.v))
    assert_close(potential, by_rows(twin.potential_energy, s.q))


@pytest.mark.ci
@every_tree
def test_joint_reaction_wrenches(name):
    model, s = robot(name), states(name)
    compare(lambda *x: rb.joint_reaction_wrenches(model, *x), pin_robot(name).joint_wrenches, s.q, s.v, s.a, s.f_ext)


@pytest.mark.slow
@pytest.mark.parametrize("frame", ["local", "world", "world_aligned"])
def test_wrenches_on_links_are_jacobians_transposed(frame):
    """tau without - tau with = sum J' w, with the Jacobian in the frame in which the wrench is stated."""
    model, s, links, twin = robot("every_type"), states("every_type"), tips("every_type"), pin_robot("every_type")
    wrenches = s.f_ext[:, :2]

    def ours(q, v, a, w):
        f_ext = rb.external_wrenches(model, q, dict(zip(links, w, strict=True)), frame=frame)
        return rb.rnea(model, q, v, a, f_ext)

    def theirs(q, v, a, w):
        pushed = sum(twin.jacobian(q, link, frame).T @ one for link, one in zip(links, w, strict=True))
        return twin.rnea(q, v, a) - pushed

    compare(ours, theirs, s.q, s.v, s.a, wrenches)


def test_damping_and_friction_oppose_the_motion():
    """The figures of each joint times its speed, and times the sign of its speed where it moves."""
    model, v = robot("mimic"), states("mimic").v[0]
    assert_close(rb.damping_forces(model, v), -np.asarray(model.damping) * np.asarray(v))
    assert_close(rb.friction_forces(model, v), -np.asarray(model.friction) * np.sign(np.asarray(v)))
    smooth = -np.asarray(model.friction) * np.tanh(np.asarray(v) / 0.1)
    assert_close(rb.friction_forces(model, v, width=0.1), smooth)
    with pytest.raises(rb.ArgumentError, match="width must be finite and positive, got 0"):
        rb.friction_forces(model, v, width=0)


def test_against_mujoco():
    oracle("mujoco")
    from rbydyn_jax.engines.mujoco import mujoco_model

    model, s = robot("panda_like"), states("panda_like")
    twin = mujoco_model(model)
    M, tau = run(lambda q, v, a: (rb.crba(model, q), rb.rnea(model, q, v, a)), *s[:3])
    # MuJoCo works in principal axes of inertia, found by its own iteration: a few digits are lost there.
    assert_close(M, by_rows(twin.crba, s.q), 1e-10 if X64 else None)
    assert_close(tau, by_rows(twin.rnea, *s[:3]), 1e-10 if X64 else None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_dynamics_of_rby1_against_the_sdk(name):
    oracle("rby1_sdk")
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, model.link_names[0])
    ours = run(lambda q, v, a: (rb.crba(model, q), rb.gravity_forces(model, q), rb.rnea(model, q, v, a)), *s[:3])
    assert_close(ours[0], by_rows(sdk.crba, s.q))
    assert_close(ours[1], by_rows(sdk.gravity, s.q))
    assert_close(ours[2], by_rows(sdk.rnea, *s[:3]))
