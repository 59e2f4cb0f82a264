"""Robots with other joints: locked, cut off, attached."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.io import RobotBuilder, build_model, describe, load_urdf_string
from rbydyn_jax.testing import random_transform, random_tree
from tests.helpers import assert_close, normal, untyped

pytestmark = pytest.mark.float32


@pytest.fixture(scope="module")
def model():
    return random_tree(31, ("revolute", "prismatic", "continuous", "spherical"), 9)


@pytest.fixture(scope="module")
def q(model):
    return rb.random_configuration(model, jax.random.key(3))


@pytest.mark.slow
def test_locked_joints_stand_still(model, q):
    """What is left moves as before: its poses, and its rows and columns of the mass matrix."""
    locked = [0, 4, model.nb - 1]
    slices = model.tree.q_slices
    rest = rb.lock_joints(model, {model.joint_names[i]: q[slices[i]] for i in locked})
    left = [i for i in range(model.nb) if i not in locked]
    assert rest.joint_names == tuple(model.joint_names[i] for i in left)
    coordinates = np.concatenate([np.arange(model.nq)[slices[i]] for i in left])
    velocities = np.concatenate([np.arange(model.nv)[model.tree.v_slices[i]] for i in left])
    v = jnp.zeros(model.nv).at[velocities].set(normal(1, len(velocities)))
    order = np.array([rest.link_index(name) for name in model.link_names])
    assert_close(rb.fk(rest, q[coordinates])[order], rb.fk(model, q))
    assert_close(rb.crba(rest, q[coordinates]), rb.crba(model, q)[np.ix_(velocities, velocities)])
    want = rb.bias_forces(model, q, v)[velocities]
    assert_close(rb.bias_forces(rest, q[coordinates], v[velocities]), want)
    assert_close(rb.total_mass(rest), rb.total_mass(model))


@pytest.mark.ci
def test_joints_that_mimic_a_locked_one_are_locked_with_it():
    model = random_tree(2, ("revolute", "prismatic"), 7, mimics=2)
    follower, source = next((i, m.source) for i, m in enumerate(model.tree.mimics) if m is not None)
    leader = model.joint_names[source]
    q = rb.random_configuration(model, jax.random.key(0))
    at = model.tree.q_slices[model.joint_index(leader)]
    rest = rb.lock_joints(model, {leader: q[at]})
    assert leader not in rest.joint_names and model.joint_names[follower] not in rest.joint_names
    others = np.delete(np.arange(model.nq), at)
    order = np.array([rest.link_index(name) for name in model.link_names])
    assert_close(rb.fk(rest, q[others])[order], rb.fk(model, q))
    with pytest.raises(rb.ModelError, match="mimics"):
        rb.lock_joints(model, {model.joint_names[follower]: 0.0})


@pytest.mark.slow
def test_submodel_is_what_the_link_carries(model, q):
    base = next(model.link_names[i] for i, b in enumerate(model.tree.link_bodies) if b >= 0 and b in model.tree.parents)
    part = rb.submodel(model, base)
    moved = [model.joint_index(name) for name in part.joint_names]
    coordinates = np.concatenate([np.arange(model.nq)[model.tree.q_slices[i]] for i in moved])
    assert part.link_names[0] == base and part.nb < model.nb
    poses = rb.fk(model, q)
    inside = np.array([model.link_index(name) for name in part.link_names])
    want = jnp.linalg.inv(poses[model.link_index(base)]) @ poses[inside]
    assert_close(rb.fk(part, q[coordinates]), want)
    assert_close(rb.total_mass(part), rb.subtree_mass(model, base))


def test_the_part_below_a_welded_link_is_whole_or_refused():
    b = RobotBuilder()
    for name in ("base", "mount", "upper", "camera", "flange", "hand", "tip", "other"):
        b.link(name, 1.0, (0.1, 0.2, 0.3), 0.1)
    b.fixed("f", "base", "mount", xyz=(0, 0, 1)).revolute("j", "mount", "upper").fixed("c", "upper", "camera")
    b.fixed("g", "upper", "flange").revolute("k", "flange", "hand").fixed("t", "hand", "tip")
    description = b.revolute("o", "base", "other").build_description()
    model = build_model(description)
    refused = {}
    for link in model.link_names:
        want = build_model(description, base_link=link)  # of the file, where what is below is known
        try:
            part = rb.submodel(model, link)
        except rb.ModelError as error:
            refused[link] = str(error)
            continue
        assert (part.link_names, part.joint_names) == (want.link_names, want.joint_names)
        assert_close(part.link_inertias, want.link_inertias)
    assert refused.keys() == {"mount", "camera", "flange"}
    assert "'flange' is welded to 'upper'" in refused["flange"] and "take 'base'" in refused["mount"]
    arm = robots.two_link_arm()
    both = rb.attach(arm, "tool", arm, prefix="g_")
    with pytest.raises(rb.ModelError, match="'g_base' is welded to 'lower'"):
        rb.submodel(both, "g_base")
    assert rb.submodel(both, "lower").joint_names == ("g_shoulder", "g_elbow")


@pytest.mark.slow
def test_attached_robot_goes_where_the_link_goes(model, q):
    arm, pose = robots.two_link_arm(), jnp.asarray(random_transform(4), q.dtype)
    tip = model.link_names[-1]
    both = rb.attach(model, tip, arm, pose, prefix="tool_")
    p = jnp.array([0.3, -0.4], q.dtype)
    ours = [i for i, name in enumerate(both.joint_names) if not name.startswith("tool_")]
    full = jnp.zeros(both.nq, q.dtype)
    for i, name in enumerate(both.joint_names):
        source, twin = (q, model) if i in ours else (p, arm)
        own = twin.tree.q_slices[twin.joint_index(name.removeprefix("tool_") if twin is arm else name)]
        full = full.at[both.tree.q_slices[i]].set(source[own])
    want = rb.link_pose(model, q, tip) @ pose @ rb.link_pose(arm, p, "tool")
    assert_close(rb.link_pose(both, full, "tool_tool"), want)
    assert_close(rb.total_mass(both), rb.total_mass(model) + rb.total_mass(arm))


def test_wrong_use_is_refused(model):
    arm = robots.two_link_arm()
    with pytest.raises(rb.NameNotFoundError, match="elbow"):
        rb.lock_joints(arm, {"elbw": 0.0})
    with pytest.raises(rb.ArgumentError, match="names the joint 'elbow' twice"):
        rb.lock_joints(arm, {"elbow": 0.0, 1: 0.1})
    with pytest.raises(rb.NameNotFoundError, match="did you mean 'lower'"):
        rb.submodel(arm, "lowr")
    with pytest.raises(rb.RbydynError, match="base"):
        rb.attach(arm, "tool", arm)  # names twice
    with pytest.raises(rb.DtypeError, match="outside of jit"):
        jax.jit(lambda m: rb.submodel(m, "lower").inertias)(arm)


def with_own_numbers(model):
    """Another number in every coordinate of every leaf that has one for each coordinate."""
    numbers = {
        name: jnp.linspace(first, first + 1.0, getattr(model, name).size, dtype=model.inertias.dtype)
        for first, name in enumerate(PER_COORDINATE, 2)
    }
    numbers["position_lower"] = -numbers["position_lower"]
    return dataclasses.replace(model, **numbers)


PER_COORDINATE = (
    "position_lower", "position_upper", "velocity_limit", "acceleration_limit", "effort_limit", "armature", "damping",
    "friction",
)  # fmt: skip
KINDS = ("planar", "spherical", "floating", "revolute", "prismatic", "sin_cos_revolute", "mrp_floating")


def assert_numbers_of(part, whole, prefix=""):
    """Each coordinate of `whole` has the numbers of its joint in `part`."""
    for i, name in enumerate(part.joint_names):
        if prefix + name not in whole.joint_names:
            continue
        j = whole.joint_index(prefix + name)
        for leaf in PER_COORDINATE:
            slices = "q_slices" if leaf.startswith("position") else "v_slices"
            old = getattr(part, leaf)[getattr(part.tree, slices)[i]]
            new = getattr(whole, leaf)[getattr(whole.tree, slices)[j]]
            np.testing.assert_array_equal(new, old, err_msg=f"{name} {leaf}")


@pytest.mark.slow
def test_every_coordinate_keeps_its_numbers():
    model = with_own_numbers(random_tree(5, KINDS, 10))
    tool = with_own_numbers(random_tree(6, KINDS, 5))
    revolute = model.joint_names[model.tree.joint_types.index("revolute")]
    rest = rb.lock_joints(model, {revolute: 0.1})
    assert {"planar", "spherical", "floating"} <= set(rest.tree.joint_types)
    assert_numbers_of(model, rest)
    busiest = max(range(model.nb), key=lambda body: sum(body in model.tree.path(i) for i in range(model.nb)))
    part = rb.submodel(model, model.link_names[model.tree.principal_links[busiest]])
    assert {"planar", "spherical", "floating"} & set(part.tree.joint_types)
    assert_numbers_of(model, part)
    both = rb.attach(model, model.link_names[-1], tool, prefix="tool_")
    assert both.nv == model.nv + tool.nv
    assert_numbers_of(model, both)
    assert_numbers_of(tool, both, "tool_")


@pytest.mark.slow
def test_light_links_on_a_heavy_body_stay():
    """A sensor of a milligram on a ton: its own numbers are stored, so that nothing has to be told from rounding."""
    b = RobotBuilder().link("base").link("heavy", 1000.0, inertia=500.0).link("sensor", 1e-6, (0.1, 0, 0), 1e-9)
    b.link("frame").link("last", 1.0, inertia=0.1)
    b.revolute("j", "base", "heavy").fixed("s", "heavy", "sensor", xyz=(0, 0, 1)).fixed("f", "heavy", "frame")
    model = untyped(build_model)(b.revolute("k", "heavy", "last"), dtype="float32")
    for other in (rb.lock_joints(model, {"k": 0.0}), load_urdf_string(rb.to_urdf(model))):
        got = other.link_inertias[other.link_index("sensor")]
        assert_close(got, model.link_inertias[model.link_index("sensor")], 2e-5)
        assert float(got[0]) > 0.0
        assert not np.asarray(other.link_inertias[other.link_index("frame")]).any()


@pytest.mark.slow
def test_a_massless_link_under_a_welded_mass_stays_massless_in_float32():
    b = RobotBuilder().link("base").link("flange").link("tool", 3.1, (0.13, 0.27, 0.31), 0.7).link("last", 1.0)
    b.revolute("j", "base", "flange").fixed("f", "flange", "tool", xyz=(0.3, 0.1, 0.7), rpy=(0.3, 0.2, 0.1))
    model = untyped(build_model)(b.revolute("k", "flange", "last"), dtype="float32")
    rest = rb.lock_joints(model, {"k": 0.0})
    flange = next(link for link in describe(rest).links if link.name == "flange")
    assert flange.inertial is None


@pytest.mark.ci
def test_point_masses_in_float32_are_changed_and_written():
    """What is left of a moment about the centre of mass is rounding, which must not make it negative."""
    for length in np.linspace(0.3, 1.9, 9):
        b = RobotBuilder().link("base").link("bob", 1.4, (0.9 * length, 0.3 * length, length)).link("last", 1.4)
        b.revolute("j", "base", "bob", axis=(0, 1, 0)).revolute("k", "bob", "last", xyz=(0, 0, length), axis=(0, 1, 0))
        model = untyped(build_model)(b, dtype="float32")
        m_rr = 1.4 * length**2 * np.array([-0.27, 1.81, -0.9])  # xy, yy, xz
        changed = rb.lock_joints(model, {"k": 0.0}), rb.submodel(model, 0), load_urdf_string(rb.to_urdf(model))
        for other in (*changed, rb.attach(model, "last", robots.two_link_arm(), prefix="tool_")):
            share = np.asarray(other.link_inertias[other.link_index("bob")], float)
            np.testing.assert_allclose(share[5:8], m_rr, rtol=1e-6)
            assert not [finding for finding in other.report if "inertia is" in finding.message]
            assert not [finding for finding in other.report if "triangle" in finding.message]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_inertias_that_are_not_finite_are_named(number):
    arm = robots.two_link_arm()
    broken = dataclasses.replace(arm, inertias=arm.inertias.at[1, 4:].set(number))
    with pytest.raises(rb.ModelError, match=r"link 'lower': .*must be finite"):
        rb.lock_joints(broken, {"shoulder": 0.0})


def test_what_was_found_stays_known():
    arm = load_urdf_string('<robot name="r"><gazebo/><link name="a"/></robot>', source="arm.urdf")
    tool = robots.two_link_arm()
    assert [f.source for f in arm.report] == ["arm.urdf"]
    both = rb.attach(arm, "a", tool, prefix="tool_")
    assert [f for f in both.report if f.source] == list(arm.report)
    again = rb.submodel(rb.lock_joints(both, {"tool_elbow": 0.0}), "tool_upper")
    assert again.report[: len(both.report)] == both.report


@pytest.mark.ci
def test_arguments_of_another_type_are_named(model, q):
    arm = robots.two_link_arm()
    with pytest.raises(rb.DtypeError, match="positions must be a mapping"):
        rb.lock_joints(arm, ["elbow"])  # type: ignore[arg-type]
    with pytest.raises(rb.DtypeError, match=r"positions\['elbow'\] must be a number"):
        rb.lock_joints(arm, {"elbow": "x"})  # type: ignore[dict-item]
    with pytest.raises(rb.ArgumentError, match=r"positions\['elbow'\] must be finite"):
        rb.lock_joints(arm, {"elbow": np.nan})
    with pytest.raises(rb.ShapeError, match=r"positions\['elbow'\]"):
        untyped(rb.lock_joints)(arm, {"elbow": [0.0, 1.0]})
    with pytest.raises(rb.DtypeError, match=r"positions\['elbow'\] is traced"):
        jax.jit(lambda x: rb.lock_joints(arm, {"elbow": x}).inertias)(0.5)
    with pytest.raises(rb.DtypeError, match="pose is traced"):
        jax.jit(lambda T: rb.attach(arm, "tool", arm, T, prefix="b_").inertias)(jnp.eye(4))
    ball = model.joint_names[model.tree.joint_types.index("spherical")]
    with pytest.raises(rb.ArgumentError, match="quaternion zero"):
        rb.lock_joints(model, {ball: jnp.zeros(4)})
    for call in (lambda m: rb.lock_joints(m, {}), lambda m: rb.submodel(m, 0), rb.to_urdf):
        for wrong in ("robot.urdf", None):
            with pytest.raises(rb.DtypeError, match="model must be a Model"):
                untyped(call)(wrong)
    with pytest.raises(rb.DtypeError, match="other must be a Model"):
        rb.attach(arm, "tool", None)  # type: ignore[arg-type]


def test_the_mount_takes_a_name_that_is_free():
    own = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("tool_mount", "a", "b")
    tool = RobotBuilder().link("tool", 1.0).link("jaw", 1.0, inertia=0.1).revolute("grip", "tool", "jaw")
    both = rb.attach(build_model(own), "b", build_model(tool))
    assert both.joint_names == ("tool_mount", "grip")
