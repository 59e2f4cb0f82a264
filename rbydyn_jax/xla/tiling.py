"""A function whose batch is computed a part at a time, so that what it keeps for each configuration stays in cache.

The arithmetic takes some 10 to 20 KB for each configuration: of a batch of a thousand, it goes to memory and back
between any two loops. And arrays of a power of two of configurations begin at the same place of the cache, where only a
few have room side by side. `tiled` is the function itself, but for its batching rule: a large batch becomes a loop
over parts of it, and a part is filled up to another size where its arrays would drive each other out. A batch is one
operation until it is lowered or differentiated, so that another `vmap` makes one larger batch of it. In a program that
XLA may split over several devices, each device has a part of its share at a time. A large result can be given in
`Pieces`, which are written into the result of the batch one by one: to put them together first takes as long again.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval

from .loops import Pieces, filled, in_place, in_turn, is_in_pieces
from .nested import merged, rows_first, size_along
from .sharding import (
    may_be_split,
    of_mesh,
    on_each_shard,
    replicated,
    type_without_mesh,
    vary_alike,
    without_explicit_mesh,
)
from .transpose import jvp_along, pruned
from .tuning import ALIASING_STRIDE, CACHE_LINE, LARGEST_TILE, PADDED_SCALARS, TILE

_parts_p = Primitive("rbydyn_parts")
_parts_p.multiple_results = True
_tiles_p = Primitive("rbydyn_tiles")  # the same for each row of a batch
_tiles_p.multiple_results = True

Axes = tuple[int | None, ...]
"""The batch axis of each operand, 0, if it has one."""
Numbers = tuple[int, ...]
"""Of how many of the results of the program each result consists: more than one are pieces of it."""


def tiled(f: Callable[..., Any], cut: bool = True, tile: int = TILE) -> Callable[..., Any]:
    """`f`, of pytrees of arrays; what it closes over must be static. Without `cut` any batch is one part.

    `Pieces` in the result come back as one piece.
    """

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(vary_alike(args))

        def of_leaves(*xs: jax.Array) -> Any:
            return f(*jax.tree.unflatten(tree, xs))

        with without_explicit_mesh():  # its constants would keep it, inside of a `shard_map` too
            types = [type_without_mesh(x) for x in given]
            traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(*types)
        found, structure = jax.tree.flatten(shape, is_leaf=is_in_pieces)
        numbers = tuple(len(x.arrays) if is_in_pieces(x) else 1 for x in found)
        results = _parts_p.bind(*given, program=pruned(traced), numbers=numbers, cut=cut, tile=tile, f=of_leaves)
        one = [Pieces((x,)) if is_in_pieces(y) else x for x, y in zip(results, found, strict=True)]
        return jax.tree.unflatten(structure, one)

    return call


def _size_of_part(size: Any, tile: int) -> Any:
    """A divisor of the size of the batch if there is one of about the right size."""
    largest = tile * LARGEST_TILE // TILE
    if not isinstance(size, int) or size <= largest:  # a size that is only known when an exported program runs
        return size
    near = sorted(range(tile // 2, largest + 1), key=lambda part: abs(part - tile))
    return next((part for part in near if size % part == 0), tile)


def _spread(size: Any, itemsize: int) -> Any:
    """The size, padded to an odd number of cache lines where power-of-two strides would alias in the L1 cache."""
    if not isinstance(size, int) or size * itemsize % ALIASING_STRIDE:
        return size
    return size + CACHE_LINE // itemsize


def _of_each(found: Sequence[Any], numbers: Numbers) -> list[Pieces]:
    """What each result consists of."""
    rest = iter(found)
    return [Pieces(tuple(itertools.islice(rest, number))) for number in numbers]


def _put_together(found: Sequence[jax.Array], numbers: Numbers) -> list[jax.Array]:
    return [x.whole() for x in _of_each(found, numbers)]


def _types_of_results(program: ClosedJaxpr, numbers: Numbers) -> list[Any]:
    each: list[Any] = [list(x.arrays) for x in _of_each(program.out_avals, numbers)]
    return [x[0].update(shape=(sum(y.shape[0] for y in x), *x[0].shape[1:])) if len(x) > 1 else x[0] for x in each]


def all_parts(*operands: jax.Array, program: ClosedJaxpr, numbers: Numbers, **_: Any) -> list[jax.Array]:
    """The results of the program of `rbydyn_parts`."""
    return _put_together(jaxpr_as_fun(program)(*operands), numbers)


def _types(*operands: Any, program: ClosedJaxpr, numbers: Numbers, **_: Any) -> list[Any]:
    """The results on the mesh of the operands, which the program does not know."""
    return [x.update(sharding=replicated(of_mesh(operands), x.ndim)) for x in _types_of_results(program, numbers)]


_parts_p.def_impl(jax.jit(all_parts, static_argnames=("program", "numbers", "cut", "tile", "f")))
_parts_p.def_abstract_eval(_types)
mlir.register_lowering(_parts_p, mlir.lower_fun(all_parts, multiple_results=True))


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    program: ClosedJaxpr,
    numbers: Numbers,
    f: Callable[..., Any],
    **how: Any,
) -> tuple[list[Any], list[Any]]:
    moved = {k: t for k, t in enumerate(tangents) if type(t) is not ad.Zero}
    # Under a `vmap` over an explicit axis JAX wants that axis in all of a program: there it is traced once more.
    whole = jaxpr_as_fun(program) if all(type_without_mesh(x) == jax.typeof(x) for x in primals) else f
    values, along = jvp_along(lambda xs: _put_together(jax.tree.leaves(whole(*xs)), numbers), primals, moved)
    # What is worth being cut is worth being computed once more, cut; what is not shares with its derivative.
    return _parts_p.bind(*primals, program=program, numbers=numbers, f=f, **how) if how["cut"] else values, along


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, f: Callable[..., Any], **how: Any
) -> tuple[list[Any], list[int]]:
    batched = tuple(None if axis is None else 0 for axis in axes)
    return _as_one_batch([rows_first(x, axis) for x, axis in zip(operands, axes, strict=True)], batched, **how)


def _as_one_batch(operands: list[Any], batched: Axes, **how: Any) -> tuple[list[Any], list[int]]:
    """The program for each row of the operands that have a batch axis."""
    size = size_along(operands, batched)
    if isinstance(size, int) and not size:
        empty = [jnp.zeros((0, *x.shape), x.dtype) for x in _types_of_results(how["program"], how["numbers"])]
        return vary_alike(empty, *operands), [0] * len(empty)
    results = _tiles_p.bind(*operands, batched=batched, shares=_shares(size), **how)
    return results, [0] * len(results)


def _batch_again(
    operands: Sequence[Any], axes: Sequence[int | None], *, batched: Axes, shares: int, **how: Any
) -> tuple[list[Any], list[int]]:
    given = [rows_first(x, axis) for x, axis in zip(operands, axes, strict=True)]
    of_outer = tuple(None if axis is None else 0 for axis in axes)
    if may_be_split() or any(b is None and a is not None for a, b in zip(of_outer, batched, strict=True)):
        # One batch would gather a split inner one, and repeat a robot for each row of it.
        once = functools.partial(_in_tiles, batched=batched, shares=shares, **how)
        results = jax.vmap(once, in_axes=of_outer)(*given)
        return results, [0] * len(results)
    of_inner = tuple(None if b is None else b + (a is not None) for a, b in zip(of_outer, batched, strict=True))
    sizes = size_along(given, of_outer), size_along(given, of_inner)
    flat = [merged(*each, sizes) for each in zip(given, of_outer, batched, strict=True)]
    results, at = _as_one_batch(flat, batched, **how)
    return [x.reshape(*sizes, *x.shape[1:]) for x in results], at


def _in_tiles(
    *operands: jax.Array,
    program: ClosedJaxpr,
    numbers: Numbers,
    batched: Axes,
    shares: int,
    cut: bool,
    tile: int,
    writes: bool = False,
) -> list[jax.Array]:
    """The rows in a loop over tiles, which `writes` pieces into the results instead of putting them together."""
    is_batched = [axis is not None for axis in batched]
    rows = [x for x, b in zip(operands, is_batched, strict=True) if b]
    shared = [x for x, b in zip(operands, is_batched, strict=True) if not b]
    size: Any = rows[0].shape[0]
    each, part = _each_and_part(size, shares, cut, tile)
    if shares > 1:  # one axis of the shares, which XLA splits, and one to cut
        rows = [jnp.swapaxes(x.reshape(shares, each, *x.shape[1:]), 0, 1) for x in rows]
    axes, in_pieces = 1 + (shares > 1), max(numbers) > 1
    run = functools.partial(_rows, program, is_batched, shared, is_loop=part != each, axes=axes)

    def pieces(rows: list[Any]) -> list[Pieces]:
        return _of_each(run(rows), numbers)

    def together(rows: list[Any]) -> list[jax.Array]:
        return [x.whole(axes) for x in pieces(rows)]

    if part == each:
        results = together(rows)
    elif writes and in_pieces:
        before = (each, shares)[:axes]
        types = [x.update(shape=(*before, *x.shape)) for x in _types_of_results(program, numbers)]
        results = in_place(pieces, rows, part, types, axes)
    else:
        results = in_turn(together, rows, part)
    if shares > 1:
        results = [jnp.swapaxes(x, 0, 1).reshape(size, *x.shape[2:]) for x in results]
    return results


def _each_and_part(size: Any, shares: int, cut: bool, tile: int) -> tuple[Any, Any]:
    """How much of a batch is one share, and how much of this is computed at a time."""
    each = size // shares if shares > 1 else size
    return each, _size_of_part(each, tile) if cut else each


def _lowered(*operands: jax.Array, **how: Any) -> list[Any]:
    run = functools.partial(_in_tiles, writes=True, **how)
    return jaxpr_as_fun(pruned(jax.make_jaxpr(run)(*operands)))(*operands)


def _types_of_batch(*operands: Any, program: ClosedJaxpr, numbers: Numbers, batched: Axes, **_: Any) -> list[Any]:
    size, mesh = size_along(operands, batched), of_mesh(operands)
    types = _types_of_results(program, numbers)
    return [x.update(shape=(size, *x.shape), sharding=replicated(mesh, x.ndim + 1)) for x in types]


def _jvp_of_batch(primals: Sequence[Any], tangents: Sequence[Any], **how: Any) -> tuple[list[Any], list[Any]]:
    moved = {k: t for k, t in enumerate(tangents) if type(t) is not ad.Zero}
    return jvp_along(lambda xs: _in_tiles(*xs, **how), primals, moved)


def _without_unused(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    eqn: JaxprEqn = context[-1]  # a newer JAX says before it which arguments are live
    if not any(used):
        return [False] * len(eqn.invars), None
    program, numbers, batched = (eqn.params[name] for name in ("program", "numbers", "batched"))
    sizes = (eqn.params[name] for name in ("shares", "cut", "tile"))
    invars: list[Any] = list(eqn.invars)
    each, part = _each_and_part(size_along([x.aval for x in invars], batched), *sizes)
    tells_size = [k == batched.index(0) for k in range(len(batched))]
    used_pieces = [is_used for is_used, number in zip(used, numbers, strict=True) for _ in range(number)]
    jaxpr, needed = partial_eval.dce_jaxpr(program.jaxpr, used_pieces, instantiate=tells_size)
    if all(used) and (all(needed) or part != each):  # the barrier in a loop needs all operands
        return [True] * len(eqn.invars), eqn
    params = eqn.params | {
        "program": ClosedJaxpr(jaxpr, program.consts),
        "numbers": tuple(number for number, is_used in zip(numbers, used, strict=True) if is_used),
        "batched": tuple(axis for axis, is_needed in zip(batched, needed, strict=True) if is_needed),
    }
    kept_in = [x for x, is_needed in zip(eqn.invars, needed, strict=True) if is_needed]
    kept_out = [x for x, is_used in zip(eqn.outvars, used, strict=True) if is_used]
    return list(needed), eqn.replace(invars=kept_in, outvars=kept_out, params=params)


def _shares(size: Any) -> int:
    """In how many equal shares XLA may split a batch over the devices."""
    number = jax.device_count()
    return number if may_be_split() and isinstance(size, int) and size % number == 0 else 1


def _rows(
    program: ClosedJaxpr, is_batched: list[bool], shared: list[Any], rows: list[Any], *, is_loop: bool, axes: int
) -> list[jax.Array]:
    """The program for each row, along so many axes."""
    number = rows[0].shape[0]
    is_little = sum(math.prod(x.shape[axes:]) for x in rows) <= PADDED_SCALARS
    wide = _spread(number, max(x.dtype.itemsize for x in program.out_avals)) if is_little else number
    rows = [filled(x, wide, jnp) for x in rows]
    if is_loop:  # or XLA would take the arithmetic on parameters of the model out of it, scalar by scalar
        shared, rows = jax.lax.optimization_barrier((shared, rows))

    def one(row: Sequence[Any]) -> list[jax.Array]:
        unbatched, batched = iter(shared), iter(row)
        return jaxpr_as_fun(program)(*(next(batched if b else unbatched) for b in is_batched))

    return [x[:number] for x in (jax.vmap(jax.vmap(one)) if axes == 2 else jax.vmap(one))(rows)]


ad.primitive_jvps[_parts_p] = _jvp
batching.primitive_batchers[_parts_p] = on_each_shard(_batch)

_tiles_p.def_impl(jax.jit(_in_tiles, static_argnames=("program", "numbers", "batched", "shares", "cut", "tile")))
_tiles_p.def_abstract_eval(_types_of_batch)
ad.primitive_jvps[_tiles_p] = _jvp_of_batch
batching.primitive_batchers[_tiles_p] = on_each_shard(_batch_again)
partial_eval.dce_rules[_tiles_p] = _without_unused
mlir.register_lowering(_tiles_p, mlir.lower_fun(_lowered, multiple_results=True), cacheable=False)
