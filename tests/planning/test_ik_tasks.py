"""Inverse kinematics of goals, with costs and a clearance: measured by pinocchio, scipy and sampled distances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import ArgumentError, DtypeError, ModelError, RbydynError, ShapeError, collision, robots
from rbydyn_jax.planning import (
    ComGoal,
    ConfigurationGoal,
    IkStatus,
    LinkVelocity,
    LookAtGoal,
    Manipulability,
    PoseGoal,
    PositionGoal,
    SoftGoal,
    solve_ik,
)
from rbydyn_jax.rby1.mobility import with_planar_base
from rbydyn_jax.whole_body import PatchContact, PointContact
from rbydyn_jax.whole_body.contacts import check_contacts
from tests.helpers import X64, assert_close, oracle, untyped
from tests.planning.arms import pole_arm, pole_pairs

TOLERANCE = 1e-6 if X64 else 1e-5
LENGTHS = np.array([0.5, 0.4, 0.3, 0.2])


def planar_arm() -> rb.Model:
    """Four links in a plane, two more than a point needs."""
    b = rb.RobotBuilder("planar_arm").link("base")
    before, x = "base", 0.0
    for k, length in enumerate(LENGTHS):
        b.link(f"l{k}", 1.0, (length / 2, 0, 0), (0.001, 0.01, 0.01))
        b.revolute(f"j{k}", before, f"l{k}", xyz=(x, 0, 0), axis=(0, 0, 1), lower=-2.5, upper=2.5)
        before, x = f"l{k}", float(length)
    b.link("tool").fixed("mount", before, "tool", xyz=(x, 0, 0))
    return rb.build_model(b.build_description())


def tip(q) -> np.ndarray:
    angles = np.cumsum(q)
    return np.array([LENGTHS @ np.cos(angles), LENGTHS @ np.sin(angles), 0.0])


def tip_jacobian(q) -> np.ndarray:
    angles = np.cumsum(q)
    steps = np.stack([-LENGTHS * np.sin(angles), LENGTHS * np.cos(angles)])
    return np.stack([steps[:, k:].sum(axis=1) for k in range(4)], axis=1)


@pytest.mark.slow
@pytest.mark.float32
def test_a_link_looks_at_points_from_a_place():
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    arm = robots.panda_like()
    points = jnp.array([[0.6, 0.1, 0.3], [0.2, -0.5, 0.1], [0.9, 0.2, 0.4], [0.4, 0.1, -1.0]], arm.gravity.dtype)
    place, axis = jnp.array([0.4, 0.0, 0.6], arm.gravity.dtype), np.array([1.0, 0.0, 1.0]) / np.sqrt(2.0)
    found = solve_ik(arm, goals=[LookAtGoal("tool", points, axis=(2.0, 0.0, 2.0)), PositionGoal("tool", place)])
    assert found.solved.all()
    twin, tool = pin_model(arm), arm.link_index("tool")
    for q, point in zip(np.asarray(found.q), np.asarray(points, float), strict=True):
        T = twin.fk(q)[tool]
        assert np.linalg.norm(T[:3, 3] - np.asarray(place, float)) < 2 * TOLERANCE
        there = (point - T[:3, 3]) / np.linalg.norm(point - T[:3, 3])
        assert np.linalg.norm(np.cross(T[:3, :3] @ axis, there)) < 2 * TOLERANCE and there @ T[:3, :3] @ axis > 0


@pytest.mark.slow
def test_the_center_of_mass_and_relative_poses_are_goals():
    """A fork: two arms of two links on one base, one hand relative to the other, and where the masses are."""
    b = rb.RobotBuilder("fork").link("base")
    for side, y in (("a", 0.2), ("b", -0.2)):
        b.link(f"{side}0", 1.0, (0.2, 0, 0), (0.001, 0.01, 0.01)).link(
            f"{side}1", 1.0, (0.2, 0, 0), (0.001, 0.01, 0.01)
        )
        b.revolute(f"{side}_shoulder", "base", f"{side}0", xyz=(0, y, 0), axis=(0, 0, 1), lower=-2.0, upper=2.0)
        b.revolute(f"{side}_elbow", f"{side}0", f"{side}1", xyz=(0.4, 0, 0), axis=(0, 0, 1), lower=-2.0, upper=2.0)
    fork = rb.build_model(b.build_description())
    q = jnp.array([0.5, -0.7, -0.3, 0.4], fork.gravity.dtype)
    grasp, com = rb.link_pose(fork, q, "a1", "b1"), rb.center_of_mass(fork, q)
    goals = [PoseGoal("a1", grasp, ref="b1"), ComGoal(com, axes=(0,))]
    found = solve_ik(fork, goals=goals, key=jax.random.key(2))
    assert found.solved

    def masses(q) -> float:
        x = [0.2 * np.cos(q[k]) + 0.4 * np.cos(q[k]) + 0.2 * np.cos(q[k] + q[k + 1]) for k in (0, 2)]
        return sum(x) / 4

    def hands(q) -> list[np.ndarray]:
        turns = [np.exp(1j * np.array([q[k], q[k] + q[k + 1]])) for k in (0, 2)]
        (a, turn_a), (b, turn_b) = ((1j * y + 0.4 * t[0], t[1]) for y, t in zip((0.2, -0.2), turns, strict=True))
        return [(a - b) / turn_b, turn_a / turn_b]

    got = np.asarray(found.q, float)
    assert abs(masses(got) - masses(np.asarray(q, float))) < 2 * TOLERANCE
    assert np.abs(np.subtract(hands(got), hands(np.asarray(q, float)))).max() < 2 * TOLERANCE
    assert np.linalg.norm(got - np.asarray(q, float)) > 1e-3  # its own solution


def pole_distance(q) -> float:
    """From the lower link to the pole, by points on the segment of the link: the pole is vertical."""
    elbow, along = 0.5 * np.exp(1j * q[0]), np.exp(1j * (q[0] + q[1]))
    return np.abs(elbow + np.linspace(0.1, 0.4, 3001) * along - 0.9).min() - 0.06


@pytest.mark.slow
def test_solutions_stay_clear_and_those_that_cannot_are_named():
    """A point that the planar arm reaches with the elbow left or right: the pole leaves one, or none."""
    arm = pole_arm()
    q = jnp.array([[0.9, -1.2], [-0.9, 1.2], [0.5, -0.6]], arm.gravity.dtype)
    there = jax.vmap(lambda x: rb.link_pose(arm, x, "tool")[:3, 3])(q)
    other = jnp.stack([q[:, 0] + 2 * jnp.arctan2(0.4 * jnp.sin(q[:, 1]), 0.5 + 0.4 * jnp.cos(q[:, 1])), -q[:, 1]], 1)
    distances = np.array([[pole_distance(x) for x in np.asarray(side, float)] for side in (q, other)])
    clearance = float(np.sort(distances, axis=0)[1, :2].min() - 5e-3)
    free = (distances >= clearance).any(axis=0)
    assert free.tolist() == [True, True, False] and (distances[:, :2] < clearance).any()
    goals = [PositionGoal("tool", there)]
    found = solve_ik(arm, goals=goals, clearance=clearance, collision_pairs=pole_pairs(arm))
    assert found.status.tolist() == [IkStatus.SOLVED, IkStatus.SOLVED, IkStatus.IN_COLLISION]
    assert found.distance is not None and found.position_error.max() <= TOLERANCE
    assert_close(found.distance, [pole_distance(x) for x in np.asarray(found.q, float)], 1e-5, scale=1.0)
    assert (found.distance[:2] >= clearance).all() and found.distance[2] < clearance


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="minima are compared to digits that float32 does not have")
def test_costs_are_minimal_along_the_goals():
    """By scipy from the solution: no configuration nearby at the same place, within the limits, costs less."""
    optimize = pytest.importorskip("scipy.optimize")
    arm = planar_arm()
    rest, weight = np.array([0.3, 0.3, -0.2, 0.9]), np.array([1.0, 2.0, 0.5, 3.0])
    place = jnp.stack([jnp.asarray(tip(q)) for q in ([0.5, 0.5, 0.5, 0.5], [1.4, -1.0, 1.0, -1.3])])

    posture = SoftGoal(ConfigurationGoal(jnp.asarray(rest)), jnp.asarray(weight))
    found = solve_ik(arm, goals=[PositionGoal("tool", place)], costs=[posture])
    assert found.solved.all()
    for q, goal in zip(np.asarray(found.q), np.asarray(place), strict=True):
        at_goal = {"type": "eq", "fun": lambda x, goal=goal: (tip(x) - goal)[:2]}
        best = optimize.minimize(
            lambda x: 0.5 * weight @ (x - rest) ** 2, q, constraints=[at_goal], bounds=[(-2.5, 2.5)] * 4, tol=1e-12
        )
        assert np.abs(tip(q) - goal).max() < 2e-6 and best.success
        assert np.abs(best.x - q).max() < 1e-4


@pytest.mark.slow
@pytest.mark.float32
def test_a_posture_leaves_no_slope_along_the_goals(dtype):
    """Of 32 solutions, those whose joints are within their limits; the Jacobian is that of `link_pose`."""
    arm = robots.panda_like()
    low, high = np.asarray(arm.position_lower, float), np.asarray(arm.position_upper, float)
    rest = np.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
    place = jax.jit(lambda q: rb.link_pose(arm, q, "tool")[:3, 3])
    random = np.random.default_rng(1).uniform(low, high, (32, 7))
    places = jnp.stack([place(jnp.asarray(q, dtype)) for q in random])
    posture = SoftGoal(ConfigurationGoal(jnp.asarray(rest, dtype)), 1.0)
    found = solve_ik(arm, goals=[PositionGoal("tool", places)], costs=[posture])
    assert found.solved.all()
    q = np.asarray(found.q, float)
    inner = q[(np.minimum(q - low, high - q) > 1e-3).all(axis=1)]
    slopes = []
    for x in inner:
        J = np.asarray(jax.jacfwd(place)(jnp.asarray(x, dtype)), float)
        slope = x - rest
        slopes.append(np.abs(slope - J.T @ np.linalg.lstsq(J.T, slope, rcond=None)[0]).max())
    assert len(inner) > 15
    assert np.median(slopes) < (1e-4 if X64 else 1e-2) and np.mean(np.array(slopes) > 0.02) < 0.1


@pytest.mark.slow
def test_a_posture_of_a_joint_on_a_manifold_is_as_near_as_scipy_brings_it():
    from scipy.optimize import minimize

    up: dict = {"axis": (0, 0, 1)}
    b = rb.RobotBuilder("cart").link("world").link("body", 2.0, (0, 0, 0.1), 0.2).planar("base", "world", "body", **up)
    b.link("arm", 1.0, (0, 0, 0.3), 0.05).revolute("j", "body", "arm", xyz=(0.5, 0, 0), lower=-2, upper=2, **up)
    model = rb.build_model(b.link("tip").fixed("mount", "arm", "tip", xyz=(0.7, 0, 0)))
    posture, wanted = jnp.array([0.0, 0.0, 0.0, 0.3]), jnp.array([-1.0, 1.5, 0.0])
    goal, cost = PositionGoal("tip", wanted), SoftGoal(ConfigurationGoal(posture), 1.0)
    found = solve_ik(model, goals=[goal], costs=[cost], q0=jnp.array([0.0, 0.0, 0.5, 0.3]), joints=model.joint_names)
    assert found.solved

    value = jax.jit(lambda q: 0.5 * jnp.sum(rb.difference(model, q, posture) ** 2))
    place = jax.jit(lambda q: (rb.link_pose(model, q, "tip")[:3, 3] - wanted)[:2])
    slope, turn = jax.jit(jax.grad(value)), jax.jit(jax.jacfwd(place))
    best = minimize(value, found.q, jac=slope, constraints={"type": "eq", "fun": place, "jac": turn}, method="SLSQP")
    assert_close(value(found.q), best.fun, 1e-6)


@pytest.mark.slow
def test_what_is_left_to_choose_goes_to_manipulability():
    """Along the solutions of a pose in the plane, none nearby has a larger det(J J^T)."""
    arm = planar_arm()
    q = jnp.array([0.1, 0.3, 0.4, 0.9], arm.gravity.dtype)
    found = solve_ik(arm, "tool", rb.link_pose(arm, q, "tool"), q0=q, costs=[Manipulability("tool")])
    assert found.solved

    def jacobian(x) -> np.ndarray:
        return np.concatenate([np.ones((1, 4)), tip_jacobian(np.asarray(x, float))])

    def volume(x) -> float:
        return float(np.linalg.det(jacobian(x) @ jacobian(x).T))

    along = np.linalg.svd(jacobian(found.q))[2][-1]  # the motion that keeps the pose
    assert volume(found.q) > 1.01 * volume(q)
    for t in (-0.02, 0.02):
        assert volume(np.asarray(found.q, float) + t * along) < volume(found.q) * (1 + 1e-3)


@pytest.mark.slow
def test_a_mobile_base_goes_where_the_arm_does_not_reach():
    robot = with_planar_base(robots.two_link_arm())
    place = jnp.array([3.0, -2.0, 0.0], robot.gravity.dtype)
    found = solve_ik(robot, goals=[PositionGoal("tool", place)])
    x, y, turn, shoulder, elbow = np.asarray(found.q, float)
    tool = x + 1j * y + 0.5 * np.exp(1j * (turn + shoulder)) + 0.4 * np.exp(1j * (turn + shoulder + elbow))
    assert found.solved and abs(tool - (3.0 - 2.0j)) < 1e-5


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="derivatives of solutions need float64")
def test_derivatives_of_goals_are_least_changes_and_some_are_not_known():
    arm = planar_arm()
    q0 = jnp.array([0.5, 0.5, 0.5, 0.5])

    def solution(place, **options):
        return solve_ik(arm, goals=[PositionGoal("tool", place)], q0=q0, **options).q

    place = jnp.asarray(tip(np.array([0.5, 0.45, 0.5, 0.6])))
    step = jnp.array([0.3, -0.7, 0.0])
    q, move = jax.jit(lambda p: jax.jvp(solution, (p,), (step,)))(place)
    assert_close(move, np.linalg.pinv(tip_jacobian(np.asarray(q))) @ np.asarray(step)[:2], 1e-6)
    with pytest.raises(RbydynError, match="no derivatives with both costs and a clearance"):
        options = {"costs": [SoftGoal(ConfigurationGoal(jnp.zeros(2)))], "clearance": 0.01}
        jax.eval_shape(jax.jacfwd(lambda p: solve_ik(pole_arm(), goals=[PositionGoal("tool", p)], **options).q), place)


def smallest(goal, rest, weight, start) -> np.ndarray:
    """The posture nearest to `rest` with the tip at a point: the root of its conditions by scipy."""
    optimize = pytest.importorskip("scipy.optimize")

    def conditions(x):
        return np.concatenate([weight * (x[:4] - rest) + tip_jacobian(x[:4]).T @ x[4:], tip(x[:4])[:2] - goal])

    multipliers = np.linalg.lstsq(tip_jacobian(start).T, -weight * (start - rest), rcond=None)[0]
    return optimize.root(conditions, np.concatenate([start, multipliers]), tol=1e-13).x[:4]


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="derivatives of solutions need float64")
def test_derivatives_with_costs_are_those_of_the_smallest_cost():
    """By the goal, the posture and its weights, against differences of the minima that scipy finds."""
    arm = planar_arm()
    given = jnp.asarray(tip(np.full(4, 0.5))[:2]), jnp.array([0.3, 0.3, -0.2, 0.9]), jnp.array([1.0, 2.0, 0.5, 3.0])

    def solution(place, rest, weight):
        goals = [PositionGoal("tool", jnp.append(place, 0.0))]
        return solve_ik(arm, goals=goals, costs=[SoftGoal(ConfigurationGoal(rest), weight)], q0=jnp.full(4, 0.5)).q

    q, forward, backward = jax.jit(
        lambda x: (solution(*x), jax.jacfwd(lambda x: solution(*x))(x), jax.jacrev(lambda x: solution(*x))(x))
    )(given)
    at, h = [np.asarray(x) for x in given], 1e-5
    assert np.abs(smallest(at[0], at[1], at[2], np.asarray(q)) - np.asarray(q)).max() < 1e-3
    for k in range(3):
        columns = []
        for step in h * np.eye(len(at[k])):
            moved = [[x + s * step if i == k else x for i, x in enumerate(at)] for s in (1, -1)]
            ends = [smallest(x[0], x[1], x[2], np.asarray(q)) for x in moved]
            columns.append((ends[0] - ends[1]) / (2 * h))
        assert_close(forward[k], np.stack(columns, axis=1), 1e-6)
        assert_close(backward[k], forward[k], 1e-9)


@pytest.mark.slow
@pytest.mark.ci
def test_bands_do_not_matter():
    arm = robots.two_link_arm()
    pose = rb.link_pose(arm, jnp.array([0.3, 0.8]), "tool")
    goals = [PoseGoal("tool", pose[None], position_band=jnp.inf)]
    soft = SoftGoal(PositionGoal("tool", pose[:3, 3], position_band=jnp.nan))
    for costs in ([], [soft]):
        assert solve_ik(arm, goals=goals, costs=costs, attempts=8).solved.all()


def test_wrong_arguments_are_named():
    arm, pole = robots.two_link_arm(), pole_arm()
    goal = PositionGoal("tool", jnp.array([0.3, 0.5, 0.0]))
    pendulum = planar_arm()
    none, pose = jnp.full(3, jnp.nan), jnp.eye(4)
    cases = [
        (ArgumentError, "there is nothing to reach", arm, {}),
        (ArgumentError, "target must be given with link", arm, {"link": "tool"}),
        (DtypeError, r"goals\[0\] must be a Goal, got an array", arm, {"goals": [3]}),
        (DtypeError, r"costs\[0\] must be a Cost, got str", arm, {"goals": [goal], "costs": ["x"]}),
        (DtypeError, r"costs\[0\] must be a SoftGoal or Manipulability", arm, {"goals": [goal], "costs": [goal]}),
        (
            DtypeError,
            r"costs\[0\] must be a SoftGoal or Manipulability",
            arm,
            {"goals": [goal], "costs": [LinkVelocity("tool", jnp.zeros(6))]},
        ),
        (
            ArgumentError,
            "world needs a clearance",
            pole,
            {"goals": [goal], "world": collision.World(collision.sphere(jnp.ones(3), 0.1))},
        ),
        (DtypeError, r"world must be a collision\.World", pole, {"goals": [goal], "world": 3.0, "clearance": 0.0}),
        (ArgumentError, "clearance must be finite", pole, {"goals": [goal], "clearance": jnp.nan}),
        (ModelError, "has no collision shapes", pendulum, {"goals": [goal], "clearance": 0.0}),
        (
            ShapeError,
            "batches must have one size, got 2 of PositionGoal.position, 3 of ConfigurationGoal.q",
            arm,
            {
                "goals": [PositionGoal("tool", jnp.zeros((2, 3)))],
                "costs": [SoftGoal(ConfigurationGoal(jnp.zeros((3, 2))))],
            },
        ),
        (
            ShapeError,
            r"SoftGoal\(ConfigurationGoal\).weight must be a number or have shape \(2,\), got \(3,\)",
            arm,
            {"goals": [goal], "costs": [SoftGoal(ConfigurationGoal(jnp.zeros(2)), jnp.ones(3))]},
        ),
        (
            ShapeError,
            r"SoftGoal\(PositionGoal of 'tool'\).weight must be a number or have shape \(3,\), got \(2,\)",
            arm,
            {"goals": [goal], "costs": [SoftGoal(PositionGoal("tool", jnp.zeros(3)), jnp.ones(2))]},
        ),
        (
            DtypeError,
            r"goals\[1\].position_band must be an array of floats, got str",
            arm,
            {"goals": [goal, PositionGoal("tool", jnp.zeros(3), position_band=untyped("wide"))]},
        ),
        (
            DtypeError,
            r"goals\[0\].position_band must be an array of floats, got NoneType",
            arm,
            {"goals": [PositionGoal("tool", jnp.zeros(3), position_band=untyped(None))]},
        ),
        (
            DtypeError,
            r"costs\[0\].weight must be an array of floats, got str",
            arm,
            {"goals": [goal], "costs": [Manipulability("tool", untyped("all"))]},
        ),
        (
            ArgumentError,
            "weight must be finite and not negative",
            arm,
            {"goals": [goal], "costs": [Manipulability("tool", -1.0)]},
        ),
        (
            ArgumentError,
            r"goals\[0\].target must be a rigid transform",
            arm,
            {"goals": [PoseGoal("tool", 2 * jnp.eye(4))]},
        ),
        (
            ArgumentError,
            r"goals\[0\].axis must be finite and not zero",
            arm,
            {"goals": [LookAtGoal("tool", jnp.ones(3), axis=(0.0, 0.0, 0.0))]},
        ),
        (ArgumentError, r"goals\[0\].point must be finite", arm, {"goals": [LookAtGoal("tool", none)]}),
        (ArgumentError, r"goals\[1\].position must be finite", arm, {"goals": [goal, PositionGoal("tool", none)]}),
        (ArgumentError, r"goals\[0\].position must be finite", arm, {"goals": [ComGoal(none)]}),
        (ArgumentError, r"goals\[0\].q must be finite", arm, {"goals": [ConfigurationGoal(none[:2])]}),
        (ArgumentError, r"goals\[0\].target must be finite", arm, {"goals": [PoseGoal("tool", none[0] * jnp.eye(4))]}),
        (ArgumentError, r"costs\[0\].goal.position must", arm, {"goals": [goal], "costs": [SoftGoal(ComGoal(none))]}),
        (ArgumentError, "link and ref must be two links, got 'tool'", arm, {"link": "tool", "ref": 3, "target": pose}),
        *(
            (
                ArgumentError,
                r"goals\[0\].link and goals\[0\].ref must be two links, got 'tool'",
                arm,
                {"goals": [itself]},
            )
            for itself in (
                PoseGoal("tool", pose, "tool"),
                PositionGoal("tool", jnp.ones(3), 3),
                LookAtGoal(3, jnp.ones(3), ref="tool"),
            )
        ),
        (
            ArgumentError,
            r"costs\[0\].link and costs\[0\].ref must be two links, got 'tool'",
            arm,
            {"goals": [goal], "costs": [Manipulability("tool", ref="tool")]},
        ),
    ]
    for error, message, model, options in cases:
        with pytest.raises(error, match=message):
            solve_ik(model, **untyped(options))


@pytest.mark.ci
def test_goals_that_are_not_finite_are_told_by_their_status_in_a_batch_and_a_trace():
    arm = robots.two_link_arm()
    places = jnp.array([[0.3, 0.5, 0.0], [jnp.nan, 0.5, 0.0]])
    batch = solve_ik(arm, goals=[PositionGoal("tool", places)], attempts=8)
    assert batch.status.tolist() == [IkStatus.SOLVED, IkStatus.NOT_FINITE]
    traced = jax.jit(lambda p: solve_ik(arm, goals=[PositionGoal("tool", p)], attempts=8).status)
    assert [int(traced(p)) for p in places] == [IkStatus.SOLVED, IkStatus.NOT_FINITE]


@pytest.mark.ci
def test_the_axis_that_is_to_point_may_be_given_in_any_form():
    forms = ((0, 0, 1), [0.0, 0.0, 1.0], np.array([0, 0, 1]), jnp.array([0.0, 0.0, 1.0]))
    for axis in forms:
        goal = LookAtGoal("tool", jnp.ones(3), axis=untyped(axis))
        assert goal.axis == (0.0, 0.0, 1.0) and isinstance(hash(goal.axis), int)
    assert jax.jit(lambda goal: goal.point)(LookAtGoal("tool", jnp.ones(3), axis=untyped(forms[3]))).shape == (3,)
    for error, message, wrong in [
        (DtypeError, "axis must be 3 real numbers, got 'z'", "z"),
        (DtypeError, "axis must be 3 real numbers", None),
        (ShapeError, r"axis must have shape \(3,\), got \(2,\)", [0.0, 1.0]),
    ]:
        with pytest.raises(error, match=message):
            LookAtGoal("tool", jnp.ones(3), axis=untyped(wrong))
    with pytest.raises(DtypeError, match="axis must be known while tracing"):
        jax.jit(lambda axis: LookAtGoal("tool", jnp.ones(3), axis=axis).point)(jnp.ones(3))


def test_a_link_does_not_touch_itself():
    for contact in (PatchContact, PointContact):
        with pytest.raises(ArgumentError, match="link and ref must be two links, got 'tool' for both"):
            contact("tool", ref="tool")
    with pytest.raises(ArgumentError, match=r"link and ref of contacts\[1\] must be two links, got 'tool' and 3"):
        check_contacts(robots.two_link_arm(), [PatchContact("tool"), PatchContact("tool", ref=3)], jnp.float32)


@pytest.mark.filterwarnings("ignore:A JAX array is being set as static")  # by Equinox, before the error
@pytest.mark.parametrize("link", [np.ones(2), ["tool"]])
def test_links_that_are_arrays_are_refused(link):
    for make in (lambda x: PositionGoal(x, jnp.zeros(3)), lambda x: PositionGoal("tool", jnp.zeros(3), x)):
        with pytest.raises(DtypeError, match=r"PositionGoal\.(link|ref) must be a link, by name or index, got"):
            make(untyped(link))
    with pytest.raises(DtypeError, match=r"Manipulability\.link must be a link, by name or index, got"):
        Manipulability(untyped(link))
