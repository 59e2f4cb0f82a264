"""The drawings of frames in docs/conventions.md: `python -m website.drawings` writes them to docs/images/.

Their poses are those of `rbydyn_jax.spatial`, so that they show what the functions do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from rbydyn_jax.spatial import rpy, se3

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLORS = ("#c62828", "#2e7d32", "#1565c0")  # x, y, z
INK = "#37474f"
AZIMUTH, ELEVATION = np.deg2rad(58.0), np.deg2rad(22.0)


def flat(p: Any) -> np.ndarray:
    """Points (..., 3) as seen by the reader (..., 2): parallel projection, z up."""
    p = np.asarray(p, float)
    side = -np.sin(AZIMUTH) * p[..., 0] + np.cos(AZIMUTH) * p[..., 1]
    depth = np.cos(AZIMUTH) * p[..., 0] + np.sin(AZIMUTH) * p[..., 1]
    return np.stack([side, np.cos(ELEVATION) * p[..., 2] - np.sin(ELEVATION) * depth], axis=-1)


def pose(angles: Any, p: Any) -> np.ndarray:
    """The transform of roll, pitch, yaw [deg] and a position."""
    R = rpy.to_matrix(jnp.deg2rad(jnp.asarray(angles, float)))
    return np.asarray(se3.from_R_p(R, jnp.asarray(p, float)))


def arrow(axes: Any, start: Any, end: Any, color: str, width: float = 2.0, style: str = "-") -> None:
    """An arrow between two points."""
    arrowprops = {"arrowstyle": "-|>", "color": color, "linewidth": width, "linestyle": style}
    arrowprops |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}
    axes.annotate("", flat(end), flat(start), arrowprops=arrowprops)


def label(
    axes: Any, at: Any, text: str, offset: tuple[float, float] = (0, 0), color: str = INK, size: int = 11
) -> None:
    """A text beside a point."""
    axes.annotate(
        text, flat(at), offset, textcoords="offset points", color=color, ha="center", va="center", fontsize=size
    )


def frame(axes: Any, T: Any, name: str = "", length: float = 0.35, style: str = "-", letters: bool = True) -> None:
    """The axes of a frame: x red, y green, z blue."""
    T = np.asarray(T)
    for k, (color, letter) in enumerate(zip(COLORS, "xyz", strict=True)):
        end = T[:3, 3] + length * T[:3, k]
        arrow(axes, T[:3, 3], end, color, style=style)
        if letters:
            label(axes, T[:3, 3] + 1.15 * length * T[:3, k], letter, color=color, size=9)
    axes.plot(*flat(T[:3, 3]), "o", color=INK, markersize=4)
    if name:
        label(axes, T[:3, 3], name, (-11, -11))


def canvas(width: float, height: float, columns: int = 1) -> tuple[Any, list[Any]]:
    """A figure of axes without ticks that keep proportions."""
    figure, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for each in axes[0]:
        each.set_aspect("equal")
        each.axis("off")
    return figure, list(axes[0])


def link(axes: Any, T: Any, length: float = 0.75) -> None:
    """A link as a bar along the x axis of its frame."""
    T = np.asarray(T)
    ends = flat(np.stack([T[:3, 3], T[:3, 3] + length * T[:3, 0]]))
    axes.plot(*ends.T, color="#cfd8dc", linewidth=16, solid_capstyle="round", zorder=0)


def transforms() -> Any:
    """Two frames and a point."""
    figure, (axes,) = canvas(6.4, 2.7)
    A, B = pose((0, 0, 0), (0, 0, 0)), pose((20, -15, 5), (-0.3, 1.5, 0.1))
    point = B[:3, 3] + B[:3, :3] @ np.array([-0.25, 0.5, 0.45])
    frame(axes, A, "A")
    frame(axes, B, "B")
    arrow(axes, A[:3, 3], point, "#6a1b9a", 1.6)
    arrow(axes, B[:3, 3], point, "#6a1b9a", 1.6)
    arrow(axes, A[:3, 3], B[:3, 3], INK, 1.2, "--")
    axes.plot(*flat(point), "o", color="#6a1b9a", markersize=6)
    label(axes, 0.55 * point, r"$p_A$", (-4, 12), "#6a1b9a", 13)
    label(axes, (B[:3, 3] + point) / 2, r"$p_B$", (14, 0), "#6a1b9a", 13)
    label(axes, 0.55 * B[:3, 3], r"$T_{AB}$", (4, -14), INK, 13)
    label(axes, point, r"$p_A = T_{AB}\, p_B$", (0, 16), "#6a1b9a", 13)
    axes.set(xlim=(-0.45, 1.6), ylim=(-0.42, 0.42))
    return figure


def jacobian_frames() -> Any:
    """The three values of `frame=`."""
    figure, panels = canvas(9.6, 2.7, columns=3)
    world, body = pose((0, 0, 0), (0, 0, 0)), pose((-25, -35, 122), (-0.25, 0.7, 0.15))
    aligned = np.block([[np.eye(3), body[:3, 3:]], [np.zeros((1, 3)), np.ones((1, 1))]])
    chosen = {"local": body, "world_aligned": aligned, "world": world}
    says = {
        "local": "link origin, link axes",
        "world_aligned": "link origin, world axes (default)",
        "world": "world origin, world axes",
    }
    for axes, (name, T) in zip(panels, chosen.items(), strict=True):
        link(axes, body, 0.6)
        frame(axes, world, length=0.2, letters=False)
        label(axes, world[:3, 3], "world", (24, 9), size=9)
        frame(axes, body, length=0.2, letters=False)
        label(axes, body[:3, 3], "link", (2, -14), size=9)
        frame(axes, T, length=0.5)
        axes.set_title(f'"{name}"\n{says[name]}', fontsize=11, color=INK)
        axes.set(xlim=(-0.6, 1.15), ylim=(-0.35, 0.8))
    return figure


def roll_pitch_yaw() -> Any:
    """The three rotations of rpy, one after the other about the fixed axes."""
    figure, panels = canvas(9.6, 2.9, columns=4)
    angles = np.array([40.0, 30.0, 50.0])
    titles = ("rpy = (0, 0, 0)", "roll about x", "then pitch about y", "then yaw about z")
    for k, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        frame(axes, pose((0, 0, 0), (0, 0, 0)), length=0.6, style=":", letters=False)
        frame(axes, pose(angles * (np.arange(3) < k), (0, 0, 0)), length=0.6)
        axes.set_title(title, fontsize=11, color=INK)
        axes.set(xlim=(-0.75, 0.75), ylim=(-0.5, 0.72))
    return figure


def spatial_vectors() -> Any:
    """A twist and a wrench at the origin of a link."""
    figure, panels = canvas(7.6, 2.4, columns=2)
    T = pose((0, -12, 120), (0, 0, 0))
    rows = (
        ("twist", r"$[\omega;\ v]$", r"$\omega$  [rad/s]", r"$v$  [m/s]"),
        ("wrench", r"$[n;\ f]$", r"$n$  [N m]", r"$f$  [N]"),
    )
    for axes, (name, vector, first, second) in zip(panels, rows, strict=True):
        link(axes, T, 0.8)
        frame(axes, T, length=0.22, letters=False)
        angular, linear = np.array([0.1, -0.1, 0.75]), np.array([0.6, -0.25, 0.1])
        arrow(axes, T[:3, 3], angular, "#ef6c00", 2.4)
        arrow(axes, T[:3, 3], linear, "#6a1b9a", 2.4)
        turn = np.linspace(-0.4, 4.4, 40)
        ring = 0.45 * angular + 0.13 * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=-1)
        axes.plot(*flat(ring).T, color="#ef6c00", linewidth=1.5)
        arrow(axes, ring[-2], ring[-1], "#ef6c00", 1.5)
        label(axes, angular, first, (0, 11), "#ef6c00")
        label(axes, linear, second, (0, -14), "#6a1b9a")
        axes.set_title(f"{name} {vector}: angular first", fontsize=11, color=INK)
        axes.set(xlim=(-1.0, 1.0), ylim=(-0.15, 0.95))
    return figure


DRAWINGS = {
    "transforms": transforms,
    "jacobian_frames": jacobian_frames,
    "roll_pitch_yaw": roll_pitch_yaw,
    "spatial_vectors": spatial_vectors,
}


def main() -> None:
    """Writes the drawings."""
    matplotlib.rcParams["svg.hashsalt"] = "rbydyn_jax"  # the same file for the same drawing
    for name, draw in DRAWINGS.items():
        figure = draw()
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)


if __name__ == "__main__":
    main()
