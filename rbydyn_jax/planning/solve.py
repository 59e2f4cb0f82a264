"""Trajectory problems solved: `solve_trajectory` and its result."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._errors import DtypeError
from .._jit import jit_public
from .._result import Result, count_of
from ._newton import Multipliers
from ._sensitivity import solution
from .problem import TrajectoryProblem
from .trajectory import Trajectory


class TrajectoryStatus(IntEnum):
    """Outcome of the search for a motion."""

    SOLVED = 0
    NOT_FEASIBLE = 1
    NOT_FINITE = 2


class TrajectoryViolations(Result):
    """The largest violation of each kind at 401 times, 0 where there is none.

    Attributes:
        goals: Of the goals at an instant [rad, 0.1 m].
        position: Of limits of position [rad, m]; before the end, where the start is beyond one, of what the start has.
        velocity: Of limits of velocity, relative to the limit.
        acceleration: Of limits of acceleration, relative to the limit.
        jerk: Of limits of jerk, relative to the limit.
        torque: Of limits of torque, relative to the limit, of the joints that the moving ones can load.
        clearance: Of the minimum distance [0.1 m].
        path: Of the bands of goals along the path [rad, 0.1 m].
        constraints: Of the given constraints.
    """

    goals: Float[Array, ""]
    position: Float[Array, ""]
    velocity: Float[Array, ""]
    acceleration: Float[Array, ""]
    jerk: Float[Array, ""]
    torque: Float[Array, ""]
    clearance: Float[Array, ""]
    path: Float[Array, ""]
    constraints: Float[Array, ""]

    def largest(self) -> Float[Array, ""]:
        """The largest of them."""
        return jnp.max(jnp.stack(list(vars(self).values())), axis=0)


class TrajectoryResult(Result):
    """Result of `solve_trajectory`.

    Attributes:
        trajectory: The motion.
        initial: The motion from which its search started.
        status: A `TrajectoryStatus`.
        violations: What is violated, and by how much.
        multipliers: Of the limits, one for each time at which they are evaluated.
        costs: Cost after each step of the last attempt; the rest is infinite.
        infeasibilities: The same of the largest violation, at the times of the optimization.
        attempts: The attempt that led to it, counted from 1.
        iterations: Steps of all attempts.
    """

    trajectory: Trajectory
    initial: Trajectory
    status: Int[Array, ""]
    violations: TrajectoryViolations
    multipliers: Multipliers
    costs: Float[Array, "i"]
    infeasibilities: Float[Array, "i"]
    attempts: Int[Array, ""]
    iterations: Int[Array, ""]

    _enums: ClassVar = {"status": TrajectoryStatus}

    def _headline(self) -> str:
        return count_of(self.solved, "solved")

    @property
    def solved(self) -> Bool[Array, ""]:
        """Whether the goals are met and all limits are kept."""
        return self.status == TrajectoryStatus.SOLVED


@jit_public()
def solve_trajectory(problem: TrajectoryProblem) -> TrajectoryResult:
    r"""Finds a motion that reaches the goals and keeps the limits.

    An augmented Lagrangian with Gauss-Newton steps, over the coefficients z of splines whose squared jerk is $|z|^2$:
    the Hessian of the cost is one, and that of the limits a sum over times, from `rnea_derivatives`, Jacobians, and
    gradients of distances. Levenberg damping bounds the steps. Goals at an instant are no penalties: each step moves
    along them, and is brought back to them by Newton's method.

    The first motion is the smoothest one to a configuration that reaches the goals, by way of such configurations where
    there are goals in between. They are searched from random starts; the shortest ways by those whose gravity torques
    and clearance are within the limits come first. Each is tried once: where one was found before, a revolute joint
    goes the other way round, if its limits allow it, and else the motion starts aside, at random. When `iterations`
    steps do not lead to a solution, the next one is tried. A motion counts as solved when all limits are kept at 401
    times to 1e-4, in float32 1e-3; what is violated between the times of the optimization is corrected by narrower
    limits. NOT_FINITE are a traced duration that is not positive and finite, and a motion at which the cost, a limit,
    or a derivative of these is not finite: a motion from rest begins where `jnp.linalg.norm(v)` has none, and
    `spatial.safe.safe_norm(v)` has.

    Pure: works under `jit` and `vmap`. Of a batch, a few problems are searched at a time on a CPU, all elsewhere.

    `trajectory` has first derivatives by all arrays of the problem, forward and reverse: those of the local minimum
    next to the solution, by the implicit function theorem [Fiacco 1976; Nocedal and Wright 2006, chapter 12]. Of the
    cost c, the active limits g and the errors e of the goals at an instant, whose multipliers are $\nu$ and $\mu$ and
    whose derivatives are A, with $L = c + \nu^T g + \mu^T e$,

    $$\begin{bmatrix} \nabla^2_{xx} L & A^T \\ A & 0 \end{bmatrix} \begin{bmatrix} dx \\ d\nu \end{bmatrix} =
    -\begin{bmatrix} \nabla^2_{x\theta} L \\ \partial_\theta (g, e) \end{bmatrix} d\theta .$$

    Active limits stay active; where one becomes active or inactive, the derivative is that of one side. The narrower
    limits are constants, and so is, where the duration is free, its weight against the jerk. Derivatives are NaN where
    the problem is not solved, or no minimum is found nearby. All other results count as constant.

    Args:
        problem: The problem.

    Returns:
        The motion with its status; where none was found, the one with the smallest violation, that of goals first.

    Raises:
        DtypeError: `problem` is not a `TrajectoryProblem`, or a cost or constraint returns no array of floats.
        RbydynError: Second derivatives are asked for.
        ShapeError: A cost or constraint returns an array of more than one axis.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.planning import PositionGoal, TrajectoryProblem, solve_trajectory
        >>> arm = robots.two_link_arm()
        >>> goal = PositionGoal("tool", jnp.array([0.3, 0.6, 0.0]))
        >>> problem = TrajectoryProblem(arm, jnp.array([0.2, 0.3]), [goal], duration=2.0, clearance=None)
        >>> result = solve_trajectory(problem)
        >>> bool(result.solved), bool(result.violations.largest() < 1e-3)
        (True, True)
    """
    if not isinstance(problem, TrajectoryProblem):
        raise DtypeError(f"problem must be a TrajectoryProblem, got {type(problem).__name__}")
    if (T := problem.duration) is not None:
        timed = (T > 0.0) & (T < jnp.inf)
        problem = eqx.tree_at(lambda p: p.duration, problem, jnp.where(timed, T, jnp.nan))
    found = solution(problem)
    violations = TrajectoryViolations(**found.report)
    known = found.known & jnp.isfinite(found.x).all() & jnp.isfinite(violations.largest())
    status = jnp.where(found.converged, TrajectoryStatus.SOLVED, TrajectoryStatus.NOT_FEASIBLE)
    return TrajectoryResult(
        trajectory=problem.trajectory(found.coefficients, found.duration),
        initial=jax.lax.stop_gradient(problem.trajectory(found.first, found.first_duration)),
        status=jnp.where(known, status, TrajectoryStatus.NOT_FINITE),
        violations=violations,
        multipliers=found.dual,
        costs=found.costs,
        infeasibilities=found.infeasibilities,
        attempts=found.attempts,
        iterations=found.steps,
    )
