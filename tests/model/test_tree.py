"""The static half of a robot: equal trees are equal keys, in another process too."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from rbydyn_jax import robots

_OTHER_PROCESS = """
import pickle, sys
from rbydyn_jax import robots
tree = pickle.load(sys.stdin.buffer)
own = robots.two_link_arm(dtype="float32").tree
assert tree == own, "not equal"
assert hash(tree) == hash(own), "hashes differ"
assert {own: 1}[tree] == 1
print("same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("salt", ["1", "2"])
def test_a_pickled_tree_is_the_same_key_in_another_process(salt):
    tree = robots.two_link_arm(dtype="float32").tree
    hash(tree)  # is kept, and travels with it
    environment = os.environ | {"PYTHONHASHSEED": salt, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0"}
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_PROCESS],
        input=pickle.dumps(tree),
        capture_output=True,
        env=environment,
        check=False,
    )
    assert done.stdout.strip() == b"same", done.stderr.decode()


def test_unlike_trees_have_unlike_hashes():
    trees = [robots.two_link_arm().tree, robots.pendulum().tree, robots.rby1a().tree]
    assert len({hash(tree) for tree in trees}) == 3
