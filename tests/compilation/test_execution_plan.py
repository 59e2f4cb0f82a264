"""The plan is the one that runs: by size, by platform, as asked for; and it tells why."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax.testing import random_tree
from rbydyn_jax.xla import tuning
from tests.helpers import assert_close, normal, untyped


def lowered(model):
    q = jax.ShapeDtypeStruct((model.nq,), model.inertias.dtype)
    return jax.jit(rb.gravity_forces).lower(model, q).as_text()


@pytest.fixture(scope="module")
def chain():
    return random_tree(0, ("revolute",), 6, branching=0.0)


@pytest.mark.ci
def test_the_plan_is_the_one_that_runs(chain):
    for model, sweep in (
        (chain, "unrolled"),
        (rb.with_traversal(chain, "unrolled"), "unrolled"),
        (rb.with_traversal(chain, "scanned"), "scanned"),
    ):
        plan = rb.execution_plan(model)
        assert plan.sweep == sweep and plan.kernels and plan.tiles
        assert ("stablehlo.while" in lowered(model)) == (sweep == "scanned")


@pytest.mark.ci
def test_both_sweeps_give_the_same_forces(chain):
    q = normal(0, chain.nq)
    unrolled, scanned = rb.with_traversal(chain, "unrolled"), rb.with_traversal(chain, "scanned")
    assert_close(rb.gravity_forces(scanned, q), rb.gravity_forces(unrolled, q))


def test_a_large_robot_is_scanned_unless_it_is_to_be_unrolled():
    model = random_tree(0, ("revolute",), 65, branching=0.0)
    plan = rb.execution_plan(model)
    assert plan.sweep == "scanned" and "65 bodies are more than 64" in plan.reason
    assert rb.execution_plan(rb.with_traversal(model, "unrolled")).sweep == "unrolled"


@pytest.mark.parametrize("platform", ["rocm", "tpu"])
def test_on_other_accelerators_it_is_scanned(chain, platform):
    plan = rb.execution_plan(chain, platform)
    assert plan[:3] == ("scanned", False, False) and platform in plan.reason


@pytest.mark.parametrize("platform", ["gpu", "cuda"])
def test_on_a_cuda_gpu_it_is_unrolled_into_kernels(chain, platform):
    plan = rb.execution_plan(chain, platform)
    assert plan[:3] == ("unrolled", True, False) and "6 bodies are few enough" in plan.reason
    assert rb.execution_plan(rb.with_traversal(chain, "scanned"), platform)[:3] == ("scanned", False, False)


def test_an_untested_jaxlib_is_told(chain, monkeypatch):
    monkeypatch.setattr(tuning, "jaxlib_version", lambda: (0, 99, 0))
    plan = rb.execution_plan(chain, "cpu")
    assert not plan.kernels and "was not tested" in plan.reason


def test_an_unknown_traversal_is_refused(chain):
    with pytest.raises(rb.ArgumentError, match="traversal must be one of 'auto', 'unrolled', 'scanned', got 'arrays'"):
        rb.with_traversal(chain, untyped("arrays"))


def test_an_unknown_platform_is_refused(chain):
    with pytest.raises(rb.ArgumentError, match=r"platform must be one of 'cpu', 'gpu', .*, got 'CPU'"):
        rb.execution_plan(chain, "CPU")


@pytest.mark.ci
def test_a_specialized_robot_has_a_plan(chain):
    model = rb.with_traversal(chain, "scanned")
    assert rb.execution_plan(rb.specialize(model)).sweep == "scanned"
    assert jnp.isfinite(rb.gravity_forces(rb.specialize(model), jnp.zeros(chain.nq, chain.inertias.dtype))).all()
