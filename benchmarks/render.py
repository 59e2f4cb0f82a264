"""Tables and a picture from the JSON of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .operations import OPERATIONS
from .ours import LIBRARY
from .records import DTYPES, PEERS, SINGLE_CALL_BOUND, TITLES, Run, number, table

_INTRODUCTION = """\
# Measured speed

Written by `python -m benchmarks render`; measure again with `python -m benchmarks run`.

{machine}

Time is CPU time of the process [us per configuration], pinned to one core, the least of many short slices, all
libraries taking turns. Ours: `jax.jit(jax.vmap(f, in_axes=(None, 0, ...)))` on `(B, n)` arrays, the model an argument,
the call itself included. Pinocchio, rby1_sdk and MuJoCo are C++ or C in float64, called from Python one configuration
at a time, and what such a call costs without the work is subtracted: the same calls on a robot of one joint, or for
rby1_sdk the setters and getters. Of Pinocchio's two conventions of CRBA and ABA the faster counts, for `fk` its poses
of the joints alone, and for the gradient its analytic derivatives without the products that make a gradient of them.
frax is JAX in the same dtype and batch. "ratio" is the peer's time over ours; "must" is the least that is promised, on
RB-Y1 A.
"""


def render(found: dict[str, Any]) -> str:
    """The whole README of the results."""
    run = Run(found)
    parts = [_INTRODUCTION.format(machine=run.about())]
    parts += [_missed(run)] if "rby1a" in run.robots else []
    for robot in run.robots:
        if not robot.startswith("chain"):
            parts.append(f"## {TITLES.get(robot, robot)}\n")
            parts += [_speed(run, robot), _batches(run, robot), _compilation(run, robot), _single(run, robot)]
    if any(robot.startswith("chain") for robot in run.robots):
        parts.append(_chains(run))
    parts.append(_agreement(run))
    return "\n".join(part for part in parts if part)


def _missed(run: Run) -> str:
    """The promises that this run did not keep."""
    if not (rows := run.missed()):
        return "All promises that were measured are kept.\n"
    return "## Promises not kept\n\n" + table(("operation", "dtype", "what", "measured", "promised"), rows)


def _speed(run: Run, robot: str) -> str:
    head, rows = ["operation", "dtype", LIBRARY, *PEERS, "ratio", "must", "kept"], []
    for name in run.operations(robot):
        operation = OPERATIONS[name]
        for k, dtype in enumerate(DTYPES):
            ours = run.ours(robot, dtype, name)
            if ours is None:
                continue
            peers = [run.peer(robot, dtype, name, peer) for peer in PEERS]
            ratio = run.ratio(robot, dtype, name, operation.peer)
            must = operation.ratio[k] if operation.ratio and robot == "rby1a" else None
            row = [operation.title, dtype, number(ours), *map(number, peers), number(ratio)]
            rows.append((*row, "" if must is None else f"{must:g}", _kept(ratio, must)))
    note = f"B = {run.batch}, us per configuration; ratio to pinocchio (self-distance: to rby1_sdk):\n\n"
    return note + table(head, rows)


def _kept(ratio: float | None, must: float | None) -> str:
    return "" if ratio is None or must is None else "yes" if ratio >= must else "**no**"


def _batches(run: Run, robot: str) -> str:
    sizes = sorted({x["batch"] for x in run.pick("times", robot=robot, library=LIBRARY)})
    rows = []
    for name in run.operations(robot):
        for dtype in DTYPES:
            times = [run.time(robot, dtype, name, LIBRARY, size) for size in sizes]
            if sum(t is not None for t in times) > 1:
                rows.append((OPERATIONS[name].title, dtype, *map(number, times)))
    if not rows:
        return ""
    return "Size of the batch, us per configuration:\n\n" + table(
        ("operation", "dtype", *(f"B = {size}" for size in sizes)), rows
    )


def _compilation(run: Run, robot: str) -> str:
    rows = []
    for record in run.pick("compile", robot=robot):
        operation = OPERATIONS[record["operation"]]
        must = operation.compile_seconds if robot == "rby1a" else None
        total = record["compile_s"]
        stages = [number(record[x]) for x in ("trace_s", "lower_s", "xla_s")]
        size = [str(record["stablehlo_operations"]), str(record["hlo_instructions"])]
        bound = ("", "") if must is None else (f"{must:g}", "yes" if total <= must else "**no**")
        rows.append((operation.title, record["dtype"], *stages, number(total), *bound, *size))
    head = ("operation", "dtype", "trace", "lower", "XLA", "total", "must", "kept", "StableHLO", "HLO compiled")
    return f"Compile time at B = {run.batch}, cold, CPU seconds; number of instructions:\n\n" + table(head, rows)


def _single(run: Run, robot: str) -> str:
    rows = []
    for record in run.pick("single", robot=robot):
        factor = record["us"] / record["noop_us"]
        bound = "yes" if factor <= SINGLE_CALL_BOUND else "**no**"
        kept = bound if record["dtype"] == "float64" and robot == "rby1a" else ""
        times = (number(record["us"]), number(record["noop_us"]), number(factor))
        rows.append((OPERATIONS[record["operation"]].title, record["dtype"], *times, kept))
    if not rows:
        return ""
    note = "One eager call of the public function, wall time, against a jitted addition with the same arguments; "
    note += f"the bound is {SINGLE_CALL_BOUND:g} (float64):\n\n"
    return note + table(("operation", "dtype", "call [us]", "no-op [us]", "factor", "kept"), rows)


def _chains(run: Run) -> str:
    rows = []
    for record in run.pick("compile"):
        if not record["robot"].startswith("chain"):
            continue
        key = (record["robot"], record["dtype"], record["operation"])
        ratio = run.ratio(*key, "pinocchio")
        numbers = (record["compile_s"], record["compile_s"] / record["nv"], run.ours(*key), run.peer(*key, "pinocchio"))
        rows.append((record["operation"], record["dtype"], str(record["nv"]), *map(number, (*numbers, ratio))))
    rows.sort(key=lambda row: (row[0], row[1], int(row[2])))
    head = ("operation", "dtype", "joints", "compile [s]", "per joint [s]", "us", "pinocchio us", "ratio")
    note = f"Random revolute chains, B = {run.batch}; compile time must grow at most linearly:"
    return f"## Chains\n\n{note}\n\n" + table(head, rows)


def _agreement(run: Run) -> str:
    """How far the results of all libraries are apart, and what could not be measured."""
    rows = []
    for library in dict.fromkeys(x["library"] for x in run.found["times"]):
        for dtype in DTYPES:
            records = [x for x in run.pick("times", library=library, dtype=dtype) if "error" in x]
            if records and library != "pinocchio":
                worst = max(records, key=lambda x: x["error"])
                where = f"{worst['operation']} of {TITLES.get(worst['robot'], worst['robot'])}"
                rows.append((library, dtype, f"{worst['error']:.1e}", where))
    text = (
        "## Agreement\n\nLargest difference from Pinocchio (distances: from rby1_sdk), relative to the largest entry "
    )
    text += "of the result; C and C++ compute in float64 in both rows:\n\n"
    text += table(("library", "dtype", "difference", "in"), rows)
    failures = [f"- {x['robot']} {x['operation']} {x.get('library', '')}: {x['error']}" for x in run.found["failures"]]
    return text + ("\nNot measured:\n\n" + "\n".join(dict.fromkeys(failures)) + "\n" if failures else "")


def render_plot(found: dict[str, Any], path: Path) -> None:
    """Bars of the ratios of RB-Y1 A to the peer, with the promise as a line on each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    run = Run(found)
    names = run.operations("rby1a")
    figure, axes = plt.subplots(figsize=(9, 0.7 * len(names) + 1), layout="constrained")
    for k, dtype in enumerate(DTYPES):
        for row, name in enumerate(names):
            operation = OPERATIONS[name]
            ratio = run.ratio("rby1a", dtype, name, operation.peer)
            if ratio is None:
                continue
            y = row + 0.2 * (2 * k - 1)
            axes.barh(y, ratio, 0.36, color=f"C{k}", label=dtype if row == 0 else None)
            axes.text(ratio, y, f" {number(ratio)}", va="center", fontsize=8)
            if operation.ratio:
                axes.plot([operation.ratio[k]] * 2, [y - 0.18, y + 0.18], color="black", linewidth=2)
    axes.set(xscale="log", xlabel=f"peer's time / ours on RB-Y1 A, B = {run.batch}; black: promised")
    axes.set_yticks(range(len(names)), [OPERATIONS[name].title.replace("`", "") for name in names])
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)
