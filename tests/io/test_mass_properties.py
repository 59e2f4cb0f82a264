"""Mass, centre of mass and mass matrix at the neutral configuration, in plain numpy, against pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax import build_model, neutral
from rbydyn_jax.io import RobotBuilder, weld
from rbydyn_jax.io.mass_properties import mass_properties
from rbydyn_jax.model.leaves import tree_and_leaves
from rbydyn_jax.testing import random_description
from tests.helpers import assert_close, oracle


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_of_pinocchio(seed):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    description = random_description(seed, n=12, mimics=2)
    model = build_model(description, dtype=np.dtype(np.float64))
    robot = weld(description)
    tree, leaves = tree_and_leaves(robot)
    found = mass_properties(robot, tree, leaves["armature"])
    theirs, q = pin_model(model), neutral(model)
    assert_close(found.M, theirs.crba(q))
    assert_close(np.array(found.mass), sum(link.inertial.mass for link in description.links if link.inertial))
    held = sum(row[0] for row, body in zip(robot.link_inertias, robot.link_bodies, strict=True) if body < 0)
    if held == 0.0:  # pinocchio's centre of mass leaves out what is fixed to the world
        assert_close(found.center, theirs.center_of_mass(q))


def test_what_is_fixed_to_the_world_counts():
    b = RobotBuilder().link("base", 1.0, (0, 0, 0.5)).link("arm", 3.0, (1, 0, 0), 0.1)
    robot = weld(b.revolute("hinge", "base", "arm", xyz=(0, 0, 1), axis=(0, 0, 1)).build_description())
    tree, leaves = tree_and_leaves(robot)
    found = mass_properties(robot, tree, leaves["armature"])
    assert found.mass == 4.0
    assert_close(found.center, np.array([3.0, 0.0, 3.5]) / 4.0)
    assert_close(found.M, np.array([[3.1]]))
