r"""Rigid-body inertia as ten parameters about the origin of a frame, in its axes.

$[m,\ h_x, h_y, h_z,\ I_{xx}, I_{xy}, I_{yy}, I_{xz}, I_{yz}, I_{zz}]$ with the first moment $h = m c$ [kg m] and the
rotational inertia about the *origin* [kg m^2] (the order of pinocchio). In these parameters the inertia of bodies
that are fixed together is the sum of theirs, and all dynamics is linear.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._check import check_array
from . import so3
from ._small import cross, dot, jitted, matmul, matvec, outer
from .safe import safe_divide


def _check(parameters) -> Array:
    return check_array(parameters, "parameters", (10,), "[m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz]")


def _pack(mass: Array, moment: Array, inertia: Array) -> Float[Array, "10"]:
    m = inertia
    six = jnp.stack([m[0, 0], m[0, 1], m[1, 1], m[0, 2], m[1, 2], m[2, 2]])
    return jnp.concatenate([mass[None], moment, six])


def _unpack(parameters: Array) -> tuple[Array, Array, Array]:
    mass, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    inertia = jnp.stack([jnp.stack([xx, xy, xz]), jnp.stack([xy, yy, yz]), jnp.stack([xz, yz, zz])])
    return mass, jnp.stack([hx, hy, hz]), inertia


def _shift(mass: Array, r: Array) -> Float[Array, "3 3"]:
    r"""Rotational inertia of a point mass at r about the origin, $m(|r|^2 I - r r^T)$."""
    return mass * (dot(r, r) * jnp.eye(3, dtype=r.dtype) - outer(r, r))


@jitted
def from_mass_com(
    mass: Float[Array, ""] | float, com: Float[Array, "3"], inertia: Float[Array, "3 3"]
) -> Float[Array, "10"]:
    r"""The ten parameters of a body from its mass, centre of mass and inertia about the centre of mass.

    Args:
        mass: Mass [kg].
        com: Centre of mass in the frame [m].
        inertia: Rotational inertia about the centre of mass, in the axes of the frame [kg m^2].

    Returns:
        The parameters about the origin of the frame.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A point mass of 2 kg at 0.5 m along x:

        >>> from_mass_com(2.0, jnp.array([0.5, 0.0, 0.0]), jnp.zeros((3, 3))).tolist()
        [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5]
    """
    com, inertia = check_array(com, "com", (3,)), check_array(inertia, "inertia", (3, 3))
    mass = check_array(mass, "mass", ()).astype(com.dtype)
    return _pack(mass, mass * com, inertia + _shift(mass, com))


@jitted
def to_mass_com(parameters: Float[Array, "10"]) -> tuple[Float[Array, ""], Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass [kg], centre of mass [m] and rotational inertia about it [kg m^2]; the inverse of `from_mass_com`.

    A body without mass has its centre of mass at the origin.
    """
    mass, h, inertia = _unpack(_check(parameters))
    com = safe_divide(h, mass)
    return mass, com, inertia - _shift(mass, com)


@jitted
def to_matrix(parameters: Float[Array, "10"]) -> Float[Array, "6 6"]:
    r"""Spatial inertia $\begin{bmatrix} J & \hat h \\ \hat h^T & m I \end{bmatrix}$, angular first: twist to momentum.

    Example:
        >>> to_matrix(jnp.arange(1.0, 11.0))[3].tolist()
        [0.0, 4.0, -3.0, 1.0, 0.0, 0.0]
    """
    mass, h, inertia = _unpack(_check(parameters))
    skew = so3.hat(h)
    top = jnp.concatenate([inertia, skew], axis=1)
    return jnp.concatenate([top, jnp.concatenate([skew.T, mass * jnp.eye(3, dtype=h.dtype)], axis=1)])


@jitted
def from_matrix(matrix: Float[Array, "6 6"]) -> Float[Array, "10"]:
    """The ten parameters of a spatial inertia matrix; the inverse of `to_matrix`."""
    matrix = check_array(matrix, "matrix", (6, 6), "a spatial inertia")
    return _pack(matrix[3, 3], so3.vee(matrix[:3, 3:]), matrix[:3, :3])


@jitted
def transform(T: Float[Array, "4 4"], parameters: Float[Array, "10"]) -> Float[Array, "10"]:
    r"""The inertia of one body in another frame, $\mathrm{Ad}^{-T} I\, \mathrm{Ad}^{-1}$ without 6x6 products.

    Args:
        T: Transform T_AB.
        parameters: Inertia about the origin of B, in B's axes.

    Returns:
        The inertia about the origin of A, in A's axes.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        Two equal masses, 1 m to either side of the origin, are fixed together by adding them up:

        >>> point = from_mass_com(1.0, jnp.zeros(3), jnp.zeros((3, 3)))
        >>> left, right = jnp.eye(4).at[0, 3].set(-1.0), jnp.eye(4).at[0, 3].set(1.0)
        >>> (transform(left, point) + transform(right, point)).tolist()
        [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0]
    """
    T = check_array(T, "T", (4, 4), "a transform")
    mass, h, inertia = _unpack(_check(parameters))
    R, p = T[:3, :3], T[:3, 3]
    h = matvec(R, h)
    cross_term = outer(h, p) + outer(p, h)
    both = 2.0 * dot(h, p) * jnp.eye(3, dtype=h.dtype) - cross_term
    return _pack(mass, h + mass * p, matmul(R, matmul(inertia, R.T)) + both + _shift(mass, p))


@jitted
def momentum(parameters: Float[Array, "10"], v: Float[Array, "6"]) -> Float[Array, "6"]:
    r"""Spatial momentum $[J\omega + h \times v;\ m v - h \times \omega]$ of a body with the twist v [N m s, N s]."""
    mass, h, inertia = _unpack(_check(parameters))
    v = check_array(v, "v", (6,), "a motion [omega; v]")
    return jnp.concatenate([matvec(inertia, v[:3]) + cross(h, v[3:]), mass * v[3:] - cross(h, v[:3])])


@jitted
def to_pseudo_inertia(parameters: Float[Array, "10"]) -> Float[Array, "4 4"]:
    r"""Second moments of the mass, $\begin{bmatrix} \frac12\mathrm{tr}(J) I - J & h \\ h^T & m \end{bmatrix}$.

    A distribution of mass with these parameters exists exactly if this matrix is positive semidefinite
    [Wensing, Kim & Slotine 2018].
    """
    mass, h, inertia = _unpack(_check(parameters))
    second = 0.5 * jnp.trace(inertia) * jnp.eye(3, dtype=h.dtype) - inertia
    top = jnp.concatenate([second, h[:, None]], axis=1)
    return jnp.concatenate([top, jnp.concatenate([h, mass[None]])[None, :]])


@jitted
def from_pseudo_inertia(matrix: Float[Array, "4 4"]) -> Float[Array, "10"]:
    """The ten parameters of a matrix of second moments; the inverse of `to_pseudo_inertia`."""
    matrix = check_array(matrix, "matrix", (4, 4), "a pseudo-inertia")
    second = matrix[:3, :3]
    inertia = jnp.trace(second) * jnp.eye(3, dtype=matrix.dtype) - second
    return _pack(matrix[3, 3], matrix[:3, 3], inertia)


@jitted
def is_consistent(parameters: Float[Array, "10"], tolerance: float | None = None) -> Bool[Array, ""]:
    """Whether some distribution of mass has these parameters: mass >= 0 and the triangle inequalities.

    Args:
        parameters: The ten parameters.
        tolerance: How negative the smallest eigenvalue of the pseudo-inertia may be, in units of the mass and of the
            second moment about the origin; by default 64 times the rounding unit.

    Returns:
        True for a body that can exist, which includes rods, plates, points and nothing at all.

    Example:
        >>> bool(is_consistent(jnp.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 3])))  # Izz > Ixx + Iyy
        False
    """
    P = to_pseudo_inertia(parameters)
    limit = 64.0 * jnp.finfo(P.dtype).eps if tolerance is None else check_array(tolerance, "tolerance", ())
    # Scaled, so that the verdict depends neither on the unit of mass nor on that of length.
    extent = jnp.trace(P[:3, :3])
    size = jnp.abs(jnp.stack([extent, extent, extent, P[3, 3]]))
    scale = 1.0 / jnp.sqrt(jnp.where(size == 0, 1.0, size))
    return jnp.linalg.eigvalsh(P * outer(scale, scale))[0] >= -limit


@jitted
def to_log_cholesky(parameters: Float[Array, "10"]) -> Float[Array, "10"]:
    r"""Log-Cholesky parameters of a body: a smooth chart of exactly the consistent inertias.

    The pseudo-inertia is $P = U U^T$ with $U = e^\alpha \begin{bmatrix} e^{d_1} & s_{12} & s_{13} & t_1 \\
    & e^{d_2} & s_{23} & t_2 \\ & & e^{d_3} & t_3 \\ & & & 1 \end{bmatrix}$ [Rucker & Wensing 2022].

    Args:
        parameters: The ten parameters of a body with mass and extent in every direction.

    Returns:
        $[\alpha, d_1, d_2, d_3, s_{12}, s_{23}, s_{13}, t_1, t_2, t_3]$; NaN where the pseudo-inertia is not
        positive definite.

    Example:
        >>> box = from_mass_com(1.0, jnp.zeros(3), 2.0 * jnp.eye(3))
        >>> [abs(float(x)) for x in to_log_cholesky(box)]
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    P = to_pseudo_inertia(parameters)
    U = jnp.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1]
    scale = U[3, 3]
    U = U / scale
    logs = jnp.log(jnp.stack([scale, U[0, 0], U[1, 1], U[2, 2]]))
    return jnp.concatenate([logs, jnp.stack([U[0, 1], U[1, 2], U[0, 2]]), U[:3, 3]])


@jitted
def from_log_cholesky(theta: Float[Array, "10"]) -> Float[Array, "10"]:
    """The ten parameters of log-Cholesky ones: every theta gives a body that can exist.

    Example:
        >>> from_log_cholesky(jnp.zeros(10)).tolist()
        [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 2.0]
    """
    theta = check_array(theta, "theta", (10,), "log-Cholesky parameters")
    s12, s23, s13, t1, t2, t3 = theta[4:]
    e1, e2, e3 = jnp.exp(theta[1:4])
    o, one = jnp.zeros_like(e1), jnp.ones_like(e1)
    rows = ((e1, s12, s13, t1), (o, e2, s23, t2), (o, o, e3, t3), (o, o, o, one))
    U = jnp.exp(theta[0]) * jnp.stack([jnp.stack(row) for row in rows])
    return from_pseudo_inertia(matmul(U, U.T))
