r"""Short timings of a path from rest to rest under limits of jerk, by a barrier method.

The path is followed with a phase p in which it starts and ends as $p^3$, as a motion of limited jerk from rest does in
time. The state $x = \dot p^2$ is a spline of p, so that $\ddot p = x'/2$, and the jerk along the path r(p) is
$\sqrt x (r''' x + 3 r'' x' / 2 + r' x'' / 2)$. Newton's method minimizes the duration and a logarithmic barrier of all
limits, with a weight that decreases; each iterate keeps them. The problem is not convex: what is found is a local
minimum in the space of these splines. At last the timing is stretched until it keeps the limits on a finer grid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..algorithms.inverse_dynamics import gravity_forces, rnea
from ..model.model import Model
from ..spatial.safe import safe_divide
from ..xla.control_flow import scan
from ._path import PathPoints, Spline
from ._path_limits import joint_forces_along, joint_limits
from .spline import DEGREE, b_splines

_POINTS = 4  # in each span of the spline
_GAUSS, _CHECKS = 6, 9
POWERS = 6  # of time, in each interval
_EXACT = 13  # points for the square of the third derivative of a polynomial of degree 3 * 5
_WEIGHTS = np.geomspace(1e-2, 1e-6, 24)
_STEPS_PER_WEIGHT = 2
_LARGEST = 0.95  # of the limits, at the start, where those at rest are less
_PHASE = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])


class Phase(NamedTuple):
    """The path parameter as a polynomial of time in each interval, by powers of the time since its start."""

    times: Float[Array, "i+1"]
    coefficients: Float[Array, "i 6"]
    feasible: Bool[Array, ""]


class _Rows(NamedTuple):
    """The limits at each point, in units of themselves: path derivatives and forces.

    Where `counts` is 0 the limits are kept, but the duration is not summed.
    """

    counts: Float[Array, "p"]
    speed: Float[Array, "p n"]
    acceleration: tuple[Array, Array]
    jerk: tuple[Array, Array, Array]
    forces: tuple[Array, Array, Array, Array, Array] | None


def jerk_limited(model: Model, path: Spline, jerk_limit: Float[Array, "n"], torques: bool, spans: int) -> Phase:
    """A short timing from rest to rest.

    Args:
        model: The robot.
        path: The path.
        jerk_limit: Maximum jerks.
        torques: Whether joint forces are limited.
        spans: Number of spans of the spline.
    """
    dtype = path.points.dtype
    count = _POINTS * spans
    # At large limits all of the jerk is in the first and the last interval.
    ends = np.array([0.0, 0.25, 1.0])
    at = np.concatenate([np.arange(count) + 0.5, ends, count - ends]) / count
    basis = jnp.asarray(_basis(spans, tuple(at.tolist())), dtype)
    rows = _rows(model, path, jerk_limit, at, np.arange(len(at)) < count, torques)

    def values(c: Array) -> Array:
        return jnp.einsum("dpk,k->pd", basis, c)

    def merit(c: Array, weight: Array) -> Array:
        return jnp.mean(jax.vmap(_point, (0, 0, None))(values(c), rows, weight))

    def largest(x: Array) -> Array:
        state = jnp.zeros((len(at), 3), dtype).at[:, 0].set(x)
        return jnp.max(jax.vmap(_used)(state, rows))

    levels = jnp.asarray(np.geomspace(1e-10, 1e8, 145), dtype)
    at_rest = largest(jnp.zeros((), dtype))
    usable = jax.vmap(largest)(levels) < jnp.maximum(_LARGEST, 0.5 * (1.0 + at_rest))
    begin = jnp.max(jnp.where(usable, levels, 0.0))
    feasible = (at_rest < 1.0) & jnp.any(usable)
    lengths = jnp.asarray(np.append(0.0, 0.5 ** np.arange(12)), dtype)

    def newton(c: Array, weight: Array) -> tuple[Array, None]:
        weight = weight * jnp.mean(1.0 / jnp.sqrt(values(c)[:, 0]))
        slope, curvature = jax.vmap(_model_of_point, (0, 0, None))(values(c), rows, weight)
        step = _solved(basis, curvature, jnp.einsum("dpk,pd->k", basis, slope))
        tried = jax.vmap(lambda t: merit(c - t * step, weight))(lengths)
        best = jnp.argmin(jnp.where(jnp.isnan(tried), jnp.inf, tried))
        return c - lengths[best] * step, None

    start = jnp.full(basis.shape[-1], jnp.where(feasible, begin, 1.0), dtype)
    weights = jnp.asarray(np.repeat(_WEIGHTS, _STEPS_PER_WEIGHT), dtype)
    c = jax.lax.stop_gradient(scan(newton, start, weights)[0])
    # By the implicit function theorem: what the root of the gradient moves by, for derivatives only.
    weight = jax.lax.stop_gradient(weights[-1] * jnp.mean(1.0 / jnp.sqrt(values(c)[:, 0])))
    slope = jnp.einsum("dpk,pd->k", basis, jax.vmap(jax.grad(_point), (0, 0, None))(values(c), rows, weight))
    curvature = jax.vmap(jax.hessian(_point), (0, 0, None))(values(c), rows, weight)
    step = _solved(basis, jax.lax.stop_gradient(curvature), slope - jax.lax.stop_gradient(slope))
    phase = _in_time(c - step, spans)
    stretch = _stretch(model, path, jerk_limit, phase, torques)
    return Phase(*stretched(phase, stretch)[:2], feasible)


def stretched(phase: Phase, factor: Float[Array, ""]) -> Phase:
    """The timing made longer by a factor."""
    powers = jnp.asarray(np.arange(phase.coefficients.shape[1]), factor.dtype)
    return phase._replace(times=phase.times * factor, coefficients=phase.coefficients / factor ** powers[None])


def squared_jerk(path: Spline, times: Float[Array, "i+1"], coefficients: Float[Array, "i 6"]) -> Float[Array, ""]:
    """The integral of the squared joint jerks, exact: they are polynomials of time between nodes and waypoints."""
    i, since = _passing(path.knots[1:-1], Phase(times, coefficients, jnp.asarray(True)))
    edges = jnp.sort(jnp.concatenate([times, times[i] + since[:, 0]]))
    nodes, weights = np.polynomial.legendre.leggauss(_EXACT)
    T = jnp.diff(edges)
    t = edges[:-1, None] + 0.5 * T[:, None] * jnp.asarray(nodes + 1.0, times.dtype)[None]
    i = jnp.clip(jnp.searchsorted(times, 0.5 * (edges[1:] + edges[:-1]), side="right") - 1, 0, len(coefficients) - 1)
    jerk = _states(path, coefficients[i], t - times[i][:, None])[3]
    return jnp.sum(0.5 * T[:, None, None] * jnp.asarray(weights, times.dtype)[None, :, None] * jerk**2)


@lru_cache(maxsize=16)
def _basis(spans: int, at: tuple[float, ...]) -> np.ndarray:
    """The splines and their first two derivatives, halved: x, its control and its rate (3, p, k)."""
    values = [b_splines(spans + DEGREE, np.array(at), d) for d in range(3)]
    return np.stack([values[0], 0.5 * values[1], 0.5 * values[2]])


def _rows(model: Model, path: Spline, jerk_limit: Array, phase: np.ndarray, counts: np.ndarray, torques: bool) -> _Rows:
    dtype = path.points.dtype
    s, *by_phase = (jnp.asarray(_PHASE.deriv(d)(phase) if d else _PHASE(phase), dtype) for d in range(4))
    d1, d2, d3 = (x[:, None] for x in by_phase)
    at = path.at(s)
    first, second = at.first * d1, at.second * d1**2 + at.first * d2
    third = at.third * d1**3 + 3.0 * at.second * d1 * d2 + at.first * d3
    speed, acceleration, jerk = (
        joint_limits(x).scale[None] for x in (model.velocity_limit, model.acceleration_limit, jerk_limit)
    )
    forces = None
    if torques:
        limit = joint_limits(model.effort_limit)
        a, b, rest = joint_forces_along(model, PathPoints(at.q, first, second, third))
        viscous = jnp.abs(first) * model.damping[None]
        room = limit.bound - model.friction * limit.scale
        scale = limit.scale[None]
        forces = (a * scale, b * scale, rest * scale, viscous * scale, jnp.broadcast_to(room, a.shape))
    return _Rows(
        jnp.asarray(counts, dtype),
        first * speed,
        (first * acceleration, second * acceleration),
        (third * jerk, 3.0 * second * jerk, first * jerk),
        forces,
    )


def _used(state: Float[Array, "3"], rows: _Rows) -> Float[Array, "r"]:
    """How much of each limit is used: less than 1 within."""
    x, u, w = state
    root = jnp.sqrt(x)
    a1, a2 = rows.acceleration
    j3, j2, j1 = rows.jerk
    acceleration = a1 * u + a2 * x
    jerk = root * (j3 * x + j2 * u + j1 * w)
    used = [rows.speed**2 * x, acceleration, -acceleration, jerk, -jerk]
    if rows.forces is not None:
        a, b, rest, viscous, room = rows.forces
        force, lost = a * u + b * x + rest, viscous * root + 1.0 - room
        used += [force + lost, lost - force]
    return jnp.concatenate(used)


def _point(state: Float[Array, "3"], rows: _Rows, weight: Array) -> Array:
    """Duration and barrier at one point; NaN outside of the limits."""
    return rows.counts / jnp.sqrt(state[0]) - weight * jnp.sum(jnp.log(1.0 - _used(state, rows)))


def _model_of_point(state: Array, rows: _Rows, weight: Array) -> tuple[Array, Array]:
    """Gradient of `_point` and its Hessian without the curvature of the limits, which is positive."""
    left = 1.0 - _used(state, rows)
    J = jax.jacfwd(_used)(state, rows) / left[:, None]
    slope, curvature = weight * jnp.sum(J, axis=0), weight * (J.T @ J)
    x = state[0]
    return slope.at[0].add(-0.5 * rows.counts * x**-1.5), curvature.at[0, 0].add(0.75 * rows.counts * x**-2.5)


def _solved(basis: Array, curvature: Array, slope: Array) -> Array:
    spread = jnp.einsum("pde,epk->dpk", curvature, basis)
    H = jnp.einsum("dpk,dpl->kl", basis, spread)
    scale = 1.0 / jnp.sqrt(jnp.abs(jnp.diagonal(H)))
    H = H * scale[:, None] * scale[None]
    damped = H + 1e-12 * jnp.eye(len(slope), dtype=slope.dtype)
    return scale * jnp.linalg.solve(damped, scale * slope)


def _in_time(c: Array, spans: int) -> Phase:
    """The path parameter with its first two derivatives at nodes, and polynomials of degree 5 between them."""
    dtype = c.dtype
    edges = np.linspace(0.0, 1.0, _POINTS * spans + 1)
    at_edges = jnp.asarray(_basis(spans, tuple(edges.tolist())), dtype)
    x, u = at_edges[0] @ c, at_edges[1] @ c
    nodes, weights = np.polynomial.legendre.leggauss(_GAUSS)
    width = 1.0 / (_POINTS * spans)
    inner = (edges[:-1, None] + 0.5 * width * (nodes + 1.0)[None]).reshape(-1)
    pace = jnp.asarray(_basis(spans, tuple(inner.tolist()))[0], dtype) @ c
    T = 0.5 * width * (1.0 / jnp.sqrt(pace)).reshape(-1, _GAUSS) @ jnp.asarray(weights, dtype)
    s, d1, d2 = (jnp.asarray(p(edges), dtype) for p in (_PHASE, _PHASE.deriv(1), _PHASE.deriv(2)))
    ds, dds = d1 * jnp.sqrt(x), d1 * u + d2 * x
    s0, v0, a0 = s[:-1], ds[:-1] * T, 0.5 * dds[:-1] * T**2
    gap, rate, bend = s[1:] - s0 - v0 - a0, ds[1:] * T - v0 - 2.0 * a0, dds[1:] * T**2 - 2.0 * a0
    cubic = [10.0 * gap - 4.0 * rate + 0.5 * bend, -15.0 * gap + 7.0 * rate - bend, 6.0 * gap - 3.0 * rate + 0.5 * bend]
    by_power = [x / T**k for k, x in enumerate((s0, v0, a0, *cubic))]
    times = jnp.append(jnp.zeros_like(T[:1]), jnp.cumsum(T))
    return Phase(times, jnp.stack(by_power, axis=1), jnp.asarray(True))


def _stretch(model: Model, path: Spline, jerk_limit: Array, phase: Phase, torques: bool) -> Array:
    """The factor by which the timing has to be longer for no limit to be exceeded on a fine grid."""
    T, c = jnp.diff(phase.times), phase.coefficients
    t = T[:, None] * jnp.asarray(np.linspace(0.0, 1.0, _CHECKS), T.dtype)[None]
    i, since = _passing(path.knots[1:-1], phase)
    found = [_states(path, c, t), _states(path, c[i], since, -1.0), _states(path, c[i], since, 1.0)]

    def largest(ratio: Callable[[_States], Array]) -> Array:
        smooth, *kinks = (ratio(x) for x in found)
        return jnp.max(jnp.stack([_hull(smooth), *(jnp.max(x, initial=1e-30) for x in kinks)]))

    def relative(k: int, limit: Array) -> Callable[[_States], Array]:
        scale = joint_limits(limit).scale[None, None]
        return lambda x: jnp.concatenate([x[k] * scale, -x[k] * scale], axis=-1)

    def force(x: _States) -> Array:
        q, v, a = (y.reshape(-1, model.nv) for y in x[:3])
        rest = jax.vmap(gravity_forces, (None, 0))(model, q)
        moving = jax.vmap(rnea, (None, 0, 0, 0))(model, q, v, a) - rest
        room = (model.effort_limit - model.friction)[None] - model.damping[None] * jnp.abs(v)
        used = jnp.concatenate([safe_divide(moving, room - rest), safe_divide(-moving, room + rest)], axis=-1)
        return used.reshape(*x[0].shape[:2], 2 * model.nv)

    factors = [largest(relative(1, model.velocity_limit)), jnp.sqrt(largest(relative(2, model.acceleration_limit)))]
    factors.append(jnp.cbrt(largest(relative(3, jerk_limit))))
    if torques:
        factors.append(jnp.sqrt(largest(force)))
    return jnp.max(jnp.stack(factors)) * (1.0 + 1e-7)


_States = tuple[Array, Array, Array, Array]


def _states(path: Spline, c: Array, t: Array, side: float = 0.0) -> _States:
    """Position, velocity, acceleration and jerk at the times t (i, m) in intervals; beside a kink on one side of it."""
    powers = [jnp.zeros_like(t)] * 4
    for k in reversed(range(c.shape[1])):  # Horner's rule for a polynomial and its derivatives
        s, d1, d2, d3 = powers
        powers = [s * t + c[:, k : k + 1], d1 * t + s, d2 * t + 2.0 * d1, d3 * t + 3.0 * d2]
    s, d1, d2, d3 = powers
    at = path.at(jnp.clip(s + 16.0 * side * jnp.finfo(s.dtype).eps, 0.0, 1.0).reshape(-1))
    q, first, second, third = (x.reshape(*t.shape, x.shape[-1]) for x in at)
    d1, d2, d3 = d1[..., None], d2[..., None], d3[..., None]
    return q, first * d1, first * d2 + second * d1**2, first * d3 + 3.0 * second * d1 * d2 + third * d1**3


def _passing(knots: Array, phase: Phase) -> tuple[Array, Array]:
    """The intervals in which the waypoints are passed, and when since their starts."""
    T, c = jnp.diff(phase.times), phase.coefficients
    i = jnp.clip(jnp.searchsorted(c[:, 0], knots, side="right") - 1, 0, len(T) - 1)
    t = 0.5 * T[i]
    for _ in range(6):
        value = slope = jnp.zeros_like(t)
        for k in reversed(range(c.shape[1])):
            value, slope = value * t + c[i, k], slope * t + value
        t = jnp.clip(t - safe_divide(value - knots, slope), 0.0, T[i])
    return i, t[:, None]


def _hull(y: Float[Array, "i m n"]) -> Array:
    """The largest value of the parabolas through three values each, or what is above it."""
    control = 2.0 * y[:, 1::2] - 0.5 * (y[:, :-1:2] + y[:, 2::2])
    return jnp.maximum(jnp.max(y), jnp.max(control))
