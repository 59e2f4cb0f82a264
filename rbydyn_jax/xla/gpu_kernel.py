"""A function of one configuration as one kernel of a CUDA GPU, with a configuration in each thread.

XLA makes a kernel of each step of an algorithm, between which everything goes to memory and back. `gpu_kernel` makes
one of all steps: the scalars of a configuration stay in the registers of its thread, and memory holds the arguments and
the results alone. The kernel is written in PTX, from the program of scalars.

Its derivative and its transpose are such functions again, which compute once more what they need.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir, partial_eval

from .composed import COMPOSED
from .elementary import ELEMENTARY
from .emission import on_one_device
from .gpu_parts import LIMITS, Limits, register_parts
from .gpu_stages import stages
from .lanes_last import Flags, in_all_lanes, spread_over_lanes
from .ptx import Array, Kernel, Place, UnsupportedError, check_written, kernel_text
from .scalar_program import scalar_program
from .scalars import NotScalarError, Scalar, ScalarProgram
from .transpose import jvp_along, pruned, with_operands
from .tuning import GPU_BLOCK, GPU_MOST_OPERATIONS

_kernel_p = Primitive("rbydyn_gpu_kernel")
_kernel_p.multiple_results = True
KERNEL_NAME = "rbydyn"
WRITTEN = COMPOSED | ELEMENTARY  # operations that kernels have as compositions of simpler ones


def gpu_kernel(f: Callable[..., Any], otherwise: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`f`, of pytrees of arrays, as one kernel where it is compiled for a GPU.

    If an operation of `f` is not written in PTX, this is `otherwise`. If one of its derivative is not, or XLA splits a
    batch over devices by itself, XLA compiles it as any other program. Where `f` calls such functions they are not part
    of the kernel, but others between two of `f`.
    """

    def call(*args: Any) -> Any:
        given, tree = jax.tree.flatten(args)

        def of_leaves(*xs: jax.Array) -> Any:
            return f(*jax.tree.unflatten(tree, xs))

        traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(*given)
        program, around = with_operands(traced)
        in_stages = stages(pruned(program), _kernel_p)
        if otherwise is not None and not _is_written(in_stages.parts[0].program):
            return otherwise(*args)
        return jax.tree.unflatten(jax.tree.structure(shape), in_stages.run(_of_one, [*around, *given]))

    return call


def _of_one(program: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    return _kernel_p.bind(*operands, program=program, batched=(False,) * len(operands), lanes=None)


@functools.lru_cache(maxsize=16)  # asked for when traced, and when lowered
def _scalars(program: ClosedJaxpr) -> ScalarProgram:
    return scalar_program(program, WRITTEN, GPU_MOST_OPERATIONS)


def _is_written(program: ClosedJaxpr) -> bool:
    try:
        check_written([x.dtype for x in (*program.in_avals, *program.out_avals)], ())
        check_written((), _scalars(program).operations)
    except (NotScalarError, UnsupportedError):
        return False
    return True


# The arrays of lanes have the lanes behind their own axes. `lanes` is their number, None outside of a batch.


def _types(*xs: Any, program: ClosedJaxpr, batched: Flags, lanes: int | None) -> list[Any]:
    behind = () if lanes is None else (lanes,)
    return [x.update(shape=(*x.shape, *behind), weak_type=False) for x in program.out_avals]


def _whole(*xs: jax.Array, program: ClosedJaxpr, batched: Flags, lanes: int | None) -> list[jax.Array]:
    """Without a kernel: on other platforms, and where nothing is compiled."""
    run = jaxpr_as_fun(program)
    return run(*xs) if lanes is None else in_all_lanes(run, xs, batched, lanes)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, program: ClosedJaxpr, batched: Flags, lanes: int | None
) -> tuple[list[Any], list[Any]]:
    places = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]

    def moved(*xs: jax.Array) -> list[Any]:
        values, along = xs[: len(primals)], xs[len(primals) :]
        return jvp_along(lambda ys: jaxpr_as_fun(program)(*ys), values, dict(zip(places, along, strict=True)))[1]

    values = _kernel_p.bind(*primals, program=program, batched=batched, lanes=lanes)
    types = [*program.in_avals, *(program.in_avals[k] for k in places)]
    derivative = pruned(jax.make_jaxpr(moved)(*types))
    flags = (*batched, *(batched[k] for k in places))
    along = (tangents[k] for k in places)
    return values, _kernel_p.bind(*primals, *along, program=derivative, batched=flags, lanes=lanes)


def _transpose(
    cotangents: Sequence[Any], *args: Any, program: ClosedJaxpr, batched: Flags, lanes: int | None
) -> list[Any]:
    """The transpose of the derivative's program."""
    linear = [ad.is_undefined_primal(x) for x in args]
    known = [x for x, is_linear in zip(args, linear, strict=True) if not is_linear]
    wanted = [aval for aval, is_linear in zip(program.in_avals, linear, strict=True) if is_linear]
    dense = [ad.instantiate_zeros(ct) for ct in cotangents]

    def transposed(*xs: jax.Array) -> list[Any]:
        values, cts = xs[: len(known)], list(xs[len(known) :])

        def map_(*unknown: jax.Array) -> list[Any]:
            a, b = iter(unknown), iter(values)
            return jaxpr_as_fun(program)(*(next(a) if is_linear else next(b) for is_linear in linear))

        return list(jax.linear_transpose(map_, *wanted)(cts))

    types = [aval for aval, is_linear in zip(program.in_avals, linear, strict=True) if not is_linear]
    back = pruned(jax.make_jaxpr(transposed)(*types, *program.out_avals))
    flags = [b for b, is_linear in zip(batched, linear, strict=True) if not is_linear] + [lanes is not None] * len(
        dense
    )
    found = iter(_kernel_p.bind(*known, *dense, program=back, batched=tuple(flags), lanes=lanes))
    results: list[Any] = []
    for is_linear, b in zip(linear, batched, strict=True):
        ct = next(found) if is_linear else None
        results.append(ct if ct is None or b or lanes is None else ct.sum(axis=-1))
    return results


def _batch(
    xs: Sequence[Any], axes: Sequence[Any], *, program: ClosedJaxpr, batched: Flags, lanes: int | None
) -> tuple[list[Any], list[Any]]:
    spread = spread_over_lanes(xs, axes, batched, lanes, [x.ndim for x in program.in_avals], program.out_avals)
    if spread.operands is None:
        return spread.restored([])
    return spread.restored(
        _kernel_p.bind(*spread.operands, program=program, batched=spread.batched, lanes=spread.lanes)
    )


def _without_unused(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    eqn: JaxprEqn = context[-1]
    if not any(used):
        return [False] * len(eqn.invars), None
    program: ClosedJaxpr = eqn.params["program"]
    jaxpr, needed = partial_eval.dce_jaxpr(program.jaxpr, used)
    if all(used) and all(needed):
        return [True] * len(eqn.invars), eqn
    flags = tuple(b for b, is_needed in zip(eqn.params["batched"], needed, strict=True) if is_needed)
    params = {**eqn.params, "program": ClosedJaxpr(jaxpr, program.consts), "batched": flags}
    kept_in = [x for x, is_needed in zip(eqn.invars, needed, strict=True) if is_needed]
    kept_out = [x for x, is_used in zip(eqn.outvars, used, strict=True) if is_used]
    return list(needed), eqn.replace(invars=kept_in, outvars=kept_out, params=params)


# ---- the kernels ----


class Launch(NamedTuple):
    """The call of a kernel."""

    text: str
    """In PTX, of the kernel `KERNEL_NAME`."""
    operands: Sequence[int]
    """Which arrays it is given: the operands of the program, then the results of the launches before."""
    results: Sequence[Array]


def launches(program: ClosedJaxpr, batched: Sequence[bool], lanes: int, limits: Limits = LIMITS) -> Sequence[Launch]:
    """The kernels of a program, the last of which gives its results; more than one if it needs many registers.

    Args:
        program: Of one lane.
        batched: Whether each operand is one for each lane.
        lanes: Number of lanes.
        limits: Of one kernel.

    Raises:
        NotScalarError: The program has an operation that is not supported for single numbers.
        UnsupportedError: It has an operation or a type that is not written in PTX.
    """
    scalars = _scalars(program)
    arrays = [Array(x.size, x.dtype, b) for x, b in zip(program.in_avals, batched, strict=True)]
    place = dict(zip(scalars.inputs, _places(arrays), strict=True))
    one_for_all = [not b for x, b in zip(program.in_avals, batched, strict=True) for _ in range(x.size)]
    shared = frozenset(itertools.compress(scalars.inputs, one_for_all))
    shapes = [x.shape for x in program.out_avals]
    parts, found = register_parts(scalars, shapes, shared, limits), list[Launch]()
    for part in parts:
        if part is parts[-1]:
            results = [Array(x.size, x.dtype, True) for x in program.out_avals]
            write = list(zip(scalars.results, _places(results), strict=True))
        else:
            of_type: dict[np.dtype, list[Scalar]] = {}
            for x in part.gives:
                of_type.setdefault(_carried_as(x.dtype), []).append(x)
            results = [Array(len(own), dtype, True) for dtype, own in of_type.items()]
            write = list(zip((x for own in of_type.values() for x in own), _places(results), strict=True))
        own = set(part.operations)
        copied = [x for x, _ in write if isinstance(x, Scalar) and x not in own]
        read = {x: place[x] for x in dict.fromkeys([*part.reads, *copied])}
        kept = sorted({k for k, _ in read.values()})
        new = {k: at for at, k in enumerate(kept)}
        places = {x: (new[k], i) for x, (k, i) in read.items()}
        kernel = Kernel(part.operations, [arrays[k] for k in kept], results, places, write)
        found.append(Launch(kernel_text(KERNEL_NAME, kernel, lanes, GPU_BLOCK), kept, results))
        place |= {x: (len(arrays) + k, i) for x, (k, i) in write if x in own}
        arrays += results
    return found


def _places(arrays: Sequence[Array]) -> list[Place]:
    return [(k, i) for k, x in enumerate(arrays) for i in range(x.size)]


def _carried_as(dtype: np.dtype) -> np.dtype:
    """The type of numbers of a type that go from one kernel to the next."""
    return np.dtype(np.int32) if dtype == np.bool_ else dtype


def _lower(
    ctx: mlir.LoweringRuleContext, *xs: ir.Value[Any], program: ClosedJaxpr, batched: Flags, lanes: int | None
) -> Sequence[Any]:
    number = 1 if lanes is None else lanes
    try:
        found = launches(program, batched, number) if on_one_device(ctx) else ()
    except (NotScalarError, UnsupportedError):
        found = ()
    if not found:  # kernels of XLA's, which its partitioner can split
        return _lower_whole(ctx, *xs, program=program, batched=batched, lanes=lanes)
    return lowered(ctx, xs, found, number)


def lowered(
    ctx: mlir.LoweringRuleContext, xs: Sequence[ir.Value[Any]], found: Sequence[Launch], number: int
) -> Sequence[Any]:
    """The results of kernels that are launched one after the other, for so many lanes."""
    values, avals = list(xs), list(ctx.avals_in)
    for launch in found:
        is_last = launch is found[-1]
        types = ctx.avals_out if is_last else [ShapedArray((x.size, number), x.dtype) for x in launch.results]
        inner = ctx.replace(avals_in=[avals[k] for k in launch.operands], avals_out=types)
        size = {"grid": -(-number // GPU_BLOCK), "block": GPU_BLOCK}
        config = {
            "name": ir.StringAttr.get(KERNEL_NAME),
            "kernel_type": ir.StringAttr.get("ptx"),
            "kernel_data": ir.StringAttr.get(launch.text),
            "shared_mem_bytes": _i32(0),
            **{f"{name}_{axis}": _i32(n if axis == "x" else 1) for name, n in size.items() for axis in "xyz"},
        }
        call = jax.ffi.ffi_lowering("__gpu$xla.gpu.ptx", backend_config=config)
        results: Any = call(inner, *(values[k] for k in launch.operands))
        values += results
        avals += types
    return values[len(values) - len(ctx.avals_out) :]


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


@functools.partial(jax.jit, static_argnames=("program", "batched", "lanes"))
def _compiled(*xs: jax.Array, program: ClosedJaxpr, batched: Flags, lanes: int | None) -> list[Any]:
    return _kernel_p.bind(*xs, program=program, batched=batched, lanes=lanes)


_kernel_p.def_impl(_compiled)
_kernel_p.def_abstract_eval(_types)
ad.primitive_jvps[_kernel_p] = _jvp
ad.primitive_transposes[_kernel_p] = _transpose
batching.primitive_batchers[_kernel_p] = _batch
partial_eval.dce_rules[_kernel_p] = _without_unused
_lower_whole = mlir.lower_fun(_whole, multiple_results=True)
mlir.register_lowering(_kernel_p, _lower_whole)
mlir.register_lowering(_kernel_p, _lower, platform="cuda")
