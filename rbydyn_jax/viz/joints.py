"""Sliders for the coordinates of a robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..joints import JointType
from ..model.model import Model

_REACH = {"angle": np.pi, "length": 1.0}  # where there is no limit [rad, m]


class JointSliders:
    """One slider for each coordinate on a line; those of quaternions and the like have none.

    Args:
        gui: The GUI of a viser server.
        model: The robot.
        q: Its configuration.
        changed: Called after a slider was moved.

    Attributes:
        by_name: The sliders by the name of their joint, with ``[k]`` behind it where a joint has several coordinates.
    """

    def __init__(self, gui: Any, model: Model, q: np.ndarray, changed: Callable[[], None]) -> None:
        self.by_name: dict[str, Any] = {}
        self._indices: list[int] = []
        lower, upper = np.asarray(model.position_lower, float), np.asarray(model.position_upper, float)
        tree = model.tree
        for name, joint, mimic, place in zip(tree.joint_names, tree.joints, tree.mimics, tree.q_slices, strict=True):
            if mimic is not None or type(joint).integrate is not JointType.integrate:
                continue
            for k in range(joint.nq):
                at = place.start + k
                turns = k in joint.angles
                reach = _REACH["angle" if turns else "length"]
                low = min(lower[at] if np.isfinite(lower[at]) else -reach, round(float(q[at]), 6))
                high = max(upper[at] if np.isfinite(upper[at]) else reach, round(float(q[at]), 6))
                slider = gui.add_slider(
                    name if joint.nq == 1 else f"{name}[{k}]",
                    min=float(low),
                    max=float(high),
                    step=0.001,
                    initial_value=round(float(q[at]), 6),
                    hint=f"{'rad' if turns else 'm'}, limits {lower[at]:.4g} .. {upper[at]:.4g}",
                )
                slider.on_update(lambda _: changed())
                self.by_name[slider.label] = slider
                self._indices.append(at)

    def read(self, q: np.ndarray) -> np.ndarray:
        """The configuration `q` with the coordinates of the sliders."""
        q = q.copy()
        q[self._indices] = [slider.value for slider in self.by_name.values()]
        return q

    def show(self, q: np.ndarray) -> None:
        """Moves the sliders to a configuration, which calls `changed` for each that moves."""
        for at, slider in zip(self._indices, self.by_name.values(), strict=True):
            slider.value = round(float(q[at]), 6)
