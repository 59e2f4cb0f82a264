"""Wheels and base against the SDK, and rolling as physics: what touches the floor does not slip."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    Model,
    ModelError,
    RobotBuilder,
    ShapeError,
    build_model,
    crba,
    fk,
    gravity_forces,
    integrate,
    jacobian,
    point_jacobian,
    robots,
    to_urdf,
    total_mass,
    with_gravity,
)
from rbydyn_jax.rby1.mobility import (
    mobility_twist,
    rolling_constraint,
    wheel_velocities,
    with_planar_base,
    with_rolling_wheels,
)
from tests.helpers import BATCH, X64, assert_close, normal, oracle

RADIUS = 0.08


def cart(kind: str, rpy=(0.0, 0.0, 0.0)) -> Model:
    """A box on wheels whose middle is not at the origin of the base, with an arm of one joint on it."""
    b = RobotBuilder("cart").link("base", 10.0, inertia=0.5)
    at = {"right": (0.1, -0.3), "left": (0.1, 0.3)}
    params, origin = (0.6, RADIUS), (0.1, 0.0, 0.02)
    if kind == "mecanum":
        at = {"fr": (0.4, -0.2), "fl": (0.4, 0.2), "rr": (-0.2, -0.2), "rl": (-0.2, 0.2)}
        params = (0.3, 0.2, RADIUS)
    for name, (x, y) in at.items():
        axis = (0, 1, 0) if kind == "mecanum" else (0, -1, 0)
        b.link(f"wheel_{name}", 1.0, inertia=0.003)
        b.continuous(name, "base", f"wheel_{name}", xyz=(x, y, RADIUS), axis=axis)
    b.link("arm", 2.0, (0.2, 0, 0), 0.01).revolute("hinge", "base", "arm", xyz=(0, 0, 0.5), axis=(0, 0.6, 0.8))
    b.link("hand").fixed("grip", "arm", "hand", xyz=(0.4, 0, 0), rpy=(0.3, 0, 0))
    b.mobile_base(kind, tuple(at), params, xyz=origin, rpy=rpy)
    return build_model(b.build_description())


ROBOTS = {
    "A": robots.rby1a,
    "M": robots.rby1m,
    "differential": lambda: cart("differential", (0.1, -0.2, 0.4)),
    "mecanum": lambda: cart("mecanum", (0.1, -0.2, 0.4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_maps_are_those_of_the_sdk(name):
    sdk = oracle("rby1_sdk.dynamics")
    model = ROBOTS[name]()
    if not X64:
        pytest.skip("the SDK computes in float64")
    robot = sdk.Robot(sdk.load_robot_from_urdf_data(to_urdf(model), "base"))
    state = robot.make_state(["base"], list(model.joint_names))
    at = [model.joint_index(joint) for joint in model.tree.mobile_base.joints]
    twists, rates = normal(0, 20, 3), normal(1, 20, len(at))
    wheels = jax.vmap(lambda x: wheel_velocities(model, x))(twists)
    moved = jax.vmap(lambda x: mobility_twist(model, x))(rates)
    for k in range(20):
        state.set_qdot(np.zeros(model.nv))
        robot.compute_mobility_inverse_diff_kinematics(state, np.asarray(twists[k]))
        assert_close(wheels[k], np.array(state.get_qdot())[at])
        v = np.zeros(model.nv)
        v[at] = rates[k]
        state.set_qdot(v)
        assert_close(moved[k], np.array(robot.compute_mobility_diff_kinematics(state)))


@pytest.mark.float32
def test_golden_round_trip_about_the_origin_of_the_base(dtype):
    model = robots.rby1a()
    there = mobility_twist(model, wheel_velocities(model, jnp.array([1.0, 0.0, 0.0], dtype)))
    assert there.dtype == dtype
    assert_close(there, np.array([1.0, 0.0, -0.228]))


@pytest.mark.parametrize("kind", ["differential", "mecanum"])
@pytest.mark.float32
def test_round_trips(kind, dtype):
    model = cart(kind)
    twists = normal(2, BATCH, 3)
    if kind == "differential":  # only those at which the middle of the wheels moves ahead
        twists = twists.at[:, 2].set(-0.1 * twists[:, 0])
    there = jax.vmap(lambda x: mobility_twist(model, wheel_velocities(model, x)))(twists)
    assert_close(there, twists)
    J = jax.jacfwd(lambda x: wheel_velocities(model, x))(twists[0])
    assert_close(jax.jacrev(lambda x: wheel_velocities(model, x))(twists[0]), J)


def contact_velocities(model: Model, q, v, mobile) -> np.ndarray:
    """Velocities, in base axes, of the material points of the wheels that touch the floor."""
    poses = np.asarray(fk(model, q))
    R_base = poses[model.link_index("base")][:3, :3]
    points = []
    for joint in mobile.joints:
        link = f"wheel_{joint}"
        down = poses[model.link_index(link)][:3, :3].T @ np.array([0.0, 0.0, -RADIUS])
        points.append(R_base.T @ np.asarray(point_jacobian(model, q, link, jnp.asarray(down)) @ v))
    return np.array(points)


@pytest.mark.ci
def test_two_wheels_do_not_slip():
    model = with_planar_base(cart("differential"))
    A = rolling_constraint(model)
    assert A.shape == (3, model.nv) and np.linalg.matrix_rank(A) == 3
    q, u = jnp.asarray(np.linspace(-1.0, 2.0, model.nq)), np.linspace(0.5, -1.5, model.nv)
    v = with_rolling_wheels(model, jnp.asarray(u))
    slip = contact_velocities(model, q, v, model.tree.mobile_base)
    assert abs(slip[:, 0]).max() < 1e-12 < abs(slip[:, 1]).max()  # it may be told to slip sideways
    sideways = slip[0, 1]
    assert_close(A @ v, np.array([0.0, 0.0, sideways]), scale=1.0)
    # Moved by the least that obeys all of A v = 0, nothing slips at all.
    v = v - jnp.linalg.pinv(A) @ (A @ v)
    assert abs(contact_velocities(model, q, v, model.tree.mobile_base)).max() < 1e-12 < jnp.abs(v[:3]).min()


@pytest.mark.slow
def test_mecanum_wheels_slip_along_their_free_rollers_only():
    model = with_planar_base(cart("mecanum"))
    A = rolling_constraint(model)
    assert A.shape == (4, model.nv) and np.linalg.matrix_rank(A) == 4
    q, u = jnp.asarray(np.linspace(-1.0, 2.0, model.nq)), np.linspace(0.5, -1.5, model.nv)
    v = with_rolling_wheels(model, jnp.asarray(u))
    assert_close(A @ v, np.zeros(4), scale=1.0)
    slip = contact_velocities(model, q, v, model.tree.mobile_base)
    # Seen from above the rollers' axes form an X: those of fr and rl point ahead and to the left, of fl and rr right.
    axes = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0]])
    assert abs((slip * axes).sum(axis=1)).max() < 1e-12 < abs(slip).max()


@pytest.mark.slow
def test_planar_base_moves_the_whole_body():
    """Poses and Jacobians are those of the fixed robot, carried along by the base."""
    fixed = cart("differential")
    model = with_planar_base(fixed)
    assert model.joint_names == ("planar_base", *fixed.joint_names)
    assert model.tree.mobile_base == fixed.tree.mobile_base and model.name == fixed.name
    assert float(total_mass(model)) == float(total_mass(fixed))
    rng = np.random.default_rng(5)
    base, joints = rng.normal(size=3), rng.normal(size=fixed.nq)
    q = jnp.asarray(np.concatenate([base, joints]))
    c, s = np.cos(base[2]), np.sin(base[2])
    T = np.array([[c, -s, 0, base[0]], [s, c, 0, base[1]], [0, 0, 1, 0], [0, 0, 0, 1]])
    inner = np.asarray(fk(fixed, jnp.asarray(joints)))[fixed.link_index("hand")]
    assert_close(fk(model, q)[model.link_index("hand")], T @ inner)
    J = jacobian(model, q, "hand")
    arm = np.asarray(jacobian(fixed, jnp.asarray(joints), "hand"))
    assert_close(J[:, 3:], np.concatenate([T[:3, :3] @ arm[:3], T[:3, :3] @ arm[3:]]))
    arm_of_base = T[:3, :3] @ inner[:3, 3]
    columns = np.zeros((6, 3))
    columns[3:, :2], columns[2, 2] = T[:3, :2], 1.0
    columns[3:, 2] = np.cross([0.0, 0.0, 1.0], arm_of_base)
    assert_close(J[:, :3], columns)
    assert_close(crba(model, q)[3:, 3:], crba(fixed, jnp.asarray(joints)))
    assert_close(crba(model, q)[:2, :2], float(total_mass(model)) * np.eye(2))
    assert_close(gravity_forces(model, q)[3:], gravity_forces(fixed, jnp.asarray(joints)))
    assert_close(gravity_forces(model, q)[:3], np.zeros(3), scale=9.81 * float(total_mass(model)))


@pytest.mark.slow
def test_whole_body_jacobian_of_rby1_against_differences():
    model = with_planar_base(robots.rby1a())
    if not X64:
        pytest.skip("finite differences")
    q, v = normal(3, model.nq), normal(4, model.nv)
    h = 1e-6
    after, before = (np.asarray(fk(model, integrate(model, q, s * h * v))) for s in (1.0, -1.0))
    k = model.link_index("ee_left")
    J = jacobian(model, q, "ee_left")
    assert_close((after[k, :3, 3] - before[k, :3, 3]) / (2 * h), (J @ v)[3:], 1e-8)


def test_gravity_and_dtype_are_kept():
    moon = with_gravity(cart("mecanum"), jnp.array([0.0, 0.0, -1.62]))
    model = with_planar_base(moon)
    assert (model.gravity == moon.gravity).all() and model.inertias.dtype == moon.inertias.dtype


def test_wrong_robots():
    arm = robots.two_link_arm()
    with pytest.raises(ModelError, match="has no mobile base"):
        wheel_velocities(arm, jnp.zeros(3))
    with pytest.raises(ShapeError, match=r"wheels must have shape \(4,\)"):
        mobility_twist(cart("mecanum"), jnp.zeros(2))
    with pytest.raises(ShapeError, match=r"twist must have shape \(3,\)"):
        wheel_velocities(cart("mecanum"), jnp.zeros(2))
    with pytest.raises(ModelError, match="has no planar base"):
        rolling_constraint(cart("mecanum"))
    with pytest.raises(ModelError, match="moves already; with_planar_base needs a fixed root"):
        with_planar_base(build_model(RobotBuilder().link("a", 1.0).build_description(), floating_base=True))
    with pytest.raises(ModelError, match="has no mobile base"):
        rolling_constraint(with_planar_base(arm))
