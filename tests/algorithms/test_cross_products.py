"""Cross products of all columns, and matrices of a limb among all: against numpy and what JAX makes of `jnp`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.sweeps.among_all import among_all
from rbydyn_jax.sweeps.cross_products import crossed
from tests.helpers import assert_close, normal


def plain(left, right):
    """[i, :, j] of (6, n) and (6, m)."""
    halves = [(x.reshape(2, 3, -1), axis) for x, axis in ((left, 0), (right, 1))]
    a, b = (jnp.expand_dims(jnp.moveaxis(x, 2, 0), 1 - axis) for x, axis in halves)
    return jnp.moveaxis(jnp.cross(a, b).reshape(left.shape[1], right.shape[1], 6), 2, 1)


@pytest.mark.parametrize("rows", [None, 70])  # in tiles of 32, one of which is not full
def test_values_and_derivatives(rows):
    batch = () if rows is None else (rows,)
    left, right, change = normal(0, *batch, 6, 3), normal(1, *batch, 6, 4), normal(2, *batch, 6, 3)
    weights = normal(3, *batch, 3, 6, 4)

    def everything(f):
        def loss(left, right, weights):
            return (f(left, right) ** 2 * weights).sum()

        def of_one(left, right, change, weights):
            first = jax.grad(loss, (0, 1))(left, right, weights)
            along = jax.jvp(f, (left, right), (change, -right))[1]
            second = jax.jvp(lambda x: jax.grad(loss, (0, 1))(x, right, weights), (left,), (change,))[1]
            return f(left, right), first, along, second

        return jax.jit(of_one if rows is None else jax.vmap(of_one))(left, right, change, weights)

    for got, want in zip(*map(jax.tree.leaves, (everything(crossed), everything(plain))), strict=True):
        assert_close(got, want, kind="solve")
    one = np.cross(np.asarray(left)[..., :3, 1], np.asarray(right)[..., :3, 2])
    assert_close(everything(crossed)[0][..., 1, :3, 2], one)


@pytest.mark.parametrize("places", [(), (1, 2), (0, 2, 3), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("rows", [None, 5])
def test_a_limb_among_all(places, rows):
    batch = () if rows is None else (rows,)
    small, change = (normal(k, *batch, len(places), 3, len(places)) for k in range(2))
    weights = normal(2, *batch, 5, 3, 5)
    at = np.array(places, int)

    def scattered(x):
        return jnp.zeros((5, 3, 5), x.dtype).at[at[:, None, None], np.arange(3)[:, None], at].set(x)

    def everything(f):
        def of_one(x, change, weights):
            def loss(x):
                return (f(x) ** 3 * weights).sum()

            return f(x), jax.jvp(f, (x,), (change,))[1], jax.grad(loss)(x), jax.jvp(jax.grad(loss), (x,), (change,))[1]

        return jax.jit(of_one if rows is None else jax.vmap(of_one))(small, change, weights)

    found = everything(lambda x: among_all(x, places, 5))
    for got, want in zip(found, everything(scattered), strict=True):
        assert_close(got, want)
