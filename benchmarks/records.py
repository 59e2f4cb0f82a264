"""The records of a run, found by what they are about, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .case import SCALABLE, TITLES
from .operations import OPERATIONS
from .ours import LIBRARY, MAPPED_FROM
from .peers import IN_JAX, NAMES
from .plans import DTYPES, REFERENCE, ROBOTS

SINGLE_CALL_BOUND = 5.0  # times a jitted addition with the same arguments
FLAT_BOUND = 1.3  # time in a batch that goes through `map_batch`, over that in the reference batch
DISAGREEMENT = {"float64": 1e-9, "float32": 1e-3}  # larger differences are pointed out


@dataclass(frozen=True)
class Comparison:
    """A peer beside us; `ratio` is its time over ours."""

    robot: str
    dtype: str
    operation: str
    peer: str
    ratio: float


class Run:
    """The records of a run, by what they are about."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        measured = {x["robot"] for x in found["times"]}
        self.robots = [x for x in ROBOTS if x in measured and not SCALABLE.fullmatch(x)]
        self.scaled = [x for x in ROBOTS if x in measured and SCALABLE.fullmatch(x)]
        libraries = {x["library"] for x in found["times"]}
        self.peers = [name for name in NAMES if name in libraries]

    def pick(self, kind: str, **fields: Any) -> Iterator[dict[str, Any]]:
        for record in self.found[kind]:
            if all(record.get(name) == value for name, value in fields.items()):
                yield record

    def operations(self, robot: str) -> list[str]:
        present = {x["operation"] for x in self.pick("times", robot=robot)}
        return [name for name in OPERATIONS if name in present]

    def batches(self, robot: str) -> list[int]:
        return sorted({x["batch"] for x in self.pick("times", robot=robot, library=LIBRARY)})

    def time(self, robot: str, dtype: str, operation: str, library: str, batch: int) -> float | None:
        """The least of the variants of a library."""
        times = [
            x["us"]
            for x in self.pick("times", robot=robot, dtype=dtype, operation=operation, batch=batch)
            if x["library"] in (library, f"{library} world convention")
        ]
        return min(times, default=None)

    def ours(self, robot: str, dtype: str, operation: str) -> float | None:
        return self.time(robot, dtype, operation, LIBRARY, REFERENCE)

    def peer(self, robot: str, dtype: str, operation: str, library: str) -> float | None:
        return self.time(robot, dtype, operation, library, REFERENCE if library in IN_JAX else 1)

    def ratio(self, robot: str, dtype: str, operation: str, library: str) -> float | None:
        ours, peer = self.ours(robot, dtype, operation), self.peer(robot, dtype, operation, library)
        return None if ours is None or peer is None else peer / ours

    def compilation(self, robot: str, dtype: str, operation: str, batch: int = REFERENCE) -> dict[str, Any] | None:
        return next(self.pick("compile", robot=robot, dtype=dtype, operation=operation, batch=batch), None)

    def peer_call(self, robot: str, operation: str, library: str) -> float | None:
        """What a call from Python takes in all [us]."""
        records = self.pick("times", robot=robot, dtype="float64", operation=operation, library=library)
        return next((x["us"] + x["overhead_us"] for x in records if "overhead_us" in x), None)

    def floor(self, dtype: str, flops: int) -> float:
        """The least time that so many arithmetic operations can take [us]."""
        return 1e6 * flops / self.found["peak"][dtype]

    def flat(self, robot: str, dtype: str, operation: str) -> tuple[int, float] | None:
        """The largest batch through `map_batch`, and the time in it over that in the reference batch."""
        size, here = max(self.batches(robot), default=0), self.ours(robot, dtype, operation)
        there = self.time(robot, dtype, operation, LIBRARY, size)
        return None if size < MAPPED_FROM or here is None or there is None else (size, there / here)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """All peers on all robots in the reference batch."""
        return [
            Comparison(robot, dtype, operation, peer, ratio)
            for robot in (*self.robots, *self.scaled)
            for operation in self.operations(robot)
            for dtype in DTYPES
            for peer in self.peers
            if (ratio := self.ratio(robot, dtype, operation, peer)) is not None
        ]

    def missed(self) -> list[tuple[str, ...]]:
        """The promises for RB-Y1 A that this run did not keep: operation, dtype, what, measured, promised."""
        rows: list[tuple[str, ...]] = []
        for name in self.operations("rby1a"):
            operation = OPERATIONS[name]
            for dtype, must in zip(DTYPES, operation.ratio or (None, None), strict=True):
                ratio = self.ratio("rby1a", dtype, name, operation.peer)
                if must is not None and ratio is not None and ratio < must:
                    rows.append((operation.title, dtype, f"ratio to {operation.peer}", number(ratio), f">= {must:g}"))
                compiled, bound = self.compilation("rby1a", dtype, name), operation.compile_seconds
                if compiled and bound and compiled["compile_s"] > bound:
                    rows.append((operation.title, dtype, "compile [s]", number(compiled["compile_s"]), f"<= {bound:g}"))
                flat = self.flat("rby1a", dtype, name)
                if flat and flat[1] > FLAT_BOUND:
                    what = f"time in a batch of {flat[0]} / of {REFERENCE}"
                    rows.append((operation.title, dtype, what, number(flat[1]), f"<= {FLAT_BOUND:g}"))
            for record in self.pick("single", robot="rby1a", operation=name, dtype="float64"):
                factor = record["us"] / record["noop_us"]
                if factor > SINGLE_CALL_BOUND:
                    numbers = (number(factor), f"<= {SINGLE_CALL_BOUND:g}")
                    rows.append((operation.title, "float64", "eager call / jitted no-op", *numbers))
        return rows

    def about(self) -> str:
        """Machine and versions."""
        machine, versions = self.found["machine"], self.found["versions"]
        return (
            f"Machine: {machine['cpu']}, {machine['cores']} cores ({machine['vectors']}), {machine['system']}, "
            f"{self.found['date']}.\n"
            "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
        )


def title(robot: str) -> str:
    return TITLES.get(robot, robot)


def number(x: float | None) -> str:
    if x is None:
        return ""
    return f"{x:.0f}" if abs(x) >= 99.5 else f"{x:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that are empty throughout are left out."""
    rows = list(rows)
    shown = [k for k in range(len(head)) if k == 0 or any(row[k] for row in rows)]
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line[k] for k in shown) + " |" for line in lines) + "\n"
