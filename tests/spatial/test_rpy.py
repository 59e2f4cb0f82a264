"""Roll, pitch, yaw against scipy, published numbers, and through gimbal lock."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax.spatial import quaternions, rpy
from tests.helpers import X64, assert_close
from tests.spatial.reference import array, derivatives

pytestmark = pytest.mark.float32
PUBLISHED = 2e-10 if X64 else 2e-5  # ten digits are published
HALF = np.pi / 2
ANGLES = array(np.random.default_rng(0).uniform(-1, 1, (200, 3)) * [np.pi, 1.5, np.pi])


@pytest.mark.parametrize(
    ("angles", "R", "q"),
    [
        (
            (0.3, -0.5, 1.2),
            [
                [0.3179988465, -0.9417497709, 0.1094719259],
                [0.8179412488, 0.2141223486, -0.5339697869],
                [0.4794255386, 0.2593433801, 0.8383866436],
            ],
            [0.7698226807, 0.257628538, -0.1201424763, 0.5714598517],
        ),
        (
            (0.5, 0.1, 0.2),
            [
                [0.9751703272, -0.1274401179, 0.1811128082],
                [0.1976768117, 0.8695981867, -0.4524631165],
                [-0.0998334166, 0.4770304079, 0.8731983045],
            ],
            [0.9641015012, 0.2410258472, 0.0728518274, 0.0843056797],
        ),
        (
            (1.0, 2.0, 3.0),
            [
                [0.4119822457, -0.8337376518, -0.3676304629],
                [-0.0587266449, -0.4269176213, 0.9023815855],
                [-0.9092974268, -0.3501754884, -0.2248450954],
            ],
            [0.4359528441, -0.7182870182, 0.3106224511, 0.4444351134],
        ),
    ],
)
def test_published_rotations(angles, R, q):
    angles = array(angles)
    assert_close(rpy.to_matrix(angles), R, PUBLISHED)
    assert_close(rpy.to_quaternion(angles), q, PUBLISHED)
    assert_close(quaternions.from_matrix(rpy.to_matrix(angles)), q, PUBLISHED)


def test_published_principal_angles():
    R = rpy.to_matrix(array([1.0, 2.0, 3.0]))
    assert_close(rpy.from_matrix(R), [-2.1415926536, 1.1415926536, -0.1415926536], PUBLISHED)


def test_yaw_pitch_roll_of_other_systems_is_the_reverse():
    got = quaternions.xyzw_from_wxyz(rpy.to_quaternion(array([0.3, -0.5, 1.2])[::-1]))
    want = Rotation.from_euler("ZYX", [0.3, -0.5, 1.2]).as_quat()
    assert_close(got, want)
    forward = quaternions.xyzw_from_wxyz(rpy.to_quaternion(array([0.3, -0.5, 1.2])))
    assert_close(forward, [0.257628538, -0.1201424763, 0.5714598517, 0.7698226807], PUBLISHED)


def test_against_scipy():
    rotations = Rotation.from_euler("xyz", np.array(ANGLES, float))
    assert_close(jax.vmap(rpy.to_matrix)(ANGLES), rotations.as_matrix())
    assert_close(jax.vmap(quaternions.to_matrix)(jax.vmap(rpy.to_quaternion)(ANGLES)), rotations.as_matrix())
    # At pitch 1.5 the angles are 14 times as sensitive as the matrix.
    tol = 1e-12 if X64 else 1e-4
    assert_close(jax.vmap(rpy.from_matrix)(array(rotations.as_matrix())), rotations.as_euler("xyz"), tol)
    assert_close(jax.vmap(rpy.from_quaternion)(jax.vmap(rpy.to_quaternion)(ANGLES)), ANGLES, tol)


@pytest.mark.slow
def test_there_and_back_is_the_identity_to_second_order():
    angles = ANGLES[np.abs(ANGLES[:, 1]) < 1.2]
    value, forward, reverse, hessian, _ = derivatives(lambda a: rpy.from_matrix(rpy.to_matrix(a)))(angles)
    eye = np.broadcast_to(np.eye(3), forward.shape)
    for got, want in ((value, angles), (forward, eye), (reverse, eye), (hessian, np.zeros_like(hessian))):
        assert_close(got, want, 1e-11 if X64 else 2e-4, scale=1.0)  # 1/cos^2(pitch) is up to 8


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("gap", [0.0, 1e-17, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2])
def test_angles_recompose_the_rotation_up_to_and_at_the_lock(sign, gap):
    rng = np.random.default_rng(1)
    angles = rng.uniform(-np.pi, np.pi, (100, 3))
    angles[:, 1] = sign * (HALF - gap)
    R = array(Rotation.from_euler("xyz", angles).as_matrix())
    assert_close(jax.vmap(lambda R: rpy.to_matrix(rpy.from_matrix(R)))(R), R)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_at_the_lock_yaw_is_zero_and_derivatives_are_finite(sign):
    R = rpy.to_matrix(array([0.3, sign * HALF, 0.1]))
    value, forward, reverse, hessian, _ = derivatives(rpy.from_matrix)(R[None])
    tol = 1e-12 if X64 else 2e-5
    assert_close(value[0], [0.3 - sign * 0.1, sign * HALF, 0.0], tol)
    assert_close(forward, reverse, tol)
    assert np.isfinite(hessian).all()


def test_published_rotation_at_the_lock():
    R = rpy.to_matrix(array([0.3, HALF, 0.1]))
    want = [[0, 0.1986693308, 0.9800665778], [0, 0.9800665778, -0.1986693308], [-1, 0, 0]]
    assert_close(R, want, PUBLISHED)
    assert_close(rpy.to_matrix(rpy.from_matrix(R)), want, PUBLISHED)


def test_a_locked_quaternion_does_not_fail():
    q = array([np.sqrt(0.5), 0, np.sqrt(0.5), 0])
    assert_close(rpy.to_matrix(rpy.from_quaternion(q)), quaternions.to_matrix(q))
