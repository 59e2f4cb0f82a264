"""Sliders for the coordinates of a robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..joints import JointType
from ..model.model import Model
from .state import QUICK

_REACH = {"rad": np.pi, "m": 1.0}  # where there is no limit
_FREE = 2.0  # where a joint moves freely in space [m]


class JointSliders:
    """Sliders for all joints: one for each coordinate on a line; for turns by quaternions and the like, one for each
    component of the rotation vector from the neutral position.

    Args:
        gui: The GUI of a viser server.
        model: The robot.
        q: Its configuration.
        changed: Called after a slider was moved.

    Attributes:
        by_name: The sliders by the name of their joint; where a joint has several coordinates with ``[k]`` behind it,
            and where it turns freely with ``.rx``, ``.ry``, ``.rz`` and ``.x``, ``.y``, ``.z``.
    """

    def __init__(self, gui: Any, model: Model, q: np.ndarray, changed: Callable[[], None]) -> None:
        self.by_name: dict[str, Any] = {}
        self._gui, self._changed = gui, changed
        self._indices: list[int] = []
        self._turns: list[_Turn] = []
        lower, upper = (np.asarray(x, float).tolist() for x in (model.position_lower, model.position_upper))
        tree = model.tree
        for name, joint, mimic, place in zip(tree.joint_names, tree.joints, tree.mimics, tree.q_slices, strict=True):
            if mimic is not None:
                continue
            on_lines = _on_lines(joint)
            if len(on_lines) < joint.nq:
                self._turns.append(turn := _Turn(joint, place, on_lines))
                single = turn.count == 1
                for k, angle in enumerate(turn.vector(q)):
                    label = name if single else f"{name}.r{'xyz'[k]}"
                    turn.sliders.append(self._slider(label, angle, -np.inf, np.inf, "rad"))
            for number, k in enumerate(on_lines):
                at = place.start + k
                unit = "rad" if k in joint.angles else "m"
                if len(on_lines) < joint.nq:
                    self._slider(f"{name}.{'xyz'[number]}", float(q[at]), lower[at], upper[at], unit, _FREE)
                else:
                    label = name if joint.nq == 1 else f"{name}[{k}]"
                    self._slider(label, float(q[at]), lower[at], upper[at], unit)
                self._indices.append(at)
        of_turns = {id(slider) for turn in self._turns for slider in turn.sliders}
        self._on_lines = [slider for slider in self.by_name.values() if id(slider) not in of_turns]

    def _slider(
        self, label: str, value: float, lower: float, upper: float, unit: str, reach: float | None = None
    ) -> Any:
        value = round(float(value), 6)
        reach = _REACH[unit] if reach is None else reach
        slider = self._gui.add_slider(
            label,
            min=float(min(lower if np.isfinite(lower) else -reach, value)),
            max=float(max(upper if np.isfinite(upper) else reach, value)),
            step=0.001,
            initial_value=value,
            hint=f"{unit}, limits {lower:.4g} .. {upper:.4g}",
        )
        slider.on_update(lambda _: self._changed())
        self.by_name[label] = slider
        return slider

    def read(self, q: np.ndarray) -> np.ndarray:
        """The configuration `q` with the coordinates of the sliders."""
        q = q.copy()
        for turn in self._turns:
            turn.read(q)
        q[self._indices] = [slider.value for slider in self._on_lines]
        return q

    def show(self, q: np.ndarray) -> None:
        """Moves the sliders to a configuration, which calls `changed` for each that moves."""
        for turn in self._turns:
            for slider, angle in zip(turn.sliders, turn.vector(q), strict=True):
                slider.value = round(float(angle), 6)
        for at, slider in zip(self._indices, self._on_lines, strict=True):
            slider.value = round(float(q[at]), 6)


class _Turn:
    """The rotation of one joint by its rotation vector, the velocity that leads there from the neutral position.

    Args:
        joint: The joint type, whose velocity begins with the rotation.
        place: Its coordinates in q.
        on_lines: Those of them that have sliders of their own.
    """

    def __init__(self, joint: JointType, place: slice, on_lines: list[int]) -> None:
        self._place, self._neutral, self._nv = place, joint.neutral(), joint.nv
        self._others = np.array(on_lines, int)
        self._integrate = jax.jit(joint.integrate, compiler_options=QUICK)
        self._difference = jax.jit(joint.difference, compiler_options=QUICK)
        self.count = joint.nv - len(on_lines)
        self.sliders: list[Any] = []

    def vector(self, q: np.ndarray) -> np.ndarray:
        """The rotation vector in a configuration [rad]."""
        own = q[self._place].copy()
        own[self._others] = self._neutral[self._others]
        neutral = jnp.asarray(self._neutral, own.dtype)
        return np.asarray(self._difference(neutral, jnp.asarray(own)))[: self.count]

    def read(self, q: np.ndarray) -> None:
        """Puts the rotation of the sliders into a configuration, if they say another than it has."""
        angles = np.array([slider.value for slider in self.sliders])
        if np.array_equal(angles, self.vector(q).astype(float).round(6)):
            return
        dv = jnp.zeros(self._nv, q.dtype).at[: self.count].set(jnp.asarray(angles, q.dtype))
        q[self._place] = np.asarray(self._integrate(jnp.asarray(self._neutral, q.dtype), dv))


def _on_lines(joint: JointType) -> list[int]:
    """The coordinates of a joint that are numbers on a line."""
    if type(joint).integrate is JointType.integrate:
        return list(range(joint.nq))
    return sorted({*joint.translations, *joint.angles})
