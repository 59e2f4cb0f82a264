"""The library under test: compile times, batches through plain `vmap`, single eager calls."""

from __future__ import annotations

import re
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .case import CHECKED, Case, Entry
from .operations import OPERATIONS
from .timing import cpu_seconds, race

LIBRARY = "rbydyn_jax"
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)


class Ours:
    """One operation on one robot."""

    def __init__(self, case: Case, name: str) -> None:
        self.case, self.name, self.operation = case, name, OPERATIONS[name]
        self.model = jax.tree.map(lambda x: x.astype(case.dtype), case.model)
        self.single = self.operation.function(case.link)
        self.batched = jax.jit(jax.vmap(self.single, in_axes=(None, *(0 for _ in self.operation.inputs))))

    def arguments(self, batch: int | None) -> list[jax.Array]:
        arrays = [self.case.inputs[x] for x in self.operation.inputs]
        return [jnp.asarray(x[0] if batch is None else x[:batch], self.case.dtype) for x in arrays]

    def compile_cold(self, batch: int) -> dict[str, Any]:
        """CPU seconds of the stages of compilation, nothing of it cached; and the size of the program."""
        jax.clear_caches()
        arguments = (self.model, *self.arguments(batch))
        traced, trace = cpu_seconds(lambda: self.batched.trace(*arguments))
        lowered, lower = cpu_seconds(lambda: traced.lower())  # type: ignore[attr-defined]
        compiled, xla = cpu_seconds(lambda: lowered.compile())  # type: ignore[attr-defined]
        return {
            "batch": batch,
            "trace_s": trace,
            "lower_s": lower,
            "xla_s": xla,
            "compile_s": trace + lower + xla,
            "stablehlo_operations": lowered.as_text().count(" = "),  # type: ignore[attr-defined]
            "hlo_instructions": len(_INSTRUCTION.findall(compiled.as_text())),  # type: ignore[attr-defined]
        }

    def entry(self, batch: int) -> Entry:
        arguments = self.arguments(batch)
        f, model = self.batched, self.model
        return Entry(
            LIBRARY, self.name, batch, run=lambda: jax.block_until_ready(f(model, *arguments)), values=self._values
        )

    def _values(self) -> np.ndarray:
        f = jax.jit(jax.vmap(self.single, in_axes=(None, *(0 for _ in self.operation.inputs))))
        return flat(f(self.model, *self.arguments(CHECKED)))

    def single_call(self, seconds: float) -> dict[str, float]:
        """Wall time of one eager call of the public function, and of a jitted addition with the same arguments [us]."""
        arguments = (self.model, *self.arguments(None))
        noop = jax.jit(lambda model, *arrays: arrays[0] + 1)
        return race(
            {
                "us": lambda: jax.block_until_ready(self.single(*arguments)),
                "noop_us": lambda: jax.block_until_ready(noop(*arguments)),
            },
            seconds,
            time.perf_counter,
        )


def flat(result: Any) -> np.ndarray:
    """The leaves of a batch of results, side by side: (batch, numbers)."""
    return np.concatenate([np.asarray(x, np.float64).reshape(x.shape[0], -1) for x in jax.tree.leaves(result)], axis=1)
