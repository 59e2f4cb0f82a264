"""The conditions on a motion at one time, with their derivatives by position, velocity and acceleration.

A row is a scalar y(q, v, a, t) with bounds, scaled so that 1 is the limit, one radian or 0.1 m.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algorithms.derivatives import inverse_dynamics_matrices
from ..algorithms.energy import damping_forces
from ..algorithms.inverse_dynamics import motor_torques
from ..algorithms.rnea import newton_euler
from ..collision.robot import smooth_minimum
from ..collision.world import clearances
from ..model.tree import KinematicTree
from ..xla.transpose import values_and_pulls
from ._functions import returned
from .goals import ALONG, LENGTH, Moving
from .problem import TrajectoryProblem

_TEMPERATURE = 0.002  # [m] of the smooth minimum of distances


class Rows(NamedTuple):
    """Rows of one time, or of many with a leading axis.

    Attributes:
        value: Their values.
        lower: Their lower bounds.
        upper: Their upper bounds.
        slope: Their derivatives by position, velocity and acceleration.
        later: Those by the logarithm of the duration, of what depends on time itself; None of what does not.
    """

    value: Float[Array, "*t r"]
    lower: Float[Array, "*t r"]
    upper: Float[Array, "*t r"]
    slope: Float[Array, "*t r 3 m"] | None
    later: Float[Array, "*t r"] | None = None


Part = Callable[..., Rows]


def relative(limit: Array) -> tuple[Array, Array]:
    """What scales a quantity by its limit, and the limit scaled so: 1, 0 for a limit of zero, or infinite."""
    usable = jnp.isfinite(limit) & (limit > 0)
    return 1.0 / jnp.where(usable, limit, 1.0), jnp.where(usable, 1.0, limit)


def path_rows(
    problem: TrajectoryProblem, q: Array, v: Array | None, a: Array | None, t: Array, slopes: bool
) -> dict[str, Rows]:
    """All rows of one time, by kind; without velocity and acceleration those of a robot at rest."""
    found = {"torque": _torques(problem, q, v, a, slopes)}
    if problem.clearance is not None:
        found["clearance"] = _clearance(problem, q, slopes)
    if any(goal.when == ALONG for goal in problem.goals):
        found["path"] = _along(problem, q, slopes)
    for kind, low, functions in (("constraints", -jnp.inf, problem.constraints), ("costs", 0.0, problem.costs)):
        if functions:
            found[kind] = _given(problem, kind, functions, low, q, v, a, t, slopes)
    return found


def loaded(tree: KinematicTree, moving: Moving) -> np.ndarray:
    """Indices in v of the joints whose torques the moving joints can change."""
    of = [set(range(s.start, s.stop)) for s in tree.v_slices]
    chosen = {i for i in range(tree.nb) if of[i] & set(moving.v)}
    above = {k for i in chosen for k in tree.path(i)}
    below = {i for i in range(tree.nb) if set(tree.path(i)) & chosen}
    return np.array(sorted({k for i in above | below for k in of[i]}))


def _torques(problem: TrajectoryProblem, q: Array, v: Array | None, a: Array | None, slopes: bool) -> Rows:
    model = problem.model
    rows, columns = loaded(model.tree, problem.moving), np.array(problem.moving.v)
    scale, bound = relative(model.effort_limit[rows])
    bound = jnp.maximum(bound - model.friction[rows] * scale, 0.0)
    slope = None
    if slopes:
        tau, by_q, by_v, by_a = inverse_dynamics_matrices(model, q, v, a, None, wrt=("tau", "q", "v", "a"))
        by = (by_q, by_v + jnp.diag(model.damping), by_a)
        slope = jnp.stack([_taken(_taken(x, rows, 0), columns, 1) * scale[:, None] for x in by], axis=1)
    else:
        tau = newton_euler(model, q, v, a, None)
    if v is not None:
        tau = tau - damping_forces(model, v)
    return Rows(tau[rows] * scale, -bound, bound, slope)


def _taken(x: Array, index: np.ndarray, axis: int) -> Array:
    """The entries of an axis, by a slice where they are in a row: XLA's gathers are slow."""
    if (np.diff(index) == 1).all():
        return jax.lax.slice_in_dim(x, int(index[0]), int(index[-1]) + 1, axis=axis)
    return jnp.take(x, index, axis=axis)


def _clearance(problem: TrajectoryProblem, q: Array, slopes: bool) -> Rows:
    at = np.array(problem.moving.q)

    def smallest(x: Array) -> tuple[Array, ...]:
        found = clearances(problem.model, q.at[at].set(x), problem.world, problem.pairs)
        return tuple(smooth_minimum(d, _TEMPERATURE) / LENGTH for d in found)

    assert problem.clearance is not None  # there is something to stay clear of
    slope = None
    if slopes:
        found, pulls = values_and_pulls(smallest, q[at])
        slope = _by_position(jnp.stack([pull(jnp.ones((), q.dtype)) for pull in pulls]))
    else:
        found = smallest(q[at])
    d = jnp.stack(found)
    bound = jnp.broadcast_to(problem.clearance[None] / LENGTH, d.shape)
    return Rows(d, bound, jnp.full_like(d, jnp.inf), slope)


def _along(problem: TrajectoryProblem, q: Array, slopes: bool) -> Rows:
    goals = [goal for goal in problem.goals if goal.when == ALONG]
    found = [goal.evaluate(problem.model, q, problem.moving) for goal in goals]
    band = jnp.concatenate([goal.band() for goal in goals]).astype(q.dtype)
    slope = _by_position(jnp.concatenate([J for _, J in found])) if slopes else None
    return Rows(jnp.concatenate([e for e, _ in found]), -band, band, slope)


def _given(problem, kind: str, functions, low: float, q: Array, v, a, t: Array, slopes: bool) -> Rows:
    """The rows of functions that the user gave."""
    v, a = (jnp.zeros(problem.model.nv, q.dtype) if x is None else x for x in (v, a))
    at_q, at_v = np.array(problem.moving.q), np.array(problem.moving.v)

    def values(x: Array, t: Array) -> Array:
        own = q.at[at_q].set(x[0]), v.at[at_v].set(x[1]), a.at[at_v].set(x[2])
        tau = motor_torques(problem.model, *own)
        found = [returned(f(problem.model, *own, tau, t), f"{kind}[{i}]", (0, 1)) for i, f in enumerate(functions)]
        return jnp.concatenate([jnp.atleast_1d(x).astype(q.dtype) for x in found])

    x, slope, later = jnp.stack([q[at_q], v[at_v], a[at_v]]), None, None
    y = values(x, t)
    if slopes:
        slope = (jax.jacrev if y.size < x.size else jax.jacfwd)(values)(x, t)
        later = jax.jvp(lambda t: values(x, t), (t,), (t,))[1] if problem.duration is None else None
    return Rows(y, jnp.full_like(y, low), jnp.zeros_like(y), slope, later)


def _by_position(J: Array) -> Array:
    return jnp.stack([J, jnp.zeros_like(J), jnp.zeros_like(J)], axis=1)
