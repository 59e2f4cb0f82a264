"""Arrays to scalars and back, with the batch as the last axis in between.

`jnp.stack` under `vmap` puts the batch first, so that each of hundreds of scalars is written with a large stride. The two
primitives here differ from `stack` and `unstack` in nothing but their batching rule: the batch goes last, and the array
as a whole is transposed once where it enters or leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..spatial._algebra import Scalar, Structural
from ._kernels import kernel

_join_p = Primitive("rbydyn_join")  # arrays of one shape s, and constants between them -> array (n, *s)
_split_p = Primitive("rbydyn_split")  # array (n, *s) -> n arrays of shape s
_split_p.multiple_results = True

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


def _split(x: jax.Array) -> list[jax.Array]:
    return [x[i] for i in range(x.shape[0])]


def _define(primitive: Primitive, function: Callable, lowered: Callable) -> None:
    primitive.def_impl(jax.jit(function, static_argnames="layout" if primitive is _join_p else ()))
    mlir.register_lowering(primitive, mlir.lower_fun(lowered, multiple_results=primitive.multiple_results))


_define(_join_p, _join, _join)  # a concatenation is a kernel of its own
_define(_split_p, _split, kernel(_split))


@_join_p.def_abstract_eval
def _join_shape(*rows, layout):
    return rows[0].update(shape=(len(layout), *rows[0].shape), weak_type=False)


@_split_p.def_abstract_eval
def _split_shape(x):
    return [x.update(shape=x.shape[1:], weak_type=False) for _ in range(x.shape[0])]


def _join_batch(rows, axes, *, layout):
    size = next(x.shape[axis] for x, axis in zip(rows, axes, strict=True) if axis is not None)
    last = [
        jnp.broadcast_to(jnp.expand_dims(x, -1), (*x.shape, size)) if axis is None else jnp.moveaxis(x, axis, -1)
        for x, axis in zip(rows, axes, strict=True)
    ]
    out = _join_p.bind(*last, layout=layout)
    return out, out.ndim - 1


def _split_batch(args, axes):
    x = jnp.moveaxis(args[0], axes[0], -1)
    return _split_p.bind(x), [x.ndim - 2] * x.shape[0]


batching.primitive_batchers[_join_p] = _join_batch
batching.primitive_batchers[_split_p] = _split_batch


def _instantiate(tangents):
    return [ad.instantiate_zeros(t) for t in tangents]


def _join_jvp(primals, tangents, *, layout):
    flat = tuple(None if entry is None else 0.0 for entry in layout)
    return _join_p.bind(*primals, layout=layout), _join_p.bind(*_instantiate(tangents), layout=flat)


def _join_transpose(ct, *rows, layout):
    if type(ct) is ad.Zero:
        return [None] * len(rows)
    return split(ct, [k for k, entry in enumerate(layout) if entry is None])


def _split_jvp(primals, tangents):
    return _split_p.bind(*primals), _split_p.bind(*_instantiate(tangents))


def _split_transpose(cts, x):
    return [_join_p.bind(*_instantiate(cts), layout=(None,) * len(cts))]


ad.primitive_jvps[_join_p] = _join_jvp
ad.primitive_jvps[_split_p] = _split_jvp
ad.primitive_transposes[_join_p] = _join_transpose
ad.primitive_transposes[_split_p] = _split_transpose


def split(x: jax.Array, indices: Iterable[int] | None = None) -> list[jax.Array]:
    """The scalars x[i], for all i or the given ones."""
    if indices is not None:
        indices = list(indices)
        if indices != list(range(x.shape[0])):
            x = x[jnp.array(indices)]
    return _split_p.bind(x) if x.shape[0] else []


def join(scalars: Sequence[Scalar], dtype: Any) -> jax.Array:
    """The 1-D array of scalars, structural constants written out."""
    layout = tuple(float(s.value) if isinstance(s, Structural) else None for s in scalars)
    operands = [jnp.asarray(s, dtype) for s in scalars if not isinstance(s, Structural)]
    if not operands:
        return jnp.array(layout, dtype)
    return _join_p.bind(*operands, layout=layout)
