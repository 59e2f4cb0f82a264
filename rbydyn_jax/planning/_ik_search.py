"""The search behind `solve_ik`: damped least squares from many starts, in a fixed number of lanes that share the work.

A lane works on one start of one problem. When it is done, it takes the next start of an unsolved problem, so that hard
problems get more starts without blocking easy ones.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ..model.configuration import random_configuration
from ..xla.control_flow import while_loop
from ..xla.nested import merged
from ._ik_problem import Problem, Pursued

_LANES_CPU, _LANES = 256, 16384  # on a CPU the arrays of this many stay in the cache of a core
_STEPS = 5  # of a lane between two checks of its progress; the first is a step earlier
_CHOICE = 16  # random configurations, of which the one nearest to the target is a start
_SLOW = 0.5  # a lane whose squared error falls less than by this factor in `_STEPS` steps gives up


class Found(NamedTuple):
    """The best of each problem; `merit` is its squared error, and 0 once it is solved."""

    merit: Float[Array, "n"]
    q: Float[Array, "n nq"]
    attempts: Int[Array, "n"]
    iterations: Int[Array, "n"]
    distance: Float[Array, "n"] | None


class _Lanes(NamedTuple):
    """`problem` is n where a lane has none."""

    problem: Int[Array, "p"]
    attempt: Int[Array, "p"]
    q: Float[Array, "p nq"]
    merit: Float[Array, "p"]
    steps: Int[Array, "p"]


class _Queue(NamedTuple):
    """The problems from `cursor` on, and then all of them again, are to be started for the `sweep`-th time."""

    sweep: Int[Array, ""]
    cursor: Int[Array, ""]


class _Starts(eqx.Module):
    """Random configurations, and for each problem and attempt the index of the one to start from."""

    seeds: Float[Array, "s nq"]
    chosen: Int[Array, "n a"]


@custom_vmap
def search(problem: Problem, target: Any, q0: Float[Array, "n nq"], key: PRNGKeyArray) -> Found:
    """Solves a batch of problems; under `vmap` those of one robot, tolerance and key are one larger batch."""
    return _search(problem, target, q0, key)


@search.def_vmap
def _search_batch(
    size: int, batched: Any, problem: Problem, target: Any, q0: Array, key: PRNGKeyArray
) -> tuple[Found, Any]:
    is_own, are_targets, are_q0, are_keys = batched
    if not size or any(jax.tree.leaves((is_own, are_keys))):
        leaves, tree = jax.tree.flatten((problem, target, q0, key))
        axes = [0 if b else None for b in jax.tree.leaves(batched)]
        found = jax.vmap(lambda *xs: _search(*jax.tree.unflatten(tree, xs)), axes, axis_size=size)(*leaves)
    else:
        n = q0.shape[1 if are_q0 else 0]

        def flat(x: Array, is_batched: bool) -> Array:
            return merged(x, 0 if is_batched else None, 0, (size, n))

        given = jax.tree.map(flat, (target, q0), (are_targets, are_q0))
        found = jax.tree.map(lambda x: x.reshape(size, n, *x.shape[1:]), search(problem, *given, key))
    return found, jax.tree.map(lambda _: True, found)


def _search(problem: Problem, target: Any, q0: Float[Array, "n nq"], key: PRNGKeyArray) -> Found:
    n, attempts = len(q0), problem.setup.attempts
    lanes = min(most_lanes(), max(8, n), n * attempts)
    problem, starts = _prepare(problem, target, q0, key)
    usable = finite(target) & jnp.isfinite(q0).all(axis=1)
    distance = jnp.full(n, jnp.nan, q0.dtype) if problem.has_clearance else None
    none, zero = jnp.full(lanes, n), jnp.zeros(lanes, int)
    state = (
        _Lanes(none, zero, jnp.zeros((lanes, q0.shape[1]), q0.dtype), jnp.zeros(lanes, q0.dtype), zero),
        Found(jnp.where(usable, jnp.inf, 0.0).astype(q0.dtype), q0, jnp.zeros(n, int), jnp.zeros(n, int), distance),
        _Queue(jnp.zeros((), int), jnp.zeros((), int)),
    )

    def unfinished(state: tuple[_Lanes, Found, _Queue]) -> Array:
        lanes, found, queue = state
        return (found.merit > 0).any() & ((lanes.problem < n).any() | (queue.sweep < attempts))

    def advance(state: tuple[_Lanes, Found, _Queue]) -> tuple[_Lanes, Found, _Queue]:
        lanes, queue = _refill(problem, starts, q0, *state)
        own = jax.tree.map(lambda x: x[jnp.minimum(lanes.problem, n - 1)], target)
        pursued = jax.vmap(lambda q, own: problem.pursued(q, own, _STEPS - 1))(lanes.q, own)
        lanes, found = _collect(problem, lanes, pursued, state[1])
        return lanes, found, queue

    return while_loop(unfinished, advance, state)[1]


def most_lanes() -> int:
    """How many lanes work at a time."""
    return _LANES_CPU if jax.default_backend() == "cpu" else _LANES


def finite(target: Any) -> Bool[Array, "n"]:
    """For each problem, whether its target is finite."""
    found = [jnp.isfinite(x).all(axis=tuple(range(1, x.ndim))) for x in jax.tree.leaves(target)]
    return reduce(jnp.logical_and, found)


def _prepare(problem: Problem, target: Any, q0: Array, key: PRNGKeyArray) -> tuple[Problem, _Starts]:
    """The scale of lengths, and starts that are near to the targets."""
    model, attempts = problem.model, problem.setup.attempts
    seeds = jax.vmap(random_configuration, in_axes=(None, 0))(model, jax.random.split(key, attempts * _CHOICE))
    seeds = jnp.where(problem.moving[None], seeds.astype(q0.dtype), q0[:1])
    problem, distance = problem.ranked(seeds, target)
    nearest = jnp.argmin(distance.reshape(len(q0), attempts, _CHOICE), axis=2)
    return problem, _Starts(seeds, nearest + _CHOICE * jnp.arange(attempts)[None])


def _refill(
    problem: Problem, starts: _Starts, q0: Array, lanes: _Lanes, found: Found, queue: _Queue
) -> tuple[_Lanes, _Queue]:
    """Gives the lanes that are free the next starts of unsolved problems."""
    n, attempts = starts.chosen.shape
    unsolved = found.merit > 0
    count = jnp.maximum(unsolved.sum(), 1)
    order = jnp.nonzero(unsolved, size=n, fill_value=0)[0]
    free = lanes.problem == n
    first = jnp.sum(unsolved & (jnp.arange(n) < queue.cursor))
    place = first + jnp.cumsum(free) - 1
    attempt, which = queue.sweep + place // count, order[place % count]
    takes = free & (attempt < attempts)
    start = starts.seeds[starts.chosen[which, jnp.minimum(attempt, attempts - 1)]]
    start = jnp.where(problem.moving[None], start, q0[which])
    if problem.setup.from_q0:
        start = jnp.where((attempt == 0)[:, None], q0[which], start)
    last = first + free.sum()
    lanes = _Lanes(
        jnp.where(takes, which, lanes.problem),
        jnp.where(takes, attempt, lanes.attempt),
        jnp.where(takes[:, None], start, lanes.q),
        jnp.where(takes, jnp.inf, lanes.merit),
        jnp.where(takes, 0, lanes.steps),
    )
    return lanes, _Queue(queue.sweep + last // count, order[last % count])


def _collect(problem: Problem, lanes: _Lanes, pursued: Pursued, found: Found) -> tuple[_Lanes, Found]:
    """Takes over what is better than what was found, and frees the lanes that are done."""
    n, (q, known, following) = len(found.merit), pursued
    active, steps = lanes.problem < n, lanes.steps + _STEPS  # with the one to `following`
    reached = active & known.reached
    merit = jnp.where(reached, 0.0, known.error)
    hopeless = (steps + _STEPS > problem.setup.iterations + 1) | ~(merit < _SLOW * lanes.merit)
    before = jnp.concatenate([found.merit, jnp.zeros(1, merit.dtype)])
    candidate = jnp.where(active & (merit < before[lanes.problem]), merit, jnp.inf)
    best = before.at[lanes.problem].min(candidate)
    usable = jnp.isfinite(candidate) & (candidate == best[lanes.problem])
    attempt = jnp.where(usable, lanes.attempt, problem.setup.attempts)
    first = jnp.full(n + 1, problem.setup.attempts).at[lanes.problem].min(attempt)  # of those that are as good
    taken = jnp.where(usable & (attempt == first[lanes.problem]), lanes.problem, n)
    found = Found(
        best[:n],
        found.q.at[taken].set(q, mode="drop"),
        found.attempts.at[taken].set(lanes.attempt + 1, mode="drop"),
        found.iterations.at[taken].set(steps - 1, mode="drop"),
        None if found.distance is None else found.distance.at[taken].set(known.distance, mode="drop"),
    )
    done = reached | hopeless | (best[lanes.problem] == 0)
    return _Lanes(jnp.where(done, n, lanes.problem), lanes.attempt, following, merit, steps), found
