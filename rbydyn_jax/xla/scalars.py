"""Programs of single numbers: operations in a straight line, and loops of such lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
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


def nearest_integer(x: Any, dtype: np.dtype) -> Any:
    """A number as an integer of a type, as in XLA: the nearest one that there is, and 0 of NaN."""
    number, ends = float(x), np.iinfo(dtype)
    return dtype.type(0 if math.isnan(number) else int(min(max(number, ends.min), ends.max)))


class NotScalarError(Exception):
    """A program has an operation that is not supported for single numbers."""

    def __init__(self, operation: str, why: str = "is not supported") -> None:
        self.operation, self.why = operation, why
        super().__init__(f"{operation} {why}")


class Scalar:
    """A number of a program: an `input`, or the result of an operation on others, or on numpy scalars.

    Within a loop those that it carries are `carried`. What it ends with is `left`, of the loop.
    """

    __slots__ = ("dtype", "operands", "operation")

    def __init__(self, operation: str, dtype: np.dtype, operands: tuple[Any, ...]) -> None:
        self.operation, self.dtype, self.operands = operation, dtype, operands


class Place(NamedTuple):
    """Of a number in a row of an array of a kernel: the array, the numbers of a row, the row, and where in it."""

    array: int
    size: int
    row: Scalar
    at: int


class Row(Scalar):
    """A number of an operand, from a row that is computed; only kernels have them."""

    __slots__ = ("place",)

    def __init__(self, dtype: np.dtype, place: Place) -> None:
        self.place = place
        super().__init__("row", dtype, (place.row,))


class Loop(Scalar):
    """A loop, as long as a condition holds; in a line of operations what is left of it follows at once.

    Its operands are the numbers that it begins with, and then all others of the program around it that it needs.

    Args:
        start: The numbers that it begins with.
        carried: These numbers within the loop.
        check: The operations of the condition.
        goes_on: The condition.
        body: The operations of a turn, after those of the condition.
        after: What is carried to the next turn.
        written: Numbers that each turn writes to rows of the results of a kernel.
    """

    __slots__ = ("after", "body", "carried", "check", "goes_on", "left", "start", "written")

    def __init__(
        self,
        start: Sequence[Any],
        carried: Sequence[Scalar],
        check: Sequence[Scalar],
        goes_on: Any,
        body: Sequence[Scalar],
        after: Sequence[Any],
        written: Sequence[tuple[Any, Place]] = (),
    ) -> None:
        self.start, self.carried, self.check, self.goes_on, self.body = start, carried, check, goes_on, body
        self.after, self.written = after, written
        own = {*carried, *check, *body}
        used = [*(y for x in (*check, *body) for y in x.operands), goes_on, *after]
        used += [y for x, place in written for y in (x, place.row)]
        others = dict.fromkeys(y for y in used if isinstance(y, Scalar) and y not in own)
        super().__init__("loop", np.dtype(bool), (*start, *others))
        self.left = [Scalar("left", x.dtype, (self,)) for x in carried]

    @property
    def needed(self) -> Sequence[Scalar]:
        """What it needs of the program around it, beside what it begins with."""
        return self.operands[len(self.start) :]


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
        _evaluate(self.operations, values)
        return [_value(x, values) for x in self.results]


def _value(x: Any, values: dict[Any, Any]) -> Any:
    return values[x] if isinstance(x, Scalar) else x


def _evaluate(operations: Sequence[Scalar], values: dict[Any, Any]) -> None:
    """Adds the results of operations to the values."""
    for x in operations:
        if isinstance(x, Loop):
            _turn(x, values)
        elif x.operation != "left":
            values[x] = np.asarray(OPERATIONS[x.operation](*(_value(y, values) for y in x.operands)), x.dtype)


def _turn(loop: Loop, values: dict[Any, Any]) -> None:
    """Adds what is left of a loop, each number of an array by its own condition."""
    now, goes_on = [np.asarray(_value(x, values)) for x in loop.start], np.array(True)
    while True:
        values.update(zip(loop.carried, now, strict=True))
        _evaluate(loop.check, values)
        goes_on = goes_on & _value(loop.goes_on, values)
        if not goes_on.any():
            break
        _evaluate(loop.body, values)
        now = [np.where(goes_on, _value(y, values), x) for x, y in zip(now, loop.after, strict=True)]
    values.update(zip(loop.left, now, strict=True))


def in_depth(results: Sequence[Any], among: Collection[Scalar] | None = None) -> list[Scalar]:
    """The operations that lead to the results, each just before it is first needed: few wait in registers.

    `among` are those that count, if not all do: the others are done elsewhere.
    """

    def is_given(x: Scalar) -> bool:
        return x.operation in ("input", "carried") or (among is not None and x not in among)

    done: dict[Scalar, None] = {}
    open_ = [x for x in reversed(results) if isinstance(x, Scalar)]
    while open_:
        x = open_[-1]
        if x in done or is_given(x):
            open_.pop()
        elif waiting := [y for y in x.operands if isinstance(y, Scalar) and y not in done and not is_given(y)]:
            open_ += reversed(waiting)
        else:
            done[open_.pop()] = None
            if isinstance(x, Loop):
                done |= dict.fromkeys(x.left)
    return list(done)


def nested(operations: Iterable[Scalar]) -> Iterator[Scalar]:
    """The operations, and those within loops."""
    for x in operations:
        if isinstance(x, Loop):
            yield from nested(x.check)
            yield from nested(x.body)
        elif x.operation != "left":
            yield x


def whole(operations: Sequence[Scalar], edge: int) -> int:
    """The first place from `edge` on where a line can be cut: not between a loop and what is left of it."""
    while edge < len(operations) and operations[edge].operation == "left":
        edge += 1
    return edge


class Part(NamedTuple):
    """Operations that one kernel does."""

    operations: Sequence[Scalar]
    reads: Sequence[Scalar]
    """What is an input of the program, or comes from earlier parts."""
    gives: Sequence[Scalar]
    """What later parts read, or is a result of the program."""


def in_parts(program: ScalarProgram, most: int) -> list[Part]:
    """The operations in parts of so many at most, of about one size."""
    operations = program.operations
    count = max(1, -(-len(operations) // most))
    edges = [whole(operations, len(operations) * k // count) for k in range(count + 1)]
    return as_parts([operations[a:b] for a, b in itertools.pairwise(edges)], program.results)


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
