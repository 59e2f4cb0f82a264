"""Functions of robots where a formula is singular: derivatives are finite, and those of differences."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.testing import random_tree
from tests import test_public_functions as functions
from tests.hazards import CASES
from tests.helpers import ROOT, X64, assert_close, normal
from tests.robot_hazards import COVERED, POINTS, SMOOTH, WITHOUT_DERIVATIVES
from website.api import read_module

MODULES = ("constraints", "planning", "whole_body", "estimation", "identification")
MODULES += ("rby1.mobility", "rby1.impedance", "rby1.math")
OF_CASES = {name.split(" ")[0] for name in CASES}
OF_STATES = [name for name in functions.ON_STATES if f"rb.{name}" not in OF_CASES]
TREE = random_tree(1, ("spherical", "revolute"), 2)


def _public() -> set[str]:
    """The public functions of the package and of its modules about robots."""
    found = set()
    for module in ("", *MODULES):
        space = importlib.import_module(f"rbydyn_jax.{module}".rstrip("."))
        for name in (name for names in read_module(space.__name__).names.values() for name in names):
            if callable(getattr(space, name)) and not inspect.isclass(getattr(space, name)):
                found.add(f"{module or 'rb'}.{name}")
    return found


def test_every_function_has_its_hazards_in_one_table():
    public = _public()
    cases = {name for name in OF_CASES if name.startswith(("rb.", *(f"{module}." for module in MODULES)))}
    points = {name.split(" ")[0] for name in POINTS}
    tables = [*cases, *points, *(f"rb.{name}" for name in OF_STATES), *COVERED, *SMOOTH, *WITHOUT_DERIVATIVES]
    twice = sorted({name for name in tables if tables.count(name) > 1})
    assert not twice, twice
    assert set(tables) == public, (sorted(public - set(tables)), sorted(set(tables) - public))


def test_the_tests_that_are_named_exist():
    for where in COVERED.values():
        file, name = where.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), where


def _vector(result: Any) -> jax.Array:
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(result)]
    return jnp.concatenate([x.ravel() for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)])


def _check(f: Callable[[jax.Array], jax.Array], points: dict[str, Any], sides: tuple[str, ...], h: float) -> None:
    """Forward and reverse are finite and equal; and equal to central differences where there is one derivative."""
    x = jnp.array(list(points.values()), float)
    value = jax.jit(jax.vmap(f))
    forward, reverse = jax.jit(jax.vmap(lambda x: (jax.jacfwd(f)(x), jax.jacrev(f)(x))))(x)
    for k, where in enumerate(points):
        size = max(float(np.abs(forward[k]).max()), 1e-3)
        for y in (value(x[k : k + 1]), forward[k], reverse[k]):
            assert np.isfinite(y).all(), where
        assert_close(reverse[k], forward[k], kind="solve", scale=size)
        if where not in sides:
            steps = h * np.eye(x.shape[1])
            ends = [np.asarray(value(x[k][None] + sign * steps)).T for sign in (1.0, -1.0)]
            assert_close(forward[k], (ends[0] - ends[1]) / (2 * h), kind="difference", scale=size)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences")
@pytest.mark.parametrize("name", POINTS)
def test_at_hazards(name: str):
    f, points, sides = POINTS[name]
    _check(lambda x: _vector(f(x)), dict(points), sides, 1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences")
@pytest.mark.parametrize("name", OF_STATES)
def test_functions_of_a_state_at_rest_and_turned(name: str, monkeypatch: pytest.MonkeyPatch):
    """Along one direction of all arguments: from rest at the identity, and from half a turn in motion."""
    monkeypatch.setattr(functions, "LINK", TREE.link_names[-1])
    monkeypatch.setattr(functions, "REF", TREE.link_names[1])
    turn = jnp.zeros(TREE.nv).at[TREE.tree.v_slices[0]].set(np.pi * np.array([0.6, 0.0, 0.8])[: TREE.tree.joints[0].nv])
    q = jnp.stack([rb.neutral(TREE), rb.integrate(TREE, rb.neutral(TREE), turn)])
    shapes = (TREE.nq,), (TREE.nv,), (TREE.nv,), (TREE.nb, 6), (3,)
    along = functions.State(*(normal(k, *shape) for k, shape in enumerate(shapes)))
    rest = functions.State(q, *(jnp.zeros((2, *shape)) for shape in shapes[1:]))
    moving = rest._replace(v=rest.v.at[1].set(along.a))
    for k in range(2):
        start = jax.tree.map(lambda x, k=k: x[k], moving)
        _check(
            lambda t, start=start: _vector(
                functions.ON_STATES[name](TREE, jax.tree.map(lambda x, d: x + t[0] * d, start, along))
            ),
            {"rest": (0.0,)},
            (),
            1e-5,
        )
