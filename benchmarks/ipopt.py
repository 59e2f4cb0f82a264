"""The cost of planned motions beside that of IPOPT, for the problems of `planning`.

IPOPT minimizes the same cost, half the squared jerk, over the coefficients of the same splines: from the motion from
which `solve_trajectory` began its last attempt, and from its solution. The limits of position, velocity, acceleration
and torque are constraints at 101 times, and so is the clearance from obstacles and between the pairs that come near
each other in either motion; goals are equations. Derivatives are exact, of this library; Hessians are IPOPT's limited
memory. `planning._kept` checks both motions at 401 times.

IPOPT comes with `pip install casadi`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .planning import CLEARANCE, Task, _forces, _kept, _problems, _tasks
from .store import Store

FILE = "ipopt.json"
WITHIN = 0.01  # of IPOPT's cost
_TIMES = 101
_NEAR = 0.05  # [m] above the clearance: pairs whose distance is a constraint
_INFINITE = 1e20  # what IPOPT takes for no bound


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `ipopt` to the command line."""
    command = commands.add_parser("ipopt", help="trajectory optimization: cost beside that of IPOPT")
    command.add_argument("--count", type=int, default=50, help="problems of each robot")
    command.add_argument("--seed", type=int, default=20, help="of the random configurations")
    command.add_argument("--tasks", default="panda,ur5,rby1a_arm,rby1a_hands,panda+obstacles", help="as of `planning`")
    command.add_argument("--output", type=Path, default=results / FILE)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    import jax

    jax.config.update("jax_enable_x64", True)
    _casadi()
    found: dict[str, Any] = {**Store(arguments.output, keep=False).about, "tasks": []}
    for name in arguments.tasks.split(","):
        record = _measure(_tasks()[name](), arguments.count, arguments.seed)
        found["tasks"].append(record)
        print("   ", record, file=sys.stderr)
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = (
        "robot",
        "problems",
        "solved by both",
        f"at most {WITHIN:.0%} above IPOPT",
        "median, 95 %, largest excess",
        "lower by over 1 %",
        "above IPOPT from the solution: median, largest",
    )
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for t in found["tasks"]:
        both = [x for x in t["problems"] if x["kept"] and x["ipopt_kept"]]
        excess = sorted(x["cost"] / x["ipopt"] - 1.0 for x in both)
        polished = sorted(x["cost"] / x["polished"] - 1.0 for x in t["problems"] if x["kept"] and x["polished_kept"])
        quantiles = ", ".join(f"{_quantile(excess, q):+.2%}" for q in (0.5, 0.95, 1.0))
        cells = (
            t["task"],
            len(t["problems"]),
            len(both),
            f"{sum(x <= WITHIN for x in excess) / len(excess):.1%}",
            quantiles,
            f"{sum(x < -WITHIN for x in excess) / len(excess):.1%}",
            ", ".join(f"{_quantile(polished, q):+.2%}" for q in (0.5, 1.0)),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _measure(task: Task, count: int, seed: int) -> dict[str, Any]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from rbydyn_jax.planning import solve_trajectory

    check = jax.jit(lambda problem, result: _kept(task, problem, result))
    program, found = _Program(task), []
    for i, problem in enumerate(_problems(task, count, seed)):
        result = solve_trajectory(problem)
        record: dict[str, Any] = {"attempts": int(result.attempts), "kept": bool(check(problem, result))}
        record |= {"cost": _cost(result.trajectory.coefficients)}
        for name, first in (("ipopt", result.initial), ("polished", result.trajectory)):
            z = program.solve(problem, result, first.coefficients)
            other = eqx.tree_at(lambda r: r.trajectory.coefficients, result, jnp.asarray(z))
            record |= {name: _cost(z), f"{name}_kept": bool(check(problem, other))}
        found.append(record)
        print(f"    {task.name} {i + 1}: {record}", file=sys.stderr)
    return {"task": task.name, "seed": seed, "problems": found}


def _cost(coefficients: Any) -> float:
    import numpy as np

    return 0.5 * float(np.sum(np.asarray(coefficients) ** 2))


class _Program:
    """The nonlinear programs of a task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.compiled: dict[str, Callable[..., Any]] = {}

    def solve(self, problem: Any, result: Any, first: Any) -> Any:
        """The coefficients that IPOPT finds from `first`."""
        import jax
        import numpy as np

        if not self.compiled:
            self.compiled["values"] = jax.jit(self._constraints)
            self.compiled["slopes"] = jax.jit(jax.jacfwd(self._constraints))
            self.compiled["near"] = jax.jit(lambda z, problem: self._distances(problem, self._motion(z, problem)[0]))
        lower, upper = self._bounds(problem, result, first)
        kept = np.isfinite(lower) | np.isfinite(upper)
        size = first.size
        values = _memory(lambda z: np.asarray(self.compiled["values"](z, problem))[kept])
        slopes = _memory(lambda z: np.asarray(self.compiled["slopes"](z, problem))[kept])
        casadi = _casadi()
        g = _callback(casadi, size, int(kept.sum()), values, slopes)
        x = casadi.MX.sym("x", size)
        quiet = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 1000}
        options = {"ipopt": quiet | {"limited_memory_max_history": 30, "tol": 1e-7}, "print_time": False}
        solver = casadi.nlpsol("solver", "ipopt", {"x": x, "f": 0.5 * casadi.dot(x, x), "g": g(x)}, options)
        low, high = (np.clip(y[kept], -_INFINITE, _INFINITE) for y in (lower, upper))
        found = solver(x0=np.asarray(first).reshape(-1), lbg=low, ubg=high)
        return np.array(found["x"]).reshape(first.shape)

    def _motion(self, z: Any, problem: Any) -> tuple[Any, Any, Any]:
        """Positions, velocities and accelerations of all joints, at rest at both ends."""
        import jax.numpy as jnp
        import numpy as np

        from rbydyn_jax.planning import rest_to_rest_basis

        K, at, still = problem.coefficients, np.array(problem.moving.q), jnp.zeros((_TIMES, self.task.model.nv))
        z = z.reshape(K, -1)
        phase = np.linspace(0.0, 1.0, _TIMES)
        q, v, a = (still.at[:, at].set(rest_to_rest_basis(K, phase, d) @ z / problem.duration**d) for d in range(3))
        return problem.q_start + q, v, a

    def _constraints(self, z: Any, problem: Any) -> Any:
        """Errors of the goals, and what has limits, relative to these."""
        import jax
        import jax.numpy as jnp

        from rbydyn_jax import link_pose
        from rbydyn_jax.spatial import se3

        model = self.task.model
        q, v, a = self._motion(z, problem)
        tau = jax.vmap(lambda *x: _forces(model, *x))(q, v, a)
        error = [se3.log(se3.inverse(goal.target) @ link_pose(model, q[-1], goal.link)) for goal in problem.goals]
        scaled = [v / model.velocity_limit, a / _finite(model.acceleration_limit), tau / _finite(model.effort_limit)]
        rows = [q, *scaled] + ([self._distances(problem, q)] if self.task.obstacles else [])
        return jnp.concatenate([*error, *(x.reshape(-1) for x in rows)])

    def _distances(self, problem: Any, q: Any) -> Any:
        import jax
        import jax.numpy as jnp

        from rbydyn_jax import collision

        model = self.task.model

        def of(q: Any) -> Any:
            own = collision.signed_distances(model, q, problem.pairs)
            return jnp.concatenate([own.reshape(-1), collision.world_distances(model, q, problem.world).reshape(-1)])

        return jax.vmap(of)(q)

    def _bounds(self, problem: Any, result: Any, first: Any) -> tuple[Any, Any]:
        import numpy as np

        model = self.task.model
        at = np.zeros(model.nv, bool)
        at[list(problem.moving.v)] = True
        none, one = np.full(model.nv, np.inf), np.ones(model.nv)
        goals = np.zeros(6 * len(problem.goals))
        moving = (one, np.where(np.isfinite(model.acceleration_limit), one, np.inf))
        moving = (*moving, np.where(np.isfinite(model.effort_limit), one, np.inf))
        highs = [np.asarray(model.position_upper), *moving]
        lows = [np.asarray(model.position_lower), *(-x for x in moving)]
        # Joints that stand still have torques only.
        highs = [np.where(at | (k == 3), x, none) for k, x in enumerate(highs)]
        lows = [np.where(at | (k == 3), x, -none) for k, x in enumerate(lows)]
        low = [goals, *(np.tile(x, _TIMES) for x in lows)]
        high = [goals, *(np.tile(x, _TIMES) for x in highs)]
        if self.task.obstacles:
            both = [self.compiled["near"](z, problem) for z in (result.trajectory.coefficients, first)]
            near = np.minimum(*(np.asarray(x).min(axis=0) for x in both)) < CLEARANCE + _NEAR
            low.append(np.tile(np.where(near, CLEARANCE, -np.inf), _TIMES))
            high.append(np.full(near.size * _TIMES, np.inf))
        return np.concatenate(low), np.concatenate(high)


def _casadi() -> Any:
    try:
        return importlib.import_module("casadi")
    except ImportError:
        raise SystemExit("IPOPT comes with CasADi: pip install casadi") from None


def _finite(limit: Any) -> Any:
    import jax.numpy as jnp

    return jnp.where(jnp.isfinite(limit), limit, 1.0)


def _memory(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What `f` gave last, if it is asked for the same again."""
    last: dict[bytes, Any] = {}

    def again(z: Any) -> Any:
        key = z.tobytes()
        if key not in last:
            last.clear()
            last[key] = f(z)
        return last[key]

    return again


def _callback(casadi: Any, size: int, rows: int, values: Callable[[Any], Any], slopes: Callable[[Any], Any]) -> Any:
    """Constraints and their derivatives as functions of CasADi."""
    import numpy as np

    class Function(casadi.Callback):
        def __init__(self, f: Callable[[Any], Any], inputs: tuple[int, ...], outputs: int, slopes: Any = None) -> None:
            casadi.Callback.__init__(self)
            self.f, self.inputs, self.outputs, self.slopes = f, inputs, outputs, slopes
            self.construct("constraints", {})

        def get_n_in(self) -> int:
            return len(self.inputs)

        def get_sparsity_in(self, i: int) -> Any:
            return casadi.Sparsity.dense(self.inputs[i], 1)

        def get_sparsity_out(self, _: int) -> Any:
            return casadi.Sparsity.dense(rows, self.outputs)

        def eval(self, given: Any) -> Any:
            return [casadi.DM(self.f(np.array(given[0]).ravel()))]

        def has_jacobian(self) -> bool:
            return self.slopes is not None

        def get_jacobian(self, *_: Any) -> Any:
            return self.slopes

    return Function(values, (size,), 1, Function(slopes, (size, rows), size))
