r"""Rigid motions: homogeneous matrices $T_{AB}$ (4, 4), which take B's coordinates to A's.

Tangent vectors are angular first, $\xi = [\omega;\ v]$. The SE(3) functions follow from the SO(3) ones by the
principle of transference: replace $\omega$ by the dual vector $\omega + \epsilon v$.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_pose
from . import so3
from ._small import dot, jitted, matmul, matvec, outer
from .motion import Ad as Ad
from .motion import ad as ad
from .safe import stumpff


def _check(xi) -> Array:
    return check_array(xi, "xi", (6,), "a twist [omega; v]")


def _block_lower(diagonal: Array, corner: Array) -> Float[Array, "6 6"]:
    """The matrix [[diagonal, 0], [corner, diagonal]]."""
    top = jnp.concatenate([diagonal, jnp.zeros_like(diagonal)], axis=1)
    return jnp.concatenate([top, jnp.concatenate([corner, diagonal], axis=1)])


def _dual_part(xi: Array) -> Float[Array, "3 3"]:
    r"""Derivative of $J_l(\omega)$ in the direction v: the lower left block of the left Jacobian."""
    omega, v = xi[:3], xi[3:]
    x, ov = dot(omega, omega), dot(omega, v)
    c2, c3, c4, c5 = (stumpff(k, x) for k in (2, 3, 4, 5))
    eye = jnp.eye(3, dtype=xi.dtype)
    skew = so3.hat(c2 * v + (2.0 * c4 - c3) * ov * omega)
    square = outer(omega, omega) - x * eye
    symmetric = outer(omega, v) + outer(v, omega) - 2.0 * ov * eye
    return skew + c3 * symmetric + (3.0 * c5 - c4) * ov * square


@jitted
def from_R_p(R: Float[Array, "3 3"], p: Float[Array, "3"]) -> Float[Array, "4 4"]:
    """The transform with rotation matrix R and translation p [m].

    Example:
        >>> from_R_p(jnp.eye(3), jnp.array([1.0, 2.0, 3.0]))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    R, p = check_array(R, "R", (3, 3)), check_array(p, "p", (3,))
    top = jnp.concatenate([R, p[:, None]], axis=1)
    return jnp.concatenate([top, jnp.array([[0.0, 0.0, 0.0, 1.0]], dtype=top.dtype)])


@partial(jitted, T=check_pose)
def inverse(T: Float[Array, "4 4"]) -> Float[Array, "4 4"]:
    """Inverse transform, [[R^T, -R^T p], [0, 1]]."""
    T = check_array(T, "T", (4, 4), "a transform")
    R = T[:3, :3].T
    return from_R_p(R, -matvec(R, T[:3, 3]))


@jitted
def exp(xi: Float[Array, "6"]) -> Float[Array, "4 4"]:
    r"""The motion of a constant twist over unit time, $R = \exp\hat\omega$, $p = J_l(\omega)\,v$.

    Args:
        xi: Twist [omega; v] [rad, m].

    Returns:
        The transform.

    Raises:
        ShapeError: `xi` is not of shape (6,).

    Example:
        >>> exp(jnp.array([0.0, 0, 0, 1, 2, 3]))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    xi = _check(xi)
    return from_R_p(so3.exp(xi[:3]), matvec(so3.left_jacobian(xi[:3]), xi[3:]))


@partial(jitted, T=check_pose)
def log(T: Float[Array, "4 4"]) -> Float[Array, "6"]:
    r"""The twist $[\omega;\ v]$ with $\exp(\xi) = T$ and $|\omega| \le \pi$; at pi as in `so3.log`.

    Its time derivative for a body twist V of the moving frame is `right_jacobian_inverse(log(T)) @ V`.

    Args:
        T: Transform.

    Returns:
        Twist [rad, m].

    Raises:
        ShapeError: `T` is not of shape (4, 4).

    Example:
        >>> log(jnp.eye(4)).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    T = check_array(T, "T", (4, 4), "a transform")
    omega = so3.log(T[:3, :3])
    return jnp.concatenate([omega, matvec(so3.left_jacobian_inverse(omega), T[:3, 3])])


@jitted
def left_jacobian(xi: Float[Array, "6"]) -> Float[Array, "6 6"]:
    r"""The Jacobian with $\exp(\xi + \delta) \approx \exp(J_l \delta) \exp(\xi)$.

    $J_l(\xi) = \begin{bmatrix} J_l(\omega) & 0 \\ Q & J_l(\omega) \end{bmatrix}$ with $Q = D J_l(\omega)[v]$.

    Example:
        >>> bool((left_jacobian(jnp.zeros(6)) == jnp.eye(6)).all())
        True
    """
    xi = _check(xi)
    return _block_lower(so3.left_jacobian(xi[:3]), _dual_part(xi))


@jitted
def right_jacobian(xi: Float[Array, "6"]) -> Float[Array, "6 6"]:
    r"""The Jacobian with $\exp(\xi + \delta) \approx \exp(\xi) \exp(J_r \delta)$: $J_r(\xi) = J_l(-\xi)$."""
    return left_jacobian(-_check(xi))


@jitted
def left_jacobian_inverse(xi: Float[Array, "6"]) -> Float[Array, "6 6"]:
    r"""Inverse of `left_jacobian`: the twist in the fixed frame to the rate of $\xi$."""
    xi = _check(xi)
    inv = so3.left_jacobian_inverse(xi[:3])
    return _block_lower(inv, -matmul(inv, matmul(_dual_part(xi), inv)))


@jitted
def right_jacobian_inverse(xi: Float[Array, "6"]) -> Float[Array, "6 6"]:
    r"""Inverse of `right_jacobian`: the twist in the moving frame to the rate of $\xi$."""
    return left_jacobian_inverse(-_check(xi))
