"""Which limits and losses of joints that follow another one are not used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model.arrays import RobotArrays
from .findings import Findings


def note_unused_of_followers(robot: RobotArrays, findings: Findings, joint_names: Sequence[str] = ()) -> None:
    """Notes what a joint that follows another one declares beyond what the other one implies.

    A follower at k q + o has no coordinate of its own: limits, armature and losses are those of the joint with the
    coordinate q. Limits that the follower keeps anyway, as q does, are not worth a word.

    Args:
        robot: The welded robot.
        findings: Where the notes go.
        joint_names: Joints in the order of the description, by which `findings.lines` knows them.
    """
    index_of = {name: index for index, name in enumerate(joint_names)}
    for joint, mimic in enumerate(robot.mimic):
        if mimic is None:
            continue
        source, factor, offset = mimic
        unused = [what for what in ("armature", "damping", "friction") if getattr(robot, what)[joint] > 0.0]
        if np.isfinite(robot.effort[joint]):
            unused.insert(0, "effort limit")
        for what in ("acceleration", "velocity"):
            limit = getattr(robot, what)
            if _scaled(abs(factor), limit[source]) > limit[joint] * (1.0 + 1e-6):
                unused.insert(0, f"{what} limit")
        ends = sorted(_scaled(factor, end[source]) + offset for end in (robot.lower, robot.upper))
        slack = 1e-6 * (1.0 + np.abs(ends).max(initial=0.0, where=np.isfinite(ends)))
        if ends[0] < robot.lower[joint] - slack or ends[1] > robot.upper[joint] + slack:
            unused.insert(0, "position limits")
        if unused:
            name, leader = robot.joint_names[joint], robot.joint_names[source]
            verb = "is" if len(unused) == 1 and unused[0] != "position limits" else "are"
            message = f"follows joint {leader!r}: its own {', '.join(unused)} {verb} not used"
            findings.on("note", "joint", index_of.get(name, -1), name, message)


def _scaled(factor: float, limit: float) -> float:
    return factor * float(limit) if factor else 0.0  # no limit times zero is no motion
