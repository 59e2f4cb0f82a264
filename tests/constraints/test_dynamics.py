"""Constrained dynamics against pinocchio, against the same robot in maximal coordinates, and against itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import LoopJoint, close_loops, forward_dynamics, impulse, inverse_dynamics
from rbydyn_jax.constraints._bodies import body_motions
from rbydyn_jax.constraints.loops import assemble
from rbydyn_jax.spatial import motion
from rbydyn_jax.testing import random_description
from tests.algorithms.cases import along
from tests.helpers import X64, assert_close, normal, oracle

from .mechanisms import four_bar, maximal, maximal_state, place

KINDS = ("prismatic", "planar", "spherical", "sin_cos_revolute")


@pytest.fixture(scope="module")
def linkage():
    """The four-bar linkage, closed and moving, and its motion with the motor at the crank."""
    model, loop = four_bar()
    closed = close_loops(model, jnp.array([0.9, -0.5, 1.2]), (loop,))
    assert closed.solved
    v = impulse(model, closed.q, jnp.array([1.0, 0.0, 0.0]), (loop,))
    return model, (loop,), closed.q, v


@pytest.mark.slow
def test_maximal_coordinates_move_in_the_same_way():
    """P27: a random tree, and the same links flying freely with the joints as constraints."""
    description = random_description(5, KINDS, 4, branching=0.2, armature=False)
    tree, (free, loops) = rb.build_model(description), maximal(description)
    index = [free.joint_names.index(f"free_{tree.link_names[link]}") for link in tree.tree.principal_links]
    q = jax.vmap(lambda key: rb.random_configuration(tree, key))(jax.random.split(jax.random.key(0), 10))
    v, f_ext = normal(1, 10, tree.nv), normal(2, 10, tree.nb, 6)

    @jax.jit
    @jax.vmap
    def both(q, v, f_ext):
        x, speed = maximal_state(tree, free, q, v)
        zero = jnp.zeros(free.nv, q.dtype)
        spread = jnp.zeros_like(f_ext).at[np.array(index)].set(f_ext)
        one = forward_dynamics(tree, q, v, 0 * v, (), f_ext)
        other = forward_dynamics(free, x, speed, zero, loops, spread, stabilization=None)
        joints = tuple(joint.cast(q.dtype) for joint in loops)
        gap = assemble(free, body_motions(free, x, speed), speed, joints, (None,) * len(joints)).gap
        gaps = gap, other.constraint_jacobian @ speed
        return one.body_accelerations, other.body_accelerations[np.array(index)], other.a, gaps

    want, got, a, (gap, rate) = both(q, v, f_ext)
    # A solve with 24 coordinates and 16 equations.
    assert_close(got, want, kind="solve")
    # In floating coordinates the body accelerations are the joint accelerations.
    assert_close(np.asarray(a).reshape(10, -1, 6)[:, index], want, kind="solve")
    # A joint of a tree is never open. Errors add up along a chain of joints.
    assert_close(gap, np.zeros(gap.shape), scale=10.0)
    assert_close(rate, np.zeros(rate.shape), scale=100.0)


@pytest.mark.slow
def test_a_held_arm_accelerates_as_in_pinocchio():
    """Its tool welded to its base, and held by a ball joint."""
    pin = oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    model = robots.panda_like()
    twin = pin_model(model)
    qs = jax.vmap(lambda key: rb.random_configuration(model, key))(jax.random.split(jax.random.key(0), 20))
    taus = normal(2, 20, model.nv)
    kinds = {"fixed": pin.ContactType.CONTACT_6D, "spherical": pin.ContactType.CONTACT_3D}

    def held(kind, q, v, tau):
        loop = (LoopJoint(kind, "link0", "tool", predecessor_pose=rb.link_pose(model, q, "tool", "link0")),)
        v = impulse(model, q, v, loop)
        result = forward_dynamics(model, q, v, tau, loop)
        return v, result.a, result.constraint_jacobian.T @ result.multipliers

    ours = jax.jit(jax.vmap(lambda *x: {kind: held(kind, *x) for kind in kinds}))
    found = ours(qs, normal(1, 20, model.nv), taus)
    tool = model.link_index("tool")
    body, placement = model.tree.link_bodies[tool], pin.SE3(np.asarray(model.link_placements[tool], float))
    poses = np.asarray(jax.vmap(lambda q: rb.link_pose(model, q, "tool"))(qs), float)
    settings = pin.ProximalSettings(1e-14, 1e-14, 50)
    for kind, contact in kinds.items():
        rows = zip(*(np.asarray(x, float) for x in (qs, *found[kind], taus, poses)), strict=True)
        for q, v, a, force, tau, pose in rows:
            joints = twin.joint_ids[body], placement, 0, pin.SE3(pose)
            constraint = pin.RigidConstraintModel(contact, twin.model, *joints, pin.ReferenceFrame.LOCAL)
            data = constraint.createData()
            pin.initConstraintDynamics(twin.model, twin.data, [constraint], [data])
            want = pin.constraintDynamics(twin.model, twin.data, twin.q(q), v, tau, [constraint], [data], settings)
            # Pinocchio's solution is a proximal one, good to nine digits.
            assert_close(a, want, 1e-7)
            assert_close(tau - force, twin.rnea(q, v, want), 1e-7)


@pytest.mark.slow
def test_a_rank_deficient_loop_is_solved(linkage):
    """Five equations of rank two: the accelerations keep it closed, and satisfy the equations of motion."""
    model, loops, q, v = linkage
    tau = jnp.array([0.3, 0.0, 0.0])
    result = forward_dynamics(model, q, v, tau, loops)
    K, lam = result.constraint_jacobian, result.multipliers
    assert K.shape == (5, 3) and np.linalg.matrix_rank(np.asarray(K, float), 1e-5) == 2
    assert_close(K @ result.a, -result.constraint_bias, kind="solve")
    assert_close(result.mass_matrix @ result.a + result.bias + K.T @ lam, tau, kind="solve", scale=10.0)
    assert_close(rb.rnea(model, q, v, result.a, result.loop_wrenches), tau, kind="solve", scale=10.0)
    assert_close(result.qdot, v)


@pytest.mark.ci
@pytest.mark.float32
def test_single_precision_keeps_its_digits():
    model, loop = four_bar()
    q = jnp.array([0.9, -1.1, 1.8], jnp.float32)
    v = jnp.array([1.0, -0.5, 0.2], jnp.float32)
    result = forward_dynamics(model, q, v, 0 * v, (loop,), stabilization=None)
    assert result.a.dtype == jnp.float32
    # The exact solution by numpy in double precision, from the matrices alone.
    M, c, K, k = (
        np.asarray(x, float)
        for x in (result.mass_matrix, result.bias, result.constraint_jacobian, result.constraint_bias)
    )
    A = K @ np.linalg.solve(M, K.T)
    lam = np.linalg.pinv(A, rcond=1e-5) @ (k - K @ np.linalg.solve(M, c))
    assert_close(result.a, np.linalg.solve(M, -c - K.T @ lam), kind="solve")


@pytest.mark.slow
def test_joint_wrenches_are_those_of_the_accelerations_found(linkage):
    """P13: through the joints goes what moves the bodies; along the axes it is tau, in sum the momentum's rate."""
    model, loops, q, v = linkage
    tau, f_ext = jnp.array([0.3, -0.1, 0.2]), normal(3, 3, 6)
    result = forward_dynamics(model, q, v, tau, loops, f_ext)
    along_axes = (result.joint_wrenches[:, :3] * model.joint_axes).sum(axis=1)
    assert_close(along_axes, tau, kind="solve", scale=10.0)
    rate = along(model, lambda q, v: rb.momentum(model, q, v), q, v, (v, result.a))[1]
    poses = rb.body_poses(model, q)
    # Loop wrenches act inside the robot: in the world they cancel.
    to_world = jax.vmap(motion.transform_force)
    assert_close(to_world(poses, result.loop_wrenches).sum(axis=0), np.zeros(6), scale=10.0)
    outer = to_world(poses, f_ext).sum(axis=0)
    ground = to_world(poses, result.joint_wrenches)[np.array([0, 2])].sum(axis=0)
    mass, com = float(rb.total_mass(model)), np.asarray(rb.center_of_mass(model, q))  # the ground has no mass
    weight = mass * np.asarray(model.gravity)
    assert_close(rate, ground + outer + np.concatenate([np.cross(com, weight), weight]), kind="solve")


@pytest.mark.slow
def test_power_of_a_closed_loop(linkage):
    """P14: loop forces do no work on a loop that is closed."""
    model, loops, q, v = linkage
    tau = jnp.array([0.3, 0.0, 0.0])
    a = forward_dynamics(model, q, v, tau, loops).a

    def energy(q, v):
        return rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)

    assert_close(along(model, energy, q, v, (v, a))[1], tau @ v, kind="solve", scale=10.0)


@pytest.mark.slow
def test_gradients_are_those_of_the_motion_along_the_loop():
    """In both modes, at deficient rank, against finite differences along directions that keep the rank."""
    model, loop = four_bar()
    q, v, tau = jnp.array([0.9, -1.1, 1.8]), jnp.array([1.0, -0.5, 0.2]), jnp.array([0.3, 0.2, 0.1])
    direction, weights = jnp.concatenate([normal(i, 3) for i in (1, 2, 3)]), normal(4, 3)

    @jax.jit
    def everything(x):
        def f(model, x):
            return forward_dynamics(model, x[:3], x[3:6], x[6:], (loop,)).a

        a, forward = jax.jvp(lambda x: f(model, x), (x,), (direction,))
        return a, forward, jax.vjp(f, model, x)[1](weights)

    x = jnp.concatenate([q, v, tau])
    _, forward, (of_model, reverse) = everything(x)
    assert_close(weights @ forward, reverse @ direction, kind="solve")
    assert np.isfinite(of_model.inertias).all() and np.asarray(of_model.inertias).any()
    if X64:
        h = 1e-6
        ahead, behind = everything(x + h * direction)[0], everything(x - h * direction)[0]
        assert_close(forward, (ahead - behind) / (2 * h), kind="difference")


@pytest.mark.slow
def test_inverse_after_forward_dynamics_with_loops(linkage):
    """The motor at the crank alone produces the motion that it produced; the others have no torque."""
    model, loops, q, v = linkage
    tau = jnp.array([0.7, 0.0, 0.0])
    a = forward_dynamics(model, q, v, tau, loops).a
    found = inverse_dynamics(model, q, v, a, loops, actuated=("a",))
    assert_close(found.tau, tau, kind="solve")
    assert_close(found.residual, np.zeros(3), kind="solve", scale=10.0)
    # With all motors the smallest torques are asked for, and they do the same.
    least = inverse_dynamics(model, q, v, a, loops)
    assert np.linalg.norm(least.tau) < 0.9 * 0.7
    again = forward_dynamics(model, q, v, least.tau, loops).a
    assert_close(again, a, kind="solve")


@pytest.mark.slow
def test_what_cannot_be_produced_is_left_over(linkage):
    model, _, q, v = linkage
    zero = jnp.zeros(3)
    found = inverse_dynamics(model, q, v, zero, (), actuated=("a", "d"))
    needed = rb.rnea(model, q, v, zero)
    assert_close(found.residual, -needed * jnp.array([0.0, 1.0, 0.0]), kind="solve")


@pytest.mark.slow
def test_an_impact_is_that_of_pinocchio():
    pin = oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    model = robots.panda_like()
    twin = pin_model(model)
    q, v = rb.random_configuration(model, jax.random.key(3)), normal(4, model.nv)
    rows = rb.point_jacobian(model, q, "tool", jnp.array([0.0, 0.02, 0.1]))
    got = impulse(model, q, v, rows=rows, restitution=0.4)
    pin.computeJointJacobians(twin.model, twin.data, twin.q(q))
    M = twin.crba(q)
    want = pin.impulseDynamics(twin.model, twin.data, twin.q(q), twin.v(v), np.asarray(rows, float), 0.4, 0.0)
    assert_close(got, want, kind="solve")
    assert_close(rows @ got, -0.4 * (rows @ v), kind="solve")
    assert_close(M @ np.asarray(got - v), _in_range(np.asarray(rows).T, M @ np.asarray(got - v)), kind="solve")


def _in_range(A, x):
    return A @ np.linalg.lstsq(A, x, rcond=None)[0]


@pytest.mark.slow
def test_batches_and_shapes(linkage):
    model, loops, q, v = linkage
    batch = jax.vmap(lambda tau: forward_dynamics(model, q, v, tau, loops).a)(normal(0, 4, 3))
    one = forward_dynamics(model, q, v, normal(0, 4, 3)[2], loops).a
    assert_close(batch[2], one, kind="solve")
    with pytest.raises(rb.ShapeError, match="tau"):
        forward_dynamics(model, q, v, jnp.zeros(2), loops)
    with pytest.raises(rb.NameNotFoundError, match="crnk"):
        inverse_dynamics(model, q, v, v, loops, actuated=("crnk",))
    with pytest.raises(rb.ShapeError, match="rows"):
        impulse(model, q, v, rows=jnp.zeros((1, 2)))


@pytest.mark.slow
def test_a_link_held_to_the_world_by_numbers_that_are_traced():
    """Poses of loop joints are inputs: the arm follows the point that holds it."""
    arm = robots.two_link_arm()

    def reached(x):
        ball = LoopJoint("spherical", None, "tool", predecessor_pose=jnp.asarray(place(0.5)).at[1, 3].set(x))
        closed = close_loops(arm, jnp.array([0.1, 0.4]), (ball,))
        return rb.link_pose(arm, closed.q, "tool")[:3, 3]

    at, slope = jax.jit(lambda x: (reached(x), jax.jacrev(reached)(x)))(jnp.array(0.3))
    assert_close(at, [0.5, 0.3, 0.0], kind="solve")
    assert_close(slope, [0.0, 1.0, 0.0], kind="solve")
