"""Nearest points of segments in numpy, for arrays of pairs; the method of `collision.capsule_capsule`.

The SDK calls segments parallel by an absolute threshold, which makes it up to 0.5 mm too much on RB-Y1; this is exact.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ._algebra import LAST, NEXT

Points = Float[np.ndarray, "3 k"]  # a row for each coordinate
_TINY = float(np.finfo(np.float64).tiny)
_LEFT, _RIGHT = np.array([0, 0, 2, 3, 3]), np.array([1, 2, 1, 3, 4])  # u r, u w, w r, n n, n m


def nearest_points(a: Points, u: Points, b: Points, w: Points) -> tuple[Float[np.ndarray, "k"], Points, Points]:
    """The distances of the segments a + s u and b + t w, s and t in [0, 1], and the points where they are taken."""
    vectors = np.empty((3, 5, a.shape[1]))  # u, r, w, n = u x w, m = r x w
    vectors[:, 0] = u
    np.subtract(a, b, out=vectors[:, 1])
    vectors[:, 2] = w
    lines, across = vectors[:, :2], vectors[:, 2:3]
    before, after = across.take(LAST, 0), across.take(NEXT, 0)
    np.subtract(lines.take(NEXT, 0) * before, lines.take(LAST, 0) * after, out=vectors[:, 3:])
    ur, uw, wr, nn, nm = (vectors.take(_LEFT, 1) * vectors.take(_RIGHT, 1)).sum(0)
    s = _clamped_ratio(-nm, nn)
    t = _clamped_ratio(wr + uw * s, _dot(w, w))
    s = _clamped_ratio(uw * t - ur, _dot(u, u))
    first, second = a + s * u, b + t * w
    gap = first - second
    return np.sqrt(_dot(gap, gap)), first, second


def _clamped_ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y for y >= 0, clamped to [0, 1]; x = y = 0 gives 0."""
    return np.minimum(np.maximum(x / np.maximum(y, _TINY), 0.0), 1.0)


def _dot(x: Points, y: Points) -> Float[np.ndarray, "k"]:
    return np.einsum("ik,ik->k", x, y)
