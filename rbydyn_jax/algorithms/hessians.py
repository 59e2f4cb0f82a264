"""Second derivatives of the poses of links and points: derivatives of their Jacobians."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..spatial.algebra import Vec3
from ..sweeps.among_all import among_all
from ..sweeps.cross_products import crossed
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from ..sweeps.topology import dof_bodies, moved_along, moving_dofs
from ..sweeps.world_frame import second_order
from ..xla.layout import rows_of
from .arguments import Frame, arguments, check_frame
from .jacobians import all_columns


def _curvature(
    model: Model, columns: Float[Array, "6 dofs"], link: int, ref: int | None, frame: Frame
) -> Float[Array, "moving 6 moving"]:
    """Derivatives of the columns along each other: a joint moves all that lies beyond it, seen from `ref`.

    Of the degrees of freedom that move the link: all others are zero.
    """
    moving = moving_dofs(model.tree, link, ref)
    beyond = moved_along(model.tree, link, ref)[np.ix_(moving, moving)][:, None]
    columns = rows_of(columns, moving, axis=1)
    w, v = columns[:3], columns[3:]
    turned = crossed(jnp.concatenate([w, w]), columns)
    slid = crossed(jnp.concatenate([jnp.zeros_like(v), v]), jnp.concatenate([w, w]))
    if frame == "world":
        return jnp.where(beyond, turned + slid, 0.0)
    if frame == "local":
        return jnp.where(beyond, 0.0, -(turned + slid))
    return jnp.where(beyond, turned, -slid)


def _of_all(model: Model, found: Float[Array, "moving rows moving"], link: int, ref: int | None) -> Array:
    dofs = len(dof_bodies(model.tree))
    return second_order(model, among_all(found, moving_dofs(model.tree, link, ref), dofs))


@jit_public("link", "ref", "frame")
def hessian(
    model: Model,
    q: Float[Array, "nq"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "nv 6 nv"]:
    r"""Derivative of `jacobian`: $H_{i,:,j} = \partial J_{:,j} / \partial q_i$ along the velocity direction $i$.

    The acceleration of the link is $J a + v^T H v$. A joint moves all that lies beyond it, so that the derivatives are
    cross products of the columns $[\omega_j; v_j]$: at the link's origin in the axes of the world, $H_{i,:,j}$ is
    $[\omega_i \times \omega_j; \omega_i \times v_j]$ if $j$ lies beyond $i$, else $[0; \omega_j \times v_i]$; O(n^2).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where it is stated; see `jacobian`.

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: An argument has another shape.

    Example:
        The second derivatives of the position of a tool, 0.5 m and 0.4 m from the joints at a right angle:

        >>> H = hessian(robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), "tool")
        >>> round(float(H[0, 3, 0]), 6), round(float(H[1, 4, 1]), 6)
        (-0.5, -0.4)
    """
    model, q = arguments(model, q=q)
    check_frame(frame)
    index, base = model.link_index(link), None if ref is None else model.link_index(ref)
    columns = traverse(model, lambda run: all_columns(run, index, base, frame), q, links=(index, base))
    return _of_all(model, _curvature(model, columns, index, base, frame), index, base)


@jit_public("link")
def point_hessian(
    model: Model, q: Float[Array, "nq"], link: str | int, point: Float[Array, "3"]
) -> Float[Array, "nv 3 nv"]:
    r"""Derivative of `point_jacobian`, $H_{i,:,j} = \partial J_{:,j} / \partial q_i$ along the direction $i$.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        point: The point in the link's coordinates [m].

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.

    Example:
        >>> H = point_hessian(robots.pendulum(), jnp.zeros(1), "bob", jnp.array([0.0, 0.0, -0.5]))
        >>> float(H[0, 2, 0])
        0.5
    """
    model, q, point = arguments(model, q=q, point=point)
    index = model.link_index(link)

    def columns(run: Sweep, point: Array) -> Array:
        return all_columns(run, index, None, Vec3(*(point[k] for k in range(3))))

    found = traverse(model, columns, q, point, links=(index,))
    return _of_all(model, _curvature(model, found, index, None, "world_aligned")[:, 3:], index, None)
