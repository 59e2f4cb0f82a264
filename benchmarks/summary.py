"""The table in the project's README: one line for each operation on RB-Y1 A, losses included."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .operations import OPERATIONS
from .records import DTYPES, Run, number, table

BEGIN, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"

_TEXT = """\
RB-Y1 A (24 joints), one CPU core, a batch of {batch} through plain `jax.vmap` on `(B, n)` arrays, the model a traced
argument: time per configuration [us], float64 / float32. Pinocchio, rby1_sdk and MuJoCo are C++ or C in float64. "x" is
the time of Pinocchio (for self-distance of rby1_sdk) over ours. "compile" is CPU seconds, cold. "one call" is the wall
time of one eager call in float64 [us], in brackets that of the same engine called from Python.

{table}
{losses}

{about}

`python -m benchmarks run` measures this again; what is timed and how, batch sizes, and how far the results of all
engines are apart is in [benchmarks/results](benchmarks/results/README.md).
"""


def summary(found: dict[str, Any]) -> str:
    """The text for the README."""
    run = Run(found)
    head = ("", "ours", "Pinocchio", "rby1_sdk", "MuJoCo", "frax", "x", "compile", "one call")
    rows = [_row(run, name) for name in run.operations("rby1a")]
    return _TEXT.format(batch=run.batch, table=table(head, rows), losses=_losses(run), about=run.about())


def insert(readme: Path, text: str) -> None:
    """Writes `text` between the two markers of a README."""
    old = readme.read_text()
    new, count = re.subn(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n\n{text}\n{END}", old, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{readme} must hold {BEGIN} and, after it, {END}, once")
    readme.write_text(new)


def _row(run: Run, name: str) -> tuple[str, ...]:
    operation = OPERATIONS[name]

    def both(values: list[float | None]) -> str:
        return " / ".join(map(number, values)) if None not in values else ""

    ours = both([run.ours("rby1a", dtype, name) for dtype in DTYPES])
    engines = [number(run.peer("rby1a", "float64", name, peer)) for peer in ("pinocchio", "rby1_sdk", "mujoco")]
    frax = both([run.peer("rby1a", dtype, name, "frax") for dtype in DTYPES])
    ratio = both([run.ratio("rby1a", dtype, name, operation.peer) for dtype in DTYPES])
    compiled = {x["dtype"]: x["compile_s"] for x in run.pick("compile", robot="rby1a", operation=name)}
    return (operation.title, ours, *engines, frax, ratio, both([compiled.get(x) for x in DTYPES]), _call(run, name))


def _call(run: Run, name: str) -> str:
    ours = next((x["us"] for x in run.pick("single", robot="rby1a", operation=name, dtype="float64")), None)
    if ours is None:
        return ""
    peer = run.pick("times", robot="rby1a", operation=name, dtype="float64", library=OPERATIONS[name].peer)
    theirs = next((x["us"] + x["overhead_us"] for x in peer), None)
    return number(ours) + ("" if theirs is None else f" ({number(theirs)})")


def _losses(run: Run) -> str:
    lines = [
        f"- {title}, {dtype}: {peer} takes {number(ratio)} times what we take"
        for title, dtype, peer, ratio in run.slower("rby1a")
    ]
    lines += [
        f"- {title}, {dtype}: {what} is {measured}, promised {promised}"
        for title, dtype, what, measured, promised in run.missed()
    ]
    lines += [
        f"- {title}, {dtype}: {number(large)} us in a batch of {size}, {number(here)} in one of {run.batch}"
        for title, dtype, size, large, here in run.growth("rby1a")
    ]
    lines.append(
        "- one call at a time: see the last column; JAX's dispatch alone takes longer than most of these in C++"
    )
    absent = [name for name, version in run.found["versions"].items() if version == "not installed"]
    if absent:
        lines.append(f"- not compared with {', '.join(absent)}: not installed")
    return "Where it loses, or falls short of what was promised:\n\n" + "\n".join(lines)
