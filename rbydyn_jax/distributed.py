"""Batches of any size in bounded memory: chunk by chunk, on one device or many.

One program computes a chunk; a loop outside of it slices the arguments and assembles the results, in host memory or on
the devices, wherever the arguments are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding

from ._batched import Batched, split_arguments
from ._check import check_integer
from ._chunks import InMemory, OnDevices, as_keys, destination, everywhere, first, key_kinds, numbers, on_host, over
from ._errors import ArgumentError, DtypeError
from ._progress import Progress, Report, check_progress, reporter
from .sweeps.plan import together
from .xla.layout import batch_first
from .xla.loops import filled, in_turn
from .xla.tuning import CHUNK_ACCELERATOR, CHUNK_BYTES_CPU, CHUNK_GRAIN


def map_batch(
    f: Callable[..., Any],
    *args: Any,
    in_axes: Any = 0,
    chunk: int | None = None,
    mesh: Mesh | None = None,
    out: Any = None,
    progress: Progress = False,
) -> Any:
    """`jax.vmap(f, in_axes)(*args)` for a batch of any size, chunk by chunk in bounded memory.

    One program is compiled for all chunks: the last chunk overlaps the one before, and a batch smaller than a chunk is
    padded with its last row. Every configuration is computed by the same instructions, so that the results of this
    library's functions are bitwise identical for any chunk size, mesh and batch. (Exceptions: XLA may sum a matrix
    product in your own `f` in another order in another chunk; inside a larger program it may fuse more; and with more
    than four threads it may split a loop in the middle of a vector: with six, one `aba` in a thousand was seen to
    change by a last bit in float32.)

    Results are placed where the arguments are:

    - NumPy arrays (`np.memmap` too): chunks are copied to the devices one at a time, and results are NumPy arrays (but
      for keys of `jax.random`).
    - JAX arrays: results are JAX arrays on the same devices, written into one buffer. On a mesh they stay sharded if
      the number of devices divides the batch; otherwise they are replicated.
    - Traced by `jit`, `grad` or `vmap`: one program loops over the chunks. Gradients recompute each chunk instead of
      storing intermediate values, so that their memory is bounded too.

    On a CPU the time per configuration is that of a batch of one chunk, plus some 0.1 us for the call, and the time to
    write the results to memory: 0.1 us for 2 KB, and up to 1 us where the memory is new and page faults occur. NumPy
    allocates large arrays with huge pages, so that results of NumPy arrays take a third of that. A process started with
    `MALLOC_MMAP_THRESHOLD_=10000000000 MALLOC_TRIM_THRESHOLD_=10000000000` (Linux, glibc) reuses freed memory.

    Args:
        f: Function of one configuration. Values that it closes over are constants of the compiled program, and another
            function is another program. So pass the robot as an argument, or as `functools.partial(rnea, model)`.
        *args: Arguments of `f`, pytrees: arrays with a leading batch axis, or shared by all configurations. Arrays and
            floats are inputs of the program; other values (names of links, integers) are constants.
        in_axes: Like that of `jax.vmap`: 0 for batched, None for shared; for all arguments, or a tuple with one for
            each (or a pytree of them).
        chunk: Configurations at a time on each device, rounded up to a multiple of 512; if None, on CPUs 4096 in
            float32 and 2048 in float64, on accelerators 65536.
        mesh: Devices to split the batch over, along all its axes; default is the device or mesh of the arrays. With
            several processes (`jax.distributed`) NumPy arrays and their results are local to the process, of any size,
            for its own devices of the mesh; JAX arrays are global.
        out: Arrays into which the results of NumPy arrays are written, in the structure of the result; an `np.memmap`
            may be larger than memory.
        progress: Called with the number of configurations done and the batch size after each chunk; True shows a
            progress bar.

    Returns:
        What `f` returns, with a leading axis.

    Raises:
        ArgumentError: `chunk` is less than 1, `in_axes` does not fit the arguments, `mesh` has no device of this
            process, or `out` or `progress` is given where it cannot be used.
        DtypeError: An argument or a result is not an array that JAX can read, `chunk` is not an integer, or `mesh` is
            not a mesh.
        MissingExtraError: A progress bar is asked for and tqdm is not installed.
        ShapeError: There is no batch, batches are of different sizes, or `out` does not fit.

    Example:
        The vertical range of a pendulum's center of mass over a hundred thousand configurations:

        >>> arm = robots.pendulum(length=0.5)
        >>> q = np.linspace(-np.pi, np.pi, 100_001)[:, None]
        >>> tip = map_batch(center_of_mass, arm, q, in_axes=(None, 0))
        >>> tip.shape, round(float(np.ptp(tip[:, 2])), 4)
        ((100001, 3), 1.0)
    """
    function, shared, batch = split_arguments(f, args, in_axes)
    size = batch[0].shape[0]
    in_memory = all(isinstance(x, np.ndarray) for x in batch)
    if out is not None and not in_memory:
        raise ArgumentError("out needs NumPy arrays as arguments, got a JAX array")
    check_progress(progress)
    mesh = _mesh(mesh, batch, in_memory)
    chunk = _chunk(chunk, mesh, batch)
    inside = _is_traced((shared, batch, jnp.empty(())))  # of jit, vmap or grad
    if size and not inside:
        used = _one_device(batch) if mesh is None and jax.device_count() > 1 else mesh
        chunks = (InMemory if in_memory or on_host(batch, used) else OnDevices)(batch, used, chunk, out)
        with reporter(progress, size, "map_batch") as report:
            inside = not _loop(function, used, everywhere(used, shared), chunks, report)
        if not inside:
            return chunks.result()
    if inside and (out is not None or progress):
        raise ArgumentError("out and progress must be used outside of jit, vmap and grad")
    result = _in_one_program(function, mesh, chunk, shared, batch)
    if not in_memory or _is_traced(result):
        return result
    return as_keys(key_kinds(result), destination(out, numbers(result), 0))


def _loop(function: Batched, mesh: Mesh | None, shared: list, chunks: InMemory | OnDevices, report: Report) -> bool:
    """Computes chunk by chunk; returns False, having done nothing, if `f` closes over what is traced."""

    def finish(number: int, start: int, results: Any) -> None:
        chunks.put(start, results)
        report(min(number * chunks.rows, chunks.size))

    ahead = 0, None
    for number, start in enumerate(chunks.starts):
        results = _program(function, mesh, shared, chunks.take(start))
        if number == 0 and _is_traced(results):
            return False
        if number > 0:  # a chunk is computed while the one before is written
            finish(number, *ahead)
        ahead = start, results
    finish(len(chunks.starts), *ahead)
    return True


def _batched(function: Batched) -> Callable[[list, list], Any]:
    """The function of the shared arrays and some rows of the batch."""
    return jax.vmap(together(function.one), in_axes=(None, 0))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _program(function: Batched, mesh: Mesh | None, shared: list, rows: list) -> Any:
    return over(mesh, _batched(function))(shared, rows)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _in_one_program(function: Batched, mesh: Mesh | None, chunk: int, shared: list, batch: list) -> Any:
    """A loop over the chunks inside one program, which can be differentiated and mapped."""
    size, devices = batch[0].shape[0], 1 if mesh is None else mesh.size
    compute_rows = _batched(function)

    def loop(shared: list, rows: list) -> Any:
        share = rows[0].shape[0]
        width = min(chunk, _whole(max(share, 1)))

        def compute(rows: list) -> Any:
            # Otherwise XLA:CPU transposes a chunk while it writes it, one scalar at a time.
            return jax.tree.map(lambda x: x if _is_opaque(x) else batch_first(x), compute_rows(shared, rows))

        return in_turn(compute if share <= width else jax.checkpoint(compute, prevent_cse=False), rows, width)

    rows = [filled(jnp.asarray(x), -(-size // devices) * devices, jnp) for x in batch]
    return first(size, mesh, over(mesh, loop)(shared, rows))


def _mesh(mesh: Mesh | None, batch: list, in_memory: bool) -> Mesh | None:
    """The devices to split the batch over; None is JAX's default device."""
    if mesh is None:
        meshes = [x.sharding.mesh for x in _concrete(batch) if isinstance(x.sharding, NamedSharding)]
        mesh = next((m for m in meshes if isinstance(m, Mesh) and m.size > 1), None)
        if mesh is None:
            return None
    if not isinstance(mesh, Mesh):
        raise DtypeError(f"mesh must be a jax.sharding.Mesh, got {type(mesh).__name__}")
    own = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
    if not own:
        raise ArgumentError(f"mesh must have devices of this process ({jax.process_index()}), got {mesh}")
    if in_memory and len(own) < mesh.size:
        return Mesh(np.array(own), ("batch",))
    if jax.sharding.get_abstract_mesh().empty:  # axes of type Explicit are for programs in which a mesh has been set
        return Mesh(mesh.devices, mesh.axis_names)
    return mesh


def _one_device(batch: list) -> Mesh:
    """The mesh of JAX's default device; with it, functions know that their batch is not split."""
    (device,) = next(iter([*_concrete(batch), jnp.zeros(())])).devices()
    return Mesh(np.array([device]), ("batch",))


def _chunk(chunk: int | None, mesh: Mesh | None, batch: list) -> int:
    """Configurations at a time on each device."""
    if chunk is None:
        used = jax.devices() if mesh is None else mesh.devices.flat
        if mesh is None and (arrays := _concrete(batch)):
            used = arrays[0].devices()
        if {device.platform for device in used} != {"cpu"}:
            return CHUNK_ACCELERATOR
        return CHUNK_BYTES_CPU // (8 if any(x.dtype.itemsize == 8 for x in batch) else 4)
    return _whole(check_integer(chunk, "chunk", 1))


def _whole(rows: int) -> int:
    return -(-rows // CHUNK_GRAIN) * CHUNK_GRAIN


def _is_opaque(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.extended)


def _concrete(batch: list) -> list[jax.Array]:
    return [x for x in batch if isinstance(x, jax.Array) and not isinstance(x, Tracer)]


def _is_traced(tree: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))
