"""The order of spatial vectors: angular first here, linear first in other libraries."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_integer
from .._errors import ShapeError


def _swap_halves(x, axis: int) -> Array:
    x, axis = check_array(x, "x"), check_integer(axis, "axis")
    if not -x.ndim <= axis < x.ndim or x.shape[axis] != 6:
        raise ShapeError(f"x must have 6 entries along axis {axis}, got shape {x.shape}")
    return jnp.roll(x, 3, axis=axis)


def to_linear_first(x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """Reorders [angular; linear] to the [linear; angular] of pinocchio, pymanoid and pyrobot.

    Args:
        x: A twist, a wrench, or a Jacobian (6, n).
        axis: The axis of the six components; for an inertia (6, 6) apply the function to both.

    Returns:
        The reordered array.

    Raises:
        ShapeError: The axis does not have six entries.

    Example:
        >>> to_linear_first(jnp.array([1.0, 2, 3, 4, 5, 6])).tolist()
        [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]
    """
    return _swap_halves(x, axis)


def from_linear_first(x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """Reorders [linear; angular] to this library's [angular; linear]; the inverse of `to_linear_first`.

    Args:
        x: A twist, a wrench, or a Jacobian (6, n).
        axis: The axis of the six components.

    Returns:
        The reordered array.

    Raises:
        ShapeError: The axis does not have six entries.
    """
    return _swap_halves(x, axis)
