"""Kinematics against pinocchio, rby1_sdk and their own time derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax.algorithms.jacobians import pose_and_jacobian
from rbydyn_jax.engines.conventions import float64
from tests.helpers import X64, assert_close, oracle, slow

from .cases import ROBOTS, TREES, along, by_rows, compare, pin_robot, robot, run, states, tips

FRAMES = ("local", "world", "world_aligned")
every_robot = pytest.mark.parametrize("name", ROBOTS)
every_tree = pytest.mark.parametrize("name", TREES)
every_frame = pytest.mark.parametrize("frame", FRAMES)
float32 = pytest.mark.float32


@float32
@every_robot
def test_fk(name):
    model = robot(name)
    compare(lambda q: rb.fk(model, q), pin_robot(name).fk, states(name).q)


@pytest.mark.slow
@every_tree
def test_link_pose_is_a_row_of_fk(name):
    model, (one, other), q = robot(name), tips(name), states(name).q
    i, j = model.link_index(one), model.link_index(other)

    def poses(q):
        relative, itself = rb.link_pose(model, q, one, other), rb.link_pose(model, q, one, one)
        return rb.fk(model, q), rb.link_pose(model, q, one), rb.link_pose(model, q, i), relative, itself

    every, by_name, by_index, relative, itself = run(poses, q)
    assert_close(by_name, every[:, i])
    assert_close(by_index, every[:, i])
    assert_close(relative, np.linalg.inv(float64(every[:, j])) @ float64(every[:, i]))
    assert_close(itself, np.tile(np.eye(4), (len(q), 1, 1)))
    assert_close(run(lambda q: rb.body_poses(model, q), q), every[:, list(model.tree.principal_links)])


@pytest.mark.ci
@pytest.mark.parametrize("traversal", ["unrolled", "scanned"])
def test_links_that_are_welded_to_bodies_and_to_the_world(traversal):
    """Their poses and both derivatives in a batch of several tiles, against products of matrices in numpy."""
    rng, builder, places = np.random.default_rng(0), rb.RobotBuilder("frames").link("root"), {"root": np.eye(4)}

    def placed():
        return rng.uniform(-0.3, 0.3, 3), Rotation.from_rotvec(rng.uniform(-1.5, 1.5, 3))

    def weld(parent, name):
        xyz, turn = placed()
        builder.link(name).fixed(f"to_{name}", parent, name, xyz=xyz, rpy=turn.as_euler("xyz"))
        places[name] = np.eye(4)
        places[name][:3, :3], places[name][:3, 3] = turn.as_matrix(), xyz
        return name

    on = {"root": -1, weld("root", "on_root"): -1}
    for k, parent in enumerate(("root", "body_0", "body_1", "body_0")):
        xyz, turn = placed()
        name = f"body_{k}"
        builder.link(name, 1.0, inertia=0.1)
        builder.revolute(f"joint_{k}", parent, name, xyz=xyz, rpy=turn.as_euler("xyz"), axis=(0, 0, 1))
        places[name] = np.eye(4)
        places[name][:3, :3], places[name][:3, 3] = turn.as_matrix(), xyz
        on[name] = k
        on |= {weld(name, f"{name}_{i}"): k for i in range((0, 6, 1, 3)[k])}
    model = rb.with_traversal(rb.build_model(builder.build_description()), traversal)

    def poses(q):
        turned = np.tile(np.eye(4), (len(q), model.nv, 1, 1))
        turned[:, :, :2, :2] = np.moveaxis(np.array([[np.cos(q), -np.sin(q)], [np.sin(q), np.cos(q)]]), (0, 1), (2, 3))
        bodies = {-1: np.eye(4)[None]}
        for k, parent in enumerate((-1, 0, 1, 0)):
            bodies[k] = bodies[parent] @ places[f"body_{k}"] @ turned[:, k]
        found = [
            bodies[on[name]] @ (np.eye(4) if name.startswith("body") and name.count("_") == 1 else places[name])
            for name in model.link_names
        ]
        return np.stack([np.broadcast_to(T, (len(q), 4, 4)) for T in found], axis=1)

    q, v = rng.uniform(-1.5, 1.5, (2, 300, model.nv))
    h, f = 1e-5, jax.vmap(lambda q: rb.fk(model, q))
    rates = (poses(q + h * v) - poses(q - h * v)) / (2.0 * h)
    got, along_v = jax.jvp(f, (jnp.asarray(q),), (jnp.asarray(v),))
    assert_close(got, poses(q))
    assert_close(along_v, rates, 1e-8 if X64 else 1e-5)
    weights = rng.normal(size=got.shape)
    (gradient,) = jax.vjp(f, jnp.asarray(q))[1](jnp.asarray(weights, got.dtype))
    assert_close(jnp.sum(gradient * v, axis=1), np.sum(weights * rates, axis=(1, 2, 3)), 1e-7 if X64 else 1e-4)


@pytest.mark.ci
@float32
@every_robot
def test_jacobian(name):
    model, link, q = robot(name), tips(name)[0], states(name).q
    got = run(lambda q: [rb.jacobian(model, q, link, frame=frame) for frame in FRAMES], q)
    for frame, jacobians in zip(FRAMES, got, strict=True):
        assert_close(jacobians, by_rows(lambda q, f=frame: pin_robot(name).jacobian(q, link, f), q))


def test_jacobian_of_the_root_is_zero():
    model = robot("mimic")
    assert not rb.jacobian(model, states("mimic").q[0], model.link_names[0]).any()


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


@pytest.mark.ci
@pytest.mark.parametrize("name", [*TREES, *slow("rby1a")])
def test_jacobian_relative_to_a_link(name):
    model, (link, ref), q = robot(name), tips(name), states(name).q
    got = run(lambda q: [rb.jacobian(model, q, link, ref=ref, frame=frame) for frame in FRAMES], q)
    for frame, jacobians in zip(FRAMES, got, strict=True):
        assert_close(jacobians, by_rows(lambda q, f=frame: _relative(pin_robot(name), q, link, ref, f), q))


@pytest.mark.slow
@float32
@every_frame
@every_tree
def test_velocity_and_acceleration_of_a_link(name, frame):
    model, link, twin, s = robot(name), tips(name)[0], pin_robot(name), states(name)

    def motion(q, v, a):
        return rb.link_velocity(model, q, v, link, frame=frame), rb.link_acceleration(model, q, v, a, link, frame=frame)

    velocity, acceleration = run(motion, *s[:3])
    assert_close(velocity, by_rows(lambda q, v: twin.velocity(q, v, link, frame), s.q, s.v))
    assert_close(acceleration, by_rows(lambda q, v, a: twin.acceleration(q, v, a, link, frame), *s[:3]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "relative, frame", [(False, "local"), (False, "world"), (False, "world_aligned"), (True, "local")]
)
def test_rates_are_derivatives_in_time(relative, frame):
    """Twist = J v; its rate is the acceleration J a + dJ/dt v; and dJ/dt is the rate of J."""
    name = "every_type"
    model, (link, ref), s, twin = robot(name), tips(name), states(name), pin_robot(name)
    options = {"ref": ref if relative else None, "frame": frame}

    def everything(q, v, a):
        J, J_dot = along(model, lambda q: rb.jacobian(model, q, link, **options), q, v)
        twist, rate = along(model, lambda q, v: rb.link_velocity(model, q, v, link, **options), q, v, (v, a))
        bias = rb.jacobian_dot_v(model, q, v, link, **options)
        acceleration = rb.link_acceleration(model, q, v, a, link, **options)
        got = rb.jacobian_dot(model, q, v, link, **options)
        return (twist, J @ v), (acceleration, rate), (acceleration, J @ a + bias), (bias, got @ v), (got, J_dot)

    pairs = run(everything, *s[:3])
    for got, want in pairs:
        assert_close(got, want)
    if not relative and frame != "world_aligned":  # pinocchio's third frame leaves out the motion of the origin
        assert_close(pairs[-1][0], by_rows(lambda q, v: twin.jacobian_dot(q, v, link, frame), s.q, s.v))


@pytest.mark.slow
@every_tree
def test_hessian_is_the_derivative_of_the_jacobian(name):
    """H[i, :, j] = d J[:, j] / d q_i, by central differences of the oracle's Jacobian along each velocity."""
    if not X64:
        pytest.skip("finite differences need float64")
    model, link, twin, q = robot(name), tips(name)[0], pin_robot(name), states(name).q[:5]
    got = run(lambda q: rb.hessian(model, q, link), q)
    step, want = 1e-5, np.zeros((len(q), model.nv, 6, model.nv))
    integrate = lambda q, dv: run(lambda q: rb.integrate(model, q, dv), q)  # noqa: E731
    for i, direction in enumerate(step * jnp.eye(model.nv)):
        ends = [by_rows(lambda q: twin.jacobian(q, link), integrate(q, h * direction)) for h in (1, -1)]
        want[:, i] = (ends[0] - ends[1]) / (2 * step)
    assert_close(got, want, kind="difference")


@pytest.mark.slow
@every_frame
def test_hessian_is_the_derivative_of_the_relative_jacobian(frame):
    """H[i] is the rate of J along velocity direction i: back from `ref` toward the root, then on to the link."""
    model, (link, ref), q = robot("every_type"), tips("every_type"), states("every_type").q

    def both(q):
        jacobian = lambda q: rb.jacobian(model, q, link, ref=ref, frame=frame)  # noqa: E731
        want = jax.vmap(lambda e: along(model, jacobian, q, e)[1])(jnp.eye(model.nv, dtype=q.dtype))
        return rb.hessian(model, q, link, ref=ref, frame=frame), want

    assert_close(*run(both, q))


@pytest.mark.slow
@every_frame
def test_hessian_contracts_to_the_bias(frame):
    """v . H . v = (dJ/dt) v, with quaternion joints too."""
    model, link, s = robot("every_type"), tips("every_type")[0], states("every_type")

    def both(q, v):
        H = rb.hessian(model, q, link, frame=frame)
        return jnp.einsum("i,iaj,j->a", v, H, v), rb.jacobian_dot_v(model, q, v, link, frame=frame)

    assert_close(*run(both, s.q, s.v))


@pytest.mark.slow
@every_frame
def test_the_gradient_of_a_hessian_is_its_derivative_along_each_direction(frame):
    model, (link, ref), q = robot("every_type"), tips("every_type"), states("every_type").q
    fixed = next(k for k, body in enumerate(model.tree.link_bodies) if body < 0)  # no joint moves it

    def both(q):
        def sums(q):
            ends = ((link, ref), (link, fixed), (fixed, None))
            return jnp.stack([(rb.hessian(model, q, a, ref=b, frame=frame) ** 2).sum() for a, b in ends])

        return jax.jacrev(sums)(q), jax.jacfwd(sums)(q)

    assert_close(*run(both, q), kind="solve")


@pytest.mark.slow
@every_tree
def test_point_jacobian_and_hessian_are_velocity_and_acceleration_of_a_point(name):
    model, (link, ref), s = robot(name), tips(name), states(name)
    point = jnp.array([0.1, -0.2, 0.3], s.q.dtype)

    def place(q, ref=None):
        T = rb.link_pose(model, q, link, ref)
        return T[:3, :3] @ point + T[:3, 3]

    def both(q, v, a):
        J, H = rb.point_jacobian(model, q, link, point), rb.point_hessian(model, q, link, point)
        speed = lambda q, v: along(model, place, q, v)[1]  # noqa: E731
        velocity, acceleration = along(model, speed, q, v, (v, a))
        seen = rb.point_jacobian(model, q, link, point, ref) @ v, along(model, lambda q: place(q, ref), q, v)[1]
        return (J @ v, velocity), (J @ a + jnp.einsum("i,iaj,j->a", v, H, v), acceleration), seen

    for got, want in run(both, *s[:3]):
        assert_close(got, want)


@pytest.mark.slow
def test_quaternion_jacobian_is_the_rate_of_the_pose():
    """xi_dot = 1/2 (0, w) xi, with w in world axes and the scalar of xi not negative; then the origin's velocity."""
    name = "every_type"
    model, link, twin, s = robot(name), tips(name)[0], pin_robot(name), states(name)
    index = model.link_index(link)

    def want(q, v):
        x, y, z, w = Rotation.from_matrix(twin.fk(q)[index, :3, :3]).as_quat(canonical=True)
        omega, speed = np.split(twin.velocity(q, v, link), 2)
        return np.concatenate([[-omega @ [x, y, z] / 2], (w * omega + np.cross(omega, [x, y, z])) / 2, speed])

    compare(lambda q, v: rb.quaternion_jacobian(model, q, link) @ v, want, s.q, s.v)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rby1a", "rby1m", "rby1ub"])
def test_kinematics_of_rby1_against_the_sdk(name):
    oracle("rby1_sdk")
    from rbydyn_jax.engines.rby1_sdk import Rby1Robot

    if not X64:
        pytest.skip("the SDK is compared in float64")
    model, s = robot(name), states(name)
    base, right, left = model.link_names[0], "ee_right", "ee_left"
    sdk = Rby1Robot(rb.to_urdf(model), model.joint_names, model.link_names, base)

    def ours(q, v):
        body = [rb.jacobian(model, q, right, ref=ref, frame="local") for ref in (base, left)]
        space = [rb.jacobian(model, q, right, ref=ref, frame="world") for ref in (base, left)]
        return rb.fk(model, q), body, space, rb.link_velocity(model, q, v, right, ref=left, frame="local")

    poses, body, space, velocity = run(ours, s.q, s.v)
    assert_close(poses, by_rows(lambda q: sdk.fk(q, base, model.link_names), s.q))
    for k, ref in enumerate((base, left)):
        assert_close(body[k], by_rows(lambda q, r=ref: sdk.body_jacobian(q, r, right), s.q))
        assert_close(space[k], by_rows(lambda q, r=ref: sdk.space_jacobian(q, r, right), s.q))
    assert_close(velocity, by_rows(lambda q, v: sdk.body_velocity(q, v, left, right), s.q, s.v))


@pytest.mark.parametrize("ref", [None, 1])
def test_pose_and_jacobian_in_one_sweep_are_those_of_two(ref):
    model = robot("few_types")
    q, link = states("few_types").q, len(model.link_names) - 1

    def both(q):
        return pose_and_jacobian(model, q, link, ref), (
            rb.link_pose(model, q, link, ref),
            rb.jacobian(model, q, link, ref=ref),
        )

    for got, want in zip(*jax.jit(jax.vmap(both))(q), strict=True):
        assert_close(got, want)
