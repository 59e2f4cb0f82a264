"""A program of arrays as one of scalars: what a single lane of a kernel computes.

A step on a robot reads, cuts, stacks and reorders small arrays of known shape. None of that is arithmetic, and a kernel
that computes a configuration in each lane has registers, not arrays. `scalar_program` follows every number of a program
through it, and returns the operations on the numbers alone: sums, products and roots in a straight line. What is known
while tracing (zeros and ones of the structure) vanishes, and equal operations on equal numbers are done once. Kernels
for GPUs (`ptx`) and functions in C (`c_source`) are written from it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .._signatures import unobserved
from .batch_last import lanes_program
from .composed import COMPOSED
from .layout import join_rows
from .transpose import apply_operands, pruned

_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "round": np.round,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "select": np.where,
    "convert": lambda x: x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "pow": np.power,
    "rem": np.fmod,
    "cbrt": np.cbrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_finite": np.isfinite,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda x, k: (x.view(f"u{x.itemsize}") >> k).view(x.dtype),
    "bits": lambda x: x.view(f"u{x.itemsize}"),
    "from_bits": lambda x: x.view(f"f{x.itemsize}"),
}
"""The operations of a program of scalars. `select(condition, if true, if false)`; a `convert` goes to the dtype."""

_OTHER_NAMES = {"add_any": "add"}


class NotScalarError(Exception):
    """A program has an operation that is not written for single numbers."""

    def __init__(self, operation: str, why: str = "is not written for single numbers") -> None:
        self.operation, self.why = operation, why
        super().__init__(f"{operation} {why}")


class Scalar:
    """A number of a program: an `input`, or the result of an operation on others, or on numpy scalars."""

    __slots__ = ("dtype", "operands", "operation")

    def __init__(self, operation: str, dtype: np.dtype, operands: tuple[Any, ...]) -> None:
        self.operation, self.dtype, self.operands = operation, dtype, operands


class ScalarProgram(NamedTuple):
    """Operations in the order in which they are done."""

    inputs: Sequence[Scalar]
    """The numbers of the operands, one array after the other."""
    operations: Sequence[Scalar]
    results: Sequence[Any]
    """The numbers of the results, scalars or numpy scalars."""

    def evaluate(self, *inputs: Any) -> list[Any]:
        """The results, by numpy, of arrays of one shape in the place of the inputs."""
        values: dict[Any, Any] = dict(zip(self.inputs, inputs, strict=True))

        def value(x: Any) -> Any:
            return values[x] if isinstance(x, Scalar) else x

        for x in self.operations:
            values[x] = np.asarray(_NUMPY[x.operation](*map(value, x.operands)), x.dtype)
        return [value(x) for x in self.results]


class _Builder:
    """Makes each operation on the same numbers once."""

    def __init__(self) -> None:
        self.known: dict[Any, Scalar] = {}

    def __call__(self, operation: str, dtype: np.dtype, *xs: Any) -> Any:
        if not any(isinstance(x, Scalar) for x in xs):
            with np.errstate(all="ignore"):
                return np.asarray(_NUMPY[operation](*xs), dtype)[()]
        if (same := _simplified(operation, dtype, xs)) is not None:
            return same
        if dtype.kind == "f" and (signed := self.signed(operation, dtype, xs)) is not None:
            return signed
        key = (operation, dtype, *(x if isinstance(x, Scalar) else (x.dtype, x.tobytes()) for x in xs))
        if key not in self.known:
            self.known[key] = Scalar(operation, dtype, xs)
        return self.known[key]

    def signed(self, operation: str, dtype: np.dtype, xs: tuple[Any, ...]) -> Any:
        """The same to the last bit with fewer negations, which go from factors to sums, if there is one to spare."""
        if operation == "neg":
            return xs[0].operands[0] if _is_negated(xs[0]) else None
        if operation == "mul" and (_is(xs[0], -1) or _is(xs[1], -1)):
            return self("neg", dtype, xs[0] if isinstance(xs[0], Scalar) else xs[1])
        if operation not in ("add", "sub", "mul") or not any(map(_is_negated, xs)):
            return None
        a, b = (x.operands[0] if _is_negated(x) else x for x in xs)
        first, second = map(_is_negated, xs)
        if operation == "mul":
            product = self("mul", dtype, a, b)
            return product if first == second else self("neg", dtype, product)
        if operation == "sub":
            second = not second
        if first and second:
            return self("neg", dtype, self("add", dtype, a, b))
        return self("sub", dtype, b, a) if first else self("sub" if second else "add", dtype, a, b)

    def sum(self, dtype: np.dtype, terms: Iterable[Any]) -> Any:
        return functools.reduce(lambda a, b: self("add", dtype, a, b), terms, dtype.type(0))


def _is_negated(x: Any) -> bool:
    return isinstance(x, Scalar) and x.operation == "neg"


def _is(x: Any, value: float) -> bool:
    return not isinstance(x, Scalar) and x == value


def _simplified(operation: str, dtype: np.dtype, xs: tuple[Any, ...]) -> Any:
    """An operand that is the result, or a zero, if one is."""
    if operation == "add":
        return xs[1] if _is(xs[0], 0) else xs[0] if _is(xs[1], 0) else None
    if operation == "sub":
        return xs[0] if _is(xs[1], 0) else None
    if operation == "mul":
        a, b = xs if isinstance(xs[0], Scalar) else xs[::-1]
        return a if _is(b, 1) else b if _is(b, 0) else None  # a constant 0 is one of the structure
    if operation == "select":
        return xs[1] if xs[1] is xs[2] else None if isinstance(xs[0], Scalar) else xs[1 if xs[0] else 2]
    return xs[0] if operation == "convert" and xs[0].dtype == dtype else None


def scalar_program(program: ClosedJaxpr) -> ScalarProgram:
    """What a program does with the numbers of its operands.

    Raises:
        NotScalarError: It has an operation that is not written for single numbers, such as a loop of unknown length.
    """
    inputs = [Scalar("input", x.dtype, ()) for x in program.in_avals for _ in range(x.size)]
    given, operands = iter(inputs), []
    for x in program.in_avals:
        operands.append(_array([next(given) for _ in range(x.size)], x.shape))
    build = _Builder()
    results = _Evaluation(build).of_closed(program, operands)
    flat = [x for result in results for x in result.reshape(-1)]
    return ScalarProgram(inputs, _in_depth(flat), flat)


def _in_depth(results: Sequence[Any]) -> list[Scalar]:
    """The operations that lead to the results, each just before it is first needed: few wait in registers."""
    done: dict[Scalar, None] = {}
    open_ = [x for x in reversed(results) if isinstance(x, Scalar)]
    while open_:
        x = open_[-1]
        waiting = [y for y in x.operands if isinstance(y, Scalar) and y not in done and y.operation != "input"]
        if x in done or x.operation == "input":
            open_.pop()
        elif waiting:
            open_ += reversed(waiting)
        else:
            done[open_.pop()] = None
    return list(done)


class Part(NamedTuple):
    """Operations that one kernel does."""

    operations: Sequence[Scalar]
    reads: Sequence[Scalar]
    """What is an input of the program, or comes from earlier parts."""
    gives: Sequence[Scalar]
    """What later parts read, or is a result of the program."""


def in_parts(program: ScalarProgram, most: int) -> list[Part]:
    """The operations in parts of so many at most, of about one size."""
    count = max(1, -(-len(program.operations) // most))
    edges = [len(program.operations) * k // count for k in range(count + 1)]
    chunks = [program.operations[a:b] for a, b in itertools.pairwise(edges)]
    later = {x for x in program.results if isinstance(x, Scalar)}
    parts: list[Part] = []
    for chunk in reversed(chunks):
        own = set(chunk)
        gives = [x for x in chunk if x in later]
        used = {y for x in chunk for y in x.operands if isinstance(y, Scalar)}
        reads = [y for y in dict.fromkeys(y for x in chunk for y in x.operands) if y in used and y not in own]
        later |= used
        parts.append(Part(chunk, reads, gives))
    return parts[::-1]


Numbers = np.ndarray
"""An array of scalars, or of numpy scalars where they are known."""

_IDENTITIES = frozenset(
    "optimization_barrier copy copy_p rbydyn_boundary pcast pvary sharding_constraint layout_constraint "
    "reduce_precision stop_gradient mesh_cast reshard".split()
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
    "rbydyn_parts": "program",
}


def _array(scalars: Sequence[Any], shape: Sequence[int]) -> Numbers:
    found = np.empty(len(scalars), object)
    found[:] = scalars
    return found.reshape(shape)


def _known(x: Numbers) -> bool:
    return not any(isinstance(k, Scalar) for k in x.reshape(-1))


def _constant(x: Any) -> Numbers:
    dense = np.asarray(x)
    return _array([dense.dtype.type(k) for k in dense.reshape(-1)], dense.shape)


def _type(eqn: JaxprEqn) -> Any:
    """Of the only result."""
    return eqn.outvars[0].aval


def _literal(x: Literal) -> np.ndarray:
    aval: Any = x.aval
    return np.asarray(x.val, aval.dtype)


def _values(x: Numbers, aval: Any) -> np.ndarray:
    return np.array([k.item() for k in x.reshape(-1)], aval.dtype).reshape(x.shape)


class _Evaluation:
    """Follows numbers through programs."""

    def __init__(self, build: _Builder) -> None:
        self.build = build

    def of_jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Numbers]) -> list[Numbers]:
        values: dict[Any, Numbers] = dict(zip(jaxpr.constvars, map(_constant, consts), strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(x: Any) -> Numbers:
            return _constant(_literal(x)) if isinstance(x, Literal) else values[x]

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
        if name in _IDENTITIES:
            return operands
        if name in _CALLS:
            return self.of_closed(params[_CALLS[name]], operands)
        if name in _MOVES:
            moved = _MOVES[name](eqn, *operands)
            return list(moved) if eqn.primitive.multiple_results else [moved]
        if name == "call_hi_primitive":  # of jax 0.12, for `frexp` and `ldexp`
            prim = params["_prim"]
            return self.of_function(lambda *xs: prim.expand(*jax.tree.unflatten(prim.in_tree, xs)), eqn, operands)
        if name == "platform_index":
            return [_constant(np.int32(_index_of_cpu(**params)))]
        if name == "cond" and _known(operands[0]):
            index = min(max(int(operands[0][()]), 0), len(params["branches"]) - 1)
            return self.of_closed(params["branches"][index], operands[1:])
        if name == "round" and params["rounding_method"] != jax.lax.RoundingMethod.TO_NEAREST_EVEN:
            raise NotScalarError(name, "away from zero is not written for single numbers")
        if name == "rbydyn_lanes":
            return self.of_closed(pruned(lanes_program(params["f"], [x.aval for x in eqn.invars])), operands)
        if name == "rbydyn_join":
            return self.of_function(functools.partial(join_rows, **params), eqn, operands)
        if name == "rbydyn_on_cpu":
            return self.of_function(params["otherwise"], eqn, operands)
        if name == "rbydyn_linear":
            return self.of_function(functools.partial(apply_operands, **params), eqn, operands)
        if all(map(_known, operands)):
            return self.computed(eqn, operands)
        if name in COMPOSED and (name not in _OF_MATRICES or operands[0].ndim == 2):
            return self.of_function(functools.partial(COMPOSED[name], **params), eqn, operands)
        if name == "select_n" and len(operands) == 3:
            which, if_false, if_true = operands
            return [self.elementwise("select", eqn, [which, if_true, if_false])]
        if name == "bitcast_convert_type" and (kinds := _kinds(eqn)) in _BITS:
            return [self.elementwise(_BITS[kinds], eqn, operands)]
        if name == "convert_element_type":
            return [self.elementwise("convert", eqn, operands)]
        if (operation := _OTHER_NAMES.get(name, name)) in _NUMPY:
            return [self.elementwise(operation, eqn, operands)]
        if name in _REDUCTIONS:
            return [self.reduced(_REDUCTIONS[name], eqn, *operands)]
        if name == "cumsum":
            return [self.accumulated(eqn, *operands)]
        if name == "dot_general":
            return [self.dot(eqn, *operands)]
        if name == "scatter-add" or name == "scatter":
            return [self.scattered(eqn, *operands)]
        raise NotScalarError(name)

    @staticmethod
    def computed(eqn: JaxprEqn, operands: list[Numbers]) -> list[Numbers]:
        """The results of an operation on what is known."""
        with jax.ensure_compile_time_eval():
            given = [_values(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
            found = eqn.primitive.bind(*given, **eqn.params)
        return [_constant(x) for x in (found if eqn.primitive.multiple_results else [found])]

    def elementwise(self, operation: str, eqn: JaxprEqn, operands: list[Numbers]) -> Numbers:
        shape, dtype = _type(eqn).shape, _type(eqn).dtype
        rows = zip(*(np.broadcast_to(x, shape).reshape(-1) for x in operands), strict=True)
        return _array([self.build(operation, dtype, *row) for row in rows], shape)

    def reduced(self, operation: str, eqn: JaxprEqn, x: Numbers) -> Numbers:
        dtype, axes = _type(eqn).dtype, tuple(eqn.params["axes"])
        kept = [k for k in range(x.ndim) if k not in axes]
        shape = tuple(x.shape[k] for k in kept)
        rows = x.transpose(*kept, *axes).reshape(int(np.prod(shape, dtype=int)), -1)
        if operation == "add":
            return _array([self.build.sum(dtype, row) for row in rows], shape)
        return _array([functools.reduce(lambda a, b: self.build(operation, dtype, a, b), row) for row in rows], shape)

    def accumulated(self, eqn: JaxprEqn, x: Numbers) -> Numbers:
        at, dtype = eqn.params["axis"], _type(eqn).dtype
        rows = list(np.moveaxis(x, at, 0))
        rows = rows[::-1] if eqn.params["reverse"] else rows
        plus = np.frompyfunc(lambda a, b: self.build("add", dtype, a, b), 2, 1)
        sums = rows[:1]
        for row in rows[1:]:
            sums.append(plus(sums[-1], row))
        return np.moveaxis(np.stack(sums[::-1] if eqn.params["reverse"] else sums), 0, at)

    def dot(self, eqn: JaxprEqn, a: Numbers, b: Numbers) -> Numbers:
        (a_sum, b_sum), (a_batch, b_batch) = eqn.params["dimension_numbers"]
        dtype = _type(eqn).dtype

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
        return _array(found, _type(eqn).shape)

    def scattered(self, eqn: JaxprEqn, x: Numbers, indices: Numbers, updates: Numbers) -> Numbers:
        """Where each update goes, one at a time, tells the operation itself."""
        if not _known(indices):
            raise NotScalarError(eqn.primitive.name, "has indices that are computed")
        at = _values(indices, eqn.invars[1].aval)
        kept = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
        one = functools.partial(jax.lax.scatter_add, **{name: eqn.params[name] for name in kept})
        marks = np.eye(updates.size, dtype=np.float32).reshape(updates.size, *updates.shape)
        with jax.ensure_compile_time_eval():
            found = jax.vmap(lambda mark: one(jnp.zeros(x.shape, np.float32), at, mark))(marks)
            targets = np.asarray(found).reshape(updates.size, -1)
        result, dtype = x.reshape(-1).copy(), _type(eqn).dtype
        for update, hit in zip(updates.reshape(-1), targets, strict=True):
            for k in np.flatnonzero(hit):
                is_sum = eqn.primitive.name == "scatter-add"
                result[k] = self.build("add", dtype, result[k], update) if is_sum else update
        return result.reshape(x.shape)


def _index_of_cpu(platforms: Sequence[Sequence[str] | None]) -> int:
    """Which branch of `platform_dependent` is that of a CPU; None stands for all other platforms."""
    return next(k for k, names in enumerate(platforms) if names is None or "cpu" in names)


def _kinds(eqn: JaxprEqn) -> str:
    """Of the operand and of the result, such as "f8i8"."""
    types: list[Any] = [eqn.invars[0].aval, _type(eqn)]
    return "".join(np.dtype(x.dtype).str[1:] for x in types)


_BITS = {
    **{f"f{size}{kind}{size}": "bits" for size in "48" for kind in "iu"},
    **{f"{kind}{size}f{size}": "from_bits" for size in "48" for kind in "iu"},
}
_OF_MATRICES = ("cholesky", "triangular_solve")
_REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_or": "or",
    "reduce_and": "and",
    "reduce_max": "max",
    "reduce_min": "min",
}


# ---- numbers that change places ----


def _broadcast(eqn: JaxprEqn, x: Numbers, *_: Numbers) -> Numbers:
    shape, places = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    inner = [1] * len(shape)
    for k, place in enumerate(places):
        inner[place] = x.shape[k]
    return np.broadcast_to(x.reshape(inner), shape)


def _slice(eqn: JaxprEqn, x: Numbers) -> Numbers:
    steps = eqn.params["strides"] or (1,) * x.ndim
    limits = zip(eqn.params["start_indices"], eqn.params["limit_indices"], steps, strict=True)
    return x[tuple(slice(*each) for each in limits)]


def _pad(eqn: JaxprEqn, x: Numbers, value: Numbers) -> Numbers:
    shape = _type(eqn).shape
    found = np.empty(shape, object)
    found[...] = value[()]
    target, source = [], []
    for (low, _, inside), size, limit in zip(eqn.params["padding_config"], x.shape, shape, strict=True):
        places = low + np.arange(size) * (inside + 1)
        kept = (places >= 0) & (places < limit)
        target.append(places[kept])
        source.append(np.arange(size)[kept])
    if x.ndim:
        found[np.ix_(*target)] = x[np.ix_(*source)]
        return found
    return x


def _split(eqn: JaxprEqn, x: Numbers) -> list[Numbers]:
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], axis=eqn.params["axis"])


def _unstack(eqn: JaxprEqn, x: Numbers) -> list[Numbers]:
    at = eqn.params["axis"]
    return [part.squeeze(at) for part in np.split(x, x.shape[at], at)]


def _places(eqn: JaxprEqn, x: Numbers, *rest: Numbers) -> Numbers:
    """By the operation itself on the numbers' places, with -1 for what comes from none: indices must be known."""
    if not all(map(_known, rest)):
        raise NotScalarError(eqn.primitive.name, "has indices that are computed")
    at = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    indices = [_values(r, v.aval) for r, v in zip(rest, eqn.invars[1:], strict=True)]
    params = dict(eqn.params)
    if params.get("fill_value", 0) is None or "fill_value" in params:
        params["fill_value"] = -1
    with jax.ensure_compile_time_eval():
        places = np.asarray(eqn.primitive.bind(at, *indices, **params))
    zero = np.zeros((), _type(eqn).dtype)[()]
    flat = x.reshape(-1)
    return _array([flat[k] if k >= 0 else zero for k in places.reshape(-1)], places.shape)


def _dynamic_update(eqn: JaxprEqn, x: Numbers, update: Numbers, *starts: Numbers) -> Numbers:
    if not all(map(_known, starts)):
        raise NotScalarError(eqn.primitive.name, "has indices that are computed")
    found = x.copy()
    limits = (min(max(int(k[()]), 0), n - m) for k, n, m in zip(starts, x.shape, update.shape, strict=True))
    found[tuple(slice(k, k + m) for k, m in zip(limits, update.shape, strict=True))] = update
    return found


def _iota(eqn: JaxprEqn, *_: Numbers) -> Numbers:
    size, at = eqn.params["shape"], eqn.params["dimension"]
    inner = np.arange(size[at], dtype=eqn.params["dtype"]).reshape([-1 if k == at else 1 for k in range(len(size))])
    return _constant(np.broadcast_to(inner, size))


_MOVES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda eqn, x, *_: x.reshape(eqn.params["new_sizes"]),
    "squeeze": lambda eqn, x: x.squeeze(tuple(eqn.params["dimensions"])),
    "expand_dims": lambda eqn, x: np.expand_dims(x, tuple(eqn.params["dimensions"])),
    "transpose": lambda eqn, x: x.transpose(eqn.params["permutation"]),
    "slice": _slice,
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
    "concatenate": lambda eqn, *xs: np.concatenate(xs, axis=eqn.params["dimension"]),
    "stack": lambda eqn, *xs: np.stack(xs, axis=eqn.params["axis"]),
    "unstack": _unstack,
    "split": _split,
    "pad": _pad,
    "iota": _iota,
    "gather": _places,
    "dynamic_slice": _places,
    "dynamic_update_slice": _dynamic_update,
    "rbydyn_batch_axis": lambda eqn, x: x,
}
