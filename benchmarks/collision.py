"""Distances beside coal: errors and time of pairs of each kind, and of points from a robot.

Shapes and poses are random, a quarter of the poses turned by right angles; about a fifth of the pairs overlap. Where
coal and the library differ by more than 1e-9 m, numpy decides: of shapes that are apart, the distance is not larger
than that of the witness points, if these are in the shapes, nor smaller than the separation along the line through
them; of shapes that overlap, no direction of many, improved by a random search, may separate more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from .store import Store

FILE = "collision.json"
KINDS = ("capsule", "box", "cylinder", "convex_hull")
ERROR, FIELD_RATIO = 1e-9, 20.0  # what is promised
CHUNK, SHAPES = 10_000, 2_000  # pairs at a time, and how many shapes of a kind they are of


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `collision` to the command line."""
    collision = commands.add_parser("collision", help="distances of pairs and of points, beside coal")
    collision.add_argument("--count", type=int, default=100_000, help="random pairs of each kind")
    collision.add_argument("--kinds", default="", help="only these, such as capsule-box,box-convex_hull")
    collision.add_argument("--seed", type=int, default=0)
    collision.add_argument("--output", type=Path, default=results / FILE)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table; ends with an error if a promise is not kept."""
    import itertools

    import jax

    jax.config.update("jax_enable_x64", True)
    about = Store(arguments.output, keep=False).about
    found: dict[str, Any] = {**about, "count": arguments.count, "seed": arguments.seed, "pairs": {}}
    wanted = [x for x in arguments.kinds.split(",") if x]
    for first, second in itertools.combinations_with_replacement(KINDS, 2):
        name = f"{first}-{second}"
        if wanted and name not in wanted:
            continue
        found["pairs"][name] = _pairs(first, second, arguments.count, arguments.seed)
        print("   ", name, found["pairs"][name], file=sys.stderr)
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    if not wanted:
        found["field"] = _field(arguments.seed)
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    wrong = [name for name, row in found["pairs"].items() if row["ours_wrong"]]
    slow = "field" in found and found["field"]["us_coal"] / found["field"]["us"] < FIELD_RATIO
    if wrong or slow:
        raise SystemExit(f"less than promised: {', '.join(wrong) or 'the field'}")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    rows = [
        "| pair | overlap | difference where both agree | differ | of these ours proved | ours wrong | us | coal | "
        "first call [s] |",
        "|---" * 9 + "|",
    ]
    for name, r in found["pairs"].items():
        rows.append(
            f"| {name.replace('_', ' ')} | {r['overlap']:.0%} | {r['agreed_max']:.0e} m | {r['differ']} | "
            f"{r['proved']} | {r['ours_wrong']} | {r['us']:.2f} | {r['us_coal']:.2f} | {r['first_s']:.0f} |"
        )
    if (field := found.get("field")) is not None:
        rows.append(
            f"| a point, `sdf` of {field['robot']} ({field['shapes']} shapes) | | {field['agreed_max']:.0e} m | | | | "
            f"{field['us']:.3f} | {field['us_coal']:.1f} | {field['first_s']:.0f} |"
        )
    return "\n".join(rows)


def _pairs(first: str, second: str, count: int, seed: int) -> dict[str, Any]:
    import coal
    import jax
    import numpy as np

    from rbydyn_jax.collision.pair_table import is_single, pair_function
    from tests.collision.polytopes import coal_distances, coal_pairs, geometries, placed, poses

    rng = np.random.default_rng(seed)
    few = min(count, SHAPES)
    a, b = ((geometries(kind, few, rng) * -(-count // few), poses(count, rng)) for kind in (first, second))
    a, b = ((shapes[:count], T) for shapes, T in (a, b))
    function = pair_function(first, second)
    every = jax.vmap(function) if is_single(first, second) else function
    witnesses, distances = jax.jit(every), jax.jit(lambda x, y: every(x, y).distance)
    parts = [slice(k, k + CHUNK) for k in range(0, count, CHUNK)]
    given = [tuple(placed(shapes[part], T[part]) for shapes, T in (a, b)) for part in parts]
    size = max(len(jax.tree.leaves(x)[0]) for x in given[0])
    first_s, _ = _timed(lambda: distances(*given[0]))
    us = 1e6 / size * min(_timed(lambda: distances(*given[0]))[0] for _ in range(3))
    found = [jax.block_until_ready(witnesses(*x)) for x in given]
    d = np.concatenate([x.distance for x in found])
    p, q = (np.concatenate([np.stack(getattr(x, k), axis=-1) for x in found]) for k in ("point_a", "point_b"))
    spent, theirs = 0.0, []
    for part in parts:
        pairs = coal_pairs(coal, a[0][part], a[1][part], b[0][part], b[1][part])
        seconds, some = _timed(lambda pairs=pairs: coal_distances(coal, pairs))
        spent, theirs = spent + seconds, [*theirs, some]
    difference = np.abs(d - np.concatenate(theirs))
    agree = difference <= ERROR
    verdicts = [_verdict(d[k], p[k], q[k], (a[0][k], a[1][k]), (b[0][k], b[1][k]), rng) for k in np.flatnonzero(~agree)]
    return {
        "overlap": float((d < 0).mean()),
        "agreed_max": float(difference[agree].max()),
        "differ": int((~agree).sum()),
        "ours_off": max([float(x) for _, x in verdicts if x > ERROR], default=0.0),
        "ours_wrong": sum(bool(x > ERROR) for _, x in verdicts),
        "proved": sum(bool(proved) for proved, _ in verdicts),
        "us": us,
        "us_coal": 1e6 * spent / count,
        "first_s": first_s,
    }


def _support(shape: Any, T: Any, n: Any) -> Any:
    """The reach of a shape in world coordinates along directions (m, 3)."""
    import numpy as np

    local = n @ T[:3, :3]
    if shape.tag == "convex_hull":
        reach = (local @ shape.vertices.T).max(axis=1)
    elif shape.tag == "box":
        reach = np.abs(local) @ (0.5 * shape.size)
    else:
        side = np.hypot(local[:, 0], local[:, 1]) if shape.tag == "cylinder" else np.ones(len(n))
        reach = 0.5 * shape.length * np.abs(local[:, 2]) + shape.radius * side
    return n @ T[:3, 3] + reach


def _beyond(shape: Any, T: Any, x: Any) -> float:
    """How far a point is outside of a shape, or what is not less than that."""
    import numpy as np
    from scipy.spatial import ConvexHull

    local = (x - T[:3, 3]) @ T[:3, :3]
    if shape.tag == "convex_hull":
        planes = ConvexHull(shape.vertices).equations
        return max((planes[:, :3] @ local + planes[:, 3]).max(), 0.0)
    if shape.tag == "box":
        return float(np.maximum(np.abs(local) - 0.5 * shape.size, 0).max())
    along, side = max(abs(local[2]) - 0.5 * shape.length, 0.0), np.hypot(local[0], local[1])
    return max(np.hypot(along, side) - shape.radius, 0.0) if shape.tag == "capsule" else max(along, side - shape.radius)


def _verdict(d: float, p: Any, q: Any, a: tuple[Any, Any], b: tuple[Any, Any], rng: Any) -> tuple[bool, float]:
    """Whether a distance is proved right to 1e-9, and by how much another direction separates more."""
    import numpy as np

    def separation(n: Any) -> Any:
        return -_support(*a, -n) - _support(*b, n)

    known = abs(separation((p - q)[None] / d)[0] - d) < ERROR  # along the line of the points
    if known and d > 0 and max(_beyond(*a, p), _beyond(*b, q)) < ERROR and abs(np.linalg.norm(p - q) - d) < ERROR:
        return True, 0.0
    n = rng.normal(size=(4000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    best, step = n[np.argsort(-separation(n))[:16]], 0.1
    for _ in range(150):
        trial = np.concatenate([best, (best[:, None] + step * rng.normal(size=(16, 16, 3))).reshape(-1, 3)])
        trial /= np.linalg.norm(trial, axis=1, keepdims=True)
        best, step = trial[np.argsort(-separation(trial))[:16]], 0.88 * step
    more = float(separation(best).max() - d)
    return more < ERROR and (known or more > -ERROR), more


def _field(seed: int, count: int = 100_000, of_coal: int = 2_000) -> dict[str, Any]:
    import importlib

    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import collision, fk, robots
    from rbydyn_jax.model.model import single_shapes
    from tests.collision.polytopes import coal_distances, coal_shape

    model, coal = robots.rby1a(), importlib.import_module("coal")  # which has no types
    q = jnp.zeros(model.nq)
    points = np.random.default_rng(seed).uniform([-1, -1, 0], [1, 1, 2], (count, 3))
    field = jax.jit(lambda q, x: collision.sdf(model, q, x).distance)
    given = jnp.asarray(points)
    first_s, _ = _timed(lambda: field(q, given))
    runs = [_timed(lambda: field(q, given)) for _ in range(3)]
    poses, shapes = np.asarray(fk(model, q)), single_shapes(model)
    described: list[Any] = [shape.described() for shape in shapes]
    placed = []
    for (geometry, origin), link in zip(described, model.tree.shape_links, strict=True):
        T = poses[link] @ origin
        length = getattr(geometry, "length", 0.0)
        own = coal.Capsule(geometry.radius, length) if geometry.tag != "box" else coal_shape(coal, geometry)
        placed.append((own, coal.Transform3s(T[:3, :3], T[:3, 3])))
    dot = coal.Sphere(0.0)
    pairs = [(dot, coal.Transform3s(np.eye(3), x), *shape) for x in points[:of_coal] for shape in placed]
    seconds, d = _timed(lambda: coal_distances(coal, pairs))
    difference = np.abs(np.asarray(runs[0][1])[:of_coal] - d.reshape(of_coal, -1).min(axis=1))
    return {
        "robot": "RB-Y1 A",
        "shapes": len(placed),
        "points": count,
        "agreed_max": float(difference.max()),
        "us": 1e6 * min(s for s, _ in runs) / count,
        "us_coal": 1e6 * seconds / of_coal,
        "first_s": first_s,
    }


def _timed(f: Any) -> tuple[float, Any]:
    import jax

    started = time.process_time()
    result = jax.block_until_ready(f())
    return time.process_time() - started, result
