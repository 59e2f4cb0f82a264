"""iLQR, against scipy's Riccati equation and bounded least squares, differences, and the gradient of the whole cost."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    RobotBuilder,
    build_model,
    center_of_mass,
    difference,
    integrate,
    jacobian,
    link_pose,
    neutral,
    no_recompile,
    random_configuration,
    robots,
    with_gravity,
)
from rbydyn_jax._errors import ArgumentError, DtypeError, NameNotFoundError, RbydynError, ShapeError
from rbydyn_jax.planning import (
    ComGoal,
    ConfigurationGoal,
    ControlProblem,
    IlqrStatus,
    JointEffort,
    JointLimits,
    JointVelocity,
    LinkVelocity,
    PoseGoal,
    PositionGoal,
    SoftGoal,
    ilqr,
)
from rbydyn_jax.planning._riccati import backward, expanded, linearized
from rbydyn_jax.planning._torque_limits import limited
from rbydyn_jax.spatial import so3
from tests.helpers import X64, assert_close
from tests.planning import sliders

LIMIT = 9.0  # [N m]
START = np.array([1.0, -0.4])


def solved_slider(start=START, damping=1e-4, **limits):
    q, v = jnp.asarray(start[:1]), jnp.asarray(start[1:])
    return ilqr(sliders.problem(**limits), q, v, damping=damping, tolerance=1e-14 if X64 else 1e-6)


@pytest.mark.ci
def test_costs_at_the_end_alone_are_enough():
    """A pendulum, whose torques cost nothing, is where it shall be at the end."""
    end = [SoftGoal(ConfigurationGoal(jnp.array([1.0])), 50.0)]
    problem = ControlProblem(robots.pendulum(), [], end, dt=0.05, steps=10)
    result = ilqr(problem, jnp.zeros(1), jnp.zeros(1))
    assert int(result.status) == IlqrStatus.CONVERGED
    assert_close(result.qs[-1], jnp.ones(1), 1e-4)


@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd])
def test_a_derivative_is_refused(derivative):
    with pytest.raises(RbydynError, match="ilqr has no derivatives"):
        derivative(lambda v: ilqr(sliders.problem(steps=5), jnp.ones(1), v).cost)(jnp.ones(1))


@pytest.mark.ci
@pytest.mark.float32
def test_a_linear_robot_is_controlled_as_the_riccati_equation_says():
    result = solved_slider(damping=1e-10)
    P, K = sliders.riccati()
    assert int(result.status) == IlqrStatus.CONVERGED
    assert_close(result.cost, 0.5 * START @ P @ START, kind="solve")
    assert_close(result.gains, np.broadcast_to(-K, (30, 1, 2)), kind="solve")
    states = np.concatenate([result.qs, result.vs], axis=1)
    assert_close(result.taus, -states[:-1] @ K.T, kind="solve")


@pytest.mark.parametrize("bound", [4.0, 1.5])
def test_limits_are_kept_as_by_bounded_least_squares(bound):
    from scipy.optimize import lsq_linear

    limit = jnp.full(1, bound)
    result = solved_slider(tau_lower=-limit, tau_upper=limit)
    M, y = sliders.condensed(30, START)
    reference = lsq_linear(M, y, (-bound, bound), tol=1e-14)
    assert np.sum(np.abs(reference.x) > 0.999 * bound) >= 2  # some are at their limit
    assert int(result.status) == IlqrStatus.CONVERGED
    assert_close(result.cost, reference.cost, 1e-7 if X64 else 1e-4)
    np.testing.assert_allclose(np.asarray(result.taus)[:, 0], reference.x, atol=1e-4 if X64 else 2e-2)
    assert np.abs(np.asarray(result.taus)).max() <= bound


@pytest.mark.ci
def test_a_step_within_limits_is_that_of_bounded_least_squares():
    """Of random quadratic programs; one torque is held at zero, the others are free or at either limit."""
    from scipy.optimize import lsq_linear

    rng, n = np.random.default_rng(0), 5
    solve, counts, exact = jax.jit(limited), np.zeros(n), 0
    for _ in range(100):
        root, by_speed = rng.normal(size=(n, n)), rng.normal(size=(n, n)) + 3.0 * np.eye(n)
        H, crossed, by_state = root @ root.T + np.eye(n), rng.normal(size=(n, 2 * n + 1)), rng.normal(size=(n, 2 * n))
        left, right = rng.normal(size=(n, 2 * n)), rng.normal(size=(n, 2 * n + 1))
        high = np.append(0.0, rng.uniform(0.01, 1.0, n - 1))
        inverse = np.linalg.inv(np.linalg.cholesky(H))
        Y = inverse @ crossed
        D = np.concatenate([by_speed, by_state], axis=1)
        value, found = solve(((left, right),), D, inverse, Y, -high, high)
        back = np.linalg.inv(by_speed)  # the quadratic program in the torques
        by_tau, gradient = back.T @ H @ back, back.T @ crossed[:, -1]
        factor = np.linalg.cholesky(by_tau).T
        reference = lsq_linear(factor, -np.linalg.solve(factor.T, gradient), (-high - 1e-13, high + 1e-13), tol=1e-15)
        tau = -by_speed @ inverse.T @ np.asarray(found.Y)[:, -1]
        free = np.asarray(found.free)
        exact += bool(np.abs(tau - reference.x).max() < 1e-6)
        np.testing.assert_allclose(np.abs(tau[~free]), high[~free], atol=1e-12)
        np.testing.assert_allclose(found.linear, -gradient @ tau, atol=1e-9)
        np.testing.assert_allclose(found.square, 0.5 * tau @ by_tau @ tau, atol=1e-9)
        # The value at another state is the least cost with the same torques at their limits.
        held, x = by_speed[~free], rng.normal(size=2 * n)
        system = np.block([[H, held.T], [held, np.zeros((len(held), len(held)))]])
        least = []
        for state in (x, np.zeros(2 * n)):
            g = crossed @ np.append(state, 1.0)
            w = np.linalg.solve(system, np.append(-g, tau[~free] - (by_state @ state)[~free]))[:n]
            least.append(0.5 * w @ H @ w + w @ g)
        added = np.asarray(value) - left.T @ right
        np.testing.assert_allclose(
            x @ (0.5 * added[:, :-1] @ x + added[:, -1]), least[0] - least[1], rtol=1e-8, atol=1e-8
        )
        counts += free
    assert exact == 100
    assert counts[0] == 0 and (counts[1:] > 5).all() and (counts[1:] < 95).all()


def pendulum_problem(target=2.5, **options):
    model = robots.double_pendulum()
    goal = link_pose(model, jnp.asarray([target, 0.5]), model.link_names[-1])
    costs = [JointEffort(1e-3), JointVelocity(1e-2), JointLimits(1.0)]
    ends = [SoftGoal(PositionGoal(model.link_names[-1], goal[:3, 3]), 10.0), JointVelocity(1.0)]
    limit = jnp.full(2, LIMIT)
    return ControlProblem(
        model, costs, ends, **{"dt": 0.05, "steps": 30, "tau_lower": -limit, "tau_upper": limit} | options
    )


@pytest.mark.slow
def test_the_projected_gradient_of_the_whole_cost_vanishes():
    found = pendulum_problem()
    q, v = jnp.array([0.1, -0.2]), jnp.zeros(2)
    result = ilqr(found, q, v, iterations=300, tolerance=1e-13)
    gradient = jax.jit(jax.grad(lambda taus: found.cost(*found.rollout(q, v, taus), taus)))
    before, after = gradient(jnp.zeros((30, 2))), gradient(result.taus)
    upper, lower = result.taus >= LIMIT, result.taus <= -LIMIT
    assert upper.any() or lower.any()
    left = jnp.where(upper, jnp.maximum(after, 0.0), jnp.where(lower, jnp.minimum(after, 0.0), after))
    assert jnp.abs(left).max() <= 1e-5 * jnp.abs(before).max()
    costs, count = np.asarray(result.costs), int(result.iterations) + 1
    assert np.isposinf(costs[count:]).all()
    assert (np.diff(costs[:count]) <= 0.0).all() and costs[count - 1] < 0.1 * costs[0]
    qs, vs = found.rollout(q, v, result.taus)
    assert_close(qs, result.qs)
    assert_close(found.cost(qs, vs, result.taus), result.cost)


@pytest.mark.slow
def test_a_batch_is_what_its_problems_are_and_nothing_recompiles():
    limits = [jnp.full(1, limit) for limit in (4.0, 2.0, 1.5)]
    starts = [jnp.asarray(np.array(x)) for x in ([1.0, -0.4], [0.3, 0.2], [-0.7, 0.5])]
    problems = [sliders.problem(tau_lower=-limit, tau_upper=limit) for limit in limits]
    solve = jax.jit(lambda found, x: ilqr(found, x[:1], x[1:], iterations=8))
    one = solve(problems[0], starts[0])
    with no_recompile():
        others = [solve(found, x) for found, x in zip(problems[1:], starts[1:], strict=True)]
    together = jax.vmap(solve)(jax.tree.map(lambda *x: jnp.stack(x), *problems), jnp.stack(starts))
    for k, result in enumerate((one, *others)):
        assert_close(together.taus[k], result.taus, 1e-6)
        assert together.iterations[k] == result.iterations


def flyer():
    """A free body with one arm, and a ball joint in between."""
    b = RobotBuilder("flyer").link("world").link("hull", 3.0, (0.01, 0, 0.02), (0.2, 0.3, 0.4))
    b.link("arm", 1.0, (0.1, 0, 0.2), (0.05, 0.06, 0.04)).link("hand", 0.5, (0, 0.1, 0.1), (0.01, 0.02, 0.02))
    b.floating("base", "world", "hull").spherical("ball", "hull", "arm", xyz=(0.1, 0, 0))
    b.revolute("elbow", "arm", "hand", xyz=(0, 0, 0.4), axis=(0, 1, 0), effort=5.0, lower=-2.0, upper=2.0)
    return build_model(b.build_description())


@pytest.mark.slow
def test_steps_on_manifolds_are_linearised_as_differences_say():
    model = flyer()
    model = eqx.tree_at(lambda m: m.damping, model, jnp.full(model.nv, 0.3))
    found = ControlProblem(model, [JointEffort()], dt=0.1, steps=1)
    n = model.nv
    q = random_configuration(model, jax.random.key(3))
    v, tau = (jax.random.normal(jax.random.key(k), (n,)) for k in (4, 5))
    q1, v1 = found.step(q, v, tau)

    @jax.jit
    @jax.vmap
    def moved(x):
        after = found.step(integrate(model, q, x[:n]), v + x[n : 2 * n], tau + x[2 * n :])
        return jnp.concatenate([difference(model, q1, after[0]), after[1] - v1])

    h = 1e-6
    steps = h * jnp.eye(3 * n)
    expected = ((moved(steps) - moved(-steps)) / (2 * h)).T
    taken = linearized(found, jnp.stack([q, q1]), jnp.stack([v, v1]))
    assert taken.Tq is not None and taken.Tv is not None
    D, Tq, Tv = taken.D[0], taken.Tq[0], taken.Tv[0]
    F = jnp.linalg.solve(D[:, :n], jnp.concatenate([-D[:, n:], jnp.eye(n)], axis=1))
    by_position = Tv @ F + jnp.concatenate([Tq, jnp.zeros((n, 2 * n))], axis=1)
    np.testing.assert_allclose(jnp.concatenate([by_position, F]), expected, atol=1e-7)


@pytest.mark.slow
def test_a_floating_base_is_turned_by_its_arm_alone():
    b = RobotBuilder("turner").link("world").link("hull", 3.0, (0, 0, 0), (0.2, 0.3, 0.4))
    b.link("wheel", 1.0, (0, 0, 0), (0.1, 0.1, 0.1)).floating("base", "world", "hull")
    b.revolute("axle", "hull", "wheel", xyz=(0, 0, 0), axis=(1, 0, 0), effort=2.0)
    model = with_gravity(build_model(b.build_description()), jnp.zeros(3))
    q, n = neutral(model), model.nv
    turned = ConfigurationGoal(integrate(model, q, jnp.zeros(n).at[0].set(0.3)))
    ends = [SoftGoal(turned, jnp.zeros(n).at[:6].set(100.0)), JointVelocity(jnp.zeros(n).at[:6].set(1.0))]
    found = ControlProblem(model, [JointEffort(1e-3)], ends, dt=0.05, steps=20)
    result = ilqr(found, q, jnp.zeros(n))
    assert int(result.status) == IlqrStatus.CONVERGED
    assert not np.asarray(result.taus)[:, :6].any() and np.abs(np.asarray(result.taus)).max() <= 2.0
    assert np.abs(difference(model, result.qs[-1], turned.q)[:6]).max() < 0.01
    momentum = 0.2 * result.vs[:, 0] + 0.1 * (result.vs[:, 0] + result.vs[:, 6])  # about the axle
    assert np.abs(momentum).max() < 1e-9


@pytest.mark.slow
def test_costs_are_expanded_as_their_residuals_are():
    """Every ready cost beside the same one as a function of the user, whose derivatives are those of AD."""
    model = robots.two_link_arm()
    q, v, tau = jnp.array([0.3, -0.8]), jnp.array([0.5, 2.0]), jnp.array([1.0, -3.0])
    target = link_pose(model, jnp.array([0.9, 0.1]), "tool")
    pose = PoseGoal("tool", target)
    moving = pose.checked(model, q.dtype, "goal")

    def error(model, q, v, tau, t):
        T = link_pose(model, q, "tool")
        return jnp.concatenate([so3.log(moving.target[:3, :3] @ T[:3, :3].T), (moving.target - T)[:3, 3] / 0.1])

    pairs = [
        (SoftGoal(pose, 4.0), lambda *x: 2.0 * error(*x)),
        (SoftGoal(ComGoal(jnp.ones(3))), lambda model, q, v, tau, t: (1.0 - center_of_mass(model, q)) / 0.1),
        (JointEffort(9.0), lambda model, q, v, tau, t: 3.0 * tau),
        (JointVelocity(jnp.array([1.0, 4.0])), lambda model, q, v, tau, t: v * jnp.array([1.0, 2.0])),
        (LinkVelocity("tool", jnp.ones(6)), lambda model, q, v, tau, t: jacobian(model, q, "tool") @ v - 1.0),
    ]
    problems = [[ControlProblem(model, [x], dt=0.1, steps=1) for x in pair] for pair in pairs]

    @jax.jit
    def evaluated(problems, *state):
        costs = [[found.costs[0] for found in pair] for pair in problems]
        now = model, *state, jnp.zeros(())
        return [[(cost.value(*now), cost.expand(*now)) for cost in pair] for pair in costs]

    for (value, known), (expected, given) in evaluated(problems, q, v, tau):
        assert_close(value, expected)
        for a, b in zip(known, given, strict=True):
            assert b is not None
            a = jnp.zeros_like(b) if a is None else a
            assert_close(jnp.diag(a) if a.ndim < b.ndim else a, b, scale=float(jnp.abs(expected)))


@pytest.mark.ci
@pytest.mark.parametrize(
    "make", [sliders.slider, *(pytest.param(make, marks=pytest.mark.slow) for make in (robots.two_link_arm, flyer))]
)
def test_steps_all_at_once_are_those_one_after_another(make):
    model = make()
    n, N = model.nv, 9
    everywhere = jnp.full(n, jnp.inf)
    costs = [JointEffort(1e-2), JointVelocity(0.1), lambda model, q, v, tau, t: tau[:2] + v[:2] + q[:2]]
    found = ControlProblem(model, costs, costs[1:2], dt=0.05, steps=N, tau_lower=-everywhere, tau_upper=everywhere)

    @jax.jit
    def policies(problem, key):
        q, taus = random_configuration(model, key), jax.random.normal(key, (N, n))
        qs, vs = problem.rollout(q, jax.random.normal(key, (n,)), taus)
        given = linearized(problem, qs, vs), *expanded(problem, qs, vs, taus, jnp.zeros(())), taus, jnp.full((), 1e-3)
        return backward(problem, *given), backward(problem, *given, parallel=True)

    for limit in (everywhere, jnp.full(n, 0.5)):
        limited = eqx.tree_at(lambda p: (p.tau_lower, p.tau_upper), found, (-limit, limit))
        in_turn, at_once = policies(limited, jax.random.key(2))
        assert bool(in_turn.bounded) == bool(at_once.bounded) == bool(jnp.isfinite(limit).all())
        for a, b in zip(at_once, in_turn, strict=True):
            assert_close(1.0 * a, 1.0 * b, kind="solve")


@pytest.mark.slow
def test_a_solution_in_parallel_is_the_same():
    q, v = jnp.asarray(START[:1]), jnp.asarray(START[1:])
    for limit in (100.0, 4.0):
        problem = sliders.problem(tau_lower=jnp.full(1, -limit), tau_upper=jnp.full(1, limit))
        one, other = (ilqr(problem, q, v, parallel=parallel) for parallel in (False, True))
        assert int(one.status) == int(other.status) == IlqrStatus.CONVERGED
        assert_close(other.taus, one.taus, 1e-6 if X64 else 1e-3)


def test_what_is_not_finite_is_said():
    result = solved_slider(np.array([np.nan, 0.0]))
    assert int(result.status) == IlqrStatus.NOT_FINITE


def test_a_cost_of_zero_is_the_least_at_once():
    result = ilqr(two(sliders.slider(), costs=[JointEffort(0.0)]), X1, X1)
    assert int(result.status) == IlqrStatus.CONVERGED and int(result.iterations) == 0


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ArgumentError, "costs or end_costs must have", lambda m: ControlProblem(m, [], dt=0.1, steps=2)),
        (DtypeError, "costs must be a list", lambda m: two(m, costs=JointEffort())),
        (DtypeError, r"costs\[0\] must be a cost", lambda m: two(m, costs=[3.0])),
        (
            ArgumentError,
            "dt must be finite and positive",
            lambda m: ControlProblem(m, [JointEffort()], dt=0.0, steps=2),
        ),
        (ArgumentError, "steps must be at least 1", lambda m: ControlProblem(m, [JointEffort()], dt=0.1, steps=0)),
        (ShapeError, r"costs\[0\].weight must be", lambda m: ControlProblem(m, [JointEffort(X3)], dt=0.1, steps=2)),
        (ShapeError, r"costs\[0\].weight must be a", lambda m: two(m, costs=[LinkVelocity("cart", jnp.zeros(6), X3)])),
        (ArgumentError, "weight must be", lambda m: ControlProblem(m, [JointEffort(-1.0)], dt=0.1, steps=2)),
        (ArgumentError, "tau_lower must not be above", lambda m: two(m, tau_lower=X1 + 1.0, tau_upper=X1)),
        (ArgumentError, "finite torques between them", lambda m: two(m, tau_lower=X1 + np.inf, tau_upper=X1 + np.inf)),
        (ShapeError, "tau_upper must have shape", lambda m: two(m, tau_upper=X3)),
        (NameNotFoundError, "nowhere", lambda m: two(m, costs=[SoftGoal(PositionGoal("nowhere", X3))])),
        (DtypeError, "problem must be a ControlProblem", lambda m: ilqr(m, X1, X1)),
        (ShapeError, "q must have shape", lambda m: ilqr(two(m), X3, X1)),
        (ShapeError, "tau must have shape", lambda m: ilqr(two(m), X1, X1, tau=X3)),
        (ArgumentError, "tolerance must be", lambda m: ilqr(two(m), X1, X1, tolerance=-1.0)),
        (ArgumentError, "iterations must be at least 1", lambda m: ilqr(two(m), X1, X1, iterations=0)),
        (ShapeError, r"costs\[0\] must return res", lambda m: ilqr(two(m, costs=[lambda *x: x[1][0]]), X1, X1)),
        (DtypeError, r"costs\[0\] must return .* NoneType", lambda m: ilqr(two(m, costs=[lambda *x: None]), X1, X1)),
        (DtypeError, r"costs\[0\] must return .* bool", lambda m: ilqr(two(m, costs=[lambda *x: x[1] > 0]), X1, X1)),
        (
            DtypeError,
            r"costs\[0\] must be .* of \(m.*\), got one of \(q, v\)",
            lambda m: two(m, costs=[lambda q, v: q]),
        ),
    ],
)
def test_wrong_calls_are_explained(error, message, call):
    with pytest.raises(error, match=message):
        call(sliders.slider())


X1, X3 = jnp.zeros(1), jnp.zeros(3)


def two(model, **changed):
    return ControlProblem(model, **{"costs": [JointEffort()], "dt": 0.1, "steps": 2} | changed)
