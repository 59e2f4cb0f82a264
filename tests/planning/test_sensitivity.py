"""Derivatives of solutions of trajectory problems, against scipy's solutions of the same problems, changed a little."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import damping_forces, link_pose, rnea, robots, with_limits
from rbydyn_jax._errors import RbydynError
from rbydyn_jax.collision import smooth_min_distance
from rbydyn_jax.planning import (
    ConfigurationGoal,
    PoseGoal,
    PositionGoal,
    TrajectoryProblem,
    sample_trajectory,
    solve_trajectory,
)
from rbydyn_jax.planning._sensitivity import solution
from tests.helpers import assert_close
from tests.planning import arms

ARM = robots.two_link_arm()
# Goal [m], mass of the forearm, limits of torque and velocity, duration, start.
FREE = np.array([0.3, 0.6, 1.0, 40.0, 3.0, 2.0, 0.2, 0.3])
CASES = {
    "no limit is active": FREE,
    "torque": np.array([0.3, 0.6, 1.0, 0.4, 3.0, 2.0, 0.2, 0.3]),
    "velocity": np.array([0.3, 0.6, 1.0, 40.0, 0.8, 2.0, 0.2, 0.3]),
}


def effort(model, q, v, a, tau, t):
    return tau / 3.0


def problem(x):
    model = with_limits(ARM, effort_limit=jnp.full(2, 1.0) * x[3], velocity_limit=jnp.full(2, 1.0) * x[4])
    model = eqx.tree_at(lambda m: m.inertias, model, model.inertias.at[-1].multiply(x[2]))
    goal = PositionGoal("tool", jnp.concatenate([x[:2], jnp.zeros(1)]))
    return TrajectoryProblem(
        model, x[6:], [goal], duration=x[5], clearance=None, costs=[effort], attempts=2, iterations=40
    )


def conditions(z, x, margins):
    """The cost, what is zero, and what must not be negative, of a motion with the coefficients z."""
    todo = problem(x)
    motion = todo.trajectory(z.reshape(8, 2), todo.duration)
    v, at = sample_trajectory(motion, 97).v, sample_trajectory(motion, 33)
    tau = jax.vmap(partial(rnea, todo.model))(at.q, at.v, at.a)
    tau -= jax.vmap(partial(damping_forces, todo.model))(at.v)
    cost = 0.5 * jnp.sum(z**2) + 0.5 * jnp.sum((tau / 3.0) ** 2) / 33
    place = link_pose(todo.model, sample_trajectory(motion, 2).q[1], "tool")[:2, 3]
    shares = [(v / x[4], margins.bounds[1]), (tau / x[3], margins.path["torque"])]
    room = [1.0 - margin - sign * share for share, margin in shares for sign in (1.0, -1.0)]
    return cost, place - x[:2], jnp.concatenate([r.reshape(-1) for r in room])


def changes(conditions, x, found, h=1e-4):
    """Central differences of what scipy finds."""
    from scipy.optimize import minimize

    values, slopes = jax.jit(conditions), jax.jit(jax.jacfwd(conditions))

    def best(x):
        def part(f, i):
            return lambda z: np.asarray(f(z, x, found.tight)[i])

        rows = [{"type": kind, "fun": part(values, i), "jac": part(slopes, i)} for i, kind in ((1, "eq"), (2, "ineq"))]
        options = {"ftol": 1e-14, "maxiter": 200}
        return minimize(part(values, 0), found.x, jac=part(slopes, 0), constraints=rows, options=options).x

    assert_close(best(x), found.x, 2e-2)
    return np.stack([best(x + h * e) - best(x - h * e) for e in np.eye(len(x))], axis=1) / (2.0 * h)


@jax.jit
def found(x):
    return solution(problem(x))


def coefficients(x):
    return solve_trajectory(problem(x)).trajectory.coefficients.reshape(-1)


forward = jax.jit(jax.jacfwd(coefficients))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_forward_derivatives_are_those_of_scipys_solution(case):
    x = CASES[case]
    end = found(x)
    active = {"torque": end.dual.path["torque"], "velocity": end.dual.bounds[1]}
    assert end.converged
    assert {kind for kind, dual in active.items() if (dual != 0).sum() >= 2} == {case} & set(active)
    assert_close(forward(x), changes(conditions, x, end), 2e-3)


@pytest.mark.slow
def test_reverse_derivatives_of_a_batch_are_the_forward_ones_of_each():
    """And NaN where a problem is not solved."""
    slow = FREE.copy()
    slow[4] = 0.5
    batch = jnp.asarray(np.stack([*CASES.values(), slow]))
    together = jax.jit(jax.vmap(jax.jacrev(coefficients)))(batch)
    for got, x in zip(together, CASES.values(), strict=False):
        assert_close(got, forward(x), 1e-7)
    assert not found(slow).converged and np.isnan(together[-1]).all()
