"""Golden programs: the lowered text of every operation, to prove that a change of structure changes no program.

`python -m benchmarks.programs before.json` writes a digest of each program; `python -m benchmarks.programs after.json
--against before.json` names the programs that differ. Names of functions and locations do not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp

from rbydyn_jax import Model, random_configuration, robots, testing

from .operations import OPERATIONS

BATCH = 1024
_SYMBOL = re.compile(r"@[\w.$-]+")


def robots_compared() -> dict[str, tuple[Model, str]]:
    """A robot with arms alike, an arm, and a tree with every joint type."""
    every_type = testing.random_tree(1, n=9)
    arm = robots.panda_like()
    return {
        "rby1a": (robots.rby1a(), "ee_right"),
        "arm": (arm, arm.link_names[-1]),
        "every_type": (every_type, every_type.link_names[-1]),
    }


def program(name: str, model: Model, link: str) -> str:
    """The lowered text of one operation on a batch, symbols numbered in the order of their appearance."""
    operation = OPERATIONS[name]
    q = jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(jax.random.key(0), BATCH))
    others = jnp.ones((BATCH, model.nv), q.dtype)
    arrays = [q if x == "q" else others for x in operation.inputs]
    batched = jax.vmap(operation.function(link), in_axes=(None, *(0 for _ in arrays)))
    symbols: dict[str, str] = {}
    text = jax.jit(batched).lower(model, *arrays).as_text()
    return _SYMBOL.sub(lambda found: symbols.setdefault(found[0], f"@f{len(symbols)}"), text)


def digests() -> dict[str, str]:
    """A digest of each operation on each robot; a robot without capsules has no distances."""
    return {
        f"{robot}/{name}": hashlib.sha256(program(name, model, link).encode()).hexdigest()[:16]
        for robot, (model, link) in robots_compared().items()
        for name in OPERATIONS
        if name != "self_distance" or robot == "rby1a"
    }


def main() -> None:
    """Writes the digests, and compares them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    found = {"jax": jax.__version__, **digests()}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.against:
        before = json.loads(options.against.read_text())
        different = [name for name in found if before.get(name) != found[name]]
        print(f"{len(found) - len(different)} programs are the same, {len(different)} differ", *different, sep="\n  ")
        raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
