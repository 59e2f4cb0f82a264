"""Messages of ROS 2, of the classes and the wire format of their published definitions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import planning, robots
from rbydyn_jax.compat import ros
from tests.helpers import assert_close, oracle, untyped

ARM = robots.two_link_arm()
URDF = """<robot name="hand"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"/><link name="c"/><link name="d"/>
<joint name="wrist" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="left" type="prismatic"><parent link="a"/><child link="b"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint>
<joint name="right" type="prismatic"><parent link="a"/><child link="c"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="left" multiplier="-2" offset="0.1"/></joint>
<joint name="mount" type="fixed"><parent link="a"/><child link="d"/></joint></robot>"""
HAND = rb.load_urdf_string(URDF)
FREE = rb.load_urdf_string(URDF, floating_base=True)
ANGLE = rb.build_model(
    rb.RobotBuilder("a").link("base").link("tip", 1.0, inertia=0.1).sin_cos_revolute("hinge", "base", "tip")
)


@cache
def definitions() -> Any:
    """The message definitions of ROS 2 Humble."""
    typesys: Any = oracle("rosbags.typesys")
    return typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)


def message(kind: str, given: Mapping[str, Any]) -> Any:
    """A message of a class of ROS 2, whose other fields are empty, after a way over the wire."""
    store = definitions()
    return store.deserialize_cdr(store.serialize_cdr(made(kind, given), kind), kind)


def made(kind: str, given: Mapping[str, Any] | None = None) -> Any:
    store, found = definitions(), {}
    given = given or {}
    fields = dict(store.get_msgdef(kind).fields)
    assert set(given) <= set(fields), f"{kind} has no fields {set(given) - set(fields)}"
    for name, (node, of) in fields.items():
        value = given.get(name)
        if node.name == "NAME":
            found[name] = made(of, value or {})
        elif node.name == "BASE":
            found[name] = value if value is not None else "" if of[0] == "string" else 0
        elif of[0][0].name == "NAME":
            found[name] = [made(of[0][1], x) for x in value or []]
        elif of[0][1][0] == "string":
            found[name] = value or []
        else:
            found[name] = np.array([0.0] * (of[1] or 0) if value is None else value, float)
    return store.types[kind](**found)


def joint_state(**fields: Any) -> Any:
    return message("sensor_msgs/msg/JointState", fields)


def test_a_joint_state_in_any_order():
    got = ros.from_joint_state(
        HAND, joint_state(name=["left", "right", "wrist"], position=[0.2, 9.0, -1.0], velocity=[0.5, 9.0, 2.0])
    )
    np.testing.assert_array_equal(got.q, [-1.0, 0.2])
    np.testing.assert_array_equal(got.v, [2.0, 0.5])
    assert got.tau is None
    only = ros.from_joint_state(ARM, joint_state(name=["elbow", "shoulder"], position=[1.0, 2.0], effort=[3.0, 4.0]))
    np.testing.assert_array_equal(only.tau, [4.0, 3.0])
    assert only.v is None


def test_joints_that_mimic_others_are_told():
    fields = ros.to_joint_state(HAND, [0.5, 0.25], [1.0, 2.0], np.array([3.0, 4.0]))
    assert fields == {
        "name": ["wrist", "left", "right"],
        "position": [0.5, 0.25, -2 * 0.25 + 0.1],
        "velocity": [1.0, 2.0, -4.0],
        "effort": [3.0, 4.0, 0.0],
    }
    back = ros.from_joint_state(HAND, joint_state(**fields))
    np.testing.assert_array_equal(back.q, [0.5, 0.25])
    np.testing.assert_array_equal(back.v, [1.0, 2.0])
    np.testing.assert_array_equal(back.tau, [3.0, 4.0])


def test_a_message_is_filled_in_place():
    given = made("sensor_msgs/msg/JointState")
    assert ros.to_joint_state(ARM, jnp.array([0.5, 0.25]), message=given) is given
    assert (given.name, given.position, given.velocity) == (["shoulder", "elbow"], [0.5, 0.25], [])
    odometry = made("nav_msgs/msg/Odometry")
    ros.to_odometry([0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 3.0], np.arange(6.0), odometry)
    assert odometry.pose.pose.orientation.y == 1.0
    assert (odometry.twist.twist.linear.x, odometry.twist.twist.angular.z) == (3.0, 2.0)


def test_a_hinge_of_sine_and_cosine_is_an_angle():
    q = ros.from_joint_state(ANGLE, joint_state(name=["hinge"], position=[2.0])).q
    assert_close(q, [np.sin(2.0), np.cos(2.0)])
    assert_close(np.array(ros.to_joint_state(ANGLE, q)["position"]), [2.0])


def test_a_floating_base_comes_from_odometry():
    xyzw = Rotation.from_euler("zyx", [0.4, -0.3, 1.2]).as_quat()
    pose = {
        "position": {"x": 1.0, "y": 2.0, "z": 3.0},
        "orientation": dict(zip("xyzw", (2.0 * xyzw).tolist(), strict=True)),
    }
    twist = {"linear": {"x": 0.1, "y": 0.2, "z": 0.3}, "angular": {"x": 0.4, "y": 0.5, "z": 0.6}}
    odometry = message("nav_msgs/msg/Odometry", {"pose": {"pose": pose}, "twist": {"twist": twist}})
    state = joint_state(name=["wrist", "left"], position=[0.1, 0.2], velocity=[7.0, 8.0])
    got = ros.from_joint_state(FREE, state, base=odometry)
    T = np.asarray(rb.link_pose(FREE, jnp.asarray(got.q), "base"))
    assert_close(T[:3, :3], Rotation.from_quat(xyzw).as_matrix())
    np.testing.assert_array_equal(T[:3, 3], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(got.v, [0.4, 0.5, 0.6, 0.1, 0.2, 0.3, 7.0, 8.0])
    assert got.v is not None
    still = ros.from_joint_state(FREE, state, base=odometry.pose.pose)
    np.testing.assert_array_equal(still.v, [0.0] * 6 + [7.0, 8.0])
    np.testing.assert_array_equal(still.q, got.q)
    back = message("nav_msgs/msg/Odometry", ros.to_odometry(got.q[:7], got.v[:6]))
    again = ros.from_odometry(back)
    assert_close(again[0], got.q[:7])
    np.testing.assert_array_equal(again[1], got.v[:6])
    assert_close(ros.from_pose(ros.to_pose(2.0 * got.q[:7])), np.append(got.q[:4], 2.0 * got.q[4:7]))


def test_joints_that_a_message_does_not_have_stay():
    got = ros.from_joint_state(ARM, joint_state(name=["elbow"], position=[0.3], velocity=[1.0]), q0=[0.7, 0.8])
    np.testing.assert_array_equal(got.q, [0.7, 0.3])
    np.testing.assert_array_equal(got.v, [0.0, 1.0])
    more = joint_state(name=["gripper", "elbow", "shoulder"], position=[9.0, 0.3, 0.4])
    np.testing.assert_array_equal(ros.from_joint_state(ARM, more, ignore_extra=True).q, [0.4, 0.3])


def test_a_trajectory_goes_over_the_wire_and_back():
    moved = jnp.array([[0.5, -0.2], [0.1, 0.7]])
    motion = planning.Trajectory(jnp.array([0.1, 0.2]), moved, jnp.asarray(2.3), (0, 1), (0, 1), nv=2)
    samples = planning.sample_trajectory(motion, 21)
    fields = ros.to_joint_trajectory(ARM, motion, points=21)
    got = ros.from_joint_trajectory(ARM, message("trajectory_msgs/msg/JointTrajectory", fields))
    np.testing.assert_allclose(got.times, samples.times, atol=5e-10, rtol=1e-7)
    for name in ("q", "v", "a"):
        np.testing.assert_array_equal(getattr(got, name), np.asarray(getattr(samples, name), float))
    fields = ros.to_joint_trajectory(ARM, samples, joints=["elbow"])
    assert fields["joint_names"] == ["elbow"]
    filled = ros.to_joint_trajectory(
        ARM,
        samples,
        message=made("trajectory_msgs/msg/JointTrajectory"),
        point=lambda: made("trajectory_msgs/msg/JointTrajectoryPoint"),
    )
    last = filled.points[-1]
    assert last.positions == np.asarray(samples.q[-1], float).tolist()
    assert last.time_from_start.sec * 10**9 + last.time_from_start.nanosec == round(float(samples.times[-1]) * 1e9)


def point(positions: list[float], sec: int, nanosec: int = 0, **rates: Any) -> dict[str, Any]:
    return {"positions": positions, "time_from_start": {"sec": sec, "nanosec": nanosec}, **rates}


def test_a_trajectory_of_positions_alone():
    points = [point([0.1, 0.2], 0, 500_000_000), point([0.3, 0.4], 2)]
    given = {"joint_names": ["left", "wrist"], "points": points}
    got = ros.from_joint_trajectory(HAND, message("trajectory_msgs/msg/JointTrajectory", given))
    np.testing.assert_array_equal(got.times, [0.5, 2.0])
    np.testing.assert_array_equal(got.q, [[0.2, 0.1], [0.4, 0.3]])
    bare = [{**x, "velocities": [], "accelerations": []} for x in points]
    again = ros.from_joint_trajectory(HAND, given | {"points": np.array(bare, object)})
    np.testing.assert_array_equal(again.q, got.q)
    assert got.v is None and got.a is None
    given = {"joint_names": ["left"], "points": [point([0.1], 1, velocities=[3.0], accelerations=[])]}
    part = ros.from_joint_trajectory(HAND, message("trajectory_msgs/msg/JointTrajectory", given), q0=[5.0, 6.0])
    np.testing.assert_array_equal(part.q, [[5.0, 0.1]])
    np.testing.assert_array_equal(part.v, [[0.0, 3.0]])


STATE = {"name": ["shoulder", "elbow"], "position": [0.1, 0.2], "velocity": [], "effort": []}


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"name": ["shoulder", "elbo"]}, rb.NameNotFoundError, "no joint named 'elbo'; did you mean 'elbow'?"),
        ({"name": ["shoulder"], "position": [0.1]}, rb.ArgumentError, "must have all joints .* 'elbow' missing"),
        ({"name": ["elbow", "elbow"]}, rb.ArgumentError, "must name each joint once, got 'elbow' twice"),
        ({"name": "elbow"}, rb.DtypeError, "name of a JointState must be names, got 'elbow'"),
        ({"name": [1, 2]}, rb.DtypeError, "must be names"),
        ({"position": [0.1]}, rb.ShapeError, r"position of a JointState must be 2 numbers, got \(1,\)"),
        ({"position": []}, rb.ArgumentError, "position of a JointState must not be empty"),
        ({"position": [0.1, np.nan]}, rb.ArgumentError, "position of 'elbow' in a JointState must be finite, got nan"),
        ({"velocity": [1.0, 2.0, 3.0]}, rb.ShapeError, "velocity of a JointState must be 2 numbers"),
        ({"effort": ["a", "b"]}, rb.DtypeError, "effort of a JointState must be real numbers"),
        ({"position": ["1", "2"]}, rb.DtypeError, "position of a JointState must be real numbers"),
        ({"position": [True, False]}, rb.DtypeError, "position of a JointState must be real numbers"),
        ({"position": [1j, 0.0]}, rb.DtypeError, "position of a JointState must be real numbers"),
        ({"velocity": [1.0, None]}, rb.DtypeError, "velocity of a JointState must be real numbers"),
        ({"position": 0.1}, rb.ShapeError, r"position of a JointState must be numbers, got \(\)"),
    ],
)
def test_wrong_joint_states_are_refused(changed, error, text):
    with pytest.raises(error, match=text):
        ros.from_joint_state(ARM, STATE | changed)
    with pytest.raises(error, match=text):
        ros.from_joint_state(ARM, SimpleNamespace(**STATE | changed))


def test_other_wrong_messages_are_refused():
    with pytest.raises(rb.DtypeError, match="a JointState must have the field name, got SimpleNamespace"):
        ros.from_joint_state(ARM, SimpleNamespace())
    with pytest.raises(rb.ModelError, match="'two_link_arm' has no floating joint at its root"):
        ros.from_joint_state(ARM, STATE, base=ros.to_pose(rb.neutral(FREE)[:7]))
    with pytest.raises(rb.ArgumentError, match="'floating_base' missing"):
        ros.from_joint_state(FREE, STATE | {"name": ["wrist", "left"]})
    zero = {"position": dict.fromkeys("xyz", 0.0), "orientation": dict.fromkeys("xyzw", 0.0)}
    with pytest.raises(rb.ArgumentError, match="orientation of a Pose must not be zero"):
        ros.from_pose(zero)
    with pytest.raises(rb.ArgumentError, match="position of a Pose must be finite"):
        ros.from_pose(zero | {"position": {"x": np.nan, "y": 0.0, "z": 0.0}})
    with pytest.raises(rb.DtypeError, match=r"position of a Pose must be real numbers"):
        ros.from_pose(zero | {"position": dict.fromkeys("xyz", "0")})
    with pytest.raises(rb.DtypeError, match=r"position of a Pose must be real numbers"):
        ros.from_pose(zero | {"position": dict.fromkeys("xyz", 1j)})
    with pytest.raises(rb.ArgumentError, match="q must be finite"):
        ros.to_joint_state(ARM, [np.nan, 0.0])
    with pytest.raises(rb.ArgumentError, match="q0 must be finite"):
        ros.from_joint_state(ARM, STATE, q0=[np.nan, 0.0])
    for place in (1, 5):
        with pytest.raises(rb.ArgumentError, match="pose must be finite"):
            ros.to_pose(np.where(np.arange(7) == place, np.nan, 1.0))
    with pytest.raises(rb.ArgumentError, match="twist must be finite"):
        ros.to_odometry(np.ones(7), np.full(6, np.inf))
    with pytest.raises(rb.ArgumentError, match="the quaternion of pose must not be zero"):
        ros.to_pose(np.zeros(7))
    with pytest.raises(rb.DtypeError, match="message must have the field name, got object"):
        ros.to_joint_state(ARM, np.zeros(2), message=object())
    with pytest.raises(rb.ShapeError, match=r"v must have shape \(2,\), got \(3,\)"):
        ros.to_joint_state(ARM, np.zeros(2), np.zeros(3))


def test_wrong_trajectories_are_refused():
    def refused(error, text, **changed):
        with pytest.raises(error, match=text):
            given = {
                "joint_names": ["shoulder", "elbow"],
                "points": [point([0.0, 0.0], 1, velocities=[], accelerations=[])],
            }
            ros.from_joint_trajectory(ARM, given | changed)

    full: dict[str, Any] = {"velocities": [], "accelerations": []}
    refused(rb.ArgumentError, "points of a JointTrajectory must be a sequence of at least one", points=[])
    refused(rb.ArgumentError, "time_from_start must increase", points=[point([0.0, 0.0], 1, **full)] * 2)
    refused(rb.ShapeError, "positions of a JointTrajectoryPoint must be 2 numbers", points=[point([0.0], 1, **full)])
    refused(rb.NameNotFoundError, "no joint named 'x'", joint_names=["shoulder", "x"])
    mixed = [point([0.0, 0.0], 1, velocities=[1.0, 2.0], accelerations=[]), point([0.0, 0.0], 2, **full)]
    refused(rb.ShapeError, "velocities of a JointTrajectoryPoint must be 2 numbers", points=mixed)
    late = [{**point([0.0, 0.0], 1, **full), "time_from_start": {"sec": 0.5, "nanosec": 0}}]
    refused(rb.DtypeError, "time_from_start of a JointTrajectoryPoint must be whole", points=late)
    early = [{**point([0.0, 0.0], 1, **full), "time_from_start": {"sec": -1, "nanosec": 0}}]
    refused(rb.ArgumentError, "time_from_start must increase from point to point, from 0 on", points=early)
    for name, joint, bad in (
        ("positions", "elbow", point([0.0, np.nan], 1, **full)),
        ("velocities", "elbow", point([0.0, 0.0], 1, velocities=[0.0, np.nan], accelerations=[])),
        ("accelerations", "shoulder", point([0.0, 0.0], 1, velocities=[], accelerations=[np.inf, 0.0])),
    ):
        refused(rb.ArgumentError, f"{name} of '{joint}' in a JointTrajectory must be finite", points=[bad])
    refused(rb.DtypeError, "a JointTrajectoryPoint must have the field", points=np.zeros(3))
    refused(rb.ArgumentError, "points of a JointTrajectory must be a sequence", points=np.array(None))
    samples = planning.TrajectorySamples(*(jnp.zeros(n) for n in ((2,), (2, 2), (2, 2), (2, 2))))
    with pytest.raises(rb.NameNotFoundError, match="no joint named 'hip'"):
        ros.to_joint_trajectory(ARM, samples, joints=["hip"])
    for joints in ([], ["elbow", "elbow"]):
        with pytest.raises(rb.ArgumentError, match="joints must name at least one joint, and each once"):
            ros.to_joint_trajectory(ARM, samples, joints=joints)
    with pytest.raises(rb.ArgumentError, match="message and point must be given together"):
        ros.to_joint_trajectory(ARM, samples, message=SimpleNamespace())
    with pytest.raises(rb.DtypeError, match="point must be the class of a point, not one of them, got dict"):
        ros.to_joint_trajectory(ARM, samples, message=SimpleNamespace(), point=untyped({}))
    with pytest.raises(rb.ShapeError, match=r"motion\.q must have shape"):
        ros.to_joint_trajectory(robots.pendulum(), samples)
    motion = planning.Trajectory(jnp.zeros(2), jnp.ones((1, 2)), jnp.asarray(2.5), (0, 1), (0, 1), nv=2)
    with pytest.raises(rb.ArgumentError, match=r"motion\.q must be finite"):
        ros.to_joint_trajectory(ARM, jax.tree.map(lambda x: jnp.nan * x, motion))
    with pytest.raises(rb.ArgumentError, match=r"motion\.v must be finite"):
        ros.to_joint_trajectory(
            ARM, planning.TrajectorySamples(samples.times, samples.q, jnp.nan * samples.v, samples.a)
        )
    for single in (motion, samples):
        batch = jax.tree.map(lambda x: jnp.stack([x, x]), single)
        with pytest.raises(rb.ShapeError, match=r"motion must be a single one, got a batch of \(2,\)"):
            ros.to_joint_trajectory(ARM, batch)
    with pytest.raises(rb.DtypeError, match="motion must be a Trajectory, got int"):
        ros.to_joint_trajectory(ARM, untyped(3))


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_a_quaternion_of_any_length_is_one_of_unit_length(size):
    found = ros.to_pose(size * np.array([3.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]))["orientation"]
    np.testing.assert_allclose([found[k] for k in "wxyz"], [0.6, 0.0, 0.8, 0.0], rtol=1e-15)
