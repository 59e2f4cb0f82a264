"""Inverse kinematics: configurations within the limits that bring links to poses, for many targets at once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._check import check_array, check_integer, check_key, check_pose, check_positive, check_sequence, jit_public
from .._errors import DtypeError, ModelError, ShapeError
from ..model.configuration import neutral, qdot_from_v
from ..model.model import Model, check_model
from ._ik_search import Problem, Setup, product, search


class IkStatus(IntEnum):
    """Outcome of the search for one target."""

    SOLVED = 0
    NOT_FOUND = 1
    NOT_FINITE = 2


class IkResult(eqx.Module):
    """Result of `solve_ik`, with a leading axis for a batch of targets.

    Args:
        q: The solution, or the best configuration found [rad, m].
        status: An `IkStatus`.
        position_error: Largest distance of a link's origin from its target [m].
        orientation_error: Largest angle between a link's axes and its target's [rad].
        attempts: The start that led to it, counted from 1.
        iterations: Steps taken from that start.
    """

    q: Float[Array, "*b nq"]
    status: Int[Array, "*b"]
    position_error: Float[Array, "*b"]
    orientation_error: Float[Array, "*b"]
    attempts: Int[Array, "*b"]
    iterations: Int[Array, "*b"]

    @property
    def solved(self) -> Array:
        """Whether the tolerances are met."""
        return self.status == IkStatus.SOLVED


@jit_public(
    *("link", "ref", "joints", "attempts", "iterations"),
    target=check_pose,
    position_tolerance=check_positive,
    orientation_tolerance=check_positive,
)
def solve_ik(
    model: Model,
    link: str | int | tuple[str | int, ...],
    target: Float[Array, "*b 4 4"],
    *,
    ref: str | int | None = None,
    joints: tuple[str | int, ...] | None = None,
    q0: Float[Array, "*b nq"] | None = None,
    key: PRNGKeyArray | None = None,
    position_tolerance: Float[Array, ""] | float | None = None,
    orientation_tolerance: Float[Array, ""] | float | None = None,
    attempts: int = 64,
    iterations: int = 48,
) -> IkResult:
    r"""Inverse kinematics: a configuration within the position limits that brings one or several links to given poses.

    Damped least squares from many starts. A step is $\Delta q = J^T (J J^T + \lambda I)^{-1} e$ with the damping
    $\lambda$ proportional to $|e|^2$ [Sugihara 2011], which approaches Gauss-Newton near a solution. Joints that are
    pushed against a limit are excluded, and the step is clamped to the limits. The error e has a position part and an
    orientation part, a rotation vector; lengths are scaled by the link's range of positions. Each start is the one of
    16 random configurations whose pose is nearest to the target, and is abandoned when its error no longer halves in
    four steps. A batch of targets is solved in a fixed number of lanes, which take up new starts of unsolved problems;
    so pass a batch as a leading axis, not by `jax.vmap`, which waits for the slowest. The choice of starts takes memory
    for 16 scalars per target and attempt.

    The derivatives are those of the implicit function theorem at the solution, with respect to the target, the robot,
    and joints in `q0` that are not among `joints`: $dq = J^+ de$, the minimum-norm change for a redundant arm. They are
    zero for joints at a limit, for configurations that are not solutions, and in directions in which the link cannot
    move (singular poses).

    Args:
        model: The robot.
        link: The link, by name or index; or a tuple of links that are to reach their targets together.
        target: Its pose T_ref_link; (k, 4, 4) for k links. A leading axis is a batch of problems.
        ref: The link relative to which targets are given; None is the world.
        joints: The joints that may move, by name or index; default is all on the way between `ref` and the links.
        q0: Start of the first attempt, and position of all other joints [rad, m]; default is the neutral configuration,
            clamped to the limits, with a random start of the first attempt.
        key: Key of the random starts; default is `jax.random.key(0)`.
        position_tolerance: Maximum position error of a solution [m]; default is 1e-6, in float32 1e-5.
        orientation_tolerance: Maximum orientation error of a solution [rad]; default is 1e-6, in float32 1e-5.
        attempts: Maximum number of starts for each problem.
        iterations: Maximum number of steps from each start.

    Returns:
        The first solution, or else the nearest configuration found; `status` tells which.

    Raises:
        ArgumentError: `attempts` or `iterations` is less than 1, a tolerance is not positive, or a target is no rigid
            transform, where values are known.
        DtypeError: An argument is of another type.
        ModelError: No joint moves a link, or a joint that may move is a mimic joint or is listed twice.
        NameNotFoundError: There is no such link or joint.
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
    single = isinstance(link, str | int)
    if not single and not isinstance(link, tuple):
        raise DtypeError(f"link must be a name, an index, or a tuple of these, got {link!r}")
    links = tuple(model.link_index(k) for k in ((link,) if single else link))
    base = None if ref is None else model.link_index(ref)
    attempts, iterations = check_integer(attempts, "attempts", 1), check_integer(iterations, "iterations", 1)
    target = check_array(target, "target")
    shape = (4, 4) if single else (len(links), 4, 4)
    batched = target.ndim == len(shape) + 1
    target = check_array(target, "target", ((None,) if batched else ()) + shape, "T_ref_link")
    if target.size == 0:
        raise ShapeError(f"target must hold at least one pose, got shape {target.shape}")
    targets = target.reshape(-1, len(links), 4, 4)
    start = _start(model, q0, len(targets), batched)
    dtype = jnp.result_type(targets, start)
    setup = Setup(links, base, _moving(model, links, base, joints), attempts, iterations, q0 is not None)
    default = 1e-6 if dtype == jnp.float64 else 1e-5
    given = (position_tolerance, orientation_tolerance)
    names = ("position_tolerance", "orientation_tolerance")
    tolerance = [default if x is None else check_array(x, name, ()) for x, name in zip(given, names, strict=True)]
    model = jax.tree.map(lambda x: x.astype(dtype), check_model(model))
    problem = Problem(model, jnp.stack([jnp.asarray(x, dtype) for x in tolerance]), jnp.ones((), dtype), setup)
    key = jax.random.key(0) if key is None else check_key(key)
    result = _solve(problem, targets.astype(dtype), start.astype(dtype), key)
    return result if batched else jax.tree.map(lambda x: x[0], result)


def _start(model: Model, q0: Array | None, n: int, batched: bool) -> Float[Array, "n nq"]:
    if q0 is None:
        low, high = model.position_lower, model.position_upper
        q0 = jnp.clip(neutral(model), low, high)
    q0 = check_array(q0, "q0")
    if q0.ndim == 2 and batched:
        return check_array(q0, "q0", (n, model.nq), "number of targets, model.nq")
    return jnp.broadcast_to(check_array(q0, "q0", (model.nq,), "model.nq")[None], (n, model.nq))


def _moving(
    model: Model, links: tuple[int, ...], ref: int | None, joints: Sequence[str | int] | None
) -> tuple[int, ...]:
    """The joints that may move, those that others mimic instead of the ones that mimic."""
    tree = model.tree
    paths = [frozenset(() if k is None else tree.path(tree.link_bodies[k])) for k in (*links, ref)]
    between = frozenset().union(*(path ^ paths[-1] for path in paths[:-1]))
    leaders = [i if m is None else m.source for i, m in enumerate(tree.mimics)]
    on_the_way = {leaders[i] for i in between}
    if joints is None:
        chosen = sorted(on_the_way)
    else:
        chosen = [model.joint_index(k) for k in check_sequence(joints, "joints", "joints, by name or index")]
    if not on_the_way.intersection(chosen):
        names = ", ".join(repr(tree.link_names[k]) for k in links)
        raise ModelError(f"none of the joints that may move moves {names}")
    for i in chosen:
        if tree.mimics[i] is not None or chosen.count(i) > 1:
            reason = "is listed twice" if tree.mimics[i] is None else "mimics another: name that one"
            raise ModelError(f"joint {tree.joint_names[i]!r} {reason}")
    return tuple(chosen)


@jax.custom_jvp
def _solve(problem: Problem, target: Array, q0: Array, key: PRNGKeyArray) -> IkResult:
    found = search(problem, target, q0, key)
    distance, angle = jax.vmap(lambda q, T: problem.size(problem.error(q, T)))(found.q, target).T
    reached = (distance <= problem.tolerance[0]) & (angle <= problem.tolerance[1])
    finite = jnp.isfinite(target).all(axis=(1, 2, 3)) & jnp.isfinite(q0).all(axis=1)
    status = jnp.where(reached, IkStatus.SOLVED, jnp.where(finite, IkStatus.NOT_FOUND, IkStatus.NOT_FINITE))
    return IkResult(found.q, status, distance, angle, found.attempts, found.iterations)


@_solve.defjvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[IkResult, IkResult]:
    problem, target, q0, key = primals
    result = _solve(problem, target, q0, key)
    moves = jax.vmap(partial(_follow, problem, tangents[0]))(result.q, target, tangents[1], tangents[2], result.solved)
    zeros = jax.tree.map(_no_tangent, result)
    return result, eqx.tree_at(lambda r: r.q, zeros, moves)


def _no_tangent(x: Array) -> Array | np.ndarray:
    return jnp.zeros_like(x) if jnp.issubdtype(x.dtype, jnp.floating) else np.zeros(x.shape, jax.dtypes.float0)


def _follow(
    problem: Problem, d_problem: Problem, q: Array, target: Array, d_target: Array, d_q0: Array, solved: Array
) -> Array:
    """The change of a solution that keeps its error zero."""
    d_still = jnp.where(problem.moving, 0.0, d_q0)
    _, d_error = jax.jvp(lambda p, x, T: p.error(x, T), (problem, q, target), (d_problem, d_still, d_target))
    J, d_error = problem.jacobian(q).reshape(-1, len(problem.velocities)), d_error.reshape(-1)
    J = jnp.where((problem.blocked(q, 1.0) | problem.blocked(q, -1.0))[None, :], 0.0, J)
    step = product(jnp.linalg.pinv(J, rtol=1e3 * jnp.finfo(q.dtype).eps), d_error)
    dv = jnp.zeros(problem.model.nv, q.dtype).at[problem.velocities].set(step, unique_indices=True)
    return jnp.where(solved, d_still + qdot_from_v(problem.model, q, dv), d_still)
