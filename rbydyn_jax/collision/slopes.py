"""Distances of many pairs whose derivatives cost little: one kernel finds them with their slopes, another the changes.

JAX would differentiate the program of the distances and transpose that: in a gradient all distances would be computed
once more, and the program traced over and over. Of the distance of two shapes the slopes by their positions and sizes
are few, and once they are known, what is left is linear.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array

from ..sweeps.sweep import Spread, Sweep

Distance = Callable[[Any, Any], Array]


def same(x: Array) -> Array:
    """Spread already."""
    return x


def spread_along(grid: tuple[int, int], axis: int, x: Array) -> Array:
    """Along an axis of a grid; a batch stands behind it."""
    return jnp.broadcast_to(jnp.expand_dims(x, axis), (*grid, *x.shape[1:]))


def with_slopes(run: Sweep, distance: Distance, spread: tuple[Spread, Spread]) -> Distance:
    """`run.elementwise(distance)` of two shapes, whose arrays are spread such that they have an entry for each pair."""

    def and_slopes(a: Any, b: Any) -> tuple[Array, Any]:
        found, pull_back = jax.vjp(distance, a, b)
        return found, pull_back(jnp.ones_like(found))

    @jax.custom_jvp
    def distances(a: Any, b: Any) -> Array:
        return run.elementwise(distance, spread, apart=True, separate_use=True)(a, b)

    @functools.partial(distances.defjvp, symbolic_zeros=True)
    def _(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
        found, slopes = run.elementwise(and_slopes, spread, apart=True, separate_use=True)(*primals)
        given = [
            [(slope, by) for slope, by in zip(*map(jax.tree.leaves, side), strict=True) if type(by) is not SymbolicZero]
            for side in zip(slopes, tangents, strict=True)
        ]

        def change(given: list[list[tuple[Array, Array]]]) -> Array:
            sides = zip(given, spread, strict=True)
            return functools.reduce(operator.add, [slope * s(by) for side, s in sides for slope, by in side])

        return found, run.fused_map(change, separate_use=True)(given)

    return distances
