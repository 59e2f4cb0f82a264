"""All numbers that were found by measurement, each with what it was measured on, and what is known of each jaxlib.

Measured on RB-Y1 A and a Panda, B = 1024, on one core of an AMD EPYC, jaxlib 0.10.2 and 0.12.0.1, by `benchmarks`.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import version

from .._errors import PerformanceWarning

# jaxlib versions on which the fusions of `fusion` were seen to work: from, and below.
TESTED_FROM, TESTED_BELOW = (0, 10), (0, 13)
# From here on XLA:CPU keeps optimization barriers until after fusion (0.11.0: it drops them before layout assignment),
# and compiles a loop whose body is not opaque to it as a single function, which makes `aba` 2.4 times slower.
_LATE_BARRIERS = (0, 11, 1)

# fusion: with so few results XLA may drop all but one, which ends the process. Of more that was seen where results
# leave a public function, or a loop, one by one: see `separate_use`, which costs 2 to 8 % where all are used.
FEW_RESULTS = 3
# unrolled sweep: bodies of one kernel in a map over all bodies: fewer kernels, and few enough arrays at a time. With 4
# instead of 1 a single call of `jacobian` took two thirds of the time.
BODIES_TOGETHER = 4
# unrolled sweep: links whose poses are one piece of the result.
LINKS_OF_PIECE = 4
# plan: more bodies than this are scanned: the unrolled program grows with their number. On a loaded machine `rnea` of a
# chain of 64 compiled in 21 s, of 65, scanned, in 1.6 s.
UNROLLED_LIMIT = 64
# tiling: configurations of one tile: few enough for a core's cache (10 to 20 KB each), enough that starting a loop
# costs nothing against it. Multiples of 512 are cut into equal tiles: results do not depend on the chunk of a batch.
TILE, LARGEST_TILE = 256, 384
# tiling: the same where more is kept for each: matrices and poses, and what several programs hand on to each other. On
# a Xeon, 256 -> 128: `rnea_derivatives` of RB-Y1 A 7.2 -> 5.8 us, `crba` 1.6 -> 1.4, `fk` 0.95 -> 0.80, that of iCub
# 16.7 -> 14.6; but `aba` of iCub 1.95 -> 2.10. The gradient of `fk` of Talos 5.2 -> 4.3, of a Panda 0.61 -> 0.41.
SMALL_TILE = 128
# tiling: without fusions there is a loop for each result, and starting them costs more. `aba` of RB-Y1 A: 2.9 us with
# 256, 2.1 with 512, 2.0 with 1024; the gradient of `rnea`: 3.8 with 256, 3.0 with 1024.
UNFUSED_TILE = 512
# whole-body programs: configurations of one tile: some 50 KB of matrices each, and all take the steps of the slowest.
# Talos on two feet, a batch of 256: 120 us with 32, 206 us with 256.
PROGRAM_TILE = 32
# timing of paths: paths whose points are computed at a time: those of one fill the vectors, those of many leave the
# cache. Forces at the 257 points of a path of a Panda: 0.04 ms with 1, 0.27 ms with 256.
PATH_TILE = 1
# cross products: configurations of one tile of their derivative. Of two matrices of RB-Y1 A: 20 us with 16 and with 32,
# 26 with 64 on 0.12.
PRODUCTS_TILE = 32
# tiling: bytes of a cache line, and the stride at which arrays drive each other out of the first cache.
CACHE_LINE, ALIASING_STRIDE = 64, 1024
# tiling: scalars of one configuration up to which padding its arrays costs less than the aliasing that it avoids.
PADDED_SCALARS = 512
# transpose: a sweep costs less than the matrix for fewer arguments than this.
FEW_ARGUMENTS = 6
# block matrix: degrees of freedom of a block, beyond which it is cut, since what belongs to a block is unrolled.
LONGEST_BLOCK = 8
# block matrix: sums of more products are left to XLA's dot.
LONGEST_SUM = 64
# block matrix: products of matrices up to this size are sums of outer products; a batched dot is several times slower.
SMALL_MATRIX = 6
# loops: elements of its arrays from which a loop is faster as kernels than as one function. Points and a hull of 116
# faces on 0.12: 4 points take 66 us as one function and 158 in kernels, 64 take 248 and 205, 4096 10.1 and 3.1 ms.
FEW_ELEMENTS = 64
# map_batch: bytes of one scalar of all configurations of a chunk on a CPU, such that a call, with what is copied before
# and after it, costs little against it; configurations of a chunk on an accelerator. Of 65,536 in float64 on 0.12, 512
# against 2048 at a time: `rnea` of a Panda 0.49 and 0.24 us (0.16 in one `vmap`), its `fk` 0.65 and 0.47; `rnea` of
# RB-Y1 A 0.91 and 0.72, but its `fk`, whose results leave the cache, 1.85 and 2.1.
CHUNK_BYTES_CPU, CHUNK_ACCELERATOR = 16384, 65536
# map_batch: chunks are multiples of this: nothing is left over from whole vectors and no loop is short, either of which
# changes the last bit of a result.
CHUNK_GRAIN = 512

# gpu_kernel: threads of a block. RB-Y1 A on an H200: within a loop `rnea` takes 62 us with 64, 64 with 128 and 256.
GPU_BLOCK = 128
# gpu_parts: operations of one kernel.
GPU_OPERATIONS = 10_000
# gpu_kernel: operations of all kernels of a program. To write and assemble 66,000, of two cylinders, takes 20 s.
GPU_MOST_OPERATIONS = 80_000
# gpu_scan: operations of a turn of a scan that is one kernel. A step of `simulate` of RB-Y1 A, with 9,400, is faster
# so; one of the backward sweep of `ilqr` of a Panda, with 13,000, whose numbers do not fit into registers, is not.
GPU_SCAN_OPERATIONS = 10_000
# gpu_parts: numbers of 32 bits that a kernel needs at one time. A thread has 255 registers, and the assembler finds a
# better order than the one given. `rnea_derivatives` of RB-Y1 A in float32, B = 131,072 on an H200: 2.13 ms with 170
# and 220, 1.82 with 270; `aba`: 0.37 ms with 170, 0.31 with 220 and without a limit. The assembler of CUDA 13 keeps
# 1 KB a thread of `rnea_derivatives` in memory with 270, 160 KB without a limit.
GPU_REGISTERS = 270

# c_source: operations of one function in C. GCC 12 took 15 s for `rnea_derivatives` of RB-Y1 A (27,000 operations) in
# one function, and 5 s in functions of 500 to 1,000, which run as fast.
C_OPERATIONS = 500


@cache
def jaxlib_version() -> tuple[int, ...]:
    """The version of jaxlib as numbers, as far as it consists of them."""
    parts = version("jaxlib").split(".")
    numbers = [part for part in parts[:3] if part.isdigit()]
    return tuple(int(part) for part in numbers)


def late_barriers() -> bool:
    """Whether optimization barriers live until after fusion, and small loops are compiled as one function."""
    return jaxlib_version() >= _LATE_BARRIERS


def fusions_available() -> bool:
    """Whether this jaxlib is one on which fusions were seen to work."""
    return TESTED_FROM <= jaxlib_version()[:2] < TESTED_BELOW


def tile(keeps_much: bool) -> int:
    """Configurations of one tile of a sweep, which keeps much or little for each."""
    return (SMALL_TILE if keeps_much else TILE) if fusions_available() else UNFUSED_TILE


@cache
def warn_if_untested() -> None:
    """Warns once if this jaxlib is newer than those on which fusions were tested."""
    if jaxlib_version()[:2] < TESTED_BELOW:
        return
    newest, found = ".".join(map(str, TESTED_BELOW)), version("jaxlib")
    warnings.warn(
        f"rbydyn_jax was tested with jaxlib below {newest}, found {found}: on a CPU it does without the fusions that "
        "are private to XLA, so that programs run up to 4 times slower and compile up to 4 times longer. Install a "
        "tested jaxlib, or silence this: warnings.filterwarnings('ignore', category=rbydyn_jax.PerformanceWarning)",
        PerformanceWarning,
        stacklevel=2,
    )
