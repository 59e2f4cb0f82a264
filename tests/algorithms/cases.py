"""The robots on which every algorithm is checked, their oracles, and states to check them at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbydyn_jax import Model, RobotBuilder, build_model, load_urdf, random_configuration, robots
from rbydyn_jax.testing import random_tree
from tests.helpers import BATCH, Kind, assert_close, example_robot, normal, oracle, slow

# Every joint type; mimic joints, chains of them too. Without `-m slow`, the laws are checked on the smaller tree and
# the values, against an oracle, on that with every type.
TREES = (*slow("every_type"), "mimic")
# With a real branched robot, and other people's: on a floating base, and an arm with mimic fingers.
ROBOTS = ("every_type", *slow("rby1a", "anymal", "panda"))

_FILES = {
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "panda": "panda_description/urdf/panda.urdf",
}


@functools.cache
def robot(name: str) -> Model:
    """One of the robots by its short name."""
    match name:
        case "every_type":
            return random_tree(1, n=9)
        case "few_types":
            return random_tree(3, ("sin_cos_revolute", "planar", "spherical", "mrp_floating"), 4)
        case "short":
            return random_tree(2, ("revolute", "prismatic"), 4, mimics=1)
        case "mimic":
            return random_tree(2, ("revolute", "prismatic", "continuous"), 7, mimics=2)
        case "chain":
            return random_tree(3, ("revolute", "prismatic"), 6, branching=0.0)
        case "hands":
            return _hands()
        case "rby1a" | "rby1m" | "rby1ub" | "panda_like":
            return getattr(robots, name)()
        case _:
            return load_urdf(example_robot(_FILES[name]), floating_base=name == "anymal")


def _hands() -> Model:
    """Three arms of one kind: two fingers on the first, one on the second, none on the third; and links welded on."""
    rng = np.random.default_rng(5)
    robot = RobotBuilder("hands").link("base")

    def body(name: str) -> str:
        robot.link(name, rng.uniform(1, 2), rng.uniform(-0.1, 0.1, 3), rng.uniform(0.02, 0.03, 3))
        return name

    def placed() -> dict[str, np.ndarray]:
        return {"xyz": rng.uniform(-0.3, 0.3, 3), "rpy": rng.uniform(-1, 1, 3)}

    robot.revolute("waist", "base", body("torso"), axis=(0, 0, 1), **placed())
    robot.fixed("foot", "base", body("pad"), **placed())
    for k, fingers in enumerate((2, 1, 0)):
        robot.spherical(f"shoulder{k}", "torso", body(f"upper{k}"), **placed())
        robot.revolute(f"elbow{k}", f"upper{k}", body(f"lower{k}"), axis=rng.normal(size=3), **placed())
        for i in range(fingers):
            robot.prismatic(f"finger{k}{i}", f"lower{k}", body(f"tip{k}{i}"), axis=(1, 0, 0), **placed())
        if k != 1:
            robot.fixed(f"bolt{k}", f"lower{k}", body(f"tool{k}"), **placed())
    return build_model(robot.build_description())


@functools.cache
def pin_robot(name: str):
    """The robot in pinocchio."""
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    return pin_model(robot(name))


@functools.cache
def tips(name: str) -> tuple[str, ...]:
    """Two links far from the root and of different branches where there are any."""
    model = robot(name)
    depth = [len(model.tree.path(body)) if body >= 0 else 0 for body in model.tree.link_bodies]
    order = sorted(range(len(depth)), key=lambda i: -depth[i])
    first = order[0]
    other = next((i for i in order if depth[i] > 0 and not _related(model, i, first)), order[len(order) // 2])
    return model.link_names[first], model.link_names[other]


def _related(model: Model, i: int, j: int) -> bool:
    a, b = model.tree.link_bodies[i], model.tree.link_bodies[j]
    return a in model.tree.path(b) or b in model.tree.path(a)


class States(NamedTuple):
    """A batch of states."""

    q: jax.Array
    v: jax.Array
    a: jax.Array
    tau: jax.Array
    f_ext: jax.Array


@functools.cache
def states(name: str, count: int = BATCH, seed: int = 0) -> States:
    """Random states inside the limits, the wrenches among them."""
    model = robot(name)
    q = jax.jit(jax.vmap(lambda key: random_configuration(model, key)))(jax.random.split(jax.random.key(seed), count))
    v, a, tau = (normal(seed + i, count, model.nv) for i in (1, 2, 3))
    return States(q, v, a, 10 * tau, normal(seed + 4, count, model.nb, 6))


def run(function: Callable, *arguments: Any) -> Any:
    """`function` over the leading axis of the arguments, compiled."""
    return jax.jit(jax.vmap(function))(*arguments)


def by_rows(oracle: Callable, *arguments: jax.Array) -> np.ndarray:
    """An oracle, which takes one state at a time, over the leading axis of the arguments."""
    rows = [np.asarray(argument) for argument in arguments]
    return np.stack([np.asarray(oracle(*row)) for row in zip(*rows, strict=True)])


def compare(ours: Callable, theirs: Callable, *arguments: jax.Array, kind: Kind = "value") -> None:
    """Asserts that a function equals its oracle on a batch."""
    assert_close(run(ours, *arguments), by_rows(theirs, *arguments), kind=kind)


def along(model: Model, function: Callable, q: jax.Array, v: jax.Array, *tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    """The value and the time derivative of `function(q, *others)` when q moves with v; tangents are (other, rate)."""
    from rbydyn_jax import integrate

    def moved(t):
        return function(integrate(model, q, t * v), *(x + t * rate for x, rate in tangents))

    zero = jnp.zeros((), q.dtype)
    return jax.jvp(moved, (zero,), (jnp.ones_like(zero),))
