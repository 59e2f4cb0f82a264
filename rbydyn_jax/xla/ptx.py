"""A program of scalars as a CUDA kernel, in PTX: each thread computes the program for one lane.

A straight line of the program's operations on registers, and loops that end for each thread on its own. A scalar is
loaded where it is first needed and stored as soon as it is known; what belongs together is left to the assembler, which
contracts products and sums, and orders them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .scalars import Loop, Row, Scalar, nested
from .scalars import Place as RowPlace

Place = tuple[int, int]  # of a scalar: the array, and where in it

_SUFFIX = {"float32": "f32", "float64": "f64", "int32": "s32", "int64": "s64", "uint32": "u32", "bool": "pred"}
_ARITHMETIC, _LOGIC = ("add", "sub", "mul"), ("and", "or", "xor")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_MOST_OFFSET = 2**31


class Array(NamedTuple):
    """An array of a kernel: its number of scalars, their type, and whether each lane has its own."""

    size: int
    dtype: Any
    in_lanes: bool


class Kernel(NamedTuple):
    """Operations on scalars, where what they need is read, and where their results are written."""

    operations: Sequence[Scalar]
    operands: Sequence[Array]
    results: Sequence[Array]
    read: Mapping[Scalar, Place]
    write: Sequence[tuple[Any, Place]]
    """Of scalars, or numpy scalars, each with its place in the results."""


class UnsupportedError(Exception):
    """A program has an operation or a type that is not written in PTX."""


def kernel_text(name: str, kernel: Kernel, lanes: int, block: int) -> str:
    """The PTX of a kernel whose parameters are the operands and the results, each (size, lanes) or (size,).

    Args:
        name: Of the kernel.
        kernel: What it does.
        lanes: Number of lanes.
        block: Threads of a block.

    Raises:
        UnsupportedError: There is an operation or a type that is not written in PTX.
    """
    return _Writer(kernel, lanes).text(name, block)


def _suffix(dtype: Any) -> str:
    if (name := getattr(dtype, "name", str(dtype))) not in _SUFFIX:  # of a key of random numbers too
        raise UnsupportedError(f"{name} has no registers in a kernel")
    return _SUFFIX[name]


def _moved(dtype: Any) -> str:
    """The type of a number that is copied."""
    suffix = _suffix(dtype)
    return suffix if suffix == "pred" or suffix[0] == "f" else f"b{suffix[1:]}"


def _immediate(value: Any, dtype: Any) -> str:
    dtype = np.dtype(dtype)
    if dtype == np.float32:
        return f"0f{np.float32(value).view(np.uint32):08X}"
    if dtype == np.float64:
        return f"0d{np.float64(value).view(np.uint64):016X}"
    return str(int(value))


def check_written(dtypes: Sequence[Any], operations: Sequence[Scalar]) -> None:
    """Raises if numbers of a type, or an operation, are not written in PTX.

    Raises:
        UnsupportedError: There is such a type or operation.
    """
    for dtype in dtypes:
        _suffix(dtype)
    every = [x for x in nested(operations) if not isinstance(x, Row)]
    kinds = {(x.operation, x.dtype, *(y.dtype for y in x.operands)): x for x in every}
    for x in kinds.values():
        writer = _Writer(Kernel([], [], [], {}, []), 1)
        writer.values = {y: "" for y in x.operands if isinstance(y, Scalar)}
        writer.operation(x)


class _Writer:
    def __init__(self, kernel: Kernel, lanes: int) -> None:
        self.kernel, self.lanes = kernel, lanes
        self.lines: list[str] = []
        self.counts: dict[str, int] = {}
        self.loops = 0
        self.values: dict[Any, str] = {}

    def new(self, suffix: str) -> str:
        """A register of a type."""
        k = self.counts.get(suffix, 0)
        self.counts[suffix] = k + 1
        return f"%{suffix}_{k}"

    def put(self, suffix: str, line: str) -> str:
        """An instruction with a result."""
        result = self.new(suffix)
        self.lines.append(line.format(result))
        return result

    def address(self, pointer: str, offset: int) -> str:
        if offset < _MOST_OFFSET:
            return f"[{pointer}+{offset}]"
        return f"[{self.put('u64', f'add.u64 {{}}, {pointer}, {offset};')}]"

    def value(self, x: Any) -> str:
        """The register of a scalar, or its value where it is known."""
        if not isinstance(x, Scalar):
            return self.known(x)
        if x not in self.values:
            k, i = self.kernel.read[x]
            array, suffix = self.kernel.operands[k], _suffix(self.kernel.operands[k].dtype)
            step = np.dtype(array.dtype).itemsize * (self.lanes if array.in_lanes else 1)
            self.values[x] = self.loaded(x, self.address(f"%in_{k}", i * step), suffix)
        return self.values[x]

    def loaded(self, x: Scalar, where: str, suffix: str) -> str:
        """The register of a scalar from an array of a type."""
        if suffix == "pred":  # a byte
            suffix, found = "s32", self.put("s32", f"ld.global.nc.u8 {{}}, {where};")
        else:
            found = self.put(suffix, f"ld.global.nc.{suffix} {{}}, {where};")
        return self.converted(found, suffix, _suffix(x.dtype))  # parts hand on booleans as integers

    def row(self, name: str, array: Array, place: RowPlace) -> str:
        """The address of a number in a row that is computed."""
        step = np.dtype(array.dtype).itemsize * (self.lanes if array.in_lanes else 1)
        key = name, place.row
        if key not in self.values:
            if place.size * step >= _MOST_OFFSET:
                raise UnsupportedError(f"a row of {place.size * step} bytes")
            offset = self.put("u64", f"mul.wide.u32 {{}}, {self.value(place.row)}, {place.size * step};")
            self.values[key] = self.put("u64", f"add.u64 {{}}, {name}, {offset};")
        return self.address(self.values[key], place.at * step)

    def known(self, value: Any) -> str:
        if _suffix(value.dtype) != "pred":
            return _immediate(value, value.dtype)
        return self.put("pred", f"setp.{'eq' if value else 'ne'}.u32 {{}}, 0, 0;")

    def store(self, x: Any, place: Place) -> None:
        k, i = place
        dtype = np.dtype(self.kernel.results[k].dtype)
        self.stored(x, dtype, self.address(f"%out_{k}", i * dtype.itemsize * self.lanes))

    def stored(self, x: Any, dtype: np.dtype, where: str) -> None:
        """A number in an array of a type."""
        suffix = "s32" if dtype == np.bool_ else _suffix(dtype)
        value = self.converted(self.value(x), _suffix(x.dtype), suffix)
        self.lines.append(f"st.global.{'u8' if dtype == np.bool_ else suffix} {where}, {value};")

    def text(self, name: str, block: int) -> str:
        own, wanted = set(self.kernel.operations), dict[Scalar, list[Place]]()
        for x, place in self.kernel.write:
            if x in own:
                wanted.setdefault(x, []).append(place)
            else:
                self.store(x, place)
        self.write(self.kernel.operations, wanted)
        inputs, outputs = len(self.kernel.operands), len(self.kernel.results)
        pointers = [f"%in_{k}" for k in range(inputs)] + [f"%out_{k}" for k in range(outputs)]
        registers = [f".reg .{kind} %{kind}_<{n}>;" for kind, n in self.counts.items()]
        head = [
            ".version 7.0",
            ".target sm_70",
            ".address_size 64",
            f".visible .entry {name}(",
            ",\n".join(f"  .param .u64 p{k}" for k in range(len(pointers))),
            f") .maxntid {block}, 1, 1",
            "{",
            ".reg .u32 %thread, %number, %lane;",
            ".reg .u64 %at, %bytes;",
            ".reg .pred %beyond;",
            f".reg .u64 {', '.join(pointers)};",
            *registers,
            "mov.u32 %thread, %tid.x;",
            "mov.u32 %number, %ctaid.x;",
            f"mad.lo.u32 %lane, %number, {block}, %thread;",
            f"setp.ge.u32 %beyond, %lane, {self.lanes};",
            "@%beyond bra END;",
            "cvt.u64.u32 %at, %lane;",
        ]
        for k, (pointer, array) in enumerate(zip(pointers, [*self.kernel.operands, *self.kernel.results], strict=True)):
            head += [f"ld.param.u64 {pointer}, [p{k}];", f"cvta.to.global.u64 {pointer}, {pointer};"]
            if array.in_lanes:
                size = np.dtype(array.dtype).itemsize
                head += [f"mul.lo.u64 %bytes, %at, {size};", f"add.u64 {pointer}, {pointer}, %bytes;"]
        return "\n".join([*head, *self.lines, "END:", "ret;", "}", ""])

    def write(self, operations: Sequence[Scalar], wanted: Mapping[Scalar, Sequence[Place]]) -> None:
        """Operations in a line, and where their results are stored."""
        for x in operations:
            if isinstance(x, Loop):
                self.loop(x)
            elif x.operation != "left":
                self.values[x] = self.operation(x)
            for place in wanted.get(x, ()):
                self.store(x, place)

    def loop(self, x: Loop) -> None:
        """A loop whose numbers keep their registers."""
        for y in x.needed:  # before the loop, which may end at once
            self.value(y)
        self.loops += 1
        begin, end = f"LOOP_{self.loops}", f"DONE_{self.loops}"
        registers = [self.copied(y) for y in x.start]
        self.values |= zip(x.carried, registers, strict=True)
        self.lines.append(f"{begin}:")
        self.write(x.check, {})
        self.lines.append(f"@!{self.value(x.goes_on)} bra {end};")
        self.write(x.body, {})
        for y, place in x.written:
            array = self.kernel.results[place.array]
            self.stored(y, np.dtype(array.dtype), self.row(f"%out_{place.array}", array, place))
        for register, new, y in zip(registers, [self.copied(y) for y in x.after], x.carried, strict=True):
            self.lines.append(f"mov.{_moved(y.dtype)} {register}, {new};")
        self.lines += [f"bra {begin};", f"{end}:"]
        self.values |= zip(x.left, registers, strict=True)

    def copied(self, x: Any) -> str:
        """A register of its own that holds a number."""
        return self.put(_suffix(x.dtype), f"mov.{_moved(x.dtype)} {{}}, {self.value(x)};")

    def operation(self, x: Scalar) -> str:
        """The register that an operation writes."""
        if isinstance(x, Row):
            array = self.kernel.operands[x.place.array]
            return self.loaded(x, self.row(f"%in_{x.place.array}", array, x.place), _suffix(array.dtype))
        name, xs = x.operation, [self.value(operand) for operand in x.operands]
        suffix, given = _suffix(x.dtype), _suffix(x.operands[0].dtype)
        is_float, is_64 = suffix in ("f32", "f64"), suffix in ("f64", "s64")
        if name in _ARITHMETIC:
            low = ".lo" if name == "mul" and not is_float else ""
            return self.put(suffix, f"{name}{low}.{suffix} {{}}, {xs[0]}, {xs[1]};")
        if name in ("eq", "ne") and given == "pred":
            differs = self.put("pred", f"xor.pred {{}}, {xs[0]}, {xs[1]};")
            return differs if name == "ne" else self.put("pred", f"not.pred {{}}, {differs};")
        if name in _COMPARISONS and given != "pred":
            op = "neu" if name == "ne" and given[0] == "f" else name
            return self.put("pred", f"setp.{op}.{given} {{}}, {xs[0]}, {xs[1]};")
        if name in _LOGIC:
            kind = suffix if suffix == "pred" else f"b{suffix[1:]}"
            return self.put(suffix, f"{name}.{kind} {{}}, {xs[0]}, {xs[1]};")
        if name == "not" and suffix == "pred":
            return self.put(suffix, f"not.pred {{}}, {xs[0]};")
        if name in ("neg", "abs") and (is_float or suffix in ("s32", "s64")):
            return self.put(suffix, f"{name}.{suffix} {{}}, {xs[0]};")
        if name == "div" and is_float:
            return self.put(suffix, f"div.rn.{suffix} {{}}, {xs[0]}, {xs[1]};")
        if name == "sqrt" and is_float:
            return self.put(suffix, f"sqrt.rn.{suffix} {{}}, {xs[0]};")
        if name == "round" and is_float:
            return self.put(suffix, f"cvt.rni.{suffix}.{suffix} {{}}, {xs[0]};")
        if name in ("max", "min") and is_float:
            return self.extreme(name, suffix, xs)
        if name in ("max", "min") and suffix in ("s32", "s64"):
            return self.put(suffix, f"{name}.{suffix} {{}}, {xs[0]}, {xs[1]};")
        if name == "select":
            if suffix == "pred":
                return self.choice(xs)
            kind = suffix if is_float else f"b{64 if is_64 else 32}"
            return self.put(suffix, f"selp.{kind} {{}}, {xs[1]}, {xs[2]}, {xs[0]};")
        if name in ("bits", "from_bits"):
            return self.put(suffix, f"mov.b{suffix[1:]} {{}}, {xs[0]};")
        if name == "convert":
            return self.converted(xs[0], given, suffix)
        raise UnsupportedError(f"{name} of {given} is not written in PTX")

    def extreme(self, name: str, suffix: str, xs: Sequence[str]) -> str:
        """The larger or smaller one; not a number if either is none, which PTX would drop."""
        plain = self.put(suffix, f"{name}.{suffix} {{}}, {xs[0]}, {xs[1]};")
        neither = self.put("pred", f"setp.nan.{suffix} {{}}, {xs[0]}, {xs[1]};")
        total = self.put(suffix, f"add.{suffix} {{}}, {xs[0]}, {xs[1]};")
        return self.put(suffix, f"selp.{suffix} {{}}, {total}, {plain}, {neither};")

    def choice(self, xs: Sequence[str]) -> str:
        """One of two booleans."""
        first = self.put("pred", f"and.pred {{}}, {xs[0]}, {xs[1]};")
        other = self.put("pred", f"not.pred {{}}, {xs[0]};")
        second = self.put("pred", f"and.pred {{}}, {other}, {xs[2]};")
        return self.put("pred", f"or.pred {{}}, {first}, {second};")

    def converted(self, x: str, given: str, suffix: str) -> str:
        if given == suffix:
            return x
        if given == "pred":
            dtype = {"f32": np.float32, "f64": np.float64}.get(suffix, np.int32)
            kind = suffix if suffix[0] == "f" else f"b{suffix[1:]}"
            one, zero = (_immediate(k, dtype) for k in (1, 0))
            return self.put(suffix, f"selp.{kind} {{}}, {one}, {zero}, {x};")
        if suffix == "pred":
            op = "neu" if given[0] == "f" else "ne"
            zero = _immediate(0, {"f32": np.float32, "f64": np.float64}.get(given, np.int32))
            return self.put("pred", f"setp.{op}.{given} {{}}, {x}, {zero};")
        if given[0] == "f" and suffix[0] in "su":
            rounding = ".rzi"
        elif suffix[0] == "f" and (given[0] in "su" or (given, suffix) == ("f64", "f32")):
            rounding = ".rn"
        else:
            rounding = ""
        return self.put(suffix, f"cvt{rounding}.{suffix}.{given} {{}}, {x};")
