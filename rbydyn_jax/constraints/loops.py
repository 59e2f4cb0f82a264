r"""Joints that close a loop: their constraint equations, in position, velocity and acceleration.

A loop joint holds the frame *before* it (on the predecessor) and the frame *after* it (on the successor) together. With
$T$ the basis of the wrenches that it can bear and $J$ the Jacobian of the after frame relative to the predecessor, both
in the after frame, where $T$ is constant, its equations are $T^T e = 0$, $K v = 0$ with $K = T^T J$, and
$K \dot v = -k$ with $k = T^T \dot J v$ [Featherstone 2008, sec. 8.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._errors import ArgumentError, DtypeError, ModelError
from ..joints import JOINT_TYPES, JointType
from ..model.model import Model, float_dtype
from ..spatial import motion, se3
from ..sweeps.coordinates import Coordinates
from ..sweeps.topology import dof_bodies
from ._bodies import BodyMotions, body_of, link_frame
from ._vectors import Numbers, check_link, direction, not_negative, pose, scalar


class Baumgarte(eqx.Module):
    r"""Gains that pull a loop together again, $K\dot v = -k - T^T(\text{stiffness}\ e + \text{damping}\ \dot e)$.

    The default is critically damped with a time constant of 0.1 s [Featherstone 2008, sec. 8.3; Baumgarte 1972].

    Attributes:
        angular_stiffness: Of rotations [1/s^2].
        angular_damping: Of rotations [1/s].
        linear_stiffness: Of translations [1/s^2].
        linear_damping: Of translations [1/s].
    """

    angular_stiffness: Float[Array, ""] | float = 100.0
    angular_damping: Float[Array, ""] | float = 20.0
    linear_stiffness: Float[Array, ""] | float = 100.0
    linear_damping: Float[Array, ""] | float = 20.0

    def __check_init__(self) -> None:
        for name in ("angular_stiffness", "angular_damping", "linear_stiffness", "linear_damping"):
            not_negative(getattr(self, name), name)


class LoopJoint(eqx.Module):
    """A joint between two links of a tree, which closes a loop; its poses and axis are numbers that may be traced.

    Attributes:
        kind: A key of `joints.JOINT_TYPES`; static.
        predecessor: The link before the joint; None is the world; static.
        successor: The link after the joint; static.
        predecessor_pose: T_predecessor_before, the frame before the joint in the predecessor (4, 4).
        successor_pose: T_successor_after, the frame after the joint in the successor (4, 4).
        axis: Unit axis in both frames (3,); the normal of a planar joint.
        parameters: The parameters of this type of joint, in its order.

    Example:
        >>> hinge = LoopJoint("revolute", "crank", "rod", axis=(0, 1, 0))
        >>> hinge.bearing_rank
        5
    """

    kind: str = eqx.field(static=True)
    predecessor: str | int | None = eqx.field(static=True)
    successor: str | int = eqx.field(static=True)
    predecessor_pose: Float[Numbers, "4 4"]
    successor_pose: Float[Numbers, "4 4"]
    axis: Float[Numbers, "3"]
    parameters: tuple[Float[Numbers, ""], ...]

    def __init__(
        self,
        kind: str,
        predecessor: str | int | None,
        successor: str | int,
        *,
        predecessor_pose: Any = None,
        successor_pose: Any = None,
        axis: Any = (1.0, 0.0, 0.0),
        **parameters: Any,
    ) -> None:
        """A pose that is not given is the identity; the axis may be of any length; a screw takes `pitch` [m/rad].

        Raises:
            DtypeError: A pose, the axis or a parameter holds no numbers, or the kind of joint has no such parameter.
            ArgumentError: A pose is no rigid transform, or a number is not finite, where values are known.
            ModelError: There is no such kind of joint, the axis has no length, or a parameter is missing.
            ShapeError: A pose, the axis or a parameter has another shape.
        """
        if not isinstance(kind, str) or kind not in JOINT_TYPES:
            raise ModelError(f"kind must be one of {', '.join(map(repr, JOINT_TYPES))}, got {kind!r}")
        self.kind = kind
        self.predecessor, self.successor = (
            check_link(predecessor, "predecessor", True),
            check_link(successor, "successor"),
        )
        self.predecessor_pose = pose(predecessor_pose, "predecessor_pose")
        self.successor_pose = pose(successor_pose, "successor_pose")
        self.axis = direction(axis, "axis")
        names = JOINT_TYPES[kind].parameters
        for name in parameters:
            if name not in names:
                raise DtypeError(f"a {kind} joint has no parameter {name!r}; it has {', '.join(names) or 'none'}")
        for name in names:
            if name not in parameters:
                raise ModelError(f"a {kind} joint needs {name}=")
        self.parameters = tuple(scalar(parameters[name], name) for name in names)

    @property
    def joint(self) -> JointType:
        """The type of joint."""
        return JOINT_TYPES[self.kind]

    @property
    def bearing_rank(self) -> int:
        """Number of constraint equations."""
        return 6 - self.joint.nv

    @property
    def angular_rank(self) -> int:
        """Number of constraint equations on rotations, which come first."""
        return self.joint.angular_rank

    def cast(self, dtype: Any) -> LoopJoint:
        """The same joint with numbers of another type; None is JAX's default.

        Raises:
            DtypeError: `dtype` is not one of floating-point numbers.
        """
        kind = float_dtype(dtype)
        return jax.tree.map(lambda x: jnp.asarray(x, kind), self)


def _numbers(joint: LoopJoint) -> tuple[Array, list[Array]]:
    return jnp.asarray(joint.axis), [jnp.asarray(x) for x in joint.parameters]


def bearing_wrenches(joint: LoopJoint) -> Float[Array, "6 m"]:
    """The basis T of the wrenches [n; f] that a joint bears, in the frame after it, in which it is constant."""
    return joint.joint.bearing(*_numbers(joint))


def joint_frames(model: Model, poses: Array, joint: LoopJoint) -> tuple[Array, Array]:
    """T_world_before and T_world_after, from the poses of the bodies."""
    before = link_frame(model, poses, joint.predecessor, joint.predecessor_pose)
    return before, link_frame(model, poses, joint.successor, joint.successor_pose)


def loop_gap(joint: LoopJoint, before: Array, after: Array) -> Float[Array, "m"]:
    """By how much a loop is open, $T^T e$: the rotation that the joint does not allow [rad], as a vector in the after
    frame, and the distance [m] of the frames in the directions in which it allows none."""
    return joint.joint.gap(*_numbers(joint), se3.inverse(before) @ after)


def _rows(model: Model, bodies: BodyMotions, joint: LoopJoint, after: Array) -> tuple[Array, Array]:
    """The rows of K and the entries of k of one joint."""
    bearing, to_after = bearing_wrenches(joint), se3.inverse(after)
    ends = [body_of(model, link) for link in (joint.successor, joint.predecessor)]
    paths = [model.tree.path(body) for body in ends]
    signs = np.array([float(i in paths[0]) - float(i in paths[1]) for i in dof_bodies(model.tree)])
    columns = (bearing.T @ motion.Ad(to_after)) @ (bodies.subspaces * signs[None].astype(after.dtype))
    zero = jnp.zeros(6, after.dtype)

    def seen(rates: Array, body: int) -> Array:
        return zero if body < 0 else motion.transform_motion(to_after @ bodies.poses[body], rates[body])

    V, V0 = (seen(bodies.velocities, body) for body in ends)
    A, A0 = (seen(bodies.accelerations, body) for body in ends)
    gather = Coordinates(model).gather
    return gather(columns.T).T, bearing.T @ (A - A0 + motion.cross_motion(V, V0))


def check_loops(model: Model, loops: Any, dtype: Any) -> tuple[LoopJoint, ...]:
    """The loop joints, cast to one type.

    Raises:
        ArgumentError: One joins two links that do not move relative to each other.
        DtypeError: They are no sequence of `LoopJoint`.
        NameNotFoundError: One names a link that the robot does not have.
    """
    if isinstance(loops, LoopJoint) or not isinstance(loops, Sequence):
        raise DtypeError(f"loops must be a sequence of LoopJoint, got {type(loops).__name__}")
    for i, joint in enumerate(loops):
        if not isinstance(joint, LoopJoint):
            raise DtypeError(f"loops must hold LoopJoint, got {type(joint).__name__}")
        if body_of(model, joint.predecessor) == body_of(model, joint.successor):
            before = "the world" if joint.predecessor is None else repr(joint.predecessor)
            raise ArgumentError(
                f"predecessor and successor of loops[{i}] must move relative to each other, got {before} and "
                f"{joint.successor!r}"
            )
    return tuple(joint.cast(dtype) for joint in loops)


def loop_wrenches(model: Model, poses: Array, loops: Sequence[LoopJoint], multipliers: Array) -> Float[Array, "nb 6"]:
    r"""What the loop joints exert on the bodies, in body axes at body origins: $-T\lambda$ on the successor's."""
    total, at = jnp.zeros((model.nb, 6), poses.dtype), 0
    for joint in loops:
        wrench = bearing_wrenches(joint) @ multipliers[at : at + joint.bearing_rank]
        at += joint.bearing_rank
        after = joint_frames(model, poses, joint)[1]
        for link, sign in ((joint.successor, -1.0), (joint.predecessor, 1.0)):
            body = body_of(model, link)
            if body >= 0:
                moved = motion.transform_force(se3.inverse(poses[body]) @ after, wrench)
                total = total.at[body].add(sign * moved)
    return total


class LoopConstraint(eqx.Module):
    """The equations of loop joints one after the other: K v = 0 and K a = -k.

    Attributes:
        jacobian: K, a row for each equation.
        bias: k, the stabilization included.
        gap: By how much the loops are open [rad, m].
    """

    jacobian: Float[Array, "m nv"]
    bias: Float[Array, "m"]
    gap: Float[Array, "m"]


def assemble(
    model: Model, bodies: BodyMotions, v: Array, loops: Sequence[LoopJoint], gains: Sequence[Baumgarte | None]
) -> LoopConstraint:
    """The equations of checked loop joints, with a gain (or None) for each; `bodies` move without accelerations."""
    rows = [jnp.zeros((0, model.nv), v.dtype)]
    biases, gaps = [jnp.zeros(0, v.dtype)], [jnp.zeros(0, v.dtype)]
    for joint, gain in zip(loops, gains, strict=True):
        before, after = joint_frames(model, bodies.poses, joint)
        K, k = _rows(model, bodies, joint, after)
        gap = loop_gap(joint, before, after)
        if gain is not None:
            angular = np.arange(joint.bearing_rank) < joint.angular_rank
            stiffness = jnp.where(angular, gain.angular_stiffness, gain.linear_stiffness).astype(v.dtype)
            damping = jnp.where(angular, gain.angular_damping, gain.linear_damping).astype(v.dtype)
            k = k + stiffness * gap + damping * (K @ v)
        rows.append(K)
        biases.append(k)
        gaps.append(gap)
    return LoopConstraint(jnp.concatenate(rows), jnp.concatenate(biases), jnp.concatenate(gaps))
