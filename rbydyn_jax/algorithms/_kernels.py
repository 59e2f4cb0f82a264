"""One XLA:CPU kernel for a function: the only place that knows of XLA's internal tags.

XLA:CPU fuses by cloning values into every consumer; a straight-line recursion over a tree grows exponentially that way.
Two metadata tags stop it: `inlineable=false` keeps a call from being inlined, and `xla_cpu_small_call=true` makes the
emitter compile the whole callee as one LLVM kernel. They are no stable interface: they are used for lowering to CPU
only, on jaxlib versions on which they were seen to work, and a test reads the compiled HLO.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any, cast

import jax
from jax.core import ShapedArray
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Literal, Primitive, jaxpr_as_fun
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir
from jax.interpreters.partial_eval import dce_jaxpr

_TESTED_FROM, _TESTED_BELOW = (0, 10), (0, 13)
_ATTRIBUTES, _SMALL = "mhlo.frontend_attributes", "xla_cpu_small_call"
# XLA:CPU shares an operation on half a megabyte among threads; a dozen arrays of this size are less.
_LARGE_BYTES = 24 * 1024

_sized_p = Primitive("rbydyn_sized")  # the identity, on what goes into and comes out of a single kernel
_sized_p.def_impl(lambda x: x)
_sized_p.def_abstract_eval(lambda x: x)
batching.defvectorized(_sized_p)
ad.deflinear2(_sized_p, lambda ct, x: [ct if type(ct) is ad.Zero else _sized_p.bind(ct)])


def _lower_sized(ctx: mlir.LoweringRuleContext, x: ir.Value) -> list[ir.Value]:
    """No single kernel where arrays are large: XLA:CPU shares its operations among threads and then cannot emit it."""
    aval, op = cast(ShapedArray, ctx.avals_in[0]), x.owner
    if aval.size * aval.dtype.itemsize >= _LARGE_BYTES and not isinstance(op, ir.Block):
        attributes = op.attributes
        if _ATTRIBUTES in attributes:
            tags = {a.name: a.attr for a in ir.DictAttr(attributes[_ATTRIBUTES]) if a.name != _SMALL}
            attributes[_ATTRIBUTES] = ir.DictAttr.get(tags)
    return [x]


mlir.register_lowering(_sized_p, _lower_sized, cacheable=False)  # a cached rule would not see where x comes from


@cache
def tags_available() -> bool:
    """Whether this jaxlib is one on which the tags were seen to work."""
    found = tuple(int(part) for part in version("jaxlib").split(".")[:2])
    return _TESTED_FROM <= found < _TESTED_BELOW


def opaque(values: Any) -> Any:
    """The arrays of a pytree, hidden from XLA's constant folding; what goes into kernels and comes out has to be.

    XLA would fold constants (a captured robot, a cotangent of ones) into the callee of a kernel, whose parameter then
    has no use, and XLA:CPU ends the process when it emits a kernel with such a parameter.
    """
    return jax.tree.map(jax.lax.optimization_barrier, values)


def kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as one CPU kernel, or where arrays are large as several, apart from all others.

    Its arguments and results are pytrees of arrays; what it closes over must be static. Large arrays cannot be in a
    single kernel: XLA:CPU shares their operations among threads, and fails to emit it.
    """
    tags = {"inlineable": "false", _SMALL: "true"}

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)
        traced, shape = jax.make_jaxpr(lambda *xs: f(*jax.tree.unflatten(tree, xs)), return_shape=True)(*given)
        program, used, places = _essential(traced)

        def body(*needed: jax.Array) -> Any:
            with set_xla_metadata(inlineable=None, xla_cpu_small_call=None):  # the tags are not for what is inside
                return jaxpr_as_fun(program)(*needed)

        # Of the arguments, because they are what comes out of the transposed kernel.
        needed = [_sized_p.bind(x) for x, is_used in zip(given, used, strict=True) if is_used]
        with set_xla_metadata(**tags):
            computed = jax.jit(body, inline=False)(*needed)
        available = [*given, *(_sized_p.bind(x) for x in computed)]
        return jax.tree.unflatten(jax.tree.structure(shape), [available[k] for k in places])

    return call


def _essential(traced: ClosedJaxpr) -> tuple[ClosedJaxpr, list[bool], list[int]]:
    """The program without unused arguments, and without results that are arguments or other results.

    XLA:CPU ends the process on a kernel with an argument that is not used, where that is a constant. Returned besides
    are which arguments are used, and which of all arguments and the results that are left each result is.
    """
    jaxpr = traced.jaxpr
    places, kept = {var: k for k, var in enumerate(jaxpr.invars)}, []
    for k, var in enumerate(jaxpr.outvars):
        if isinstance(var, Literal):
            kept.append(k)
        elif var not in places:
            places[var] = len(jaxpr.invars) + len(kept)
            kept.append(k)
    order = {k: len(jaxpr.invars) + n for n, k in enumerate(kept)}
    results = [order[k] if k in order else places[var] for k, var in enumerate(jaxpr.outvars)]
    wanted = [k in order for k in range(len(jaxpr.outvars))]
    pruned, used = dce_jaxpr(jaxpr, wanted)
    return ClosedJaxpr(pruned, traced.consts), used, results
