"""Programs in lanes: what they compute of operands that are not in the batch, and how often they are traced."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.xla import batch_last
from rbydyn_jax.xla.batch_last import in_lanes
from rbydyn_jax.xla.fusion import kernel
from tests.helpers import assert_close, normal


@pytest.mark.parametrize("spread", [True, False])
def test_a_result_has_all_lanes_though_what_is_in_the_batch_is_not_used(spread):
    """The second result depends on what all share alone, and where it is wanted alone, the batch would be lost."""

    def f(x, shared):
        return x * shared[:1], jnp.stack([shared[0], shared[1] * shared[0]])

    x, shared = normal(0, 5, 3), normal(1, 2)
    got = jax.jit(jax.vmap(lambda x: in_lanes(f, spread)(x, shared)[1]))(x)
    assert_close(got, np.tile([shared[0], shared[0] * shared[1]], (5, 1)))
    both = jax.jit(jax.vmap(in_lanes(f, spread), (0, None)))(x, shared)
    assert_close(both[0], np.asarray(x) * float(shared[0]))
    assert_close(both[1], got)


@pytest.mark.ci
def test_gradients_with_and_without_a_batch():
    x, shared = normal(2, 4, 3), normal(3, 3)

    def f(x, shared):
        return jnp.sin(x) * shared, x[0] * shared[1]

    def loss(f, x, shared):
        return jnp.sum(f(x, shared)[0] ** 2)

    for spread in (True, False):
        each = [
            jax.vmap(jax.grad(lambda x, y, f=f: loss(f, x, y), (0, 1)), (0, None)) for f in (in_lanes(f, spread), f)
        ]
        jax.tree.map(assert_close, *(jax.jit(g)(x, shared) for g in each))
        second = [jax.vmap(jax.hessian(lambda x, f=f: loss(f, x, shared))) for f in (in_lanes(f, spread), f)]
        assert_close(*(jax.jit(h)(x) for h in second))


def test_a_gradient_of_a_batch_is_traced_a_few_times(monkeypatch):
    """To find what it needs, and to be lowered; the types of its results are known. Of a robot each takes seconds."""
    traced = []

    def lanes_program(f, xs):
        traced.append(f)
        return original(f, xs)

    original = batch_last.lanes_program
    monkeypatch.setattr(batch_last, "lanes_program", lanes_program)
    f = in_lanes(kernel(lambda x: jnp.sin(x) * x[:1]))
    jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(f(x))))).lower(normal(4, 8, 3))
    assert len(traced) <= 4


def test_a_kernel_that_is_linear_in_an_argument_has_a_transpose():
    factor = normal(5, 3)
    scaled = in_lanes(kernel(lambda factor, x: factor * x))
    (back,) = jax.linear_transpose(lambda x: scaled(factor, x), factor)(jnp.ones_like(factor))
    assert_close(back, factor)
