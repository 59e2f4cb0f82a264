"""Functions of the elements of an array that are written differently on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

Elementwise = Callable[[jax.Array], jax.Array]

_on_cpu_p = Primitive("rbydyn_on_cpu")


def on_cpu(x: jax.Array, cpu: Elementwise, otherwise: Elementwise, slope: Elementwise | None = None) -> jax.Array:
    """`cpu(x)` in programs for a CPU, else `otherwise(x)`, which is equal; `slope(y)` is the derivative at the value y.

    Unlike `lax.platform_dependent` it is one operation until it is lowered, so that it does not divide a kernel.
    """
    return _on_cpu_p.bind(x, cpu=cpu, otherwise=otherwise, slope=slope)


def _jvp(primals: tuple[Any], tangents: tuple[Any], *, slope: Elementwise, **functions: Any) -> tuple[Any, Any]:
    y = _on_cpu_p.bind(*primals, slope=slope, **functions)
    return y, tangents[0] if type(tangents[0]) is ad.Zero else slope(y) * tangents[0]


def _lower(which: str) -> Callable[..., Any]:
    def lower(ctx: mlir.LoweringRuleContext, x: ir.Value[Any], **functions: Any) -> Any:
        return mlir.lower_fun(functions[which], multiple_results=False)(ctx, x)

    return lower


_on_cpu_p.def_impl(lambda x, *, otherwise, **_: otherwise(x))
_on_cpu_p.def_abstract_eval(lambda x, **_: x.update(weak_type=False))
batching.defvectorized(_on_cpu_p)
ad.primitive_jvps[_on_cpu_p] = _jvp
mlir.register_lowering(_on_cpu_p, _lower("otherwise"))
mlir.register_lowering(_on_cpu_p, _lower("cpu"), platform="cpu")
