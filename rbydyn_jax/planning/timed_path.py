"""Paths with a timing, and their evaluation."""

from __future__ import annotations

from enum import IntEnum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._check import check_array, check_integer, check_single
from .._jit import jit_public
from .._result import Result
from ._jerk_timing import POWERS, squared_jerk
from ._path import Spline
from .trajectory import TrajectorySamples


class TimingStatus(IntEnum):
    """Outcome of the timing of a path.

    NOT_FEASIBLE: none was found that keeps the limits. With strong viscous friction there may be one.
    """

    SOLVED = 0
    NOT_FEASIBLE = 1
    TOO_SHORT = 2
    NOT_FINITE = 3


class TimedPath(Result):
    """A path with a timing: the path parameter is a polynomial of time on each interval.

    Attributes:
        path: Waypoints, and the spline through them.
        times: Times of the nodes [s].
        phase: Coefficients of the path parameter in each interval, by powers of the time since its start.
        status: A `TimingStatus`.
    """

    path: Spline
    times: Float[Array, "i+1"]
    phase: Float[Array, "i k"]
    status: Int[Array, ""]

    @property
    def solved(self) -> Bool[Array, ""]:
        """Whether the timing keeps the limits, and lasts as long as was asked."""
        return self.status == TimingStatus.SOLVED

    @property
    def duration(self) -> Float[Array, ""]:
        """Time from start to end [s]."""
        return self.times[..., -1]

    @property
    def q_start(self) -> Float[Array, "nq"]:
        """Configuration at time 0 [rad, m]."""
        return self.path.points[..., 0, :]

    @property
    def nv(self) -> int:
        """Size of the velocity."""
        return self.path.points.shape[-1]

    @property
    def squared_jerk(self) -> Float[Array, ""]:
        """Integral of the squared joint jerks [rad^2/s^5, m^2/s^5].

        Infinite without a `jerk_limit`, since the acceleration jumps.
        """
        return _squared_jerk(self)

    def evaluate(self, t: Float[Array, "..."] | float) -> TrajectorySamples:
        """Positions, velocities and accelerations at the times `t` [s], of any shape.

        Before 0 and after the end it is at rest.

        Raises:
            DtypeError: `t` is not an array of floats.
            ShapeError: It is a batch of paths.
        """
        check_single(self.duration.shape, "motion")
        times = check_array(t, "t")
        found = _evaluate(self, times.reshape(-1))
        return jax.tree.map(lambda x: x.reshape(*times.shape, *x.shape[1:]), found)

    def samples(self, points: int) -> TrajectorySamples:
        """Positions, velocities and accelerations at equally spaced times, start and end included, at least 2."""
        check_single(self.duration.shape, "motion")
        parts = jnp.asarray(np.linspace(0.0, 1.0, check_integer(points, "points", 2)), self.times.dtype)
        return _evaluate(self, self.times[-1] * parts)

    def jerks(self, points: int) -> Float[Array, "t nv"]:
        """Mean joint jerks between equally spaced times, start and end included, at least 2 [rad/s^3, m/s^3]."""
        at = self.samples(points)
        return jnp.diff(at.a, axis=0) / jnp.diff(at.times)[:, None]


@jit_public()
def _evaluate(timed: TimedPath, t: Array) -> TrajectorySamples:
    t = t.astype(timed.times.dtype)
    i = jnp.clip(jnp.searchsorted(timed.times, t, side="right") - 1, 0, timed.phase.shape[0] - 1)
    inside = jnp.clip(t, 0.0, timed.times[-1])
    since, c = inside - timed.times[i], timed.phase[i]
    s, ds, dds = jnp.zeros_like(t), jnp.zeros_like(t), jnp.zeros_like(t)
    for k in reversed(range(c.shape[1])):  # Horner's rule for the polynomial and its derivatives
        s, ds, dds = s * since + c[:, k], ds * since + s, dds * since + 2.0 * ds
    at = timed.path.at(jnp.clip(s, 0.0, 1.0))
    moving = ~((t < 0.0) | (t > timed.times[-1]))[:, None]  # NaN too
    ds, dds = ds[:, None], dds[:, None]
    v, a = at.first * ds, at.first * dds + at.second * ds**2
    return TrajectorySamples(t, at.q, jnp.where(moving, v, 0.0), jnp.where(moving, a, 0.0))


@jit_public()
def _squared_jerk(timed: TimedPath) -> Array:
    if timed.phase.shape[-1] < POWERS:
        return jnp.full_like(timed.duration, jnp.inf)
    of = squared_jerk
    for _ in timed.duration.shape:
        of = jax.vmap(of)
    return of(timed.path, timed.times, timed.phase)
