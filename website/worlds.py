"""The picture in docs/collision.md: `python -m website.worlds` writes it to docs/images/.

An arm with its own capsules, a terrain, a convex hull and a distance grid of a cloud; lines join the nearest points.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

from rbydyn_jax import collision, robots
from rbydyn_jax.viz.robot import robot_surface

from .drawings import IMAGES

COLORS = {"robot": "#7194be", "convex_hull": "#b9a394", "height_map": "#a8b79a", "distance_grid": "#c9b458"}


def world() -> tuple[collision.World, np.ndarray]:
    """The obstacles, and the cloud of one of them."""
    rng = np.random.default_rng(3)
    x, y = np.meshgrid(0.1 * np.arange(15) - 0.7, 0.1 * np.arange(15) - 0.7, indexing="ij")
    heights = 0.12 * np.sin(4.0 * x) * np.cos(3.0 * y) - 0.2
    corner = jnp.eye(4).at[:2, 3].set(-0.7)
    stone = rng.normal(size=(14, 3))
    stone = np.array([0.1, 0.14, 0.12]) * stone / np.linalg.norm(stone, axis=1, keepdims=True) + [0.45, -0.4, 0.45]
    turn = np.linspace(0.0, 4.0 * np.pi, 60)
    cloud = np.stack([0.35 + 0.05 * np.cos(turn), 0.5 + 0.05 * np.sin(turn), 0.1 + 0.03 * turn], axis=1)
    obstacles = (
        collision.height_map(jnp.asarray(heights, float), 0.1, corner),
        collision.convex_hull(stone),
        collision.grid_from_points(cloud, 0.03, margin=0.1, radius=0.03),
    )
    return collision.World(*obstacles), cloud


def draw() -> None:
    """Writes the picture."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    arm, q = robots.panda_like(), jnp.array([0.3, 0.9, 0.2, -1.3, 0.1, 1.6, 0.5])
    around, cloud = world()
    figure = plt.figure(figsize=(7.0, 5.2), dpi=130)
    axes: Any = figure.add_subplot(projection="3d", computed_zorder=False)

    def shaded(quads: np.ndarray, color: str, alpha: float, order: int) -> None:
        faces = Poly3DCollection(list(quads), facecolors=color, shade=True, alpha=alpha, zorder=order)
        axes.add_collection3d(faces)

    for order, kind in enumerate(("height_map", "distance_grid", "convex_hull")):
        one = jax.tree.map(lambda x: np.asarray(x[0], float), around.shapes[kind])
        shaded(one.surface(np.eye(4)), COLORS[kind], 1.0 if kind != "distance_grid" else 0.6, order)
    shaded(robot_surface(arm, np.asarray(q), arm.link_names), COLORS["robot"], 0.9, 3)
    axes.scatter(*cloud.T, color="#5d4b00", s=3, zorder=4)
    found = collision.world_contacts(arm, q, around)
    for k in range(3):
        rows = np.flatnonzero(np.asarray(found.obstacle) == k)
        row = rows[np.asarray(found.distance)[rows].argmin()]
        ends = np.stack([found.point_a[row], found.point_b[row]])
        axes.plot(*ends.T, color="#c62828", linewidth=2.0, marker="o", markersize=3, zorder=5)
        text = f"{1e3 * found.distance[row]:.0f} mm"
        axes.text(*ends.mean(axis=0) + [0.09, 0.0, 0.02], text, color="#c62828", fontsize=9, zorder=6)
    axes.set(xlim=(-0.6, 0.7), ylim=(-0.6, 0.7), zlim=(-0.35, 0.8))
    axes.set_box_aspect((1, 1, 1), zoom=1.15)
    axes.view_init(elev=22, azim=-58)
    axes.set_axis_off()
    figure.savefig(IMAGES / "obstacles.png", bbox_inches="tight", pad_inches=0.02)


if __name__ == "__main__":
    draw()
