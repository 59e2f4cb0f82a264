"""The task of the demo: the right hand of the RB-Y1 A goes around the left forearm."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model.edit import with_limits
from ..model.model import Model
from ..planning import PoseGoal, Trajectory, TrajectoryProblem, TrajectoryResult, solve_trajectory
from ..robots import rby1a
from ..spatial import rpy, se3

_TORSO = tuple(f"torso_{i}" for i in range(6))
_RIGHT_ARM = tuple(f"right_arm_{i}" for i in range(7))
_LEFT_ARM = tuple(f"left_arm_{i}" for i in range(7))
# Rest: knees bent, the left forearm across the chest, the right hand below it [deg].
_REST = dict(zip(_TORSO, (0, 30, -60, 30, 0, 0), strict=True))
_REST |= dict(zip(_RIGHT_ARM, (10, -10, 10, -70, 0, 0, 0), strict=True))
_REST |= dict(zip(_LEFT_ARM, (-30, 20, -60, -80, 0, 0, 0), strict=True))
# The hand ends above the left forearm [m], reaching forwards, to the left and down a little [deg].
_TARGET_POSITION, _TARGET_RPY = (0.38, 0.16, 1.2), (0, -70, 35)
CLEARANCE = 0.02  # [m]


@dataclass(frozen=True)
class Task:
    """A robot at rest and a pose that one of its links is to reach.

    Args:
        title: What is to be done.
        model: The robot.
        q_start: Configuration at rest [rad].
        link: The link to be moved.
        target: T_world_link at the end.
        joints: The joints that may move.
        duration: Time for the motion [s].
        limb: The links to be drawn along the path.
    """

    title: str
    model: Model
    q_start: Float[Array, "nq"]
    link: str
    target: Float[Array, "4 4"]
    joints: tuple[str, ...]
    duration: float
    limb: tuple[str, ...]


def reaching_task() -> Task:
    """The task, in JAX's default precision."""
    model, hand = rby1a(), "ee_right"
    q = np.zeros(model.nq)
    for joint, angle in _REST.items():
        q[model.tree.q_slices[model.joint_index(joint)]] = np.deg2rad(angle)
    R = rpy.to_matrix(jnp.asarray(np.deg2rad(_TARGET_RPY)))
    return Task(
        title="the right hand reaches around the left forearm",
        model=model,
        q_start=jnp.asarray(q),
        link=hand,
        target=se3.from_R_p(R, jnp.asarray(_TARGET_POSITION)),
        joints=_TORSO + _RIGHT_ARM,
        duration=0.6,
        limb=tuple(name for name in model.link_names if name.startswith(("link_right_arm", hand))),
    )


def problem(task: Task, *, heedless: bool = False) -> TrajectoryProblem:
    """The task as a problem; a heedless one has no limits and looks at no collision, with the same arrays."""
    model, clearance = task.model, CLEARANCE
    if heedless:
        unlimited = jnp.full(model.nv, jnp.inf)
        model = with_limits(model, velocity_limit=unlimited, acceleration_limit=unlimited, effort_limit=unlimited)
        clearance = -jnp.inf  # always kept, where None would be another program to compile
    goal = PoseGoal(task.link, task.target)
    return TrajectoryProblem(
        model, task.q_start, [goal], duration=task.duration, joints=task.joints, clearance=clearance
    )


def at_rest(task: Task) -> Trajectory:
    """The motion that stays where it is, of the same joints as the solutions."""
    rest = problem(task)
    return rest.trajectory(jnp.zeros((rest.coefficients, len(rest.moving.q))), jnp.asarray(rest.duration))


# It runs for a tenth of a second: what the user waits for is the compiler.
_solve = jax.jit(solve_trajectory, compiler_options={"xla_backend_optimization_level": 0})


def solve(task: Task) -> tuple[TrajectoryResult, TrajectoryResult]:
    """Reaches first without regard to limits and collision, then with it.

    Args:
        task: The task.

    Returns:
        The heedless and the good motion.
    """
    return _solve(problem(task, heedless=True)), _solve(problem(task))
