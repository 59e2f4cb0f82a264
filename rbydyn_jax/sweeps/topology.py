"""What follows from the topology alone: who carries whom, and the degrees of freedom in blocks of limbs."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ..model.tree import KinematicTree
from ..xla.tuning import LONGEST_BLOCK


@functools.lru_cache(maxsize=64)
def dof_bodies(tree: KinematicTree) -> tuple[int, ...]:
    """The body of each degree of freedom."""
    return tuple(i for i, joint in enumerate(tree.joints) for _ in range(joint.nv))


@functools.lru_cache(maxsize=64)
def ancestors(tree: KinematicTree) -> np.ndarray:
    """Whether body [j, i] is an ancestor of body j, or j itself."""
    on_path = np.zeros((tree.nb, tree.nb), bool)
    for j in range(tree.nb):
        on_path[j, list(tree.path(j))] = True
    return on_path


@functools.lru_cache(maxsize=64)
def masks(tree: KinematicTree) -> tuple[np.ndarray, np.ndarray]:
    """For degrees of freedom [j, i]: whether i's joint is an ancestor of j's; whether they are of one joint."""
    owner = np.array(dof_bodies(tree), int)
    same = owner[:, None] == owner[None, :]
    return ancestors(tree)[np.ix_(owner, owner)] & ~same, same


def chain(tree: KinematicTree, link: int, ref: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The bodies on the paths to a link and to the one relative to which it moves."""
    path, ref_path = (() if k is None else tree.path(tree.link_bodies[k]) for k in (link, ref))
    return path, ref_path


def moving_dofs(tree: KinematicTree, link: int, ref: int | None) -> tuple[int, ...]:
    """The degrees of freedom on the paths to a link and to the one relative to which it moves."""
    bodies = set().union(*chain(tree, link, ref))
    return tuple(k for k, body in enumerate(dof_bodies(tree)) if body in bodies)


@functools.lru_cache(maxsize=64)
def moved_along(tree: KinematicTree, link: int, ref: int | None) -> np.ndarray:
    """For degrees of freedom [i, j]: whether j lies beyond i on the way from `ref` to the link, or moves with i.

    From `ref` the way leads toward the root and then to the link. The axes of a joint are fixed to its body, which is
    moved by the joint on the way outward, and is before it on the way back.
    """
    path, ref_path = chain(tree, link, ref)
    back = [i for i in reversed(ref_path) if i not in path]
    order = [*back, *(i for i in path if i not in ref_path)]
    place = np.full(tree.nb, len(order))
    place[order] = range(len(order))
    owner = np.array(dof_bodies(tree), int)
    first, then = place[owner][:, None], place[owner][None, :]
    same = (owner[:, None] == owner[None, :]) & ~np.isin(owner, back)
    return (first < then) | same


class Blocks(NamedTuple):
    """A partition of degrees of freedom such that those of two blocks are either all related, or none.

    The blocks are slices, in the order of the degrees of freedom.
    """

    slices: tuple[slice, ...]
    above: tuple[tuple[int, ...], ...]  # the ancestors of each block, from the root on
    below: tuple[tuple[int, ...], ...]  # all blocks that each one carries

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Each block with itself and its ancestors."""
        return [(j, i) for j, above in enumerate(self.above) for i in (*above, j)]

    @property
    def levels(self) -> list[list[int]]:
        """The blocks by the number of their ancestors, the roots first."""
        depths = [len(above) for above in self.above]
        return [[k for k, depth in enumerate(depths) if depth == d] for d in range(max(depths, default=-1) + 1)]

    def root(self, block: int) -> int:
        """The block without ancestors that carries it, or itself."""
        return (*self.above[block], block)[0]


def _blocks(starts: list[int], size: int, parents: list[int]) -> Blocks:
    def path(k: int) -> tuple[int, ...]:
        return () if parents[k] < 0 else (*path(parents[k]), parents[k])

    above = tuple(path(k) for k in range(len(starts)))
    below = tuple(tuple(j for j, path in enumerate(above) if k in path) for k in range(len(starts)))
    return Blocks(tuple(map(slice, starts, [*starts[1:], size])), above, below)


def whole(size: int) -> Blocks:
    """A single block."""
    return _blocks([0] if size else [], size, [-1])


def in_a_row(size: int) -> Blocks:
    """Blocks each of which is carried by the one before: all are related."""
    starts = list(range(0, size, LONGEST_BLOCK))
    return _blocks(starts, size, list(range(-1, len(starts) - 1)))


@functools.lru_cache(maxsize=64)
def limbs(tree: KinematicTree) -> Blocks:
    """The unbranched runs of joints that follow each other, long ones cut."""
    starts: list[int] = []
    parents: list[int] = []
    block_of: dict[int, int] = {}
    at = 0
    for body, joint in enumerate(tree.joints):
        parent = tree.parents[body]
        goes_on = body > 0 and parent == body - 1 and len(tree.children[parent]) == 1
        if not goes_on or at + joint.nv - starts[-1] > LONGEST_BLOCK:
            starts.append(at)
            parents.append(parent)
        block_of[body] = len(starts) - 1
        at += joint.nv
    return _blocks(starts, at, [-1 if p < 0 else block_of[p] for p in parents])
