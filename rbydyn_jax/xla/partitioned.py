"""Kernels and orders in memory in a program that XLA splits over devices, since its arguments are (no `shard_map`).

The partitioner knows nothing of a fusion, or of a constraint on a layout, and would gather the operands everywhere. So
what is written is a call with a rule: operands and results are split alike, and each device has its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import ClosedJaxpr, Primitive
from jax.extend.mlir import ir
from jax.interpreters import mlir

from .emission import Orders, hidden, in_one_loop, in_orders, is_partly_manual, on_one_device

_in_one_loop_p = Primitive("rbydyn_in_one_loop")
_in_one_loop_p.multiple_results = True
_in_one_loop_p.def_abstract_eval(lambda *xs: list(xs))
# How a kernel is used is not known here.
mlir.register_lowering(_in_one_loop_p, lambda ctx, *values: in_one_loop(list(values), separate_use=True))


@custom_partitioning
def _split_alike(*values: Any) -> list[Any]:
    return _in_one_loop_p.bind(*values)


def _rule(mesh: Any, values: Sequence[Any], results: Sequence[Any]) -> str:
    axes = " ".join(f"i{k}" for k in range(values[0].rank))
    return f"{', '.join([axes] * len(values))} -> {', '.join([axes] * len(results))}"


def _partition(mesh: Any, values: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
    shardings = [x.sharding for x in values]
    return mesh, lambda *xs: _in_one_loop_p.bind(*xs), shardings, tuple(shardings)


_split_alike.def_partition(_partition, sharding_rule=_rule)


@partial(custom_partitioning, static_argnums=(1,))
def _ordered_alike(x: jax.Array, orders: Orders) -> jax.Array:
    return in_orders(x, orders)


def _order_rule(orders: Orders, mesh: Any, values: Sequence[Any], results: Sequence[Any]) -> str:
    return _rule(mesh, values, results)


def _order_partition(orders: Orders, mesh: Any, values: Sequence[Any], result: Any) -> tuple[Any, ...]:
    sharding = values[0].sharding
    return mesh, lambda x: in_orders(x, orders), sharding, (sharding,)


_ordered_alike.def_partition(_order_partition, sharding_rule=_order_rule)


@cache
def _example() -> ClosedJaxpr:
    return jax.make_jaxpr(_split_alike)(0.0)


def devices_needed() -> ClosedJaxpr | None:
    """A parameter for primitives that are lowered by `on_each_device`, in a process of several devices.

    JAX tells a lowering which devices it is for only if the program contains a call of this kind.
    """
    return _example() if jax.device_count() > 1 else None


def on_each_device(ctx: mlir.LoweringRuleContext, values: list[ir.Value[Any]], avals: list[Any]) -> list[ir.Value[Any]]:
    """The values, all of one type, in one loop on each of the devices over which XLA splits them."""
    if avals[0].ndim == 0 or len(values) == 1:
        return hidden(values)
    lower = mlir.lower_fun(_split_alike, multiple_results=True)
    return list(lower(ctx.replace(avals_in=avals, avals_out=avals), *values))


def lower_ordered(ctx: mlir.LoweringRuleContext, x: ir.Value[Any], orders: Orders) -> Sequence[Any]:
    """An array as it is, kept in memory in an order of its axes, on each of the devices of a program."""
    exported = ctx.module_context.lowering_parameters.for_export  # which has no constraints, private to XLA
    if exported or is_partly_manual(ctx):
        return [x]
    store = in_orders if on_one_device(ctx) else _ordered_alike
    return mlir.lower_fun(lambda x: store(x, orders), multiple_results=False)(ctx, x)
