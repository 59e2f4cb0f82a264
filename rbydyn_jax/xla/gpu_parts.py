"""A program of scalars in parts whose numbers fit into the registers of a GPU's thread, one kernel for each.

What does not fit, the assembler keeps in memory, thread by thread; and of a kernel that needs much more than there are
it keeps all numbers there. What one part gives to later ones goes through memory too. So the results are computed in
the order, of a few, in which the least does: from the leaves of a tree to its root, as the matrices of a robot are
computed, or in blocks, as products of matrices are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from .scalars import Loop, Part, Scalar, ScalarProgram, as_parts, in_depth, nested, whole
from .tuning import GPU_OPERATIONS, GPU_REGISTERS

_BLOCK = 8  # rows and columns that are computed together


class Limits(NamedTuple):
    """What a kernel may have."""

    registers: int = GPU_REGISTERS
    """32-bit numbers that are needed at one time."""
    operations: int = GPU_OPERATIONS


LIMITS = Limits()


def register_parts(
    program: ScalarProgram, shapes: Sequence[tuple[int, ...]], shared: Collection[Scalar], limits: Limits
) -> list[Part]:
    """The program in parts that keep to the limits.

    Args:
        program: Its results are those of arrays, one after the other.
        shapes: Of these arrays.
        shared: Inputs that are the same in all threads. They take no register, since they can be read again.
        limits: Of a part.
    """
    found = [as_parts(_cut(program.operations, shared, limits), program.results)]
    if len(found[0]) == 1:
        return found[0]
    places = [(k, at) for k, shape in enumerate(shapes) for at in np.ndindex(*shape)]
    for order in (_by_column, _by_block):
        last_first = sorted(range(len(places)), key=lambda r: order(*places[r]), reverse=True)
        operations = in_depth([program.results[r] for r in last_first])
        found.append(as_parts(_cut(operations, shared, limits), program.results))
    return min(found, key=lambda parts: _traffic(parts, shared))


def _by_column(array: int, at: tuple[int, ...]) -> tuple[Any, ...]:
    return at[-1:], array, at[::-1]


def _by_block(array: int, at: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(i // _BLOCK for i in at), array, at


def _cut(operations: Sequence[Scalar], shared: Collection[Scalar], limits: Limits) -> list[Sequence[Scalar]]:
    """Operations in their order, as many in each part as the limits allow."""
    parts, begin = list[Sequence[Scalar]](), 0
    while begin < len(operations):
        end = whole(operations, begin + _fitting(operations, begin, shared, limits))
        parts.append(operations[begin:end])
        begin = end
    return parts


def _fitting(operations: Sequence[Scalar], begin: int, shared: Collection[Scalar], limits: Limits) -> int:
    """How many operations from one on need no more registers than there are; at least one.

    What is within a loop counts as operations alone: its registers are left to the assembler.
    """
    live = np.zeros(limits.operations, np.int32)  # registers in use at each operation
    last: dict[Any, int] = {}  # where each number is needed last, so far
    left = limits.operations

    def use(x: Scalar, at: int) -> None:
        if x not in shared:
            live[last.get(x, at - 1) + 1 : at + 1] += max(1, x.dtype.itemsize // 4)
            last[x] = at

    for at, x in enumerate(operations[begin : begin + limits.operations]):
        given = {y for y in x.operands if isinstance(y, Scalar)}
        since = min((last.get(y, at) for y in given), default=at)
        for y in (*given, x):
            use(y, at)
        left -= sum(1 for _ in nested([x])) if isinstance(x, Loop) else 1
        if at and (left < 0 or live[since : at + 1].max() > limits.registers):
            return at
    return min(limits.operations, len(operations) - begin)


def _traffic(parts: Sequence[Part], shared: Collection[Scalar]) -> int:
    """Bytes that a thread reads and writes between parts."""
    return sum(
        x.dtype.itemsize for part in parts for numbers in (part.reads, part.gives) for x in numbers if x not in shared
    )
