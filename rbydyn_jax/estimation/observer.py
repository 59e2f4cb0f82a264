r"""The momentum observer: external torques without accelerations.

The momentum of a robot changes by $\dot p = \tau - \tau_{fric} + C^T v - g + \tau_{ext}$. The observer integrates what
is known of it and pulls its prediction $\hat p$ to the measured momentum; the pull
$r = K (p - \hat p)$ is a first-order low pass of the external torques, $\dot r = K (\tau_{ext} - r)$, each joint for
itself [De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006].

A joint whose sample is not finite is skipped: its estimate and its known rate stay what they were.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_each, check_positive
from .._errors import DtypeError, ShapeError
from .._jit import jit_public
from .._result import Result
from ..algorithms.arguments import arguments
from ..algorithms.energy import damping_forces, friction_forces
from ..algorithms.generalized_momentum import generalized_momentum
from ..model.model import Model, check_model
from ..xla.control_flow import scan


class MomentumObserver(Result):
    """An observer after a sample.

    Attributes:
        torque: The estimate of the external torques [N m, N].
        momentum: The predicted generalized momentum [kg m^2/s, kg m/s].
        rate: The known rate of the momentum at the sample [N m, N].
    """

    torque: Float[Array, "nv"]
    momentum: Float[Array, "nv"]
    rate: Float[Array, "nv"]


def _measured(model: Model, q: Array, v: Array, tau: Array, width: float | None) -> tuple[Array, Array]:
    """The momentum and its known rate."""
    found = generalized_momentum(model, q, v)
    return found.momentum, tau + damping_forces(model, v) + friction_forces(model, v, width=width) + found.drift


@jit_public("width")
def start_observer(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    *,
    width: float | None = None,
) -> MomentumObserver:
    """An observer at its first sample, with no external torques.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tau: Torques or forces of the motors, without external ones [N m, N].
        width: Of the smooth Coulomb friction [rad/s, m/s]; None is that of sign(v). See `friction_forces`.

    Raises:
        ArgumentError: `width` is not positive.
        ShapeError: An argument has another shape.
    """
    model, q, v, tau = arguments(model, q=q, v=v, tau=tau)
    momentum, rate = _measured(model, q, v, tau, width)
    return MomentumObserver(jnp.zeros_like(rate), momentum, rate)


@jit_public("width", period=check_positive, gain=check_positive)
def observe(
    model: Model,
    observer: MomentumObserver,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    period: Float[Array, ""] | float,
    gain: Float[Array, "nv"] | float,
    *,
    width: float | None = None,
) -> MomentumObserver:
    r"""The observer after one more sample.

    The known rate is integrated by the trapezoidal rule and the observer itself by the implicit Euler method, so that
    it is stable for every gain: $r_{k+1} = (r_k + K \Delta t\, \tau_{ext}) / (1 + K \Delta t)$. O(n). What of a
    sample is not finite is skipped: the estimate stays.

    Args:
        model: The robot, with its damping and friction.
        observer: The observer after the sample before.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tau: Torques or forces of the motors, without external ones [N m, N].
        period: Time since the sample before [s].
        gain: Bandwidth of the low pass, of each velocity or of all [1/s]. Noise of the velocities enters with the gain.
        width: Of the smooth Coulomb friction [rad/s, m/s]; None is that of sign(v). See `friction_forces`.

    Raises:
        ArgumentError: `period`, `gain` or `width` is not positive.
        DtypeError: `observer` is not a `MomentumObserver`.
        ShapeError: An argument has another shape, or `observer` is that of another robot.

    Example:
        A hanging pendulum of 2 kg that does not move, though its motor pulls with 3 N m, is held from outside:

        >>> from rbydyn_jax.estimation import observe, start_observer
        >>> arm, at, tau = robots.pendulum(mass=2.0), (jnp.zeros(1), jnp.zeros(1)), jnp.array([3.0])
        >>> observer = start_observer(arm, *at, jnp.zeros(1))
        >>> for _ in range(100):
        ...     observer = observe(arm, observer, *at, tau, 0.01, 20.0)
        >>> round(float(observer.torque[0]), 3)
        -3.0
    """
    model, q, v, tau = arguments(model, q=q, v=v, tau=tau)
    if not isinstance(observer, MomentumObserver):
        raise DtypeError(f"observer must be a MomentumObserver, got {type(observer).__name__}")
    before = MomentumObserver(
        *(check_array(x, f"observer.{k}", (model.nv,), "model.nv").astype(v.dtype) for k, x in vars(observer).items())
    )
    step = check_array(period, "period", ()).astype(v.dtype)
    gains = check_each(gain, "gain", model.nv, "model.nv").astype(v.dtype)
    momentum, rate = _measured(model, q, v, tau, width)
    return _after(before, momentum, rate, step, gains)


@jit_public("width", configurations=(), period=check_positive, gain=check_positive)
def external_torques(
    model: Model,
    q: Float[Array, "t nq"],
    v: Float[Array, "t nv"],
    tau: Float[Array, "t nv"],
    period: Float[Array, ""] | float,
    gain: Float[Array, "nv"] | float,
    *,
    width: float | None = None,
) -> Float[Array, "t nv"]:
    """The external torques along a log: `observe`, sample after sample, which skips what is not finite.

    Momenta and rates of all samples are computed as one batch; what is scanned is a low pass.

    Args:
        model: The robot, with its damping and friction.
        q: Configurations [rad, m].
        v: Velocities [rad/s, m/s].
        tau: Torques or forces of the motors, without external ones [N m, N].
        period: Time between two rows [s].
        gain: Bandwidth of the low pass, of each velocity or of all [1/s].
        width: Of the smooth Coulomb friction [rad/s, m/s]; None is that of sign(v).

    Returns:
        A row for each sample, the first one zero.

    Raises:
        ArgumentError: `period`, `gain` or `width` is not positive.
        ShapeError: An argument has another shape, or there is no row.
    """
    model = check_model(model)
    v = check_array(v, "v", (None, model.nv), "times, model.nv")
    if not len(v):
        raise ShapeError("v must have a row for each sample, got none")
    q = check_array(q, "q", (len(v), model.nq), "rows of v, model.nq")
    tau = check_array(tau, "tau", (len(v), model.nv), "rows of v, model.nv")
    step = check_array(period, "period", ()).astype(v.dtype)
    gains = check_each(gain, "gain", model.nv, "model.nv").astype(v.dtype)
    momentum, rate = jax.vmap(lambda q, v, tau: _measured(model, q, v, tau, width))(q, v, tau)

    def advance(observer: MomentumObserver, at: tuple[Array, Array]) -> tuple[MomentumObserver, Array]:
        observer = _after(observer, *at, step, gains)
        return observer, observer.torque

    start = MomentumObserver(jnp.zeros_like(rate[0]), momentum[0], rate[0])
    _, rest = scan(advance, start, (momentum[1:], rate[1:]))
    return jnp.concatenate([start.torque[None], rest])


def _after(before: MomentumObserver, momentum: Array, rate: Array, dt: Array, gains: Array) -> MomentumObserver:
    """The observer after one more sample; before the first one that is finite, it waits for one."""
    known = jnp.isfinite(momentum) & jnp.isfinite(rate)
    begun = jnp.isfinite(before.momentum) & jnp.isfinite(before.rate)
    last = jnp.where(begun, before.rate, 0.0)
    rate = jnp.where(known, rate, last)
    predicted = jnp.where(begun, before.momentum, 0.0) + 0.5 * dt * (last + rate)
    pull = gains * (jnp.where(known, momentum, 0.0) - predicted) / (1.0 + gains * dt)
    torque = jnp.where(known & begun, pull, before.torque)
    return MomentumObserver(
        torque,
        jnp.where(begun, predicted + dt * torque, momentum),
        jnp.where(begun | known, rate, before.rate),
    )
