"""Solutions of dependent linear equations against numpy's singular values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax.whole_body._elimination import solutions
from tests.helpers import assert_close

CASES = {
    "nothing, then something": [[0, 0, 0, 0], [1, 1, 0, 2]],
    "twice the same": [[1, 2, 0, 1], [2, 4, 0, 2], [0, 1, 1, 0]],
    "dependent in between": [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 2, 0], [1, -1, 3, 1]],
    "several dead rows": [[0, 0, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4], [4, 3, 2, 1]],
    "independent": [[1, 0, 1, 0], [0, 1, 1, 0], [1, -1, 3, 1]],
}


@pytest.mark.parametrize("case", CASES)
def test_all_solutions_and_no_more(case):
    G = np.array(CASES[case], float)
    g = G @ np.array([0.3, -0.7, 1.1, 0.4])
    sure = np.zeros(len(G), bool)
    found = jax.jit(lambda G, g: solutions(G, g, sure))(jnp.asarray(G), jnp.asarray(g))
    values, vectors = np.linalg.svd(G)[1:]
    rank = int((values > 1e-9).sum())
    assert bool(found.consistent)
    assert_close(G @ np.asarray(found.offset), g, 1e-12)
    assert_close(found.offset, np.linalg.lstsq(G, g, rcond=None)[0], 1e-12)  # the shortest one
    basis = np.asarray(found.basis)
    null = vectors[rank:].T
    assert_close(basis @ basis.T, null @ null.T, 1e-12)  # the same space, orthonormal
    assert (np.abs(basis).max(axis=0) > 0).sum() == 4 - rank


def test_equations_without_a_solution_are_told():
    G = jnp.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])
    assert not bool(solutions(G, jnp.array([0.0, 1.0, 3.0]), np.zeros(3, bool)).consistent)
