"""Poses of links."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import jit_public
from ..model.model import Model
from ..spatial import se3
from ..spatial.algebra import IDENTITY
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from .arguments import arguments
from .poses import body_pose_step, link_poses


@jit_public()
def fk(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nl 4 4"]:
    r"""Poses of all links, $T_{world,link}$, by $T_i = T_{p(i)} X_i J_i(q_i)$; O(n) [Featherstone 2008, sec. 4.4].

    Derivatives are analytic: a gradient takes one pass over the tree, from the poses alone.

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
    """
    model, q = arguments(model, q=q)
    links = [model.link_index(link)] + ([] if ref is None else [model.link_index(ref)])

    def poses(run: Sweep) -> list[Array]:
        frames = run.outward(body_pose_step, IDENTITY)
        return [run.link_poses(frames, k) for k in links]

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
    """
    return fk(model, q)[jnp.array(model.tree.principal_links, int)]
