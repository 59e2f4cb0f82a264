"""Identification of an arm of seven joints from noisy torques, beside figaroh and MuJoCo's system identification.

All begin with the same robot, whose inertias are 20 % off in log-Cholesky coordinates, and are given the same states,
torques and standard deviation of each torque. Ours is `fit`; figaroh's are its base parameters by least squares, which
belong to no links, and `solve_direct_effort_fit`, a semidefinite program; MuJoCo's is `sysid.optimize` over the
log-Cholesky parameters of all bodies, 30 iterations on the errors that `mj_inverse` leaves. The parameters that each
finds predict another motion by the same regressor.

figaroh and `mujoco[sysid]` are in no extra. One that is missing is left out, and named.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import logging
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

ROWS, NOISE, ITERATIONS = 1000, 0.01, 30
# An eigenvalue of a pseudo-inertia that is zero but for rounding, relative to the largest.
ROUNDING = 1e-9


class Task(NamedTuple):
    """What all are given: a robot, its motion (q, v, a), the torques, and the standard deviation of each."""

    initial: Any
    motion: tuple[np.ndarray, ...]
    tau: np.ndarray
    noise: np.ndarray


def compare(
    motion: Callable[[Any, int, int], Any], perturbed: Callable[[Any, np.random.Generator], Any]
) -> dict[str, Any]:
    """The rows of those that are installed, and the names of those that are not.

    Args:
        motion: Of a robot, a seed and a number of rows.
        perturbed: Of a robot: another one, without friction.
    """
    import jax

    from rbydyn_jax import robots
    from rbydyn_jax.identification import torque_regressor

    rng = np.random.default_rng(5)
    true = dataclasses.replace(robots.panda_like(), armature=np.zeros(7))
    regressor = jax.jit(jax.vmap(torque_regressor, (None, 0, 0, 0)))
    seen, later = ([np.asarray(x) for x in motion(true, seed, ROWS)] for seed in (1, 2))
    truth = np.asarray(true.inertias).reshape(-1)
    tau, want = (np.asarray(regressor(true, *x)) @ truth for x in (seen, later))
    noise = NOISE * np.sqrt(np.mean(tau**2, axis=0))
    task = Task(perturbed(true, rng), tuple(seen), tau + noise * rng.normal(size=tau.shape), noise)
    Y = np.asarray(regressor(true, *later))
    before = _error(Y @ np.asarray(task.initial.inertias).reshape(-1), want, noise)

    found, missing = [], []
    for contestant in (_ours, _figaroh, _mujoco):
        try:
            results = contestant(task)
        except ImportError as error:
            missing.append(contestant.__name__[1:])
            print(f"    {missing[-1]} is left out: {error}", file=sys.stderr)
            continue
        for name, parameters, predict, seconds in results:
            error = _error(predict(later, Y), want, noise)
            possible = None if parameters is None else _possible(parameters)
            found.append({"name": name, "cpu_s": seconds, "consistent": possible, "links": 7, "error": error})
            found[-1]["before"] = before
            print("   ", found[-1], file=sys.stderr)
    return {"rows": ROWS, "found": found, "missing": missing}


def _error(got: np.ndarray, want: np.ndarray, noise: np.ndarray) -> float:
    """The error of the worst joint, in units of the noise."""
    return float((np.sqrt(np.mean((got - want) ** 2, axis=0)) / noise).max())


def _possible(parameters: np.ndarray) -> int:
    """How many of the bodies can exist: those whose pseudo-inertia has no negative eigenvalue."""
    count = 0
    for m, mx, my, mz, xx, xy, yy, xz, yz, zz in parameters.reshape(-1, 10):
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        first = np.array([[mx], [my], [mz]])
        values = np.linalg.eigvalsh(np.block([[second, first], [first.T, np.array([[m]])]]))
        count += bool(values[0] > -ROUNDING * abs(values[-1]))
    return count


Found = tuple[str, np.ndarray | None, Callable[..., np.ndarray], float]


def _found(name: str, parameters: np.ndarray, seconds: float) -> Found:
    return name, parameters, lambda _, Y: Y @ parameters, seconds


def _ours(task: Task) -> list[Found]:
    import jax.numpy as jnp

    from rbydyn_jax.identification import TrajectoryData, fit

    data = TrajectoryData(*map(jnp.asarray, (*task.motion, task.tau)))
    found = []
    for name, consistent in (("first fit", True), ("again", True), ("plain least squares", False)):
        start = time.process_time()
        result = fit(task.initial, data, terms=("inertia",), consistent=consistent, noise=jnp.asarray(task.noise))
        seconds = time.process_time() - start
        found.append(_found(f"rbydyn_jax, {name}", np.asarray(result.model.inertias).reshape(-1), seconds))
    return found


def _figaroh(task: Task) -> list[Found]:
    fitting, regressor = (
        importlib.import_module(f"figaroh.{x}") for x in ("identification.physical_fit", "tools.regressor")
    )
    parameter = importlib.import_module("figaroh.identification.parameter")
    from rbydyn_jax.engines.pinocchio import pin_model

    version = importlib.metadata.version("figaroh")
    twin = pin_model(task.initial)
    robot = SimpleNamespace(model=twin.model, data=twin.data)

    def rows(motion: Any) -> np.ndarray:  # joint after joint
        return regressor.build_regressor_basic(robot, *motion, {"act_idxv": range(7)})

    start = time.process_time()
    prior = parameter.get_standard_parameters(twin.model)
    joints = list(twin.model.names[1:])
    weights = np.repeat(1.0 / task.noise, len(task.tau))
    prior_values = np.array(list(prior.values()), float)
    problem = fitting.build_problem(
        rows(task.motion), task.tau.T.reshape(-1), list(prior), joints, prior=prior_values, row_weight=weights
    )
    base = time.process_time() - start

    def by_base(motion: Any, _: np.ndarray) -> np.ndarray:
        return (rows(motion)[:, list(problem.base_indices)] @ problem.phi_ols).reshape(7, -1).T

    record = fitting.solve_direct_effort_fit(problem, solver="cvxopt")
    seconds = time.process_time() - start
    found: list[Found] = [(f"figaroh {version}, base parameters", None, by_base, base)]
    if record.theta is None:
        print(f"    figaroh: {record.solver_status}, {record.exception}", file=sys.stderr)
        return found
    return [*found, _found(f"figaroh {version}, semidefinite program", np.asarray(record.theta), seconds)]


def _mujoco(task: Task) -> list[Found]:
    mujoco, sysid = importlib.import_module("mujoco"), importlib.import_module("mujoco.sysid")
    if not hasattr(sysid, "optimize"):  # what it needs besides MuJoCo is missing, and it does not say so
        raise ImportError("mujoco.sysid is empty: pip install 'mujoco[sysid]'")
    from rbydyn_jax import to_urdf

    urdf = mujoco.MjSpec.from_string(to_urdf(task.initial, collisions=False))
    urdf.compile()
    spec = mujoco.MjSpec.from_string(urdf.to_xml())  # with fixed links merged into what they are fixed to
    model = spec.compile()
    bodies = [model.body(model.joint(name).bodyid[0]).name for name in task.initial.joint_names]
    logging.getLogger().setLevel(logging.ERROR)
    start = time.process_time()
    unknowns = sysid.ParameterDict()

    def parameters_of(unknown: Any) -> np.ndarray:  # mass, first moment, and the nine entries of the inertia
        return sysid.model_modifier.pi_from_theta(unknown.value)

    def write(name: str, spec: Any, unknown: Any) -> None:  # the one of sysid 4.0.0 writes what MuJoCo 4.0.0 refuses
        pi = parameters_of(unknown)
        com, body = pi[1:4] / pi[0], spec.body(name)
        about_com = pi[4:].reshape(3, 3) - pi[0] * (com @ com * np.eye(3) - np.outer(com, com))
        body.mass, body.ipos, body.inertia, body.iquat = pi[0], com, np.zeros(3), [1.0, 0.0, 0.0, 0.0]
        body.fullinertia = about_com[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]

    for body in bodies:
        modifier = functools.partial(write, body)
        unknowns.add(sysid.body_inertia_param(spec, model, body, sysid.InertiaType.Pseudo, modifier=modifier))

    def errors(parameters: np.ndarray, unknowns: Any) -> np.ndarray:
        unknowns.update_from_vector(parameters)
        model = sysid.apply_param_modifiers(unknowns, spec)
        data, tau = mujoco.MjData(model), np.empty_like(task.tau)
        for k, (q, v, a) in enumerate(zip(*task.motion, strict=True)):
            data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
            mujoco.mj_inverse(model, data)
            tau[k] = data.qfrc_inverse
        return ((tau - task.tau) / task.noise).reshape(-1)

    def residual(x: np.ndarray, unknowns: Any) -> Any:
        columns = x.reshape(len(x), -1).T
        found = np.stack([errors(column, unknowns) for column in columns], axis=1)
        return [found if x.ndim == 2 else found[:, 0]], None, None

    with contextlib.redirect_stdout(sys.stderr):  # a line for each iteration
        fitted, _ = sysid.optimize(unknowns, residual, verbose=False, max_iters=ITERATIONS)
    seconds = time.process_time() - start
    order = [0, 1, 2, 3, 4, 5, 8, 6, 9, 12]
    found = [parameters_of(x)[order] for x in fitted.values()]
    return [_found(f"MuJoCo {mujoco.__version__}, sysid", np.concatenate(found), seconds)]


def table(runs: list[dict[str, Any]]) -> str:
    """What was found, as Markdown."""
    head = (
        "jax",
        "from the same torques",
        "CPU [s]",
        "links that can exist",
        "error on another motion / noise",
        "before",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for run in runs:
        jax, peers = run["versions"].get("jax", ""), run.get("peers", {"found": [], "missing": []})
        for x in peers["found"]:
            links = "" if x["consistent"] is None else f"{x['consistent']} of {x['links']}"
            cells = (jax, x["name"], f"{x['cpu_s']:.2f}", links, f"{x['error']:.2f}", f"{x['before']:.0f}")
            lines.append("| " + " | ".join(cells) + " |")
        lines += [f"| {jax} | {name}: not installed |  |  |  |  |" for name in peers["missing"]]
    return "\n".join(lines)
