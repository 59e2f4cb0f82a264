"""A robot in one configuration: its collision shapes as surfaces, and lines from joint to joint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._check import require
from ..algorithms.kinematics import fk
from ..model.model import Model, single_shapes
from .skeleton import bones, has_body

FEATURE = "rbydyn_jax.viz"
VIEW = (28.0, -18.0)  # elevation and azimuth of the camera [deg]


def draw_robot(
    axes: Any,
    model: Model,
    q: Any,
    *,
    color: Any = "0.6",
    alpha: float = 0.25,
    links: Iterable[str] | None = None,
    skeleton: bool = True,
) -> None:
    """Draws a configuration into 3-D axes of matplotlib, which keep its proportions.

    Where most bodies have no collision shape, frames stand at the links: x red, y green, z blue.

    Args:
        axes: Axes with ``projection="3d"``.
        model: The robot.
        q: Configuration (nq,) [rad, m].
        color: A colour of matplotlib.
        alpha: Opacity of the collision shapes.
        links: The links to be drawn; default is all.
        skeleton: Whether to draw lines between the origins of the bodies.

    Raises:
        MissingExtraError: matplotlib is not installed.
        NameNotFoundError: There is no such link.
    """
    poses = np.asarray(fk(model, q), float)
    shown = _indices(model, links)
    quads = _quads(model, poses, shown)
    draw_surfaces(axes, [(quads, color, alpha)])
    origins = poses[sorted(shown), :3, 3]
    if skeleton:
        ends = np.array([ends for ends in bones(model) if ends[1] in shown], int).reshape(-1, 2)
        _draw_lines(axes, poses[ends, :3, 3], [color], 1.5 if has_body(model) else 4.0)
        if not has_body(model):
            _draw_frames(axes, poses[sorted(shown)])
    make_room(axes, np.concatenate([quads.reshape(-1, 3), origins]))


def robot_surface(model: Model, q: Any, links: Iterable[str] | None = None) -> np.ndarray:
    """The quadrilaterals (n, 4, 3) of the robot's collision shapes in world coordinates [m]; see `draw_robot`."""
    return _quads(model, np.asarray(fk(model, q), float), _indices(model, links))


def robot_points(model: Model, q: Any) -> np.ndarray:
    """Points (n, 3) between which a robot is [m]: the corners of its surface, and the origins of its links."""
    poses = np.asarray(fk(model, q), float)
    quads = _quads(model, poses, _indices(model, None))
    return np.concatenate([quads.reshape(-1, 3), poses[:, :3, 3]])


def draw_surfaces(axes: Any, surfaces: Sequence[tuple[np.ndarray, Any, float]]) -> None:
    """Draws quadrilaterals, each set with its colour and opacity, as one body: what is nearer covers what is behind.

    matplotlib sorts by depth within one collection only.
    """
    surfaces = [surface for surface in surfaces if len(surface[0])]
    if not surfaces:
        return
    colors = require("matplotlib.colors", "viz", FEATURE)
    art = require("mpl_toolkits.mplot3d.art3d", "viz", FEATURE)
    faces = [np.tile(colors.to_rgba(color, alpha), (len(quads), 1)) for quads, color, alpha in surfaces]
    light = colors.LightSource(azdeg=90.0 - VIEW[1] + 20.0, altdeg=35.0)
    axes.add_collection3d(
        art.Poly3DCollection(
            np.concatenate([quads for quads, _, _ in surfaces]),
            facecolors=np.concatenate(faces),
            linewidths=0,
            shade=True,
            lightsource=light,
        )
    )


def _draw_lines(axes: Any, ends: np.ndarray, colors: Any, width: float) -> None:
    art = require("mpl_toolkits.mplot3d.art3d", "viz", FEATURE)
    axes.add_collection3d(art.Line3DCollection(ends, colors=colors, linewidths=width, capstyle="round"))


def _draw_frames(axes: Any, poses: np.ndarray) -> None:
    origins = poses[:, :3, 3]
    length = 0.06 * max(float(np.linalg.norm(np.ptp(origins, axis=0))), 0.1)
    for k, color in enumerate(("tab:red", "tab:green", "tab:blue")):
        _draw_lines(axes, np.stack([origins, origins + length * poses[:, :3, k]], axis=1), [color], 1.5)


def make_room(axes: Any, points: np.ndarray) -> None:
    """Makes room for points beside what is drawn already, with one scale for all three axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = np.maximum(0.5 * (high - low), 0.2 * (high - low).max())
    room = 0.5 * (low + high) + np.array([[-1.0], [1.0]]) * half
    axes.auto_scale_xyz(*room.T, had_data=True)
    axes.set_aspect("equal")


def _indices(model: Model, links: Iterable[str] | None) -> set[int]:
    return set(range(len(model.link_names)) if links is None else map(model.link_index, links))


def _quads(model: Model, poses: np.ndarray, shown: set[int]) -> np.ndarray:
    surfaces = [
        shape.surface(poses[link])
        for link, shape in zip(model.tree.shape_links, single_shapes(model), strict=True)
        if link in shown
    ]
    return np.concatenate([np.zeros((0, 4, 3)), *surfaces])
