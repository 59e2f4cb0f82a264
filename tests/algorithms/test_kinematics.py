"""Kinematics against pinocchio, rby1_sdk and their own time derivatives."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from tests.helpers import X64, assert_close, oracle
from tests.oracles.conventions import float64

from .cases import MORE_ROBOTS, ROBOTS, along, compare, pin_robot, robot, run, states, tips

FRAMES = ("local", "world", "world_aligned")
every_robot = pytest.mark.parametrize("name", ROBOTS)
every_frame = pytest.mark.parametrize("frame", FRAMES)
float32 = pytest.mark.float32


@float32
@pytest.mark.parametrize("name", ROBOTS + MORE_ROBOTS)
def test_fk(name):
    model = robot(name)
    compare(lambda q: rb.fk(model, q), pin_robot(name).fk, states(name).q)


@every_robot
def test_link_pose_is_a_row_of_fk(name):
    model, (one, other), q = robot(name), tips(name), states(name).q
    poses = run(lambda q: rb.fk(model, q), q)
    i, j = model.link_index(one), model.link_index(other)
    assert_close(run(lambda q: rb.link_pose(model, q, one), q), poses[:, i])
    assert_close(run(lambda q: rb.link_pose(model, q, i), q), poses[:, i])
    relative = np.linalg.inv(float64(poses[:, j])) @ float64(poses[:, i])
    assert_close(run(lambda q: rb.link_pose(model, q, one, other), q), relative)
    assert_close(run(lambda q: rb.link_pose(model, q, one, one), q), np.tile(np.eye(4), (len(q), 1, 1)))


@float32
@every_frame
@pytest.mark.parametrize("name", ROBOTS + ("anymal", "rby1m"))
def test_jacobian(name, frame):
    model, link = robot(name), tips(name)[0]
    twin = pin_robot(name)
    compare(lambda q: rb.jacobian(model, q, link, frame=frame), lambda q: twin.jacobian(q, link, frame), states(name).q)


def test_jacobian_of_the_root_is_zero():
    model = robot("rby1a")
    assert not rb.jacobian(model, states("rby1a").q[0], model.link_names[0]).any()


def _relative(twin, q, link, ref, frame):
    """The Jacobian of `link` in `ref` from absolute ones: the difference at one point, then the wanted axes."""
    names = list(twin.ours.link_names)
    poses = twin.fk(q)
    T_ref, T_link = poses[names.index(ref)], poses[names.index(link)]
    difference = twin.jacobian(q, link, "world") - twin.jacobian(q, ref, "world")
    axes, origin = {
        "local": (T_link[:3, :3], T_link[:3, 3]),
        "world": (T_ref[:3, :3], T_ref[:3, 3]),
        "world_aligned": (T_ref[:3, :3], T_link[:3, 3]),
    }[frame]
    w, v = difference[:3], difference[3:]
    return np.concatenate([axes.T @ w, axes.T @ (v + np.cross(w, origin, axisa=0, axisc=0))])


@every_frame
@every_robot
def test_jacobian_relative_to_a_link(name, frame):
    model, (link, ref), twin = robot(name), tips(name), pin_robot(name)
    compare(
        lambda q: rb.jacobian(model, q, link, ref=ref, frame=frame),
        lambda q: _relative(twin, q, link, ref, frame),
        states(name).q,
    )


@float32
@every_frame
@every_robot
def test_link_velocity(name, frame):
    model, link, twin, s = robot(name), tips(name)[0], pin_robot(name), states(name)
    compare(
        lambda q, v: rb.link_velocity(model, q, v, link, frame=frame),
        lambda q, v: twin.velocity(q, v, link, frame),
        s.q,
        s.v,
    )


@every_frame
@every_robot
def test_link_velocity_relative_is_jacobian_times_v(name, frame):
    model, (link, ref), s = robot(name), tips(name), states(name)
    want = run(lambda q, v: rb.jacobian(model, q, link, ref=ref, frame=frame) @ v, s.q, s.v)
    assert_close(run(lambda q, v: rb.link_velocity(model, q, v, link, ref=ref, frame=frame), s.q, s.v), want)


@float32
@every_frame
@every_robot
def test_link_acceleration(name, frame):
    model, link, twin, s = robot(name), tips(name)[0], pin_robot(name), states(name)
    compare(
        lambda q, v, a: rb.link_acceleration(model, q, v, a, link, frame=frame),
        lambda q, v, a: twin.acceleration(q, v, a, link, frame),
        s.q,
        s.v,
        s.a,
    )


@every_frame
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", ["rby1a", "every_type"])
def test_link_acceleration_is_the_rate_of_link_velocity(name, relative, frame):
    model, (link, ref), s = robot(name), tips(name), states(name)
    ref = ref if relative else None

    def velocity(q, v):
        return rb.link_velocity(model, q, v, link, ref=ref, frame=frame)

    want = run(lambda q, v, a: along(model, velocity, q, v, (v, a))[1], *s[:3])
    got = run(lambda q, v, a: rb.link_acceleration(model, q, v, a, link, ref=ref, frame=frame), *s[:3])
    assert_close(got, want)


@every_frame
@every_robot
def test_jacobian_dot(name, frame):
    model, link, s, twin = robot(name), tips(name)[0], states(name), pin_robot(name)
    got = run(lambda q, v: rb.jacobian_dot(model, q, v, link, frame=frame), s.q, s.v)
    if frame == "local" or frame == "world":
        rows = zip(np.asarray(s.q), np.asarray(s.v), strict=True)
        assert_close(got, np.stack([twin.jacobian_dot(q, v, link, frame) for q, v in rows]))
    want = run(lambda q, v: along(model, lambda q: rb.jacobian(model, q, link, frame=frame), q, v)[1], s.q, s.v)
    assert_close(got, want)


@every_frame
@pytest.mark.parametrize("relative", [False, True])
@every_robot
def test_jacobian_dot_v_completes_the_acceleration(name, relative, frame):
    """a_link = J a + (dJ/dt) v."""
    model, (link, ref), s = robot(name), tips(name), states(name)
    options = {"ref": ref if relative else None, "frame": frame}

    def acceleration(q, v, a):
        return rb.jacobian(model, q, link, **options) @ a + rb.jacobian_dot_v(model, q, v, link, **options)

    want = run(lambda q, v, a: rb.link_acceleration(model, q, v, a, link, **options), *s[:3])
    assert_close(run(acceleration, *s[:3]), want)
    product = run(lambda q, v: rb.jacobian_dot(model, q, v, link, **options) @ v, s.q, s.v)
    assert_close(run(lambda q, v: rb.jacobian_dot_v(model, q, v, link, **options), s.q, s.v), product)


@pytest.mark.parametrize("name", ROBOTS)
def test_hessian_is_the_derivative_of_the_jacobian(name):
    """H[i, :, j] = d J[:, j] / d q_i, by central differences of the oracle's Jacobian along each velocity."""
    if not X64:
        pytest.skip("finite differences need float64")
    model, link, twin, q = robot(name), tips(name)[0], pin_robot(name), states(name).q[:5]
    got = run(lambda q: rb.hessian(model, q, link), q)
    step, want = 1e-5, np.zeros((len(q), model.nv, 6, model.nv))
    for i in range(model.nv):
        direction = step * jnp.eye(model.nv)[i]
        ahead = np.asarray(run(lambda q, dv: rb.integrate(model, q, dv), q, jnp.tile(direction, (len(q), 1))))
        behind = np.asarray(run(lambda q, dv: rb.integrate(model, q, dv), q, jnp.tile(-direction, (len(q), 1))))
        for k in range(len(q)):
            want[k, i] = (twin.jacobian(ahead[k], link) - twin.jacobian(behind[k], link)) / (2 * step)
    assert_close(got, want, kind="difference")


@every_frame
@pytest.mark.parametrize("name", ["rby1a", "every_type", "mimic"])
def test_hessian_contracts_to_the_bias(name, frame):
    """v . H . v = (dJ/dt) v, Jacobians of quaternion joints included."""
    model, link, s = robot(name), tips(name)[0], states(name)
    got = run(lambda q, v: jnp.einsum("i,iaj,j->a", v, rb.hessian(model, q, link, frame=frame), v), s.q, s.v)
    assert_close(got, run(lambda q, v: rb.jacobian_dot_v(model, q, v, link, frame=frame), s.q, s.v))


@every_robot
def test_point_jacobian_is_the_velocity_of_a_point(name):
    model, link, s = robot(name), tips(name)[0], states(name)
    point = jnp.array([0.1, -0.2, 0.3], s.q.dtype)

    def place(q):
        T = rb.link_pose(model, q, link)
        return T[:3, :3] @ point + T[:3, 3]

    want = run(lambda q, v: along(model, place, q, v)[1], s.q, s.v)
    assert_close(run(lambda q, v: rb.point_jacobian(model, q, link, point) @ v, s.q, s.v), want)


@every_robot
def test_point_hessian_is_the_acceleration_of_a_point(name):
    model, link, s = robot(name), tips(name)[0], states(name)
    point = jnp.array([0.1, -0.2, 0.3], s.q.dtype)

    def place(q):
        T = rb.link_pose(model, q, link)
        return T[:3, :3] @ point + T[:3, 3]

    def velocity(q, v):
        return along(model, place, q, v)[1]

    def predicted(q, v, a):
        H = rb.point_hessian(model, q, link, point)
        return rb.point_jacobian(model, q, link, point) @ a + jnp.einsum("i,iaj,j->a", v, H, v)

    want = run(lambda q, v, a: along(model, velocity, q, v, (v, a))[1], *s[:3])
    assert_close(run(predicted, *s[:3]), want)


@every_robot
def test_quaternion_jacobian_is_the_rate_of_the_pose(name):
    """xi_dot = 1/2 (0, w) xi, with w in world axes and the scalar of xi not negative; then the origin's velocity."""
    model, link, twin, s = robot(name), tips(name)[0], pin_robot(name), states(name)
    index = model.link_index(link)

    def want(q, v):
        x, y, z, w = Rotation.from_matrix(twin.fk(q)[index, :3, :3]).as_quat(canonical=True)
        omega, speed = np.split(twin.velocity(q, v, link), 2)
        return np.concatenate([[-omega @ [x, y, z] / 2], (w * omega + np.cross(omega, [x, y, z])) / 2, speed])

    compare(lambda q, v: rb.quaternion_jacobian(model, q, link) @ v, want, s.q, s.v)


@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_kinematics_of_rby1_against_the_sdk(name):
    oracle("rby1_sdk")
    from tests.oracles.rby1_oracle import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    base, right, left = model.link_names[0], "ee_right", "ee_left"
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, base)
    compare(lambda q: rb.fk(model, q), lambda q: sdk.fk(q, base, model.link_names), s.q)
    for ref in (base, left):
        compare(
            lambda q, r=ref: rb.jacobian(model, q, right, ref=r, frame="local"),
            lambda q, r=ref: sdk.body_jacobian(q, r, right),
            s.q,
        )
        compare(
            lambda q, r=ref: rb.jacobian(model, q, right, ref=r, frame="world"),
            lambda q, r=ref: sdk.space_jacobian(q, r, right),
            s.q,
        )
    compare(
        lambda q, v: rb.link_velocity(model, q, v, right, ref=left, frame="local"),
        lambda q, v: sdk.body_velocity(q, v, left, right),
        s.q,
        s.v,
    )
