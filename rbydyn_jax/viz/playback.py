"""A motion that is played: time slider, play button, speed, and plots with a line at the time that is shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import check_number, check_positive_number
from ..identification.parameter_vector import velocity_names
from .motion_data import MotionData

if TYPE_CHECKING:
    from .viewer import Viewer

_FRAME = 1.0 / 30.0  # [s]
_CURVES = 6  # torques that are plotted: those that come nearest to their limits
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#17becf")


class Playback:
    """Plays a motion in a viewer.

    Args:
        viewer: The viewer.
        server: Its viser server.
        data: The motion.
        forces: Forces at the contacts of the viewer at each time (t, c, 3) [N].

    Attributes:
        data: The motion.
        playing: Whether it is being played.
    """

    def __init__(self, viewer: Viewer, server: Any, data: MotionData, forces: np.ndarray | None) -> None:
        self.data = data
        self._viewer, self._forces = viewer, forces
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rbydyn_jax playback", daemon=True)
        self.playing = False
        first, last = data.times[0], data.times[-1]
        gui = server.gui
        self._panel = gui.add_panel()
        with self._panel.add_tab("Motion"):
            self._slider = gui.add_slider("time [s]", first, last, (last - first) / 1000.0, first)
            self._button = gui.add_button("Play")
            self._speed = gui.add_slider("speed", 0.1, 2.0, 0.1, 1.0)
            self._plots = list(_plots(gui, viewer.model, data))
        self._panel.dock_left()
        self._panel.set_width(400)
        self._slider.on_update(lambda _: self._show())
        self._button.on_click(lambda _: self.pause() if self.playing else self.play())
        self._show()
        self._thread.start()

    @property
    def time(self) -> float:
        """The time that is shown [s]; assign to show another."""
        return float(self._slider.value)

    @time.setter
    def time(self, t: float) -> None:
        self._slider.value = float(np.clip(check_number(t, "time"), self.data.times[0], self.data.times[-1]))

    @property
    def speed(self) -> float:
        """Seconds of the motion per second; assign to change it."""
        return float(self._speed.value)

    @speed.setter
    def speed(self, factor: float) -> None:
        self._speed.value = check_positive_number(factor, "speed")

    def play(self) -> None:
        """Starts playing; at the end it starts again."""
        self.playing, self._button.label = True, "Pause"

    def pause(self) -> None:
        """Stops playing."""
        self.playing, self._button.label = False, "Play"

    def close(self) -> None:
        """Stops the thread that plays, and removes the panel."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._panel.remove()

    def _show(self) -> None:
        k = int(np.argmin(np.abs(self.data.times - self.time)))
        if self._forces is not None:
            self._viewer.set_forces(self._forces[k])
        self._viewer.q = self.data.q[k]
        for handle, data in self._plots:
            handle.data = with_line(data, self.data.times[k])

    def _run(self) -> None:
        before = time.monotonic()
        while not self._closed.wait(_FRAME):
            now = time.monotonic()
            if self.playing:
                t = self.time + self.speed * (now - before)
                self.time = t if t <= self.data.times[-1] else self.data.times[0]
            before = now


def _plots(gui: Any, model: Any, data: MotionData) -> Sequence[tuple[Any, tuple[np.ndarray, ...]]]:
    found = []
    if data.torque_ratios is not None:
        order = np.argsort(-data.torque_ratios.max(axis=0), kind="stable")[:_CURVES]
        used = [v for v in order if data.torque_ratios[:, v].max() > 0.0]
        names = velocity_names(model)
        curves = {names[v]: 100.0 * data.torque_ratios[:, v] for v in used}
        if curves:
            found.append(_plot(gui, "|torque| / limit [%]", data.times, curves))
    if data.distances is not None:
        found.append(_plot(gui, "minimum distance [mm]", data.times, {"distance": 1e3 * data.distances}))
    return found


def _plot(gui: Any, title: str, times: np.ndarray, curves: dict[str, np.ndarray]) -> tuple[Any, tuple[np.ndarray, ...]]:
    values = np.stack(list(curves.values()))
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    ends = np.array([low, high + 0.05 * (high - low)])
    series: list[dict[str, Any]] = [{"label": "t [s]"}]
    series += [{"label": name, "stroke": c, "width": 2} for name, c in zip(curves, _COLORS, strict=False)]
    series.append({"label": "now", "stroke": "#d62728", "width": 2})
    scales = {"x": {"time": False}, "y": {"range": tuple(ends.tolist())}}
    data = (times, *values, ends)
    handle = gui.add_uplot(
        with_line(data, times[0]), tuple(series), title=title, scales=scales, legend={"live": False}, aspect=2.0
    )
    return handle, data


def with_line(data: tuple[np.ndarray, ...], t: float) -> tuple[np.ndarray, ...]:
    """Curves over times with a vertical line at one of the times, which is there thrice then.

    Args:
        data: Times (n,), curves (n,) each, and at last the two ends of the line (2,).
        t: Where the line is.

    Returns:
        Times (n + 2,), the curves, and the line, which goes up from the lower end and down again.
    """
    times, *curves, ends = data
    k = min(int(np.searchsorted(times, t)), len(times) - 1)
    line = np.full(len(times) + 2, ends[0])
    line[k + 1] = ends[1]
    return *(np.insert(x, k, [x[k], x[k]]) for x in (times, *curves)), line
