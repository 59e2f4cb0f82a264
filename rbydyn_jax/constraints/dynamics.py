r"""Dynamics of a tree whose loops are closed by joints: $M\dot v + c = \tau - K^T\lambda$ with $K\dot v = -k$."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_sequence, check_share
from .._errors import DtypeError, ModelError, ShapeError
from .._jit import jit_public
from .._result import Result
from ..algorithms.arguments import arguments
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import bias_forces, joint_reaction_wrenches, rnea
from ..model.configuration import qdot_from_v
from ..model.model import Model
from ._bodies import body_motions
from .loops import Baumgarte, LoopJoint, assemble, check_loops, loop_wrenches

Stabilization = Baumgarte | Sequence[Baumgarte | None] | None
DEFAULT_STABILIZATION = Baumgarte()


class DynamicsResult(Result):
    r"""Result of constrained forward dynamics; all fields belong to the computed accelerations.

    Attributes:
        mass_matrix: M [kg m^2, kg m, kg].
        bias: c, with gravity and the external wrenches [N m, N].
        constraint_jacobian: K, a row for each equation, in the order of the loop joints.
        constraint_bias: k, the stabilization included [rad/s^2, m/s^2].
        qdot: Rate of the configuration [rad/s, m/s].
        a: Accelerations of the joints [rad/s^2, m/s^2].
        multipliers: $\lambda$; the smallest ones where they are not unique [N m, N].
        body_accelerations: Spatial acceleration of each body in its axes at its origin, gravity not added
            [rad/s^2, m/s^2].
        joint_wrenches: Wrench through each joint of the tree onto its body, in body axes at the body's origin
            [N m, N].
        loop_wrenches: What the loop joints exert on each body, in body axes at the body's origin [N m, N].
    """

    mass_matrix: Float[Array, "nv nv"]
    bias: Float[Array, "nv"]
    constraint_jacobian: Float[Array, "m nv"]
    constraint_bias: Float[Array, "m"]
    qdot: Float[Array, "nq"]
    a: Float[Array, "nv"]
    multipliers: Float[Array, "m"]
    body_accelerations: Float[Array, "nb 6"]
    joint_wrenches: Float[Array, "nb 6"]
    loop_wrenches: Float[Array, "nb 6"]


class InverseDynamicsResult(Result):
    r"""Forces that produce a motion of a tree with loops.

    Attributes:
        tau: Joint torques or forces, zero on the joints that are not actuated [N m, N].
        multipliers: $\lambda$ of the loop joints [N m, N].
        residual: What the actuated joints cannot produce, $\tau - K^T\lambda - M a - c$; zero if they can [N m, N].
    """

    tau: Float[Array, "nv"]
    multipliers: Float[Array, "m"]
    residual: Float[Array, "nv"]


def tolerance(dtype: Any, *shape: int) -> float:
    """Singular values below this part of the largest count as zero: ten times what rounding leaves."""
    return 10.0 * max(shape) * float(jnp.finfo(dtype).eps)


def pseudo_inverse(A: Float[Array, "m n"]) -> Float[Array, "n m"]:
    """The pseudo-inverse with the rank by `tolerance`; its derivatives are exact as long as the rank stays the same."""
    if 0 in A.shape:
        return jnp.zeros(A.shape[::-1], A.dtype)
    return jnp.linalg.pinv(A, rtol=tolerance(A.dtype, *A.shape))


def each_stabilization(stabilization: Stabilization, count: int) -> tuple[Baumgarte | None, ...]:
    """The gains of each of `count` loop joints.

    Raises:
        DtypeError: There is something else than `Baumgarte` or None.
        ShapeError: There is not one for each joint.
    """
    if stabilization is None or isinstance(stabilization, Baumgarte):
        return (stabilization,) * count
    if not isinstance(stabilization, Sequence):
        raise DtypeError(f"stabilization must be a Baumgarte, one for each loop, or None, got {stabilization!r}")
    if len(stabilization) != count:
        raise ShapeError(f"stabilization has {len(stabilization)} entries for {count} loops")
    for gain in stabilization:
        if not (gain is None or isinstance(gain, Baumgarte)):
            raise DtypeError(f"stabilization must hold Baumgarte or None, got {type(gain).__name__}")
    return tuple(stabilization)


def whitened(M: Array, K: Array, force: Array) -> tuple[Array, Array, Array]:
    """L of M = L L^T, Y = K L^-T and z = L^-1 force: coordinates in which the kinetic energy is a plain square."""
    L = jnp.linalg.cholesky(M)

    def solve(x: Array) -> Array:
        return jax.scipy.linalg.solve_triangular(L, x, lower=True)

    return L, solve(K.T).T, solve(force)


def constrained_solve(M: Array, K: Array, force: Array, k: Array) -> tuple[Array, Array]:
    r"""The solution of $M a = f - K^T\lambda$, $K a = -k$, with the minimum-norm $\lambda$ where K is rank-deficient.

    In whitened coordinates it is the point nearest to z = L^-1 f on the plane Y y = -k, by the pseudo-inverse of Y. The
    rank is decided on Y, whose singular values are the roots of those of K M^-1 K^T.
    """
    L, Y, z = whitened(M, K, force)
    Y_inverse = pseudo_inverse(Y)
    pull = Y_inverse @ (Y @ z + k)
    a = jax.scipy.linalg.solve_triangular(L.T, z - pull, lower=False)
    return a, Y_inverse.T @ pull


@jit_public()
def forward_dynamics(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    loops: Sequence[LoopJoint] = (),
    f_ext: Float[Array, "nb 6"] | None = None,
    *,
    stabilization: Stabilization = DEFAULT_STABILIZATION,
) -> DynamicsResult:
    r"""Accelerations and constraint forces of a robot with loops.

    Cholesky factors of the mass matrix and a pseudo-inverse of the constraint Jacobian, so that redundant equations (a
    planar four-bar has five for two) do no harm; O(n^3) [Featherstone 2008, sec. 8.5]. It is differentiable in both
    modes wherever the rank of the constraints does not change.

    Args:
        model: The robot; its mass matrix must be positive definite.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tau: Joint torques or forces [N m, N].
        loops: The joints that close loops.
        f_ext: Wrench [n; f] that acts on each body from outside, about its origin in its axes [N m, N].
        stabilization: Gains of all loop joints, or one for each of them; None does nothing against drift.

    Raises:
        ArgumentError: A loop joint joins links that do not move relative to each other.
        DtypeError: `loops` or `stabilization` holds something else.
        NameNotFoundError: A loop joint names a link that there is not.
        ShapeError: An argument has another shape.

    Example:
        The end of a two-link arm that lies along x, held to the world by a ball joint, cannot accelerate:

        >>> arm = robots.two_link_arm()
        >>> pin = LoopJoint("spherical", None, "tool", predecessor_pose=link_pose(arm, jnp.array([0.0, 0.5]), "tool"))
        >>> result = forward_dynamics(arm, jnp.array([0.0, 0.5]), jnp.zeros(2), jnp.ones(2), (pin,))
        >>> bool(jnp.abs(result.a).max() < 1e-5)
        True
    """
    model, q, v, tau, f_ext = arguments(model, q=q, v=v, tau=tau, f_ext=f_ext)
    joints = check_loops(model, loops, q.dtype)
    bodies = body_motions(model, q, v)
    equations = assemble(model, bodies, v, joints, each_stabilization(stabilization, len(joints)))
    M, c = crba(model, q), bias_forces(model, q, v, f_ext)
    a, multipliers = constrained_solve(M, equations.jacobian, tau - c, equations.bias)
    wrenches = loop_wrenches(model, bodies.poses, joints, multipliers)
    return DynamicsResult(
        mass_matrix=M,
        bias=c,
        constraint_jacobian=equations.jacobian,
        constraint_bias=equations.bias,
        qdot=qdot_from_v(model, q, v),
        a=a,
        multipliers=multipliers,
        body_accelerations=body_motions(model, q, v, a).accelerations,
        joint_wrenches=joint_reaction_wrenches(model, q, v, a, wrenches if f_ext is None else f_ext + wrenches),
        loop_wrenches=wrenches,
    )


@jit_public("actuated")
def inverse_dynamics(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    loops: Sequence[LoopJoint] = (),
    actuated: tuple[str | int, ...] | None = None,
    f_ext: Float[Array, "nb 6"] | None = None,
) -> InverseDynamicsResult:
    r"""The forces of the actuated joints that produce an acceleration together with the loop forces.

    With P the projection on the motions that the loops allow, the smallest $\tau$ with
    $P(\tau - M a - c) = 0$; O(n^3) [Featherstone 2008, sec. 8.12].

    Args:
        model: The robot.
        q: Configuration, with closed loops [rad, m].
        v: Velocity that keeps them closed [rad/s, m/s].
        a: Acceleration that keeps them closed [rad/s^2, m/s^2].
        loops: The joints that close loops.
        actuated: The joints that have a motor, by name or index; None is all of them.
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ArgumentError: A loop joint joins links that do not move relative to each other.
        DtypeError: `loops` holds something else.
        ModelError: `actuated` holds a mimic joint.
        NameNotFoundError: There is no such joint, or a loop joint names a link that there is not.
        ShapeError: An argument has another shape.

    Example:
        A motor at the shoulder alone cannot hold the elbow of an open arm:

        >>> arm = robots.double_pendulum()
        >>> sideways = jnp.array([jnp.pi / 2, 0.0])
        >>> result = inverse_dynamics(arm, sideways, jnp.zeros(2), jnp.zeros(2), actuated=("shoulder",))
        >>> [round(float(x), 3) for x in (*result.tau, result.residual[1])]
        [19.62, 0.0, -4.905]
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)
    joints = check_loops(model, loops, q.dtype)
    K = assemble(model, body_motions(model, q, v), v, joints, (None,) * len(joints)).jacobian
    needed = rnea(model, q, v, a, f_ext)
    K_inverse = pseudo_inverse(K)
    P = jnp.eye(model.nv, dtype=q.dtype) - K_inverse @ K
    driven = np.arange(model.nv) if actuated is None else driven_velocities(model, actuated)
    S = jnp.eye(model.nv, dtype=q.dtype)[:, driven]
    tau = S @ (pseudo_inverse(P @ S) @ (P @ needed))
    multipliers = K_inverse.T @ (tau - needed)
    return InverseDynamicsResult(tau, multipliers, tau - K.T @ multipliers - needed)


def driven_velocities(model: Model, actuated: Sequence[str | int]) -> np.ndarray:
    """The velocities of the joints that have a motor.

    Raises:
        DtypeError: `actuated` is no sequence.
        ModelError: One of the joints mimics another, and has no velocity of its own.
        NameNotFoundError: There is no such joint.
    """
    tree, found = model.tree, set[int]()
    for joint in check_sequence(actuated, "actuated", "joints, by name or index"):
        i = model.joint_index(joint)
        if tree.mimics[i] is not None:
            raise ModelError(f"actuated must not hold the mimic joint {model.joint_names[i]!r}")
        found.update(range(tree.v_slices[i].start, tree.v_slices[i].stop))
    return np.array(sorted(found), int)


@jit_public(restitution=check_share)
def impulse(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    loops: Sequence[LoopJoint] = (),
    rows: Float[Array, "k nv"] | None = None,
    restitution: Float[Array, ""] | float = 0.0,
) -> Float[Array, "nv"]:
    r"""Velocity after an impact: $M(v^+ - v) = -J^T\Lambda$ with $J v^+ = -e\, J v$.

    J holds the equations of the loop joints, which stay closed (e = 0), and further rows that meet an obstacle, such
    as the normal rows of `point_jacobian` at points that touch. Nothing else is known of it: a point that is leaving
    must not have a row. Without `rows` this is the nearest velocity, by kinetic energy, that the loops allow.

    Args:
        model: The robot; its mass matrix must be positive definite.
        q: Configuration [rad, m].
        v: Velocity before [rad/s, m/s].
        loops: The joints that close loops.
        rows: Jacobian of the velocities that are turned back.
        restitution: Their coefficient of restitution e, from 0 (plastic) to 1 (elastic).

    Returns:
        Velocity after [rad/s, m/s].

    Raises:
        ArgumentError: `restitution` is not from 0 to 1, or a loop joint joins links that do not move relative to each
            other.
        DtypeError: `loops` or `rows` holds something else.
        NameNotFoundError: A loop joint names a link that there is not.
        ShapeError: An argument has another shape.

    Example:
        A ball that falls on the ground with 2 m/s bounces with half of that:

        >>> ball = build_model(RobotBuilder().link("w").link("ball", 0.3, inertia=0.01).prismatic(
        ...     "height", "w", "ball", axis=(0, 0, 1)))
        >>> down = point_jacobian(ball, jnp.zeros(1), "ball", jnp.zeros(3))[2:]
        >>> round(float(impulse(ball, jnp.zeros(1), jnp.array([-2.0]), rows=down, restitution=0.5)[0]), 6)
        1.0
    """
    model, q, v = arguments(model, q=q, v=v)
    joints = check_loops(model, loops, q.dtype)
    K = assemble(model, body_motions(model, q, v), v, joints, (None,) * len(joints)).jacobian
    more = jnp.zeros((0, model.nv), q.dtype) if rows is None else check_array(rows, "rows", (None, model.nv))
    e = check_array(restitution, "restitution", ()).astype(q.dtype)
    J = jnp.concatenate([K, more.astype(q.dtype)])
    target = jnp.concatenate([jnp.zeros(len(K), q.dtype), e * (more.astype(q.dtype) @ v)])
    M = crba(model, q)
    return constrained_solve(M, J, M @ v, target)[0]
