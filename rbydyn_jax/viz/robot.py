"""A robot in one configuration: its collision shapes as surfaces, and lines from joint to joint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._check import check_finite, check_flag, check_number
from .._errors import ArgumentError, DtypeError
from .._extras import require
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
    links: Iterable[str | int] | None = None,
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
        links: The links to be drawn, by name or index, at least one; default is all.
        skeleton: Whether to draw lines between the origins of the bodies.

    Raises:
        ArgumentError: The configuration is not finite, the colour none, the opacity not from 0 to 1, or `links` empty.
        DtypeError: An argument is of another type, or the axes are flat.
        MissingExtraError: matplotlib is not installed.
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape (nq,).
    """
    if not isinstance(axes, require("mpl_toolkits.mplot3d", "viz", FEATURE).Axes3D):
        want = 'axes of matplotlib with projection="3d"'
        raise DtypeError(f"axes must be {want}, got {type(axes).__name__}")
    check_look(color, alpha)
    skeleton = check_flag(skeleton, "skeleton")
    poses = np.asarray(fk(model, q), float)
    check_finite(q, "q")
    shown = _indices(model, links)
    if not shown:
        raise ArgumentError("links must name at least one link, got none")
    quads = _quads(model, poses, shown)
    draw_surfaces(axes, [(quads, color, alpha)])
    origins = poses[sorted(shown), :3, 3]
    if skeleton:
        ends = np.array([ends for ends in bones(model) if ends[1] in shown], int).reshape(-1, 2)
        _draw_lines(axes, poses[ends, :3, 3], [color], 1.5 if has_body(model) else 4.0)
        if not has_body(model):
            _draw_frames(axes, poses[sorted(shown)])
    make_room(axes, np.concatenate([quads.reshape(-1, 3), origins]))


def check_look(color: Any, alpha: Any) -> None:
    """Raises unless these are a colour and an opacity.

    Raises:
        ArgumentError: It is no colour of matplotlib, or the opacity not from 0 to 1.
        DtypeError: The opacity is not a number.
        MissingExtraError: matplotlib is not installed.
    """
    if not require("matplotlib.colors", "viz", FEATURE).is_color_like(color):
        raise ArgumentError(f'color must be a colour of matplotlib, such as "tab:blue" or "0.6", got {color!r:.200}')
    if not 0.0 <= check_number(alpha, "alpha") <= 1.0:
        raise ArgumentError(f"alpha must be from 0 to 1, got {alpha}")


def robot_surface(model: Model, q: Any, links: Iterable[str | int] | None = None) -> np.ndarray:
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
    if not len(ends):  # which matplotlib cannot project
        return
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


def _indices(model: Model, links: Iterable[str | int] | None) -> set[int]:
    if links is None:
        return set(range(len(model.link_names)))
    return {model.link_index(link) for link in check_links(links, "links")}


def check_links(links: Any, name: str) -> list[Any]:
    """Returns links, by name or index, as a list.

    Raises:
        DtypeError: It is one name, or nothing that holds some.
    """
    if not isinstance(links, Iterable) or isinstance(links, str | bytes):
        raise DtypeError(f"{name} must be a tuple of links, by name or index, got {type(links).__name__}")
    return list(links)


def _quads(model: Model, poses: np.ndarray, shown: set[int]) -> np.ndarray:
    surfaces = [
        shape.surface(poses[link])
        for link, shape in zip(model.tree.shape_links, single_shapes(model), strict=True)
        if link in shown
    ]
    return np.concatenate([np.zeros((0, 4, 3)), *surfaces])
