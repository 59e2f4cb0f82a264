"""Kernels give what the functions in them give, in one loop, and survive what XLA and JAX do to a program."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.testing import random_tree
from rbydyn_jax.xla import tuning
from rbydyn_jax.xla.fusion import kernel
from tests.helpers import X64, assert_close, compiled_text, normal


def three(x, y):
    shared = x * y + x
    return {"sum": shared + y, "product": shared * y, "same": x}, (shared, shared)


def x_and_y(*shape):
    return normal(0, *shape), normal(1, *shape)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 300), (0,)])
def test_the_value(shape):
    x, y = x_and_y(*shape)
    jax.tree.map(assert_close, jax.jit(kernel(three))(x, y), three(x, y))
    jax.tree.map(assert_close, kernel(three)(x, y), three(x, y))


def test_the_derivatives_forwards_and_backwards():
    x, y = x_and_y(5)

    def loss(f):
        def of(x, y):
            values, (a, b) = f(x, y)
            return jnp.sum(values["sum"] * values["product"] + a * b * values["same"])

        return of

    for order in (jax.grad, jax.hessian, jax.jacfwd, lambda f, k: jax.vmap(jax.grad(f, k))):
        got, want = (jax.jit(order(loss(f), (0, 1)))(x, y) for f in (kernel(three), three))
        jax.tree.map(assert_close, got, want)


def test_results_of_several_shapes_and_some_that_do_not_depend_on_the_batch():
    def f(x, k):
        return x * k, x + k, k * k, k + 1.0, jnp.outer(x, x) * k

    x, _ = x_and_y(6, 4)
    k = jnp.asarray(2.0, x.dtype)
    got, want = (jax.jit(jax.vmap(f, (0, None)))(x, k) for f in (kernel(f), f))
    jax.tree.map(assert_close, got, want)


def test_both_the_step_and_its_transpose_are_one_loop():
    x, y = x_and_y(100)

    def chain(x, y):
        for _ in range(6):
            x, y = kernel(lambda x, y: (x * y + x, x * y - y))(x, y)
        return x.sum() + y.sum()

    def loops(f):
        return len(re.findall(r"= \(.*\) fusion\(", compiled_text(jax.jit(f).lower(x, y))))

    assert loops(chain) == 6
    assert 10 <= loops(jax.grad(chain, (0, 1))) <= 12


# XLA ends the process on a kernel of which a single result is left, and on some of which two results are one.
DEAD = {
    "slice": lambda f, x, y: f(x, y)[0]["sum"][2:3],
    "branch": lambda f, x, y: jax.lax.cond(
        jnp.asarray(True), lambda v: v[0]["sum"], lambda v: v[1][0] + v[0]["product"], f(x, y)
    ),
    "where": lambda f, x, y: jnp.where(jnp.asarray(False), f(x, y)[0]["sum"], f(x, y)[1][0])[None],
    "loop": lambda f, x, y: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], y)[1][0], f(c[1], y)[0]["product"]), (0, x, x)
    )[1],
    "reshape": lambda f, x, y: f(x.reshape(2, -1), y.reshape(2, -1))[0]["sum"].reshape(-1, 2),
    "same": lambda f, x, y: [v[0]["sum"] for v in (f(x, y), f(x + 0, y * 1))],
    "twice": lambda f, x, y: kernel(lambda a, b: (a * b, b * a, a * b + 1))(x, y)[1][None],
}


@pytest.mark.parametrize("which", DEAD)
def test_what_xla_finds_to_have_no_use(which):
    x, y = x_and_y(8)
    got, want = (jax.jit(lambda x, y, f=f: DEAD[which](f, x, y))(x, y) for f in (kernel(three), three))
    jax.tree.map(assert_close, got, want)


def test_a_program_of_constants_alone():
    x, y = x_and_y(8)
    jax.tree.map(assert_close, jax.jit(lambda: kernel(three)(x, y))(), three(x, y))
    model = robots.two_link_arm()
    q = jnp.ones(2, model.inertias.dtype)
    assert_close(jax.jit(lambda: rb.aba(model, q, q, q))(), rb.aba(model, q, q, q))


@pytest.mark.ci
def test_gradients_with_respect_to_the_numbers_of_a_tree_with_branches():
    """The cotangents of the children of a body are one value."""
    model = random_tree(3, ("revolute",), 12, branching=0.7)
    q = normal(0, model.nv)

    def power(model):
        return rb.rnea(model, q, q, q) @ q

    slope = jax.jit(jax.grad(power))(model)
    # tau is linear in the inertias: their product with the gradient is the power without the rotors.
    rotors = model.armature @ (q * q)
    assert_close(jnp.vdot(slope.inertias, model.inertias), power(model) - rotors, 1e-9 if X64 else 1e-4)


def test_an_untested_jaxlib_gives_one_warning(monkeypatch):
    monkeypatch.setattr(tuning, "jaxlib_version", lambda: (99, 0))
    tuning.warn_if_untested.cache_clear()
    try:
        with pytest.warns(rb.PerformanceWarning, match="filterwarnings") as seen:
            tuning.warn_if_untested()
            tuning.warn_if_untested()
        assert len(seen) == 1
    finally:
        tuning.warn_if_untested.cache_clear()


def test_an_empty_batch_has_an_empty_result():
    model, none = robots.two_link_arm(), jnp.zeros((0, 2), normal(0).dtype)
    assert jax.vmap(rb.rnea, (None, 0, 0, 0))(model, none, none, none).shape == (0, 2)
    assert jax.vmap(rb.fk, (None, 0))(model, none).shape == (0, 4, 4, 4)


@pytest.mark.ci
@pytest.mark.parametrize("traversal", ["unrolled", "scanned"])
def test_nothing_leaks_from_a_trace(traversal):
    model, q = rb.with_traversal(robots.pendulum(), traversal), normal(0, 1)
    with jax.checking_leaks():  # tracing alone: every program would be compiled anew
        slope, mass_matrix = jax.eval_shape(
            lambda q: (jax.grad(lambda q: rb.rnea(model, q, q, q).sum())(q), rb.crba(model, q)), q
        )
    assert slope.shape == (1,) and mass_matrix.shape == (1, 1)


@pytest.mark.ci
@pytest.mark.parametrize("f", [rb.body_poses, rb.fk])
def test_a_program_may_use_any_single_number_of_a_pose(f):
    """XLA leaves a kernel with one result then, which ended the process for rotations of the last body."""
    arm, q = robots.two_link_arm(), jnp.array([0.3, -0.7])
    poses = jnp.ravel(f(arm, q))
    for k in range(16, 28):
        assert_close(jax.jit(lambda q, k=k: jnp.ravel(f(arm, q))[k])(q), poses[k])
