"""Damages robot files and loads them: each is refused by a typed error, or is a model that can be computed with.

python -m tests.fuzz --count 100000 --seed 1            URDF, MJCF and xacro by turns
python -m tests.fuzz --count 1000 --kinds urdf --keep found      writes the files that break the rule to a folder
"""

from __future__ import annotations

import argparse
import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
from tqdm import tqdm

from .invariant import Outcome, examine, folder
from .mutations import mutate
from .sources import KINDS, Kind, choose

SHARES: dict[Kind, int] = {"urdf": 6, "mjcf": 2, "xacro": 2}


def run(
    kinds: list[Kind], seed: int, count: int, where: Path, bar: bool = False
) -> Iterator[tuple[Kind, int, str | bytes, Outcome]]:
    """Examines `count` damaged files; file number k of a seed is always the same."""
    turns: list[Kind] = [kind for kind in kinds for _ in range(SHARES[kind])]
    for k in tqdm(range(count), disable=not bar):
        dice = random.Random(f"{seed} {k}")
        kind = turns[k % len(turns)]
        damaged = mutate(choose(kind, dice), dice)
        yield kind, k, damaged, examine(kind, damaged, where)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", type=lambda x: x.split(","), default=list(KINDS))
    parser.add_argument("--x64", action="store_true", help="models in double precision; default is single")
    parser.add_argument("--keep", type=Path, default=None, help="folder for the files that break the rule")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)
    warnings.simplefilter("error")
    counts, slowest, broken = Counter(), 0.0, 0
    with folder() as where:
        for kind, k, damaged, outcome in run(options.kinds, options.seed, options.count, Path(where), bar=True):
            counts[kind, outcome.result] += 1
            slowest = max(slowest, outcome.seconds)
            if outcome.result in ("loaded", "refused"):
                continue
            broken += 1
            tqdm.write(f"{kind} {options.seed} {k}: {outcome.result}\n{outcome.detail[-800:]}")
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                text = damaged if isinstance(damaged, bytes) else damaged.encode("utf-8", errors="surrogatepass")
                (options.keep / f"{options.seed}_{k}.{kind}").write_bytes(text)
    for (kind, result), number in sorted(counts.items()):
        print(f"{kind:6} {result:30} {number:8}")
    print(f"slowest {slowest:.2f} s")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
