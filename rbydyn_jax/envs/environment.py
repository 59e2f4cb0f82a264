"""An arm whose servos are told where to go, as an environment for reinforcement learning: pure functions of arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .._check import (
    check_array,
    check_each,
    check_finite,
    check_integer,
    check_key,
    check_not_negative,
    check_number,
    check_positive,
    check_sequence,
    known,
)
from .._errors import ArgumentError, DtypeError, ModelError
from .._jit import jit_public
from .._result import Result
from ..algorithms.kinematics import link_pose
from ..constraints.servo import Servo, Stops
from ..constraints.simulate import simulate
from ..model.configuration import check_within_limits, clamp
from ..model.model import Model, check_model
from ..spatial.safe import safe_norm
from .parameters import Parameters, check_parameters, draw_parameters, with_parameters

_NOMINAL, _ALL = Parameters(), np.ones(3)


class Environment(eqx.Module):
    r"""An arm with position servos, whose hand is to come to a goal.

    An action u in [-1, 1] moves the target of each servo by u times `speed` times `period`. A target stays within the
    position limits, and so near to the joint that the spring of the servo takes no more than the effort limit; the
    damper comes on top where it brakes. The reward of a step is $1 / (1 + d / w) - c\, |u|^2 / n$ with the distance d
    of the hand from the goal along `axes`. An episode ends after `max_steps_in_episode` steps, and never before. Each
    episode has a robot, a start and a goal of its own.

    All numbers are leaves, which may be changed, mapped and traced; what is static says so.

    Attributes:
        model: The robot; all joints are hinges and slides.
        hand: Name of the link that is to come to the goal; static.
        start: Configuration at which episodes start [rad, m].
        start_spread: Largest deviation from it [rad, m].
        goals: Lowest and highest configuration of the box in which one is drawn: the goal is where the hand is there,
            so that it can be reached [rad, m].
        axes: What counts of the distance along x, y and z of the world: 1 or 0.
        stiffness: Of the servos [N m/rad, N/m].
        damping: Of the servos [N m s/rad, N s/m].
        speed: Largest rate of the targets [rad/s, m/s].
        parameters: Lowest and highest parameters of the range from which each episode draws.
        width: w, the distance at which half of the reward is left [m].
        effort: c, the cost of an action.
        period: Time between two actions; static [s].
        substeps: Steps of the simulation in it; static.
        max_steps_in_episode: Actions in an episode; static.
        dry: Whether there is dry friction, which makes a step several times as long; static. It is false where the
            range has none when the environment is made.
    """

    model: Model
    hand: str = eqx.field(static=True)
    start: Float[Array, "nq"]
    start_spread: Float[Array, ""]
    goals: tuple[Float[Array, "nq"], Float[Array, "nq"]]
    axes: Float[Array, "3"]
    stiffness: Float[Array, "nv"]
    damping: Float[Array, "nv"]
    speed: Float[Array, "nv"]
    parameters: tuple[Parameters, Parameters]
    width: Float[Array, ""]
    effort: Float[Array, ""]
    period: float = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    max_steps_in_episode: int = eqx.field(static=True)
    dry: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        hand: str | int,
        start: Any,
        goals: Any,
        *,
        stiffness: Any,
        damping: Any,
        speed: Any,
        axes: Any = _ALL,
        start_spread: float = 0.05,
        parameters: Any = (_NOMINAL, _NOMINAL),
        width: float = 0.1,
        effort: float = 0.02,
        period: float = 0.04,
        substeps: int = 2,
        max_steps_in_episode: int = 50,
    ) -> None:
        """See the attributes; one number is that of each joint.

        Raises:
            ArgumentError: A number is not finite, or has the wrong sign, a lower end is above its upper end, or goals
                are beyond the limits of the joints.
            DtypeError: An argument is of another type.
            ModelError: A joint is neither hinge nor slide, or mimics another one.
            NameNotFoundError: There is no such link.
            ShapeError: An argument does not fit the robot.
        """
        self.model = model = check_model(model)
        tree = model.tree
        for name, joint, mimic in zip(tree.joint_names, tree.joints, tree.mimics, strict=True):
            if mimic is not None or not joint.scalar:
                raise ModelError(f"joint {name!r}: an environment needs hinges and slides that mimic no other joint")
        dtype, nq, nv = model.inertias.dtype, (model.nq, "model.nq"), (model.nv, "model.nv")
        self.hand = model.link_names[model.link_index(hand)]
        self.start = _each(start, "start", *nq).astype(dtype)
        low, high = _pair(goals, "goals", "configurations (model.nq,)")
        self.goals = (_each(low, "goals[0]", *nq).astype(dtype), _each(high, "goals[1]", *nq).astype(dtype))
        _ordered(*self.goals, "goals")
        for k, end in enumerate(self.goals):
            check_within_limits(model, end, f"goals[{k}]")
        self.axes = check_array(axes, "axes", (3,)).astype(dtype)
        if (flags := known(self.axes)) is not None and not np.isin(flags, (0.0, 1.0)).all():
            raise ArgumentError(f"axes must be zeros and ones, got {flags.tolist()}")
        self.stiffness = _each(stiffness, "stiffness", *nv).astype(dtype)
        check_positive(self.stiffness, "stiffness")
        self.damping = _size(damping, "damping", *nv).astype(dtype)
        self.speed = _size(speed, "speed", *nv).astype(dtype)
        low, high = _pair(parameters, "parameters", "Parameters")
        ends = (check_parameters(model, low, "parameters[0]"), check_parameters(model, high, "parameters[1]"))
        for field in dataclasses.fields(Parameters):
            _ordered(getattr(ends[0], field.name), getattr(ends[1], field.name), "parameters", f".{field.name}")
        self.parameters = ends
        friction = known(ends[1].friction)
        self.dry = friction is None or bool(friction.any())
        self.start_spread = check_array(start_spread, "start_spread", ()).astype(dtype)
        self.width, self.effort = (
            check_array(x, n, ()).astype(dtype) for x, n in ((width, "width"), (effort, "effort"))
        )
        check_not_negative(self.start_spread, "start_spread")
        check_not_negative(self.effort, "effort")
        check_positive(self.width, "width")
        self.period = check_number(period, "period")
        check_positive(self.period, "period")
        self.substeps = check_integer(substeps, "substeps", 1)
        self.max_steps_in_episode = check_integer(max_steps_in_episode, "max_steps_in_episode", 1)

    @property
    def observation_size(self) -> int:
        """Numbers in an observation: q, v, targets less q, the hand, what is left to the goal."""
        return 3 * self.model.nv + 6

    @property
    def action_size(self) -> int:
        """Numbers in an action, one for each joint."""
        return self.model.nv


class EnvState(Result):
    """A state of an environment.

    Attributes:
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        targets: Where the servos go [rad, m].
        goal: Where the hand is to come [m].
        steps: Actions so far in the episode.
        parameters: Those of the robot of this episode.
    """

    q: Float[Array, "nq"]
    v: Float[Array, "nv"]
    targets: Float[Array, "nq"]
    goal: Float[Array, "3"]
    steps: Int[Array, ""]
    parameters: Parameters


class Transition(Result):
    """What an action leads to.

    Attributes:
        state: The state after it.
        observation: What a policy sees of it.
        reward: The reward.
        done: Whether the time of the episode is over.
        distance: From the hand to the goal, along the axes that count [m].
    """

    state: EnvState
    observation: Float[Array, "n"]
    reward: Float[Array, ""]
    done: Bool[Array, ""]
    distance: Float[Array, ""]


@jit_public()
def reset(env: Environment, key: PRNGKeyArray) -> EnvState:
    """Starts an episode: a robot, a start and a goal are drawn.

    Args:
        env: The environment.
        key: A key of `jax.random`.

    Raises:
        DtypeError: `env` is no `Environment`, or `key` is no key.

    Example:
        A batch is `jax.vmap`, with one key for each episode:

        >>> env = envs.reach()
        >>> states = jax.vmap(envs.reset, (None, 0))(env, jax.random.split(jax.random.key(0), 4))
        >>> states.q.shape, states.goal.shape
        ((4, 7), (4, 3))
    """
    env = check_environment(env)
    of_start, of_goal, of_robot = jax.random.split(check_key(key), 3)
    dtype, n = env.start.dtype, env.start.shape
    low, high = env.goals
    at_goal = low + (high - low) * jax.random.uniform(of_goal, n, dtype)
    q = env.start + env.start_spread * jax.random.uniform(of_start, n, dtype, -1.0, 1.0)
    q = clamp(env.model, q)
    goal = link_pose(env.model, at_goal, env.hand)[:3, 3]
    drawn = draw_parameters(*env.parameters, of_robot)
    return EnvState(q, jnp.zeros_like(q), q, goal, jnp.zeros((), jnp.int32), drawn)


@jit_public()
def observe(env: Environment, state: EnvState) -> Float[Array, "n"]:
    """What a policy sees: q, v, the targets less q, the position of the hand, and what is left to the goal.

    The parameters of the robot are not among it.

    Args:
        env: The environment.
        state: The state.

    Raises:
        DtypeError: `env` is no `Environment`, or `state` no `EnvState`.
    """
    return _observed(check_environment(env), check_state(state))


@jit_public(action=check_finite)
def step(env: Environment, state: EnvState, action: Float[Array, "nv"]) -> Transition:
    """Lets the servos follow an action for one period, by the implicit method of `constraints.simulate`.

    Args:
        env: The environment.
        state: The state.
        action: Rates of the targets, as shares of `env.speed`; clipped to [-1, 1]. After a traced one that is NaN, all
            of the episode is NaN until it is over.

    Raises:
        ArgumentError: `action` is not finite, where its values are known.
        DtypeError: `env` is no `Environment`, `state` no `EnvState`, or `action` is not numeric.
        ShapeError: `action` is not of shape (env.action_size,).

    Example:
        >>> nominal = envs.Parameters()
        >>> env = envs.reach(parameters=(nominal, nominal))
        >>> state = envs.reset(env, jax.random.key(0))
        >>> after = envs.step(env, state, jnp.zeros(env.action_size))
        >>> after.observation.shape, int(after.state.steps), bool(after.done)
        ((27,), 1, False)
    """
    env, state = check_environment(env), check_state(state)
    action = check_array(action, "action", (env.action_size,), "env.action_size").astype(env.start.dtype)
    action = jnp.clip(action, -1.0, 1.0)
    stiffness, limit = state.parameters.gains * env.stiffness, env.model.effort_limit
    bounded = (stiffness > 0.0) & jnp.isfinite(limit)
    lead = jnp.where(bounded, jnp.where(bounded, limit, 1.0) / jnp.where(bounded, stiffness, 1.0), jnp.inf)
    targets = jnp.clip(state.targets + env.period * env.speed * action, state.q - lead, state.q + lead)
    targets = clamp(env.model, targets)
    q, v = _moved(env, state, targets)
    after = EnvState(q, v, targets, state.goal, state.steps + 1, state.parameters)
    observation = _observed(env, after)
    distance = safe_norm(observation[-3:])
    reward = 1.0 / (1.0 + distance / env.width) - env.effort * jnp.mean(action**2)
    return Transition(after, observation, reward, after.steps >= env.max_steps_in_episode, distance)


def _moved(env: Environment, state: EnvState, targets: Array) -> tuple[Array, Array]:
    """Configuration and velocity after one period."""
    model, drawn = with_parameters(env.model, env.hand, state.parameters), state.parameters
    if not env.dry:  # a zero that is known while tracing spares the simulation the solve for it
        model = eqx.tree_at(lambda m: m.friction, model, np.zeros(model.nv, targets.dtype))
    servo = Servo(targets, drawn.gains * env.stiffness, drawn.gains * env.damping)
    motion = simulate(
        model, state.q, state.v, env.period, env.period / env.substeps, method="implicit", servo=servo, stops=Stops()
    )
    return motion.qs[-1], motion.vs[-1]


def _observed(env: Environment, state: EnvState) -> Float[Array, "n"]:
    hand = link_pose(env.model, state.q, env.hand)[:3, 3]
    return jnp.concatenate([state.q, state.v, state.targets - state.q, hand, env.axes * (state.goal - hand)])


def check_environment(env: Any) -> Environment:
    """Returns `env`.

    Raises:
        DtypeError: It is no `Environment`.
    """
    if not isinstance(env, Environment):
        raise DtypeError(f"env must be an envs.Environment, got {type(env).__name__}")
    return env


def check_state(state: Any) -> EnvState:
    """Returns `state`.

    Raises:
        DtypeError: It is no `EnvState`.
    """
    if not isinstance(state, EnvState):
        raise DtypeError(f"state must be an envs.EnvState, got {type(state).__name__}")
    return state


def _each(x: Any, name: str, size: int, meaning: str) -> jax.Array:
    array = check_each(x, name, size, meaning)
    check_finite(array, name)
    return array


def _size(x: Any, name: str, size: int, meaning: str) -> jax.Array:
    array = check_each(x, name, size, meaning)
    check_not_negative(array, name)
    return array


def _pair(x: Any, name: str, of: str) -> tuple[Any, Any]:
    pair = check_sequence(x, name, of)
    if len(pair) != 2:
        raise ArgumentError(f"{name} must be two {of}, the lower and the upper one, got {len(pair)}")
    return pair[0], pair[1]


def _ordered(low: Any, high: Any, name: str, field: str = "") -> None:
    below, above = known(low), known(high)
    if below is not None and above is not None and (below > above).any():
        ends = f"{name}[0]{field} must not be above {name}[1]{field}"
        raise ArgumentError(f"{ends}, got {below.tolist()} and {above.tolist()}")
