r"""Fitting the parameters of a robot to its measured torques.

The errors of the torques are linear in the parameters, so that the data enter through their normal equations alone, one
for each joint. With the prior, deviations from the initial robot in units of the size of each link, they have one
minimum and a Hessian $A$. The robot that can exist is the one nearest to it in the norm of $A$ (`consistency`). Motor
constants multiply the parameters: they are found by Gauss-Newton's method, from the same sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_flag, check_integer, check_outside_jit, check_positive, check_positive_number
from .._errors import ArgumentError
from ..model.model import Model
from ..spatial import inertia
from .consistency import inside, nearest
from .data import TrajectoryData, check_data
from .normal_equations import JointSums, joint_sums, summed, torques_of
from .parameter_vector import TERMS, Term, check_moving, check_terms, velocity_names
from .tables import unknowns_table
from .unknowns import Unknowns, unknowns_of

_REWEIGHTED = 10  # how often the noise of the joints is estimated anew: it changes by less than a percent
_ROBUST_PASSES = 8  # how often outliers are weighted anew
_LINEARISED = 30  # how often, if there are gains
_STILL = 1e-4  # twice the change of half a chi-square at which they stay
_SMALLEST_NOISE = 1e-4  # of a joint, relative to its torque
_CERTAIN = 3.0  # deviations by which a motor constant has to be negative
_LARGEST = 1e30  # of measured numbers
_LARGEST_PRIOR = 1e6  # with a larger one the rounding of the sums would tell of parameters
_MEDIAN = 1.4826  # the standard deviation of normal numbers, in units of the median of their sizes


@dataclass(frozen=True)
class FitResult:
    """A fitted robot; `print` shows it as a table.

    Attributes:
        model: The robot with the fitted parameters.
        names: The names of the unknowns.
        values: Their values.
        initial: Their values before.
        covariance: Covariance of the unknowns without the condition that the robot can exist: that of the noise and of
            the prior together. A parameter of a drive that is zero initially, and that the motion does not tell, has
            an infinite variance.
        noise: Standard deviation of the error of each torque, outliers of a robust fit excluded, estimated or given
            [N m, N].
        residual: Root mean square of the error of each torque after the fit, outliers included [N m, N].
        payload: The ten parameters of the payload about the origin of its link in its axes, if one was asked for.
        constants: Torque or force of each motor per ampere, if the data have currents [N m/A, N/A].
        iterations: Newton steps; zero where the fit is linear.
        converged: Whether they came to an end.
    """

    model: Model
    names: tuple[str, ...]
    values: np.ndarray
    initial: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    payload: np.ndarray | None
    constants: np.ndarray | None
    iterations: int
    converged: bool

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each unknown; infinite where neither the motion nor an initial value tells it."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def consistent(self) -> dict[str, bool]:
        """For each moving link whether a body with its inertia can exist."""
        model = self.model
        possible = np.asarray(jax.vmap(inertia.is_consistent)(model.link_inertias))
        bodies = model.tree.link_bodies
        return {name: bool(ok) for name, ok, body in zip(model.link_names, possible, bodies, strict=True) if body >= 0}

    def unknowns_table(self) -> list[str]:
        """The lines of a table: what each unknown was, what it is, and its standard deviation."""
        return unknowns_table(self.names, self.initial, self.values, self.deviation)

    def __str__(self) -> str:
        lines = self.unknowns_table()
        joints = velocity_names(self.model)
        width = max(map(len, joints), default=0)
        lines.append(f"{'':{width}}  {'residual':>10}")
        lines += [f"{name:{width}}  {x:10.3g}" for name, x in zip(joints, self.residual, strict=True)]
        return "\n".join(lines)

    __repr__ = __str__


def fit(
    model: Model,
    data: TrajectoryData,
    *,
    terms: Sequence[Term] = TERMS,
    links: Sequence[str | int] | None = None,
    payload: str | int | None = None,
    consistent: bool = True,
    prior: float = 1.0,
    noise: Float[Array, "nv"] | None = None,
    huber: float | None = None,
    width: float | None = None,
    constants: Float[Array, "nv"] | None = None,
    iterations: int = 500,
) -> FitResult:
    r"""The robot whose torques are nearest to the measured ones.

    Minimizes $\sum_{t,j} (\tau_{tj} - Y_{tj} \pi)^2 / \sigma_j^2 + \sum_k (x_k - x_k^0)^2 / s_k^2$: the errors of the
    torques in units of the noise of each joint, and the deviations from the initial robot in units of `prior` times the
    size of the parameter. Without `consistent` the minimum is linear; with it, every link has a mass distribution and
    friction is not negative, in every iterate [Wensing, Kim and Slotine 2018]. Called outside of `jit`; torques and
    their derivatives by the parameters are in the dtype of the data, all else in float64.

    Args:
        model: The initial robot, such as that of CAD. What is not fitted stays as it is.
        data: Motion and torques of the motors.
        terms: What is fitted: some of ``"inertia"``, ``"armature"``, ``"damping"``, ``"friction"``.
        links: The links whose inertia is fitted, by name or index; default is one for each body, that whose frame is
            the body's, or none if there is a payload.
        payload: A link, by name or index, to which a body of unknown inertia is fixed.
        consistent: Whether all fitted links and the payload have to be bodies that can exist.
        prior: Standard deviation of the initial parameters, relative to the size of each, at most 1e6. The size of a
            link's parameters is $m$, $m r$ and $m r^2$ with its mass and extent; that of a drive's is what explains the
            torque alone, if not its value, and infinite where it is zero and no torque depends on it; that of a payload
            10 kg and 0.3 m.
        noise: Standard deviation of each measured torque [N m, N], of currents times `constants`; default is estimated
            from the errors of the fit, with `huber` from their median.
        huber: Errors larger than this many standard deviations count linearly [Huber 1964]; None is least squares.
        width: Of the smooth Coulomb friction [rad/s, m/s]; None is that of sign(v). See `friction_forces`.
        constants: If the data have currents instead of torques: the torque that each motor is believed to give at its
            joint, per ampere [N m/A, N/A], the ratio of the gear included. They are fitted with the rest; something has
            to be known besides, such as inertias, since all torques scale with them.
        iterations: Maximum number of Newton steps.

    Raises:
        ArgumentError: A value is not positive, `prior` or measured values are too large, `noise` too small, a term is
            unknown, a link does not move, there is nothing to fit, all currents of a joint are zero, or, with
            `consistent`, a current has the sign opposite to that of its torque.
        DtypeError: An argument is of another type, or traced.
        ModelError: The robot has no joints.
        NameNotFoundError: There is no such link.
        ShapeError: The data do not belong to the robot, or `noise` or `constants` is not of shape `(model.nv,)`.

    Example:
        >>> from rbydyn_jax.identification import TrajectoryData, fit, motor_torques
        >>> arm, key = robots.two_link_arm(), jax.random.key(0)
        >>> q, v, a = jax.random.normal(key, (3, 100, 2))
        >>> loaded = attach_payload(arm, "tool", 0.5)
        >>> tau = jax.vmap(motor_torques, (None, 0, 0, 0))(loaded, q, v, a)
        >>> found = fit(arm, TrajectoryData(q, v, a, tau), terms=("inertia",), payload="tool")
        >>> round(float(found.payload[0]), 2)
        0.5
    """
    check_outside_jit("fit", model, data, noise, constants)
    model, terms = check_moving(model), check_terms(terms)
    data = check_data(data, model)
    iterations = check_integer(iterations, "iterations", 1)
    if check_positive_number(prior, "prior") > _LARGEST_PRIOR:
        raise ArgumentError(f"prior must be at most {_LARGEST_PRIOR:g}, which says next to nothing; got {prior:g}")
    for name, value in (("huber", huber), ("width", width)):
        if value is not None:
            check_positive_number(value, name)
    if noise is not None:
        check_positive(check_array(noise, "noise", (model.nv,), "model.nv"), "noise")
    given = None if noise is None else np.asarray(noise, float)
    if constants is not None:
        check_positive(check_array(constants, "constants", (model.nv,), "model.nv"), "constants")
        _check_currents(model, data)
        measured = np.asarray(data.tau, float) * np.asarray(constants, float)
        data = TrajectoryData(*data.motion, jnp.asarray(measured, data.tau.dtype))
    _check_sizes(data, given)
    weights, known = np.ones((len(data), model.nv)), given
    for _ in range(1 if huber is None else _ROBUST_PASSES):
        sums = joint_sums(model, data, weights, width)
        unknowns = unknowns_of(model, sums, links, payload, terms, prior, constants is not None)
        if not unknowns.names:
            raise ArgumentError("there is nothing to fit: neither a link, nor a payload, nor another term")
        found = _minimum(unknowns, sums, known, unknowns.mean)
        if huber is not None:
            errors = np.abs(_errors(model, data, unknowns, found.x, width))
            if given is None:
                known = np.maximum(_MEDIAN * np.median(errors, axis=0), _least_noise(sums))
            weights = np.minimum(1.0, huber * known / np.maximum(errors, 1e-300))
    if check_flag(consistent, "consistent"):
        if constants is not None:
            _check_signs(model, found, unknowns.deviation, np.asarray(constants, float))
        found = _minimum(unknowns, sums, known, found.x, iterations)
    x, scale = found.x, unknowns.deviation
    residual = np.sqrt(np.mean(_errors(model, data, unknowns, x, width) ** 2, axis=0))
    covariance = found.hessian.inverse * np.outer(scale, scale)
    covariance[unknowns.silent, unknowns.silent] = np.inf
    values, initial, gains = x.copy(), unknowns.mean.copy(), np.ones(model.nv)
    if constants is not None:  # the unknown is what is measured, in units of the torque: the inverse of the constant
        gains, initial[-model.nv :] = x[-model.nv :], np.asarray(constants)
        values[-model.nv :] = initial[-model.nv :] / gains
        slopes = np.ones(len(x))
        slopes[-model.nv :] = -values[-model.nv :] / gains
        covariance *= np.outer(slopes, slopes)
    return FitResult(
        model=unknowns.applied(model, x),
        names=unknowns.names,
        values=values,
        initial=initial,
        covariance=covariance,
        noise=found.noise / gains,
        residual=residual / gains,
        payload=None if unknowns.payload is None else x[10 * len(unknowns.links) : 10 * unknowns.blocks],
        constants=None if constants is None else values[-model.nv :],
        iterations=found.steps,
        converged=found.converged,
    )


def _check_sizes(data: TrajectoryData, noise: np.ndarray | None) -> None:
    """Refuses numbers whose squares, divided by those of the noise, are beyond floating point.

    Raises:
        ArgumentError: Measured values are too large, or the noise is too small.
    """
    for name in ("q", "v", "a", "tau"):
        values = getattr(data, name)
        largest = float(jnp.abs(values).max(initial=0.0))
        if largest > (limit := min(_LARGEST, float(jnp.finfo(values.dtype).max) ** 0.4)):
            raise ArgumentError(f"data.{name} must be at most {limit:g}, got {largest:g}")
    if noise is not None and (noise < 1.0 / _LARGEST).any():
        raise ArgumentError(f"noise must be at least {1.0 / _LARGEST:g}, got {noise.tolist()}")


def _check_currents(model: Model, data: TrajectoryData) -> None:
    """Refuses currents that any constant explains.

    Raises:
        ArgumentError: All currents of a joint are zero.
    """
    currents = np.asarray(data.tau)
    if silent := [name for name, own in zip(velocity_names(model), currents.T, strict=True) if not own.any()]:
        raise ArgumentError(
            f"data.tau: the currents of joint {', '.join(map(repr, silent))} are all zero: they do not tell its "
            "constant. Fit torques instead, or a robot in which this joint is fixed"
        )


def _check_signs(model: Model, found: _Minimum, scale: np.ndarray, constants: np.ndarray) -> None:
    """Refuses currents against the torques that the motion needs: no positive constant explains them.

    Raises:
        ArgumentError: The constant of a joint is negative, by more than its deviation allows.
    """
    gains = found.x[-model.nv :]
    deviations = (scale * np.sqrt(found.hessian.inverse.diagonal()))[-model.nv :]
    for name, gain, deviation, believed in zip(velocity_names(model), gains, deviations, constants, strict=True):
        if gain < -_CERTAIN * deviation:
            raise ArgumentError(
                f"the current of {name!r} has the sign opposite to that of its torque: data.tau and constants say "
                f"{believed:g}, the motion {believed / gain:.3g} per ampere. Turn the sign of the current"
            )


def _errors(model: Model, data: TrajectoryData, unknowns: Unknowns, x: np.ndarray, width: float | None) -> np.ndarray:
    """The errors (t, nv) of all measurements; with gains, in units of the torque that was believed."""
    gains = x[len(x) - unknowns.gains :] if unknowns.gains else 1.0
    return np.asarray(data.tau, float) - gains * torques_of(unknowns.applied(model, x), data, width)


class _Hessian(NamedTuple):
    """That of half the cost in units of the prior, without the condition that bodies can exist.

    Its eigenvalues are kept, not their sum: beside much larger ones the 1 of the prior would be lost to rounding.
    """

    values: np.ndarray
    axes: np.ndarray

    @property
    def root(self) -> np.ndarray:
        """A matrix whose square is the Hessian."""
        return np.sqrt(self.values)[:, None] * self.axes.T

    @property
    def inverse(self) -> np.ndarray:
        """The covariance."""
        return (self.axes / self.values) @ self.axes.T


class _Minimum(NamedTuple):
    x: np.ndarray
    hessian: _Hessian
    noise: np.ndarray
    steps: int
    converged: bool


def _minimum(
    unknowns: Unknowns, sums: list[JointSums], given: np.ndarray | None, x: np.ndarray, limit: int | None = None
) -> _Minimum:
    """The minimum; with a limit of the number of steps that of bodies that can exist.

    With gains the errors are linearized anew until the minimum stays where it is.
    """
    steps, scale, count = 0, unknowns.deviation, unknowns.blocks
    for _ in range(_LINEARISED):
        before, converged = x, True
        x, hessian, noise = _linear(unknowns, unknowns.linearized(sums, x), given)
        if limit is not None:
            start = inside(unknowns.mean / scale, count)
            y, taken, converged = nearest(x / scale, hessian.root, start, count, limit)
            x, steps = scale * y, steps + taken
        moved, size = (float(((hessian.root @ (y / scale)) ** 2).sum()) for y in (x - before, x))
        if not unknowns.gains or moved <= _STILL * max(1.0, 1e-10 * size):
            return _Minimum(x, hessian, noise, steps, converged)
    return _Minimum(x, hessian, noise, steps, False)


def _linear(
    unknowns: Unknowns, sums: list[JointSums], given: np.ndarray | None
) -> tuple[np.ndarray, _Hessian, np.ndarray]:
    """The minimum, the Hessian and the noise of the joints.

    Directions of which the data tell less than the rounding of rows and of their sums stay as they were.
    """
    base, basis, scale = unknowns.base, unknowns.basis, unknowns.deviation
    initial, scaled = base + basis @ unknowns.mean, basis * scale
    least = _least_noise(sums)
    rounding = float(np.finfo(float).eps)
    noise = least if given is None else given  # from above the prior could explain what a large noise hides
    for _ in range(1 if given is not None else _REWEIGHTED):
        matrix, vector = summed(sums, noise, len(base))
        square, gradient = scaled.T @ matrix @ scaled, scaled.T @ (vector - matrix @ initial)
        units = (1.0 + square.diagonal()) ** -0.5  # with them the rounding is the same in all directions
        told, axes = np.linalg.eigh(square * np.outer(units, units))
        told = np.sqrt(np.where(told > rounding * told[-1], told, 0.0))
        along = np.where(told > 0.0, axes.T @ (units * gradient) / np.where(told > 0.0, told, 1.0), 0.0)
        left, values, right = np.linalg.svd(told[:, None] * axes.T / units)
        values = np.where(values > len(scale) * rounding * values[0], values, 0.0)
        x = unknowns.mean + scale * (right.T @ (values / (values**2 + 1.0) * (left.T @ along)))
        used = noise
        if given is None:
            noise = np.maximum(np.sqrt([own.squared_error(base + basis @ x) for own in sums]), least)
    return x, _Hessian(values**2 + 1.0, right.T), used


def _least_noise(sums: list[JointSums]) -> np.ndarray:
    """The smallest noise of each joint that an estimate may have."""
    sizes = np.sqrt([own.square / max(own.weight, 1.0) for own in sums])
    return np.where(sizes > 0.0, _SMALLEST_NOISE * sizes, 1.0)
