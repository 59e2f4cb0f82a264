"""The library under test: compile times, batches through plain `vmap` and `map_batch`, single eager calls."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rbydyn_jax as rb

from . import floor
from .case import CHECKED, Case, Entry
from .operations import OPERATIONS, Operation
from .timing import cpu_seconds, race

LIBRARY = "rbydyn_jax"
MAPPED_FROM = 65536  # batches of this size and above go through `map_batch`
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)


def mapped(batch: int) -> bool:
    """Whether a batch goes through `map_batch`."""
    return batch >= MAPPED_FROM


def over_batch(f: Callable, arrays: int, batch: int) -> Callable:
    """`f` of a model and arrays, on a batch of the arrays."""
    in_axes = (None, *(0 for _ in range(arrays)))
    if mapped(batch):
        return lambda *given: rb.map_batch(f, *given, in_axes=in_axes)
    return jax.vmap(f, in_axes=in_axes)


class Ours:
    """One operation on one robot: one of the table by its name, or another that is given."""

    def __init__(self, case: Case, name: str, operation: Operation | None = None) -> None:
        self.case, self.name, self.operation = case, name, operation or OPERATIONS[name]
        self.model = jax.tree.map(lambda x: x.astype(case.dtype), case.model)
        self.single = self.operation.function(case.link)
        self.compiled: dict[int, Callable] = {}

    def arguments(self, batch: int | None) -> list[jax.Array]:
        arrays = [self.case.inputs[x] for x in self.operation.inputs]
        return [jnp.asarray(x[0] if batch is None else x[:batch], self.case.dtype) for x in arrays]

    def flops(self) -> int:
        """Arithmetic operations on one configuration."""
        return floor.count(self.single, self.model, *self.arguments(None))

    def result_bytes(self) -> int:
        """Size of the result on one configuration."""
        result = jax.eval_shape(self.single, self.model, *self.arguments(None))
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(result))

    def compile(self, batch: int) -> None:
        """Compiles a batch that `entry` takes."""
        batched = jax.jit(over_batch(self.single, len(self.operation.inputs), batch))
        self.compiled[batch] = batched.lower(self.model, *self.arguments(batch)).compile()

    def compile_cold(self, batch: int) -> dict[str, Any]:
        """CPU seconds of the stages of compilation, nothing of it cached; size and memory of the program."""
        jax.clear_caches()
        arguments = (self.model, *self.arguments(batch))
        batched = jax.jit(over_batch(self.single, len(self.operation.inputs), batch))
        traced, trace = cpu_seconds(lambda: batched.trace(*arguments))
        lowered, lower = cpu_seconds(traced.lower)
        compiled, xla = cpu_seconds(lowered.compile)
        self.compiled[batch] = compiled
        memory, text = compiled.memory_analysis(), compiled.as_text()
        assert memory is not None and text is not None
        return {
            "batch": batch,
            "mapped": mapped(batch),
            "trace_s": trace,
            "lower_s": lower,
            "xla_s": xla,
            "compile_s": trace + lower + xla,
            "stablehlo_operations": lowered.as_text().count(" = "),
            "hlo_instructions": len(_INSTRUCTION.findall(text)),
            "temporary_bytes": memory.temp_size_in_bytes,
            "output_bytes": memory.output_size_in_bytes,
        }

    def entry(self, batch: int) -> Entry:
        """A contestant: the batch that has been compiled, or one call of `map_batch`."""
        f, arguments = self.compiled[batch], (self.model, *self.arguments(batch))
        if mapped(batch):
            f = over_batch(self.single, len(self.operation.inputs), batch)
        return Entry(LIBRARY, self.name, batch, lambda: jax.block_until_ready(f(*arguments)), values=self._values)

    def _values(self) -> np.ndarray:
        """Of the smallest batch that holds all that is checked."""
        batch = min(size for size in self.compiled if size >= CHECKED)
        f = self.compiled[batch]
        return flat(jax.tree.map(lambda x: x[:CHECKED], f(self.model, *self.arguments(batch))))

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
