"""Two files of results of `run`: what has become slower, most of all first."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .ours import LIBRARY

LOSS = 1.10


def add_command(commands: argparse._SubParsersAction) -> None:
    """Adds `compare` to the command line."""
    compare = commands.add_parser("compare", help="two files of results: fails where the second is over 10 % slower")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--loss", type=float, default=LOSS, help="ratio of times above which it fails")


def run(arguments: argparse.Namespace) -> None:
    """Prints the ratios of all times that both files hold; ends with an error after a loss."""
    before, after = (_times(json.loads(path.read_text())) for path in (arguments.before, arguments.after))
    both = {key: after[key] / before[key] for key in before if key in after}
    if not both:
        raise SystemExit("the two files have no measurement in common")
    ordered = sorted(both.items(), key=lambda item: -item[1])
    for key, ratio in ordered:
        print(f"{ratio:6.2f}  {' '.join(map(str, key))}")
    lost = [key for key, ratio in ordered if ratio > arguments.loss]
    if lost:
        raise SystemExit(f"{len(lost)} of {len(both)} took more than {arguments.loss} times as long")


def _times(found: dict[str, Any]) -> dict[tuple[Any, ...], float]:
    """Run times and compile times of the library in a file of results."""
    names = ("robot", "dtype", "operation", "batch")
    times = {("run", *(r[n] for n in names)): r["us"] for r in found["times"] if r["library"] == LIBRARY}
    compiles = {("compile", *(r[n] for n in names)): r["compile_s"] for r in found["compile"]}
    return times | compiles
