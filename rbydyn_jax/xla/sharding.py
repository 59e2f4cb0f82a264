"""Programs on several devices: what varies over the devices of a `shard_map`, and batches split by explicit axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import ShapedArray, Tracer
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec, use_abstract_mesh

T = TypeVar("T")
_NO_MESH = AbstractMesh((), ())
_NO_AXES: frozenset[Any] = frozenset()
BatchingRule = Callable[..., tuple[Any, Any]]


def may_be_split() -> bool:
    """Whether XLA may split what is being traced over several devices: there are some, and no `shard_map` around."""
    mesh = jax.sharding.get_abstract_mesh()
    return jax.device_count() > 1 and (mesh.empty or not mesh.are_all_axes_manual)


def is_manual() -> bool:
    """Whether what is being traced is inside of a `shard_map`."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def varying(x: Any) -> frozenset[Any]:
    """The manual axes over which an array, or an array of a type, varies."""
    if isinstance(x, Tracer):
        x = jax.typeof(x)
    return x.mat.varying if isinstance(x, ShapedArray) else _NO_AXES


def vary_over(x: T, axes: frozenset[Any]) -> T:
    """An array that varies over these manual axes too. The transpose of the cast sums over the devices."""
    more = axes - varying(x)
    return jax.lax.pcast(x, tuple(sorted(more)), to="varying") if more else x


def vary_alike(tree: T, *others: Any) -> T:
    """The arrays of a pytree, varying over all manual axes over which any of them (or of the others) varies.

    Outside of `shard_map` these are the arrays themselves.
    """
    axes = _NO_AXES.union(*map(varying, jax.tree.leaves((tree, others))))
    return jax.tree.map(lambda x: vary_over(x, axes), tree) if axes else tree


def on_mesh(aval: Any) -> bool:
    """Whether an array type knows of a mesh: that of a `shard_map`, or one with explicit axes."""
    return not aval.sharding.mesh.empty


def of_mesh(avals: Sequence[Any]) -> Any:
    """The first array type that knows of a mesh, if any does."""
    return next(filter(on_mesh, avals), avals[0])


def replicated(like: Any, rank: int) -> NamedSharding:
    """On the mesh of an array type, with no axis split."""
    return NamedSharding(like.sharding.mesh, PartitionSpec(*(None for _ in range(rank))))


def without_explicit_mesh() -> AbstractContextManager[Any]:
    """A context in which no mesh with explicit axes is set; within a `shard_map` it changes nothing."""
    mesh = jax.sharding.get_abstract_mesh()
    return nullcontext() if mesh.empty or mesh.manual_axes else use_abstract_mesh(_NO_MESH)


def type_without_mesh(x: Any) -> Any:
    """The type of an array, on no mesh unless within a `shard_map`."""
    aval = jax.typeof(x)
    return aval if aval.sharding.mesh.manual_axes else aval.update(sharding=NamedSharding(_NO_MESH, PartitionSpec()))


def _split(rows: Sequence[jax.Array]) -> NamedSharding | None:
    """How the first axis of the arrays is split over explicit axes of a mesh, if it is."""
    for x in rows:
        sharding = jax.typeof(x).sharding
        if x.ndim and not sharding.mesh.empty and sharding.spec[0] is not None:
            return NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0]))
    return None


def on_each_shard(rule: BatchingRule) -> BatchingRule:
    """A batching rule that is applied on each device, where a batch is split over explicit axes of a mesh."""

    def batch(operands: Sequence[Any], axes: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        is_batched = [axis is not None for axis in axes]
        rows = [jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True) if axis is not None]
        split = _split(rows)
        if split is None:
            return rule(operands, axes, **params)
        whole = NamedSharding(split.mesh, PartitionSpec())
        shared = [jax.sharding.reshard(x, whole) for x, b in zip(operands, is_batched, strict=True) if not b]

        def on_shard(shared: list[Any], rows: list[Any]) -> Any:
            given = {True: iter(rows), False: iter(shared)}
            results, at = rule([next(given[b]) for b in is_batched], [0 if b else None for b in is_batched], **params)
            return jax.tree.map(lambda x, axis: jnp.moveaxis(x, axis, 0), results, at)

        run = jax.shard_map(
            on_shard, mesh=split.mesh, in_specs=(whole.spec, split.spec), out_specs=split.spec, check_vma=False
        )
        results = run(shared, [jax.sharding.reshard(x, split) for x in rows])
        return results, jax.tree.map(lambda _: 0, results)

    return batch
