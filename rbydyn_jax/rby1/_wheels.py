"""The matrices between the wheel speeds of a mobile base and its planar twist [w, vx, vy]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Matrices = tuple[Float[np.ndarray, "3 k"], Float[np.ndarray, "k 3"]]


def wheel_maps(kind: str, params: Sequence[float]) -> Matrices:
    """Maps from wheel speeds to the twist of the mobile frame, and back.

    Contradictory rates of mecanum wheels give the twist that fits them best, and two wheels ignore a sideways velocity.

    Args:
        kind: ``"differential"`` or ``"mecanum"``.
        params: Distance between two wheels and their radius; or half the distances between the axles and between the
            wheels of an axle, and the radius [m].
    """
    if kind == "differential":  # the axes point to the right: forward is where the wheels turn backward
        b, r = params
        forward = np.array([[-r / b, r / b], [-r / 2, -r / 2], [0.0, 0.0]])
        return forward, np.array([[-b / (2 * r), -1 / r, 0.0], [b / (2 * r), -1 / r, 0.0]])
    x, y, r = params
    L = x + y
    signs = np.array([[L, 1, 1], [-L, 1, -1], [L, 1, -1], [-L, 1, 1]])  # of w, vx, vy; rows fr, fl, rr, rl
    return (signs / [L * L, 1, 1]).T * (r / 4), signs / r


def planar_adjoint(T: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "3 3"]:
    """The rows and columns of Ad(T) for w about z, vx and vy."""
    R, p = T[:3, :3], T[:3, 3]
    A = np.zeros((3, 3))
    A[0, 0], A[1:, 1:], A[1:, 0] = R[2, 2], R[:2, :2], np.cross(p, R[:, 2])[:2]
    return A
