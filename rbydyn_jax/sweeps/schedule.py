"""Bodies that are computed together: one by one, isomorphic limbs as one, or all isomorphic runs of joints at once."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..joints import JointType, Prismatic, Revolute, rotation_about
from ..model.tree import KinematicTree
from ..spatial.algebra import Motion, Transform, Vec3
from ..xla.structural import Scalars


class Group(NamedTuple):
    """Isomorphic bodies: one type of joint, the same zeros and ones in its parameters, parents in one group."""

    bodies: tuple[int, ...]
    parent: int  # the group that carries them, or -1
    lanes: tuple[int, ...]  # where among the bodies of that group each one's parent is


def _constants(pattern: tuple[int, ...]) -> tuple[int, ...]:
    """The zeros and ones of a pattern."""
    return tuple(min(k, 0) for k in pattern)


@functools.lru_cache(maxsize=256)
def groups(tree: KinematicTree) -> tuple[Group, ...]:
    """The bodies in groups, parents before children.

    Those on one body go together; of those on several bodies that go together, at most one from each.
    """
    depth = {-1: 0}
    for i in tree.order:
        depth[i] = depth[tree.parents[i]] + 1
    members: list[list[int]] = []
    group, number = {-1: -1}, {}
    siblings: Counter[object] = Counter()
    for i in sorted(tree.order, key=depth.__getitem__):
        parent = tree.parents[i]
        shape = tree.joint_types[i], _constants(tree.axis_pattern[i]), _constants(tree.placement_pattern[i])
        of_several = parent >= 0 and len(members[group[parent]]) > 1
        key = (group[parent], shape, siblings[parent, shape] if of_several else 0)
        siblings[parent, shape] += 1
        group[i] = number.setdefault(key, len(members))
        if group[i] == len(members):
            members.append([])
        members[group[i]].append(i)
    lane = {-1: 0}
    found: list[Group] = []
    for bodies in members:
        together = sorted(bodies, key=lambda i: lane[tree.parents[i]])
        lane |= {i: k for k, i in enumerate(together)}
        carriers = [tree.parents[i] for i in together]
        found.append(Group(tuple(together), group[carriers[0]], tuple(lane[p] for p in carriers)))
    return tuple(found)


def one_by_one(tree: KinematicTree, bodies: Sequence[int]) -> tuple[Group, ...]:
    """Groups of one body each: of those given, in tree order and with all of their ancestors."""
    number = {i: k for k, i in enumerate(bodies)}
    return tuple(Group((i,), number.get(tree.parents[i], -1), (0,)) for i in bodies)


@dataclass(frozen=True)
class Runs:
    """Isomorphic runs: `bodies[l, r]` is the l-th body of run r, `parents[r]` the body on which it stands."""

    bodies: np.ndarray
    parents: tuple[int, ...]
    joint: JointType


class RevoluteOrPrismatic(JointType):
    """One or the other, so that one step serves a run of both.

    x = [(sine, cosine) of the angle, distance, 1 where it turns, 1 where it slides]; an angle or a distance that the
    joint does not have is zero.
    """

    def transform(self, axis: Vec3, x: Scalars) -> Transform:
        return Transform(rotation_about(axis, *x[0]), axis.scale(x[1]))

    def subspace(self, axis: Vec3, x: Scalars) -> tuple[Motion, ...]:
        return (Motion(axis.scale(x[2]), axis.scale(x[3])),)


def _common_type(a: JointType, b: JointType) -> JointType | None:
    """The type of a run in which both occur, if there is one."""
    if type(a) is type(b):
        return a
    scalar = (Revolute, Prismatic, RevoluteOrPrismatic)
    return RevoluteOrPrismatic() if isinstance(a, scalar) and isinstance(b, scalar) else None


def group_runs(tree: KinematicTree, bodies: Sequence[int]) -> tuple[Runs, ...]:
    """The runs of joints of one type, or of revolute and prismatic ones, in groups, parents before children.

    `bodies` are those that matter, with all that carry them.
    """
    matter = frozenset(bodies)
    children = [[child for child in below if child in matter] for below in tree.children]
    groups: dict[tuple[int, int, str], list[list[int]]] = {}
    types: dict[str, JointType] = {}
    front = [(i, 0) for i in tree.order if tree.parents[i] < 0 and i in matter]
    while front:
        body, depth = front.pop()
        run, joint = [body], tree.joints[body]
        while len(children[run[-1]]) == 1:
            only = children[run[-1]][0]
            common = _common_type(joint, tree.joints[only])
            if common is None:
                break
            joint = common
            run.append(only)
        name = type(joint).__name__
        types[name] = joint
        groups.setdefault((depth, len(run), name), []).append(run)
        front += [(child, depth + 1) for child in children[run[-1]]]
    return tuple(
        Runs(np.array(runs).T, tuple(tree.parents[r[0]] for r in runs), types[key[-1]])
        for key, runs in sorted(groups.items(), key=lambda item: item[0])
    )
