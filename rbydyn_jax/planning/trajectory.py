"""Optimisation of a joint trajectory from rest to rest, by gradients through kinematics, dynamics and distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, require
from .._errors import ModelError, ShapeError
from ..algorithms.energy import damping_forces, friction_forces
from ..algorithms.inverse_dynamics import rnea
from ..algorithms.kinematics import link_pose
from ..collision import CapsulePairs, pairs, signed_distances
from ..model.model import Model
from ..spatial import se3
from .spline import rest_to_rest_basis

_LENGTH_WEIGHT = 100.0  # (1 rad / 0.1 m)^2
# A step runs some hundred times: without the optimisations of the machine code it is compiled four times faster, and
# still runs in a few milliseconds.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


class Trajectory(eqx.Module):
    """A motion from rest to rest: a spline of degree 5 for each moving joint, all others held still.

    Args:
        q_start: Configuration at time 0 [rad, m].
        coefficients: Displacements in the basis of `planning.spline`, one column for each moving joint [rad, m].
        duration: Time from start to end [s].
        q_indices: Where the moving joints stand in q; static.
        v_indices: Where they stand in v; static.
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


class TrajectoryCost(eqx.Module):
    """Weights and margins of the cost; all are inputs of the compiled step, so that a change compiles nothing.

    Args:
        pose: Weight of the squared error of the final pose, per rad^2, and per (0.1 m)^2.
        smoothness: Weight of the integral of squared jerk; 1 for the smoothest motion of one joint over one radian.
        limits: Weight of the squared excess over limits of position [rad^2, m^2] and of velocity, acceleration and
            torque (relative), summed over joints, mean over time.
        collision: Weight of the squared lack of distance, per (0.1 m)^2, summed over pairs, mean over time.
        limit_margin: How far below its limits every quantity is to stay, relative to the limit (positions: [rad, m]).
        distance_margin: Distance that every pair is to keep [m].
    """

    pose: Float[Array, ""] | float = 1e3
    smoothness: Float[Array, ""] | float = 1.0
    limits: Float[Array, ""] | float = 1e3
    collision: Float[Array, ""] | float = 1e4
    limit_margin: Float[Array, ""] | float = 0.03
    distance_margin: Float[Array, ""] | float = 0.02


class TrajectoryResult(eqx.Module):
    """What `optimize_trajectory` found; whether it keeps the limits is told by `check_trajectory`.

    Args:
        trajectory: The motion of least cost that was met.
        initial: The motion from which the optimisation started.
        costs: Cost before each step.
    """

    trajectory: Trajectory
    initial: Trajectory
    costs: Float[Array, "steps"]


def sample_trajectory(trajectory: Trajectory, points: int = 101) -> TrajectorySamples:
    """Positions, velocities and accelerations at equally spaced times, start and end included.

    Args:
        trajectory: The motion.
        points: Number of times, at least 2.

    Raises:
        ShapeError: `points` is less than 2.

    Example:
        One joint over one radian in two seconds, the smoothest way: halfway in the middle, at 15/8 of the mean speed.

        >>> motion = Trajectory(jnp.zeros(1), jnp.ones((1, 1)), jnp.asarray(2.0), (0,), (0,), nv=1)
        >>> halfway = sample_trajectory(motion, 3)
        >>> float(halfway.q[1, 0]), float(halfway.v[1, 0])
        (0.5, 0.9375)
    """
    if points < 2:
        raise ShapeError(f"points must be at least 2, got {points}")
    phase = np.linspace(0.0, 1.0, points)
    return _on_grid(trajectory, jnp.asarray(phase, trajectory.q_start.dtype), _bases(trajectory, phase))


def optimize_trajectory(
    model: Model,
    q_start: Float[Array, "nq"],
    link: str | int,
    target: Float[Array, "4 4"],
    *,
    duration: float,
    joints: Sequence[str | int] | None = None,
    initial: Trajectory | None = None,
    cost: TrajectoryCost | None = None,
    collision_pairs: CapsulePairs | None = None,
    coefficients: int = 8,
    points: int = 48,
    steps: int = 600,
    learning_rate: float = 0.03,
    progress: Callable[[int, float], None] | None = None,
) -> TrajectoryResult:
    r"""Finds a smooth motion from rest to rest that brings a link to a pose within the limits and without
    self-collision.

    Minimises over the spline coefficients z of the moving joints

    $$w_s |z|^2 + w_p |e(z)|^2 + w_l \, \overline{[q, v, a, \tau]_+^2} + w_c \, \overline{[d_{min} - d]_+^2}$$

    where e is the logarithm of the final pose error, $|z|^2$ the integral of squared jerk, $[\cdot]_+$ the excess over
    a limit, and the bar a mean over a grid of times; by Adam with a learning rate that falls as a cosine. Lengths count
    against angles as 0.1 m to 1 rad. Everything but the numbers of points, coefficients and the chosen joints is an
    input of one compiled step, whose derivatives go through `rnea`, `link_pose` and `collision.signed_distances`.

    Args:
        model: The robot.
        q_start: Configuration at the start [rad, m].
        link: The link to be brought to the target, by name or index.
        target: Its final pose T_world_link.
        duration: Time for the motion [s].
        joints: The joints that may move, each with one coordinate, by name or index; default is those on the way from
            the root to `link`.
        initial: A motion of the same joints and number of coefficients to start from; default is to stay at `q_start`.
        cost: Weights and margins.
        collision_pairs: The pairs of capsules to keep apart; default is `collision.pairs(model)`, none if the robot has
            no capsules.
        coefficients: Freedom of each joint.
        points: Times at which limits and distances count.
        steps: Number of gradient steps.
        learning_rate: The first step's largest change of a coefficient [rad, m].
        progress: Called before each step with its number and the cost.

    Returns:
        The best motion met, the initial one, and the course of the cost. Tell by `check_trajectory` if it is good.

    Raises:
        MissingExtraError: optax is not installed.
        ModelError: A joint has no coordinate of its own or more than one, or `initial` moves other joints.
        NameNotFoundError: There is no such link or joint.
        ShapeError: An argument has another shape, or a count is less than 1.
    """
    require("optax", "opt", "planning.optimize_trajectory")
    q_start = check_array(q_start, "q_start", (model.nq,), "model.nq")
    target = check_array(target, "target", (4, 4), "T_world_link").astype(q_start.dtype)
    link = model.link_index(link)
    if min(coefficients, steps) < 1 or points < 2:
        raise ShapeError("coefficients and steps must be at least 1, points at least 2")
    still = _still(model, q_start, joints, link, duration, coefficients)
    trajectory = still if initial is None else _like(still, initial)
    grid = np.linspace(0.0, 1.0, points)
    problem = _Problem(
        jax.tree.map(lambda x: x.astype(q_start.dtype), model),
        target,
        jax.tree.map(lambda x: jnp.asarray(x, q_start.dtype), cost or TrajectoryCost()),
        jnp.asarray(grid, q_start.dtype),
        _bases(trajectory, grid),
        link,
        default_pairs(model, collision_pairs),
    )
    state = _Search(
        trajectory, _optimizer().init(trajectory.coefficients), trajectory, jnp.asarray(jnp.inf, grid.dtype)
    )
    costs = []
    for step in range(steps):
        rate = 0.5 * learning_rate * (1.0 + np.cos(np.pi * step / steps))
        state, value = _step(problem, state, jnp.asarray(rate, q_start.dtype))
        costs.append(value)
        if progress is not None:
            progress(step, float(value))
    return TrajectoryResult(state.best, trajectory, jnp.stack(costs))


def default_pairs(model: Model, chosen: CapsulePairs | None) -> CapsulePairs | None:
    """The pairs to keep apart: the chosen ones, or the robot's own, or None if there are none."""
    if chosen is None and model.tree.capsule_links:
        chosen = pairs(model)
    return chosen if chosen else None


def joint_forces(model: Model, q: Array, v: Array, a: Array) -> Array:
    """What the actuators have to give: inverse dynamics with damping and Coulomb friction [N m, N]."""
    return rnea(model, q, v, a) - damping_forces(model, v) - friction_forces(model, v)


class _Problem(eqx.Module):
    """What stays the same from step to step."""

    model: Model
    target: Array
    cost: TrajectoryCost
    phase: Array
    bases: tuple[Array, ...]
    link: int = eqx.field(static=True)
    pairs: CapsulePairs | None = eqx.field(static=True)


class _Search(eqx.Module):
    """The present motion, the optimiser's memory, and the best motion so far with its cost."""

    trajectory: Trajectory
    memory: Any
    best: Trajectory
    least: Array


@partial(jax.jit, compiler_options=QUICK_COMPILE)
def _step(problem: _Problem, search: _Search, rate: Array) -> tuple[_Search, Array]:
    now = search.trajectory

    def objective(z: Array) -> Array:
        return _total_cost(problem, eqx.tree_at(lambda t: t.coefficients, now, z))

    value, gradient = jax.value_and_grad(objective)(now.coefficients)
    direction, memory = _optimizer().update(gradient, search.memory)
    better = value < search.least
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), now, search.best)
    moved = eqx.tree_at(lambda t: t.coefficients, now, now.coefficients - rate * direction)
    return _Search(moved, memory, best, jnp.minimum(value, search.least)), value


def _optimizer() -> Any:
    """Adam without its learning rate, which is an input of the step."""
    return require("optax", "opt", "planning.optimize_trajectory").scale_by_adam(b1=0.9, b2=0.99)


def _total_cost(problem: _Problem, trajectory: Trajectory) -> Array:
    model, cost = problem.model, problem.cost
    at = _on_grid(trajectory, problem.phase, problem.bases)
    error = pose_error(link_pose(model, at.q[-1], problem.link), problem.target)
    tau = jax.vmap(joint_forces, in_axes=(None, 0, 0, 0))(model, at.q, at.v, at.a)
    margin = cost.limit_margin
    room = 1.0 - margin
    excess = [
        at.q - (model.position_upper - margin),
        (model.position_lower + margin) - at.q,
        jnp.abs(at.v) / model.velocity_limit - room,
        jnp.abs(at.a) / model.acceleration_limit - room,
        jnp.abs(tau) / model.effort_limit - room,
    ]
    total = cost.smoothness * jnp.sum(trajectory.coefficients**2)
    total += cost.pose * (jnp.sum(error[:3] ** 2) + _LENGTH_WEIGHT * jnp.sum(error[3:] ** 2))
    for x in excess:
        total += cost.limits * jnp.mean(jnp.sum(jnp.maximum(x, 0.0) ** 2, axis=1))
    if problem.pairs is not None:
        d = jax.vmap(partial(signed_distances, pairs=problem.pairs), in_axes=(None, 0))(model, at.q)
        lack = jnp.maximum(cost.distance_margin - d, 0.0)
        total += cost.collision * _LENGTH_WEIGHT * jnp.mean(jnp.sum(lack**2, axis=1))
    return total


def pose_error(pose: Float[Array, "4 4"], target: Float[Array, "4 4"]) -> Float[Array, "6"]:
    """The twist [rad, m] that leads from a pose to the target in unit time, in the axes of the link."""
    return se3.log(se3.inverse(pose) @ target)


def _bases(trajectory: Trajectory, phase: np.ndarray) -> tuple[Array, ...]:
    count, dtype = trajectory.coefficients.shape[0], trajectory.q_start.dtype
    return tuple(jnp.asarray(rest_to_rest_basis(count, phase, d), dtype) for d in range(3))


def _on_grid(trajectory: Trajectory, phase: Array, bases: Sequence[Array]) -> TrajectorySamples:
    z, duration, q0 = trajectory.coefficients, trajectory.duration, trajectory.q_start
    n, at_q, at_v = phase.shape[0], np.array(trajectory.q_indices, int), np.array(trajectory.v_indices, int)
    still = jnp.zeros((n, trajectory.nv), q0.dtype)
    return TrajectorySamples(
        times=phase * duration,
        q=jnp.broadcast_to(q0, (n, *q0.shape)).at[:, at_q].add(bases[0] @ z),
        v=still.at[:, at_v].set(bases[1] @ z / duration),
        a=still.at[:, at_v].set(bases[2] @ z / duration**2),
    )


def _still(
    model: Model, q_start: Array, joints: Sequence[str | int] | None, link: int, duration: float, coefficients: int
) -> Trajectory:
    """The trajectory that stays at the start."""
    tree = model.tree
    own = [m is None and j.nq == j.nv == 1 for m, j in zip(tree.mimics, tree.joints, strict=True)]
    if joints is None:
        moving = [i for i in tree.path(tree.link_bodies[link]) if own[i]]
    else:
        moving = [model.joint_index(joint) for joint in joints]
    if not moving:
        raise ModelError(f"no joint moves link {tree.link_names[link]!r}; name the moving joints with joints=")
    for i in moving:
        if not own[i] or moving.count(i) > 1:
            reason = "is listed twice" if own[i] else f"has no single coordinate of its own ({tree.joint_types[i]})"
            raise ModelError(f"joint {tree.joint_names[i]!r} {reason}")
    return Trajectory(
        q_start,
        jnp.zeros((coefficients, len(moving)), q_start.dtype),
        jnp.asarray(duration, q_start.dtype),
        tuple(tree.q_slices[i].start for i in moving),
        tuple(tree.v_slices[i].start for i in moving),
        tree.nv,
    )


def _like(still: Trajectory, initial: Trajectory) -> Trajectory:
    """The initial motion's coefficients on the start and duration asked for."""
    if initial.q_indices != still.q_indices:
        raise ModelError("initial moves other joints than joints= says")
    z = check_array(initial.coefficients, "initial.coefficients", still.coefficients.shape)
    return eqx.tree_at(lambda t: t.coefficients, still, z.astype(still.coefficients.dtype))
