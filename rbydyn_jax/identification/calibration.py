r"""Kinematic calibration: joint offsets and placements of links from measured poses.

Gauss-Newton's method on the errors of orientation and position, each in units of its noise [Hollerbach, Khalil and
Gautier 2016], with derivatives in closed form (`geometry`). An unknown frame starts where it aligns the poses best
[Kabsch 1976]. A prior on each unknown makes the minimum unique; what the poses tell without it is reported as for
torques (`identifiability`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import (
    check_array,
    check_finite,
    check_flag,
    check_integer,
    check_mapping,
    check_outside_jit,
    check_pose,
    check_positive,
    check_positive_number,
    check_real,
    check_sequence,
)
from .._errors import ArgumentError, ModelError, ShapeError
from ..model.geometry import with_geometry
from ..model.model import Model, check_model
from ..spatial import se3
from .geometry import Geometry, Target, fk_of, linearized, poses_of
from .identifiability import BaseParameters, combinations_of
from .tables import unknowns_table

_END = 1e-6  # twice the decrease of half a chi-square that is left: of no statistical weight
_ROUNDED = 8  # rounding units of the largest number behind an error; up to 3 were seen with a Panda in float32
_SHORTEST = 1e-4  # step
_SMALLEST = 1e-2  # noise, in units of the root of the rounding unit
_TURNED_LEAST = 1e-6  # weight of no rotation, where positions do not tell it
_MEDIAN = 2.366  # of the sum of three squared normal numbers


@dataclass(frozen=True)
class CalibrationResult:
    """A calibrated robot; `print` shows it as a table.

    Attributes:
        model: The robot with the placements that were found.
        offsets: What has to be added to the configurations [rad, m]: the pose is that of `model` at `q + offsets`.
        frame: The pose of the world, or of `ref`, in the frame of the measurements.
        names: The names of the unknowns: offsets of joints, and rotation vector and translation of each change of a
            placement, in the axes of the placement. The change of an unknown frame is that from the frame in which the
            given robot is nearest to what was measured.
        values: Their values [rad, m].
        covariance: Covariance of the unknowns, from the noise and the prior together.
        noise: Standard deviations of measured angles [rad] and positions [m], estimated or given; NaN where none is
            measured.
        residual: Root mean squares of the errors after the calibration, in the same units.
        identifiability: Which combinations the poses tell apart without the prior.
        iterations: Number of steps.
        converged: Whether they came to an end: another one would be of no statistical weight, or within rounding.
    """

    model: Model
    offsets: np.ndarray
    frame: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    identifiability: BaseParameters
    iterations: int
    converged: bool

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each unknown."""
        return np.sqrt(np.diag(self.covariance))

    def __str__(self) -> str:
        lines = unknowns_table(self.names, np.zeros(len(self.names)), self.values, self.deviation)
        told = zip(("orientation", "position"), self.residual, ("rad", "m"), strict=True)
        lines += [f"error of {what}: {x:.3g} {unit}" for what, x, unit in told if np.isfinite(x)]
        return "\n".join([*lines, str(self.identifiability).splitlines()[0]])

    __repr__ = __str__


def calibrate(
    model: Model,
    q: Float[Array, "t nq"],
    poses: Mapping[str | int, Float[Array, "t 4 4"] | Float[Array, "t 3"]],
    *,
    ref: str | int | None = None,
    offsets: Sequence[str | int] | None = None,
    placements: Sequence[str | int] = (),
    unknown_frame: bool = False,
    prior: tuple[float, float] = (0.1, 0.05),
    noise: tuple[float, float] | None = None,
    huber: float | None = None,
    iterations: int = 50,
) -> CalibrationResult:
    r"""The joint offsets and placements with which the links are where they were measured.

    Minimizes the squared errors of orientation and position, in units of their noise, and of the unknowns, in units of
    the prior. The unknowns are zero for the given robot. Called outside of `jit`; errors and derivatives are in the
    dtype of the model, all else in float64.

    Args:
        model: The robot as it is believed to be.
        q: Measured configurations [rad, m], a row for each pose.
        poses: For each measured link, by name or index, its poses, or its positions alone [m], in the frame of the
            measurements.
        ref: The link that carries the measuring device; None is the world.
        offsets: The joints whose positions have an unknown offset; default is all with one coordinate of their own.
        placements: The links whose placement is unknown: that of their joint on the parent, or for links that are
            fixed to another one, such as markers and cameras, that on it. Links fixed to such a link stay.
        unknown_frame: Whether the pose of the world, or of `ref`, in the frame of the measurements is unknown.
        prior: Standard deviations of the unknowns before: of angles [rad] and of lengths [m]. Those of the change of
            the frame are 3 rad and 10 m.
        noise: Standard deviations of measured angles [rad] and positions [m]; default is estimated from the errors.
        huber: Errors larger than this many standard deviations count linearly [Huber 1964]; None is least squares.
        iterations: Maximum number of steps.

    Raises:
        ArgumentError: A value is not positive, a pose is none, or there is nothing to measure or to find.
        DtypeError: An argument is of another type, or traced.
        ModelError: A joint in `offsets` has several coordinates, or follows another one.
        NameNotFoundError: There is no such link or joint.
        ShapeError: `q` or poses have another shape.

    Example:
        The elbow of an arm is off by 20 mrad:

        >>> from rbydyn_jax.identification import calibrate
        >>> arm, off = robots.two_link_arm(), jnp.array([0.0, 0.02])
        >>> q = jax.random.uniform(jax.random.key(0), (50, 2))
        >>> seen = jax.vmap(lambda q: link_pose(arm, q + off, "tool"))(q)
        >>> found = calibrate(arm, q, {"tool": seen})
        >>> [round(float(x), 3) + 0.0 for x in found.offsets]
        [0.0, 0.02]
    """
    check_outside_jit("calibrate", model, q, poses, prior, noise)
    model = check_model(model)
    q = check_array(q, "q", (None, model.nq), "times, model.nq").astype(model.inertias.dtype)
    check_finite(q, "q")
    if not len(q):
        raise ArgumentError("q must have at least one row, got none")
    iterations = check_integer(iterations, "iterations", 1)
    pairs = {"prior": prior, "noise": (1.0, 1.0) if noise is None else noise}
    for name, deviations in pairs.items():
        check_positive(check_real(deviations, name, (2,)), name)
    if huber is not None:
        check_positive_number(huber, "huber")
    measured, targets = _measured(model, len(q), poses)
    joints = _joints(model, offsets)
    moved = check_sequence(placements, "placements", "links, by name or index")
    links = tuple(dict.fromkeys(model.link_index(k) for k in moved))
    index = None if ref is None else model.link_index(ref)
    geometry = Geometry(joints, links, check_flag(unknown_frame, "unknown_frame"), targets, index)
    names, scale = geometry.names(model), geometry.deviations(*prior)
    if not names:
        raise ArgumentError("there is nothing to find: neither an offset, nor a placement, nor the frame")
    dtype, frame = q.dtype, np.eye(4)
    if geometry.unknown_frame:
        frame = _aligned(measured, poses_of(geometry, model, q))
        measured = tuple(_moved(np.linalg.inv(frame), y) for y in measured)
    measured = tuple(jnp.asarray(y, dtype) for y in measured)

    def errors_at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        errors, rows = (np.asarray(y, float) for y in linearized(geometry, model, jnp.asarray(x, dtype), q, measured))
        return errors.reshape(len(q), -1, 3), rows.reshape(len(q), -1, 3, len(names))

    eps = float(jnp.finfo(dtype).eps)
    rounding = _ROUNDED * eps * np.array([1.0, _farthest(model, q, measured)])
    found = _solved(errors_at, scale, geometry.is_angle, noise, huber, _SMALLEST * eps**0.5, rounding, iterations)
    off, parts = geometry.split(jnp.asarray(found.x, dtype))
    added = np.zeros(model.nq)
    added[[model.tree.q_slices[k].start for k in joints]] = np.asarray(off)
    changes = jax.vmap(se3.exp)(parts)
    joint_placements, link_placements = geometry.placed(model, changes)
    if links:
        model = with_geometry(model, joint_placements=joint_placements, link_placements=link_placements)
    weighted = found.rows / found.noise[np.where(geometry.is_angle, 0, 1)][:, None, None]
    return CalibrationResult(
        model=model,
        offsets=added,
        frame=frame @ np.asarray(changes[-1], float) if unknown_frame else frame,
        names=names,
        values=found.x,
        covariance=found.covariance * np.outer(scale, scale),
        noise=found.noise,
        residual=_of_kinds(found.errors**2, geometry.is_angle, np.mean) ** 0.5,
        identifiability=combinations_of(names, weighted.reshape(-1, len(names)), eps),
        iterations=found.steps,
        converged=found.converged,
    )


class _Solution(NamedTuple):
    x: np.ndarray
    errors: np.ndarray
    rows: np.ndarray
    noise: np.ndarray
    covariance: np.ndarray
    """In units of the prior."""
    steps: int
    converged: bool


def _of_kinds(values: np.ndarray, is_angle: np.ndarray, f: Callable[[np.ndarray], Any]) -> np.ndarray:
    """A number for all angles and one for all positions, of values (t, g, ...)."""
    return np.array([f(values[:, kind]) if kind.any() else np.nan for kind in (is_angle, ~is_angle)])


def _solved(
    errors_at: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    scale: np.ndarray,
    is_angle: np.ndarray,
    given: tuple[float, float] | None,
    huber: float | None,
    smallest: float,
    rounding: np.ndarray,
    limit: int,
) -> _Solution:
    """The minimum by Gauss-Newton steps, each as short as the cost demands; noise and weights are those of its start.

    Errors are (t, g, 3), their derivatives (t, g, 3, n). It is known as well as the `rounding` of angles and positions
    permits.
    """

    def half_square(errors: np.ndarray, x: np.ndarray) -> float:
        return 0.5 * float((weights[:, :, None] * errors**2).sum() + ((x / scale) ** 2).sum())

    x, steps = np.zeros(len(scale)), 0
    errors, rows = errors_at(x)
    while True:
        noise = np.maximum(_noise(errors, is_angle, huber) if given is None else np.array(given), smallest)
        own = noise[np.where(is_angle, 0, 1)]
        weights = np.ones(errors.shape[:2]) / own**2
        if huber is not None:
            weights *= np.minimum(1.0, huber * own * 3.0**0.5 / np.maximum(np.linalg.norm(errors, axis=2), 1e-300))
        # Singular values, not the normal equations: the square of small noise would hide the prior in the rounding.
        root = np.sqrt(weights)[:, :, None]
        left = np.concatenate([(root[..., None] * rows * scale).reshape(-1, len(x)), np.eye(len(x))])
        right = np.concatenate([(root * errors).reshape(-1), -x / scale])
        U, s, Vt = np.linalg.svd(left, full_matrices=False)
        s, along = np.maximum(s, 1.0), U.T @ right  # the prior alone makes them 1
        move = Vt.T @ (along / s)
        rounded = float(np.nanmax(rounding / noise))
        converged = bool(along @ along <= max(_END, len(x) * rounded**2))
        if converged or steps == limit:
            return _Solution(x, errors, rows, noise, (Vt.T / s**2) @ Vt, steps, converged)
        now, length = half_square(errors, x), 1.0
        most = now + rounded * (2.0 * now) ** 0.5  # the same but for rounding
        while True:
            ahead = x + length * scale * move
            new = errors_at(ahead)
            if half_square(new[0], ahead) <= most or length < _SHORTEST:
                break
            length *= 0.5
        x, (errors, rows), steps = ahead, new, steps + 1


def _noise(errors: np.ndarray, is_angle: np.ndarray, huber: float | None) -> np.ndarray:
    """The standard deviations of angles and positions; with outliers by the median."""
    if huber is None:
        return _of_kinds(errors**2, is_angle, np.mean) ** 0.5
    return _of_kinds((errors**2).sum(axis=2) / _MEDIAN, is_angle, np.median) ** 0.5


def _measured(
    model: Model, count: int, poses: Mapping[str | int, Float[Array, "..."]]
) -> tuple[tuple[np.ndarray, ...], tuple[Target, ...]]:
    """The measurements in float64, and what they are of."""
    check_mapping(poses, "poses", "links to their poses (t, 4, 4) or positions (t, 3)")
    if not poses:
        raise ArgumentError("there is nothing measured: poses has no link")
    arrays, targets = list[np.ndarray](), list[Target]()
    for link, value in poses.items():
        name = f"poses of {link!r}"
        value = check_array(value, name)
        if value.shape not in ((count, 4, 4), (count, 3)):
            raise ShapeError(f"{name} must have shape ({count}, 4, 4) or ({count}, 3), rows of q; got {value.shape}")
        check_finite(value, name)
        if value.ndim == 3:
            check_pose(value, name)
        arrays.append(np.asarray(value, float))
        targets.append(Target(model.link_index(link), value.ndim == 3))
    return tuple(arrays), tuple(targets)


def _farthest(model: Model, q: Array, measured: Sequence[Array]) -> float:
    """The largest coordinate of a link, or of what is measured [m]."""
    positions = [fk_of(model, q)[:, :, :3, 3], *(y if y.ndim == 2 else y[:, :3, 3] for y in measured)]
    return max(float(np.abs(x).max()) for x in positions)


def _moved(frame: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Poses (t, 4, 4) or positions (t, 3) in another frame."""
    return frame @ values if values.ndim == 3 else values @ frame[:3, :3].T + frame[:3, 3]


def _aligned(measured: Sequence[np.ndarray], predicted: Sequence[np.ndarray]) -> np.ndarray:
    """The frame in which predicted poses are nearest to measured ones, by orientations and positions together.

    Where several are as near, it is the one that is turned least.
    """
    pairs = [(y if y.ndim == 2 else y[:, :3, 3], T[:, :3, 3]) for y, T in zip(measured, predicted, strict=True)]
    there, here = (np.concatenate(x) for x in zip(*pairs, strict=True))
    centre, middle = there.mean(axis=0), here.mean(axis=0)
    size = max(float(((here - middle) ** 2).sum()), np.finfo(float).tiny)
    turned = (there - centre).T @ (here - middle) / size + _TURNED_LEAST * np.eye(3)
    for y, T in zip(measured, predicted, strict=True):
        if y.ndim == 3:
            turned += np.einsum("tij,tkj->ik", y[:, :3, :3], T[:, :3, :3]) / len(y)
    U, _, Vt = np.linalg.svd(turned)
    R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    frame = np.eye(4)
    frame[:3, :3], frame[:3, 3] = R, centre - R @ middle
    return frame


def _joints(model: Model, offsets: Sequence[str | int] | None) -> tuple[int, ...]:
    """The joints whose offset is unknown."""
    tree = model.tree
    single = [j.nq == j.nv == 1 and m is None for j, m in zip(tree.joints, tree.mimics, strict=True)]
    if offsets is None:
        return tuple(k for k, one in enumerate(single) if one)
    named = check_sequence(offsets, "offsets", "joints, by name or index")
    chosen = tuple(dict.fromkeys(model.joint_index(k) for k in named))
    if wrong := [k for k in chosen if not single[k]]:
        raise ModelError(f"joint {model.joint_names[wrong[0]]!r} has no single coordinate of its own to be offset")
    return chosen
