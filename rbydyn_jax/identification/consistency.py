r"""The parameters nearest to given ones among those that can exist.

A body can exist where its pseudo-inertia $P$ is positive semidefinite, which is a convex condition [Wensing, Kim and
Slotine 2018]; so is that a number is not negative. The nearest parameters in a norm $A$ are therefore unique, and
Newton's method finds them with a barrier that keeps all iterates inside, $\min \frac12 \|y - \hat y\|_A^2 - \mu
(\sum \log\det P + \sum \log y)$ for falling $\mu$ [Boyd and Vandenberghe 2004, ch. 11].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_GAP = 1e-3  # by how much the minimum may be missed, in units of half a chi-square: of no statistical weight
_FALL = 0.1  # of the barrier's weight, when its minimum is found
_CENTRED = 0.1  # Newton decrement at which it counts as found, in units of the weight
_SHORTEST = 1e-10  # step
_DEGENERATE = 1e-3  # smallest second moment of a start, relative to the largest
_UNKNOWN = 1e-2  # all second moments of a start without mass


def _basis() -> np.ndarray:
    """The pseudo-inertias (10, 4, 4) of the ten unit parameters."""
    P = np.zeros((10, 4, 4))
    P[0, 3, 3] = 1.0
    for k in range(3):
        P[1 + k, k, 3] = P[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), start=4):
        if i == j:
            P[k, :3, :3] = 0.5 * np.eye(3)
        P[k, i, j] = P[k, j, i] = P[k, i, j] - 1.0
    return P


_BASIS = _basis()


class _Barrier(NamedTuple):
    value: float
    gradient: np.ndarray
    root: np.ndarray
    """A matrix whose square is the Hessian."""


def _barrier(y: np.ndarray, bodies: int) -> _Barrier | None:
    """The barrier with its derivatives; None outside."""
    count = 10 * bodies
    P, numbers = np.einsum("bk,kij->bij", y[:count].reshape(-1, 10), _BASIS), y[count:]
    moments, axes = np.linalg.eigh(P)
    if not (moments > 0.0).all() or not (numbers > 0.0).all():
        return None
    scaled = axes / np.sqrt(moments)[:, None]
    relative = np.einsum("bji,kjl,blm->bkim", scaled, _BASIS, scaled)
    gradient = np.concatenate([-np.einsum("bkii->bk", relative).reshape(-1), -1.0 / numbers])
    root = np.zeros((16 * bodies + len(numbers), len(y)))
    for k, block in enumerate(relative):
        root[16 * k : 16 * k + 16, 10 * k : 10 * k + 10] = block.reshape(10, 16).T
    root[16 * bodies :, count:] = np.diag(1.0 / numbers)
    return _Barrier(float(-np.log(moments).sum() - np.log(numbers).sum()), gradient, root)


def inside(y: np.ndarray, bodies: int) -> np.ndarray:
    """The parameters, made to have mass in every direction, and numbers that are positive."""
    blocks = []
    for own in y[: 10 * bodies].reshape(-1, 10):
        values, axes = np.linalg.eigh(np.einsum("k,kij->ij", own, _BASIS))
        values = np.maximum(values, _DEGENERATE * values[-1] if values[-1] > 0.0 else _UNKNOWN)
        P = (axes * values) @ axes.T
        inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
        blocks.append(np.concatenate([[P[3, 3]], P[:3, 3], inertia[np.array([0, 0, 1, 0, 1, 2]), [0, 1, 1, 2, 2, 2]]]))
    return np.concatenate([*blocks, np.maximum(y[10 * bodies :], _DEGENERATE)])


def nearest(
    best: np.ndarray, root: np.ndarray, start: np.ndarray, bodies: int, limit: int
) -> tuple[np.ndarray, int, bool]:
    """The nearest to `best` in the norm of `root.T @ root`, the number of steps, and whether they came to an end.

    All are in units of their size: ten parameters for each of the bodies, then numbers. Steps are found from the roots
    of the Hessians: their sum would lose what is small to rounding.
    """
    y, barrier = start, _barrier(start, bodies)
    assert barrier is not None  # `inside`
    order = 4 * bodies + len(best) - 10 * bodies  # of the barrier: its weight times this is the gap

    def distance(y: np.ndarray) -> float:
        return 0.5 * float(((root @ (y - best)) ** 2).sum())

    weight = max(distance(y), _GAP) / order
    for step in range(1, limit + 1):
        gradient = root.T @ (root @ (y - best)) + weight * barrier.gradient
        both = np.concatenate([root, weight**0.5 * barrier.root])
        scale = 1.0 / np.linalg.norm(both, axis=0)
        R = np.asarray(np.linalg.qr(both * scale, mode="r"))
        move = -scale * np.linalg.solve(R, np.linalg.solve(R.T, scale * gradient))
        slope, length, now = float(gradient @ move), 1.0, distance(y) + weight * barrier.value
        while True:
            ahead = _barrier(y + length * move, bodies)
            if ahead is not None and distance(y + length * move) + weight * ahead.value <= now + 0.1 * length * slope:
                break
            length *= 0.5
            if length < _SHORTEST:  # what is left is rounding
                ahead = None
                break
        if ahead is not None:
            y, barrier = y + length * move, ahead
        if ahead is None or -slope <= _CENTRED * weight:
            if weight * order <= _GAP:
                return y, step, True
            weight *= _FALL
    return y, limit, False
