"""One loop for all results of a step: the only place that knows how XLA:CPU fuses.

XLA:CPU makes a loop of its own for every result, and clones into it whatever that result needs. What a step shares
among its results is computed once for each of them, and a straight-line recursion over a tree grows exponentially.
`kernel` stops that with an `mhlo.fusion` of nothing but the results themselves: XLA then fuses what leads to them into
it, so that one loop computes them all, and what comes after starts from them. On a jaxlib that was not tested a
barrier stands in its place, which stops the growth, but not the loop for each result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import JaxprEqn, Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir, partial_eval

from .._errors import RbydynError
from .emission import hidden, in_one_loop, is_partly_manual, on_one_device, separate
from .partitioned import devices_needed, on_each_device
from .tuning import fusions_available


def barrier(values: Any) -> Any:
    """Optimization barrier: prevents constant folding of captured models and sinking of slices into fusions."""
    return jax.tree.map(jax.lax.optimization_barrier, values)


class _How(NamedTuple):
    exportable: bool = False
    separate_use: bool = False


def kernel(f: Callable[..., Any], exportable: bool = False, separate_use: bool = False) -> Callable[..., Any]:
    """`f`, of pytrees of arrays, with all results of one shape computed in one loop on a CPU.

    Exported programs do not hold what is private to XLA: there an `exportable` kernel is a barrier, another an error.
    With `separate_use` a program may use one of the results alone, which would end the process otherwise: that happens
    where they leave a public function, and another `jit` around it takes one of them.
    """
    how = _How(exportable, separate_use)

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)
        started = _bind(given, how, end=False)
        results, shape = jax.tree.flatten(f(*jax.tree.unflatten(tree, started)))
        known = {id(x) for x in started}
        new = {id(x): x for x in results if id(x) not in known}  # without arguments, and each once
        ended = dict(zip(new, _bind(new.values(), how, end=True), strict=True)) if new else {}
        return jax.tree.unflatten(shape, [ended.get(id(x), x) for x in results])

    return call


def kernel_inputs(values: Any) -> Any:
    """Marks kernel inputs, so that an input (a slice) that is returned unchanged is copied in the fused loop."""
    given, tree = jax.tree.flatten(values)
    return jax.tree.unflatten(tree, _bind(given, _How(), end=False))


# The boundary of a kernel, where its arguments begin or its results `end`: the identity. The transpose of one side is
# the other, so that the transposed step is a kernel as well.
_boundary_p = Primitive("rbydyn_boundary")
_boundary_p.multiple_results = True


def _bind(values: Iterable[Any], how: _How, *, end: bool) -> list[Any]:
    return _boundary_p.bind(*values, how=how, end=end, devices=devices_needed())


def _of_each(values: Sequence[Any], how: _How, *, end: bool) -> list[Any]:
    """The boundary on those of the values that are not symbolic zeros."""
    results = iter(_bind((x for x in values if type(x) is not ad.Zero), how, end=end))
    return [x if type(x) is ad.Zero else next(results) for x in values]


def _pruned(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used):
        return used, None
    eqn: JaxprEqn = context[-1]  # a newer JAX says before it which arguments are live
    kept_in = [x for x, is_used in zip(eqn.invars, used, strict=True) if is_used]
    kept_out = [x for x, is_used in zip(eqn.outvars, used, strict=True) if is_used]
    return used, eqn.replace(invars=kept_in, outvars=kept_out)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, how: _How, end: bool, **_: Any
) -> tuple[list[Any], list[Any]]:
    return _bind(primals, how, end=end), _of_each(tangents, how, end=end)


def _transpose(cotangents: Sequence[Any], *_: Any, how: _How, end: bool, devices: Any) -> list[Any]:
    return _of_each(cotangents, how, end=not end)


def _known_apart(trace: Any, *values: Any, **params: Any) -> list[Any]:
    """The boundary on what is known and on what is not: a kernel that is linear in some arguments has a transpose."""
    known = iter(_boundary_p.bind(*(x.pval.get_known() for x in values if x.is_known()), **params))
    unknown = iter(trace.default_process_primitive(_boundary_p, [x for x in values if not x.is_known()], params))
    return [trace.new_const(next(known)) if x.is_known() else next(unknown) for x in values]


def _batch(xs: Sequence[Any], axes: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return _boundary_p.bind(*xs, **params), list(axes)


def _lower(
    ctx: mlir.LoweringRuleContext, *values: ir.Value[Any], how: _How, end: bool, devices: Any
) -> list[ir.Value[Any]]:
    if not end:
        return list(values)
    if set(ctx.platforms or ctx.module_context.platforms) != {"cpu"}:
        return list(values)
    distinct = list(dict.fromkeys(values))  # the cotangents of the terms of a sum are one
    if ctx.module_context.lowering_parameters.for_export:
        if how.exportable:
            return hidden(values)
        raise RbydynError("jax.export cannot write the CPU kernels of this library: use rbydyn_jax.export_function")
    results: dict[ir.Value[Any], ir.Value[Any]] = {}
    if fusions_available() and not is_partly_manual(ctx):
        of_type: dict[str, list[ir.Value[Any]]] = {}
        for x in distinct:
            of_type.setdefault(str(x.type), []).append(x)
        is_one = on_one_device(ctx)
        avals = dict(zip(values, ctx.avals_in, strict=True))
        for together in of_type.values():
            if is_one:
                done = in_one_loop(together, how.separate_use)
            else:
                done = on_each_device(ctx, together, [avals[x] for x in together])
            results.update(zip(together, done, strict=True))
    else:
        results.update(zip(distinct, separate(distinct), strict=True))
    return [results[x] for x in values]


_boundary_p.def_impl(lambda *xs, **_: list(xs))
_boundary_p.def_abstract_eval(lambda *xs, **_: [x.update(weak_type=False) for x in xs])
batching.primitive_batchers[_boundary_p] = _batch
ad.primitive_jvps[_boundary_p] = _jvp
ad.primitive_transposes[_boundary_p] = _transpose
partial_eval.dce_rules[_boundary_p] = _pruned
partial_eval.custom_partial_eval_rules[_boundary_p] = _known_apart
# A rule for the CPU alone cannot be registered: JAX (0.10, 0.12) fails where it chooses one of several within a loop.
mlir.register_lowering(_boundary_p, _lower, cacheable=False)  # a cached rule does not see what is one
