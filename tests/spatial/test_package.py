"""What holds for every public function: jit = eager = vmap, dtype kept, wrong shapes refused, order of components."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import spatial
from rbydyn_jax._errors import DtypeError, ShapeError
from rbydyn_jax.spatial import inertia, motion, mrp, quaternions, rpy, se3, so3, transformations
from tests.helpers import assert_close
from tests.spatial.reference import DTYPE

pytestmark = pytest.mark.float32
R, T, Q, P, V, B, S = "RTQPVBS"  # rotation, transform, quaternion, 3-vector, 6-vector, body, scalar
SIGNATURES = {
    so3: dict(hat=P, vee=R, exp=P, log=R, left_jacobian=P, right_jacobian=P, left_jacobian_inverse=P,
              right_jacobian_inverse=P),
    se3: dict(from_R_p=R + P, inverse=T, exp=V, log=T, left_jacobian=V, right_jacobian=V, left_jacobian_inverse=V,
              right_jacobian_inverse=V, Ad=T, ad=V),
    quaternions: dict(multiply=Q + Q, conjugate=Q, normalize=Q, canonical=Q, rotate=Q + P, to_matrix=Q, from_matrix=R,
                      exp=P, log=Q, slerp=Q + Q + S, derivative=Q + P, angular_velocity=Q + Q, xyzw_from_wxyz=Q,
                      wxyz_from_xyzw=Q),
    rpy: dict(to_matrix=P, from_matrix=R, to_quaternion=P, from_quaternion=Q),
    mrp: dict(to_quaternion=P, from_quaternion=Q, to_matrix=P, from_matrix=R, principal=P, derivative=P + P,
              angular_velocity=P + P),
    motion: dict(cross_motion=V + V, cross_force=V + V, transform_motion=T + V, transform_force=T + V,
                 point_velocity=V + P, point_acceleration=V + V + P, classical_acceleration=V + V,
                 spatial_acceleration=V + V),
    inertia: dict(from_mass_com=S + P + R, to_mass_com=B, to_matrix=B, transform=T + B, momentum=B + V,
                  to_pseudo_inertia=B, is_consistent=B, to_log_cholesky=B, from_log_cholesky=B),
    transformations: dict(apply_transform=T + P, pose_from_transform=T, magnus_expansion=P + P + S,
                          integrate_angular_acceleration=R + P + P + S, integrate_body_acceleration=T + V + V + S,
                          integrate_constant_jerk=P + P + P + P + S),
    spatial: dict(to_linear_first=V, from_linear_first=V),
}  # fmt: skip
CASES = [pytest.param(getattr(m, name), kinds, id=f"{m.__name__.rsplit('.', 1)[-1]}.{name}")
         for m, names in SIGNATURES.items() for name, kinds in names.items()]  # fmt: skip


def arguments(kinds: str, dtype) -> list[np.ndarray]:
    rng = np.random.default_rng(len(kinds))

    def values(f, size: int) -> np.ndarray:
        return np.asarray(jax.vmap(f)(jnp.asarray(rng.normal(size=(3, size)))))

    pick = {
        "P": lambda: rng.normal(size=(3, 3)),
        "V": lambda: rng.normal(size=(3, 6)),
        "Q": lambda: rng.normal(size=(3, 4)),
        "S": lambda: rng.uniform(0.1, 1.0, 3),
        "R": lambda: values(so3.exp, 3),
        "T": lambda: values(se3.exp, 6),
        "B": lambda: values(lambda x: inertia.from_log_cholesky(0.3 * x), 10),
    }
    return [pick[k]().astype(dtype) for k in kinds]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "kinds"), CASES)
def test_eager_jit_and_vmap_agree_and_keep_the_dtype(function, kinds):
    batch = arguments(kinds, DTYPE)
    eager = jax.tree.map(lambda *x: jnp.stack(x), *[function(*(a[i] for a in batch)) for i in range(3)])
    last = [np.moveaxis(a, 0, -1) for a in batch]
    both = jax.jit(lambda a, b: (jax.vmap(function)(*a), jax.vmap(function, in_axes=-1)(*b)))(batch, last)
    for want, *others in zip(*map(jax.tree.leaves, (eager, *both)), strict=True):
        for got in others:
            assert_close(got.astype(DTYPE), want.astype(DTYPE), scale=10.0)
    single = jax.eval_shape(function, *(jnp.asarray(a[0], jnp.float32) for a in batch))
    assert all(x.dtype in (jnp.float32, jnp.bool_) for x in jax.tree.leaves(single))


@pytest.mark.parametrize(("function", "kinds"), CASES)
def test_wrong_shape_names_the_argument(function, kinds):
    good = [a[0] for a in arguments(kinds, DTYPE)]
    for i in range(len(good)):
        bad = [jnp.ones((2, 5), DTYPE) if j == i else a for j, a in enumerate(good)]
        with pytest.raises(ShapeError, match=r"must have"):
            function(*bad)


def test_wrong_dtype_is_refused_with_advice():
    with pytest.raises(DtypeError, match=r"phi must be an array of floats.*asarray"):
        so3.exp([0.0, 0.0, 1.0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(DtypeError, match="int"):
        so3.exp(jnp.array([0, 0, 1]))


def test_a_batch_is_told_about_vmap():
    with pytest.raises(ShapeError, match="vmap"):
        se3.exp(jnp.zeros((7, 6), DTYPE))


def test_linear_first_along_each_axis():
    x = jnp.arange(36.0).reshape(6, 6)
    assert np.array_equal(spatial.to_linear_first(x), np.concatenate([x[3:], x[:3]]))
    assert np.array_equal(spatial.to_linear_first(x, axis=-1), np.concatenate([x[:, 3:], x[:, :3]], axis=1))
    assert np.array_equal(spatial.from_linear_first(spatial.to_linear_first(x, 1), 1), x)
    with pytest.raises(ShapeError, match="axis 1"):
        spatial.to_linear_first(jnp.zeros((6, 3)), axis=1)
