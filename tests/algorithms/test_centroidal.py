"""Mass, centre of mass and momentum against pinocchio and rby1_sdk."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from tests.helpers import X64, assert_close, oracle
from tests.oracles.conventions import change_velocity_origin, com_inertia, float64, skew

from .cases import along, compare, pin_robot, robot, run, states, tips

# The roots of these weigh nothing; pinocchio leaves a fixed root's mass out.
every_robot = pytest.mark.parametrize("name", ["every_type", "mimic", "floating_tree", "chain"])
float32 = pytest.mark.float32


@every_robot
def test_total_mass(name):
    model, twin = robot(name), pin_robot(name)
    want = sum(float(body.mass) for body in twin.model.inertias)
    assert_close(rb.total_mass(model), want)
    assert_close(rb.subtree_mass(model, model.link_names[0]), want)


@float32
@every_robot
def test_center_of_mass(name):
    model, twin, s = robot(name), pin_robot(name), states(name)
    compare(lambda q: rb.center_of_mass(model, q), twin.center_of_mass, s.q)
    compare(lambda q: rb.com_jacobian(model, q), twin.com_jacobian, s.q)
    zero = np.zeros(model.nv)
    compare(lambda q, v: rb.com_velocity(model, q, v), lambda q, v: twin.com_motion(q, v, zero)[0], s.q, s.v)
    compare(lambda q, v, a: rb.com_acceleration(model, q, v, a), lambda *x: twin.com_motion(*x)[1], *s[:3])


@float32
@every_robot
def test_momentum(name):
    model, twin, s = robot(name), pin_robot(name), states(name)
    compare(lambda q: rb.momentum_matrix(model, q), twin.momentum_matrix, s.q)
    compare(lambda q, v: rb.momentum(model, q, v), lambda q, v: twin.momentum_matrix(q) @ v, s.q, s.v)


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


@every_robot
def test_momentum_is_mass_times_com_velocity(name):
    model, s = robot(name), states(name)
    p = run(lambda q, v: rb.momentum(model, q, v)[3:], s.q, s.v)
    want = run(lambda q, v: rb.total_mass(model) * rb.com_velocity(model, q, v), s.q, s.v)
    assert_close(p, want)


@every_robot
def test_com_velocity_and_acceleration_are_rates(name):
    model, s = robot(name), states(name)
    com = lambda q: rb.center_of_mass(model, q)  # noqa: E731
    velocity = lambda q, v: rb.com_velocity(model, q, v)  # noqa: E731
    want = run(lambda q, v: along(model, com, q, v)[1], s.q, s.v)
    assert_close(run(velocity, s.q, s.v), want)
    want = run(lambda q, v, a: along(model, velocity, q, v, (v, a))[1], *s[:3])
    assert_close(run(lambda q, v, a: rb.com_acceleration(model, q, v, a), *s[:3]), want)


@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_centroidal_quantities_of_rby1_against_the_sdk(name):
    """The base counts with its mass here."""
    oracle("rby1_sdk")
    from tests.oracles.rby1_oracle import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    base, hand = model.link_names[0], "ee_right"
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, base)
    mass = sdk.total_inertia(np.asarray(s.q[0]), base)[3, 3]
    assert_close(rb.total_mass(model), mass)
    compare(lambda q: rb.center_of_mass(model, q), lambda q: sdk.center_of_mass(q, base), s.q)
    compare(lambda q: rb.center_of_mass(model, q, ref=hand), lambda q: sdk.center_of_mass(q, hand), s.q)
    compare(lambda q: rb.com_jacobian(model, q), lambda q: sdk.com_jacobian(q, base), s.q)
    compare(lambda q: rb.spatial_inertia(model, q, hand), lambda q: sdk.total_inertia(q, hand), s.q)
    compare(
        lambda q: rb.operational_space_inertia(model, q, hand, base),
        lambda q: sdk.operational_inertia(q, base, hand),
        s.q[:20],
        kind="solve",
    )


def test_momentum_about_another_point_moves_with_the_lever():
    """Angular momentum about the centre of mass does not know where the world's origin is."""
    model, s = robot("floating_tree"), states("floating_tree")
    h = run(lambda q, v: rb.momentum(model, q, v), s.q, s.v)
    com = run(lambda q: rb.center_of_mass(model, q), s.q)
    spin = h[:, :3] - jnp.cross(com, h[:, 3:])
    twin = pin_robot("floating_tree")
    rows = zip(np.asarray(s.q), np.asarray(s.v), np.asarray(com), strict=True)
    want = np.stack(
        [(twin.momentum_matrix(q) @ v)[:3] - skew(c) @ (twin.momentum_matrix(q) @ v)[3:] for q, v, c in rows]
    )
    assert_close(spin, want)
