"""Scans as kernels of a GPU: by an interpreter against `lax.scan`, and as loops of kernels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import simulate
from rbydyn_jax.sweeps import plan
from rbydyn_jax.xla import gpu_scan as scans
from rbydyn_jax.xla.gpu_scan import gpu_scan, scan_launch
from rbydyn_jax.xla.ptx import UnsupportedError
from rbydyn_jax.xla.scalars import NotScalarError
from tests.helpers import assert_close

from .ptx import interpret

LANES = 5
pytestmark = pytest.mark.ci


@pytest.fixture
def gpu(monkeypatch):
    """What is traced may be lowered for a GPU, as in a process that has one."""
    monkeypatch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})


def random(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.zeros(()).dtype)


def compare(got, want):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if x.dtype == bool:
            np.testing.assert_array_equal(x, y)
        else:
            assert_close(x, y)


def sums(c, x):
    return 0.9 * c + x.sum(), {"a": c[:2] * x[1], "b": c.sum() > 0.0}


def with_nothing(c, x):
    return (0.9 * c[0] + x[0].sum(), c[1]), (c[0][:2] * x[0][1], c[1], x[1])


def searched(c, x):
    return jax.lax.while_loop(lambda y: y.sum() < 3.0, lambda y: y + jnp.abs(x) + 0.1, c - 4.0), c


ARM = robots.two_link_arm()


def moved(c, tau):
    q, v = c
    v = v + 0.01 * rb.aba(ARM, q, v, tau)
    return (q + 0.01 * v, v), q


CASES = {
    "rows": (sums, random(LANES, 3), random(LANES, 7, 2), False),
    "from the last": (sums, random(LANES, 3), random(LANES, 7, 2), True),
    "nothing": (
        with_nothing,
        (random(LANES, 3), jnp.zeros((LANES, 0))),
        (random(LANES, 7, 2), jnp.zeros((LANES, 7, 0, 2))),
        False,
    ),
    "a loop": (searched, random(LANES, 3), random(LANES, 70, 1), False),
    "a robot": (moved, (random(LANES, 2), random(LANES, 2)), random(LANES, 100, 2), False),
}


def turns_of(f, init, xs, reverse=False):
    """The scan of one lane."""
    first = jax.tree.map(lambda x: x[0], (init, xs))
    traced = jax.make_jaxpr(lambda init, xs: gpu_scan(f, init, xs, reverse=reverse))(*first)
    (eqn,) = (e for e in traced.jaxpr.eqns if e.primitive.name == "rbydyn_gpu_scan")
    return eqn.params["turns"]


@pytest.mark.parametrize("name", CASES)
def test_a_scan_in_a_kernel_computes_what_one_of_jax_does(name):
    f, init, xs, reverse = CASES[name]
    want = jax.vmap(lambda init, xs: jax.lax.scan(f, init, xs, reverse=reverse))(init, xs)
    turns = turns_of(f, init, xs, reverse)
    given = [x for x in jax.tree.leaves((init, xs)) if x.size]
    assert (turns.constants, turns.carried) == (0, len([x for x in jax.tree.leaves(init) if x.size]))
    launch = scan_launch(turns, (True,) * len(given), LANES)
    arrays = [np.ascontiguousarray(np.asarray(x).reshape(LANES, -1).T) for x in given]
    got = interpret(launch.text, arrays, [(x.size, x.dtype) for x in launch.results], LANES)
    for x, y in zip(got, [x for x in jax.tree.leaves(want) if x.size], strict=True):
        compare(x.T.reshape(y.shape), y)


@pytest.mark.parametrize("name", CASES)
def test_where_there_is_no_gpu_it_is_a_scan(name):
    f, init, xs, reverse = CASES[name]
    want = jax.vmap(lambda init, xs: jax.lax.scan(f, init, xs, reverse=reverse))(init, xs)
    got = jax.vmap(lambda init, xs: gpu_scan(f, init, xs, reverse=reverse))(init, xs)
    compare(got, want)
    one = jax.tree.map(lambda x: x[0], (init, xs))
    compare(gpu_scan(f, *one, reverse=reverse), jax.tree.map(lambda x: x[0], want))
    within = jax.vmap(lambda i: jax.vmap(lambda xs: gpu_scan(f, i, xs, reverse=reverse))(xs))(init)
    other = jax.vmap(lambda i: jax.vmap(lambda xs: jax.lax.scan(f, i, xs, reverse=reverse))(xs))(init)
    compare(within, other)


def test_constants_in_a_turn_and_results_that_do_not_depend_on_the_batch():
    def turn(c, y):
        return 0.9 * c, (c, 2.0 * y, jnp.zeros_like(c))

    x = random(LANES, 7)
    c, _, zero = jax.jit(lambda xs: jax.vmap(lambda x: gpu_scan(turn, jnp.ones(()), x))(xs)[1])(x)
    assert_close(c, np.broadcast_to(0.9 ** np.arange(7.0), (LANES, 7)))
    assert not np.asarray(zero).any()
    first = jax.jit(lambda xs: jax.vmap(lambda x: gpu_scan(turn, jnp.ones(()), x))(xs)[1][0])(x)
    assert_close(first, c)


@pytest.mark.parametrize("name", ["rows", "from the last", "a robot"])
def test_derivatives_are_those_of_the_scan(name):
    f, init, xs, reverse = CASES[name]
    gain = jnp.array(0.7)

    def slopes(scan):
        def loss(gain, init, xs):
            after, out = scan(lambda c, x: f(jax.tree.map(lambda y: gain * y, c), x), init, xs, reverse=reverse)
            floats = [y for y in jax.tree.leaves((after, out)) if y.dtype != bool]
            return sum((jnp.sin(y) ** 2).sum() for y in floats)

        return jax.vmap(jax.grad(loss, (0, 1, 2)), (None, 0, 0))(gain, init, xs)

    compare(slopes(gpu_scan), slopes(jax.lax.scan))


def kernels(f, *args):
    """Of the program for a GPU: how many kernels there are, loops beside them, and bytes that they write."""
    text = jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    return text.count("__gpu$xla.gpu.ptx"), text.count("stablehlo.while"), text.count("st.global")


def test_a_rollout_is_one_kernel(gpu):
    x = jnp.zeros((64, 2))

    def motion(q, v):
        return simulate(ARM, q, v, 0.2, 0.002, method="implicit")

    rubbing = rb.with_friction(ARM, jnp.ones(2))
    assert kernels(jax.vmap(lambda q, v: motion(q, v).qs), x, x)[:2] == (1, 0)
    assert kernels(jax.vmap(lambda q: simulate(rubbing, q, q, 0.2, 0.002, method="implicit").qs), x)[:2] == (1, 0)
    # Without the history nothing is written in a turn.
    end = kernels(jax.vmap(lambda q: scans.gpu_scan(moved, (q, q), jnp.zeros((9, 2)))[0]), x)
    assert (end[0], end[2]) == (1, 4)
    # A derivative is a loop of kernels.
    assert kernels(jax.vmap(jax.grad(lambda q: motion(q, q).qs[-1].sum())), x)[1] > 0


def test_a_turn_that_is_no_kernel_is_left_to_xla(gpu, monkeypatch):
    x = random(LANES, 3)

    def axes(c, _):
        return jnp.linalg.eigh(jnp.outer(c, c))[0], c

    def run(f):
        return jax.jit(jax.vmap(lambda q: gpu_scan(f, q, jnp.zeros((4, 1)))))

    with pytest.raises(NotScalarError, match="eigh"):
        scan_launch(turns_of(axes, x, jnp.zeros((LANES, 4, 1))), (True, True), LANES)
    text = run(axes).trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert "__gpu$xla.gpu.ptx" not in text
    want = jax.vmap(lambda q: jax.lax.scan(axes, q, jnp.zeros((4, 1))))(x)
    jax.tree.map(lambda a, b: assert_close(a, b, kind="solve"), run(axes)(x), want)
    with pytest.raises(UnsupportedError, match="exp"):
        scan_launch(turns_of(lambda c, x: (jnp.exp(c), x), x, jnp.zeros((LANES, 4, 1))), (True, True), LANES)
    with pytest.raises(UnsupportedError, match="a row of"):
        scan_launch(turns_of(lambda c, x: (c + x, None), x, jnp.zeros((LANES, 4, 3))), (True, True), 2**30)
    # One whose turns are too large is a loop of kernels.
    monkeypatch.setattr(scans, "GPU_SCAN_OPERATIONS", 10)
    q = jnp.zeros((64, 2))
    found = kernels(jax.vmap(lambda q: gpu_scan(moved, (q, q), jnp.zeros((9, 2)))), q)
    assert found[0] == 1
    assert found[1] == 1
