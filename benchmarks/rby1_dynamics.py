"""`rby1.dynamics` beside the vendor's library: every call, and typical uses.

  python -m benchmarks.rby1_dynamics                      prints both tables
  python -m benchmarks.rby1_dynamics docs/rby1_sdk.md     puts them between the markers of that page

Pinned to one core and timed as in `timing`; the inputs of all are numpy arrays.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

START, END = "<!-- measured by benchmarks.rby1_dynamics -->", "<!-- end of what is measured -->"
SECONDS = 0.5
SAMPLES = 1000
POINTS = 50  # of one calibration
GRAVITY = [0, 0, 0, 0, 0, -9.81]
CHAIN = ("forward_kinematics", "diff_forward_kinematics", "2nd_diff_forward_kinematics")


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    text = "\n\n".join([_machine(), calls(), patterns()])
    print(text)
    for name in sys.argv[1:]:
        page = Path(name).read_text()
        before, rest = page.split(START)
        Path(name).write_text(f"{before}{START}\n\n{text}\n\n{END}{rest.split(END)[1]}")


def calls() -> str:
    """One row for each call, at the same state of the RB-Y1 A, and one for the calls of a control cycle.

    What several calls share is computed by the first: the row of `compute_mass_matrix` is that of the last of them.
    """
    import jax
    import numpy as np

    from .timing import race

    robots, rng = _robots(), np.random.default_rng(0)
    motion = {name: rng.uniform(-1, 1, 24) for name in ("q", "qdot", "qddot")}
    states = {}
    for library, robot in robots.items():
        states[library] = state = robot.make_state(["base", "ee_right"], [])
        for name, value in motion.items():
            setattr(state, name, value)
        state.set_gravity(GRAVITY)
        for step in CHAIN:
            getattr(robot, f"compute_{step}")(state)
    table: dict[str, tuple] = {f"compute_{step}": () for step in (*CHAIN, "inverse_dynamics", "gravity_term")}
    table |= {"compute_mass_matrix": (), "compute_reflective_inertia": (0, 1), "compute_transformation": (0, 1)}
    table |= {f"compute_{x}": (0, 1) for x in ("body_velocity", "space_jacobian", "body_jacobian")}
    table |= {f"compute_{x}": (0,) for x in ("center_of_mass", "center_of_mass_jacobian", "total_inertial")}
    table |= {"detect_collisions_or_nearest_links": (1,), "get_limit_q_upper": ()}
    noop = jax.jit(lambda x: x)
    lines = ["| call | rby1_sdk [us] | ours [us] | ours / jitted no-op |", "|---|---|---|---|"]
    for name, arguments in table.items():
        runs: dict[str, Callable[[], Any]] = {
            library: functools.partial(getattr(robot, name), states[library], *arguments)
            for library, robot in robots.items()
        }
        us = race(runs | {"noop": lambda: noop(motion["q"])}, SECONDS)
        shown = f"`{name}{arguments}`" if arguments else f"`{name}`"
        lines.append(f"| {shown} | {us['sdk']:.1f} | {us['ours']:.1f} | {us['ours'] / us['noop']:.1f} |")

    def update(library: str) -> None:
        robot, state = robots[library], states[library]
        state.set_q(motion["q"])
        robot.compute_forward_kinematics(state)
        robot.compute_body_jacobian(state, 0, 1)
        robot.compute_gravity_term(state)
        robot.compute_mass_matrix(state)

    runs = {library: functools.partial(update, library) for library in robots}
    us = race(runs | {"noop": lambda: noop(motion["q"])}, SECONDS)
    shown = "`set_q`, poses, body Jacobian, gravity term, mass matrix"
    lines.append(f"| {shown} | {us['sdk']:.1f} | {us['ours']:.1f} | {us['ours'] / us['noop']:.1f} |")
    return "\n".join(lines)


def patterns() -> str:
    """A thousand samples of each: the vendor's library in a loop, this one in the same loop, one pure call."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import rbydyn_jax as rb
    from rbydyn_jax import collision
    from rbydyn_jax.spatial import se3

    from .timing import race

    robots, rng = _robots(), np.random.default_rng(1)
    model, names = robots["ours"].model, robots["ours"].get_joint_names()
    rows = rng.uniform(-1, 1, (SAMPLES, 24))
    arm = np.array([names.index(f"right_arm_{i}") for i in range(7)])
    offset = np.zeros(24)
    offset[arm] = 0.01 * rng.normal(size=7)
    measured = np.asarray(jax.vmap(lambda q: rb.link_pose(model, q, "ee_right"))(jnp.asarray(rows[:POINTS] + offset)))

    def poses(robot: Any) -> None:
        state = robot.make_state(["base", "ee_right"], [])
        for q in rows:
            state.set_q(q)
            robot.compute_forward_kinematics(state)
            robot.compute_transformation(state, 0, 1)

    def guard(robot: Any) -> None:
        state = robot.make_state([], [])
        for q in rows:
            state.set_q(q)
            robot.compute_forward_kinematics(state)
            _ = robot.detect_collisions_or_nearest_links(state, 1)[0].distance < 0.02

    def gravity(robot: Any) -> None:
        state = robot.make_state([], [])
        state.set_gravity(GRAVITY)
        for q in rows:
            state.set_q(q)
            robot.compute_forward_kinematics(state)
            robot.compute_gravity_term(state)

    def calibrate(robot: Any) -> np.ndarray:
        x = np.zeros(24)
        for _ in range(3):
            errors, jacobians = [], []
            for q, T in zip(rows[:POINTS], measured, strict=True):
                state = robot.make_state(["base", "ee_right"], [])
                state.set_q(q + x)
                robot.compute_forward_kinematics(state)
                errors.append(_log(np.linalg.inv(robot.compute_transformation(state, 0, 1)) @ T))
                jacobians.append(robot.compute_body_jacobian(state, 0, 1)[:, arm])
            x[arm] += np.linalg.lstsq(np.concatenate(jacobians), np.concatenate(errors))[0]
        return x

    @jax.jit
    def pure_calibration(model: Any, q: jax.Array, T: jax.Array) -> jax.Array:
        def sample(x: jax.Array, q: jax.Array, T: jax.Array) -> tuple[jax.Array, jax.Array]:
            error = se3.log(se3.inverse(rb.link_pose(model, q + x, "ee_right")) @ T)
            return error, rb.jacobian(model, q + x, "ee_right", frame="local")[:, arm]

        def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            errors, J = jax.vmap(sample, (None, 0, 0))(x, q, T)
            return x.at[arm].add(jnp.linalg.lstsq(J.reshape(-1, 7), errors.ravel())[0]), None

        return jax.lax.scan(step, jnp.zeros(24), None, 3)[0]

    batched = jnp.asarray(rows)
    pure = {
        poses: jax.jit(jax.vmap(lambda m, q: rb.link_pose(m, q, "ee_right"), (None, 0))),
        guard: jax.jit(jax.vmap(lambda m, q: collision.min_distance(m, q) < 0.02, (None, 0))),
        gravity: jax.jit(jax.vmap(rb.gravity_forces, (None, 0))),
        calibrate: lambda m, q: pure_calibration(m, q[:POINTS], measured),
    }
    for x in (calibrate(robots["sdk"]), calibrate(robots["ours"]), pure[calibrate](model, batched)):
        assert np.abs(x - offset).max() < 1e-8
    titles = {
        poses: f"{SAMPLES} poses",
        guard: f"{SAMPLES} distances to self-collision",
        gravity: f"{SAMPLES} gravity terms",
        calibrate: f"calibration of 7 joints, {POINTS} poses, 3 steps",
    }
    lines = ["| typical use | rby1_sdk, loop [ms] | ours, same loop [ms] | pure, vmapped [ms] |", "|---|---|---|---|"]
    for work, title in titles.items():
        runs: dict[str, Callable[[], Any]] = {name: lambda r=robot: work(r) for name, robot in robots.items()}  # noqa: B023
        runs["pure"] = lambda: jax.block_until_ready(pure[work](model, batched))  # noqa: B023
        us = race(runs, SECONDS)
        lines.append(f"| {title} | {us['sdk'] / 1e3:.2f} | {us['ours'] / 1e3:.2f} | {us['pure'] / 1e3:.2f} |")
    return "\n".join(lines)


def _log(T: Any) -> Any:
    """Logarithm of a small motion, as users of the vendor's library write it."""
    import numpy as np

    R, p = T[:3, :3], T[:3, 3]
    angle = np.arccos(np.clip((np.trace(R) - 1) / 2, -1, 1))
    scale = angle / (2 * np.sin(angle)) if angle > 1e-7 else 0.5
    w = scale * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    c = (1 - angle * np.cos(angle / 2) / (2 * np.sin(angle / 2))) / angle**2 if angle > 1e-4 else 1 / 12
    return np.concatenate([w, p - 0.5 * W @ p + c * W @ W @ p])


def _robots() -> dict[str, Any]:
    import rby1_sdk.dynamics as sdk

    import rbydyn_jax.rby1.dynamics as ours
    from rbydyn_jax import robots, to_urdf

    text = to_urdf(robots.rby1a())
    both = {"sdk": sdk, "ours": ours}
    return {name: library.Robot_24(library.load_robot_from_urdf_data(text, "base")) for name, library in both.items()}


def _machine() -> str:
    import jax
    import numpy as np
    import rby1_sdk

    cpu = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists() and (found := re.search(r"model name\s*: (.*)", info.read_text())):
        cpu = found[1]
    return (
        f"RB-Y1 A, float64, one core of {cpu}, rby1_sdk {rby1_sdk.__version__}, numpy {np.__version__}, "
        f"jax {jax.__version__}, Python {platform.python_version()}:"
    )


if __name__ == "__main__":
    main()
