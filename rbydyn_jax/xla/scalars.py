"""Programs of single numbers: operations in a straight line, each done once.

What is known while a program is made (zeros and ones of a structure) vanishes, and negations move from factors to sums.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

OPERATIONS: dict[str, Callable[..., Any]] = {
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
            values[x] = np.asarray(OPERATIONS[x.operation](*map(value, x.operands)), x.dtype)
        return [value(x) for x in self.results]


class Builder:
    """Makes each operation on the same numbers once."""

    def __init__(self, most: int | None = None) -> None:
        """With more operations than `most`, if there is a limit, it is a NotScalarError."""
        self.known: dict[Any, Scalar] = {}
        self.most = most

    def __call__(self, operation: str, dtype: np.dtype, *xs: Any) -> Any:
        """The result of an operation on scalars and numpy scalars."""
        if not any(isinstance(x, Scalar) for x in xs):
            with np.errstate(all="ignore"):
                return np.asarray(OPERATIONS[operation](*xs), dtype)[()]
        if (same := _simplified(operation, dtype, xs)) is not None:
            return same
        if dtype.kind == "f" and (signed := self.signed(operation, dtype, xs)) is not None:
            return signed
        key = (operation, dtype, *(x if isinstance(x, Scalar) else (x.dtype, x.tobytes()) for x in xs))
        if key not in self.known:
            if self.most is not None and len(self.known) >= self.most:
                raise NotScalarError(operation, f"would be one of more than {self.most} operations")
            self.known[key] = Scalar(operation, dtype, xs)
        return self.known[key]

    def check_loop(self, count: int) -> None:
        """Raises if so many operations are too many of one loop: more than a third of all."""
        if self.most is not None and count > self.most // 3:
            raise NotScalarError("scan", f"would be more than {self.most // 3} operations")

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
        """The sum of the terms in their order."""
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


def in_depth(results: Sequence[Any]) -> list[Scalar]:
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
    return as_parts([program.operations[a:b] for a, b in itertools.pairwise(edges)], program.results)


def as_parts(chunks: Sequence[Sequence[Scalar]], results: Sequence[Any]) -> list[Part]:
    """Operations that are done one chunk after the other, with what goes from one to another."""
    later = {x for x in results if isinstance(x, Scalar)}
    parts: list[Part] = []
    for chunk in reversed(chunks):
        own = set(chunk)
        gives = [x for x in chunk if x in later]
        used = {y for x in chunk for y in x.operands if isinstance(y, Scalar)}
        reads = [y for y in dict.fromkeys(y for x in chunk for y in x.operands) if y in used and y not in own]
        later |= used
        parts.append(Part(chunk, reads, gives))
    return parts[::-1]
