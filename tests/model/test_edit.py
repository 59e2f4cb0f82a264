"""Robots with other numbers: each edit equals the robot built with those numbers, and compiles nothing anew."""

from __future__ import annotations

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.io import LinkDescription, RobotDescription, build_model
from rbydyn_jax.spatial import rpy
from rbydyn_jax.testing import random_description, random_inertial
from tests.helpers import assert_close, normal, oracle

DESCRIPTION = random_description(11, ("revolute", "prismatic", "fixed", "spherical", "continuous"), 9)
pytestmark = pytest.mark.float32


@pytest.fixture(scope="module")
def model():
    return build_model(DESCRIPTION)


@pytest.fixture(scope="module")
def state(model):
    q = jax.jit(jax.vmap(rb.random_configuration, (None, 0)))(model, jax.random.split(jax.random.key(0), 10))
    return q, normal(1, 10, model.nv), normal(2, 10, model.nv)


def rnea(model, state):
    return jax.vmap(rb.rnea, (None, 0, 0, 0))(model, *state)


def with_link(description: RobotDescription, name: str, **changes) -> RobotDescription:
    links = tuple(dataclasses.replace(x, **changes) if x.name == name else x for x in description.links)
    return dataclasses.replace(description, links=links)


def welded_link(description: RobotDescription) -> str:
    return next(j.child for j in description.joints if j.kind == "fixed" and j.parent != description.links[0].name)


@pytest.mark.ci
def test_payload_is_what_pinocchio_makes_of_it(model, state):
    pin = oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    link = welded_link(DESCRIPTION)
    body = model.tree.link_bodies[model.link_index(link)]
    com, turn = np.array([0.1, -0.2, 0.3]), np.asarray(rpy.to_matrix(jnp.array([0.3, -0.4, 0.5])), float)
    moments = turn @ np.diag([0.2, 0.3, 0.4]) @ turn.T
    twin = pin_model(model)
    placement = pin.SE3(np.asarray(model.link_placements[model.link_index(link)], float))
    joint = twin.model.getJointId(model.joint_names[body])
    inertias = list(twin.model.inertias)
    twin.model.inertias[joint] = inertias[joint] + placement.act(pin.Inertia(1.7, com, moments))
    got = rnea(rb.attach_payload(model, link, 1.7, jnp.asarray(com), jnp.asarray(moments)), state)
    want = np.stack([twin.rnea(*(np.asarray(x, float) for x in row)) for row in zip(*state, strict=True)])
    assert np.abs(np.asarray(rnea(model, state)) - want).max() > 0.1
    assert_close(got, want)


@pytest.mark.parametrize("which", ["welded", "of a body", "of the world"])
def test_inertia_of_one_link(model, state, which):
    name = {"welded": welded_link(DESCRIPTION), "of a body": model.link_names[-1]}.get(which, model.link_names[0])
    new = random_inertial(5)
    want = build_model(with_link(DESCRIPTION, name, inertial=new))
    values = jnp.asarray(want.link_inertias[want.link_index(name)])
    got = rb.with_inertias(model, {name: values})
    assert_close(rnea(got, state), rnea(want, state))
    assert_close(got.link_inertias, want.link_inertias)
    assert_close(rb.total_mass(got), rb.total_mass(want))


def test_payload_on_the_link_of_an_arm_without_a_welded_link():
    arm = robots.pendulum(mass=2.0, length=0.5)
    loaded = rb.attach_payload(arm, "bob", 1.0, jnp.array([0.0, 0.0, -0.5]))
    assert_close(rb.crba(loaded, jnp.zeros(1)), [[3.0 * 0.25]])


@pytest.mark.ci
def test_other_lengths(model):
    moving = random_description(17, ("revolute", "prismatic", "spherical"), 7)
    longer = dataclasses.replace(
        moving, joints=tuple(dataclasses.replace(x, origin=_longer(x.origin)) for x in moving.joints)
    )
    one, want = build_model(moving), build_model(longer)
    q, v, a = normal(1, one.nq), normal(2, one.nv), normal(3, one.nv)
    q = rb.normalize(one, q)
    got = rb.with_geometry(one, joint_placements=jnp.asarray(_longer(one.joint_placements)))
    assert got.tree == one.tree
    assert_close(rb.rnea(got, q, v, a), rb.rnea(want, q, v, a))
    assert np.abs(np.asarray(rb.rnea(one, q, v, a) - rb.rnea(want, q, v, a))).max() > 1e-2


def _longer(T):
    T = np.array(T)
    T[..., :3, 3] *= 1.3
    return T


@pytest.mark.slow
def test_unstructured_robot_is_the_same_robot(model, state):
    dense = rb.unstructured(model)
    assert_close(rnea(dense, state), rnea(model, state))
    assert dense.geometry.size > model.geometry.size
    with_zeros = robots.rby1a()
    q = jnp.linspace(-0.5, 0.5, with_zeros.nq)
    assert_close(rb.fk(rb.unstructured(with_zeros), q), rb.fk(with_zeros, q))


@pytest.mark.slow
def test_gradient_with_respect_to_lengths(model, state):
    """The change of a link's height along a direction of the joints' places, by differences."""
    q = state[0][0]
    tip = model.link_names[-1]
    change = jnp.zeros_like(model.joint_placements).at[:, :3, 3].set(normal(3, model.nb, 3))

    def height(t):
        return rb.link_pose(rb.with_geometry(model, joint_placements=model.joint_placements + t * change), q, tip)[2, 3]

    zero = jnp.zeros((), q.dtype)
    step = 0.5  # the height is linear in the places
    assert_close(jax.grad(height)(zero), (height(zero + step) - height(zero - step)) / (2 * step), kind="solve")


@pytest.mark.slow
def test_models_of_one_topology_run_as_one_batch():
    description = random_description(13, ("revolute", "prismatic"), 6)
    straight = dataclasses.replace(
        description, joints=tuple(dataclasses.replace(j, origin=np.eye(4)) for j in description.joints)
    )
    models = [build_model(description), build_model(straight)]
    assert models[0].tree != models[1].tree  # zeros at other places
    q = normal(4, models[0].nq)
    got = jax.vmap(lambda m: rb.gravity_forces(m, q))(rb.stack_models(models))
    assert_close(got, jnp.stack([rb.gravity_forces(m, q) for m in models]))


def test_only_models_of_one_topology_are_stacked():
    with pytest.raises(rb.ModelError, match=r"models\[1\].*another topology"):
        rb.stack_models([robots.pendulum(), robots.double_pendulum()])
    with pytest.raises(rb.ArgumentError, match="at least one"):
        rb.stack_models([])


@pytest.mark.ci
def test_edits_compile_nothing_anew(model, state):
    @jax.jit
    @chex.assert_max_traces(n=1)
    def torque(m, q, v, a):
        return rb.rnea(m, q, v, a)

    row = tuple(x[0] for x in state)
    torque(model, *row)
    tip = model.link_names[-1]
    edited = [
        rb.with_gravity(model, jnp.array([0.0, 1.0, -2.0])),
        rb.attach_payload(model, tip, 2.0),
        rb.with_inertias(model, {tip: jnp.asarray(model.link_inertias[0]) * 2}),
        rb.with_limits(model, effort_limit=model.effort_limit * 2),
        rb.with_geometry(model, joint_placements=jnp.asarray(_longer(model.joint_placements))),
    ]
    chex.assert_tree_all_finite([torque(m, *row) for m in edited])


def test_limits_are_checked(model):
    with pytest.raises(rb.ArgumentError, match=r"no limit is named 'torque'; the limits are"):
        rb.with_limits(model, torque=model.effort_limit)
    with pytest.raises(rb.ArgumentError, match=r"velocity_limit\[1\] is negative"):
        rb.with_limits(model, velocity_limit=jnp.ones(model.nv).at[1].set(-1.0))
    with pytest.raises(rb.ArgumentError, match=r"effort_limit\[0\] is NaN"):
        rb.with_limits(model, effort_limit=jnp.ones(model.nv).at[0].set(jnp.nan))
    arm = robots.two_link_arm()
    with pytest.raises(rb.ArgumentError, match=r"joint 'elbow': position_lower\[1\] is above position_upper"):
        rb.with_limits(arm, position_lower=jnp.array([0.0, 5.0]))
    with pytest.raises(rb.ShapeError, match="effort_limit"):
        rb.with_limits(model, effort_limit=jnp.ones(2))
    changed = rb.with_limits(arm, position_lower=jnp.array([-1.0, -0.5]))
    assert changed.position_lower.tolist() == [-1.0, -0.5]
    assert_close(changed.position_upper, arm.position_upper)


def test_bad_edits_are_refused(model):
    with pytest.raises(rb.NameNotFoundError, match="did you mean"):
        rb.attach_payload(model, model.link_names[-1] + "x", 1.0)
    with pytest.raises(rb.ShapeError, match="com"):
        rb.attach_payload(model, 0, 1.0, jnp.zeros(2))
    with pytest.raises(rb.ShapeError, match="values"):
        rb.with_inertias(model, {0: jnp.zeros(9)})
    with pytest.raises(rb.ArgumentError, match="unit length"):
        rb.with_geometry(model, joint_axes=2 * model.joint_axes)
    with pytest.raises(rb.ArgumentError, match="identity"):
        rb.with_geometry(model, link_placements=model.link_placements.at[:, 0, 3].add(1.0))
    with pytest.raises(rb.DtypeError, match="Model"):
        rb.with_gravity("robot", jnp.zeros(3))  # type: ignore[arg-type]


def test_payload_on_an_empty_link_is_the_link_described_with_it():
    joint = dataclasses.replace(DESCRIPTION.joints[0], kind="revolute", parent="a", child="b", mimic=None)
    bare = RobotDescription("r", (LinkDescription("a"), LinkDescription("b")), (joint,))
    inertial = random_inertial(3)
    got = rb.attach_payload(
        build_model(bare), "b", inertial.mass, jnp.asarray(inertial.com), jnp.asarray(inertial.inertia)
    )
    assert_close(got.inertias, build_model(with_link(bare, "b", inertial=inertial)).inertias)


WRONG_POSES = {
    "scaled": (np.diag([2.0, 2.0, 2.0, 1.0]), "no rotation"),
    "mirrored": (np.diag([1.0, 1.0, -1.0, 1.0]), "no rotation"),
    "nan": (np.full((4, 4), np.nan), "not finite"),
    "nan in the place": (np.array([[1, 0, 0, np.nan], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]), "not finite"),
    "bottom row": (np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1.0]]), "0 0 0 1"),
}


@pytest.mark.parametrize("case", WRONG_POSES)
def test_wrong_placements_are_refused_and_named(model, case):
    wrong, phrase = WRONG_POSES[case]
    with pytest.raises(rb.ArgumentError, match=f"joint {model.joint_names[2]!r}: .*{phrase}"):
        rb.with_geometry(model, joint_placements=model.joint_placements.at[2].set(jnp.asarray(wrong)))
    link = welded_link(DESCRIPTION)
    with pytest.raises(rb.ArgumentError, match=f"link {link!r}: .*{phrase}"):
        at = model.link_index(link)
        rb.with_geometry(model, link_placements=model.link_placements.at[at].set(jnp.asarray(wrong)))


def test_an_axis_of_nan_is_refused(model):
    with pytest.raises(rb.ArgumentError, match=f"joint {model.joint_names[1]!r}: its axis"):
        rb.with_geometry(model, joint_axes=model.joint_axes.at[1].set(jnp.nan))


def test_numbers_that_cannot_be_are_refused(model):
    for gravity in (jnp.array([0.0, jnp.nan, 0.0]), jnp.array([0.0, 0.0, -jnp.inf])):
        with pytest.raises(rb.ArgumentError, match="gravity must be finite"):
            rb.with_gravity(model, gravity)
    for mass, phrase in ((-1.0, "mass must not be negative"), (jnp.nan, "mass must be finite")):
        with pytest.raises(rb.ArgumentError, match=phrase):
            rb.attach_payload(model, 0, mass)
    with pytest.raises(rb.ArgumentError, match="com must be finite"):
        rb.attach_payload(model, 0, 1.0, jnp.array([0.0, jnp.nan, 0.0]))
    for mass, inertia, phrase in (
        (1.0, -jnp.eye(3), "principal moments"),
        (1.0, jnp.diag(jnp.array([1.0, 1.0, 5.0])), "principal moments"),
        (1.0, jnp.eye(3).at[0, 1].set(0.5), "inertia must be symmetric"),
        (0.0, jnp.eye(3), "inertia must be zero where mass is"),
    ):
        with pytest.raises(rb.ArgumentError, match=phrase):
            rb.attach_payload(model, 0, mass, None, inertia)
    with pytest.raises(rb.ArgumentError, match=r"values\[0\]\[0\], the mass, must not be negative"):
        rb.with_inertias(model, {0: jnp.zeros(10).at[0].set(-1.0)})
    with pytest.raises(rb.ArgumentError, match=r"values\[0\] must be finite"):
        rb.with_inertias(model, {0: jnp.full(10, jnp.nan)})
    arm = robots.two_link_arm()
    for name, value in (("position_lower", jnp.inf), ("position_upper", -jnp.inf)):
        with pytest.raises(rb.ArgumentError, match=rf"joint 'shoulder': {name}\[0\] leaves no position"):
            rb.with_limits(arm, **{name: jnp.array([value, 0.0])})


def test_what_is_traced_is_not_judged():
    """A compiled function cannot raise on a value: the number goes through."""
    arm = robots.pendulum(mass=2.0)
    got = jax.jit(lambda m: rb.total_mass(rb.attach_payload(arm, "bob", m)))(jnp.asarray(-0.5))
    assert_close(got, 1.5)
    up = jax.jit(lambda g: rb.gravity_forces(rb.with_gravity(arm, g), jnp.ones(1)))(jnp.full(3, jnp.nan))
    assert np.isnan(np.asarray(up)).all()


def test_arguments_of_another_type_are_named(model):
    with pytest.raises(rb.DtypeError, match="values must be a mapping"):
        rb.with_inertias(model, [("a", jnp.zeros(10))])  # type: ignore[arg-type]
    with pytest.raises(rb.DtypeError, match="takes a sequence of models"):
        rb.stack_models(model)
    with pytest.raises(rb.DtypeError, match=r"models\[1\] must be a Model.*str"):
        rb.stack_models([model, "x"])  # type: ignore[list-item]
    both = rb.stack_models(m for m in (model, model))
    assert both.inertias.shape == (2, model.nb, 10)


@pytest.mark.ci
def test_robots_that_differ_in_name_only_are_told_so(model):
    other = build_model(dataclasses.replace(DESCRIPTION, name="twin"))
    with pytest.raises(rb.ModelError, match="differ in name only: 'twin' and 'random_tree'"):
        rb.stack_models([model, other])


@pytest.mark.ci
def test_edits_of_a_robot_on_the_host(model, state):
    """`jax.device_get` makes numpy leaves, and every edit takes them."""
    host = jax.device_get(model)
    link = welded_link(DESCRIPTION)
    for edit in (
        lambda m: rb.attach_payload(m, link, 1.0),
        lambda m: rb.with_inertias(m, {link: jnp.ones(10)}),
        lambda m: rb.with_limits(m, effort_limit=jnp.ones(model.nv)),
        lambda m: rb.with_geometry(m, joint_placements=jnp.asarray(_longer(m.joint_placements))),
        rb.unstructured,
    ):
        assert_close(rnea(edit(host), state), rnea(edit(model), state))


def test_a_placement_that_was_built_is_taken_back():
    """Files give rotations to seven digits; `build_model` takes them, and so does an edit."""
    turn = np.eye(4)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6 + 2e-7]]
    joint = dataclasses.replace(DESCRIPTION.joints[0], kind="revolute", parent="a", child="b", origin=turn, mimic=None)
    inertial = random_inertial(3)
    built = build_model(RobotDescription("r", (LinkDescription("a"), LinkDescription("b", inertial)), (joint,)))
    again = rb.with_geometry(built, joint_placements=built.joint_placements)
    assert_close(again.joint_placements, turn[None])
