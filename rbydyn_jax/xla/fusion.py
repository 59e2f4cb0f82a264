"""One loop for all results of a step: the only place that knows how XLA:CPU fuses.

XLA:CPU makes a loop of its own for every result, and clones into it whatever that result needs. What a step shares
among its results is computed once for each of them, and a straight-line recursion over a tree grows exponentially.
`kernel` stops that with an `mhlo.fusion` of nothing but the results themselves: XLA then fuses what leads to them into
it, so that one loop computes them all, and what comes after starts from them.

The operation is private to XLA: it is used for lowering to one CPU device only, on jaxlib versions on which it was seen
to work (`tuning`), and tests read the compiled program. Elsewhere on a CPU a barrier stands in its place, which stops
the growth, but not the loop for each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn, Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir, partial_eval

from .._errors import RbydynError
from .tuning import FEW_RESULTS, fusions_available, late_barriers


def opaque(values: Any) -> Any:
    """Optimization barrier: prevents constant folding of captured models and sinking of slices into fusions."""
    return jax.tree.map(jax.lax.optimization_barrier, values)


def kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, of pytrees of arrays, with all results of one shape computed in one loop on a CPU."""

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)
        started = _start_p.bind(*given)
        results, shape = jax.tree.flatten(f(*jax.tree.unflatten(tree, started)))
        known = {id(x) for x in started}
        new = {id(x): x for x in results if id(x) not in known}  # without arguments, and each once
        ended = dict(zip(new, _end_p.bind(*new.values()), strict=True)) if new else {}
        return jax.tree.unflatten(shape, [ended.get(id(x), x) for x in results])

    return call


def within(values: Any) -> Any:
    """Arguments of a kernel that it copies where they are its results: slices, each of which XLA would copy alone."""
    given, tree = jax.tree.flatten(values)
    return jax.tree.unflatten(tree, _start_p.bind(*given))


# Where the arguments of a kernel begin and where its results end: the identity, and each the transpose of the other, so
# that the transposed step is a kernel as well.
_start_p, _end_p = Primitive("rbydyn_start"), Primitive("rbydyn_end")


def _of_each(primitive: Primitive, values: Sequence) -> list:
    """The primitive on those of the values that are not symbolic zeros."""
    results = iter(primitive.bind(*(x for x in values if type(x) is not ad.Zero)))
    return [x if type(x) is ad.Zero else next(results) for x in values]


def _pruned(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used):
        return used, None
    eqn: JaxprEqn = context[-1]  # a newer JAX says before it which arguments are live
    kept_in = [x for x, is_used in zip(eqn.invars, used, strict=True) if is_used]
    kept_out = [x for x, is_used in zip(eqn.outvars, used, strict=True) if is_used]
    return used, eqn.replace(invars=kept_in, outvars=kept_out)


def _define(primitive: Primitive, transpose: Primitive) -> None:
    primitive.multiple_results = True
    primitive.def_impl(lambda *xs: list(xs))
    primitive.def_abstract_eval(lambda *xs: [x.update(weak_type=False) for x in xs])
    mlir.register_lowering(primitive, lambda ctx, *xs: list(xs))
    batching.primitive_batchers[primitive] = lambda xs, axes: (primitive.bind(*xs), list(axes))
    ad.primitive_jvps[primitive] = lambda xs, tangents: (primitive.bind(*xs), _of_each(primitive, tangents))
    ad.primitive_transposes[primitive] = lambda cts, *xs: _of_each(transpose, cts)
    partial_eval.dce_rules[primitive] = _pruned


_define(_start_p, _end_p)
_define(_end_p, _start_p)


def on_one_device(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether a program is lowered for one device, or for each device by itself (in `shard_map`)."""
    axes: Any = ctx.module_context.axis_context
    if hasattr(axes, "manual_axes"):
        return axes.mesh.size == 1 or axes.manual_axes == frozenset(axes.mesh.axis_names)
    return getattr(axes, "num_devices", 1) == 1


def _hidden(values: Sequence[ir.Value]) -> list[ir.Value]:
    return list(stablehlo.OptimizationBarrierOp(list(values)).results)


def _apart(values: Sequence[ir.Value]) -> list[ir.Value]:
    """The values, each of which XLA computes without looking behind it, and by a loop of its own."""
    if late_barriers():
        return _hidden(values)
    return [_with_its_layout(x) for x in values]


def _with_its_layout(x: ir.Value) -> ir.Value:
    """A value whose layout is asked for, which hides it until after fusion where barriers do not."""
    rank = len(x.type.shape)
    minor_to_major = ", ".join(map(str, reversed(range(rank))))
    order = f"[{minor_to_major}]" if rank else ""
    layout = ir.ArrayAttr.get([ir.Attribute.parse(f"dense<{order}> : tensor<{rank}xindex>")])
    attributes = {
        "call_target_name": ir.StringAttr.get("LayoutConstraint"),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
        "operand_layouts": layout,
        "result_layouts": layout,
    }
    return ir.Operation.create("stablehlo.custom_call", [x.type], [x], attributes).result


def _chosen(shape: Sequence[int]) -> ir.Value:
    """True, of a shape, hidden from XLA until it has fused."""
    (chosen,) = _hidden([mlir.ir_constant(np.array(True))])
    if not shape:
        return chosen
    booleans = ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(1))
    return stablehlo.broadcast_in_dim(booleans, chosen, mlir.dense_int_array([]))


def _constant(kind: ir.RankedTensorType, value: float) -> ir.Value:
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, value)))


def _distinct(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Each value, such that XLA does not find two of them to be one: a fusion cannot take an operand twice."""
    if not late_barriers():
        return _hidden(values)
    chosen = _chosen(values[0].type.shape)
    return [stablehlo.select(chosen, x, _constant(x.type, k + 0.5)) for k, x in enumerate(values)]


def _fused(values: Sequence[ir.Value]) -> list[ir.Value]:
    """An `mhlo.fusion` that returns its arguments, all of one type."""
    values = _distinct(values)
    types = [x.type for x in values]
    kind = ir.Attribute.parse("#mhlo<fusion_kind kLoop>")
    fusion = ir.Operation.create("mhlo.fusion", types, values, {"fusion_kind": kind}, regions=1)
    block = fusion.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("mhlo.return", [], list(block.arguments))
    return list(fusion.results)


def _bound(values: list[ir.Value]) -> list[ir.Value]:
    """Each value, such that none is used without another one.

    XLA drops the results of a fusion that turn out to have no use after all (in a branch that is never taken), and ends
    the process when a single one is left. Here each seems to need the next, until XLA has fused.
    """
    chosen = _chosen(values[0].type.shape)
    return [stablehlo.select(chosen, x, values[k - 1]) for k, x in enumerate(values)]


def _in_one_loop(values: list[ir.Value]) -> list[ir.Value]:
    """The values, all of one type, as the results of one loop."""
    if not isinstance(values[0].type.element_type, ir.FloatType):
        return _hidden(values)
    if len(values) > 1:
        fused = _fused(values)
        return _bound(fused) if len(fused) <= FEW_RESULTS else fused
    if late_barriers():
        return _hidden(values)
    return _bound(_fused([*values, _constant(values[0].type, 0.0)]))[:1]


def _lower_end(ctx: mlir.LoweringRuleContext, *values: ir.Value) -> list[ir.Value]:
    distinct = list(dict.fromkeys(values))  # the cotangents of the terms of a sum are one
    if ctx.module_context.lowering_parameters.for_export:
        raise RbydynError("jax.export cannot write the CPU kernels of this library: use rbydyn_jax.export_function")
    results: dict[ir.Value, ir.Value] = {}
    if fusions_available() and on_one_device(ctx):
        of_type: dict[str, list[ir.Value]] = {}
        for x in distinct:
            of_type.setdefault(str(x.type), []).append(x)
        for together in of_type.values():
            results.update(zip(together, _in_one_loop(together), strict=True))
    else:
        results.update(zip(distinct, _apart(distinct), strict=True))
    return [results[x] for x in values]


mlir.register_lowering(_end_p, _lower_end, platform="cpu", cacheable=False)  # a cached rule does not see what is one
