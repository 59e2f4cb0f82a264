"""Functions of the elements of an array that are written differently on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

from .partitioned import devices_needed

Elementwise = Callable[..., Any]
"""Of an array, or of arrays, to arrays of their shape: one, or a tuple."""

_on_cpu_p = Primitive("rbydyn_on_cpu")
_on_cpu_p.multiple_results = True


def on_cpu(
    x: jax.Array, cpu: Elementwise, otherwise: Elementwise, slope: Elementwise | None = None, results: int = 1
) -> list[jax.Array]:
    """`cpu(x)` in programs for a CPU, else `otherwise(x)`, which is equal; `slope(*ys)` are the derivatives of floats.

    Unlike `lax.platform_dependent` it is one operation until it is lowered, so that it does not divide a kernel, and
    what reads the program finds the simpler form. `cpu` is given a whole batch at once.
    """
    given = {"cpu": cpu, "otherwise": otherwise, "slope": slope}
    return _on_cpu_p.bind(x, **given, results=results, devices=devices_needed())  # of kernels in `cpu`


def _jvp(primals: tuple[Any], tangents: tuple[Any], *, slope: Elementwise, **params: Any) -> tuple[Any, Any]:
    ys, (dx,) = _on_cpu_p.bind(*primals, slope=slope, **params), tangents
    if type(dx) is ad.Zero:
        return ys, [dx] * len(ys)
    return ys, [d * dx for d in jax.tree.leaves(slope(*ys))]


def _batch(xs: Sequence[Any], axes: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    return _on_cpu_p.bind(*xs, **params), [axes[0]] * params["results"]


def _lower(which: str) -> Callable[..., Any]:
    def lower(ctx: mlir.LoweringRuleContext, x: ir.Value[Any], **params: Any) -> Any:
        return mlir.lower_fun(lambda x: jax.tree.leaves(params[which](x)), multiple_results=True)(ctx, x)

    return lower


_on_cpu_p.def_impl(lambda x, *, otherwise, **_: jax.tree.leaves(otherwise(x)))
_on_cpu_p.def_abstract_eval(lambda x, *, results, **_: [x.update(weak_type=False)] * results)
batching.primitive_batchers[_on_cpu_p] = _batch
ad.primitive_jvps[_on_cpu_p] = _jvp
mlir.register_lowering(_on_cpu_p, _lower("otherwise"))
mlir.register_lowering(_on_cpu_p, _lower("cpu"), platform="cpu")
