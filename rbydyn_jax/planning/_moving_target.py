r"""Joints from any state to targets that move, at one common duration, under limits of velocity, acceleration and jerk.

For motions of a duration T that end with a given velocity and no acceleration, the limits are convex: the displacements
that can be reached are an interval. Its upper end $P(T)$ belongs to the motion that first rises to an acceleration
$\theta$ and then falls to the final velocity as quickly as possible. T grows with $\theta$, but P need not: towards a
target that moves away a motion may come too late. From $dP/d\theta \propto h$ with

$$h = v + \frac{\alpha}{2J}(\alpha + \min(c, A)), \qquad c^2 = J(v - v_f) + \frac{\alpha^2}{2},$$

at the velocity v and acceleration $\alpha$ after the rise, P is monotone on at most three pieces: h falls down to one
minimum and grows then. The roots on these pieces are the durations at which a target comes into reach and gets out of
it [the blocked intervals of Berscheid, Kroeger 2021, Ruckig]. The lower end is the upper one of the mirrored motion.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..spatial.safe import safe_divide, safe_sqrt
from ._extremes import clipped, larger, smaller
from ._roots import monotone_root
from ._third_order import (
    Limits,
    Segments,
    State,
    brake_into_limits,
    joined,
    least_level,
    level,
    rising,
    run,
    summit,
    total,
)

_BOTH = np.array([[1.0], [-1.0]])  # the motion and its mirror image, along a leading axis
_TURN = 2.0 - 3.0**0.5  # -alpha / c at the minimum of h, where c is below its limit


def meeting(state: State, limits: Limits, final: Array, least: Array) -> tuple[Segments, Float[Array, ""]]:
    """Motions to targets with the velocities `final` at the first common duration of at least `least`.

    Costs three root searches over all joints, and O(n^2) comparisons.

    Args:
        state: The initial states.
        limits: The limits.
        final: Velocities at the targets, within the limits.
        least: Minimum duration.
    """
    braked, first = brake_into_limits(state, limits)
    both = jnp.asarray(_BOTH, final.dtype)
    sides, ends = State(*(both * x[None] for x in braked)), both * final[None]
    limits = Limits(*(jnp.stack([x, x]) for x in limits))
    before = total(first)
    opens, closes = (before[None, None] + x for x in _reach(sides, limits, ends))
    duration = _first_common(opens, closes, least)
    left = larger(jnp.where(jnp.isfinite(duration), duration, 0.0) - before, 0.0)
    extremes = _farthest(sides, limits, ends, jnp.stack([left, left]))
    beyond = -run(sides, extremes).ahead  # how far each leads past the target, in its direction
    weight = clipped(safe_divide(beyond[1], beyond[0] + beyond[1]), 0.0, 1.0)
    up, down = (Segments(extremes.durations[:, k], extremes.jerks[:, k]) for k in (0, 1))
    return joined(first, _mean(up, down._replace(jerks=-down.jerks), weight)), duration


def _reach(state: State, limits: Limits, final: Array) -> tuple[Array, Array]:
    """Durations for which the farthest motions lead to the target or past it: two intervals, the last one unbounded.

    Returns:
        Where the intervals begin and where they end, along the first axis; an empty one begins at infinity.
    """
    no = jnp.zeros_like(state.v)
    low, high, turns = _pieces(state, limits, final)
    nodes = jnp.stack([low, *turns, high])

    def short(theta: Array) -> Array:
        return run(state, rising(state, limits, theta, no, final)).ahead

    at = jax.vmap(short)(nodes)
    signs = jnp.asarray(np.array([1.0, -1.0, 1.0]), no.dtype)[:, None, None]
    starts, stops = (nodes[:-1], signs * at[:-1]), (nodes[1:], signs * at[1:])
    theta = _within(lambda theta: signs * jax.vmap(short)(theta), starts, stops)
    cruise = jnp.stack([no, no, safe_divide(larger(at[3], 0.0), limits.v)])
    durations = jax.vmap(lambda theta, cruise: total(rising(state, limits, theta, cruise, final)))(theta, cruise)
    opens = jnp.stack([jnp.where(at[1] <= 0.0, durations[0], jnp.inf), durations[2]])
    closes = jnp.stack([jnp.where(at[2] > 0.0, durations[1], jnp.inf), jnp.full_like(no, jnp.inf)])
    return opens, jax.lax.stop_gradient(closes)


def _pieces(state: State, limits: Limits, final: Array) -> tuple[Array, Array, Array]:
    """The least and the largest level, and the two between which the displacement falls."""
    A, J = limits.a, limits.j
    low = least_level(state, limits, final)
    high = larger(low, level(state, limits, limits.v))

    def slope(theta: Array) -> Array:
        """h, which has the sign of the derivative of the displacement by the level."""
        peak, _, top = summit(state, limits, theta)
        valley = safe_sqrt(larger(0.5 * peak * peak + J * (top - final), 0.0))
        return top + peak * (peak + smaller(valley, A)) / (2.0 * J)

    # The minimum of h, at a negative acceleration: below the limit of the valley, on it, or where it is just reached.
    excess = larger(J * (state.v - final) - 0.5 * state.a * state.a, 0.0)
    free = safe_sqrt(excess / (1.0 - _TURN**2))
    corner = safe_sqrt(larger(A * A - excess, 0.0))
    turn = jnp.where(free <= A, -_TURN * free, jnp.where(excess >= 15.0 / 16.0 * A * A, -0.25 * A, -corner))
    turn = clipped(turn, low, high)
    nodes = jax.lax.stop_gradient(jnp.stack([low, turn, high]))
    at = jax.vmap(slope)(nodes)
    signs = jnp.asarray(np.array([1.0, -1.0]), A.dtype)[:, None, None]
    starts, stops = (nodes[:-1], signs * at[:-1]), (nodes[1:], signs * at[1:])
    turns = _within(lambda theta: signs * jax.vmap(slope)(theta), starts, stops)
    return low, high, jax.lax.stop_gradient(jnp.where((at[1] < 0.0)[None], turns, turn[None]))


def _within(f: Callable[[Array], Array], low: tuple[Array, Array], high: tuple[Array, Array]) -> Array:
    """Roots of decreasing functions, or the end of the interval which is nearer to them.

    A value next to zero may be rounded to either sign each time that it is used: the result is the same up to rounding.
    """
    (a, f_a), (b, f_b) = low, high
    root = monotone_root(f, low, (jnp.where(f_a > 0.0, b, a), f_b))
    return jnp.where((f_a > 0.0) & (f_b < 0.0), root, jnp.where(f_a + f_b <= 0.0, a, b))


def _first_common(opens: Array, closes: Array, least: Array) -> Array:
    """The smallest number, at least `least`, in one of the two intervals [opens, closes] of each side of each joint."""
    candidates = jnp.append(opens.reshape(-1), least)
    t = candidates[:, None, None, None]
    inside = jnp.all(jnp.any((t >= opens[None]) & (t <= closes[None]), axis=1), axis=(1, 2))
    possible = jnp.where(inside & (candidates >= least), candidates, jnp.inf)
    return possible[jnp.argmin(possible)]


def _farthest(state: State, limits: Limits, final: Array, duration: Array) -> Segments:
    """The motions that lead farthest in a duration."""
    no = jnp.zeros_like(state.v)
    low = least_level(state, limits, final)
    high = larger(low, level(state, limits, limits.v))

    def left(theta: Array) -> Array:
        return duration - total(rising(state, limits, theta, no, final))

    rest = left(high)
    theta = _within(left, (low, left(low)), (high, rest))
    return rising(state, limits, theta, larger(rest, 0.0), final)


def _mean(up: Segments, down: Segments, weight: Array) -> Segments:
    """The mean of two motions of one duration, which keeps convex limits: `weight` times `up`, the rest `down`."""
    ends = jnp.concatenate([jnp.cumsum(x.durations, axis=0) for x in (up, down)])
    order = jnp.argsort(ends, axis=0)
    nodes = jnp.take_along_axis(ends, order, axis=0)

    def jerk(motion: Segments, ends_here: Array) -> Array:
        """By the number of its segments that are over: where two nodes coincide, derivatives need it in their order."""
        over = jnp.cumsum(ends_here, axis=0) - ends_here
        return jnp.take_along_axis(motion.jerks, jnp.minimum(over, len(motion.jerks) - 1), axis=0)

    of_up = (order < len(up.jerks)).astype(order.dtype)
    mean = weight[None] * jerk(up, of_up) + (1.0 - weight)[None] * jerk(down, 1 - of_up)
    return Segments(jnp.diff(nodes, axis=0, prepend=0.0), mean)
