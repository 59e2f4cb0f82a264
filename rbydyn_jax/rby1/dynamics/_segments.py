"""Nearest points of segments in numpy, for arrays of pairs; the method of `rbydyn_jax.collision.distance`.

The SDK calls segments parallel by an absolute threshold, and then returns up to 0.5 mm too much on RB-Y1; this is exact.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "3 k"]  # one row for each coordinate
_TINY = float(np.finfo(np.float64).tiny)


def nearest_points(a0: Points, a1: Points, b0: Points, b1: Points) -> tuple[Float[np.ndarray, "k"], Points, Points]:
    """The distances of the segments a0-a1 and b0-b1, and the points where they are taken."""
    r, u, w = a0 - b0, a1 - a0, b1 - b0
    normal = _cross(u, w)
    uw, ww = _dot(u, w), _dot(w, w)
    s = _clamped_ratio(-_dot(_cross(r, w), normal), _dot(normal, normal))
    t = _clamped_ratio(_dot(w, r) + uw * s, ww)
    s = _clamped_ratio(uw * t - _dot(u, r), _dot(u, u))
    first, second = a0 + s * u, b0 + t * w
    gap = first - second
    return np.sqrt(_dot(gap, gap)), first, second


def _clamped_ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y for y >= 0, clamped to [0, 1]; x = y = 0 gives 0."""
    return np.minimum(np.maximum(x / np.maximum(y, _TINY), 0.0), 1.0)


def _dot(x: Points, y: Points) -> Float[np.ndarray, "k"]:
    return (x * y).sum(0)


def _cross(x: Points, y: Points) -> Points:
    return x[_NEXT] * y[_LAST] - x[_LAST] * y[_NEXT]


_NEXT, _LAST = [1, 2, 0], [2, 0, 1]
