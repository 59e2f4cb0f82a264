"""Searches for motions, alone and in a batch: there, problems take turns in lanes.

Searches end after different numbers of steps. If a batch were one loop, each problem would cost what the longest search
does. So a few are searched at a time, and where one is done, the next problem takes its place. On other platforms than
CPUs, which step a whole batch in the time of a few, all are searched at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array

from ..xla.control_flow import while_loop
from ._search import Found, Search, State, choose
from ._seeds import waypoints
from .problem import TrajectoryProblem

LANES = 4  # searches at a time on a CPU: with more, those that are done wait longer for the slowest


def search(problem: TrajectoryProblem) -> Found:
    """The search for a motion; functions in the problem close over no arrays."""
    arrays, rest = eqx.partition(problem, eqx.is_array)

    @custom_vmap
    def found(arrays: Any) -> Found:
        return _alone(eqx.combine(arrays, rest))

    @found.def_vmap
    def _(size: int, batched: list[Any], arrays: Any) -> tuple[Found, Any]:
        axes = jax.tree.map(lambda x: 0 if x else None, batched[0])
        results = _in_lanes(lambda x: eqx.combine(x, rest), arrays, axes, size)
        return results, jax.tree.map(lambda _: True, results)

    return found(arrays)


def _alone(problem: TrajectoryProblem) -> Found:
    it = Search(problem, waypoints(problem))

    def attempt(s: State) -> State:
        return it.checked(while_loop(lambda s: ~s.paused, it.advance, s))

    return it.found(while_loop(lambda s: ~s.done, attempt, it.start()))


def _in_lanes(problem: Callable[[Any], TrajectoryProblem], arrays: Any, axes: Any, size: int) -> Found:
    """The searches for `size` problems; `problem` makes one of its arrays, which are batched where `axes` are 0."""

    def each(f: Callable[..., Any], arrays: Any, *more: Any) -> Any:
        return jax.vmap(lambda arrays, *x: f(problem(arrays), *x), (axes, *(0 for _ in more)))(arrays, *more)

    def room(shapes: Any) -> Found:
        return jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)

    if not size:  # the shapes are those of one
        one = jax.tree.map(lambda x, axis: x if axis is None else jnp.zeros((1, *x.shape[1:]), x.dtype), arrays, axes)
        return room(jax.eval_shape(lambda arrays: each(_alone, arrays), one))
    ways = each(waypoints, arrays)

    def lanes(index: Array) -> tuple[Any, Array]:
        """The arrays and the waypoints of some problems."""
        index = jnp.minimum(index, size - 1)
        return jax.tree.map(lambda x, axis: x if axis is None else x[index], arrays, axes), ways[index]

    def advance(problem: TrajectoryProblem, ways: Array, s: State) -> State:
        return choose(s.paused, s, Search(problem, ways).advance(s))

    def checked(problem: TrajectoryProblem, ways: Array, s: State) -> tuple[State, Found]:
        it = Search(problem, ways)
        s = choose(s.paused & ~s.done, it.checked(s), s)
        return s, it.found(s)

    def turn(carry: tuple[Array, State, Found]) -> tuple[Array, State, Found]:
        """Steps until half of the lanes wait, a look at these, which costs as much as some steps, and new problems."""
        index, s, results = carry
        given, busy = lanes(index), index < size
        s = while_loop(lambda s: 2 * jnp.sum(s.paused & busy) < jnp.sum(busy), lambda s: each(advance, *given, s), s)
        s, found = each(checked, *given, s)
        ended = s.done & busy
        place = jnp.where(ended, index, size)
        results = jax.tree.map(lambda old, new: old.at[place].set(new, mode="drop"), results, found)
        index = jnp.where(ended, jnp.max(index) + jnp.cumsum(ended), index)
        s = jax.vmap(choose)(ended & (index < size), started(index), s)
        return index, s, results

    def started(index: Array) -> State:
        return each(lambda problem, ways: Search(problem, ways).start(), *lanes(index))

    index = jnp.arange(min(size, LANES) if jax.default_backend() == "cpu" else size)
    s = started(index)
    shapes = jax.eval_shape(
        lambda s: each(lambda problem, ways, s: Search(problem, ways).found(s), *lanes(index), s), s
    )
    return while_loop(lambda carry: jnp.any(carry[0] < size), turn, (index, s, room(shapes)))[2]
