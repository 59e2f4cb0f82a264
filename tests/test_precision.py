"""The precision report: its numbers against numpy and pinocchio, and robots built to be hard for float32."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    Model,
    ModelError,
    PrecisionReport,
    RobotBuilder,
    build_model,
    fk,
    lock_joints,
    precision_report,
    robots,
    testing,
)
from rbydyn_jax.model.states import random_states
from rbydyn_jax.precision import AlgorithmPrecision, _axes, _compare
from tests.helpers import assert_close, oracle, untyped

KEY, SAMPLES = jax.random.key(3), 100


def feather() -> Model:
    """A heavy arm with a feather of 0.1 g at its end."""
    b = RobotBuilder("feather").link("base")
    b.link("upper", 20.0, (0.3, 0, 0), (0.1, 0.4, 0.4)).link("lower", 10.0, (0.2, 0, 0), (0.05, 0.2, 0.2))
    b.link("feather", 1e-4, (0.005, 0, 0), 1e-9)
    b.revolute("shoulder", "base", "upper", axis=(0, 1, 0), lower=-2, upper=2)
    b.revolute("elbow", "upper", "lower", xyz=(0.6, 0, 0), axis=(0, 1, 0), lower=-2, upper=2)
    b.revolute("quill", "lower", "feather", xyz=(0.4, 0, 0), axis=(0, 1, 0), lower=-2, upper=2)
    return build_model(b.build_description())


@pytest.fixture(scope="module")
def arm() -> PrecisionReport:
    return precision_report(robots.two_link_arm(), KEY, samples=SAMPLES)


@pytest.mark.slow
def test_condition_is_that_of_the_mass_matrix(arm):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    with jax.enable_x64(True):
        model = robots.two_link_arm()
        q, _, _ = random_states(model, KEY, SAMPLES)
    peer = pin_model(model)
    condition = [np.linalg.cond(peer.crba(x)) for x in q]
    assert_close(np.array(arm.condition_median), np.median(condition), kind="solve")
    assert_close(np.array(arm.condition_worst), np.max(condition), kind="solve")


@pytest.mark.slow
def test_errors_are_those_of_float32(arm):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    with jax.enable_x64(True):
        model = robots.two_link_arm()
        q, _, _ = random_states(model, KEY, SAMPLES)
    peer = pin_model(model)
    want = np.stack([peer.fk(x) for x in q])
    with jax.enable_x64(False):
        got = np.asarray(jax.vmap(fk, (None, 0))(robots.two_link_arm(), q.astype(np.float32)), np.float64)
    error = np.abs(got - want).max(axis=(1, 2, 3)) / np.median(np.abs(want).max(axis=(1, 2, 3)))
    # Compiled in another way, the last bit may differ: of the errors the size is to be right, not the digits.
    assert 0.5 * error.max() < arm["fk"].worst < 2 * error.max()
    assert 0.5 * np.median(error) < arm["fk"].median < 2 * np.median(error)
    assert arm["fk"].elements == model.link_names
    assert arm["fk"].errors[model.link_index("base")] == 0.0 < arm["fk"].errors[model.link_index("tool")]


@pytest.mark.slow
def test_float32_is_told_from_float64_without_64_bit_numbers():
    with jax.enable_x64(False):
        report = precision_report(robots.two_link_arm(), KEY, samples=8)
        assert not untyped(jax.config).jax_enable_x64
    assert all(1e-10 < x.worst < 1e-4 for x in report.algorithms)


@pytest.mark.slow
def test_without_a_key_it_is_that_of_seed_0():
    assert precision_report(robots.pendulum(), samples=4) == precision_report(robots.pendulum(), jax.random.key(0), 4)


@pytest.mark.slow
def test_float32_will_do_for_an_even_arm(arm):
    assert arm.condition_worst < 100
    assert arm.recommendation.endswith("float32 is sufficient.")
    assert "float64" not in arm.recommendation


@pytest.mark.slow
def test_a_feather_on_a_heavy_arm_is_found():
    report = precision_report(feather(), KEY, samples=SAMPLES)
    assert report.condition_median > 1e8
    assert (report.light_joint, report.heavy_joint) == ("quill", "shoulder")
    for name in ("aba", "mass_matrix_inverse"):
        assert report[name].worst > 1e-5 and report[name].worst_element == "quill"
    assert report["rnea"].worst < 1e-5 and report["fk"].worst < 1e-5
    assert "Use float64 for mass_matrix_inverse" in report.recommendation
    assert "between 'quill' (light) and 'shoulder' (heavy)" in report.recommendation
    assert "float32 is sufficient" not in report.recommendation


@pytest.mark.slow
def test_a_joint_that_moves_no_mass_makes_m_singular():
    b = RobotBuilder("bare").link("base").link("upper", 1.0, (0.3, 0, 0), 0.1).link("tip")
    b.revolute("shoulder", "base", "upper").revolute("idle", "upper", "tip", xyz=(0.4, 0, 0))
    report = precision_report(build_model(b.build_description()), KEY, samples=4)
    assert report.condition_worst == np.inf and report.light_joint == "idle" and report.massless == ("idle",)
    assert np.isnan(report["aba"].worst) and report["aba"].worst_element == ""
    assert "M is singular: a motion of 'idle' moves nothing that has mass." in report.recommendation
    assert "Not even float64 gives a finite mass_matrix_inverse, aba and aba_derivatives." in report.recommendation


@pytest.mark.slow
def test_a_motion_of_several_joints_that_moves_no_mass_is_named():
    """The base without mass turns one way and the shoulder the other way, about the same axis."""
    b = (
        RobotBuilder("bare")
        .link("world")
        .link("base")
        .link("upper", 1.0, (0.3, 0, 0), 0.1)
        .link("lower", 1.0, (0.1, 0, 0), 0.1)
    )
    b.revolute("turntable", "world", "base").revolute("shoulder", "base", "upper")
    b.revolute("elbow", "upper", "lower", xyz=(0.4, 0, 0))
    report = precision_report(build_model(b.build_description()), KEY, samples=4)
    assert report.massless == ("turntable", "shoulder")
    assert "a motion of 'turntable' and 'shoulder' moves nothing that has mass." in report.recommendation


def test_errors_go_to_the_independent_joints():
    model = testing.random_tree(5, ("floating", "revolute", "revolute", "revolute"), n=4, mimics=1)
    axes = _axes(model)
    independent = tuple(n for n, m in zip(model.joint_names, model.tree.mimics, strict=True) if m is None)
    assert axes["links"][0] == model.link_names and axes["q"][0] == axes["v"][0] == independent
    for axis, size in (("links", 5), ("q", 9), ("v", 8)):
        entries = np.concatenate([np.arange(size)[s] for s in axes[axis][1]])
        assert sorted(entries) == list(range(size))
    names, slices = axes["v"]
    hurt = names.index(next(n for n in names if model.tree.joint_types[model.joint_index(n)] == "floating"))
    want = np.ones((2, 8))
    got = want.copy()
    got[1, slices[hurt].stop - 1] += 0.5
    found = _compare("f", got, want, names, slices)
    assert found.worst_element == names[hurt] and sum(found.errors) == found.worst == 0.5


def test_compare_counts_what_is_not_finite_in_float32_alone():
    want = np.array([[[1.0], [4.0]], [[2.0], [2.0]], [[0.0], [8.0]]])  # sizes 4, 2, 8: the median is 4
    got = want.astype(np.float32)
    got[0, 1], got[1, 0] = 5.0, 2.5
    names, slices = ("a", "b"), [slice(0, 1), slice(1, 2)]
    assert _compare("f", got, want, names, slices) == AlgorithmPrecision("f", 0.125, 0.25, names, (0.125, 0.25))
    got[2, 0] = np.nan
    found = _compare("f", got, want, names, slices)
    assert (found.worst, found.worst_element, found.median) == (np.inf, "a", 0.25)


def test_wrong_arguments_are_refused():
    model = robots.two_link_arm()
    with pytest.raises(ArgumentError, match="samples must be at least 1, got 0"):
        precision_report(model, KEY, 0)
    with pytest.raises(DtypeError, match="samples must be an integer"):
        precision_report(model, KEY, 2.5)  # type: ignore[arg-type]
    still = lock_joints(model, dict.fromkeys(model.joint_names, 0.0))
    with pytest.raises(ModelError, match="no joint that moves"):
        precision_report(still, KEY)
