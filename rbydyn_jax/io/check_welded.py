"""Welds a robot, and checks what only the welded robot shows: all that comes before a `Model`, in plain numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model.arrays import RobotArrays
from .check_inertia import check_bodies
from .check_mimic import note_unused_of_followers
from .check_numbers import check_numbers
from .description import RobotDescription
from .findings import Findings
from .weld import weld

EARTH_GRAVITY = (0.0, 0.0, -9.81)


@np.errstate(over="ignore", invalid="ignore")  # overflows become findings
def weld_checked(
    description: RobotDescription,
    findings: Findings,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    gravity: Sequence[float] = EARTH_GRAVITY,
    strict: bool = False,
    floats: np.finfo | None = None,
) -> RobotArrays:
    """Welds a checked description, and adds what is wrong with the result to `findings`; errors end it.

    Args:
        description: The robot.
        findings: What was found in the description so far, with the lines of its elements.
        base_link: As in `weld`.
        floating_base: As in `weld`.
        joint_order: As in `weld`.
        gravity: Acceleration of free fall in world axes (3,) [m/s^2].
        strict: Whether a warning is an error.
        floats: The numbers that the robot will be computed with; default is float64.

    Raises:
        ArgumentError: `joint_order` is not a permutation of the moving joints.
        ModelError: There is an error among the findings of a robot that was built in Python.
        NameNotFoundError: There is no such base link or joint.
        ParseError: There is an error among the findings of a file.
    """
    if findings.failed:
        findings.report(strict)
    robot = weld(
        description, base_link=base_link, floating_base=floating_base, joint_order=joint_order, findings=findings
    )
    check_numbers(description, robot, gravity, np.finfo(float) if floats is None else floats, findings)
    if findings.failed:
        findings.report(strict)
    check_bodies(robot, findings, [link.name for link in description.links])
    note_unused_of_followers(robot, findings, [joint.name for joint in description.joints])
    findings.report(strict)
    return robot
