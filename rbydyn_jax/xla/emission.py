"""What a kernel is written as: operations that make XLA:CPU compute several results in one loop.

`mhlo.fusion` is private to XLA. It is written for one CPU device only (in a program for several, for each of them, see
`partitioned`), on jaxlib versions on which it was seen to work (`tuning`), and tests read the compiled program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.layout import Layout, with_layout_constraint
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from .tuning import FEW_RESULTS, late_barriers

Orders = tuple[tuple[int, ...], ...]


def on_one_device(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether a program is lowered for one device, or for each device by itself (in `shard_map`)."""
    axes: Any = ctx.module_context.axis_context
    if hasattr(axes, "manual_axes"):
        return axes.mesh.size == 1 or axes.manual_axes == frozenset(axes.mesh.axis_names)
    return getattr(axes, "num_devices", 1) == 1


def is_partly_manual(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether a program is lowered for a `shard_map` over some axes of a mesh."""
    return bool(getattr(ctx.module_context.axis_context, "manual_axes", ())) and not on_one_device(ctx)


def in_orders(x: jax.Array, orders: Orders) -> jax.Array:
    """The same array, kept in memory in one order of its axes (the slowest first) after the other."""
    for order in orders:
        x = with_layout_constraint(x, Layout(order))
    return x


def hidden(values: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """The values behind an optimization barrier."""
    return list(stablehlo.OptimizationBarrierOp(list(values)).results)


def separate(values: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """The values behind a barrier that lives until after fusion: XLA computes each by a loop of its own."""
    if late_barriers():
        return hidden(values)
    return [_with_its_layout(x) for x in values]


def _with_its_layout(x: ir.Value[Any]) -> ir.Value[Any]:
    """A value with a layout constraint: a barrier until after fusion, where optimization barriers are none."""
    rank = len(x.type.shape)
    minor_to_major = ", ".join(map(str, reversed(range(rank))))
    order = f"[{minor_to_major}]" if rank else ""
    layout = ir.ArrayAttr.get([ir.Attribute.parse(f"dense<{order}> : tensor<{rank}xindex>")])
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get("LayoutConstraint"),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
        "operand_layouts": layout,
        "result_layouts": layout,
    }
    return ir.Operation.create("stablehlo.custom_call", [x.type], [x], attributes).results[0]


def _chosen(shape: Sequence[int]) -> ir.Value[Any]:
    """True, broadcast to a shape, behind a barrier until after fusion."""
    (chosen,) = hidden([mlir.ir_constant(np.array(True))])
    if not shape:
        return chosen
    booleans = ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(1))
    return stablehlo.broadcast_in_dim(booleans, chosen, mlir.dense_int_array([]))


def _constant(kind: ir.RankedTensorType, value: float) -> ir.Value[Any]:
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, value)))


def _distinct(values: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """The values, which XLA cannot merge when it finds two of them equal: a fusion cannot take an operand twice."""
    if not late_barriers():
        return hidden(values)
    chosen = _chosen(values[0].type.shape)
    return [stablehlo.select(chosen, x, _constant(x.type, k + 0.5)) for k, x in enumerate(values)]


def _fused(values: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """An `mhlo.fusion` that returns its arguments, all of one type."""
    values = _distinct(values)
    types = [x.type for x in values]
    kind = ir.Attribute.parse("#mhlo<fusion_kind kLoop>")
    fusion = ir.Operation.create("mhlo.fusion", types, values, {"fusion_kind": kind}, regions=1)
    block = fusion.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("mhlo.return", [], list(block.arguments))
    return list(fusion.results)


def _bound(values: list[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """Adds false dependencies, so that XLA cannot drop single results.

    XLA drops the results of a fusion that turn out to have no use after all (in a branch that is never taken), and ends
    the process when a single one is left. Here each seems to need the next, until XLA has fused.
    """
    chosen = _chosen(values[0].type.shape)
    return [stablehlo.select(chosen, x, values[k - 1]) for k, x in enumerate(values)]


def in_one_loop(values: list[ir.Value[Any]], separate_use: bool = False) -> list[ir.Value[Any]]:
    """The values, all of one type, as the results of one loop; some may turn out to have no use (`separate_use`)."""
    if not isinstance(values[0].type.element_type, ir.FloatType):
        return hidden(values)
    if len(values) > 1:
        fused = _fused(values)
        return _bound(fused) if separate_use or len(fused) <= FEW_RESULTS else fused
    if late_barriers():
        return hidden(values)
    return _bound(_fused([*values, _constant(values[0].type, 0.0)]))[:1]
