r"""The fastest timing of a path by reachability analysis, TOPP-RA [Pham, Pham 2018].

The state is $x = \dot s^2$, the control $u = \ddot s$, constant on each interval, on which x is linear in s. A limit
is a row $\alpha u + \beta x \le \gamma$. Backwards over the grid, the interval of states from which the end can be
reached is found; forwards, the largest control that stays in it is taken. The extreme states of an interval solve
linear programs of two variables: without u, the largest x at which the difference of the lowest upper and the highest
lower bound of u, a concave piecewise linear function, is not negative. Newton's method from outside is finite for it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..spatial.safe import safe_divide, safe_sqrt
from ..xla.tiling import tiled
from ..xla.tuning import PROGRAM_TILE

LARGEST_STATE = 1e10  # of a path without limits
_ITERATIONS = 64


class Bounds(NamedTuple):
    """Upper and lower bounds of u on each interval, intercept - slope x, and the largest x of each node."""

    upper: Float[Array, "i r"]
    upper_slope: Float[Array, "i r"]
    lower: Float[Array, "i r"]
    lower_slope: Float[Array, "i r"]
    largest: Float[Array, "i+1"]


class Profile(NamedTuple):
    """States of the nodes and controls of the intervals."""

    x: Float[Array, "i+1"]
    u: Float[Array, "i"]


class Reachable(NamedTuple):
    """The least and the largest controllable state of each node, and whether there is any."""

    low: Float[Array, "i+1"]
    high: Float[Array, "i+1"]
    exists: Bool[Array, ""]


def bounds(alpha: Array, beta_high: Array, beta_low: Array, high: Array, low: Array, largest: Array) -> Bounds:
    r"""Bounds of u: $\alpha u + \beta_h x \le h$ and $\alpha u + \beta_l x \ge l$, rows in the last axis."""
    least = 100.0 * jnp.finfo(alpha.dtype).eps * jnp.maximum(jnp.max(jnp.abs(alpha)), jnp.finfo(alpha.dtype).tiny)
    positive = alpha >= 0.0
    inverse = 1.0 / jnp.where(jnp.abs(alpha) > least, alpha, jnp.where(positive, least, -least))
    return Bounds(
        jnp.where(positive, high, low) * inverse,
        jnp.where(positive, beta_high, beta_low) * inverse,
        jnp.where(positive, low, high) * inverse,
        jnp.where(positive, beta_low, beta_high) * inverse,
        largest,
    )


def controllable(rows: Bounds, steps: Float[Array, "i"], end: Float[Array, ""]) -> Reachable:
    """The states from which the end can be reached."""
    return tiled(_controllable, tile=PROGRAM_TILE)(rows, steps, end)


def _controllable(rows: Bounds, steps: Array, end: Array) -> Reachable:
    def back(carry: tuple[Array, Array, Array], at: tuple) -> tuple:
        low, high, exists = carry
        own, step, largest = at
        own = _with_next(own, step, low, high)
        zero = jnp.zeros_like(largest)
        top, found = _extreme(own, largest, zero, largest)
        bottom, _ = _extreme(own, zero, zero, largest)
        exists = exists & found & (bottom <= top)
        top = jnp.where(exists, top, zero)
        bottom = jnp.where(exists, jnp.minimum(bottom, top), zero)
        return (bottom, top, exists), (bottom, top)

    stages = (tuple(rows[:4]), steps, rows.largest[:-1])
    start = (end, end, end <= rows.largest[-1] * (1.0 + 1e-9))
    (_, _, exists), (low, high) = jax.lax.scan(back, start, stages, reverse=True)
    return Reachable(jnp.append(low, end), jnp.append(high, end), exists)


def forward(
    rows: Bounds, steps: Float[Array, "i"], reach: Reachable, start: Float[Array, ""], *, slow: bool
) -> Profile:
    """The fastest, or the slowest, profile from the start within the controllable states."""
    return tiled(partial(_forward, slow=slow), tile=PROGRAM_TILE)(rows, steps, reach, start)


def _forward(rows: Bounds, steps: Array, reach: Reachable, start: Array, *, slow: bool) -> Profile:
    def step(x: Array, at: tuple) -> tuple:
        (upper, upper_slope, lower, lower_slope), length, low, high = at
        if slow:
            u = jnp.maximum(jnp.max(lower - lower_slope * x), (low - x) / (2.0 * length))
        else:
            u = jnp.minimum(jnp.min(upper - upper_slope * x), (high - x) / (2.0 * length))
        after = jnp.clip(x + 2.0 * length * u, low, high)
        return after, (after, (after - x) / (2.0 * length))

    _, (x, u) = jax.lax.scan(step, start, (tuple(rows[:4]), steps, reach.low[1:], reach.high[1:]))
    return Profile(jnp.append(start[None], x), u)


def interval_times(x: Float[Array, "i+1"], steps: Float[Array, "i"]) -> Float[Array, "i"]:
    """Durations of the intervals; infinite where nothing moves."""
    root = safe_sqrt(jnp.maximum(x, 0.0))
    speeds = root[1:] + root[:-1]
    return jnp.where(speeds == 0.0, jnp.inf, safe_divide(2.0 * steps, speeds))


def _with_next(own: tuple, step: Array, low: Array, high: Array) -> tuple:
    """The bounds of a stage and those that lead to the controllable states of the next."""
    half = 0.5 / step
    more = (half * high, half, half * low, half)
    return tuple(jnp.append(x, y) for x, y in zip(own, more, strict=True))


def _gap(own: tuple, x: Array) -> tuple[Array, Array]:
    """The lowest upper bound of u less the highest lower bound, and its slope times -1."""
    upper, upper_slope, lower, lower_slope = own
    highs, lows = upper - upper_slope * x, lower - lower_slope * x
    high, low = jnp.min(highs), jnp.max(lows)
    slope_high = jnp.max(jnp.where(highs <= high, upper_slope, -jnp.inf))
    slope_low = jnp.min(jnp.where(lows >= low, lower_slope, jnp.inf))
    tolerance = 8.0 * jnp.finfo(x.dtype).eps * (jnp.abs(high) + jnp.abs(low))
    return high - low + tolerance, slope_high - slope_low


def _extreme(own: tuple, start: Array, least: Array, largest: Array) -> tuple[Array, Array]:
    """The admissible x that is the nearest to an end of its range, and whether there is one."""
    known = jax.lax.stop_gradient(own)
    begin, least, most = jax.lax.stop_gradient((start, least, largest))
    margin = 1e-9 * most

    def go_on(carry: tuple) -> Array:
        count, _, gap, _, inside = carry
        return (gap < 0.0) & inside & (count < _ITERATIONS)

    def newton(carry: tuple) -> tuple:
        count, x, gap, slope, _ = carry
        new = x + safe_divide(gap, slope)
        inside = (slope != 0.0) & (new >= least - margin) & (new <= most + margin)
        new = jnp.where(inside, jnp.clip(new, least, most), x)
        return count + 1, new, *_gap(known, new), inside & (new != x)

    first = (jnp.asarray(0), begin, *_gap(known, begin), jnp.asarray(True))
    count, x, gap, slope, inside = jax.lax.while_loop(go_on, newton, first)
    value = _gap(own, x)[0]
    moved = safe_divide(value - jax.lax.stop_gradient(value), slope)  # what the root moves by, for derivatives only
    stalled = ~inside & (jnp.abs(safe_divide(gap, slope)) <= margin)
    return jnp.where(count > 0, x + moved, start), (gap >= 0.0) | stalled
