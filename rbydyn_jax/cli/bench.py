"""``rbydyn bench``: how fast the algorithms are on a robot file, and how exact they are in float32."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._errors import ModelError
from ..algorithms.aba import aba
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import rnea
from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import fk
from ..collision import signed_distances
from ..model.model import Model
from ..model.states import random_states
from ..precision import AlgorithmPrecision, PrecisionReport, precision_report
from .source import load

_REPEATS, _SECONDS = 5, 0.1  # minimum of this many runs, and of as many as fit into this time


def speed(robot: str, batches: Sequence[int], dtype: str = "float64", seed: int = 0, as_json: bool = False) -> int:
    """Prints how long the algorithms take on this machine, alone and in batches, and to compile; returns 0.

    Args:
        robot: A file or a name.
        batches: Sizes; one configuration is an eager call.
        dtype: `"float64"` or `"float32"`.
        seed: Seed of the random states.
        as_json: Whether to print a JSON document instead of a table.

    Raises:
        ModelError: The robot has no joint that moves.
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read or describes no robot.
    """
    with jax.enable_x64(dtype == "float64"):
        model = load(robot)
        if not model.nv:
            raise ModelError(f"{model.name} has no joint that moves")
        device = jax.devices()[0].device_kind
        if not as_json:
            print(f"{model.name}, {model.nv} degrees of freedom, {dtype} on {device}")
            print("time of each configuration [us] by size of the batch, and to compile for the largest [s]:\n")
            print(f"{'algorithm':26}{'compile [s]':>13}" + "".join(f"{f'B = {size}':>12}" for size in batches))
        rows = []
        for row in _speeds(model, batches, seed):
            rows.append(row)
            if not as_json:
                times = "".join(f"{row['us'][str(size)]:>12.4g}" for size in batches)
                print(f"{row['name']:26}{row['compile_s']:>13.2f}{times}", flush=True)
    if as_json:
        facts = {"name": model.name, "nv": model.nv, "dtype": dtype, "device": device, "algorithms": rows}
        print(json.dumps(facts, indent=2))
    return 0


def precision(robot: str, samples: int, seed: int = 0, as_json: bool = False) -> int:
    """Prints the errors of float32 against float64, the condition of M, and a recommendation; returns 0.

    Args:
        robot: A file or a name.
        samples: Number of random states.
        seed: Their seed.
        as_json: Whether to print a JSON document instead of tables.

    Raises:
        ModelError: The robot has no joint that moves.
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read or describes no robot.
    """
    with jax.enable_x64(True):
        report = precision_report(load(robot), jax.random.key(seed), samples)
    print(json.dumps(_facts(report), indent=2) if as_json else report)
    return 0


def _speeds(model: Model, batches: Sequence[int], seed: int) -> Iterator[dict[str, Any]]:
    q, v, a = random_states(model, jax.random.key(seed), max(batches))
    link = model.link_names[model.tree.principal_links[max(range(model.nb), key=lambda i: len(model.tree.path(i)))]]

    def loss(model: Model, q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
        return 0.5 * jnp.sum(rnea(model, q, v, a) ** 2)

    algorithms: dict[str, tuple[Callable, tuple[jax.Array, ...]]] = {
        "fk": (fk, (q,)),
        f"jacobian of {link}": (lambda model, q: jacobian(model, q, link), (q,)),
        "rnea": (rnea, (q, v, a)),
        "gradient through rnea": (jax.jit(jax.grad(loss, argnums=(1, 2, 3))), (q, v, a)),
        "crba": (crba, (q,)),
        "aba": (aba, (q, v, a)),
    }
    if model.tree.shape_links:
        algorithms["signed_distances"] = (signed_distances, (q,))
    for name, (f, arrays) in algorithms.items():
        times, compile_time = {}, math.nan
        for size in batches:
            given = tuple(x[0] if size == 1 else x[:size] for x in arrays)
            run = f if size == 1 else jax.jit(jax.vmap(f, in_axes=(None, *(0 for _ in given))))
            started = time.perf_counter()
            jax.block_until_ready(run(model, *given))
            compile_time = time.perf_counter() - started
            times[str(size)] = 1e6 * _least_time(lambda run=run, given=given: run(model, *given)) / size
        yield {"name": name, "compile_s": compile_time, "us": times}


def _least_time(run: Callable[[], Any]) -> float:
    """The minimum wall time of one run [s]."""
    times: list[float] = []
    while len(times) < _REPEATS or sum(times) < _SECONDS:
        started = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - started)
    return min(times)


def _facts(report: PrecisionReport) -> dict[str, Any]:
    """The report as plain data; what is infinite or undefined is None."""

    def one(x: AlgorithmPrecision) -> dict[str, Any]:
        errors = {name: _finite(error) for name, error in zip(x.elements, x.errors, strict=True)}
        return {"name": x.name, "median": _finite(x.median), "worst": _finite(x.worst), "errors": errors}

    return {
        "name": report.robot,
        "samples": report.samples,
        "algorithms": [one(x) for x in report.algorithms],
        "condition": {"median": _finite(report.condition_median), "worst": _finite(report.condition_worst)},
        "light_joint": report.light_joint,
        "heavy_joint": report.heavy_joint,
        "recommendation": report.recommendation.splitlines(),
    }


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
