"""MJCF through MuJoCo: poses, mass matrix and forces of the Model equal those of the model that it was made from."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import MissingExtraError, ParseError, crba, damping_forces, fk, gravity_forces, rnea
from rbydyn_jax.io import from_mujoco, load_mjcf
from tests.helpers import BATCH, X64, assert_close

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco model="lamp"><compiler angle="degree"/><option gravity="0.1 0.3 -9"/><worldbody>
<geom type="plane" size="1 1 1"/>
<body name="a" pos="0.1 0.2 0.3" euler="10 20 30">
  <joint name="h1" axis="0 1 1" pos="0.05 0 0.02" range="-40 50" armature="0.1" damping="0.2" frictionloss="0.3" ref="20"/>
  <joint name="s1" type="slide" axis="1 0 1" pos="0 0.1 0" ref="0.2" range="-1 1" actuatorfrcrange="-30 30"/>
  <joint name="h2" axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.05" contype="2" conaffinity="5"/>
  <body name="b" pos="0.4 0 0"><joint name="ball" type="ball" pos="0.1 0 0" armature="0.02"/>
    <geom type="sphere" size="0.1" pos="0.1 0.1 0"/>
    <body pos="0 0 0.1" quat="1 1 0 0"><geom type="box" size="0.1 0.2 0.3" contype="0" conaffinity="0"/></body>
    <body name="c" pos="0 0.1 0"><joint name="s2" type="slide" axis="0 0 1" stiffness="3"/><geom type="box" size="0.1 0.1 0.1"/></body>
  </body>
</body></worldbody>
<actuator><motor joint="h1"/></actuator></mujoco>"""  # noqa: E501

FLOATER = """<mujoco model="float"><worldbody>
<body name="torso" pos="1 1 1" euler="10 20 30"><freejoint name="free"/><geom type="ellipsoid" size=".1 .2 .3" pos=".1 .2 .3"/>
  <body name="leg" pos="0 0 0.3"><joint name="hip" axis="0 1 0" pos="0 0 0.1"/><geom type="box" size="0.1 0.2 0.3" pos="0 0 -0.2"/></body>
</body></worldbody></mujoco>"""  # noqa: E501


def samples(rng, mj):
    """Random configurations in MuJoCo's coordinates with quaternions of unit length, velocities and accelerations."""
    q = rng.uniform(-1, 1, (BATCH, mj.nq))
    for joint in range(mj.njnt):
        at = int(mj.jnt_qposadr[joint]) + (3 if mj.jnt_type[joint] == 0 else 0)
        if mj.jnt_type[joint] < 2:
            q[:, at : at + 4] /= np.linalg.norm(q[:, at : at + 4], axis=1, keepdims=True)
    return q, rng.normal(size=(BATCH, mj.nv)), rng.normal(size=(BATCH, mj.nv))


def reference(mj, q, v, a):
    """Poses of all bodies, mass matrix and M a + bias, by MuJoCo."""
    data, poses, masses, forces = mujoco.MjData(mj), [], [], []
    for qi, vi, ai in zip(q, v, a, strict=True):
        data.qpos[:], data.qvel[:] = qi, vi
        mujoco.mj_forward(mj, data)
        T = np.tile(np.eye(4), (mj.nbody, 1, 1))
        T[:, :3, :3], T[:, :3, 3] = data.xmat.reshape(-1, 3, 3), data.xpos
        M = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, data, M)
        poses.append(T)
        masses.append(M)
        forces.append(M @ ai + data.qfrc_bias)
    return np.array(poses), np.array(masses), np.array(forces)


@pytest.mark.slow
def test_arm_with_several_joints_a_body():
    mj = mujoco.MjModel.from_xml_string(ARM)
    model = from_mujoco(mj)
    assert model.joint_names == ("h1", "s1", "h2", "ball", "s2")
    q, v, a = samples(np.random.default_rng(0), mj)
    poses, masses, forces = reference(mj, q, v, a)
    dtype = model.inertias.dtype
    q, v, a = (jnp.asarray(x, dtype) for x in (q, v, a))
    names = [mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_BODY, i) or f"body{i}" for i in range(mj.nbody)]
    links = np.array([model.link_index(name) for name in names])
    assert_close(jax.vmap(fk, (None, 0))(model, q)[:, links], poses)
    assert_close(jax.vmap(crba, (None, 0))(model, q), masses)
    assert_close(jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a), forces)


@pytest.mark.slow
def test_free_joint():
    mj = mujoco.MjModel.from_xml_string(FLOATER)
    model = from_mujoco(mj)
    q, v, a = samples(np.random.default_rng(1), mj)
    poses, masses, forces = reference(mj, q, 0 * v, 0 * a)
    # ours: [w, x, y, z, p, hip] and [omega; v] in body axes; MuJoCo: [p, w, x, y, z, hip] and [v in world axes, omega]
    ours = jnp.asarray(np.concatenate([q[:, 3:7], q[:, :3], q[:, 7:]], axis=1), model.inertias.dtype)
    X = np.zeros((BATCH, 7, 7))
    X[:, :3, 3:6] = poses[:, 1, :3, :3]
    X[:, 3:6, :3] = np.eye(3)
    X[:, 6, 6] = 1.0
    names = ("world", "torso", "leg")
    links = np.array([model.link_index(name) for name in names])
    assert_close(jax.vmap(fk, (None, 0))(model, ours)[:, links], poses)
    assert_close(jax.vmap(crba, (None, 0))(model, ours), X.transpose(0, 2, 1) @ masses @ X)
    assert_close(jax.vmap(gravity_forces, (None, 0))(model, ours), (X.transpose(0, 2, 1) @ forces[:, :, None])[:, :, 0])


def test_what_belongs_to_joints_and_contacts():
    mj = mujoco.MjModel.from_xml_string(ARM)
    model = from_mujoco(mj)
    dtype = np.float64 if X64 else np.float32
    np.testing.assert_allclose(model.gravity, np.array([0.1, 0.3, -9.0], dtype))
    np.testing.assert_allclose(model.armature, mj.dof_armature.astype(dtype))
    np.testing.assert_allclose(model.friction, mj.dof_frictionloss.astype(dtype))
    np.testing.assert_allclose(model.damping[0], 0.2, rtol=1e-6)
    np.testing.assert_allclose(model.position_lower[:3], np.array([np.radians(-40), -1, -np.inf], dtype), rtol=1e-6)
    np.testing.assert_allclose(model.position_upper[:2], np.array([np.radians(50), 1], dtype), rtol=1e-6)
    np.testing.assert_allclose(model.effort_limit[:3], np.array([np.inf, 30, np.inf], dtype))
    assert [model.link_names[i] for i in model.tree.shape_links] == ["a", "b", "c"]
    assert (model.tree.shape_coltypes, model.tree.shape_colaffinities) == ((2, 1, 1), (5, 1, 1))
    ends = np.sort(np.asarray(model.capsule_segments[0]), axis=0)
    np.testing.assert_allclose(ends, [[0, 0, 0], [0.1, 0.2, 0.3]], atol=1e-6)
    assert_close(np.asarray(model.capsule_radii), [0.05, 0.1])
    noted = " ".join(str(finding) for finding in model.report)
    for what in ("actuator ", "1 of kind 'collision shape", ": a spring of "):
        assert noted.count(what) == 1


@pytest.mark.parametrize(("limits", "effort"), [("-1 5", 1.0), ("-5 1", 1.0), ("0 5", 5.0), ("-5 0", 5.0)])
def test_an_effort_that_differs_between_directions_is_the_smaller(limits, effort):
    xml = f'<joint name="j" actuatorfrcrange="{limits}"/><joint name="k" axis="1 0 0" actuatorfrcrange="-2 2"/>'
    xml = f'<mujoco><worldbody><body>{xml}<geom size="0.1"/></body></worldbody></mujoco>'
    model = from_mujoco(mujoco.MjModel.from_xml_string(xml))
    assert_close(model.effort_limit, [effort, 2.0])
    between = limits.replace(" ", " to ")
    message = f"actuatorfrcrange is {between}: the effort limit is {effort:g} in both directions"
    assert [(x.level, x.element, x.message) for x in model.report] == [("warning", "joint 'j'", message)]


HELD = """<mujoco><worldbody>
  <body name="a"><joint name="j" stiffness="3" springref="90"/><geom size="0.1"/>
    <body name="b"><joint name="k" type="ball" stiffness="2" range="0 90"/><geom size="0.1"/>
      <site name="tip"/></body></body>
  <body name="c" gravcomp="0.5"><joint name="s" type="slide" stiffness="5"/><geom size="0.1"/></body></worldbody>
  <option density="1000" viscosity="0.2"/>
  <equality><joint name="gear" joint1="j" joint2="s" polycoef="0.1 2 0 0 0"/><joint joint1="s"/>
    <connect name="pin" body1="a" body2="c" anchor="0 0 0"/><weld body1="b" body2="c"/></equality>
  <tendon><fixed name="rope"><joint joint="j" coef="1"/></fixed></tendon>
  <sensor><jointpos name="encoder" joint="j"/></sensor>
  <actuator><motor name="m" joint="j"/><position joint="s" kp="3"/><motor name="winch" tendon="rope"/>
    <motor name="jet" site="tip" gear="1 0 0 0 0 0"/></actuator></mujoco>"""


def test_what_is_not_used_is_named():
    noted = [
        f"{finding.element}: {finding.message}" for finding in from_mujoco(mujoco.MjModel.from_xml_string(HELD)).report
    ]
    assert noted == [
        "actuator 'm': on joint 'j', not used",
        "actuator 'actuator1': on joint 's', not used",
        "actuator 'winch': on tendon 'rope', not used",
        "actuator 'jet': on site 'tip', not used",
        "equality 'gear': joint 'j' is a polynomial of joint 's', coefficients 0.1 2 0 0 0, not used",
        "equality 'equality1': joint 's' is a polynomial, coefficients 0 1 0 0 0, not used",
        "equality 'pin': connect of body 'a' and body 'c', not used",
        "equality 'equality3': weld of body 'b' and body 'c', not used",
        "joint 'j': a spring of 3 N m/rad about 1.5708 rad, not used",
        "joint 'k': a spring of stiffness 2, not used",
        "joint 'k': a limit of 1.5708 rad, not used",
        "joint 's': a spring of 5 N/m about 0 m, not used",
        "body 'c': compensation of 0.5 of its weight, not used",
        "option 'density': 1000, not used",
        "option 'viscosity': 0.2, not used",
        "tendon 'rope': not used",
        "sensor 'encoder': not used",
    ]


def test_polynomials_beyond_their_first_coefficient_are_named():
    if not hasattr(mujoco.MjModel, "dof_dampingpoly"):
        pytest.skip("this MuJoCo has none")
    text = PENDULUM.format("", 'damping="1 2 3" stiffness="0 4"')
    model = from_mujoco(mujoco.MjModel.from_xml_string(text))
    assert model.damping.tolist() == [1.0]
    assert [finding.message for finding in model.report] == [
        "a spring of 0 N m/rad about 0 rad, further coefficients 4 0, not used",
        "further coefficients of damping 2 3, not used",
    ]
    still = mujoco.MjModel.from_xml_string(PENDULUM.format('<flag damper="disable"/>', 'damping="1 2 3"'))
    assert not from_mujoco(still).report


PENDULUM = """<mujoco><option>{}</option><worldbody>
  <body><joint name="h" axis="0 1 0" {}/><geom size="0.1" pos="0.5 0 0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("flag", ["gravity", "damper", "frictionloss", "constraint"])
def test_what_a_flag_disables_is_zero(flag):
    if flag == "damper" and not hasattr(mujoco.mjtDisableBit, "mjDSBL_DAMPER"):
        flag = "passive"
    text = PENDULUM.format(f'<flag {flag}="disable"/>', 'damping="0.7" frictionloss="0.3"')
    mj = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    data.qvel[:] = 2.0
    mujoco.mj_forward(mj, data)
    model = from_mujoco(mj)
    q, v = jnp.zeros(1), jnp.full(1, 2.0)
    assert_close(rnea(model, q, v, 0.0 * v) - damping_forces(model, v), data.qfrc_bias - data.qfrc_passive)
    assert (model.friction[0] > 0.0) == (data.nefc > 0)


def test_a_file_is_read_with_options_and_a_broken_one_refused(tmp_path):
    path = tmp_path / "lamp.xml"
    path.write_text(ARM)
    assert load_mjcf(path, base_link="b").joint_names == ("s2",)
    assert load_mjcf(path, joint_order=("s2", "ball", "h2", "s1", "h1")).joint_names[0] == "s2"
    with pytest.raises(ParseError, match="no such file"):
        load_mjcf(tmp_path / "none.xml")
    path.write_text("<mujoco><worldbdy/></mujoco>")
    with pytest.raises(ParseError, match="MuJoCo refuses it"):
        load_mjcf(path)


@pytest.mark.parametrize("before", ["", "<?xml version='1.0'?>\n", "\ufeff<!-- a > --><!-- <mujoco> -->\n<!-- b -->\n"])
def test_urdf_is_refused(before, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(f'{before}<robot name="r"><link name="a"/></robot>', encoding="utf-8")
    line = 1 + before.count("\n")
    with pytest.raises(ParseError, match=rf"arm.urdf:{line}: error: the root element is <robot>.*use load_urdf"):
        load_mjcf(path)
    path.write_text(f'{before}<mujoco model="robot"><!-- <robot> --></mujoco>', encoding="utf-8")
    assert load_mjcf(path).name == "robot"
    path.write_text("<!-- a -->" * 5000 + "<mujoco/>", encoding="utf-8")
    assert load_mjcf(path).nq == 0


def test_missing_package_names_the_extra(monkeypatch, tmp_path):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"rbydyn_jax\[mjcf\]"):
        load_mjcf(tmp_path / "lamp.xml")


def test_a_free_joint_has_no_armature():
    """Turning axes would need a force for it: MuJoCo's body that no force acts on does not accelerate."""
    text = FLOATER.replace('<freejoint name="free"/>', '<joint type="free" name="free" armature="0.5"/>')
    model = from_mujoco(mujoco.MjModel.from_xml_string(text))
    assert not model.armature.any()
    assert ("joint 'free'", "armature 0.5, not used") in [(x.element, x.message) for x in model.report]


def test_names_that_are_made_differ_from_those_that_are_given():
    text = """<mujoco><worldbody><body name="body2"><joint name="joint1"/><geom type="sphere" size=".1"/>
      <body name="body2:j"><joint/><geom type="box" size=".1 .1 .1"/>
        <body name="last"><joint name="j"/><joint name="j2" pos=".1 0 0"/><geom type="sphere" size=".1"/></body>
        <body><joint name="last_fixed"/><geom type="sphere" size=".1"/></body>
    </body></body></worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text)
    model = from_mujoco(mj)
    assert len(set(model.link_names)) == len(model.link_names)
    assert len(set(model.joint_names)) == len(model.joint_names)
    rng = np.random.default_rng(0)
    q, v, a = samples(rng, mj)
    assert_close(jax.vmap(crba, (None, 0))(model, jnp.asarray(q)), reference(mj, q, v, a)[1])
