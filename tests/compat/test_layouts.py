"""Quantities in the layouts of pinocchio and MuJoCo equal what the engines return, untouched."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.compat import mujoco as mj
from rbydyn_jax.compat import pinocchio as layout
from rbydyn_jax.spatial import to_linear_first
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, normal, oracle, untyped

pytestmark = pytest.mark.skipif(not X64, reason="the oracles work in float64")


@pytest.fixture(scope="module")
def model():
    """A tree whose root floats, as MuJoCo wants it."""
    trees = (random_tree(seed, ("floating", "spherical", "prismatic", "revolute"), n=4) for seed in range(50))
    return next(
        m
        for m in trees
        if all((p < 0) == (t == "floating") for p, t in zip(m.tree.parents, m.tree.joint_types, strict=True))
    )


@pytest.fixture(scope="module")
def state(model):
    q = rb.random_configuration(model, jax.random.key(1)) * 1.1  # quaternions of another length
    return q, normal(2, model.nv), normal(3, model.nv)


@pytest.mark.slow
def test_pinocchio(model, state):
    pin = oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    q, v, a = state
    twin = pin_model(model)
    names = tuple(twin.model.names)[1:]
    q_pin = layout.q_to_pinocchio(model, q, names)
    v_pin, a_pin = layout.to_pinocchio(model, v, (0,), names), layout.to_pinocchio(model, a, (0,), names)
    assert_close(q_pin, twin.q(q))
    assert_close(layout.from_pinocchio(model, v_pin, (0,), names), v)
    back = layout.q_from_pinocchio(model, q_pin, names)
    assert_close(rb.difference(model, rb.normalize(model, q), back), np.zeros(model.nv), 1e-12, scale=1.0)
    given = [np.asarray(x, float) for x in (q_pin, v_pin, a_pin)]
    data = twin.data
    assert_close(layout.to_pinocchio(model, rb.rnea(model, q, v, a), (0,), names), pin.rnea(twin.model, data, *given))
    M = pin.crba(twin.model, data, given[0])
    M = np.triu(M) + np.triu(M, 1).T
    assert_close(layout.to_pinocchio(model, rb.crba(model, q), (0, 1), names), M)
    tip = model.link_names[-1]
    J = pin.computeFrameJacobian(twin.model, data, given[0], twin._frame(tip), pin.LOCAL)
    ours = to_linear_first(rb.jacobian(model, q, tip, frame="local"))
    assert_close(layout.to_pinocchio(model, ours, (1,), names), J)
    dq, dv, _ = pin.computeRNEADerivatives(twin.model, data, *given)
    derivatives = rb.rnea_derivatives(model, q, v, a)
    assert_close(layout.to_pinocchio(model, derivatives.dtau_dq, (0, 1), names), dq, kind="solve")
    assert_close(layout.to_pinocchio(model, derivatives.dtau_dv, (0, 1), names), dv, kind="solve")


@pytest.mark.slow
def test_a_file_that_pinocchio_reads():
    """Children in alphabetical order, an unbounded angle, and a base that floats."""
    pin = oracle("pinocchio")
    b = rb.RobotBuilder("fork").link("root", 1.0).link("stem", 1.0, (0, 0, 0.1), 0.01)
    b.link("left", 1.0, (0.1, 0, 0), 0.01).link("right", 1.0, (0, 0.2, 0), 0.01)
    b.continuous("stem_joint", "root", "stem", axis=(0, 0, 1))
    b.revolute("zebra", "stem", "left", xyz=(0, 0, 0.3), axis=(0, 1, 0), lower=-1, upper=1)
    b.revolute("ape", "stem", "right", xyz=(0.1, 0, 0), axis=(1, 0, 0), lower=-1, upper=1)
    text = rb.to_urdf(rb.build_model(b.build_description()))
    model = rb.load_urdf_string(text, floating_base=True)
    twin = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    names = ("floating_base", *tuple(twin.names)[2:])
    assert names[-2:] == ("ape", "zebra") and model.joint_names[-2:] == ("zebra", "ape")
    q, v, a = rb.random_configuration(model, jax.random.key(0)), normal(1, model.nv), normal(2, model.nv)
    q_pin = layout.q_to_pinocchio(model, q, names)
    given = [np.asarray(layout.to_pinocchio(model, x, (0,), names)) for x in (v, a)]
    tau = pin.rnea(twin, twin.createData(), np.asarray(q_pin), *given)
    assert_close(layout.from_pinocchio(model, jnp.array(tau), (0,), names), rb.rnea(model, q, v, a))
    assert_close(layout.q_from_pinocchio(model, q_pin, names), q)


@pytest.mark.slow
def test_joints_that_mimic_others():
    """A hand whose fingers follow one, in the order of names: torques and Jacobians of pinocchio."""
    pin = oracle("pinocchio")
    b = rb.RobotBuilder("hand").link("root", 1.0).link("palm", 1.0, (0, 0, 0.1), 0.01)
    b.continuous("wrist", "root", "palm", axis=(0, 0, 1))
    for k, name in enumerate(("ant", "zebra", "mole")):
        b.link(name, 0.5, (0.1, 0.02 * k, 0), 0.01)
        mimic = None if k == 0 else rb.Mimic("ant_joint", 1.0 - k, 0.1 * k)
        b.revolute(f"{name}_joint", "palm", name, xyz=(0, 0, 0.1 * k), axis=(0, 1, k), lower=-1, upper=1, mimic=mimic)
    text = rb.to_urdf(rb.build_model(b.build_description()))
    model, twin = rb.load_urdf_string(text), pin.buildModelFromXML(text, mimic=True)
    names = tuple(twin.names)[1:]
    assert names != model.joint_names and len(names) == 4 and model.nv == twin.nv == 2
    q, v, a = rb.random_configuration(model, jax.random.key(0)), normal(1, model.nv), normal(2, model.nv)
    q_pin = layout.q_to_pinocchio(model, q, names)
    given = [np.asarray(layout.to_pinocchio(model, x, (0,), names)) for x in (v, a)]
    data = twin.createData()
    tau = pin.rnea(twin, data, np.asarray(q_pin), *given)
    assert_close(layout.from_pinocchio(model, jnp.array(tau), (0,), names), rb.rnea(model, q, v, a))
    J = pin.computeFrameJacobian(twin, data, np.asarray(q_pin), twin.getFrameId("mole"), pin.LOCAL)
    ours = to_linear_first(rb.jacobian(model, q, "mole", frame="local"))
    assert_close(layout.to_pinocchio(model, ours, (1,), names), J)
    assert_close(layout.q_from_pinocchio(model, q_pin, names), q)
    leaders = tuple(name for name in names if name in ("wrist", "ant_joint"))
    assert_close(layout.q_to_pinocchio(model, q, leaders), q_pin)
    with pytest.raises(rb.ArgumentError, match="each of the 2 moving joints once"):
        layout.velocity_order(model, (*names, "zebra_joint"))


@pytest.mark.slow
def test_mujoco(model, state):
    mujoco = oracle("mujoco")
    from rbydyn_jax.engines.mujoco import mujoco_model

    q, v, a = state
    twin = mujoco_model(model)
    engine, data = twin.model, twin.data
    names = tuple(engine.joint(i).name for i in range(engine.njnt))
    E = np.asarray(mj.velocity_map(model, q, names))
    assert_close(E @ E.T, np.eye(model.nv))
    data.qpos[:], data.qvel[:] = mj.q_to_mujoco(model, q, names), E @ v
    mujoco.mj_forward(engine, data)
    poses = np.asarray(rb.body_poses(model, q))
    for i, name in enumerate(model.joint_names):
        assert_close(poses[i, :3, 3], data.body(name).xpos)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(engine, data, M)
    assert_close(E @ rb.crba(model, q) @ E.T, M)
    data.qacc[:] = mj.acceleration_to_mujoco(model, q, v, a, names)
    mujoco.mj_inverse(engine, data)
    assert_close(E @ rb.rnea(model, q, v, a), data.qfrc_inverse)
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBody(engine, data, linear, angular, engine.body(model.joint_names[-1]).id)
    J = rb.jacobian(model, q, model.tree.principal_links[-1])
    assert_close(to_linear_first(J) @ E.T, np.concatenate([linear, angular]))
    back = mj.q_from_mujoco(model, jnp.array(data.qpos), names)
    assert_close(rb.difference(model, rb.normalize(model, q), back), np.zeros(model.nv), 1e-12, scale=1.0)


def test_planar_joints_and_wrong_arguments(model):
    planar = random_tree(0, ("planar",), n=1)
    q = jnp.array([0.1, 0.2, 0.3])
    assert_close(layout.q_to_pinocchio(planar, q), [0.1, 0.2, np.cos(0.3), np.sin(0.3)])
    assert_close(layout.q_from_pinocchio(planar, layout.q_to_pinocchio(planar, q)), q)
    with pytest.raises(rb.ModelError, match="is planar"):
        mj.q_to_mujoco(planar, q)
    mimicking = random_tree(2, ("revolute", "prismatic"), 5, mimics=1)
    with pytest.raises(rb.ModelError, match="mimics another"):
        mj.q_to_mujoco(mimicking, rb.neutral(mimicking))
    with pytest.raises(rb.ArgumentError, match="each of the"):
        layout.velocity_order(model, model.joint_names[:2])
    with pytest.raises(rb.ShapeError, match="axis 1"):
        layout.to_pinocchio(model, jnp.zeros((model.nv, 3)), (0, 1))


def test_names_and_axes_are_tuples(model):
    q = rb.neutral(model)
    for names in (3, 1.5, "joint"):
        for call in (layout.q_to_pinocchio, layout.q_from_pinocchio, mj.q_to_mujoco, mj.q_from_mujoco):
            with pytest.raises(rb.DtypeError, match="joint_names must be a tuple of names"):
                untyped(call)(model, q, joint_names=names)
    for axes in (None, "x", 1, (0.5,)):
        with pytest.raises(rb.DtypeError, match="axes must be"):
            untyped(layout.to_pinocchio)(model, jnp.zeros(model.nv), axes=axes)
