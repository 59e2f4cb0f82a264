"""Functions of arrays that know nothing of a batch, with the batch as lanes behind the axes that they work on.

Under `vmap` JAX moves the batch to the front wherever it spreads, stacks or reshapes an array, and XLA:CPU would read
with strides in the loops that follow. `in_lanes` lets a function spread, stack and reshape as it likes: under `vmap` it
is given arrays with one more axis at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval

from .._signatures import unobserved
from .nested import size_along
from .partitioned import devices_needed, lower_ordered
from .sharding import on_each_shard, on_mesh, replicated, vary_alike
from .transpose import jvp_along, pruned

_lanes_p = Primitive("rbydyn_lanes")
_lanes_p.multiple_results = True
_stored_p = Primitive("rbydyn_stored")  # the identity, in an order in memory


class _Types(NamedTuple):
    """The axes that the operands of a program have without lanes, and the shapes and dtypes of its results."""

    ranks: tuple[int, ...]
    results: tuple[tuple[tuple[int, ...], Any], ...]

    def lanes(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The lanes of the results: an operand may have one lane only."""
        return jax.lax.broadcast_shapes(*(np.shape(x)[k:] for x, k in zip(operands, self.ranks, strict=True)), ())

    def kept(self, operands: Sequence[bool], results: Sequence[bool]) -> _Types:
        """Those of some operands and results."""
        return _Types(tuple(compress(self.ranks, operands)), tuple(compress(self.results, results)))


def in_lanes(f: Callable[..., Any], spread: bool = True) -> Callable[..., Any]:
    """`f`, of pytrees of arrays, which works on leading axes: `a[:, None] * b[None, :]` or `jnp.stack(rows)`.

    All that depends on the batch must be an argument, and what `f` closes over may have no axes: see
    `broadcast_leading`. Without `spread` an argument that is not in the batch has one lane only, and `f` broadcasts.
    """
    programs: dict[Any, Callable[..., Any]] = {}  # by the structure of the arguments; the same is traced once
    shapes: dict[Any, Any] = {}

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)

        def flat(*xs: jax.Array) -> list[Any]:
            results, shapes[tree] = jax.tree.flatten(f(*jax.tree.unflatten(tree, xs)))
            return results

        program = programs.setdefault(tree, jax.jit(flat))
        # JAX does not look for calls in `f`, whose kernels have to know the devices of the program.
        types = _Types(tuple(map(np.ndim, given)), _shapes_and_dtypes(lanes_program(program, given).out_avals))
        results = _lanes_p.bind(*given, f=program, types=types, spread=spread, devices=devices_needed())
        return jax.tree.unflatten(shapes[tree], results)

    return call


def broadcast_leading(constant: np.ndarray, x: jax.Array) -> np.ndarray:
    """A constant for the leading axes of `x`, the same in all lanes."""
    return constant.reshape(constant.shape + (1,) * (x.ndim - constant.ndim))


def matrix_major(matrix: jax.Array) -> jax.Array:
    """A matrix in lanes, stored one lane after the other, as it is outside."""
    if matrix.ndim == 2:
        return matrix
    lanes_last = tuple(range(matrix.ndim))  # first, or what leads here would be stored the other way as well
    return _stored_p.bind(matrix, orders=(lanes_last, (*lanes_last[2:], 0, 1)), devices=devices_needed())


def lanes_program(f: Callable[..., Any], xs: Sequence[Any]) -> ClosedJaxpr:
    """What the function of a program in lanes computes of operands of these types."""
    if isinstance(f, _Kept) and f.is_of(xs):
        return f.program
    with unobserved():
        return jax.make_jaxpr(f)(*xs)


def _shapes_and_dtypes(results: Sequence[Any]) -> tuple[tuple[tuple[int, ...], Any], ...]:
    return tuple((x.shape, x.dtype) for x in results)


def _run(*xs: Any, f: Callable[..., Any], types: _Types, **_: Any) -> list[Any]:
    """The results, each in all lanes."""
    lanes = types.lanes(xs)
    return [jnp.broadcast_to(y, (*shape, *lanes)) for y, (shape, _) in zip(f(*xs), types.results, strict=True)]


def _lowered(*xs: jax.Array, f: Callable[..., Any], types: _Types, **_: Any) -> list[Any]:
    return _run(*xs, f=jaxpr_as_fun(pruned(lanes_program(f, xs))), types=types)


def _avals(*xs: Any, f: Callable[..., Any], types: _Types, **_: Any) -> list[Any]:
    if any(map(on_mesh, xs)):  # the program tells which results vary over its devices
        return [x.update(weak_type=False) for x in lanes_program(partial(_run, f=f, types=types), xs).out_avals]
    lanes = types.lanes(xs)
    return [ShapedArray((*shape, *lanes), dtype) for shape, dtype in types.results]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, f: Callable[..., Any], types: _Types, **params: Any
) -> tuple[list[Any], list[Any]]:
    places = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]

    def moved(*xs: jax.Array) -> list[Any]:
        values, along = list(xs[: len(primals)]), dict(zip(places, xs[len(primals) :], strict=True))
        for k, change in along.items():  # one of them may have one lane only
            values[k], along[k] = jnp.broadcast_arrays(values[k], change)
        return jvp_along(lambda ys: f(*ys), values, along)[1]

    along = (tangents[k] for k in places)
    values = _lanes_p.bind(*primals, f=f, types=types, **params)
    ranks = types.ranks + tuple(types.ranks[k] for k in places)
    changes = _shapes_and_dtypes([ShapedArray(*x).to_tangent_aval() for x in types.results])
    return values, _lanes_p.bind(*primals, *along, f=moved, types=_Types(ranks, changes), **params)


def _transpose(cotangents: Sequence[Any], *args: Any, f: Callable[..., Any], types: _Types, **params: Any) -> list[Any]:
    """The transpose rule of the tangent program, `moved` in `_jvp`."""
    linear = [ad.is_undefined_primal(x) for x in args]
    known = [x for x, is_linear in zip(args, linear, strict=True) if not is_linear]
    wanted = [x.aval for x, is_linear in zip(args, linear, strict=True) if is_linear]
    dense = [ad.instantiate_zeros(ct) for ct in cotangents]

    def transposed(*xs: jax.Array) -> list[Any]:
        values, cts = xs[: len(known)], xs[len(known) :]
        lanes = jax.lax.broadcast_shapes(*(x.shape[y.ndim :] for x, y in zip(xs, (*known, *dense), strict=True)))
        cts = [jnp.broadcast_to(x, (*y.shape, *lanes)) for x, y in zip(cts, dense, strict=True)]

        def map_(*unknown: jax.Array) -> list[Any]:
            a, b = iter(unknown), iter(values)
            results = f(*(next(a) if is_linear else next(b) for is_linear in linear))
            return [jnp.broadcast_to(x, ct.shape) for x, ct in zip(results, cts, strict=True)]

        # The mesh is that of the cotangents: inside of a `shard_map` another one than when this was traced.
        shapes = ((*x.shape, *lanes) for x in wanted)
        mesh = jax.typeof(cts[0])
        types = (x.update(shape=s, sharding=replicated(mesh, len(s))) for x, s in zip(wanted, shapes, strict=True))
        return list(jax.linear_transpose(map_, *types)(cts))

    types = _Types(tuple(np.ndim(x) for x in (*known, *dense)), _shapes_and_dtypes(wanted))
    found = iter(_lanes_p.bind(*known, *dense, f=transposed, types=types, **params))
    return [next(found) if is_linear else None for is_linear in linear]


def _batch(xs: Sequence[Any], axes: Sequence[Any], *, spread: bool, **params: Any) -> tuple[list[Any], list[Any]]:
    size = size_along(xs, axes)
    last = [
        jnp.broadcast_to(x[..., None], (*x.shape, size if spread else 1)) if axis is None else jnp.moveaxis(x, axis, -1)
        for x, axis in zip(xs, axes, strict=True)
    ]
    results = _lanes_p.bind(*last, spread=spread, **params)
    return results, [y.ndim - 1 for y in results]


class _Kept:
    """The part of a program that computes the results that are used, of the operands that these need."""

    def __init__(self, f: Callable[..., Any], operands: Sequence[Any], used: Sequence[bool], types: _Types) -> None:
        program, lanes = lanes_program(f, operands), types.lanes(operands)
        jaxpr, needed = partial_eval.dce_jaxpr(program.jaxpr, used)
        kept = types.kept(needed, used)
        if kept.lanes(list(compress(operands, needed))) != lanes:  # without an operand that is not used
            jaxpr, needed = partial_eval.dce_jaxpr(program.jaxpr, used, instantiate=True)
            kept = types.kept(needed, used)
        self.f, self.operands, self.used, self.needed, self.types = f, operands, used, list(needed), kept
        self.program = ClosedJaxpr(jaxpr, program.consts)

    def __call__(self, *xs: jax.Array) -> list[Any]:
        given = iter(xs)
        lanes = xs[0].shape[self.operands[self.needed.index(True)].ndim :] if xs else ()
        every = (
            next(given) if is_needed else vary_alike(jnp.zeros((*x.shape, *lanes), x.dtype), *xs)
            for x, is_needed in zip(self.operands, self.needed, strict=True)
        )
        return list(compress(self.f(*every), self.used))

    def is_of(self, xs: Sequence[Any]) -> bool:
        """Whether it was traced for operands of these types."""
        types = [x if isinstance(x, ShapedArray) else jax.typeof(x) for x in xs]
        return types == list(compress(self.operands, self.needed))


def _without_unused(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    eqn: JaxprEqn = context[-1]
    params = eqn.params
    if not any(used):
        return [False] * len(eqn.invars), None
    if all(used) and isinstance(params["f"], _Kept):
        return [True] * len(eqn.invars), eqn
    kept = _Kept(params["f"], [x.aval for x in eqn.invars], used, params["types"])
    kept_in, kept_out = list(compress(eqn.invars, kept.needed)), list(compress(eqn.outvars, used))
    return kept.needed, eqn.replace(invars=kept_in, outvars=kept_out, params=params | {"f": kept, "types": kept.types})


_stored_p.def_impl(lambda x, **_: x)
_stored_p.def_abstract_eval(lambda x, **_: x.update(weak_type=False))
ad.deflinear2(_stored_p, lambda ct, x, **_: [ct])
mlir.register_lowering(_stored_p, lambda ctx, x, *, orders, devices: lower_ordered(ctx, x, orders))

_lanes_p.def_impl(_run)
_lanes_p.def_abstract_eval(_avals)
ad.primitive_jvps[_lanes_p] = _jvp
ad.primitive_transposes[_lanes_p] = _transpose
batching.primitive_batchers[_lanes_p] = on_each_shard(_batch)
partial_eval.dce_rules[_lanes_p] = _without_unused
mlir.register_lowering(_lanes_p, mlir.lower_fun(_lowered, multiple_results=True), cacheable=False)
