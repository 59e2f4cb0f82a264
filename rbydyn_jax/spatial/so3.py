r"""Rotations: the group SO(3), its exponential and logarithm, and their Jacobians.

A rotation vector $\phi = \theta\,a$ [rad] is the rotation by $\theta$ about the unit axis a. With the Stumpff
functions $c_k(\theta^2)$ of `safe`, everything here is a polynomial in $\hat\phi$, hence smooth at zero.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_rotation
from . import quaternions
from ._small import dot, jitted, outer
from .safe import stumpff


def _check(phi) -> Array:
    return check_array(phi, "phi", (3,), "a rotation vector")


def _polynomial(phi: Array, a: Array | float, b: Array | float, c: Array) -> Float[Array, "3 3"]:
    r"""$a I + b \hat\phi + c \hat\phi^2$, with $\hat\phi^2 = \phi\phi^T - \theta^2 I$."""
    return (a - c * dot(phi, phi)) * jnp.eye(3, dtype=phi.dtype) + b * hat(phi) + c * outer(phi, phi)


def _cotangent_term(x: Array) -> Array:
    r"""$(1 - \frac\theta2\cot\frac\theta2)/\theta^2$ of $x = \theta^2$, without a quotient that vanishes at 0."""
    return (stumpff(3, x) - 2.0 * stumpff(4, x)) / (2.0 * stumpff(2, x))


@jitted
def hat(v: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""The skew matrix of the cross product, $\hat v\,p = v \times p$.

    Example:
        >>> hat(jnp.array([1.0, 2.0, 3.0])).tolist()
        [[0.0, -3.0, 2.0], [3.0, 0.0, -1.0], [-2.0, 1.0, 0.0]]
    """
    x, y, z = check_array(v, "v", (3,))
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([o, -z, y]), jnp.stack([z, o, -x]), jnp.stack([-y, x, o])])


@jitted
def vee(m: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """The inverse of `hat`; of a general matrix it takes the skew part."""
    m = check_array(m, "m", (3, 3))
    return 0.5 * jnp.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])


@jitted
def exp(phi: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""Rotation matrix of a rotation vector, $I + c_1 \hat\phi + c_2 \hat\phi^2$ (Rodrigues).

    Args:
        phi: Rotation vector [rad], of any length.

    Returns:
        The rotation matrix.

    Raises:
        ShapeError: `phi` is not of shape (3,).

    Example:
        >>> exp(jnp.zeros(3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    phi = _check(phi)
    x = dot(phi, phi)
    return _polynomial(phi, 1.0, stumpff(1, x), stumpff(2, x))


@partial(jitted, R=check_rotation)
def log(R: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """Rotation vector of a rotation matrix, by way of the quaternion; see `quaternions.log`.

    Exact with its derivatives at the identity. At angle pi, where both signs are right, the first component
    that is not zero is positive; the logarithm is discontinuous there.

    Args:
        R: Rotation matrix.

    Returns:
        Rotation vector [rad], of length at most pi.

    Raises:
        ArgumentError: `R` is no rotation matrix, where its values are known.
        ShapeError: `R` is not of shape (3, 3).

    Example:
        >>> [round(float(x), 4) for x in log(jnp.diag(jnp.array([-1.0, 1.0, -1.0])))]
        [0.0, 3.1416, 0.0]
    """
    return quaternions.log(quaternions.from_matrix(R))


@jitted
def left_jacobian(phi: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""The Jacobian with $\exp(\phi + \delta) \approx \exp(J_l \delta) \exp(\phi)$: rates of $\phi$ to world rates.

    $J_l = I + c_2 \hat\phi + c_3 \hat\phi^2$.

    Example:
        >>> bool((left_jacobian(jnp.zeros(3)) == jnp.eye(3)).all())
        True
    """
    phi = _check(phi)
    x = dot(phi, phi)
    return _polynomial(phi, 1.0, stumpff(2, x), stumpff(3, x))


@jitted
def right_jacobian(phi: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""The Jacobian with $\exp(\phi + \delta) \approx \exp(\phi) \exp(J_r \delta)$: rates of $\phi$ to body rates.

    $J_r(\phi) = J_l(-\phi) = J_l(\phi)^T$.
    """
    return left_jacobian(_check(phi)).T


@jitted
def left_jacobian_inverse(phi: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""Inverse of `left_jacobian`: world angular velocity to the rate of the rotation vector.

    $I - \frac12\hat\phi + k \hat\phi^2$ with $k = (1 - \frac\theta2\cot\frac\theta2)/\theta^2$; singular at
    $\theta = 2\pi$.
    """
    phi = _check(phi)
    return _polynomial(phi, 1.0, -0.5, _cotangent_term(dot(phi, phi)))


@jitted
def right_jacobian_inverse(phi: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""Inverse of `right_jacobian`: body angular velocity to the rate of the rotation vector.

    Example:
        At zero the rate of the rotation vector is the angular velocity:

        >>> (right_jacobian_inverse(jnp.zeros(3)) @ jnp.array([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 3.0]
    """
    return left_jacobian_inverse(_check(phi)).T
