"""The tree and the leaves of a robot in plain numpy, of which `model_from_arrays` makes a `Model`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import Finding
from .arrays import RobotArrays
from .tree import IS_MINUS_ONE, IS_ONE, IS_ZERO, KinematicTree, MimicJoint


def make_pattern(rows: np.ndarray, values: list[float]) -> tuple[tuple[int, ...], ...]:
    """The pattern of an array (n, width): constants for 0, 1 and -1; other entries are appended to `values`."""
    pattern = []
    for row in rows:
        entries = []
        for x in row.tolist():
            constant = {0.0: IS_ZERO, 1.0: IS_ONE, -1.0: IS_MINUS_ONE}.get(x)
            if constant is None:
                constant = len(values)
                values.append(x)
            entries.append(constant)
        pattern.append(tuple(entries))
    return tuple(pattern)


def make_axis_pattern(
    axes: np.ndarray, parameters: Sequence[Sequence[float]], values: list[float]
) -> tuple[tuple[int, ...], ...]:
    """The pattern of axes (n, 3), each followed by the joint's parameters, which are never taken as constants."""
    pattern = []
    for axis, own in zip(axes, parameters, strict=True):
        (row,) = make_pattern(axis[None], values)
        pattern.append((*row, *range(len(values), len(values) + len(own))))
        values.extend(own)
    return tuple(pattern)


def twelve(T: np.ndarray) -> np.ndarray:
    """The 12 entries of poses (n, 4, 4): rows of R, then p."""
    n = len(T)
    return np.concatenate([T[:, :3, :3].reshape(n, 9), T[:, :3, 3].reshape(n, 3)], axis=1) if n else np.zeros((0, 12))


def tree_and_leaves(robot: RobotArrays, report: Sequence[Finding] = ()) -> tuple[KinematicTree, dict[str, np.ndarray]]:
    """The topology of a welded robot, and its leaves by their names in `Model`, all but gravity and shapes."""
    values: list[float] = []
    placement_pattern = make_pattern(twelve(np.asarray(robot.joint_placements, float)), values)
    axis_pattern = make_axis_pattern(np.asarray(robot.joint_axes, float), robot.joint_parameters, values)
    link_pattern = make_pattern(twelve(np.asarray(robot.link_placements, float)), values)
    slots = iter(range(len(robot.mimic)))
    mimics = tuple(None if m is None else MimicJoint(int(m[0]), next(slots)) for m in robot.mimic)
    tree = KinematicTree(
        name=robot.name,
        joint_names=tuple(robot.joint_names),
        joint_types=tuple(robot.joint_types),
        parents=tuple(int(p) for p in robot.parents),
        mimics=mimics,
        link_names=tuple(robot.link_names),
        link_bodies=tuple(int(b) for b in robot.link_bodies),
        placement_pattern=placement_pattern,
        axis_pattern=axis_pattern,
        link_pattern=link_pattern,
        shape_kinds=tuple(robot.shape_kinds),
        shape_links=tuple(int(i) for i in robot.shape_links),
        shape_coltypes=tuple(int(i) for i in robot.shape_coltypes),
        shape_colaffinities=tuple(int(i) for i in robot.shape_colaffinities),
        mobile_base=robot.mobile_base,
        report=tuple(report),
    )
    free = [i for i, m in enumerate(mimics) if m is None]
    joints = tree.joints

    def per_velocity(x: np.ndarray) -> np.ndarray:
        return np.array([x[i] for i in free for _ in range(joints[i].nv)], float)

    def per_position(x: np.ndarray, unbounded: float) -> np.ndarray:
        return np.array([x[i] if joints[i].scalar else unbounded for i in free for _ in range(joints[i].nq)], float)

    welded = [link for link, slot in enumerate(tree.welded_slots) if slot >= 0]
    followers = [m for m in robot.mimic if m is not None]
    return tree, {
        "geometry": np.array(values, float),
        "inertias": np.asarray(robot.body_inertias, float).reshape(-1, 10),
        "welded_inertias": np.asarray(robot.link_inertias, float).reshape(-1, 10)[welded],
        "position_lower": per_position(robot.lower, -np.inf),
        "position_upper": per_position(robot.upper, np.inf),
        "velocity_limit": per_velocity(robot.velocity),
        "acceleration_limit": per_velocity(robot.acceleration),
        "effort_limit": per_velocity(robot.effort),
        "armature": per_velocity(robot.armature),
        "damping": per_velocity(robot.damping),
        "friction": per_velocity(robot.friction),
        "mimic_multipliers": np.array([m[1] for m in followers], float),
        "mimic_offsets": np.array([m[2] for m in followers], float),
    }
