"""Which of the two forms of a sweep runs, and how: the only place that knows platforms.

There are two, with one interface (`sweep.Sweep`):

- `UnrolledSweep` (in `unrolled`) takes each body in turn, or isomorphic limbs at once, drops what is structurally zero,
  and makes one CPU kernel of each step.
- `ScannedSweep` (in `scanned`) takes all isomorphic unbranched runs of joints at once and scans along them: its program
  does not grow with the length of a chain, and can be exported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model
from ..model.tree import KinematicTree
from ..xla.control_flow import scan
from ..xla.fusion import barrier
from ..xla.gpu_kernel import gpu_kernel
from ..xla.gpu_scan import gpu_scan
from ..xla.in_tiles import in_tiles
from ..xla.loops import is_in_pieces, one_piece
from ..xla.sharding import is_manual, may_be_split
from ..xla.tiling import tiled
from ..xla.tuning import SMALL_TILE, UNROLLED_LIMIT, fusions_available, jaxlib_version, tile, warn_if_untested
from .coordinates import Coordinates
from .scanned import ScannedSweep
from .schedule import group_runs, groups, one_by_one
from .sweep import Sweep
from .unrolled import KernelSweep, UnrolledSweep

_CUDA = ("gpu", "cuda")
T = TypeVar("T")
C = TypeVar("C")
Result = Literal["links", "poses", "joints", "from_poses", "joint_matrix", "world_matrix"]
"""What an algorithm computes, from which follows how it is computed:

- ``"links"``: quantities of a few links or bodies. Little arithmetic for each number: never in tiles.
- ``"poses"``: those of all links. In tiles, whose results are written in place.
- ``"joints"``: a number for each degree of freedom, by sweeps. Large batches in tiles; isomorphic limbs as one, since
  few results have to be put in order.
- ``"from_poses"``: the same, of arrays of all links, which fill more of a cache: in smaller tiles.
- ``"joint_matrix"``: a joint-space matrix. In tiles; it does not depend on where the root is, which is taken to the
  origin.
- ``"world_matrix"``: a matrix about the world origin. In tiles.
"""


class ExecutionPlan(NamedTuple):
    """How the sweeps over a robot run: see `execution_plan`."""

    sweep: Literal["unrolled", "scanned"]
    """Body by body in one straight program, or with loops along runs of joints."""
    kernels: bool
    """Whether each step is one loop on the CPU; without, the unrolled sweep is up to 4 times slower. On a GPU, whether
    the algorithm is one kernel."""
    tiles: bool
    """Whether large batches are computed a tile at a time, which stays in cache."""
    reason: str
    """Why, in words."""


def _form(tree: KinematicTree, platform: str) -> Literal["unrolled", "scanned"]:
    """The sweep that runs where a program is lowered for a platform."""
    if tree.traversal != "auto":
        return tree.traversal
    return "unrolled" if platform in ("cpu", *_CUDA) and tree.nb <= UNROLLED_LIMIT else "scanned"


def plan_of(tree: KinematicTree, platform: str) -> ExecutionPlan:
    """The plan for programs that are compiled for a platform, outside of `shard_map`."""
    form, is_cpu = _form(tree, platform), platform == "cpu"
    is_one_kernel = platform in _CUDA and form == "unrolled"
    kernels = is_one_kernel or (is_cpu and fusions_available())
    if tree.traversal != "auto":
        why = f'the traversal "{tree.traversal}" was asked for'
    elif tree.nb > UNROLLED_LIMIT:
        why = f"{tree.nb} bodies are more than {UNROLLED_LIMIT}, and an unrolled program would take long to compile"
    elif form == "scanned":
        why = f'it suits the platform "{platform}"'
    else:
        why = f"{tree.nb} bodies are few enough to unroll"
    if is_cpu and not kernels:
        why += f"; jaxlib {'.'.join(map(str, jaxlib_version()))} was not tested, so that there are no kernels"
    return ExecutionPlan(form, kernels, is_cpu, why)


def recentre(model: Model, q: jax.Array) -> jax.Array:
    """The configuration with the translations at the root taken back, for what does not depend on where the robot is.

    Far from the origin inertias about it are large, and their differences lose digits.
    """
    tree = model.tree
    leaders = {m.source for m in tree.mimics if m is not None}
    moved = [
        tree.q_slices[i].start + k
        for i, joint in enumerate(tree.joints)
        if tree.parents[i] < 0 and tree.mimics[i] is None and i not in leaders
        for k in joint.translations
    ]
    return jnp.where(np.isin(np.arange(tree.nq), moved), 0.0, q) if moved else q


def traverse(
    model: Model,
    algorithm: Callable[Concatenate[Sweep, ...], T],
    q: jax.Array,
    *arrays: Any,
    result: Result = "links",
    links: Iterable[int | None] | None = None,
) -> T:
    """Runs `algorithm(sweep, *arrays)` with the sweep that suits the robot, the platform and what is computed.

    Args:
        model: The robot.
        algorithm: A function of a `Sweep` and the arrays.
        q: Configuration.
        *arrays: Further arguments, pytrees of arrays.
        result: What the algorithm computes.
        links: The only links that matter, if the result depends on no others (None among them is the world): the
            sweep is then over the bodies that carry them.
    """
    tree = model.tree
    if result == "joint_matrix":
        q = recentre(model, q)
    is_heavy, bodies = result != "links", tree.order
    if links is not None:
        bodies = tree.paths(tree.link_bodies[k] for k in links if k is not None)

    def unrolled(*inputs: Any) -> T:
        chosen = groups(tree) if result in ("joints", "from_poses") else one_by_one(tree, bodies)
        model, q, *rest = barrier(inputs[0]), *inputs[1:]
        return _separated(algorithm(UnrolledSweep(model, q, chosen), *rest))

    def on_gpu(model: Model, q: jax.Array, *rest: Any) -> T:
        def in_kernel(model: Model, q: jax.Array, sines: tuple[jax.Array, jax.Array], *rest: Any) -> T:
            return one_piece(algorithm(KernelSweep(model, q, one_by_one(tree, bodies), sines), *rest))

        angles = Coordinates(model).spread_q(q)
        kernel = gpu_kernel(in_kernel, otherwise=lambda model, q, sines, *rest: one_piece(scanned(model, q, *rest)))
        return kernel(model, q, (jnp.sin(angles), jnp.cos(angles)), *rest)

    def scanned(model: Model, q: jax.Array, *rest: Any) -> T:
        return algorithm(ScannedSweep(model, q, group_runs(tree, bodies)), *rest)

    platforms = _platforms()
    forms = {platform: _form(tree, platform) for platform in platforms}
    size = tile(keeps_much=result != "joints")
    unrolled = tiled(unrolled, cut=is_heavy, tile=size)
    scanned = tiled(scanned, cut=is_heavy and is_on_cpu(), tile=size)
    if set(forms.values()) == {"scanned"}:
        return scanned(model, q, *arrays)
    warn_if_untested()
    branches = {}
    if forms["cpu"] == "unrolled":
        branches["cpu"] = unrolled
    if forms.get("gpu") == "unrolled":
        branches["cuda"] = on_gpu
    if is_on_cpu():
        return unrolled(model, q, *arrays)  # spares the trace of what would not be lowered
    return jax.lax.platform_dependent(model, q, *arrays, **branches, default=scanned)


def in_one_kernel(f: Callable[..., T]) -> Callable[..., T]:
    """`f`, of pytrees of arrays, which composes several algorithms: on a CUDA GPU one kernel, if it is arithmetic.

    There the sine of an angle beyond 8e3 rad, in float64 1e6 rad, is not a number.
    """

    def call(*args: Any) -> T:
        if is_on_cpu():
            return f(*args)
        return jax.lax.platform_dependent(*args, cuda=gpu_kernel(f, otherwise=f), default=f)

    return call


def scan_in_one_kernel(
    f: Callable[[C, Any], tuple[C, Any]], init: C, xs: Any, *, reverse: bool = False
) -> tuple[C, Any]:
    """`scan`; on a CUDA GPU one kernel, or one for each turn where that is too large for a loop in a kernel.

    There the sine of an angle beyond 8e3 rad, in float64 1e6 rad, is not a number.
    """

    def in_turn(init: C, xs: Any) -> tuple[C, Any]:
        return scan(f, init, xs, reverse=reverse)

    if is_on_cpu() or is_manual() or not len(jax.tree.leaves(xs)[0]):
        return in_turn(init, xs)
    kernel = functools.partial(gpu_scan, f, reverse=reverse)
    return jax.lax.platform_dependent(init, xs, cuda=kernel, default=in_turn)


def together(f: Callable[..., T]) -> Callable[..., T]:
    """`f`, of arrays, which composes several algorithms: on a CPU batches of it and of its derivatives are in tiles, on
    a CUDA GPU they are kernels, if they are arithmetic.

    Not where XLA may split a batch over devices: it would gather parts of some derivatives.
    """

    def call(*arrays: Any) -> T:
        if may_be_split():
            return f(*arrays)
        return (in_tiles(f, SMALL_TILE) if is_on_cpu() else in_one_kernel(f))(*arrays)

    return call


def _separated(found: Any) -> Any:
    """Behind a barrier; pieces get theirs as one array (`kinematics`), so that in a batch none is copied."""
    return found if is_in_pieces(found) else barrier(found)


def is_on_cpu() -> bool:
    """Whether a program that is being traced can be lowered for a CPU alone."""
    return _platforms() == {"cpu"}


def _platforms() -> set[str]:
    """The platforms for which a program that is being traced may be lowered."""
    return {"cpu", *(device.platform for device in jax.devices())}
