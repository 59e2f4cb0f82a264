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
import numpy as np

from ..xla.batch_last import in_lanes
from ..xla.fusion import barrier
from ..xla.layout import rows_of
from ..xla.tiling import tiled
from ..xla.transpose import LinearMap, apply_linear
from ..xla.tuning import PRODUCTS_TILE
from .plan import is_on_cpu

Places = tuple[int, ...]


@dataclass(frozen=True)
class _Changes(LinearMap):
    """Changes of both matrices, which are the parameters, to those of the products.

    Those of columns that stay zero are left out.
    """

    places: Places | None
    transposed: bool = False

    def apply(self, parameters: Any, arguments: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        left, right = parameters
        if self.transposed:
            return self._pulled_back(left, right, *arguments)
        d_left, d_right = arguments
        return (_products(d_left, right) + _products(left, d_right),)

    def _pulled_back(self, left: jax.Array, right: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, ...]:
        sums = tiled(_sums_in_lanes, cut=is_on_cpu(), tile=PRODUCTS_TILE)
        if self.places is None:
            return sums(left, right, cotangent)
        if not self.places:
            return jnp.zeros_like(left), jnp.zeros_like(right)
        tables = [rows_of(x, self.places, axis=1) for x in (left, right)]
        found = sums(*tables, rows_of(rows_of(cotangent, self.places), self.places, axis=2))
        return tuple(_spread(x, self.places, y.shape[1]) for x, y in zip(found, (left, right), strict=True))

    def transpose(self) -> LinearMap:
        return _Changes(self.places, not self.transposed)


def _spread(table: jax.Array, places: Places, size: int) -> jax.Array:
    """The columns in these places among so many, of which the others are zero."""
    at = np.full(size, len(places))
    at[list(places)] = range(len(places))
    return rows_of(jnp.pad(table, ((0, 0), (0, 1))), at.tolist(), axis=1)


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


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def crossed(left: jax.Array, right: jax.Array, places: Places | None = None) -> jax.Array:
    """The cross products [i, :, j] of column i of `left` with column j of `right`, of each three rows.

    Columns that are not in `places`, if these are given, are zero in both and stay so.
    """
    return _products(left, right)


@crossed.defjvp
def _crossed_jvp(
    places: Places | None, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    found = crossed(*primals, places)
    return found, apply_linear(_Changes(places), primals, tangents, [found.shape])[0]
