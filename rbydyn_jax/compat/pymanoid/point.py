"""Points that move, and points with a mass."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._check import check_array
from ...spatial.transformations import integrate_constant_jerk


class Point(eqx.Module):
    """A point with its velocity and acceleration, in world axes.

    Args:
        pos: Position [m].
        vel: Velocity [m/s]; default is zero.
        accel: Acceleration [m/s^2]; default is zero.
    """

    pos: Float[Array, "3"]
    vel: Float[Array, "3"]
    accel: Float[Array, "3"]

    def __init__(
        self, pos: Float[Array, "3"], vel: Float[Array, "3"] | None = None, accel: Float[Array, "3"] | None = None
    ) -> None:
        self.pos = check_array(pos, "pos", (3,))
        zero = jnp.zeros_like(self.pos)
        self.vel = zero if vel is None else check_array(vel, "vel", (3,))
        self.accel = zero if accel is None else check_array(accel, "accel", (3,))

    def integrate_constant_accel(self, pdd: Float[Array, "3"], dt: Float[Array, ""] | float) -> Point:
        r"""The point after dt under a constant acceleration, $p + (v + \ddot p\,dt/2)\,dt$, exactly.

        Args:
            pdd: Acceleration [m/s^2].
            dt: Duration [s].
        """
        pdd, dt = check_array(pdd, "pdd", (3,)), check_array(dt, "dt", ())
        return Point(self.pos + (self.vel + pdd * (0.5 * dt)) * dt, self.vel + pdd * dt, pdd)

    def integrate_constant_jerk(self, pddd: Float[Array, "3"], dt: Float[Array, ""] | float) -> Point:
        """The point after dt under a constant jerk, exactly.

        Args:
            pddd: Jerk [m/s^3].
            dt: Duration [s].

        Example:
            >>> from rbydyn_jax.compat.pymanoid import Point
            >>> Point(jnp.zeros(3)).integrate_constant_jerk(jnp.array([6.0, 0.0, 0.0]), 1.0).pos.tolist()
            [1.0, 0.0, 0.0]
        """
        return Point(*integrate_constant_jerk(self.pos, self.vel, self.accel, pddd, dt))


class PointMass(eqx.Module):
    """A point with a mass.

    Args:
        pos: Position [m].
        mass: Mass [kg].
        vel: Velocity [m/s]; default is zero.
    """

    pos: Float[Array, "3"]
    mass: Float[Array, ""]
    vel: Float[Array, "3"]

    def __init__(
        self, pos: Float[Array, "3"], mass: Float[Array, ""] | float, vel: Float[Array, "3"] | None = None
    ) -> None:
        self.pos, self.mass = check_array(pos, "pos", (3,)), check_array(mass, "mass", ())
        self.vel = jnp.zeros_like(self.pos) if vel is None else check_array(vel, "vel", (3,))

    @property
    def momentum(self) -> Float[Array, "3"]:
        """Linear momentum [kg m/s]."""
        return self.mass * self.vel
