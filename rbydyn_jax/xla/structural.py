"""Scalars of which some are known from the structure alone.

A scalar is an array (of the batch's shape) or one of the *structural* constants `ZERO`, `ONE`, `MINUS_ONE`. These are
pytree nodes without leaves, so that a zero in a placement is part of the type: sums and products with it vanish while
tracing, and two joints with the same zeros share one jaxpr. `layout` registers them: arithmetic on plain numbers, which
are scalars, too, takes no JAX.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._lazy import jax


class Structural:
    """A scalar known from the structure alone: 0, 1 or -1."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.value}>"


ZERO, ONE, MINUS_ONE = Structural(0), Structural(1), Structural(-1)
BY_VALUE = {0: ZERO, 1: ONE, -1: MINUS_ONE}

Scalar = Any
Scalars = tuple[Scalar, ...]


def _binary(primitive: str, operator: Callable[..., Any], a: Scalar, b: Scalar) -> Scalar:
    """`operator(a, b)`, by the bare primitive where nothing is promoted or broadcast, which traces faster."""
    if hasattr(a, "aval") and hasattr(b, "aval") and a.aval == b.aval:
        return getattr(jax.lax, primitive)(a, b)
    return operator(number(a), number(b))


def add(a: Scalar, b: Scalar) -> Scalar:
    """a + b."""
    if a is ZERO:
        return b
    if b is ZERO:
        return a
    return _binary("add", operator.add, a, b)


def sub(a: Scalar, b: Scalar) -> Scalar:
    """a - b."""
    if b is ZERO:
        return a
    if a is ZERO:
        return neg(b)
    return _binary("sub", operator.sub, a, b)


def neg(a: Scalar) -> Scalar:
    """-a."""
    return BY_VALUE[-a.value] if isinstance(a, Structural) else -a


def mul(a: Scalar, b: Scalar) -> Scalar:
    """a b."""
    if a is ZERO or b is ZERO:
        return ZERO
    if isinstance(a, Structural):
        return b if a is ONE else neg(b)
    if isinstance(b, Structural):
        return a if b is ONE else neg(a)
    return _binary("mul", operator.mul, a, b)


def number(a: Scalar) -> Scalar:
    """The scalar as something that numpy arithmetic takes."""
    return float(a.value) if isinstance(a, Structural) else a
