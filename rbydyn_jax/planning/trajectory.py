"""A joint trajectory, and its positions, velocities and accelerations."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_integer, check_single
from .._errors import DtypeError
from .._result import Result
from .spline import LEAST_JERK, end_velocity_basis, end_velocity_jerk, rest_to_rest_basis


class Motion(Protocol):
    """A joint motion that `sample_trajectory` and `check_trajectory` take: a `Trajectory` or a `TimedPath`."""

    @property
    def q_start(self) -> Float[Array, "nq"]:
        """Configuration at time 0 [rad, m]."""
        ...

    @property
    def nv(self) -> int:
        """Size of the velocity."""
        ...

    @property
    def squared_jerk(self) -> Float[Array, ""]:
        """Integral of the squared joint jerks [rad^2/s^5, m^2/s^5]."""
        ...

    def samples(self, points: int) -> TrajectorySamples:
        """Positions, velocities and accelerations at equally spaced times, start and end included."""
        ...

    def jerks(self, points: int) -> Float[Array, "t nv"]:
        """Jerks at these times, or their means between neighbouring ones [rad/s^3, m/s^3]."""
        ...


class Trajectory(Result):
    """A spline of degree 5 for each moving joint, with acceleration zero at both ends; all others are at rest.

    Attributes:
        q_start: Configuration at time 0 [rad, m].
        coefficients: Displacements in the basis of `planning.spline`, one column for each moving joint [rad, m].
        duration: Time from start to end [s].
        q_indices: Indices of the moving joints in q; static.
        v_indices: Their indices in v; static.
        nv: Size of the velocity; static.
        end_velocities: Velocities of the moving joints at the start and at the end [rad/s, m/s]; None is at rest.
    """

    q_start: Float[Array, "nq"]
    coefficients: Float[Array, "k n"]
    duration: Float[Array, ""]
    q_indices: tuple[int, ...] = eqx.field(static=True)
    v_indices: tuple[int, ...] = eqx.field(static=True)
    nv: int = eqx.field(static=True)
    end_velocities: Float[Array, "2 n"] | None = None

    @property
    def squared_jerk(self) -> Float[Array, ""]:
        """Integral of the squared joint jerks [rad^2/s^5, m^2/s^5]."""
        z, ends = self.coefficients, 0.0
        if self.end_velocities is not None:
            gram = jnp.asarray(end_velocity_jerk(z.shape[-2]), z.dtype)
            moved = self.end_velocities * (gram @ self.end_velocities)
            ends = self.duration**2 * jnp.sum(moved, axis=(-2, -1))
        return (LEAST_JERK * jnp.sum(z**2, axis=(-2, -1)) + ends) / self.duration**5

    def samples(self, points: int) -> TrajectorySamples:
        """Positions, velocities and accelerations at equally spaced times, start and end included, at least 2."""
        check_single(self.q_start.shape[:-1], "motion")
        return on_grid(self, basis(self.coefficients.shape[0], check_integer(points, "points", 2)))

    def jerks(self, points: int) -> Float[Array, "t nv"]:
        """Joint jerks at equally spaced times, start and end included, at least 2 [rad/s^3, m/s^3]."""
        check_single(self.q_start.shape[:-1], "motion")
        grid = basis(self.coefficients.shape[0], check_integer(points, "points", 2))
        still = jnp.zeros((points, self.nv), self.coefficients.dtype)
        return still.at[:, np.array(self.v_indices, int)].set(motion(self, grid, orders=4)[3])


class TrajectorySamples(Result):
    """A trajectory on a grid of times.

    Attributes:
        times: Times [s].
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s].
        a: Accelerations [rad/s^2, m/s^2].
    """

    times: Float[Array, "t"]
    q: Float[Array, "t nq"]
    v: Float[Array, "t nv"]
    a: Float[Array, "t nv"]


def sample_trajectory(trajectory: Motion, points: int = 101) -> TrajectorySamples:
    """Positions, velocities and accelerations at equally spaced times, start and end included.

    Args:
        trajectory: The motion.
        points: Number of times, at least 2.

    Returns:
        Times, and the configuration, velocity and acceleration at each.

    Raises:
        ArgumentError: `points` is less than 2.
        DtypeError: `trajectory` is not a `Trajectory` or `TimedPath`, or `points` is not an integer.
        ShapeError: `trajectory` is a batch.

    Example:
        One joint over one radian in two seconds with minimum jerk: halfway in the middle, at 15/8 of the mean speed.

        >>> motion = Trajectory(jnp.zeros(1), jnp.ones((1, 1)), jnp.asarray(2.0), (0,), (0,), nv=1)
        >>> halfway = sample_trajectory(motion, 3)
        >>> float(halfway.q[1, 0]), float(halfway.v[1, 0])
        (0.5, 0.9375)
    """
    points = check_integer(points, "points", 2)
    return check_motion(trajectory, "trajectory").samples(points)


def check_motion(x: Any, name: str) -> Motion:
    """Returns `x`, which must be a single `Motion`."""
    found: Motion = x if callable(getattr(x, "samples", None)) else check_kind(x, name)
    check_single(found.q_start.shape[:-1], name)
    return found


def check_kind(x: Any, name: str) -> Trajectory:
    """Returns `x`, which must be a `Trajectory`."""
    if not isinstance(x, Trajectory):
        hint = "; pass its .trajectory" if isinstance(getattr(x, "trajectory", None), Trajectory) else ""
        raise DtypeError(f"{name} must be a Trajectory, got {type(x).__name__}{hint}")
    return x


class Basis(NamedTuple):
    """The basis motions on a grid of phases, and their first three derivatives.

    Attributes:
        phase: The grid.
        rest: The motions from rest to rest.
        ends: The motions that carry the end velocities.
    """

    phase: Float[np.ndarray, "t"]
    rest: Float[np.ndarray, "4 t k"]
    ends: Float[np.ndarray, "4 t 2"]


@lru_cache(maxsize=64)
def basis(count: int, points: int) -> Basis:
    """The basis with `count` coefficients on equally spaced phases, both ends included."""
    return basis_at(count, tuple(np.linspace(0.0, 1.0, points).tolist()))


@lru_cache(maxsize=64)
def basis_at(count: int, phase: tuple[float, ...]) -> Basis:
    """The basis at some phases."""
    at = np.array(phase)
    rest, ends = (np.stack([f(count, at, d) for d in range(4)]) for f in (rest_to_rest_basis, end_velocity_basis))
    return Basis(at, rest, ends)


def motion(trajectory: Trajectory, basis: Basis, orders: int = 3) -> tuple[Array, ...]:
    """Positions, velocities, accelerations, and with four orders jerks (t, n) of the moving joints."""
    z, T = trajectory.coefficients, trajectory.duration
    rest = [jnp.asarray(B, z.dtype) @ z for B in basis.rest[:orders]]
    if trajectory.end_velocities is not None:
        carried = [jnp.asarray(E, z.dtype) @ trajectory.end_velocities for E in basis.ends[:orders]]
        rest = [x + T * y for x, y in zip(rest, carried, strict=True)]
    start = trajectory.q_start[np.array(trajectory.q_indices, int)]
    return start[None] + rest[0], *(x / T**k for k, x in enumerate(rest) if k)


def on_grid(trajectory: Trajectory, basis: Basis) -> TrajectorySamples:
    """The trajectory where `basis` was evaluated."""
    moved = motion(trajectory, basis)
    q0, n = trajectory.q_start, len(basis.phase)
    at_q, at_v = np.array(trajectory.q_indices, int), np.array(trajectory.v_indices, int)
    still = jnp.zeros((n, trajectory.nv), q0.dtype)
    return TrajectorySamples(
        times=jnp.asarray(basis.phase, q0.dtype) * trajectory.duration,
        q=jnp.broadcast_to(q0, (n, *q0.shape)).at[:, at_q].set(moved[0]),
        v=still.at[:, at_v].set(moved[1]),
        a=still.at[:, at_v].set(moved[2]),
    )
