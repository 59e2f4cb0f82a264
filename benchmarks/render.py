"""The page of a run: tables, with what is lost in the same place as what is won."""

from __future__ import annotations

from collections.abc import Iterable

from .case import SCALABLE
from .operations import OPERATIONS
from .ours import LIBRARY
from .peers import IN_JAX
from .plans import DTYPES, REFERENCE
from .records import DISAGREEMENT, FLAT_BOUND, SINGLE_CALL_BOUND, Run, number, table, title

_INTRODUCTION = """\
# Measured speed

Written by `python -m benchmarks render`; measure again with `python -m benchmarks run`.

{about}

Time is CPU time of the process [us per configuration], pinned to one core, the minimum of many short slices, all
libraries taking turns. Ours: `jax.jit(jax.vmap(f, in_axes=(None, 0, ...)))` on `(B, n)` arrays, the model an argument,
the call itself included{mapped}. Pinocchio, rby1_sdk and MuJoCo are C++ or C in float64, called from Python one
configuration at a time, and what such a call costs without the work is subtracted: the same calls on a robot of one
joint, or for rby1_sdk the setters and getters. Of Pinocchio's two conventions of CRBA and ABA the faster counts, for
`fk` its poses of the joints alone, and for the gradients its Jacobian or its analytic derivatives without the products
that make a gradient of them. frax, MJX and JaxSim are JAX in the same dtype and batch, without XLA:CPU's fusion
emitters, which slow them down (MJX a thousand times); derivatives are by `jax.jacfwd` where a library has none. pyroki
is in no package index, so it is not here. A ratio is the peer's time over ours: below 1, **in bold**, the peer is
faster. "must" is the least that is promised, on RB-Y1 A. RB-Y1 A and the random chains and binary trees are built by
the library, Panda, G1 and Talos come from the package example-robot-data; all stand on a fixed base, and the peers read
the URDF that `to_urdf` writes.
"""

_FLOOR = """\
Arithmetic: operations on one configuration, as the program is traced; the time they take at the measured peak of one
core ({peaks}); and the share of that peak that is reached (B = {batch}):
"""


def render(run: Run, pictures: Iterable[tuple[str, str]] = ()) -> str:
    """The whole page; `pictures` are file names and captions."""
    largest = min((x["batch"] for x in run.pick("compile", mapped=True)), default=None)
    mapped = "" if largest is None else f"; B = {largest} through `map_batch`"
    parts = [_INTRODUCTION.format(about=run.about(), mapped=mapped), _balance(run)]
    parts += [_missed(run)] if "rby1a" in run.robots else []
    parts += [f"![{caption}]({name})\n" for name, caption in pictures]
    for robot in run.robots:
        parts.append(f"## {title(robot)}\n")
        parts += [f(run, robot) for f in (_speed, _batches, _compilation, _single, _floor)]
    parts += [_scaled(run), _agreement(run)]
    return "\n".join(part for part in parts if part)


def _balance(run: Run) -> str:
    """How often a peer is faster, and where."""
    slower = sorted((x for x in run.comparisons if x.ratio < 1), key=lambda x: x.ratio)
    text = f"## Won and lost\n\nOf {len(run.comparisons)} comparisons {len(slower)} are lost.\n"
    rows = [(OPERATIONS[x.operation].title, title(x.robot), x.dtype, x.peer, f"**{number(x.ratio)}**") for x in slower]
    return text + ("\n" + table(("operation", "robot", "dtype", "peer", "ratio"), rows) if rows else "")


def _missed(run: Run) -> str:
    """The promises that this run did not keep."""
    if not (rows := run.missed()):
        return "All promises that were measured are kept.\n"
    return "## Promises not kept\n\n" + table(("operation", "dtype", "what", "measured", "promised"), rows)


def _speed(run: Run, robot: str) -> str:
    head = ["operation", "dtype", LIBRARY, *run.peers, "ratio", "must", "kept"]
    rows = []
    for name, dtype, ours in _measured(run, robot):
        operation = OPERATIONS[name]
        peers = [_beside(run.peer(robot, dtype, name, peer), ours) for peer in run.peers]
        ratio = run.ratio(robot, dtype, name, operation.peer)
        promised = operation.ratio if robot == "rby1a" else None
        must = promised[DTYPES.index(dtype)] if promised else None
        kept = "" if ratio is None or must is None else "yes" if ratio >= must else "**no**"
        lost = ratio is not None and ratio < 1
        row = [operation.title, dtype, number(ours), *peers, f"**{number(ratio)}**" if lost else number(ratio)]
        rows.append((*row, "" if must is None else f"{must:g}", kept))
    note = f"B = {REFERENCE}, us per configuration; ratio to pinocchio (self-distance: to rby1_sdk):\n\n"
    return note + table(head, rows)


def _beside(peer: float | None, ours: float) -> str:
    return f"**{number(peer)}**" if peer is not None and peer < ours else number(peer)


def _measured(run: Run, robot: str) -> Iterable[tuple[str, str, float]]:
    """Operations and dtypes, and our time."""
    for name in run.operations(robot):
        for dtype in DTYPES:
            if (ours := run.ours(robot, dtype, name)) is not None:
                yield name, dtype, ours


def _batches(run: Run, robot: str) -> str:
    sizes = run.batches(robot)
    times, memory = [], []
    for name, dtype, _ in _measured(run, robot):
        row = [run.time(robot, dtype, name, LIBRARY, size) for size in sizes]
        if sum(t is not None for t in row) > 1:
            flat = run.flat(robot, dtype, name)
            factor = "" if flat is None else number(flat[1]) if flat[1] <= FLAT_BOUND else f"**{number(flat[1])}**"
            times.append((OPERATIONS[name].title, dtype, *map(number, row), factor))
        programs = [run.compilation(robot, dtype, name, size) for size in sizes]
        bytes_ = [None if x is None else (x["temporary_bytes"] + x["output_bytes"]) / 1e6 for x in programs]
        seconds = [None if x is None else x["compile_s"] for x in programs]
        memory.append((OPERATIONS[name].title, dtype, *map(number, bytes_), *map(number, seconds)))
    head = ["operation", "dtype", *(f"B = {size}" for size in sizes)]
    text = ""
    if times:
        text += f"Size of the batch, us per configuration; the last over that at {REFERENCE} must be at most "
        text += f"{FLAT_BOUND:g}:\n\n" + table([*head, "factor"], times) + "\n"
    text += "Memory for temporaries and results [MB], and compile time [s], by size of the batch:\n\n"
    return text + table([*head, *(f"[s] {size}" for size in sizes)], memory)


def _compilation(run: Run, robot: str) -> str:
    compiled = [peer for peer in run.peers if peer in IN_JAX]
    rows = []
    for name, dtype, _ in _measured(run, robot):
        record = run.compilation(robot, dtype, name)
        if record is None:
            continue
        must = OPERATIONS[name].compile_seconds if robot == "rby1a" else None
        total = record["compile_s"]
        stages = [number(record[x]) for x in ("trace_s", "lower_s", "xla_s")]
        bound = ("", "") if must is None else (f"{must:g}", "yes" if total <= must else "**no**")
        size = [str(record["stablehlo_operations"]), str(record["hlo_instructions"])]
        here = {"robot": robot, "dtype": dtype, "operation": name, "batch": REFERENCE}
        found = {x["library"]: x["compile_s"] for x in run.pick("times", **here) if "compile_s" in x}
        peers = [_beside(found.get(peer), total) for peer in compiled]
        rows.append((OPERATIONS[name].title, dtype, *stages, number(total), *bound, *size, *peers))
    head = ("operation", "dtype", "trace", "lower", "XLA", "total", "must", "kept", "StableHLO", "HLO compiled")
    note = f"Compile time at B = {REFERENCE}, cold, CPU seconds; number of instructions; totals of the peers:\n\n"
    return note + table((*head, *compiled), rows)


def _single(run: Run, robot: str) -> str:
    called = [peer for peer in run.peers if peer not in IN_JAX]
    rows = []
    for record in run.pick("single", robot=robot):
        name, factor = record["operation"], record["us"] / record["noop_us"]
        bound = "yes" if factor <= SINGLE_CALL_BOUND else "**no**"
        kept = bound if record["dtype"] == "float64" and robot == "rby1a" else ""
        peers = [_beside(run.peer_call(robot, name, peer), record["us"]) for peer in called]
        times = (number(record["us"]), number(record["noop_us"]), number(factor))
        rows.append((OPERATIONS[name].title, record["dtype"], *times, kept, *peers))
    if not rows:
        return ""
    note = "One eager call of the public function, wall time, against a jitted addition with the same arguments; the "
    note += f"bound is {SINGLE_CALL_BOUND:g} (float64). Beside it one call of the peers from Python, in float64:\n\n"
    return note + table(("operation", "dtype", "call [us]", "no-op [us]", "factor", "kept", *called), rows)


def _floor(run: Run, robot: str) -> str:
    rows = []
    for name, dtype, ours in _measured(run, robot):
        if record := run.compilation(robot, dtype, name):
            least = run.floor(dtype, record["flops"])
            share = f"{100 * least / ours:.0f} %"
            rows.append((OPERATIONS[name].title, dtype, str(record["flops"]), number(least), number(ours), share))
    peaks = ", ".join(f"{x / 1e9:.0f} Gflop/s in {dtype}" for dtype, x in run.found["peak"].items())
    head = ("operation", "dtype", "operations", "floor [us]", "measured [us]", "share")
    return _FLOOR.format(peaks=peaks, batch=REFERENCE) + "\n" + table(head, rows)


def _scaled(run: Run) -> str:
    rows = []
    for robot in run.scaled:
        kind, n = SCALABLE.fullmatch(robot).groups()  # type: ignore[union-attr]
        for name, dtype, ours in _measured(run, robot):
            record, ratio = run.compilation(robot, dtype, name), run.ratio(robot, dtype, name, "pinocchio")
            seconds = record["compile_s"] if record else None
            compiled = (
                number(seconds),
                number(seconds and seconds / int(n)),
                str(record and record["hlo_instructions"]),
            )
            peer = _beside(run.peer(robot, dtype, name, "pinocchio"), ours)
            lost = f"**{number(ratio)}**" if ratio is not None and ratio < 1 else number(ratio)
            rows.append((name, kind, dtype, n, *compiled, number(ours), number(ours / int(n)), peer, lost))
    if not rows:
        return ""
    rows.sort(key=lambda row: (row[:3], int(row[3])))
    head = ("operation", "kind", "dtype", "joints", "compile [s]", "per joint [s]", "HLO", "us", "per joint")
    note = f"Random chains and binary trees of hinges, B = {REFERENCE}; compile time must grow at most linearly:"
    return f"## Chains and trees\n\n{note}\n\n" + table((*head, "pinocchio us", "ratio"), rows)


def _agreement(run: Run) -> str:
    """How far the results of all libraries are apart, and what could not be measured."""
    text = (
        "## Agreement\n\nLargest difference from Pinocchio (distances: from rby1_sdk) on four configurations, relative "
        "to the largest entry of the result; C and C++ compute in float64 in both rows. In bold what is not the same:"
        "\n\n"
    )
    libraries = [LIBRARY, *(peer for peer in run.peers if peer != "pinocchio")]
    rows = []
    for robot in (*run.robots, *run.scaled):
        for name, dtype, _ in _measured(run, robot):
            errors: dict[str, float] = {}
            for x in run.pick("times", robot=robot, dtype=dtype, operation=name):
                if "error" in x:
                    errors[x["library"]] = max(x["error"], errors.get(x["library"], 0.0))
            told = [_difference(errors.get(library), DISAGREEMENT[dtype]) for library in libraries]
            rows.append((OPERATIONS[name].title, title(robot), dtype, *told))
    text += table(("operation", "robot", "dtype", *libraries), rows)
    failures = [f"- {x['robot']} {x['operation']} {x.get('library', '')}: {x['error']}" for x in run.found["failures"]]
    absent = [name for name, version in run.found["versions"].items() if version == "not installed"]
    failures += [f"- {name}: not installed" for name in absent]
    return text + ("\nNot measured:\n\n" + "\n".join(dict.fromkeys(failures)) + "\n" if failures else "")


def _difference(error: float | None, bound: float) -> str:
    if error is None:
        return ""
    return f"{error:.0e}" if error <= bound else f"**{error:.0e}**"
