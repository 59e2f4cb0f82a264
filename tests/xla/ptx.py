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

    def value(token: str, kind: str) -> Any:
        if token in registers:
            return registers[token]
        if token.startswith("0f"):
            return np.uint32(int(token[2:], 16)).view(np.float32)
        if token.startswith("0d"):
            return np.uint64(int(token[2:], 16)).view(np.float64)
        return _TYPES[kind](int(token)) if kind in _TYPES else np.int64(int(token))

    def at(token: str) -> tuple[np.ndarray, np.ndarray | int]:
        found = re.fullmatch(r"\[(%\w+)\+(\d+)\]", token)
        assert found is not None, token
        pointer, offset = found.groups()
        array = arrays[pointer]
        row, rest = divmod(int(offset), array.itemsize * (lanes if array.ndim == 2 else 1))
        assert rest == 0, "a kernel reads between two numbers"
        assert row < len(array), "a kernel reads beyond its array"
        return array, row

    body = text[text.index("cvt.u64.u32 %at") :].splitlines()
    for line in body[1:]:
        if line.startswith(("ld.param", "cvta", "mul.lo.u64 %bytes", "add.u64 %in", "add.u64 %out")):
            continue
        if line in ("END:", "ret;", "}"):
            break
        op, *rest = re.split(r"[ ,;]+", line.rstrip(";"))
        name, *modifiers = op.split(".")
        kind = modifiers[-1]
        if name == "st":
            array, row = at(rest[0])
            assert (kind == _BYTE) == (array.dtype == np.bool_)
            array[row] = value(rest[1], "s32" if kind == _BYTE else kind)
            continue
        target, *xs = rest
        if name == "ld":
            array, row = at(xs[0])
            assert array.dtype == (np.bool_ if kind == _BYTE else _TYPES[kind])
            found = array[row] if array.ndim == 2 else np.full(lanes, array[row])
            found = found.astype(np.int32) if kind == _BYTE else found
        elif name == "setp":
            found = _COMPARED[modifiers[0]](*(value(x, kind) for x in xs))
        elif name == "selp":
            found = np.where(registers[xs[2]], value(xs[0], kind), value(xs[1], kind))
        elif name == "cvt" and modifiers[0] == "rni":
            found = np.round(value(xs[0], kind))
        elif name == "cvt":
            found = np.asarray(value(xs[0], kind)).astype(_TYPES[modifiers[-2]])
        elif name == "mov":
            x = np.asarray(value(xs[0], kind))
            other = {"f": "s", "i": "f"}[x.dtype.kind]
            found = x.view(_TYPES[f"{other}{8 * x.itemsize}"])
        elif name in _TWO:
            found = _TWO[name](*(value(x, kind) for x in xs))
        else:
            found = _ONE[name](value(xs[0], kind))
        registers[target] = np.broadcast_to(found, lanes)
    return results
