"""Validates a robot description: names, tree, coupling, limits and mass properties.

These checks hold for a description of any origin; `Findings.lines` tells them where an element stands in its file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..joints import JOINT_TYPES
from .check_inertia import check_inertials
from .description import (
    JointDescription,
    LinkDescription,
    RobotDescription,
)
from .findings import Findings, Level, did_you_mean

Say = Callable[[Level, str], None]

_WHEELS = {"differential": (2, 2, "wheel base, wheel radius"), "mecanum": (4, 3, "Lx, Ly, wheel radius")}


def check_description(
    description: RobotDescription, findings: Findings, base_link: str | None = None, *, complete: bool = True
) -> None:
    """Adds what is wrong with a description, or doubtful, to `findings`.

    Args:
        description: The robot.
        findings: Where the remarks go.
        base_link: The link from which on the robot is used; with it the file may hold several trees.
        complete: Whether the description has all links and joints of its file; if not, its tree is not judged.
    """
    links = [link.name for link in description.links]
    joints = [joint.name for joint in description.joints]
    if not links:
        findings.add("error", "has no links", f"robot {description.name!r}")
        return
    _check_names("link", links, findings)
    _check_names("joint", joints, findings)
    check_inertials(description.links, findings)
    for index, link in enumerate(description.links):
        _check_collisions(link, _say(findings, "link", index, link.name))
    known = set(links)
    _check_placements(description.joints, findings)
    for index, joint in enumerate(description.joints):
        _check_joint(joint, known, _say(findings, "joint", index, joint.name))
    _check_mimic(description, findings)
    _check_tree(description, findings, base_link, complete)
    _check_mobile(description, findings)


def _say(findings: Findings, kind: str, index: int, name: str) -> Say:
    return lambda level, message: findings.on(level, kind, index, name, message)


def _check_names(kind: str, names: list[str], findings: Findings) -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if not name:
            findings.on("error", kind, index, name, "has an empty name")
        elif name in first:
            line = findings.lines.get((kind, first[name]), 0)
            where = f" (first in line {line})" if line else ""
            findings.on("error", kind, index, name, f"is defined twice{where}")
        elif any(c.isspace() for c in name):
            findings.on("warning", kind, index, name, "has white space in its name, which is kept as it is")
        first.setdefault(name, index)


def _check_collisions(link: LinkDescription, say: Say) -> None:
    for collision in link.collisions:
        if problem := collision.geometry.problem():
            say("error", problem)


def _check_joint(joint: JointDescription, links: set[str], say: Say) -> None:
    for role, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in links:
            say("error", f"{role} link {name!r} is not defined{did_you_mean(name, links)}")
    _check_kind(joint, say)
    if math.isnan(joint.lower) or math.isnan(joint.upper):
        say("error", "limits must not be nan")
    elif joint.lower > joint.upper:
        say("error", f"limit lower {joint.lower:g} > upper {joint.upper:g}")
    elif joint.lower == math.inf or joint.upper == -math.inf:
        say("error", f"limits [{joint.lower:g}, {joint.upper:g}] leave no position")
    elif joint.lower == joint.upper:
        say("warning", f"limit lower equals upper ({joint.lower:g}): the joint cannot move")
    zero = []
    for what in ("effort", "velocity", "acceleration"):
        value = getattr(joint, what)
        if not value >= 0.0:
            say("error", f"{what} limit {value:g} is negative" if value < 0.0 else f"{what} limit is {value}")
        elif value == 0.0:
            zero.append(what)
    if zero:
        say("warning", f"zero {' and '.join(zero)} limit")
    for what in ("damping", "friction", "armature"):
        value = getattr(joint, what)
        if not (math.isfinite(value) and value >= 0.0):
            say("error", f"{what} {value:g} must be a finite number >= 0")


def _check_kind(joint: JointDescription, say: Say) -> None:
    if joint.kind not in JOINT_TYPES:
        say("error", f"unknown type {joint.kind!r}{did_you_mean(joint.kind, JOINT_TYPES)}")
        return
    wanted = JOINT_TYPES[joint.kind].parameters
    if set(joint.parameters) != set(wanted):
        got, names = (", ".join(x) or "none" for x in (joint.parameters, wanted))
        say("error", f"parameters of a {joint.kind} joint: {names}; got {got}")
    for name, value in joint.parameters.items():
        if not math.isfinite(value):
            say("error", f"{name} must be finite, got {value}")


def _check_placements(joints: Sequence[JointDescription], findings: Findings) -> None:
    """Checks origins and axes; all at once, as a large file has ten thousand of them."""
    well_formed = [i for i, j in enumerate(joints) if np.shape(j.origin) == (4, 4) and np.shape(j.axis) == (3,)]
    for index in sorted(set(range(len(joints))) - set(well_formed)):
        joint = joints[index]
        message = f"origin and axis have shapes {np.shape(joint.origin)} and {np.shape(joint.axis)}"
        findings.on("error", "joint", index, joint.name, f"{message}, expected (4, 4) and (3,)")
    if not well_formed:
        return
    origins = np.array([joints[i].origin for i in well_formed], float)
    axes = np.array([joints[i].axis for i in well_formed], float)
    rotations = origins[:, :3, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        skew = np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        is_pose = np.isfinite(origins).all(axis=(1, 2)) & (skew < 1e-6) & (np.linalg.det(rotations) > 0.0)
        lengths = np.sqrt((axes**2).sum(axis=1))
        is_unit = np.abs(lengths - 1.0) < 1e-9
    for at in np.flatnonzero(~(is_pose & is_unit)).tolist():
        index, name = well_formed[at], joints[well_formed[at]].name
        if not is_pose[at]:
            findings.on("error", "joint", index, name, "origin has no rotation in it, or numbers that are not finite")
        if not is_unit[at]:
            findings.on("error", "joint", index, name, f"axis has length {lengths[at]:.10g}, expected 1")


def _check_mimic(description: RobotDescription, findings: Findings) -> None:
    by_name = {joint.name: joint for joint in description.joints}
    done: set[str] = set()
    for index, joint in enumerate(description.joints):
        mimic = joint.mimic
        if mimic is None:
            continue
        say = _say(findings, "joint", index, joint.name)
        source = by_name.get(mimic.joint)
        if source is None:
            say("error", f"mimics unknown joint {mimic.joint!r}{did_you_mean(mimic.joint, by_name)}")
        elif not all(JOINT_TYPES[x.kind].scalar for x in (joint, source) if x.kind in JOINT_TYPES):
            say("error", f"a {joint.kind} joint cannot mimic the {source.kind} joint {mimic.joint!r}")
        if not (math.isfinite(mimic.multiplier) and math.isfinite(mimic.offset)):
            say("error", "mimic multiplier and offset must be finite")
        path = [joint.name]
        while (current := by_name.get(path[-1])) and current.mimic and current.name not in done:
            path.append(current.mimic.joint)
            if path[-1] in path[:-1]:
                cycle = path[path.index(path[-1]) :]
                say("error", f"mimic cycle {' -> '.join(cycle)}")
                break
        done.update(path)


def _check_tree(description: RobotDescription, findings: Findings, base_link: str | None, complete: bool) -> None:
    links = {link.name: index for index, link in enumerate(description.links)}
    parent: dict[str, JointDescription] = {}
    children: dict[str, list[str]] = {}
    for joint in description.joints:
        if joint.parent not in links or joint.child not in links:
            complete = False
            continue
        if joint.child in parent:
            names = f"{parent[joint.child].name!r}, {joint.name!r}"
            findings.on("error", "link", links[joint.child], joint.child, f"has two parent joints: {names}")
            complete = False
            continue
        parent[joint.child] = joint
        children.setdefault(joint.parent, []).append(joint.child)
    if not complete or findings.failed:
        return  # what follows would only repeat the errors above in other words
    roots = [name for name in links if name not in parent]
    reached = set(roots)
    stack = list(roots)
    while stack:
        below = children.get(stack.pop(), [])
        reached.update(below)
        stack.extend(below)
    lost = [name for name in links if name not in reached]
    robot = f"robot {description.name!r}"
    if lost:
        cycle = _cycle(lost[0], parent)
        shown = " -> ".join(repr(name) for name in [*cycle, cycle[0]])
        where = f"not reachable from the root {roots[0]!r}" if roots else "and there is no root"
        findings.on("error", "link", links[cycle[0]], cycle[0], f"links form a cycle {shown}, {where}")
    elif len(roots) > 1:
        shown = ", ".join(repr(root) for root in roots[:8]) + (", ..." if len(roots) > 8 else "")
        if base_link is None:
            findings.add("error", f"has more than one root link: {shown}; pick one with base_link=", robot)
        else:
            findings.add("note", f"has more than one root link: {shown}", robot)


def _cycle(start: str, parent: dict[str, JointDescription]) -> list[str]:
    """Returns the links of the cycle above `start`, parents first."""
    seen: dict[str, None] = {}
    name = start
    while name not in seen:
        seen[name] = None
        name = parent[name].parent
    path = list(seen)
    return path[path.index(name) :][::-1]


def _check_mobile(description: RobotDescription, findings: Findings) -> None:
    mobile = description.mobile_base
    if mobile is None:
        return

    def say(level: Level, message: str) -> None:
        findings.add(level, message, "mobile base", findings.lines.get(("mobile", 0), 0))

    names = [joint.name for joint in description.joints]
    for name in mobile.joints:
        if name not in names:
            say("error", f"names the unknown joint {name!r}{did_you_mean(name, names)}")
    if mobile.kind not in _WHEELS:
        say("warning", f"has the unknown type {mobile.kind!r}; known are {', '.join(_WHEELS)}")
        return
    joints, params, meaning = _WHEELS[mobile.kind]
    if len(mobile.joints) != joints:
        say("error", f"of type {mobile.kind} needs {joints} joints, got {len(mobile.joints)}")
    if len(mobile.params) != params:
        say("error", f"of type {mobile.kind} needs {params} params ({meaning}), got {len(mobile.params)}")
