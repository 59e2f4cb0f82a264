"""Records the arguments for which public functions were traced, for `no_recompile`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from ._lazy import jax

# The arguments of one trace by name, arrays as their shapes and dtypes.
Signature = Mapping[str, Any]


class Observer(Protocol):
    """Is notified before each trace."""

    def traced(self, function: str, new: Signature, seen: Sequence[Signature]) -> None:
        """A function is about to be traced for `new`; it was traced for `seen` before."""


observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Traces inside this block are internal and not observed."""
    token = observer.set(None)
    try:
        yield
    finally:
        observer.reset(token)


F = TypeVar("F", bound=Callable[..., Any])


def recorded(f: F) -> F:
    """`f`, to be jitted: each of its traces is recorded and reported to the observer."""
    parameters = inspect.signature(f)
    seen: deque[Signature] = deque(maxlen=512)

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
