"""A function of several programs, a batch of which is computed a tile at a time, and its derivatives as well.

Each program of this library runs in tiles that stay in cache, but what one hands to the next is of the whole batch, and
goes to memory and back. `in_tiles` makes one loop over tiles of all of them. Its derivative along changes of the
operands, and the transpose of that, are further programs in tiles, which compute the function once more: what it hands
to its derivative would go through memory, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from .sharding import type_without_mesh, vary_alike, without_explicit_mesh
from .tiling import tiled
from .transpose import LinearMap, apply_linear, is_zero, jvp_along, no_tangent, with_operands

Arrays = tuple[jax.Array, ...]


def in_tiles(f: Callable[..., Any], tile: int) -> Callable[..., Any]:
    """`f`, of pytrees of arrays, with batches of so many configurations at a time; it may close over anything."""

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(vary_alike(args))

        def of_leaves(*xs: jax.Array) -> Any:
            return f(*jax.tree.unflatten(tree, xs))

        with without_explicit_mesh():
            program, shape = jax.make_jaxpr(of_leaves, return_shape=True)(*map(type_without_mesh, given))
        program, around = with_operands(program)
        operands = vary_alike([*around, *given])
        if not operands or _is_over_rows(program):
            return f(*args)
        results = _with_rule(_Program(program, tile), len(operands))(*operands)
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return call


def _is_over_rows(program: ClosedJaxpr) -> bool:
    """Whether it needs all rows of a `vmap` outside at once, as a sum over its named axis does."""
    names = {x.name for x in program.effects if hasattr(x, "name")}
    return not names <= set(jax.sharding.get_abstract_mesh().manual_axes)


@dataclass(frozen=True)
class _Program:
    """A program in tiles, of arrays."""

    program: ClosedJaxpr
    tile: int

    def __call__(self, *operands: jax.Array) -> Arrays:
        return tuple(tiled(lambda *xs: tuple(self.plain(*xs)), tile=self.tile)(*operands))

    def plain(self, *operands: jax.Array) -> list[jax.Array]:
        """The results, not in tiles."""
        return jaxpr_as_fun(self.program)(*operands)


def _with_rule(run: _Program, operands: int) -> Callable[..., Arrays]:
    """The program with its derivative in tiles."""
    types = run.program.out_avals
    smooth = tuple(k for k, x in enumerate(types) if jnp.issubdtype(x.dtype, np.inexact))

    @jax.custom_jvp
    def ruled(*xs: jax.Array) -> Arrays:
        return run(*xs)

    def jvp(primals: Arrays, tangents: tuple[Any, ...]) -> tuple[Arrays, tuple[Any, ...]]:
        places = tuple(k for k in range(operands) if not _is_still(tangents[k]))
        found = ruled(*primals)
        if not places or not smooth:
            return found, tuple(map(no_tangent, found))
        changes = tuple(tangents[k] for k in places)
        if len({x.dtype for x in (*changes, *(types[k] for k in smooth))}) > 1:  # a linear map has one dtype
            along = jvp_along(lambda xs: run.plain(*xs), primals, dict(zip(places, changes, strict=True)))[1]
            along = [along[k] for k in smooth]
        else:
            shapes = [types[k].shape for k in smooth]
            along = apply_linear(_Derivative(run, places, smooth), primals, changes, shapes)
        of = dict(zip(smooth, along, strict=True))
        return found, tuple(of[k] if k in of else no_tangent(x) for k, x in enumerate(found))

    ruled.defjvp(jvp, symbolic_zeros=True)
    return ruled


def _is_still(tangent: Any) -> bool:
    """Whether there is no change: a symbolic zero, or that of an array of integers."""
    return is_zero(tangent) or tangent.dtype == jax.dtypes.float0


@dataclass(frozen=True)
class _Derivative(LinearMap):
    """The changes of the smooth results along those of the operands that move; the parameters are all operands."""

    run: _Program
    places: tuple[int, ...]
    smooth: tuple[int, ...]
    transposed: bool = False

    def _of_moving(self, operands: Sequence[jax.Array]) -> tuple[Callable[..., Arrays], Arrays]:
        """The smooth results as a function of the operands that move, and those."""

        def results(*moved: jax.Array) -> Arrays:
            full = list(operands)
            for k, x in zip(self.places, moved, strict=True):
                full[k] = x
            found = self.run.plain(*full)
            return tuple(found[k] for k in self.smooth)

        return results, tuple(operands[k] for k in self.places)

    def apply(self, parameters: Any, arguments: Arrays) -> Arrays:
        count = len(parameters)

        def push(*xs: jax.Array) -> Arrays:
            return jax.jvp(*self._of_moving(xs[:count]), xs[count:])[1]

        def pull(*xs: jax.Array) -> Arrays:
            results, moved = self._of_moving(xs[:count])
            return jax.vjp(results, *moved)[1](xs[count:])

        return tuple(in_tiles(pull if self.transposed else push, self.run.tile)(*parameters, *arguments))

    def transpose(self) -> LinearMap:
        return _Derivative(self.run, self.places, self.smooth, not self.transposed)

    def matrix(self, parameters: Any) -> Sequence[Sequence[jax.Array]]:
        blocks = in_tiles(self._blocks, self.run.tile)(*parameters)
        return [list(column) for column in zip(*blocks, strict=True)] if self.transposed else blocks

    def _blocks(self, *operands: jax.Array) -> list[list[jax.Array]]:
        """For each result and operand the matrix, transposed if this is the transpose."""
        results, moved = self._of_moving(operands)
        width = sum(x.size for x in moved)
        height = sum(x.size for x in jax.eval_shape(results, *moved))
        mode = jax.jacfwd if width <= height else jax.jacrev
        found = mode(results, argnums=tuple(range(len(moved))))(*moved)

        def flat(block: jax.Array, x: jax.Array) -> jax.Array:
            matrix = block.reshape(-1, x.size)
            return matrix.T if self.transposed else matrix

        return [[flat(block, x) for block, x in zip(row, moved, strict=True)] for row in found]
