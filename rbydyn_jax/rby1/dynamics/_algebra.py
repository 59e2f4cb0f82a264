"""Rigid motions and spatial vectors in numpy: stacks of matrices, angular first.

One identity serves every change of frame: with P, which swaps the halves of a 6-vector,
Ad(T)^-1 = P Ad(T)^T P, hence also Ad(T)^-T = P Ad(T) P. Wrenches and other duals are therefore kept swapped, as P f:
both kinds of vector move to the base frame by Ad(T), and back by Ad(T)^T.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

SWAP = np.array([3, 4, 5, 0, 1, 2])
_INVERSE = np.arange(36).reshape(6, 6).T[SWAP][:, SWAP]  # where the entries of P X^T P stand in X
_ROTATIONS = np.full((6, 6), 12)  # where the entries of diag(R, R) stand in T; entry 12 is zero
_ROTATIONS[:3, :3] = _ROTATIONS[3:, 3:] = np.arange(16).reshape(4, 4)[:3, :3]
NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])
# Row i is the matrix [e_i] of the cross product, so that v @ _CROSS is [v], row by row.
_CROSS = np.zeros((3, 9))
_CROSS.reshape(3, 3, 3)[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = 1.0
_CROSS.reshape(3, 3, 3)[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = -1.0
_CROSSES = np.zeros((16, 9))  # the same for the position in a flat pose
_CROSSES[[3, 7, 11]] = _CROSS
# The same for ad: row i is ad(e_i).
_BRACKETS = np.zeros((6, 6, 6))
_BRACKETS[:3, :3, :3] = _BRACKETS[:3, 3:, 3:] = _BRACKETS[3:, 3:, :3] = _CROSS.reshape(3, 3, 3)
_BRACKETS = _BRACKETS.reshape(6, 36)


def cross_matrix(v: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 3 3"]:
    """[v], the matrix of the cross product with `v`."""
    return (v @ _CROSS).reshape(*v.shape, 3)


def cross(x: Float[np.ndarray, "*n 3"], y: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 3"]:
    """x cross y, row by row; many times faster than `np.cross`."""
    return x.take(NEXT, -1) * y.take(LAST, -1) - x.take(LAST, -1) * y.take(NEXT, -1)


def inverse(T: Float[np.ndarray, "*n 4 4"]) -> Float[np.ndarray, "*n 4 4"]:
    """The inverse of a rigid motion."""
    result = np.zeros_like(T)
    R = result[..., :3, :3] = T[..., :3, :3].swapaxes(-1, -2)
    result[..., :3, 3:] = -(R @ T[..., :3, 3:])
    result[..., 3, 3] = 1.0
    return result


def adjoint(T: Float[np.ndarray, "*n 4 4"]) -> Float[np.ndarray, "*n 6 6"]:
    """Ad(T) = [[R, 0], [[p] R, R]], which takes motions to the frame that `T` is a pose in."""
    flat = T.reshape(*T.shape[:-2], 16)
    result = flat.take(_ROTATIONS, -1)
    np.matmul(flat.dot(_CROSSES).reshape(*T.shape[:-2], 3, 3), T[..., :3, :3], out=result[..., 3:, :3])
    return result


def inverse_adjoint(Ad: Float[np.ndarray, "*n 6 6"]) -> Float[np.ndarray, "*n 6 6"]:
    """Ad(T)^-1 of Ad(T)."""
    return Ad.reshape(*Ad.shape[:-2], 36).take(_INVERSE, -1)


def swap(x: Float[np.ndarray, "*n 6"]) -> Float[np.ndarray, "*n 6"]:
    """P x: the halves of vectors exchanged."""
    return x.take(SWAP, -1)


def swap_both(x: Float[np.ndarray, "*n 6 6"]) -> Float[np.ndarray, "*n 6 6"]:
    """P X P."""
    return x.take(SWAP, -1).take(SWAP, axis=-2)


def apply(matrices: Float[np.ndarray, "n m k"], vectors: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n m"]:
    """Each matrix times its vector."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def bracket(V: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n 6 6"]:
    """ad(V) = [[[w], 0], [[v], [w]]], the Lie bracket with each twist."""
    return (V @ _BRACKETS).reshape(-1, 6, 6)


class ScrewExponentials:
    r"""exp([S] q) of one screw for each joint, $1 + \sin\theta A + \sin^2(\theta/2) B + \theta C$, all joints at once.

    With $\theta = |\omega| q$ and the twist matrix $X = [S]/|\omega|$: $A = -X^3$, $B = 2 X^2$, $C = X + X^3$, which
    holds the translation along the axis alone. Without rotation $\theta = q$, $C = [S]$, and A and B vanish.

    Args:
        screws: The screws (n, 6), of any length.
    """

    def __init__(self, screws: Float[np.ndarray, "n 6"]) -> None:
        n = len(screws)
        speeds = np.linalg.norm(screws[:, :3], axis=1)
        turning = (speeds > 0.0)[:, None, None]
        speeds = np.where(speeds > 0.0, speeds, 1.0)
        X = np.zeros((n, 4, 4))
        X[:, :3, :3] = cross_matrix(screws[:, :3])
        X[:, :3, 3] = screws[:, 3:]
        X /= speeds[:, None, None]
        cube = X @ X @ X
        along = np.where(turning, X + cube, X)
        along[:, :, :3] = 0.0  # X + X^3 of a rotation is zero; what is left there is rounding
        # Body 0 does not move. Four weights for each body: the sine, the squared sine of the half, the angle, and 1.
        self._terms = np.zeros((n + 1, 4, 4, 4))
        self._terms[1:, 0] = np.where(turning, -cube, 0.0)
        self._terms[1:, 1] = np.where(turning, 2.0 * X @ X, 0.0)
        self._terms[1:, 2] = along
        self._terms[:, 3] = np.eye(4)
        self._terms = self._terms.reshape(-1, 4, 16)
        self._speeds = speeds
        self._weights = np.zeros((n + 1, 1, 4))
        self._weights[..., 3] = 1.0

    def __call__(self, q: Float[np.ndarray, "n"]) -> Float[np.ndarray, "b 4 4"]:
        """The identity, of a base that does not move, and the motions at positions `q`."""
        weights, angles = self._weights.copy(), self._speeds * q
        half = np.sin(0.5 * angles)
        weights[1:, 0, 0], weights[1:, 0, 1], weights[1:, 0, 2] = np.sin(angles), half * half, angles
        return (weights @ self._terms).reshape(-1, 4, 4)
