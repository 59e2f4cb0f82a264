"""From a description to the arrays of a tree of moving bodies: links behind fixed joints are welded to their body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import ArgumentError, ModelError, NameNotFoundError
from ..joints import JOINT_TYPES
from ..model.arrays import RobotArrays
from ..model.tree import MobileBase
from .check import check_description
from .description import (
    JointDescription,
    LinkDescription,
    RobotDescription,
)
from .findings import Findings
from .placement import compose
from .weld_links import body_inertias, collision_shapes, note_unused_shapes, shape_rows, ten_parameters

FLOATING_BASE = "floating_base"
_PER_JOINT = ("lower", "upper", "velocity", "acceleration", "effort", "damping", "friction", "armature")


def weld(
    description: RobotDescription,
    *,
    base_link: str | None = None,
    floating_base: bool = False,
    joint_order: Sequence[str] | None = None,
    findings: Findings | None = None,
) -> RobotArrays:
    """Welds the links behind fixed joints and lays the robot out in arrays; O(number of links), without recursion.

    Args:
        description: The robot.
        base_link: Keep only this link and what is below it; default is the root link.
        floating_base: Put a floating joint named ``floating_base`` between the world and the base link.
        joint_order: The moving joints in the order wanted; the floating base may be left out and then stays first.
        findings: Where notes on what was left out go; with it, the description is taken as checked.

    Raises:
        ArgumentError: `joint_order` is not a permutation of the moving joints.
        ModelError: The description has a cycle, two roots, or an invalid element.
        NameNotFoundError: There is no such base link or joint.
    """
    if findings is None:
        findings = Findings()
        check_description(description, findings, base_link)
        findings.report()
    links = {link.name: link for link in description.links}
    children: dict[str, list[JointDescription]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    if base_link is not None and base_link not in links:
        raise NameNotFoundError(base_link, "link", links)
    below = {joint.child for joint in description.joints}
    root = base_link if base_link is not None else next(name for name in links if name not in below)

    moving: list[JointDescription] = []
    parents: list[int] = []
    joint_placements: list[np.ndarray] = []
    welded: list[LinkDescription] = []
    link_bodies: list[int] = []
    link_placements: list[np.ndarray] = []
    first = JointDescription(FLOATING_BASE, "floating", "", root) if floating_base else None
    stack: list[tuple[JointDescription | None, str, int, np.ndarray]] = [(first, root, -1, np.eye(4))]
    while stack:
        joint, name, body, pose = stack.pop()
        if joint is not None and JOINT_TYPES[joint.kind].nv:
            moving.append(joint)
            parents.append(body)
            joint_placements.append(pose)
            body, pose = len(moving) - 1, np.eye(4)
        welded.append(links[name])
        link_bodies.append(body)
        link_placements.append(pose)
        for child in reversed(children.get(name, ())):
            stack.append((child, child.child, body, compose(pose, np.asarray(child.origin, float))))

    names = [joint.name for joint in moving]
    if floating_base and names.count(FLOATING_BASE) > 1:
        raise ModelError(f"floating_base=True: there is a joint named {FLOATING_BASE!r} already")
    order = _permutation(names, joint_order, floating_base)
    new_index = {old: new for new, old in enumerate(order)} | {-1: -1}
    moving = [moving[old] for old in order]
    link_bodies = [new_index[body] for body in link_bodies]
    link_inertias = np.array([ten_parameters(link, np.eye(4)) for link in welded]).reshape(-1, 10)
    shapes = [found for index, link in enumerate(welded) for found in collision_shapes(index, link)]
    note_unused_shapes(description.name, welded, findings)
    return RobotArrays(
        name=description.name,
        joint_names=tuple(joint.name for joint in moving),
        joint_types=tuple(joint.kind for joint in moving),
        parents=tuple(new_index[parents[old]] for old in order),
        joint_placements=np.array([joint_placements[old] for old in order]).reshape(-1, 4, 4),
        joint_axes=np.array([joint.axis for joint in moving], float).reshape(-1, 3),
        joint_parameters=tuple(
            tuple(float(joint.parameters[name]) for name in JOINT_TYPES[joint.kind].parameters) for joint in moving
        ),
        mimic=_resolve_mimics(moving),
        link_names=tuple(link.name for link in welded),
        link_bodies=tuple(link_bodies),
        link_placements=np.array(link_placements),
        link_inertias=link_inertias,
        body_inertias=body_inertias(welded, link_bodies, link_placements, link_inertias, len(moving)),
        **{what: np.array([getattr(joint, what) for joint in moving], float) for what in _PER_JOINT},
        shape_kinds=tuple(shape.kind for _, shape, _ in shapes),
        shape_links=tuple(link for link, *_ in shapes),
        shape_coltypes=tuple(c.coltype for *_, c in shapes),
        shape_colaffinities=tuple(c.colaffinity for *_, c in shapes),
        shapes=shape_rows([shape for _, shape, _ in shapes]),
        mobile_base=_mobile_base(description, moving, findings),
    )


def _permutation(names: list[str], joint_order: Sequence[str] | None, floating_base: bool) -> list[int]:
    """Returns the index of each joint asked for."""
    if joint_order is None:
        return list(range(len(names)))
    index = {name: i for i, name in enumerate(names)}
    order = list(joint_order)
    if floating_base and FLOATING_BASE not in order:
        order.insert(0, FLOATING_BASE)
    for name in order:
        if name not in index:
            raise NameNotFoundError(name, "moving joint", names)
    missing = [name for name in names if name not in set(order)]
    if missing:
        raise ArgumentError(f"joint_order must name every moving joint; it lacks {', '.join(map(repr, missing))}")
    if len(order) != len(names):
        twice = sorted({name for name in order if order.count(name) > 1})
        raise ArgumentError(f"joint_order names {', '.join(map(repr, twice))} more than once")
    return [index[name] for name in order]


def _resolve_mimics(moving: list[JointDescription]) -> tuple[tuple[int, float, float] | None, ...]:
    """Follows chains of mimics to the independent joint at their end: q = multiplier * q[source] + offset."""
    index = {joint.name: i for i, joint in enumerate(moving)}
    resolved = []
    for joint in moving:
        multiplier, offset, current = 1.0, 0.0, joint
        while current.mimic is not None:
            offset += multiplier * current.mimic.offset
            multiplier *= current.mimic.multiplier
            if current.mimic.joint not in index:
                raise ModelError(f"joint {joint.name!r} mimics {current.mimic.joint!r}, which the base link leaves out")
            current = moving[index[current.mimic.joint]]
        resolved.append((index[current.name], multiplier, offset) if current is not joint else None)
    return tuple(resolved)


def _mobile_base(
    description: RobotDescription, moving: list[JointDescription], findings: Findings
) -> MobileBase | None:
    mobile = description.mobile_base
    if mobile is None:
        return None
    lost = sorted(set(mobile.joints) - {joint.name for joint in moving})
    if not lost:
        origin = tuple(np.asarray(mobile.origin, float).ravel().tolist())
        return MobileBase(mobile.kind, origin, mobile.joints, mobile.params)
    message = f"is left out: its joints {', '.join(map(repr, lost))} do not move or are not below the base link"
    findings.add("note", message, "mobile base", findings.lines.get(("mobile", 0), 0))
    return None
