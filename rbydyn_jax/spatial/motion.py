r"""Spatial vectors: motions $[\omega;\ v]$ and forces $[n;\ f]$, angular part first.

The linear part of a motion is the velocity of the body's point that is at the frame's origin now; the angular
part of a force is its moment about that origin. $T_{AB}$ takes B's coordinates to A's; motions by
$\mathrm{Ad}(T)$, forces by $\mathrm{Ad}(T)^{-T}$, so that their product, the power, is the same in every frame.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array
from . import so3
from ._small import cross, jitted, matmul, matvec


def _motion(v, name: str = "v") -> tuple[Array, Array]:
    v = check_array(v, name, (6,), "a motion [omega; v]")
    return v[:3], v[3:]


def _force(f) -> tuple[Array, Array]:
    f = check_array(f, "f", (6,), "a force [n; f]")
    return f[:3], f[3:]


@jitted
def Ad(T: Float[Array, "4 4"]) -> Float[Array, "6 6"]:
    r"""Adjoint of a transform, $\begin{bmatrix} R & 0 \\ \hat p R & R \end{bmatrix}$: B's twists to A's.

    Example:
        >>> bool((Ad(jnp.eye(4)) == jnp.eye(6)).all())
        True
    """
    T = check_array(T, "T", (4, 4), "a transform")
    R = T[:3, :3]
    top = jnp.concatenate([R, jnp.zeros_like(R)], axis=1)
    return jnp.concatenate([top, jnp.concatenate([matmul(so3.hat(T[:3, 3]), R), R], axis=1)])


@jitted
def ad(v: Float[Array, "6"]) -> Float[Array, "6 6"]:
    r"""Adjoint of a motion, $\begin{bmatrix} \hat\omega & 0 \\ \hat v & \hat\omega \end{bmatrix}$.

    As a matrix, `cross_motion(v, m)` is `ad(v) @ m` and `cross_force(v, f)` is `-ad(v).T @ f`.
    """
    angular, linear = _motion(v)
    w = so3.hat(angular)
    top = jnp.concatenate([w, jnp.zeros_like(w)], axis=1)
    return jnp.concatenate([top, jnp.concatenate([so3.hat(linear), w], axis=1)])


@jitted
def cross_motion(v: Float[Array, "6"], m: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""Rate of a motion m that is carried along with v, $v \times m$ (`crm` of Featherstone).

    Example:
        >>> cross_motion(jnp.array([0.0, 0, 1, 0, 0, 0]), jnp.array([1.0, 0, 0, 0, 0, 0])).tolist()
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    (w, u), (mw, mu) = _motion(v), _motion(m, "m")
    return jnp.concatenate([cross(w, mw), cross(w, mu) + cross(u, mw)])


@jitted
def cross_force(v: Float[Array, "6"], f: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""Rate of a force or momentum f that is carried along with v, $v \times^* f$ (`crf` of Featherstone)."""
    (w, u), (n, g) = _motion(v), _force(f)
    return jnp.concatenate([cross(w, n) + cross(u, g), cross(w, g)])


@jitted
def transform_motion(T: Float[Array, "4 4"], v: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""A motion in B's coordinates, given in A's: $\omega' = R\omega$, $v' = Rv + p \times \omega'$.

    Args:
        T: Transform T_AB.
        v: Twist or spatial acceleration in B, [omega; v] [rad/s, m/s].

    Returns:
        The same motion in A.
    """
    T = check_array(T, "T", (4, 4), "a transform")
    angular, linear = _motion(v)
    w = matvec(T[:3, :3], angular)
    return jnp.concatenate([w, matvec(T[:3, :3], linear) + cross(T[:3, 3], w)])


@jitted
def transform_force(T: Float[Array, "4 4"], f: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""A force in B's coordinates, given in A's: $f' = Rf$, $n' = Rn + p \times f'$.

    Args:
        T: Transform T_AB.
        f: Wrench or momentum in B, [n; f] [N m, N].

    Returns:
        The same force in A.

    Example:
        A force of 2 N along z that acts 1 m along x has a moment of -2 N m about y:

        >>> T = jnp.eye(4).at[0, 3].set(1.0)
        >>> transform_force(T, jnp.array([0.0, 0, 0, 0, 0, 2])).tolist()
        [0.0, -2.0, 0.0, 0.0, 0.0, 2.0]
    """
    T = check_array(T, "T", (4, 4), "a transform")
    moment, force = _force(f)
    g = matvec(T[:3, :3], force)
    return jnp.concatenate([matvec(T[:3, :3], moment) + cross(T[:3, 3], g), g])


@jitted
def point_velocity(v: Float[Array, "6"], p: Float[Array, "3"]) -> Float[Array, "3"]:
    r"""Velocity of the body's point at p, $v + \omega \times p$ [m/s]."""
    angular, linear = _motion(v)
    return linear + cross(angular, check_array(p, "p", (3,)))


@jitted
def point_acceleration(v: Float[Array, "6"], a: Float[Array, "6"], p: Float[Array, "3"]) -> Float[Array, "3"]:
    r"""Classical acceleration of the body's point at p, $a + \dot\omega \times p + \omega \times v_p$ [m/s^2].

    Args:
        v: Twist [rad/s, m/s].
        a: Spatial acceleration, the derivative of the twist's coordinates [rad/s^2, m/s^2].
        p: The point, in the same frame [m].
    """
    return point_velocity(a, p) + cross(_motion(v)[0], point_velocity(v, p))


@jitted
def classical_acceleration(v: Float[Array, "6"], a: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""Spatial to classical acceleration: the linear part becomes that of a material point, $a + \omega \times v$.

    Example:
        A point that circles at 1 m with 2 rad/s accelerates by 4 m/s^2 to the centre; its spatial acceleration is 0:

        >>> classical_acceleration(jnp.array([0.0, 0, 2, 0, 2, 0]), jnp.zeros(6)).tolist()
        [0.0, 0.0, 0.0, -4.0, 0.0, 0.0]
    """
    (w, u), (dw, du) = _motion(v), _motion(a, "a")
    return jnp.concatenate([dw, du + cross(w, u)])


@jitted
def spatial_acceleration(v: Float[Array, "6"], a: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""Classical to spatial acceleration, $a - \omega \times v$; the inverse of `classical_acceleration`."""
    (w, u), (dw, du) = _motion(v), _motion(a, "a")
    return jnp.concatenate([dw, du - cross(w, u)])
