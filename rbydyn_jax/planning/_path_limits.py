r"""The limits of a robot along a path, as rows of a linear program for each interval of a grid.

Velocities are $q' \dot s$, accelerations $q' u + q'' x$, and forces $M q' u + (M q'' + C(q, q') q') x + g$. On an
interval each is a polynomial of s. It is within a limit where its values at the ends are and the middle control point
of the parabola through both ends and the middle, of whose convex hull it does not leave but by its third differences.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algorithms.inverse_dynamics import gravity_forces, rnea
from ..model.model import Model
from ..xla.tiling import tiled
from ..xla.tuning import PATH_TILE
from ._path import PathPoints, Spline
from ._reachability import LARGEST_STATE, Bounds, bounds


class Forces(NamedTuple):
    """Joint forces along a path: by control, by state, and at rest."""

    control: Float[Array, "p n"]
    state: Float[Array, "p n"]
    rest: Float[Array, "p n"]


class Grid(NamedTuple):
    """A path on the nodes of a grid and the middles of its intervals, in turn.

    Args:
        s: Parameters of the nodes.
        at: The path at nodes and middles.
        forces: Joint forces there; None if they have no limit.
    """

    s: Float[Array, "i+1"]
    at: PathPoints
    forces: Forces | None


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
    inside = path.within(np.arange(2 * intervals) / (2 * intervals))
    flat = [x.reshape(-1, x.shape[-1]) for x in inside]
    end = path.at(path.knots[-1:])
    at = PathPoints(*(jnp.concatenate([x, y]) for x, y in zip(flat, end, strict=True)))
    parts = jnp.asarray(np.arange(intervals) / intervals, path.knots.dtype)
    nodes = (path.knots[:-1, None] + jnp.diff(path.knots)[:, None] * parts[None]).reshape(-1)
    forces = tiled(joint_forces_along, tile=PATH_TILE)(model, at) if torques else None
    return Grid(jnp.append(nodes, path.knots[-1]), at, forces)


def largest_states(model: Model, grid: Grid) -> Float[Array, "i+1"]:
    """The largest state of each node at which no velocity exceeds its limit."""
    scale, bound = joint_limits(model.velocity_limit)
    squares = (grid.at.first[::2] * scale[None]) ** 2 / jnp.maximum(bound, 1e-9)[None]
    return 1.0 / jnp.max(squares, axis=-1, initial=1.0 / LARGEST_STATE)


def linear_program(model: Model, grid: Grid, around: Float[Array, "i+1"]) -> Bounds:
    """The rows of all limits.

    Args:
        model: The robot.
        grid: The path on a grid.
        around: States at which the square root in viscous forces is replaced by its tangent, which is above.
    """
    return tiled(_rows, tile=PATH_TILE)(model, grid, around)


def _rows(model: Model, grid: Grid, around: Array) -> Bounds:
    steps = jnp.diff(grid.s)[:, None]
    speed = joint_limits(model.velocity_limit)
    squares = (grid.at.first * speed.scale[None]) ** 2
    limit = joint_limits(model.acceleration_limit)
    rows = [_middle(jnp.zeros_like(squares), squares, squares, jnp.ones_like(squares), -jnp.ones_like(squares), steps)]
    first, second = (x * limit.scale[None] for x in (grid.at.first, grid.at.second))
    most = jnp.broadcast_to(limit.bound, first.shape)
    rows += _all(first, second, second, most, -most, steps)
    if grid.forces is not None:
        limit = joint_limits(model.effort_limit)
        a, b, c = (x * limit.scale[None] for x in grid.forces)
        viscous = jnp.abs(grid.at.first) * (model.damping * limit.scale)[None]
        around = jnp.maximum(around, 1e-6 * jnp.max(around))
        middle = 0.5 * (around[1:] + around[:-1])
        root = jnp.sqrt(jnp.append(jnp.stack([around[:-1], middle], axis=1).reshape(-1), around[-1]))[:, None]
        most = (limit.bound - jnp.minimum(model.friction * limit.scale, limit.bound))[None] - 0.5 * viscous * root
        slope = 0.5 * viscous / root
        rows += _all(a, b + slope, b - slope, most - c, -most - c, steps, jnp.diff(around)[:, None])
    return bounds(*(jnp.concatenate(x, axis=-1) for x in zip(*rows, strict=True)), largest=largest_states(model, grid))


_Row = tuple[Array, Array, Array, Array, Array]  # control, state above, state below, upper bound, lower bound


def _all(
    a: Array, above: Array, below: Array, high: Array, low: Array, steps: Array, rise: Array | None = None
) -> list:
    """The rows of each interval: at its start, in its middle, and at its end, where the state has changed by u.

    What differs above and below has the slope of a square root, by the state at the start: it is taken to change along
    the interval by `rise`.
    """
    start = (a[:-1:2], above[:-1:2], below[:-1:2], high[:-1:2], low[:-1:2])
    mean = 0.5 * (above + below)
    end = (a[2::2] + 2.0 * steps * mean[2::2], above[2::2], below[2::2], high[2::2], low[2::2])
    middle = _middle(a, above, below, high, low, steps)
    if rise is None:
        return [start, middle, end]
    slope = 0.5 * (above - below)
    return [start, _narrowed(middle, rise * (slope[1::2] - 0.5 * slope[2::2])), _narrowed(end, rise * slope[2::2])]


def _narrowed(row: _Row, by: Array) -> _Row:
    a, above, below, high, low = row
    return a, above, below, high - by, low + by


def _middle(a: Array, above: Array, below: Array, high: Array, low: Array, steps: Array) -> _Row:
    """The middle control point of the parabola."""

    def control(x: Array) -> Array:
        return 2.0 * x[1::2] - 0.5 * (x[:-1:2] + x[2::2])

    mean = 0.5 * (above + below)
    by_u = control(a) + steps * (2.0 * mean[1::2] - mean[2::2])
    return by_u, control(above), control(below), control(high), control(low)
