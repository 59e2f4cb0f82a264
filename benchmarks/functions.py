"""Every function of a state, value and gradient, on several robots: time beside Pinocchio, arithmetic beside its need.

Each robot and dtype is a process of its own on one core; each record is written as soon as it is there, and a run that
is stopped goes on where it was. Compiling is nearly all of the time: with `--cache` programs are kept between runs.
Pinocchio is called in a loop, in float64; of a gradient its matrix of derivatives is timed, without the product that
makes the gradient of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .case import TITLES
from .fresh import KEPT_MEMORY, records
from .function_table import GRADIENT, NAMES
from .store import Store
from .summary import insert

ROBOTS = ("rby1a", "panda", "g1", "talos_floating", "ur5", "anymal", "icub", "xarm7", "vega", "every_type")
BATCH = 1024
FASTER, ARITHMETIC = 1.5, 3.0  # what is asked of functions that Pinocchio has, and of all others
BEGIN, END = "<!-- functions -->", "<!-- /functions -->"
_SHOWN = 25  # losses on the page


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `functions` to the command line."""
    command = commands.add_parser("functions", help="every function and gradient; Pinocchio; arithmetic needed")
    command.add_argument("--robots", type=lambda s: s.split(","), default=list(ROBOTS))
    command.add_argument("--dtypes", type=lambda s: s.split(","), default=["float64", "float32"])
    command.add_argument("--functions", type=lambda s: s.split(","), default=list(NAMES))
    command.add_argument("--again", action="store_true", help="measure these again where results are there")
    command.add_argument("--render", action="store_true", help="measure nothing: the tables of what is there")
    command.add_argument("--docs", action="store_true", help="write the section of docs/performance.md")
    command.add_argument("--seconds", type=float, default=0.1, help="CPU time that each contestant gets")
    command.add_argument("--cache", type=Path, default=None, help="folder of compiled programs")
    command.add_argument("--output", type=Path, default=None, help="default: functions_JAX.json in results")
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures what is not there yet, writes JSON, prints tables."""
    about = Store(Path("unused"), keep=False).about
    output = arguments.output or arguments.results / f"functions_{about['versions']['jax']}.json"
    found: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {**about, "functions": []}
    if not arguments.render:
        for robot in arguments.robots:
            for dtype in arguments.dtypes:
                _measure(arguments, found, output, robot, dtype)
    text = table(found)
    print(text)
    if arguments.docs:
        every = [json.loads(path.read_text()) for path in sorted(arguments.results.glob("functions_*.json"))]
        page = Path(__file__).parent.parent / "docs" / "performance.md"
        insert(page, "\n".join(map(section, every)), BEGIN, END)


def _measure(arguments: argparse.Namespace, found: dict[str, Any], output: Path, robot: str, dtype: str) -> None:
    present = {r["function"] for r in found["functions"] if (r["robot"], r["dtype"]) == (robot, dtype)}
    todo = [x for x in NAMES if x in arguments.functions and (arguments.again or x not in present)]
    if not todo:
        return
    code = f"from benchmarks.functions import measure; measure{(robot, dtype, todo, arguments.seconds)!r}"
    environment = {
        **{f"{x}_NUM_THREADS": "1" for x in ("OMP", "OPENBLAS", "MKL")},
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        **KEPT_MEMORY,
    }
    if arguments.cache:
        environment |= {"JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_COMPILATION_CACHE_DIR": str(arguments.cache)}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"}
    for record in records(code, dtype, **environment):
        found["versions"] |= record.pop("versions")
        key = record["robot"], record["dtype"], record["function"]
        others = [r for r in found["functions"] if (r["robot"], r["dtype"], r["function"]) != key]
        found["functions"] = [*others, record]
        output.write_text(json.dumps(found, indent=1) + "\n")
        print("   ", record, file=sys.stderr)


def measure(robot: str, dtype: str, names: list[str], seconds: float) -> None:
    """Prints time, arithmetic and agreement of each function or gradient."""
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    import jax

    from .case import make_case
    from .function_table import needed, operation
    from .ours import LIBRARY, Ours
    from .peers import pinocchio
    from .timing import cpu_seconds
    from .worker import contest

    case = make_case(robot, dtype, BATCH)
    jax.config.update("jax_enable_x64", dtype == "float64")  # some import of a peer has set it
    for name in names:
        record: dict[str, Any] = {"robot": robot, "dtype": dtype, "function": name, "nv": case.model.nv}
        record["versions"] = {"pinocchio": pinocchio.version()}
        try:
            ours = Ours(case, name, operation(name))
            value = Ours(case, name, operation(name.removesuffix(GRADIENT)))
            result = value.result_bytes() // np.dtype(dtype).itemsize
            record |= {"operations": ours.flops(), "needed": round(needed(name, case.model, case.link, result))}
            _, record["compile_s"] = cpu_seconds(lambda ours=ours: ours.compile(BATCH))
            for told in contest([ours.entry(BATCH), *pinocchio.entries(case, [name], [BATCH])], seconds):
                if told["library"] == LIBRARY:
                    record |= {key: told[key] for key in ("us", "error") if key in told}
                elif told["us"] > 0:  # what is left after that of a loop without the call
                    record["pinocchio_us"] = min(told["us"], record.get("pinocchio_us", told["us"]))
                    record["is_compared"] = record.get("is_compared", False) or "error" in told
            if not record.pop("is_compared", False):
                record.pop("error", None)
        except Exception as error:  # one broken function must not take the others with it
            record["failure"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(record), flush=True)
        jax.clear_caches()


def verdict(record: dict[str, Any]) -> float:
    """How far a function is from what is asked of it: below 1 it is lost."""
    if "pinocchio_us" in record:
        return record["pinocchio_us"] / record["us"] / FASTER
    return ARITHMETIC * record["needed"] / record["operations"] if record["operations"] else 1.0


def table(found: dict[str, Any]) -> str:
    """Every function on every robot as Markdown, the worst losses first."""
    measured = [r for r in found["functions"] if "us" in r]
    failed = [
        f"- {r['robot']} {r['dtype']} `{r['function']}`: {r['failure']}" for r in found["functions"] if "us" not in r
    ]
    return "\n".join([*_rows(sorted(measured, key=verdict)), *failed])


def _rows(measured: list[dict[str, Any]]) -> list[str]:
    head = "| | robot | dtype | us | Pinocchio [us] | x | operations | needed | ratio | compile [s] |"
    return [head, "|---|---|---" + "|---:" * 7 + "|", *map(_row, measured)]


def _row(r: dict[str, Any]) -> str:
    peer, x = r.get("pinocchio_us"), ""
    if peer is not None:
        x = _bold(peer / r["us"], peer / r["us"] < FASTER)
    ratio = r["operations"] / r["needed"]
    is_lost = peer is None and verdict(r) < 1
    cells = [
        _title(r["function"]),
        TITLES.get(r["robot"], r["robot"]),
        r["dtype"],
        f"{r['us']:.2f}",
        "" if peer is None else f"{peer:.2f}",
        x,
        f"{r['operations']:,}",
        f"{r['needed']:,}",
        _bold(ratio, is_lost),
        f"{r['compile_s']:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _title(function: str) -> str:
    name = re.sub(f"{GRADIENT}$", "", function)
    return f"gradient of `{name}`" if name != function else f"`{name}`"


def _bold(x: float, lost: bool) -> str:
    return f"**{x:.2f}**" if lost else f"{x:.2f}"


def section(found: dict[str, Any]) -> str:
    """The page's lines about one version of jax: how many are lost on each robot, and the worst."""
    measured = [r for r in found["functions"] if "us" in r]
    lines = [f"jax {found['versions']['jax']}, {found['machine']['cpu']}, {found['date']}:", ""]
    lines += ["| robot | dtype | compared with Pinocchio | below 1.5x | slower | others | over 3x the arithmetic |"]
    lines += ["|---|---" + "|---:" * 5 + "|"]
    for robot, dtype in dict.fromkeys((r["robot"], r["dtype"]) for r in measured):
        here = [r for r in measured if (r["robot"], r["dtype"]) == (robot, dtype)]
        beside = [r for r in here if "pinocchio_us" in r]
        others = [r for r in here if "pinocchio_us" not in r]
        slower = sum(r["pinocchio_us"] < r["us"] for r in beside)
        counts = [len(beside), sum(verdict(r) < 1 for r in beside), slower]
        counts += [len(others), sum(verdict(r) < 1 for r in others)]
        lines.append(f"| {TITLES.get(robot, robot)} | {dtype} | " + " | ".join(map(str, counts)) + " |")
    worst = [r for r in sorted(measured, key=verdict) if verdict(r) < 1]
    lines += ["", f"The worst of the {len(worst)} entries that miss a target:", ""] if worst else []
    return "\n".join([*lines, *(_rows(worst[:_SHOWN]) if worst else []), ""])
