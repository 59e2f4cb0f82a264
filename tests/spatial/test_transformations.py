"""The toolbox of transformations: published numbers, and defects of its namesake that must not come back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rbydyn_jax import ArgumentError
from rbydyn_jax.spatial import quaternions, se3, so3
from rbydyn_jax.spatial import transformations as tf
from tests.helpers import X64, assert_close
from tests.spatial.reference import DTYPE, array, hat

pytestmark = pytest.mark.float32
PUBLISHED = 1e-9 if X64 else 2e-5  # ten digits are published


def vector(*x: float) -> jax.Array:
    return array(x)


T = tf.transform_from_R_p(tf.rotation_matrix_from_rpy(vector(0.3, -0.5, 1.2)), vector(0.4, -0.2, 0.7))
OMEGA, OMEGAD = vector(0.3, -0.2, 0.5), vector(1, 2, -1)


def test_published_point_and_inverse():
    assert_close(tf.apply_transform(T, vector(1, 2, 3)), [-0.8370849178, -0.5557234147, 4.2132722295], PUBLISHED)
    want = [
        [0.3179988465, 0.8179412488, 0.4794255386, -0.2992091659],
        [-0.9417497709, 0.2141223486, 0.2593433801, 0.2379840121],
        [0.1094719259, -0.5339697869, 0.8383866436, -0.7374533782],
    ]
    assert_close(tf.transform_inverse(T)[:3], want, PUBLISHED)


def test_poses_transforms_and_axis_angles_convert_into_each_other():
    rotation = Rotation.random(100, rng=np.random.default_rng(1))
    p = array(np.random.default_rng(1).normal(size=(100, 3)))
    Ts = jax.vmap(tf.transform_from_R_p)(array(rotation.as_matrix()), p)
    poses = jax.vmap(tf.pose_from_transform)(Ts)
    assert_close(poses[:, :4], np.roll(rotation.as_quat(canonical=True), 1, axis=1))
    assert_close(jax.vmap(tf.transform_from_pose)(poses), Ts)
    moved = jax.vmap(lambda pose: tf.transform_from_pose(tf.apply_transform(T, pose)))(poses)
    assert_close(moved, np.asarray(T, float) @ np.asarray(Ts, float))
    assert_close(jax.vmap(tf.axis_angle_from_quat)(poses[:, :4]), rotation.as_rotvec())


def test_published_magnus_expansion():
    for dt, want, exact in (
        (0.1, [0.0350665667, -0.0100666667, 0.0449332333], [0.0350665703, -0.0100666703, 0.0449332297]),
        (0.5, [0.2830208333, 0.1416666667, 0.1163541667], [0.2830300597, 0.1416562847, 0.116343078]),
    ):
        got = tf.magnus_expansion(OMEGA, OMEGAD, dt)
        assert_close(got, want, 2e-9 if X64 else 2e-5)
        assert_close(got, exact, 3 * dt**5 + 2e-5 * (not X64), scale=1.0)


def test_integrated_rotation_approaches_the_exact_one_at_fifth_order():
    w, wd = np.asarray(OMEGA, float), np.asarray(OMEGAD, float)
    errors = []
    for dt in (0.8, 0.4):
        right = lambda t, R: (hat(w + wd * t) @ R.reshape(3, 3)).ravel()  # noqa: E731
        want = solve_ivp(right, (0, dt), np.eye(3).ravel(), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        got = tf.integrate_angular_acceleration(jnp.eye(3, dtype=DTYPE), OMEGA, OMEGAD, dt)
        errors.append(np.abs(np.asarray(got).ravel() - want).max())
    assert errors[0] < 1e-3 and errors[1] < errors[0] / (2**4.5)


@pytest.mark.slow
def test_slow_rotation_is_neither_lost_nor_reset():
    # The namesake returns the identity below 1e-5 rad and so loses both the rotation and its gradient.
    R = T[:3, :3]
    still = jnp.zeros(3, DTYPE)
    assert_close(tf.integrate_angular_acceleration(R, still, still, 0.1), R)
    J = jax.jit(jax.jacrev(lambda w: tf.integrate_angular_acceleration(R, w, still, 0.1)))(still)
    want = 0.1 * np.stack([hat(e) @ np.asarray(R, float) for e in np.eye(3)], axis=-1)
    assert_close(J, want)
    H = jax.jit(jax.hessian(lambda w: tf.integrate_angular_acceleration(R, w, still, 0.1)))(still)
    assert np.isfinite(H).all()


def test_published_body_acceleration():
    v, a = jnp.concatenate([OMEGA, vector(0.1, 0.2, 0.3)]), jnp.concatenate([OMEGAD, vector(1, -1, 0.5)])
    got = tf.integrate_body_acceleration(T, v, a, 0.1)
    assert_close(got[:3, 3], [0.42, -0.19, 0.735], PUBLISHED)
    assert_close(got[0, :3], [0.276339329, -0.9528102641, 0.1256549871], PUBLISHED)
    exact = tf.integrate_body_acceleration(T, v, a, 0.1, method="exact")
    assert_close(exact[:3, 3], [0.415, -0.185, 0.7325], PUBLISHED)
    assert np.array_equal(exact[:3, :3], got[:3, :3])
    with pytest.raises(ArgumentError, match="semi_implicit"):
        tf.integrate_body_acceleration(T, v, a, 0.1, method="euler")  # pyright: ignore[reportArgumentType]


def test_published_constant_jerk():
    p, v, a = tf.integrate_constant_jerk(
        vector(0, 0, 1), vector(1, 0, 0.5), vector(0, 0.2, -0.1), vector(0.3, -0.6, 0.9), 0.2
    )
    assert_close(p, [0.2004, 0.0032, 1.0992])
    assert_close(v, [1.006, 0.028, 0.498])
    assert_close(a, [0.06, 0.08, 0.08])


def test_aliases_are_the_functions_of_their_modules():
    assert tf.crossmat is so3.hat and tf.transform_inverse is se3.inverse
    assert tf.quat_from_rotation_matrix is quaternions.from_matrix
