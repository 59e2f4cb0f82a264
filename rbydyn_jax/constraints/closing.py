"""Initial configurations: closing loops from wherever the robot is."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._check import check_array, check_integer, check_positive, check_sequence
from .._jit import jit_public
from .._result import Result, count_of
from ..algorithms.arguments import arguments
from ..algorithms.kinematics import body_poses
from ..model.configuration import integrate, normalize
from ..model.model import Model
from ..spatial._small import solve_definite
from ..xla.control_flow import while_loop
from .dynamics import pseudo_inverse
from .loops import LoopJoint, check_loops, joint_frames, loop_gap

_SHRINK, _GROW, _START = 0.25, 4.0, 1e-3


class ClosedLoops(Result):
    """Result of `close_loops`.

    Attributes:
        q: The configuration [rad, m].
        solved: Whether no equation is off by more than the tolerance.
        gap: By how much the loops are open there [rad, m].
        iterations: How many steps were tried.
    """

    q: Float[Array, "nq"]
    solved: Bool[Array, ""]
    gap: Float[Array, "m"]
    iterations: Int[Array, ""]

    def _headline(self) -> str:
        return count_of(self.solved, "closed")


@jit_public("fixed", "iterations", tolerance=check_positive)
def close_loops(
    model: Model,
    q: Float[Array, "nq"],
    loops: Sequence[LoopJoint],
    *,
    fixed: tuple[str | int, ...] = (),
    tolerance: Float[Array, ""] | float | None = None,
    iterations: int = 100,
) -> ClosedLoops:
    r"""A configuration with closed loops, near the one given.

    Gauss-Newton steps $\min_d |g + J d|^2 + \mu |d|^2$ on the gap g of the loops, with the damping of Levenberg and
    Marquardt: $\mu$ shrinks after a step that closes the loops further, and grows after one that does not, which is
    rejected. It may end in a local minimum, which `solved` reports. The derivatives with respect to the parameters of
    the model and of the loop joints are those of the nearest solution, by the implicit function theorem; the derivative
    with respect to `q` is zero.

    Args:
        model: The robot.
        q: Initial guess [rad, m].
        loops: The joints that close loops.
        fixed: Joints that must not move, by name or index.
        tolerance: Largest gap of a closed loop [rad, m]; default is 1e4 times the machine epsilon.
        iterations: Maximum number of steps.

    Raises:
        DtypeError: `loops` holds something else.
        NameNotFoundError: There is no such joint, or a loop joint names a link that there is not.
        ArgumentError: `iterations` is less than 1, `tolerance` is not positive, or a loop joint joins links that do
            not move relative to each other.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        The tool of an arm brought to a point, with a ball joint that is open at first:

        >>> arm, there = robots.two_link_arm(), jnp.eye(4).at[:3, 3].set(jnp.array([0.5, 0.4, 0.0]))
        >>> ball = LoopJoint("spherical", None, "tool", predecessor_pose=there)
        >>> closed = close_loops(arm, jnp.array([0.1, 0.2]), (ball,))
        >>> bool(closed.solved), [round(float(x), 3) for x in link_pose(arm, closed.q, "tool")[:2, 3]]
        (True, [0.5, 0.4])
    """
    model, q = arguments(model, q=q)
    joints = check_loops(model, loops, q.dtype)
    iterations = check_integer(iterations, "iterations", 1)
    free = np.ones(model.nv)
    for joint in check_sequence(fixed, "fixed", "joints, by name or index"):
        free[model.tree.v_slices[model.joint_index(joint)]] = 0.0
    free = free.astype(q.dtype)
    bound = jnp.asarray(1e4 * jnp.finfo(q.dtype).eps, q.dtype)
    if tolerance is not None:
        bound = check_array(tolerance, "tolerance", ()).astype(q.dtype)

    def gap_of(model: Model, joints: Sequence[LoopJoint], q: Array) -> Array:
        poses = body_poses(model, q)
        gaps = [loop_gap(joint, *joint_frames(model, poses, joint)) for joint in joints]
        return jnp.concatenate([jnp.zeros(0, q.dtype), *gaps])

    held, held_joints, q = jax.lax.stop_gradient((model, joints, q))

    def gap(q: Array) -> Array:
        return gap_of(held, held_joints, q)

    def slope(q: Array) -> Array:
        return jax.jacfwd(lambda d: gap(integrate(held, q, d)))(jnp.zeros(model.nv, q.dtype)) * free[None]

    def off(g: Array) -> Array:
        return jnp.max(jnp.abs(g), initial=0.0)

    def unfinished(state: tuple) -> Array:
        _, g, _, count = state
        return (off(g) > bound) & (count < iterations)

    def step(state: tuple) -> tuple:
        q, g, damping, count = state
        J = slope(q)
        # The dual form is small for few equations, and its damping keeps it regular when they are redundant.
        A = J @ J.T
        scale = jnp.trace(A) + jnp.finfo(q.dtype).tiny
        d = -J.T @ solve_definite(A + damping * scale * jnp.eye(len(g), dtype=q.dtype), g)
        tried = normalize(held, integrate(held, q, d))
        h = gap(tried)
        better = h @ h < g @ g
        least = jnp.finfo(q.dtype).eps
        damping = jnp.where(better, jnp.maximum(_SHRINK * damping, least), jnp.minimum(_GROW * damping, 1.0 / least))
        return jnp.where(better, tried, q), jnp.where(better, h, g), damping, count + 1

    start = (q, gap(q), jnp.asarray(_START, q.dtype), jnp.zeros((), jnp.int32))
    q, g, _, count = while_loop(unfinished, step, start)
    q = integrate(model, q, -pseudo_inverse(slope(q)) @ (gap_of(model, joints, q) - g))  # q itself, with derivatives
    return ClosedLoops(q, off(g) <= bound, g, count)
