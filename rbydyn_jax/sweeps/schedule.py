"""Bodies that are computed as one, side by side: the two arms of a robot, the legs, the wheels."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..model.tree import KinematicTree


class Group(NamedTuple):
    """Bodies with one type of joint and the same zeros and ones in its numbers, on bodies of one group."""

    bodies: tuple[int, ...]
    parent: int  # the group that carries them, or -1
    lanes: tuple[int, ...]  # where among the bodies of that group each one's parent is


def constants(pattern: tuple[int, ...]) -> tuple[int, ...]:
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
    siblings: Counter[tuple] = Counter()
    for i in sorted(tree.order, key=depth.__getitem__):
        parent = tree.parents[i]
        shape = tree.joint_types[i], constants(tree.axis_pattern[i]), constants(tree.placement_pattern[i])
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
