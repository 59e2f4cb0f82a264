"""The short form of trajectory optimization: one or several links to poses, from rest to rest."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from jaxtyping import Array, Float

from .._check import check_array, check_outside_jit
from .._errors import ArgumentError, DtypeError
from ..collision import ShapePairs
from ..model.model import Model, check_model
from ._arguments import warn_of_no_shapes
from .goals import PoseGoal
from .problem import TrajectoryProblem
from .solve import TrajectoryResult, solve_trajectory
from .trajectory import Trajectory

_OPTIONS = tuple(p.name for p in signature(TrajectoryProblem.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY)


def optimize_trajectory(
    model: Model,
    q_start: Float[Array, "nq"],
    link: str | int | tuple[str | int, ...],
    target: Float[Array, "4 4"] | Float[Array, "k 4 4"],
    *,
    duration: Float[Array, ""] | float | None,
    joints: Sequence[str | int] | None = None,
    initial: Trajectory | None = None,
    clearance: Float[Array, ""] | float | None = 0.01,
    collision_pairs: ShapePairs | None = None,
    **options: Any,
) -> TrajectoryResult:
    """Finds a smooth motion from rest to rest that brings one or several links to poses within the limits and without
    self-collision.

    The short form of `solve_trajectory` with a `TrajectoryProblem`: all values are checked, so call it outside of jit,
    vmap and grad. Under these, for a batch, and for other goals, write the problem.

    Args:
        model: The robot.
        q_start: Configuration at the start [rad, m].
        link: The link to be brought to the target, by name or index; or a tuple of links.
        target: Its final pose T_world_link; (k, 4, 4) for k links.
        duration: Time for the motion [s]; None is a short one, to be found.
        joints: The joints that may move, each with one coordinate, by name or index; default is those on the way from
            the root to the links, and those that joints on the way mimic.
        initial: A motion of the same joints and number of coefficients to start from; default is the smoothest motion
            to a configuration that reaches the target.
        clearance: Minimum distance of every pair of collision shapes [m]; None does not look at collisions.
        collision_pairs: The pairs of shapes to keep apart; default is `collision.pairs(model)`.
        **options: All other arguments of `TrajectoryProblem`.

    Returns:
        The motion, whether it is a solution (`solved`, `status`), and what it violates. `check_trajectory` measures it
        anew.

    Raises:
        ArgumentError: A value is wrong: `duration` is not positive, `q_start` is not finite, `target` is not a pose,
            `initial` moves other joints, or a count is less than 1.
        DtypeError: An argument is of another type or traced, or there is no such argument.
        ModelError: A joint has no coordinate of its own or more than one, or is listed twice.
        NameNotFoundError: There is no such link or joint.
        ShapeError: An argument has another shape.

    Warns:
        UserWarning: The robot has no collision shapes: nothing is known of collisions.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.planning import optimize_trajectory
        >>> arm = robots.two_link_arm()
        >>> target = link_pose(arm, jnp.array([0.8, 0.6]), "tool")
        >>> result = optimize_trajectory(arm, jnp.zeros(2), "tool", target, duration=1.0, clearance=None)
        >>> bool(result.solved)
        True
    """
    for name in options:
        if name not in _OPTIONS:
            hint = "; link and target are the goals, TrajectoryProblem takes others" if name == "goals" else ""
            raise DtypeError(f"optimize_trajectory has no argument {name!r}{hint}")
    check_model(model)
    check_outside_jit(
        "optimize_trajectory", model, q_start, target, duration, initial, clearance, options, use="solve_trajectory"
    )
    links = link if isinstance(link, tuple) else (link,)
    if not links:
        raise ArgumentError("link must name at least one link")
    shape = (len(links), 4, 4) if isinstance(link, tuple) else (4, 4)
    targets = check_array(target, "target", shape, "T_world_link").reshape(-1, 4, 4)
    goals = [PoseGoal(k, T) for k, T in zip(links, targets, strict=True)]
    if clearance is not None:
        warn_of_no_shapes(model)
    problem = TrajectoryProblem(
        model,
        q_start,
        goals,
        duration=duration,
        joints=joints,
        initial=initial,
        clearance=clearance,
        collision_pairs=collision_pairs,
        **options,
    )
    return solve_trajectory(problem)
