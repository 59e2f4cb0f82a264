"""Distances of a robot from itself and from obstacles, by the kinds of their shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial.algebra import Transform
from ..sweeps.sweep import Field, Spread, Sweep
from ..xla.layout import join, rows_of
from .groups import by_kind, moved_shapes, moving_shapes, side
from .obstacles import Obstacles, World, placed_obstacles
from .pair_table import is_exchanged, is_single, keeps_slopes, pair_distance
from .rates import distances_of, with_wrench
from .slopes import same, spread_along, with_slopes

Function = Callable[[Any, Any], Any]


class _Part(NamedTuple):
    """Pairs of two kinds of shapes, in the order of the table: some within the robot, or a grid with obstacles.

    Attributes:
        kinds: Of the first shape of each pair and of the second.
        places: Where each pair stands among all distances.
        sides: The shapes of the robot on each side; None on that of the obstacles in a grid.
    """

    kinds: tuple[str, str]
    places: np.ndarray
    sides: tuple[list[int] | None, list[int] | None]

    def bodies(self, tree: KinematicTree) -> list[tuple[int, int]]:
        """Of each pair the bodies of both shapes; -1 is the world."""

        def of(shapes: list[int] | None) -> np.ndarray:
            if shapes is None:
                return np.full(len(self.places), -1)
            return np.repeat([tree.link_bodies[tree.shape_links[i]] for i in shapes], self.grid[1])

        first, second = map(of, self.sides)
        return list(zip(first.tolist(), second.tolist(), strict=True))

    @property
    def spread(self) -> tuple[Spread, Spread]:
        """What gives the arrays of each side an entry for each pair: in a grid (shapes, obstacles)."""
        if None not in self.sides:
            return same, same
        first, second = (partial(spread_along, self.grid, 0 if s is None else 1) for s in self.sides)
        return first, second

    @property
    def grid(self) -> tuple[int, int]:
        """How many shapes and obstacles are in a grid; of pairs within the robot how many, and 1."""
        shapes = next(s for s in self.sides if s is not None)
        return len(shapes), len(self.places) // len(shapes)

    def of_single(self, function: Function) -> Function:
        """A function of one pair for these; what a pair has several of stays in front."""
        if None not in self.sides:
            return jax.vmap(function)
        along = [0 if s is None else None for s in self.sides]
        across = [None if s is None else 0 for s in self.sides]
        return jax.vmap(jax.vmap(function, along, -1), across, -2)


def distances(
    model: Model, q: Float[Array, "nq"], pairs: Sequence[tuple[int, int]], world: World | None = None
) -> tuple[Float[Array, "n"], ...]:
    """The distances of pairs of shapes of a robot, and of all its shapes that move from the obstacles of a world.

    Both are there if there are pairs and a world; those from the obstacles are in the order of `world_contacts`. Then
    two kinds of shapes are one program: to compile it takes most of the time of a first call of a planner. To put all
    its pairs in a row takes time too, some 20 % of that of the distances. Otherwise each part is a program.
    """
    tree, parts = model.tree, _of_pairs(model.tree, pairs)
    placed, kinds = {}, dict(model.shapes)
    if world is not None:
        placed, kinds = placed_obstacles(world), {**world.shapes, **kinds}
        parts += _of_grid(tree, world, len(pairs))
    vectors = {name: (kinds[name].points, kinds[name].directions) for name in {part.kinds[0] for part in parts}}
    shapes = sorted({i for part in parts for s in part.sides for i in s or ()})
    together: dict[Any, list[_Part]] = {}
    for k, part in enumerate(parts):
        apart = k if not pairs or is_single(*part.kinds) else None
        together.setdefault((part.kinds, apart), []).append(part)

    def find(run: Sweep, poses: Field[Transform], obstacles: Obstacles, wrenches: bool) -> Any:
        moved = moved_shapes(run, poses, shapes)

        def sides(part: _Part, in_a_row: bool) -> list[Any]:
            """The arrays of both sides; `in_a_row` they have an entry for each pair of a grid."""
            shape_count, obstacle_count = part.grid

            def one(kind: str, shapes: list[int] | None) -> Any:
                if shapes is None:
                    x = obstacles[kind]
                    return jax.tree.map(lambda x: join([x] * shape_count, run.dtype), x) if in_a_row else x
                repeated = [i for i in shapes for _ in range(obstacle_count)]
                return side(run, moved, kind, repeated if in_a_row else shapes)

            return [one(kind, shapes) for kind, shapes in zip(part.kinds, part.sides, strict=True)]

        def of(parts: list[_Part]) -> Any:
            names, alone = parts[0].kinds, len(parts) == 1
            distance = pair_distance(*names)
            function: Function = with_wrench(distance, *vectors[names[0]]) if wrenches else distance
            if is_single(*names):
                return parts[0].of_single(run.apart(function))(*sides(parts[0], in_a_row=False))
            keeps = keeps_slopes(*names)
            spread = parts[0].spread if alone else (same, same)
            if keeps and not wrenches:
                every = with_slopes(run, function, spread)
            else:
                every = run.elementwise(function, spread, keeps, separate_use=True)
            of_parts = zip(*(sides(part, in_a_row=not alone) for part in parts), strict=True)
            return every(*(x[0] if alone else jax.tree.map(lambda *x: join(x, run.dtype), *x) for x in of_parts))

        found = [jax.tree.map(lambda x: x.reshape(-1), of(parts)) for parts in together.values()]
        return jax.tree.map(lambda *x: rows_of(join(x, run.dtype), order), *found)

    every = [part for parts in together.values() for part in parts]
    order = np.argsort(np.concatenate([part.places for part in every])).tolist()
    unordered = [bodies for part in every for bodies in part.bodies(tree)]
    bodies = [unordered[k] for k in order]
    groups = [tuple(group) for group in (bodies[: len(pairs)], bodies[len(pairs) :]) if group]
    return distances_of(model, q, placed, find, groups, [tree.shape_links[i] for i in shapes])


def _of_pairs(tree: KinematicTree, pairs: Sequence[tuple[int, int]]) -> list[_Part]:
    """The pairs within the robot, by kinds."""
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for place, (i, j) in enumerate(pairs):
        if is_exchanged(tree.shape_kinds[i], tree.shape_kinds[j]):
            i, j = j, i
        found.setdefault((tree.shape_kinds[i], tree.shape_kinds[j]), []).append((place, i, j))
    return [
        _Part(kinds, np.array(places), (list(first), list(second)))
        for kinds, of_kinds in found.items()
        for places, first, second in [zip(*of_kinds, strict=True)]
    ]


def _of_grid(tree: KinematicTree, world: World, start: int) -> list[_Part]:
    """The pairs of the moving shapes of each kind and the obstacles of each kind."""
    found = []
    for kind, of_kind in by_kind(tree, moving_shapes(tree)).items():
        for other, obstacles in world.places.items():
            places = np.arange(start, start := start + len(of_kind) * len(obstacles))
            if is_exchanged(kind, other):
                found.append(_Part((other, kind), places, (None, of_kind)))
            else:
                found.append(_Part((kind, other), places, (of_kind, None)))
    return found
