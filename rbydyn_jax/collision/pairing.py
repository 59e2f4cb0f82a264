"""Which shapes of a robot are tested against each other: static data, chosen once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .._check import check_choice
from .._errors import ArgumentError, DtypeError, ModelError
from ..model.model import Model, check_model
from ..model.tree import EVERY_GROUP, KinematicTree


@dataclass(frozen=True)
class ShapePairs:
    """Pairs of collision shapes of one robot, hashable: a static argument of the distance functions.

    Args:
        indices: For each pair the two shapes, as indices into `tree.shape_links`, the smaller first.
        links: For each pair the names of the two links.
    """

    indices: tuple[tuple[int, int], ...]
    links: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.indices)


def pairs(
    model: Model,
    links: Iterable[tuple[str, str]] | None = None,
    *,
    by: Literal["auto", "masks", "adjacency"] = "auto",
) -> ShapePairs:
    """The pairs of collision shapes to test, by an explicit list of links, by bit masks or by adjacency.

    Two shapes of one link are never a pair.

    Args:
        model: The robot.
        links: Pairs of link names; every shape of the one link is tested against every shape of the other, and
            `by` is not used. A pair that is listed twice counts once.
        by: ``"masks"`` keeps a pair if `a.coltype & b.colaffinity` or `b.coltype & a.colaffinity`, the rule of the
            RB-Y1 SDK; but a shape of which all 32 bits are set, as `attach` and `with_shapes` set them where nothing
            is said, is tested against all but its neighbours. ``"adjacency"`` leaves out links of one rigid body, and
            of bodies joined by one joint. ``"auto"`` is the masks if any shape has one, and adjacency otherwise.

    Returns:
        The pairs, in the order of the shapes.

    Raises:
        DtypeError: `model` is not a model.
        ModelError: The robot, or a listed link, has no collision shape, a link is paired with itself, or an entry is no
            pair.
        NameNotFoundError: There is no such link.
        ArgumentError: `by` is none of the three.

    Example:
        >>> from rbydyn_jax import robots
        >>> len(pairs(robots.rby1a()))
        43
    """
    tree = check_model(model).tree
    if not tree.shape_links:
        raise ModelError(
            f"model {tree.name!r} has no collision shapes; give its links collisions such as CapsuleGeometry, or put "
            "shapes around the meshes of its file by collision.mesh_shapes"
        )
    n = len(tree.shape_links)
    candidates = [(i, j) for i in range(n) for j in range(i + 1, n) if tree.shape_links[i] != tree.shape_links[j]]
    check_choice(by, "by", ("auto", "masks", "adjacency"))
    if links is not None:
        if not isinstance(links, Iterable):
            raise DtypeError(f"links must be a list of pairs of link names, got {type(links).__name__}")
        wanted = {_link_pair(tree, pair) for pair in links}
        chosen = [c for c in candidates if frozenset(tree.shape_links[k] for k in c) in wanted]
    elif by == "masks" or (by == "auto" and (any(tree.shape_coltypes) or any(tree.shape_colaffinities))):
        chosen = [c for c in candidates if _masks_meet(tree, *c)]
    else:
        chosen = [c for c in candidates if not _adjacent(tree, *c)]
    return ShapePairs(tuple(chosen), tuple((_link_name(tree, i), _link_name(tree, j)) for i, j in chosen))


def resolve(model: Model, chosen: ShapePairs | None) -> ShapePairs:
    """`chosen`, which must fit the model and not be empty, or the default pairs.

    Raises:
        DtypeError: `chosen` is not of the type that `pairs` returns.
        ModelError: The pairs are of another robot, or there are none.
    """
    tree = model.tree
    if chosen is None:
        chosen = pairs(model)
    if not isinstance(chosen, ShapePairs):
        raise DtypeError(f"pairs must be what collision.pairs(model, ...) returns, got {type(chosen).__name__}")
    n = len(tree.shape_links)
    for (i, j), names in zip(chosen.indices, chosen.links, strict=True):
        if not (0 <= i < n and 0 <= j < n) or (_link_name(tree, i), _link_name(tree, j)) != names:
            raise ModelError(f"the pair {names} does not belong to model {tree.name!r}; choose pairs with pairs(model)")
    if not chosen.indices:
        raise ModelError(f"there is no pair of shapes of model {tree.name!r} to test")
    return chosen


def _link_pair(tree: KinematicTree, pair: tuple[str, str]) -> frozenset[int]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(f"links must be a list of pairs of link names, such as [('hand', 'head')]; one is {pair!r}")
    first, second = pair
    indices = frozenset((tree.link_index(first), tree.link_index(second)))
    if len(indices) == 1:
        raise ArgumentError(f"link {first!r} is paired with itself")
    for name in pair:
        if tree.link_index(name) not in tree.shape_links:
            known = ", ".join(tree.link_names[k] for k in sorted(set(tree.shape_links)))
            raise ModelError(f"link {name!r} has no collision shape; these have: {known}")
    return indices


def _link_name(tree: KinematicTree, shape: int) -> str:
    return tree.link_names[tree.shape_links[shape]]


def _masks_meet(tree: KinematicTree, i: int, j: int) -> bool:
    types, affinities = tree.shape_coltypes, tree.shape_colaffinities
    if EVERY_GROUP in (types[i], types[j]):
        return not _adjacent(tree, i, j)
    return bool(types[i] & affinities[j] or types[j] & affinities[i])


def _adjacent(tree: KinematicTree, i: int, j: int) -> bool:
    a, b = (tree.link_bodies[tree.shape_links[k]] for k in (i, j))
    return a == b or (a >= 0 and tree.parents[a] == b) or (b >= 0 and tree.parents[b] == a)
