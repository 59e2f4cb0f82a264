"""Points that move, and points with a mass."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...spatial.transformations import integrate_constant_jerk
from .._numbers import finite_floats, lengths
from .body import Body


class Point(Body):
    """A point with its velocity and acceleration, in world axes, which integration changes in place.

    Args:
        pos: Position [m].
        vel: Velocity [m/s]; default is zero.
        accel: Acceleration [m/s^2]; default is zero.

    Raises:
        ArgumentError: A number is not finite.
    """

    def __init__(self, pos: Any, vel: Any = None, accel: Any = None) -> None:
        super().__init__(pos)
        self._pd = jnp.zeros(3) if vel is None else finite_floats(vel, "vel", (3,))
        self._pdd = jnp.zeros(3) if accel is None else finite_floats(accel, "accel", (3,))

    def set_vel(self, pd: Any) -> None:
        """Sets the velocity [m/s]."""
        self._pd = finite_floats(pd, "pd", (3,))

    def set_accel(self, pdd: Any) -> None:
        """Sets the acceleration [m/s^2]."""
        self._pdd = finite_floats(pdd, "pdd", (3,))

    @property
    def pd(self) -> Float[Array, "3"]:
        """Velocity [m/s]."""
        return self._pd

    @property
    def pdd(self) -> Float[Array, "3"]:
        """Acceleration [m/s^2]."""
        return self._pdd

    @property
    def xd(self) -> Float[Array, ""]:
        """Velocity along x [m/s]."""
        return self._pd[0]

    @property
    def yd(self) -> Float[Array, ""]:
        """Velocity along y [m/s]."""
        return self._pd[1]

    @property
    def zd(self) -> Float[Array, ""]:
        """Velocity along z [m/s]."""
        return self._pd[2]

    @property
    def xdd(self) -> Float[Array, ""]:
        """Acceleration along x [m/s^2]."""
        return self._pdd[0]

    @property
    def ydd(self) -> Float[Array, ""]:
        """Acceleration along y [m/s^2]."""
        return self._pdd[1]

    @property
    def zdd(self) -> Float[Array, ""]:
        """Acceleration along z [m/s^2]."""
        return self._pdd[2]

    def integrate_constant_accel(self, pdd: Any, dt: Any) -> None:
        r"""Moves the point under a constant acceleration, to $p + (v + \ddot p\,dt/2)\,dt$, exactly.

        Args:
            pdd: Acceleration [m/s^2].
            dt: Duration [s].

        Raises:
            ArgumentError: A number is not finite; the point stays as it is.
        """
        pdd = finite_floats(pdd, "pdd", (3,))
        self._integrate(pdd, jnp.zeros_like(pdd), dt)

    def integrate_constant_jerk(self, pddd: Any, dt: Any) -> None:
        """Moves the point under a constant jerk, exactly.

        Args:
            pddd: Jerk [m/s^3].
            dt: Duration [s].

        Raises:
            ArgumentError: A number is not finite; the point stays as it is.

        Example:
            >>> from rbydyn_jax.compat.pymanoid import Point
            >>> point = Point([0, 0, 0])
            >>> point.integrate_constant_jerk([6, 0, 0], 1.0)
            >>> point.p.tolist()
            [1.0, 0.0, 0.0]
        """
        self._integrate(self.pdd, finite_floats(pddd, "pddd", (3,)), dt)

    def _integrate(self, pdd: Array, pddd: Array, dt: Any) -> None:
        pos, pd, pdd = integrate_constant_jerk(self.p, self.pd, pdd, pddd, finite_floats(dt, "dt", ()))
        self.set_pos(pos)
        self.set_vel(pd)
        self.set_accel(pdd)


class PointMass(Point):
    """A point with a mass.

    Args:
        pos: Position [m].
        mass: Mass [kg].
        vel: Velocity [m/s]; default is zero.

    Raises:
        ArgumentError: The mass is negative, or a number is not finite.
    """

    def __init__(self, pos: Any, mass: Any, vel: Any = None) -> None:
        super().__init__(pos, vel)
        self.mass = lengths(mass, "mass")

    @property
    def momentum(self) -> Float[Array, "3"]:
        """Linear momentum [kg m/s]."""
        return self.mass * self.pd
