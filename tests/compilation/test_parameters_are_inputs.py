"""Robots of one topology share every compilation, whatever their numbers; and what does compile anew."""

from __future__ import annotations

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from tests.compilation.support import counted
from tests.helpers import assert_close, untyped

COUNT, BY_EDITS = 1000, 25  # all robots, and those of them that are made by the public edits, which take longer


@pytest.fixture(scope="module")
def arm():
    return robots.two_link_arm()


def edited(model: rb.Model, x: Any) -> rb.Model:
    """The robot with other numbers of every kind, by the public edits; x are numbers between 0 and 1."""
    placements, links = (untyped(np.array(y)) for y in (model.joint_placements, model.link_placements))
    placements[1, 0, 3] += 0.1 * x[0]  # where a number was before
    links[-1, 0, 3] += 0.1 * x[1]
    model = rb.with_geometry(model, joint_placements=placements, link_placements=links)
    model = rb.with_gravity(model, untyped(np.array([x[2], x[3], -9.81])))
    model = rb.with_limits(model, velocity_limit=1 + x[4:6], position_upper=2 + x[5:7], effort_limit=x[:2])
    model = rb.with_inertias(model, {"upper": untyped(np.array([1 + x[0], 0, 0, 0, 1, 0, 1, 0, 0, 1]))})
    model = rb.attach_payload(model, "tool", x[7], 0.1 * x[:3])
    return dataclasses.replace(model, armature=np.array(x[6:8]), damping=np.array(x[2:4]), friction=np.array(x[4:6]))


def scaled(model: rb.Model, seed: int) -> rb.Model:
    """The robot with other numbers in every leaf."""
    random = np.random.default_rng(seed)
    return jax.device_put(jax.tree.map(lambda x: np.asarray(x) * random.uniform(1, 1.1, x.shape), model))


@pytest.mark.slow
def test_a_thousand_models_of_one_topology_compile_nothing(arm):
    @jax.jit
    @chex.assert_max_traces(n=2)  # by a call, and by the gradient
    def loss(model, q, v):
        return jax.vmap(lambda q, v: rb.rnea(model, q, v, v) + rb.gravity_forces(model, q))(q, v).sum()

    slope = jax.jit(jax.grad(loss, allow_int=True))
    q, v = untyped(np.array([0.3, -0.7])), untyped(np.array([0.5, 1.1]))
    Q, V = np.stack([q] * 4), np.stack([v] * 4)

    def run(model: rb.Model) -> tuple:
        return (
            rb.rnea(model, q, v, v),
            rb.crba(model, q),
            rb.jacobian(model, q, "tool"),
            rb.clamp(model, 0 * q + 9.0),
            rb.friction_forces(model, v) + rb.damping_forces(model, v),
            collision.min_distance(model, q),
            loss(model, Q, V),
            slope(model, Q, V).inertias,
        )

    numbers = np.random.default_rng(0).uniform(0.01, 0.99, (BY_EDITS, 8))
    one = edited(arm, numbers[0])
    others = [scaled(one, seed) for seed in range(COUNT - BY_EDITS)]
    first, _ = jax.block_until_ready((run(one), run(others[0])))
    with counted() as counts:
        results = [run(edited(arm, x)) for x in numbers[1:]] + [run(model) for model in others]
    assert not counts, dict(counts)
    # That these were other robots: not one result is that of the first, or of another.
    for values in zip(first, *results, strict=True):
        assert len(np.unique(np.stack([np.asarray(x) for x in values]), axis=0)) == COUNT


def test_a_payload_changes_the_torque_as_its_weight_says(arm):
    """The counts would be zero, too, if the numbers of the model were constants of the first program."""
    q = jnp.array([0.3, -0.7])
    down = rb.with_gravity(arm, jnp.array([0.0, -9.81, 0.0]))
    added = rb.gravity_forces(rb.attach_payload(down, "tool", 2.0), q) - rb.gravity_forces(down, q)
    tool = np.asarray(rb.jacobian(arm, q, "tool"))[4]  # how the height of the tool depends on each joint
    assert_close(added, 2.0 * 9.81 * tool)


def moved(model: rb.Model, row: int, value: float) -> rb.Model:
    placements = untyped(np.array(model.joint_placements))
    placements[1, row, 3] = value
    return rb.with_geometry(model, joint_placements=placements)


CHANGES = {
    "a length that was zero": lambda m: moved(m, 2, 0.1),
    "a length that becomes one": lambda m: moved(m, 0, 1.0),
    "all of the geometry as inputs": rb.unstructured,
    "another dtype": lambda m: jax.tree.map(lambda x: x.astype(jnp.float16), m),
    "another name": lambda m: dataclasses.replace(m, tree=dataclasses.replace(m.tree, name="another")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_compiles_anew(arm, change):
    q: Any = np.zeros(2)
    other = CHANGES[change](arm)
    jax.block_until_ready((rb.fk(arm, q), other))
    with counted() as counts:
        rb.fk(other, q)
        assert counts["jaxpr_trace"] >= 1 and counts["backend_compile"] >= 1
        counts.clear()
        rb.fk(CHANGES[change](arm) if "name" in change else other, q)
        assert not counts


def test_unstructured_models_share_one_compilation_wherever_their_zeros_are(arm):
    q: Any = np.zeros(2)
    models = [rb.unstructured(moved(arm, row, value)) for row, value in ((0, 0.5), (2, 0.1), (0, 1.0), (1, -1.0))]
    rb.fk(models[0], q)
    with counted() as counts:
        ends = [np.asarray(rb.fk(m, q))[arm.link_index("lower"), :3, 3] for m in models]
    assert not counts
    assert_close(np.stack(ends), [[0.5, 0, 0], [0.5, 0, 0.1], [1, 0, 0], [0.5, -1, 0]])


def test_arguments_by_name_and_by_position_share_one_compilation(arm):
    q: Any = np.zeros(2)
    rb.jacobian(arm, q, "tool")
    rb.rnea(arm, q, q, q)
    with counted() as counts:
        rb.jacobian(arm, link="tool", q=q)
        rb.jacobian(model=arm, q=q, link="tool")
        rb.rnea(arm, q, a=q, v=q)
    assert not counts


def test_two_loads_of_one_robot_share_every_compilation():
    q: Any = np.zeros(2)
    rb.fk(robots.two_link_arm(), q)
    again = robots.two_link_arm()
    with counted() as counts:
        rb.fk(again, q)
    assert not counts
