"""A trajectory problem as a pytree: what `solve_trajectory` solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._check import check_array, check_finite, check_integer, check_key, check_positive, check_sequence, known
from .._errors import ArgumentError, DtypeError, ModelError
from ..collision import ShapePairs, World
from ..model.model import Model, check_model
from ._arguments import checked_world, default_pairs
from ._functions import checked_function
from .goals import ALONG, Goal, Moving
from .profiles import check_numbers
from .trajectory import Trajectory, check_kind

PathFunction = Callable[[Model, Array, Array, Array, Array, Array], Array]
"""A function of (model, q, v, a, tau, t) at one time that returns an array (n,)."""


class TrajectoryProblem(eqx.Module):
    r"""A motion to be found: its robot, start, goals, limits and costs; a pytree.

    The motion is a `Trajectory`: splines of degree 5, with acceleration zero at both ends. What is minimized is the
    integral of the squared jerk, in units of the smoothest motion over one radian; without a duration, mainly the
    duration. The limits of position, velocity, acceleration and torque are those of the model; Coulomb friction counts
    in full against the limit of torque, whatever its direction. The jerk has a limit if one is given.

    Arrays, those in the goals and the parameters of the robot included, are traced: another problem of the same
    structure does not recompile, and a batch of problems, stacked leaf by leaf, is solved by
    `jax.vmap(solve_trajectory)`.

    Args:
        model: The robot.
        q_start: Configuration at the start [rad, m]. Where it is beyond a limit of position, the motion may be as far
            beyond it, but not at its end.
        goals: What is to be reached: `PoseGoal`, `PositionGoal`, `LookAtGoal`, `ConfigurationGoal`, `ComGoal`. Those at
            an instant are met exactly, those along the path within their bands.
        duration: Time for the motion [s]; None is a short one, to be found.
        joints: The joints that may move, each with one coordinate, by name or index; default is those on the way from
            the root to the links of the goals, and those that joints on the way mimic. Static.
        start_velocity: Velocity at the start [rad/s, m/s]; default is at rest. Only the moving joints' entries count.
        end_velocity: Velocity at the end; default is at rest.
        jerk_limit: Maximum joint jerks [rad/s^3, m/s^3]; default is none. Only the moving joints' entries count.
        clearance: Minimum distance of every pair of collision shapes, and of the shapes that move from the world [m];
            None does not look at collisions.
        collision_pairs: The pairs of shapes to keep apart; default is `collision.pairs(model)`, none if the robot has
            no shapes. Static.
        world: Obstacles to stay clear of; default is none.
        costs: Functions of (model, q, v, a, tau, t) at one time that return residuals (n,): half the mean of their
            squares over time is added to the cost. For data that change from problem to problem, bind arrays with
            `jax.tree_util.Partial(f, array)`: they come first.
        constraints: Functions of the same arguments; what they return must not be positive.
        initial: A motion of the same joints and number of coefficients to start from; default is the smoothest motion
            to a configuration that reaches the goals.
        key: Key of the random configurations from which the goals are searched; default is `jax.random.key(0)`.
        coefficients: Number of spline coefficients of each joint. Static.
        points: Number of times at which torques, distances, costs and constraints are evaluated while optimizing. What
            violates a limit between them is found at 401 times, and corrected. Static.
        attempts: How many first motions, to configurations that reach the goals, are tried. Static.
        iterations: Maximum number of steps from each. Static.

    Raises:
        ArgumentError: An argument has a wrong value, or there is a world and no clearance from it.
        DtypeError: An argument is of another type, or a function takes other arguments.
        ModelError: A joint has no coordinate of its own or more than one, or is listed twice, or none moves.
        NameNotFoundError: There is no such link or joint.
        ShapeError: An argument has another shape.

    Warns:
        UserWarning: There is a world, and the robot has no collision shapes that move: nothing keeps it from the world.
    """

    model: Model
    q_start: Float[Array, "nq"]
    goals: tuple[Goal, ...]
    duration: Float[Array, ""] | None
    end_velocities: Float[Array, "2 m"] | None
    jerk_limit: Float[Array, "nv"] | None
    clearance: Float[Array, ""] | None
    world: World | None
    costs: tuple[Any, ...]
    constraints: tuple[Any, ...]
    initial: Float[Array, "k m"] | None
    key: PRNGKeyArray
    moving: Moving = eqx.field(static=True)
    pairs: ShapePairs | None = eqx.field(static=True)
    coefficients: int = eqx.field(static=True)
    points: int = eqx.field(static=True)
    attempts: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        q_start: Float[Array, "nq"],
        goals: Sequence[Goal],
        *,
        duration: Float[Array, ""] | float | None = None,
        joints: Sequence[str | int] | None = None,
        start_velocity: Float[Array, "nv"] | None = None,
        end_velocity: Float[Array, "nv"] | None = None,
        jerk_limit: Float[Array, "nv"] | None = None,
        clearance: Float[Array, ""] | float | None = 0.01,
        collision_pairs: ShapePairs | None = None,
        world: World | None = None,
        costs: Sequence[PathFunction] = (),
        constraints: Sequence[PathFunction] = (),
        initial: Trajectory | None = None,
        key: PRNGKeyArray | None = None,
        coefficients: int = 8,
        points: int = 33,
        attempts: int = 6,
        iterations: int = 60,
    ) -> None:
        check_model(model)
        q_start = check_array(q_start, "q_start", (model.nq,), "model.nq")
        check_finite(q_start, "q_start")
        dtype = q_start.dtype
        self.model = jax.tree.map(lambda x: x.astype(dtype), model)
        self.q_start = q_start
        self.goals = _goals(model, goals, dtype)
        self.duration = None if duration is None else positive(duration, "duration").astype(dtype)
        self.moving = _moving(model, self.goals, joints)
        at = np.array(self.moving.v)
        self.end_velocities = None
        if start_velocity is not None or end_velocity is not None:
            given = {"start_velocity": start_velocity, "end_velocity": end_velocity}
            rows = [jnp.zeros(model.nv) if x is None else check_array(x, k, (model.nv,)) for k, x in given.items()]
            for k, row in zip(given, rows, strict=True):
                check_finite(row[at], k)
            self.end_velocities = jnp.stack([x.astype(dtype)[at] for x in rows])
        self.jerk_limit = None
        if jerk_limit is not None:
            self.jerk_limit = check_array(jerk_limit, "jerk_limit", (model.nv,), "model.nv").astype(dtype)
            check_numbers(self.jerk_limit, "jerk_limit", positive=True, bounded=False)
        _check_bound(clearance, "clearance")
        self.pairs = None if clearance is None else default_pairs(model, collision_pairs)
        self.world = None if world is None else checked_world(model, world, dtype)
        if world is not None and clearance is None:
            raise ArgumentError("world needs a clearance, got clearance=None")
        looks = self.pairs is not None or self.world is not None
        self.clearance = check_array(clearance, "clearance", ()).astype(dtype) if looks else None
        self.costs, self.constraints = _functions(costs, "costs"), _functions(constraints, "constraints")
        self.key = jax.random.key(0) if key is None else check_key(key)
        self.coefficients = check_integer(coefficients, "coefficients", 1)
        self.points = check_integer(points, "points", 2)
        self.attempts = check_integer(attempts, "attempts", 1)
        self.iterations = check_integer(iterations, "iterations", 1)
        self.initial = None if initial is None else self._like(initial)

    def trajectory(self, coefficients: Float[Array, "k m"], duration: Float[Array, ""]) -> Trajectory:
        """The motion with these coefficients.

        Args:
            coefficients: Displacements in the basis of the spline, one column for each moving joint [rad, m].
            duration: Its duration [s].

        Raises:
            ArgumentError: The duration is not positive.
            DtypeError: An argument is not an array of floats.
            ShapeError: An argument has another shape.
        """
        x = check_array(coefficients, "coefficients", (self.coefficients, len(self.moving.q)))
        return Trajectory(
            self.q_start, x, positive(duration, "duration"), *self.moving, self.model.nv, self.end_velocities
        )

    def _like(self, initial: Trajectory) -> Array:
        check_kind(initial, "initial")
        if initial.q_indices != self.moving.q:
            raise ArgumentError("initial must move the joints named in joints=, and moves others")
        shape = (self.coefficients, len(self.moving.q))
        return check_array(initial.coefficients, "initial.coefficients", shape).astype(self.q_start.dtype)


def positive(x: Any, name: str) -> Array:
    """The scalar `x`, which must be positive and finite where that is known."""
    number = check_array(x, name, ())
    check_positive(number, name)
    return number


def _goals(model: Model, goals: Any, dtype: Any) -> tuple[Goal, ...]:
    if isinstance(goals, Goal) or not isinstance(goals, Sequence):
        raise DtypeError(f"goals must be a list of goals such as PoseGoal, got {type(goals).__name__}")
    for i, goal in enumerate(goals):
        if not isinstance(goal, Goal):
            raise DtypeError(f"goals[{i}] must be a goal such as PoseGoal, got {type(goal).__name__}")
    found = tuple(goal.checked(model, dtype, f"goals[{i}]") for i, goal in enumerate(goals))
    if not any(goal.when != ALONG for goal in found):
        raise ArgumentError("goals must hold at least one at an instant, such as at=1.0")
    return found


def _moving(model: Model, goals: Sequence[Goal], joints: Sequence[str | int] | None) -> Moving:
    tree = model.tree
    own = [m is None and j.nq == j.nv == 1 for m, j in zip(tree.mimics, tree.joints, strict=True)]
    if joints is None:
        links = [model.link_index(link) for goal in goals for link in goal.links]
        on_the_way = tree.paths(tree.link_bodies[k] for k in links) if links else range(tree.nb)
        leaders = [i if m is None else m.source for i, m in enumerate(tree.mimics)]
        chosen = [i for i in dict.fromkeys(leaders[i] for i in on_the_way) if own[i]]
        if not chosen:
            raise ModelError(f"no joint moves link {tree.link_names[links[0]]!r}; name the moving joints with joints=")
    else:
        chosen = [model.joint_index(k) for k in check_sequence(joints, "joints", "joints, by name or index")]
        if not chosen:
            raise ArgumentError("joints must name at least one joint")
    for i in chosen:
        if not own[i] or chosen.count(i) > 1:
            several = f"has no single coordinate of its own ({tree.joint_types[i]})"
            other = several if tree.mimics[i] is None else "mimics another: name that one"
            reason = "is listed twice" if own[i] else other
            raise ModelError(f"joint {tree.joint_names[i]!r} {reason}")
    return Moving(tuple(tree.q_slices[i].start for i in chosen), tuple(tree.v_slices[i].start for i in chosen))


def _functions(functions: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(functions, Sequence) or isinstance(functions, str | bytes):
        raise DtypeError(f"{name} must be a list of functions, got {type(functions).__name__}")
    return tuple(checked_function(f, f"{name}[{i}]", "(model, q, v, a, tau, t)") for i, f in enumerate(functions))


def _check_bound(clearance: Any, name: str) -> None:
    """Raises unless a clearance, where it is known, is a number; -inf is always kept."""
    number = None if clearance is None else known(check_array(clearance, name, ()))
    if number is not None and not number < np.inf:
        raise ArgumentError(f"{name} must be finite, or -inf, got {float(number)}")
