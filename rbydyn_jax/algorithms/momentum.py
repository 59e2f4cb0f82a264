"""Momentum about the centre of mass and about any point of the world, with derivatives."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..spatial import so3
from .arguments import arguments
from .centroidal import center_of_mass, momentum_matrix, total_mass
from .inertial_wrench import inertial_wrench, spatial_momentum
from .momentum_hessian import momentum_hessian
from .rnea import weightless


def _about(point: Array, matrix: Float[Array, "6 nv"]) -> Float[Array, "6 nv"]:
    """A momentum matrix about the world origin, moved to a point: l - p x (linear momentum)."""
    return jnp.concatenate([matrix[:3] - so3.hat(point) @ matrix[3:], matrix[3:]])


def _about_center(model: Model, q: Array, wrench: Float[Array, "6"]) -> Float[Array, "6"]:
    """A wrench or momentum about the world origin, moved to the centre of mass."""
    return jnp.concatenate([wrench[:3] - jnp.cross(center_of_mass(model, q), wrench[3:]), wrench[3:]])


@jit_public()
def centroidal_momentum_matrix(model: Model, q: Float[Array, "nq"]) -> Float[Array, "6 nv"]:
    r"""The matrix $A_G(q)$ that gives the momentum $[l_G; p] = A_G v$ about the centre of mass, in world axes.

    `momentum_matrix` moved to the centre of mass G, $l_G = l_O - c \times p$; O(n) [Orin 2013].

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        Rows [angular momentum (3); linear momentum (3)].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> A = centroidal_momentum_matrix(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))
        >>> float(A[3, 0])  # -m l
        -1.0
    """
    model, q = arguments(model, q=q)
    return _about(center_of_mass(model, q), momentum_matrix(model, q))


@jit_public()
def centroidal_momentum(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "6"]:
    """Momentum [angular; linear] about the centre of mass, in world axes [kg m^2/s, kg m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A point mass of 2 kg on a 0.5 m pendulum has only linear momentum, m l w:

        >>> h = centroidal_momentum(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1), jnp.array([3.0]))
        >>> [round(float(jnp.linalg.norm(x)), 6) for x in (h[:3], h[3:])]
        [0.0, 3.0]
    """
    model, q, v = arguments(model, q=q, v=v)
    return _about_center(model, q, spatial_momentum(model, q, v))


@jit_public()
def centroidal_momentum_rate(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> Float[Array, "6"]:
    r"""Time derivative $A_G a + \dot A_G v$ of `centroidal_momentum` [N m, N]; gravity has no part in it.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> arm, v = robots.pendulum(mass=2.0, length=0.5), jnp.array([2.0])
        >>> round(float(centroidal_momentum_rate(arm, jnp.zeros(1), v, jnp.zeros(1))[5]), 6)  # m l v^2
        4.0
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    return _about_center(model, q, inertial_wrench(weightless(model), q, v, a))


@jit_public()
def centroidal_momentum_hessian(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv 6 nv"]:
    r"""Derivative of `centroidal_momentum_matrix`, $H_{i,:,j} = \partial A_{:,j} / \partial q_i$ along direction $i$.

    The rate of momentum is $A_G a + v^T H v$. A joint carries the momenta of those beyond it along as one, and changes
    the composite inertia of those before it; O(n^2).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> H = centroidal_momentum_hessian(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))
        >>> float(H[0, 5, 0])  # m l
        1.0
    """
    model, q = arguments(model, q=q)
    return momentum_hessian(model, q, center_of_mass(model, q), total_mass(model))


@jit_public()
def angular_momentum_jacobian(model: Model, q: Float[Array, "nq"], point: Float[Array, "3"]) -> Float[Array, "3 nv"]:
    r"""The matrix of the angular momentum about a point, $l_P = \sum_i (c_i - P) \times m_i v_i + I_i \omega_i = J v$.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        point: The point P in world coordinates [m], which does not move.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> A = angular_momentum_jacobian(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1), jnp.zeros(3))
        >>> float(A[1, 0])  # m l^2
        0.5
    """
    model, q, point = arguments(model, q=q, point=point)
    return _about(point, momentum_matrix(model, q))[:3]


@jit_public()
def angular_momentum(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], point: Float[Array, "3"]
) -> Float[Array, "3"]:
    """Angular momentum of the moving bodies about a point, in world axes [kg m^2/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        point: The point in world coordinates [m], which does not move.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A point mass of 2 kg on a 0.5 m pendulum that swings at 3 rad/s has m l^2 w about its pivot:

        >>> bob = robots.pendulum(mass=2.0, length=0.5)
        >>> l = angular_momentum(bob, jnp.zeros(1), jnp.array([3.0]), jnp.zeros(3))
        >>> float(jnp.linalg.norm(l))
        1.5
    """
    model, q, v, point = arguments(model, q=q, v=v, point=point)
    momentum = spatial_momentum(model, q, v)
    return momentum[:3] - jnp.cross(point, momentum[3:])


@jit_public()
def angular_momentum_hessian(model: Model, q: Float[Array, "nq"], point: Float[Array, "3"]) -> Float[Array, "nv 3 nv"]:
    r"""Derivative of `angular_momentum_jacobian`, $H_{i,:,j} = \partial J_{:,j} / \partial q_i$ along direction $i$.

    The rate of angular momentum is $J a + v^T H v$; O(n^2), as `centroidal_momentum_hessian`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        point: The point in world coordinates [m], which does not move.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        About its pivot that of a pendulum does not depend on the angle:

        >>> H = angular_momentum_hessian(robots.pendulum(), jnp.zeros(1), jnp.zeros(3))
        >>> H.shape, bool((H == 0.0).all())
        ((1, 3, 1), True)
    """
    model, q, point = arguments(model, q=q, point=point)
    return momentum_hessian(model, q, point)[:, :3]
