"""What the ground has to bear: gravito-inertial wrench, net contact wrench and zero-tilting-moment point."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._check import check_array, known
from .._errors import ArgumentError
from .._jit import jit_public
from .._result import Result
from ..model.model import Model
from .arguments import arguments
from .centroidal import fixed_mass_and_moment, total_mass
from .inertial_wrench import inertial_wrench


@jit_public()
def gravito_inertial_wrench(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    point: Float[Array, "3"],
) -> Float[Array, "6"]:
    r"""Wrench of weight and inertia of all links about a point, [n; f] in world axes [N m, N].

    $f = \sum_i m_i (g - \ddot c_i)$ and $n = \sum_i (c_i - P) \times m_i (g - \ddot c_i) - \dot l_i$ with $l_i$ the
    angular momentum of link i about its centre of mass [Caron 2017]; O(n).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        point: The point P in world coordinates [m].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        At rest it is the weight:

        >>> bob, rest = robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1)
        >>> gravito_inertial_wrench(bob, rest, rest, rest, jnp.zeros(3))[3:].tolist()
        [0.0, 0.0, -19.62]
    """
    model, q, v, a, point = arguments(model, q=q, v=v, a=a, point=point)
    taken = inertial_wrench(model, q, v, a)
    mass, moment = fixed_mass_and_moment(model)
    force = mass * model.gravity - taken[3:]
    about_origin = jnp.cross(moment, model.gravity) - taken[:3]
    return jnp.concatenate([about_origin - jnp.cross(point, force), force])


@jit_public()
def net_contact_wrench(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    point: Float[Array, "3"],
) -> Float[Array, "6"]:
    """Wrench about a point that all contacts together exert on the robot, [n; f] in world axes [N m, N].

    By Newton and Euler the opposite of `gravito_inertial_wrench`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        point: The point in world coordinates [m].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        The ground carries the weight of a robot at rest:

        >>> rest = jnp.zeros(1)
        >>> round(float(net_contact_wrench(robots.pendulum(mass=2.0), rest, rest, rest, jnp.zeros(3))[5]), 6)
        19.62
    """
    return -gravito_inertial_wrench(model, q, v, a, point)


class Zmp(Result):
    """A zero-tilting-moment point.

    Attributes:
        point: The point in world coordinates [m]; the origin of the plane where there is none.
        valid: Whether there is one: the wrench presses against the plane or pulls at it.
    """

    point: Float[Array, "3"]
    valid: Bool[Array, ""]


def _check_normal(x: Any, name: str) -> None:
    numbers = known(x)
    if numbers is not None and numbers.shape == (3,) and not numbers.any():
        raise ArgumentError(f"{name} must have a length, got {numbers.tolist()}")


@jit_public(normal=_check_normal)
def zmp(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    origin: Float[Array, "3"] | tuple[float, float, float] = (0.0, 0.0, 0.0),
    normal: Float[Array, "3"] | tuple[float, float, float] = (0.0, 0.0, 1.0),
) -> Zmp:
    r"""The point of a plane about which the gravito-inertial wrench has a moment along the normal only.

    $Z = O + \frac{n \times n_O}{n \cdot f}$ with the wrench $[n_O; f]$ about the origin O of the plane
    [Sardain and Bessonnet 2004].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        origin: A point of the plane in world coordinates [m].
        normal: Normal of the plane in world axes, of any length but zero.

    Returns:
        The point, and whether there is one: there is none if the force lies in the plane, as in free fall.

    Raises:
        ArgumentError: `normal` is zero.
        DtypeError: An argument holds no floats.
        ShapeError: An argument has another shape.

    Example:
        At rest it is what lies below the centre of mass:

        >>> bob, rest = robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1)
        >>> bool(jnp.allclose(zmp(bob, rest, rest, rest).point[:2], center_of_mass(bob, rest)[:2]))
        True
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    base, n = (_triple(x, name, q) for x, name in ((origin, "origin"), (normal, "normal")))
    wrench = gravito_inertial_wrench(model, q, v, a, base)
    moment, force = wrench[:3], wrench[3:]
    press, scale = jnp.sum(n * force), jnp.sum(jnp.abs(n)) * total_mass(model) * jnp.sum(jnp.abs(model.gravity))
    least = 16.0 * jnp.finfo(q.dtype).eps * jnp.maximum(scale, jnp.sum(jnp.abs(force)))
    parallel = jnp.abs(press) <= least  # NaN is not, and the point is NaN
    offset = jnp.cross(n, moment) / jnp.where(parallel, 1.0, press)
    return Zmp(jnp.where(parallel, base, base + offset), jnp.abs(press) > least)


def _triple(x: Array | tuple[Any, ...], name: str, like: Array) -> Float[Array, "3"]:
    array = jnp.stack([jnp.asarray(e, like.dtype) for e in x]) if isinstance(x, tuple) and x else x
    return check_array(array, name, (3,)).astype(like.dtype)
