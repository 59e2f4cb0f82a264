"""Results of a batch that are written piece by piece are those that are put together first."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.xla.loops import Pieces
from rbydyn_jax.xla.tiling import tiled
from tests.helpers import assert_close, compiled_text, normal


def in_pieces(x, scale):
    pieces = (jnp.outer(x[:1], scale), jnp.outer(jnp.sin(x), scale), jnp.outer(x[1:] ** 2, scale))
    return {"rows": Pieces(pieces), "sum": jnp.sum(x)}


def whole(x, scale):
    found = in_pieces(x, scale)
    return {"rows": jnp.concatenate(found["rows"].arrays), "sum": found["sum"]}


def by_tiles(x, scale):
    found = tiled(in_pieces, tile=64)(x, scale)
    assert len(found["rows"].arrays) == 1
    return {"rows": found["rows"].whole(), "sum": found["sum"]}


SCALE = np.array([2.0, -1.0])


@pytest.mark.ci
@pytest.mark.parametrize("size", [None, 1, 60, 128, 200])
def test_values_of_one_of_few_and_of_many(size):
    x, scale = normal(0, *(() if size is None else (size,)), 3), jnp.asarray(SCALE, normal(0).dtype)
    each = (lambda f: f) if size is None else (lambda f: jax.vmap(f, (0, None)))
    got, want = jax.jit(each(by_tiles))(x, scale), each(whole)(x, scale)
    jax.tree.map(lambda a, b: assert_close(np.asarray(a), np.asarray(b)), got, want)


@pytest.mark.ci
def test_derivatives():
    x, scale = normal(1, 200, 3), jnp.asarray(SCALE, normal(0).dtype)

    def loss(f, x, scale):
        return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(jax.vmap(f, (0, None))(x, scale)))

    got = jax.jit(jax.grad(lambda *xs: loss(by_tiles, *xs), argnums=(0, 1)))(x, scale)
    want = jax.grad(lambda *xs: loss(whole, *xs), argnums=(0, 1))(x, scale)
    jax.tree.map(lambda a, b: assert_close(np.asarray(a), np.asarray(b)), got, want)


def test_a_result_that_nobody_uses_takes_its_pieces_with_it():
    x, scale = normal(2, 200, 3), jnp.asarray(SCALE, normal(0).dtype)

    def program(name):
        return str(jax.jit(lambda x: jax.vmap(by_tiles, (0, None))(x, scale)[name]).lower(x).as_text())

    assert "stablehlo.sine" not in program("sum")
    assert "stablehlo.sine" in program("rows")


@pytest.mark.ci
def test_poses_of_a_batch_are_written_in_place():
    """No array of the poses of all links is put together within the loop, or after it."""
    arm = robots.panda_like()
    links, q = len(arm.link_names), normal(3, 1024, arm.nq)
    text = compiled_text(jax.jit(jax.vmap(rb.fk, (None, 0))).lower(arm, q))
    assert f"[1024,{links},4,4]" in text
    assert not [line for line in text.splitlines() if "concatenate(" in line and f"[{16 * links}," in line]
    assert text.count("dynamic-update-slice(") >= -(-links // 4)
