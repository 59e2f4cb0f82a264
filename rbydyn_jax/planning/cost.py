"""The cost of a trajectory: the error of its final pose, its jerk, and violations of limits and clearances."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..algorithms.energy import damping_forces, friction_forces
from ..algorithms.inverse_dynamics import rnea
from ..algorithms.kinematics import link_pose
from ..collision import CapsulePairs, signed_distances
from ..model.model import Model
from ..spatial import se3
from .trajectory import TrajectorySamples

_LENGTH_WEIGHT = 100.0  # (1 rad / 0.1 m)^2


class TrajectoryCost(eqx.Module):
    """Weights and margins of the cost; all are inputs of the compiled step, so that a change does not recompile.

    An infinite limit is no limit. For a limit of zero the excess is absolute, in its own unit, since it cannot be
    relative to the limit.

    Args:
        pose: Weight of the squared error of the final pose, per rad^2, and per (0.1 m)^2.
        smoothness: Weight of the integral of squared jerk; 1 for the minimum-jerk motion of one joint over one radian.
        limits: Weight of the squared excess over limits of position [rad^2, m^2] and of velocity, acceleration and
            torque (relative), summed over joints, mean over time.
        collision: Weight of the squared violation of `distance_margin`, per (0.1 m)^2, summed over pairs, mean over
            time.
        limit_margin: Margin of every quantity to its limits, relative to the limit (positions: [rad, m]).
        distance_margin: Minimum distance of every pair [m].
    """

    pose: Float[Array, ""] | float = 1e3
    smoothness: Float[Array, ""] | float = 1.0
    limits: Float[Array, ""] | float = 1e3
    collision: Float[Array, ""] | float = 1e4
    limit_margin: Float[Array, ""] | float = 0.03
    distance_margin: Float[Array, ""] | float = 0.02


def total_cost(
    model: Model,
    at: TrajectorySamples,
    coefficients: Array,
    target: Array,
    link: int,
    collision_pairs: CapsulePairs | None,
    cost: TrajectoryCost,
) -> Array:
    """The cost of a motion on a grid of times; see `optimize_trajectory`."""
    error = pose_error(link_pose(model, at.q[-1], link), target)
    tau = jax.vmap(joint_forces, in_axes=(None, 0, 0, 0))(model, at.q, at.v, at.a)
    margin = cost.limit_margin
    excess = [
        at.q - (model.position_upper - margin)[None],
        (model.position_lower + margin)[None] - at.q,
        _excess(at.v, model.velocity_limit, margin),
        _excess(at.a, model.acceleration_limit, margin),
        _excess(tau, model.effort_limit, margin),
    ]
    total = cost.smoothness * jnp.sum(coefficients**2)
    total += cost.pose * (jnp.sum(error[:3] ** 2) + _LENGTH_WEIGHT * jnp.sum(error[3:] ** 2))
    for x in excess:
        total += cost.limits * jnp.mean(jnp.sum(jnp.maximum(x, 0.0) ** 2, axis=1))
    if collision_pairs is not None:
        d = jax.vmap(partial(signed_distances, pairs=collision_pairs), in_axes=(None, 0))(model, at.q)
        lack = jnp.maximum(cost.distance_margin - d, 0.0)
        total += cost.collision * _LENGTH_WEIGHT * jnp.mean(jnp.sum(lack**2, axis=1))
    return total


def _excess(x: Array, limit: Array, margin: Array | float) -> Array:
    """|x| / limit - (1 - margin); |x| where the limit is zero."""
    bounded = limit > 0
    return jnp.abs(x) / jnp.where(bounded, limit, 1.0)[None] - jnp.where(bounded, 1.0 - margin, 0.0)[None]


def pose_error(pose: Float[Array, "4 4"], target: Float[Array, "4 4"]) -> Float[Array, "6"]:
    """The twist [rad, m] that leads from a pose to the target in unit time, in the axes of the link."""
    return se3.log(se3.inverse(pose) @ target)


def joint_forces(model: Model, q: Array, v: Array, a: Array) -> Array:
    """Actuator forces: inverse dynamics with damping and Coulomb friction [N m, N]."""
    return rnea(model, q, v, a) - damping_forces(model, v) - friction_forces(model, v)
