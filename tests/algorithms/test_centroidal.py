"""Mass, centre of mass and momentum against pinocchio and rby1_sdk."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.engines.conventions import change_velocity_origin, com_inertia, float64
from tests.helpers import X64, assert_close, oracle

from .cases import TREES, along, by_rows, compare, pin_robot, robot, run, states, tips

# The roots of these weigh nothing; pinocchio leaves a fixed root's mass out.
every_robot = pytest.mark.parametrize("name", TREES)
float32 = pytest.mark.float32


@every_robot
def test_total_mass(name):
    model, twin = robot(name), pin_robot(name)
    want = sum(float(body.mass) for body in twin.model.inertias)
    assert_close(rb.total_mass(model), want)
    assert_close(rb.subtree_mass(model, model.link_names[0]), want)


@pytest.mark.slow
@float32
@every_robot
def test_center_of_mass(name):
    model, twin, s = robot(name), pin_robot(name), states(name)

    def ours(q, v, a):
        rates = rb.com_velocity(model, q, v), rb.com_acceleration(model, q, v, a)
        return rb.center_of_mass(model, q), rb.com_jacobian(model, q), *rates

    com, jacobian, velocity, acceleration = run(ours, *s[:3])
    assert_close(com, by_rows(twin.center_of_mass, s.q))
    assert_close(jacobian, by_rows(twin.com_jacobian, s.q))
    assert_close(velocity, by_rows(lambda *x: twin.com_motion(*x)[0], *s[:3]))
    assert_close(acceleration, by_rows(lambda *x: twin.com_motion(*x)[1], *s[:3]))


@pytest.mark.slow
@float32
@every_robot
def test_momentum(name):
    model, twin, s = robot(name), pin_robot(name), states(name)
    A, h = run(lambda q, v: (rb.momentum_matrix(model, q), rb.momentum(model, q, v)), s.q, s.v)
    assert_close(A, by_rows(twin.momentum_matrix, s.q))
    assert_close(h, by_rows(lambda q, v: twin.momentum_matrix(q) @ v, s.q, s.v))


@pytest.mark.ci
@every_robot
def test_com_of_some_links_in_the_frame_of_another(name):
    """Weighed link by link from the oracle's poses."""
    model, twin, s = robot(name), pin_robot(name), states(name)
    ref = tips(name)[1]
    chosen = tuple(model.link_names[1:4])
    masses = [com_inertia(row) for row in float64(model.link_inertias)]
    picked = [model.link_index(name) for name in chosen]

    def want(q):
        poses = twin.fk(q)
        sums = sum(masses[i][0] * (poses[i][:3, :3] @ masses[i][1] + poses[i][:3, 3]) for i in picked)
        com = sums / sum(masses[i][0] for i in picked)
        T = poses[model.link_index(ref)]
        return T[:3, :3].T @ (com - T[:3, 3])

    compare(lambda q: rb.center_of_mass(model, q, links=chosen, ref=ref), want, s.q)


@pytest.mark.ci
@every_robot
def test_spatial_inertia_is_the_sum_of_the_bodies(name):
    model, twin, s = robot(name), pin_robot(name), states(name)
    ref = tips(name)[1]
    parameters = [com_inertia(row) for row in float64(model.link_inertias)]

    def want(q):
        poses = twin.fk(q)
        T_ref, total = poses[model.link_index(ref)], np.zeros((6, 6))
        for pose, (mass, com, inertia) in zip(poses, parameters, strict=True):
            T = np.linalg.inv(T_ref) @ pose
            R, c = T[:3, :3], T[:3, :3] @ com + T[:3, 3]
            central = np.zeros((6, 6))
            central[:3, :3], central[3:, 3:] = R @ inertia @ R.T, mass * np.eye(3)
            X = change_velocity_origin(c)
            total += X.T @ central @ X
        return total

    compare(lambda q: rb.spatial_inertia(model, q, ref), want, s.q)


@pytest.mark.slow
@every_robot
def test_operational_space_inertia(name):
    """(J M^-1 J')^-1 in the link's own frame, by a pseudo-inverse where the link cannot move in every direction."""
    if not X64:
        pytest.skip("a pseudo-inverse needs float64")
    model, twin, s = robot(name), pin_robot(name), states(name)
    link, base = tips(name)[0], model.link_names[0]

    def want(q):
        J = twin.jacobian(q, link, "local")
        return np.linalg.pinv(J @ np.linalg.solve(twin.crba(q), J.T), rcond=1e-10, hermitian=True)

    compare(lambda q: rb.operational_space_inertia(model, q, link, base), want, s.q[:20], kind="solve")


@pytest.mark.slow
@every_robot
def test_com_moves_as_its_derivatives_say(name):
    """Rates of the centre of mass, its Hessian along each direction, and the linear momentum m v_com."""
    model, s = robot(name), states(name)
    com, speed = lambda q: rb.center_of_mass(model, q), lambda q, v: rb.com_velocity(model, q, v)

    def pairs(q, v, a):
        velocity, acceleration = rb.com_velocity(model, q, v), rb.com_acceleration(model, q, v, a)
        H, jacobian = rb.com_hessian(model, q), lambda q: rb.com_jacobian(model, q)
        curved = jnp.einsum("i,iaj,j->a", v, H, v)
        rates = jax.vmap(lambda e: along(model, jacobian, q, e)[1])(jnp.eye(model.nv, dtype=q.dtype))
        return (
            (velocity, along(model, com, q, v)[1]),
            (acceleration, along(model, speed, q, v, (v, a))[1]),
            (rb.com_jacobian(model, q) @ a + curved, acceleration),
            (H, rates),
            (rb.momentum(model, q, v)[3:], rb.total_mass(model) * velocity),
        )

    for got, want in run(pairs, *s[:3]):
        assert_close(got, want)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_centroidal_quantities_of_rby1_against_the_sdk(name):
    """The base counts with its mass here."""
    oracle("rby1_sdk")
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    base, hand = model.link_names[0], "ee_right"
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, base)
    mass = sdk.total_inertia(np.asarray(s.q[0]), base)[3, 3]
    assert_close(rb.total_mass(model), mass)

    def ours(q):
        com = rb.center_of_mass(model, q), rb.center_of_mass(model, q, ref=hand)
        return *com, rb.com_jacobian(model, q), rb.spatial_inertia(model, q, hand)

    com, com_at_hand, jacobian, inertia = run(ours, s.q)
    assert_close(com, by_rows(lambda q: sdk.center_of_mass(q, base), s.q))
    assert_close(com_at_hand, by_rows(lambda q: sdk.center_of_mass(q, hand), s.q))
    assert_close(jacobian, by_rows(lambda q: sdk.com_jacobian(q, base), s.q))
    assert_close(inertia, by_rows(lambda q: sdk.total_inertia(q, hand), s.q))
    compare(
        lambda q: rb.operational_space_inertia(model, q, hand, base),
        lambda q: sdk.operational_inertia(q, base, hand),
        s.q[:20],
        kind="solve",
    )
