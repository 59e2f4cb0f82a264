"""Derivatives at the points where they go wrong: finite and right, forward and reverse, to second order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, robots, spatial
from rbydyn_jax.constraints import forward_dynamics
from rbydyn_jax.planning import solve_ik
from tests.constraints.mechanisms import four_bar
from tests.hazards import CASES, COVERED, SMOOTH, WITHOUT_DERIVATIVES, differences
from tests.helpers import ROOT, X64, assert_close

MODULES = ("cones", "inertia", "motion", "mrp", "quaternions", "rpy", "safe", "se3", "so3", "transformations")
OF_ROBOTS = ("rb", "constraints", "planning", "whole_body", "estimation", "identification", "rby1")
DTYPE = np.dtype(np.float64 if X64 else np.float32)
# Relative to the largest derivative of an order; each order costs a digit.
TOLERANCE = (1e-13, 1e-12, 1e-11) if X64 else (2e-6, 2e-5, 2e-4)


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name", CASES)
def test_derivatives_at_hazards_equal_those_in_many_digits(name):
    f, exact, points, own_steps = CASES[name]

    @jax.jit
    @jax.vmap
    def derivatives(x):
        return f(x), jax.jacfwd(f)(x), jax.jacrev(f)(x), jax.jacfwd(jax.jacrev(f))(x)

    x = np.array([point.x for point in points.values()]).astype(DTYPE)
    got = [np.asarray(y) for y in derivatives(x)]
    for k, (where, point) in enumerate(points.items()):
        exactly = differences(point.exact or exact, x[k], own_steps)
        want = [np.where(np.abs(y) < np.finfo(DTYPE).tiny, 0.0, y) for y in exactly]
        for y, order in zip(got, (0, 1, 1, 2), strict=True):
            if order <= point.order:
                try:
                    size = max(float(np.abs(want[order]).max()), point.size if order == 0 else 0.0)
                    assert_close(y[k], want[order].reshape(y[k].shape), TOLERANCE[order], scale=size)
                except AssertionError as error:
                    raise AssertionError(f"{name}, {where}, derivative of order {order}: {error}") from None


def _public() -> Iterator[tuple[str, Any]]:
    """Functions of `spatial`, of its modules, and of `collision`, each once."""
    seen: set[int] = set()
    modules = [(f"{name}.", module) for name, module in vars(spatial).items() if name in MODULES]
    assert len(modules) == len(MODULES)
    for prefix, module in [("", spatial), *modules, ("collision.", collision)]:
        for name, f in vars(module).items():
            home = getattr(f, "__module__", "")
            own = home in (module.__name__, f"{spatial.__name__}.order") or (
                module is collision and home.startswith(module.__name__)
            )
            if name[0] != "_" and own and callable(f) and not inspect.isclass(f) and id(f) not in seen:
                seen.add(id(f))
                yield prefix + name, f


def test_every_function_has_its_hazards_in_a_table():
    public = {name for name, _ in _public()}
    cases = {name.split(" ")[0] for name in CASES if name.split(".")[0] not in OF_ROBOTS}
    tables = [*cases, *COVERED, *SMOOTH, *WITHOUT_DERIVATIVES]
    assert len(tables) == len(set(tables))
    assert set(tables) == public, (sorted(public - set(tables)), sorted(set(tables) - public))


def test_the_tests_that_are_named_exist():
    for where in COVERED.values():
        file, name = where.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), where


@pytest.mark.slow
def test_second_derivatives_of_redundant_constraints():
    """A hinge that closes a loop twice over constrains, and curves, as it does once."""
    model, loop = four_bar()
    along = tuple(jnp.asarray(x) for x in ([0.3, -0.2, 0.5], [0.1, 0.4, -0.3], [1.0, -2.0, 0.5]))
    state = tuple(jnp.asarray(x) for x in ([0.9, -1.1, 1.8], [1.0, -0.5, 0.2], [0.3, 0.2, 0.1]))

    @partial(jax.jit, static_argnums=0)
    def slopes(count, t):
        def a(t):
            q, v, tau = (x + t * d for x, d in zip(state, along, strict=True))
            return forward_dynamics(model, q, v, tau, (loop,) * count).a

        first = lambda t: jax.jvp(a, (t,), (jnp.ones_like(t),))  # noqa: E731
        return jax.jvp(first, (t,), (jnp.ones_like(t),))

    (value, first), (_, second) = slopes(2, jnp.zeros(()))
    (once, once_first), (_, once_second) = slopes(1, jnp.zeros(()))
    for got, want in ((value, once), (first, once_first), (second, once_second)):
        assert_close(got, want, kind="solve")
    if X64:
        h = 1e-5
        (_, ahead), (_, behind) = (slopes(2, jnp.asarray(t))[0] for t in (h, -h))
        assert_close(second, (ahead - behind) / (2 * h), kind="difference")


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="inverse kinematics to rounding error")
def test_inverse_kinematics_at_a_solution_and_at_a_limit():
    arm = robots.two_link_arm()
    q = jnp.array([0.4, 0.9])

    def slope(model):
        def found(x):
            target = rb.link_pose(arm, rb.integrate(arm, q, x), "tool")
            return solve_ik(model, "tool", target, q0=q).q

        return jax.jit(lambda x: (found(x), jax.jacfwd(found)(x)))(jnp.zeros(2))

    value, free = slope(arm)
    assert_close(value, q, kind="solve")
    assert_close(free, np.eye(2), kind="solve")
    value, held = slope(rb.with_limits(arm, position_upper=q))
    assert np.isfinite(held).all() and (np.asarray(value) <= np.asarray(q)).all()


@pytest.mark.slow
def test_a_singular_mass_matrix_has_no_accelerations():
    """A joint that moves no mass: NaN, and not some number."""
    b = rb.RobotBuilder("r").link("a").link("b", 1.0, inertia=0.1).link("c")
    model = rb.build_model(b.revolute("j", "a", "b").revolute("k", "b", "c", xyz=(1.0, 0, 0)))
    z = jnp.ones(2, DTYPE)

    @jax.jit
    def everything(z):
        return jax.value_and_grad(lambda z: rb.rnea(model, z, z, z).sum())(z), rb.aba(model, z, z, z)

    finite, accelerations = everything(z)
    assert all(np.isfinite(x).all() for x in finite)
    assert not np.isfinite(accelerations).all()


@pytest.mark.float32
def test_what_is_no_rotation_is_nan():
    zero = jnp.zeros(4, DTYPE)
    for f in (spatial.quaternions.normalize, spatial.quaternions.to_matrix, spatial.rpy.from_quaternion):
        assert np.isnan(f(zero)).all()
    assert np.isnan(spatial.safe.safe_sqrt(jnp.asarray(-1.0, DTYPE)))
