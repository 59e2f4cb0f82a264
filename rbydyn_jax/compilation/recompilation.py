"""A context in which recompilation is an error."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from .._errors import RecompilationError
from .._signatures import Signature, observer
from .differences import nearest_differences

_TRACE = "/jax/core/compile/jaxpr_trace_duration"
_COMPILE = ("/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration")

_FIRST = "it was not called before: call it once, or `precompile` it, before the block"
_UNKNOWN = "it was not compiled for such arguments before: call it once with them before the block"
_REDEFINED = "a new function each time, though defined on the same line: define it once, before the block"
_UNCHANGED = "no argument differs from an earlier call: a flag or context of JAX does, or JAX's caches were cleared"
_UNTRACED = (
    "traced before, but not compiled for this use: an eager jax.vmap or jax.grad compiles for each batch size and each "
    "argument that is mapped, and arrays that are committed to a device, or sharded otherwise, are recompiled"
)


class _Block(logging.Handler):
    """Watches what JAX traces and compiles in one context (a thread, or an asyncio task)."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.outer = ""  # the function that JAX is tracing or has traced last, a user's perhaps
        self.explanations: list[str] = []

    def traced(self, function: str, new: Signature, seen: Sequence[Signature]) -> None:
        """A public function is about to be traced."""
        reasons = nearest_differences(new, seen) if seen else [_FIRST]
        outer, self.outer = self.outer, ""
        within = f" (called in {outer})" if outer not in ("", function) else ""
        raise RecompilationError(function + within, reasons or self._contexts())

    def started(self, event: str, value: float, **details: Any) -> None:
        """JAX is about to trace, to lower or to compile."""
        if observer.get() is not self:
            return
        function = re.sub(r"^jit\((.*)\)$", r"\1", details.get("fun_name", ""))
        if event == _TRACE:
            self.outer, self.explanations = function, []
        elif event in _COMPILE:
            was_traced, self.outer = self.outer == function, ""
            raise RecompilationError(function, self._reasons() if was_traced else [_UNTRACED])

    def emit(self, record: logging.LogRecord) -> None:
        """JAX explains why it traces a function: the first explanation is that of the outermost function."""
        if observer.get() is self:
            self.explanations.append(record.getMessage())

    def _reasons(self) -> list[str]:
        if not self.explanations:  # JAX explains no function of its own, such as those of jax.numpy
            return [_UNKNOWN]
        text = self.explanations[0]
        if "never seen" in text:
            return [_REDEFINED if "same line" in text else _FIRST]
        changes = re.findall(r"\* at (.+?), now (.+?) and before (.+?)(?=, so |\n|$)", text)
        return [_change(*change) for change in changes] or self._contexts()

    def _contexts(self) -> list[str]:
        """The flags and contexts of JAX that differ, by the last explanation."""
        text = self.explanations[-1] if self.explanations else ""
        found = re.findall(r"\* (\w+) differs: now (.+) and before (.+)", text)
        return [f"{name} of JAX: {before[:80]} -> {now[:80]}" for name, now, before in found] or [_UNCHANGED]


def _change(where: str, now: str, before: str) -> str:
    if "pytree metadata" in now:  # all of it: thousands of characters
        return f"{where}: other static data, such as the tree of a model"
    return f"{where}: {before[:80]} -> {now[:80]}"


@contextlib.contextmanager
def no_recompile() -> Iterator[None]:
    """A context in which JAX must not trace or compile: any attempt raises and reports what changed.

    Covers everything that JAX compiles in this thread: the functions of this library, your own under `jax.jit`, and
    operations of `jax.numpy` outside of them, which are compiled for each shape. Other threads are not affected. Calls
    that do not compile cost the same inside as outside.

    A compiled function depends on the shapes and dtypes of the arguments and of the model's leaves, on static arguments
    (links, frames), and on the model's `tree`: the topology, the names, and the sparsity pattern of the geometry (where
    it is 0, 1 or -1), but on no other parameter.

    Raises:
        RecompilationError: On any recompilation. It names the function, and the leaf, shape or name that differs from
            the most similar earlier call.

    Example:
        >>> arm, q = robots.two_link_arm(), jnp.zeros(2)
        >>> tau = gravity_forces(arm, q)
        >>> heavier = attach_payload(arm, "tool", 3.0)
        >>> with no_recompile():
        ...     tau = gravity_forces(heavier, q)  # other parameters, the same program
        >>> try:
        ...     with no_recompile():
        ...         tau = gravity_forces(arm, np.zeros(2, np.float16))
        ... except RecompilationError as error:
        ...     print(error.function, error.reasons)
        gravity_forces ('q: dtype ... -> float16',)
    """
    block = _Block()
    token = observer.set(block)
    logger = logging.getLogger("jax")
    jax.monitoring.register_scalar_listener(block.started)
    logger.addHandler(block)
    try:
        with jax.explain_cache_misses(True):
            yield
        if block.outer:
            raise RecompilationError(block.outer, block._reasons())
    finally:
        logger.removeHandler(block)
        jax.monitoring.unregister_scalar_listener(block.started)
        observer.reset(token)
