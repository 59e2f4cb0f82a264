r"""Every small-angle and zero branch of the library: exact values *and* derivatives of any order.

Two rules keep rotations free of NaN and of wrong derivatives. Functions of an angle are written in
$x = \theta^2$, in which they are analytic, so that no norm is ever differentiated; and their derivatives
are given in closed form by functions of the same family (`jax.custom_jvp`), so that no derivative comes
from a truncated series or from the branch that was not taken.

All functions here work element by element on arrays of any shape.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_integer
from .._errors import ArgumentError, ShapeError
from ._small import binary_scale

# Below this x the higher Stumpff functions are summed, above it their closed form cancels too little to matter.
_SERIES_LIMIT = 9.0
_LARGEST_ORDER = 100  # the factorials are numbers of double precision


def _alike(**arrays: Array | float) -> list[Array]:
    """Arrays of floats, of one shape or scalar."""
    checked = {name: check_array(x, name) for name, x in arrays.items()}
    try:
        shape = np.broadcast_shapes(*(x.shape for x in checked.values()))
    except ValueError:
        shapes = " and ".join(f"{name} {x.shape}" for name, x in checked.items())
        raise ShapeError(f"shapes must broadcast, got {shapes}") from None
    return [jnp.broadcast_to(x, shape) if x.ndim else x for x in checked.values()]


def stumpff(k: int, x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""The Stumpff function $c_k(x) = \sum_j (-x)^j / (2j + k)!$ for $x = \theta^2 \ge 0$.

    $c_0 = \cos\theta$, $c_1 = \sin\theta/\theta$, $c_2 = (1 - \cos\theta)/\theta^2$,
    $c_3 = (\theta - \sin\theta)/\theta^3$, and so on: everything that rotations and their derivatives are
    made of. The derivative is $c_k' = (k c_{k+2} - c_{k+1})/2$.

    Args:
        k: Order, a Python integer >= 0.
        x: Squared angle [rad^2].

    Returns:
        $c_k(x)$, to rounding error for every x.

    Example:
        >>> [round(float(stumpff(k, jnp.zeros(()))), 6) for k in range(5)]
        [1.0, 1.0, 0.5, 0.166667, 0.041667]
    """
    k, x = check_integer(k, "k", 0), check_array(x, "x")
    if k > _LARGEST_ORDER:
        raise ArgumentError(f"k must be at most {_LARGEST_ORDER}, got {k}")
    return _stumpff(k, x)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _stumpff(k: int, x: Array) -> Array:
    if k == 0:
        return jnp.cos(jnp.sqrt(x))
    if k == 1:
        zero = x == 0
        theta = jnp.sqrt(jnp.where(zero, 1.0, x))
        return jnp.where(zero, 1.0, jnp.sin(theta) / theta)
    if k == 2:  # (1 - cos) cancels, the half-angle form does not
        return 0.5 * jnp.square(_stumpff(1, 0.25 * x))
    small = x < _SERIES_LIMIT
    inner = jnp.where(small, x, 0.0)
    terms = 15 if x.dtype == jnp.float64 else 9
    series = jnp.full_like(inner, 1.0 / math.factorial(2 * terms + k))
    for j in reversed(range(terms)):
        series = 1.0 / math.factorial(2 * j + k) - inner * series
    far = jnp.where(small, _SERIES_LIMIT, x)
    return jnp.where(small, series, (1.0 / math.factorial(k - 2) - _stumpff(k - 2, far)) / far)


@_stumpff.defjvp
def _stumpff_jvp(k, primals, tangents):
    (x,), (dx,) = primals, tangents
    slope = -0.5 * _stumpff(k + 1, x)
    if k > 0:
        slope = slope + 0.5 * k * _stumpff(k + 2, x)
    return _stumpff(k, x), slope * dx


def angle_ratio(s2: Float[Array, "..."], w: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$2\,\mathrm{atan2}(s, w)/s$ of $s^2$ and $w$: the factor from a quaternion's vector part to the rotation vector.

    Args:
        s2: Squared length of the vector part, >= 0.
        w: Scalar part; where s2 is 0 it must be positive.

    Returns:
        The ratio, $2/w$ in the limit $s = 0$; all derivatives are exact there, too.

    Example:
        >>> float(angle_ratio(jnp.zeros(()), jnp.ones(())))
        2.0
    """
    return _angle_ratio(*_alike(s2=s2, w=w))


@jax.custom_jvp
def _angle_ratio(s2: Array, w: Array) -> Array:
    zero = s2 == 0
    s = jnp.sqrt(jnp.where(zero, 1.0, s2))
    return 2.0 * jnp.where(zero, 1.0 / jnp.where(zero, w, 1.0), jnp.arctan2(s, w) / s)


@_angle_ratio.defjvp
def _angle_ratio_jvp(primals, tangents):
    (s2, w), (ds2, dw) = primals, tangents
    ratio = _angle_ratio(s2, w)
    r2 = s2 + w * w
    theta2 = ratio * ratio * s2
    by_s2 = -4.0 * _stumpff(3, theta2) / (r2 * jnp.sqrt(r2) * _stumpff(1, 0.25 * theta2) ** 3)
    return ratio, by_s2 * ds2 - 2.0 / r2 * dw


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Square root whose derivatives at zero are zero instead of infinite.

    Example:
        >>> float(jax.grad(safe_sqrt)(0.0))
        0.0
    """
    return _sqrt(check_array(x, "x"))


@jax.custom_jvp
def _sqrt(x: Array) -> Array:
    return jnp.sqrt(x)


@_sqrt.defjvp
def _sqrt_jvp(primals, tangents):
    root = _sqrt(*primals)
    return root, _quotient(0.5 * tangents[0], root)


def safe_norm(x: Float[Array, "... n"]) -> Float[Array, "..."]:
    r"""Euclidean norm over the last axis, of vectors of any length; at the zero vector it has the subgradient 0.

    Example:
        >>> float(safe_norm(jnp.array([3.0, 4.0])))
        5.0
        >>> jax.grad(safe_norm)(jnp.zeros(2)).tolist()
        [0.0, 0.0]
    """
    x = check_array(x, "x")
    if x.ndim == 0:
        raise ShapeError("x must have at least one axis, got a scalar")
    scale = binary_scale(x)
    return _sqrt(jnp.sum(jnp.square(x * scale), axis=-1)) / scale[..., 0]


def safe_divide(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """The quotient a / b, and 0 with zero derivatives where b is 0.

    Example:
        >>> float(safe_divide(jnp.array(1.0), jnp.array(0.0)))
        0.0
    """
    return _quotient(*_alike(a=a, b=b))


@jax.custom_jvp
def _quotient(a: Array, b: Array) -> Array:
    zero = b == 0
    return jnp.where(zero, 0.0, a / jnp.where(zero, 1.0, b))


@_quotient.defjvp
def _quotient_jvp(primals, tangents):
    # No power of b is formed, which may underflow.
    (a, b), (da, db) = primals, tangents
    ratio = _quotient(a, b)
    return ratio, _quotient(da, b) - ratio * _quotient(db, b)
