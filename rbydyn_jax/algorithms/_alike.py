"""Bodies that are computed as one, side by side: the two arms of a robot, the legs, the wheels."""

from __future__ import annotations

import functools
from collections.abc import Iterable
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
    members: dict[tuple, list[int]] = {}
    keys: dict[int, tuple] = {}  # of each body, that of its group
    by_depth = sorted(range(tree.nb), key=lambda i: len(tree.path(i)))
    for i in by_depth:
        parent = tree.parents[i]
        key = (
            keys.get(parent),
            tree.joint_types[i],
            constants(tree.axis_pattern[i]),
            constants(tree.placement_pattern[i]),
        )
        if parent >= 0 and len(members[keys[parent]]) > 1:
            key = (*key, sum(keys.get(k, ())[: len(key)] == key for k in tree.children[parent]))
        keys[i] = key
        members.setdefault(key, []).append(i)
    number = {key: k for k, key in enumerate(members)}
    found: list[Group] = []
    for bodies in members.values():
        parents = [tree.parents[i] for i in bodies]
        if parents[0] < 0:
            found.append(Group(tuple(bodies), -1, (0,) * len(bodies)))
            continue
        group = number[keys[parents[0]]]
        lanes = {i: found[group].bodies.index(parent) for i, parent in zip(bodies, parents, strict=True)}
        together = tuple(sorted(bodies, key=lanes.__getitem__))
        found.append(Group(together, group, tuple(lanes[i] for i in together)))
    return tuple(found)


def one_by_one(tree: KinematicTree, bodies: Iterable[int]) -> tuple[Group, ...]:
    """Groups of one body each: of those given, among which are their ancestors."""
    bodies = [i for i in tree.order if i in set(bodies)]
    number = {i: k for k, i in enumerate(bodies)}
    return tuple(Group((i,), number.get(tree.parents[i], -1), (0,)) for i in bodies)
