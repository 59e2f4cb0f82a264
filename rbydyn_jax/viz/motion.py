"""A figure of a motion: poses along the path, torques against their limits, distance over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._check import check_finite, check_integer, check_outside_jit, check_pose, check_real, check_single
from .._errors import DtypeError, ModelError
from .._extras import require
from ..algorithms.kinematics import fk
from ..identification.parameter_vector import velocity_names
from ..model.model import Model, check_model
from ..planning import Trajectory, TrajectoryReport
from .robot import FEATURE, VIEW, check_links, draw_surfaces, robot_surface

_BEFORE, _AFTER = "tab:red", "tab:green"


def plot_motion(
    model: Model,
    trajectory: Trajectory,
    report: TrajectoryReport,
    link: str,
    target: Any,
    *,
    before: TrajectoryReport | None = None,
    moving_links: Sequence[str] | None = None,
    poses: int = 5,
    title: str = "",
) -> Any:
    """Draws a motion of the robot and what it costs.

    Args:
        model: The robot.
        trajectory: The motion.
        report: What `planning.check_trajectory` measured of it.
        link: The link whose path is shown.
        target: Its pose at the end T_world_link (4, 4).
        before: Another motion's measurements, for comparison.
        moving_links: The links that are drawn at each of the poses along the path, default all; the others are drawn
            at the end only.
        poses: How many poses along the path.
        title: Title of the figure.

    Returns:
        A `matplotlib.figure.Figure`; it belongs to no window. Save it with `savefig`.

    Raises:
        ArgumentError: `poses` is less than 1, a configuration or torque not finite, or the target no rigid transform.
        DtypeError: An argument is of another type, or traced.
        MissingExtraError: matplotlib is not installed.
        ModelError: The trajectory is of another robot.
        NameNotFoundError: There is no such link.
        ShapeError: `target` is not of shape (4, 4), or the motion or a report a batch or of another robot.
    """
    figure = require("matplotlib.figure", "viz", FEATURE).Figure(figsize=(15.0, 8.6), layout="constrained")
    model, poses = check_model(model), check_integer(poses, "poses", 1)
    check_outside_jit("plot_motion", model, trajectory, report, before)
    _check_motion(model, trajectory)
    _check_report(model, report, "report")
    if before is not None:
        _check_report(model, before, "before")
    moving_links = None if moving_links is None else check_links(moving_links, "moving_links")
    target = check_real(target, "target", (4, 4))
    check_finite(target, "target")
    check_pose(target, "target")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 0.95))
    scene = figure.add_subplot(grid[:, 0], projection="3d", computed_zorder=False)
    _draw_path(scene, model, report, link, target, before, moving_links, poses)
    _draw_torques(figure.add_subplot(grid[0, 1]), model, trajectory, report)
    _draw_distances(figure.add_subplot(grid[1, 1]), report, before)
    figure.legend(*scene.get_legend_handles_labels(), loc="outside lower left", fontsize=9, ncols=4, frameon=False)
    if title:
        figure.suptitle(title, fontsize=13)
    return figure


def _check_motion(model: Model, trajectory: Trajectory) -> None:
    _check_type(trajectory, "trajectory", Trajectory)
    check_single(trajectory.q_start.shape[:-1], "trajectory")
    if trajectory.nv != model.nv:
        raise ModelError(f"trajectory is of a robot with {trajectory.nv} velocities, the model has {model.nv}")


def _check_report(model: Model, report: TrajectoryReport, name: str) -> None:
    _check_type(report, name, TrajectoryReport)
    check_single(np.shape(report.samples.times)[:-1], name)
    for numbers, what, size in ((report.samples.q, "samples.q", model.nq), (report.torques, "torques", model.nv)):
        check_real(numbers, f"{name}.{what}", (len(report.samples.times), size))
        check_finite(numbers, f"{name}.{what}")


def _check_type(x: Any, name: str, kind: type) -> None:
    if not isinstance(x, kind):
        raise DtypeError(f"{name} must be a planning.{kind.__name__}, got {type(x).__name__}")


def _draw_path(
    axes: Any,
    model: Model,
    report: TrajectoryReport,
    link: str,
    T: np.ndarray,
    before: TrajectoryReport | None,
    moving_links: Sequence[str | int] | None,
    poses: int,
) -> None:
    colormap = require("matplotlib", "viz", FEATURE).colormaps["viridis"]
    q = np.asarray(report.samples.q)
    times = np.asarray(report.samples.times)
    moving = set() if moving_links is None else {model.link_index(link) for link in moving_links}
    others = [] if moving_links is None else [k for k in range(len(model.link_names)) if k not in moving]
    last, index = len(q) - 1, model.link_index(link)
    surfaces = []
    for k in np.linspace(0, last, poses).round().astype(int):
        color, ends = colormap(0.15 + 0.75 * k / last), k in (0, last)
        surfaces.append((robot_surface(model, q[k], moving_links), color, 0.9 if ends else 0.35))
        axes.plot([], [], color=color, linewidth=6, alpha=0.9 if ends else 0.5, label=f"t = {times[k]:.2f} s")
    draw_surfaces(axes, [*surfaces, (robot_surface(model, q[last], others), "0.75", 0.7)])
    for measured, color, style, name in ((before, _BEFORE, "--", "before"), (report, _AFTER, "-", "after")):
        if measured is not None:
            at = np.stack([np.asarray(fk(model, x))[index, :3, 3] for x in np.asarray(measured.samples.q)])
            axes.plot(*at.T, color=color, linestyle=style, linewidth=3, zorder=20, label=f"path of {link}, {name}")
    for k, color in enumerate(("r", "g", "b")):
        axes.plot(*np.stack([T[:3, 3], T[:3, 3] + 0.12 * T[:3, k]], axis=1), color=color, linewidth=2.5, zorder=20)
    axes.plot(*T[:3, 3:4], "k*", markersize=12, zorder=21, label="target (axes x, y, z: red, green, blue)")
    limits = _room(model, q)
    axes.set(xlim=limits[0], ylim=limits[1], zlim=limits[2])
    axes.set_box_aspect(limits[:, 1] - limits[:, 0], zoom=1.12)
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    axes.set_title("poses along the path, with collision shapes", y=1.1)
    axes.view_init(elev=VIEW[0], azim=VIEW[1])


def _room(model: Model, q: np.ndarray) -> np.ndarray:
    """The box (3, 2) around the shapes, or the links if there are none, in the first and the last configuration."""
    if model.tree.shape_links:
        points = np.concatenate([robot_surface(model, q[k]).reshape(-1, 3) for k in (0, -1)])
    else:
        points = np.concatenate([np.asarray(fk(model, q[k]))[:, :3, 3] for k in (0, -1)])
    margin = 0.05
    return np.stack([points.min(axis=0) - margin, points.max(axis=0) + margin], axis=1)


def _draw_torques(axes: Any, model: Model, trajectory: Trajectory, report: TrajectoryReport) -> None:
    times = np.asarray(report.samples.times)
    limits = np.asarray(model.effort_limit)
    units, every = _force_units(model), velocity_names(model)
    names = [every[v] for v in trajectory.v_indices]
    for v, name, color in zip(trajectory.v_indices, names, _family_colors(names), strict=True):
        torque = np.asarray(report.torques)[:, v]
        with np.errstate(divide="ignore"):  # a limit of zero: off the plot
            ratio = np.divide(torque, limits[v], out=np.zeros_like(torque), where=torque != 0.0)
        label = f"{name} ({limits[v]:g} {units[v]})" if limits[v] < np.inf else f"{name} (no limit)"
        axes.plot(times, 100.0 * ratio, color=color, linewidth=1.8, label=label)
    for sign in (-1, 1):
        axes.axhline(100.0 * sign, color="k", linestyle="--", linewidth=1.2, label="limit" if sign > 0 else None)
    axes.set(xlabel="time [s]", ylabel="torque / limit [%]", ylim=(-112, 112), xlim=(times[0], times[-1]))
    axes.set_title("joint torques against their limits")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def _force_units(model: Model) -> list[str]:
    """The unit of the force of each velocity: that of a torque where it turns something."""
    units = []
    for joint, mimic in zip(model.tree.joints, model.tree.mimics, strict=True):
        if mimic is None:
            columns = joint.columns(np.array([0.0, 0.0, 1.0]), [0.0] * len(joint.parameters))
            units += ["N m" if column[:3].any() else "N" for column in columns.T]
    return units


def _family_colors(names: Sequence[str]) -> list[Any]:
    """Colours of joints: those whose names differ in their number only are shades of one."""
    maps = require("matplotlib", "viz", FEATURE).colormaps
    stems = [name.rstrip("0123456789_[]") for name in names]
    families = list(dict.fromkeys(stems))
    palettes = ("Blues", "Oranges", "Greens", "Purples")
    if len(families) > len(palettes):
        return [maps["turbo"](k / (len(names) - 1)) for k in range(len(names))]
    colors, seen = [], dict.fromkeys(families, 0)
    for stem in stems:
        shade = 0.35 + 0.6 * seen[stem] / max(stems.count(stem) - 1, 1)
        colors.append(maps[palettes[families.index(stem)]](shade))
        seen[stem] += 1
    return colors


def _draw_distances(axes: Any, report: TrajectoryReport, before: TrajectoryReport | None) -> None:
    for measured, color, style, name in ((before, _BEFORE, "--", "before"), (report, _AFTER, "-", "after")):
        if measured is not None and measured.distances is not None:
            times, d = np.asarray(measured.samples.times), 1e3 * np.asarray(measured.distances)
            axes.plot(times, d, color=color, linestyle=style, linewidth=2, label=name)
            k = int(np.argmin(d))
            axes.plot(times[k], d[k], "o", color=color, clip_on=False, zorder=5, label=f"min, {name}: {d[k]:.1f} mm")
    low, high = axes.get_ylim()
    low = min(low, -0.1 * high)
    axes.axhspan(low, 0.0, color="tab:red", alpha=0.12, label="contact")
    axes.axhline(0.0, color="k", linewidth=1.0)
    axes.set(xlabel="time [s]", ylabel="distance [mm]", ylim=(low, high), xlim=(0.0, float(report.samples.times[-1])))
    axes.set_title("minimum distance over all checked pairs of shapes")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9, frameon=False)
