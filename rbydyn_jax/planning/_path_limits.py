r"""The limits of a robot along a path, as rows of a linear program for each interval of a grid.

Velocities are $q' \dot s$, accelerations $q' u + q'' x$, and forces $M q' u + (M q'' + C(q, q') q') x + g$. On an
interval each is a polynomial of s. It is within a limit where its values at the ends are and the inner control points
of the cubic through both ends, the middle and the next middle, whose convex hull it does not leave but by its fourth
differences.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algorithms.inverse_dynamics import gravity_forces, rnea
from ..model.model import Model
from ..xla.tiling import tiled
from ..xla.tuning import PATH_TILE
from ._extremes import larger
from ._path import PathPoints, Spline
from ._reachability import LARGEST_STATE, Row, States, admissible

# More nodes at the ends: on 256 paths of a Panda the largest excess over toppra's durations fell from 0.86 to 0.50 %.
_GRADING = 1.5
_LEAST_TANGENT = 0.1  # of the larger state of an interval: steeper ones would hold the states where they are


class Forces(NamedTuple):
    """Joint forces along a path: by control, by state, and at rest."""

    control: Float[Array, "p n"]
    state: Float[Array, "p n"]
    rest: Float[Array, "p n"]


class Grid(NamedTuple):
    """A path on the nodes of a grid, and then in the middles of its intervals.

    Attributes:
        s: Parameters of the nodes.
        at: The path at nodes and middles.
        forces: Joint forces there; None if they have no limit.
    """

    s: Float[Array, "i+1"]
    at: PathPoints
    forces: Forces | None


class Sample(NamedTuple):
    """The path at one point of each interval, and its forces; the tangent of a square root there.

    Attributes:
        first: First derivative of the path.
        second: Second derivative.
        forces: Joint forces.
        root: Root of the state at which the tangent is.
        inverse: Its inverse.
        rise: How much larger this state is than that at the start.
    """

    first: Float[Array, "n i"]
    second: Float[Array, "n i"]
    forces: Forces | None
    root: Float[Array, "i"]
    inverse: Float[Array, "i"]
    rise: Float[Array, "i"]


class Interval(NamedTuple):
    """What is known of intervals: four samples, and the weights of two control points of the cubic through them.

    Attributes:
        samples: At the start, in the middle, at the end, and in the middle of the next interval or of the one before.
        last: Where the last one is, in lengths of the interval.
        weights: Of the samples in the inner control points.
        step: Lengths.
    """

    samples: tuple[Sample, ...]
    last: Float[Array, "i"]
    weights: Float[Array, "i 2 4"]
    step: Float[Array, "i"]


class JointLimits(NamedTuple):
    """Limits of the joints: 1 / limit and 1, 0 and 1 for an infinite one, or 1 and 0 for a limit of zero."""

    scale: Float[Array, "n"]
    bound: Float[Array, "n"]


def joint_limits(limit: Float[Array, "n"]) -> JointLimits:
    """The limits in units of themselves."""
    usable = jnp.isfinite(limit) & (limit > 0.0)
    scale = jnp.where(usable, 1.0 / jnp.where(usable, limit, 1.0), jnp.where(limit > 0.0, 0.0, 1.0))
    return JointLimits(scale.astype(limit.dtype), jnp.where(limit > 0.0, 1.0, 0.0).astype(limit.dtype))


def joint_forces_along(model: Model, at: PathPoints) -> Forces:
    """Inverse dynamics along a path."""
    rest = jax.vmap(gravity_forces, (None, 0))(model, at.q)
    still = jnp.zeros_like(at.q)
    return Forces(
        jax.vmap(rnea, (None, 0, 0, 0))(model, at.q, still, at.first) - rest,
        jax.vmap(rnea, (None, 0, 0, 0))(model, at.q, at.first, at.second) - rest,
        rest,
    )


def grid(model: Model, path: Spline, intervals: int, torques: bool) -> Grid:
    """The path on a grid with the same number of intervals between all waypoints."""
    knots, dtype = path.knots, path.knots.dtype
    nodes = _nodes(len(knots) - 1, intervals)
    middles = 0.5 * (nodes[:, 1:] + nodes[:, :-1])

    def along(fractions: np.ndarray) -> Array:
        return (knots[:-1, None] + jnp.diff(knots)[:, None] * jnp.asarray(fractions, dtype)).reshape(-1)

    def points(fractions: np.ndarray) -> list[Array]:
        return [x.reshape(-1, x.shape[-1]) for x in path.within(fractions)]

    parts = zip(points(nodes[:, :-1]), path.at(knots[-1:]), points(middles), strict=True)
    at = PathPoints(*(jnp.concatenate(x) for x in parts))
    forces = tiled(joint_forces_along, tile=PATH_TILE)(model, at) if torques else None
    return Grid(jnp.append(along(nodes[:, :-1]), knots[-1]), at, forces)


def _nodes(segments: int, intervals: int) -> np.ndarray:
    """Fractions of the segments at nodes: closer to the ends of the path, where it is passed slowly."""
    even = np.tile(np.arange(intervals + 1) / intervals, (segments, 1))
    if segments == 1:
        return even**_GRADING / (even**_GRADING + (1.0 - even) ** _GRADING)
    even[0], even[-1] = even[0] ** _GRADING, 1.0 - (1.0 - even[-1]) ** _GRADING
    return even


def _neighbours(segments: int, intervals: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the fourth sample of each interval is, in its lengths, and the weights of the samples."""
    if intervals == 1:  # there is none: the parabola through three samples
        weights = np.array([[0.0, 4.0, -1.0, 0.0], [-1.0, 4.0, 0.0, 0.0]]) / 3.0
        return np.full(segments, 0.5), np.tile(weights, (segments, 1, 1))
    nodes, each = _nodes(segments, intervals), np.arange(intervals)
    other = np.where(each < intervals - 1, each + 1, intervals - 2)
    last = 0.5 * (nodes[:, other] + nodes[:, other + 1]) - nodes[:, :-1]
    last = (last / np.diff(nodes)).reshape(-1)
    at = np.stack([np.zeros_like(last), np.full_like(last, 0.5), np.ones_like(last), last], axis=1)
    powers = np.linalg.inv(at[:, :, None] ** np.arange(4))  # of the cubic: (i, power, sample)
    inner = [powers[:, 0] + powers[:, 1] / 3.0, powers[:, 0] + (2.0 * powers[:, 1] + powers[:, 2]) / 3.0]
    return last, np.stack(inner, axis=1)


def intervals_of(grid: Grid, segments: int, around: Float[Array, "i+1"]) -> Interval:
    """What is known of the intervals, along the first axis; a batch may be the last.

    Args:
        grid: The path on a grid.
        segments: Number of segments of the path.
        around: States at which the square root in viscous forces is replaced by its tangent, which is above.
    """
    count, dtype = len(grid.s) - 1, grid.s.dtype
    each = count // segments
    last, weights = _neighbours(segments, each)
    lanes = (1,) * (grid.s.ndim - 1)
    place, mixing = (jnp.asarray(x.reshape(*x.shape, *lanes), dtype) for x in (last, weights))
    least = larger(1e-6 * jnp.max(around, axis=0)[None], _LEAST_TANGENT * larger(around[:-1], around[1:]))
    rise = around[1:] - around[:-1]
    states = [around[:-1] + part * rise for part in (0.0, 0.5, 1.0, place)]
    roots = [jnp.sqrt(larger(x, least)) for x in states]
    tangents = [(root, 1.0 / root, x - states[0]) for root, x in zip(roots, states, strict=True)]

    def four(x: Array) -> list[Array]:
        middle = x[count + 1 :]
        others = [middle]
        if each > 1:
            begins = range(0, count, each)
            others = [y for k in begins for y in (middle[k + 1 : k + each], middle[k + each - 2 : k + each - 1])]
        return [x[:count], middle, x[1 : count + 1], jnp.concatenate(others)]

    first, second = four(grid.at.first), four(grid.at.second)
    forces: list = [None] * 4
    if grid.forces is not None:
        forces = [Forces(*x) for x in zip(*(four(y) for y in grid.forces), strict=True)]
    samples = tuple(Sample(a, b, c, *y) for a, b, c, y in zip(first, second, forces, tangents, strict=True))
    steps = grid.s[1:] - grid.s[:-1]
    return Interval(samples, place, mixing, steps)


def largest_states(model: Model, grid: Grid) -> Float[Array, "i+1"]:
    """The largest state of each node at which no velocity exceeds its limit."""
    scale, bound = joint_limits(model.velocity_limit)
    nodes = grid.at.first[: len(grid.s)]
    squares = (nodes * scale[None]) ** 2 / jnp.maximum(bound, 1e-9)[None]
    return 1.0 / reduce(larger, list(squares.T), jnp.full_like(grid.s, 1.0 / LARGEST_STATE))


class Limits(NamedTuple):
    """Limits of the joints, and friction and damping in units of the limit of force."""

    velocity: JointLimits
    acceleration: JointLimits
    effort: JointLimits
    friction: Float[Array, "n"]
    damping: Float[Array, "n"]


def limits_of(model: Model) -> Limits:
    """The limits of a robot."""
    kinds = (model.velocity_limit, model.acceleration_limit, model.effort_limit)
    velocity, acceleration, effort = (joint_limits(x) for x in kinds)
    return Limits(velocity, acceleration, effort, model.friction * effort.scale, model.damping * effort.scale)


def admissible_states(
    model: Model, grid: Grid, segments: int, around: Float[Array, "i+1"]
) -> tuple[States, Float[Array, ""]]:
    """The states of each interval that its limits leave, and the control below which a row does not bound u."""
    return tiled(partial(_admissible, segments), tile=PATH_TILE)(model, grid, around)


def _admissible(segments: int, model: Model, grid: Grid, around: Array) -> tuple[States, Array]:
    limits = jax.tree.map(lambda x: x[:, None], limits_of(model))
    at = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), intervals_of(grid, segments, around))
    found = rows(limits, at)
    controls = jax.lax.stop_gradient([x.control for x in found])  # a threshold
    most = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in controls]))
    kind = jnp.finfo(most.dtype)
    least = 100.0 * kind.eps * jnp.maximum(most, kind.tiny)
    return admissible(found, least, largest_states(model, grid)[:-1]), least


def rows(limits: Limits, at: Interval) -> list[Row]:
    """The rows of all limits for intervals along the last axis: at both ends, and at two inner control points.

    What differs above and below has the slope of a square root, by the state at the start: it is taken to change along
    the interval as the states around which it has its tangents.
    """
    place, step = (0.0, 0.5, 1.0, at.last[None]), at.step[None]
    one = jnp.ones_like(at.samples[0].first)

    def along(a: Array, b: Array, slope: Array | float, high: Array, low: Array, k: int) -> Row:
        narrower = slope * at.samples[k].rise[None]
        return Row(a + 2.0 * step * place[k] * b, b + slope, b - slope, high - narrower, low + narrower)

    speeds, accelerations, forces = [], [], []
    for k, x in enumerate(at.samples):
        square = (x.first * limits.velocity.scale) ** 2
        speeds.append(along(0.0 * one, square, 0.0, one, -one, k))
        first, second = (y * limits.acceleration.scale for y in (x.first, x.second))
        most = limits.acceleration.bound * one
        accelerations.append(along(first, second, 0.0, most, -most, k))
        if x.forces is not None:
            a, b, c = (y * limits.effort.scale for y in x.forces)
            viscous = 0.5 * jnp.abs(x.first) * limits.damping
            most = limits.effort.bound - jnp.minimum(limits.friction, limits.effort.bound) - viscous * x.root[None]
            forces.append(along(a, b, viscous * x.inverse[None], most - c, -most - c, k))

    def inner(values: list[Row]) -> list[Row]:
        mixed = []
        for w in at.weights:
            weighted = [jax.tree.map(lambda y, k=k, w=w: w[k][None] * y, x) for k, x in enumerate(values)]
            mixed.append(jax.tree.map(lambda *x: reduce(jnp.add, x), *weighted))
        return mixed

    found = inner(speeds)
    for values in (accelerations, forces):
        if values:
            found += [values[0], *inner(values), values[2]]
    return found
