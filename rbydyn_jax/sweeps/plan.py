"""Which of the two forms of a sweep runs: the only place that knows platforms.

An algorithm is written once, as steps on one body in the scalars of `xla.structural`; a sweep takes the steps from the
root outward or from the leaves inward. There are two, with one interface:

- `UnrolledSweep` (in `unrolled`) takes each body in turn, or isomorphic limbs at once, drops what is structurally zero,
  and makes one CPU kernel of each step.
- `ScannedSweep` (in `scanned`) takes all isomorphic unbranched runs of joints at once and scans along them: its program
  does not grow with the length of a chain, and can be exported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax

from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial.algebra import Vec3
from ..xla.fusion import barrier
from ..xla.sharding import may_be_split
from ..xla.tiling import tiled
from ..xla.tuning import UNROLLED_LIMIT, fusions_available, jaxlib_version, warn_if_untested
from .scanned import ScannedSweep
from .schedule import groups, one_by_one
from .unrolled import UnrolledSweep

Sweep = UnrolledSweep | ScannedSweep


class ExecutionPlan(NamedTuple):
    """How the sweeps over a robot run: see `execution_plan`."""

    sweep: Literal["unrolled", "scanned"]
    """Body by body in one straight program, or with loops along runs of joints."""
    kernels: bool
    """Whether each step is one loop on the CPU; without, the unrolled sweep is up to 10 times slower."""
    tiles: bool
    """Whether large batches are computed a tile at a time, which stays in cache."""
    reason: str
    """Why, in words."""


def gravity_root(model: Model) -> Vec3:
    """The acceleration of the base that stands for gravity: its opposite."""
    return Vec3(*(-model.gravity[k] for k in range(3)))


def _form(tree: KinematicTree, platform: str) -> Literal["unrolled", "scanned"]:
    """The sweep that runs where a program is lowered for a platform."""
    if tree.traversal != "auto":
        return tree.traversal
    return "unrolled" if platform == "cpu" and tree.nb <= UNROLLED_LIMIT else "scanned"


def plan_of(tree: KinematicTree, platform: str) -> ExecutionPlan:
    """The plan for programs that are compiled for a platform, outside of `shard_map`."""
    form, is_cpu = _form(tree, platform), platform == "cpu"
    kernels, tiles = is_cpu and fusions_available(), is_cpu and not may_be_split()
    if tree.traversal != "auto":
        why = f'the traversal "{tree.traversal}" was asked for'
    elif tree.nb > UNROLLED_LIMIT:
        why = f"{tree.nb} bodies are more than {UNROLLED_LIMIT}, and an unrolled program would take long to compile"
    elif form == "scanned":
        why = f'it suits the platform "{platform}"'
    else:
        why = f"{tree.nb} bodies are few enough to unroll on a CPU"
    if is_cpu and not kernels:
        why += f"; jaxlib {'.'.join(map(str, jaxlib_version()))} was not tested, so that there are no kernels"
    if is_cpu and not tiles:
        why += f"; {jax.device_count()} devices may split a batch, so that there are no tiles outside of shard_map"
    return ExecutionPlan(form, kernels, tiles, why)


def traverse(
    model: Model,
    algorithm: Callable,
    q: jax.Array,
    *arrays: Any,
    bodies: Sequence[int] | None = None,
    tile: bool = False,
    side_by_side: bool = False,
) -> Any:
    """Runs `algorithm(sweep, *arrays)` with the sweep that suits the tree and the platform lowered for.

    Where no other `bodies` matter than some and their ancestors, those, in tree order, may be all that is computed.
    With `tile` a large batch is computed a tile at a time on a CPU: for what is much arithmetic for each number that
    goes in or comes out. With `side_by_side` isomorphic limbs are computed as one there, which makes programs smaller:
    for what has few results, since those have to be put in order.
    """
    tree = model.tree

    def unrolled(*inputs: Any) -> Any:
        chosen = groups(tree) if side_by_side else one_by_one(tree, tree.order if bodies is None else bodies)
        model, q, *rest = barrier(inputs[0]), *inputs[1:]
        return barrier(algorithm(UnrolledSweep(model, q, chosen), *rest))

    def scanned(model: Model, q: jax.Array, *rest: Any) -> Any:
        return algorithm(ScannedSweep(model, q), *rest)

    platforms = {"cpu", *(device.platform for device in jax.devices())}
    forms = {_form(tree, platform) for platform in platforms}
    unrolled, scanned = tiled(unrolled, cut=tile), tiled(scanned, cut=tile and platforms == {"cpu"})
    if forms == {"scanned"}:
        return scanned(model, q, *arrays)
    warn_if_untested()
    if forms == {"unrolled"}:
        return unrolled(model, q, *arrays)  # spares the trace of what would not be lowered
    return jax.lax.platform_dependent(model, q, *arrays, cpu=unrolled, default=scanned)
