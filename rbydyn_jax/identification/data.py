r"""Measured motions and torques, as arrays or from a file.

Velocities and accelerations of sampled positions are those of a polynomial that is fitted to a window around each time
[Savitzky and Golay 1964]: smoothing and differentiation in one, without delay. The torques go through the same window,
so that both sides of the equations of motion are smoothed alike.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import (
    check_array,
    check_choice,
    check_finite,
    check_integer,
    check_outside_jit,
    check_positive_number,
    is_masked,
    kind_of,
)
from .._errors import ArgumentError, DtypeError, Finding, ModelError, ParseError, ShapeError
from .._lazy import is_traced
from .._result import Result
from ..model.model import Model, check_model
from .parameter_vector import velocity_names


class TrajectoryData(Result):
    """A motion and the torques of the motors along it, a row for each time.

    Attributes:
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s].
        a: Accelerations [rad/s^2, m/s^2].
        tau: Torques or forces of the motors [N m, N], what friction takes included; or currents [A]: see `fit`.

    Raises:
        ArgumentError: A value is not finite.
        DtypeError: An argument is not an array of floats.
        ShapeError: The arguments have different numbers of rows, or `v`, `a` and `tau` of columns.
    """

    q: Float[Array, "t nq"]
    v: Float[Array, "t nv"]
    a: Float[Array, "t nv"]
    tau: Float[Array, "t nv"]

    def __init__(
        self, q: Float[Array, "t nq"], v: Float[Array, "t nv"], a: Float[Array, "t nv"], tau: Float[Array, "t nv"]
    ) -> None:
        self.v = check_array(v, "v", (None, None))
        self.q = check_array(q, "q", (self.v.shape[0], None), "rows of v")
        self.a, self.tau = (check_array(x, name, self.v.shape, "that of v") for name, x in (("a", a), ("tau", tau)))
        for name in ("q", "v", "a", "tau"):
            check_finite(getattr(self, name), name)

    @property
    def motion(self) -> tuple[Float[Array, "t nq"], Float[Array, "t nv"], Float[Array, "t nv"]]:
        """(q, v, a)."""
        return self.q, self.v, self.a

    def __len__(self) -> int:
        return self.q.shape[0]

    def __getitem__(self, rows: slice | Sequence[int] | np.ndarray | Array) -> TrajectoryData:
        """Some of the rows: a slice, indices, or a truth value for each.

        Raises:
            ArgumentError: There is no such row.
            DtypeError: `rows` are no rows.
        """
        chosen = rows if isinstance(rows, slice) else _chosen(rows)
        try:
            chosen = np.arange(len(self))[chosen]
        except (TypeError, IndexError) as error:
            raise ArgumentError(f"there are {len(self)} rows: {error}") from None
        return TrajectoryData(self.q[chosen], self.v[chosen], self.a[chosen], self.tau[chosen])

    def checked(self, model: Model) -> TrajectoryData:
        """The data, if they fit to a robot.

        Raises:
            DtypeError: `model` is no robot.
            ShapeError: They belong to another one, or there are none.
        """
        check_model(model)
        if (self.q.shape[1], self.v.shape[1]) != (model.nq, model.nv) or not len(self):
            raise ShapeError(
                f"data must have rows of q ({model.nq},) and of v, a, tau ({model.nv},); got {len(self)} rows of "
                f"({self.q.shape[1]},) and ({self.v.shape[1]},)"
            )
        return self


def _chosen(rows: Any) -> np.ndarray:
    """Indices or truth values; an empty list holds indices.

    Raises:
        DtypeError: `rows` are neither.
    """
    try:
        found = np.array(None) if is_traced(rows) or is_masked(rows) else np.asarray(rows)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if isinstance(rows, list | tuple) and not rows:
        found = found.astype(int)
    if found.dtype.kind not in "iub" or found.ndim != 1:
        raise DtypeError(f"rows must be a slice, indices, or a truth value for each, got {kind_of(rows)}")
    return found


def check_data(data: TrajectoryData, model: Model) -> TrajectoryData:
    """The data, if they are such and fit to a robot.

    Raises:
        DtypeError: `data` is something else.
        ShapeError: They belong to another robot, or there are none.
    """
    if not isinstance(data, TrajectoryData):
        raise DtypeError(f"data must be a TrajectoryData, got {type(data).__name__}")
    return data.checked(model)


def smooth(
    samples: Float[Array, "t n"] | np.ndarray, period: float, window: int = 21, degree: int = 4, derivative: int = 0
) -> np.ndarray:
    """A derivative of equidistant samples by local polynomials, those near the ends from the first and last window.

    Args:
        samples: Values, a row for each time.
        period: Time between two rows [s].
        window: Number of rows of a window, odd. Frequencies above about (degree + 1) / (3 window period) are damped.
        degree: Degree of the polynomials.
        derivative: Which derivative; 0 are the smoothed values.

    Returns:
        An array of the shape of `samples`.

    Raises:
        ArgumentError: `window` is even, not larger than `degree`, or larger than the number of rows, or `period` is
            not positive.
        DtypeError: An argument is of another type, or traced.
        ShapeError: `samples` has no two axes.

    Example:
        >>> from rbydyn_jax.identification import smooth
        >>> t = np.arange(50) * 0.1
        >>> bool(np.allclose(smooth(t[:, None] ** 2, 0.1, derivative=1), 2 * t[:, None]))
        True
    """
    check_outside_jit("smooth", samples)
    check_array(samples, "samples", (None, None))
    x = np.asarray(samples, float)
    window, degree = check_integer(window, "window", 1), check_integer(degree, "degree", 0)
    derivative = check_integer(derivative, "derivative", 0)
    if window % 2 == 0 or not degree < window <= len(x):
        raise ArgumentError(f"window must be odd, above degree {degree} and at most {len(x)} rows, got {window}")
    period = check_positive_number(period, "period")
    if derivative > degree:
        return np.zeros_like(x)
    half = window // 2
    at = np.arange(-half, half + 1) / max(half, 1)
    fit = np.linalg.pinv(np.vander(at, degree + 1, increasing=True))  # samples of a window to coefficients
    factors = np.array([np.prod(np.arange(k - derivative + 1, k + 1, dtype=float)) for k in range(degree + 1)])
    powers = np.maximum(np.arange(degree + 1) - derivative, 0)
    values = np.where(np.arange(degree + 1) >= derivative, factors * at[:, None] ** powers, 0.0) @ fit
    values /= (max(half, 1) * period) ** derivative
    # Of the steps between samples: where these do not change, rates are zero, and not the rounding of a sum.
    changes = values - np.eye(window) if derivative == 0 else values
    steps, weights = np.diff(x, axis=0), -np.cumsum(changes, axis=1)[:, :-1]
    inner = np.lib.stride_tricks.sliding_window_view(steps, window - 1, axis=0) @ weights[half]
    ends = weights[:half] @ steps[: window - 1], weights[half + 1 :] @ steps[len(x) - window :]
    found = np.concatenate([ends[0], inner, ends[1]])
    return x + found if derivative == 0 else found


def data_from_samples(
    model: Model,
    q: Float[Array, "t nq"],
    tau: Float[Array, "t nv"],
    period: float,
    *,
    window: int = 21,
    degree: int = 4,
) -> TrajectoryData:
    """The data of equidistant positions and torques; all four quantities by `smooth` with one window.

    Args:
        model: The robot; the velocities of its joints have to be the rates of their positions.
        q: Configurations [rad, m].
        tau: Torques of the motors [N m, N].
        period: Time between two rows [s].
        window: Number of rows of a window, odd.
        degree: Degree of the polynomials.

    Raises:
        ArgumentError: `window` or `period` is wrong; see `smooth`.
        DtypeError: An argument is of another type, or traced.
        ModelError: A joint has more positions than velocities.
        ShapeError: The arrays do not belong to the robot, or have different numbers of rows.
    """
    check_outside_jit("data_from_samples", model, q, tau)
    model = check_model(model)
    for name, joint in zip(model.joint_names, model.tree.joints, strict=True):
        if joint.nq != joint.nv or joint.nv > 1:
            raise ModelError(f"joint {name!r}: only positions whose rates are velocities can be differentiated")
    q = check_array(q, "q", (None, model.nq), "times, model.nq")
    tau = check_array(tau, "tau", (q.shape[0], model.nv), "rows of q, model.nv")
    rows = (smooth(q, period, window, degree, k) for k in range(3))
    arrays = (*rows, smooth(tau, period, window, degree))
    return TrajectoryData(*(jnp.asarray(x, q.dtype) for x in arrays))


_DELIMITERS = ";\t|"  # of files that are not separated by commas


def _wrong(path: Path, message: str, line: int) -> ParseError:
    return ParseError([Finding("error", message, "", str(path), line)])


def read_csv(
    model: Model,
    path: str | Path,
    *,
    measured: Literal["tau", "current"] = "tau",
    window: int = 21,
    degree: int = 4,
) -> TrajectoryData:
    """The data of a CSV file with a header: `time` [s], and `q_<joint>` and `tau_<joint>` for every joint of the robot.

    The text is UTF-8. Other columns are ignored, and so are empty rows at the end. Times have to be equidistant to 1 %;
    positions are differentiated by `data_from_samples`.

    Args:
        model: The robot.
        path: The file.
        measured: Whether there are torques, or currents [A] in columns `current_<joint>`, for `fit` with `constants`.
        window: Number of rows of a window, odd.
        degree: Degree of the polynomials.

    Raises:
        ArgumentError: `measured` is another word, or `window` does not fit; see `smooth`.
        DtypeError: `path` is neither a string nor a path.
        ModelError: A joint has more positions than velocities.
        ParseError: The file is no CSV in UTF-8, a column is missing or there twice, there are less than two rows, one
            of them has more values than the header, a value is no finite number, or the times are not equidistant.
    """
    model = check_model(model)
    if not isinstance(path, str | os.PathLike):
        raise DtypeError(f"path must be a string or a path, got {type(path).__name__}")
    path = Path(path)
    check_choice(measured, "measured", ("tau", "current"))
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, "the file is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise _wrong(path, str(error), reader.line_num) from None
    while rows and not any(x.strip() for x in rows[-1]):
        rows.pop()
    header = [x.strip() for x in rows[0]] if rows else []
    joints = velocity_names(model)
    wanted = ["time", *(f"q_{x}" for x in joints), *(f"{measured}_{x}" for x in joints)]
    if missing := [x for x in wanted if x not in header]:
        other = next((x for x in _DELIMITERS if len(header) == 1 and x in header[0]), None)
        hint = "" if other is None else f": columns are separated by commas, here it seems by {other!r}"
        raise _wrong(path, f"the file has no column {missing[0]!r}{hint}", 1)
    if twice := [x for x in wanted if header.count(x) > 1]:
        raise _wrong(path, f"the file has the column {twice[0]!r} more than once", 1)
    if len(rows) < 3:
        raise _wrong(path, f"there {'are no rows' if len(rows) == 1 else 'is only one row'} below the header", 1)
    index = [header.index(x) for x in wanted]
    table = []
    for number, row in enumerate(rows[1:], start=2):
        if any(x.strip() for x in row[len(header) :]):
            raise _wrong(path, f"the row has {len(row)} values, the header {len(header)}", number)
        try:
            table.append([float(row[k]) for k in index])
        except (ValueError, IndexError):
            raise _wrong(path, "a value is missing or no number", number) from None
        if bad := [x for x, value in zip(wanted, table[-1], strict=True) if not np.isfinite(value)]:
            raise _wrong(path, f"column {bad[0]!r}: a value must be finite", number)
    values = np.array(table).reshape(-1, len(wanted))
    steps = np.diff(values[:, 0])
    if not (steps > 0.0).all():
        raise _wrong(path, "the times do not increase", int(np.argmin(steps > 0.0)) + 3)
    if not (np.abs(steps - steps.mean()) <= 0.01 * steps.mean()).all():
        raise _wrong(path, "the times are not equidistant", int(np.argmax(np.abs(steps - np.median(steps)))) + 3)
    dtype, nv = model.inertias.dtype, len(joints)
    q, tau = (jnp.asarray(x, dtype) for x in (values[:, 1 : 1 + nv], values[:, 1 + nv :]))
    return data_from_samples(model, q, tau, float(steps.mean()), window=window, degree=degree)
