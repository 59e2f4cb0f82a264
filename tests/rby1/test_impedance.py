"""Joint impedance: the law against golden figures and scipy, the commanded robot against solutions found elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal
from jax.flatten_util import ravel_pytree

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    ModelError,
    NameNotFoundError,
    ShapeError,
    build_model,
    crba,
    gravity_forces,
    lock_joints,
    robots,
    with_gravity,
    with_inertias,
    with_limits,
)
from rbydyn_jax.rby1.commands import (
    ArmCommand,
    BodyCommand,
    BodyComponentBasedCommand,
    ComponentBasedCommand,
    JointImpedanceControlCommand,
    JointPositionCommand,
    RobotCommand,
)
from rbydyn_jax.rby1.impedance import damping_matrix, impedance_torque, rollout, square_root
from rbydyn_jax.rby1.impedance.components import components
from tests.helpers import BATCH, X64, assert_close, normal, oracle, untyped

FAST = 1e12  # limits with which the reference is at the target from the second period on


def positive_matrices(seed: int, count: int, n: int) -> jax.Array:
    B = normal(seed, count, n, n)
    return jnp.einsum("kij,klj->kil", B, B) + 0.1 * jnp.eye(n, dtype=B.dtype)[None]


# The square root.


@pytest.mark.float32
def test_square_root_squares_to_the_matrix():
    A = positive_matrices(0, BATCH, 5)
    S = np.asarray(jax.jit(jax.vmap(square_root))(A))
    assert_close(S @ S, A)
    assert_close(S, np.swapaxes(S, 1, 2))
    assert (np.linalg.eigvalsh(S) > 0.0).all()
    if X64:
        assert_close(S[0], scipy.linalg.sqrtm(np.asarray(A[0])), 1e-11)


def distinct_double_and_equal() -> jax.Array:
    """Matrices 3x3 whose eigenvalues are distinct, twice the same, nearly the same, and all the same."""
    Q = np.linalg.qr(np.asarray(normal(1, 3, 3), float))[0]
    spectra = [(1.0, 2.0, 5.0), (2.0, 2.0, 5.0), (2.0, 2.0 + 1e-13, 5.0), (4.0, 4.0, 4.0)]
    return jnp.asarray(np.stack([Q @ np.diag(s) @ Q.T for s in spectra] + [2.25 * np.eye(3)]))


def test_square_root_has_derivatives_at_equal_eigenvalues():
    if not X64:
        pytest.skip("finite differences")
    A = distinct_double_and_equal()
    B = positive_matrices(2, 5, 3)
    W = normal(3, 3, 3)

    @jax.jit
    @jax.vmap
    def derivatives(A, dA):
        first = jax.jvp(square_root, (A,), (dA,))[1]
        second = jax.jvp(lambda A: jax.jvp(square_root, (A,), (dA,))[1], (A,), (dA,))[1]

        def scalar(A):
            return jnp.sum(W * square_root(A))

        gradient, hessian_row = jax.grad(scalar)(A), jax.grad(lambda A: jnp.sum(jax.grad(scalar)(A) * dA))(A)
        return first, second, jnp.sum(gradient * dA), jnp.sum(hessian_row * dA)

    first, second, by_gradient, by_hessian = derivatives(A, B)
    h = 1e-4
    for k in range(len(A)):
        S0, Sp, Sm = (np.asarray(scipy.linalg.sqrtm(np.asarray(A[k] + s * h * B[k]))) for s in (0.0, 1.0, -1.0))
        S = np.asarray(scipy.linalg.sqrtm(np.asarray(A[k])))
        assert_close(S @ first[k] + first[k] @ S, B[k])  # what defines it
        assert_close((Sp - Sm) / (2 * h), first[k], kind="difference")
        assert_close((Sp - 2 * S0 + Sm) / h**2, second[k], 1e-5)  # of rounding, 1e-16 / h^2
        assert_close(by_gradient[k], np.sum(np.asarray(W) * np.asarray(first[k])), kind="solve")
        assert_close(by_hessian[k], np.sum(np.asarray(W) * np.asarray(second[k])), kind="solve")


@pytest.mark.ci
@pytest.mark.float32
def test_square_root_of_a_singular_matrix_is_finite(dtype):
    A = jnp.stack([jnp.zeros((2, 2), dtype), jnp.ones((2, 2), dtype)])
    assert_close(
        jax.vmap(square_root)(A), np.array([np.zeros((2, 2)), np.full((2, 2), 0.5**0.5)]), 1e-7 if X64 else 1e-3
    )
    assert bool(jnp.isfinite(jax.vmap(jax.jacfwd(square_root))(A)).all())
    with pytest.raises(ShapeError, match="square"):
        square_root(jnp.zeros((2, 3)))


# The law.


@pytest.mark.float32
def test_damping_of_one_joint_is_the_textbook_s(dtype):
    m, k, zeta = jnp.asarray(0.3, dtype), jnp.asarray(70.0, dtype), 0.4
    assert_close(damping_matrix(m[None, None], k[None], zeta), [[2 * 0.4 * np.sqrt(0.3 * 70.0)]])


def test_damping_against_scipy():
    if not X64:
        pytest.skip("scipy computes in float64")
    (M,), k = positive_matrices(4, 1, 6), np.linspace(10.0, 90.0, 6)
    S, root = scipy.linalg.sqrtm(np.asarray(M)), np.diag(np.sqrt(k))
    assert_close(damping_matrix(M, jnp.asarray(k), 0.7), 0.7 * (S @ root + root @ S), 1e-11)


@pytest.fixture(scope="module")
def posed_rby1():
    """The RB-Y1 A of the golden figures, its configuration, and its mass matrix."""
    model = robots.rby1a()
    q = np.zeros(24)
    q[2:8] = [0, 0.3386, -0.8486, 1.0331, 0, 0]
    q[8:15] = [0.1112, -1.4714, -0.1801, -2.0418, -1.9436, 0.8052, -0.6198]
    q = jnp.asarray(q)
    return model, q, crba(model, q)


@pytest.mark.slow
def test_golden_damping_of_the_right_arm(posed_rby1):
    _, _, M = posed_rby1
    block = M[8:15, 8:15]
    assert_close(jnp.diag(block), [0.364377, 0.340151, 0.315700, 0.284270, 0.015291, 0.026284, 0.001026], 2e-6)
    D = damping_matrix(block, jnp.full(7, 100.0))
    assert_close(jnp.diag(D), [10.389147, 10.957106, 9.402623, 10.390118, 2.037614, 2.567600, 0.626916], 1e-7)
    assert_close(jnp.trace(D), np.array(46.371125), 1e-8)
    D = damping_matrix(block, jnp.array([80.0] * 6 + [40.0]), 0.7)
    assert_close(jnp.diag(D), [6.504635, 6.860233, 5.886973, 6.505243, 1.275748, 1.607572, 0.277548], 1e-7)


@pytest.mark.slow
def test_torques_of_a_tree_of_commands(posed_rby1):
    """Each component has the damping of its own block; what is not commanded gets nothing."""
    model, q, M = posed_rby1
    rng, torso, right = np.random.default_rng(0), slice(2, 8), slice(8, 15)
    arm = JointImpedanceControlCommand(
        position=np.zeros(7), stiffness=np.full(7, 60.0), torque_limit=np.array([5.0] * 6 + [20.0])
    )
    body = BodyComponentBasedCommand(
        right_arm_command=ArmCommand(arm),
        torso_command=JointImpedanceControlCommand(
            position=np.zeros(6), stiffness=np.full(6, 400.0), damping_ratio=0.7
        ),
    )
    command = RobotCommand(ComponentBasedCommand(body_command=BodyCommand(body)))
    command.validate("A")
    v, q_desired, v_desired = (jnp.asarray(0.2 * rng.normal(size=24)) for _ in range(3))
    tau = np.asarray(impedance_torque(model, command, q, v, q + q_desired, v_desired))
    gravity = np.asarray(gravity_forces(model, q))

    def law(at, k, zeta, limit):
        block, K = np.asarray(M)[at, at], k * np.eye(at.stop - at.start)
        S = scipy.linalg.sqrtm(block)
        D = zeta * (S @ np.sqrt(K) + np.sqrt(K) @ S)
        return np.clip(K @ q_desired[at] + D @ (v_desired - v)[at] + gravity[at], -limit, limit)

    effort = np.asarray(model.effort_limit)
    want = law(right, 60.0, 1.0, np.minimum([5.0] * 6 + [20.0], effort[right]))
    assert (np.abs(want) < 5.0).any() and (np.abs(want) == 5.0).any() and abs(want[6]) == 8.0
    assert_close(tau[right], want, 1e-10)
    assert_close(tau[torso], law(torso, 400.0, 0.7, effort[torso]), 1e-10)
    assert not tau[:2].any() and not tau[15:].any()


@pytest.mark.parametrize(
    ("joints", "indices"),
    [("right_arm", range(8, 15)), ("left_arm", range(15, 22)), ("torso", range(2, 8)), ("body", range(2, 22))],
)
def test_joints_of_the_parts_are_those_of_the_sdk(joints, indices):
    model, n = robots.rby1a(), len(indices)
    command = JointImpedanceControlCommand(position=np.zeros(n), stiffness=np.ones(n))
    for given in (joints, [model.joint_names[k] for k in indices]):
        (part,) = components(model, command, given)
        assert part.q_indices == part.v_indices == tuple(indices)
    sdk = oracle("rby1_sdk").Model_A()
    assert tuple(getattr(sdk, f"{joints}_idx")) == tuple(indices)


# The commanded robot.


@pytest.fixture(scope="module")
def weightless_pendulum():
    """One joint of 0.5 kg m^2 without gravity: a linear system."""
    return with_gravity(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(3))


def step_command(k=50.0, zeta=0.3, target=0.4) -> JointImpedanceControlCommand:
    return JointImpedanceControlCommand(
        position=np.array([target]),
        stiffness=np.array([k]),
        damping_ratio=zeta,
        velocity_limit=np.array([FAST]),
        acceleration_limit=np.array([FAST]),
    )


@pytest.mark.ci
def test_one_joint_is_the_sampled_linear_system(weightless_pendulum):
    """Exactly what scipy makes of the double integrator when a law of the sampled state drives it."""
    if not X64:
        pytest.skip("the reference computes in float64")
    m, k, zeta, target, h = 0.5, 50.0, 0.3, 0.4, 0.002
    d = 2 * zeta * np.sqrt(m * k)
    A, B, *_ = untyped(scipy.signal.cont2discrete)(
        tuple(map(np.array, ([[0, 1], [0, 0]], [[0], [1 / m]], np.eye(2), [[0], [0]]))), h
    )
    motion = rollout(weightless_pendulum, step_command(), jnp.array([-0.1]), jnp.array([0.7]), 0.5)
    assert motion.q.shape == (251, 1) and motion.tau.shape == (250, 1)
    assert_close(motion.times, h * np.arange(251))
    x, states = np.array([-0.1, 0.7]), []
    for i in range(251):
        states.append(x)
        u = k * (target - x[0]) - d * x[1] if i else 0.0  # at first the reference is where the joint is
        x = A @ x + B[:, 0] * u
    assert_close(motion.q[:, 0], np.array(states)[:, 0])
    assert_close(motion.v[:, 0], np.array(states)[:, 1])


@pytest.mark.parametrize(
    ("w", "zeta", "stable"),
    [(475.0, 1.0, True), (525.0, 1.0, False), (100.0, 0.08, True), (100.0, 0.03, False)],
)
def test_sampling_makes_too_much_and_too_little_damping_unstable(weightless_pendulum, w, zeta, stable, dtype):
    """Beyond D / M = 2 / period, and below zeta = w period / 4, the distance to the target grows."""
    zero = jnp.zeros(1, dtype)
    motion = rollout(weightless_pendulum, step_command(k=0.5 * w**2, zeta=zeta), zero, zero, 0.5)
    error = np.abs(np.asarray(motion.q)[:, 0] - 0.4)
    assert (error[-50:].max() < 0.5 * error[:50].max()) == stable
    assert stable or error[-50:].max() > 1.5 * error[:50].max()


@pytest.mark.ci
@pytest.mark.parametrize("zeta", [0.3, 1.0])
def test_one_joint_decays_as_the_damped_oscillator(weightless_pendulum, zeta):
    """With short periods: x'' + 2 zeta w x' + w^2 x = 0, its solution in closed form."""
    if not X64:
        pytest.skip("many short periods")
    w, e0 = np.sqrt(50.0 / 0.5), -0.4

    def error(h):
        start = (jnp.zeros(1), jnp.zeros(1))
        motion = rollout(weightless_pendulum, step_command(zeta=zeta), *start, 0.6, period=h)
        t = np.asarray(motion.times) - h  # nothing happens in the first period
        if zeta < 1.0:
            wd = w * np.sqrt(1 - zeta**2)
            x = e0 * np.exp(-zeta * w * t) * (np.cos(wd * t) + zeta * w / wd * np.sin(wd * t))
        else:
            x = e0 * (1 + w * t) * np.exp(-w * t)
        return np.abs(np.asarray(motion.q)[1:, 0] - 0.4 - x[1:]).max()

    coarse, fine = error(1e-3), error(1e-4)
    assert fine < 5e-4 * abs(e0) and 8.0 < coarse / fine < 12.0  # of first order in the period


def lossy_pendulum():
    """Two rods under gravity, with viscous friction and rotors."""
    numbers = jnp.array([0.3, 0.1]), jnp.array([0.05, 0.02])
    return eqx.tree_at(lambda m: (m.damping, m.armature), robots.double_pendulum(masses=(2.0, 1.0)), numbers)


@pytest.mark.slow
def test_nonlinear_motion_against_pinocchio_and_scipy():
    """Against an adaptive solver on pinocchio's forward dynamics, extrapolated to a period of zero."""
    oracle("pinocchio")
    if not X64:
        pytest.skip("the reference computes in float64")
    from rbydyn_jax.engines.pinocchio import pin_model

    model = lossy_pendulum()
    n, T = model.nq, 0.2
    robot = pin_model(model)
    q0, v0 = np.array([0.4, -0.9]), np.array([1.0, -2.0])
    k, zeta = np.array([20.0, 5.0]), 0.6
    # With such limits the reference is at the target from the second period on, for any period.
    command = JointImpedanceControlCommand(
        position=q0 + 0.5,
        stiffness=k,
        damping_ratio=zeta,
        velocity_limit=np.full(n, FAST),
        acceleration_limit=np.full(n, FAST),
    )

    def f(_, x):
        q, v = x[:n], x[n:]
        S, root = scipy.linalg.sqrtm(robot.crba(q)), np.diag(np.sqrt(k))
        D = zeta * (S @ root + root @ S)
        tau = k * (command.position - q) - D @ v + robot.rnea(q, 0 * v, 0 * v)
        return np.concatenate([v, robot.aba(q, v, tau - np.asarray(model.damping) * v)])

    want = scipy.integrate.solve_ivp(f, (0.0, T), np.concatenate([q0, v0]), rtol=1e-9, atol=1e-11).y[:, -1]
    ends = []
    for h in (2e-4, 1e-4):
        motion = rollout(model, command, jnp.asarray(q0), jnp.asarray(v0), T, period=h)
        ends.append(np.concatenate([motion.q[-1], motion.v[-1]]))
    assert_close(ends[1], want, 2e-4)
    assert_close(2 * ends[1] - ends[0], want, 1e-6)


@pytest.mark.slow
def test_holds_still_against_gravity_on_the_target():
    model = robots.panda_like()
    q = 0.3 * normal(7, model.nq)
    command = JointImpedanceControlCommand(position=q, stiffness=np.full(model.nq, 50.0))
    motion = rollout(model, command, q, jnp.zeros_like(q), 0.1)
    assert_close(motion.q, np.tile(q, (51, 1)))
    assert_close(motion.tau[-1], gravity_forces(model, q), kind="solve")
    assert float(jnp.abs(motion.tau).max()) > 1.0


@pytest.mark.slow
def test_what_is_not_commanded_is_held_as_if_it_were_locked():
    model = lossy_pendulum()
    locked = lock_joints(model, {"shoulder": 0.7})
    limits: dict[str, Any] = {"velocity_limit": np.ones(1), "acceleration_limit": np.full(1, 20.0)}
    command = JointImpedanceControlCommand(
        position=np.array([0.2]), stiffness=np.array([30.0]), minimum_time=0.05, **limits
    )
    # The velocity of the joint that is held is ignored.
    motion = rollout(model, command, jnp.array([0.7, 0.4]), jnp.array([9.0, 1.0]), 0.1, joints=("elbow",))
    alone = rollout(locked, command, jnp.array([0.4]), jnp.array([1.0]), 0.1)
    assert_close(motion.q[:, 1:], alone.q, kind="solve")
    assert_close(motion.tau[:, 1:], alone.tau, kind="solve")
    assert (motion.q[:, 0] == 0.7).all() and not motion.v[:, 0].any() and not motion.tau[:, 0].any()


@pytest.mark.slow
def test_reference_keeps_its_limits_and_the_joints_follow():
    model = robots.two_link_arm()
    limits: dict[str, Any] = {"velocity_limit": np.array([0.5, 0.8]), "acceleration_limit": np.array([3.0, 2.0])}
    command = JointImpedanceControlCommand(
        position=np.array([0.6, -0.5]), stiffness=np.array([400.0, 200.0]), minimum_time=1.5, **limits
    )
    motion = rollout(model, command, jnp.zeros(2), jnp.zeros(2), 3.0)
    h = 0.002
    assert (np.abs(motion.v_desired) <= limits["velocity_limit"] + 1e-12).all()
    rates = np.diff(np.asarray(motion.v_desired), axis=0) / h
    assert (np.abs(rates) <= limits["acceleration_limit"] * (1 + 1e-9)).all()
    arrival = motion.times[int(np.argmax((np.asarray(motion.q_desired) == command.position).all(axis=1)))]
    assert arrival == pytest.approx(1.5, abs=2 * h)
    assert_close(motion.q[-1], command.position, 1e-6)
    assert float(jnp.abs(motion.q[:-1] - motion.q_desired).max()) < 0.05


@pytest.mark.ci
def test_torque_limits_hold():
    model = with_limits(robots.two_link_arm(), effort_limit=jnp.array([5.0, 100.0]))
    command = JointImpedanceControlCommand(
        position=np.array([1.5, 1.0]),
        stiffness=np.array([900.0, 900.0]),
        torque_limit=np.array([50.0, 2.0]),
        velocity_limit=np.array([9.0, 9.0]),
        acceleration_limit=np.array([900.0, 900.0]),
    )
    tau = np.abs(rollout(model, command, jnp.zeros(2), jnp.zeros(2), 0.3).tau)
    assert (tau.max(axis=0) == [5.0, 2.0]).all()


@pytest.mark.slow
def test_derivatives_with_respect_to_everything():
    """Forward, reverse and finite differences, for a batch, of a motion in which one torque is at its limit."""
    if not X64:
        pytest.skip("finite differences")
    model = robots.two_link_arm()
    command = JointImpedanceControlCommand(
        position=jnp.array([0.5, -0.4]),
        stiffness=jnp.array([60.0, 40.0]),
        damping_ratio=jnp.array(0.6),
        torque_limit=jnp.array([30.0, 0.3]),
        velocity_limit=jnp.array([1.1, 2.0]),
        acceleration_limit=jnp.array([7.0, 12.0]),
        minimum_time=jnp.array(0.31),
    )
    state = (jnp.array([0.05, 0.1]), jnp.array([0.3, -0.2]))
    masses = model.link_inertias[2]

    def motion(x):
        command, (q0, v0), inertia = x  # what is differentiated
        return rollout(with_inertias(model, {"lower": inertia}), command, q0, v0, 0.1)

    x = (command, state, masses)
    first, unravel = ravel_pytree(x)
    second, _ = ravel_pytree(eqx.tree_at(lambda x: x[0].minimum_time, x, jnp.array(0.9)))  # which is what counts then
    batch, count = jnp.stack([first, second]), len(first)

    def loss(flat):
        out = motion(unravel(flat))
        return jnp.sum(jnp.sin(3.0 * out.q)) + jnp.sum(out.v**2) + 0.01 * jnp.sum(out.tau**2), out.tau

    h, e = 1e-6, jnp.eye(count)[None]
    moved = [(batch[:, None] + sign * h * e).reshape(-1, count) for sign in (1, -1)]
    rows = jnp.concatenate([batch, *moved])
    (values, tau), reverse = jax.jit(jax.vmap(jax.value_and_grad(loss, has_aux=True)))(rows)
    clipped = np.abs(tau[:2, :, 1]) == 0.3
    assert clipped.any() and not clipped.all()
    forward = jax.jit(jax.vmap(jax.jacfwd(lambda x: loss(x)[0])))(batch)
    assert_close(reverse[:2], forward, kind="solve")
    after, before = values[2:].reshape(2, 2, count)
    assert_close((after - before) / (2 * h), forward, kind="difference")
    assert all(bool(leaf.any()) for leaf in jax.tree.leaves(jax.vmap(unravel)(forward)))


@pytest.mark.slow
@pytest.mark.float32
def test_dtype_is_that_of_the_state(dtype):
    model = robots.two_link_arm()
    command = JointImpedanceControlCommand(position=np.array([0.5, 0.2]), stiffness=np.array([60.0, 40.0]))
    q0 = jnp.zeros(2, jnp.float32)
    motion = rollout(model, command, q0, q0, 0.02)
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(motion))
    assert motion.q.shape == (11, 2)


def test_wrong_arguments():
    model, zero = robots.two_link_arm(), jnp.zeros(2)
    good = JointImpedanceControlCommand(position=np.zeros(2), stiffness=np.ones(2))
    one = JointImpedanceControlCommand(position=np.zeros(1), stiffness=np.ones(1))

    def run(model=model, duration=0.01, joints=None, **changed):
        return rollout(model, dataclasses.replace(good, **changed), zero, zero, duration, joints=joints)

    with pytest.raises(ArgumentError, match=r"command\.stiffness is not set"):
        run(stiffness=None)
    with pytest.raises(ShapeError, match=r"command\.position must have shape \(2,\)"):
        run(position=np.zeros(3))
    with pytest.raises(ArgumentError, match=r"command\.stiffness must be finite and at least 0"):
        run(stiffness=np.array([1.0, -1.0]))
    for name, value in (("stiffness", np.array([1.0, np.inf])), ("damping_ratio", np.inf)):
        with pytest.raises(ArgumentError, match=rf"command\.{name} must be finite and at least 0, got .*inf"):
            run(**untyped({name: value}))
    with pytest.raises(ArgumentError, match="command must hold a joint impedance command, got none"):
        rollout(model, ComponentBasedCommand(), zero, zero, 0.1)
    with pytest.raises(ArgumentError, match=r"command\.position must be numbers"):
        run(position=np.array([1.0, np.nan]))
    for joint, wrong in enumerate(("shoulder", "elbow")):
        for name in ("q0", "v0"):
            state = {"q0": zero, "v0": zero} | {name: zero.at[joint].set((jnp.nan, jnp.inf)[joint])}
            with pytest.raises(ArgumentError, match=rf"{name} of joint '{wrong}' must be finite, got \[(nan|inf)\]"):
                rollout(model, one, state["q0"], state["v0"], 0.01, joints=("elbow",))
    with pytest.raises(DtypeError, match="damping_ratio"):
        run(damping_ratio="soft")
    with pytest.raises(NameNotFoundError, match="shoulder"):
        run(joints=("sholder", "elbow"))
    with pytest.raises(ModelError, match="no joint whose name starts with 'torso_'"):
        run(joints="torso")
    with pytest.raises(ArgumentError, match="joints must be names"):
        run(joints="leg")
    with pytest.raises(ArgumentError, match="names a joint twice"):
        run(joints=("elbow", "elbow"))
    with pytest.raises(ArgumentError, match="duration must be positive"):
        run(duration=0.0)
    with pytest.raises(DtypeError, match="duration must be known"):
        jax.jit(lambda T: rollout(model, good, zero, zero, T))(0.1)
    with pytest.raises(ArgumentError, match=r"acceleration_limit\[0\] must be positive and finite, got inf"):
        run(acceleration_limit=np.full(2, np.inf))
    with pytest.raises(ArgumentError, match="got JointPositionCommand"):
        rollout(model, JointPositionCommand(position=zero), zero, zero, 0.1)
    head = ComponentBasedCommand(head_command=JointPositionCommand(position=zero))
    with pytest.raises(ArgumentError, match="got its head_command"):
        rollout(model, head, zero, zero, 0.1)
    floating = build_model(_floating_arm(), floating_base=True)
    with pytest.raises(ModelError, match="'floating_base' has no coordinate of its own, or several"):
        rollout(floating, good, jnp.zeros(floating.nq), jnp.zeros(floating.nv), 0.1)


def _floating_arm():
    from rbydyn_jax import RobotBuilder

    return RobotBuilder("box").link("box", 1.0, inertia=1.0).build_description()
