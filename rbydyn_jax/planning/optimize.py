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

from .._check import check_array, check_integer, require
from .._errors import ArgumentError, DtypeError, ModelError
from ..collision import CapsulePairs
from ..model.model import Model, check_model
from ._arguments import default_pairs, outside_jit, pose, positive, real
from .cost import TrajectoryCost, total_cost
from .trajectory import Trajectory, bases, check_kind, on_grid

# A step runs some hundred times: without the optimisations of the machine code it is compiled four times faster, and
# still runs in a few milliseconds.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


class TrajectoryResult(eqx.Module):
    """Result of `optimize_trajectory`; `check_trajectory` verifies that it satisfies the limits.

    Args:
        trajectory: The motion with the minimum cost.
        initial: The motion from which the optimisation started.
        costs: Cost before each step.
    """

    trajectory: Trajectory
    initial: Trajectory
    costs: Float[Array, "steps"]


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
    a limit, and the bar a mean over a grid of times; by Adam with a cosine learning-rate schedule. Lengths are weighted
    against angles as 0.1 m to 1 rad. Everything but the numbers of points and coefficients and the choice of joints is
    an input of one compiled step, whose derivatives go through `rnea`, `link_pose` and `collision.signed_distances`.

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
        coefficients: Number of spline coefficients of each joint.
        points: Number of times at which limits and distances are evaluated.
        steps: Number of gradient steps.
        learning_rate: Maximum change of a coefficient in the first step [rad, m].
        progress: Called before each step with its number and the cost.

    Returns:
        The best motion, the initial one, and the cost of each step. Verify the motion with `check_trajectory`.

    Raises:
        ArgumentError: `duration` or `learning_rate` is not positive, `q_start` is not finite, `target` is not a pose,
            `initial` moves other joints, or a count is less than 1 (`points` less than 2).
        DtypeError: An argument is of another type.
        MissingExtraError: optax is not installed.
        ModelError: A joint has no coordinate of its own or more than one, or is listed twice.
        NameNotFoundError: There is no such link or joint.
        RbydynError: The call is traced by jit, vmap or grad.
        ShapeError: An argument has another shape.
    """
    require("optax", "opt", "planning.optimize_trajectory")
    check_model(model)
    outside_jit("optimize_trajectory", model, q_start, target, duration, initial, cost, learning_rate)
    q_start = check_array(q_start, "q_start", (model.nq,), "model.nq")
    if not np.isfinite(q_start).all():
        raise ArgumentError(f"q_start must be finite, got {np.asarray(q_start)}")
    target = pose(target, "target").astype(q_start.dtype)
    link = model.link_index(link)
    coefficients, steps = check_integer(coefficients, "coefficients", 1), check_integer(steps, "steps", 1)
    duration, learning_rate = positive(duration, "duration"), positive(learning_rate, "learning_rate")
    weights = _weights(cost)
    still = _still(model, q_start, joints, link, duration, coefficients)
    trajectory = still if initial is None else _like(still, initial)
    grid = np.linspace(0.0, 1.0, check_integer(points, "points", 2))
    problem = _Problem(
        jax.tree.map(lambda x: x.astype(q_start.dtype), model),
        target,
        jax.tree.map(lambda x: jnp.asarray(x, q_start.dtype), weights),
        jnp.asarray(grid, q_start.dtype),
        bases(trajectory, grid),
        link,
        default_pairs(model, collision_pairs),
    )
    state = _Search(
        trajectory, _optimizer().init(trajectory.coefficients), trajectory, jnp.asarray(jnp.inf, q_start.dtype)
    )
    costs = []
    for step in range(steps):
        rate = 0.5 * learning_rate * (1.0 + np.cos(np.pi * step / steps))
        state, value = _step(problem, state, jnp.asarray(rate, q_start.dtype))
        costs.append(value)
        if progress is not None:
            progress(step, float(value))
    return TrajectoryResult(state.best, trajectory, jnp.asarray(np.stack(costs)))


class _Problem(eqx.Module):
    """The data that all steps share."""

    model: Model
    target: Array
    cost: TrajectoryCost
    phase: Array
    bases: tuple[Array, ...]
    link: int = eqx.field(static=True)
    pairs: CapsulePairs | None = eqx.field(static=True)


class _Search(eqx.Module):
    """The current motion, the optimiser's state, and the best motion so far with its cost."""

    trajectory: Trajectory
    memory: Any
    best: Trajectory
    minimum: Array


@partial(jax.jit, compiler_options=QUICK_COMPILE)
def _step(problem: _Problem, search: _Search, rate: Array) -> tuple[_Search, Array]:
    now = search.trajectory

    def objective(z: Array) -> Array:
        at = on_grid(eqx.tree_at(lambda t: t.coefficients, now, z), problem.phase, problem.bases)
        return total_cost(problem.model, at, z, problem.target, problem.link, problem.pairs, problem.cost)

    value, gradient = jax.value_and_grad(objective)(now.coefficients)
    direction, memory = _optimizer().update(gradient, search.memory)
    better = value < search.minimum
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), now, search.best)
    moved = eqx.tree_at(lambda t: t.coefficients, now, now.coefficients - rate * direction)
    return _Search(moved, memory, best, jnp.minimum(value, search.minimum)), value


def _optimizer() -> Any:
    """Adam without its learning rate, which is an input of the step."""
    return require("optax", "opt", "planning.optimize_trajectory").scale_by_adam(b1=0.9, b2=0.99)


def _weights(cost: TrajectoryCost | None) -> TrajectoryCost:
    """The cost with Python floats as weights."""
    if not isinstance(cost, TrajectoryCost | None):
        raise DtypeError(f"cost must be a TrajectoryCost, got {type(cost).__name__}")
    given = vars(cost or TrajectoryCost())
    return TrajectoryCost(**{name: real(x, f"cost.{name}") for name, x in given.items()})


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
    """The initial motion's coefficients with the given start and duration."""
    check_kind(initial, "initial")
    if initial.q_indices != still.q_indices:
        raise ArgumentError("initial must move the joints named in joints=, and moves others")
    z = check_array(initial.coefficients, "initial.coefficients", still.coefficients.shape)
    return eqx.tree_at(lambda t: t.coefficients, still, z.astype(still.coefficients.dtype))
