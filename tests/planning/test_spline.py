"""The basis of motions from rest to rest, against scipy's splines and the known motion of least jerk."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import fixed_quad
from scipy.interpolate import make_lsq_spline

from rbydyn_jax import ArgumentError
from rbydyn_jax.planning import rest_to_rest_basis
from tests.helpers import assert_close

COUNTS = [1, 2, 5, 8]


def scipy_spline(count: int):
    """scipy's spline of degree 5 through our basis motions: count + 5 free control points on uniform knots."""
    knots = np.concatenate([np.zeros(5), np.linspace(0.0, 1.0, count + 1), np.ones(5)])
    phase = np.linspace(0.0, 1.0, 40 * count + 40)
    return make_lsq_spline(phase, rest_to_rest_basis(count, phase), knots, k=5), knots


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("derivative", [0, 1, 2, 3])
def test_values_and_derivatives_are_those_of_a_spline_of_degree_5(count, derivative):
    spline, _ = scipy_spline(count)
    phase = np.random.default_rng(0).uniform(size=200)
    # The least-squares fit loses digits to the conditioning of its normal equations, more with each derivative.
    tol = 1e-9 * 10**derivative
    assert_close(rest_to_rest_basis(count, phase, derivative), spline.derivative(derivative)(phase), tol)


@pytest.mark.parametrize("count", COUNTS)
def test_motion_starts_and_ends_at_rest(count):
    ends = np.array([0.0, 1.0])
    assert_close(rest_to_rest_basis(count, ends)[0], np.zeros(count), scale=1.0)
    for derivative, scale in ((1, 1.0), (2, 10.0)):
        assert_close(rest_to_rest_basis(count, ends, derivative), np.zeros((2, count)), scale=scale)
    assert np.abs(rest_to_rest_basis(count, ends, 3)).max() > 1.0  # the jerk is free


@pytest.mark.parametrize("count", COUNTS)
def test_squared_jerk_is_the_sum_of_squares(count):
    _, knots = scipy_spline(count)
    edges = np.unique(knots)

    def products(phase):
        jerk = rest_to_rest_basis(count, phase, 3)
        return np.einsum("pi,pj->ijp", jerk, jerk)

    gram = sum(fixed_quad(products, low, high, n=6)[0] for low, high in pairwise(edges))
    assert_close(gram, 720.0 * np.eye(count), 1e-10)


@pytest.mark.parametrize("derivative", [0, 1, 2, 3])
def test_one_coefficient_is_the_motion_of_least_jerk(derivative):
    least_jerk = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])  # Flash and Hogan 1985
    phase = np.linspace(0.0, 1.0, 101)
    expected = (least_jerk.deriv(derivative) if derivative else least_jerk)(phase)
    assert_close(rest_to_rest_basis(1, phase, derivative)[:, 0], expected)


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="count must be at least 1, got 0"):
        rest_to_rest_basis(0, np.zeros(1))
    with pytest.raises(ArgumentError, match="derivative must be 0, 1, 2 or 3, got 4"):
        rest_to_rest_basis(2, np.zeros(1), 4)
    for phase in (-0.1, 1.1, np.nan):
        with pytest.raises(ArgumentError, match=r"phase must lie in \[0, 1\]"):
            rest_to_rest_basis(2, np.array([phase]))
