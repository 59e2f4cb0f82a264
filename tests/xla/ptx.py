"""What a GPU would do with a kernel in PTX: the few instructions of this library, for all lanes at once, by numpy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_TYPES = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "s64": np.int64, "b32": np.int32, "b64": np.int64}
_BYTE = "u8"  # of a boolean
_TWO = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.fmax,
    "min": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_ONE = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "not": np.logical_not}
_COMPARED = {
    "eq": np.equal,
    "neu": np.not_equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}


def interpret(text: str, operands: list[np.ndarray], sizes: list[tuple[int, np.dtype]], lanes: int) -> list[np.ndarray]:
    """The arrays (size, lanes) that a kernel writes; operands are (size, lanes), or (size,) for all lanes."""
    results = [np.full((n, lanes), 123, dtype) for n, dtype in sizes]
    arrays = {f"%in_{k}": x for k, x in enumerate(operands)} | {f"%out_{k}": x for k, x in enumerate(results)}
    registers: dict[str, np.ndarray] = {}
    pointers: dict[str, tuple[str, np.ndarray]] = {}  # into an array, with the bytes from its begin

    def value(token: str, kind: str) -> Any:
        if token in registers:
            return registers[token]
        if token.startswith("0f"):
            return np.uint32(int(token[2:], 16)).view(np.float32)
        if token.startswith("0d"):
            return np.uint64(int(token[2:], 16)).view(np.float64)
        return _TYPES[kind](int(token)) if kind in _TYPES else np.int64(int(token))

    def at(token: str) -> tuple[np.ndarray, Any]:
        """An array, and where in it each lane reads or writes."""
        found = re.fullmatch(r"\[(%\w+)\+(\d+)\]", token)
        assert found is not None, token
        pointer, offset = found.groups()
        name, moved = pointers.get(pointer, (pointer, np.zeros(lanes, np.int64)))
        array = arrays[name]
        row, rest = np.divmod(moved + int(offset), array.itemsize * (lanes if array.ndim == 2 else 1))
        assert not rest.any(), "a kernel reads between two numbers"
        assert (row[active] < len(array)).all(), "a kernel reads beyond its array"
        row = np.where(active, row, 0)
        return array, (row, np.arange(lanes)) if array.ndim == 2 else row

    body = text[text.index("cvt.u64.u32 %at") :].splitlines()
    labels = {line[:-1]: k for k, line in enumerate(body) if line.endswith(":")}
    active, outside, at_line = np.ones(lanes, bool), list[np.ndarray](), 0
    while body[at_line + 1] != "END:":
        at_line += 1
        line = body[at_line]
        if line.startswith(("ld.param", "cvta", "mul.lo.u64 %bytes", "add.u64 %in", "add.u64 %out")):
            continue  # to the numbers of a lane
        if line.startswith("LOOP_"):
            outside.append(active)
        elif line.startswith("DONE_"):
            active = outside.pop()
        elif line.startswith("bra "):
            at_line = labels[line[4:-1]]
        elif line.startswith("@!"):
            condition, _, label = line[2:-1].split()
            active = active & registers[condition]
            at_line = at_line if active.any() else labels[label] - 1
        if line.endswith(":") or "bra " in line:
            continue
        op, *rest = re.split(r"[ ,;]+", line.rstrip(";"))
        name, *modifiers = op.split(".")
        kind = modifiers[-1]
        if name == "st":
            array, row = at(rest[0])
            assert (kind == _BYTE) == (array.dtype == np.bool_)
            written = np.broadcast_to(value(rest[1], "s32" if kind == _BYTE else kind), lanes)
            array[tuple(x[active] for x in row)] = written[active]
            continue
        target, *xs = rest
        if op == "add.u64":
            pointers[target] = xs[0], np.where(active, registers[xs[1]], 0)
            continue
        if name == "ld":
            array, row = at(xs[0])
            assert array.dtype == (np.bool_ if kind == _BYTE else _TYPES[kind])
            found = array[row]
            found = found.astype(np.int32) if kind == _BYTE else found
        elif op == "mul.wide.u32":
            found = registers[xs[0]].astype(np.int64) * int(xs[1])
        elif name == "setp":
            found = _COMPARED[modifiers[0]](*(value(x, kind) for x in xs))
        elif name == "selp":
            found = np.where(registers[xs[2]], value(xs[0], kind), value(xs[1], kind))
        elif name == "cvt" and modifiers[0] == "rni":
            found = np.round(value(xs[0], kind))
        elif name == "cvt":
            found = np.asarray(value(xs[0], kind)).astype(_TYPES[modifiers[-2]])
        elif name == "mov" and (kind == "pred" or xs[0][:4] == target[:4] or xs[0][0] != "%"):
            found = value(xs[0], kind)
        elif name == "mov":
            x = np.asarray(value(xs[0], kind))
            other = {"f": "s", "i": "f"}[x.dtype.kind]
            found = x.view(_TYPES[f"{other}{8 * x.itemsize}"])
        elif name in _TWO:
            found = _TWO[name](*(value(x, kind) for x in xs))
        else:
            found = _ONE[name](value(xs[0], kind))
        before = registers.get(target, np.zeros(lanes, np.asarray(found).dtype))
        registers[target] = np.where(active, found, before)
    return results
