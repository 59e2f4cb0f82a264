"""Loops and branches of a program of arrays as those of a program of scalars."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from .scalar_builder import Builder
from .scalar_choices import Follow, selected
from .scalar_moves import Numbers, array, constant, flat, unflattened
from .scalars import NotScalarError

_BOOL, _COUNT = np.dtype(bool), np.dtype(np.int32)
_MOST_TURNS = 64  # of a loop that is written turn after turn,
_MOST_WRITTEN = 2_000  # and operations, unless rows are read or written in each


def _branched(build: Builder, follow: Follow, eqn: JaxprEqn, operands: Sequence[Numbers]) -> list[Numbers]:
    """The chosen ones of the results of all branches; the nearest where there is no such branch.

    Loops in a branch that is not chosen have no turns.
    """
    index, branches = operands[0][()], eqn.params["branches"]
    reached = [build("ge", _BOOL, index, index.dtype.type(k)) for k in range(1, len(branches))]
    found: list[Numbers] = []
    for k, branch in enumerate(branches):
        is_last = k == len(branches) - 1
        before = build("not", _BOOL, reached[k]) if not is_last else np.True_
        with build.only_if(build("and", _BOOL, reached[k - 1] if k else np.True_, before)):
            case = follow(branch, operands[1:])
        found = [selected(build, reached[k - 1], x, y) for x, y in zip(case, found, strict=True)] if k else case
    return found


def _repeated(build: Builder, follow: Follow, eqn: JaxprEqn, operands: Sequence[Numbers]) -> list[Numbers]:
    """A loop of unknown length."""
    params = eqn.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    fixed, constants, start = operands[:first], operands[first:second], operands[second:]

    def condition(now: Sequence[Numbers]) -> Numbers:
        return follow(params["cond_jaxpr"], [*fixed, *now])[0]

    def body(now: Sequence[Numbers]) -> Sequence[Numbers]:
        after, goes_on = follow(params["body_jaxpr"], [*constants, *now]), condition(now)
        # Each row of a batch ends by itself.
        return [selected(build, goes_on, x, y) for x, y in zip(after, now, strict=True)] if goes_on.ndim else after

    def any_goes_on(now: Sequence[Numbers]) -> Any:
        return functools.reduce(lambda a, b: build("or", _BOOL, a, b), condition(now).reshape(-1))

    return _loop(build, start, any_goes_on, body)


def _loop(
    build: Builder,
    start: Sequence[Numbers],
    goes_on: Callable[[list[Numbers]], Any],
    body: Callable[[list[Numbers]], Sequence[Numbers]],
) -> list[Numbers]:
    """A loop of the builder, of arrays."""

    def arrays(numbers: Sequence[Any]) -> list[Numbers]:
        return unflattened(numbers, start)

    return arrays(build.loop(flat(start), lambda now: goes_on(arrays(now)), lambda now: (flat(body(arrays(now))), ())))


def _scanned(build: Builder, follow: Follow, eqn: JaxprEqn, operands: Sequence[Numbers]) -> list[Numbers]:
    """A loop of known length: turn after turn if rows are read or written in each, or if that is short."""
    params, inner = eqn.params, eqn.params["jaxpr"]  # the rows of each turn have one axis less
    results: list[Any] = [x.aval for x in eqn.outvars]
    length, count = params["length"], sum(x.ndim == y.ndim for x, y in zip(inner.out_avals, results, strict=True))
    end = sum(x.ndim == y.ndim for x, y in zip(inner.in_avals, operands, strict=True))
    constants, carried, rows = operands[: end - count], operands[end - count : end], operands[end:]
    found = [np.empty(x.shape, object) for x in results[count:]]
    has_rows = bool(rows or found)
    if length > _MOST_TURNS and has_rows:
        raise NotScalarError("scan", f"in more than {_MOST_TURNS} turns is not supported")
    order = range(length)
    for done, k in enumerate(reversed(order) if params["reverse"] else order):
        before = build.count
        out = follow(inner, [*constants, *carried, *(x[k, ...] for x in rows)])
        operations = length * (build.count - before)
        if not has_rows and (length > _MOST_TURNS or operations > _MOST_WRITTEN):
            return _counted(build, length - done, carried, lambda now: follow(inner, [*constants, *now]))
        build.check_loop(operations)
        carried = out[:count]
        for x, row in zip(found, out[count:], strict=True):
            x[k, ...] = row
    return [*carried, *found]


def _counted(
    build: Builder, length: int, start: Sequence[Numbers], body: Callable[[Sequence[Numbers]], Sequence[Numbers]]
) -> list[Numbers]:
    """A loop of so many turns."""
    _, *left = _loop(
        build,
        [constant(_COUNT.type(0)), *start],
        lambda now: build("lt", _BOOL, now[0][()], _COUNT.type(length)),
        lambda now: [array([build("add", _COUNT, now[0][()], _COUNT.type(1))], ()), *body(now[1:])],
    )
    return left


FLOW: dict[str, Callable[[Builder, Follow, JaxprEqn, Sequence[Numbers]], list[Numbers]]] = {
    "cond": _branched,
    "while": _repeated,
    "scan": _scanned,
}
"""By the name of the operation."""
