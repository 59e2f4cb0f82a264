"""Derivatives at the points where they go wrong: finite and right, forward and reverse, to second order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import collision, spatial
from tests.hazards import CASES, COVERED, SMOOTH, WITHOUT_DERIVATIVES, differences
from tests.helpers import ROOT, X64, assert_close

MODULES = ("cones", "inertia", "motion", "mrp", "quaternions", "rpy", "safe", "se3", "so3", "transformations")
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
        want = differences(point.exact or exact, x[k], own_steps)
        for y, order in zip(got, (0, 1, 1, 2), strict=True):
            if order <= point.order:
                try:
                    assert_close(y[k], want[order].reshape(y[k].shape), TOLERANCE[order])
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
            own = home == module.__name__ or (module is collision and home.startswith(module.__name__))
            if name[0] != "_" and own and callable(f) and not inspect.isclass(f) and id(f) not in seen:
                seen.add(id(f))
                yield prefix + name, f


def test_every_function_has_its_hazards_in_a_table():
    public = {name for name, _ in _public()}
    tables = [*CASES, *COVERED, *SMOOTH, *WITHOUT_DERIVATIVES]
    assert len(tables) == len(set(tables))
    assert set(tables) == public, (sorted(public - set(tables)), sorted(set(tables) - public))


def test_the_tests_that_are_named_exist():
    for where in COVERED.values():
        file, name = where.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), where


@pytest.mark.float32
def test_what_is_no_rotation_is_nan():
    zero = jnp.zeros(4, DTYPE)
    for f in (spatial.quaternions.normalize, spatial.quaternions.to_matrix, spatial.rpy.from_quaternion):
        assert np.isnan(f(zero)).all()
    assert np.isnan(spatial.safe.safe_sqrt(jnp.asarray(-1.0, DTYPE)))
