"""Published golden cases: numbers worked out with other programs, on two small robots and two textbook mechanisms.

The cases print ten decimals, so they are held to 1e-9 of the result.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax.engines.conventions import swap_rows
from rbydyn_jax.io import Inertial, JointDescription, LinkDescription, RobotDescription, build_model
from tests.helpers import X64, assert_close

pytestmark = pytest.mark.skipif(not X64, reason="ten decimals need float64")
DECIMALS = 1e-9


def _pose(xyz, rpy=(0.0, 0.0, 0.0)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return T


def _link(name, mass=None, com=None, xx=0.0, xy=0.0, xz=0.0, yy=0.0, yz=0.0, zz=0.0):
    if mass is None:
        return LinkDescription(name)
    return LinkDescription(name, Inertial(mass, np.array(com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])))


def _joint(name, kind, parent, child, axis, xyz, rpy=(0.0, 0.0, 0.0)):
    return JointDescription(name, kind, parent, child, origin=_pose(xyz, rpy), axis=np.array(axis, float))


@pytest.fixture(scope="module")
def arm3():
    links = (
        _link("base"),
        _link("l1", 2.0, (0.05, -0.02, 0.10), 0.03, 0.002, -0.001, 0.04, 0.003, 0.02),
        _link("l2", 1.5, (0.15, 0.03, -0.01), 0.01, -0.001, 0.002, 0.03, 0.0005, 0.025),
        _link("l3", 0.8, (0.02, 0.01, 0.04), 0.004, 0.0003, -0.0002, 0.005, 0.0001, 0.003),
        _link("tool"),
    )
    joints = (
        _joint("j1", "revolute", "base", "l1", (0, 0, 1), (0.1, 0.0, 0.3), (0.1, -0.2, 0.3)),
        _joint("j2", "revolute", "l1", "l2", (0, 1, 0), (0.0, 0.05, 0.25), (-0.4, 0.0, 0.2)),
        _joint("j3", "prismatic", "l2", "l3", (1, 0, 0), (0.3, 0.0, 0.0), (0.0, 0.0, 0.5)),
        _joint("jt", "fixed", "l3", "tool", (1, 0, 0), (0.1, 0.0, 0.05), (0.3, 0.2, -0.1)),
    )
    return build_model(RobotDescription("arm3", links, joints))


@pytest.fixture(scope="module")
def tree():
    """A trunk on a floating joint with a two-joint and a one-joint arm."""
    links = (
        _link("world"),
        _link("trunk", 5.0, (0.01, 0.02, 0.15), 0.10, 0.004, -0.003, 0.12, 0.002, 0.07),
        _link("la", 1.2, (0.0, 0.12, 0.01), 0.012, 0.0004, 0.0, 0.004, 0.0002, 0.011),
        _link("lb", 0.7, (0.09, 0.0, -0.02), 0.001, 0.0, 0.0001, 0.004, 0.0, 0.004),
        _link("ra", 1.1, (0.0, -0.11, 0.02), 0.011, -0.0003, 0.0, 0.004, -0.0002, 0.010),
    )
    joints = (
        _joint("free", "floating", "world", "trunk", (1, 0, 0), (0.0, 0.0, 0.0)),
        _joint("ja", "revolute", "trunk", "la", (1, 0, 0), (0, 0.2, 0.3), (0.1, 0, 0)),
        _joint("jb", "revolute", "la", "lb", (0, 0.6, 0.8), (0, 0.25, 0), (0, 0.2, 0)),
        _joint("jr", "revolute", "trunk", "ra", (0, 1, 0), (0, -0.2, 0.3), (-0.1, 0, 0.2)),
    )
    return build_model(RobotDescription("tree", links, joints))


Q, V, A = (jnp.array(x) for x in ((0.4, -0.7, 0.2), (0.9, -0.5, 0.3), (-0.4, 0.8, 0.6)))


def test_tool_pose(arm3):
    T = np.asarray(rb.link_pose(arm3, Q, "tool"))
    assert_close(T[:3, 3], [-0.0120320072, 0.4369912574, 0.9283979587], DECIMALS)
    xyzw = Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True)
    assert_close(xyzw, [-0.0409965245, -0.3156890558, 0.6166675598, 0.7199866844], DECIMALS)
    assert_close(T[0], [0.0401230814, -0.8621005553, -0.5051462867, -0.0120320072], DECIMALS)


def test_tool_jacobian(arm3):
    """The cases list linear rows first."""
    linear_first = [
        [-0.5227834851, 0.4197374427, -0.1739499035],
        [-0.0091181665, 0.2706648163, 0.8748511307],
        [-0.0868620328, -0.2652159522, 0.4520806678],
        [-0.1593450793, -0.6628178571, 0.0],
        [-0.153791998, 0.6274099088, 0.0],
        [0.9751703272, -0.4086921759, 0.0],
    ]
    assert_close(rb.jacobian(arm3, Q, "tool"), swap_rows(linear_first), DECIMALS)


def test_tool_bias_acceleration(arm3):
    want = swap_rows([-0.4856709271, -1.0052565878, -0.1424202777, 0.2470400729, 0.3201675272, 0.0908598439])
    assert_close(rb.jacobian_dot_v(arm3, Q, V, "tool"), want, DECIMALS)
    H = rb.hessian(arm3, Q, "tool")
    assert_close(jnp.einsum("i,iaj,j->a", V, H, V), want, DECIMALS)


def test_tool_hessian(arm3):
    H = np.asarray(rb.hessian(arm3, Q, "tool"))
    column = [-0.2231562063, 0.3670546424, 0.0214231533, -0.5489779398, -0.7114833937, -0.2019107642]
    assert_close(H[0, :, 1], swap_rows(column), DECIMALS)
    assert_close(H[1, :3, 0], np.zeros(3), DECIMALS, scale=1.0)
    assert_close(H[0, 3:, 2], [-0.9226552525, -0.0975939545, -0.166155326], DECIMALS)
    assert_close(H[1, 3:, 2], [0.6411847028, 0.3707391041, -0.4707290586], DECIMALS)


def test_arm_dynamics(arm3):
    M = [
        [0.2650467745, -0.1566068249, 0.0343279957],
        [-0.1566068249, 0.26093172, 0.028082642],
        [0.0343279957, 0.028082642, 0.8],
    ]
    c, g = [0.1878898186, -0.3073895672, -0.5948947512], [-0.9051109752, -3.116251609, 3.5479290813]
    tau = [-0.9279285288, -3.1354034851, 3.4417692453]
    assert_close(rb.crba(arm3, Q), M, DECIMALS)
    assert_close(rb.gravity_forces(arm3, Q), g, DECIMALS)
    assert_close(rb.bias_forces(arm3, Q, V) - rb.gravity_forces(arm3, Q), c, DECIMALS)
    assert_close(rb.rnea(arm3, Q, V, A), tau, DECIMALS)
    assert_close(rb.aba(arm3, Q, V, jnp.array(tau)), A, 1e-8)  # ten decimals of tau, through the inverse of M


@pytest.mark.slow
def test_arm_momentum_energy_and_centre_of_mass(arm3):
    momentum = [-0.0453474651, -0.6867385365, 0.2864616026, -0.8554776364, 0.156493933, 0.1842920134]
    A_matrix = [
        [-0.0718837621, -0.3270539058, -0.4805967736],
        [-0.5077210729, 0.3855628001, -0.1233605698],
        [0.2230023906, -0.1392383293, 0.0538009548],
        [-0.6527143898, 0.4525734174, -0.1391599228],
        [0.0912505103, 0.2711915953, 0.6998809045],
        [-0.0922641157, -0.3176607145, 0.3616645343],
    ]
    com_jacobian = [
        [-0.1517940441, 0.1052496319, -0.0323627727],
        [0.0212210489, 0.0630678129, 0.1627630011],
        [-0.0214567711, -0.0738745848, 0.0841080312],
    ]
    assert_close(rb.momentum(arm3, Q, V), momentum, DECIMALS)
    assert_close(rb.momentum_matrix(arm3, Q), A_matrix, DECIMALS)
    assert_close(rb.kinetic_energy(arm3, Q, V), 0.251489642418, 1e-11)
    assert_close(rb.potential_energy(arm3, Q), 24.2971792165, 1e-11)
    assert_close(rb.center_of_mass(arm3, Q), [0.0766632268, 0.1121325001, 0.5759945764], DECIMALS)
    assert_close(rb.com_jacobian(arm3, Q), com_jacobian, DECIMALS)
    assert_close(rb.com_acceleration(arm3, Q, V, A), [0.0229114951, -0.118316589, -0.0446024987], DECIMALS)


@pytest.mark.slow
def test_arm_momentum_rate(arm3):
    """About the world origin, without gravity; the wrench of weight and inertia lacks it."""
    rate = [0.3215526313, 0.0862740845, -0.0407518331, 0.098519429, -0.5087613326, -0.1917907442]
    com, weight = [0.0766632268, 0.1121325001, 0.5759945764], [0.0, 0.0, -4.3 * 9.81]
    got = rb.centroidal_momentum_rate(arm3, Q, V, A)
    assert_close(got[3:], rate[3:], DECIMALS)
    assert_close(got[:3] + np.cross(com, rate[3:]), rate[:3], DECIMALS)
    want = np.concatenate([np.cross(com, weight), weight]) - rate
    assert_close(rb.gravito_inertial_wrench(arm3, Q, V, A, jnp.zeros(3)), want, DECIMALS)


def test_arm_with_a_wrench_on_its_second_link(arm3):
    """The wrench is given about the world's origin in world axes: take it to the body's origin and axes."""
    n, f = np.array([0.3, -0.2, 0.5]), np.array([2.0, -1.0, 4.0])
    T = np.asarray(rb.link_pose(arm3, Q, "l2"))
    body = T[:3, :3].T @ (n - np.cross(T[:3, 3], f))
    f_ext = np.zeros((3, 6))
    f_ext[1] = np.concatenate([body, T[:3, :3].T @ f])
    assert_close(rb.rnea(arm3, Q, V, A, jnp.asarray(f_ext)), [-1.5745475243, -2.3411769114, 3.4417692453], DECIMALS)


@pytest.mark.slow
def test_floating_tree(tree):
    q = jnp.array([0.9495554075, 0.1324305474, -0.1196472663, 0.2578588953, 0.1, -0.2, 0.9, 0.3, -0.6, 0.4])
    v = jnp.array([0.4, -0.1, 0.3, 0.2, 0.5, -0.3, 0.7, -0.8, 0.2])
    a = jnp.array([0.1, 0.2, -0.3, 0.5, -0.4, 0.6, 0.3, 0.2, -0.1])
    diagonal = [0.9321083581, 0.621648874, 0.424868183, 8.0, 8.0, 8.0, 0.0612745349, 0.0097708, 0.00444]
    tau = [1.3218838001, 4.7607411144, -1.2926047786, 26.9042194175, 12.4259701419, 79.599752741]
    tau += [2.4440509672, -0.0338655043, -0.0126971133]
    g = [0.3977340999, 3.9489068196, -0.9260189772, 23.1924258188, 14.8951948656, 73.4803031741]
    g += [2.1917397278, -0.0001204242, -0.0142960999]
    c = [-0.1863171032, -0.1698334103, 0.0548778758, -0.7737066269, 0.9779731423, 1.230276885]
    c += [0.0148407264, -0.0096743041, -0.0020418799]
    assert tree.joint_names == ("free", "ja", "jb", "jr")
    assert_close(jnp.diag(rb.crba(tree, q)), diagonal, DECIMALS)
    assert_close(rb.rnea(tree, q, v, a), tau, DECIMALS)
    assert_close(rb.gravity_forces(tree, q), g, DECIMALS)
    assert_close(rb.bias_forces(tree, q, v) - rb.gravity_forces(tree, q), c, DECIMALS)


def _swing(masses, coms, lengths, inertias):
    """A chain of joints about y whose links hang along z; `inertias` are about the joint."""
    links, joints, offset = [_link("base")], [], 0.0
    for i, (m, lc, length, about_joint) in enumerate(zip(masses, coms, lengths, inertias, strict=True)):
        central = about_joint - m * lc**2
        links.append(_link(f"l{i}", m, (0.0, 0.0, lc), xx=central, yy=central))
        joints.append(_joint(f"j{i}", "continuous", links[-2].name, links[-1].name, (0, 1, 0), (0, 0, offset)))
        offset = length
    return build_model(RobotDescription("swing", tuple(links), tuple(joints)))


def test_acrobot():
    model = _swing((1.0, 1.0), (-0.5, -1.0), (-1.0, 0.0), (0.333, 1.33))
    q, v, a = jnp.array([0.3, -0.7]), jnp.array([0.5, 1.1]), jnp.array([-0.4, 0.8])
    assert_close(rb.crba(model, q), [[4.1926843746, 2.0948421873], [2.0948421873, 1.33]], DECIMALS)
    assert_close(rb.gravity_forces(model, q), [0.528385903, -3.820193938], DECIMALS)
    assert_close(rb.rnea(model, q, v, a), [2.0153287605, -3.7551852348], DECIMALS)
    assert_close(rb.kinetic_energy(model, q, v), 2.48089874983, 1e-11)


def test_two_thin_rods():
    m, length = 2.0, 0.2
    model = _swing((m, m), (length / 2,) * 2, (length, 0.0), (m * length**2 / 3,) * 2)
    assert_close(
        rb.crba(model, jnp.array([0.4, 1.1])), [[0.169621023, 0.0448105115], [0.0448105115, 0.0266666667]], DECIMALS
    )


def test_rates_of_a_planar_joint():
    links = (_link("base"), _link("cart", 1.0, (0, 0, 0), 1.0, yy=1.0, zz=1.0))
    model = build_model(RobotDescription("cart", links, (_joint("p", "planar", "base", "cart", (0, 0, 1), (0, 0, 0)),)))
    q, v = jnp.array([0.4, -0.3, 0.9]), jnp.array([1.0, 2.0, 0.5])
    assert_close(rb.qdot_from_v(model, q, v), [-0.945043851, 2.0265468462, 0.5], DECIMALS)


def test_rates_of_a_sin_cos_joint():
    links = (_link("base"), _link("bob", 1.0, (0, 0, 0), 1.0, yy=1.0, zz=1.0))
    joint = _joint("p", "sin_cos_revolute", "base", "bob", (0, 0, 1), (0, 0, 0))
    model = build_model(RobotDescription("bob", links, (joint,)))
    q, v = jnp.array([np.sin(0.8), np.cos(0.8)]), jnp.array([1.5])
    assert_close(rb.qdot_from_v(model, q, v), [1.045060064, -1.0760341363], DECIMALS)
