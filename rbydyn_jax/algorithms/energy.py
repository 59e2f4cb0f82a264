"""Kinetic and potential energy, and the forces that take energy out: damping and friction."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_positive
from .._jit import jit_public
from ..model.model import Model
from .arguments import arguments
from .first_moment import first_moment
from .rnea import newton_euler, weightless


@jit_public()
def kinetic_energy(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, ""]:
    r"""Kinetic energy $\frac12 v^T M(q)\, v$ [J], that of the rotors (`model.armature`) included.

    The torques that would accelerate a weightless robot by v, times v: O(n), with the derivatives of `rnea`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> float(kinetic_energy(arm, jnp.zeros(1), jnp.array([2.0])))  # m l^2 v^2 / 2
        1.0
    """
    model, q, v = arguments(model, q=q, v=v)
    return 0.5 * v @ newton_euler(weightless(model), q, None, v, None)


@jit_public()
def potential_energy(model: Model, q: Float[Array, "nq"]) -> Float[Array, ""]:
    r"""Potential energy $-\sum_i m_i\, g \cdot c_i$ of the moving bodies in the field of gravity [J], zero at the
    origin.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> round(float(potential_energy(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))), 6)  # -m g l
        -9.81
    """
    model, q = arguments(model, q=q)
    return -jnp.sum(first_moment(model, q) * model.gravity)


def damping_forces(model: Model, v: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Forces of viscous friction on the joints, -d v [N m, N]: add them to tau in `aba`.

    Args:
        model: The robot.
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: `v` is not of shape `(model.nv,)`.

    Example:
        >>> float(damping_forces(with_damping(robots.pendulum(), 0.5), jnp.array([2.0]))[0])
        -1.0
    """
    model, v = arguments(model, v=v)
    return -model.damping * v


def friction_forces(model: Model, v: Float[Array, "nv"], *, width: float | None = None) -> Float[Array, "nv"]:
    """Forces of Coulomb friction on the joints [N m, N]: add them to tau in `aba`.

    Args:
        model: The robot.
        v: Velocity [rad/s, m/s].
        width: None for -f sign(v), whose derivative is zero everywhere; a velocity > 0 [rad/s, m/s] for the smooth
            -f tanh(v / width).

    Raises:
        ArgumentError: `width` is not positive.
        ShapeError: `v` is not of shape `(model.nv,)`.

    Example:
        >>> float(friction_forces(with_friction(robots.pendulum(), 0.25), jnp.array([2.0]))[0])
        -0.25
    """
    model, v = arguments(model, v=v)
    if width is not None:
        check_positive(width, "width")
    return -model.friction * sign_of_motion(v, width)


def sign_of_motion(v: Float[Array, "nv"], width: Float[Array, ""] | float | None) -> Float[Array, "nv"]:
    """sign(v), or tanh(v / width): the direction of Coulomb friction."""
    return jnp.sign(v) if width is None else jnp.tanh(v / check_array(width, "width", ()).astype(v.dtype))
