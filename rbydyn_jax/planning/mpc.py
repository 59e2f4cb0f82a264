"""Receding-horizon control: `mpc`, from measured states to torques, one compiled call per tick."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_integer, check_outside_jit
from .._errors import ArgumentError, DtypeError
from .._jit import full_precision
from .control_problem import ControlProblem, held
from .ilqr import IlqrResult, ilqr
from .problem import positive


class Controller:
    """A controller that is called with measured states, made by `mpc`.

    Attributes:
        plan: The result of the last tick; None before the first.
    """

    plan: IlqrResult | None

    def __init__(self, problem: ControlProblem, period: Array, iterations: int) -> None:
        self._problem, self._period, self._iterations = problem, period, iterations
        self.plan = None

    def __call__(
        self,
        q: Float[np.ndarray, "nq"],
        v: Float[np.ndarray, "nv"],
        t: float = 0.0,
        *,
        problem: ControlProblem | None = None,
    ) -> Float[np.ndarray, "nv"]:
        """The torques for the next period.

        Args:
            q: Measured configuration [rad, m].
            v: Measured velocity [rad/s, m/s].
            t: Time, which the costs are given [s].
            problem: The problem from now on, such as one with another target; one of the same structure does not
                recompile.

        Raises:
            ArgumentError: A number is not finite, or the problem has another robot or number of steps, or a horizon
                shorter than the period.
            DtypeError: An argument is of another type, or a cost returns no array of floats.
            ShapeError: An argument has another shape.
        """
        if problem is not None:
            self._problem = _checked(problem, self._problem, self._period)
        model = self._problem.model
        at, moving = check_array(q, "q", (model.nq,), "model.nq"), check_array(v, "v", (model.nv,), "model.nv")
        check_finite(at, "q")
        check_finite(moving, "v")
        taus = held(self._problem, at.astype(self._problem.dt.dtype)) if self.plan is None else self.plan.taus
        time = check_array(t, "t", ()).astype(model.inertias.dtype)
        check_finite(time, "t")
        plan = _tick(self._problem, at, moving, time, taus, self._period, self._iterations)
        self.plan = plan
        return np.asarray(plan.taus[0])

    def reset(self) -> None:
        """Forgets the plan: the next tick starts from gravity's torques."""
        self.plan = None


def mpc(problem: ControlProblem, *, period: float | None = None, iterations: int = 1) -> Controller:
    """A model predictive controller: iLQR over a receding horizon, started from the plan of the tick before.

    Each call of the controller is one compiled call: the last plan, later by the period, is followed from the measured
    state, and improved by some iterations of `ilqr`. Torques are within their limits and never anything but finite:
    without a finite plan the old one goes on.

    Args:
        problem: The problem of one horizon.
        period: Time between two calls [s]; default is the time step of the problem.
        iterations: Number of iterations at each tick.

    Returns:
        A function of (q, v, t) in NumPy arrays that returns torques (nv,). Its attribute `plan` is the whole
        `IlqrResult`, whose gains correct the torques at a higher rate.

    Raises:
        ArgumentError: `period` is not positive or longer than the horizon, or `iterations` is less than 1.
        DtypeError: An argument is of another type, or traced.

    Example:
        >>> from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointEffort, SoftGoal, mpc
        >>> down = SoftGoal(ConfigurationGoal(jnp.zeros(1)), 10.0)
        >>> controller = mpc(ControlProblem(robots.pendulum(), [down, JointEffort(0.01)], dt=0.05, steps=20))
        >>> tau = controller(np.array([0.5]), np.zeros(1))
        >>> tau.shape, bool(tau[0] < 0.0)
        ((1,), True)
    """
    check_outside_jit("mpc", problem, use="ilqr")
    given = None if period is None else positive(period, "period")
    problem = _checked(problem, None, given)
    step = problem.dt if given is None else given.astype(problem.dt.dtype)
    return Controller(problem, step, check_integer(iterations, "iterations", 1))


def _checked(problem: Any, like: ControlProblem | None, period: Array | None) -> ControlProblem:
    if not isinstance(problem, ControlProblem):
        raise DtypeError(f"problem must be a ControlProblem, got {type(problem).__name__}")
    if like is not None and (problem.steps, problem.model.tree) != (like.steps, like.model.tree):
        raise ArgumentError("problem must have the robot and the steps of the one that the controller was made with")
    if period is not None and float(period) > float(problem.dt) * problem.steps:
        raise ArgumentError(f"period must not be longer than the horizon, got {float(period)}")
    return problem


@partial(jax.jit, static_argnums=6)
@full_precision
def _tick(
    problem: ControlProblem, q: Array, v: Array, t: Array, taus: Array, period: Array, iterations: int
) -> IlqrResult:
    # Within the limits, as `ilqr` takes it: those of a new problem may be others, and gravity's torques beyond them.
    later = jnp.clip(shifted(taus, period / problem.dt), problem.tau_lower[None], problem.tau_upper[None])
    found = ilqr(problem, q, v, tau=later, t=t, iterations=iterations, tolerance=0.0)
    known = jnp.isfinite(found.taus).all() & jnp.isfinite(found.cost)
    return eqx.tree_at(lambda r: r.taus, found, jnp.where(known, found.taus, later))


def shifted(taus: Float[Array, "N nv"], steps: Array) -> Float[Array, "N nv"]:
    """Torques that begin later by some steps, in between by interpolation; the last ones last."""
    at = jnp.minimum(jnp.arange(len(taus), dtype=taus.dtype) + steps, len(taus) - 1.0)
    whole = jnp.floor(at)
    first, share = whole.astype(jnp.int32), (at - whole)[:, None]
    return (1.0 - share) * taus[first] + share * taus[jnp.minimum(first + 1, len(taus) - 1)]
