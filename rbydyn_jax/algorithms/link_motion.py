"""Velocities and accelerations of links, and rates of their Jacobians."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.configuration import qdot_from_v
from ..model.model import Model
from ..sweeps.plan import together
from .arguments import Frame, arguments
from .jacobians import jacobian


def _rate(f: Callable[[Array], Array], model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """(f(q), its derivative in time at velocity v)."""
    return jax.jvp(f, (q,), (qdot_from_v(model, q, v),))


@jit_public("link", "ref", "frame")
def jacobian_dot(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "6 nv"]:
    r"""Time derivative $\dot J$ of `jacobian` at velocity `v`, by forward differentiation.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where it is stated; see `jacobian`.

    Returns:
        Rows [wx, wy, wz, vx, vy, vz], a column for each velocity.

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: An argument has another shape.

    Example:
        >>> arm, q, v = robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), jnp.array([1.0, 0.0])
        >>> round(float(jacobian_dot(arm, q, v, "tool")[3, 0]), 6)  # towards the first joint
        -0.5
    """
    model, q, v = arguments(model, q=q, v=v)

    def rate(model: Model, q: Array, v: Array) -> Array:
        return _rate(lambda x: jacobian(model, x, link, ref=ref, frame=frame), model, q, v)[1]

    return together(rate)(model, q, v)


@jit_public("link", "ref", "frame")
def jacobian_dot_v(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "6"]:
    r"""The part $\dot J v$ of a link's acceleration that is there without joint accelerations.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where it is stated; see `jacobian`.

    Returns:
        [angular; linear] [rad/s^2, m/s^2].

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: An argument has another shape.

    Example:
        >>> arm, q, v = robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), jnp.array([2.0, 0.0])
        >>> [round(float(x), 6) for x in jacobian_dot_v(arm, q, v, "tool")[3:5]]
        [-2.0, -1.6]
    """
    model, q, v = arguments(model, q=q, v=v)

    def rate(model: Model, q: Array, v: Array) -> Array:
        return _rate(lambda x: jacobian(model, x, link, ref=ref, frame=frame) @ v, model, q, v)[1]

    return together(rate)(model, q, v)


@jit_public("link", "ref", "frame")
def link_velocity(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "6"]:
    r"""Twist $[\omega; v] = J v$ of a link [rad/s, m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where it is stated; see `jacobian`.

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: An argument has another shape.

    Example:
        >>> arm = robots.two_link_arm()
        >>> link_velocity(arm, jnp.zeros(2), jnp.array([1.0, 0.0]), "tool").tolist()  # along x, turning about z
        [0.0, 0.0, 1.0, 0.0, 0.9, 0.0]
    """
    model, q, v = arguments(model, q=q, v=v)

    def velocity(model: Model, q: Array, v: Array) -> Array:
        return jacobian(model, q, link, ref=ref, frame=frame) @ v

    return together(velocity)(model, q, v)


@jit_public("link", "ref", "frame")
def link_acceleration(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "6"]:
    r"""Time derivative of `link_velocity` in the same frame, $J a + \dot J v$ [rad/s^2, m/s^2].

    With ``"world_aligned"`` the linear part is the second derivative of the position of the link's origin (what
    Pinocchio calls the classical acceleration); with ``"local"`` and ``"world"`` the result is the *spatial*
    acceleration [Featherstone 2008, sec. 2.11]. With `ref` both are as seen from that link.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where it is stated; see `jacobian`.

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: An argument has another shape.

    Example:
        The centripetal acceleration of a tool:

        >>> arm, q, v = robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), jnp.array([2.0, 0.0])
        >>> [round(float(x), 6) for x in link_acceleration(arm, q, v, jnp.zeros(2), "tool")[3:5]]
        [-2.0, -1.6]
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)

    def acceleration(model: Model, q: Array, v: Array, a: Array) -> Array:
        J, Jdot = _rate(lambda x: jacobian(model, x, link, ref=ref, frame=frame), model, q, v)
        return J @ a + Jdot @ v

    return together(acceleration)(model, q, v, a)
