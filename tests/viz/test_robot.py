"""Drawings of robots: the geometry of the capsules, and what stands in the axes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, MissingExtraError, NameNotFoundError, neutral, robots
from rbydyn_jax.viz import capsule_surface, draw_robot
from rbydyn_jax.viz.robot import robot_surface
from tests.helpers import assert_close

figure = pytest.importorskip("matplotlib.figure")
TOL = 1e-6


def distance_to_segment(points, start, end):
    axis = end - start
    along = np.clip((points - start) @ axis / max(axis @ axis, 1e-300), 0.0, 1.0)
    return np.linalg.norm(points - start - along[..., None] * axis, axis=-1)


@pytest.mark.parametrize("length", [0.0, 1e-9, 0.4])
def test_capsule_surface_is_everywhere_one_radius_from_its_axis(length):
    direction = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    start = np.array([0.3, -0.2, 0.1])
    end = start + length * direction
    corners = capsule_surface(start, end, 0.07)
    assert_close(distance_to_segment(corners, start, end), np.full(corners.shape[:2], 0.07))
    if length > 1e-6:
        reach = (corners.reshape(-1, 3) - start) @ direction
        assert_close(np.array([reach.min(), reach.max()]), np.array([-0.07, length + 0.07]))
    # The area of the quadrilaterals is that of the capsule but for the flat faces.
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]), axis=1).sum()
    assert_close(area, 2 * np.pi * 0.07 * length + 4 * np.pi * 0.07**2, 0.05)


def test_robot_surface_follows_the_kinematics():
    model = robots.two_link_arm()
    lower = robot_surface(model, np.array([np.pi / 2, 0.0]), ["lower"]).reshape(-1, 3)
    # The arm points along y: the forearm's capsule reaches from 0.55 m to 0.85 m, and by its radius beyond.
    tol = 1e-12 if lower.dtype == model.inertias.dtype else 1e-6
    low, high = np.array([-0.04, 0.51, -0.04]), np.array([0.04, 0.89, 0.04])
    assert (lower >= low - tol).all() and (lower <= high + tol).all()
    assert_close(np.array([lower[:, 1].min(), lower[:, 1].max()]), np.array([0.51, 0.89]), 1e-6)
    both = robot_surface(model, np.zeros(2))
    assert len(both) == 2 * len(robot_surface(model, np.zeros(2), ["upper"]))


@pytest.mark.ci
def test_draw_robot_adds_the_capsules_and_a_skeleton_of_the_chosen_links():
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    model = robots.panda_like()
    axes = figure.Figure().add_subplot(projection="3d")
    draw_robot(axes, model, neutral(model), color="tab:red", alpha=0.4)
    surface, skeleton = axes.collections
    assert isinstance(surface, Poly3DCollection) and isinstance(skeleton, Line3DCollection)
    assert np.isclose(surface.get_facecolor()[:, 3], 0.4).all()
    axes.figure.draw_without_rendering()
    assert len(skeleton.get_segments()) == 8  # seven joints and the tool

    axes = figure.Figure().add_subplot(projection="3d")
    draw_robot(axes, model, neutral(model), links=["tool"], skeleton=False)
    assert len(axes.collections) == 0  # a link without capsules
    with pytest.raises(NameNotFoundError, match="did you mean 'link3'"):
        draw_robot(axes, model, neutral(model), links=["lnk3"])


def test_a_robot_keeps_its_proportions():
    axes = figure.Figure().add_subplot(projection="3d")
    for model in (robots.two_link_arm(), robots.double_pendulum()):
        draw_robot(axes, model, neutral(model))
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    assert limits[0, 1] >= 0.89 and limits[2, 0] <= -1.0  # the arm lies along x, the pendulum hangs down
    scales = np.asarray(axes.get_box_aspect()) / np.ptp(limits, axis=1)
    assert_close(scales, np.full(3, scales[0]), 1e-9)


def test_the_root_alone_is_drawn():
    axes = figure.Figure().add_subplot(projection="3d")
    draw_robot(axes, robots.rby1a(), np.zeros(24), links=["base"])
    axes.figure.draw_without_rendering()
    assert not len(axes.collections)  # it has neither a shape nor a bone


def test_frames_stand_where_there_are_no_shapes():
    axes = figure.Figure().add_subplot(projection="3d")
    draw_robot(axes, robots.double_pendulum(), np.array([np.pi / 2, 0.0]))
    axes.figure.draw_without_rendering()
    bones, x, _, z = axes.collections
    assert len(bones.get_segments()) == 2
    # Turned about y by a right angle, x points down and z along x, from the elbow at -1 m, too.
    ends = np.array(x._segments3d), np.array(z._segments3d)
    assert_close(ends[0][2, 0], np.array([-1.0, 0.0, 0.0]), TOL, scale=1.0)
    length = np.linalg.norm(ends[0][2, 1] - ends[0][2, 0])
    assert_close(ends[0][2, 1] - ends[0][2, 0], np.array([0.0, 0.0, -length]), TOL, scale=1.0)
    assert_close(ends[1][2, 1] - ends[1][2, 0], np.array([length, 0.0, 0.0]), TOL, scale=1.0)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"color": "foo"}, ArgumentError, "color must be a colour of matplotlib, .* got 'foo'"),
        ({"alpha": 7}, ArgumentError, "alpha must be from 0 to 1, got 7"),
        ({"alpha": "x"}, DtypeError, "alpha must be a number"),
        ({"links": []}, ArgumentError, "links must name at least one link"),
        ({"links": "tool"}, DtypeError, "links must be a tuple of links, by name or index, got str"),
        ({"links": 3}, DtypeError, "links must be a tuple of links, by name or index, got int"),
        ({"q": np.array([np.nan, 0.0])}, ArgumentError, "q must be finite"),
        ({"axes": figure.Figure().add_subplot()}, DtypeError, 'axes must be .*projection="3d", got Axes'),
        ({"axes": None}, DtypeError, "axes must be .*, got NoneType"),
    ],
)
def test_what_cannot_be_drawn_is_named(changed, error, message):
    axes = figure.Figure().add_subplot(projection="3d")
    given = {"axes": axes, "model": robots.two_link_arm(), "q": np.zeros(2)} | changed
    with pytest.raises(error, match=message):
        draw_robot(**given)
    assert not axes.collections


def test_missing_matplotlib_is_named(monkeypatch):
    axes = figure.Figure().add_subplot(projection="3d")
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    with pytest.raises(MissingExtraError, match=r"rbydyn_jax.viz needs .*pip install 'rbydyn_jax\[viz\]'"):
        draw_robot(axes, robots.two_link_arm(), np.zeros(2))
