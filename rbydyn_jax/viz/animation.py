"""Films of motions with matplotlib."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._check import check_positive_number
from .._errors import ArgumentError, DtypeError, RbydynError
from .._extras import require
from .._progress import Progress, check_progress, reported
from ..model.model import Model, check_model
from .motion_data import motion_grid
from .robot import FEATURE, VIEW, check_look, draw_robot, make_room, robot_points

_INCHES, _DPI = 5.0, 100
_ROOM = (0.02, 0.16, 0.86, 0.8)  # left, bottom, width and height of the axes: labels of 3-D axes stand outside of them
_TICKS = 4
_MOST_FRAMES = 100_000
_DELAYS = 2, 2**16 - 1  # between two frames of a GIF [10 ms]; browsers slow down below


def animate(
    model: Model,
    trajectory: Any,
    path: str | Path,
    *,
    dt: float | None = None,
    fps: float = 20.0,
    speed: float = 1.0,
    color: Any = "tab:blue",
    alpha: float = 0.9,
    progress: Progress = False,
) -> None:
    """Writes an animation of a motion, drawn by `draw_robot`.

    Args:
        model: The robot.
        trajectory: A `Trajectory`, its samples or its report, a `Simulation`, or configurations (t, nq) [rad, m].
        path: The file; ``.gif``, or ``.mp4``, which needs the program ffmpeg.
        dt: Time between the configurations [s], if they are an array.
        fps: Frames per second. A frame of a GIF stays for whole hundredths of a second, at least two: the nearest
            number of these is taken, and the motion at these times, so that the film lasts as long as the motion.
        speed: Seconds of the motion per second of the film.
        color: A colour of matplotlib.
        alpha: Opacity of the collision shapes.
        progress: Called with the number of frames done and that of all; True shows a progress bar.

    Raises:
        ArgumentError: The path has another suffix, a number is not positive, a configuration not finite, the colour
            none, the opacity not from 0 to 1, or there are more than 100,000 frames.
        DtypeError: An argument is of another type.
        MissingExtraError: matplotlib is not installed, or tqdm for a progress bar.
        RbydynError: ffmpeg is not installed.
        ShapeError: The motion is of another robot, or a batch.
    """
    model = check_model(model)
    animation = require("matplotlib.animation", "viz", FEATURE)
    figure = require("matplotlib.figure", "viz", FEATURE).Figure(figsize=(_INCHES, _INCHES))
    ticker = require("matplotlib.ticker", "viz", FEATURE)
    require("matplotlib.backends.backend_agg", "viz", FEATURE).FigureCanvasAgg(figure)
    fps, speed = check_positive_number(fps, "fps"), check_positive_number(speed, "speed")
    check_progress(progress)
    check_look(color, alpha)
    if not isinstance(path, str | PathLike):
        raise DtypeError(f"path must be a string or a path, got {type(path).__name__}")
    kind = {".gif": "pillow", ".mp4": "ffmpeg"}.get(Path(path).suffix.lower())
    if kind is None:
        raise ArgumentError(f"path must end in .gif or .mp4, got {str(path)!r}")
    if not animation.writers.is_available(kind):
        raise RbydynError(f"animate needs the program {kind} for {Path(path).suffix} files; a .gif needs none")
    grid = motion_grid(model, trajectory, dt)
    if kind == "pillow":
        fps = 100.0 / float(np.clip(round(100.0 / fps), *_DELAYS))
    if (count := (grid.times[-1] - grid.times[0]) * fps / speed) > _MOST_FRAMES:
        raise ArgumentError(f"speed and fps must give at most {_MOST_FRAMES:,} frames, got {count:.0f}")
    times = np.arange(grid.times[0], grid.times[-1] + 0.5 * speed / fps, speed / fps)
    frames = grid.q[np.abs(grid.times[:, None] - times).argmin(axis=0)]
    room = np.concatenate([robot_points(model, q) for q in frames[:: max(len(frames) // 20, 1)]])
    axes = figure.add_axes(_ROOM, projection="3d")
    if kind == "pillow":
        fps = math.nextafter(fps, 0.0)  # its writer rounds the milliseconds of a frame down
    writer = animation.writers[kind](fps=fps)
    with writer.saving(figure, str(path), _DPI):
        for t, q in reported(zip(times, frames, strict=True), progress, len(times), "animate"):
            axes.clear()
            draw_robot(axes, model, q, color=color, alpha=alpha)
            make_room(axes, room)
            axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title=f"t = {t:.2f} s")
            for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
                axis.set_major_locator(ticker.MaxNLocator(_TICKS))
            axes.view_init(elev=VIEW[0], azim=VIEW[1])
            writer.grab_frame()
