"""Verification of a trajectory on a fine grid of times, independent of the cost that found it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_outside_jit
from .._errors import ArgumentError, ModelError
from .._result import Result
from ..algorithms.inverse_dynamics import motor_torques
from ..algorithms.kinematics import link_pose
from ..collision import ShapePairs, World, signed_distances, world_distances
from ..model.model import Model, check_model
from ..spatial import se3
from ._arguments import checked_world, default_pairs, pose, warn_of_no_shapes
from .profiles import check_numbers
from .trajectory import Motion, TrajectorySamples, check_motion, sample_trajectory


class TrajectoryReport(Result):
    """Errors, margins and clearances of a trajectory.

    A ratio is the largest |value| / limit over times and joints. An infinite limit has the ratio 0. For a limit
    of zero the ratio is 0 if the value is always exactly zero, and infinite otherwise. Of NaN it is NaN.

    Attributes:
        position_error: Distance of the link's origin from the target at the end, of several links the largest [m].
        orientation_error: Angle between the link's axes and the target's at the end, of several links the largest
            [rad].
        distance: Minimum signed distance of any pair of collision shapes, and from the world [m]; None if none was
            looked at.
        position_ratio: Of |q - middle of the range| to half the range; for a one-sided limit it is 0, or infinite if
            the limit is violated.
        velocity_ratio: Of joint velocities to their limits.
        acceleration_ratio: Of joint accelerations to their limits.
        torque_ratio: Of actuator torques and forces to their limits.
        smoothness: Integral of the squared joint jerks [rad^2/s^5, m^2/s^5].
        samples: The trajectory on the grid.
        torques: Actuator torques and forces on the grid [N m, N].
        distances: Minimum distance at each time of the grid [m]; None if none was looked at.
        jerk_ratio: Of joint jerks to `jerk_limit`, of a `TimedPath` their means between neighbouring times; None if no
            limit was given.
    """

    position_error: Float[Array, ""]
    orientation_error: Float[Array, ""]
    distance: Float[Array, ""] | None
    position_ratio: Float[Array, ""]
    velocity_ratio: Float[Array, ""]
    acceleration_ratio: Float[Array, ""]
    torque_ratio: Float[Array, ""]
    smoothness: Float[Array, ""]
    samples: TrajectorySamples
    torques: Float[Array, "t nv"]
    distances: Float[Array, "t"] | None
    jerk_ratio: Float[Array, ""] | None = None

    def _headline(self) -> str:
        if np.ndim(self.position_error):
            return f"{self.position_error.size} trajectories"
        return "within the limits" if self.feasible(np.inf, np.inf) else "beyond a limit, or in collision"

    def feasible(self, position: float = 1e-3, orientation: float = 0.0087, limits: float = 1e-4) -> bool:
        """Whether the pose is met to `position` [m] and `orientation` [rad], the ratios exceed 1 by no more than
        `limits`, and nothing touches.

        Without distances nothing is said of collisions.

        Raises:
            ArgumentError: A tolerance is negative or NaN.
            DtypeError: A tolerance is not a number.
        """
        for name, x in (("position", position), ("orientation", orientation), ("limits", limits)):
            if not check_array(x, name, ()) >= 0.0:
                raise ArgumentError(f"{name} must not be negative, got {float(x)}")
        ratios = [self.position_ratio, self.velocity_ratio, self.acceleration_ratio, self.torque_ratio]
        if self.jerk_ratio is not None:
            ratios.append(self.jerk_ratio)
        reached = bool(self.position_error <= position) and bool(self.orientation_error <= orientation)
        apart = self.distance is None or bool(self.distance > 0.0)
        return reached and apart and all(bool(ratio <= 1.0 + limits) for ratio in ratios)


def check_trajectory(
    model: Model,
    trajectory: Motion,
    link: str | int | tuple[str | int, ...],
    target: Float[Array, "4 4"] | Float[Array, "k 4 4"],
    *,
    points: int = 401,
    clearance: float | None = 0.0,
    collision_pairs: ShapePairs | None = None,
    world: World | None = None,
    jerk_limit: Float[Array, "nv"] | None = None,
) -> TrajectoryReport:
    """Measures a trajectory against its target, the limits, self-collision and the world.

    Args:
        model: The robot.
        trajectory: The motion.
        link: The link to be brought to the target, by name or index; or a tuple of links.
        target: Its final pose T_world_link; (k, 4, 4) for k links.
        points: Number of times; use several times as many as in the optimization.
        clearance: None does not look at collisions; any other value does.
        collision_pairs: The pairs of shapes; default is `collision.pairs(model)`.
        world: Obstacles; default is none.
        jerk_limit: Maximum joint jerks [rad/s^3, m/s^3]; default is none.

    Returns:
        Errors, ratios to the limits and distances, and the samples from which they were taken.

    Raises:
        ArgumentError: `target` is not a pose, `points` is less than 2, `jerk_limit` is not positive, or there is no
            link.
        DtypeError: An argument is of another type, or traced.
        ModelError: The trajectory, or a pair of capsules, is of another robot.
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape, or the trajectory is a batch.

    Warns:
        UserWarning: The robot has no collision shapes, or none that move in a world: nothing is known of collisions.
    """
    check_model(model)
    check_motion(trajectory, "trajectory")
    check_outside_jit("check_trajectory", model, trajectory, target, jerk_limit)
    check_array(trajectory.q_start, "trajectory.q_start", (model.nq,), "model.nq")
    if trajectory.nv != model.nv:
        raise ModelError(f"trajectory is of a robot with {trajectory.nv} velocities, the model has {model.nv}")
    links, dtype = link if isinstance(link, tuple) else (link,), trajectory.q_start.dtype
    if not links:
        raise ArgumentError("link must name at least one link")
    if isinstance(link, tuple):
        each = check_array(target, "target", (len(links), 4, 4), "T_world_link")
        targets = jnp.stack([pose(T, f"target[{k}]").astype(dtype) for k, T in enumerate(each)])
    else:
        targets = pose(target, "target").astype(dtype)[None]
    if jerk_limit is not None:
        jerk_limit = check_array(jerk_limit, "jerk_limit", (model.nv,), "model.nv").astype(dtype)
        check_numbers(jerk_limit, "jerk_limit", positive=True, bounded=False)
    at = sample_trajectory(trajectory, points)
    chosen = around = None
    if clearance is not None:
        warn_of_no_shapes(model)
        chosen = default_pairs(model, collision_pairs)
        around = None if world is None else checked_world(model, world, at.q.dtype)
    return _measure(model, trajectory, at, targets, jerk_limit, around, tuple(map(model.link_index, links)), chosen)


@partial(jax.jit, static_argnums=(6, 7))
def _measure(
    model: Model,
    trajectory: Motion,
    at: TrajectorySamples,
    targets: Array,
    jerk_limit: Array | None,
    world: World | None,
    links: tuple[int, ...],
    chosen: ShapePairs | None,
) -> TrajectoryReport:
    ends = jnp.stack([link_pose(model, at.q[-1], link) for link in links])
    away = jax.vmap(lambda T, target: se3.log(se3.inverse(T) @ target)[:3])(ends, targets)
    tau = jax.vmap(motor_torques, in_axes=(None, 0, 0, 0))(model, at.q, at.v, at.a)
    looked_at = []
    if chosen is not None:
        looked_at.append(jax.vmap(partial(signed_distances, pairs=chosen), in_axes=(None, 0))(model, at.q))
    if world is not None:
        looked_at.append(jax.vmap(partial(world_distances, world=world), in_axes=(None, 0))(model, at.q))
    distances = jnp.concatenate(looked_at, axis=1).min(axis=1) if looked_at else None
    low, high = model.position_lower, model.position_upper
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    middle, half = jnp.where(bounded, 0.5 * (low + high), 0.0), jnp.where(bounded, 0.5 * (high - low), jnp.inf)
    passed = jnp.any(((at.q < low[None]) | (at.q > high[None])) & ~bounded[None])
    return TrajectoryReport(
        position_error=jnp.linalg.norm(ends[:, :3, 3] - targets[:, :3, 3], axis=1).max(),
        orientation_error=jnp.linalg.norm(away, axis=1).max(),
        distance=None if distances is None else distances.min(),
        position_ratio=jnp.where(passed, jnp.inf, _ratio(at.q - middle[None], half)),
        velocity_ratio=_ratio(at.v, model.velocity_limit),
        acceleration_ratio=_ratio(at.a, model.acceleration_limit),
        torque_ratio=_ratio(tau, model.effort_limit),
        jerk_ratio=None if jerk_limit is None else _ratio(trajectory.jerks(len(at.times)), jerk_limit),
        smoothness=trajectory.squared_jerk,
        samples=at,
        torques=tau,
        distances=distances,
    )


def _ratio(values: Array, limits: Array) -> Array:
    """The largest |value| / limit, where 0 / 0 is 0."""
    size = jnp.max(jnp.abs(values), axis=0)
    still = size == 0.0  # not for NaN
    return jnp.max(jnp.where(still, 0.0, size / jnp.where(still, 1.0, limits)), initial=0.0)
