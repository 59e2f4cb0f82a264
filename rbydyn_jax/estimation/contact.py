"""Where a robot is touched, and with which wrench, from the external torques of its joints."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._check import check_each, check_not_negative, check_number
from .._jit import full_precision, jit_public
from .._result import Result
from ..algorithms.arguments import arguments
from ..algorithms.jacobians import jacobian, point_jacobian
from ..model.model import Model


class ContactWrench(Result):
    """A wrench on a link that explains external torques.

    Attributes:
        wrench: [n; f] about the origin of the link, in world axes [N m, N].
        unexplained: What is left of the torques [N m, N].
        observed: The directions of wrenches that the joints feel, orthonormal columns; `wrench` is in their span, and
            what a wrench has beyond it is unknown.
        rank: Their number; the other columns of `observed` are zero.
    """

    wrench: Float[Array, "6"]
    unexplained: Float[Array, "nv"]
    observed: Float[Array, "6 6"]
    rank: Int[Array, ""]


class ContactForce(Result):
    """A force at a point of a link that explains external torques.

    Attributes:
        force: In world axes [N].
        unexplained: What is left of the torques [N m, N].
        observed: The directions of forces that the joints feel, orthonormal columns.
        rank: Their number; the other columns of `observed` are zero.
    """

    force: Float[Array, "3"]
    unexplained: Float[Array, "nv"]
    observed: Float[Array, "3 3"]
    rank: Int[Array, ""]


def _solved(J: Float[Array, "m nv"], torques: Float[Array, "nv"], cutoff: float) -> tuple[Array, Array, Array, Array]:
    """The smallest x with J^T x nearest to the torques, what is left, the span, its rank."""
    if not len(torques):
        return jnp.zeros(len(J), J.dtype), torques, jnp.zeros((len(J), len(J)), J.dtype), jnp.asarray(0)
    inverse, span = _inverse(J, cutoff)
    x = inverse @ torques
    full = jnp.zeros((len(J), len(J)), J.dtype).at[:, : span.shape[1]].set(span)
    return x, torques - J.T @ x, full, jnp.sum(jnp.any(span != 0.0, axis=0))


def _decomposed(J: Array, cutoff: float) -> tuple[Array, Array, Array, Array]:
    """The singular vectors and values, and the inverse values of those that are not left out."""
    columns, sizes, rows = jnp.linalg.svd(J, full_matrices=False)
    felt: Bool[Array, "k"] = sizes > cutoff * sizes[0]
    return columns, sizes, rows, jnp.where(felt, 1.0 / jnp.where(felt, sizes, 1.0), 0.0)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _inverse(J: Float[Array, "m nv"], cutoff: float) -> tuple[Float[Array, "m nv"], Float[Array, "m k"]]:
    """The transposed pseudo-inverse without small singular values, and the columns that span what is kept.

    Its derivative is that of a function of the singular values [Noferini 2017, theorem 3.5], which is finite where some
    of them are equal, or zero: differences of those that are kept and left out are the only denominators. The columns
    move as little as the span allows.
    """
    columns, _, rows, inverse = _decomposed(J, cutoff)
    return (columns * inverse[None]) @ rows, jnp.where(inverse > 0.0, columns, 0.0)


@_inverse.defjvp
@full_precision
def _inverse_jvp(cutoff: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    (J,), (dJ,) = primals, tangents
    U, s, rows, f = _decomposed(J, cutoff)
    V, felt = rows.T, f > 0.0
    kept, mixed, leaving = felt[:, None] & felt[None], felt[:, None] ^ felt[None], felt[None] & ~felt[:, None]
    moved = U.T @ (dJ @ V)
    gap = jnp.where(mixed, s[:, None] - s[None], 1.0)
    total = jnp.where(mixed, s[:, None] + s[None], 1.0)
    along = f[:, None] * f[None]
    even = jnp.where(kept, -along, jnp.where(mixed, (f[:, None] - f[None]) / gap, 0.0))
    odd = jnp.where(kept, along, jnp.where(mixed, (f[:, None] + f[None]) / total, 0.0))
    core = 0.5 * (even * (moved + moved.T) + odd * (moved - moved.T))
    ahead, behind = U.T @ dJ, dJ @ V
    beyond_rows = (U * (f * f)[None]) @ (ahead - moved @ rows)
    beyond_columns = behind - U @ moved
    inverse = U @ (core @ rows) + beyond_rows + (beyond_columns * (f * f)[None]) @ rows
    # From a column that is kept to one that is left out, and to what the columns do not span.
    turned = jnp.where(leaving, -(s[None] * moved + s[:, None] * moved.T) / (gap * total), 0.0)
    span = U @ turned + beyond_columns * f[None]
    return _inverse(J, cutoff), (inverse, span)


@jit_public("link", "cutoff")
def contact_wrench(
    model: Model,
    q: Float[Array, "nq"],
    torques: Float[Array, "nv"],
    link: str | int,
    *,
    cutoff: float = 1e-3,
) -> ContactWrench:
    r"""The wrench on a link nearest to external torques: least squares of $\tau_{ext} = J^T [n; f]$.

    By the singular values of the Jacobian at the link's origin; directions that the joints hardly feel, near a
    singularity or with fewer than six joints, are left out, and `ContactWrench.observed` tells which are left.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        torques: External torques, such as those of `external_torques` [N m, N].
        link: The link that is touched, by name or index.
        cutoff: Singular values below this part of the largest are left out.

    Raises:
        ArgumentError: `cutoff` is negative.
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.estimation import contact_wrench
        >>> arm, q = robots.two_link_arm(), jnp.array([0.3, 0.8])
        >>> torques = jacobian(arm, q, "tool").T @ jnp.array([0.0, 0.0, 0.0, 5.0, 2.0, 0.0])
        >>> found = contact_wrench(arm, q, torques, "tool")
        >>> int(found.rank), bool(jnp.abs(found.unexplained).max() < 1e-5)
        (2, True)
    """
    model, q, torques = arguments(model, q=q, torques=torques)
    check_not_negative(check_number(cutoff, "cutoff"), "cutoff")
    return ContactWrench(*_solved(jacobian(model, q, link), torques, cutoff))


@jit_public("link", "cutoff")
def contact_force(
    model: Model,
    q: Float[Array, "nq"],
    torques: Float[Array, "nv"],
    link: str | int,
    point: Float[Array, "3"],
    *,
    cutoff: float = 1e-3,
) -> ContactForce:
    r"""The force at a point of a link nearest to external torques: least squares of $\tau_{ext} = J_P^T f$.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        torques: External torques, such as those of `external_torques` [N m, N].
        link: The link that is touched, by name or index.
        point: The point in the axes of the link, from its origin [m].
        cutoff: Singular values below this part of the largest are left out.

    Raises:
        ArgumentError: `cutoff` is negative.
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.estimation import contact_force
        >>> arm, q = robots.two_link_arm(), jnp.array([0.3, 0.8])
        >>> torques = jacobian(arm, q, "tool")[3:].T @ jnp.array([5.0, 2.0, 0.0])
        >>> contact_force(arm, q, torques, "tool", jnp.zeros(3)).force.round(3).tolist()
        [5.0, 2.0, 0.0]
    """
    model, q, torques, point = arguments(model, q=q, torques=torques, point=point)
    check_not_negative(check_number(cutoff, "cutoff"), "cutoff")
    return ContactForce(*_solved(point_jacobian(model, q, link, point), torques, cutoff))


@jit_public(threshold=check_not_negative)
def touched_body(model: Model, torques: Float[Array, "nv"], threshold: Float[Array, "nv"] | float) -> Int[Array, ""]:
    """The body that is touched: the last one of a chain whose joint feels an external torque; -1 if there is none.

    A wrench on a body is felt by the joints that carry it, and by no other [Haddadin, De Luca, Albu-Schaeffer 2017,
    sec. III-B]. The body that is touched is this one, or one behind it on whose joints the wrench has no effect.

    Args:
        model: The robot.
        torques: External torques, such as those of `external_torques` [N m, N].
        threshold: What counts as felt, of each velocity or of all [N m, N]: above the noise and the errors of the
            model. NaN counts as felt.

    Returns:
        The index of the body; its name is that of link `model.tree.principal_links[body]`.

    Raises:
        ArgumentError: `threshold` is negative.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.estimation import touched_body
        >>> int(touched_body(robots.two_link_arm(), jnp.array([-4.0, 0.1]), 1.0))
        0
    """
    model, torques = arguments(model, torques=torques)
    bound = check_each(threshold, "threshold", model.nv, "model.nv").astype(torques.dtype)
    tree = model.tree
    bodies = [i for i, mimic in enumerate(tree.mimics) if mimic is None for _ in range(tree.joints[i].nv)]
    depths = np.array([len(tree.path(i)) for i in bodies], int)
    if not bodies:
        return jnp.asarray(-1)
    felt = ~(jnp.abs(torques) <= bound)
    last = jnp.argmax(jnp.where(felt, depths, 0))
    return jnp.where(jnp.any(felt), jnp.asarray(bodies)[last], -1)
