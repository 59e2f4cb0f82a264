"""A slice of the fuzzer: no file breaks the rule, and the check itself can fail."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.testing import random_tree
from tests.helpers import assert_close

from .__main__ import run
from .invariant import examine, gravity_forces, problem
from .sources import KINDS, sources


@pytest.mark.slow
@pytest.mark.parametrize("x64, seed", [(False, 0), (True, 1)])
def test_damaged_files_are_refused_or_load_as_finite_numbers(x64: bool, seed: int, tmp_path: Path):
    pytest.importorskip("mujoco")
    pytest.importorskip("xacrodoc")
    with jax.enable_x64(x64):
        found = list(run(list(KINDS), seed, 600, tmp_path))
    broken = [(kind, k, outcome) for kind, k, _, outcome in found if outcome.result not in ("loaded", "refused")]
    assert not broken, broken[0]
    assert sum(outcome.result == "loaded" for *_, outcome in found) > 60


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
def test_the_sources_load(kind, tmp_path: Path):
    pytest.importorskip({"urdf": "jax", "mjcf": "mujoco", "xacro": "xacrodoc"}[kind])
    for text in sources(kind)[0]:
        assert examine(kind, text, tmp_path).result == "loaded"


@pytest.mark.slow
@pytest.mark.parametrize("model", [robots.rby1m(), random_tree(3, n=9, mimics=1)], ids=["rby1m", "random"])
def test_the_forces_of_the_check_are_those_of_the_library(model):
    expected = rb.gravity_forces(model, rb.neutral(model))
    assert_close(gravity_forces(model), expected, scale=float(abs(expected).max()) + 1.0)


def test_the_check_finds_what_is_not_finite():
    model = robots.two_link_arm()
    assert problem(model) == ""
    for leaf in ("inertias", "armature", "gravity", "position_lower"):
        broken = jax.tree.map(lambda x: x, model)
        object.__setattr__(broken, leaf, jnp.full_like(getattr(model, leaf), jnp.nan))
        assert problem(broken), leaf
