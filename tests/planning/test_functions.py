"""Costs and constraints that are functions: in which forms they are taken, and what wrong ones are told."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from rbydyn_jax import DtypeError, ShapeError
from rbydyn_jax.planning import (
    ConfigurationGoal,
    ControlProblem,
    JointEffort,
    TrajectoryProblem,
    ilqr,
    mpc,
    mppi,
    solve_trajectory,
)
from rbydyn_jax.planning._functions import checked_function
from tests.helpers import untyped
from tests.planning import sliders

ONE = jnp.ones(1)
QUICK: dict[str, Any] = {"duration": 2.0, "clearance": None, "attempts": 1, "iterations": 2}


class Bound(eqx.Module):
    """A function with data of its own."""

    bound: jax.Array

    def __call__(self, model, q, v, tau, t):
        return self.bound * q


class Short:
    def __call__(self, q, v):
        return q


def five(model, q, v, tau, t):
    return q


def two(q, v):
    return q


def six(x, model, q, v, tau, t):
    return x


@functools.wraps(two)
def of_two(*x):
    return two(x[1], x[2])


def test_any_form_of_a_function_is_taken():
    right = [
        *(five, jax.jit(five), jax.checkpoint(five), of_two, jax.jit(of_two), Bound(ONE), Bound(ONE).__call__),
        *(Partial(six, ONE), Partial(Partial(six), ONE), functools.partial(six, ONE), lambda *x: x[1]),
        *(eqx.filter_jit(five), Partial(lambda model, q, v, tau, t, *, k: k, k=ONE), lambda m, q, v, tau, t, k=1: q),
    ]
    for f in right:
        found = checked_function(f, "costs[0]", "(model, q, v, tau, t)")
        assert found(None, ONE, ONE, ONE, 0.0) == 1.0 and isinstance(found, eqx.Module | Partial)
    unknown = type("Unknown", (), {"__call__": lambda *x: x[2], "__signature__": 3})()
    assert checked_function(unknown, "costs[0]", "(model, q, v, tau, t)")(1, 2) == 2


def test_a_function_of_other_arguments_is_told_which_it_is_given():
    wrong = [two, jax.jit(two), Short(), Partial(two), functools.partial(five, 0), lambda q: q, Partial(five, 1, 2)]
    for f in wrong:
        with pytest.raises(
            DtypeError, match=r"costs\[0\] must be a function of \(model, q, v, tau, t\), got one of \("
        ):
            checked_function(f, "costs[0]", "(model, q, v, tau, t)")
    with pytest.raises(DtypeError, match=r"got one of \(model, q, v, tau, t\); what is bound comes first"):
        checked_function(Partial(five, 0), "costs[0]", "(model, q, v, tau, t)")


@pytest.mark.ci
@pytest.mark.parametrize("name", ["costs", "constraints"])
def test_what_a_function_of_a_trajectory_returns(name: str):
    """Floats: the derivative of integers and truth values is zero, and nothing would be minimized."""
    what = {
        "costs": r"residuals \(n,\), an array of floats",
        "constraints": r"an array of floats \(n,\) that must be <= 0",
    }

    def solve(returned: Any) -> Any:
        functions = [lambda model, q, v, a, tau, t: 0.0 * q, lambda *_: returned]
        given: dict[str, Any] = QUICK | {name: functions}
        problem = TrajectoryProblem(sliders.slider(), 0 * ONE, [ConfigurationGoal(ONE)], **given)
        return jax.eval_shape(solve_trajectory, problem)

    for wrong, got in [
        (None, "NoneType"),
        ((ONE, ONE), "tuple"),
        ([1.0], "list"),
        (True, "bool"),
        (-1, "int"),
        ("x", "str"),
        (ONE > 0.0, "dtype bool"),
        (ONE * 1j, "dtype complex"),
        (jnp.asarray(-1), "dtype int"),
        (np.zeros(2, np.int32), "dtype int32"),
    ]:
        with pytest.raises(DtypeError, match=rf"{name}\[1\] must return {what[name]}, got {got}"):
            solve(wrong)
    with pytest.raises(ShapeError, match=rf"{name}\[1\] must return .* got shape \(1, 1\)"):
        solve(ONE[None])
    for right in (ONE, -1.0, jnp.asarray(-1.0), np.zeros(2), jnp.zeros(2, jnp.float16)):
        solve(right)


@pytest.mark.parametrize(
    "wrong, got", [(None, "NoneType"), ((ONE, ONE), "tuple"), (ONE > 0.0, "dtype bool"), (np.ones(1, int), "dtype int")]
)
def test_what_a_function_of_a_controlled_motion_returns(wrong, got):
    problem = ControlProblem(sliders.slider(), [JointEffort()], [lambda *_: wrong], dt=0.1, steps=2)
    controller, x = mpc(problem), np.zeros(1)
    for call in (
        lambda: ilqr(problem, ONE, ONE),
        lambda: mppi(problem, ONE, ONE, jax.random.key(0), samples=2),
        lambda: controller(x, x),
        lambda: problem.cost(jnp.ones((3, 1)), jnp.ones((3, 1)), jnp.ones((2, 1))),
    ):
        with pytest.raises(DtypeError, match=rf"end_costs\[0\] must return residuals .* got {got}"):
            call()
    with pytest.raises(DtypeError, match=r"costs\[1\] must be .* of \(model, q, v, tau, t\), got one of \(q\)"):
        ControlProblem(sliders.slider(), [JointEffort(), untyped(lambda q: q)], dt=0.1, steps=2)


def test_what_a_function_raises_is_left_as_it_is():
    def fails(model, q, v, a, tau, t):
        raise TypeError("of the user")

    problem = TrajectoryProblem(sliders.slider(), 0 * ONE, [ConfigurationGoal(ONE)], **QUICK, costs=[fails])
    with pytest.raises(TypeError, match="of the user") as caught:
        jax.eval_shape(solve_trajectory, problem)
    assert type(caught.value) is TypeError
