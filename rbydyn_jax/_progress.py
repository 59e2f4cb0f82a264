"""Progress of long work outside of jit: a bar, or a function that is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ._errors import DtypeError
from ._extras import require

# False, True for a bar, or a function that is called with the number of items done and that of all.
Progress = bool | Callable[[int, int], object]
Report = Callable[[int], object]
T = TypeVar("T")


def check_progress(progress: Any) -> Progress:
    """Returns `progress`, a function or a bool.

    Raises:
        DtypeError: It is something else.
    """
    if not (callable(progress) or isinstance(progress, bool)):
        raise DtypeError(f"progress must be a function of two integers, or a bool, got {type(progress).__name__}")
    return progress


@contextlib.contextmanager
def reporter(progress: Progress, size: int, feature: str) -> Iterator[Report]:
    """A function to be called with the number of items done.

    Args:
        progress: What the caller wants.
        size: The number of all items.
        feature: What takes long, for the error.

    Raises:
        MissingExtraError: A bar is asked for, and tqdm is not installed.
    """
    if progress is True:
        with require("tqdm", "progress", f"progress=True of {feature}").tqdm(total=size, unit="") as bar:
            yield lambda done: bar.update(done - bar.n)
    elif progress:
        yield lambda done: progress(done, size)
    else:
        yield lambda done: None


def reported(items: Iterable[T], progress: Progress, size: int, feature: str) -> Iterator[T]:
    """The items, each reported as done when the next one is asked for; for the arguments see `reporter`."""
    with reporter(progress, size, feature) as report:
        for done, item in enumerate(items, start=1):
            yield item
            report(done)
