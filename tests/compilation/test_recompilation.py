"""`no_recompile` raises on every compilation, on nothing else, and says what has changed."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import pickle
import re
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax._jit import jit_public
from rbydyn_jax.testing import random_tree
from tests.helpers import untyped


def zeros(*shape: int) -> Any:
    """Of NumPy, which makes them without compiling."""
    return np.zeros(shape)


Q, BATCH = zeros(2), zeros(4, 2)
TWIN = robots.two_link_arm()
# A robot that no other test has: its tree is of another name.
ARM = dataclasses.replace(TWIN, tree=dataclasses.replace(TWIN.tree, name="watched"))
SPECIAL = rb.specialize(ARM)


class own:
    """Public functions, jitted once more: what other tests of this process have called is not compared."""

    fk = jit_public()(inspect.unwrap(rb.fk))
    rnea = jit_public()(inspect.unwrap(rb.rnea))
    gravity_forces = jit_public()(inspect.unwrap(rb.gravity_forces))
    jacobian = jit_public("link", "ref", "frame")(inspect.unwrap(rb.jacobian))
    link_pose = jit_public("link", "ref")(inspect.unwrap(rb.link_pose))
    subtree_mass = jit_public("link")(inspect.unwrap(rb.subtree_mass))


def cast(model, dtype):
    return jax.tree.map(lambda x: np.asarray(x, dtype), model)


def renamed(**changes):
    return dataclasses.replace(ARM, tree=dataclasses.replace(ARM.tree, **changes))


@functools.cache
def moved(row, value):
    placements = untyped(np.array(ARM.joint_placements))
    placements[1, row, 3] = value
    return rb.with_geometry(ARM, joint_placements=placements)


@jit_public()
def untouched(model, q):
    return q


@jit_public()
def scaled(model, q, gain):
    return gain * q


@jax.jit
def step(model, q, *, gain=1.0):
    return gain * jax.vmap(lambda q: own.gravity_forces(model, q))(q)


@jax.jit
def shift(q):
    return q + 1.0


@pytest.fixture(autouse=True)
def _warm():
    """What the calls below are compared with; compiled at the first test only."""
    own.rnea(ARM, Q, Q, Q)
    own.fk(ARM, Q)
    own.jacobian(ARM, Q, "tool")
    own.subtree_mass(SPECIAL, "upper")
    jax.vmap(own.fk, (None, 0))(ARM, BATCH)
    step(ARM, BATCH)
    shift(Q)
    scaled(ARM, Q, 2.0)
    moved(2, 0.1)  # by operations that are compiled, too
    moved(0, 1.0)


# What is called, which function is named, and a reason that is given.
CHANGED = {
    "shape": (lambda: own.fk(ARM, zeros(3)), "fk", r"q: \(2,\) -> \(3,\)"),
    "dtype": (lambda: own.rnea(ARM, Q, Q.astype("f2"), Q), "rnea", "v: dtype float64 -> float16"),
    "leaf": (
        lambda: own.fk(dataclasses.replace(ARM, inertias=np.zeros((2, 10), "f2")), Q),
        "fk",
        "model.inertias: dtype float64 -> float16",
    ),
    "all leaves": (lambda: own.fk(cast(ARM, "f2"), Q), "fk", "model: dtype float64 -> float16 of all leaves"),
    "optional argument": (
        lambda: own.rnea(ARM, Q, Q, Q, zeros(2, 6)),
        "rnea",
        r"f_ext: not given -> array \(2, 6\)",
    ),
    "number": (lambda: scaled(ARM, Q, np.asarray(2.0)), "scaled", "gain: a Python number -> an array"),
    "kind of argument": (lambda: scaled(ARM, Q, [2.0, 3.0]), "scaled", r"gain: array \(\) -> "),
    "static argument": (lambda: own.jacobian(ARM, Q, "lower"), "jacobian", "link: 'tool' -> 'lower'"),
    "static keyword": (lambda: own.jacobian(ARM, Q, "tool", frame="local"), "jacobian", "frame: not given -> 'local'"),
    "zero of the geometry": (
        lambda: own.fk(moved(2, 0.1), Q),
        "fk",
        r"model.tree: placement of joint 'elbow': z 0 -> a parameter \(see `unstructured`\)",
    ),
    "one of the geometry": (lambda: own.fk(moved(0, 1.0), Q), "fk", "placement of joint 'elbow': x a parameter -> 1"),
    "name of a joint": (
        lambda: own.fk(renamed(joint_names=("shoulder", "knee")), Q),
        "fk",
        r"model.tree.joint_names\[1\]: 'elbow' -> 'knee'",
    ),
    "name of the robot": (lambda: own.fk(renamed(name="twin"), Q), "fk", "model.tree.name: 'watched' -> 'twin'"),
    "specialised": (lambda: own.subtree_mass(ARM, "upper"), "subtree_mass", "model: SpecializedModel -> Model"),
    "parameters of a specialised model": (
        lambda: own.subtree_mass(rb.specialize(dataclasses.replace(ARM, gravity=np.ones(3))), "upper"),
        "subtree_mass",
        "model.gravity: other parameters in a specialised model",
    ),
    "first call": (lambda: untouched(ARM, Q), "untouched", "call it once, or `precompile` it"),
    "user's shape": (lambda: step(ARM, zeros(1024, 2)), "step", r"q: f64\[4,2\] -> f64\[1024,2\]"),
    "user's model": (
        lambda: step(moved(2, 0.1), BATCH),
        "gravity_forces (called in step)",
        "placement of joint 'elbow'",
    ),
    "user's first call": (lambda: jax.jit(lambda x: 2 * x)(Q), "<lambda>", "call it once"),
    "user's trace alone": (lambda: jax.eval_shape(shift, zeros(9)), "shift", r"q: f64\[2\] -> f64\[9\]"),
    "batch of an eager vmap": (lambda: jax.vmap(own.fk, (None, 0))(ARM, zeros(7, 2)), "fk", "each batch size"),
    "committed to a device": (lambda: own.fk(ARM, jax.device_put(Q, jax.devices()[0])), "fk", "committed to a device"),
    "operation of jax.numpy": (lambda: jnp.sinh(np.zeros((3, 1, 5))), "sinh", "not compiled for such arguments"),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", CHANGED)
def test_the_error_names_the_function_and_what_has_changed(which):
    call, function, reason = CHANGED[which]
    with pytest.raises(rb.RecompilationError) as caught, rb.no_recompile():
        call()
    assert caught.value.function == function
    assert any(re.search(reason, r) for r in caught.value.reasons), caught.value.reasons
    assert len(str(caught.value)) < 1000


@pytest.mark.ci
def test_only_the_nearest_call_is_compared():
    """Of a robot with another name, no difference of names is told to one who calls with another shape."""
    own.gravity_forces(renamed(name="twin"), Q)
    with pytest.raises(rb.RecompilationError) as caught, rb.no_recompile():
        own.gravity_forces(ARM, zeros(3))
    assert caught.value.reasons == ("q: (2,) -> (3,)",)


def test_flags_of_jax_are_named():
    with pytest.raises(rb.RecompilationError, match=r"default_matmul_precision of JAX: None -> float32"):
        with jax.default_matmul_precision("float32"), rb.no_recompile():
            own.fk(ARM, Q)


def test_another_topology_is_told_in_few_words():
    with pytest.raises(rb.RecompilationError, match=r"and \d+ more") as caught, rb.no_recompile():
        own.fk(random_tree(1, n=5), zeros(2))
    assert len(str(caught.value)) < 1000


def test_what_is_compiled_runs():
    other = dataclasses.replace(ARM, gravity=np.ones(3), inertias=np.asarray(ARM.inertias) * 2)
    with rb.no_recompile():
        for _ in range(2):
            for model in (ARM, other):
                own.rnea(model, Q, Q, Q)
                step(model, BATCH)
                jax.vmap(own.fk, (None, 0))(model, BATCH)


def test_a_refused_call_compiles_outside_and_runs_inside_then():
    def call():
        return own.link_pose(ARM, Q, "tool")

    with rb.no_recompile():
        for _ in range(2):
            with pytest.raises(rb.RecompilationError):
                call()
    want = call()
    with rb.no_recompile():
        assert np.array_equal(call(), want)


def test_nothing_is_left_behind():
    from jax._src import monitoring  # there is no public list of listeners

    logger = logging.getLogger("jax")
    before = (list(monitoring.get_scalar_listeners()), list(logger.handlers))
    with rb.no_recompile():
        assert (monitoring.get_scalar_listeners(), logger.handlers) != before
    with pytest.raises(rb.RecompilationError), rb.no_recompile():
        own.fk(ARM, zeros(5))
    assert (list(monitoring.get_scalar_listeners()), list(logger.handlers)) == before
    assert not untyped(jax.config).jax_explain_cache_misses
    rb.body_poses(ARM, Q)  # compiles


def test_blocks_nest():
    with rb.no_recompile():
        with rb.no_recompile():
            own.fk(ARM, Q)
        with pytest.raises(rb.RecompilationError, match=r"q: \(2,\) -> \(6,\)"):
            own.fk(ARM, zeros(6))


def test_threads_have_their_own_blocks():
    entered, leave = threading.Event(), threading.Event()
    refused = []

    def guarded():
        with rb.no_recompile():
            entered.set()
            leave.wait(60)
            try:
                rb.com_velocity(ARM, Q, Q)
            except rb.RecompilationError as error:
                refused.append(error.function)

    thread = threading.Thread(target=guarded)
    thread.start()
    entered.wait(60)
    jax.jit(lambda x: 3 * x)(Q)  # in a block of another thread
    leave.set()
    thread.join()
    assert refused == ["com_velocity"]


def test_errors_of_a_function_that_is_traced_stay_what_they_are():
    @jax.jit
    def wrong(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), rb.no_recompile():
        wrong(Q)


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(rb.RecompilationError("fk", ["q: (2,) -> (3,)"])))
    assert (error.function, error.reasons) == ("fk", ("q: (2,) -> (3,)",))
    assert isinstance(error, rb.RbydynError)
