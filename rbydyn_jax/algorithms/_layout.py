"""Arrays to scalars and back, with the batch as the last axis in between.

Under `vmap` arrays are usually batch-first, so that reading or writing hundreds of scalars strides through memory. The
two primitives here are the identity and a concatenation but for their batching rule: the batch goes last, and the array
as a whole is transposed once where it enters or leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Layout as MemoryLayout
from jax.experimental.layout import with_layout_constraint
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..spatial._algebra import Scalar, Structural

_join_p = Primitive("rbydyn_join")  # arrays of one shape s, and constants between them -> array (n, *s)
_batch_last_p = Primitive("rbydyn_batch_last")  # the identity
_batch_first_p = Primitive("rbydyn_batch_first")  # the identity

# What stands at each place of a joined array: None for the next operand, or a constant.
Layout = tuple[float | None, ...]


def _join(*rows: jax.Array, layout: Layout) -> jax.Array:
    operands, pieces = iter(rows), []
    for is_constant, run in itertools.groupby(layout, lambda entry: entry is not None):
        if is_constant:
            block = np.array(list(run), rows[0].dtype).reshape(-1, *(1,) * rows[0].ndim)
            pieces.append(jnp.broadcast_to(block, (len(block), *rows[0].shape)))
        else:
            pieces += [next(operands)[None] for _ in run]
    return jnp.concatenate(pieces)


_join_p.def_impl(jax.jit(_join, static_argnames="layout"))
_batch_last_p.def_impl(lambda x: x)
_batch_first_p.def_impl(lambda x: x)
mlir.register_lowering(_join_p, mlir.lower_fun(_join, multiple_results=False))
mlir.register_lowering(_batch_last_p, lambda ctx, x: [x])


def _row_major(x: jax.Array) -> jax.Array:
    # XLA would not transpose but read with strides, in every loop that follows.
    return with_layout_constraint(x, MemoryLayout(tuple(range(x.ndim))))


mlir.register_lowering(_batch_first_p, mlir.lower_fun(_row_major, multiple_results=False))


@_join_p.def_abstract_eval
def _join_shape(*rows, layout):
    return rows[0].update(shape=(len(layout), *rows[0].shape), weak_type=False)


@_batch_last_p.def_abstract_eval
@_batch_first_p.def_abstract_eval
def _same_shape(x):
    return x.update(weak_type=False)


def _join_batch(rows, axes, *, layout):
    size = next(x.shape[axis] for x, axis in zip(rows, axes, strict=True) if axis is not None)
    last = [
        jnp.broadcast_to(jnp.expand_dims(x, -1), (*x.shape, size)) if axis is None else jnp.moveaxis(x, axis, -1)
        for x, axis in zip(rows, axes, strict=True)
    ]
    out = _join_p.bind(*last, layout=layout)
    return out, out.ndim - 1


def _batch_last_batch(args, axes):
    x = jnp.moveaxis(args[0], axes[0], -1)
    return _batch_last_p.bind(x), x.ndim - 1


def _batch_first_batch(args, axes):
    return _batch_first_p.bind(jnp.moveaxis(args[0], axes[0], 0)), 0


batching.primitive_batchers[_join_p] = _join_batch
batching.primitive_batchers[_batch_last_p] = _batch_last_batch
batching.primitive_batchers[_batch_first_p] = _batch_first_batch


def _join_jvp(primals, tangents, *, layout):
    flat = tuple(None if entry is None else 0.0 for entry in layout)
    dense = [ad.instantiate_zeros(t) for t in tangents]
    return _join_p.bind(*primals, layout=layout), _join_p.bind(*dense, layout=flat)


def _join_transpose(ct, *rows, layout):
    if type(ct) is ad.Zero:
        return [None] * len(rows)
    ct = batch_last(ct)
    return [ct[k] for k, entry in enumerate(layout) if entry is None]


ad.primitive_jvps[_join_p] = _join_jvp
ad.primitive_transposes[_join_p] = _join_transpose
ad.deflinear2(_batch_last_p, lambda ct, x: [ct])
ad.deflinear2(_batch_first_p, lambda ct, x: [ct])


def batch_first(x: jax.Array) -> jax.Array:
    """The same array; under `vmap` its batch axis is the first one, as matrix products like it."""
    return _batch_first_p.bind(x)


def batch_last(x: jax.Array) -> jax.Array:
    """The same array; under `vmap` its batch axis is the last one."""
    return _batch_last_p.bind(x)


def join(scalars: Sequence[Scalar], dtype: Any) -> jax.Array:
    """The 1-D array of scalars, structural constants written out."""
    layout = tuple(float(s.value) if isinstance(s, Structural) else None for s in scalars)
    operands = [jnp.asarray(s, dtype) for s in scalars if not isinstance(s, Structural)]
    if not operands:
        return jnp.array(layout, dtype)
    return _join_p.bind(*operands, layout=layout)


@jax.tree_util.register_pytree_node_class
class Rows:
    """Some rows of an array as scalars-to-be: `scalars` takes them out, inside the kernel that needs them."""

    def __init__(self, array: jax.Array, indices: tuple[int, ...]) -> None:
        self.array, self.indices = array, indices

    def tree_flatten(self) -> tuple[tuple, tuple[int, ...]]:
        return (self.array,), self.indices

    @classmethod
    def tree_unflatten(cls, indices: tuple[int, ...], children: tuple) -> Rows:
        return cls(children[0], indices)

    @property
    def scalars(self) -> tuple[jax.Array, ...]:
        return tuple(self.array[k] for k in self.indices)


def take_scalars(tree: Any) -> Any:
    """A pytree in which every `Rows` is replaced by the tuple of its scalars."""
    return jax.tree.map(lambda x: x.scalars if isinstance(x, Rows) else x, tree, is_leaf=lambda x: isinstance(x, Rows))
