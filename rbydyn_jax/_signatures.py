"""For which arguments the public functions were traced: what `no_recompile` compares a new trace with."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import jax

# The arguments of one trace by name, arrays as their shapes and dtypes.
Signature = Mapping[str, Any]


class Observer(Protocol):
    """What is told of a trace before it is made."""

    def traced(self, function: str, new: Signature, seen: Sequence[Signature]) -> None:
        """A function is about to be traced for `new`; it was traced for `seen` before."""


observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Where the library traces a part for itself, in the middle of a user's trace or after it."""
    token = observer.set(None)
    try:
        yield
    finally:
        observer.reset(token)


F = TypeVar("F", bound=Callable[..., Any])


def recorded(f: F) -> F:
    """`f`, to be given to `jax.jit`: each trace of it is remembered and told to the observer."""
    parameters = inspect.signature(f)
    seen: deque[Signature] = deque(maxlen=64)

    @functools.wraps(f)
    def traced(*args: Any, **kwargs: Any) -> Any:
        bound = parameters.bind(*args, **kwargs).arguments
        new = {name: jax.tree.map(_shape, x) for name, x in bound.items()}
        if (told := observer.get()) is not None:
            told.traced(f.__name__, new, tuple(seen))
        result = f(*args, **kwargs)
        seen.append(new)
        return result

    return traced  # type: ignore[return-value]


def _shape(x: Any) -> Any:
    return jax.typeof(x) if isinstance(x, jax.Array) else x
