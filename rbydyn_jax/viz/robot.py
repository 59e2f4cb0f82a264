"""A robot in one configuration: its collision shapes as surfaces, and lines from joint to joint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._check import require
from ..algorithms.kinematics import fk
from ..model.model import Model, single_shapes

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
    """Draws a configuration into 3-D axes of matplotlib.

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
    draw_surfaces(axes, [(_quads(model, poses, shown), color, alpha)])
    if skeleton:
        art = require("mpl_toolkits.mplot3d.art3d", "viz", FEATURE)
        bones = [bone for link in sorted(shown) if (bone := _bone(model, poses, link)) is not None]
        axes.add_collection3d(art.Line3DCollection(bones, colors=[color], linewidths=1.5))


def robot_surface(model: Model, q: Any, links: Iterable[str] | None = None) -> np.ndarray:
    """The quadrilaterals (n, 4, 3) of the robot's collision shapes in world coordinates [m]; see `draw_robot`."""
    return _quads(model, np.asarray(fk(model, q), float), _indices(model, links))


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


def _indices(model: Model, links: Iterable[str] | None) -> set[int]:
    return set(range(len(model.link_names)) if links is None else map(model.link_index, links))


def _quads(model: Model, poses: np.ndarray, shown: set[int]) -> np.ndarray:
    surfaces = [
        shape.surface(poses[link])
        for link, shape in zip(model.tree.shape_links, single_shapes(model), strict=True)
        if link in shown
    ]
    return np.concatenate([np.zeros((0, 4, 3)), *surfaces])


def _bone(model: Model, poses: np.ndarray, link: int) -> np.ndarray | None:
    """The line from the origin of the link that carries `link` to its own."""
    tree = model.tree
    body = tree.link_bodies[link]
    if body < 0:
        return None
    own = tree.principal_links[body]
    parent = tree.parents[body]
    start = own if own != link else (tree.principal_links[parent] if parent >= 0 else 0)
    return np.stack([poses[start, :3, 3], poses[link, :3, 3]])
