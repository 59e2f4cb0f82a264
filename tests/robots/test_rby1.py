"""The built-in RB-Y1 robots equal the maker's files, number by number, and the maker's own library."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from rbydyn_jax import fk, random_configuration, rnea, robots
from rbydyn_jax.io import load_urdf, read_urdf, weld
from tests.helpers import BATCH, X64, assert_close, oracle, rby1_file

FORMS = {
    "rby1a": ("rby1a_model_v1.2.urdf", 24),
    "rby1m": ("rby1m_model_v1.3.urdf", 26),
    "rby1ub": ("rby1ub_model.urdf", 18),
}


@pytest.mark.parametrize("form", FORMS)
def test_equals_the_makers_file(form):
    file, joints = FORMS[form]
    ours = getattr(robots.descriptions, f"describe_{form}")()
    theirs, _ = read_urdf(rby1_file(file).read_bytes(), file)
    assert [link.name for link in ours.links] and {link.name for link in ours.links} == {
        link.name for link in theirs.links
    }
    assert [(j.name, j.kind, j.parent, j.child) for j in ours.joints] == [
        (j.name, j.kind, j.parent, j.child) for j in theirs.joints
    ]
    a, b = weld(ours), weld(theirs)
    assert len(a.joint_names) == joints
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, y, err_msg=field.name)
        elif field.name == "shapes":
            jax.tree.map(np.testing.assert_array_equal, x, y)
        elif field.name != "mobile_base":
            assert x == y, field.name
    assert (a.mobile_base is None) == (b.mobile_base is None) == (form == "rby1ub")
    if a.mobile_base is not None and b.mobile_base is not None:
        for name in ("kind", "joints", "params"):
            assert getattr(a.mobile_base, name) == getattr(b.mobile_base, name)
        np.testing.assert_array_equal(a.mobile_base.origin, b.mobile_base.origin)


@pytest.mark.parametrize("form", FORMS)
def test_shares_its_compilation_with_the_makers_file(form):
    assert getattr(robots, form)().tree == load_urdf(rby1_file(FORMS[form][0])).tree


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_equals_the_makers_library(form):
    oracle("rby1_sdk")
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    model = getattr(robots, form)()
    sdk = Rby1Robot(rby1_file(FORMS[form][0]), model.joint_names, model.link_names, "base")
    q = jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(jax.random.key(0), BATCH))
    v, a = jax.random.normal(jax.random.key(1), (2, BATCH, model.nv), q.dtype)
    q64, v64, a64 = (np.asarray(x, float) for x in (q, v, a))
    # The SDK does not normalize the shoulder axes, which are 2e-9 off unit length, and its cosines err by 1e-8.
    tolerance = 1e-7 if X64 else None
    want = np.array([sdk.fk(x, "base", model.link_names) for x in q64])
    assert_close(jax.vmap(fk, (None, 0))(model, q), want, tolerance)
    want = np.array([sdk.rnea(*x) for x in zip(q64, v64, a64, strict=True)])
    assert_close(jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a), want, tolerance)


def test_options_reach_the_model():
    arms = robots.rby1a(base_link="link_torso_5")
    assert arms.nv == 16
    assert arms.tree.mobile_base is None
    assert robots.rby1m(floating_base=True).nq == 26 + 7
