"""Whether the numbers of a welded robot, and the products of them in its dynamics, are finite in the model's dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .description import RobotDescription
from .findings import Findings

if TYPE_CHECKING:
    from ..model.arrays import RobotArrays

_MARGIN = 1e-6  # for sums over bodies, and for velocities and accelerations beyond the unit ones
_PARAMETERS = ("damping", "friction", "armature")


def check_numbers(
    description: RobotDescription, robot: RobotArrays, gravity: Sequence[float], floats: np.finfo, findings: Findings
) -> None:
    """Adds an error for each element with a number that overflows in `floats`, or else for too large products.

    Torques and mass matrices are sums of products of a mass, two lengths, an acceleration and two multipliers.

    Args:
        description: The robot, by which `findings.lines` knows its elements.
        robot: The same, welded.
        gravity: Acceleration of free fall (3,) [m/s^2].
        floats: The numbers of the leaves.
        findings: Where the remarks go.
    """
    lines = {("link", x.name): findings.lines.get(("link", i), 0) for i, x in enumerate(description.links)}
    lines |= {("joint", x.name): findings.lines.get(("joint", i), 0) for i, x in enumerate(description.joints)}
    largest, dtype = float(floats.max), floats.dtype
    failed: set[tuple[str, str]] = set()

    def refuse(kind: str, name: str, message: str) -> None:
        if (kind, name) not in failed:
            failed.add((kind, name))
            findings.add("error", message, f"{kind} {name!r}", lines.get((kind, name), 0))

    for kind, name, what, numbers in _numbers(robot):
        if not (np.abs(numbers) <= largest).all():  # or NaN, of infinities
            refuse(kind, name, f"{what} overflows {dtype}: {_worst(numbers):.3g}, the largest number is {largest:.3g}")
    for name, lower, upper in zip(robot.joint_names, robot.lower, robot.upper, strict=True):
        if lower > largest or upper < -largest:
            refuse("joint", name, f"limits [{lower:g}, {upper:g}] leave no position in {dtype}")
    if max(map(abs, gravity)) > largest:
        findings.add("error", f"gravity {max(gravity, key=abs):g} overflows {dtype}", f"robot {robot.name!r}")
    elif not failed:
        _check_products(robot, gravity, max(largest, float(np.finfo(np.float32).max)), dtype, refuse)


def _worst(numbers: np.ndarray) -> float:
    return float(np.ravel(numbers)[np.argmax(np.where(np.isnan(numbers), np.inf, np.abs(numbers)))])


def _lengths(robot: RobotArrays) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Positions, and parameters such as a pitch [m], by kind and name of the element."""
    for i, name in enumerate(robot.joint_names):
        yield "joint", name, "position", robot.joint_placements[i, :3, 3]
        yield "joint", name, "parameter", np.array(robot.joint_parameters[i])
    for i, name in enumerate(robot.link_names):
        yield "link", name, "position", robot.link_placements[i, :3, 3]
    row = dict.fromkeys(robot.shapes, 0)
    for kind, link in zip(robot.shape_kinds, robot.shape_links, strict=True):
        fields: Any = robot.shapes[kind]
        numbers = np.concatenate([np.ravel(x[row[kind]]) for x in fields])
        row[kind] += 1
        yield "link", robot.link_names[link], "collision shape", numbers


def _inertias(robot: RobotArrays) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Masses, first and second moments, by kind and name of the element."""
    for i, name in enumerate(robot.link_names):
        yield "link", name, "mass, first moment or inertia about its origin", robot.link_inertias[i]
    first = {body: robot.link_names[i] for i, body in reversed(list(enumerate(robot.link_bodies)))}
    for body, parameters in enumerate(robot.body_inertias):
        yield "link", first[body], "inertia of the moving body", parameters


def _multipliers(robot: RobotArrays) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Multipliers and offsets, by kind and name of the joint."""
    for name, mimic in zip(robot.joint_names, robot.mimic, strict=True):
        if mimic is not None:
            yield "joint", name, "mimic multiplier or offset", np.array(mimic[1:])


def _numbers(robot: RobotArrays) -> Iterator[tuple[str, str, str, np.ndarray]]:
    yield from _lengths(robot)
    yield from _inertias(robot)
    yield from _multipliers(robot)
    for what in _PARAMETERS:
        for name, number in zip(robot.joint_names, getattr(robot, what), strict=True):
            yield "joint", name, what, number


def _check_products(robot: RobotArrays, gravity: Sequence[float], largest: float, dtype: np.dtype, refuse) -> None:
    found = [list(group(robot)) for group in (_lengths, _inertias, _multipliers)]
    sums = [1.0 + math.fsum(float(np.abs(x).sum()) / largest for *_, x in group) * largest for group in found]
    sums = [min(x, largest) for x in sums]
    length, mass, multiplier = map(math.log10, sums)
    size = 2.0 * length + mass + 2.0 * multiplier + math.log10(1.0 + max(map(abs, gravity)))
    if size > math.log10(largest * _MARGIN):
        every = [x for group in found for x in group if x[3].size]
        kind, name, what, numbers = max(every, key=lambda x: float(np.abs(x[3]).max()))
        refuse(kind, name, f"{what} {_worst(numbers):.3g} is too large: forces, about 1e{size:.0f}, overflow {dtype}")
