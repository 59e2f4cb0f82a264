"""The results of `python -m tests.robots` as markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

BOUND = 1e-12
ENGINES = ("Pinocchio", "MuJoCo")


def tables(results: list[dict[str, Any]]) -> str:
    """Errors by source and by function, and the robots of which anything was left out."""
    run = [x for x in results if "errors" in x]
    by_source: dict[str, list[dict[str, Any]]] = {}
    for x in run:
        by_source.setdefault(x["source"], []).append(x)
    rows = [["robots of", "robots", "moving bodies", "with MuJoCo", "Pinocchio", "MuJoCo", "above 1e-12"]]
    for source, some in [*by_source.items(), ("all", run)]:
        bodies = [x["bodies"] for x in some]
        with_mujoco = sum(any(f.endswith("MuJoCo") for f in x["errors"]) for x in some)
        errors = [_worst(e for x in some for f, e in x["errors"].items() if f.endswith(engine)) for engine in ENGINES]
        above = sum(max(x["errors"].values()) > BOUND for x in some)
        span = f"{min(bodies, default=0)} to {max(bodies, default=0)}"
        rows.append([source, str(len(some)), span, str(with_mujoco), *errors, str(above)])
    functions = list(dict.fromkeys(f.rsplit(" ", 1)[0] for x in run for f in x["errors"]))
    second = [["function", *ENGINES]]
    for function in functions:
        second.append([f"`{function}`", *(_worst(_of(run, f"{function} {engine}")) for engine in ENGINES)])
    notes = Counter(note for x in run for note in x["notes"]) | Counter(x["failure"] for x in results if "failure" in x)
    third = [["left out", "robots"], *([note, str(number)] for note, number in notes.most_common())]
    return "\n\n".join(map(_markdown, (rows, second, third)))


def _of(run: list[dict[str, Any]], key: str) -> Iterable[float]:
    return (x["errors"][key] for x in run if key in x["errors"])


def _worst(errors: Iterable[float]) -> str:
    worst = max(errors, default=None)
    return "" if worst is None else f"{worst:.1e}"


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])
