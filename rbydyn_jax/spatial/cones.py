r"""Friction cones of a contact, linearized, and wrench cones of a rectangular one, in closed form.

All in the frame of the contact: its origin in the middle of the rectangle, z along the normal, up to the body that is
held. Cones are inner approximations: the pyramid of friction $|f_x|, |f_y| \le \mu f_z / \sqrt2$. Wrenches are [n; f],
of the ground on the body. A cone is given by its faces, $F w \le 0$, or by its rays, $w = S \lambda$, $\lambda \ge 0$.
"""

from __future__ import annotations

import math
from functools import partial
from typing import cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative
from ._small import jitted
from .so3 import hat

_SIGNS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])


def _pyramid(friction: Float[Array, ""] | float) -> Array:
    return check_array(friction, "friction", ()) / math.sqrt(2.0)


@partial(jitted, friction=check_not_negative)
def friction_cone_faces(friction: Float[Array, ""] | float) -> Float[Array, "4 3"]:
    r"""The matrix F of a friction pyramid, $F f \le 0$.

    Args:
        friction: Coefficient of friction.
    """
    mu = _pyramid(friction)
    sides = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    return jnp.concatenate([jnp.asarray(sides, mu.dtype), jnp.full((4, 1), -mu)], axis=1)


@partial(jitted, friction=check_not_negative)
def friction_cone_rays(friction: Float[Array, ""] | float) -> Float[Array, "3 4"]:
    r"""The edges of a friction pyramid, as columns of unit normal force.

    Args:
        friction: Coefficient of friction.
    """
    mu = _pyramid(friction)
    return jnp.concatenate([mu * jnp.asarray(_SIGNS.T, mu.dtype), jnp.ones((1, 4), mu.dtype)])


@partial(jitted, half_sizes=check_not_negative)
def rectangle(half_sizes: Float[Array, "2"]) -> Float[Array, "4 3"]:
    """The corners of a rectangle about the origin of the plane z = 0 [m].

    Args:
        half_sizes: Half of its length along x and of its width along y [m].
    """
    sizes = check_array(half_sizes, "half_sizes", (2,))
    corners = jnp.asarray(_SIGNS, sizes.dtype) * sizes[None]
    return jnp.concatenate([corners, jnp.zeros((4, 1), sizes.dtype)], axis=1)


@partial(jitted, half_sizes=check_not_negative, friction=check_not_negative)
def wrench_cone_faces(half_sizes: Float[Array, "2"], friction: Float[Array, ""] | float) -> Float[Array, "16 6"]:
    r"""The matrix F of a rectangular contact's wrench cone, $F [n; f] \le 0$ [Caron 2015, eq. 10 to 16].

    Four faces keep the force in the friction pyramid, four the centre of pressure in the rectangle, $|n_x| \le Y f_z$
    and $|n_y| \le X f_z$, and eight bound the yaw moment: $|n_z \mp \ldots| \le \mu (X + Y) f_z - \ldots$

    Args:
        half_sizes: X and Y, half of its length along x and of its width along y [m].
        friction: Coefficient of friction.
    """
    sizes, mu = check_array(half_sizes, "half_sizes", (2,)), _pyramid(friction)
    X, Y = sizes
    o = jnp.zeros_like(X * mu)
    one = o + 1.0
    rows = [[o, o, o, *face] for face in friction_cone_faces(friction)]
    rows += [[s * one, o, o, o, o, -Y + o] for s in (1.0, -1.0)] + [[o, s * one, o, o, o, -X + o] for s in (1.0, -1.0)]
    most = -mu * (X + Y)
    for turn in (1.0, -1.0):  # turn n_z + s (Y fx + turn mu nx) + t (X fy + turn mu ny) <= mu (X + Y) fz
        for s, t in _SIGNS.tolist():
            rows.append([s * turn * mu + o, t * turn * mu + o, turn * one, s * Y + o, t * X + o, most])
    return jnp.stack([jnp.stack(cast(list, row)) for row in rows])


@partial(jitted, half_sizes=check_not_negative, friction=check_not_negative)
def wrench_cone_rays(half_sizes: Float[Array, "2"], friction: Float[Array, ""] | float) -> Float[Array, "6 16"]:
    """The rays of a rectangular contact's wrench cone: the edges of the friction pyramid at each corner, as columns.

    Args:
        half_sizes: Half of its length along x and of its width along y [m].
        friction: Coefficient of friction.
    """
    forces = friction_cone_rays(friction)
    return jnp.concatenate(
        [jnp.concatenate([hat(corner) @ forces, forces]) for corner in rectangle(half_sizes)], axis=1
    )
