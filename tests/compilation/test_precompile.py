"""What is precompiled is neither traced nor compiled by later calls, nor compiled by another process."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from tests.compilation.support import counted, start
from tests.helpers import assert_close, normal, untyped

CACHE_SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(scope="module")
def arm():
    return robots.two_link_arm()


@pytest.mark.ci
def test_single_calls(arm):
    q, point, f_ext = normal(0, 2), normal(1, 3), normal(2, 2, 6)
    functions = [
        "gravity_forces",
        rb.rnea,
        ("rnea", {"f_ext": f_ext}),
        ("jacobian", {"link": "tool", "frame": "local"}),
        functools.partial(rb.point_jacobian, link="tool"),
        "total_mass",
        "collision.min_distance",
    ]
    ready = rb.precompile(arm, functions)
    heavier = rb.attach_payload(arm, "tool", 2.0)
    with rb.no_recompile(), counted() as counts:
        for model in (arm, heavier):
            direct = (
                rb.gravity_forces(model, q),
                rb.rnea(model, q, q, q),
                rb.rnea(model, q, q, q, f_ext),
                rb.jacobian(model, q, "tool", frame="local"),
                rb.point_jacobian(model, q, "tool", point),
                rb.total_mass(model),
                collision.min_distance(model, q),
            )
            inputs = ((q,), (q, q, q), (q, q, q, f_ext), (q,), (q, point), (), (q,))
            for f, x, want in zip(ready, inputs, direct, strict=True):
                assert np.array_equal(f(model, *x), want)
    assert not counts


@pytest.mark.slow
def test_a_batch_runs_without_compiling_and_another_size_does_not(arm):
    q, point = normal(0, 5, 2), normal(1, 5, 3)
    jacobians, masses = rb.precompile(arm, [("point_jacobian", {"link": "tool"}), "total_mass"], batch=5)
    with rb.no_recompile(), counted() as counts:
        got = jacobians(arm, q, point)
        mass = masses(arm)
    assert not counts
    assert float(mass) == 3.0  # of the links, 2 kg and 1 kg
    assert_close(got, np.stack([rb.point_jacobian(arm, q[k], "tool", point[k]) for k in range(5)]))
    with pytest.raises(rb.RecompilationError, match="point_jacobian would be recompiled"), rb.no_recompile():
        jacobians(arm, np.zeros((4, 2)), np.zeros((4, 3)))


def test_the_dtype(arm):
    (ready,) = rb.precompile(arm, ["fk"], dtype=np.float32)
    q = jnp.zeros(2, jnp.float32)
    with rb.no_recompile():
        assert rb.fk(arm, q).dtype == ready(arm, q).dtype == jnp.float32


def test_functions_of_ones_own(arm):
    @jax.jit
    def step(model, q, power, gain=2.0):
        return gain * jax.vmap(rb.gravity_forces, (None, 0))(model, q) ** power[0]

    q = normal(0, 6, 2)
    rb.precompile(arm, [(step, {"q": jax.ShapeDtypeStruct((6, 2), q.dtype), "power": np.ones(1)})])
    with rb.no_recompile():
        got = step(arm, q, np.full(1, 2.0))
    assert_close(got, 2 * np.stack([rb.gravity_forces(arm, x) for x in q]) ** 2)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"functions": ["rneaa"]}, rb.NameNotFoundError, "did you mean 'rnea'"),
        ({"functions": ["collision.nothing"]}, rb.NameNotFoundError, "no function named 'collision.nothing'"),
        ({"functions": [("jacobian", {"lnk": "tool"})]}, rb.NameNotFoundError, "did you mean 'link'"),
        (
            {"functions": ["jacobian"]},
            rb.ArgumentError,
            r"jacobian needs link: give it as \('jacobian', {'link': ...}\)",
        ),
        ({"functions": [functools.partial(untyped(rb.jacobian), "tool")]}, rb.ArgumentError, "by name"),
        ({"functions": [("jacobian", "tool")]}, rb.DtypeError, "a pair"),
        ({"functions": [3]}, rb.DtypeError, "got int"),
        ({"functions": "rnea"}, rb.DtypeError, "a sequence"),
        ({"functions": rb.rnea}, rb.DtypeError, "a sequence"),
        ({"functions": ["fk"], "batch": 0}, rb.ArgumentError, "at least 1"),
        ({"functions": ["fk"], "batch": 1.5}, rb.DtypeError, "batch must be an integer"),
        ({"functions": ["fk"], "dtype": np.int32}, rb.DtypeError, "floating-point"),
        ({"functions": ["fk"], "dtype": "thin"}, rb.DtypeError, "got 'thin'"),
    ],
)
def test_wrong_arguments(arm, wrong, error, match):
    with pytest.raises(error, match=match):
        rb.precompile(arm, **wrong)


def test_float64_where_it_is_off(arm):
    with jax.enable_x64(False), pytest.raises(rb.DtypeError, match="jax_enable_x64"):
        rb.precompile(arm, ["fk"], dtype=np.float64)


SCRIPT = """
import json, sys
from collections import Counter

import jax, numpy as np

events = Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.rsplit("/", 1)[-1]]))
import rbydyn_jax as rb
from rbydyn_jax import robots

assert jax.config.jax_compilation_cache_dir is None
jax.jit(lambda x: x + 1)(1.0)  # a first compilation, after which JAX would ask for no cache anymore
events.clear()
rb.set_compilation_cache(sys.argv[1])
model = robots.two_link_arm()
(rnea,) = rb.precompile(model, ["rnea"], batch=3)
print(json.dumps([events, np.asarray(rnea(model, *np.ones((3, 3, 2), np.float32))).tolist()]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_a_second_process_compiles_nothing(tmp_path):
    first, torques = start(SCRIPT, str(tmp_path / "cache"))
    second, again = start(SCRIPT, str(tmp_path / "cache"))
    assert first["cache_misses"] > 0 and "cache_hits" not in first
    assert second["cache_hits"] == second["compile_requests_use_cache"] == first["cache_misses"]
    assert "cache_misses" not in second
    assert again == torques


def test_the_cache_needs_a_path():
    with pytest.raises(rb.DtypeError, match="directory must be a path, got int"):
        untyped(rb.set_compilation_cache)(3)


def test_the_cache_is_in_the_home_of_the_user_and_where_there_can_be_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    config: Any = jax.config
    before = {name: getattr(config, name) for name in CACHE_SETTINGS}
    try:
        rb.set_compilation_cache("~/programs")
        assert config.jax_compilation_cache_dir == str(tmp_path / "programs")
        assert (tmp_path / "programs").is_dir()
        (tmp_path / "file").write_text("")
        with pytest.raises(rb.ArgumentError, match=r"directory .*file/programs' cannot be made"):
            rb.set_compilation_cache(tmp_path / "file" / "programs")
        assert config.jax_compilation_cache_dir == str(tmp_path / "programs")
    finally:
        for name, value in before.items():
            config.update(name, value)
        compilation_cache.reset_cache()
