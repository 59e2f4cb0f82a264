"""Arrays to scalars and back, with the batch as the last axis in between.

Under `vmap` arrays are usually batch-first, so that reading or writing hundreds of scalars strides through memory. The
two primitives here are the identity and a concatenation but for their batching rule: the batch goes last (or first),
and the array as a whole is transposed once where it enters or leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

from .nested import size_along
from .partitioned import devices_needed, lower_ordered
from .sharding import on_each_shard, replicated, vary_alike
from .structural import BY_VALUE, Scalar, Structural

jax.tree_util.register_pytree_node(Structural, lambda s: ((), s.value), lambda value, _: BY_VALUE[value])

_join_p = Primitive("rbydyn_join")  # scalars, rows of scalars, and constants between them -> array (n,)
_batch_axis_p = Primitive("rbydyn_batch_axis")  # the identity; `last` tells where a batch goes

# The pieces of a joined array: the next operand, a scalar (None) or so many rows (an integer), or a constant (a float).
Layout = tuple[float | int | None, ...]


def _is_constant(entry: float | int | None) -> bool:
    return isinstance(entry, float)


def join_rows(*rows: jax.Array, layout: Layout) -> jax.Array:
    """The pieces of a layout, one after the other."""
    lanes = rows[0].shape[_axes(layout)[0] :]
    operands, pieces = iter(rows), []
    for is_constant, run in itertools.groupby(layout, _is_constant):
        if is_constant:
            block = np.array(list(run), rows[0].dtype).reshape(-1, *(1,) * len(lanes))
            pieces.append(jnp.broadcast_to(block, (len(block), *lanes)))
        else:
            pieces += [next(operands)[None] if entry is None else next(operands) for entry in run]
    return jnp.concatenate(pieces)


def _axes(layout: Layout) -> list[int]:
    """How many axes of its own each operand has."""
    return [0 if entry is None else 1 for entry in layout if not _is_constant(entry)]


def _places(layout: Layout) -> list[tuple[int, int | None]]:
    """Where each operand begins in the result, and how many rows it has."""
    found, at = [], 0
    for entry in layout:
        if not _is_constant(entry):
            found.append((at, entry))
        at += entry if isinstance(entry, int) else 1
    return found


_join_p.def_impl(jax.jit(join_rows, static_argnames="layout"))
_batch_axis_p.def_impl(lambda x, **_: x)
mlir.register_lowering(_join_p, mlir.lower_fun(join_rows, multiple_results=False))


def _lower_batch_axis(ctx: mlir.LoweringRuleContext, x: ir.Value[Any], *, last: bool, **_: Any) -> Sequence[Any]:
    if last:
        return [x]
    # XLA would not transpose but read with strides, in every loop that follows.
    aval: Any = ctx.avals_in[0]
    return lower_ordered(ctx, x, (tuple(range(aval.ndim)),))


mlir.register_lowering(_batch_axis_p, _lower_batch_axis)


@_join_p.def_abstract_eval
def _join_shape(*rows: Any, layout: Layout) -> Any:
    size = sum(entry if isinstance(entry, int) else 1 for entry in layout)
    shape = (size, *rows[0].shape[_axes(layout)[0] :])
    return rows[0].update(shape=shape, sharding=replicated(rows[0], len(shape)), weak_type=False)


@_batch_axis_p.def_abstract_eval
def _same_shape(x: Any, **_: Any) -> Any:
    return x.update(weak_type=False)


def _join_batch(rows: Sequence[Any], axes: Sequence[int | None], *, layout: Layout) -> tuple[Any, int]:
    size = size_along(rows, axes)
    last = [
        jnp.broadcast_to(jnp.expand_dims(x, -1), (*x.shape, size)) if axis is None else jnp.moveaxis(x, axis, -1)
        for x, axis in zip(rows, axes, strict=True)
    ]
    out = _join_p.bind(*last, layout=layout)
    return out, out.ndim - 1


def _batch_axis_batch(args: Sequence[Any], axes: Sequence[int], *, last: bool, **params: Any) -> tuple[Any, int]:
    at = args[0].ndim - 1 if last else 0
    return _batch_axis_p.bind(jnp.moveaxis(args[0], axes[0], at), last=last, **params), at


batching.primitive_batchers[_join_p] = on_each_shard(_join_batch)
batching.primitive_batchers[_batch_axis_p] = on_each_shard(_batch_axis_batch)


def _join_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, layout: Layout) -> tuple[Any, Any]:
    flat = tuple(0.0 if _is_constant(entry) else entry for entry in layout)
    dense = [ad.instantiate_zeros(t) for t in tangents]
    return _join_p.bind(*primals, layout=layout), _join_p.bind(*vary_alike(dense, primals), layout=flat)


def _join_transpose(ct: Any, *rows: Any, layout: Layout) -> list[Any]:
    if type(ct) is ad.Zero:
        return [None] * len(rows)
    ct = batch_last(ct)
    return [ct[at] if size is None else ct[at : at + size] for at, size in _places(layout)]


ad.primitive_jvps[_join_p] = _join_jvp
ad.primitive_transposes[_join_p] = _join_transpose
ad.deflinear2(_batch_axis_p, lambda ct, x, **_: [ct])


def batch_first(x: jax.Array) -> jax.Array:
    """The same array; under `vmap` its batch axis is the first one, as matrix products like it."""
    return _batch_axis_p.bind(x, last=False, devices=devices_needed())


def batch_last(x: jax.Array) -> jax.Array:
    """The same array; under `vmap` its batch axis is the last one."""
    return _batch_axis_p.bind(x, last=True, devices=None)


def join(pieces: Sequence[Scalar], dtype: Any) -> jax.Array:
    """The 1-D array of scalars and of rows of them, structural constants written out."""
    operands = [jnp.asarray(x, dtype) for x in pieces if not isinstance(x, Structural)]
    given = iter(operands)

    def entry(x: Scalar) -> float | int | None:
        if isinstance(x, Structural):
            return float(x.value)
        operand = next(given)
        return operand.shape[0] if operand.ndim else None

    layout = tuple(entry(x) for x in pieces)
    return _join_p.bind(*vary_alike(operands), layout=layout) if operands else jnp.array(layout, dtype)


def _progressions(indices: Sequence[int]) -> list[slice]:
    """The slices that make up the indices one after the other."""
    found, at = [], 0
    while at < len(indices):
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 1
        end = at + 1
        while step > 0 and end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        found.append(slice(indices[at], indices[end - 1] + 1, max(step, 1)))
        at = end
    return found


def rows_of(x: jax.Array, indices: Sequence[int], axis: int = 0) -> jax.Array:
    """`x[indices]` by slices, which XLA computes inside of the loop that reads them."""
    pieces = _progressions(indices) or [slice(0, 0, 1)]
    if pieces == [slice(0, x.shape[axis], 1)]:
        return x
    slices = [jax.lax.slice_in_dim(x, s.start, s.stop, s.step, axis) for s in pieces]
    return slices[0] if len(slices) == 1 else jnp.concatenate(slices, axis)
