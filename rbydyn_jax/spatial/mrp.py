r"""Modified Rodrigues parameters $\sigma = \tan(\theta/4)\,a$: three numbers, singular only at a full turn.

$\sigma$ and its shadow $-\sigma/|\sigma|^2$ are the same rotation; the principal one has length at most 1. Switch
to it between integration steps, not inside a function that is differentiated.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_rotation
from . import quaternions, so3
from ._small import dot, jitted, matvec, outer


def _check(sigma) -> Array:
    return check_array(sigma, "sigma", (3,), "modified Rodrigues parameters")


@jitted
def to_quaternion(sigma: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Unit quaternion wxyz, $[1 - |\sigma|^2,\ 2\sigma]/(1 + |\sigma|^2)$."""
    sigma = _check(sigma)
    s2 = dot(sigma, sigma)
    return jnp.concatenate([(1.0 - s2)[None], 2.0 * sigma]) / (1.0 + s2)


@jitted
def from_quaternion(q: Float[Array, "4"]) -> Float[Array, "3"]:
    r"""Principal parameters of a quaternion wxyz of any length but zero, $\mathrm{vec}(q)/(|q| + w)$ with w >= 0.

    Example:
        Half a turn about x has the length tan(pi/4):

        >>> from_quaternion(jnp.array([0.0, 1.0, 0.0, 0.0])).tolist()
        [1.0, 0.0, 0.0]
    """
    q = quaternions.canonical(quaternions.normalize(q))
    return q[1:] / (1.0 + q[0])


@jitted
def to_matrix(sigma: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Rotation matrix of modified Rodrigues parameters."""
    return quaternions.to_matrix(to_quaternion(sigma))


@partial(jitted, R=check_rotation)
def from_matrix(R: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """Principal parameters of a rotation matrix."""
    return from_quaternion(quaternions.from_matrix(R))


@jitted
def principal(sigma: Float[Array, "3"]) -> Float[Array, "3"]:
    """The same rotation with length at most 1.

    Example:
        >>> float(principal(jnp.array([0.0, 2.0, 0.0]))[1])
        -0.5
    """
    sigma = _check(sigma)
    s2 = dot(sigma, sigma)
    beyond = s2 > 1.0
    return jnp.where(beyond, -sigma / jnp.where(beyond, s2, 1.0), sigma)


@jitted
def derivative(sigma: Float[Array, "3"], omega: Float[Array, "3"]) -> Float[Array, "3"]:
    r"""Rate for a body angular velocity, $\frac14[(1-|\sigma|^2) I + 2\hat\sigma + 2\sigma\sigma^T]\,\omega$.

    Example:
        >>> derivative(jnp.zeros(3), jnp.array([4.0, 0.0, 8.0])).tolist()
        [1.0, 0.0, 2.0]
    """
    return 0.25 * matvec(_rate_matrix(_check(sigma)), check_array(omega, "omega", (3,), "an angular velocity"))


@jitted
def angular_velocity(sigma: Float[Array, "3"], sigma_dot: Float[Array, "3"]) -> Float[Array, "3"]:
    """Angular velocity in body axes [rad/s] of a rate; the inverse of `derivative`."""
    sigma = _check(sigma)
    # The matrix of `derivative` is (1 + |sigma|^2) times a rotation.
    turned = matvec(_rate_matrix(sigma).T, check_array(sigma_dot, "sigma_dot", (3,)))
    return 4.0 / jnp.square(1.0 + dot(sigma, sigma)) * turned


def _rate_matrix(sigma: Array) -> Float[Array, "3 3"]:
    eye = jnp.eye(3, dtype=sigma.dtype)
    return (1.0 - dot(sigma, sigma)) * eye + 2.0 * so3.hat(sigma) + 2.0 * outer(sigma, sigma)
