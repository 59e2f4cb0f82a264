r"""Poses of links, with their derivative rules.

A body's twist about the world origin turns and shifts the poses of its links: $\dot R = [\omega] R$, $\dot p = v +
\omega \times p$. A cotangent of a pose is a wrench on the link about the world origin, $n = \sum_k r_k \times \bar r_k
+ p \times \bar p$ with the columns $r_k$ of R, $f = \bar p$. Pulled back to the velocity of a joint it is the power of
the joint's motion on the sum of all that the joint carries. Each is one sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial import se3
from ..spatial.algebra import IDENTITY, NO_FORCE, NO_MOTION, Force, Motion, Transform, skew
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep, transform_from_numbers
from ..xla.fusion import barrier
from ..xla.loops import Pieces
from ..xla.structural import Scalars
from ..xla.transpose import LinearMap
from .arguments import arguments
from .derivative_rule import with_rule


def body_pose_step(body: Body, parent: Transform) -> tuple[Transform, Transform]:
    """T_world_body from the parent's."""
    pose = parent @ body.transform
    return pose, pose


Links = Callable[[KinematicTree], Sequence[int]]


def _all(tree: KinematicTree) -> Sequence[int]:
    return range(len(tree.link_names))


def _principal(tree: KinematicTree) -> Sequence[int]:
    return tree.principal_links


def _whole(poses: Pieces) -> Array:
    """The array, behind a barrier: of a single number that is used XLA would leave a kernel that ends the process."""
    return barrier(poses.whole())


def _outward(body: Body, parent: Motion, numbers: Scalars, v: Scalars) -> tuple[Motion, Transform]:
    V = parent + transform_from_numbers(numbers).motion(body.spin(v))
    return V, Transform(skew(V.w), V.v)


def _push_forward(select: Links, run: Sweep, T: Array, v: Array) -> Pieces:
    links = select(run.tree)
    rates = run.outward(_outward, NO_MOTION, run.split_poses(T, links), run.split_v(v))
    return run.move_links(rates, T, links)


def _wrench(pose: Transform, cotangent: Transform) -> Force:
    n = pose.p.cross(cotangent.p)
    for column, change in zip(pose.R.T, cotangent.R.T, strict=True):
        n = n + column.cross(change)
    return Force(n, cotangent.p)


def _inward(body: Body, children: Force, pose: Transform, cotangent: Scalars) -> tuple[Force, Scalars]:
    total = _wrench(pose, transform_from_numbers(cotangent)) + children
    return total, tuple(pose.motion(s).dot(total) for s in body.subspace)


def _pull_back(select: Links, run: Sweep, cotangent: Array) -> Array:
    """The poses are computed once more: to read those that are there takes longer."""
    poses = run.outward(body_pose_step, IDENTITY)
    return run.stack_v(run.inward(_inward, NO_FORCE, poses, run.sum_links(cotangent, select(run.tree))))


@dataclass(frozen=True)
class _Changes(LinearMap):
    """Changes of position (as velocities) to changes of the poses; the parameters are the model, q and the poses."""

    links: Links
    transposed: bool = False

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q, T = parameters
        if self.transposed:
            return (traverse(model, partial(_pull_back, self.links), q, *arguments, result="from_poses"),)
        return (_whole(traverse(model, partial(_push_forward, self.links), q, T, *arguments, result="poses")),)

    def transpose(self) -> LinearMap:
        return _Changes(self.links, not self.transposed)


def _plain(select: Links, model: Model, q: Array) -> Array:
    def poses(run: Sweep) -> Pieces:
        return run.link_poses(run.outward(body_pose_step, IDENTITY), select(run.tree))

    return _whole(traverse(model, poses, q, result="poses"))


def _with_rule(select: Links) -> Callable[[Model, Array], Array]:
    """The poses of links, at least one on each body."""
    return with_rule(partial(_plain, select), _Changes(select), from_result=True)


link_poses, _principal_poses = _with_rule(_all), _with_rule(_principal)


@jit_public()
def fk(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nl 4 4"]:
    r"""Poses of all links, $T_{world,link}$, by $T_i = T_{p(i)} X_i J_i(q_i)$; O(n) [Featherstone 2008, sec. 4.4].

    Derivatives are analytic: a gradient takes one pass over the tree.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        4x4 matrices in the order of `model.link_names`.

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> arm = robots.two_link_arm()
        >>> poses = fk(arm, jnp.array([0.0, jnp.pi / 2]))
        >>> poses.shape == (len(arm.link_names), 4, 4)
        True
    """
    model, q = arguments(model, q=q)
    return link_poses(model, q)


@jit_public("link", "ref")
def link_pose(
    model: Model, q: Float[Array, "nq"], link: str | int, ref: str | int | None = None
) -> Float[Array, "4 4"]:
    r"""Pose of one link, $T_{ref,link}$; only the joints on its path are evaluated.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        ref: The link relative to which the pose is given; None is the world.

    Returns:
        4x4 matrix that takes coordinates of `link` to those of `ref`.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> T = link_pose(robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), "tool")
        >>> [round(float(x), 6) for x in T[:2, 3]]
        [0.5, 0.4]
    """
    model, q = arguments(model, q=q)
    links = [model.link_index(link)] + ([] if ref is None else [model.link_index(ref)])

    def poses(run: Sweep) -> list[Array]:
        frames = run.outward(body_pose_step, IDENTITY)
        return [run.link_pose(frames, k) for k in links]

    found = traverse(model, poses, q, links=links)
    return found[0] if ref is None else se3.inverse(found[1]) @ found[0]


@jit_public()
def body_poses(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nb 4 4"]:
    """Poses of the bodies, which are the frames after each joint, in the order of `model.joint_names`.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> body_poses(robots.two_link_arm(), jnp.zeros(2))[1, :3, 3].tolist()
        [0.5, 0.0, 0.0]
    """
    model, q = arguments(model, q=q)
    return _principal_poses(model, q) if model.nb else jnp.zeros((0, 4, 4), q.dtype)
