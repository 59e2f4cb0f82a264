"""Slices chunks out of the batched arguments, and assembles the results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ._errors import ArgumentError, DtypeError, ShapeError
from .xla.loops import filled


class InMemory:
    """Rows and results in host memory; for JAX arrays on the host, the results are JAX arrays."""

    def __init__(self, batch: list, mesh: Mesh | None, chunk: int, out: Any) -> None:
        self.batch, self.out = [np.asarray(x) for x in batch], out
        if any(np.may_share_memory(x, y) for x in jax.tree.leaves(out) for y in self.batch):
            raise ArgumentError("out must not share memory with the arguments: the last chunk reads some of them again")
        self.keys: list[Any] = []
        self.mesh, self.size, self.rows = mesh, len(self.batch[0]), chunk * (1 if mesh is None else mesh.size)
        self.starts = [max(0, min(k, self.size - self.rows)) for k in range(0, self.size, self.rows)]
        arrays = [x for x in batch if isinstance(x, jax.Array)]
        self.placement = [next((x.sharding for x in arrays if x.committed), None)] if arrays else []

    def take(self, start: int) -> list:
        return on_mesh(self.mesh, [filled(x[start : start + self.rows], self.rows, np) for x in self.batch])

    def put(self, start: int, results: Any) -> None:
        if start == 0:
            self.keys = key_kinds(results)
            self.out = destination(self.out, numbers(results), self.size)
        results = numbers(results)
        for to, x in zip(jax.tree.leaves(self.out), jax.tree.leaves(results), strict=True):
            to[start : start + self.rows] = np.asarray(x)[: self.size]

    def result(self) -> Any:
        out = jax.device_put(self.out, *self.placement, may_alias=True) if self.placement else self.out
        return as_keys(self.keys, out)


class OnDevices:
    """Rows and results on the devices; results are written into one donated buffer."""

    def __init__(self, batch: list, mesh: Mesh | None, chunk: int, out: None) -> None:
        devices = 1 if mesh is None else mesh.size
        self.mesh, self.chunk, self.out, self.size = mesh, chunk, out, batch[0].shape[0]
        self.share = -(-self.size // devices)  # of each device
        self.batch = on_mesh(mesh, [filled(jnp.asarray(x), self.share * devices, jnp) for x in batch])
        self.rows = chunk * devices
        self.starts = range(0, self.share, chunk)

    def take(self, start: int) -> list:
        return _take(self.mesh, self.chunk, start, self.batch)

    def put(self, start: int, results: Any) -> None:
        self.out = _put(self.mesh, self.share, start, jax.block_until_ready(results), self.out)

    def result(self) -> Any:
        return first(self.size, self.mesh, self.out)


def key_kinds(results: Any) -> list[Any]:
    """For each array whose keys for random numbers it holds; None for others."""
    return [jax.random.key_impl(x) if _is_key(x) else None for x in jax.tree.leaves(results)]


def numbers(results: Any) -> Any:
    """The results with the numbers of keys in their place, which NumPy can hold."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, results)


def as_keys(kinds: list[Any], results: Any) -> Any:
    """The results with keys in the place of their numbers."""
    leaves, tree = jax.tree.flatten(results)
    each = zip(leaves, kinds, strict=True)
    return jax.tree.unflatten(tree, [x if kind is None else jax.random.wrap_key_data(x, impl=kind) for x, kind in each])


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def on_mesh(mesh: Mesh | None, rows: Any) -> Any:
    """The rows, split over the devices of the mesh."""
    return rows if mesh is None else jax.device_put(rows, NamedSharding(mesh, PartitionSpec(mesh.axis_names)))


def everywhere(mesh: Mesh | None, shared: Any) -> Any:
    """Replicates shared arrays over the devices once; with several processes each program does so itself."""
    if mesh is None or mesh.is_multi_process:
        return shared
    return jax.device_put(shared, NamedSharding(mesh, PartitionSpec()))


def over(mesh: Mesh | None, f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`f(shared, rows)` on each device for its own rows, without communication."""
    if mesh is None:
        return f
    same, split = PartitionSpec(), PartitionSpec(mesh.axis_names)
    mapped = jax.shard_map(f, mesh=mesh, in_specs=(same, split), out_specs=split, check_vma=False)
    return lambda shared, rows: mapped(jax.device_put(shared, NamedSharding(mesh, same)), on_mesh(mesh, rows))


def first(size: int, mesh: Mesh | None, tree: Any) -> Any:
    """The first rows; where they cannot be split evenly over the devices, they are replicated."""

    def cut(x: jax.Array) -> jax.Array:
        return (x if mesh is None else jax.device_put(x, NamedSharding(mesh, PartitionSpec())))[:size]

    return jax.tree.map(lambda x: x if x.shape[0] == size else cut(x), tree)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _take(mesh: Mesh | None, chunk: int, start: int, batch: list) -> list:
    def take(start: Any, batch: list) -> list:
        return [filled(jax.lax.dynamic_slice_in_dim(x, start, min(chunk, x.shape[0])), chunk, jnp) for x in batch]

    return over(mesh, take)(start, batch)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=4)
def _put(mesh: Mesh | None, share: int, start: int, results: Any, out: Any) -> Any:
    def put(start: Any, rows: tuple[Any, Any]) -> Any:
        results, out = jax.tree.map(lambda x: x[:share], rows)
        if out is None:
            out = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], (share, *x.shape[1:])), results)
        return jax.tree.map(lambda to, x: jax.lax.dynamic_update_slice_in_dim(to, x, start, 0), out, results)

    return over(mesh, put)(start, (results, out))


def destination(out: Any, results: Any, size: int) -> Any:
    """Arrays for `size` results: new ones, or `out` if it fits."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype), results)
    if out is None:
        return jax.tree.map(_empty, shapes)
    if jax.tree.structure(out) != jax.tree.structure(shapes):
        raise ShapeError(f"out must be a pytree like what f returns, {jax.tree.structure(shapes)}")
    for (path, x), want in zip(jax.tree_util.tree_leaves_with_path(out), jax.tree.leaves(shapes), strict=True):
        name = "out" + jax.tree_util.keystr(path)
        if not isinstance(x, np.ndarray) or x.dtype != want.dtype or not x.flags.writeable:
            found = f"one of {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
            raise DtypeError(f"{name} must be a writable NumPy array of {want.dtype}, got {found}")
        if x.shape != want.shape:
            raise ShapeError(f"{name} must have shape {want.shape}, got {x.shape}")
    return out


def _empty(like: jax.ShapeDtypeStruct) -> np.ndarray:
    """A NumPy array aligned to a cache line, so that JAX can use it without a copy."""
    count = int(np.prod(like.shape)) * like.dtype.itemsize
    memory = np.empty(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(like.dtype).reshape(like.shape)


def on_host(batch: list, mesh: Mesh | None) -> bool:
    """Whether JAX computes on a CPU and all arrays are there."""
    here = jnp.empty(()).devices()
    if mesh is not None or {device.platform for device in here} != {"cpu"}:
        return False
    arrays = [x for x in batch if isinstance(x, jax.Array)]
    return all(x.devices() == here and not jnp.issubdtype(x.dtype, jax.dtypes.extended) for x in arrays)
