"""Inverse kinematics of velocities: a quadratic program with limits, for one step of a control loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .._check import check_array, check_positive, check_positive_share, check_sequence
from .._errors import ArgumentError, DtypeError, ShapeError
from .._jit import jit_public
from .._result import Result, count_of
from ..algorithms.arguments import arguments
from ..collision import ShapePairs, World
from ..model.model import Model, check_model
from ..spatial._quadratic import Program, solve, solved
from ..spatial.safe import safe_norm
from ._clearance import Clearance, check_clearance, checked_clearance
from ._ik_arguments import check_goal_values, ends, moving
from ._ik_problem import product, room
from .costs import Cost, LinkVelocity, Manipulability, SoftGoal
from .goals import Moving

_ROWS = 8  # distances that are kept from each: the nearest ones


class DifferentialIkResult(Result):
    """Result of `differential_ik`.

    Attributes:
        v: The velocity [rad/s, m/s]; zero if there is no solution.
        solved: Whether it is the minimum, within the limits. False where `q`, `motions` or traced numbers are not
            finite, where a traced number that has to be positive, or at most 1, is not, or where rounding keeps the
            program from being solved.
    """

    v: Float[Array, "nv"]
    solved: Bool[Array, ""]

    def _headline(self) -> str:
        return count_of(self.solved, "solved")


@jit_public(
    *("joints", "collision_pairs"),
    costs=check_goal_values,
    dt=check_positive,
    gain=check_positive,
    damping=check_positive,
    limit_gain=check_positive_share,
    clearance=check_clearance,
)
def differential_ik(
    model: Model,
    q: Float[Array, "nq"],
    costs: Sequence[Cost],
    *,
    dt: Float[Array, ""] | float,
    gain: Float[Array, ""] | float = 1.0,
    damping: Float[Array, ""] | float = 1e-4,
    limit_gain: Float[Array, ""] | float = 0.5,
    joints: tuple[str | int, ...] | None = None,
    motions: Float[Array, "nv k"] | None = None,
    clearance: Float[Array, ""] | float | None = None,
    collision_pairs: ShapePairs | None = None,
    world: World | None = None,
) -> DifferentialIkResult:
    r"""The velocity that brings a robot nearest to weighted goals within its limits: velocity inverse kinematics.

    $\min_v \frac12 \sum_i w_i |J_i v - v_i|^2 + \frac{\mu}{2} |v|^2$ subject to $|v| \le v_{max}$, to
    $\gamma (q_{min} - q) \le v \Delta t \le \gamma (q_{max} - q)$, and to
    $d_k + \gamma^{-1} \nabla d_k^T v \Delta t \ge d_{min}$ for the eight smallest distances d of the robot from itself
    and the eight smallest from the world. What is beyond a limit or nearer than the clearance may not go on that way;
    so v = 0 is always within the limits.

    A `SoftGoal` asks for $v_i = g\, e_i / \Delta t$: with the gain g = 1 its error e would vanish in one step. A
    `LinkVelocity` asks for a velocity, and `Manipulability` for a step along its gradient. The program is solved by an
    interior-point method [Nocedal and Wright 2006, algorithm 16.4]; its derivatives are those of the implicit function
    theorem, with the set of active limits as it is. Pure: works under `jit`, `vmap` and `grad`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        costs: What is wanted: `SoftGoal`, `LinkVelocity`, `Manipulability`.
        dt: Time step $\Delta t$ [s].
        gain: The share g of the errors of goals that a step is to remove.
        damping: $\mu$ > 0, in units of the weights times s^2: a goal of weight 1 has the error 1 for 1 rad and for
            0.1 m. In float32 what weighs 1e-5 of the largest still counts to two digits; rounding hides what is much
            smaller.
        limit_gain: The share $\gamma$ in (0, 1] of what is left to a limit of position, or to the clearance, that one
            step may use.
        joints: The joints that may move, by name or index; default is all on the way between the links of the costs and
            their references; all, if a goal is of the centre of mass or of joints. Static.
        motions: The velocities that are possible, as columns, instead of `joints`: v is a combination of these. For
            the mobile bases of the RB-Y1, whose wheels roll without slip: `rby1.mobility.rolling_motions`.
        clearance: Minimum distance of every pair of collision shapes, and of the shapes that move from the world [m];
            None does not look at collisions.
        collision_pairs: The pairs of shapes to keep apart; default is `collision.pairs(model)`. Static.
        world: Obstacles to stay clear of; default is none.

    Raises:
        ArgumentError: There is no cost, a cost is of a link relative to itself, a goal or velocity is not finite where
            it is known, a number is not positive or not finite where it is known, or `limit_gain` not in (0, 1], there
            is a world or pairs and no clearance, or both joints and motions are given.
        DtypeError: An argument is of another type.
        ModelError: No joint moves a link of the costs, a joint is a mimic joint or is listed twice, or there is a
            clearance and the robot has no collision shapes that could keep it.
        NameNotFoundError: There is no such link or joint.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.planning import LinkVelocity, differential_ik
        >>> arm = robots.panda_like()
        >>> q = jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
        >>> up = LinkVelocity("tool", jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.1]))
        >>> found = differential_ik(arm, q, [up], dt=0.01, damping=1e-6)
        >>> bool(found.solved), bool(jnp.allclose(jacobian(arm, q, "tool") @ found.v, up.velocity, atol=1e-4))
        (True, True)
    """
    model, q = arguments(check_model(model), q=q)
    wanted = _costs(model, costs, q.dtype)
    numbers = {"dt": dt, "gain": gain, "damping": damping, "limit_gain": limit_gain}
    step, g, mu, share = (check_array(x, name, ()).astype(q.dtype) for name, x in numbers.items())
    keep = checked_clearance(model, clearance, collision_pairs, world, q.dtype)
    if motions is not None:
        if joints is not None:
            raise ArgumentError("joints and motions must not both be given: motions says what may move")
        basis = check_array(motions, "motions", (model.nv, None), "model.nv, and the number of motions").astype(q.dtype)
        if not basis.shape[1]:
            raise ShapeError(f"motions must have at least one column, or nothing may move, got shape {basis.shape}")
        indices = _indices(model, tuple(i for i, m in enumerate(model.tree.mimics) if m is None))
    else:
        indices = _indices(model, moving(model, ends(model, wanted), joints))
        basis = jnp.eye(len(indices.v), dtype=q.dtype)
    P, c = _objective(model, q, wanted, indices, step, g)
    P = P + mu * jnp.eye(len(c), dtype=q.dtype)
    highest = model.velocity_limit[np.array(indices.v)]
    F, h = _limits(model, q, indices, keep, step, share)
    counts = _reached(F, h, jnp.where(jnp.isinf(highest), 2.0 * safe_norm(c) / mu, highest))
    program, unit = _scaled(P, c, basis, F, h, counts, highest)
    point = solve(program)
    right = jnp.all(jnp.stack([step, g, mu, share]) > 0.0) & (share <= 1.0)
    found = solved(program, point) & jnp.isfinite(q).all() & right
    v = product(basis, point.x * unit)
    whole = jnp.zeros(model.nv, q.dtype).at[np.array(indices.v)].set(v, unique_indices=True)
    return DifferentialIkResult(jnp.where(found, whole, 0.0), found)


def _costs(model: Model, costs: Any, dtype: Any) -> tuple[Cost, ...]:
    kinds = SoftGoal, LinkVelocity, Manipulability
    for i, cost in enumerate(check_sequence(costs, "costs", "costs such as SoftGoal")):
        if not isinstance(cost, kinds):
            wanted = ", ".join(kind.__name__ for kind in kinds)
            raise DtypeError(f"costs[{i}] must be one of {wanted}, got {type(cost).__name__}")
    if not costs:
        raise ArgumentError("costs must not be empty")
    return tuple(cost.checked(model, dtype, f"costs[{i}]") for i, cost in enumerate(costs))


def _indices(model: Model, joints: tuple[int, ...]) -> Moving:
    tree = model.tree
    of_q, of_v = (np.concatenate([np.r_[slices[i]] for i in joints]) for slices in (tree.q_slices, tree.v_slices))
    return Moving(tuple(of_q.tolist()), tuple(of_v.tolist()))


def _objective(
    model: Model, q: Array, costs: Sequence[Cost], indices: Moving, dt: Array, gain: Array
) -> tuple[Array, Array]:
    """P and c of 1/2 v^T P v + c^T v."""
    P = jnp.zeros((len(indices.v), len(indices.v)), q.dtype)
    c = jnp.zeros(len(indices.v), q.dtype)
    for cost in costs:
        _, gradient, hessian = cost.expand(model, q, indices)
        P, c = P + hessian, c + (gradient if isinstance(cost, LinkVelocity) else gradient * gain / dt)
    return P, c


def _limits(
    model: Model, q: Array, indices: Moving, keep: Clearance | None, dt: Array, share: Array
) -> tuple[Array, Array]:
    """F and h of F v <= h."""
    at = np.array(indices.v)
    below, above = room(model, q, at)
    bounds = [jnp.maximum(jnp.minimum(x * share / dt, model.velocity_limit[at]), 0.0) for x in (above, below)]
    eye = jnp.eye(len(at), dtype=q.dtype)
    F, h = [eye, -eye], bounds
    if keep is not None:
        d, G = keep.rows(model, q, indices, _ROWS)
        F, h = [*F, -G], [*h, jnp.maximum(d - keep.distance, 0.0) * share / dt]
    return jnp.concatenate(F), jnp.concatenate(h)


def _reached(F: Array, h: Array, speeds: Array) -> Bool[Array, "m"]:
    """Which rows of F v <= h count: the others hold at all velocities within `speeds`.

    Where a joint has no limit, its speed is at most 2 |c| / mu: the minimum is not above v = 0, which is within all
    limits. NaN counts.
    """
    reach = jnp.sum(jnp.where(F == 0.0, 0.0, jnp.abs(F) * speeds[None]), axis=1)
    return ~(h > reach)


def _scaled(
    P: Array, c: Array, basis: Array, F: Array, h: Array, counts: Array, highest: Array
) -> tuple[Program, Array]:
    """The program over the coefficients of the basis, in units of how fast they can be; and these units.

    The unit of a joint without a limit is the largest velocity of the steepest descent.
    """
    curved = c @ P @ c
    descent = jnp.where(curved > 0.0, (c @ c) * jnp.max(jnp.abs(c)) / jnp.where(curved > 0.0, curved, 1.0), 1.0)
    speeds = jnp.where(jnp.isinf(highest), descent, highest)
    usable = speeds > 0.0
    share = jnp.where(usable[:, None], jnp.abs(basis) / jnp.where(usable, speeds, 1.0)[:, None], 0.0)
    largest = share.max(axis=0)
    unit = lax.stop_gradient(1.0 / jnp.where(largest > 0, largest, 1.0))  # of which the minimum does not depend
    columns = basis * unit[None]
    P, c, F = product(columns.T, product(P, columns)), product(columns.T, c), product(F, columns)
    size = jnp.maximum(jnp.max(jnp.diagonal(P)), jnp.max(jnp.abs(c)))
    size = jnp.where(size == 0.0, 1.0, size)
    idle = jnp.diag((basis == 0.0).all(axis=0).astype(c.dtype))  # motions that are none: of these nothing, exactly
    height = jnp.abs(F).max(axis=1)
    counts = counts & (height != 0.0)  # what no motion changes holds; NaN counts
    height = jnp.where(counts, height, 1.0)
    F, h = jnp.where(counts[:, None], F / height[:, None], 0.0), jnp.where(counts, h / height, 1.0)
    none = jnp.zeros((0, len(c)), c.dtype)
    return Program(P / size + idle, c / size, none, none[:, 0], F, h), unit
