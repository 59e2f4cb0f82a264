"""Cross products of all columns of two matrices, with a derivative rule.

JAX transposes the products to sums over one of the two columns, which XLA takes number by number, several arrays of all
products after the other. In tiles and with the batch in lanes they take a half to a quarter of the time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..xla.batch_last import in_lanes
from ..xla.fusion import barrier
from ..xla.tiling import tiled
from ..xla.transpose import LinearMap, apply_linear
from ..xla.tuning import PRODUCTS_TILE
from .plan import is_on_cpu


@dataclass(frozen=True)
class _Changes(LinearMap):
    """Changes of both matrices, which are the parameters, to those of the products."""

    transposed: bool = False

    def apply(self, parameters: Any, arguments: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        left, right = parameters
        if self.transposed:
            return tiled(_sums_in_lanes, cut=is_on_cpu(), tile=PRODUCTS_TILE)(left, right, *arguments)
        d_left, d_right = arguments
        return (_products(d_left, right) + _products(left, d_right),)

    def transpose(self) -> LinearMap:
        return _Changes(not self.transposed)


def _products(left: jax.Array, right: jax.Array) -> jax.Array:
    def rows(table: jax.Array, order: tuple[int, int, int]) -> jax.Array:
        return jnp.stack([table[at + k] for at in range(0, len(table), 3) for k in order])

    one, two, three, four = barrier(tuple(rows(x, k) for x in (left, right) for k in ((1, 2, 0), (2, 0, 1))))
    return one.T[:, :, None] * four[None] - two.T[:, :, None] * three[None]


def _sums(left: jax.Array, right: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of cotangents c_ij of l_i x r_j the sums of r_j x c_ij and of c_ij x l_i."""

    def total(terms: Iterable[jax.Array]) -> jax.Array:
        return functools.reduce(jax.lax.add, terms)

    n, size, m, *_ = cotangent.shape
    of_left, of_right = [], []
    for row in range(size):
        y, z = (row - row % 3 + (row + k) % 3 for k in (1, 2))
        of_left.append(
            total(right[y, j][None] * cotangent[:, z, j] - right[z, j][None] * cotangent[:, y, j] for j in range(m))
        )
        of_right.append(
            total(cotangent[i, y] * left[z, i][None] - cotangent[i, z] * left[y, i][None] for i in range(n))
        )
    return jnp.stack(of_left), jnp.stack(of_right)


def _sums_in_lanes(left: jax.Array, right: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    return in_lanes(_sums, spread=False)(left, right, cotangent)


@jax.custom_jvp
def crossed(left: jax.Array, right: jax.Array) -> jax.Array:
    """The cross products [i, :, j] of column i of `left` with column j of `right`, of each three rows."""
    return _products(left, right)


@crossed.defjvp
def _crossed_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    found = crossed(*primals)
    return found, apply_linear(_Changes(), primals, tangents, [found.shape])[0]
