"""The errors of a fit, in either precision: against least squares and root mean squares in numpy's float64."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import (
    TrajectoryData,
    exciting_trajectory,
    fit,
    motor_torques,
    parameters,
    torque_regressor,
)
from tests.helpers import X64, assert_close, normal, untyped

pytestmark = [pytest.mark.float32, pytest.mark.ci]
NOISE = 0.003  # N m, of torques of some 10 N m


@functools.cache
def measured(noise: float = NOISE) -> tuple[TrajectoryData, np.ndarray, np.ndarray]:
    """A loaded arm's motion with its torques, the rows of the arm's regressor, and the torques, both in float64."""
    arm = robots.two_link_arm()
    q, v, a = (normal(k, 600, 2) for k in range(3))  # more than one chunk
    Y = np.asarray(jax.jit(jax.vmap(torque_regressor, (None, 0, 0, 0)))(arm, q, v, a), float)
    real = rb.attach_payload(arm, "tool", 0.7, jnp.array([0.1, 0.0, 0.0]))
    tau = Y @ np.asarray(real.inertias, float).reshape(-1) + np.asarray(arm.armature) * np.asarray(a)
    tau = jnp.asarray(tau + noise * np.random.default_rng(0).normal(size=tau.shape), q.dtype)
    return TrajectoryData(q, v, a, tau), Y, np.asarray(tau, float)


def rms(model: rb.Model, Y: np.ndarray, data: TrajectoryData, tau: np.ndarray) -> np.ndarray:
    """Root mean squares of the errors of a robot without friction."""
    inertias, armature = (np.asarray(x, float) for x in (model.inertias, model.armature))
    return np.sqrt(np.mean((tau - Y @ inertias.reshape(-1) - armature * np.asarray(data.a, float)) ** 2, axis=0))


def test_values_deviations_and_errors_are_those_of_least_squares():
    arm, (data, Y, tau) = robots.two_link_arm(), measured()
    found = fit(arm, data, terms=("inertia",), consistent=False)
    scale = fit(arm, data[:10], terms=("inertia",), consistent=False, noise=jnp.full(2, 1e6)).deviation  # the prior's
    before = np.asarray(parameters(arm, ("inertia",)), float)
    rest, rows = tau - np.asarray(arm.armature) * np.asarray(data.a, float), (Y / found.noise[:, None]).reshape(-1, 20)
    stacked = np.concatenate([rows * scale, np.eye(20)])
    want, *_ = np.linalg.lstsq(stacked, np.concatenate([(rest / found.noise).reshape(-1), before / scale]))
    assert_close(found.values / scale, want, 1e-5)
    assert_close(found.deviation / scale, np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked))), 1e-5)
    errors = np.sqrt(np.mean((rest - Y @ (scale * want)) ** 2, axis=0))
    assert_close(found.noise, errors, 1e-3)
    assert_close(found.residual, errors, 1e-3)
    assert_close(errors, np.full(2, NOISE), 0.1)


def test_the_residual_is_the_root_mean_square_of_all_errors():
    arm, (data, Y, tau) = robots.two_link_arm(), measured()
    wrong = tau + 30.0 * (np.random.default_rng(1).random(tau.shape) < 0.05)
    outliers = TrajectoryData(*data.motion, jnp.asarray(wrong, data.tau.dtype))
    robust = fit(arm, outliers, terms=("inertia",), payload="tool", huber=2.0)
    assert_close(robust.residual, rms(robust.model, Y, data, wrong), 1e-5)
    assert robust.residual.min() > 5.0
    assert_close(robust.noise, np.full(2, NOISE), 0.15)
    clean = fit(arm, data, terms=("inertia",), payload="tool")
    assert_close(robust.deviation, clean.deviation, 0.2)
    constants = np.array([4.0, 0.5])
    currents = TrajectoryData(*data.motion, jnp.asarray(tau / constants, data.tau.dtype))
    geared = fit(arm, currents, terms=("inertia",), payload="tool", constants=jnp.asarray(0.9 * constants))
    assert geared.constants is not None
    assert_close(geared.residual, rms(geared.model, Y, data, tau / constants * geared.constants), 1e-3)


def test_exact_torques_leave_no_error_but_rounding():
    data, *_ = measured(0.0)
    found = fit(robots.two_link_arm(), data, terms=("inertia",), payload="tool", consistent=False, prior=1e6)
    assert found.residual.max() < (1e-11 if X64 else 1e-5)


@pytest.mark.parametrize("consistent", [True, False])
def test_a_prior_that_says_next_to_nothing_leaves_the_errors_of_least_squares(consistent):
    """Of twenty inertial parameters torques tell a few: the others are known by the prior alone."""
    arm, (data, Y, tau) = robots.two_link_arm(), measured()
    rest = (tau - np.asarray(arm.armature) * np.asarray(data.a, float)).reshape(-1)
    best, *_ = np.linalg.lstsq(Y.reshape(-1, 20), rest)
    least = np.sqrt(np.mean((rest - Y.reshape(-1, 20) @ best) ** 2))
    for prior in (1e4, 1e5, 1e6):
        found = fit(arm, data, terms=("inertia",), consistent=consistent, prior=prior)
        assert found.converged
        assert_close(np.sqrt(np.mean(found.residual**2)), least, 0.01)
        deviation = found.deviation  # a RuntimeWarning of NumPy would be an error
        assert deviation.min() > 0.0 and deviation.max() > prior
    with pytest.raises(rb.ArgumentError, match=r"prior must be at most 1e\+06"):
        fit(arm, data, consistent=consistent, prior=1e7)


@pytest.mark.parametrize("silent", [[1], [0, 1]])
def test_currents_that_are_all_zero_are_refused(silent):
    arm, (data, *_) = robots.two_link_arm(), measured()
    currents = TrajectoryData(*data.motion, data.tau.at[:, np.array(silent)].set(0.0))
    names = ", ".join(repr(arm.joint_names[k]) for k in silent)
    with pytest.raises(rb.ArgumentError, match=f"data.tau: the currents of joint {names} are all zero"):
        fit(arm, currents, terms=("friction",), constants=jnp.ones(2, data.tau.dtype))


def test_numbers_whose_squares_are_beyond_floating_point_are_refused():
    arm, (data, *_) = robots.two_link_arm(), measured()
    for name in ("q", "v", "a", "tau"):
        arrays = {"q": data.q, "v": data.v, "a": data.a, "tau": data.tau}
        arrays[name] = arrays[name].at[3, 1].set(1e200 if X64 else 1e20)
        with pytest.raises(rb.ArgumentError, match=rf"data.{name} must be at most "):
            fit(arm, TrajectoryData(**arrays))
    with pytest.raises(rb.ArgumentError, match="noise must be at least 1e-30"):
        fit(arm, data, noise=jnp.full(2, 1e-33, data.tau.dtype))


def test_a_robot_without_joints_is_refused():
    block = rb.build_model(rb.RobotBuilder("block").link("base", 1.0, inertia=0.1))
    nothing = jnp.zeros((3, 0))
    for call in (
        lambda: fit(block, TrajectoryData(nothing, nothing, nothing, nothing)),
        lambda: exciting_trajectory(block, 1.0),
    ):
        with pytest.raises(rb.ModelError, match="no joint"):
            call()


def test_what_a_motion_does_not_tell_of_drives_is_unknown():
    """The elbow stands still: its friction may be anything, unless it is believed to be about a value."""
    arm, drives = robots.two_link_arm(), untyped(("armature", "damping", "friction"))
    data = measured()[0]
    q, v, a = (x.at[:, 1].set(0.0) for x in data.motion)
    real = rb.with_damping(arm, jnp.array([0.5, 0.0]))
    tau = jax.jit(jax.vmap(motor_torques, (None, 0, 0, 0)))(real, q, v, a)
    tau = tau + NOISE * normal(9, *tau.shape)
    found = fit(arm, TrajectoryData(q, v, a, tau), terms=drives, consistent=False)
    moves = np.array([True, False] * 3)
    assert np.isinf(found.deviation[~moves]).all() and np.abs(found.values[~moves]).max() < 1e-12
    rows = np.stack([np.asarray(x[:, 0], float) for x in (a, v, jnp.sign(v))], axis=1)
    told = NOISE * np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    assert_close(found.deviation[moves], told, 0.1)  # the noise is estimated
    assert "inf" in str(found) and not np.isnan(found.covariance).any()
    believed = fit(rb.with_damping(arm, 0.5), TrajectoryData(q, v, a, tau), terms=drives, prior=0.1, consistent=False)
    assert_close(believed.deviation[3], 0.05)
    kept = fit(arm, TrajectoryData(q, v, a, tau), terms=drives)
    assert np.isinf(kept.deviation[~moves]).all() and kept.values[~moves].max() < 1e-6
