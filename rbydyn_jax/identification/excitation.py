r"""Motions that show the parameters well.

The condition number of the base columns of the regressor bounds how much noise of the torques is amplified. It is
minimized over the waypoints of smooth motions by the cross-entropy method [Rubinstein 1999]: of a population of random
motions the best tell where to look next. Each motion is shrunk joint by joint until it is within the limits; a joint
that starts near the end of its range moves about a point further inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .._check import check_array, check_integer, check_key, check_outside_jit, check_positive_number
from .._errors import ArgumentError, ModelError
from .._progress import Progress, check_progress, reported
from .._result import Result, count_of
from ..algorithms.inverse_dynamics import motor_torques
from ..collision import min_distance
from ..model.configuration import check_within_limits, neutral
from ..model.model import Model, check_model
from ..planning import Trajectory, rest_to_rest_basis, sample_trajectory
from .identifiability import base_parameters
from .parameter_vector import Term, check_terms, regressor

_FINE = 201  # times at which the limits of position, velocity and acceleration are kept
_MARGIN = 0.98  # of these limits
_ELITE = 0.125  # the share of the population that tells where to look next
_KEPT = 0.3  # of the former mean and deviation
_NEAR = 0.5 * np.pi  # [rad, m] an end of the range that is further away does not matter
_FORBIDDEN = 100.0  # cost of exceeding a limit of torque, or of clearance, by all of it


class ExcitingTrajectory(Result):
    """A motion for identification.

    Attributes:
        trajectory: From rest to rest; `planning.sample_trajectory` has its positions, velocities and accelerations.
        condition: Condition number of the base columns along it, each scaled to unit length, the rows in units of the
            limits of torque where there are some.
        history: The smallest cost after each iteration: the logarithm of the condition number, and more where torques
            or clearance are beyond their limits.
        feasible: Whether torques and clearance are within their limits.
    """

    trajectory: Trajectory
    condition: Float[Array, ""]
    history: Float[Array, "i"]
    feasible: Bool[Array, ""]

    def _headline(self) -> str:
        return count_of(self.feasible, "feasible")


def exciting_trajectory(
    model: Model,
    duration: float,
    *,
    q_start: Float[Array, "nq"] | None = None,
    terms: Sequence[Term] = ("inertia",),
    clearance: float | None = None,
    waypoints: int = 8,
    points: int = 60,
    population: int = 48,
    iterations: int = 20,
    key: PRNGKeyArray | None = None,
    progress: Progress = False,
) -> ExcitingTrajectory:
    """A motion from rest to rest within the limits whose torques show the parameters well.

    It is near a local optimum at best: more iterations, and another key, may find a better one. Called outside of
    `jit`.

    Args:
        model: The robot; its masses count for the limits of torque. Joints with several coordinates are at rest.
        duration: Time of the motion [s].
        q_start: Where it starts [rad, m]; default is the middle of the range of each joint, and where that has no end
            what is nearest to zero. A joint that starts at the end of its range moves inward.
        terms: The parameters to be shown; see `parameter_names`.
        clearance: Minimum distance of the collision shapes at the points [m]; None does not look at them.
        waypoints: How often the motion may change its direction.
        points: Number of times at which the regressor is evaluated, so many that there is a row for each base
            parameter; at both ends the robot is at rest.
        population: Number of motions in an iteration.
        iterations: Number of iterations.
        key: Key of the random motions; default is `jax.random.key(0)`.
        progress: Called with the number of iterations done and that of all; True shows a progress bar.

    Raises:
        ArgumentError: A number is too small, a term is unknown, or `q_start` is not within the limits.
        DtypeError: `progress` is neither a bool nor a function, or another argument is of another type or traced.
        MissingExtraError: A progress bar is asked for and tqdm is not installed.
        ModelError: No joint can move, or the limit of velocity, acceleration or torque of one that should is zero.
        ShapeError: `q_start` is not of shape `(model.nq,)`.
    """
    check_outside_jit("exciting_trajectory", model, q_start, key)
    model, terms = check_model(model), check_terms(terms)
    check_progress(progress)
    duration = check_positive_number(duration, "duration")
    counts = {"waypoints": waypoints, "points": points, "population": population, "iterations": iterations}
    least = {"waypoints": 1, "points": 3, "population": 8, "iterations": 1}
    waypoints, points, population, iterations = (check_integer(x, name, least[name]) for name, x in counts.items())
    tree, dtype = model.tree, model.inertias.dtype
    moving = [i for i, joint in enumerate(tree.joints) if joint.nq == joint.nv == 1 and tree.mimics[i] is None]
    if not moving:
        raise ModelError("no joint has a single coordinate of its own: there is nothing to move")
    at_q, at_v = (tuple(s[i].start for i in moving) for s in (tree.q_slices, tree.v_slices))
    for limit in ("velocity_limit", "acceleration_limit", "effort_limit"):
        for i, value in zip(moving, np.asarray(getattr(model, limit))[list(at_v)], strict=True):
            if value == 0.0:
                raise ModelError(f"joint {tree.joint_names[i]!r} cannot move: its {limit} is 0; infinity is no limit")
    if clearance is not None:
        check_positive_number(clearance, "clearance")
    middle = _middle(model) if q_start is None else check_array(q_start, "q_start", (model.nq,), "model.nq")
    check_within_limits(model, middle, "q_start")
    nothing = jnp.zeros((waypoints, len(moving)), dtype)
    still = Trajectory(middle.astype(dtype), nothing, jnp.asarray(duration, dtype), at_q, at_v, tree.nv)
    pivots = base_parameters(model, terms=terms).pivots
    if (fewest := math.ceil(len(pivots) / model.nv) + 1) > points:
        raise ArgumentError(f"points must be at least {fewest} for {len(pivots)} base parameters, got {points}")
    fixed = {"pivots": pivots, "terms": terms, "clearance": clearance, "points": points}
    evaluate = functools.partial(_evaluated, model, still, **fixed)
    key = jax.random.key(0) if key is None else check_key(key)
    low, high = (x[np.array(at_q)] for x in (model.position_lower, model.position_upper))
    width = jnp.where(jnp.isfinite(high - low), high - low, np.pi)
    mean, spread = jnp.zeros_like(still.coefficients), jnp.broadcast_to(0.5 * width, still.coefficients.shape)
    best: tuple[float, Array] = (np.inf, mean)
    history = []
    for own in reported(jax.random.split(key, iterations), progress, iterations, "exciting_trajectory"):
        tried = mean[None] + spread[None] * jax.random.normal(own, (population, *mean.shape), dtype)
        cost = np.asarray(evaluate(tried)[0])
        order = np.argsort(cost)
        if cost[order[0]] < best[0]:
            best = float(cost[order[0]]), tried[order[0]]
        elite = tried[order[: max(2, int(_ELITE * population))]]
        mean = _KEPT * mean + (1.0 - _KEPT) * elite.mean(axis=0)
        spread = _KEPT * spread + (1.0 - _KEPT) * elite.std(axis=0)
        history.append(best[0])
    _, condition, feasible = (x[0] for x in evaluate(best[1][None]))
    return ExcitingTrajectory(_within_limits(model, still, best[1]), condition, jnp.array(history), feasible)


def _middle(model: Model) -> Array:
    low, high = model.position_lower, model.position_upper
    return jnp.where(jnp.isfinite(high - low), 0.5 * (low + high), jnp.clip(neutral(model), low, high))


def _within_limits(model: Model, still: Trajectory, waypoints: Array) -> Trajectory:
    """The motion through the waypoints, displacements from a point inside, each joint shrunk to keep its limits."""
    count, at_q, at_v = waypoints.shape[0], np.array(still.q_indices), np.array(still.v_indices)
    phases = np.arange(1, count + 1) / count
    solve = jnp.asarray(np.linalg.pinv(rest_to_rest_basis(count, phases)), waypoints.dtype)
    start = still.q_start[at_q]
    above, below = model.position_upper[at_q] - start, model.position_lower[at_q] - start
    inside = 0.5 * (jnp.minimum(above, _NEAR) + jnp.maximum(below, -_NEAR))

    def through(waypoints: Array) -> Trajectory:
        coefficients = jnp.matmul(solve, waypoints, precision="highest")
        return eqx.tree_at(lambda t: t.coefficients, still, coefficients)

    free, inward = through(waypoints), through(jnp.broadcast_to(inside[None], waypoints.shape))
    moved, shifted = (sample_trajectory(x, _FINE) for x in (free, inward))
    away, near = (x.q[:, at_q] - start[None] for x in (moved, shifted))
    size, room = jnp.abs(away), jnp.where(away > 0.0, above[None] - near, near - below[None])
    factor = jnp.min(jnp.where(size > 0.0, room / jnp.where(size > 0.0, size, 1.0), jnp.inf), axis=0)
    factor = jnp.clip(_MARGIN * factor, 0.0, 1.0)
    fastest, strongest = (
        jnp.abs(y[:, at_v] + factor[None] * x[:, at_v]).max(axis=0) / limit[at_v]
        for x, y, limit in (
            (moved.v, shifted.v, model.velocity_limit),
            (moved.a, shifted.a, model.acceleration_limit),
        )
    )
    shrunk = _MARGIN / jnp.maximum(jnp.maximum(fastest, strongest), _MARGIN)
    coefficients = shrunk[None] * (inward.coefficients + factor[None] * free.coefficients)
    return eqx.tree_at(lambda t: t.coefficients, still, coefficients)


@functools.partial(jax.jit, static_argnames=("pivots", "terms", "clearance", "points"))
def _evaluated(
    model: Model,
    still: Trajectory,
    tried: Array,
    *,
    pivots: tuple[int, ...],
    terms: tuple[Term, ...],
    clearance: float | None,
    points: int,
) -> tuple[Array, Array, Array]:
    """The cost of each motion, its condition number, and whether it is feasible."""
    limit = model.effort_limit
    units = jnp.where(jnp.isfinite(limit) & (limit > 0.0), limit, 1.0)

    def of(waypoints: Array) -> tuple[Array, Array, Array]:
        at = sample_trajectory(_within_limits(model, still, waypoints), points)
        Y = jax.vmap(lambda q, v, a: regressor(model, q, v, a, terms, None)[:, np.array(pivots)])(at.q, at.v, at.a)
        rows = (Y / units[None, :, None]).reshape(-1, len(pivots))
        sizes = jnp.linalg.norm(rows, axis=0)
        rows = rows / jnp.where(sizes > 0.0, sizes, 1.0)[None]
        moments = jnp.linalg.eigvalsh(jnp.matmul(rows.T, rows, precision="highest"))
        shown = moments[-1] > 0.0
        least = jnp.where(shown, jnp.maximum(moments[0], jnp.finfo(moments.dtype).eps * moments[-1]), 1.0)
        condition = jnp.where(shown, jnp.sqrt(jnp.where(shown, moments[-1], 1.0) / least), jnp.inf)
        torques = jax.vmap(motor_torques, (None, 0, 0, 0))(model, at.q, at.v, at.a)
        largest = jnp.max(jnp.abs(torques), axis=0)
        ratio = jnp.where(largest > 0.0, largest / jnp.where(largest > 0.0, limit, 1.0), 0.0)
        excess = jnp.maximum(jnp.max(ratio) - 1.0, 0.0)
        if clearance is not None:
            nearest = jnp.min(jax.vmap(lambda q: min_distance(model, q))(at.q))
            excess += jnp.maximum(clearance - nearest, 0.0) / clearance
        return jnp.log(condition) + _FORBIDDEN * excess, condition, excess == 0.0

    return jax.lax.map(of, tried)
