"""Episodes of arms: what a step is, what a reward means, and that nothing is compiled again."""

from __future__ import annotations

from typing import Any

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import constraints, envs, robots
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, untyped

ARM = robots.two_link_arm()
SERVOS: dict[str, Any] = {"stiffness": 200.0, "damping": 20.0, "speed": 2.0}
GOALS = (np.array([0.2, 0.4]), np.array([1.2, 1.4]))
LIGHT = envs.Parameters(masses=0.5, damping=0.1, gains=0.8, payload=0.1)
HEAVY = envs.Parameters(masses=2.0, damping=0.5, gains=1.2, payload=0.6)


def arm(**options: Any) -> envs.Environment:
    return envs.Environment(ARM, "tool", np.array([0.1, 0.3]), GOALS, **(SERVOS | options))


VARIED = arm(parameters=(LIGHT, HEAVY), max_steps_in_episode=4)
KEYS = jax.random.split(jax.random.key(7), 100)


def episodes(env: envs.Environment, keys: jax.Array = KEYS) -> envs.EnvState:
    return jax.vmap(envs.reset, (None, 0))(env, keys)


steps = jax.jit(jax.vmap(envs.step, (None, 0, 0)))


@pytest.mark.ci
def test_a_step_is_that_of_simulate_on_the_robot_that_was_drawn():
    state = envs.reset(VARIED, KEYS[0])
    action = jnp.array([0.5, -2.0])  # which is -1
    after = envs.step(VARIED, state, action).state
    targets = np.clip(np.asarray(state.q) + 0.04 * 2.0 * np.array([0.5, -1.0]), ARM.position_lower, ARM.position_upper)
    draw = state.parameters
    own = jnp.asarray(ARM.inertias) * jnp.asarray(draw.masses)[:, None]
    model = rb.attach_payload(eqx.tree_at(lambda m: m.inertias, ARM, own), "tool", draw.payload)
    model = rb.with_damping(model, draw.damping)
    servo = constraints.Servo(targets, draw.gains * 200.0, draw.gains * 20.0)
    motion = constraints.simulate(
        model, state.q, state.v, 0.04, 0.02, method="implicit", servo=servo, stops=constraints.Stops()
    )
    assert_close(after.q, motion.qs[-1])
    assert_close(after.v, motion.vs[-1])
    assert_close(after.targets, targets)


@pytest.mark.ci
def test_a_servo_that_holds_still_settles_where_its_torque_is_that_of_gravity():
    """The sag of a pendulum: k (q_d - q) = m g l sin q, with dry friction far below it."""
    pendulum = robots.pendulum(mass=2.0, length=0.5)
    env = envs.Environment(
        pendulum, "bob", np.array([0.8]), (np.array([0.8]), np.array([0.8])), stiffness=50.0, damping=10.0, speed=1.0,
        start_spread=0.0,
    )  # fmt: skip
    hold = jax.jit(
        lambda state: jax.lax.scan(lambda s, _: (envs.step(env, s, jnp.zeros(1)).state, None), state, None, 200)
    )
    q = hold(envs.reset(env, KEYS[0]))[0].q
    assert_close(50.0 * (0.8 - q), 2.0 * 9.81 * 0.5 * np.sin(np.asarray(q)), 1e-6)


@pytest.mark.ci
def test_random_actions_stay_within_limits_and_finite():
    low, high = np.asarray(ARM.position_lower), np.asarray(ARM.position_upper)
    strong = arm(speed=100.0, parameters=(LIGHT, HEAVY), max_steps_in_episode=30)
    states = episodes(strong)
    for k in range(30):
        after = steps(strong, states, jax.random.uniform(jax.random.key(k), (100, 2), minval=-3.0, maxval=3.0))
        states = after.state
        targets = np.asarray(states.targets)
        assert (targets >= low).all() and (targets <= high).all()
        chex.assert_tree_all_finite(after)
        assert (np.asarray(after.done) == (k == 29)).all()
    for _ in range(200):  # the targets go to the limits and stay there
        states = steps(strong, states, jnp.ones((100, 2))).state
    assert_close(states.targets, np.tile(high, (100, 1)))
    assert_close(states.q, np.tile(high, (100, 1)), 1e-3)


@pytest.mark.ci
def test_energy_falls_when_servos_hold():
    """The arm moves in a horizontal plane, and no servo reaches its limit: implicit steps bring no energy."""
    states = episodes(VARIED)
    states = eqx.tree_at(lambda s: s.v, states, jnp.full_like(states.v, 1.0))

    def energy(states: envs.EnvState) -> jax.Array:
        def one(s: envs.EnvState) -> jax.Array:
            model = envs.with_parameters(ARM, "tool", s.parameters)
            spring = 0.5 * 200.0 * s.parameters.gains * jnp.sum((s.targets - s.q) ** 2)
            return rb.kinetic_energy(model, s.q, s.v) + spring

        return jax.vmap(one)(states)

    before = energy(states)
    for _ in range(10):
        states = steps(VARIED, states, jnp.zeros((100, 2))).state
        now = energy(states)
        assert (now < before).all()
        before = now


def test_episodes_differ_and_a_key_repeats_them():
    states = episodes(VARIED)
    chex.assert_trees_all_equal(states, episodes(VARIED))
    draw = states.parameters
    for x, low, high in zip(*map(jax.tree.leaves, (draw, LIGHT, HEAVY)), strict=True):
        x = np.asarray(x)
        assert (x >= low).all() and (x <= high).all()
        if low < high:  # a hundred uniform draws: within a tenth of each end
            assert x.min() < low + 0.1 * (high - low) and x.max() > high - 0.1 * (high - low)
    assert np.unique(np.asarray(draw.payload)).size == len(np.unique(np.asarray(states.goal[:, 0]))) == 100
    offset = np.abs(np.asarray(states.q) - np.asarray(VARIED.start))
    assert offset.max() <= 0.05 + 1e-7 and offset.max() > 0.04
    assert (states.q == states.targets).all() and (states.v == 0.0).all()


@pytest.mark.ci
def test_masses_payload_and_friction_are_those_of_the_draw():
    drawn = envs.Parameters(masses=np.array([2.0, 3.0]), damping=0.3, friction=np.array([0.1, 0.2]), payload=0.25)
    model = envs.with_parameters(ARM, "tool", drawn)
    upper, lower = (float(rb.subtree_mass(ARM, link)) for link in ("upper", "lower"))
    assert_close(rb.total_mass(model) - rb.total_mass(ARM), (upper - lower) + 2.0 * lower + 0.25, 1e-6)
    assert model.damping.tolist() == pytest.approx([0.3, 0.3]) and model.friction.tolist() == pytest.approx([0.1, 0.2])
    heavy = envs.with_parameters(ARM, "tool", envs.Parameters(masses=2.0))
    assert_close(rb.crba(heavy, jnp.array([0.3, 0.4])), 2.0 * rb.crba(ARM, jnp.array([0.3, 0.4])))
    assert_close(heavy.link_inertias[1:], 2.0 * ARM.link_inertias[1:])


def test_other_robots_goals_and_gains_compile_nothing():
    jax.block_until_ready(steps(VARIED, episodes(VARIED), jnp.zeros((100, 2))))
    heavier = arm(parameters=(HEAVY, envs.Parameters(masses=4.0, damping=1.0, gains=3.0, payload=1.0)))
    other = eqx.tree_at(lambda e: (e.stiffness, e.parameters), VARIED, (3.0 * VARIED.stiffness, heavier.parameters))
    keys, actions = jax.block_until_ready((jax.random.split(jax.random.key(9), 100), jnp.ones((100, 2))))
    with rb.no_recompile():
        jax.block_until_ready(steps(other, episodes(other, keys), actions))


@pytest.mark.slow
def test_a_batch_of_environments_is_each_of_them():
    a, b = arm(width=0.05), arm(width=0.5)
    batch = jax.tree.map(lambda *x: jnp.stack(x), a, b)
    states = jax.vmap(envs.reset)(batch, KEYS[:2])
    after = jax.vmap(envs.step)(batch, states, jnp.zeros((2, 2)))
    for k, env in enumerate((a, b)):
        one = envs.step(env, envs.reset(env, KEYS[k]), jnp.zeros(2))
        assert_close(after.reward[k], one.reward)
        assert_close(after.observation[k], one.observation)


@pytest.mark.ci
def test_dry_friction_holds_what_is_weaker():
    """A servo of 200 N m/rad that is 0.01 rad off pulls with 2 N m: friction of 3 N m keeps it, of 1 N m does not."""
    for friction, moves in ((3.0, False), (1.0, True)):
        own = envs.Parameters(friction=friction)
        env = arm(parameters=(own, own), start_spread=0.0)
        state = envs.reset(env, KEYS[0])
        state = eqx.tree_at(lambda s: s.targets, state, state.targets + 0.01)
        after = envs.step(env, state, jnp.zeros(2)).state
        assert bool((jnp.abs(after.q - state.q) > 1e-5).all()) is moves


@pytest.mark.ci
def test_the_gradient_of_a_reward_at_the_goal_is_that_of_the_effort():
    env = arm(axes=np.zeros(3))  # there the distance is zero everywhere
    state = envs.reset(env, KEYS[0])
    gradient = jax.grad(lambda action: envs.step(env, state, action).reward)(jnp.array([0.5, -0.25]))
    assert_close(gradient, -env.effort * np.array([0.5, -0.25]))


@pytest.mark.ci
def test_joints_without_a_limit_of_effort_have_gradients_and_without_gains_none_is_held():
    free = eqx.tree_at(lambda m: m.effort_limit, ARM, jnp.array([np.inf, 50.0]))
    env = envs.Environment(free, "tool", np.array([0.1, 0.3]), GOALS, **SERVOS)
    state, action = envs.reset(env, KEYS[0]), jnp.array([0.5, -0.25])

    @jax.jit
    def reward(stiffness):
        return envs.step(eqx.tree_at(lambda e: e.stiffness, env, stiffness), state, action).reward

    given = jnp.full(2, 200.0)
    found, h = jax.grad(reward)(given), 1e-2 if X64 else 5.0
    wanted = [(reward(given + h * e) - reward(given - h * e)) / (2.0 * h) for e in np.eye(2)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if X64 else 0.1, atol=1e-10 if X64 else 1e-5)
    limp = eqx.tree_at(lambda m: m.effort_limit, ARM, jnp.zeros(2))
    still = eqx.tree_at(lambda s: s.parameters.gains, state, jnp.zeros_like(state.parameters.gains))
    after = envs.step(envs.Environment(limp, "tool", np.array([0.1, 0.3]), GOALS, **SERVOS), still, action).state
    assert bool(jnp.isfinite(after.q).all() & jnp.isfinite(after.targets).all())


def test_wrong_arguments():
    ball = random_tree(1, ("spherical",), n=1)
    with pytest.raises(rb.ModelError, match="hinges and slides"):
        envs.Environment(ball, 1, np.zeros(4), (np.zeros(4), np.zeros(4)), **SERVOS)
    with pytest.raises(rb.NameNotFoundError, match="'tol'"):
        envs.Environment(ARM, "tol", np.zeros(2), GOALS, **SERVOS)
    with pytest.raises(rb.ArgumentError, match=r"goals\[0\] must not be above goals\[1\]"):
        envs.Environment(ARM, "tool", np.zeros(2), GOALS[::-1], **SERVOS)
    with pytest.raises(rb.ArgumentError, match=r"parameters\[0\]\.masses must not be above parameters\[1\]\.masses"):
        arm(parameters=(HEAVY, LIGHT))
    with pytest.raises(rb.ArgumentError, match=r"parameters\[0\]\.friction must not be above"):
        arm(parameters=(envs.Parameters(friction=0.2), envs.Parameters(friction=0.1)))
    with pytest.raises(rb.ArgumentError, match="axes must be zeros and ones"):
        arm(axes=np.array([1.0, 0.5, 0.0]))
    with pytest.raises(rb.ShapeError, match=r"parameters\[1\].masses must have shape \(2,\) \(model.nb\)"):
        arm(parameters=(LIGHT, envs.Parameters(masses=np.ones(3))))
    with pytest.raises(rb.ArgumentError, match="payload must be finite and not negative"):
        envs.Parameters(payload=-1.0)
    with pytest.raises(rb.DtypeError, match=r"state must be an envs\.EnvState, got Transition"):
        state = envs.reset(VARIED, KEYS[0])
        envs.step(VARIED, untyped(envs.step(VARIED, state, jnp.zeros(2))), jnp.zeros(2))
    with pytest.raises(rb.ShapeError, match=r"action must have shape \(2,\) \(env.action_size\)"):
        envs.step(VARIED, state, jnp.zeros(3))
    for untypical in ("ab", None, np.array([None, None])):
        with pytest.raises(rb.DtypeError, match="action must be an array of floats"):
            envs.step(VARIED, state, untyped(untypical))
    for nonsense in (jnp.nan, jnp.inf):
        with pytest.raises(rb.ArgumentError, match="action must be finite, got"):
            envs.step(VARIED, state, jnp.array([0.0, nonsense]))
    with pytest.raises(rb.ShapeError, match=r"lower\.masses and upper\.masses"):
        envs.draw_parameters(envs.Parameters(), envs.Parameters(masses=np.ones(2)), KEYS[0])


def test_goals_beyond_the_limits_are_refused():
    b = envs.reach()
    high = b.model.position_upper + 1.0
    with pytest.raises(rb.ArgumentError, match=r"goals\[1\]\[0\] of joint .* must be within"):
        envs.Environment(
            b.model, b.hand, b.start, (b.start, high), stiffness=b.stiffness, damping=b.damping, speed=b.speed
        )
