"""Compares every core function with Pinocchio and MuJoCo on every robot at hand, and prints tables of the errors.

pip install rbydyn_jax[test,robots]
python -m tests.robots --results robots.jsonl          a line for each robot; those in the file are not run again
python -m tests.robots --results robots.jsonl --table  the tables alone
python -m tests.robots --only rby1m --count 10         robots by a part of their names

The vendor's RB-Y1 files come from the folder that the variable RBYDYN_RBY1_URDF_DIR names. Compiling is nearly all of
the time, up to minutes for a large robot; small ones come first.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from tqdm import tqdm

from .comparison import compare
from .sources import Robot, robots
from .tables import BOUND, tables


def run(robot: Robot, count: int) -> dict[str, Any]:
    """The errors of one robot, as a line of JSON."""
    out: dict[str, Any] = {"source": robot.source, "name": robot.name, "configurations": count}
    try:
        model, twin, note = robot.build()
        if not (model.nv and np.asarray(model.inertias)[:, 0].any()):
            return out | {"failure": "nothing with mass moves"}
        errors, left_out = compare(model, twin, count)
    except Exception as error:
        lines = traceback.format_exception_only(error)
        return out | {"failure": lines[0].strip()[:300]}
    finally:
        jax.clear_caches()
    notes = [x for x in (note, left_out) if x]
    return out | {"bodies": model.nb, "notes": notes, "errors": {f"{f} {e}": x for (f, e), x in errors.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.robots", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="configurations of each robot")
    parser.add_argument("--only", default="", help="part of the names")
    parser.add_argument("--results", type=Path, default=None, help="file of one line of JSON for each robot")
    parser.add_argument("--table", action="store_true", help="print the tables of the results, and run nothing")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    found: list[dict[str, Any]] = []
    if options.results and options.results.exists():
        found = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(x["source"], x["name"]) for x in found}
    left = [] if options.table else [r for r in robots() if options.only in r.name and (r.source, r.name) not in done]
    for robot in (bar := tqdm(left)):
        bar.set_description(robot.name)
        result = run(robot, options.count)
        found.append(result)
        for function, error in result.get("errors", {}).items():
            if not error <= BOUND:
                tqdm.write(f"{robot.source} {robot.name}: {function} {error:.1e}")
        if "failure" in result:
            tqdm.write(f"{robot.source} {robot.name}: {result['failure']}")
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")
    print(tables(found))
    raise SystemExit(any(not e <= BOUND for x in found for e in x.get("errors", {}).values()))


if __name__ == "__main__":
    main()
