"""Joints of a robot that messages know by name: those with a single freedom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._check import check_finite, check_real
from ..._errors import ArgumentError, ModelError, NameNotFoundError
from ...model.model import Model, check_model


class Joints:
    """The joints of a robot: numbers of single joints from and to q, v and tau."""

    def __init__(self, model: Model) -> None:
        self.model = check_model(model)
        self.tree = self.model.tree
        self.own = [i for i, m in enumerate(self.tree.mimics) if m is None]
        self.single = [i for i in self.own if self.tree.joints[i].nv == 1]
        self.multipliers = np.asarray(self.model.mimic_multipliers, float)
        self.offsets = np.asarray(self.model.mimic_offsets, float)

    def configuration(self, q: Any, name: str = "q") -> np.ndarray:
        """A configuration as finite numbers of double precision."""
        found = check_real(q, name, (self.model.nq,))
        check_finite(found, name)
        return found

    def velocity(self, v: Any, name: str) -> np.ndarray:
        """A velocity, an acceleration or forces as numbers of double precision."""
        return check_real(v, name, (self.model.nv,))

    def base(self) -> int:
        """The floating joint at the root.

        Raises:
            ModelError: There is none.
        """
        found = [i for i in self.own if self.tree.parents[i] < 0 and self.tree.joints[i].name == "floating"]
        if not found:
            raise ModelError(f"{self.tree.name!r} has no floating joint at its root, whose pose `base` could be")
        return found[0]

    def index(self, names: Sequence[str], ignore_extra: bool) -> dict[int, int]:
        """Where our joints are among names; those that mimic others are left out, since they have no own coordinates.

        Raises:
            NameNotFoundError: A name is not that of a joint.
        """
        found: dict[int, int] = {}
        for k, name in enumerate(names):
            if name in self.tree.joint_names:
                found[self.tree.joint_names.index(name)] = k
            elif not ignore_extra:
                raise NameNotFoundError(name, "joint", self.tree.joint_names)
        return {i: k for i, k in found.items() if i in self.single}

    def check_complete(self, found: Sequence[int], kind: str) -> None:
        """Raises unless these are all joints that have coordinates of their own.

        Raises:
            ArgumentError: One is missing.
        """
        missing = [self.tree.joint_names[i] for i in self.own if i not in found]
        if missing:
            shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
            raise ArgumentError(f"{kind} must have all joints unless `q0` is given, {shown} missing")

    def set_position(self, q: np.ndarray, i: int, angle: Any) -> None:
        """Sets the position of a joint with one freedom, along the last axis."""
        at = self.tree.q_slices[i]
        if self.tree.joints[i].nq == 1:
            q[..., at.start] = angle
        else:  # sine and cosine
            q[..., at.start], q[..., at.start + 1] = np.sin(angle), np.cos(angle)

    def position(self, q: np.ndarray, i: int) -> Any:
        """The position of a joint with one freedom, of one that mimics another too, along the last axis."""
        at, mimic = self.tree.q_slices[i], self.tree.mimics[i]
        if self.tree.joints[i].nq == 2:
            return np.arctan2(q[..., at.start], q[..., at.start + 1])
        x = q[..., at.start]
        return x if mimic is None else self.multipliers[mimic.slot] * x + self.offsets[mimic.slot]

    def rate(self, v: np.ndarray, i: int) -> Any:
        """The velocity or acceleration of a joint with one freedom, along the last axis."""
        x, mimic = v[..., self.tree.v_slices[i].start], self.tree.mimics[i]
        return x if mimic is None else self.multipliers[mimic.slot] * x
