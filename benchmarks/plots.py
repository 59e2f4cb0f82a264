"""Pictures of a run, written beside its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .case import SCALABLE
from .operations import OPERATIONS
from .ours import LIBRARY
from .plans import DTYPES, REFERENCE
from .records import Run, number, title


def plot(run: Run, folder: Path) -> list[tuple[str, str]]:
    """Writes the pictures; returns their names and captions. Without matplotlib there are none."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    pictures: dict[str, tuple[Callable[[Run], Any], str]] = {
        "ratios.png": (_ratios, "Time of the peers over ours, by operation"),
        "batches.png": (_batches, "Time per configuration against the size of the batch"),
        "scaling.png": (_scaling, "Compile time and run time against the number of joints"),
        "floor.png": (_floors, "Share of the measured peak of arithmetic"),
    }
    written = []
    for name, (draw, caption) in pictures.items():
        if (figure := draw(run)) is not None:
            figure.savefig(folder / name, dpi=110)
            written.append((name, caption))
    return written


def _figure(columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _name(operation: str) -> str:
    return OPERATIONS[operation].title.replace("`", "")


def _ratios(run: Run) -> Any:
    """A row for each operation on each robot; a mark for each peer, right of the line where we are faster."""
    robots = [x for x in run.robots if run.operations(x)]
    if not run.comparisons or not robots:
        return None
    rows = [(robot, name) for robot in robots for name in run.operations(robot)]
    figure, (axes,) = _figure(1, 9, 1.4 + 0.27 * len(rows))
    peers = [x for x in run.peers if any(c.peer == x for c in run.comparisons)]
    for c in run.comparisons:
        if c.robot not in robots:
            continue
        k, full = peers.index(c.peer), c.dtype == "float64"
        place = rows.index((c.robot, c.operation)) + (-0.12 if full else 0.12)
        axes.plot(c.ratio, place, "o" if full else "^", ms=5, color=f"C{k}", mfc=f"C{k}" if full else "none")
    for k, peer in enumerate(peers):
        axes.plot([], [], "o", color=f"C{k}", label=peer)
    axes.plot([], [], "^", color="black", mfc="none", label="in float32")
    promised = [
        (must, row + (-0.12, 0.12)[d])
        for row, (robot, name) in enumerate(rows)
        for d, must in enumerate(OPERATIONS[name].ratio or ())
        if robot == "rby1a"
    ]
    if promised:
        axes.plot(*zip(*promised, strict=True), "|", color="black", ms=9, label="promised (Pinocchio, rby1_sdk)")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel=f"peer's time / ours, B = {REFERENCE}; in the red part the peer is faster")
    left = min(0.5, *(0.7 * c.ratio for c in run.comparisons))
    axes.set_xlim(left, None)
    axes.axvspan(left, 1.0, color="C3", alpha=0.08)
    axes.set_yticks(range(len(rows)), [f"{title(robot)}: {_name(name)}" for robot, name in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", alpha=0.2)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    return figure


def _batches(run: Run) -> Any:
    """Lines of our time for each operation, with Pinocchio's as a dotted one of the same colour."""
    if "rby1a" not in run.robots or len(sizes := run.batches("rby1a")) < 2:
        return None
    figure, (axes,) = _figure(1, 9, 5.5)
    k = 0
    for name in run.operations("rby1a"):
        times = [(size, run.time("rby1a", "float64", name, LIBRARY, size)) for size in sizes]
        shown = [(size, t) for size, t in times if t is not None]
        if len(shown) < 2:
            continue
        axes.plot(*zip(*shown, strict=True), "o-", color=f"C{k}", label=_name(name))
        peer = run.peer("rby1a", "float64", name, OPERATIONS[name].peer)
        if peer is not None:
            axes.axhline(peer, color=f"C{k}", linestyle=":", linewidth=1)
        k += 1
    axes.plot([], [], ":", color="black", label="Pinocchio or rby1_sdk")
    axes.set(xscale="log", yscale="log", xlabel="configurations in a batch", ylabel="us per configuration, float64")
    axes.set_title("RB-Y1 A, one core")
    axes.legend(fontsize=8)
    return figure


def _scaling(run: Run) -> Any:
    """Compile time, and run time beside Pinocchio's, of chains and trees."""
    if not run.scaled:
        return None
    figure, (left, right) = _figure(2, 11, 4.5)
    lines: dict[tuple[str, str], list[str]] = {}
    for robot in run.scaled:
        for name in run.operations(robot):
            lines.setdefault((name, SCALABLE.fullmatch(robot)[1]), []).append(robot)  # type: ignore[index]
    for k, ((name, kind), robots) in enumerate(lines.items()):
        sizes = [int(SCALABLE.fullmatch(x)[2]) for x in robots]  # type: ignore[index]
        compiled = [run.compilation(x, "float64", name) for x in robots]
        left.plot(sizes, [x["compile_s"] if x else None for x in compiled], "o-", color=f"C{k}")
        right.plot(sizes, [run.ours(x, "float64", name) for x in robots], "o-", color=f"C{k}", label=f"{name}, {kind}")
        peers = [run.peer(x, "float64", name, "pinocchio") for x in robots]
        right.plot(sizes, peers, "x:", color=f"C{k}", linewidth=1)
    right.plot([], [], "x:", color="black", label="Pinocchio")
    for axes in (left, right):
        sizes = sorted({int(SCALABLE.fullmatch(x)[2]) for x in run.scaled})  # type: ignore[index]
        axes.set_xticks([x for x in sizes if x + 1 not in sizes])
    left.set(xlabel="joints", ylabel="compile [CPU s]", title=f"compile, float64, B = {REFERENCE}", ylim=(0, None))
    right.set(xlabel="joints", ylabel="us per configuration", title="run")
    right.set_yscale("log")
    right.legend(fontsize=8)
    return figure


def _floors(run: Run) -> Any:
    """The share of the peak that each operation on RB-Y1 A reaches."""
    names = run.operations("rby1a") if "rby1a" in run.robots else []
    if not names:
        return None
    figure, (axes,) = _figure(1, 9, 1 + 0.4 * len(names))
    for d, dtype in enumerate(DTYPES):
        for row, name in enumerate(names):
            record, ours = run.compilation("rby1a", dtype, name), run.ours("rby1a", dtype, name)
            if record and ours:
                share = 100 * run.floor(dtype, record["flops"]) / ours
                axes.barh(row + 0.2 * (2 * d - 1), share, 0.36, color=f"C{d}")
                axes.text(share, row + 0.2 * (2 * d - 1), f" {number(share)} %", va="center", fontsize=8)
    for d, dtype in enumerate(DTYPES):
        if dtype in run.found["peak"]:
            peak = run.found["peak"][dtype] / 1e9
            axes.barh([0], [0], color=f"C{d}", label=f"{dtype}: peak {peak:.0f} Gflop/s")
    axes.set(xlabel=f"arithmetic of the traced program / measured peak [%], RB-Y1 A, B = {REFERENCE}")
    axes.set_yticks(range(len(names)), [_name(name) for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.margins(x=0.12)
    figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    return figure
