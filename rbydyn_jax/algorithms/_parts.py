"""A function whose batch is computed a part at a time, so that what it keeps for each configuration stays in cache.

The arithmetic on tables takes some 20 KB for each configuration: of a batch of a thousand, the tables go to memory and
back between any two of its loops. `in_parts` is the function itself, but for its batching rule: a large batch becomes
a loop over parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from .._chunks import in_turn
from ._linear import jvp_along, pruned

# Few enough for a core's cache, and enough that starting a loop costs nothing against it. Multiples of 256 are cut into
# equal parts wherever they are cut: the results of `map_batch` do not depend on its chunks.
_PART, _LARGEST = 256, 384
# A larger batch may be split over the devices of a mesh by JAX, which would send every part to all of them.
_SHARED = 1024

_parts_p = Primitive("rbydyn_parts")
_parts_p.multiple_results = True


def in_parts(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, of pytrees of arrays; what it closes over must be static."""

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)
        traced, shape = jax.make_jaxpr(lambda *xs: f(*jax.tree.unflatten(tree, xs)), return_shape=True)(*given)
        return jax.tree.unflatten(jax.tree.structure(shape), _parts_p.bind(*given, program=pruned(traced)))

    return call


def _size_of_part(size: int) -> int:
    """A divisor of the size of the batch if there is one of about the right size."""
    if not isinstance(size, int) or size <= _LARGEST:  # a size that is only known when an exported program runs
        return size
    own = bool(jax.sharding.get_abstract_mesh().manual_axes)  # in `shard_map` all rows are on this device
    if size > _SHARED and jax.device_count() > 1 and not own:
        return size
    near = sorted(range(_PART // 2, _LARGEST + 1), key=lambda part: abs(part - _PART))
    return next((part for part in near if size % part == 0), _PART)


def _whole(*operands: jax.Array, program: ClosedJaxpr) -> list[jax.Array]:
    return jaxpr_as_fun(program)(*operands)


_parts_p.def_impl(jax.jit(_whole, static_argnames="program"))
_parts_p.def_abstract_eval(lambda *_, program: list(program.out_avals))
mlir.register_lowering(_parts_p, mlir.lower_fun(_whole, multiple_results=True))


def _jvp(primals: Sequence, tangents: Sequence, *, program: ClosedJaxpr) -> tuple[list, list]:
    f = jaxpr_as_fun(program)
    moved = {k: t for k, t in enumerate(tangents) if type(t) is not ad.Zero}
    return _parts_p.bind(*primals, program=program), jvp_along(lambda xs: f(*xs), primals, moved)


def _batch(operands: Sequence, axes: Sequence, *, program: ClosedJaxpr) -> tuple[list, list]:
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    is_batched = [axis is not None for axis in axes]
    first = [jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True) if axis is not None]

    def one(rows: Sequence) -> list[jax.Array]:
        row = iter(rows)
        return jaxpr_as_fun(program)(*(next(row) if b else x for x, b in zip(operands, is_batched, strict=True)))

    part = _size_of_part(size)
    results = jax.vmap(one)(first) if part == size else in_turn(jax.vmap(one), first, part)
    return results, [0] * len(results)


ad.primitive_jvps[_parts_p] = _jvp
batching.primitive_batchers[_parts_p] = _batch
