"""Sums of products over all times: what a least-squares fit has to know of the data."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from ..algorithms.inverse_dynamics import motor_torques
from ..model.model import Model
from ..xla.loops import filled
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
def _rows(model: Model, q: Array, v: Array, a: Array, width: float | None) -> list[Array]:
    """The rows of the regressor for each velocity, of the columns on which the torque depends."""
    rows = jax.vmap(lambda q, v, a: regressor(model, q, v, a, TERMS, width))(q, v, a)
    return [rows[:, j, columns] for j, columns in enumerate(columns_of_rows(model, TERMS))]


@functools.partial(jax.jit, static_argnames="width")
def _torques(model: Model, q: Array, v: Array, a: Array, width: float | None) -> Array:
    return jax.vmap(lambda q, v, a: motor_torques(model, q, v, a, width))(q, v, a)


def _chunks(data: TrajectoryData) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Some times after the others with their motion, that of the last chunk filled up: all have one shape."""
    motion, size = [np.asarray(x) for x in data.motion], min(CHUNK, len(data))
    for start in range(0, len(data), CHUNK):
        some = [x[start : start + CHUNK] for x in motion]
        yield slice(start, start + len(some[0])), [filled(x, size, np) for x in some]


def joint_sums(model: Model, data: TrajectoryData, weights: np.ndarray, width: float | None) -> list[JointSums]:
    """The sums for each velocity; `weights` (t, nv) are those of the squared errors.

    Sums and products are in float64, whatever the dtype of the rows: errors are small differences of these sums.
    """
    tau, columns = np.asarray(data.tau, float), columns_of_rows(model, TERMS)
    totals = [np.zeros((len(c) + 1, len(c) + 1)) for c in columns]
    for times, motion in _chunks(data):
        for j, rows in enumerate(_rows(model, *motion, width=width)):
            own = np.asarray(rows)[: times.stop - times.start]
            table = np.concatenate([own, tau[times, j : j + 1]], axis=1)
            totals[j] += (table * weights[times, j : j + 1]).T @ table
    return [
        JointSums(c, x[:-1, :-1], x[:-1, -1], float(x[-1, -1]), float(w))
        for c, x, w in zip(columns, totals, weights.sum(axis=0), strict=True)
    ]


def torques_of(model: Model, data: TrajectoryData, width: float | None) -> np.ndarray:
    """The torques (t, nv) of the motors of a robot on the motion of the data, in float64."""
    chunks = _chunks(data)
    return np.concatenate([np.asarray(_torques(model, *x, width=width), float)[: t.stop - t.start] for t, x in chunks])


def summed(sums: list[JointSums], noise: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations (matrix, vector) of all joints together, each in units of its noise."""
    matrix, vector = np.zeros((size, size)), np.zeros(size)
    for own, deviation in zip(sums, noise, strict=True):
        matrix[np.ix_(own.columns, own.columns)] += own.matrix / deviation**2
        vector[own.columns] += own.vector / deviation**2
    return matrix, vector
