"""What libraries in JAX have in common: functions of one configuration, through `jit` and `vmap`.

All are compiled without XLA:CPU's fusion emitters, where there is a choice (not on jax 0.12). On some of their programs
these compute a value anew for every use: MJX is a thousand times slower with them, the others a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..case import CHECKED, Case, Entry
from ..operations import OPERATIONS
from ..ours import flat
from ..timing import cpu_seconds
from . import all_links

# How the joints stand in the results; in all others the last axis goes over them.
_MATRICES = ("crba", "mass_matrix_inverse", "coriolis_matrix", "rnea_derivatives", "aba_derivatives")


class Library(NamedTuple):
    """What a library computes, of the arrays of one configuration.

    Args:
        name: Of the library.
        functions: By operation. `fk` gives the poses of the bodies, and `position`, which is no operation, that of the
            origin of `case.link`. Derivatives are made of these.
        order: Our index of each of their joints.
        options: More for the compiler.
    """

    name: str
    functions: Mapping[str, Callable]
    order: Sequence[int]
    options: Mapping[str, Any] = {}

    def function(self, operation: str) -> Callable | None:
        """Of one configuration; None if the library has no such function."""
        return {**derivatives(self.functions), **self.functions}.get(operation)

    def arguments(self, case: Case, operation: str, batch: int) -> list[jax.Array]:
        """A batch of configurations as the library takes them."""
        arrays = [case.inputs[name][:batch, self.order] for name in OPERATIONS[operation].inputs]
        return [jnp.asarray(np.ascontiguousarray(x), case.dtype) for x in arrays]

    def ours(self, case: Case, operation: str, result: Any) -> np.ndarray:
        """Results on a batch in our conventions."""
        back = np.argsort(self.order)

        def one(x: jax.Array) -> np.ndarray:
            y = np.asarray(x, np.float64)
            if operation == "fk":
                return all_links(case.model, y[:, back])
            return y[..., back, :][..., back] if operation in _MATRICES else y[..., back]

        return flat(jax.tree.map(one, result))


def entries(library: Library, case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    """The contestants of a library."""
    for operation in operations:
        f = library.function(operation)
        if f is None:
            continue
        for batch in batches:
            given = library.arguments(case, operation, batch)
            compiled, seconds = _compile(f, given, without_emitters() | dict(library.options))

            def run(compiled: Callable = compiled, given: list[jax.Array] = given) -> object:
                return jax.block_until_ready(compiled(*given))

            def values(
                compiled: Callable = compiled, given: list[jax.Array] = given, operation: str = operation
            ) -> np.ndarray:
                return library.ours(case, operation, jax.tree.map(lambda x: x[:CHECKED], compiled(*given)))

            told = values if batch >= CHECKED else None
            yield Entry(library.name, operation, batch, run, None, told, {"compile_s": seconds})


def derivatives(functions: Mapping[str, Callable]) -> dict[str, Callable]:
    """What automatic differentiation makes of the functions of a library that has no derivatives of its own."""

    def half_square(f: Callable) -> Callable:
        return lambda *arrays: 0.5 * jnp.sum(f(*arrays) ** 2)

    found: dict[str, Callable] = {}
    if "position" in functions:
        found["fk_gradient"] = jax.grad(half_square(functions["position"]))
    if "rnea" in functions:
        found["rnea_gradient"] = jax.grad(half_square(functions["rnea"]), argnums=(0, 1, 2))
        found["rnea_derivatives"] = jax.jacfwd(functions["rnea"], argnums=(0, 1, 2))
    if "aba" in functions:
        found["aba_gradient"] = jax.grad(half_square(functions["aba"]), argnums=(0, 1, 2))
        found["aba_derivatives"] = jax.jacfwd(functions["aba"], argnums=(0, 1, 2))
    return found


@cache
def without_emitters() -> dict[str, Any]:
    """The option of a compiler that can do without fusion emitters."""
    option = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x, compiler_options=option).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return option


def _compile(f: Callable, given: list[jax.Array], options: dict[str, Any]) -> tuple[Callable, float]:
    compiled, seconds = cpu_seconds(
        lambda: jax.jit(jax.vmap(f), compiler_options=options).trace(*given).lower().compile()
    )
    return compiled, seconds
