"""A motion on a grid of times, with what is plotted of it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_finite, check_real
from .._errors import ArgumentError, DtypeError
from ..collision import CapsulePairs, World, signed_distances, world_distances
from ..collision.world import moving_shapes
from ..constraints import Simulation
from ..model.model import Model
from ..planning import Trajectory, TrajectoryReport, TrajectorySamples, sample_trajectory
from ..planning._rows import joint_forces

_POINTS = 201


class MotionData(NamedTuple):
    """Times [s], configurations [rad, m], |torque| / limit of each velocity, and the minimum distance [m]."""

    times: Float[np.ndarray, "t"]
    q: Float[np.ndarray, "t nq"]
    torque_ratios: Float[np.ndarray, "t nv"] | None
    distances: Float[np.ndarray, "t"] | None


def motion_data(
    model: Model, motion: Any, dt: float | None, chosen: CapsulePairs | None, world: World | None
) -> MotionData:
    """What a viewer plays of a trajectory, its samples or report, a simulation, or configurations every `dt`.

    Raises:
        ArgumentError: A configuration is not finite, or there are fewer than two.
        DtypeError: `motion` is of another type, or an array without `dt`.
        ShapeError: The motion is of another robot.
    """
    if isinstance(motion, Trajectory):
        motion = sample_trajectory(motion, _POINTS)
    report = motion if isinstance(motion, TrajectoryReport) else None
    if report is not None:
        motion = report.samples
    v = a = None
    if isinstance(motion, TrajectorySamples):
        times, q, v, a = motion.times, motion.q, motion.v, motion.a
    elif isinstance(motion, Simulation):
        times, q = motion.ts, motion.qs
    elif isinstance(motion, jax.Array | np.ndarray) and dt is not None:
        times, q = dt * np.arange(len(motion)), motion
    else:
        hint = "; an array of configurations needs dt=" if isinstance(motion, jax.Array | np.ndarray) else ""
        if isinstance(getattr(motion, "trajectory", None), Trajectory):
            hint = "; pass its .trajectory"
        raise DtypeError(f"trajectory must be a Trajectory, samples or a report, got {type(motion).__name__}{hint}")
    q = check_real(q, "trajectory", (len(q), model.nq))
    check_finite(q, "trajectory")
    if len(q) < 2:
        raise ArgumentError(f"trajectory must have at least 2 configurations, got {len(q)}")
    if report is not None and report.distances is not None:
        tau, distances = report.torques, report.distances
    else:
        dtype = model.inertias.dtype
        given = [None if x is None else jnp.asarray(x, dtype) for x in (q, v, a)]
        tau, distances = _measured(model, *given, world, chosen)
    ratios = None if tau is None else _ratios(np.asarray(tau, float), np.asarray(model.effort_limit, float))
    return MotionData(np.asarray(times, float), q, ratios, None if distances is None else np.asarray(distances, float))


@partial(jax.jit, static_argnames="chosen")
def _measured(
    model: Model, q: Array, v: Array | None, a: Array | None, world: World | None, chosen: CapsulePairs | None
) -> tuple[Array | None, Array | None]:
    """Joint forces, if there are velocities, and the minimum distance, if there are shapes."""
    tau = None if v is None else jax.vmap(joint_forces, in_axes=(None, 0, 0, 0))(model, q, v, a)
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
