"""Geometric paths: natural cubic splines through waypoints."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..spatial.safe import safe_norm


class PathPoints(NamedTuple):
    """A path at some parameters, and its derivatives by the parameter."""

    q: Float[Array, "... n"]
    first: Float[Array, "... n"]
    second: Float[Array, "... n"]
    third: Float[Array, "... n"]


class Spline(eqx.Module):
    """A cubic spline with continuous second derivatives, which are zero at both ends.

    Args:
        knots: Parameters of the waypoints, from 0 to 1.
        points: The waypoints.
        curvatures: Second derivatives at the waypoints.
    """

    knots: Float[Array, "k"]
    points: Float[Array, "k n"]
    curvatures: Float[Array, "k n"]

    def within(self, fractions: np.ndarray) -> PathPoints:
        """The path at these fractions of all segments, or of each: (k - 1, fractions, n)."""
        at = jnp.asarray(np.atleast_2d(fractions), self.points.dtype)[..., None]
        ends = (x[:, None] for x in (self.points[:-1], self.points[1:], self.curvatures[:-1], self.curvatures[1:]))
        return _cubic(jnp.diff(self.knots)[:, None, None], at, *ends)

    def at(self, s: Float[Array, "t"]) -> PathPoints:
        """The path at any parameters."""
        i = jnp.clip(jnp.searchsorted(self.knots, s, side="right") - 1, 0, len(self.knots) - 2)
        width = self.knots[i + 1] - self.knots[i]
        ends = (self.points[i], self.points[i + 1], self.curvatures[i], self.curvatures[i + 1])
        return _cubic(width[:, None], ((s - self.knots[i]) / width)[:, None], *ends)


def _cubic(h: Array, B: Array, q0: Array, q1: Array, m0: Array, m1: Array) -> PathPoints:
    A = 1.0 - B
    return PathPoints(
        A * q0 + B * q1 - A * B * h**2 / 6.0 * ((1.0 + A) * m0 + (1.0 + B) * m1),
        (q1 - q0) / h + h / 6.0 * ((3.0 * B**2 - 1.0) * m1 - (3.0 * A**2 - 1.0) * m0),
        A * m0 + B * m1,
        jnp.broadcast_to((m1 - m0) / h, jnp.broadcast_shapes(B.shape, m0.shape)),
    )


def chord_lengths(points: Float[Array, "k n"]) -> Float[Array, "k"]:
    """Parameters of waypoints in proportion to the distances between them."""
    lengths = safe_norm(jnp.diff(points, axis=0))
    along = jnp.concatenate([jnp.zeros_like(lengths[:1]), jnp.cumsum(lengths)])
    return jnp.append(along[:-1] / along[-1], jnp.ones_like(along[:1]))


def spline(points: Float[Array, "k n"], knots: Float[Array, "k"]) -> Spline:
    """The natural cubic spline through waypoints."""
    h, zero = jnp.diff(knots), jnp.zeros_like(points[:1])
    if len(points) == 2:
        return Spline(knots, points, jnp.zeros_like(points))
    slopes = jnp.diff(points, axis=0) / h[:, None]
    none = jnp.zeros_like(h[:1])
    lower, upper = jnp.concatenate([none, h[1:-1]]), jnp.concatenate([h[1:-1], none])
    inner = jax.lax.linalg.tridiagonal_solve(lower, 2.0 * (h[1:] + h[:-1]), upper, 6.0 * jnp.diff(slopes, axis=0))
    return Spline(knots, points, jnp.concatenate([zero, inner, zero]))
