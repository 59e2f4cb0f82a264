"""External wrenches in the form that the dynamics take."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_mapping
from ..model.model import Model
from ..spatial.algebra import Force, Mat3, Transform, Vec3
from .arguments import Frame, arguments, check_frame
from .kinematics import link_pose


def external_wrenches(
    model: Model,
    q: Float[Array, "nq"],
    wrenches: Mapping[str | int, Float[Array, "6"]],
    *,
    frame: Frame = "world_aligned",
) -> Float[Array, "nb 6"]:
    r"""The argument `f_ext` of the dynamics, from wrenches [n; f] that act on links.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        wrenches: For each link, by name or index, the wrench [N m, N] that acts on it.
        frame: In which it is stated: ``"world_aligned"`` about the link's origin in world axes, ``"local"`` about the
            link's origin in its axes, ``"world"`` about the world origin in world axes.

    Returns:
        The wrench on each body about its origin in its axes; a wrench on a link that is fixed to the world moves
        nothing.

    Raises:
        DtypeError: `wrenches` is not a mapping.
        NameNotFoundError: There is no such link.
        ShapeError: A wrench is not of shape (6,), or `q` not of shape `(model.nq,)`.

    Example:
        A force of 1 N upwards on a pendulum turned by a quarter is along -x in the axes of its body:

        >>> arm, q = robots.pendulum(), jnp.array([jnp.pi / 2])
        >>> f_ext = external_wrenches(arm, q, {"bob": jnp.array([0.0, 0, 0, 0, 0, 1])})
        >>> round(float(f_ext[0, 3]), 6)
        -1.0
    """
    model, q = arguments(model, q=q)
    check_frame(frame)
    check_mapping(wrenches, "wrenches", "links to wrenches (6,)")
    total = jnp.zeros((model.nb, 6), q.dtype)
    for link, wrench in wrenches.items():
        index = model.link_index(link)
        body = model.tree.link_bodies[index]
        w = check_array(wrench, f"wrenches[{link!r}]", (6,)).astype(q.dtype)
        if body < 0:
            continue
        T_world = link_pose(model, q, index)
        T_body = model.link_placements[index]
        if frame == "local":
            placement = T_body
        else:
            R = T_body[:3, :3] @ T_world[:3, :3].T
            origin = T_body[:3, 3] if frame == "world_aligned" else T_body[:3, 3] - R @ T_world[:3, 3]
            placement = jnp.concatenate([R, origin[:, None]], axis=1)
        moved = _transform(placement).force(Force(Vec3(*(w[k] for k in range(3))), Vec3(*(w[k] for k in range(3, 6)))))
        total = total.at[body].add(jnp.stack([*moved.n, *moved.f]))
    return total


def _transform(T: Array) -> Transform:
    R = Mat3(*(Vec3(*(T[i, j] for j in range(3))) for i in range(3)))
    return Transform(R, Vec3(*(T[i, 3] for i in range(3))))
