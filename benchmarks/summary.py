"""The table in docs/performance.md: one line for each operation on RB-Y1 A, and what is lost, on one screen."""

from __future__ import annotations

import re
from pathlib import Path

from .operations import OPERATIONS
from .peers import IN_JAX
from .plans import DTYPES, REFERENCE
from .records import Run, number, table, title

BEGIN, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"

_TEXT = """\
RB-Y1 A (24 joints), one CPU core, a batch of {batch} through plain `jax.vmap` on `(B, n)` arrays, the model a traced
argument: time per configuration [us], float64 / float32. Pinocchio, rby1_sdk and MuJoCo are C++ or C in float64. "x" is
the time of Pinocchio (for self-distance of rby1_sdk) over ours, "compile" CPU seconds in float64, cold, and "one call"
the wall time of one eager call in float64 [us], in brackets that of the same engine called from Python. Bold: the
peer is faster.

{table}
{losses}

{about}

`benchmarks/results/README.md` has robots, batches, memory, chains and trees, arithmetic, agreement;
`python -m benchmarks run` reproduces them.
"""


def summary(run: Run) -> str:
    """The text for the page."""
    beside = [peer for peer in run.peers if peer != "pinocchio"]
    head = ("", "ours", "Pinocchio", "x", *beside, "compile", "one call")
    rows = [_row(run, name, beside) for name in run.operations("rby1a")]
    return _TEXT.format(batch=REFERENCE, table=table(head, rows), losses=_losses(run), about=run.about())


def insert(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Writes `text` between two markers of a page."""
    old = page.read_text()
    new, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{text}\n{end}", old, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{page} must hold {begin} and, after it, {end}, once")
    page.write_text(new)


def _row(run: Run, name: str, beside: list[str]) -> tuple[str, ...]:
    operation = OPERATIONS[name]
    ours = [run.ours("rby1a", dtype, name) for dtype in DTYPES]

    def against(peer: str) -> str:
        """One number for an engine in float64, one for each dtype of a library in JAX."""
        dtypes = DTYPES if peer in IN_JAX else DTYPES[:1]
        times = [run.peer("rby1a", dtype, name, peer) for dtype in dtypes]
        return " / ".join(_bold(t, o) for t, o in zip(times, ours, strict=False) if t is not None)

    ratios = [run.ratio("rby1a", dtype, name, operation.peer) for dtype in DTYPES]
    x = " / ".join(_bold(ratio, 1.0) for ratio in ratios if ratio is not None)
    compiled = run.compilation("rby1a", "float64", name)
    call = next((r["us"] for r in run.pick("single", robot="rby1a", operation=name, dtype="float64")), None)
    theirs = run.peer_call("rby1a", name, operation.peer)
    calls = number(call) + (f" ({_bold(theirs, call)})" if call is not None and theirs is not None else "")
    both = " / ".join(number(t) for t in ours if t is not None)
    seconds = number(compiled["compile_s"]) if compiled else ""
    return (operation.title, both, against("pinocchio"), x, *map(against, beside), seconds, calls)


def _bold(x: float, bound: float | None) -> str:
    return f"**{number(x)}**" if bound is not None and x < bound else number(x)


def _losses(run: Run) -> str:
    """What is lost, one line for each kind."""
    lines = []
    if slower := sorted((x for x in run.comparisons if x.ratio < 1), key=lambda x: x.ratio):
        worst = ", ".join(
            f"{OPERATIONS[x.operation].title} of {title(x.robot)} ({x.dtype}, {x.peer}, ratio {number(x.ratio)})"
            for x in slower[:3]
        )
        lines.append(f"a peer is faster in {len(slower)} of {len(run.comparisons)} comparisons, most of all in {worst}")
    kinds: dict[str, list[str]] = {}
    for name, dtype, what, measured, target in run.missed():
        kinds.setdefault(f"{what}, target {target}", []).append(f"{name} {measured} ({dtype})")
    lines += [f"{what}: {', '.join(found)}" for what, found in kinds.items()]
    lines.append("one call at a time: JAX's dispatch alone takes longer than most of these in C++")
    if absent := [name for name, version in run.found["versions"].items() if version == "not installed"]:
        lines.append(f"not compared with {', '.join(absent)}: not installed")
    return "Known gaps:\n\n" + "\n".join(f"- {line}" for line in lines)
