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
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

_TESTED_FROM, _TESTED_BELOW = (0, 10), (0, 13)


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


@jax.tree_util.register_pytree_node_class
class _Known:
    """Stands for a result that is the k-th argument, or the k-th result, of the same kernel."""

    def __init__(self, argument: bool, k: int) -> None:
        self.argument, self.k = argument, k

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (), (self.argument, self.k)

    @classmethod
    def tree_unflatten(cls, static: tuple, _: tuple) -> _Known:
        return cls(*static)


def kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as one CPU kernel. Its arguments and results are pytrees of arrays; what it closes over must be static."""

    def body(*args: Any) -> Any:
        with set_xla_metadata(inlineable=None, xla_cpu_small_call=None):  # the tags are not for what is inside
            leaves, tree = jax.tree.flatten(f(*args))
        # XLA:CPU ends the process on a kernel that returns an argument as it is, where that is a constant.
        known = {id(x): _Known(True, k) for k, x in enumerate(jax.tree.leaves(args))}
        results = []
        for k, x in enumerate(leaves):
            results.append(known.get(id(x), x))
            known.setdefault(id(x), _Known(False, k))
        return jax.tree.unflatten(tree, results)

    compiled = jax.jit(body, inline=False)

    def call(*args: Any) -> Any:
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            out = compiled(*args)
        results, tree = jax.tree.flatten(out, is_leaf=lambda x: isinstance(x, _Known))
        given = jax.tree.leaves(args)
        for k, x in enumerate(results):
            if isinstance(x, _Known):
                results[k] = given[x.k] if x.argument else results[x.k]
        return jax.tree.unflatten(tree, results)

    return call
