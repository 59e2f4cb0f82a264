"""Timing of paths and point-to-point profiles: durations beside toppra and Ruckig, violations, CPU time.

Paths go through 5 random configurations of a 7-joint arm, under limits of velocity, acceleration and torque, the
last low enough to bind at times; violations are looked for at ten times as many points. Without limits of jerk only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .store import Store

FILE = "paths.json"
DURATION, VIOLATION, MILLISECONDS, PROFILE = 5e-3, 1e-6, 0.1, 1e-9  # what is promised
BATCH, WAYPOINTS, JOINTS = 256, 5, 7


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `paths` to the command line."""
    paths = commands.add_parser("paths", help="timing of paths and profiles: beside toppra and Ruckig")
    paths.add_argument("--count", type=int, default=1000, help="random paths")
    paths.add_argument("--profiles", type=int, default=10_000, help="random point-to-point motions of one joint")
    paths.add_argument("--seed", type=int, default=3)
    paths.add_argument("--output", type=Path, default=results / FILE)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table; ends with an error if a promise is not kept."""
    import jax

    jax.config.update("jax_enable_x64", True)
    about = Store(arguments.output, keep=False).about
    found: dict[str, Any] = {**about, "count": arguments.count, "seed": arguments.seed}
    for name, measure in (("paths", _paths), ("profiles", _profiles)):
        found[name] = measure(arguments)
        print("   ", found[name], file=sys.stderr)
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    paths, profiles = found["paths"], found["profiles"]
    kept = paths["longer_max"] <= DURATION and paths["violation_max"] <= VIOLATION and paths["solved"] == 1.0
    if not (kept and paths["ms_batch"] <= MILLISECONDS and profiles["difference_max"] <= PROFILE):
        raise SystemExit("less than promised")


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    p, q = found["paths"], found["profiles"]
    return "\n".join(
        [
            "| | cases | against the peer | violation | CPU, batch | CPU, alone | peer | first call [s] |",
            "|---" * 8 + "|",
            f"| `time_parametrize`, toppra | {p['cases']} | {p['longer_mean']:+.2%}, at most {p['longer_max']:+.2%} | "
            f"{p['violation_max']:.1e} | {p['ms_batch']:.3f} ms | {p['ms_alone']:.2f} ms | {p['ms_peer']:.1f} ms | "
            f"{p['first_s']:.0f} |",
            f"| `jerk_limited_profile`, Ruckig | {q['cases']} | at most {q['difference_max']:.0e} s | | "
            f"{q['us_batch']:.1f} us | | {q['us_peer']:.1f} us | {q['first_s']:.0f} |",
        ]
    )


def _paths(arguments: argparse.Namespace) -> dict[str, Any]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import rnea, robots, with_limits
    from rbydyn_jax.planning import time_parametrize

    model = robots.panda_like()  # toppra knows no viscous friction
    model = eqx.tree_at(lambda m: (m.damping, m.friction), model, (0.0 * model.damping, 0.0 * model.friction))
    low, high = np.asarray(model.position_lower), np.asarray(model.position_upper)
    rng, n = np.random.default_rng(arguments.seed), arguments.count
    model = with_limits(model, effort_limit=0.75 * model.effort_limit)  # gravity takes 0.64 of it
    waypoints = jnp.asarray(rng.uniform(low, high, (n, WAYPOINTS, JOINTS)))
    solve = jax.jit(jax.vmap(lambda path: time_parametrize(model, path)))
    one = jax.jit(lambda path: time_parametrize(model, path))

    def violation(timed: Any) -> Any:
        parts = jnp.linspace(1e-6, 1.0 - 1e-6, 11)
        at = timed.evaluate((timed.times[:-1, None] + jnp.diff(timed.times)[:, None] * parts[None]).reshape(-1))
        tau = jax.vmap(rnea, (None, 0, 0, 0))(model, at.q, at.v, at.a)
        limits = (model.velocity_limit, model.acceleration_limit, model.effort_limit)
        return jnp.stack([jnp.max(jnp.abs(x) / y[None]) - 1.0 for x, y in zip((at.v, at.a, tau), limits, strict=True)])

    padded = jnp.concatenate([waypoints, waypoints[: -n % BATCH]])
    first, _ = _timed(lambda: solve(padded[:BATCH]))
    batches = [_timed(lambda k=k: solve(padded[k : k + BATCH])) for k in range(0, len(padded), BATCH)]
    timed = jax.tree.map(lambda *x: jnp.concatenate(x)[:n], *(x for _, x in batches))
    check = jax.jit(jax.vmap(violation))
    violations = np.concatenate(
        [check(jax.tree.map(lambda x, k=k: x[k : k + BATCH], timed)) for k in range(0, n, BATCH)]
    )
    _timed(lambda: one(waypoints[0]))
    alone = min(_timed(lambda: one(waypoints[0]))[0] for _ in range(20))
    peers = [_toppra(model, np.asarray(timed.path.knots[i]), np.asarray(waypoints[i])) for i in range(n)]
    solved = np.asarray(timed.status) == 0
    both = solved & np.array([d is not None for _, d in peers])
    theirs = np.array([np.nan if d is None else d for _, d in peers])
    ratios = np.asarray(timed.duration)[both] / theirs[both] - 1.0
    return {
        "cases": n,
        "solved": float((solved | ~both).mean()),
        "longer_mean": float(ratios.mean()),
        "longer_min": float(ratios.min()),
        "longer_max": float(ratios.max()),
        "violation_max": float(violations[solved].max()),
        "violation_kinds": violations[solved].max(axis=0).tolist(),
        "above_1e-6": float((violations[solved].max(axis=1) > VIOLATION).mean()),
        "binds": (violations[solved] > -1e-3).mean(axis=0).tolist(),
        "ms_batch": 1e3 * min(s for s, _ in batches) / BATCH,
        "ms_alone": 1e3 * alone,
        "ms_peer": 1e3 * float(np.median([s for s, _ in peers])),
        "first_s": first,
    }


def _toppra(model: Any, knots: Any, waypoints: Any, points: int = 401) -> tuple[float, float | None]:
    """CPU time and duration. Most of the time are the calls of our `rnea` from Python, one for each point and row."""
    import jax
    import numpy as np
    import toppra
    from toppra import algorithm, constraint

    from rbydyn_jax import rnea

    force = _forces.setdefault("f", jax.jit(rnea))
    between = constraint.DiscretizationType.Interpolation
    V, A, F = (np.stack([-x, x], 1) for x in (model.velocity_limit, model.acceleration_limit, model.effort_limit))
    started = time.process_time()
    limits = [
        constraint.JointVelocityConstraint(V),
        constraint.JointAccelerationConstraint(A, discretization_scheme=between),
        constraint.JointTorqueConstraint(
            lambda q, v, a: np.asarray(force(model, q, v, a)), F, np.zeros(JOINTS), discretization_scheme=between
        ),
    ]
    path = toppra.SplineInterpolator(knots, waypoints, bc_type="natural")
    grid = np.linspace(0.0, 1.0, points)
    found = algorithm.TOPPRA(limits, path, grid, solver_wrapper="seidel", parametrizer="ParametrizeConstAccel")
    trajectory: Any = found.compute_trajectory()
    return time.process_time() - started, None if trajectory is None else float(trajectory.duration)


_forces: dict[str, Any] = {}


def _profiles(arguments: argparse.Namespace) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import ruckig

    from rbydyn_jax.planning import jerk_limited_profile

    rng, shape = np.random.default_rng(arguments.seed), (arguments.profiles, 1)
    V, A, J = rng.uniform(0.5, 3, shape), rng.uniform(0.5, 10, shape), rng.uniform(1, 50, shape)
    d, v0, a0 = 2 * rng.normal(size=shape), V * rng.uniform(-1, 1, shape), A * rng.uniform(-1, 1, shape)
    given = tuple(jnp.asarray(x) for x in (d, V, A, J, v0, a0))

    def profile(d: Any, V: Any, A: Any, J: Any, v0: Any, a0: Any) -> Any:
        return jerk_limited_profile(jnp.zeros_like(d), d, V, A, J, start_velocity=v0, start_acceleration=a0)

    solve = jax.jit(jax.vmap(profile))
    first, _ = _timed(lambda: solve(*given))
    runs = [_timed(lambda: solve(*given)) for _ in range(5)]
    durations, spent = [], 0.0
    for row in zip(d, V, A, J, v0, a0, strict=True):
        state, result, solver = ruckig.InputParameter(1), ruckig.Trajectory(1), ruckig.Ruckig(1)
        state.current_position = np.zeros(1)
        names = ("target_position", "max_velocity", "max_acceleration", "max_jerk", "current_velocity")
        for name, x in zip((*names, "current_acceleration"), row, strict=True):
            setattr(state, name, x)
        started = time.process_time()
        solver.calculate(state, result)
        spent += time.process_time() - started
        durations.append(result.duration)
    difference = np.abs(np.asarray(runs[0][1].duration) - durations)
    return {
        "cases": arguments.profiles,
        "difference_max": float(difference.max()),
        "us_batch": 1e6 * min(s for s, _ in runs) / arguments.profiles,
        "us_peer": 1e6 * spent / arguments.profiles,
        "first_s": first,
    }


def _timed(f: Callable[[], Any]) -> tuple[float, Any]:
    import jax

    started = time.process_time()
    result = jax.block_until_ready(f())
    return time.process_time() - started, result
