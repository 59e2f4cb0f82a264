"""Inverse kinematics: configurations within the limits that bring links to poses, for many targets at once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._check import check_array, check_integer, check_key, check_pose, check_positive
from .._errors import RbydynError
from .._jit import jit_public
from .._result import Result, count_of
from ..collision import ShapePairs, World
from ..model.configuration import qdot_from_v
from ..model.model import Model, check_model
from ..xla.transpose import no_tangent, rule_of
from ._clearance import check_clearance, checked_clearance
from ._ik_arguments import asked, batch_size, check_goal_values, checked_poses, checked_types, moving, start
from ._ik_problem import PoseProblem, Problem, Setup, product
from ._ik_refine import followed, refined
from ._ik_search import finite, search
from ._ik_tasks import TaskProblem, Wanted
from .costs import Cost
from .goals import Goal


class IkStatus(IntEnum):
    """Outcome of the search for one target; `IN_COLLISION`: the goals are reached, but not with the clearance."""

    SOLVED = 0
    NOT_FOUND = 1
    NOT_FINITE = 2
    IN_COLLISION = 3


class IkResult(Result):
    """Result of `solve_ik`, with a leading axis for a batch of targets.

    Attributes:
        q: The solution, or the best configuration found [rad, m].
        status: An `IkStatus`.
        position_error: Largest distance from a target: of a link's origin, or of the centre of mass [m].
        orientation_error: Largest angle from a target: of a link's axes, or of joints [rad].
        attempts: The start that led to it, counted from 1.
        iterations: Steps taken from that start.
        distance: The smallest distance of the pairs and from the world [m]; None without `clearance`.
    """

    q: Float[Array, "*b nq"]
    status: Int[Array, "*b"]
    position_error: Float[Array, "*b"]
    orientation_error: Float[Array, "*b"]
    attempts: Int[Array, "*b"]
    iterations: Int[Array, "*b"]
    distance: Float[Array, "*b"] | None = None

    _enums: ClassVar = {"status": IkStatus}

    def _headline(self) -> str:
        return count_of(self.solved, "solved")

    @property
    def solved(self) -> Array:
        """Whether the tolerances are met, and the clearance is kept."""
        return self.status == IkStatus.SOLVED


@jit_public(
    *("link", "ref", "joints", "collision_pairs", "attempts", "iterations"),
    target=check_pose,
    goals=check_goal_values,
    costs=check_goal_values,
    clearance=check_clearance,
    position_tolerance=check_positive,
    orientation_tolerance=check_positive,
)
def solve_ik(
    model: Model,
    link: str | int | tuple[str | int, ...] | None = None,
    target: Float[Array, "*b 4 4"] | None = None,
    *,
    ref: str | int | None = None,
    goals: Sequence[Goal] = (),
    costs: Sequence[Cost] = (),
    clearance: Float[Array, ""] | float | None = None,
    collision_pairs: ShapePairs | None = None,
    world: World | None = None,
    joints: tuple[str | int, ...] | None = None,
    q0: Float[Array, "*b nq"] | None = None,
    key: PRNGKeyArray | None = None,
    position_tolerance: Float[Array, ""] | float | None = None,
    orientation_tolerance: Float[Array, ""] | float | None = None,
    attempts: int = 64,
    iterations: int = 48,
) -> IkResult:
    r"""Inverse kinematics: a configuration within the position limits that brings one or several links to given poses,
    reaches other goals, and keeps a distance from itself and from a world.

    Damped least squares from many starts. A step is $\Delta q = J^T (J J^T + \lambda I)^{-1} e$ with the damping
    $\lambda$ proportional to $|e|^2$ [Sugihara 2011], which approaches Gauss-Newton near a solution. Joints that are
    pushed against a limit are excluded, and the step is clamped to the limits. The error e has a position part and an
    orientation part, a rotation vector; lengths are scaled by the link's range of positions. Each start is the one of
    16 random configurations whose pose is nearest to the target, and is abandoned when its error no longer halves in
    four steps. A batch of targets, by a leading axis or by `jax.vmap`, is solved in a fixed number of lanes, which take
    up new starts of unsolved problems; which of several solutions is found may depend on the rest of the batch. Under a
    `jax.vmap` over robots, worlds, tolerances or keys all problems wait for the slowest. The choice of starts takes
    memory for 16 scalars per target and attempt.

    With a `clearance`, a step that would end too near to something is led away from it in the nullspace of the goals;
    starts in collision come last, and what reaches the goals in collision is no solution. With `costs`, the solution is
    moved along its goals to where their sum is smallest nearby: projected Gauss-Newton steps with Levenberg damping.

    The derivatives are those of the implicit function theorem at the solution, with respect to the target, the goals,
    the robot, and joints in `q0` that are not among `joints`: $dq = J^+ de$, the minimum-norm change for a redundant
    arm. They are zero for joints at a limit, for configurations that are not solutions, and in directions in which the
    link cannot move (singular poses). The clearance counts as kept by a small change. With `costs`, their sum stays the
    smallest nearby, also where a cost changes, with joints held that are closer to a limit than 1e-3; they are zero
    where the search has not come to the minimum, which can be so beside limits. With both costs and a clearance there
    are none.

    Args:
        model: The robot.
        link: The link, by name or index; or a tuple of links that are to reach their targets together; or None, if
            there are `goals`.
        target: Its pose T_ref_link; (k, 4, 4) for k links. A leading axis is a batch of problems.
        ref: The link relative to which targets are given; None is the world.
        goals: More to be reached: `PoseGoal` (with `ref`: relative to another link), `PositionGoal`, `LookAtGoal`,
            `ComGoal`, `ConfigurationGoal`. When they are to be reached, and their bands, do not matter. The target,
            position, point or configuration may have a leading axis for a batch of problems.
        costs: What is to be small beside: `SoftGoal`, `Manipulability`. Their goals may have a batch axis, too.
        clearance: Minimum distance of every pair of collision shapes, and of the shapes that move from the world [m];
            None does not look at collisions.
        collision_pairs: The pairs of shapes to keep apart; default is `collision.pairs(model)`.
        world: Obstacles to stay clear of; default is none.
        joints: The joints that may move, by name or index; default is all on the way between `ref` and the links, and
            between links and references of `goals`; all, if a goal is of the centre of mass or of joints.
        q0: Start of the first attempt, and position of all other joints [rad, m]; default is the neutral configuration,
            clamped to the limits, with a random start of the first attempt.
        key: Key of the random starts; default is `jax.random.key(0)`.
        position_tolerance: Maximum position error of a solution [m]; default is 1e-6, in float32 1e-5.
        orientation_tolerance: Maximum orientation error of a solution [rad]; default is 1e-6, in float32 1e-5.
        attempts: Maximum number of starts for each problem.
        iterations: Maximum number of steps from each start.

    Returns:
        The first solution, or else the nearest configuration found; `status` tells which. Where the target, `q0`, or a
        goal that is traced or in a batch is not finite, it is NOT_FINITE.

    Raises:
        ArgumentError: There is nothing to reach, a link is relative to itself, `attempts` or `iterations` is less than
            1, there is a world or pairs and no clearance, or, where values are known: a tolerance is not positive, a
            clearance or a goal without a batch axis is not finite, or a finite target is no rigid transform.
        DtypeError: An argument is of another type.
        ModelError: No joint moves a link, a joint that may move is a mimic joint or is listed twice, or there is a
            clearance and the robot has no collision shapes that could keep it.
        NameNotFoundError: There is no such link or joint.
        RbydynError: The derivatives of a solution with both `costs` and a `clearance` are asked for.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.planning import solve_ik
        >>> arm = robots.panda_like()
        >>> target = link_pose(arm, jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5]), "tool")
        >>> result = solve_ik(arm, "tool", target)
        >>> bool(result.solved), bool(jnp.allclose(link_pose(arm, result.q, "tool"), target, atol=3e-5))
        (True, True)
    """
    check_model(model)
    poses = checked_poses(model, link, target, ref)
    checked_types(goals, costs)
    attempts, iterations = check_integer(attempts, "attempts", 1), check_integer(iterations, "iterations", 1)
    count = batch_size(poses, (*goals, *costs))
    q0s = start(model, q0, count)
    arrays = [x for x in jax.tree.leaves((poses.target, goals, costs)) if not isinstance(x, float)]
    dtype = jnp.result_type(q0s, *arrays)
    n = 1 if count is None else count
    keep = checked_clearance(model, clearance, collision_pairs, world, dtype)
    default = 1e-6 if dtype == jnp.float64 else 1e-5
    given = (position_tolerance, orientation_tolerance)
    names = ("position_tolerance", "orientation_tolerance")
    tolerance = [default if x is None else check_array(x, name, ()) for x, name in zip(given, names, strict=True)]
    model = jax.tree.map(lambda x: x.astype(dtype), model)
    wanted, ends = asked(model, poses, goals, costs, n, dtype)
    setup = Setup(moving(model, ends, joints), attempts, iterations, q0 is not None)
    data = model, jnp.stack([jnp.asarray(x, dtype) for x in tolerance]), jnp.ones((), dtype), setup
    if goals or costs or keep is not None:
        problem, todo = TaskProblem(*data, clearance=keep), wanted
    else:
        assert poses.target is not None  # or there were nothing to reach
        problem = PoseProblem(*data, links=poses.links, ref=poses.ref)
        todo = poses.target.reshape(n, -1, 4, 4).astype(dtype)
    key = jax.random.key(0) if key is None else check_key(key)
    result = _solve(problem, todo, jnp.broadcast_to(q0s.astype(dtype), (n, model.nq)), key)
    return result if count is not None else jax.tree.map(lambda x: x[0], result)


@jax.custom_jvp
def _solve(problem: PoseProblem | TaskProblem, target: Any, q0: Array, key: PRNGKeyArray) -> IkResult:
    found = search(problem, target, q0, key)
    q, distance, keep = found.q, found.distance, None
    if isinstance(problem, TaskProblem):
        keep = problem.clearance
        if target.costs:
            q, distance = refined(problem, q, target, found.merit == 0, distance)
    errors = jax.vmap(problem.deviation)(q, target)
    reached = kept = (errors <= problem.tolerance[None]).all(axis=1)
    if keep is not None and distance is not None:
        kept = reached & (distance >= keep.distance)
    known = finite(target) & jnp.isfinite(q0).all(axis=1)
    missed = jnp.where(known, jnp.where(reached, IkStatus.IN_COLLISION, IkStatus.NOT_FOUND), IkStatus.NOT_FINITE)
    status = jnp.where(kept, IkStatus.SOLVED, missed)
    return IkResult(q, status, errors[:, 0], errors[:, 1], found.attempts, found.iterations, distance)


@rule_of(_solve)
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[IkResult, IkResult]:
    problem, target, q0, key = primals
    if isinstance(target, Wanted) and target.costs and problem.clearance is not None:
        raise RbydynError("solve_ik has no derivatives with both costs and a clearance: leave one of them out")
    result = _solve(problem, target, q0, key)
    moves = jax.vmap(partial(_follow, problem, tangents[0]))(result.q, target, tangents[1], tangents[2], result.solved)
    zeros = jax.tree.map(no_tangent, result)
    return result, eqx.tree_at(lambda r: r.q, zeros, moves)


def _follow(
    problem: Problem, d_problem: Problem, q: Array, target: Any, d_target: Any, d_q0: Array, solved: Array
) -> Array:
    """The change of a solution that keeps its error zero."""
    d_still = jnp.where(problem.moving, 0.0, d_q0)
    if isinstance(problem, TaskProblem) and isinstance(d_problem, TaskProblem) and target.costs:
        step = followed(problem, d_problem, q, target, d_still, d_target)
        return jnp.where(solved, d_still + _moves(problem, q, step), d_still)
    given, changes = (problem, q, target), (d_problem, d_still, d_target)
    J, (_, d_error) = problem.rows(q, target)[1], jax.jvp(lambda p, x, T: p.rows(x, T)[0], given, changes)
    J = jnp.where((problem.blocked(q, 1.0) | problem.blocked(q, -1.0))[None, :], 0.0, J)
    step = product(jnp.linalg.pinv(J, rtol=1e3 * jnp.finfo(q.dtype).eps), d_error)
    return jnp.where(solved, d_still + _moves(problem, q, step), d_still)


def _moves(problem: Problem, q: Array, step: Array) -> Array:
    dv = jnp.zeros(problem.model.nv, q.dtype).at[problem.velocities].set(step, unique_indices=True)
    return qdot_from_v(problem.model, q, dv)
