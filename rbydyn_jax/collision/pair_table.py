"""The table of pairs: how far apart two shapes are, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Array

from .._errors import ModelError
from ..shapes.box import Box
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import ConvexHull
from ..shapes.cylinder import Cylinder
from ..shapes.distance_grid import DistanceGrid
from ..shapes.half_space import HalfSpace
from ..shapes.height_map import HeightMap
from .capsule_capsule import capsule_capsule
from .convex import convex_convex, convex_distance
from .half_space import solid_half_space
from .hulls import hull_cylinder, hull_half_space, polytope_polytope
from .obstacle_fields import hull_field, solid_field
from .witness import Witness

PairFunction = Callable[[Any, Any], Witness]
"""The witness of two shapes, each as its `gathered` gives it: arrays of one shape, an entry for each pair.

Shapes of the kinds `SINGLE` have arrays of their own, so that their functions take one pair, and `jax.vmap` many.

Where only `distance` is used, what it does not need is not computed. Its derivatives have to be exact where they exist
and finite everywhere; see `capsule_capsule`.
"""

_SOLIDS = (Capsule.kind, Box.kind, Cylinder.kind)
PAIR_FUNCTIONS: dict[tuple[str, str], PairFunction] = {
    **{(a, b): convex_convex for i, a in enumerate(_SOLIDS) for b in _SOLIDS[i:]},
    (Capsule.kind, Capsule.kind): capsule_capsule,
    **{(kind, HalfSpace.kind): solid_half_space for kind in _SOLIDS},
    **{(ConvexHull.kind, kind): polytope_polytope for kind in (Capsule.kind, Box.kind, ConvexHull.kind)},
    (ConvexHull.kind, Cylinder.kind): hull_cylinder,
    (ConvexHull.kind, HalfSpace.kind): hull_half_space,
}
for _field in (HeightMap.kind, DistanceGrid.kind):
    PAIR_FUNCTIONS |= {(kind, _field): solid_field for kind in _SOLIDS} | {(ConvexHull.kind, _field): hull_field}
_DISTANCES: dict[PairFunction, Callable[[Any, Any], Array]] = {convex_convex: convex_distance}
SINGLE = frozenset({ConvexHull.kind, HeightMap.kind, DistanceGrid.kind})


def is_single(first: str, second: str) -> bool:
    """Whether the function of two kinds takes one pair only."""
    return first in SINGLE or second in SINGLE


def is_exchanged(first: str, second: str) -> bool:
    """Whether the table has two kinds in the other order only."""
    return _entry(first, second)[1]


def keeps_slopes(first: str, second: str) -> bool:
    """Whether the distance of two kinds is computed with its slopes (`with_slopes`): those of boxes and cylinders."""
    return _entry(first, second)[0] is convex_convex


def pair_distance(first: str, second: str) -> Callable[[Any, Any], Array]:
    """The function of two kinds of shapes for the distance alone.

    Raises:
        ModelError: The table has no such pair.
    """
    function, exchanged = _entry(first, second)
    distance = _DISTANCES.get(function, lambda a, b: function(a, b).distance)
    return (lambda a, b: distance(b, a)) if exchanged else distance


def pair_function(first: str, second: str) -> PairFunction:
    """The function of two kinds of shapes, which the table has in this order or in the other.

    Raises:
        ModelError: The table has no such pair.
    """
    function, exchanged = _entry(first, second)
    return (lambda a, b: function(b, a).swapped()) if exchanged else function


def _entry(first: str, second: str) -> tuple[PairFunction, bool]:
    """The entry of the table, and whether it takes the two shapes in the other order."""
    for kinds, exchanged in (((first, second), False), ((second, first), True)):
        if kinds in PAIR_FUNCTIONS:
            return PAIR_FUNCTIONS[kinds], exchanged
    known = ", ".join("-".join(kinds) for kinds in PAIR_FUNCTIONS)
    raise ModelError(f"no distance is known between the shapes {first!r} and {second!r}; known pairs: {known}")
