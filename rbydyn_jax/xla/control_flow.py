"""JAX's loops and branches, inside of `shard_map` too.

There JAX wants what a loop carries to vary over the same devices from beginning to end. A loop mostly begins with
constants, which are the same on all devices, and ends with results, which are not. These loops begin with what varies
as their end does. Outside of `shard_map` they are JAX's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from .sharding import is_manual, vary_alike, vary_over, varying

T = TypeVar("T")


def while_loop(goes_on: Callable[[T], Any], body: Callable[[T], T], init: T) -> T:
    """`lax.while_loop`."""
    if not is_manual():
        return jax.lax.while_loop(goes_on, body, init)
    return jax.lax.while_loop(goes_on, lambda carry: _as(body(carry), carry), _settled(body, init))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, T], T], init: T) -> T:
    """`lax.fori_loop`."""
    if not is_manual():
        return jax.lax.fori_loop(lower, upper, body, init)
    start = _settled(lambda carry: body(lower, carry), init)
    return jax.lax.fori_loop(lower, upper, lambda k, carry: _as(body(k, carry), carry), start)


def scan(f: Callable[[T, Any], tuple[T, Any]], init: T, xs: Any, *, reverse: bool = False) -> tuple[T, Any]:
    """`lax.scan`."""
    arrays = jax.tree.leaves(xs)
    if not is_manual() or not len(arrays[0]):
        return jax.lax.scan(f, init, xs, reverse=reverse)

    def step(carry: T, x: Any) -> tuple[T, Any]:
        after, out = f(carry, x)
        return _as(after, carry), out

    first = jax.tree.map(lambda x: x[0], xs)
    return jax.lax.scan(step, _settled(lambda carry: f(carry, first)[0], init), xs, reverse=reverse)


def cond(condition: Any, true: Callable[[], T], false: Callable[[], T]) -> T:
    """`lax.cond`; inside of `shard_map` both are computed, as in a batch, since JAX makes no batch of one of these."""
    if not is_manual():
        return jax.lax.cond(condition, true, false)
    return jax.tree.map(lambda x, y: jax.lax.select(condition, *vary_alike((x, y))), true(), false())


def _as(tree: T, other: T) -> T:
    """Each array varying at least as that of another pytree does."""
    return jax.tree.map(lambda x, y: vary_over(x, varying(y)), tree, other)


def _settled(step: Callable[[T], T], carry: T) -> T:
    """What is carried, varying over what it varies over after any number of steps."""
    while True:
        leaves, structure = jax.tree.flatten(carry)
        found = jax.make_jaxpr(lambda xs: jax.tree.leaves(step(jax.tree.unflatten(structure, xs))))(leaves)  # noqa: B023
        pairs = zip(leaves, found.out_avals, strict=True)
        wider = [vary_over(x, varying(y)) for x, y in pairs]
        if all(varying(a) == varying(b) for a, b in zip(leaves, wider, strict=True)):
            return carry
        carry = jax.tree.unflatten(structure, wider)
