"""Inverses by limbs against numpy's, the partition into limbs, and functions with the batch behind their axes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.sweeps.topology import in_a_row, limbs, masks
from rbydyn_jax.testing import random_tree
from rbydyn_jax.xla.batch_last import broadcast_leading, in_lanes, matrix_major
from tests.helpers import X64, assert_close, normal

TREES = {
    "rby1": robots.rby1a,
    "every_type": lambda: random_tree(1, n=9),
    "bushy": lambda: random_tree(4, ("revolute", "floating", "spherical"), 9, branching=0.8),
    "chain": lambda: random_tree(5, ("revolute", "prismatic"), 21, branching=0.0),
    "mimic": lambda: random_tree(2, ("revolute", "prismatic", "continuous"), 13, mimics=3),
    "one": robots.pendulum,
}


@pytest.mark.parametrize(
    "name, traversal",
    [
        ("one", "auto"),
        *(pytest.param(name, "auto", marks=pytest.mark.slow) for name in TREES if name != "one"),
        *(pytest.param(name, "scanned", marks=pytest.mark.slow) for name in ("one", "mimic", "every_type")),
    ],
)
def test_the_inverse(name, traversal):
    model = rb.with_traversal(TREES[name](), traversal)
    q = jax.vmap(lambda key: rb.random_configuration(model, key))(jax.random.split(jax.random.key(0), 3))
    M, got = (jax.jit(jax.vmap(f, (None, 0)))(model, q) for f in (rb.crba, rb.mass_matrix_inverse))
    if X64:
        assert_close(got, np.linalg.inv(M), kind="solve")
    size = np.abs(np.einsum("bij,bjk->bik", np.abs(got), np.abs(M))).max()
    assert_close(np.einsum("bij,bjk->bik", got, M), np.broadcast_to(np.eye(model.nv), M.shape), scale=size)
    assert np.array_equal(got, np.swapaxes(got, 1, 2))
    if name in ("one", "mimic"):
        assert_close(rb.mass_matrix_inverse(model, q[0]), got[0])


@pytest.mark.parametrize("name", TREES)
def test_joints_of_two_limbs_are_all_related_or_none(name):
    tree = TREES[name]().tree
    below, same = masks(tree)
    blocks = limbs(tree)
    covered = np.concatenate([np.arange(part.start, part.stop) for part in blocks.slices])
    assert np.array_equal(covered, np.arange(sum(joint.nv for joint in tree.joints)))
    for j, rows in enumerate(blocks.slices):
        assert 0 < rows.stop - rows.start <= 8
        for i, columns in enumerate(blocks.slices):
            related = below[rows, columns]
            if i == j:
                assert (related | related.T | same[rows, columns]).all()
            else:
                assert related.all() == (i in blocks.above[j]) == (j in blocks.below[i])
                assert related.all() or not related.any()


def test_blocks_in_a_row():
    blocks = in_a_row(19)
    assert [(part.start, part.stop) for part in blocks.slices] == [(0, 8), (8, 16), (16, 19)]
    assert blocks.above == ((), (0,), (0, 1)) and blocks.below == ((1, 2), (2,), ())
    assert in_a_row(0).slices == ()


def outer(a, b, c):
    weight = np.arange(6.0).reshape(2, 3).astype(c.dtype)
    product = a[:, None] * b[None, :] * broadcast_leading(weight, c)
    return {"product": product + c, "row": jnp.concatenate([a, b]), "rest": a}


def test_the_batch_is_behind_the_axes_however_it_comes():
    a, b, c = normal(0, 4, 5, 2), normal(1, 3, 5), normal(2, 2, 4, 3)

    def both(f):
        return jax.jit(jax.vmap(jax.vmap(f, (0, 1, None)), (0, None, 1)))(a, b, c)

    got, want = both(in_lanes(outer)), both(outer)
    assert got["product"].shape == (4, 5, 2, 3)
    jax.tree.map(assert_close, got, want)
    jax.tree.map(assert_close, in_lanes(outer)(a[0, 0], b[:, 0], c[:, 0]), outer(a[0, 0], b[:, 0], c[:, 0]))


@pytest.mark.ci
def test_derivatives_and_what_is_not_used():
    a, b, c = normal(0, 7, 2), normal(1, 3), normal(2, 7, 2, 3)

    def loss(f):
        return lambda a, b, c: (f(a, b, c)["product"] ** 3).sum()

    for order in (jax.grad, jax.hessian, jax.jacfwd, lambda f, k: jax.jacrev(jax.jacrev(f, k), k)):
        got, want = (
            jax.jit(jax.vmap(order(loss(f), (0, 1, 2)), (0, None, 0)))(a, b, c) for f in (in_lanes(outer), outer)
        )
        jax.tree.map(lambda x, y: assert_close(x, y, 1e-12 if X64 else 1e-4), got, want)
    text = jax.jit(jax.vmap(lambda a, b, c: in_lanes(outer)(a, b, c)["row"], (0, None, 0))).lower(a, b, c).as_text()
    assert "concatenate" in text and "multiply" not in text


def test_matrices_stored_apart_are_the_same():
    x = normal(0, 300, 4, 3)
    doubled = jax.jit(jax.vmap(in_lanes(lambda x: matrix_major(2 * x))))(x)
    assert_close(doubled, 2 * x)
    assert_close(in_lanes(matrix_major)(x[0]), x[0])
