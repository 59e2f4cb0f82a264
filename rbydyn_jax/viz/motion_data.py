"""A motion on a grid of times, with what is plotted of it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_finite, check_number, check_positive, check_real, check_single
from .._errors import ArgumentError, DtypeError
from ..algorithms.inverse_dynamics import motor_torques
from ..collision import ShapePairs, World, signed_distances, world_distances
from ..collision.groups import moving_shapes
from ..constraints import Simulation
from ..model.model import Model
from ..planning import Trajectory, TrajectoryReport, TrajectorySamples, sample_trajectory
from .state import QUICK

_POINTS = 201


class MotionData(NamedTuple):
    """Times [s], configurations [rad, m], |torque| / limit of each velocity, and the minimum distance [m]."""

    times: Float[np.ndarray, "t"]
    q: Float[np.ndarray, "t nq"]
    torque_ratios: Float[np.ndarray, "t nv"] | None
    distances: Float[np.ndarray, "t"] | None


class MotionGrid(NamedTuple):
    """Times [s] and configurations [rad, m], and velocities and accelerations where they are known."""

    times: Any
    q: Any
    v: Any = None
    a: Any = None


def motion_grid(model: Model, motion: Any, dt: float | None) -> MotionGrid:
    """A trajectory, its samples or report, a simulation, or configurations every `dt`, on a grid of times.

    Raises:
        ArgumentError: A configuration is not finite or a joint has no position there, there are fewer than two, the
            times do not ascend, or `dt` is not positive.
        DtypeError: `motion` is of another type, or an array without `dt`.
        ShapeError: The motion is of another robot, or a batch.
    """
    given = motion
    if isinstance(motion, Trajectory):
        motion = sample_trajectory(motion, _POINTS)
    elif isinstance(motion, TrajectoryReport):
        motion = motion.samples
    if isinstance(motion, TrajectorySamples):
        grid = MotionGrid(motion.times, motion.q, motion.v, motion.a)
    elif isinstance(motion, Simulation):
        grid = MotionGrid(motion.ts, motion.qs)
    elif isinstance(motion, jax.Array | np.ndarray) and dt is not None:
        check_positive(dt, "dt")
        grid = MotionGrid(check_number(dt, "dt") * np.arange(motion.shape[0] if motion.ndim else 0), motion)
    else:
        hint = "; an array of configurations needs dt=" if isinstance(motion, jax.Array | np.ndarray) else ""
        if isinstance(getattr(given, "trajectory", None), Trajectory):
            hint = "; pass its .trajectory"
        raise DtypeError(f"trajectory must be a Trajectory, samples or a report, got {type(given).__name__}{hint}")
    check_single(np.shape(grid.q)[:-2], "trajectory")
    q = check_real(grid.q, "trajectory", (len(grid.times), model.nq))
    check_finite(q, "trajectory")
    check_positions(model, q, "trajectory")
    if len(q) < 2:
        raise ArgumentError(f"trajectory must have at least 2 configurations, got {len(q)}")
    times = np.asarray(grid.times, float)
    if not (np.isfinite(times).all() and (np.diff(times) >= 0.0).all() and times[-1] > times[0]):
        raise ArgumentError(f"trajectory must have finite times that ascend, got {times[0]} to {times[-1]} s")
    return grid._replace(times=times, q=q)


def check_positions(model: Model, q: np.ndarray, name: str) -> None:
    """Raises if a joint has no position in one of the configurations (n, nq).

    Raises:
        ArgumentError: A quaternion, or a sine and cosine, is zero.
    """
    for k, row in enumerate(q):
        model.tree.check_configuration(row, f"{name}[{k}]")


def motion_data(
    model: Model, motion: Any, dt: float | None, chosen: ShapePairs | None, world: World | None
) -> MotionData:
    """What a viewer plays and plots of a motion; for its types and errors see `motion_grid`."""
    grid = motion_grid(model, motion, dt)
    if isinstance(motion, TrajectoryReport) and motion.distances is not None:
        tau, distances = motion.torques, motion.distances
        check_finite(tau, "trajectory.torques")
    else:
        dtype = model.inertias.dtype
        q, v, a = (None if x is None else jnp.asarray(x, dtype) for x in (grid.q, grid.v, grid.a))
        tau, distances = _measured(model, q, v, a, world, chosen)
    ratios = None if tau is None else _ratios(np.asarray(tau, float), np.asarray(model.effort_limit, float))
    return MotionData(grid.times, grid.q, ratios, None if distances is None else np.asarray(distances, float))


@partial(jax.jit, static_argnames="chosen", compiler_options=QUICK)
def _measured(
    model: Model, q: Any, v: Any, a: Any, world: World | None, chosen: ShapePairs | None
) -> tuple[Array | None, Array | None]:
    """Joint forces, if velocities and accelerations are known, and the minimum distance, if there are shapes."""
    tau = None if v is None else jax.vmap(motor_torques, in_axes=(None, 0, 0, 0))(model, q, v, a)
    found = []
    if chosen is not None:
        found.append(jax.vmap(partial(signed_distances, pairs=chosen), in_axes=(None, 0))(model, q))
    if world is not None and moving_shapes(model.tree):
        found.append(jax.vmap(partial(world_distances, world=world), in_axes=(None, 0))(model, q))
    return tau, jnp.concatenate(found, axis=1).min(axis=1) if found else None


def _ratios(tau: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """|tau| / limit, where a limit of zero counts as none."""
    usable = limits > 0
    return np.abs(tau) / np.where(usable, limits, np.inf)
