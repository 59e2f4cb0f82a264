"""A scan as one kernel of a CUDA GPU, with a scan in each thread.

A loop of XLA launches the kernels of each turn, and copies the rows of each array out and in: with small steps that is
most of the time. Here what a turn hands to the next stays in registers, and a thread reads and writes its rows itself.

Where the derivative is wanted it is a loop of kernels, as it is where a turn cannot be written in PTX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir, partial_eval

from .emission import on_one_device
from .gpu_kernel import KERNEL_NAME, WRITTEN, Launch, gpu_kernel, lowered
from .lanes_last import Flags, in_all_lanes, spread_over_lanes
from .ptx import Array, Kernel, UnsupportedError, check_written, kernel_text
from .scalar_builder import Builder
from .scalar_moves import array, flat, unflattened
from .scalar_program import followed
from .scalars import NotScalarError, Place, Scalar, in_depth
from .transpose import pruned, with_operands
from .tuning import GPU_BLOCK, GPU_SCAN_OPERATIONS

T = TypeVar("T")
_scan_p = Primitive("rbydyn_gpu_scan")
_scan_p.multiple_results = True


class Turns(NamedTuple):
    """A scan of one lane: the program of a turn, of constants, of what is carried and of rows, and how many there are.

    Its results are what is carried on, and then rows.
    """

    program: ClosedJaxpr
    constants: int
    carried: int
    length: int
    reverse: bool

    def results(self) -> list[ShapedArray]:
        """Types of what is carried in the end, and of all rows."""
        out = self.program.out_avals
        rows = [ShapedArray((self.length, *x.shape), x.dtype) for x in out[self.carried :]]
        return [ShapedArray(x.shape, x.dtype) for x in out[: self.carried]] + rows

    def ranks(self) -> list[int]:
        """The axes of the operands."""
        end = self.constants + self.carried
        return [x.ndim + (k >= end) for k, x in enumerate(self.program.in_avals)]


def gpu_scan(f: Callable[[T, Any], tuple[T, Any]], init: T, xs: Any, *, reverse: bool = False) -> tuple[T, Any]:
    """`lax.scan` of one configuration, as one kernel where it is compiled for a CUDA GPU."""
    first, structure = jax.tree.flatten(init)
    rows, of_rows = jax.tree.flatten(xs)
    types = [ShapedArray(x.shape[1:], x.dtype) for x in rows]
    shapes: list[Any] = []

    def turn(*given: jax.Array) -> list[jax.Array]:
        """What is not empty of the results, of what is not empty of the arguments."""
        every = _filled(given, [*first, *types])
        after, out = f(
            jax.tree.unflatten(structure, every[: len(first)]), jax.tree.unflatten(of_rows, every[len(first) :])
        )
        leaves, of_out = jax.tree.flatten(out)
        shapes.extend((leaves, of_out))
        return [x for x in (*jax.tree.leaves(after), *leaves) if x.size]

    start, wide = ([x for x in leaves if x.size] for leaves in (first, rows))
    traced = jax.make_jaxpr(turn)(*start, *(x for x in types if x.size))
    program, around = with_operands(traced)
    turns = Turns(pruned(program), len(around), len(start), len(rows[0]), reverse)
    found = _scan_p.bind(*around, *start, *wide, turns=turns, batched=(False,) * len(program.in_avals), lanes=None)
    leaves, of_out = shapes
    results = [ShapedArray((turns.length, *x.shape), x.dtype) for x in leaves]
    every = _filled(found, [*first, *results])
    return jax.tree.unflatten(structure, every[: len(first)]), jax.tree.unflatten(of_out, every[len(first) :])


def _filled(given: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """The arrays, and empty ones where a type is empty."""
    rest = iter(given)
    return [next(rest) if x.size else jnp.zeros(x.shape, x.dtype) for x in types]


def _types(*xs: Any, turns: Turns, batched: Flags, lanes: int | None) -> list[Any]:
    behind = () if lanes is None else (lanes,)
    return [x.update(shape=(*x.shape, *behind)) for x in turns.results()]


def _in_kernels(*xs: jax.Array, turns: Turns, batched: Flags, lanes: int | None) -> list[jax.Array]:
    """A loop of XLA, of kernels where a turn can be one."""

    def one(*xs: jax.Array) -> list[jax.Array]:
        end = turns.constants + turns.carried
        constants, turn = xs[: turns.constants], gpu_kernel(jaxpr_as_fun(turns.program))

        def step(carry: list[jax.Array], x: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
            out = turn(*constants, *carry, *x)
            return out[: turns.carried], out[turns.carried :]

        start = list(xs[turns.constants : end])
        carry, out = jax.lax.scan(step, start, list(xs[end:]), length=turns.length, reverse=turns.reverse)
        return [*carry, *out]

    return one(*xs) if lanes is None else in_all_lanes(one, xs, batched, lanes)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    places = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]

    def moved(*along: jax.Array) -> list[jax.Array]:
        given = list(primals)
        for k, x in zip(places, along, strict=True):
            given[k] = x
        return _in_kernels(*given, **params)

    return jax.jvp(moved, [primals[k] for k in places], [tangents[k] for k in places])


def _batch(
    xs: Sequence[Any], axes: Sequence[Any], *, turns: Turns, batched: Flags, lanes: int | None
) -> tuple[list[Any], list[Any]]:
    spread = spread_over_lanes(xs, axes, batched, lanes, turns.ranks(), turns.results())
    if spread.operands is None:
        return spread.restored([])
    return spread.restored(_scan_p.bind(*spread.operands, turns=turns, batched=spread.batched, lanes=spread.lanes))


def _without_unused(used: list[bool], *context: Any) -> tuple[list[bool], JaxprEqn | None]:
    """Without rows of which nothing is used; all that is carried is kept."""
    eqn: JaxprEqn = context[-1]
    if not any(used):
        return [False] * len(eqn.invars), None
    turns: Turns = eqn.params["turns"]
    kept = [True] * turns.carried + used[turns.carried :]
    jaxpr, needed = partial_eval.dce_jaxpr(turns.program.jaxpr, kept)
    end = turns.constants + turns.carried
    needed = [n or turns.constants <= k < end for k, n in enumerate(needed)]
    jaxpr, _ = partial_eval.dce_jaxpr(turns.program.jaxpr, kept, instantiate=needed)
    if all(kept) and all(needed):
        return [True] * len(eqn.invars), eqn
    program = ClosedJaxpr(jaxpr, turns.program.consts)
    fewer = turns._replace(program=program, constants=sum(needed[: turns.constants]))
    flags = tuple(b for b, n in zip(eqn.params["batched"], needed, strict=True) if n)
    params = {**eqn.params, "turns": fewer, "batched": flags}
    kept_in = [x for x, n in zip(eqn.invars, needed, strict=True) if n]
    kept_out = [x for x, n in zip(eqn.outvars, kept, strict=True) if n]
    return needed, eqn.replace(invars=kept_in, outvars=kept_out, params=params)


def scan_launch(turns: Turns, batched: Flags, lanes: int) -> Launch:
    """The kernel of a scan.

    Raises:
        NotScalarError: A turn has an operation that is not supported for single numbers, or too many.
        UnsupportedError: It has an operation or a type that is not written in PTX.
    """
    program, end = turns.program, turns.constants + turns.carried
    check_written([x.dtype for x in (*program.in_avals, *program.out_avals)], ())
    types = turns.results()
    operands = [
        Array(x.size * (turns.length if k >= end else 1), x.dtype, b)
        for k, (x, b) in enumerate(zip(program.in_avals, batched, strict=True))
    ]
    results = [Array(x.size, x.dtype, True) for x in types]
    build = Builder(GPU_SCAN_OPERATIONS)
    inputs = [Scalar("input", x.dtype, ()) for x in program.in_avals[:end] for _ in range(x.size)]
    given, kind = unflattened(inputs, program.in_avals[:end]), np.dtype(np.int32)

    def body(now: Sequence[Scalar]) -> tuple[list[Any], list[tuple[Any, Place]]]:
        count, carry = now[0], unflattened(now[1:], given[turns.constants :])
        row = build("sub", kind, kind.type(turns.length - 1), count) if turns.reverse else count
        rows = [
            array([build.row(x.dtype, Place(end + k, x.size, row, i)) for i in range(x.size)], x.shape)
            for k, x in enumerate(program.in_avals[end:])
        ]
        out = followed(build, program, [*given[: turns.constants], *carry, *rows], WRITTEN)
        written = [
            (y, Place(turns.carried + k, x.size, row, i))
            for k, x in enumerate(out[turns.carried :])
            for i, y in enumerate(x.reshape(-1))
        ]
        return [build("add", kind, count, kind.type(1)), *flat(out[: turns.carried])], written

    start = [kind.type(0), *flat(given[turns.constants :])]
    left = build.loop(start, lambda now: build("lt", np.dtype(bool), now[0], kind.type(turns.length)), body)
    # What is written to rows leaves no number behind.
    operations = in_depth(left)
    check_written((), operations)
    read = {x: (k, i) for k, numbers in enumerate(given) for i, x in enumerate(numbers.reshape(-1))}
    places = [(k, i) for k, x in enumerate(results[: turns.carried]) for i in range(x.size)]
    kernel = Kernel(operations, operands, results, read, list(zip(left[1:], places, strict=True)))
    return Launch(kernel_text(KERNEL_NAME, kernel, lanes, GPU_BLOCK), range(len(operands)), results)


def _lower(
    ctx: mlir.LoweringRuleContext, *xs: ir.Value[Any], turns: Turns, batched: Flags, lanes: int | None
) -> Sequence[Any]:
    number = 1 if lanes is None else lanes
    try:
        found = scan_launch(turns, batched, number) if on_one_device(ctx) else None
    except (NotScalarError, UnsupportedError):
        found = None
    if found is None:
        return _lower_in_kernels(ctx, *xs, turns=turns, batched=batched, lanes=lanes)
    return lowered(ctx, xs, [found], number)


@functools.partial(jax.jit, static_argnames=("turns", "batched", "lanes"))
def _compiled(*xs: jax.Array, turns: Turns, batched: Flags, lanes: int | None) -> list[Any]:
    return _scan_p.bind(*xs, turns=turns, batched=batched, lanes=lanes)


_scan_p.def_impl(_compiled)
_scan_p.def_abstract_eval(_types)
ad.primitive_jvps[_scan_p] = _jvp
batching.primitive_batchers[_scan_p] = _batch
partial_eval.dce_rules[_scan_p] = _without_unused
_lower_in_kernels = mlir.lower_fun(_in_kernels, multiple_results=True)
mlir.register_lowering(_scan_p, _lower_in_kernels)
mlir.register_lowering(_scan_p, _lower, platform="cuda")
