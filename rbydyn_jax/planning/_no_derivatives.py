"""Data that cannot be differentiated: JAX itself would fail somewhere within a loop, or give a wrong number."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax

from .._errors import RbydynError
from ..xla.transpose import rule_of

T = TypeVar("T")


def without_derivatives(given: T, why: str) -> T:
    """The same data; a derivative of it raises RbydynError with the message `why`."""

    @jax.custom_jvp
    def same(numbers: Any) -> Any:
        return numbers

    @rule_of(same)
    def _(primals: Any, tangents: Any) -> Any:
        raise RbydynError(why)

    numbers, rest = eqx.partition(given, eqx.is_inexact_array)
    return eqx.combine(same(numbers), rest)
