"""The records of a run, found by what they are about, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .operations import OPERATIONS
from .ours import LIBRARY

DTYPES = ("float64", "float32")
PEERS = ("pinocchio", "rby1_sdk", "mujoco", "frax")
TITLES = {"rby1a": "RB-Y1 A", "panda": "Panda", "g1": "G1"}
SINGLE_CALL_BOUND = 5.0  # times a jitted addition with the same arguments


class Run:
    """The records of a run, by what they are about."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found, self.batch = found, found["compile_batch"]
        self.robots = list(dict.fromkeys(x["robot"] for x in found["times"]))

    def pick(self, kind: str, **fields: Any) -> Iterator[dict[str, Any]]:
        for record in self.found[kind]:
            if all(record.get(name) == value for name, value in fields.items()):
                yield record

    def operations(self, robot: str) -> list[str]:
        present = {x["operation"] for x in self.pick("times", robot=robot)}
        return [name for name in OPERATIONS if name in present]

    def time(self, robot: str, dtype: str, operation: str, library: str, batch: int) -> float | None:
        """The least of the variants of a library."""
        times = [
            x["us"]
            for x in self.pick("times", robot=robot, dtype=dtype, operation=operation, batch=batch)
            if x["library"] == library or (x["library"] == f"{library} world convention")
        ]
        return min(times, default=None)

    def ours(self, robot: str, dtype: str, operation: str) -> float | None:
        return self.time(robot, dtype, operation, LIBRARY, self.batch)

    def peer(self, robot: str, dtype: str, operation: str, library: str) -> float | None:
        return self.time(robot, dtype, operation, library, self.batch if library == "frax" else 1)

    def ratio(self, robot: str, dtype: str, operation: str, library: str) -> float | None:
        ours, peer = self.ours(robot, dtype, operation), self.peer(robot, dtype, operation, library)
        return None if ours is None or peer is None else peer / ours

    def missed(self) -> list[tuple[str, ...]]:
        """The promises for RB-Y1 A that this run did not keep: operation, dtype, what, measured, promised."""
        rows = []
        for name in self.operations("rby1a"):
            operation = OPERATIONS[name]
            for dtype, must in zip(DTYPES, operation.ratio or (), strict=False):
                ratio = self.ratio("rby1a", dtype, name, operation.peer)
                if ratio is not None and ratio < must:
                    rows.append((operation.title, dtype, f"ratio to {operation.peer}", number(ratio), f">= {must:g}"))
            for record in self.pick("compile", robot="rby1a", operation=name):
                if operation.compile_seconds and record["compile_s"] > operation.compile_seconds:
                    numbers = (number(record["compile_s"]), f"<= {operation.compile_seconds:g}")
                    rows.append((operation.title, record["dtype"], "compile [s]", *numbers))
            for record in self.pick("single", robot="rby1a", operation=name, dtype="float64"):
                factor = record["us"] / record["noop_us"]
                if factor > SINGLE_CALL_BOUND:
                    numbers = (number(factor), f"<= {SINGLE_CALL_BOUND:g}")
                    rows.append((operation.title, "float64", "eager call / jitted no-op", *numbers))
        return rows

    def slower(self, robot: str) -> list[tuple[str, str, str, float]]:
        """Where a peer takes less time than this library: operation, dtype, peer, peer's time / ours."""
        return [
            (OPERATIONS[name].title, dtype, peer, ratio)
            for name in self.operations(robot)
            for dtype in DTYPES
            for peer in PEERS
            if (ratio := self.ratio(robot, dtype, name, peer)) is not None and ratio < 1
        ]

    def growth(self, robot: str) -> list[tuple[str, str, int, float, float]]:
        """Where the largest batch costs over 1.3 times as much: operation, dtype, its size, its time, and that here."""
        size = max((x["batch"] for x in self.pick("times", robot=robot, library=LIBRARY)), default=self.batch)
        found = [
            (OPERATIONS[name].title, dtype, size, self.time(robot, dtype, name, LIBRARY, size), here)
            for name in self.operations(robot)
            for dtype in DTYPES
            if (here := self.ours(robot, dtype, name)) is not None
        ]
        return [(title, dtype, n, t, here) for title, dtype, n, t, here in found if t is not None and t > 1.3 * here]

    def about(self) -> str:
        """Machine and versions."""
        machine, versions = self.found["machine"], self.found["versions"]
        return (
            f"Machine: {machine['cpu']}, {machine['cores']} cores ({machine['vectors']}), {machine['system']}, "
            f"{self.found['date']}.\n"
            "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
        )


def number(x: float | None) -> str:
    if x is None:
        return ""
    return f"{x:.0f}" if abs(x) >= 99.5 else f"{x:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
