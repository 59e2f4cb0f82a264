"""Sums of products over all times: what a least-squares fit has to know of the data."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..model.model import Model
from .data import TrajectoryData
from .parameter_vector import TERMS, columns_of_rows, regressor

CHUNK = 512  # times of one call: their regressors take some 20 MB for RB-Y1


class JointSums(NamedTuple):
    """The products of one row of the regressor and of its torque, summed over all times with their weights."""

    columns: np.ndarray
    """The parameters on which the torque depends."""
    matrix: np.ndarray
    """Y^T Y of these columns."""
    vector: np.ndarray
    """Y^T tau."""
    square: float
    """tau^2."""
    weight: float
    """The sum of the weights."""

    def squared_error(self, parameters: np.ndarray) -> float:
        """The mean squared error of the torque."""
        own = parameters[self.columns]
        total = float(self.square - 2.0 * self.vector @ own + own @ self.matrix @ own)
        return max(total, 0.0) / max(self.weight, 1.0)

    def with_gain(self, parameters: np.ndarray, gain: float, column: int) -> JointSums:
        r"""Those of measurements with an unknown gain, $s\, Y \pi \approx s_0 Y \pi + (s - s_0)\, Y \pi_0$.

        Args:
            parameters: The parameters at which, $\pi_0$.
            gain: The gain at which, $s_0$.
            column: The index of the gain among the parameters.
        """
        own = parameters[self.columns]
        moved = self.matrix @ own
        square, along = float(own @ moved), float(self.vector @ own)
        matrix = np.block([[gain**2 * self.matrix, gain * moved[:, None]], [gain * moved[None], np.array([[square]])]])
        vector = np.append(gain * (self.vector + gain * moved), along + gain * square)
        total = self.square + 2.0 * gain * along + gain**2 * square
        return JointSums(np.append(self.columns, column), matrix, vector, total, self.weight)


@functools.partial(jax.jit, static_argnames="width")
def _products(
    model: Model, q: Array, v: Array, a: Array, tau: Array, weights: Array, width: float | None
) -> list[Array]:
    rows = jax.vmap(lambda q, v, a: regressor(model, q, v, a, TERMS, width))(q, v, a)
    found = []
    for j, columns in enumerate(columns_of_rows(model, TERMS)):
        table = jnp.concatenate([rows[:, j, columns], tau[:, j : j + 1]], axis=1)
        weighted = table * weights[:, j : j + 1]
        found.append(jnp.matmul(weighted.T, table, precision=jax.lax.Precision.HIGHEST))
    return found


def joint_sums(model: Model, data: TrajectoryData, weights: np.ndarray, width: float | None) -> list[JointSums]:
    """The sums for each velocity; `weights` (t, nv) are those of the squared errors."""
    arrays = [np.asarray(x) for x in (*data.motion, data.tau)]
    arrays.append(weights.astype(arrays[0].dtype))
    totals: list[np.ndarray] | None = None
    for start in range(0, len(data), CHUNK):
        some = [x[start : start + CHUNK] for x in arrays]
        short = min(CHUNK, len(data)) - len(some[0])  # the last chunk, filled up with rows without weight
        some[:4] = [np.pad(x, ((0, short), (0, 0)), mode="edge") for x in some[:4]]
        some[4] = np.pad(some[4], ((0, short), (0, 0)))
        found = [np.asarray(x, float) for x in _products(model, *some, width=width)]
        totals = found if totals is None else [x + y for x, y in zip(totals, found, strict=True)]
    columns = columns_of_rows(model, TERMS)
    return [
        JointSums(c, x[:-1, :-1], x[:-1, -1], float(x[-1, -1]), float(w))
        for c, x, w in zip(columns, totals or [], weights.sum(axis=0), strict=True)
    ]


def summed(sums: list[JointSums], noise: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations (matrix, vector) of all joints together, each in units of its noise."""
    matrix, vector = np.zeros((size, size)), np.zeros(size)
    for own, deviation in zip(sums, noise, strict=True):
        matrix[np.ix_(own.columns, own.columns)] += own.matrix / deviation**2
        vector[own.columns] += own.vector / deviation**2
    return matrix, vector
