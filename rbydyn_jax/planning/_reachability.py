r"""The fastest timing of a path by reachability analysis, TOPP-RA [Pham, Pham 2018].

The state is $x = \dot s^2$, the control $u = \ddot s$, constant on each interval, on which x is linear in s. A limit
is a row $l \le \alpha u + \beta x \le h$. Backwards over the grid, the interval of states from which the end can be
reached is found; forwards, the largest control that stays in it is taken. For some u to be left at a state x, no lower
bound of u may exceed an upper one. Among the rows of an interval this holds between two roots of a concave piecewise
linear function, which Newton's method finds from outside in finitely many steps, for all intervals at once. What is
left to do one after the other has a closed form: a bound of u with one that leads to the next interval bounds x.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..spatial.safe import safe_divide, safe_sqrt
from ..xla.control_flow import while_loop
from ..xla.fusion import kernel
from ..xla.loops import scan_in_kernels
from ..xla.reciprocal import reciprocal
from ._extremes import clipped, larger, smaller

LARGEST_STATE = 1e10  # of a path without limits
_ITERATIONS = 64


def rounding(x: Array) -> float:
    """How much two states that are to be equal may differ, relative to them."""
    return max(1e-9, 32.0 * float(jnp.finfo(x.dtype).eps))


class Row(NamedTuple):
    r"""The limits of all joints at one point of each interval: $\alpha u + \beta x$, with a $\beta$ for each side."""

    control: Float[Array, "n l"]
    above: Float[Array, "n l"]
    below: Float[Array, "n l"]
    high: Float[Array, "n l"]
    low: Float[Array, "n l"]


class Side(NamedTuple):
    """One side of a row with a positive control: |control| u + state x and what bounds it."""

    control: Array
    state: Array
    bound: Array


class States(NamedTuple):
    """The least and the largest admissible state of each interval."""

    low: Float[Array, "i"]
    high: Float[Array, "i"]
    exists: Bool[Array, ""]


class Profile(NamedTuple):
    """States of the nodes and controls of the intervals."""

    x: Float[Array, "i+1"]
    u: Float[Array, "i"]


class Reachable(NamedTuple):
    """The least and the largest controllable state of each node, and whether there is any."""

    low: Float[Array, "i+1"]
    high: Float[Array, "i+1"]
    exists: Bool[Array, ""]


def sides(row: Row) -> tuple[Side, Side]:
    """What is bounded from below, and what from above."""
    a, above, below, high, low = row
    up = a >= 0.0
    size = jnp.where(up, a, -a)
    lower = Side(size, jnp.where(up, below, -above), jnp.where(up, low, -high))
    return lower, Side(size, jnp.where(up, above, -below), jnp.where(up, high, -low))


def admissible(rows: list[Row], least: Float[Array, ""], largest: Float[Array, "i"]) -> States:
    """The states of each interval at which its rows leave a control.

    Args:
        rows: Its rows.
        least: Controls that are smaller count as this.
        largest: The largest states.
    """
    bounds = kernel(_bounds)(rows, least)
    zero = jnp.zeros_like(largest)
    high, found = _extreme(bounds, largest, largest)
    low, some = _extreme(bounds, zero, largest)
    return States(low, high, jnp.all(found & some & (low <= high)))


def _bounds(rows: list[Row], least: Array) -> list[_Lines]:
    found = []
    for row in rows:
        lower, upper = sides(row)
        inverse = reciprocal(larger(lower.control, least))
        found.append((lower.bound * inverse, lower.state * inverse, upper.bound * inverse, upper.state * inverse))
    return found


class Stages(NamedTuple):
    """What the passes over the grid know.

    Attributes:
        shared: What is the same for all intervals.
        each: What is known of each interval.
        steps: Their lengths.
        least: Control below which a row does not bound u.
    """

    shared: Any
    each: Any
    steps: Float[Array, "i"]
    least: Float[Array, ""]


RowsOf = Callable[[Any, Any], list[Row]]
"""The rows of an interval, from what is shared and what is known of it."""


def controllable(rows_of: RowsOf, stages: Stages, states: States, end: Float[Array, ""]) -> Reachable:
    """The states from which the end can be reached; in lanes of paths."""

    def back(carry: tuple[Array, Array, Array], at: tuple) -> tuple:
        low, high, exists = carry
        known, half, least, most = at
        bottom, top = kernel(_before)(rows_of(stages.shared, known), half, low, high)
        top = smaller(_quotient(reduce(partial(_lesser, 1.0), _of_each(top)), jnp.inf), most)
        bottom = larger(_quotient(reduce(partial(_lesser, -1.0), _of_each(bottom)), -jnp.inf), least)
        exists = exists & (bottom <= top * (1.0 + rounding(top)))
        top = jnp.where(exists, top, 0.0)
        bottom = jnp.where(exists, smaller(bottom, top), 0.0)
        return (bottom, top, exists), (bottom, top)

    start, along = (end, end, states.exists), (stages.each, 0.5 / stages.steps, states.low, states.high)
    (_, _, exists), (low, high) = scan_in_kernels(back, start, along, reverse=True, size=end.size)
    return Reachable(jnp.concatenate([low, end[None]]), jnp.concatenate([high, end[None]]), exists)


_Fraction = tuple[Array, Array]  # the denominator is not negative; it is zero for an infinite one


def _lesser(sign: float, a: _Fraction, b: _Fraction) -> _Fraction:
    """The lesser of two fractions, or the greater one with a sign of -1: without a division for each."""
    first = sign * (a[0] * b[1] - b[0] * a[1]) <= 0.0
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def _quotient(x: _Fraction, infinite: float) -> Array:
    return jnp.where(x[1] > 0.0, x[0] / jnp.where(x[1] > 0.0, x[1], 1.0), infinite)


def _of_each(x: _Fraction) -> list[_Fraction]:
    """The fractions of the joints."""
    return list(zip(*x, strict=True))


def _before(rows: list[Row], half: Array, low: Array, high: Array) -> tuple[_Fraction, _Fraction]:
    """Bounds of the state for each joint: where the controls that lead to the next states meet those of a row."""
    bottoms, tops = [], []
    for row in rows:
        lower, upper = sides(row)
        a = lower.control * half[None]
        for slope, bound in (
            (a - lower.state, a * high[None] - lower.bound),
            (upper.state - a, upper.bound - a * low[None]),
        ):
            up, down = slope > 0.0, slope < 0.0
            tops.append((jnp.where(up, bound, 1.0), jnp.where(up, slope, 0.0)))
            bottoms.append((jnp.where(down, -bound, -1.0), jnp.where(down, -slope, 0.0)))
    return reduce(partial(_lesser, -1.0), bottoms), reduce(partial(_lesser, 1.0), tops)


def forward(
    rows_of: RowsOf, stages: Stages, reach: Reachable, start: Float[Array, ""], *, slow: bool = False
) -> Profile:
    """The fastest, or the slowest, profile from the start within the controllable states; in lanes of paths."""
    choose, sign, side = (larger, -1.0, 0) if slow else (smaller, 1.0, 1)

    def of_joints(rows: list[Row], least: Array, x: Array) -> _Fraction:
        found = (sides(row)[side] for row in rows)
        return reduce(
            partial(_lesser, sign), [(y.bound - y.state * x[None], larger(y.control, least[None])) for y in found]
        )

    def step(x: Array, at: tuple) -> tuple:
        known, length, low, high = at
        each = kernel(of_joints)(rows_of(stages.shared, known), stages.least, x)
        numerator, denominator = reduce(partial(_lesser, sign), _of_each(each))
        u = choose(numerator / denominator, ((low if slow else high) - x) / (2.0 * length))
        after = clipped(x + 2.0 * length * u, low, high)
        return after, (after, (after - x) / (2.0 * length))

    along = stages.each, stages.steps, reach.low[1:], reach.high[1:]
    _, (x, u) = scan_in_kernels(step, start, along, size=start.size)
    return Profile(jnp.concatenate([start[None], x]), u)


def interval_times(x: Float[Array, "i+1"], steps: Float[Array, "i"]) -> Float[Array, "i"]:
    """Durations of the intervals; infinite where nothing moves."""
    root = safe_sqrt(jnp.maximum(x, 0.0))
    speeds = root[1:] + root[:-1]
    return jnp.where(speeds == 0.0, jnp.inf, safe_divide(2.0 * steps, speeds))


_Lines = tuple[Array, Array, Array, Array]  # a lower bound of u at x and its slope times -1, and an upper one


def _at(bounds: _Lines, x: Array) -> _Lines:
    lower, lower_slope, upper, upper_slope = bounds
    return lower - lower_slope * x[None], lower_slope, upper - upper_slope * x[None], upper_slope


def _tightest(first: _Lines, second: _Lines) -> _Lines:
    """The tighter bounds; of equal ones the first, as any tangent of a concave function has its root outside."""
    more, less = second[0] > first[0], second[2] < first[2]
    return (
        jnp.where(more, second[0], first[0]),
        jnp.where(more, second[1], first[1]),
        jnp.where(less, second[2], first[2]),
        jnp.where(less, second[3], first[3]),
    )


def _gap(bounds: list[_Lines], x: Array) -> tuple[Array, Array]:
    """The lowest upper bound of u less the highest lower bound, and its slope times -1."""

    def of_joints(bounds: list[_Lines], x: Array) -> _Lines:
        return reduce(_tightest, [_at(y, x) for y in bounds])

    each = kernel(of_joints)(bounds, x)
    low, low_slope, high, high_slope = reduce(_tightest, list(zip(*each, strict=True)))
    tolerance = 8.0 * jnp.finfo(x.dtype).eps * (jnp.abs(high) + jnp.abs(low))
    return high - low + tolerance, high_slope - low_slope


def _extreme(bounds: list[_Lines], start: Array, largest: Array) -> tuple[Array, Array]:
    """The admissible x that is the nearest to an end of its range, and whether there is one, for each interval."""
    known, begin, most = jax.lax.stop_gradient((bounds, start, largest))
    margin = rounding(most) * most

    def go_on(carry: tuple) -> Array:
        count, _, gap, _, inside = carry
        return jnp.any((gap < 0.0) & inside) & (count < _ITERATIONS)

    def newton(carry: tuple) -> tuple:
        count, x, gap, slope, inside = carry
        new = x + safe_divide(gap, slope)
        moves = inside & (gap < 0.0) & (slope != 0.0) & (new >= -margin) & (new <= most + margin)
        new = jnp.where(moves, jnp.clip(new, 0.0, most), x)
        inside = jnp.where(gap < 0.0, moves & (new != x), inside)
        return count + 1, new, *_gap(known, new), inside

    first = (jnp.asarray(0), begin, *_gap(known, begin), jnp.ones_like(begin, bool))
    _, x, gap, slope, inside = while_loop(go_on, newton, first)
    value = _gap(bounds, x)[0]
    moved = safe_divide(value - jax.lax.stop_gradient(value), slope)  # what the root moves by, for derivatives only
    stalled = ~inside & (jnp.abs(safe_divide(gap, slope)) <= margin)
    return jnp.where(x != begin, x + moved, start), (gap >= 0.0) | stalled
