"""A program of arrays as one of scalars: what a single lane of a kernel computes.

A step on a robot reads, cuts, stacks and reorders small arrays of known shape. None of that is arithmetic, and a kernel
that computes a configuration in each lane has registers, not arrays. `scalar_program` follows every number of a program
through it, and returns the operations on the numbers alone: sums, products and roots in a straight line, and loops of
unknown length. What is known while tracing (zeros and ones of the structure) vanishes, and equal operations on equal
numbers are done once. Kernels for GPUs (`ptx`) and functions in C (`c_source`) are written from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .._signatures import unobserved
from .batch_last import lanes_program
from .composed import COMPOSED
from .layout import join_rows
from .scalar_builder import Builder
from .scalar_choices import CHOSEN, SCATTERS, scattered
from .scalar_flow import FLOW
from .scalar_moves import MOVES, Numbers, array, constant, flat, known, result_type, unflattened, values_of
from .scalars import OPERATIONS, NotScalarError, Scalar, ScalarProgram, in_depth
from .tiling import Axes, all_parts
from .transpose import apply_operands, pruned

_IDENTITIES = frozenset(
    "optimization_barrier copy copy_p rbydyn_boundary pcast pvary sharding_constraint layout_constraint "
    "stop_gradient mesh_cast reshard".split()
)
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}
_OTHER_NAMES = {"add_any": "add"}
_BITS = {
    **{f"f{size}{kind}{size}": "bits" for size in "48" for kind in "iu"},
    **{f"{kind}{size}f{size}": "from_bits" for size in "48" for kind in "iu"},
}
_OF_MATRICES = ("cholesky", "triangular_solve", "lu")
_REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_or": "or",
    "reduce_and": "and",
    "reduce_max": "max",
    "reduce_min": "min",
}


def scalar_program(
    program: ClosedJaxpr, composed: Mapping[str, Callable[..., Any]] = COMPOSED, most: int | None = None
) -> ScalarProgram:
    """What a program does with the numbers of its operands.

    Args:
        program: The program.
        composed: What is written as a composition of simpler operations, by the name of an operation.
        most: The largest number of operations; None is no limit.

    Raises:
        NotScalarError: It has an operation that is not supported for single numbers, such as a long loop over rows, or
            too many.
    """
    inputs = [Scalar("input", x.dtype, ()) for x in program.in_avals for _ in range(x.size)]
    results = flat(followed(Builder(most), program, unflattened(inputs, program.in_avals), composed))
    return ScalarProgram(inputs, in_depth(results), results)


def followed(
    build: Builder,
    program: ClosedJaxpr,
    operands: Sequence[Numbers],
    composed: Mapping[str, Callable[..., Any]],
) -> list[Numbers]:
    """The results of a program, with the operations that a builder makes; see `scalar_program`."""
    return _Evaluation(build, composed).of_closed(program, operands)


class _Evaluation:
    """Follows numbers through programs."""

    def __init__(self, build: Builder, composed: Mapping[str, Callable[..., Any]]) -> None:
        self.build, self.composed = build, composed

    def of_jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Numbers]) -> list[Numbers]:
        values: dict[Any, Numbers] = dict(zip(jaxpr.constvars, map(constant, consts), strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(x: Any) -> Numbers:
            return constant(_literal(x)) if isinstance(x, Literal) else values[x]

        for eqn in jaxpr.eqns:
            values.update(zip(eqn.outvars, self.of_equation(eqn, [read(x) for x in eqn.invars]), strict=True))
        return [read(x) for x in jaxpr.outvars]

    def of_closed(self, program: ClosedJaxpr | Jaxpr, operands: Sequence[Numbers]) -> list[Numbers]:
        if isinstance(program, ClosedJaxpr):
            return self.of_jaxpr(program.jaxpr, program.consts, operands)
        return self.of_jaxpr(program, (), operands)

    def of_function(self, f: Callable[..., Any], eqn: JaxprEqn, operands: Sequence[Numbers]) -> list[Numbers]:
        """Of a function that takes the operands of an equation."""
        with unobserved():
            traced = jax.make_jaxpr(lambda *xs: jax.tree.leaves(f(*xs)))(*(x.aval for x in eqn.invars))
        return self.of_closed(pruned(traced), operands)

    def of_equation(self, eqn: JaxprEqn, operands: list[Numbers]) -> list[Numbers]:
        name, params = eqn.primitive.name, eqn.params
        if name not in _CALLS and (eqn.effects or name == "pure_callback"):  # also of known operands, and none
            raise NotScalarError(name)
        if name in _IDENTITIES or (name == "reduce_precision" and _keeps_all_bits(eqn)):
            return operands
        if name in _CALLS:
            return self.of_closed(params[_CALLS[name]], operands)
        if name in CHOSEN and not all(map(known, operands[2 if name == "dynamic_update_slice" else 1 :])):
            return [CHOSEN[name](self.build, eqn, *operands)]
        if name in MOVES:
            moved = MOVES[name](eqn, *operands)
            return list(moved) if eqn.primitive.multiple_results else [moved]
        if name == "call_hi_primitive":  # of jax 0.12, for `frexp` and `ldexp`
            prim = params["_prim"]
            return self.of_function(lambda *xs: prim.expand(*jax.tree.unflatten(prim.in_tree, xs)), eqn, operands)
        if name == "platform_index":
            return [constant(np.int32(_index_of_cpu(**params)))]
        if name == "cond" and known(operands[0]):
            index = min(max(int(operands[0][()]), 0), len(params["branches"]) - 1)
            return self.of_closed(params["branches"][index], operands[1:])
        if name in FLOW and not all(map(known, operands)):
            return FLOW[name](self.build, self.of_closed, eqn, operands)
        if name == "custom_linear_solve":
            lengths, programs = params["const_lengths"], params["jaxprs"]
            first = lengths.matvec + lengths.vecmat
            given = operands[first : first + lengths.solve], operands[sum(lengths) :]
            return self.of_closed(programs.solve, [*given[0], *given[1]])
        if name == "round" and params["rounding_method"] != jax.lax.RoundingMethod.TO_NEAREST_EVEN:
            return self.of_function(_away_from_zero, eqn, operands)
        if name == "reduce_precision" and not known(operands[0]):
            raise NotScalarError(name, "to fewer bits is not supported")
        if name == "rbydyn_lanes":
            return self.of_closed(pruned(lanes_program(params["f"], [x.aval for x in eqn.invars])), operands)
        if name == "rbydyn_parts":
            return self.of_function(functools.partial(all_parts, **params), eqn, operands)
        if name == "rbydyn_tiles":
            return self.each_row(operands, **params)
        if name == "rbydyn_join":
            return self.of_function(functools.partial(join_rows, **params), eqn, operands)
        if name == "rbydyn_on_cpu":
            return self.of_function(params["otherwise"], eqn, operands)
        if name == "rbydyn_linear":
            return self.of_function(functools.partial(apply_operands, **params), eqn, operands)
        if all(map(known, operands)):
            return self.computed(eqn, operands)
        if name in self.composed and (name not in _OF_MATRICES or _is_square(operands[0])):
            return self.of_function(functools.partial(self.composed[name], **params), eqn, operands)
        if name == "select_n":
            return [self.chosen(eqn, *operands)]
        if name == "bitcast_convert_type" and (kinds := _kinds(eqn)) in _BITS:
            return [self.elementwise(_BITS[kinds], eqn, operands)]
        if name == "convert_element_type":
            return [self.elementwise("convert", eqn, operands)]
        if (operation := _OTHER_NAMES.get(name, name)) in OPERATIONS:
            return [self.elementwise(operation, eqn, operands)]
        if name in _REDUCTIONS:
            return [self.reduced(_REDUCTIONS[name], eqn, *operands)]
        if name == "dot_general":
            return [self.dot(eqn, *operands)]
        if name in SCATTERS:
            return [scattered(self.build, self.of_closed, eqn, *operands)]
        raise NotScalarError(name)

    def each_row(
        self, operands: list[Numbers], *, program: ClosedJaxpr, numbers: Sequence[int], batched: Axes, **_: Any
    ) -> list[Numbers]:
        """The results of a program for each row of a batch; several arrays can make one result."""
        size = next(len(x) for x, axis in zip(operands, batched, strict=True) if axis is not None)
        rows = [
            self.of_closed(program, [x if axis is None else x[k] for x, axis in zip(operands, batched, strict=True)])
            for k in range(size)
        ]
        parts = iter([np.stack(each) for each in zip(*rows, strict=True)])
        taken = [[next(parts) for _ in range(number)] for number in numbers]
        return [x[0] if len(x) == 1 else np.concatenate(x, axis=1) for x in taken]

    def chosen(self, eqn: JaxprEqn, which: Numbers, *cases: Numbers) -> Numbers:
        """By a boolean, or by a number from 0 on; one that is too small or too large is that of the nearest case."""
        kind: Any = eqn.invars[0].aval
        dtype = np.dtype(kind.dtype)
        if dtype == np.bool_:
            return self.elementwise("select", eqn, [which, *cases[::-1]]) if len(cases) == 2 else cases[0]
        found, shape = cases[0], which.shape
        for k, case in enumerate(cases[1:], start=1):
            reached = [self.build("ge", np.dtype(bool), x, dtype.type(k)) for x in which.reshape(-1)]
            found = self.elementwise("select", eqn, [array(reached, shape), case, found])
        return found

    @staticmethod
    def computed(eqn: JaxprEqn, operands: list[Numbers]) -> list[Numbers]:
        """The results of an operation on what is known."""
        types: list[Any] = [x.aval for x in eqn.outvars]
        if any(jnp.issubdtype(x.dtype, jax.dtypes.extended) for x in types):  # keys of random numbers
            raise NotScalarError(eqn.primitive.name)
        with jax.ensure_compile_time_eval():
            given = [values_of(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
            found = eqn.primitive.bind(*given, **eqn.params)
        return [constant(x) for x in (found if eqn.primitive.multiple_results else [found])]

    def elementwise(self, operation: str, eqn: JaxprEqn, operands: list[Numbers]) -> Numbers:
        shape, dtype = result_type(eqn).shape, result_type(eqn).dtype
        rows = zip(*(np.broadcast_to(x, shape).reshape(-1) for x in operands), strict=True)
        return array([self.build(operation, dtype, *row) for row in rows], shape)

    def reduced(self, operation: str, eqn: JaxprEqn, x: Numbers) -> Numbers:
        dtype, axes = result_type(eqn).dtype, tuple(eqn.params["axes"])
        kept = [k for k in range(x.ndim) if k not in axes]
        shape = tuple(x.shape[k] for k in kept)
        rows = x.transpose(*kept, *axes).reshape(int(np.prod(shape, dtype=int)), -1)
        if operation == "add":
            return array([self.build.sum(dtype, row) for row in rows], shape)
        return array([functools.reduce(lambda a, b: self.build(operation, dtype, a, b), row) for row in rows], shape)

    def dot(self, eqn: JaxprEqn, a: Numbers, b: Numbers) -> Numbers:
        (a_sum, b_sum), (a_batch, b_batch) = eqn.params["dimension_numbers"]
        dtype = result_type(eqn).dtype

        def rows(x: Numbers, batch: Sequence[int], summed: Sequence[int]) -> Numbers:
            free = [k for k in range(x.ndim) if k not in (*batch, *summed)]
            sizes = [int(np.prod([x.shape[k] for k in axes], dtype=int)) for axes in (batch, free, summed)]
            return x.transpose(*batch, *free, *summed).reshape(sizes)

        found = [
            self.build.sum(dtype, (self.build("mul", dtype, x, y) for x, y in zip(u, v, strict=True)))
            for us, vs in zip(rows(a, a_batch, a_sum), rows(b, b_batch, b_sum), strict=True)
            for u in us
            for v in vs
        ]
        return array(found, result_type(eqn).shape)


def _literal(x: Literal) -> np.ndarray:
    aval: Any = x.aval
    return np.asarray(x.val, aval.dtype)


def _is_square(x: Numbers) -> bool:
    return x.ndim == 2 and x.shape[0] == x.shape[1]


def _keeps_all_bits(eqn: JaxprEqn) -> bool:
    """Whether a `reduce_precision` has room for all numbers of its type."""
    own = jnp.finfo(result_type(eqn).dtype)
    return eqn.params["exponent_bits"] >= own.nexp and eqn.params["mantissa_bits"] >= own.nmant


def _away_from_zero(x: jax.Array) -> jax.Array:
    """The nearest whole number, the larger one of two in size."""
    size = jnp.abs(x)
    nearest = jnp.round(size)
    nearest = jnp.where(size - nearest == 0.5, nearest + 1, nearest)
    return jnp.where(x < 0, -nearest, nearest)


def _index_of_cpu(platforms: Sequence[Sequence[str] | None]) -> int:
    """Which branch of `platform_dependent` is that of a CPU; None stands for all other platforms."""
    return next(k for k, names in enumerate(platforms) if names is None or "cpu" in names)


def _kinds(eqn: JaxprEqn) -> str:
    """Of the operand and of the result, such as "f8i8"."""
    types: list[Any] = [eqn.invars[0].aval, result_type(eqn)]
    return "".join(np.dtype(x.dtype).str[1:] for x in types)
