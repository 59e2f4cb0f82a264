"""Observers, contacts and payloads against pinocchio and what was put in."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import rbydyn_jax as rb
from rbydyn_jax import estimation, robots
from rbydyn_jax.rby1.commands import model_description
from rbydyn_jax.rby1.states import state_log
from rbydyn_jax.spatial import inertia
from tests.helpers import X64, assert_close, normal, oracle

PERIOD = 1e-3
ARM = robots.panda_like()
HAND = ARM.link_names[-1]
ZERO, ROWS = jnp.zeros(ARM.nv), jnp.zeros((3, ARM.nv))


def _log(model, steps: int = 400, fine: int = 5):
    """A motion that pinocchio integrates under torques of motors and a wrench on the hand, from row 100 to row 300.

    Returns positions, velocities and torques of the motors at each row, and the mean external torques after it.
    """
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    twin, rng = pin_model(model), np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, model.nv), np.zeros(model.nv)
    held, amplitude, wrench = twin.gravity(q), 3.0 * rng.normal(size=model.nv), 10.0 * rng.normal(size=6)
    h, damping, rows = PERIOD / fine, np.asarray(model.damping), []
    for k in range(steps):
        first, external = (q, v, held + amplitude * np.sin(20.0 * k * PERIOD)), np.zeros(model.nv)
        for i in range(fine):
            motors = held + amplitude * np.sin(20.0 * (k * PERIOD + (i + 0.5) * h))
            middle = q + 0.5 * h * v
            pushed = twin.jacobian(middle, HAND).T @ wrench * (100 <= k < 300)
            a = twin.aba(middle, v, motors - damping * v + pushed)
            a = twin.aba(middle, v + 0.5 * h * a, motors - damping * (v + 0.5 * h * a) + pushed)
            q, v, external = q + h * v + 0.5 * h * h * a, v + h * a, external + pushed / fine
        rows.append((*first, external))
    return [jnp.asarray(x) for x in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def model():
    return eqx.tree_at(lambda m: (m.damping, m.friction), ARM, (jnp.full(ARM.nv, 0.7), ZERO))


@pytest.mark.slow
def test_external_torques_are_a_low_pass_of_those_that_acted(model):
    q, v, tau, external = _log(model)
    gain = np.linspace(20.0, 60.0, model.nv)
    got = estimation.external_torques(model, q, v, tau, PERIOD, jnp.asarray(gain))
    want = np.zeros_like(external)
    for j, k in enumerate(gain * PERIOD):
        want[1:, j] = lfilter([k], [1 + k, -1], np.asarray(external)[:-1, j])
    assert np.abs(external[150]).max() > 5.0
    assert_close(got[1:], want[1:], 1e-3)

    observer = estimation.start_observer(model, q[0], v[0], tau[0])
    for k in range(1, 150):
        observer = estimation.observe(model, observer, q[k], v[k], tau[k], PERIOD, jnp.asarray(gain))
    assert_close(observer.torque, got[149], 1e-9)


@pytest.mark.ci
def test_samples_that_are_not_finite_are_skipped():
    """A pendulum that hangs still while its motor pulls with 3 N m: -3 act from outside, whatever samples are lost."""
    arm, gain, dt, count = robots.pendulum(mass=2.0), 20.0, 0.01, 120
    still, pull = jnp.zeros((count, 1)), jnp.full((count, 1), 3.0)
    q, v, tau = still.at[0].set(jnp.nan), still.at[30].set(jnp.nan), pull.at[60:63].set(jnp.nan)
    log = estimation.external_torques(arm, q, v, tau, dt, gain)
    observer = estimation.start_observer(arm, q[0], v[0], tau[0])
    for k in range(1, count):
        observer = estimation.observe(arm, observer, q[k], v[k], tau[k], dt, gain)
        assert_close(observer.torque, log[k], 1e-12)
    # The observer begins with the second sample. With held estimates n lost samples make the error -n K dt of itself.
    error, want, lost = 3.0, [0.0, 0.0], 0
    for k in range(2, count):
        if k in (30, 60, 61, 62):
            lost += 1
        else:
            error, lost = error * (1.0 - lost * gain * dt) / (1.0 + gain * dt), 0
        want.append(error - 3.0)
    assert_close(log[:, 0], want, 1e-12 if X64 else 1e-5)


@pytest.mark.ci
def test_a_wrench_is_recovered_where_all_of_it_is_felt():
    q, wrench = jnp.asarray(np.linspace(0.2, 1.1, ARM.nv)), normal(1, 6)
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    twin = pin_model(ARM)
    torques = jnp.asarray(twin.jacobian(np.asarray(q), HAND).T @ np.asarray(wrench))
    found = estimation.contact_wrench(ARM, q, torques, HAND)
    assert int(found.rank) == 6
    assert_close(found.wrench, wrench, 1e-9)
    assert_close(found.unexplained, np.zeros(ARM.nv), 1e-9, scale=1.0)
    # A force at a point has the moment p x f about the origin.
    point = jnp.array([0.1, -0.2, 0.3])
    R = np.asarray(rb.link_pose(ARM, q, HAND))[:3, :3]
    force = np.asarray(wrench)[3:]
    pushed = np.concatenate([np.cross(R @ np.asarray(point), force), force])
    torques = jnp.asarray(twin.jacobian(np.asarray(q), HAND).T @ pushed)
    assert_close(estimation.contact_force(ARM, q, torques, HAND, point).force, force, 1e-9)


def test_what_is_not_felt_is_not_claimed():
    arm, q = robots.two_link_arm(), jnp.array([0.3, 0.8])
    J = np.asarray(rb.jacobian(arm, q, "tool"))
    wrench = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = estimation.contact_wrench(arm, q, jnp.asarray(J.T @ wrench), "tool")
    span = np.asarray(found.observed)
    assert int(found.rank) == 2
    assert_close(jnp.asarray(span @ span.T @ wrench), np.asarray(found.wrench), 1e-9)
    assert_close(jnp.asarray(J.T @ span @ span.T), J.T, 1e-9)
    still = estimation.contact_wrench(arm, q, jnp.zeros(2), arm.link_names[0])  # the base: nothing is felt
    assert int(still.rank) == 0 and not np.asarray(still.wrench).any()


@pytest.mark.ci
def test_the_touched_body_is_the_last_that_feels_it():
    model = robots.rby1a()
    q = jnp.asarray(np.random.default_rng(3).uniform(-1, 1, model.nq))
    for link in ("link_right_arm_3", "link_torso_2", "link_head_1"):
        torques = rb.jacobian(model, q, link).T @ normal(4, 6)
        body = int(estimation.touched_body(model, torques, 1e-6))
        assert model.link_names[model.tree.principal_links[body]] == link
    assert int(estimation.touched_body(model, jnp.zeros(model.nv), 1e-6)) == -1


def _loaded(payload):
    """The arm with a payload that pinocchio appends."""
    pin = oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    twin = pin_model(ARM)
    m, c, I = inertia.to_mass_com(payload)  # noqa: E741
    frame = twin.model.frames[twin.model.getFrameId(HAND)]
    body = pin.Inertia(float(m), np.asarray(c), np.asarray(I))
    twin.model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
    twin.data = twin.model.createData()
    return twin


@pytest.mark.slow
def test_a_payload_is_what_pinocchio_was_given():
    payload = inertia.from_mass_com(
        jnp.asarray(2.5), jnp.array([0.05, -0.02, 0.1]), jnp.diag(jnp.array([0.02, 0.03, 0.04]))
    )
    loaded = _loaded(payload)
    q, v, a = (normal(k, 60, ARM.nv) for k in (5, 6, 7))
    tau = np.array([loaded.rnea(*map(np.asarray, row)) for row in zip(q, v, a, strict=True)])
    Y = jax.jit(jax.vmap(lambda q, v, a: estimation.payload_regressor(ARM, q, v, a, HAND)))(q, v, a)
    unloaded = jax.jit(jax.vmap(lambda *s: rb.rnea(ARM, *s)))(q, v, a)
    assert_close(jnp.einsum("tij,j->ti", Y, payload), tau - np.asarray(unloaded), 1e-9)

    estimate = estimation.start_payload(ARM)
    for k, measured in enumerate(jnp.asarray(tau)):
        estimate = estimation.observe_payload(ARM, estimate, q[k], v[k], a[k], measured, HAND, noise=1e-3)
    assert_close(estimate.parameters, payload, 1e-5)
    assert_close(estimate.mass, 2.5, 1e-5)
    assert_close(estimate.center_of_mass, np.array([0.05, -0.02, 0.1]), 1e-4)
    deviation = np.sqrt(np.diag(estimate.covariance))
    assert (np.abs(np.asarray(estimate.parameters - payload)) < 3.0 * deviation).all()

    # Put down: with forgetting the estimate follows.
    for k, measured in enumerate(unloaded):
        rest = measured, HAND
        estimate = estimation.observe_payload(ARM, estimate, q[k], v[k], a[k], *rest, noise=1e-3, forgetting=0.8)
    assert abs(float(estimate.mass)) < 1e-3


@pytest.mark.ci
def test_what_a_still_robot_does_not_feel_stays_that_of_the_prior():
    """Else the information of what is not felt would fade to nothing, and its estimate grow without bounds."""
    q, still = jnp.linspace(0.2, 0.8, ARM.nv), jnp.zeros(ARM.nv)
    tau = rb.gravity_forces(rb.attach_payload(ARM, HAND, 1.2, jnp.array([0.0, 0.02, -0.05])), q)

    def observed(estimate, key):
        noise = 0.1 * jax.random.normal(key, tau.shape, tau.dtype)
        measured = q, still, still, tau + noise, HAND
        return estimation.observe_payload(ARM, estimate, *measured, noise=0.1, forgetting=0.95), None

    keys = jax.random.split(jax.random.key(0), 3000)
    estimate, _ = jax.lax.scan(observed, estimation.start_payload(ARM), keys)
    deviation = jnp.sqrt(jnp.diag(estimate.covariance))
    assert_close(deviation[4:], jnp.full(6, 10.0 * 0.3**2), 1e-6)
    assert_close(estimate.parameters[4:], jnp.zeros(6), 1e-9)
    assert (jnp.abs(estimate.parameters[:4]) < jnp.array([3.0, 1.0, 1.0, 1.0])).all()


@pytest.mark.ci
def test_states_of_the_sdk_are_in_the_order_of_the_model():
    sdk, model = oracle("rby1_sdk"), robots.rby1m()
    names = model_description("M").robot_joint_names
    fields = ("position", "velocity", "torque", "current")

    def state(k: int):
        values = {f: np.arange(26.0) + 100 * i + k for i, f in enumerate(fields)}
        return SimpleNamespace(timestamp=datetime(2026, 1, 1) + timedelta(milliseconds=2 * k), **values)

    log = state_log(model, [state(0), state(1)], "M")
    for j, name in enumerate(model.joint_names):
        assert float(log.q[1, j]) == names.index(name) + 1
        assert float(log.tau[0, j]) == names.index(name) + 200
    assert_close(log.t, np.array([0.0, 0.002]))
    own = sdk.RobotState_M()
    assert state_log(model, [own], "M").v.shape == (1, 26)
    arm = rb.submodel(model, "link_right_arm_0")
    assert state_log(arm, [own], model_description("M")).current.shape == (1, arm.nv)
    with pytest.raises(rb.ShapeError, match=r"states\[0\].position must have shape \(24,\)"):
        state_log(robots.rby1a(), [own], "A")
    with pytest.raises(rb.ModelError, match="is none of the RB-Y1 'A'"):
        state_log(model, [own], "A")
    with pytest.raises(rb.ArgumentError, match=r"states\[1\] is not later"):
        state_log(model, [own, own], "M")
    with pytest.raises(rb.ArgumentError, match="at least one state"):
        state_log(model, [], "M")
    with pytest.raises(rb.DtypeError, match=r"states\[0\] must be a state of the SDK, got int"):
        state_log(model, [3], "M")


def _observed(period):
    return estimation.observe(ARM, estimation.MomentumObserver(ZERO, ZERO, ZERO), ZERO, ZERO, ZERO, period, 1.0)


WRONG = {
    "gain": (lambda: estimation.external_torques(ARM, ROWS, ROWS, ROWS, 0.1, -1.0), rb.ArgumentError),
    "period must be finite": (lambda: _observed(float("nan")), rb.ArgumentError),
    "period": (lambda: estimation.external_torques(ARM, ROWS, ROWS, ROWS, 0.0, 1.0), rb.ArgumentError),
    "q": (
        lambda: estimation.external_torques(ARM, jnp.zeros((3, 2)), ROWS, ROWS, 1, 1),
        rb.ShapeError,
    ),
    "v": (lambda: estimation.external_torques(ARM, ROWS[:0], ROWS[:0], ROWS[:0], 0.1, 1.0), rb.ShapeError),
    "cutoff": (lambda: estimation.contact_wrench(ARM, ZERO, ZERO, HAND, cutoff=-1.0), rb.ArgumentError),
    "link": (lambda: estimation.contact_wrench(ARM, ZERO, ZERO, "nose"), rb.NameNotFoundError),
    "threshold": (lambda: estimation.touched_body(ARM, ZERO, -1.0), rb.ArgumentError),
    "mass": (lambda: estimation.start_payload(ARM, mass=0.0), rb.ArgumentError),
    "forgetting": (
        lambda: estimation.observe_payload(
            ARM, estimation.start_payload(ARM), ZERO, ZERO, ZERO, ZERO, HAND, forgetting=1.5
        ),
        rb.ArgumentError,
    ),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_name_the_argument(name):
    call, error = WRONG[name]
    with pytest.raises(error, match="nose" if name == "link" else name):
        call()


def test_robots_without_joints_feel_nothing():
    still = rb.build_model(rb.RobotBuilder("still").link("w").link("a", 1.0, inertia=0.1).fixed("f", "w", "a"))
    none = jnp.zeros(0)
    wrench, force = (
        estimation.contact_wrench(still, none, none, "a"),
        estimation.contact_force(still, none, none, "a", jnp.zeros(3)),
    )
    assert int(wrench.rank) == int(force.rank) == 0 and not wrench.wrench.any() and not force.force.any()
    assert int(estimation.touched_body(still, none, 0.1)) == -1


@pytest.mark.parametrize("field", ["torque", "momentum", "rate"])
def test_an_observer_of_another_robot_is_refused(field):
    observer = estimation.start_observer(ARM, ZERO, ZERO, ZERO)
    wrong = eqx.tree_at(lambda o: getattr(o, field), observer, jnp.zeros(3))
    with pytest.raises(rb.ShapeError, match=f"observer.{field} must have shape"):
        estimation.observe(ARM, wrong, ZERO, ZERO, ZERO, 0.1, 1.0)


@pytest.mark.parametrize("field", ["information", "vector"])
def test_an_estimate_of_another_shape_is_refused(field):
    wrong = eqx.tree_at(lambda e: getattr(e, field), estimation.start_payload(ARM), jnp.zeros((3, 3)))
    with pytest.raises(rb.ShapeError, match=f"estimate.{field} must have shape"):
        estimation.observe_payload(ARM, wrong, ZERO, ZERO, ZERO, ZERO, HAND)


def test_estimates_have_the_dtype_of_the_samples():
    arm, zero = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (ARM, ZERO))
    observer = estimation.observe(arm, estimation.start_observer(ARM, ZERO, ZERO, ZERO), zero, zero, zero, 0.1, 1.0)
    payload = estimation.observe_payload(arm, estimation.start_payload(ARM), zero, zero, zero, zero, HAND)
    assert {x.dtype for x in jax.tree.leaves((observer, payload))} == {jnp.dtype("float32")}


@pytest.mark.ci
@pytest.mark.parametrize("name", ["link2", "link5", "tool"])
def test_derivatives_of_a_wrench_are_finite_where_joints_feel_little(name):
    """Of links with fewer than six joints, whose Jacobians have columns of zeros, by differences."""
    arm = robots.panda_like()
    arm, q = (
        jax.tree.map(lambda x: x.astype(jnp.zeros(()).dtype), y)
        for y in (arm, jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5]))
    )
    tau, dq = jnp.arange(1.0, 8.0).astype(q.dtype), jnp.asarray(np.random.default_rng(0).normal(size=7), q.dtype)

    def found(q):
        wrench = estimation.contact_wrench(arm, q, tau, name)
        force = estimation.contact_force(arm, q, tau, name, jnp.array([0.1, 0.0, 0.2], q.dtype))
        return wrench.wrench, wrench.unexplained, wrench.observed @ wrench.observed.T, force.force

    h = 1e-6 if q.dtype == jnp.float64 else 3e-3
    _, along = jax.jit(lambda q: jax.jvp(found, (q,), (dq,)))(q)
    ahead = jax.jit(jax.vmap(found))(jnp.stack([q + h * dq, q - h * dq]))
    for slope, x in zip(along, ahead, strict=True):
        assert_close(slope, (x[0] - x[1]) / (2.0 * h), kind="difference", scale=max(1.0, float(jnp.abs(slope).max())))
    back = jax.jacrev(lambda q: estimation.contact_wrench(arm, q, tau, name).wrench)(q)
    assert_close(back @ dq, along[0], kind="solve")


def test_payloads_of_a_batch_are_those_of_each():
    tau = ZERO + 5.0
    each = [
        estimation.observe_payload(ARM, estimation.start_payload(ARM), q, ZERO, ZERO, tau, HAND)
        for q in (ZERO, ZERO + 0.3)
    ]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *each)
    for field in ("parameters", "covariance", "mass", "center_of_mass"):
        want = np.stack([getattr(x, field) for x in each])
        np.testing.assert_allclose(getattr(batch, field), want, rtol=1e-9 if X64 else 1e-3)
