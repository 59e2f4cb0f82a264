"""The picture of a motion shows the numbers of its report."""

from __future__ import annotations

import io
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    MissingExtraError,
    ModelError,
    NameNotFoundError,
    ShapeError,
    link_pose,
    load_urdf_string,
    robots,
    with_limits,
)
from rbydyn_jax.planning import Trajectory, check_trajectory
from rbydyn_jax.viz import plot_motion
from tests.helpers import assert_close, untyped

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def motion():
    """Robot, trajectory, report, the report of another one, and target."""
    model = robots.two_link_arm()
    dtype = jnp.asarray(0.0).dtype
    slow, fast = (
        Trajectory(jnp.zeros(2), jnp.asarray([[0.8, size]], dtype), jnp.asarray(0.5), (0, 1), (0, 1), 2)
        for size in (0.4, 1.4)
    )
    target = link_pose(model, jnp.asarray([0.8, 0.4]), "tool")
    after, before = (check_trajectory(model, t, "tool", target, points=51) for t in (slow, fast))
    return model, slow, after, before, target


@pytest.fixture(scope="module")
def picture(motion):
    model, slow, after, before, target = motion
    return plot_motion(
        model, slow, after, "tool", target, before=before, moving_links=["lower"], poses=4, title="reach"
    )


def lines(axes) -> dict:
    return {line.get_label(): line for line in axes.get_lines()}


@pytest.mark.slow
def test_path_is_that_of_the_link_and_ends_at_the_target(motion, picture):
    model, _, after, _, target = motion
    scene = picture.axes[0]
    assert (scene.get_xlabel(), scene.get_ylabel(), scene.get_zlabel()) == ("x [m]", "y [m]", "z [m]")
    path = np.stack(lines(scene)["path of tool, after"].get_data_3d(), axis=1)
    q = np.asarray(after.samples.q)
    heading = q.sum(axis=1)
    assert_close(path[:, 0], 0.5 * np.cos(q[:, 0]) + 0.4 * np.cos(heading))
    assert_close(path[:, 1], 0.5 * np.sin(q[:, 0]) + 0.4 * np.sin(heading))
    assert_close(path[-1], np.asarray(target)[:3, 3])
    assert "path of tool, before" in lines(scene)
    assert [name for name in lines(scene) if name.startswith("t = ")] == [
        "t = 0.00 s",
        "t = 0.17 s",
        "t = 0.33 s",
        "t = 0.50 s",
    ]
    # The forearm at each of the four poses, and the upper arm once, in one collection sorted by depth.
    (surface,) = scene.collections
    from rbydyn_jax.viz.robot import robot_surface

    assert len(surface.get_facecolor()) == 5 * len(robot_surface(model, q[0], ["upper"]))


@pytest.mark.ci
def test_torques_are_shown_as_shares_of_their_limits(motion, picture):
    _, _, after, _, _ = motion
    shown = lines(picture.axes[1])
    for k, joint in enumerate(("shoulder", "elbow")):
        assert_close(shown[f"{joint} (40 N m)"].get_ydata(), 100.0 * np.asarray(after.torques)[:, k] / 40.0)
        assert_close(shown[f"{joint} (40 N m)"].get_xdata(), after.samples.times)
    assert (shown["limit"].get_ydata()[0], picture.axes[1].get_ylabel()) == (100.0, "torque / limit [%]")
    assert len({shown[f"{joint} (40 N m)"].get_color() for joint in ("shoulder", "elbow")}) == 2


def test_distances_are_shown_in_millimetres_with_their_minima(motion, picture):
    _, _, after, before, _ = motion
    shown = lines(picture.axes[2])
    assert_close(shown["after"].get_ydata(), 1e3 * np.asarray(after.distances))
    assert_close(shown["before"].get_ydata(), 1e3 * np.asarray(before.distances))
    assert before.distance < 0 < after.distance
    assert f"min, after: {1e3 * float(after.distance):.1f} mm" in shown
    low, high = picture.axes[2].get_ylim()
    assert low < 1e3 * float(before.distance) and high > 1e3 * float(after.distance)


@pytest.mark.ci
def test_picture_is_drawn_without_a_window(picture):
    assert picture.get_suptitle() == "reach"
    stored = io.BytesIO()
    picture.savefig(stored, dpi=40)
    from matplotlib.image import imread

    stored.seek(0)
    pixels = imread(stored)[..., :3]
    assert pixels.shape[:2] == (344, 600)
    ink = np.any(pixels < 0.9, axis=2)
    assert ink[:, :280].mean() > 0.02 and ink[:, 320:].mean() > 0.02  # the scene and the curves
    assert not hasattr(picture, "number")  # pyplot numbers its figures, and keeps them


@pytest.mark.slow
def test_picture_of_joints_without_limits_capsules_or_comparison():
    model = robots.double_pendulum()
    motion = Trajectory(jnp.zeros(2), jnp.ones((1, 2)), jnp.asarray(1.0), (0, 1), (0, 1), 2)
    report = check_trajectory(model, motion, "lower", jnp.eye(4), points=5, clearance=None)
    picture = plot_motion(model, motion, report, "lower", jnp.eye(4))
    shown = lines(picture.axes[1])
    assert not np.asarray(shown["shoulder (no limit)"].get_ydata()).any()
    picture.savefig(io.BytesIO(), dpi=20)


@pytest.mark.ci
def test_a_joint_of_several_velocities_has_a_curve_for_each():
    model = load_urdf_string(
        """<robot name="puck"><link name="table"/><link name="puck"><inertial><mass value="2"/>
        <inertia ixx="1" iyy="1" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="glide" type="planar"><parent link="table"/><child link="puck"/><axis xyz="0 0 1"/></joint>
        </robot>"""
    )
    model = with_limits(model, effort_limit=jnp.array([1.0, 50.0, 20.0]))
    motion = Trajectory(jnp.zeros(3), jnp.array([[0.5, 0.1]]), jnp.asarray(0.5), (0, 1), (0, 1), 3)
    report = check_trajectory(model, motion, "puck", jnp.eye(4), points=5, clearance=None)
    shown = lines(plot_motion(model, motion, report, "puck", jnp.eye(4)).axes[1])
    for k, limit in ((0, 1.0), (1, 50.0)):  # a mass of 2 kg that slides on a level table
        assert_close(shown[f"glide[{k}] ({limit:g} N)"].get_ydata(), 200.0 * np.asarray(report.samples.a)[:, k] / limit)
    turn = Trajectory(jnp.zeros(3), jnp.array([[0.5]]), jnp.asarray(0.5), (2,), (2,), 3)
    report = check_trajectory(model, turn, "puck", jnp.eye(4), points=5, clearance=None)
    shown = lines(plot_motion(model, turn, report, "puck", jnp.eye(4)).axes[1])
    assert_close(shown["glide[2] (20 N m)"].get_ydata(), 50.0 * np.asarray(report.samples.a)[:, 2] / 20.0)


@pytest.mark.ci
def test_a_torque_beyond_a_limit_of_zero_is_not_shown_as_kept(motion):
    model, slow, _, _, target = motion
    model = with_limits(model, effort_limit=jnp.array([0.0, 40.0]))
    report = check_trajectory(model, slow, "tool", target, points=5)
    line = lines(plot_motion(model, slow, report, "tool", target).axes[1])["shoulder (0 N m)"]
    torque = np.asarray(report.torques)[:, 0]
    assert_close(np.sign(line.get_ydata()), np.sign(torque))
    assert np.isinf(line.get_ydata()[torque != 0.0]).all() and (torque != 0.0).any()


def test_seven_joints_have_seven_colours():
    from rbydyn_jax.viz.motion import _family_colors

    for names in (
        [f"joint{i}" for i in range(1, 8)],
        [f"{side}_arm_{i}" for side in ("left", "right") for i in range(7)],
        ["waist", "shoulder", "elbow", "roll", "bend", "flange"],
        ["slide"],
    ):
        colors = _family_colors(names)
        assert len(colors) == len(names) == len(set(colors))


def test_wrong_link_and_missing_matplotlib(motion, monkeypatch):
    model, slow, after, _, target = motion
    with pytest.raises(NameNotFoundError, match="did you mean 'tool'"):
        plot_motion(model, slow, after, "tol", target)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rbydyn_jax\[viz\]'"):
        plot_motion(model, slow, after, "tool", target)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"trajectory": np.zeros(2)}, DtypeError, "trajectory must be a planning.Trajectory, got ndarray"),
        ({"report": None}, DtypeError, "report must be a planning.TrajectoryReport, got NoneType"),
        ({"before": "x"}, DtypeError, "before must be a planning.TrajectoryReport, got str"),
        ({"target": np.eye(3)}, ShapeError, r"target must have shape \(4, 4\)"),
        ({"target": 2.0 * np.eye(4)}, ArgumentError, "target must be a rigid transform"),
        ({"poses": 0}, ArgumentError, "poses must be at least 1, got 0"),
        ({"moving_links": "tool"}, DtypeError, "moving_links must be a tuple of links"),
    ],
)
def test_wrong_arguments_are_named(motion, changed, error, message):
    model, slow, after, _, target = motion
    given = {"model": model, "trajectory": slow, "report": after, "link": "tool", "target": target} | changed
    with pytest.raises(error, match=message):
        plot_motion(**given)


def test_motions_that_are_batches_of_another_robot_or_not_finite_are_named(motion):
    model, slow, after, _, target = motion
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), (slow, after))
    for changed, error, message in (
        ({"trajectory": batch[0]}, ShapeError, r"trajectory must be a single one, got a batch of \(2,\)"),
        ({"report": batch[1]}, ShapeError, r"report must be a single one, got a batch of \(2,\)"),
        ({"before": batch[1]}, ShapeError, r"before must be a single one, got a batch of \(2,\)"),
        ({"model": robots.pendulum()}, ModelError, "trajectory is of a robot with 2 velocities, the model has 1"),
        (
            {"before": eqx.tree_at(lambda x: x.samples.q, after, jnp.zeros((51, 3)))},
            ShapeError,
            r"before.samples.q must have shape \(51, 2\), got \(51, 3\)",
        ),
        (
            {"report": eqx.tree_at(lambda x: x.torques, after, jnp.full((51, 2), jnp.nan))},
            ArgumentError,
            r"report.torques must be finite, got nan at \[0, 0\]",
        ),
    ):
        given = {"model": model, "trajectory": slow, "report": after, "link": "tool", "target": target} | changed
        with pytest.raises(error, match=message):
            plot_motion(**untyped(given))
    with pytest.raises(DtypeError, match="plot_motion needs the values of its arguments"):
        jax.jit(lambda x: plot_motion(model, x, after, "tool", target))(slow)
