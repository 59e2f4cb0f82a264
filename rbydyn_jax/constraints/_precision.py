"""Products of matrices in the precision of their numbers, on every device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax

F = TypeVar("F", bound=Callable[..., Any])


def full_precision(f: F) -> F:
    """`f`, traced such that no device rounds the factors of a product: the rank of a loop is decided by the noise."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return f(*args, **kwargs)

    return cast(F, call)
