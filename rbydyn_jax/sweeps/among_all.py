"""An array over all degrees of freedom from one over those of a limb, with a derivative rule.

JAX transposes the updates of an array to as many copies of it.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..xla.fusion import barrier
from ..xla.layout import rows_of
from ..xla.sharding import vary_alike
from ..xla.transpose import LinearMap, apply_linear

Places = tuple[int, ...]


@dataclass(frozen=True)
class _Among(LinearMap):
    """Places entries among zeros, or takes them from there."""

    places: Places
    size: int
    transposed: bool = False

    def apply(self, parameters: Any, arguments: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        (x,) = arguments
        if self.transposed:
            return (rows_of(rows_of(x, self.places), self.places, axis=2),)
        return (_among(x, self.places, self.size),)

    def transpose(self) -> LinearMap:
        return _Among(self.places, self.size, not self.transposed)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def among_all(x: jax.Array, places: Places, size: int) -> jax.Array:
    """The array (size, rows, size) of one (n, rows, n) for pairs of n ascending places; all others are zero."""
    return _among(x, places, size)


@among_all.defjvp
def _among_jvp(places: Places, size: int, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    found = among_all(primals[0], places, size)
    return found, apply_linear(_Among(places, size), (), tangents, [found.shape])[0]


def _among(x: jax.Array, places: Places, size: int) -> jax.Array:
    if len(places) == size:
        return x
    x, found = barrier(x), vary_alike(jnp.zeros((size, x.shape[1], size), x.dtype), x)
    for (i, to_i, n), (j, to_j, m) in itertools.product(_runs(places), repeat=2):
        found = jax.lax.dynamic_update_slice(found, x[i : i + n, :, j : j + m], (to_i, 0, to_j))
    return found


def _runs(places: Places) -> list[tuple[int, int, int]]:
    """The runs of neighbours among the places: where each begins among them, its first place, how many it has."""
    starts = [k for k, place in enumerate(places) if not k or places[k - 1] != place - 1]
    return [(k, places[k], end - k) for k, end in itertools.pairwise([*starts, len(places)])]
