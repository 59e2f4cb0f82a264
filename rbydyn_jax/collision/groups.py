"""The pairs of a robot by the kinds of their shapes: each group is computed by one call of its pair function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Array

from ..algorithms.arguments import arguments
from ..algorithms.kinematics import body_pose_step
from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial.algebra import IDENTITY, Transform
from ..sweeps.plan import traverse
from ..sweeps.sweep import Field, Sweep
from ..xla.layout import join, rows_of
from ..xla.structural import Scalar
from .pair_table import PairFunction, is_single, keeps_slopes, pair_distance, pair_function
from .pairing import ShapePairs
from .rates import Distance
from .slopes import same

Result = TypeVar("Result")
Moved = dict[int, tuple[Scalar, ...]]


class PairGroup(NamedTuple):
    """All pairs of two kinds of shapes.

    Attributes:
        places: Where each pair stands among all that are tested.
        function: Of these two kinds.
        distance: What it finds of the distance alone.
        single: Whether it takes one pair only.
        apart: Whether it is long.
        a: The first shape of each pair in world coordinates, as the function takes them.
        b: The second.
    """

    places: np.ndarray
    function: PairFunction
    distance: Distance
    single: bool
    apart: bool
    a: Any
    b: Any

    def mapped(self, run: Sweep, f: Callable[..., Result]) -> Callable[..., Result]:
        """`f` of the two shapes of a pair, for those of many."""
        return jax.vmap(run.apart(f)) if self.single else run.elementwise(f, (same, same), apart=self.apart)


def on_pairs(model: Model, q: Array, pairs: ShapePairs, f: Callable[[Sweep, list[PairGroup]], Result]) -> Result:
    """`f(traversal, groups)` of the pairs in a configuration."""
    model, q = arguments(model, q=q)

    def on(run: Sweep) -> Result:
        return f(run, pair_groups(run, run.outward(body_pose_step, IDENTITY), pairs))

    return traverse(model, on, q, links=[model.tree.shape_links[i] for i in shapes_of(pairs)])


def shapes_of(pairs: ShapePairs) -> list[int]:
    """The shapes that occur in pairs."""
    return sorted({i for pair in pairs.indices for i in pair})


def pair_groups(run: Sweep, poses: Field[Transform], pairs: ShapePairs) -> list[PairGroup]:
    """The pairs by kinds, from the poses of the bodies.

    Matrices are never written: the traversal gives what moves of each shape as scalars, and each of them of all pairs
    is joined to one array (n,), a batch behind it as the last axis.
    """
    tree = run.tree
    indices = np.array(pairs.indices)
    kinds = [(tree.shape_kinds[i], tree.shape_kinds[j]) for i, j in pairs.indices]
    groups = {k: np.flatnonzero([k == other for other in kinds]) for k in dict.fromkeys(kinds)}
    moved = moved_shapes(run, poses, shapes_of(pairs))
    return [
        PairGroup(
            places,
            pair_function(*kinds),
            pair_distance(*kinds),
            is_single(*kinds),
            keeps_slopes(*kinds),
            *(side(run, moved, kind, chosen) for kind, chosen in zip(kinds, indices[places].T.tolist(), strict=True)),
        )
        for kinds, places in groups.items()
    ]


def placed_shapes(model: Model, q: Array, shapes: Sequence[int]) -> dict[str, tuple[list[int], Any]]:
    """For each kind its shapes among some, and these in world coordinates, as pair functions take them."""
    model, q = arguments(model, q=q)

    def on(run: Sweep) -> dict[str, Any]:
        placed = placed_by_kind(run, run.outward(body_pose_step, IDENTITY), shapes)
        return {kind: of_kind for kind, (_, of_kind) in placed.items()}

    placed = traverse(model, on, q, links=[model.tree.shape_links[i] for i in shapes])
    return {kind: (of_kind, placed[kind]) for kind, of_kind in by_kind(model.tree, shapes).items()}


def placed_by_kind(run: Sweep, poses: Field[Transform], shapes: Sequence[int]) -> dict[str, tuple[list[int], Any]]:
    """`placed_shapes` within a traversal, from the poses of the bodies."""
    moved, kinds = moved_shapes(run, poses, shapes), by_kind(run.tree, shapes)
    return {kind: (of_kind, side(run, moved, kind, of_kind)) for kind, of_kind in kinds.items()}


def side(run: Sweep, moved: Moved, kind: str, shapes: Sequence[int]) -> Any:
    """Shapes of one kind in world coordinates, as pair functions take them; one may occur several times."""
    rows = np.array([run.tree.shape_rows[i] for i in shapes])
    columns = zip(*(moved[i] for i in shapes), strict=True)
    return run.model.shapes[kind].gathered(rows, [join(x, run.dtype) for x in columns])


def moving_shapes(tree: KinematicTree) -> list[int]:
    """The shapes on links that a joint moves."""
    return [i for i, link in enumerate(tree.shape_links) if tree.link_bodies[link] >= 0]


def by_kind(tree: KinematicTree, shapes: Sequence[int]) -> dict[str, list[int]]:
    """The shapes of each kind, the kinds in the order in which they occur."""
    found: dict[str, list[int]] = {}
    for i in shapes:
        found.setdefault(tree.shape_kinds[i], []).append(i)
    return found


def in_order(groups: Sequence[PairGroup], found: Sequence[Result]) -> Result:
    """What was found for each group, arrays (n,), as one for all pairs in their order."""
    if len(found) == 1:
        return found[0]
    order = np.argsort(np.concatenate([g.places for g in groups])).tolist()
    return jax.tree.map(lambda *x: rows_of(join(x, x[0].dtype), order), *found)


def moved_shapes(run: Sweep, poses: Field[Transform], shapes: Sequence[int]) -> Moved:
    """What moves of each shape, in world coordinates."""
    tree: KinematicTree = run.tree

    def moved(i: int) -> tuple[Scalar, ...]:
        of_kind = run.model.shapes[tree.shape_kinds[i]]
        pose = run.link_transform(poses, tree.shape_links[i])
        return run.fused_map(lambda of_kind, pose: of_kind.moved(tree.shape_rows[i], pose))(of_kind, pose)

    return {i: moved(i) for i in shapes}
