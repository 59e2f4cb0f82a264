"""Inverse kinematics: solutions measured by pinocchio, limits, what cannot be reached, and derivatives of solutions."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import ArgumentError, ModelError, NameNotFoundError, ShapeError, robots
from rbydyn_jax.planning import IkStatus, PositionGoal, solve_ik
from rbydyn_jax.spatial import se3, so3
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle

COUNT = 200
TOLERANCE = 1e-6 if X64 else 1e-5


def configurations(model, count=COUNT, seed=7):
    return jax.vmap(rb.random_configuration, in_axes=(None, 0))(model, jax.random.split(jax.random.key(seed), count))


def poses(model, q, link, ref=None):
    return jax.vmap(lambda x: rb.link_pose(model, x, link, ref))(q)


def errors(got, want):
    """Distance and angle between two poses."""
    turn = got[:3, :3].T @ want[:3, :3]
    skew = turn - turn.T
    sine = np.linalg.norm([skew[2, 1], skew[0, 2], skew[1, 0]]) / 2
    return np.linalg.norm(got[:3, 3] - want[:3, 3]), np.arctan2(sine, (np.trace(turn) - 1) / 2)


@pytest.fixture(scope="module")
def panda():
    return robots.panda_like()


@pytest.fixture(scope="module")
def solved(panda):
    target = poses(panda, configurations(panda), "tool")
    return target, solve_ik(panda, "tool", target, key=jax.random.key(0))


@pytest.mark.slow
@pytest.mark.float32
def test_random_poses_are_reached_within_the_limits(panda, solved):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    target, result = solved
    ok = np.asarray(result.solved)
    assert ok.mean() >= (0.995 if X64 else 0.98)
    assert (result.q >= panda.position_lower[None]).all() and (result.q <= panda.position_upper[None]).all()
    twin, tool = pin_model(panda), panda.link_index("tool")
    columns = result.q, target, result.position_error, result.orientation_error, ok
    for q, T, distance, angle, is_solved in zip(*columns, strict=True):
        found = errors(twin.fk(q)[tool], np.asarray(T, float))
        assert np.allclose(found, [distance, angle], atol=2e-6 if not X64 else 1e-12)
        assert max(found) <= 2 * TOLERANCE or not is_solved
    assert result.q.dtype == target.dtype


@pytest.mark.slow
def test_results_depend_on_the_key_and_nothing_else(panda, solved):
    target, result = solved
    again = solve_ik(panda, "tool", target, key=jax.random.key(0))
    assert (np.asarray(again.q) == np.asarray(result.q)).all()
    other = solve_ik(panda, "tool", target, key=jax.random.key(1))
    assert (np.abs(np.asarray(other.q - result.q)).max(axis=1) > 1e-3).sum() > COUNT / 4  # other arms' postures


@pytest.mark.slow
def test_two_links_reach_two_targets_at_once():
    """On a tree with quaternions in its configuration, a slider, and a joint that mimics another."""
    model = random_tree(4, ("floating", "spherical", "revolute", "prismatic", "revolute"), n=5, mimics=1)
    assert model.tree.has_mimics and model.nq > model.nv + 1
    links = model.link_names[-2:]
    q = configurations(model, 20)
    target = jnp.stack([poses(model, q, link) for link in links], axis=1)
    result = solve_ik(model, links, target)
    assert np.asarray(result.solved).mean() >= 0.9
    for k, link in enumerate(links):
        for got, want, ok in zip(poses(model, result.q, link), target[:, k], result.solved, strict=True):
            assert max(errors(np.asarray(got), np.asarray(want))) < 2 * TOLERANCE or not ok


@pytest.mark.slow
@pytest.mark.float32
def test_what_cannot_be_reached_is_approached():
    """A planar arm of 0.5 m and 0.4 m stretches out towards a point at 3 m."""
    arm = robots.two_link_arm()
    target = jnp.eye(4).at[0, 3].set(3.0)
    beside = jnp.stack([target, rb.link_pose(arm, jnp.array([0.3, 0.5]), "tool"), target.at[0, 3].set(jnp.nan)])
    result = solve_ik(arm, "tool", beside)
    assert result.status.tolist() == [IkStatus.NOT_FOUND, IkStatus.SOLVED, IkStatus.NOT_FINITE]
    assert 2.1 <= result.position_error[0] < 2.12 and result.orientation_error[0] < 0.2
    assert_close(result.q[1], [0.3, 0.5], tol=1e-5 if X64 else 1e-4)


@pytest.mark.slow
def test_a_solution_beyond_the_limits_is_none():
    arm = robots.two_link_arm()
    target = jnp.tile(rb.link_pose(arm, jnp.array([0.3, 0.5]), "tool")[None], (3, 1, 1))
    tight = rb.with_limits(arm, position_upper=jnp.array([0.2, 1.0], arm.position_upper.dtype))
    result = solve_ik(tight, "tool", target)
    assert (result.status == IkStatus.NOT_FOUND).all()
    assert (result.q[:, 0] == tight.position_upper[0]).all()  # as near as it gets


@pytest.mark.slow
def test_the_first_attempt_starts_at_q0_and_other_joints_stay(panda):
    q = configurations(panda, 20)
    near = jax.vmap(rb.clamp, in_axes=(None, 0))(panda, q + 0.01).at[:, 2].set(q[:, 2])
    six = tuple(name for name in panda.joint_names if name != "joint3")
    result = solve_ik(panda, "tool", poses(panda, q, "tool"), q0=near, joints=six)
    assert np.asarray(result.solved).all() and (result.q[:, 2] == q[:, 2]).all()
    first = np.asarray(result.attempts) == 1
    assert first.mean() > 0.8 and np.abs(result.q - q)[first].max() < 1.0


@pytest.mark.slow
def test_of_attempts_that_end_together_the_first_counts(panda):
    """Six joints, so that solutions are apart, and one target at a time, for which several starts are tried at once."""
    q = configurations(panda, 40)
    near = jax.vmap(rb.clamp, in_axes=(None, 0))(panda, q + 0.2 * normal(3, *q.shape)).at[:, 2].set(q[:, 2])
    six = tuple(name for name in panda.joint_names if name != "joint3")
    for x, start in zip(q, near, strict=True):
        result = solve_ik(panda, "tool", rb.link_pose(panda, x, "tool"), q0=start, joints=six)
        assert result.solved and np.abs(result.q - x).max() < 1.0


differences = pytest.mark.skipif(not X64, reason="differences of solutions need float64")


@pytest.fixture(scope="module")
def case(panda):
    q = jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
    return q, rb.link_pose(panda, q, "tool")


@pytest.mark.slow
@differences
def test_a_redundant_arm_moves_least(panda, case):
    """dq = J^+ times the twist of the target, of pinocchio's Jacobian."""
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    q0, target = case
    twist = normal(3, 6)

    def solution(t):
        turned = so3.exp(t * twist[:3]) @ target[:3, :3]
        moved = se3.from_R_p(turned, target[:3, 3] + t * twist[3:])
        return solve_ik(panda, "tool", moved, q0=q0, position_tolerance=1e-10, orientation_tolerance=1e-10).q

    @jax.jit
    def backward(t):
        q, pull = jax.vjp(solution, t)
        return q, jax.vmap(lambda e: pull(e)[0])(jnp.eye(7))

    q, dq = backward(0.0)
    assert_close(q, q0, tol=1e-9)
    want = np.linalg.pinv(pin_model(panda).jacobian(q, "tool")) @ np.asarray(twist)
    assert_close(dq, want, kind="solve")


@pytest.mark.slow
@differences
def test_solutions_follow_target_robot_and_other_joints(panda, case):
    """Six joints have one solution nearby, so differences of solutions are derivatives."""
    q0, target = case
    six = tuple(name for name in panda.joint_names if name != "joint3")
    solve = partial(
        solve_ik, link="tool", joints=six, position_tolerance=1e-11, orientation_tolerance=1e-11, iterations=80
    )
    along = normal(5, 3), normal(6, len(panda.geometry)), jnp.zeros(7).at[2].set(1.0)

    def solution(t):
        robot = eqx.tree_at(lambda m: m.geometry, panda, panda.geometry + 0.01 * t * along[1])
        return solve(robot, target=target.at[:3, 3].add(t * along[0]), q0=q0 + t * along[2]).q

    h = 1e-4
    moving = jax.jit(lambda t: jax.jvp(solution, (t,), (1.0,)))
    assert_close(moving(0.0)[1], (moving(h)[0] - moving(-h)[0]) / (2 * h), kind="difference")


@pytest.mark.slow
@differences
def test_finite_where_the_arm_is_singular():
    """The stretched arm cannot reach further: what it cannot follow, it does not."""
    arm = robots.two_link_arm()
    out = rb.link_pose(arm, jnp.zeros(2), "tool")

    def tip(x):
        return solve_ik(arm, "tool", out.at[0, 3].add(x), q0=jnp.zeros(2)).q

    slopes = jax.jit(jax.jacfwd(tip))
    assert np.abs(slopes(0.0)).max() < 1e-12
    assert slopes(5.0).tolist() == [0.0, 0.0]  # nothing is solved


def test_wrong_arguments(panda):
    target = jnp.eye(4)
    with pytest.raises(NameNotFoundError):
        solve_ik(panda, "hand", target)
    with pytest.raises(ShapeError, match="target"):
        solve_ik(panda, "tool", target[:3])
    with pytest.raises(ShapeError, match="q0"):
        solve_ik(panda, "tool", jnp.tile(target[None], (3, 1, 1)), q0=jnp.zeros((2, 7)))
    with pytest.raises(ShapeError, match="at least one pose"):
        solve_ik(panda, "tool", jnp.zeros((0, 4, 4)))
    with pytest.raises(ArgumentError, match="attempts must be at least 1"):
        solve_ik(panda, "tool", target, attempts=0)
    with pytest.raises(ModelError, match="none of the joints"):
        solve_ik(panda, "link1", target, joints=("joint5",))
    with pytest.raises(ModelError, match="listed twice"):
        solve_ik(panda, "tool", target, joints=("joint5", "joint5"))
    mimicking = random_tree(2, ("revolute", "prismatic", "continuous"), 7, mimics=2)
    follower, leader = next((i, m.source) for i, m in enumerate(mimicking.tree.mimics) if m is not None)
    with pytest.raises(ModelError, match="mimics another"):
        solve_ik(mimicking, mimicking.tree.principal_links[leader], target, joints=(leader, follower))
    with pytest.raises(ModelError, match="mimics another"):
        solve_ik(mimicking, mimicking.tree.principal_links[follower], target, joints=(follower,))


@pytest.mark.ci
def test_a_vmap_is_a_batch(panda):
    """Also in another `vmap`."""
    targets, key = poses(panda, configurations(panda, 6, seed=5), "tool"), jax.random.key(3)

    def one(target):
        return solve_ik(panda, "tool", target, key=key, attempts=32)

    together = one(targets)
    assert bool(together.solved.all())
    for result in (jax.vmap(one)(targets), jax.vmap(jax.vmap(one))(targets.reshape(2, 3, 4, 4))):
        assert_close(result.q.reshape(6, 7), together.q, kind="solve")  # the rounding may be another
        np.testing.assert_array_equal(result.status.reshape(6), together.status)


@pytest.mark.slow
def test_a_vmap_over_starts_keys_robots_and_goals(panda):
    """Over robots and keys each problem is searched by itself."""
    q = configurations(panda, 6, seed=5)
    targets, key = poses(panda, q, "tool"), jax.random.key(3)
    keys = jax.random.split(key, 6)

    def one(target, q0=None, key=key, model=panda):
        return solve_ik(model, "tool", target, q0=q0, key=key, attempts=32)

    heavier = jax.vmap(lambda k: rb.with_gravity(panda, jnp.array([0.0, 0.0, -9.0 - k])))(jnp.arange(6.0))
    several = {
        "starts": jax.vmap(lambda x: one(targets[0], x))(q),
        "targets and starts": jax.vmap(one)(targets, q),
        "keys": jax.vmap(lambda target, key: one(target, key=key))(targets, keys),
        "robots": jax.vmap(lambda target, model: one(target, model=model))(targets, heavier),
    }
    for name, result in several.items():
        wanted = targets[:1] if name == "starts" else targets
        found = poses(panda, result.q, "tool")
        assert bool(result.solved.all()), name
        np.testing.assert_allclose(found, jnp.broadcast_to(wanted, found.shape), rtol=0, atol=3 * TOLERANCE)
    goals = jax.vmap(lambda p: solve_ik(panda, goals=[PositionGoal("tool", p)], key=key))(targets[:, :3, 3])
    np.testing.assert_allclose(poses(panda, goals.q, "tool")[:, :3, 3], targets[:, :3, 3], rtol=0, atol=TOLERANCE)

    def square(target):
        return jnp.sum(one(target).q ** 2)

    each = jax.vmap(jax.grad(square))(targets)
    assert_close(each, jax.grad(lambda T: jnp.sum(one(T).q ** 2))(targets), kind="solve")
    assert bool(jnp.isfinite(each).all())


@pytest.mark.slow
def test_a_vmap_costs_what_a_batch_does(panda):
    """The loop is that of the batch: counted in the program."""
    targets = poses(panda, configurations(panda, 64), "tool")

    def operations(f):
        return len(jax.jit(f).lower(targets).as_text().splitlines())

    batch = operations(lambda T: solve_ik(panda, "tool", T).q)
    assert operations(jax.vmap(lambda T: solve_ik(panda, "tool", T).q)) < 1.1 * batch
