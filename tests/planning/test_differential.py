"""Velocities under limits: minima by scipy, limits and clearance in closed loop, and wheels that roll."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import ArgumentError, DtypeError, ModelError, ShapeError, collision, robots
from rbydyn_jax.planning import (
    ConfigurationGoal,
    LinkVelocity,
    PositionGoal,
    SoftGoal,
    differential_ik,
)
from rbydyn_jax.rby1.mobility import rolling_constraint, rolling_motions, with_planar_base
from tests.helpers import X64, assert_close, normal, oracle, untyped
from tests.planning.arms import pole_arm, pole_pairs

needs_x64 = pytest.mark.skipif(not X64, reason="minima are compared to digits that float32 does not have")


@pytest.mark.slow
@needs_x64
def test_velocities_are_minima_within_the_limits():
    """Bounded least squares by scipy, on Jacobians of pinocchio; and their derivatives by differences."""
    oracle("pinocchio")
    optimize = pytest.importorskip("scipy.optimize")
    from rbydyn_jax.engines.pinocchio import pin_model

    arm, dt, damping = robots.panda_like(), 0.05, 1e-3
    twin = pin_model(arm)
    q = jax.vmap(rb.random_configuration, (None, 0))(arm, jax.random.split(jax.random.key(7), 40))
    q = q.at[0].set(arm.position_upper).at[1, 2].set(arm.position_lower[2] - 0.1)
    twist, rest = 2.0 * normal(3, 40, 6), q + normal(4, 40, 7)
    weight = jnp.array([1.0, 1.0, 1.0, 20.0, 20.0, 20.0])

    def solve(q, twist, rest):
        costs = [LinkVelocity("tool", twist, weight), SoftGoal(ConfigurationGoal(rest), 0.1)]
        return differential_ik(arm, q, costs, dt=dt, gain=0.3, damping=damping)

    found, slope = jax.jit(jax.vmap(lambda *x: (solve(*x), jax.jacfwd(lambda y: solve(x[0], y, x[2]).v)(x[1]))))(
        q, twist, rest
    )
    assert found.solved.all()
    low, high = np.asarray(arm.position_lower), np.asarray(arm.position_upper)
    bound, active = np.asarray(arm.velocity_limit), 0
    for x, t, r, v, by_twist in zip(*map(np.asarray, (q, twist, rest, found.v, slope)), strict=True):
        root = np.sqrt(np.asarray(weight))
        A = np.concatenate(
            [root[:, None] * twin.jacobian(x, "tool"), np.sqrt(0.1) * np.eye(7), np.sqrt(damping) * np.eye(7)]
        )

        def best(t, x=x, r=r, A=A, root=root) -> np.ndarray:
            b = np.concatenate([root * t, np.sqrt(0.1) * 0.3 * (r - x) / dt, np.zeros(7)])
            upper = np.clip(0.5 * (high - x) / dt, 0.0, bound) + 1e-15
            lower = -np.clip(0.5 * (x - low) / dt, 0.0, bound) - 1e-15
            return optimize.lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14).x

        assert np.abs(best(t) - v).max() < 1e-6
        active += bool((np.abs(np.abs(v) - bound) < 1e-6).any())
        difference = (best(t + 1e-5) - best(t - 1e-5)) / 2e-5
        assert np.abs(difference - by_twist.sum(axis=1)).max() < 1e-4 * (1 + np.abs(difference).max())
    assert active > 10


@pytest.mark.ci
@pytest.mark.parametrize("limited", [(), (0, 2, 5)])
def test_without_limits_of_velocity_those_of_position_are_kept(limited):
    """At any rate of control, against bounded least squares by scipy; clearance likewise, along a rail."""
    optimize = pytest.importorskip("scipy.optimize")
    arm = robots.panda_like()
    bound = np.full(7, np.inf)
    bound[list(limited)] = 2.0
    arm = rb.with_limits(arm, velocity_limit=jnp.asarray(bound, arm.gravity.dtype))
    q, goal = (
        jax.vmap(rb.random_configuration, (None, 0))(arm, jax.random.split(jax.random.key(seed), 8)) for seed in (7, 8)
    )
    pose = jax.vmap(lambda q: rb.link_pose(arm, q, "tool"))(goal)

    @jax.jit
    @jax.vmap
    def solve(q, pose, dt):
        costs = [SoftGoal(PositionGoal("tool", 3.0 * pose[:3, 3])), SoftGoal(ConfigurationGoal(5.0 - 3.0 * q), 0.1)]
        found = differential_ik(arm, q, costs, dt=dt, damping=1e-3)
        point = rb.link_pose(arm, q, "tool")[:3, 3]
        return found, rb.point_jacobian(arm, q, "tool", jnp.zeros(3)), 3.0 * pose[:3, 3] - point

    low, high, at = (np.asarray(x, float) for x in (arm.position_lower, arm.position_upper, q))
    for dt in (1e-1, 1e-3, 1e-5):
        found, J, e = solve(q, pose, jnp.full(8, dt))
        assert found.solved.all()
        step = np.asarray(found.v, float) * dt
        upper, lower = (np.minimum(0.5 * np.abs(x - at), dt * bound) for x in (high, low))
        assert (step <= upper + 1e-5).all() and (step >= -lower - 1e-5).all()
        if not X64:
            continue
        weight = np.sqrt([100.0, 0.1, 1e-3])  # a goal weighs 1 for 0.1 m
        for k in range(8):
            A = np.concatenate([weight[0] * J[k], weight[1] * np.eye(7), weight[2] * np.eye(7)])
            b = np.concatenate([weight[0] * e[k], weight[1] * (5.0 - 4.0 * at[k]), np.zeros(7)])
            best = optimize.lsq_linear(A, b, (-lower[k], upper[k]), method="bvls", tol=1e-14).x
            assert np.abs(best - step[k]).max() < 1e-6

    rail = (
        rb.RobotBuilder("rail").link("base").link("car", 1.0, inertia=0.1).prismatic("j", "base", "car", axis=(1, 0, 0))
    )
    rail = rb.build_model(rail.capsule("car", 0.2, 0.05))
    wall = collision.World(collision.half_space(jnp.array([0.5, 0.0, 0.0]), jnp.array([-1.0, 0.0, 0.0])))
    for dt in (1e-1, 1e-4):
        there = SoftGoal(ConfigurationGoal(jnp.array([1.5])))
        found = differential_ik(rail, jnp.zeros(1), [there], dt=dt, clearance=0.01, world=wall, limit_gain=1.0)
        assert found.solved
        assert_close(found.v * dt, [0.44], 1e-5)


@pytest.mark.slow
def test_a_closed_loop_stays_clear_of_the_pole():
    """Drawn straight through the pole, the arm comes as near as it may, and no nearer."""
    arm, dt = pole_arm(), 0.02
    near, pairs = 0.02, pole_pairs(arm)
    behind = jnp.array([0.7, 0.6], arm.gravity.dtype)

    def step(q, _):
        goal = SoftGoal(ConfigurationGoal(behind))
        found = differential_ik(arm, q, [goal], dt=dt, gain=0.1, clearance=near, collision_pairs=pairs)
        q = q + found.v * dt
        return q, (q, found.v, found.solved)

    _, (q, v, solved) = jax.jit(lambda q: jax.lax.scan(step, q, None, 150))(jnp.array([-0.9, 0.6], arm.gravity.dtype))
    assert solved.all() and (jnp.abs(v) <= arm.velocity_limit[None] + 1e-4).all()
    q = np.asarray(q, float)
    elbow, along = 0.5 * np.exp(1j * q[:, :1]), np.exp(1j * q.sum(axis=1))[:, None]
    distance = np.abs(elbow + np.linspace(0.1, 0.4, 3001) * along - 0.9).min(axis=1) - 0.06
    assert near - 1e-3 < distance.min() < near + 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("name, count", [("rby1a", 2), ("rby1m", 3)])
def test_motions_of_rolling_wheels_span_what_rolling_allows(name, count):
    robot = with_planar_base(getattr(robots, name)())
    A, motions = (np.asarray(f(robot), float) for f in (rolling_constraint, rolling_motions))
    assert np.abs(A @ motions).max() < 1e-6
    assert np.linalg.matrix_rank(motions) == motions.shape[1] == robot.nv - np.linalg.matrix_rank(A)
    base = robot.tree.v_slices[robot.joint_index("planar_base")]
    assert np.linalg.matrix_rank(motions[base]) == count


@pytest.mark.slow
def test_a_hand_is_led_by_wheels_that_roll():
    """Sideways is what two wheels cannot do: arm and turning base do it together, and no wheel is too fast."""
    robot = with_planar_base(robots.rby1a())
    q = (
        jnp.zeros(robot.nq, robot.gravity.dtype)
        .at[robot.tree.q_slices[robot.joint_index("right_arm_3")].start]
        .set(-1.5)
    )
    left = LinkVelocity("ee_right", jnp.array([0.0, 0.0, 0.0, 0.0, 0.05, 0.0], q.dtype))
    found = differential_ik(robot, q, [left], dt=0.01, damping=1e-6, motions=rolling_motions(robot))
    assert found.solved and (jnp.abs(found.v) <= robot.velocity_limit * (1 + 1e-5)).all()
    assert_close(rolling_constraint(robot) @ found.v, np.zeros(3), 1e-5, scale=1.0)
    assert_close(rb.jacobian(robot, q, "ee_right") @ found.v, left.velocity, 1e-3, scale=0.05)


@pytest.mark.ci
def test_traced_shares_of_more_than_all_are_no_solution():
    arm, q = robots.two_link_arm(), jnp.zeros(2)
    up = [LinkVelocity("tool", jnp.ones(6))]
    step = jax.vmap(lambda share: differential_ik(arm, q, up, dt=0.1, limit_gain=share))
    found = step(jnp.array([1.0, 3.0, jnp.nan]))
    assert found.solved.tolist() == [True, False, False]


@pytest.mark.ci
@needs_x64
def test_float32_follows_small_weights():
    arm = robots.panda_like(dtype=jnp.float32)
    twists, keys = 0.3 * normal(0, 30, 6), jax.random.split(jax.random.key(0), 30)
    qs = jax.vmap(rb.random_configuration, (None, 0))(arm, keys)

    def step(model, q, twist):
        costs = [LinkVelocity("tool", twist), SoftGoal(ConfigurationGoal(jnp.zeros(7, q.dtype)), 1e-4)]
        return differential_ik(model, q, costs, dt=0.01, damping=1e-4)

    got = jax.jit(jax.vmap(step, (None, 0, 0)))(arm, qs, jnp.asarray(twists, jnp.float32))
    wide = jax.tree.map(lambda x: x.astype(float), (arm, qs))
    want = jax.jit(jax.vmap(step, (None, 0, 0)))(*wide, jnp.asarray(twists, float))
    assert got.solved.all() and want.solved.all()
    assert_close(got.v, want.v, 5e-3, scale=1.0)


@pytest.mark.ci
def test_of_motions_that_are_none_nothing_is_done():
    """Columns of zeros change neither the solution nor its derivatives."""
    arm, q = robots.two_link_arm(), jnp.zeros(2)
    up, away = (LinkVelocity("tool", jnp.ones(6) * x) for x in (1.0, jnp.nan))

    def step(motions, cost=up):
        return differential_ik(arm, q, [cost], dt=0.1, motions=motions)

    none = step(jnp.zeros((2, 1)))
    assert none.solved and (none.v == 0.0).all()
    one = jnp.array([[1.0], [0.2]])
    alone, beside = step(one), step(jnp.concatenate([jnp.zeros((2, 1)), one], axis=1))
    assert alone.solved and beside.solved and jnp.abs(alone.v).max() > 0.1
    assert_close(beside.v, alone.v, 1e-9 if X64 else 1e-4)
    slopes = [jax.jacfwd(lambda m, k=k: step(jnp.pad(m, ((0, 0), (0, k)))).v)(one) for k in (0, 2)]
    assert_close(slopes[1], slopes[0], 1e-7 if X64 else 1e-3)
    assert not jax.jit(step)(jnp.zeros((2, 1)), away).solved


def test_wrong_arguments_are_named():
    arm, q = robots.two_link_arm(), jnp.zeros(2)
    still = LinkVelocity("tool", jnp.zeros(6))
    world = collision.World(collision.sphere(jnp.ones(3), 0.1))
    cases = [
        (ArgumentError, "costs must not be empty", {"costs": []}),
        (
            DtypeError,
            r"costs\[0\] must be one of SoftGoal, LinkVelocity",
            {"costs": [PositionGoal("tool", jnp.zeros(3))]},
        ),
        (ShapeError, r"costs\[0\].velocity must have shape \(6,\)", {"costs": [LinkVelocity("tool", jnp.zeros(3))]}),
        (
            ShapeError,
            r"costs\[0\].weight must be a number or",
            {"costs": [LinkVelocity("tool", jnp.zeros(6), jnp.ones(3))]},
        ),
        (ArgumentError, "dt must be finite and positive", {"dt": 0.0}),
        *((ArgumentError, r"limit_gain must be in \(0, 1\]", {"limit_gain": x}) for x in (0.0, 3.0, jnp.nan)),
        (ArgumentError, "joints and motions must not both", {"joints": ("elbow",), "motions": jnp.eye(2)}),
        (ShapeError, r"motions must have shape \(2, ...\)", {"motions": jnp.eye(3)}),
        (ShapeError, r"motions must have at least one column, .* got shape \(2, 0\)", {"motions": jnp.ones((2, 0))}),
        (
            ArgumentError,
            r"costs\[0\].velocity must be finite",
            {"costs": [LinkVelocity("tool", jnp.full(6, jnp.nan))]},
        ),
        (
            ArgumentError,
            r"costs\[0\].goal.position must be finite",
            {"costs": [SoftGoal(PositionGoal("tool", jnp.full(3, jnp.inf)))]},
        ),
        (
            ArgumentError,
            r"costs\[0\].link and costs\[0\].ref must be two links, got 'tool' for both",
            {"costs": [LinkVelocity("tool", jnp.zeros(6), ref="tool")]},
        ),
        (ArgumentError, "world needs a clearance", {"world": world}),
        (
            ModelError,
            "none of the joints that may move moves 'tool'",
            {"costs": [LinkVelocity("tool", jnp.zeros(6), ref="lower")]},
        ),
    ]
    for error, message, options in cases:
        with pytest.raises(error, match=message):
            differential_ik(arm, q, **untyped({"costs": [still], "dt": 0.1} | options))
