"""The viewer without a browser: what stands in its scene, what its sliders and gizmos do, and how it ends."""

from __future__ import annotations

import socket
import sys
import threading
import time
import urllib.error
import urllib.request

import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    MissingExtraError,
    ModelError,
    NameNotFoundError,
    RbydynError,
    ShapeError,
    collision,
    link_pose,
    load_mjcf,
    load_urdf,
    neutral,
    robots,
    total_mass,
    viz,
    with_limits,
)
from rbydyn_jax.constraints import Contact
from rbydyn_jax.planning import Trajectory, check_trajectory, sample_trajectory
from rbydyn_jax.viz.meshes import visual_mesh
from rbydyn_jax.viz.visuals import read_visuals
from tests.helpers import assert_close, untyped

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("viser")

ARM = robots.two_link_arm()
BALL = collision.World(
    collision.sphere(jnp.array([0.7, 0.3, 0.0]), 0.05), collision.half_space(jnp.array([0, 0, -1.0]), jnp.ones(3))
)
TOL = 1e-6  # viser keeps what it sends in float32
QUIET = {"port": 0, "quiet": True}


@pytest.fixture(scope="module")
def viewer():
    with viz.show(ARM, np.zeros(2), world=BALL, block=False, **QUIET) as viewer:
        yield viewer


def handle(viewer, name):
    found = viewer.server.scene.get_handle_by_name(name)
    assert found is not None, f"there is no node {name}"
    return found


def expected_tool(q):
    """Position and quaternion of the tool of the arm, whose links are 0.5 m and 0.4 m long and turn about z."""
    heading = q[0] + q[1]
    position = [0.5 * np.cos(q[0]) + 0.4 * np.cos(heading), 0.5 * np.sin(q[0]) + 0.4 * np.sin(heading), 0.0]
    return np.array(position), np.array([np.cos(heading / 2), 0.0, 0.0, np.sin(heading / 2)])


def assert_tool_at(viewer, q):
    position, wxyz = expected_tool(q)
    frame = handle(viewer, "/robot/tool")
    assert_close(frame.position.astype(np.float32), position, TOL, scale=1.0)
    assert_close(abs(frame.wxyz @ wxyz), 1.0, TOL)


@pytest.mark.ci
def test_frames_of_links_and_their_shapes_are_where_the_kinematics_are(viewer):
    for q in ([0.0, 0.0], [0.4, -1.1]):
        viewer.q = np.array(q)
        assert_tool_at(viewer, q)
        assert_close(viewer.q, np.array(q), TOL)
    shape = handle(viewer, "/robot/lower/shape_1")  # a capsule from 0.05 m to 0.35 m along x, of 0.04 m
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    assert_close(np.stack([low, high]), np.array([[0.01, -0.04, -0.04], [0.39, 0.04, 0.04]]), 2e-2)


def test_a_slider_has_the_limits_of_its_joint_and_moves_the_robot(viewer):
    viewer.q = np.zeros(2)
    assert list(viewer.sliders) == ["shoulder", "elbow"]
    elbow = viewer.sliders["elbow"]
    assert_close(np.array([elbow.min, elbow.max]), np.array([ARM.position_lower[1], ARM.position_upper[1]]), TOL)
    elbow.value = 0.7
    assert_tool_at(viewer, [0.0, 0.7])
    viewer.q = np.array([0.3, -0.2])
    assert_close(np.array([slider.value for slider in viewer.sliders.values()]), np.array([0.3, -0.2]), TOL)


def test_lines_join_the_nearest_points_of_robot_and_obstacles(viewer):
    viewer.q = np.zeros(2)
    # Between the round ends of upper arm and forearm are 10 mm; the ball is 0.3 m off the axis of the forearm.
    lines = handle(viewer, "/pairs")
    assert_close(lines.points[0], np.array([[0.5, 0.0, 0.0], [0.51, 0.0, 0.0]]), TOL, scale=1.0)
    assert_close(lines.points[1], np.array([[0.7, 0.04, 0.0], [0.7, 0.25, 0.0]]), TOL, scale=1.0)
    assert len(lines.points) == 5  # a pair of shapes, and two shapes and two obstacles
    assert "10.0 mm**, upper and lower" in viewer._text.content
    assert (lines.colors[1, 0] == [0, 220, 0]).all() and lines.colors[0, 0, 0] == 220
    viewer.q = np.array([0.0, 1.0])  # the forearm goes through the ball
    assert "mm**, lower and obstacle 0" in viewer._text.content and "**-" in viewer._text.content
    lines = handle(viewer, "/pairs")
    assert (lines.colors[0, 0] == [220, 0, 0]).all()
    assert_close(np.linalg.norm(lines.points[0, 1] - [0.7, 0.3, 0.0]), 0.05, 1e-5)
    ball = handle(viewer, "/world/0").vertices
    assert_close(np.linalg.norm(ball - [0.7, 0.3, 0.0], axis=1), np.full(len(ball), 0.05), 1e-5)


@pytest.mark.ci
def test_ghosts_are_where_their_configurations_are(viewer):
    q = np.array([[0.2, 0.3], [-0.5, 0.9], [1.0, -1.0]])
    viewer.show_ghosts(q)
    for k, row in enumerate(q):
        at = handle(viewer, "/ghosts/shape_1").batched_positions[k]  # of the forearm's frame: the elbow
        assert_close(at, 0.5 * np.array([np.cos(row[0]), np.sin(row[0]), 0.0]), TOL, scale=1.0)
    viewer.show_ghosts(q[:1])
    assert handle(viewer, "/ghosts/shape_1").batched_positions.shape == (1, 3)
    with pytest.raises(ShapeError, match=r"q must have shape \(1, 2\)"):
        viewer.show_ghosts(np.zeros((1, 3)))


def test_forces_start_at_their_points_and_are_as_long_as_they_are_strong(viewer):
    viewer.q = np.array([np.pi / 2, 0.0])
    contacts = [Contact("tool"), Contact("lower", (0.1, 0.0, 0.0))]
    viewer.show_forces(contacts, np.array([[0.0, 0.0, 10.0], [20.0, 0.0, 0.0]]))
    points = handle(viewer, "/forces").points
    assert_close(points[:, 0], np.array([[0, 0.9, 0], [0, 0.6, 0]]), TOL, scale=1.0)
    vectors = points[:, 1] - points[:, 0]
    assert_close(vectors[1], 2.0 * np.array([vectors[0, 2], 0.0, 0.0]), 1e-5)
    assert vectors[0, 2] > 0.0
    viewer.show_forces([], np.zeros((0, 3)))
    assert len(handle(viewer, "/forces").points) == 0


@pytest.mark.parametrize("links", [("tool",), ("lower", "tool")])
@pytest.mark.slow
def test_links_follow_their_gizmos(viewer, links):
    start, goal = np.array([0.3, 0.5]), np.array([0.55, 0.2])
    viewer.q = start
    viewer.drag(*links)
    assert list(viewer.gizmos) == list(links)
    position, _ = expected_tool(start)
    assert_close(viewer.gizmos["tool"].position.astype(np.float32), position, TOL, scale=1.0)
    for link, gizmo in viewer.gizmos.items():
        T = np.asarray(link_pose(ARM, jnp.asarray(goal), link))
        heading = goal.sum()
        gizmo.position, gizmo.wxyz = T[:3, 3], np.array([np.cos(heading / 2), 0, 0, np.sin(heading / 2)])
    viewer._drag.solve()  # what viser calls while a gizmo is dragged
    assert viewer._drag.text.content == "reached"
    assert_tool_at(viewer, goal)
    assert_close(viewer.q.astype(np.float32), goal, 1e-4)
    viewer.gizmos["tool"].position = (3.0, 0.0, 0.0)
    viewer._drag.solve()
    assert viewer._drag.text.content.startswith("not reached: 2")  # 0.9 m is all there is
    viewer.drag()
    assert viewer.gizmos == {}


@pytest.mark.ci
def test_a_motion_follows_its_time(viewer):
    motion = Trajectory(jnp.zeros(2), jnp.asarray([[0.8, 0.4]]), jnp.asarray(2.0), (0, 1), (0, 1), 2)
    playback = viewer.play(motion)
    samples = sample_trajectory(motion, 201)
    assert_close(viewer.q, np.asarray(samples.q[0]), TOL, scale=1.0)
    playback.time = 1.3
    assert_close(viewer.q, np.asarray(samples.q[130]), TOL)
    report = check_trajectory(ARM, motion, "tool", jnp.eye(4), points=201, world=BALL)
    assert_close(playback.data.distances, np.asarray(report.distances), 1e-5)
    assert_close(playback.data.torque_ratios, np.abs(np.asarray(report.torques)) / 40.0, 1e-5)
    torques, distances = (plot.data for plot, _ in playback._plots)
    assert_close(distances[0][130:133], np.full(3, 1.3))
    assert_close(distances[1][130:133], np.full(3, 1e3 * playback.data.distances[130]), TOL)
    assert (distances[2] > distances[2].min()).nonzero()[0].tolist() == [131] and len(torques) == 4  # the line
    playback.speed = 2.0
    playback.play()
    until(lambda: viewer.q[0] != samples.q[130, 0] and playback.time > 1.4)
    playback.pause()
    at = playback.time
    time.sleep(0.1)
    assert playback.time == at
    assert_close(viewer.play(report).data.q, np.asarray(samples.q))  # takes the place of the one before


@pytest.mark.ci
def test_forces_of_a_motion_change_with_time(viewer):
    q, forces = np.linspace([0, 0], [1, 1], 3), np.zeros((3, 1, 3))
    forces[:, 0, 2] = [0.0, 1.0, 3.0]
    playback = viewer.play(q, dt=0.5, contacts=[Contact("tool")], forces=forces)
    assert playback.data.torque_ratios is None  # no velocities are known
    heights = []
    for playback.time in (0.5, 1.0):
        (arrow,) = handle(viewer, "/forces").points
        heights.append(arrow[1, 2] - arrow[0, 2])
    assert_close(heights[1], 3.0 * heights[0], 1e-5)


def until(holds, seconds: float = 20.0) -> None:
    """Waits for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_wrong_arguments_are_named(viewer):
    with pytest.raises(NameNotFoundError, match="did you mean 'tool'"):
        viewer.drag("tol")
    for still in ("base", 0):
        with pytest.raises(ModelError, match="no joint moves link 'base'"):
            viewer.drag("tool", still)
    with pytest.raises(ArgumentError, match="clearance must be finite"):
        viewer.drag("tool", clearance=np.nan)
    with pytest.raises(DtypeError, match="clearance must be a number"):
        viewer.drag("tool", clearance="near")
    with pytest.raises(ShapeError, match=r"q must have shape \(2,\)"):
        viewer.q = np.zeros(3)
    with pytest.raises(DtypeError, match="needs dt="):
        viewer.play(np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="at least 2 configurations"):
        viewer.play(np.zeros((1, 2)), dt=0.1)
    with pytest.raises(DtypeError, match="trajectory must be a Trajectory"):
        viewer.play("fast")
    still = Trajectory(jnp.zeros(2), jnp.zeros((1, 2)), jnp.asarray(0.0), (0, 1), (0, 1), 2)
    with pytest.raises(ArgumentError, match=r"trajectory must have finite times that ascend, got 0\.0 to 0\.0 s"):
        viewer.play(still)
    late = np.concatenate([np.zeros((2, 1, 3)), np.full((1, 1, 3), np.nan)])
    with pytest.raises(ArgumentError, match="forces must be finite"):
        viewer.play(np.zeros((3, 2)), dt=0.1, contacts=[Contact("tool")], forces=late)
    with pytest.raises(DtypeError, match="world must be"):
        viz.Viewer(ARM, world=collision.sphere(jnp.zeros(3), 1.0), **QUIET)  # type: ignore[arg-type]
    before = threading.active_count()
    for wrong, error, message in (
        ({"drag": "nothing"}, NameNotFoundError, "no link named 'nothing'"),
        ({"drag": ["tool", "base"]}, ModelError, "no joint moves link 'base'"),
        ({"drag": 0.5}, DtypeError, "drag must be a tuple of links, by name or index, got float"),
        ({"ghosts": np.zeros(2)}, ShapeError, r"ghosts must have shape \(n, 2\), got \(2,\)"),
        ({"ghosts": np.full((1, 2), np.nan)}, ArgumentError, "ghosts must be finite"),
        ({"packages": "folder"}, DtypeError, "packages must be a tuple of folders, got str"),
        ({"urdf": 3}, DtypeError, "path must be"),
        ({"quiet": "no"}, DtypeError, "quiet must be True or False, got str"),
        ({"block": "no"}, DtypeError, "block must be True or False, got str"),
    ):
        with pytest.raises(error, match=message):
            viz.show(ARM, **untyped({"world": BALL, "block": False} | QUIET | wrong))
    until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"port": 70000}, ArgumentError, "port must be from 0 to 65535, got 70000"),
        ({"port": -1}, ArgumentError, "port must be from 0 to 65535, got -1"),
        ({"port": "x"}, DtypeError, "port must be an integer"),
        ({"host": None}, DtypeError, "host must be a string, got NoneType"),
        ({"host": "203.0.113.1"}, ArgumentError, "host '203.0.113.1', port 0: no server can listen there"),
        ({"host": "no.such.host.invalid"}, ArgumentError, "host 'no.such.host.invalid', port 0: no server can listen"),
    ],
)
def test_a_server_that_cannot_listen_is_an_error(changed, error, message):
    """viser would wait for it forever."""
    with pytest.raises(error, match=message):
        viz.show(ARM, world=BALL, block=False, **untyped(QUIET | changed))


def test_a_port_that_is_taken_is_skipped_up_to_the_last():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 65535))
        other.listen()
        with pytest.raises(ArgumentError, match="port 65535: neither this port nor one of the next is free"):
            viz.show(ARM, world=BALL, block=False, port=65535, quiet=True)


def test_missing_viser_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rbydyn_jax\[view\]'"):
        viz.show(ARM, **QUIET)


def test_viewers_tell_their_addresses_and_close(capsys):
    before = set(threading.enumerate())
    with viz.Viewer(ARM, world=BALL, port=18080) as first, viz.Viewer(ARM, world=BALL, port=18080) as second:
        assert first.url != second.url
        assert f'src="{second.url}"' in second._repr_html_()
        assert urllib.request.urlopen(second.url).status == 200
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["viewer:", first.url],
        ["viewer:", second.url],
    ]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(second.url)
    second.close()
    second.wait()
    for call in (
        lambda: setattr(second, "q", np.zeros(2)),
        lambda: second.show_ghosts(np.zeros((1, 2))),
        lambda: second.drag("tool"),
        lambda: second.play(np.zeros((2, 2)), dt=0.1),
        lambda: second.show_forces([], np.zeros((0, 3))),
        lambda: second.set_forces(np.zeros((0, 3))),
    ):
        with pytest.raises(RbydynError, match="the viewer is closed"):
            call()
    until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.ci
def test_visuals_of_a_file_are_found_and_the_others_named(tmp_path):
    package = tmp_path / "arm_description"
    (package / "meshes").mkdir(parents=True)
    trimesh.creation.box((0.2, 0.4, 0.6)).export(package / "meshes" / "brick.stl")
    (package / "robot.urdf").write_text("""<robot name="one"><link name="base/a"/><link name="base"/>
      <link name="arm"><visual><origin xyz="1 0 0"/><geometry><mesh filename="package://arm_description/meshes/brick.stl"
          scale="2 1 1"/></geometry><material name="red"><color rgba="1 0 0 1"/></material></visual>
        <visual><geometry><mesh filename="meshes/brick.stl"/></geometry></visual>
        <visual><geometry><sphere radius="0.3"/></geometry></visual>
        <visual><geometry><mesh filename="package://other/x.stl"/></geometry></visual>
        <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="world" type="fixed"><parent link="base"/><child link="base/a"/><origin xyz="0 0 5"/></joint>
      <joint name="turn" type="continuous"><parent link="base/a"/><child link="arm"/><axis xyz="0 0 1"/></joint>
    </robot>""")
    path = package / "robot.urdf"
    visuals = read_visuals(path)
    scaled, relative, sphere, missing = (visual_mesh(visual, path) for visual in visuals)
    assert_close(scaled.bounds, np.array([[0.8, -0.2, -0.3], [1.2, 0.2, 0.3]]), TOL)
    assert_close(relative.bounds, np.array([[-0.1, -0.2, -0.3], [0.1, 0.2, 0.3]]), TOL)
    assert_close(np.linalg.norm(sphere.vertices, axis=1), np.full(len(sphere.vertices), 0.3), TOL)
    assert missing is None and visuals[0].color == (1.0, 0.0, 0.0, 1.0)
    with viz.show(load_urdf(path), urdf=path, block=False, **QUIET) as viewer:
        assert viewer.missing_meshes == ("package://other/x.stl",)
        assert handle(viewer, "/robot/arm/visual_0").visible
        assert_close(handle(viewer, "/robot/base:a").position, np.array([0, 0, 5.0]))  # no child of base
        assert handle(viewer, "/bones").visible is False


@pytest.mark.ci
def test_a_joint_of_several_velocities_has_a_plot_of_each_torque():
    model = with_limits(robots.pendulum(floating_base=True), effort_limit=jnp.array([1.0, 1, 1, 10, 100, 1000, 1]))
    motion = Trajectory(neutral(model), jnp.array([[1.0, 1.0]]), jnp.asarray(1.0), (4, 5), (3, 4), 7)
    with viz.play(model, motion, block=False, **QUIET) as viewer:
        assert viewer.playback is not None
        plot, data = viewer.playback._plots[0]
        curves = dict(zip([series["label"] for series in plot.series], data, strict=True))
    accelerations = np.abs(np.asarray(sample_trajectory(motion, 201).a)) * float(total_mass(model))
    for k, limit in ((3, 10.0), (4, 100.0)):  # a rigid body that is carried along x and y
        assert_close(curves[f"floating_base[{k}]"], 100.0 * accelerations[:, k] / limit, 1e-5)


@pytest.mark.ci
def test_positions_that_a_joint_does_not_have_are_named():
    model = robots.pendulum(floating_base=True)
    q = np.tile(np.asarray(neutral(model)), (3, 1))
    q[2, :4] = 0.0
    with viz.show(model, block=False, **QUIET) as viewer:
        with pytest.raises(ArgumentError, match=r"trajectory\[2\] of joint 'floating_base'.*quaternion zero"):
            viewer.play(q, dt=0.1)
        with pytest.raises(ArgumentError, match=r"q\[2\] of joint 'floating_base'.*quaternion zero"):
            viewer.show_ghosts(q)


@pytest.mark.ci
def test_a_link_that_is_named_twice_has_one_gizmo():
    with viz.show(ARM, drag=["tool", "tool"], block=False, **QUIET) as viewer:
        assert list(viewer.gizmos) == ["tool"]
        assert viewer.server.scene.get_handle_by_name("/targets/1") is None


@pytest.mark.ci
def test_a_robot_without_shapes_has_bones_and_no_distances():
    model = robots.double_pendulum(floating_base=True)
    with viz.show(model, block=False, ghosts=np.asarray(neutral(model))[None], **QUIET) as viewer:
        free = [f"floating_base.{x}" for x in ("rx", "ry", "rz", "x", "y", "z")]
        assert list(viewer.sliders) == [*free, "shoulder", "elbow"]
        with pytest.raises(ModelError, match="model 'double_pendulum' has no collision shapes"):
            viewer.drag("lower", clearance=0.1)
        viewer.sliders["shoulder"].value = np.pi / 2
        at = {name: handle(viewer, f"/robot/{name}").position for name in model.link_names}
        assert_close(at["lower"].astype(np.float32), np.array([-1.0, 0.0, 0.0]), TOL)
        bones = handle(viewer, "/bones")
        assert bones.visible and viewer._text.content == ""
        assert_close(bones.points[-1], np.stack([at["upper"], at["lower"]]).astype(np.float32), TOL)


@pytest.mark.ci
def test_sliders_turn_and_move_a_floating_base():
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    model = robots.pendulum(floating_base=True)
    with viz.show(model, block=False, **QUIET) as viewer:
        vector, point = [0.3, -0.4, 1.1], [0.5, -0.25, 0.75]
        for name, value in zip(("rx", "ry", "rz", "x", "y", "z"), [*vector, *point], strict=True):
            viewer.sliders[f"floating_base.{name}"].value = value
        x, y, z, w = rotation.from_rotvec(vector).as_quat()
        assert_close(viewer.q[:4], np.array([w, x, y, z]), TOL)
        assert_close(viewer.q[4:7], np.array(point), TOL)
        base = handle(viewer, "/robot/base")
        assert_close(np.array(base.position), np.array(point), TOL)
        viewer.q = np.array([0.0, 1.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.5])  # half a turn about x
        shown = [slider.value for slider in viewer.sliders.values()]
        assert_close(np.abs(np.array(shown)), np.array([np.pi, 0.0, 0.0, 0.1, 0.2, 0.3, 0.5]), TOL)


CUBE = """v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"""
MESHED = """<mujoco><asset><mesh name="corner" file="corner.obj"/><material name="red" rgba="1 0 0 1"/></asset>
  <worldbody><body name="bob"><joint name="hinge" axis="0 1 0"/>
    <geom type="mesh" mesh="corner" pos="0.1 0 0" contype="0" conaffinity="0" material="red"/>
    <geom type="mesh" mesh="corner" group="3"/>
    <geom type="box" size="0.1 0.2 0.3" contype="0" conaffinity="0"/>
    <geom type="sphere" size="0.1"/></body></worldbody></mujoco>"""


@pytest.mark.ci
def test_the_meshes_of_an_mjcf_file_are_shown(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "corner.obj").write_text(CUBE)
    path = tmp_path / "bob.xml"
    path.write_text(MESHED)
    visuals = read_visuals(path)
    assert [visual.link for visual in visuals] == ["bob", "bob"]  # the sphere is a collision shape, group 3 is hidden
    assert visuals[0].color == (1.0, 0.0, 0.0, 1.0)
    found = visual_mesh(visuals[0], path)
    corners = np.array([[0, 0, 0], [0.2, 0, 0], [0, 0.2, 0], [0, 0, 0.2]]) + (0.1, 0, 0)  # of the file, moved
    assert_close(np.array(found.bounds), np.stack([corners.min(axis=0), corners.max(axis=0)]), TOL)
    assert found.volume == pytest.approx(0.2**3 / 6, rel=1e-5)
    assert_close(np.array(visual_mesh(visuals[1], path).extents), np.array([0.2, 0.4, 0.6]), TOL)
    with viz.show(load_mjcf(path), urdf=path, block=False, **QUIET) as viewer:
        assert handle(viewer, "/robot/bob/visual_0") and not viewer.missing_meshes
