"""Laws of mechanics that hold on every robot, at random states of random trees with every joint type."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.engines.conventions import float64, skew
from rbydyn_jax.io import JointDescription, LinkDescription, RobotDescription, build_model
from rbydyn_jax.testing import random_description, random_transform
from tests.helpers import X64, assert_close, normal

from .cases import TREES, along, robot, run, states, tips

every_tree = pytest.mark.parametrize("name", TREES)


@pytest.mark.slow
@every_tree
def test_energies_and_mass_matrix_are_integrals_and_slopes(name):
    """K = 1/2 v M v; M is the slope of inverse dynamics in a; gravity forces are the slope of U.

    The last along the velocity coordinates, which for quaternion joints are no derivatives of coordinates.
    """
    model, s = robot(name), states(name)
    zero = jnp.zeros(model.nv, s.q.dtype)

    def pairs(q, v, a):
        M = rb.crba(model, q)
        slope = jax.grad(lambda dv: rb.potential_energy(model, rb.integrate(model, q, dv)))(zero)
        return (
            (rb.kinetic_energy(model, q, v), 0.5 * v @ M @ v),
            (M, jax.jacfwd(lambda a: rb.rnea(model, q, v, a))(a)),
            (rb.gravity_forces(model, q), slope),
        )

    for got, want in run(pairs, *s[:3]):
        assert_close(got, want)


@pytest.mark.slow
@every_tree
def test_inverse_dynamics_is_affine_in_acceleration_and_wrench(name):
    """tau = M a + c - sum J_b' f_b, with body Jacobians of the links that carry the body frames."""
    model, s = robot(name), states(name)
    links = [model.link_names[i] for i in model.tree.principal_links]

    def assembled(q, v, a, f_ext):
        pushed = sum(rb.jacobian(model, q, link, frame="local").T @ f for link, f in zip(links, f_ext, strict=True))
        return rb.crba(model, q) @ a + rb.bias_forces(model, q, v) - pushed

    got = run(lambda *x: rb.rnea(model, *x), s.q, s.v, s.a, s.f_ext)
    assert_close(got, run(assembled, s.q, s.v, s.a, s.f_ext))


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("kind", ["floating", "mrp_floating"])
def test_where_a_robot_stands_changes_nothing(kind):
    """Not even rounding: a leg of 0.1 kg, far from the origin, has a hundred thousand times its inertia about it."""
    b = rb.RobotBuilder("far").link("base").link("trunk", 20.0, (0.1, 0, 0), 0.5).link("leg", 0.1, (0, 0, -0.1), 1e-4)
    getattr(b, kind)("free", "base", "trunk").revolute("hip", "trunk", "leg", xyz=(0.3, 0.1, 0), axis=(0, 1, 0))
    model = rb.build_model(b.build_description())
    place = slice(model.nq - 4, model.nq - 1)
    q = rb.normalize(model, normal(1, model.nq).at[place].set(0.0))
    v, a = normal(2, model.nv), normal(3, model.nv)

    @jax.jit
    def found(q):
        derivatives = rb.rnea_derivatives(model, q, v, a)
        return rb.crba(model, q), rb.coriolis_matrix(model, q, v), derivatives, rb.com_jacobian(model, q)

    here, there = found(q), found(q.at[place].set(jnp.array([300.0, -200.0, 50.0])))
    for x, y in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
        assert_close(y, np.asarray(x))
    slope = jax.jacfwd(lambda a: rb.rnea(model, q, v, a))(a)
    assert_close(here[0], np.asarray(slope))


@pytest.mark.slow
@every_tree
def test_power_balance(name):
    """tau . v + sum f_b . V_b = d/dt (K + U) along the motion that aba predicts."""
    model, s = robot(name), states(name)
    links = [model.link_names[i] for i in model.tree.principal_links]

    def energy(q, v):
        return rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)

    def rates(q, v, tau, f_ext):
        a = rb.aba(model, q, v, tau, f_ext)
        twists = [rb.link_velocity(model, q, v, link, frame="local") for link in links]
        power = tau @ v + sum(f @ V for f, V in zip(f_ext, twists, strict=True))
        return power, along(model, energy, q, v, (v, a))[1]

    power, rate = run(rates, s.q, s.v, s.tau, s.f_ext)
    # The rate is a difference of large terms (kinetic, potential), of which aba's error is amplified by M.
    assert_close(rate, power, kind="solve")


@pytest.mark.ci
@every_tree
def test_velocity_terms_are_quadratic_and_time_reversible(name):
    model, s = robot(name), states(name)
    weightless = rb.with_gravity(model, jnp.zeros(3, s.q.dtype))
    forces = jax.jit(jax.vmap(lambda q, v: rb.bias_forces(weightless, q, v)))
    once = forces(s.q, s.v)
    assert_close(forces(s.q, 2 * s.v), 4 * once)
    assert_close(forces(s.q, -s.v), once)
    assert not forces(s.q, 0 * s.v).any()


@pytest.mark.slow
@every_tree
def test_acceleration_has_the_hessian_as_its_quadratic_part(name):
    """Second order: x(q + dv) - x(q) = J dv + 1/2 dv.H.dv, with an error of third order."""
    if not X64:
        pytest.skip("third-order remainders need float64")
    model, s = robot(name), states(name)
    link = tips(name)[0]

    def remainders(q, v):
        position = lambda h: rb.link_pose(model, rb.integrate(model, q, h * v), link)[:3, 3]  # noqa: E731
        first = rb.jacobian(model, q, link)[3:] @ v
        second = rb.jacobian_dot_v(model, q, v, link)[3:]
        return jnp.stack([position(h) - position(0.0) - h * first - h * h / 2 * second for h in (1e-3, 2e-3)])

    small, large = np.moveaxis(np.asarray(run(remainders, s.q, s.v)), 1, 0)
    ratio = np.linalg.norm(large) / np.linalg.norm(small)
    assert ratio == pytest.approx(8.0, rel=0.02)


@pytest.mark.slow
@every_tree
def test_momentum_is_the_sum_over_the_bodies(name):
    """A v is the sum over the bodies of I_b V_b, taken to the world."""
    model, s = robot(name), states(name)
    links = [model.link_names[i] for i in model.tree.principal_links]
    weights = [jnp.asarray(_inertia_matrix(np.asarray(row)), s.q.dtype) for row in model.inertias]

    def summed(q, v):
        total = jnp.zeros(6, q.dtype)
        for link, weight in zip(links, weights, strict=True):
            T = rb.link_pose(model, q, link)
            h = weight @ rb.link_velocity(model, q, v, link, frame="local")
            f = T[:3, :3] @ h[3:]
            total += jnp.concatenate([T[:3, :3] @ h[:3] + jnp.cross(T[:3, 3], f), f])
        return total

    got, want = run(lambda q, v: (rb.momentum(model, q, v), summed(q, v)), s.q, s.v)
    assert_close(got, want)


def _inertia_matrix(parameters):
    """The 6x6 inertia of ten parameters about the body's origin."""
    m, h = parameters[0], skew(parameters[1:4])
    xx, xy, yy, xz, yz, zz = parameters[4:]
    return np.block([[np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), h], [-h, m * np.eye(3)]])


@pytest.mark.slow
def test_momentum_of_a_free_robot_changes_by_the_forces_on_it():
    """d/dt of linear and angular momentum = weight and external wrenches, whatever the joint torques do."""
    model = _free_robot()
    key = jax.random.split(jax.random.key(1), 100)
    q = run(lambda k: rb.random_configuration(model, k), key)
    v, tau = jax.random.normal(jax.random.key(2), (2, 100, model.nv), q.dtype)

    def rates(q, v, tau):
        tau = tau.at[:6].set(0.0)
        a = rb.aba(model, q, v, tau)
        rate = along(model, lambda q, v: rb.momentum(model, q, v), q, v, (v, a))[1]
        weight = rb.total_mass(model) * model.gravity
        return rate, jnp.concatenate([jnp.cross(rb.center_of_mass(model, q), weight), weight])

    rate, weight = run(rates, q, v, tau)
    assert_close(rate, weight, kind="solve")


def _free_robot():
    rest = random_description(9, ("revolute", "prismatic", "spherical", "planar"), 5, armature=False)
    base = JointDescription("free", "floating", "ground", "hip", origin=random_transform(1))
    hip = LinkDescription("hip", rest.links[1].inertial)
    joint = JointDescription("waist", "fixed", "hip", "link_0")
    return build_model(
        RobotDescription("free", (LinkDescription("ground"), hip, *rest.links), (base, joint, *rest.joints))
    )


@pytest.mark.slow
def test_energy_is_kept_in_free_motion():
    """A ball-joint pendulum for one second of Runge-Kutta: no NaN, and the energy stays."""
    if not X64:
        pytest.skip("the drift is a matter of float64")
    body = random_description(3, ("spherical",), 1).links[1]
    joint = JointDescription("ball", "spherical", "root", "link_1")
    model = build_model(RobotDescription("pendulum", (LinkDescription("root"), body), (joint,)))
    q, v = rb.neutral(model), jnp.array([1.0, 2.0, -0.5])
    zero, h = jnp.zeros(3), 1e-3

    def rate(q, v):
        return rb.qdot_from_v(model, q, v), rb.aba(model, q, v, zero)

    def step(state, _):
        def shifted(k, c):
            return jax.tree.map(lambda x, dx: x + c * h * dx, state, k)

        k1 = rate(*state)
        k2 = rate(*shifted(k1, 0.5))
        k3 = rate(*shifted(k2, 0.5))
        k4 = rate(*shifted(k3, 1.0))
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        q, v = shifted(mean, 1.0)
        return (rb.normalize(model, q), v), None

    energy = lambda q, v: rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)  # noqa: E731
    (q1, v1), _ = jax.jit(lambda s: jax.lax.scan(step, s, length=1000))((q, v))
    assert not np.allclose(q1, q, atol=0.1)
    assert_close(energy(q1, v1), energy(q, v), 1e-9, scale=10.0)


@pytest.mark.slow
def test_two_robots_that_share_only_the_ground_have_a_block_diagonal_mass_matrix():
    one, two = random_description(1, ("revolute", "prismatic"), 4), random_description(2, ("planar", "revolute"), 3)
    renamed = {link.name: f"other_{link.name}" for link in two.links} | {"link_0": "link_0"}
    links = (*one.links, *(LinkDescription(renamed[x.name], x.inertial) for x in two.links[1:]))
    joints = [replace(j, name=f"other_{j.name}", parent=renamed[j.parent], child=renamed[j.child]) for j in two.joints]
    both = build_model(RobotDescription("both", links, (*one.joints, *joints)))
    parts = build_model(one), build_model(two)
    q = [run(lambda k, m=m: rb.random_configuration(m, k), jax.random.split(jax.random.key(0), 100)) for m in parts]
    M = run(lambda a, b: rb.crba(both, _order(both, parts, a, b)), *q)
    blocks = [run(lambda q, m=m: rb.crba(m, q), x) for m, x in zip(parts, q, strict=True)]
    first = [
        i for n, s in zip(both.joint_names, both.tree.v_slices, strict=True) if n[:5] != "other" for i in _range(s)
    ]
    second = [i for i in range(both.nv) if i not in first]
    assert_close(M[:, first][:, :, first], blocks[0])
    assert_close(M[:, second][:, :, second], blocks[1])
    assert not M[:, first][:, :, second].any()


def _range(s):
    return range(s.start, s.stop)


def _order(both, parts, a, b):
    """The configurations of two robots as that of their union."""
    pieces = []
    for name in both.joint_names:
        other = name.startswith("other_")
        part, q = (parts[1], b) if other else (parts[0], a)
        pieces.append(q[part.tree.q_slices[part.joint_names.index(name.removeprefix("other_"))]])
    return jnp.concatenate(pieces)


@pytest.mark.slow
def test_where_the_root_stands_changes_nothing_inside():
    """Without gravity a robot does not feel how it is mounted: same mass matrix, same torques."""
    description = random_description(12, n=7)
    moved = random_transform(5)
    mounted = RobotDescription(
        "mounted",
        (LinkDescription("ground"), *description.links),
        (JointDescription("mount", "fixed", "ground", "link_0", origin=moved), *description.joints),
    )
    one, two = (rb.with_gravity(build_model(d), jnp.zeros(3)) for d in (description, mounted))
    q = run(lambda k: rb.random_configuration(one, k), jax.random.split(jax.random.key(0), 100))
    v, a = jax.random.normal(jax.random.key(3), (2, 100, one.nv), q.dtype)
    inside = [run(lambda q, v, a, m=m: (rb.crba(m, q), rb.rnea(m, q, v, a)), q, v, a) for m in (one, two)]
    assert_close(inside[1][0], inside[0][0])
    assert_close(inside[1][1], inside[0][1])
    poses = [run(lambda q, m=m: rb.fk(m, q), q) for m in (one, two)]
    assert_close(poses[1][:, 1:], moved @ float64(poses[0]))
