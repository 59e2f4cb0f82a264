"""Walks over the tree. The only place that knows tree order and memory layout.

An algorithm is written once, as steps on one body in the scalars of `xla.structural`; a traversal takes
the steps from the root outward or from the leaves inward. There are two, with one interface:

- `Unrolled` (in `unrolled`) takes each body in turn, or those of limbs alike side by side, drops what is structurally
  zero, and makes one CPU kernel of each step.
- `Arrays` (in `scanned`) takes all isomorphic unbranched runs of joints at once and scans along them: its program does
  not grow with the length of a chain, and holds nothing that is private to XLA:CPU.

`traverse` chooses: `Unrolled` when lowering for CPU a tree of moderate size, `Arrays` everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..model.model import Model
from ..spatial.algebra import Vec3
from ..xla.fusion import opaque
from ..xla.tiling import in_parts
from ..xla.tuning import UNROLLED_LIMIT, warn_if_untested
from .scanned import Arrays
from .schedule import groups, one_by_one
from .unrolled import Unrolled

Traversal = Unrolled | Arrays


def gravity_root(model: Model) -> Vec3:
    """The acceleration of the base that stands for gravity: its opposite."""
    return Vec3(*(-model.gravity[k] for k in range(3)))


def traverse(
    model: Model,
    algorithm: Callable,
    q: jax.Array,
    *arrays: Any,
    bodies: Sequence[int] | None = None,
    parts: bool = False,
    side_by_side: bool = False,
) -> Any:
    """Runs `algorithm(traversal, *arrays)` with the traversal that suits the tree and the platform lowered for.

    Where no other `bodies` matter than some and their ancestors, those, in tree order, may be all that is computed.
    With `parts` a large batch is computed a part at a time on a CPU: for what is much arithmetic for each number that
    goes in or comes out. With `side_by_side` limbs alike are computed as one there, which makes programs smaller: for
    what has few results, since those have to be put in order.
    """
    tree = model.tree

    def unrolled(*inputs: Any) -> Any:
        chosen = groups(tree) if side_by_side else one_by_one(tree, tree.order if bodies is None else bodies)
        model, q, *rest = opaque(inputs[0]), *inputs[1:]
        return opaque(algorithm(Unrolled(model, q, chosen), *rest))

    def scanned(model: Model, q: jax.Array, *rest: Any) -> Any:
        return algorithm(Arrays(model, q), *rest)

    unrolled, scanned = in_parts(unrolled, cut=parts), in_parts(scanned, cut=parts)
    if tree.traversal == "arrays" or model.nb > UNROLLED_LIMIT:
        return scanned(model, q, *arrays)
    warn_if_untested()
    if {device.platform for device in jax.devices()} == {"cpu"}:
        return unrolled(model, q, *arrays)  # spares the trace of what would not be lowered
    return jax.lax.platform_dependent(model, q, *arrays, cpu=unrolled, default=scanned)
