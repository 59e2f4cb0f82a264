"""Motions from rest to rest: a clamped B-spline basis in which the smoothness of a motion is a sum of squares.

With the coefficients z of a joint, its displacement is the B-spline of degree 5 on the unit interval whose first three
control points are zero and whose last three are equal, so that it starts and ends with velocity and acceleration zero.
The basis is orthonormal under the inner product of jerks, scaled so that the smoothest motion over one radian has
$|z|^2 = 1$: a step along the gradient in z is a smooth change of the whole motion [Ratliff et al. 2009, CHOMP].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._check import check_array, check_integer
from .._errors import ArgumentError

DEGREE = 5
_CLAMPED = 3
LEAST_JERK = 720.0  # integral of the squared third derivative of 10 s^3 - 15 s^4 + 6 s^5
# Quintic Hermite polynomials: s - 6 s^3 + 8 s^4 - 3 s^5 and -4 s^3 + 7 s^4 - 3 s^5.
_END_VELOCITIES = (np.polynomial.Polynomial([0, 1, 0, -6, 8, -3]), np.polynomial.Polynomial([0, 0, 0, -4, 7, -3]))


def rest_to_rest_basis(count: int, phase: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Values of the basis motions, or of their derivatives with respect to phase.

    Args:
        count: Number of coefficients per joint, at least 1; with 1 there is only the minimum-jerk motion.
        phase: Where to evaluate (n,), in [0, 1].
        derivative: Order of the derivative, 0 to 3.

    Returns:
        Matrix (n, count) that takes the coefficients of a joint to its displacements.

    Raises:
        ArgumentError: `count` is less than 1, `derivative` is not 0, 1, 2 or 3, or a phase is outside [0, 1].
        DtypeError: `count` or `derivative` is not an integer, or `phase` is no array of floats.
        ShapeError: `phase` has another shape.

    Example:
        A motion from rest to rest, as seen at its ends and its middle:

        >>> rest_to_rest_basis(1, np.array([0.0, 0.5, 1.0])).round(12).ravel().tolist()
        [0.0, 0.5, 1.0]
    """
    count = check_integer(count, "count", 1)
    if check_integer(derivative, "derivative", 0) > 3:
        raise ArgumentError(f"derivative must be 0, 1, 2 or 3, got {derivative}")
    check_array(phase, "phase", (None,))
    phase = np.asarray(phase, float)  # not what `check_array` returns: a tracer under jit, and float32 without x64
    if not np.all((phase >= 0.0) & (phase <= 1.0)):
        raise ArgumentError("phase must lie in [0, 1]")
    return _free_splines(count, phase, derivative) @ _whitening(count)


def end_velocity_basis(count: int, phase: np.ndarray, derivative: int = 0) -> np.ndarray:
    r"""Values of the two motions that carry a velocity at the start and at the end, or of their derivatives.

    They are polynomials of degree 5 with displacement and acceleration zero at both ends; the first has slope 1 at the
    start and 0 at the end, the second 0 and 1. From both, combinations of `rest_to_rest_basis` are subtracted, which
    makes them orthogonal to it under the inner product of jerks: the smoothest motion with given end velocities, whose
    end is free. It moves the end by half the sum of both.

    Args:
        count: Number of coefficients per joint of `rest_to_rest_basis`.
        phase: Where to evaluate (n,), in [0, 1].
        derivative: Order of the derivative, 0 to 3.

    Returns:
        Matrix (n, 2).
    """
    raw = np.stack([p.deriv(derivative)(phase) if derivative else p(phase) for p in _END_VELOCITIES], axis=1)
    return raw - rest_to_rest_basis(count, phase, derivative) @ _end_velocity_parts(count)


@lru_cache(maxsize=32)
def end_velocity_jerk(count: int) -> np.ndarray:
    """The inner products (2, 2) of the jerks of `end_velocity_basis`."""
    phase, weights = _quadrature(count)
    jerks = end_velocity_basis(count, phase, 3)
    return (jerks.T * weights) @ jerks


@lru_cache(maxsize=32)
def _end_velocity_parts(count: int) -> np.ndarray:
    """The inner products (count, 2) of the basis with the polynomials."""
    phase, weights = _quadrature(count)
    jerks = np.stack([p.deriv(3)(phase) for p in _END_VELOCITIES], axis=1)
    return (rest_to_rest_basis(count, phase, 3).T * weights) @ jerks / LEAST_JERK


def _free_splines(count: int, phase: np.ndarray, derivative: int) -> np.ndarray:
    """The B-splines of the free control points: the inner ones, and the sum of the last three (the end)."""
    splines = b_splines(count + 2 * _CLAMPED - 1, phase, derivative)
    end = splines[:, -_CLAMPED:].sum(axis=1, keepdims=True)
    return np.concatenate([splines[:, _CLAMPED:-_CLAMPED], end], axis=1)


@lru_cache(maxsize=32)
def _whitening(count: int) -> np.ndarray:
    """The change of coefficients that makes the jerk's Gram matrix a multiple of one."""
    phase, weights = _quadrature(count)
    jerks = _free_splines(count, phase, 3)
    gram = (jerks.T * weights) @ jerks / LEAST_JERK
    return np.linalg.inv(np.linalg.cholesky(gram)).T


def _quadrature(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Phases and weights that integrate products of two jerks exactly: they have degree 4 between the knots."""
    nodes, weights = np.polynomial.legendre.leggauss(DEGREE)
    edges = np.unique(_knots(count + 2 * _CLAMPED - 1))
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] - edges[:-1])
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def _knots(splines: int) -> np.ndarray:
    inner = np.linspace(0.0, 1.0, splines - DEGREE + 1)
    return np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])


def b_splines(splines: int, phase: np.ndarray, derivative: int) -> np.ndarray:
    """All B-splines of a clamped uniform knot vector, by the recursion of de Boor and Cox."""
    knots = _knots(splines)
    # The interval of each phase; the end belongs to the last one.
    interval = np.clip(np.searchsorted(knots, phase, side="right") - 1, DEGREE, splines - 1)
    values = (interval[:, None] == np.arange(len(knots) - 1)).astype(float)
    for degree in range(1, DEGREE + 1):
        n = len(knots) - 1 - degree
        span = knots[degree : degree + n + 1] - knots[: n + 1]
        inverse = np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
        if degree > DEGREE - derivative:
            scaled = degree * inverse * values
            values = scaled[:, :-1] - scaled[:, 1:]
        else:
            rise = (phase[:, None] - knots[:n]) * inverse[:-1] * values[:, :-1]
            fall = (knots[degree + 1 : degree + 1 + n] - phase[:, None]) * inverse[1:] * values[:, 1:]
            values = rise + fall
    return values
