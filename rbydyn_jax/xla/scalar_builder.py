"""Makes programs of single numbers, each operation once.

What is known while a program is made (zeros and ones of a structure) vanishes, and negations move from factors to sums.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np

from .scalars import OPERATIONS, Loop, NotScalarError, Place, Row, Scalar, in_depth, nearest_integer

_COMMUTATIVE = ("add", "mul")  # the same to the last bit


class Builder:
    """Makes each operation on the same numbers once."""

    def __init__(self, most: int | None = None) -> None:
        """With more operations than `most`, if there is a limit, it is a NotScalarError."""
        self.known: dict[Any, Scalar] = {}
        self.most = most
        self.condition: Any = np.True_  # of the branch that is followed

    def __call__(self, operation: str, dtype: np.dtype, *xs: Any) -> Any:
        """The result of an operation on scalars and numpy scalars."""
        if not any(isinstance(x, Scalar) for x in xs):
            if operation == "convert" and dtype.kind in "iu" and xs[0].dtype.kind not in "biu":
                return nearest_integer(xs[0], dtype)
            with np.errstate(all="ignore"):
                return np.asarray(OPERATIONS[operation](*xs), dtype)[()]
        if (same := _simplified(operation, dtype, xs)) is not None:
            return same
        if dtype.kind == "f" and (signed := self.signed(operation, dtype, xs)) is not None:
            return signed
        named = [x if isinstance(x, Scalar) else (x.dtype, x.tobytes()) for x in xs]
        key = (operation, dtype, *named)
        if operation in _COMMUTATIVE and (swapped := (operation, dtype, *named[::-1])) in self.known:
            key = swapped
        if key not in self.known:
            if self.most is not None and len(self.known) >= self.most:
                raise NotScalarError(operation, f"would be one of more than {self.most} operations")
            self.known[key] = Scalar(operation, dtype, xs)
        return self.known[key]

    @property
    def count(self) -> int:
        """How many operations there are so far."""
        return len(self.known)

    @contextlib.contextmanager
    def only_if(self, condition: Any) -> Generator[None]:
        """Loops that are made meanwhile go on only if a condition holds."""
        around = self.condition
        self.condition = self("and", np.dtype(bool), around, condition)
        try:
            yield
        finally:
            self.condition = around

    def check_loop(self, count: int) -> None:
        """Raises if so many operations are too many of one loop: more than a third of all."""
        if self.most is not None and count > self.most // 3:
            raise NotScalarError("scan", f"would be more than {self.most // 3} operations")

    def loop(
        self,
        start: Sequence[Any],
        goes_on: Callable[[Sequence[Scalar]], Any],
        body: Callable[[Sequence[Scalar]], tuple[Sequence[Any], Sequence[tuple[Any, Place]]]],
    ) -> Sequence[Any]:
        """What is left of numbers that are changed as long as they are to be.

        `body` gives what is carried on, and what is written to rows.
        """
        carried = [Scalar("carried", x.dtype, ()) for x in start]
        before = len(self.known)
        condition = self("and", np.dtype(bool), self.condition, goes_on(carried))
        if not isinstance(condition, Scalar) and not condition:
            return start
        after, written = body(carried)
        own = set[Any](carried)  # what does not depend on them is done before, but loops, which might never end there
        for x in itertools.islice(self.known.values(), before, None):
            if isinstance(x, Loop) or any(isinstance(y, Scalar) and y in own for y in x.operands):
                own.add(x)
        check = in_depth([condition], own)
        done, wanted = set(check), [*after, *(y for x, place in written for y in (x, place.row))]
        turn = [x for x in in_depth(wanted, own) if x not in done]
        found = Loop(start, carried, check, condition, turn, after, written)
        for x in (found, *found.left):
            self.known["loop", x] = x
        return found.left

    def row(self, dtype: np.dtype, place: Place) -> Scalar:
        """A number of an operand, from a row that is computed."""
        return self.known.setdefault(("row", place), Row(dtype, place))

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
    if operation == "and" and dtype == np.bool_:
        a, b = xs if isinstance(xs[0], Scalar) else xs[::-1]
        return None if isinstance(b, Scalar) else a if b else b
    if operation in ("lt", "ge") and xs[0].dtype.kind == "u" and _is(xs[1], 0):
        return np.bool_(operation == "ge")
    if operation == "select":
        return xs[1] if xs[1] is xs[2] else None if isinstance(xs[0], Scalar) else xs[1 if xs[0] else 2]
    return xs[0] if operation == "convert" and xs[0].dtype == dtype else None
