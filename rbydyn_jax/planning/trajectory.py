"""A joint trajectory from rest to rest, and its positions, velocities and accelerations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_integer
from .._errors import DtypeError
from .spline import rest_to_rest_basis


class Trajectory(eqx.Module):
    """A motion from rest to rest: a spline of degree 5 for each moving joint, all others at rest.

    Args:
        q_start: Configuration at time 0 [rad, m].
        coefficients: Displacements in the basis of `planning.spline`, one column for each moving joint [rad, m].
        duration: Time from start to end [s].
        q_indices: Indices of the moving joints in q; static.
        v_indices: Their indices in v; static.
        nv: Size of the velocity; static.
    """

    q_start: Float[Array, "nq"]
    coefficients: Float[Array, "k n"]
    duration: Float[Array, ""]
    q_indices: tuple[int, ...] = eqx.field(static=True)
    v_indices: tuple[int, ...] = eqx.field(static=True)
    nv: int = eqx.field(static=True)


class TrajectorySamples(eqx.Module):
    """A trajectory on a grid of times.

    Args:
        times: Times [s].
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s].
        a: Accelerations [rad/s^2, m/s^2].
    """

    times: Float[Array, "t"]
    q: Float[Array, "t nq"]
    v: Float[Array, "t nv"]
    a: Float[Array, "t nv"]


def sample_trajectory(trajectory: Trajectory, points: int = 101) -> TrajectorySamples:
    """Positions, velocities and accelerations at equally spaced times, start and end included.

    Args:
        trajectory: The motion.
        points: Number of times, at least 2.

    Returns:
        Times, and the configuration, velocity and acceleration at each.

    Raises:
        ArgumentError: `points` is less than 2.
        DtypeError: `trajectory` is not a `Trajectory`, or `points` is not an integer.

    Example:
        One joint over one radian in two seconds with minimum jerk: halfway in the middle, at 15/8 of the mean speed.

        >>> motion = Trajectory(jnp.zeros(1), jnp.ones((1, 1)), jnp.asarray(2.0), (0,), (0,), nv=1)
        >>> halfway = sample_trajectory(motion, 3)
        >>> float(halfway.q[1, 0]), float(halfway.v[1, 0])
        (0.5, 0.9375)
    """
    phase = np.linspace(0.0, 1.0, check_integer(points, "points", 2))
    check_kind(trajectory, "trajectory")
    return on_grid(trajectory, jnp.asarray(phase, trajectory.q_start.dtype), bases(trajectory, phase))


def check_kind(x: Any, name: str) -> Trajectory:
    """Returns `x`, which must be a `Trajectory`."""
    if not isinstance(x, Trajectory):
        hint = "; pass its .trajectory" if isinstance(getattr(x, "trajectory", None), Trajectory) else ""
        raise DtypeError(f"{name} must be a Trajectory, got {type(x).__name__}{hint}")
    return x


def bases(trajectory: Trajectory, phase: np.ndarray) -> tuple[Array, ...]:
    """Matrices that take the coefficients to displacements and their first two derivatives, in the motion's dtype."""
    count, dtype = trajectory.coefficients.shape[0], trajectory.q_start.dtype
    return tuple(jnp.asarray(rest_to_rest_basis(count, phase, d), dtype) for d in range(3))


def on_grid(trajectory: Trajectory, phase: Array, bases: Sequence[Array]) -> TrajectorySamples:
    """The trajectory where `bases` was evaluated."""
    z, duration, q0 = trajectory.coefficients, trajectory.duration, trajectory.q_start
    n, at_q, at_v = phase.shape[0], np.array(trajectory.q_indices, int), np.array(trajectory.v_indices, int)
    still = jnp.zeros((n, trajectory.nv), q0.dtype)
    return TrajectorySamples(
        times=phase * duration,
        q=jnp.broadcast_to(q0, (n, *q0.shape)).at[:, at_q].add(bases[0] @ z),
        v=still.at[:, at_v].set(bases[1] @ z / duration),
        a=still.at[:, at_v].set(bases[2] @ z / duration**2),
    )
