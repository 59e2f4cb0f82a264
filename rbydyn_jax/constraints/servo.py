"""Forces in the joints that an implicit step takes at its end: servos, stops and viscous friction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_each, check_finite, check_not_negative, check_number
from .._errors import ArgumentError, DtypeError
from ..model.configuration import difference
from ..model.model import Model
from ._vectors import Numbers, not_negative

Each = Float[Numbers, "nv"] | Float[Numbers, ""] | float


class Servo(eqx.Module):
    r"""A position servo in each joint, $\tau = k\,(q_d \ominus q) + d\,(v_d - v)$ within $\pm$ `effort`.

    `simulate(..., method="implicit", servo=...)` takes q and v at the end of the step, so that no gain is too high for
    the step. Whether a servo is at its limit is decided at the start of the step: with an `effort` that turns a light
    joint around within a step, high gains let it swing to and fro. All fields may be traced; numbers are the same for
    each joint.

    Attributes:
        target: Configuration that it holds (nq,) [rad, m].
        stiffness: k [N m/rad, N/m]; zero on joints without a motor.
        damping: d [N m s/rad, N s/m].
        velocity: Velocity at which it passes the target [rad/s, m/s].
        effort: Largest force [N m, N]; a servo at its limit is a constant force.
    """

    target: Float[Numbers, "nq"]
    stiffness: Each
    damping: Each
    velocity: Each
    effort: Each

    def __init__(
        self, target: Any, stiffness: Any, damping: Any = 0.0, *, velocity: Any = 0.0, effort: Any = np.inf
    ) -> None:
        """Shapes are checked against the robot by `simulate`.

        Raises:
            ArgumentError: A number is not finite, or a gain or the effort is negative, where values are known.
            DtypeError: An argument is not numeric.
        """
        self.target, self.velocity = _numbers(target, "target"), _numbers(velocity, "velocity")
        self.stiffness, self.damping = _numbers(stiffness, "stiffness"), _numbers(damping, "damping")
        self.effort = _numbers(effort, "effort", finite=False)
        check_not_negative(self.stiffness, "stiffness")
        check_not_negative(self.damping, "damping")
        if not isinstance(self.effort, Tracer) and not (np.asarray(self.effort) >= 0.0).all():
            raise ArgumentError(f"effort must not be negative, got {np.asarray(self.effort).tolist()}")


class Stops(eqx.Module):
    """Spring and damper beyond the position limits of hinges and slides, for `simulate(..., method="implicit")`.

    They push only: a joint that leaves faster than the spring expands is free.

    Attributes:
        stiffness: [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
    """

    stiffness: Float[Numbers, ""] | float = 1e4
    damping: Float[Numbers, ""] | float = 100.0

    def __check_init__(self) -> None:
        not_negative(self.stiffness, "stiffness")
        not_negative(self.damping, "damping")


Drive = Servo | Callable[[Array], Servo]  # or a function of time


def check_servo(model: Model, servo: Any, name: str, dtype: Any) -> Servo:
    """The servo with one number for each joint, of one dtype.

    Raises:
        DtypeError: It is no `Servo`.
        ShapeError: A field does not fit the robot.
    """
    if not isinstance(servo, Servo):
        raise DtypeError(f"{name} must be a Servo, got {type(servo).__name__}")
    target = check_array(servo.target, f"{name}.target", (model.nq,), "model.nq").astype(dtype)
    fields = ("stiffness", "damping", "velocity", "effort")
    each = [check_each(getattr(servo, x), f"{name}.{x}", model.nv, "model.nv").astype(dtype) for x in fields]
    return eqx.tree_at(lambda s: (s.target, *(getattr(s, x) for x in fields)), servo, (target, *each))


def implicit_terms(
    model: Model, q: Array, v: Array, dt: Array, servo: Servo | None, stops: Stops | None
) -> tuple[Float[Array, "nv"], Float[Array, "nv"]]:
    r"""The joint forces at the end of a step as $\tau - h\,a$: $\tau$ and the inertia h that they add to the joints.

    A force $k (x - q') - d\,v'$ with $v' = v + \Delta t\,a$ and $q' = q + \Delta t\,v'$ is $k (x - q - \Delta t\,v) -
    d\,v - (\Delta t\,d + \Delta t^2 k)\,a$.
    """
    tau, extra = -model.damping * v, dt * model.damping
    if servo is not None:
        error = difference(model, q, jnp.asarray(servo.target)) - dt * v
        force = servo.stiffness * error + servo.damping * (servo.velocity - v)
        free = jnp.abs(force) < servo.effort
        tau = tau + jnp.where(free, force, jnp.sign(force) * jnp.where(free, 0.0, servo.effort))
        extra = extra + jnp.where(free, dt * (servo.damping + dt * servo.stiffness), 0.0)
    if stops is None:
        return tau, extra
    joints = zip(model.tree.joints, model.tree.mimics, strict=True)
    own = [i for i, (joint, mimic) in enumerate(joints) if mimic is None and joint.scalar]
    at_q = np.array([model.tree.q_slices[i].start for i in own], int)
    at_v = np.array([model.tree.v_slices[i].start for i in own], int)
    now, rate, low, high = q[at_q], v[at_v], model.position_lower[at_q], model.position_upper[at_q]
    ahead = now + dt * rate
    # A joint that is in its stop stays there while that pushes: the step before took this force at its end.
    within = (now > high) | (now < low)
    place = jnp.where(within, now, ahead)
    limit = jnp.clip(place, low, high)
    depth, side = place - limit, jnp.sign(place - limit)
    pushes = (depth != 0.0) & (~within | (side * (stops.stiffness * depth + stops.damping * rate) > 0.0))
    stiffness, damping = (jnp.where(pushes, x, 0.0) for x in (stops.stiffness, stops.damping))
    tau = tau.at[at_v].add(-stiffness * (ahead - limit) - damping * rate)
    return tau, extra.at[at_v].add(dt * (damping + dt * stiffness))


def _numbers(x: Any, name: str, *, finite: bool = True) -> Numbers:
    x = check_number(x, name) if isinstance(x, int) else x
    array = check_array(x, name)
    if finite:
        check_finite(array, name)
    return array if isinstance(x, jax.Array) else np.asarray(x, float)
