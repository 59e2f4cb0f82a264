"""What docs/pinocchio.md says of Pinocchio is what Pinocchio does."""

from __future__ import annotations

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, oracle

pytestmark = pytest.mark.skipif(not X64, reason="the oracle works in float64")
Q: Any = np.array([0.3])
V: Any = np.array([0.7])
A: Any = np.array([-0.4])


@pytest.fixture(scope="module")
def pin() -> Any:
    return oracle("pinocchio")


@pytest.fixture(scope="module")
def gripper() -> str:
    """The page's gripper: URDF."""
    b = rb.RobotBuilder("gripper").link("palm", 5.0).link("left", 1.0, (0, 0, 0.2), 0.01)
    b = b.link("right", 0.5, (0, 0.1, 0.2), 0.01).revolute("l", "palm", "left", axis=(0, 1, 0), lower=-1, upper=1)
    follow = rb.Mimic("l", multiplier=-2.0, offset=0.1)
    b = b.revolute("r", "left", "right", xyz=(0, 0, 0.1), axis=(0, 1, 0), lower=-3, upper=3, mimic=follow)
    return rb.to_urdf(rb.build_model(b))


def columns(pin: Any, model: Any, q: np.ndarray) -> np.ndarray:
    """The mass matrix by Pinocchio's inverse dynamics without gravity."""
    light = pin.Model(model)
    light.gravity.setZero()
    rest = np.zeros(model.nv)
    return np.stack([pin.rnea(light, light.createData(), q, rest, e) for e in np.eye(model.nv)], axis=1)


def symmetric(M: np.ndarray) -> np.ndarray:
    return np.triu(M) + np.triu(M, 1).T


def test_links_fixed_to_the_world(pin):
    b = rb.RobotBuilder("arm").link("base", 5.0).link("upper", 1.0, (1, 0, 0), 0.01)
    ours = rb.build_model(b.revolute("hinge", "base", "upper", axis=(0, 1, 0), lower=-1, upper=1))
    model = pin.buildModelFromXML(rb.to_urdf(ours))
    data = model.createData()
    moving = tuple(name for name, body in zip(ours.link_names, ours.tree.link_bodies, strict=True) if body >= 0)
    mass = float(ours.inertias[:, 0].sum())
    share = float(rb.total_mass(ours)) / mass
    assert_close(mass, pin.computeTotalMass(model))
    assert_close(rb.center_of_mass(ours, Q, links=moving), pin.centerOfMass(model, data, Q, V))
    assert_close(share * rb.com_velocity(ours, Q, V), np.asarray(data.vcom[0]))
    assert_close(share * rb.com_jacobian(ours, Q).ravel(), pin.jacobianCenterOfMass(model, data, Q).ravel())
    assert_close(rb.potential_energy(ours, Q), pin.computePotentialEnergy(model, data, Q))
    assert share == 6.0  # each of the first four would fail without it


def test_order_of_joints(pin):
    b = rb.RobotBuilder("torso").link("base").link("z", 1.0, inertia=0.01).link("a", 1.0, inertia=0.01)
    b = b.link("z hand", 1.0, inertia=0.01).revolute("z joint", "base", "z", lower=-1, upper=1)
    b = b.revolute("a joint", "base", "a", lower=-1, upper=1).revolute("c joint", "z", "z hand", lower=-1, upper=1)
    text = rb.to_urdf(rb.build_model(b))
    assert list(pin.buildModelFromXML(text).names)[1:] == ["a joint", "z joint", "c joint"]
    assert rb.load_urdf_string(text).joint_names == ("z joint", "c joint", "a joint")


@pytest.mark.ci
def test_mimic_joints(pin, gripper: str):
    tied, free = pin.buildModelFromXML(gripper, mimic=True), pin.buildModelFromXML(gripper)
    ours, untied = rb.load_urdf_string(gripper), rb.load_urdf_string(re.sub(r"<mimic[^>]*>", "", gripper))
    assert (tied.nq, free.nq) == (ours.nq, untied.nq) == (1, 2)
    both = np.array([0.3, -0.5])
    assert_close(rb.crba(untied, jnp.asarray(both)), symmetric(pin.crba(free, free.createData(), both)))
    assert_close(rb.crba(ours, Q), columns(pin, tied, Q))
    assert_close(rb.rnea(ours, Q, V, A), pin.rnea(tied, tied.createData(), Q, V, A))
    coriolis = np.asarray(rb.bias_forces(ours, Q, V) - rb.gravity_forces(ours, Q))
    still = pin.computeGeneralizedGravity(tied, tied.createData(), Q)
    want = pin.nonLinearEffects(tied, tied.createData(), Q, V) - still
    assert_close(coriolis, want, 1e-12)
    assert_close(rb.coriolis_matrix(ours, Q, V) @ V, want, 1e-12)


@pytest.mark.slow
def test_what_pinocchio_does_not_do_with_mimic_joints(pin, gripper: str):
    if not pin.__version__.startswith("4.1."):
        pytest.skip("the page speaks of Pinocchio 4.1")
    tied = pin.buildModelFromXML(gripper, mimic=True)
    data = tied.createData()
    for refused in (
        lambda: pin.aba(tied, data, Q, V, A),
        lambda: pin.computeKineticEnergy(tied, data, Q, V),
        lambda: pin.computePotentialEnergy(tied, data, Q),
        lambda: pin.computeRNEADerivatives(tied, data, Q, V, A),
        lambda: pin.computeABADerivatives(tied, data, Q, V, A),
    ):
        with pytest.raises(RuntimeError, match="does not support Joint Mimic"):
            refused()
    want = pin.nonLinearEffects(tied, data, Q, V).copy()
    want -= pin.computeGeneralizedGravity(tied, tied.createData(), Q)
    assert abs(pin.computeCoriolisMatrix(tied, data, Q, V) @ V - want) > 0.1 * abs(want)
    again, fresh = [], []  # how wrong `crba` is, with the data of the call before and with its own
    for seed, n in ((0, 5), (14, 5), (20, 8)):
        ours = rb.with_armature(random_tree(seed, ("revolute", "prismatic"), n, mimics=2 if n == 5 else 3), 0.0)
        model = pin.buildModelFromXML(rb.to_urdf(ours), mimic=True)
        q = np.linspace(0.1, 0.5, model.nq)
        want, data = columns(pin, model, q), model.createData()
        wrong = [np.abs(symmetric(pin.crba(model, data, q)) - want).max() / np.abs(want).max() for _ in range(2)]
        fresh.append(wrong[0])
        again.append(wrong[1])
        owners = [n for n, mimic in zip(ours.joint_names, ours.tree.mimics, strict=True) if mimic is None]
        at = [owners.index(n) for n in model.names if n in owners]  # each has one coordinate
        assert_close(np.asarray(rb.crba(ours, jnp.asarray(q[np.argsort(at)])))[np.ix_(at, at)], want, 1e-12)
    assert fresh[0] < 1e-12 < min(again[0], fresh[1], fresh[2])


@pytest.mark.parametrize("axis", ["0 0 1", "1 0 0"])
def test_a_planar_joint_of_a_file_is_that_of_pinocchio_if_its_axis_is_z(pin, axis):
    file = (
        '<robot name="table"><link name="base"/><link name="top"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="slide" type="planar">'
        f'<parent link="base"/><child link="top"/><axis xyz="{axis}"/></joint></robot>'
    )
    ours, theirs = rb.load_urdf_string(file), pin.buildModelFromXML(file)
    q = jnp.array([0.1, 0.2, 0.3])
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, np.asarray(rb.compat.pinocchio.q_to_pinocchio(ours, q)))
    pose = data.oMf[theirs.getFrameId("top")].homogeneous
    in_plane = [[np.cos(0.3), -np.sin(0.3), 0, 0.1], [np.sin(0.3), np.cos(0.3), 0, 0.2], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert_close(pose, np.array(in_plane))
    assert np.allclose(rb.link_pose(ours, q, "top"), pose) == (axis == "0 0 1")
