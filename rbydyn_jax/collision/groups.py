"""The pairs of a robot by the kinds of their shapes: each group is computed by one call of its pair function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Array

from ..algorithms.arguments import arguments
from ..algorithms.kinematics import body_pose_step
from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial.algebra import IDENTITY
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from ..xla.layout import join, rows_of
from ..xla.structural import Scalar
from .pair_table import PairFunction, is_single, keeps_slopes, pair_distance, pair_function
from .pairing import CapsulePairs
from .slopes import with_slopes

Result = TypeVar("Result")


class PairGroup(NamedTuple):
    """All pairs of two kinds of shapes.

    Args:
        places: Where each pair stands among all that are tested.
        function: Of these two kinds.
        distance: What it finds of the distance alone.
        single: Whether it takes one pair only.
        slopes: Whether the distances are computed with their slopes.
        a: The first shape of each pair in world coordinates, as the function takes them.
        b: The second.
    """

    places: np.ndarray
    function: PairFunction
    distance: Callable[[Any, Any], Array]
    single: bool
    slopes: bool
    a: Any
    b: Any

    def mapped(self, run: Sweep, f: Callable[..., Result]) -> Callable[..., Result]:
        """`f` of the two shapes of a pair, for those of many."""
        return jax.vmap(f) if self.single else run.fused_map(f)

    def distances(self, run: Sweep) -> Array:
        """The distances of all pairs."""
        of = with_slopes(run.fused_map, self.distance) if self.slopes else self.mapped(run, self.distance)
        return of(self.a, self.b)


def on_pairs(model: Model, q: Array, pairs: CapsulePairs, f: Callable[[Sweep, list[PairGroup]], Result]) -> Result:
    """`f(traversal, groups)` of the pairs in a configuration.

    Matrices are never written: the traversal gives what moves of each shape as scalars, and each of them of all pairs
    is joined to one array (n,), a batch behind it as the last axis.
    """
    model, q = arguments(model, q=q)
    tree = model.tree
    indices = np.array(pairs.indices)
    kinds = [(tree.shape_kinds[i], tree.shape_kinds[j]) for i, j in pairs.indices]
    groups = {k: np.flatnonzero([k == other for other in kinds]) for k in dict.fromkeys(kinds)}
    functions = {k: (pair_function(*k), pair_distance(*k)) for k in groups}
    shapes = sorted({int(i) for i in indices.flat})

    def on(run: Sweep) -> Result:
        moved = dict(zip(shapes, _moved(run, shapes), strict=True))

        def side(kind: str, chosen: np.ndarray) -> Any:
            rows = np.array([tree.shape_rows[i] for i in chosen])
            columns = zip(*(moved[int(i)] for i in chosen), strict=True)
            return run.model.shapes[kind].gathered(rows, [join(x, q.dtype) for x in columns])

        return f(
            run,
            [
                PairGroup(
                    places,
                    *functions[kinds],
                    is_single(*kinds),
                    keeps_slopes(*kinds),
                    *map(side, kinds, indices[places].T),
                )
                for kinds, places in groups.items()
            ],
        )

    return traverse(model, on, q, links=[tree.shape_links[i] for i in shapes])


def placed_shapes(model: Model, q: Array, shapes: Iterable[int]) -> dict[str, tuple[list[int], Any]]:
    """For each kind its shapes among some, and these in world coordinates, as pair functions take them."""
    chosen = list(shapes)
    model, q = arguments(model, q=q)

    def on(run: Sweep) -> dict[str, Any]:
        return {kind: placed for kind, (_, placed) in on_run(run, chosen).items()}

    placed = traverse(model, on, q, links=[model.tree.shape_links[i] for i in chosen])
    return {kind: (of_kind, placed[kind]) for kind, of_kind in by_kind(model.tree, chosen).items()}


def on_run(run: Sweep, shapes: Sequence[int]) -> dict[str, tuple[list[int], Any]]:
    """`placed_shapes` within a traversal."""
    moved = dict(zip(shapes, _moved(run, shapes), strict=True))

    def placed(kind: str, of_kind: list[int]) -> Any:
        rows = np.array([run.tree.shape_rows[i] for i in of_kind])
        columns = zip(*(moved[i] for i in of_kind), strict=True)
        return run.model.shapes[kind].gathered(rows, [join(x, run.dtype) for x in columns])

    return {kind: (of_kind, placed(kind, of_kind)) for kind, of_kind in by_kind(run.tree, shapes).items()}


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


def _moved(run: Sweep, shapes: Sequence[int]) -> list[tuple[Scalar, ...]]:
    """What moves of each shape, in world coordinates."""
    tree: KinematicTree = run.tree
    poses = run.outward(body_pose_step, IDENTITY)
    return [
        run.model.shapes[tree.shape_kinds[i]].moved(tree.shape_rows[i], run.link_transform(poses, tree.shape_links[i]))
        for i in shapes
    ]
