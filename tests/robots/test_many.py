"""A slice of `python -m tests.robots`: RB-Y1, small trees with mimic joints and without; and the check can fail."""

from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax import with_gravity
from rbydyn_jax.engines.comparison import relative, residual
from rbydyn_jax.testing import random_tree
from tests.helpers import RBY1_DIRECTORY, X64, oracle

pytestmark = pytest.mark.skipif(not X64, reason="the oracles are in float64")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rby1ub", "pendulum", "ties"])
def test_slice(name):
    oracle("pinocchio")
    oracle("mujoco")
    from .comparison import compare
    from .sources import Robot, pin_model
    from .tables import BOUND

    if name == "rby1ub":
        if not RBY1_DIRECTORY.is_dir():
            pytest.skip(f"no vendor files in {RBY1_DIRECTORY}")
        model, twin, _ = Robot("RB-Y1", name, RBY1_DIRECTORY / "rby1ub_model.urdf").build()
    else:
        n, mimics = (1, 0) if name == "pendulum" else (5, 2)
        model = random_tree(4, ("revolute", "prismatic"), n, mimics=mimics)
        twin = pin_model(model)
    errors, notes = compare(model, twin, 100)
    assert errors and max(errors.values()) <= BOUND, max(errors, key=errors.__getitem__)
    engines = {engine for _, engine in errors}
    assert engines == {"Pinocchio"} if "MuJoCo" in notes else engines == {"Pinocchio", "MuJoCo"}
    assert len({function for function, _ in errors}) >= 16


def test_mass_matrices_of_mimic_robots_do_not_lose_digits_to_gravity():
    oracle("pinocchio")
    from rbydyn_jax.engines.against_pinocchio import mass_matrix
    from rbydyn_jax.engines.pinocchio import pin_model

    model = random_tree(4, ("revolute", "prismatic"), 5, mimics=2)
    twins = [pin_model(m) for m in (model, with_gravity(model, 1e6 * model.gravity))]
    q = np.linspace(-1.0, 1.0, model.nq)
    usual, heavy = (mass_matrix(twin, q) for twin in twins)
    np.testing.assert_array_equal(heavy, usual)
    assert relative(usual, twins[0].crba(q)).value <= 1e-14  # of the joints before they are tied
    assert twins[1].model.gravity.linear[2] == 1e6 * model.gravity[2]


def test_errors_are_seen():
    assert relative(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == (0.5, (1,))
    assert relative(np.array([np.nan]), np.array([1.0])).value == np.inf
    assert relative(np.array([1e-30]), np.array([0.0])).value == np.inf
    assert residual(np.eye(2)[None], np.ones((1, 2, 1)), -np.ones((1, 2, 1))) == (0.0, (0,))
    assert residual(np.eye(2)[None], np.ones((1, 2, 1)), np.zeros((1, 2, 1))) == (1.0, (0,))
